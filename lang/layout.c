/* layout.c - lines, blocks and brackets: tl_yylex, which bison calls.
 *
 * A newline inside brackets vanishes.  Otherwise the column of the first
 * token of a line against the stack of open columns gives INDENT and
 * DEDENTs, while the token itself is held back.
 *
 * Everything that can be open at once is counted in `nesting`: brackets,
 * blocks, and operators since the last comma of the innermost bracket (each
 * may stand on bison's stack, waiting for its right operand).  The limit
 * bounds that stack, whatever the input.
 *
 * An open bracket swallows what follows.  A word that only starts a
 * statement, first on its line, or a name behind a value in the column of the
 * block, shows that a bracket was forgotten: it is reported where it was
 * opened, and the line starts afresh. */
#include <string.h>

#include "lang/parse_state.h"

#include "lang/parser.h"
#include "runtime/base/check.h"

enum {
    TAB = 4
};

tl_status tl_layout_init(tl_parser *ps)
{
    size_t brackets = (TL_MAX_NESTING + 1) * sizeof(*ps->brackets);
    size_t indents = (TL_MAX_NESTING + 1) * sizeof(*ps->indents);

    ps->brackets = tl_arena_alloc(&ps->scratch, brackets);
    ps->indents = tl_arena_alloc(&ps->scratch, indents);
    if (!ps->brackets || !ps->indents) {
        return tl_fail_memory(ps->diag, "the parser", brackets + indents);
    }
    ps->nindents = 1;
    ps->line_start = true;
    ps->fresh = true;
    return TL_OK;
}

bool tl_token_ends_value(int token)
{
    switch (token) {
    case T_NAME:
    case T_MODULE:
    case T_RECORD:
    case T_PARAM:
    case T_BUFFER:
    case T_GRAD:
    case T_WRT:
    case T_WHERE:
    case T_TEST:
    case T_INT:
    case T_FLOAT:
    case T_STRING:
    case T_FEND:
    case T_TRUE:
    case T_FALSE:
    case T_NONE:
    case T_ELLIPSIS:
    case ')':
    case ']':
    case '}':
        return true;
    default:
        return false;
    }
}

/* ---- nesting ------------------------------------------------------------- */

/* One thing more is open; false if that is too much. */
static bool nest(tl_parser *ps, tl_span at)
{
    if (ps->nesting >= TL_MAX_NESTING) {
        tl_parse_stop(ps, TL_E0110, at, "nested deeper than 1,000");
        return false;
    }
    ps->nesting++;
    return true;
}

/* The pending operators of the innermost bracket are done. */
static void forget_ops(tl_parser *ps)
{
    ps->nesting -= ps->ops;
    ps->ops = 0;
}

bool tl_bracket_open(tl_parser *ps, char kind, tl_span at)
{
    if (!nest(ps, at)) {
        return false;
    }
    ps->brackets[ps->nbrackets++] =
        (tl_bracket){.kind = kind, .ops = ps->ops, .at = at};
    ps->ops = 0;
    return true;
}

void tl_bracket_pop(tl_parser *ps)
{
    TL_CHECK(ps->nbrackets > 0);
    forget_ops(ps);
    ps->nbrackets--;
    ps->nesting--;
    ps->ops = ps->brackets[ps->nbrackets].ops;
}

static void count_op(tl_parser *ps, const tl_token *t)
{
    if (nest(ps, t->span)) {
        ps->ops++;
    }
}

static bool is_operator(int kind)
{
    switch (kind) {
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
    case '@':
    case '<':
    case '>':
    case '=':
    case '.':
    case T_DSLASH:
    case T_POW:
    case T_EQ:
    case T_NE:
    case T_LE:
    case T_GE:
    case T_AND:
    case T_OR:
    case T_NOT:
    case T_IN:
    case T_IF:
    case T_ELSE:
    case T_FOR:
    case T_AS:
    case T_PIPE:
    case T_ARROW:
    case T_FATARROW:
        return true;
    default:
        return false;
    }
}

/* ---- brackets ------------------------------------------------------------ */

static char opener(int close)
{
    return close == ')' ? '(' : close == ']' ? '[' : '{';
}

static void report_unclosed(tl_parser *ps, const tl_bracket *b)
{
    b += b->kind == 'S'; /* inside its `{`: else the scanner reports it */
    tl_parse_error(ps, TL_E0101, b->at, "`%c` opened at %s is never closed",
                   b->kind == 'F' ? '{' : b->kind,
                   tl_parse_place(ps, b->at.start).s);
    ps->quiet_line = true;
}

static void close_all(tl_parser *ps)
{
    while (ps->nbrackets > 0) {
        tl_bracket_pop(ps);
    }
}

/* Index + 1 of the innermost bracket of this kind in the innermost field of
 * an f-string (or outside all), or 0. */
static uint32_t find_opener(const tl_parser *ps, char kind)
{
    for (uint32_t i = ps->nbrackets; i > 0; i--) {
        char c = ps->brackets[i - 1].kind;

        if (c == kind) {
            return i;
        }
        if (c == 'F' || c == 'S') {
            break;
        }
    }
    return 0;
}

/* A closing bracket; false if it is to be dropped. */
static bool close_bracket(tl_parser *ps, const tl_token *t)
{
    uint32_t i = find_opener(ps, opener(t->kind));
    const tl_bracket *b =
        ps->nbrackets ? &ps->brackets[ps->nbrackets - 1] : NULL;

    if (i == 0 && (!b || b->kind == 'F')) {
        tl_parse_error(ps, TL_E0103, t->span,
                       "nothing is open for this `%c` to close", t->kind);
        ps->quiet_line = true;
        return false;
    }
    if (i == 0) { /* the wrong kind: taken for the right one */
        tl_parse_error(ps, TL_E0103, t->span,
                       "`%c` cannot close the `%c` opened at %s", t->kind,
                       b->kind, tl_parse_place(ps, b->at.start).s);
        ps->quiet_line = true;
        i = ps->nbrackets;
    }
    if (i < ps->nbrackets) {
        report_unclosed(ps, b);
    }
    while (ps->nbrackets >= i) {
        tl_bracket_pop(ps);
    }
    return true;
}

static uint32_t column(const tl_parser *ps, const tl_token *t);

/* The next byte behind `pos` that is not a space. */
static char next_byte(const tl_parser *ps, uint32_t pos)
{
    const char *s = ps->source->text + pos;

    return s[strspn(s, " \t")];
}

static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A token that only a statement can begin with. */
static bool starts_statement(const tl_parser *ps, const tl_token *t)
{
    char next = next_byte(ps, t->span.end);

    switch (t->kind) {
    case T_RETURN:
    case T_WHILE:
    case T_BREAK:
    case T_CONTINUE:
    case T_PASS:
    case T_WITH:
    case T_IMPORT:
    case T_FROM:
    case T_ASSERT:
    case T_RAISE:
    case T_TRY:
    case T_CATCH:
    case T_ELIF:
        return true;
    case T_FN:
    case T_MODULE:
    case T_RECORD:
        return starts_name(next);
    default:
        return false;
    }
}

/* A name behind a value, where the block's lines begin: lines that continue
 * one another are indented further. */
static bool starts_line(const tl_parser *ps, const tl_token *t)
{
    return t->kind == T_NAME && tl_token_ends_value(ps->prev.kind) &&
           column(ps, t) <= ps->indents[ps->nindents - 1];
}

static bool bracket_forgotten(const tl_parser *ps, const tl_token *t)
{
    if (ps->nbrackets == 0 || !ps->fresh ||
        (!starts_statement(ps, t) && !starts_line(ps, t))) {
        return false;
    }
    for (uint32_t i = 0; i < ps->nbrackets; i++) {
        if (ps->brackets[i].kind == 'S') {
            return false;
        }
    }
    return true;
}

/* ---- lines and blocks ---------------------------------------------------- */

static uint32_t line_start(const tl_parser *ps, uint32_t at)
{
    while (at > 0 && ps->source->text[at - 1] != '\n') {
        at--;
    }
    return at;
}

static uint32_t column(const tl_parser *ps, const tl_token *t)
{
    const char *s = ps->source->text;
    uint32_t col = 0;

    for (uint32_t i = line_start(ps, t->span.start); i < t->span.start; i++) {
        col = s[i] == '\t' ? (col / TAB + 1) * TAB : col + 1;
    }
    return col;
}

/* A tab before the first token of a line; reported once. */
static void check_tabs(tl_parser *ps, const tl_token *t)
{
    uint32_t from = line_start(ps, t->span.start);
    const char *s = ps->source->text + from;
    const char *tab = memchr(s, '\t', t->span.start - from);

    if (tab && !ps->tab_seen) {
        uint32_t at = from + (uint32_t)(tab - s);

        ps->tab_seen = true;
        tl_parse_error(ps, TL_E0107, (tl_span){t->span.file, at, at + 1},
                       "tab in indentation");
        tl_parse_help(ps, "indent with spaces only");
    }
}

static tl_token mark(int kind, const tl_token *before)
{
    tl_span at = before->span;

    at.end = at.start;
    return (tl_token){.kind = kind, .span = at};
}

static void hold(tl_parser *ps, const tl_token *t)
{
    ps->next = *t;
    ps->held = true;
}

/* INDENT or DEDENT before the first token of a line; false if the line
 * belongs to the block that is open. */
static bool indent_change(tl_parser *ps, const tl_token *t, tl_token *out)
{
    uint32_t col = column(ps, t);
    uint32_t open = ps->indents[ps->nindents - 1];

    if (col == open) {
        return false;
    }
    if (col > open && !ps->dedented) {
        if (!nest(ps, t->span)) {
            return false;
        }
        ps->indents[ps->nindents++] = col;
        *out = mark(T_INDENT, t);
        return true;
    }
    if (col > open) {
        tl_parse_error(ps, TL_E0104, t->span,
                       "this line starts at column %u, where no block did",
                       (unsigned)col + 1);
        tl_parse_help(ps, "the block around it starts at column %u",
                      (unsigned)open + 1);
        return false;
    }
    ps->nindents--;
    ps->nesting--;
    ps->dedented = true;
    *out = mark(T_DEDENT, t);
    return true;
}

/* Inside an f-string that must end on its line. */
static bool in_short_string(const tl_parser *ps)
{
    for (uint32_t i = 0; i < ps->nbrackets; i++) {
        if (ps->brackets[i].kind == 'S' && !ps->brackets[i].triple) {
            return true;
        }
    }
    return false;
}

/* What is still open at the end of the text, one token a call. */
static void finish(tl_parser *ps, const tl_token *end, tl_token *out)
{
    if (ps->nbrackets > 0) {
        if (!in_short_string(ps)) {
            tl_parse_need_more(ps);
        }
        report_unclosed(ps, &ps->brackets[0]);
        close_all(ps);
    }
    hold(ps, end);
    if (!ps->line_start) {
        ps->line_start = true;
        forget_ops(ps);
        *out = mark(T_NEWLINE, end);
    } else if (ps->nindents > 1) {
        ps->nindents--;
        ps->nesting--;
        *out = mark(T_DEDENT, end);
        out->i = 1; /* of the end, see parse.c */
    } else {
        *out = *end;
    }
}

bool tl_line_ends(const tl_parser *ps, uint32_t offset)
{
    const char *s = ps->source->text + offset;

    s += strspn(s, " \t\r");
    return *s == '\0' || *s == '\n' || *s == '#';
}

/* The same to the end of the text. */
static bool text_ends(const char *s)
{
    for (;;) {
        s += strspn(s, " \t\r\n");
        if (*s != '#') {
            return *s == '\0';
        }
        s += strcspn(s, "\n");
    }
}

/* `;`: true if a NEWLINE is to be given. */
static bool semicolon(tl_parser *ps, const tl_token *t)
{
    const char *rest = ps->source->text + t->span.end;

    if (ps->entry && text_ends(rest)) {
        ps->unit->quiet = true;
        return false;
    }
    if (!ps->semicolon_seen) {
        ps->semicolon_seen = true;
        tl_habit_token(ps, ";", t->span);
    }
    ps->same_line = !tl_line_ends(ps, t->span.end) && ps->nbrackets == 0 &&
                    !ps->line_start;
    return ps->same_line;
}

/* ---- the token stream ---------------------------------------------------- */

/* A newline ends the logical line; false if it means nothing. */
static bool newline(tl_parser *ps)
{
    ps->fresh = true;
    if (ps->nbrackets > 0 || ps->line_start) {
        return false;
    }
    forget_ops(ps);
    ps->line_start = true;
    return true;
}

/* The line turned out to be over before `t`. */
static void cut_line(tl_parser *ps, const tl_token *t, tl_token *out)
{
    report_unclosed(ps, &ps->brackets[0]);
    close_all(ps);
    forget_ops(ps);
    ps->line_start = true;
    hold(ps, t);
    *out = mark(T_NEWLINE, t);
}

/* Brackets and counts of an ordinary token; false if it is dropped. */
static bool account(tl_parser *ps, const tl_token *t)
{
    switch (t->kind) {
    case '(':
    case '[':
    case '{':
        return tl_bracket_open(ps, (char)t->kind, t->span);
    case ')':
    case ']':
    case '}':
        return close_bracket(ps, t);
    case ',':
        forget_ops(ps);
        return true;
    default:
        if (is_operator(t->kind)) {
            count_op(ps, t);
        }
        return true;
    }
}

/* Starts a logical line with `t`, unless INDENT or DEDENT comes first. */
static bool start_line(tl_parser *ps, const tl_token *t, tl_token *out)
{
    if (!ps->same_line) {
        check_tabs(ps, t);
        if (indent_change(ps, t, out)) {
            hold(ps, t);
            return false;
        }
    }
    ps->dedented = false;
    ps->same_line = false;
    ps->line_start = false;
    ps->first = *t;
    return true;
}

/* One token, or false if this one is dropped. */
static bool step(tl_parser *ps, tl_token *t, tl_token *out)
{
    if (t->kind == 0) {
        finish(ps, t, out);
        return true;
    }
    if (t->kind == T_NEWLINE) {
        *out = *t;
        return newline(ps);
    }
    if (t->kind == ';') {
        if (!semicolon(ps, t)) {
            return false;
        }
        forget_ops(ps);
        ps->line_start = true;
        *out = mark(T_NEWLINE, t);
        return true;
    }
    if (bracket_forgotten(ps, t)) {
        cut_line(ps, t, out);
        return true;
    }
    if (ps->line_start && !start_line(ps, t, out)) {
        return true;
    }
    ps->fresh = false;
    *out = *t;
    return account(ps, t);
}

static void next_token(tl_parser *ps, tl_token *out)
{
    tl_token t;

    do {
        if (ps->held) {
            t = ps->next;
            ps->held = false;
        } else {
            if (ps->line_start) {
                ps->quiet_line = false;
            }
            tl_scan(ps, &t);
        }
        if (ps->stop) {
            *out = (tl_token){.kind = 0, .span = t.span};
            return;
        }
    } while (!step(ps, &t, out));
}

int tl_yylex(union tl_value *value, tl_span *at, tl_parser *ps)
{
    tl_token t;

    next_token(ps, &t);
    ps->prev2 = ps->prev;
    ps->prev = t;
    *at = t.span;
    switch (t.kind) {
    case T_INT:
        value->i = t.i;
        break;
    case T_FLOAT:
        value->f = t.f;
        break;
    case T_STRING:
    case T_FTEXT:
        value->text = t.text;
        break;
    case T_AUG:
        value->op = t.op;
        break;
    default:
        value->sym = t.sym;
        break;
    }
    return t.kind;
}
