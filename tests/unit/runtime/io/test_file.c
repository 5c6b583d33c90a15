/* test_file.c - reading whole files, gzip, atomic replacement. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/io/file.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#include "runtime/base/mem.h"

static tl_diag diag;
static char dir[256], path[300];

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");

    tl_diag_init(&diag, NULL);
    snprintf(dir, sizeof(dir), "%s/tl-file-XXXXXX", tmp ? tmp : "/tmp");
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/f", dir);
}

static int files_in_dir(void)
{
    DIR *d = opendir(dir);
    int n = 0;

    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n - 2; /* . and .. */
}

static void teardown(void)
{
    unlink(path);
    cr_expect_eq(rmdir(dir), 0, "temporary files are left");
    tl_diag_fini(&diag);
    cr_assert_eq(tl_mem_live_blocks(), 0);
}

TestSuite(file, .init = setup, .fini = teardown);

static void put(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    fwrite(bytes, 1, n, f);
    fclose(f);
}

static void expect(const char *want)
{
    tl_bytes b;

    cr_assert_eq(tl_file_read(path, 0, &b, &diag), TL_OK, "%s",
                 diag.last ? diag.last->message : "");
    cr_expect_eq(b.size, strlen(want));
    cr_expect_str_eq(b.data, want);
    tl_bytes_fini(&b);
}

Test(file, reads_whole)
{
    put("hello\n", 6);
    expect("hello\n");
}

Test(file, reads_what_the_kernel_makes)
{
    tl_bytes b;

    if (access("/proc/self/status", R_OK) != 0) {
        cr_skip_test("there is no /proc");
    }
    cr_assert_eq(tl_file_read("/proc/self/status", 0, &b, &diag), TL_OK);
    cr_expect_not_null(strstr(b.data, "VmHWM:"));
    tl_bytes_fini(&b);
    put("", 0);
    expect("");
}

Test(file, missing_file_gives_the_reason)
{
    tl_bytes b;

    cr_assert_eq(tl_file_read(path, 0, &b, &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0701);
    cr_expect_not_null(strstr(diag.last->message, "No such file"));
}

Test(file, folder_and_fifo_are_refused_without_waiting)
{
    tl_bytes b;

    cr_assert_eq(tl_file_read(dir, 0, &b, &diag), TL_ERR_FILE);
    cr_expect_not_null(strstr(diag.last->message, "folder"));
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(tl_file_read(path, 0, &b, &diag), TL_ERR_FILE);
    cr_expect_not_null(strstr(diag.last->message, "regular"));
}

Test(file, limit_is_kept)
{
    tl_bytes b;

    put("0123456789", 10);
    cr_assert_eq(tl_file_read(path, 9, &b, &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0711);
    cr_assert_eq(tl_file_read(path, 10, &b, &diag), TL_OK);
    tl_bytes_fini(&b);
}

Test(file, control_bytes_of_names_are_escaped)
{
    cr_expect_null(strchr(tl_path_str("a\033[31mb").s, '\033'));
}

#ifdef HAVE_ZLIB

static void put_gz(const char *mode, const char *bytes, size_t n)
{
    gzFile f = gzopen(path, mode);

    cr_assert_eq(gzwrite(f, bytes, (unsigned)n), (int)n);
    gzclose(f);
}

Test(file, gzip_is_inflated_all_members)
{
    put_gz("wb", "first ", 6);
    put_gz("ab", "second", 6);
    expect("first second");
}

Test(file, gzip_limit_counts_inflated_bytes)
{
    size_t n = 1 << 20;
    char *zeros = calloc(n, 1);
    tl_bytes b;

    put_gz("wb", zeros, n);
    free(zeros);
    cr_assert_eq(tl_file_read(path, 100000, &b, &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0711);
    cr_assert_eq(tl_file_read(path, n, &b, &diag), TL_OK);
    cr_expect_eq(b.size, n);
    tl_bytes_fini(&b);
}

Test(file, every_truncated_gzip_is_damaged)
{
    char text[200];
    tl_bytes b;
    FILE *f;
    char raw[400];
    size_t n;

    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)(i * i);
    }
    put_gz("wb", text, sizeof(text));
    f = fopen(path, "rb");
    n = fread(raw, 1, sizeof(raw), f);
    fclose(f);
    for (size_t len = 2; len < n; len++) {
        put(raw, len);
        cr_assert_eq(tl_file_read(path, 0, &b, &diag), TL_ERR_FILE);
        cr_assert_eq(diag.last->code, TL_E0711);
    }
}

Test(file, inflating_survives_every_failing_allocation)
{
    char text[2000] = {1, 2, 3};

    put_gz("wb", text, sizeof(text));
    for (uint64_t n = 1;; n++) {
        tl_bytes b;
        tl_status st;

        tl_diag_clear(&diag);
        tl_mem_fail_at(n, false);
        st = tl_file_read(path, 0, &b, &diag);
        tl_mem_fail_at(0, false);
        if (st == TL_OK) {
            cr_assert_gt(n, 3);
            tl_bytes_fini(&b);
            break;
        }
        cr_assert_eq(st, TL_ERR_MEMORY);
    }
}

#else

Test(file, gzip_without_zlib_says_what_to_install)
{
    tl_bytes b;

    put("\x1f\x8b\x08", 3);
    cr_assert_eq(tl_file_read(path, 0, &b, &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0701);
    cr_expect_not_null(strstr(diag.last->message, path));
    cr_expect_not_null(strstr(diag.last->help, "zlib1g-dev"));
}

#endif

Test(file, commit_replaces_and_keeps_the_mode)
{
    tl_file_out f;
    struct stat info;

    put("old", 3);
    chmod(path, 0640);
    cr_assert_eq(tl_file_create(&f, path, &diag), TL_OK);
    cr_assert_eq(tl_file_write(&f, "new text", 8, &diag), TL_OK);
    expect("old");
    cr_assert_eq(tl_file_commit(&f, &diag), TL_OK);
    expect("new text");
    stat(path, &info);
    cr_expect_eq(info.st_mode & 0777, 0640);
    cr_expect_eq(files_in_dir(), 1);
}

Test(file, abort_leaves_the_old_file_alone)
{
    tl_file_out f;

    put("old", 3);
    cr_assert_eq(tl_file_create(&f, path, &diag), TL_OK);
    cr_assert_eq(tl_file_write(&f, "new text", 8, &diag), TL_OK);
    cr_expect_eq(files_in_dir(), f.named ? 2 : 1);
    expect("old");
    tl_file_abort(&f);
    expect("old");
    cr_expect_eq(files_in_dir(), 1);
}

Test(file, two_writers_do_not_share_a_temporary_file)
{
    tl_file_out a, b;

    cr_assert_eq(tl_file_create(&a, path, &diag), TL_OK);
    cr_assert_eq(tl_file_create(&b, path, &diag), TL_OK);
    cr_expect(!a.named || !b.named || strcmp(a.temp, b.temp) != 0);
    cr_assert_eq(tl_file_write(&a, "a", 1, &diag), TL_OK);
    cr_assert_eq(tl_file_write(&b, "b", 1, &diag), TL_OK);
    cr_assert_eq(tl_file_commit(&a, &diag), TL_OK);
    cr_assert_eq(tl_file_commit(&b, &diag), TL_OK);
    expect("b");
}

Test(file, links_stay_links)
{
    char link[330];
    struct stat info;
    tl_file_out f;

    put("old", 3);
    snprintf(link, sizeof(link), "%s/link", dir);
    cr_assert_eq(symlink("f", link), 0);
    cr_assert_eq(tl_file_create(&f, link, &diag), TL_OK);
    cr_assert_eq(tl_file_write(&f, "new", 3, &diag), TL_OK);
    cr_assert_eq(tl_file_commit(&f, &diag), TL_OK);
    lstat(link, &info);
    cr_expect(S_ISLNK(info.st_mode));
    expect("new");
    unlink(link);
}

Test(file, missing_folder_is_e0707)
{
    tl_file_out f;
    char bad[330];

    snprintf(bad, sizeof(bad), "%s/none/f", dir);
    cr_assert_eq(tl_file_create(&f, bad, &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0707);
    cr_assert_eq(tl_file_create(&f, dir, &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0707);
}

Test(file, full_disk_keeps_the_old_file)
{
    struct rlimit limit = {1000, 1000};
    tl_file_out f;
    char big[4000] = {0};

    put("old", 3);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert_eq(tl_file_create(&f, path, &diag), TL_OK);
    cr_assert_eq(tl_file_write(&f, big, sizeof(big), &diag), TL_ERR_FILE);
    cr_expect_eq(diag.last->code, TL_E0707);
    tl_file_abort(&f);
    expect("old");
    cr_expect_eq(files_in_dir(), 1);
}
