/* signature.c - parsing the parameter lists of built-in functions.
 *
 * The texts are ours: a mistake in one is a bug, found by the test that
 * parses all rows. */
#include "interp/signature.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "interp/builtin.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"

typedef struct reader {
    tl_eval *ev;
    const char *at, *end;
} reader;

/* ---- types ------------------------------------------------------------- */

#define BIT(tag) (1u << TL_V_##tag)

enum {
    TO_FLOAT = 1,
    TO_TENSOR = 2,
    INTS = 4
};

static const struct type_name {
    const char *name;
    uint32_t accepts;
    unsigned convert;
} type_names[] = {
    {"any", ~0u, 0},
    {"none", BIT(NONE), 0},
    {"bool", BIT(BOOL), 0},
    {"int", BIT(INT), 0},
    {"float", BIT(FLOAT), TO_FLOAT},
    {"number", BIT(INT) | BIT(FLOAT), 0},
    {"ints", BIT(INT) | BIT(LIST) | BIT(TUPLE), INTS},
    {"str", BIT(STR), 0},
    {"dtype", BIT(DTYPE), 0},
    {"range", BIT(RANGE), 0},
    {"list", BIT(LIST) | BIT(TUPLE), 0},
    {"tuple", BIT(TUPLE), 0},
    {"dict", BIT(DICT), 0},
    {"tensor", BIT(TENSOR) | BIT(NODE), TO_TENSOR},
    {"fn",
     BIT(FN) | BIT(METHOD) | BIT(BUILTIN) | BIT(CLASS) | BIT(MODULE) |
         BIT(DTYPE),
     0},
    {"module", BIT(MODULE), 0},
    {"cells",
     BIT(MODULE) | BIT(CELL) | BIT(SELECT) | BIT(LIST) | BIT(TUPLE) |
         BIT(DICT),
     0},
    {"tree", BIT(TREE), 0},
    {"cell", BIT(CELL), 0},
    {"record", BIT(RECORD), 0},
    {"error", BIT(ERROR), 0},
};

static const struct type_name *find_type(const char *s, size_t len)
{
    for (size_t i = 0; i < sizeof(type_names) / sizeof(*type_names); i++) {
        if (strlen(type_names[i].name) == len &&
            memcmp(type_names[i].name, s, len) == 0) {
            return &type_names[i];
        }
    }
    return NULL;
}

/* ---- characters -------------------------------------------------------- */

static void skip_spaces(reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at)) {
        r->at++;
    }
}

static bool accept(reader *r, char c)
{
    skip_spaces(r);
    if (r->at < r->end && *r->at == c) {
        r->at++;
        return true;
    }
    return false;
}

static size_t word_len(const reader *r)
{
    const char *p = r->at;

    while (p < r->end && (isalnum((unsigned char)*p) || *p == '_')) {
        p++;
    }
    return (size_t)(p - r->at);
}

static bool at_word(const reader *r, const char *word)
{
    size_t n = word_len(r);

    return strlen(word) == n && memcmp(r->at, word, n) == 0;
}

/* ---- defaults ---------------------------------------------------------- */

static tl_status read_string(reader *r, tl_value *out)
{
    tl_status st;
    tl_buf text;

    tl_buf_init(&text);
    for (; r->at < r->end && *r->at != '"'; r->at++) {
        char c = *r->at;

        if (c == '\\') {
            r->at++;
            c = *r->at == 'n' ? '\n' : *r->at == 't' ? '\t' : *r->at;
        }
        tl_buf_putc(&text, c);
    }
    TL_CHECK(accept(r, '"'));
    st = tl_str_from_buf(out, &text, r->ev->diag);
    tl_buf_fini(&text);
    return st;
}

static void read_number(reader *r, tl_value *out)
{
    char text[64];
    size_t n = 0;
    char *end;

    while (r->at < r->end && n < sizeof(text) - 1 &&
           (isalnum((unsigned char)*r->at) || strchr("+-._", *r->at))) {
        text[n++] = *r->at++;
    }
    text[n] = '\0';
    if (strpbrk(text, ".eE") != NULL) {
        *out = tl_float_value(strtod(text, &end));
    } else {
        *out = tl_int_value(strtoll(text, &end, 10));
    }
    TL_CHECK(n > 0 && *end == '\0');
}

/* A name: literal, dtype, or what a built-in name means. */
static tl_status read_name(reader *r, tl_value *out)
{
    size_t n = word_len(r);
    const char *s = r->at;
    const tl_sym *sym;
    const tl_builtin *row;
    tl_dtype dtype;

    TL_CHECK(n > 0);
    if (at_word(r, "none")) {
        *out = tl_none();
    } else if (at_word(r, "true") || at_word(r, "false")) {
        *out = tl_bool_value(*s == 't');
    } else if (at_word(r, "inf")) {
        *out = tl_float_value(__builtin_inf());
    } else if (at_word(r, "nan")) {
        *out = tl_float_value(__builtin_nan(""));
    } else if (at_word(r, "pi")) {
        *out = tl_float_value(3.14159265358979323846);
    } else if (tl_dtype_find(s, n, &dtype)) {
        *out = tl_dtype_value(dtype);
    } else {
        sym = tl_intern_find(r->ev->lang->names, s, n);
        row = sym == NULL ? NULL : tl_builtin_find(r->ev, sym);
        TL_CHECK(row != NULL);
        TL_TRY(tl_builtin_value(r->ev, row, out));
    }
    r->at += n;
    return TL_OK;
}

static tl_status read_literal(reader *r, tl_value *out)
{
    skip_spaces(r);
    if (accept(r, '"')) {
        return read_string(r, out);
    }
    if (accept(r, '(')) {
        TL_CHECK(accept(r, ')'));
        return tl_seq_alloc(out, TL_V_TUPLE, 0, r->ev->diag);
    }
    if (accept(r, '[')) {
        TL_CHECK(accept(r, ']'));
        return tl_seq_alloc(out, TL_V_LIST, 0, r->ev->diag);
    }
    if (r->at < r->end && strchr("+-.0123456789", *r->at) != NULL) {
        read_number(r, out);
        return TL_OK;
    }
    return read_name(r, out);
}

tl_status tl_signature_literal(tl_eval *ev, const char *text, size_t len,
                               tl_value *out)
{
    reader r = {.ev = ev, .at = text, .end = text + len};

    return read_literal(&r, out);
}

/* ---- parameters -------------------------------------------------------- */

static void read_type(reader *r, tl_param *p)
{
    const struct type_name *type;

    skip_spaces(r);
    p->type = r->at;
    p->accepts = 0;
    do {
        skip_spaces(r);
        type = find_type(r->at, word_len(r));
        TL_CHECK(type != NULL);
        r->at += word_len(r);
        p->accepts |= type->accepts;
        p->to_float |= (type->convert & TO_FLOAT) != 0;
        p->to_tensor |= (type->convert & TO_TENSOR) != 0;
        p->ints |= (type->convert & INTS) != 0;
        p->type_len = (size_t)(r->at - p->type);
    } while (accept(r, '|'));
    if (accept(r, '?')) {
        p->accepts |= BIT(NONE);
        p->type_len++;
    }
    p->accepts |= BIT(UNKNOWN);
}

static tl_status read_param(reader *r, tl_param *p)
{
    size_t n;

    skip_spaces(r);
    n = word_len(r);
    TL_CHECK(n > 0);
    p->name = tl_intern_get(r->ev->lang->names, r->at, n);
    if (p->name == NULL) {
        return tl_fail_memory(r->ev->diag, "name", n);
    }
    r->at += n;
    p->accepts = ~0u;
    p->required = true;
    p->fallback = tl_empty();
    if (accept(r, ':')) {
        read_type(r, p);
    }
    if (accept(r, '=')) {
        p->required = false;
        return read_literal(r, &p->fallback);
    }
    return TL_OK;
}

static tl_status read_params(reader *r, tl_signature *sig)
{
    bool keyword_only = false;

    skip_spaces(r);
    while (r->at < r->end) {
        bool star = accept(r, '*'), kwstar = star && accept(r, '*');

        skip_spaces(r);
        if (!star || word_len(r) > 0) {
            TL_CHECK(sig->nparams < TL_MAX_PARAMS);
            if (kwstar) {
                sig->kwstar = (int)sig->nparams;
            } else if (star) {
                sig->star = (int)sig->nparams;
            }
            sig->nparams++;
            TL_TRY(read_param(r, &sig->params[sig->nparams - 1]));
        }
        keyword_only |= star;
        sig->npos += !keyword_only;
        TL_CHECK(accept(r, ',') || r->at == r->end);
        skip_spaces(r);
    }
    return TL_OK;
}

tl_status tl_signature_parse(tl_signature **out, tl_eval *ev,
                             const char *text)
{
    reader r = {.ev = ev, .at = text, .end = text + strlen(text)};
    size_t bytes = sizeof(tl_signature) + TL_MAX_PARAMS * sizeof(tl_param);
    tl_signature *sig = tl_calloc(1, bytes), *fit;
    tl_status st;

    if (sig == NULL) {
        return tl_fail_memory(ev->diag, "signature", bytes);
    }
    sig->text = text;
    sig->star = sig->kwstar = -1;
    st = read_params(&r, sig);
    if (st != TL_OK) {
        tl_signature_free(sig);
        return st;
    }
    bytes = sizeof(tl_signature) + sig->nparams * sizeof(tl_param);
    fit = tl_realloc(sig, bytes);
    *out = fit != NULL ? fit : sig;
    return TL_OK;
}

void tl_signature_free(tl_signature *sig)
{
    if (sig == NULL) {
        return;
    }
    for (size_t i = 0; i < sig->nparams; i++) {
        tl_unref(sig->params[i].fallback);
    }
    tl_free(sig);
}
