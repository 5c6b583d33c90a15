/* compare.c - does what a run gave match what its test expects? */
#include "tests/golden/golden.h"

#include <stdlib.h>
#include <string.h>

/* Above this many cells the table of the longest common subsequence is not
 * made, and both texts are shown whole. */
#define MAX_CELLS 4000000

/* length[i * (n + 1) + j] = the longest common subsequence of want[i..] and
 * got[j..]; NULL when the table would be too large. */
static unsigned *lcs_table(const lines *want, const lines *got)
{
    size_t m = want->len, n = got->len;
    if ((m + 1) * (n + 1) > MAX_CELLS) {
        return NULL;
    }
    unsigned *length = calloc((m + 1) * (n + 1), sizeof *length);
    for (size_t i = m; length && i-- > 0;) {
        for (size_t j = n; j-- > 0;) {
            unsigned *cell = &length[i * (n + 1) + j];
            unsigned down = cell[n + 1], right = cell[1];
            if (!strcmp(want->items[i], got->items[j])) {
                *cell = cell[n + 2] + 1;
            } else {
                *cell = down > right ? down : right;
            }
        }
    }
    return length;
}

void diff_lines(const lines *want, const lines *got, text *out)
{
    unsigned *length = lcs_table(want, got);
    size_t i = 0, j = 0, n = got->len;

    while (i < want->len || j < n) {
        bool more_want = i < want->len, more_got = j < n;
        if (more_want && more_got && !strcmp(want->items[i], got->items[j])) {
            text_printf(out, "     %s\n", want->items[i++]);
            j++;
        } else if (more_want && (!more_got || !length ||
                                 length[(i + 1) * (n + 1) + j] >=
                                     length[i * (n + 1) + j + 1])) {
            text_printf(out, "   - %s\n", want->items[i++]);
        } else {
            text_printf(out, "   + %s\n", got->items[j++]);
        }
    }
    free(length);
}

static void compare_output(const run *r, text *why)
{
    lines got = lines_split(r->out);
    const lines *want = &r->test->expect;
    bool same = got.len == want->len;

    for (size_t i = 0; same && i < got.len; i++) {
        same = !strcmp(got.items[i], want->items[i]);
    }
    if (!same) {
        text_printf(why, "  stdout differs (- wanted, + got):\n");
        diff_lines(want, &got, why);
    }
    lines_free(&got);
}

static void show(const char *label, const char *s, text *why)
{
    lines all = lines_split(s);

    text_printf(why, "  %s%s\n", label, all.len ? "" : " (nothing)");
    for (size_t i = 0; i < all.len; i++) {
        text_printf(why, "   | %s\n", all.items[i]);
    }
    lines_free(&all);
}

void compare_errors(const lines *want, const char *err, text *why)
{
    const char *at = err;

    for (size_t i = 0; i < want->len; i++) {
        const char *found = strstr(at, want->items[i]);
        if (!found) {
            bool earlier = strstr(err, want->items[i]) != NULL;
            text_printf(why, "  stderr lacks%s: %s\n",
                        earlier ? " (in this order)" : "", want->items[i]);
            show("stderr:", err, why);
            return;
        }
        at = found + strlen(want->items[i]);
    }
}

static void compare_stderr(const run *r, text *why)
{
    const test_case *c = r->test;

    if (c->error.len == 0 && *r->err) {
        show("stderr should be empty, but is:", r->err, why);
    }
    compare_errors(&c->error, r->err, why);
    for (size_t i = 0; i < c->error_not.len; i++) {
        if (strstr(r->err, c->error_not.items[i])) {
            text_printf(why, "  stderr has: %s\n", c->error_not.items[i]);
            show("stderr:", r->err, why);
        }
    }
}

static void compare_exit(const run *r, text *why)
{
    if (r->timed_out) {
        text_printf(why, "  no end after %.0f s\n", r->seconds);
    } else if (r->signal) {
        text_printf(why, "  killed by signal %d (%s)\n", r->signal,
                    strsignal(r->signal));
    } else if (r->exit != r->test->exit) {
        text_printf(why, "  exit code %d, wanted %d\n", r->exit,
                    r->test->exit);
    } else {
        return;
    }
    // With `# error:` lines a mismatch shows stderr already.
    if (r->test->error.len && *r->err) {
        show("stderr:", r->err, why);
    }
}

void compare_run(const options *o, const run *r, text *why)
{
    compare_exit(r, why);
    if (o->form == FORM_JSON) {
        compare_json(r, why);
    } else if (o->form == FORM_REPL) {
        compare_repl(r, why);
    } else {
        compare_output(r, why);
        compare_stderr(r, why);
    }
}
