/* update.c - rewrite the expectations of a test from what a run gave.
 *
 * New lines take the place of the first old one of their kind, or go to the
 * end, so that the lines of the program move as little as can be.  When they
 * do move, messages with line numbers settle at the next update. */
#include "tests/golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lines of `s` that are worth expecting in stderr. */
static lines error_lines(const char *s)
{
    lines all = lines_split(s), res = {0};

    for (size_t i = 0; i < all.len; i++) {
        const char *line = all.items[i] + strspn(all.items[i], " |");
        if (*line) {
            lines_add(&res, line, strlen(line));
        }
    }
    lines_free(&all);
    return res;
}

static void add_directives(text *out, const char *kind, const lines *values)
{
    for (size_t i = 0; i < values->len; i++) {
        const char *value = values->items[i];
        text_printf(out, "# %s:%s%s\n", kind, *value ? " " : "", value);
    }
}

/* `source` with all directives of `kind` replaced by `values`. */
static char *replace(const char *source, const char *kind,
                     const lines *values)
{
    lines all = lines_split(source);
    text out = {0};
    bool placed = false;

    text_add(&out, "", 0);
    for (size_t i = 0; i < all.len; i++) {
        const char *value;
        const char *name = case_directive(all.items[i], &value);
        if (!name || strcmp(name, kind)) {
            text_printf(&out, "%s\n", all.items[i]);
        } else if (!placed) {
            add_directives(&out, kind, values);
            placed = true;
        }
    }
    if (!placed) {
        add_directives(&out, kind, values);
    }
    lines_free(&all);
    return out.s;
}

static void replace_in(char **source, const char *kind, const lines *values)
{
    char *next = replace(*source, kind, values);

    free(*source);
    *source = next;
}

bool update_case(const run *r)
{
    const test_case *c = r->test;
    char *old = read_file(c->path);
    if (!old || r->signal || r->timed_out) {
        free(old);
        return false;
    }
    char *source = format("%s", old);
    lines out = lines_split(r->out);
    lines err = error_lines(r->err);
    lines code = {0};
    text why = {0};

    replace_in(&source, "expect", &out);
    compare_errors(&c->error, r->err, &why);
    if (why.len || (c->error.len == 0 && err.len)) {
        replace_in(&source, "error", &err);
    }
    if (r->exit != c->exit || !c->has_expectation) {
        char number[16];
        int len = snprintf(number, sizeof number, "%d", r->exit);
        lines_add(&code, number, (size_t)len);
        replace_in(&source, "exit", &code);
    }
    bool changed = strcmp(source, old) != 0;
    if (changed && !write_file(c->path, source)) {
        fprintf(stderr, "golden: cannot write %s\n", c->path);
        changed = false;
    }
    text_free(&why);
    lines_free(&code);
    lines_free(&err);
    lines_free(&out);
    free(source);
    free(old);
    return changed;
}
