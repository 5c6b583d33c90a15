/* test_machine.c - quotas of control groups, read from a made-up tree. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/machine.h"

static char root[64];

static void setup(void)
{
    snprintf(root, sizeof(root), "/tmp/tl-machine-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

/* Write root/path, making its folders. */
static void put(const char *path, const char *text)
{
    char full[256];
    FILE *f;

    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    f = fopen(full, "w");
    cr_assert_not_null(f, "%s", full);
    fputs(text, f);
    fclose(f);
}

static void release(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(machine, .init = setup, .fini = release);

Test(machine, no_quota_is_zero)
{
    cr_expect_eq(tl_cgroup_cpus(root, "0::/a\n"), 0);
    put("a/cpu.max", "max 100000\n");
    cr_expect_eq(tl_cgroup_cpus(root, "0::/a\n"), 0);
    cr_expect_eq(tl_cgroup_memory(root, "0::/a\n"), SIZE_MAX);
    cr_expect_eq(tl_cgroup_cpus(root, ""), 0);
}

Test(machine, quota_is_rounded_up)
{
    put("a/cpu.max", "150000 100000\n");
    cr_expect_eq(tl_cgroup_cpus(root, "0::/a\n"), 2);
    put("a/cpu.max", "1000 100000\n");
    cr_expect_eq(tl_cgroup_cpus(root, "0::/a\n"), 1);
}

Test(machine, smallest_of_the_groups_above_binds)
{
    put("a/cpu.max", "300000 100000\n");
    put("a/b/cpu.max", "800000 100000\n");
    put("a/memory.max", "1000\n");
    put("a/b/memory.max", "max\n");
    cr_expect_eq(tl_cgroup_cpus(root, "0::/a/b\n"), 3);
    cr_expect_eq(tl_cgroup_memory(root, "0::/a/b\n"), 1000);
}

Test(machine, root_counts_where_the_path_is_not_mounted)
{
    put("cpu.max", "400000 100000\n");
    cr_expect_eq(tl_cgroup_cpus(root, "0::/host/path/x\n"), 4);
    cr_expect_eq(tl_cgroup_cpus(root, "0::/\n"), 4);
}

Test(machine, v1_hierarchies)
{
    const char *groups = "4:memory:/job\n2:cpuset:/\n1:cpu,cpuacct:/job\n";

    put("cpu/job/cpu.cfs_quota_us", "250000\n");
    put("cpu/job/cpu.cfs_period_us", "100000\n");
    put("memory/job/memory.limit_in_bytes", "123456\n");
    cr_expect_eq(tl_cgroup_cpus(root, groups), 3);
    cr_expect_eq(tl_cgroup_memory(root, groups), 123456);
    put("cpu/job/cpu.cfs_quota_us", "-1\n");
    cr_expect_eq(tl_cgroup_cpus(root, groups), 0);
}

Test(machine, malformed_files_set_no_limit)
{
    put("a/cpu.max", "12");
    put("a/memory.max", "");
    cr_expect_eq(tl_cgroup_cpus(root, "0::/a\nxx\n:\n"), 0);
    cr_expect_eq(tl_cgroup_memory(root, "0::/a\n"), SIZE_MAX);
    cr_expect_eq(tl_cgroup_cpus(root, "garbage"), 0);
}

Test(machine, this_machine_has_something)
{
    cr_expect_geq(tl_machine_cpus(), 1);
    cr_expect_gt(tl_machine_memory(), (size_t)16 << 20);
}

Test(machine, available_is_what_the_limit_leaves)
{
    put("a/memory.max", "1000\n");
    put("a/memory.current", "700\n");
    cr_expect_eq(tl_cgroup_available(root, "0::/a\n"), 300);
    put("a/memory.stat", "anon 400\nfile 250\nshmem 50\n");
    cr_expect_eq(tl_cgroup_available(root, "0::/a\n"), 500);
    put("a/memory.current", "1200\n");
    cr_expect_eq(tl_cgroup_available(root, "0::/a\n"), 1);
    put("a/memory.max", "max\n");
    cr_expect_eq(tl_cgroup_available(root, "0::/a\n"), SIZE_MAX);
}

Test(machine, available_is_no_more_than_the_machine_has)
{
    size_t available = tl_machine_available();

    cr_expect_gt(available, 1 << 20);
    cr_expect_leq(available / 4, tl_machine_memory()); /* swap is extra */
}
