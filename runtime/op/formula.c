/* formula.c - formulas of ops.def: nodes, the parser, printing.
 *
 * A recursive-descent parser for the grammar of formula.h.  Nodes are made
 * once for equal expressions, by a search of those already there: a formula
 * has a few dozen. */
#include "runtime/op/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/op/formula_impl.h"

/* ---- nodes -------------------------------------------------------------- */

static bool same_node(const tl_formula *a, const tl_formula *b)
{
    return a->kind == b->kind && a->op == b->op && a->name == b->name &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0 &&
           a->arg[0] == b->arg[0] && a->arg[1] == b->arg[1] &&
           a->arg[2] == b->arg[2];
}

static const tl_formula *intern(formula_builder *b, const tl_formula *want)
{
    tl_formula *node;

    for (const tl_formula *f = b->newest; f != NULL; f = f->older) {
        if (same_node(f, want)) {
            return f;
        }
    }
    node = TL_ARENA_NEW(b->arena, tl_formula);
    if (node == NULL) {
        b->failed = true;
        return NULL;
    }
    *node = *want;
    node->id = b->count++;
    node->older = b->newest;
    b->newest = node;
    return node;
}

const tl_formula *tl_formula_const(formula_builder *b, double value)
{
    return intern(b, &(tl_formula){.kind = FORMULA_CONST, .value = value});
}

const tl_formula *tl_formula_name(formula_builder *b, int name)
{
    return intern(b, &(tl_formula){.kind = FORMULA_NAME, .name = name});
}

static bool is_const(const tl_formula *f, double value)
{
    return f != NULL && f->kind == FORMULA_CONST && f->value == value;
}

/* What an operator on constants and neutral elements comes to, or NULL. */
static const tl_formula *simplified(formula_builder *b, tl_op op,
                                    const tl_formula *x, const tl_formula *y)
{
    switch (op) {
    case TL_OP_add:
        return is_const(x, 0) ? y : is_const(y, 0) ? x : NULL;
    case TL_OP_sub:
        return is_const(y, 0)   ? x
               : is_const(x, 0) ? tl_formula_op(b, TL_OP_neg, y, NULL, NULL)
                                : NULL;
    case TL_OP_mul:
    case TL_OP_zmul:
        if (is_const(x, 0) || is_const(y, 0)) {
            return tl_formula_const(b, 0);
        }
        return is_const(x, 1) ? y : is_const(y, 1) ? x : NULL;
    case TL_OP_div:
        return is_const(x, 0) ? x : is_const(y, 1) ? x : NULL;
    default:
        return NULL;
    }
}

const tl_formula *tl_formula_op(formula_builder *b, tl_op op,
                                const tl_formula *a0, const tl_formula *a1,
                                const tl_formula *a2)
{
    int nargs = tl_op_get(op)->nin;
    const tl_formula *easy = NULL;

    if (a0 == NULL || (nargs > 1 && a1 == NULL) ||
        (nargs > 2 && a2 == NULL)) {
        return NULL;
    }
    if (op == TL_OP_neg && a0->kind == FORMULA_CONST) {
        return tl_formula_const(b, -a0->value);
    }
    if (b->simplify && op == TL_OP_where && a1 == a2) {
        return a1;
    }
    if (b->simplify && nargs == 2) {
        easy = simplified(b, op, a0, a1);
    }
    if (easy != NULL || b->failed) {
        return easy;
    }
    return intern(b, &(tl_formula){.kind = FORMULA_OP,
                                   .op = op,
                                   .nargs = nargs,
                                   .arg = {a0, nargs > 1 ? a1 : NULL,
                                           nargs > 2 ? a2 : NULL}});
}

/* ---- the parser --------------------------------------------------------- */

enum {
    MAX_DEPTH = 64
};

typedef struct parser {
    formula_builder *b;
    const char *text, *at;
    const char *error; /* what was expected; the first mistake wins */
    const char *where;
    int depth;
} parser;

static const tl_formula *parse_cond(parser *p);

static const tl_formula *mistake(parser *p, const char *wanted)
{
    if (p->error == NULL) {
        p->error = wanted;
        p->where = p->at;
    }
    return NULL;
}

static bool accept(parser *p, const char *token)
{
    size_t len = strlen(token);

    while (isspace((unsigned char)*p->at)) {
        p->at++;
    }
    if (strncmp(p->at, token, len) != 0) {
        return false;
    }
    p->at += len;
    return true;
}

/* An identifier; its length, 0 if there is none. */
static size_t word(parser *p, const char **start)
{
    accept(p, "");
    *start = p->at;
    if (!isalpha((unsigned char)*p->at)) {
        return 0;
    }
    while (isalnum((unsigned char)*p->at) || *p->at == '_') {
        p->at++;
    }
    return (size_t)(p->at - *start);
}

static bool is_word(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

static const tl_formula *parse_number(parser *p)
{
    char *end;
    double value = strtod(p->at, &end);

    if (end == p->at) {
        return mistake(p, "a number");
    }
    p->at = end;
    return tl_formula_const(p->b, value);
}

/* K(number), after the K. */
static const tl_formula *parse_const(parser *p)
{
    const tl_formula *f;

    if (!accept(p, "(")) {
        return mistake(p, "( after K");
    }
    accept(p, "");
    f = parse_number(p);
    return accept(p, ")") ? f : mistake(p, ") after the constant");
}

static const tl_formula *parse_call(parser *p, const char *s, size_t len)
{
    const tl_formula *arg[3] = {NULL, NULL, NULL};
    char name[32];
    tl_op op = TL_OP_COUNT;
    int n = 0;

    if (len < sizeof name) {
        memcpy(name, s, len);
        name[len] = 0;
        op = tl_op_find(name);
    }
    if (op == TL_OP_COUNT || !tl_formula_evaluates(op)) {
        return mistake(p, "a function");
    }
    if (!accept(p, "(")) {
        return mistake(p, "( after the function");
    }
    do {
        arg[n++] = parse_cond(p);
    } while (n < 3 && accept(p, ","));
    if (n != tl_op_get(op)->nin || !accept(p, ")")) {
        return mistake(p, "the function's number of arguments");
    }
    return tl_formula_op(p->b, op, arg[0], arg[1], arg[2]);
}

/* M(fn)(args), after the M. */
static const tl_formula *parse_m_call(parser *p)
{
    const char *s;
    size_t len;

    if (!accept(p, "(")) {
        return mistake(p, "( after M");
    }
    len = word(p, &s);
    if (len == 0 || !accept(p, ")")) {
        return mistake(p, "M(function)");
    }
    return parse_call(p, s, len);
}

static const tl_formula *parse_name(parser *p, const char *s, size_t len)
{
    static const char inputs[] = "xabc";
    const char *hit = len == 1 ? strchr(inputs, *s) : NULL;

    if (hit != NULL) {
        return tl_formula_name(p->b,
                               *hit == 'x' ? 0 : (int)(hit - inputs) - 1);
    }
    if (len == 1 && (*s == 'y' || *s == 'g')) {
        return tl_formula_name(p->b, *s);
    }
    if (len == 2 && s[0] == 'p' && s[1] >= '0' && s[1] <= '5') {
        return tl_formula_name(p->b, s[1]);
    }
    if (is_word(s, len, "inf")) {
        return tl_formula_const(p->b, (double)INFINITY);
    }
    if (is_word(s, len, "nan")) {
        return tl_formula_const(p->b, (double)NAN);
    }
    p->at = s;
    return mistake(p, "a name");
}

static const tl_formula *parse_primary(parser *p)
{
    const char *s;
    size_t len;

    if (accept(p, "(")) {
        const tl_formula *f = parse_cond(p);

        return accept(p, ")") ? f : mistake(p, ")");
    }
    if (isdigit((unsigned char)*p->at) || *p->at == '.') {
        return parse_number(p);
    }
    len = word(p, &s);
    if (len == 0) {
        return mistake(p, "a number, a name or (");
    }
    if (is_word(s, len, "K")) {
        return parse_const(p);
    }
    if (is_word(s, len, "M")) {
        return parse_m_call(p);
    }
    if (*p->at == '(') {
        return parse_call(p, s, len);
    }
    return parse_name(p, s, len);
}

static const tl_formula *parse_unary(parser *p)
{
    const tl_formula *f;

    if (p->depth >= MAX_DEPTH) {
        return mistake(p, "fewer nested expressions");
    }
    p->depth++;
    f = accept(p, "-")
            ? tl_formula_op(p->b, TL_OP_neg, parse_unary(p), NULL, NULL)
            : parse_primary(p);
    p->depth--;
    return f;
}

static const tl_formula *parse_term(parser *p)
{
    const tl_formula *f = parse_unary(p);

    while (p->error == NULL) {
        if (accept(p, "*")) {
            f = tl_formula_op(p->b, TL_OP_mul, f, parse_unary(p), NULL);
        } else if (accept(p, "/")) {
            f = tl_formula_op(p->b, TL_OP_div, f, parse_unary(p), NULL);
        } else {
            break;
        }
    }
    return f;
}

static const tl_formula *parse_sum(parser *p)
{
    const tl_formula *f = parse_term(p);

    while (p->error == NULL) {
        if (accept(p, "+")) {
            f = tl_formula_op(p->b, TL_OP_add, f, parse_term(p), NULL);
        } else if (accept(p, "-")) {
            f = tl_formula_op(p->b, TL_OP_sub, f, parse_term(p), NULL);
        } else {
            break;
        }
    }
    return f;
}

static const struct {
    const char *token; /* longer ones first */
    tl_op op;
} comparisons[] = {
    {"<=", TL_OP_le}, {">=", TL_OP_ge}, {"==", TL_OP_eq},
    {"!=", TL_OP_ne}, {"<", TL_OP_lt},  {">", TL_OP_gt},
};
enum {
    NCOMPARISONS = sizeof comparisons / sizeof *comparisons
};

static const tl_formula *parse_comparison(parser *p)
{
    const tl_formula *f = parse_sum(p);

    for (int i = 0; i < NCOMPARISONS; i++) {
        if (accept(p, comparisons[i].token)) {
            return tl_formula_op(p->b, comparisons[i].op, f, parse_sum(p),
                                 NULL);
        }
    }
    return f;
}

static const tl_formula *parse_cond(parser *p)
{
    const tl_formula *f = parse_comparison(p), *yes, *no;

    if (p->error != NULL || !accept(p, "?")) {
        return f;
    }
    yes = parse_cond(p);
    if (!accept(p, ":")) {
        return mistake(p, ": after ?");
    }
    no = parse_cond(p);
    return tl_formula_op(p->b, TL_OP_where, f, yes, no);
}

tl_status tl_formula_parse_with(formula_builder *b, const char *text,
                                const tl_formula **out)
{
    parser p = {.b = b, .text = text, .at = text};
    const tl_formula *f = parse_cond(&p);

    accept(&p, "");
    if (p.error == NULL && *p.at != 0) {
        mistake(&p, "the end");
    }
    if (b->failed) {
        return tl_fail_memory(b->diag, "a formula", sizeof(tl_formula));
    }
    if (p.error != NULL) {
        return tl_fail(b->diag, TL_E0699, "formula `%s`: expected %s at `%s`",
                       text, p.error, p.where);
    }
    *out = f;
    return TL_OK;
}

tl_status tl_formula_parse(tl_arena *arena, const char *text,
                           const tl_formula **out, tl_diag *diag)
{
    formula_builder b = {.arena = arena, .diag = diag};

    return tl_formula_parse_with(&b, text, out);
}

/* ---- questions ---------------------------------------------------------- */

bool tl_formula_uses(const tl_formula *f, char name)
{
    int want = name == 'x' || name == 'a' ? 0
               : name == 'b'              ? 1
               : name == 'c'              ? 2
                                          : name;

    if (f->kind == FORMULA_NAME) {
        return f->name == want;
    }
    for (int i = 0; i < f->nargs; i++) {
        if (tl_formula_uses(f->arg[i], name)) {
            return true;
        }
    }
    return false;
}

bool tl_formula_is_zero(const tl_formula *f)
{
    return is_const(f, 0);
}

/* ---- printing ----------------------------------------------------------- */

/* How an operator is written, and how strongly it binds. */
static const char *infix(tl_op op, int *level)
{
    for (int i = 0; i < NCOMPARISONS; i++) {
        if (comparisons[i].op == op) {
            *level = 1;
            return comparisons[i].token;
        }
    }
    *level = op == TL_OP_add || op == TL_OP_sub ? 2 : 3;
    switch (op) {
    case TL_OP_add:
        return "+";
    case TL_OP_sub:
        return "-";
    case TL_OP_mul:
        return "*";
    case TL_OP_div:
        return "/";
    default:
        return NULL;
    }
}

static void print_level(const tl_formula *f, int level, tl_buf *out);

static void print_name(int name, tl_buf *out)
{
    if (name < 3) {
        tl_buf_putc(out, "abc"[name]);
    } else if (name >= '0' && name <= '5') {
        tl_buf_printf(out, "p%c", name);
    } else {
        tl_buf_putc(out, (char)name);
    }
}

static void print_number(double value, tl_buf *out)
{
    char text[32];

    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value || isnan(value)) {
            break;
        }
    }
    tl_buf_puts(out, text);
}

static void print_op(const tl_formula *f, int level, tl_buf *out)
{
    int own = 0;
    const char *token = infix(f->op, &own);

    if (f->op == TL_OP_where) {
        own = 0;
    } else if (f->op == TL_OP_neg) {
        own = 4;
    } else if (token == NULL) { /* a call */
        tl_buf_puts(out, tl_op_get(f->op)->name);
        for (int i = 0; i < f->nargs; i++) {
            tl_buf_puts(out, i == 0 ? "(" : ", ");
            print_level(f->arg[i], 0, out);
        }
        tl_buf_putc(out, ')');
        return;
    }
    tl_buf_puts(out, own < level ? "(" : "");
    if (f->op == TL_OP_where) {
        print_level(f->arg[0], 1, out);
        tl_buf_puts(out, " ? ");
        print_level(f->arg[1], 0, out);
        tl_buf_puts(out, " : ");
        print_level(f->arg[2], 0, out);
    } else if (f->op == TL_OP_neg) {
        tl_buf_putc(out, '-');
        print_level(f->arg[0], 4, out);
    } else {
        print_level(f->arg[0], own == 1 ? 2 : own, out);
        tl_buf_printf(out, " %s ", token);
        print_level(f->arg[1], own + 1, out);
    }
    tl_buf_puts(out, own < level ? ")" : "");
}

/* Levels: 0 ?:, 1 comparison, 2 + -, 3 * /, 4 unary. */
static void print_level(const tl_formula *f, int level, tl_buf *out)
{
    switch (f->kind) {
    case FORMULA_CONST:
        print_number(f->value, out);
        break;
    case FORMULA_NAME:
        print_name(f->name, out);
        break;
    case FORMULA_OP:
        print_op(f, level, out);
        break;
    }
}

void tl_formula_print(const tl_formula *f, tl_buf *out)
{
    print_level(f, 0, out);
}
