/* dim_text.c - sizes as code, written as text and read back.
 *
 *   sum    = ["-"] term { ("+" | "-") term }
 *   term   = factor { ("*" | "//") factor }
 *   factor = number | "s" number | "(" sum ")"
 *
 * "- 2*s0" is the product of -2 and s0, "- s0" that of -1 and s0.  The writer
 * puts parentheses wherever the reader would build other code. */
#include "runtime/op/dim_code.h"

#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/base/vec.h"

/* ---- writing ------------------------------------------------------------ */

/* Code with, for each word that ends an expression, where that begins.  An
 * expression is named by the word that ends it. */
typedef struct writer {
    const int64_t *code;
    size_t *start;
    tl_buf *out;
} writer;

/* What the expression is; a leaf is two words, its kind and its number. */
static int64_t kind_of(const writer *w, size_t end)
{
    return w->code[end - w->start[end] == 1 ? end - 1 : end];
}

static size_t left_of(const writer *w, size_t end)
{
    return w->start[end - 1] - 1;
}

static void write_sum(writer *w, size_t end);

/* One operand of a product or quotient. */
static void write_factor(writer *w, size_t end)
{
    int64_t kind = kind_of(w, end), n = w->code[end];

    if (kind == TL_DC_ATOM || (kind == TL_DC_NUM && n >= 0)) {
        tl_buf_printf(w->out, "%s%lld", kind == TL_DC_ATOM ? "s" : "",
                      (long long)n);
        return;
    }
    tl_buf_putc(w->out, '(');
    write_sum(w, end);
    tl_buf_putc(w->out, ')');
}

/* A product without its first factor, which ends at `first`; *started says
 * whether something stands before. */
static void write_product(writer *w, size_t end, size_t first, bool *started)
{
    if (end == first) {
        return;
    }
    write_product(w, left_of(w, end), first, started);
    tl_buf_puts(w->out, *started ? "*" : "");
    write_factor(w, end - 1);
    *started = true;
}

/* The size of a negative number, which may be INT64_MIN. */
static unsigned long long magnitude(int64_t n)
{
    return n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n;
}

/* A term after the sign that its coefficient and its place give it. */
static void write_term(writer *w, size_t end, bool leading)
{
    size_t first = end;
    bool started = true, negative;

    while (kind_of(w, first) == TL_DC_MUL) {
        first = left_of(w, first);
    }
    negative = kind_of(w, first) == TL_DC_NUM && w->code[first] < 0;
    tl_buf_puts(w->out, negative ? (leading ? "-" : " - ")
                                 : (leading ? "" : " + "));
    if (negative) { // -1 is not written, unless a number follows or nothing
        started = w->code[first] != -1 || first == end ||
                  w->code[first + 1] == TL_DC_NUM;
        if (started) {
            tl_buf_printf(w->out, "%llu", magnitude(w->code[first]));
        }
    } else if (kind_of(w, first) == TL_DC_FLOORDIV && first == end) {
        write_factor(w, left_of(w, first));
        tl_buf_puts(w->out, "//");
        write_factor(w, first - 1);
    } else {
        write_factor(w, first);
    }
    write_product(w, end, first, &started);
}

static void write_sum(writer *w, size_t end)
{
    if (kind_of(w, end) == TL_DC_ADD) {
        write_sum(w, left_of(w, end));
        write_term(w, end - 1, false);
    } else {
        write_term(w, end, true);
    }
}

void tl_dim_code_print(const int64_t *code, size_t len, tl_buf *out)
{
    writer w = {code, tl_calloc(len, sizeof(*w.start)), out};

    if (!w.start) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        if (code[i] == TL_DC_NUM || code[i] == TL_DC_ATOM) {
            i++;
            w.start[i] = i - 1;
        } else { // the right operand ends before it, the left one before that
            w.start[i] = w.start[left_of(&w, i)];
        }
    }
    write_sum(&w, len - 1);
    tl_free(w.start);
}

/* ---- reading ------------------------------------------------------------ */

typedef struct reader {
    const char *at, *end;
    tl_dim_words *words;
    tl_diag *diag;
    int depth; /* of parentheses */
} reader;

static void skip_blanks(reader *r)
{
    while (r->at < r->end && *r->at == ' ') {
        r->at++;
    }
}

/* Is `word` next?  Then step over it. */
static bool accept(reader *r, const char *word)
{
    const char *p = r->at;

    while (*word && p < r->end && *p == *word) {
        p++;
        word++;
    }
    if (*word) {
        return false;
    }
    r->at = p;
    return true;
}

static bool put(reader *r, int64_t word)
{
    return TL_VEC_PUSH(r->words, word, r->diag) == TL_OK;
}

/* Digits as a number, which `negative` negates. */
static bool read_number(reader *r, bool negative, int64_t *out)
{
    const char *start = r->at;
    int64_t n = 0;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        int64_t digit = *r->at++ - '0';

        if (!tl_mul_i64(&n, n, 10) ||
            !tl_add_i64(&n, n, negative ? -digit : digit)) {
            return false;
        }
    }
    *out = n;
    return r->at > start;
}

static bool read_sum(reader *r);

static bool read_leaf(reader *r, int64_t kind, bool negative)
{
    int64_t n;

    return read_number(r, negative, &n) && put(r, kind) && put(r, n);
}

static bool read_factor(reader *r)
{
    skip_blanks(r);
    if (accept(r, "s")) {
        return read_leaf(r, TL_DC_ATOM, false);
    }
    if (!accept(r, "(")) {
        return read_leaf(r, TL_DC_NUM, false);
    }
    if (++r->depth > TL_DC_MAX_DEPTH || !read_sum(r)) {
        return false;
    }
    r->depth--;
    skip_blanks(r);
    return accept(r, ")");
}

/* The first factor of a term, with its sign. */
static bool read_first(reader *r, bool negative)
{
    skip_blanks(r);
    if (!negative) {
        return read_factor(r);
    }
    if (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        return read_leaf(r, TL_DC_NUM, true);
    }
    return put(r, TL_DC_NUM) && put(r, -1) && read_factor(r) &&
           put(r, TL_DC_MUL);
}

static bool read_term(reader *r, bool negative)
{
    bool ok = read_first(r, negative);

    while (ok) {
        skip_blanks(r);
        if (accept(r, "*")) {
            ok = read_factor(r) && put(r, TL_DC_MUL);
        } else if (accept(r, "//")) {
            ok = read_factor(r) && put(r, TL_DC_FLOORDIV);
        } else {
            return true;
        }
    }
    return false;
}

static bool read_sum(reader *r)
{
    bool ok, minus;

    skip_blanks(r);
    ok = read_term(r, accept(r, "-"));
    while (ok) {
        skip_blanks(r);
        minus = accept(r, "-");
        if (!minus && !accept(r, "+")) {
            return true;
        }
        ok = read_term(r, minus) && put(r, TL_DC_ADD);
    }
    return false;
}

bool tl_dim_code_parse(const char **text, const char *end, tl_dim_words *out,
                       tl_diag *diag)
{
    reader r = {*text, end, out, diag, 0};
    bool ok = read_sum(&r);

    *text = r.at;
    return ok;
}
