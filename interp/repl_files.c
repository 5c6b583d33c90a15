/* repl_files.c - commands of the prompt that read and write files: :run,
 * :reload, :save, :history. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/module.h"
#include "interp/repl.h"
#include "runtime/base/mem.h"
#include "runtime/io/file.h"

/* ---- :run ---------------------------------------------------------------- */

enum { MOST_WORDS = 64 };

/* Cut `text` into words, in place. */
static int split_words(char *text, const char **words)
{
    int n = 0;

    while (*text != '\0' && n < MOST_WORDS) {
        text += strspn(text, " ");
        if (*text == '\0') {
            break;
        }
        words[n++] = text;
        text += strcspn(text, " ");
        if (*text != '\0') {
            *text++ = '\0';
        }
    }
    return n;
}

/* The file's top level in the session, then its @main with the flags. */
static tl_status run_file(tl_repl *r, const char **words, int n)
{
    tl_eval *ev = &r->s->ev;
    tl_bytes text = {0};

    TL_TRY(tl_file_read(words[0], TL_MOST_SOURCE, &text, &r->s->diag));
    size_t before = r->ns->nunits;

    r->s->eval_options.main_args = words + 1;
    r->s->eval_options.nmain_args = n - 1;
    tl_status st = tl_eval_text(ev, r->ns, words[0], text.data, text.size,
                                NULL, NULL);
    const tl_unit *unit =
        r->ns->nunits > before ? r->ns->units[before] : NULL;

    if (st == TL_OK && unit != NULL && unit->main != NULL) {
        st = tl_eval_main(ev, r->ns, unit->main->func);
    }
    r->s->eval_options.nmain_args = 0;
    tl_bytes_fini(&text);
    return st;
}

void tl_repl_run_file(tl_repl *r, const char *arg)
{
    const char *words[MOST_WORDS];
    tl_buf copy;

    tl_buf_init(&copy);
    tl_buf_puts(&copy, arg);
    tl_repl_undo_keep(r);
    int n = copy.failed ? 0 : split_words(copy.data, words);

    if (n > 0) {
        tl_repl_report(r, run_file(r, words, n));
        tl_repl_undo_commit(r);
    }
    tl_buf_fini(&copy);
}

/* ---- :reload ------------------------------------------------------------- */

/* Values that a file defines by its text, not by computing: replaced. */
static bool is_definition(tl_value v)
{
    switch (v.tag) {
    case TL_V_TENSOR:
    case TL_V_MODULE:
    case TL_V_CELL:
    case TL_V_TREE:
    case TL_V_SELECT:
        return false;
    default:
        return true;
    }
}

static bool same_object(tl_value a, tl_value b)
{
    return a.tag == b.tag && a.tag >= TL_V_STR && a.obj == b.obj;
}

/* Names of the session that had the old definition get the new one. */
static void replace_copies(tl_repl *r, tl_value old, tl_value fresh)
{
    for (size_t i = 0; i < r->ns->nslots; i++) {
        if (same_object(r->ns->slots[i], old)) {
            tl_unref(r->ns->slots[i]);
            r->ns->slots[i] = tl_ref(fresh);
        }
    }
}

/* Run the file of `ns` again in it.  What fails leaves it as it was. */
static tl_status reload(tl_repl *r, tl_namespace *ns)
{
    tl_bytes text = {0};
    size_t n = ns->nslots;
    tl_value *old = tl_calloc(n + 1, sizeof(*old));

    if (old == NULL) {
        return tl_fail_memory(&r->s->diag, "names", n * sizeof(*old));
    }
    for (size_t i = 0; i < n; i++) {
        old[i] = tl_ref(ns->slots[i]);
    }
    tl_status st = tl_file_read(ns->path->data, TL_MOST_SOURCE, &text,
                                &r->s->diag);

    if (st == TL_OK) {
        st = tl_eval_text(&r->s->ev, ns, ns->path->data, text.data, text.size,
                          NULL, NULL);
    }
    for (size_t i = 0; i < n; i++) {
        bool keep = st != TL_OK || (old[i].tag != TL_V_EMPTY &&
                                    !is_definition(old[i]));

        if (keep) {
            tl_unref(ns->slots[i]);
            ns->slots[i] = old[i];
        } else {
            replace_copies(r, old[i], ns->slots[i]);
            tl_unref(old[i]);
        }
    }
    tl_free(old);
    tl_bytes_fini(&text);
    return st;
}

void tl_repl_reload(tl_repl *r, const char *module)
{
    tl_status st = TL_OK;
    int n = 0;

    for (tl_namespace *ns = r->s->ev.all_ns; ns != NULL && st == TL_OK;
         ns = ns->next) {
        bool wanted = *module == '\0' || strcmp(ns->name->data, module) == 0;

        if (ns != r->ns && !ns->library && wanted &&
            access(ns->path->data, R_OK) == 0) {
            st = reload(r, ns);
            if (st == TL_OK) {
                printf("%s\n", ns->path->data);
                n++;
            }
        }
    }
    if (st == TL_OK && n == 0 && *module != '\0') {
        st = tl_fail(&r->s->diag, TL_E0720, "no file was imported as `%s`",
                     module);
    } else if (st == TL_OK && n == 0) {
        printf("nothing was imported from files\n");
    }
    tl_repl_report(r, st);
}

/* ---- :save, :history ----------------------------------------------------- */

/* "3-9", "3", "3-", "-9": *from and *to within 1 .. n. */
static bool parse_range(const char *s, size_t n, size_t *from, size_t *to)
{
    char *end;

    *from = 1;
    *to = n;
    if (*s == '\0') {
        return true;
    }
    if (*s != '-') {
        *from = *to = strtoul(s, &end, 10);
        if (end == s) {
            return false;
        }
        s = end;
    }
    if (*s == '-') {
        *to = n;
        if (s[1] != '\0') {
            *to = strtoul(s + 1, &end, 10);
            s = end - 1;
        }
        s++;
    }
    *to = *to < n ? *to : n;
    return *s == '\0' && *from >= 1 && *from <= *to;
}

static tl_status write_entries(tl_repl *r, const char *path, size_t from,
                               size_t to)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    size_t written = 0;

    if (fd < 0) {
        tl_status st = tl_fail(&r->s->diag, TL_E0707, "%s: %s", path,
                               strerror(errno));

        if (errno == EEXIST) {
            tl_diag_help(&r->s->diag, "files are not overwritten: "
                         "`;rm %s` first, or another name", path);
        }
        return st;
    }
    FILE *f = fdopen(fd, "w");

    if (f == NULL) {
        close(fd);
        return tl_fail_memory(&r->s->diag, "a file", 0);
    }
    for (size_t i = from; i <= to; i++) {
        if (!r->entries.items[i - 1].failed) {
            fprintf(f, "%s\n", r->entries.items[i - 1].text);
            written++;
        }
    }
    if (fclose(f) != 0) {
        return tl_fail(&r->s->diag, TL_E0707, "%s: %s", path,
                       strerror(errno));
    }
    printf("%zu entries in %s\n", written, path);
    return TL_OK;
}

void tl_repl_save(tl_repl *r, const char *arg)
{
    const char *words[MOST_WORDS];
    size_t from, to;
    tl_buf copy;
    tl_status st = TL_OK;

    tl_buf_init(&copy);
    tl_buf_puts(&copy, arg);
    int n = copy.failed ? 0 : split_words(copy.data, words);

    if (n > 2 || (n > 0 && !parse_range(n == 2 ? words[1] : "",
                                        r->entries.len, &from, &to))) {
        st = tl_fail(&r->s->diag, TL_E0720,
                     ":save FILE 3-9 takes numbers from 1 to %zu",
                     r->entries.len);
        tl_diag_help(&r->s->diag, "`:history` shows the numbers");
    } else if (n > 0) {
        st = write_entries(r, words[0], from, to);
    }
    tl_buf_fini(&copy);
    tl_repl_report(r, st);
}

void tl_repl_history(tl_repl *r, const char *arg)
{
    for (size_t i = 0; i < r->entries.len; i++) {
        const char *s = r->entries.items[i].text;

        if (*arg != '\0' && strstr(s, arg) == NULL) {
            continue;
        }
        for (int line = 0; *s != '\0'; line++) {
            size_t n = strcspn(s, "\n");

            if (line == 0) {
                printf("%4zu  %.*s\n", i + 1, (int)n, s);
            } else {
                printf("      %.*s\n", (int)n, s);
            }
            s += n + (s[n] == '\n');
        }
    }
}
