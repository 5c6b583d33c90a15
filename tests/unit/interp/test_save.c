/* test_save.c - files and folders: damage, lack of memory, sudden death. */
#include "tests/unit/interp/run.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/checkpoint.h"

static run r;
static char folder[] = "/tmp/tl_test_save_XXXXXX";

static void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;

    while (dir && (e = readdir(dir)) != NULL) {
        char sub[1200];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
        if (unlink(sub) != 0) {
            remove_all(sub);
        }
    }
    if (dir) {
        closedir(dir);
    }
    (void)rmdir(path);
}

/* In a folder of its own. */
static void setup(void)
{
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    cr_assert_eq(run_init(&r), TL_OK);
}

static void teardown(void)
{
    run_fini(&r);
    run_release(&r);
    cr_assert_eq(tl_obj_live(), 0);
    cr_assert_eq(chdir("/"), 0);
    remove_all(folder);
}

TestSuite(test_save, .init = setup, .fini = teardown);

static const char *const program =
    "module L(n: int):\n"
    "    param w: f32[n] = fn(s, d) => rand(s)\n"
    "    buffer k: i64[] = 0\n"
    "    lr: float = 0.5\n"
    "module N():\n"
    "    a = L(3)\n"
    "    b = L(2)\n"
    "net, opt = N(), L(4)\n";

static void ok(const char *text)
{
    cr_assert_eq(run_text(&r, text), TL_OK, "%s: %s", text,
                 r.diag.last ? r.diag.last->message : "");
}

static void refuses(const char *statement, tl_code code)
{
    tl_diag_clear(&r.diag);
    cr_expect_neq(run_text(&r, statement), TL_OK, "%s", statement);
    cr_expect_eq(run_code(&r), code, "%s gave %s: %s", statement,
                 tl_code_name(run_code(&r)),
                 r.diag.last ? r.diag.last->message : "");
}

static void flip(const char *path, long at, int bit)
{
    FILE *f = fopen(path, "r+b");
    int c;

    cr_assert_not_null(f);
    cr_assert_eq(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    c = fgetc(f);
    cr_assert_eq(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    cr_assert_neq(fputc(c ^ (1 << bit), f), EOF);
    fclose(f);
}

Test(test_save, flipped_bits_of_data_are_found)
{
    ok(program);
    ok("save(\"ck\", net, opt, step=1)");
    flip("ck/.tlang/1/model.safetensors", -1, 3);
    refuses("resume(\"ck\", net, opt)", TL_E0705);
}

Test(test_save, exchanged_files_are_found)
{
    ok(program);
    ok("save(\"ck\", net, opt, step=1)\n"
       "net.a.w = zeros(3)\n"
       "save(\"other\", net, opt, step=1)\n");
    cr_assert_eq(rename("other/.tlang/1/model.safetensors",
                        "ck/.tlang/1/model.safetensors"),
                 0);
    refuses("resume(\"ck\", net, opt)", TL_E0705);
}

Test(test_save, every_flipped_bit_of_state_is_refused_or_harmless)
{
    struct stat info;

    ok(program);
    ok("save(\"ck\", net, opt, step=5)\nw = net.a.w\n");
    cr_assert_eq(stat("ck/state.json", &info), 0);
    for (long i = 0; i < info.st_size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            flip("ck/state.json", i, bit);
            tl_diag_clear(&r.diag);
            if (run_text(&r, "resume(\"ck\", net, opt, default=0)") !=
                TL_OK) {
                tl_code code = run_code(&r);

                cr_assert(code == TL_E0705 || code == TL_E0703 ||
                              code == TL_E0710 || code == TL_E0701,
                          "byte %ld bit %d: %s", i, bit, tl_code_name(code));
            }
            ok("assert (net.a.w == w).all()");
            flip("ck/state.json", i, bit);
        }
    }
}

Test(test_save, newer_formats_are_refused)
{
    FILE *f;

    ok(program);
    ok("save(\"ck\", net)");
    f = fopen("ck/state.json", "w");
    cr_assert_not_null(f);
    fputs("{\"tlang\": 7, \"other\": []}\n", f);
    fclose(f);
    refuses("resume(\"ck\", net)", TL_E0710);
}

Test(test_save, a_failed_load_changes_nothing)
{
    ok(program);
    ok("save(\"f.safetensors\", net)\n"
       "module Big():\n"
       "    a = L(3)\n"
       "    b = L(2)\n"
       "    c = L(1)\n"
       "big = Big()\n"
       "w = big.a.w\n");
    refuses("big.load(\"f.safetensors\")", TL_E0703);
    ok("assert (big.a.w == w).all()");
}

Test(test_save, values_of_host_cells_are_checked)
{
    ok(program);
    ok("save(\"f.safetensors\", net)");
    /* the header: find 0.5 and make it 0.x */
    FILE *f = fopen("f.safetensors", "r+b");
    char text[2048];
    size_t n, at = 0;

    cr_assert_not_null(f);
    n = fread(text, 1, sizeof(text), f);
    while (at + 5 <= n && memcmp(text + at, "\"0.5\"", 5) != 0) {
        at++;
    }
    cr_assert_leq(at + 5, n);
    cr_assert_eq(fseek(f, (long)at + 3, SEEK_SET), 0);
    fputc('x', f);
    fclose(f);
    refuses("net.load(\"f.safetensors\")", TL_E0713);
}

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n - 2;
}

Test(test_save, old_generations_are_swept)
{
    ok(program);
    ok("for i in range(5):\n    save(\"ck\", net, opt, step=i)\n");
    cr_expect_eq(count_entries("ck"), 4); /* .tlang, two files, state */
    cr_expect_eq(count_entries("ck/.tlang"), 2); /* one generation, lock */
}

Test(test_save, other_files_of_the_folder_stay)
{
    FILE *f;

    ok(program);
    cr_assert_eq(mkdir("ck", 0777), 0);
    f = fopen("ck/notes.txt", "w");
    cr_assert_not_null(f);
    fclose(f);
    ok("save(\"ck\", net)\nsave(\"ck\", net)\n");
    cr_expect_eq(access("ck/notes.txt", F_OK), 0);
}

Test(test_save, a_path_through_a_file_is_refused)
{
    ok(program);
    ok("save(\"x.safetensors\", net)");
    refuses("save(\"x.safetensors/ck\", net)", TL_E0707);
    refuses("save(\"\", net)", TL_E0701);
    refuses("save(\"a\\0b\", net)", TL_E0701);
}

Test(test_save, failed_allocations_leave_the_old_checkpoint)
{
    ok(program);
    ok("save(\"ck\", net, opt, step=1)\n"
       "save(\"f.safetensors\", net)\n"
       "w = net.a.w\n"
       "net.a.w = zeros(3)\n");
    for (uint64_t n = 1;; n++) {
        uint64_t before = tl_mem_attempts();
        tl_status st;
        bool reached;

        tl_mem_fail_at(n, false);
        st = run_text(&r, "save(\"ck\", net, opt, step=2)\n"
                          "save(\"f.safetensors\", net)\n");
        tl_mem_fail_at(0, false);
        reached = tl_mem_attempts() - before >= n;
        tl_diag_clear(&r.diag);
        if (!reached) {
            cr_expect_eq(st, TL_OK);
            break;
        }
        cr_assert(st == TL_OK || st == TL_ERR_MEMORY, "allocation %llu",
                  (unsigned long long)n);
        ok("d = load(\"f.safetensors\")\n"
           "assert len(d) == 4\n"
           "other, oopt = N(), L(4)\n"
           "i = resume(\"ck\", other, opt=oopt)\n"
           "v = w if i == 1 else zeros(3)\n"
           "assert (other.a.w == v).all()\n");
        if (st == TL_OK) { /* it was saved all the same: save the old again */
            ok("keep = net.a.w\nnet.a.w = w\n"
               "save(\"ck\", net, opt, step=1)\n"
               "save(\"f.safetensors\", net)\nnet.a.w = keep\n");
        }
        tl_diag_clear(&r.diag);
    }
}

Test(test_save, failed_allocations_of_loading_change_nothing)
{
    ok(program);
    ok("save(\"ck\", net, opt, step=1)\n"
       "net.a.w = zeros(3)\nopt.lr = 7\n");
    for (uint64_t n = 1;; n++) {
        uint64_t before = tl_mem_attempts();
        tl_status st;
        bool reached;

        tl_mem_fail_at(n, false);
        st = run_text(&r, "resume(\"ck\", net, opt)");
        tl_mem_fail_at(0, false);
        reached = tl_mem_attempts() - before >= n;
        tl_diag_clear(&r.diag);
        if (!reached) {
            cr_expect_eq(st, TL_OK);
            break;
        }
        cr_assert(st == TL_OK || st == TL_ERR_MEMORY, "allocation %llu",
                  (unsigned long long)n);
        if (st == TL_OK) {
            ok("net.a.w = zeros(3)\nopt.lr = 7\n");
        }
        ok("assert (net.a.w == 0).all() and opt.lr == 7\n");
    }
}

/* Saves in a loop until it is killed. */
static void saver(void)
{
    for (int i = 2;; i++) {
        char text[128];

        snprintf(text, sizeof(text),
                 "net.a.w = full((3,), %d.0)\nopt.lr = %d\n"
                 "save(\"ck\", net, opt, step=%d)\n",
                 i, i, i);
        if (run_text(&r, text) != TL_OK) {
            _exit(1);
        }
    }
}

Test(test_save, killed_savers_leave_a_whole_checkpoint)
{
    uint64_t state = 1;

    ok(program);
    ok("save(\"ck\", net, opt, step=1)\nnet.a.w = ones(3)\n");
    ok("opt.lr = 1\nsave(\"ck\", net, opt, step=1)\n");
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        int status;

        cr_assert_geq(child, 0);
        if (child == 0) {
            saver();
        }
        state = state * 6364136223846793005u + 1442695040888963407u;
        usleep((useconds_t)(state >> 33) % 15000);
        kill(child, SIGKILL);
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status), "the saver failed");
        ok("n2, o2 = N(), L(4)\n"
           "i = resume(\"ck\", n2, opt=o2)\n"
           "assert (n2.a.w == i).all() and o2.lr == i\n"
           "save(\"ck\", n2, opt=o2, step=i)\n");
        cr_expect_eq(count_entries("ck/.tlang"), 2, "leftovers");
    }
}
