/* machine.c - affinity, memory and control groups.
 *
 * A group's limit binds together with those of all groups above it, so each
 * look-up walks from the process's group to the root and takes the smallest.
 * In a container the path of /proc/self/cgroup may not exist under the mount;
 * the walk then still meets the root, which is the container's own group. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "runtime/base/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum {
    PATH_SIZE = 4096
};

/* The start of a small file as text; false if it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = 0;

    if (fd < 0) {
        return false;
    }
    while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0) {
        len += (size_t)n;
    }
    close(fd);
    text[len] = '\0';
    return n >= 0;
}

/* Does the comma-separated list of `len` bytes hold `name`? */
static bool list_has(const char *list, size_t len, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i + n <= len; i++) {
        if ((i == 0 || list[i - 1] == ',') &&
            memcmp(list + i, name, n) == 0 &&
            (i + n == len || list[i + n] == ',')) {
            return true;
        }
    }
    return false;
}

/* Path of the process's group in the hierarchy with `controller` ("": v2),
 * from lines "id:controllers:path". */
static bool find_group(const char *groups, const char *controller,
                       char path[PATH_SIZE])
{
    for (const char *line = groups; line && *line;) {
        size_t len = strcspn(line, "\n");
        const char *list = memchr(line, ':', len);
        const char *at =
            list ? memchr(list + 1, ':', len - (size_t)(list + 1 - line))
                 : NULL;

        if (at && (*controller ? list_has(list + 1, (size_t)(at - list - 1),
                                          controller)
                               : at == list + 1)) {
            size_t n = len - (size_t)(at + 1 - line);

            if (n >= PATH_SIZE) {
                return false;
            }
            memcpy(path, at + 1, n);
            path[n] = '\0';
            return true;
        }
        line += len + (line[len] == '\n');
    }
    return false;
}

/* A limit read from one group's folder; 0 if it sets none. */
typedef uint64_t limit_fn(const char *folder);

static uint64_t read_number(const char *folder, const char *file)
{
    char path[PATH_SIZE + 32], text[64];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, file);

    if (n < 0 || (size_t)n >= sizeof(path) ||
        !read_text(path, text, sizeof(text)) || text[0] < '0' ||
        text[0] > '9') {
        return 0;
    }
    return strtoull(text, NULL, 10);
}

static uint64_t cpus_v2(const char *folder)
{
    char path[PATH_SIZE + 32], text[64], *end;
    int n = snprintf(path, sizeof(path), "%s/cpu.max", folder);
    uint64_t quota, period;

    if (n < 0 || (size_t)n >= sizeof(path) ||
        !read_text(path, text, sizeof(text)) || text[0] < '0' ||
        text[0] > '9') {
        return 0; /* "max 100000", or no such file */
    }
    quota = strtoull(text, &end, 10);
    period = strtoull(end, NULL, 10);
    return period ? (quota + period - 1) / period : 0;
}

static uint64_t cpus_v1(const char *folder)
{
    uint64_t quota = read_number(folder, "cpu.cfs_quota_us"); /* -1: none */
    uint64_t period = read_number(folder, "cpu.cfs_period_us");

    return period ? (quota + period - 1) / period : 0;
}

static uint64_t memory_v2(const char *folder)
{
    return read_number(folder, "memory.max");
}

static uint64_t memory_v1(const char *folder)
{
    return read_number(folder, "memory.limit_in_bytes");
}

/* The number behind `name` at the start of a line; 0 if there is none. */
static uint64_t number_of(const char *text, const char *name)
{
    size_t n = strlen(name);

    while (text && *text) {
        if (strncmp(text, name, n) == 0 &&
            strchr(": \t", text[n]) && text[n] != '\0') {
            return strtoull(text + n + strspn(text + n, ": \t"), NULL, 10);
        }
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return 0;
}

/* What `limit` leaves of what is `used`, but at least 1; `kept` names page
 * cache in the group's memory.stat, `held` the part of it that stays. */
static uint64_t left_of(const char *folder, uint64_t limit, uint64_t used,
                        const char *kept, const char *held)
{
    char path[PATH_SIZE + 32], text[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/memory.stat", folder);
    uint64_t cache = 0;

    if (limit == 0) {
        return 0;
    }
    if (n > 0 && (size_t)n < sizeof(path) &&
        read_text(path, text, sizeof(text))) {
        uint64_t all = number_of(text, kept), stays = number_of(text, held);

        cache = all > stays ? all - stays : 0;
    }
    used = used > cache ? used - cache : 0;
    return limit > used ? limit - used : 1;
}

static uint64_t available_v2(const char *folder)
{
    return left_of(folder, memory_v2(folder),
                   read_number(folder, "memory.current"), "file", "shmem");
}

static uint64_t available_v1(const char *folder)
{
    return left_of(folder, memory_v1(folder),
                   read_number(folder, "memory.usage_in_bytes"),
                   "total_cache", "total_shmem");
}

/* Smallest non-zero limit from root/path up to root. */
static uint64_t smallest(const char *root, char *path, limit_fn *limit)
{
    char folder[PATH_SIZE];
    uint64_t best = 0, value;
    char *cut;

    for (;;) {
        int n = snprintf(folder, sizeof(folder), "%s%s", root, path);

        value = n > 0 && (size_t)n < sizeof(folder) ? limit(folder) : 0;
        if (value > 0 && (best == 0 || value < best)) {
            best = value;
        }
        cut = strrchr(path, '/');
        if (!cut) {
            return best;
        }
        *cut = '\0';
    }
}

/* The limit in the v2 hierarchy, else in the v1 hierarchy of `controller`. */
static uint64_t group_limit(const char *root, const char *groups,
                            const char *controller, limit_fn *v2,
                            limit_fn *v1)
{
    char path[PATH_SIZE], mount[PATH_SIZE];
    uint64_t value = 0;
    int n;

    if (find_group(groups, "", path)) {
        value = smallest(root, path, v2);
    }
    n = snprintf(mount, sizeof(mount), "%s/%s", root, controller);
    if (value == 0 && n > 0 && (size_t)n < sizeof(mount) &&
        find_group(groups, controller, path)) {
        value = smallest(mount, path, v1);
    }
    return value;
}

int tl_cgroup_cpus(const char *root, const char *groups)
{
    uint64_t n = group_limit(root, groups, "cpu", cpus_v2, cpus_v1);

    return n < 1 << 20 ? (int)n : 1 << 20;
}

size_t tl_cgroup_memory(const char *root, const char *groups)
{
    uint64_t n = group_limit(root, groups, "memory", memory_v2, memory_v1);

    return n ? n : SIZE_MAX;
}

size_t tl_cgroup_available(const char *root, const char *groups)
{
    uint64_t n =
        group_limit(root, groups, "memory", available_v2, available_v1);

    return n ? n : SIZE_MAX;
}

static void read_groups(char *text, size_t size)
{
    if (!read_text("/proc/self/cgroup", text, size)) {
        text[0] = '\0';
    }
}

int tl_machine_cpus(void)
{
    char groups[PATH_SIZE];
    cpu_set_t set;
    long n;
    int quota;

    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        n = CPU_COUNT(&set);
    } else {
        n = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than the set holds */
    }
    read_groups(groups, sizeof(groups));
    quota = tl_cgroup_cpus("/sys/fs/cgroup", groups);
    if (quota > 0 && quota < n) {
        n = quota;
    }
    return n < 1 ? 1 : (int)n;
}

size_t tl_machine_memory(void)
{
    char groups[PATH_SIZE];
    struct sysinfo info; /* sysconf would read /proc/meminfo */
    size_t bytes = SIZE_MAX, limit;

    if (sysinfo(&info) == 0) {
        bytes = (size_t)info.totalram * info.mem_unit;
    }
    read_groups(groups, sizeof(groups));
    limit = tl_cgroup_memory("/sys/fs/cgroup", groups);
    return limit < bytes ? limit : bytes;
}

size_t tl_machine_available(void)
{
    char groups[PATH_SIZE], text[PATH_SIZE];
    size_t bytes = SIZE_MAX, left;

    if (read_text("/proc/meminfo", text, sizeof(text)) &&
        number_of(text, "MemAvailable") > 0) {
        bytes = (number_of(text, "MemAvailable") +
                 number_of(text, "SwapFree")) * 1024;
    }
    read_groups(groups, sizeof(groups));
    left = tl_cgroup_available("/sys/fs/cgroup", groups);
    return left < bytes ? left : bytes;
}
