/* load_report.c - why a checkpoint does not fit, and what would make it fit.
 *
 * Missing cells are paired with unexpected tensors of the same type, those
 * with the longest common end of the name first; what differs in front of it
 * is proposed as `rename`. */
#include "interp/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/io/file.h"

#define MAX_LINES 20
#define MAX_RULES 3

/* One fault: a cell that misses its value, or has one of another type. */
typedef struct fault {
    const tl_match *match;
    const tl_file_key *pair; /* of a missing one, or NULL */
} fault;

typedef struct report {
    tl_eval *ev;
    fault *faults;
    size_t nfaults;
    const tl_file_key *keys;
    bool *paired; /* of keys */
    size_t nkeys;
    size_t lines, left; /* shown, left out */
} report;

/* ---- names and types --------------------------------------------------- */

/* Does the part of `s` from its last `n` bytes on begin a path component? */
static bool begins_part(const char *s, size_t len, size_t n)
{
    return n == len || s[len - n - 1] == '.';
}

/* Length of the common end that consists of whole parts of both names. */
static size_t common_end(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), n = 0;

    while (n < na && n < nb && a[na - n - 1] == b[nb - n - 1]) {
        n++;
    }
    while (n > 0 && !(begins_part(a, na, n) && begins_part(b, nb, n))) {
        n--;
    }
    return n;
}

static bool same_type(const tl_match *m, const tl_file_key *key)
{
    const tl_st_entry *e = key->entry;
    tl_ttype type;

    if (!tl_saved_type(m->saved, &type) || !e->loadable ||
        e->rank != type.shape.rank ||
        tl_dtype_is_float(e->dtype) != tl_dtype_is_float(type.dtype)) {
        return false;
    }
    for (int i = 0; i < e->rank; i++) {
        int64_t n = tl_dim_value(type.shape.dim[i]);

        if (n >= 0 && n != e->size[i]) {
            return false;
        }
    }
    return true;
}

static void put_name(tl_buf *out, const char *name)
{
    tl_buf_put_escaped(out, name, strlen(name));
}

static void put_entry_type(tl_buf *out, const tl_st_entry *e)
{
    tl_buf_puts(out, e->loadable ? tl_dtype_name(e->dtype) : e->type);
    tl_buf_putc(out, '[');
    for (int i = 0; i < e->rank; i++) {
        tl_buf_printf(out, "%s%lld", i ? ", " : "", (long long)e->size[i]);
    }
    tl_buf_putc(out, ']');
}

static void put_cell_type(tl_buf *out, const tl_saved *s)
{
    tl_ttype type;

    if (s->cell->hold >= TL_HOLD_INT) {
        tl_buf_puts(out, s->cell->hold == TL_HOLD_INT     ? "int"
                         : s->cell->hold == TL_HOLD_FLOAT ? "float"
                                                          : "bool");
        return;
    }
    if (!tl_saved_type(s, &type)) {
        return;
    }
    tl_buf_puts(out, tl_dtype_name(type.dtype));
    tl_buf_putc(out, '[');
    for (int i = 0; i < type.shape.rank; i++) {
        int64_t n = tl_dim_value(type.shape.dim[i]);

        tl_buf_puts(out, i ? ", " : "");
        if (n < 0) {
            tl_buf_putc(out, '_');
        } else {
            tl_buf_printf(out, "%lld", (long long)n);
        }
    }
    tl_buf_putc(out, ']');
}

/* ---- pairs ------------------------------------------------------------- */

static bool is_unexpected(const tl_file_key *key)
{
    return !key->used && !key->ignored;
}

static void pair_one(report *r, fault *f)
{
    size_t best = 0, at = r->nkeys;

    for (size_t k = 0; k < r->nkeys; k++) {
        size_t n;

        if (r->paired[k] || !is_unexpected(&r->keys[k]) ||
            !same_type(f->match, &r->keys[k])) {
            continue;
        }
        n = common_end(f->match->saved->name, r->keys[k].key) + 1;
        if (n > best) {
            best = n;
            at = k;
        }
    }
    if (at < r->nkeys) {
        r->paired[at] = true;
        f->pair = &r->keys[at];
    }
}

/* What rename would turn the pair's key into the cell's name.  Points into
 * the names. */
typedef struct rule {
    const char *from, *to;
    size_t nfrom, nto;
} rule;

static bool rule_of(const fault *f, rule *out)
{
    const char *name = f->match->saved->name, *key = f->pair->key;
    size_t end = common_end(name, key);
    size_t nfrom = strlen(key) - end, nto = strlen(name) - end;

    if (nto > 0 && nfrom > 0 && end > 0) { /* the dot belongs to neither */
        nfrom--;
        nto--;
    }
    *out = (rule){key, name, nfrom, nto};
    return nfrom > 0;
}

static bool same_rule(const rule *a, const rule *b)
{
    return a->nfrom == b->nfrom && a->nto == b->nto &&
           memcmp(a->from, b->from, a->nfrom) == 0 &&
           memcmp(a->to, b->to, a->nto) == 0;
}

static size_t collect_rules(const report *r, rule rules[MAX_RULES + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < r->nfaults && n <= MAX_RULES; i++) {
        rule found;
        bool known = false;

        if (!r->faults[i].pair || !rule_of(&r->faults[i], &found)) {
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            known |= same_rule(&rules[k], &found);
        }
        if (!known) {
            rules[n++] = found;
        }
    }
    return n;
}

/* ---- text -------------------------------------------------------------- */

static void note_fault(report *r, const fault *f)
{
    const tl_match *m = f->match;
    tl_buf line;

    tl_buf_init(&line);
    tl_buf_puts(&line, m->wrong_type ? "mismatch    " : "missing     ");
    put_name(&line, m->saved->name);
    tl_buf_puts(&line, "  ");
    put_cell_type(&line, m->saved);
    if (m->wrong_type) {
        tl_buf_puts(&line, " in the module, ");
        put_entry_type(&line, m->key->entry);
        tl_buf_puts(&line, " in the file");
    } else if (f->pair) {
        tl_buf_puts(&line, "     closest: ");
        put_name(&line, f->pair->key);
        tl_buf_puts(&line, " (same shape)");
    }
    tl_diag_note(r->ev->diag, "%s", tl_buf_str(&line));
    tl_buf_fini(&line);
    r->lines++;
}

static void note_unexpected(report *r, const tl_file_key *key)
{
    tl_buf line;

    tl_buf_init(&line);
    tl_buf_puts(&line, "unexpected  ");
    put_name(&line, key->key);
    tl_buf_puts(&line, "  ");
    put_entry_type(&line, key->entry);
    tl_diag_note(r->ev->diag, "%s", tl_buf_str(&line));
    tl_buf_fini(&line);
    r->lines++;
}

/* Are all faults missing cells that one rule explains? */
static bool one_rule(const report *r, size_t nrules)
{
    for (size_t i = 0; i < r->nfaults; i++) {
        if (r->faults[i].match->wrong_type || !r->faults[i].pair) {
            return false;
        }
    }
    return nrules == 1 && r->nfaults > 2;
}

static void note_all(report *r, size_t nrules)
{
    if (one_rule(r, nrules)) {
        note_fault(r, &r->faults[0]);
        tl_diag_note(r->ev->diag, "... %zu more, each paired the same way",
                     r->nfaults - 1);
    } else {
        for (size_t i = 0; i < r->nfaults; i++) {
            if (r->lines < MAX_LINES) {
                note_fault(r, &r->faults[i]);
            } else {
                r->left++;
            }
        }
    }
    for (size_t k = 0; k < r->nkeys; k++) {
        if (!is_unexpected(&r->keys[k]) || r->paired[k]) {
            continue;
        }
        if (r->lines < MAX_LINES) {
            note_unexpected(r, &r->keys[k]);
        } else {
            r->left++;
        }
    }
    if (r->left > 0) {
        tl_diag_note(r->ev->diag, "... %zu more", r->left);
    }
}

static void help_rename(report *r, const rule *rules, size_t n)
{
    tl_buf text;

    tl_buf_init(&text);
    for (size_t i = 0; i < n && i < MAX_RULES; i++) {
        tl_buf_puts(&text, i ? ", \"" : "\"");
        tl_buf_put_escaped(&text, rules[i].from, rules[i].nfrom);
        tl_buf_puts(&text, "\": \"");
        tl_buf_put_escaped(&text, rules[i].to, rules[i].nto);
        tl_buf_putc(&text, '"');
    }
    tl_diag_help(r->ev->diag, "rename={%s%s}", tl_buf_str(&text),
                 n > MAX_RULES ? ", ..." : "");
    tl_buf_fini(&text);
}

/* Would the transposed tensor fit? */
static bool is_transposed(const tl_match *m)
{
    const tl_st_entry *e = m->key->entry;
    tl_ttype type;

    return m->wrong_type && tl_saved_type(m->saved, &type) && e->rank == 2 &&
           type.shape.rank == 2 && e->size[0] != e->size[1] &&
           tl_dim_value(type.shape.dim[0]) == e->size[1] &&
           tl_dim_value(type.shape.dim[1]) == e->size[0];
}

static void help_others(report *r)
{
    for (size_t i = 0; i < r->nfaults; i++) {
        const tl_match *m = r->faults[i].match;

        if (m->wrong_type && is_transposed(m)) {
            tl_buf name;

            tl_buf_init(&name);
            put_name(&name, m->key->key);
            tl_diag_help(r->ev->diag, "transpose=[\"%s\"]",
                         tl_buf_str(&name));
            tl_buf_fini(&name);
            return;
        }
    }
    if (r->nfaults == 0) {
        tl_diag_help(r->ev->diag, "ignore=[...] leaves them out");
    }
}

static const char *root_name(tl_value root)
{
    return root.tag == TL_V_MODULE ? tl_class_name(root.module->cls)
                                   : "the cells";
}

static void headline(report *r, const char *path, tl_value root,
                     size_t loaded, size_t mismatched, size_t unexpected)
{
    char more[64] = "";

    if (mismatched > 0) {
        snprintf(more, sizeof(more), ", %zu of another shape or dtype",
                 mismatched);
    }
    tl_fail(r->ev->diag, TL_E0703,
            "checkpoint does not fit `%s`: %zu loaded, %zu missing, "
            "%zu unexpected%s",
            root_name(root), loaded - mismatched, r->nfaults - mismatched,
            unexpected, more);
    tl_diag_note(r->ev->diag, "file        %s", tl_path_str(path).s);
}

tl_status tl_load_misfit(tl_eval *ev, const char *path, tl_value root,
                         const tl_match *matches, size_t nmatches,
                         const tl_file_key *keys, size_t nkeys, size_t loaded)
{
    report r = {.ev = ev, .keys = keys, .nkeys = nkeys};
    size_t mismatched = 0, unexpected = 0, nrules;
    rule rules[MAX_RULES + 1];

    r.faults = tl_calloc(nmatches + 1, sizeof(*r.faults));
    r.paired = tl_calloc(nkeys + 1, sizeof(*r.paired));
    if (!r.faults || !r.paired) {
        tl_free(r.faults);
        tl_free(r.paired);
        return tl_fail_memory(ev->diag, "a report",
                              nmatches * sizeof(*r.faults));
    }
    for (size_t i = 0; i < nmatches; i++) {
        r.faults[r.nfaults++].match = &matches[i];
        if (matches[i].wrong_type) {
            mismatched++;
        } else {
            pair_one(&r, &r.faults[i]);
        }
    }
    for (size_t k = 0; k < nkeys; k++) {
        unexpected += is_unexpected(&keys[k]);
    }
    headline(&r, path, root, loaded, mismatched, unexpected);
    nrules = collect_rules(&r, rules);
    note_all(&r, nrules);
    if (nrules > 0) {
        help_rename(&r, rules, nrules);
    } else {
        help_others(&r);
    }
    tl_free(r.faults);
    tl_free(r.paired);
    return TL_ERR_FILE;
}
