/* csv.c - tables of numbers in text files.
 *
 * The text is walked twice: to count the rows, then to fill the tensor. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/io/file.h"

/* ---- numbers ------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* nan, inf, infinity after an optional sign, as C writes them. */
static bool parse_word(const char *s, size_t len, double *out)
{
    double sign = 1;

    if (len > 0 && (*s == '-' || *s == '+')) {
        sign = *s == '-' ? -1 : 1;
        s++;
        len--;
    }
    if (len == 3 && strncasecmp(s, "nan", 3) == 0) {
        *out = (double)NAN;
        return true;
    }
    if ((len == 3 && strncasecmp(s, "inf", 3) == 0) ||
        (len == 8 && strncasecmp(s, "infinity", 8) == 0)) {
        *out = sign * HUGE_VAL;
        return true;
    }
    return false;
}

/* Length of [sign] digits [. digits] [e [sign] digits], with a digit before
 * the exponent; 0 if there is none. */
static size_t decimal_length(const char *s, size_t len)
{
    size_t i = 0, digits = 0;

    i += i < len && (s[i] == '-' || s[i] == '+');
    for (; i < len && is_digit(s[i]); i++) {
        digits++;
    }
    if (i < len && s[i] == '.') {
        for (i++; i < len && is_digit(s[i]); i++) {
            digits++;
        }
    }
    if (digits == 0) {
        return 0;
    }
    if (i < len && (s[i] | 32) == 'e') {
        size_t start = ++i;

        i += i < len && (s[i] == '-' || s[i] == '+');
        start = i;
        while (i < len && is_digit(s[i])) {
            i++;
        }
        return i > start ? i : 0;
    }
    return i;
}

/* A whole number of at most 15 digits is exact without strtod. */
static bool parse_short(const char *s, size_t len, double *out)
{
    bool minus = *s == '-';
    int64_t v = 0;

    if (len > 15) {
        return false;
    }
    for (size_t i = minus; i < len; i++) {
        if (!is_digit(s[i])) {
            return false;
        }
        v = v * 10 + (s[i] - '0');
    }
    *out = minus ? -(double)v : (double)v;
    return true;
}

bool tl_parse_number(const char *s, size_t len, double *out)
{
    while (len > 0 && is_blank(*s)) {
        s++;
        len--;
    }
    while (len > 0 && is_blank(s[len - 1])) {
        len--;
    }
    if (len == 0) {
        return false;
    }
    if (decimal_length(s, len) != len) {
        return parse_word(s, len, out);
    }
    if (!parse_short(s, len, out)) {
        *out = strtod(s, NULL);
    }
    return true;
}

/* ---- cells -------------------------------------------------------------- */

typedef struct reader {
    const char *path;
    const char *at, *end;
    int64_t line; /* from 1 */
    char delimiter;
    tl_diag *diag;
} reader;

/* A cell; `s` stands in the text, quotes removed but doubled ones kept. */
typedef struct cell {
    const char *s;
    size_t len;
    bool quoted;
    bool last; /* of its line */
} cell;

static tl_status fault(const reader *r, int64_t column, const char *what)
{
    return tl_fail(r->diag, TL_E0712, "`%s`, line %lld, column %lld: %s",
                   tl_path_str(r->path).s, (long long)r->line,
                   (long long)column, what);
}

/* Consume a line end, if one is here. */
static bool line_end(reader *r)
{
    if (r->at < r->end && *r->at == '\r' && r->at + 1 < r->end &&
        r->at[1] == '\n') {
        r->at++;
    }
    if (r->at < r->end && *r->at == '\n') {
        r->at++;
        r->line++;
        return true;
    }
    return r->at == r->end;
}

/* Pass over blank lines and comments; false at the end of the text. */
static bool next_line(reader *r)
{
    while (r->at < r->end) {
        const char *start = r->at;

        if (*r->at == '#') {
            const char *eol = memchr(r->at, '\n', (size_t)(r->end - r->at));

            r->at = eol ? eol : r->end;
        }
        if (!line_end(r)) {
            r->at = start;
            return true;
        }
    }
    return false;
}

static tl_status quoted_cell(reader *r, int64_t column, cell *out)
{
    const char *start = ++r->at;

    while (r->at < r->end) {
        if (*r->at != '"') {
            r->line += *r->at == '\n';
            r->at++;
        } else if (r->at + 1 < r->end && r->at[1] == '"') {
            r->at += 2;
        } else {
            *out = (cell){.s = start, .len = (size_t)(r->at - start),
                          .quoted = true};
            r->at++;
            return TL_OK;
        }
    }
    return fault(r, column, "a quoted cell is not closed");
}

/* The next cell of the line, and what ends it. */
static tl_status next_cell(reader *r, int64_t column, cell *out)
{
    if (r->at < r->end && *r->at == '"') {
        TL_TRY(quoted_cell(r, column, out));
    } else {
        const char *start = r->at;

        while (r->at < r->end && *r->at != r->delimiter && *r->at != '\n' &&
               !(*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')) {
            r->at++;
        }
        *out = (cell){.s = start, .len = (size_t)(r->at - start)};
    }
    if (r->at < r->end && *r->at == r->delimiter) {
        r->at++;
        return TL_OK;
    }
    if (r->at < r->end && *r->at != '\n' && *r->at != '\r') {
        return fault(r, column, "text behind the closing quote");
    }
    out->last = true;
    return TL_OK;
}

/* The delimiter that the first line has, in order of preference. */
static char sniff(reader r)
{
    const char *eol;

    if (!next_line(&r)) {
        return ',';
    }
    eol = memchr(r.at, '\n', (size_t)(r.end - r.at));
    eol = eol ? eol : r.end;
    for (const char *d = ",;\t"; *d; d++) {
        if (memchr(r.at, *d, (size_t)(eol - r.at))) {
            return *d;
        }
    }
    return ',';
}

/* ---- the table ---------------------------------------------------------- */

/* Cells of the first line, and whether none of them is a number. */
static tl_status first_line(reader r, int64_t *columns, bool *header)
{
    cell c = {.last = false};
    double v;

    *columns = 0;
    *header = true;
    if (!next_line(&r)) {
        return tl_fail(r.diag, TL_E0712, "`%s` has no rows",
                       tl_path_str(r.path).s);
    }
    while (!c.last) {
        TL_TRY(next_cell(&r, *columns + 1, &c));
        *columns += 1;
        *header = *header && !tl_parse_number(c.s, c.len, &v);
    }
    return TL_OK;
}

/* Copy of a cell's text, doubled quotes halved. */
static const char *cell_text(tl_arena *arena, const cell *c)
{
    char *text = tl_arena_strndup(arena, c->s, c->len);
    char *to = text;

    for (const char *p = text; p && *p; p++) {
        *to++ = *p;
        if (c->quoted && *p == '"' && p[1] == '"') {
            p++;
        }
    }
    if (text) {
        *to = '\0';
    }
    return text;
}

static tl_status read_header(reader *r, tl_csv *out)
{
    cell c = {.last = false};

    out->names =
        tl_arena_array(&out->arena, (size_t)out->columns, sizeof(char *));
    if (!out->names) {
        return tl_fail_memory(r->diag, "names of columns",
                              (size_t)out->columns * sizeof(char *));
    }
    (void)next_line(r);
    for (int64_t i = 0; i < out->columns; i++) {
        TL_TRY(next_cell(r, i + 1, &c));
        out->names[i] = cell_text(&out->arena, &c);
        if (!out->names[i]) {
            return tl_fail_memory(r->diag, "names of columns", c.len);
        }
    }
    (void)line_end(r);
    return TL_OK;
}

/* A line holds text that no number has; at most 40 bytes of it are shown. */
static tl_status not_a_number(const reader *r, int64_t column, const cell *c)
{
    char text[41];
    size_t n = c->len < 40 ? c->len : 40;

    if (c->len == 0) {
        return fault(r, column, "the cell is empty");
    }
    memcpy(text, c->s, n);
    text[n] = '\0';
    return tl_fail(r->diag, TL_E0712,
                   "`%s`, line %lld, column %lld: `%s` is not a number",
                   tl_path_str(r->path).s, (long long)r->line,
                   (long long)column, tl_path_str(text).s);
}

/* One row; to == NULL only counts its cells. */
static tl_status read_row(reader *r, int64_t columns, tl_tensor *to,
                          int64_t first)
{
    cell c = {.last = false};
    int64_t n = 0;

    for (; !c.last; n++) {
        double v;

        TL_TRY(next_cell(r, n + 1, &c));
        if (n >= columns) {
            continue;
        }
        if (!tl_parse_number(c.s, c.len, &v)) {
            return not_a_number(r, n + 1, &c);
        }
        if (to) {
            tl_tensor_set_f(to, first + n, v);
        }
    }
    if (n != columns) {
        return tl_fail(r->diag, TL_E0712,
                       "`%s`, line %lld: %lld cells, but the first line has "
                       "%lld",
                       tl_path_str(r->path).s, (long long)r->line,
                       (long long)n, (long long)columns);
    }
    (void)line_end(r);
    return TL_OK;
}

static tl_status read_table(reader *r, tl_csv *out,
                            const tl_csv_options *options, tl_pool *pool)
{
    int64_t size[2] = {0, 0};
    bool header;
    reader count;

    TL_TRY(first_line(*r, &out->columns, &header));
    if (header) {
        TL_TRY(read_header(r, out));
    }
    for (count = *r; next_line(&count); size[0]++) {
        TL_TRY(read_row(&count, out->columns, NULL, 0));
    }
    size[1] = out->columns;
    TL_TRY(tl_tensor_new(&out->values, pool, options->dtype, 2, size,
                         r->diag));
    for (int64_t i = 0; next_line(r); i++) {
        TL_TRY(read_row(r, out->columns, out->values, i * out->columns));
    }
    return TL_OK;
}

tl_status tl_csv_read(tl_csv *out, const char *path,
                      const tl_csv_options *options, tl_pool *pool,
                      tl_diag *diag)
{
    tl_bytes text;
    reader r;
    tl_status st;

    TL_TRY(tl_file_read(path, 0, &text, diag));
    r = (reader){.path = path, .at = text.data,
                 .end = text.data + text.size, .line = 1, .diag = diag};
    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) {
        r.at += 3;
    }
    r.delimiter = options->delimiter ? options->delimiter : sniff(r);
    *out = (tl_csv){.values = NULL};
    tl_arena_init(&out->arena);
    st = read_table(&r, out, options, pool);
    tl_bytes_fini(&text);
    if (st != TL_OK) {
        tl_csv_fini(out);
    }
    return st;
}

void tl_csv_fini(tl_csv *csv)
{
    tl_tensor_unref(csv->values);
    tl_arena_fini(&csv->arena);
    *csv = (tl_csv){.values = NULL};
    tl_arena_init(&csv->arena);
}
