/* graph_parse.c - reading the text of graph_print.c.
 *
 * Line by line, each appended through the functions that make graphs; at the
 * end tl_graph_check judges the whole.  Anything else is refused with its
 * line: texts come from tests and from files. */
#include <stdlib.h>
#include <string.h>

#include "compiler/graph_impl.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/op/dim_code.h"

enum {
    MAX_NESTING = 60,
    MAX_ITEMS = 255 /* operands, parameters and results of one line */
};

/* Regions that are closed and wait for their node, at one depth. */
typedef struct level {
    uint32_t region; /* that the lines belong to */
    uint32_t first, count;
} level;

typedef struct parser {
    tl_graph *g;
    const char *at, *line_end, *end;
    uint32_t line;
    level levels[MAX_NESTING];
    int depth;
    TL_GARRAY(uint32_t) lines; /* by node */
    TL_GARRAY(tl_gval) vals;   /* of the line */
    TL_GARRAY(tl_gvalue) types;
    TL_GARRAY(uint32_t) list;
    TL_GARRAY(tl_gbind) binds;
    tl_dim_words words;
    tl_diag *diag;
} parser;

static tl_status bad(const parser *p, const char *wanted)
{
    return tl_fail(p->diag, TL_E0699, "graph text, line %u: expected %s",
                   p->line, wanted);
}

/* ---- words -------------------------------------------------------------- */

static void skip_blanks(parser *p)
{
    while (p->at < p->line_end && *p->at == ' ') {
        p->at++;
    }
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

/* Is this text next?  Then step over it.  Words end where words end. */
static bool accept(parser *p, const char *text)
{
    size_t n = strlen(text);

    skip_blanks(p);
    if ((size_t)(p->line_end - p->at) < n || memcmp(p->at, text, n) != 0 ||
        (is_word_char(text[n - 1]) && p->at + n < p->line_end &&
         is_word_char(p->at[n]))) {
        return false;
    }
    p->at += n;
    return true;
}

static tl_status expect(parser *p, const char *text)
{
    return accept(p, text) ? TL_OK : bad(p, text);
}

static bool at_end(parser *p)
{
    skip_blanks(p);
    return p->at == p->line_end;
}

/* The next word, empty if there is none. */
static size_t word(parser *p, const char **start)
{
    skip_blanks(p);
    *start = p->at;
    while (p->at < p->line_end && is_word_char(*p->at)) {
        p->at++;
    }
    return (size_t)(p->at - *start);
}

/* A decimal number with or without a minus. */
static tl_status integer(parser *p, int64_t low, int64_t high, int64_t *out)
{
    char text[24], *stop;
    size_t n = 0;

    skip_blanks(p);
    while (p->at < p->line_end && n < sizeof(text) - 1 &&
           ((*p->at >= '0' && *p->at <= '9') || (n == 0 && *p->at == '-'))) {
        text[n++] = *p->at++;
    }
    text[n] = 0;
    *out = strtoll(text, &stop, 10);
    return n > 0 && *stop == 0 && stop != text && *out >= low && *out <= high
               ? TL_OK
               : bad(p, "a whole number in range");
}

static tl_status number(parser *p, uint32_t high, uint32_t *out)
{
    int64_t n = 0;

    TL_TRY(integer(p, 0, high, &n));
    *out = (uint32_t)n;
    return TL_OK;
}

static tl_status real(parser *p, double *out)
{
    char text[40], *stop;
    size_t n = 0;
    uint64_t bits;

    skip_blanks(p);
    while (p->at < p->line_end && n < sizeof(text) - 1 &&
           (is_word_char(*p->at) || *p->at == '+' || *p->at == '-' ||
            *p->at == '.')) {
        text[n++] = *p->at++;
    }
    text[n] = 0;
    if (strncmp(text, "0x", 2) == 0) {
        bits = strtoull(text, &stop, 16);
        memcpy(out, &bits, sizeof(bits));
    } else {
        *out = strtod(text, &stop);
    }
    return n > 0 && *stop == 0 ? TL_OK : bad(p, "a number");
}

static tl_status scalar(parser *p, tl_gclass cls, tl_gscalar *out)
{
    out->bits = 0;
    if (cls == TL_GC_FLOAT) {
        return real(p, &out->f);
    }
    return cls == TL_GC_BOOL ? integer(p, 0, 1, &out->i)
                             : integer(p, INT64_MIN, INT64_MAX, &out->i);
}

/* "%3", or "_" for none. */
static tl_status value(parser *p, uint32_t high, tl_gval *out)
{
    if (accept(p, "_")) {
        *out = 0;
        return TL_OK;
    }
    TL_TRY(expect(p, "%"));
    TL_TRY(number(p, high, out));
    return *out == 0 ? bad(p, "a value's number") : TL_OK;
}

/* Values up to the end of the line or another word, into p->vals. */
static tl_status values(parser *p)
{
    p->vals.len = 0;
    for (;;) {
        tl_gval v;

        skip_blanks(p);
        if (p->at == p->line_end || (*p->at != '%' && *p->at != '_')) {
            return TL_OK;
        }
        if (p->vals.len > UINT16_MAX) {
            return bad(p, "fewer values");
        }
        TL_TRY(value(p, (uint32_t)p->g->values.len - 1, &v));
        TL_TRY(TL_VEC_PUSH(&p->vals, v, p->diag));
    }
}

/* ---- sizes and types ---------------------------------------------------- */

static tl_status size(parser *p, uint32_t *out)
{
    size_t errors = p->diag ? p->diag->nerrors : 0;

    p->words.len = 0;
    if (!tl_dim_code_parse(&p->at, p->line_end, &p->words, p->diag) ||
        !tl_dim_code_valid(p->words.items, p->words.len, p->g->atoms.len)) {
        return p->diag && p->diag->nerrors > errors ? TL_ERR_MEMORY
                                                    : bad(p, "a size");
    }
    return tl_graph_size(p->g, p->words.items, p->words.len, out, p->diag);
}

/* "[2, s0]", whose sizes are put into p->list. */
static tl_status sizes(parser *p)
{
    p->list.len = 0;
    TL_TRY(expect(p, "["));
    if (accept(p, "]")) {
        return TL_OK;
    }
    for (;;) {
        uint32_t s = 0;

        TL_TRY(size(p, &s));
        TL_TRY(TL_VEC_PUSH(&p->list, s, p->diag));
        if (accept(p, "]")) {
            return TL_OK;
        }
        TL_TRY(p->list.len < 3 * TL_MAX_RANK ? expect(p, ",")
                                             : bad(p, "fewer sizes"));
    }
}

static bool find_dtype(const char *name, size_t len, uint8_t *out)
{
    tl_dtype dtype;

    if (!tl_dtype_find(name, len, &dtype)) {
        return false;
    }
    *out = (uint8_t)dtype;
    return true;
}

static tl_status type(parser *p, tl_gvalue *out)
{
    static const char *const names[] = {"", "int", "float", "bool"};
    const char *name;
    size_t len = word(p, &name);

    *out = (tl_gvalue){.cls = TL_GC_TENSOR};
    if (p->at == p->line_end || *p->at != '[') {
        for (int c = TL_GC_INT; c <= TL_GC_BOOL; c++) {
            if (len == strlen(names[c]) && memcmp(name, names[c], len) == 0) {
                out->cls = (uint8_t)c;
                return TL_OK;
            }
        }
        return bad(p, "a type");
    }
    if (!find_dtype(name, len, &out->dtype)) {
        return bad(p, "a type");
    }
    TL_TRY(sizes(p));
    if (p->list.len > TL_MAX_RANK) {
        return bad(p, "fewer sizes");
    }
    out->rank = (uint8_t)p->list.len;
    return tl_graph_shape(p->g, p->list.items, out->rank, &out->shape,
                          p->diag);
}

/* "%3: int, %4: f32[2]" with the numbers that the next values get, into
 * p->types. */
static tl_status typed_values(parser *p)
{
    p->types.len = 0;
    do {
        uint32_t next = (uint32_t)(p->g->values.len + p->types.len), v;
        tl_gvalue t;

        TL_TRY(value(p, UINT32_MAX, &v));
        if (v != next || p->types.len == MAX_ITEMS) {
            return bad(p, "the next value's number");
        }
        TL_TRY(expect(p, ":"));
        TL_TRY(type(p, &t));
        TL_TRY(TL_VEC_PUSH(&p->types, t, p->diag));
    } while (accept(p, ","));
    return TL_OK;
}

/* ---- attributes --------------------------------------------------------- */

/* "i0=-1", "f2=0.5", or with a value "i0=%3": after the letter. */
static tl_status field(parser *p, char letter, tl_gattrs *at)
{
    tl_gbind b = {.field = (uint8_t)letter};

    b.index = (uint8_t)(p->at[1] - '0');
    if (b.index >= (letter == 'i' ? 4 : 6)) {
        return bad(p, "a field of attributes");
    }
    p->at += 3;
    if (p->at < p->line_end && *p->at == '%') {
        TL_TRY(value(p, (uint32_t)p->g->values.len - 1, &b.value));
        at->nbinds++;
        return TL_VEC_PUSH(&p->binds, b, p->diag);
    }
    return letter == 'i'
               ? integer(p, INT64_MIN, INT64_MAX, &at->i[b.index])
               : real(p, &at->f[b.index]);
}

static bool at_field(const parser *p, char letter)
{
    return p->line_end - p->at > 3 && p->at[0] == letter && p->at[2] == '=';
}

static tl_status attribute(parser *p, tl_gattrs *at)
{
    const char *name;
    int64_t n = 0;

    skip_blanks(p);
    if (at_field(p, 'i') || at_field(p, 'f')) {
        return field(p, *p->at, at);
    }
    if (accept(p, "keep")) {
        at->keep = 1;
    } else if (accept(p, "flag")) {
        at->flag = 1;
    } else if (accept(p, "axis=")) {
        TL_TRY(integer(p, INT8_MIN, INT8_MAX, &n));
        at->axis = (int8_t)n;
    } else if (accept(p, "axes=")) {
        TL_TRY(integer(p, 0, UINT16_MAX, &n));
        at->axes = (uint16_t)n;
    } else if (accept(p, "dtype=")) {
        size_t len = word(p, &name);

        return find_dtype(name, len, &at->dtype) ? TL_OK : bad(p, "a dtype");
    } else {
        TL_TRY(expect(p, "dims="));
        TL_TRY(sizes(p));
        at->ndims = (uint16_t)p->list.len;
    }
    return TL_OK;
}

static tl_status attributes(parser *p, uint32_t *out)
{
    tl_gattrs at = {.dtype = 0};

    p->binds.len = 0;
    p->list.len = 0;
    while (!accept(p, "}")) {
        TL_TRY(attribute(p, &at));
    }
    return tl_graph_attrs(p->g, &at, p->list.items, p->binds.items, out,
                          p->diag);
}

/* ---- nodes -------------------------------------------------------------- */

static bool is_name(const char *name, size_t len, const char *want)
{
    return len > 0 && len == strlen(want) && memcmp(name, want, len) == 0;
}

static tl_status op_name(parser *p, const char *name, size_t len,
                         uint16_t *out)
{
    char text[32];
    tl_op op = TL_OP_COUNT;

    if (len < sizeof(text)) {
        memcpy(text, name, len);
        text[len] = 0;
        op = tl_op_find(text);
    }
    *out = (uint16_t)op;
    return op < TL_OP_COUNT ? TL_OK : bad(p, "an operation");
}

static tl_status host_name(parser *p, uint16_t *out)
{
    const char *name;
    size_t len = word(p, &name);

    for (int op = 1; op < TL_H_COUNT; op++) {
        if (is_name(name, len, tl_ghost_name((tl_ghost)op))) {
            *out = (uint16_t)op;
            return TL_OK;
        }
    }
    return bad(p, "host arithmetic");
}

/* The word for what the node does, and what belongs to it. */
static tl_status node_word(parser *p, tl_gnew *n)
{
    const char *name;
    size_t len = word(p, &name);
    uint32_t which = 0;

    n->kind = TL_G_OP;
    for (int k = 1; k < TL_G_KIND_COUNT; k++) {
        if (is_name(name, len, tl_gkind_name((tl_gkind)k))) {
            n->kind = (tl_gkind)k;
        }
    }
    switch (n->kind) {
    case TL_G_OP:
        return op_name(p, name, len, &n->op);
    case TL_G_MAPGRAD:
        len = word(p, &name);
        TL_TRY(op_name(p, name, len, &n->op));
        TL_TRY(number(p, UINT8_MAX, &which));
        n->which = (uint8_t)which;
        return TL_OK;
    case TL_G_HOST:
        return host_name(p, &n->op);
    default:
        return tl_gkind_has_data(n->kind) ? number(p, UINT32_MAX, &n->data)
                                          : TL_OK;
    }
}

/* What NUM and SIZE hold. */
static tl_status held(parser *p, tl_gnew *n)
{
    tl_gattrs at = {.dtype = 0};
    uint32_t dim = 0;
    tl_gscalar s = {.bits = 0};

    if (p->types.len != 1) {
        return bad(p, "one result");
    }
    if (n->kind == TL_G_NUM) {
        TL_TRY(scalar(p, (tl_gclass)p->types.items[0].cls, &s));
        at.i[0] = s.i;
    } else {
        at.ndims = 1;
        TL_TRY(size(p, &dim));
    }
    return tl_graph_attrs(p->g, &at, &dim, NULL, &n->attrs, p->diag);
}

static tl_status append(parser *p, tl_gnew *n)
{
    level *l = &p->levels[p->depth];
    tl_gval first;

    n->in = p->vals.items;
    n->nin = (uint32_t)p->vals.len;
    n->out = p->types.items;
    n->nout = (uint32_t)p->types.len;
    n->owner = l->region;
    n->region = l->first;
    n->nregions = l->count;
    l->first = l->count = 0;
    while (p->lines.len <= p->g->nodes.len) {
        TL_TRY(TL_VEC_PUSH(&p->lines, p->line, p->diag));
    }
    p->lines.items[p->g->nodes.len] = p->line;
    TL_TRY(tl_graph_add(p->g, n, &first, p->diag));
    if (n->kind != TL_G_INPUT) {
        return TL_OK;
    }
    if (n->data != p->g->inputs.len || n->nout != 1) {
        return bad(p, "the next input's number");
    }
    return TL_VEC_PUSH(&p->g->inputs, first, p->diag);
}

/* The rest of a line after "%1: type = ", or a line without results. */
static tl_status node_line(parser *p)
{
    tl_gnew n = {.kind = TL_G_NONE};

    TL_TRY(node_word(p, &n));
    TL_TRY(values(p));
    if (n.kind == TL_G_NUM || n.kind == TL_G_SIZE) {
        TL_TRY(held(p, &n));
    } else if (accept(p, "{")) {
        TL_TRY(attributes(p, &n.attrs));
    }
    n.flags |= accept(p, "effect") ? TL_GF_EFFECT : 0;
    n.flags |= accept(p, "random") ? TL_GF_RANDOM : 0;
    return append(p, &n);
}

/* ---- regions ------------------------------------------------------------ */

static tl_status open_line(parser *p)
{
    level *l = &p->levels[p->depth];
    uint32_t r;

    p->types.len = 0;
    if (p->depth + 1 == MAX_NESTING) {
        return bad(p, "regions that nest less");
    }
    TL_TRY(expect(p, "("));
    if (!accept(p, ")")) {
        TL_TRY(typed_values(p));
        TL_TRY(expect(p, ")"));
    }
    TL_TRY(expect(p, "{"));
    TL_TRY(tl_graph_region_open(p->g, p->types.items,
                                (uint32_t)p->types.len, &r, p->diag));
    if (l->count++ == 0) {
        l->first = r;
    }
    p->levels[++p->depth] = (level){.region = r};
    return TL_OK;
}

static tl_status close_line(parser *p)
{
    const level *l = &p->levels[p->depth];

    if (p->depth == 0 || l->count > 0) {
        return bad(p, "the node of a region");
    }
    TL_TRY(values(p));
    p->depth--;
    return tl_graph_region_close(p->g, l->region, p->vals.items,
                                 (uint32_t)p->vals.len, p->diag);
}

/* ---- the other lines ---------------------------------------------------- */

static tl_status atom_line(parser *p)
{
    tl_gatom atom = {.kind = TL_GA_SIZE};
    uint32_t n;

    TL_TRY(number(p, UINT32_MAX, &n));
    TL_TRY(expect(p, "="));
    if (accept(p, "size")) {
        TL_TRY(number(p, UINT16_MAX, &atom.index));
        TL_TRY(number(p, TL_MAX_RANK - 1, &atom.axis));
    } else {
        atom.kind = TL_GA_INT;
        TL_TRY(expect(p, "int"));
        TL_TRY(value(p, INT32_MAX, &atom.index)); // checked at the end
    }
    if (n != p->g->atoms.len) {
        return bad(p, "the next atom's number");
    }
    TL_TRY(tl_graph_atom(p->g, atom, &n, p->diag));
    return n + 1 == p->g->atoms.len ? TL_OK : bad(p, "another atom");
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                                 : -1;
}

static tl_status const_line(parser *p)
{
    TL_GARRAY(uint8_t) bytes = {0};
    tl_status st = TL_OK;
    uint32_t n = 0, have;

    TL_TRY(number(p, UINT32_MAX, &n));
    TL_TRY(expect(p, "="));
    skip_blanks(p);
    for (; st == TL_OK && p->line_end - p->at >= 2; p->at += 2) {
        int high = hex_digit(p->at[0]), low = hex_digit(p->at[1]);

        st = high < 0 || low < 0
                 ? bad(p, "hexadecimal digits")
                 : TL_VEC_PUSH(&bytes, (uint8_t)(16 * high + low), p->diag);
    }
    if (st == TL_OK) {
        st = tl_graph_const(p->g, bytes.items, bytes.len, &have, p->diag);
    }
    tl_free(bytes.items);
    TL_TRY(st);
    return n == have && n + 1 == p->g->consts.len
               ? TL_OK
               : bad(p, "the next constant's number");
}

static tl_status report_line(parser *p)
{
    tl_greport r = {0};
    uint32_t n;

    TL_TRY(number(p, UINT32_MAX, &n));
    TL_TRY(expect(p, "="));
    TL_TRY(number(p, UINT16_MAX, &r.nshown));
    TL_TRY(number(p, UINT16_MAX, &r.ncells));
    TL_TRY(number(p, UINT32_MAX, &r.key));
    if (n != p->g->reports.len) {
        return bad(p, "the next report's number");
    }
    return TL_VEC_PUSH(&p->g->reports, r, p->diag);
}

static tl_status guard_line(parser *p)
{
    tl_gval v;
    tl_gscalar s;

    TL_TRY(value(p, (uint32_t)p->g->values.len - 1, &v));
    TL_TRY(expect(p, "="));
    TL_TRY(scalar(p, (tl_gclass)p->g->values.items[v].cls, &s));
    return tl_graph_guard(p->g, v, s, (tl_span){0}, p->diag);
}

static tl_status output_line(parser *p)
{
    TL_TRY(values(p));
    for (size_t k = 0; k < p->vals.len; k++) {
        TL_TRY(TL_VEC_PUSH(&p->g->outputs, p->vals.items[k], p->diag));
    }
    return TL_OK;
}

static bool next_is(parser *p, char c)
{
    skip_blanks(p);
    return p->at < p->line_end && *p->at == c;
}

static tl_status any_line(parser *p)
{
    const char *start;

    p->types.len = 0;
    if (next_is(p, '%')) {
        TL_TRY(typed_values(p));
        TL_TRY(expect(p, "="));
        return node_line(p);
    }
    if (accept(p, "region")) {
        return open_line(p);
    }
    if (accept(p, "}")) {
        return close_line(p);
    }
    if (accept(p, "guard")) {
        return guard_line(p);
    }
    if (accept(p, "output")) {
        return output_line(p);
    }
    if (p->depth == 0 && p->g->nodes.len == 1) {
        if (accept(p, "const")) {
            return const_line(p);
        }
        if (accept(p, "report")) {
            return report_line(p);
        }
        if (next_is(p, 's') && p->line_end - p->at > 1 &&
            p->at[1] >= '0' && p->at[1] <= '9') {
            p->at++;
            return atom_line(p);
        }
    }
    start = p->at;
    return start < p->line_end ? node_line(p) : TL_OK;
}

/* ---- the whole ---------------------------------------------------------- */

/* Step to the next line; false at the end of the text. */
static bool next_line(parser *p)
{
    const char *newline;

    if (p->at == p->end) {
        return false;
    }
    newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    p->line_end = newline ? newline : p->end;
    p->line++;
    return true;
}

static tl_status parse_lines(parser *p)
{
    while (next_line(p)) {
        TL_TRY(p->line == 1 ? expect(p, "graph") : any_line(p));
        if (!at_end(p)) {
            return bad(p, "the end of the line");
        }
        p->at = p->line_end < p->end ? p->line_end + 1 : p->end;
    }
    if (p->line == 0 || p->depth > 0 || p->levels[0].count > 0) {
        return bad(p, "more lines");
    }
    return TL_OK;
}

static tl_status judge(const parser *p)
{
    uint32_t node = 0;
    tl_status st = tl_graph_check_at(p->g, &node, p->diag);

    if (st != TL_OK && st != TL_ERR_MEMORY) {
        tl_diag_note(p->diag, "graph text, line %u",
                     node > 0 && node < p->lines.len ? p->lines.items[node]
                                                     : p->line);
    }
    return st;
}

tl_status tl_graph_parse(tl_graph **out, const char *text, size_t len,
                         tl_diag *diag)
{
    parser p = {.at = text, .end = text + len, .diag = diag};
    tl_status st = tl_graph_new(&p.g, diag);

    if (st == TL_OK) {
        st = parse_lines(&p);
    }
    if (st == TL_OK) {
        st = judge(&p);
    }
    tl_free(p.lines.items);
    tl_free(p.vals.items);
    tl_free(p.types.items);
    tl_free(p.list.items);
    tl_free(p.binds.items);
    tl_free(p.words.items);
    if (st != TL_OK) {
        tl_graph_free(p.g);
        return st;
    }
    *out = p.g;
    return TL_OK;
}
