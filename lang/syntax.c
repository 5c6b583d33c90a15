/* syntax.c - one message for an unexpected token.
 *
 * "found X, wanted Y": tokens are called as the user writes them; what may
 * follow is summed up (an expression, a name, an operator) instead of being
 * listed.  One message a line: the rest of the line is skipped anyway. */
#include <stdio.h>
#include <string.h>

#include "lang/parse_state.h"

#include "lang/parser.h"
#include "runtime/base/buf.h"

const char *tl_token_text(int token)
{
    static const struct {
        int token;
        const char *text;
    } rows[] = {
#define KEYWORD(text, TOKEN) {T_##TOKEN, "`" text "`"},
#define SOFT(text, TOKEN) KEYWORD(text, TOKEN)
#include "lang/keywords.def"
        {0, "the end of the file"},
        {T_NEWLINE, "the end of the line"},
        {T_INDENT, "an indented block"},
        {T_DEDENT, "the end of the block"},
        {T_NAME, "a name"},
        {T_INT, "a number"},
        {T_FLOAT, "a number"},
        {T_STRING, "a string"},
        {T_FSTART, "a string"},
        {T_FTEXT, "a string"},
        {T_FEND, "the end of the string"},
        {T_FOPEN, "`{`"},
        {T_FCLOSE, "`}`"},
        {T_FCOLON, "`:`"},
        {T_ARROW, "`->`"},
        {T_FATARROW, "`=>`"},
        {T_PIPE, "`|>`"},
        {T_POW, "`**`"},
        {T_ELLIPSIS, "`...`"},
        {',', "`,`"},
        {':', "`:`"},
        {'=', "`=`"},
        {'(', "`(`"},
        {')', "`)`"},
        {'[', "`[`"},
        {']', "`]`"},
        {'{', "`{`"},
        {'}', "`}`"},
        {'.', "`.`"},
        {'*', "`*`"},
        {'@', "`@`"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].token == token) {
            return rows[i].text;
        }
    }
    return "an operator";
}

static bool among(int token, const int *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] == token) {
            return true;
        }
    }
    return false;
}

static bool wants(const int *wanted, int n, int token)
{
    return among(token, wanted, (size_t)n);
}

static bool is_keyword(int token)
{
    switch (token) {
#define KEYWORD(text, TOKEN) case T_##TOKEN:
#include "lang/keywords.def"
        return true;
    default:
        return false;
    }
}

/* ---- what was found ------------------------------------------------------ */

static void put_found(tl_parser *ps, int found, tl_buf *out)
{
    size_t len;
    const char *text = tl_parse_bytes(ps, ps->prev.span, &len);

    switch (found) {
    case 0:
    case T_NEWLINE:
    case T_INDENT:
    case T_DEDENT:
    case T_FSTART:
    case T_FEND:
        tl_buf_puts(out, tl_token_text(found));
        break;
    case T_STRING:
    case T_FTEXT:
        tl_buf_puts(out, "a string");
        break;
    default:
        tl_buf_printf(out, "`%.*s%s`", len > 40 ? 40 : (int)len, text,
                      len > 40 ? "..." : "");
        break;
    }
}

/* ---- what was wanted ----------------------------------------------------- */

typedef struct list {
    const char *items[4];
    int n; /* may be more than fit: then nothing is listed */
} list;

static void add(list *l, const char *text)
{
    for (int i = 0; i < l->n && i < 4; i++) {
        if (strcmp(l->items[i], text) == 0) {
            return;
        }
    }
    if (l->n < 4) {
        l->items[l->n] = text;
    }
    l->n++;
}

/* Tokens that begin an expression (operand), or go on with one: summed up,
 * never listed. */
static bool of_expression(int token, bool operand)
{
    static const int begin[] = {
        T_INT,   T_FLOAT, T_STRING,   T_FSTART, T_NAME, T_TRUE,
        T_FALSE, T_NONE,  T_ELLIPSIS, T_NOT,    T_FN,   T_POW,
        '(',     '[',     '{',        '+',      '-',    '*'};
    static const int end[] = {',', ':', '=',       ')',      ']',
                              '}', T_NEWLINE, T_FCLOSE, T_FATARROW,
                              T_ELSE};

    return operand ? among(token, begin, sizeof(begin) / sizeof(begin[0]))
                   : !among(token, end, sizeof(end) / sizeof(end[0]));
}

static bool is_soft(int token)
{
    switch (token) {
#define SOFT(text, TOKEN) case T_##TOKEN:
#include "lang/keywords.def"
        return true;
    default:
        return false;
    }
}

static void sum_up(list *l, const int *wanted, int n)
{
    bool operand = wants(wanted, n, T_INT) && wants(wanted, n, T_FLOAT);
    bool operators = wants(wanted, n, '+') && !operand;
    bool statement = operators && wants(wanted, n, T_NEWLINE);
    bool type = wants(wanted, n, T_NAME) && wants(wanted, n, T_NONE) &&
                !operand;

    if (operand) {
        add(l, "an expression");
    } else if (type) {
        add(l, "a type");
    } else if (wants(wanted, n, T_NAME)) {
        add(l, "a name");
    }
    for (int i = 0; i < n; i++) {
        int token = wanted[i];

        if ((operand && of_expression(token, true)) ||
            (operators && of_expression(token, false)) ||
            (statement && (token == '=' || token == ',' || token == ':')) ||
            (wants(wanted, n, T_NAME) && is_soft(token)) ||
            token == T_NAME || (type && of_expression(token, true))) {
            continue;
        }
        add(l, tl_token_text(token));
    }
    if (operators && l->n < 4) {
        add(l, "an operator");
    }
}

static void put_wanted(const list *l, tl_buf *out)
{
    for (int i = 0; i < l->n && l->n <= 4; i++) {
        tl_buf_puts(out, i == 0            ? ", wanted "
                         : i == l->n - 1 ? " or "
                                           : ", ");
        tl_buf_puts(out, l->items[i]);
    }
}

/* ---- special cases ------------------------------------------------------- */

static void keyword_as_name(tl_parser *ps, const tl_token *keyword)
{
    tl_parse_error(ps, TL_E0112, keyword->span, "%s is a keyword",
                   tl_token_text(keyword->kind));
    tl_parse_help(ps, "another name is free: `%s_`",
                  keyword->sym ? keyword->sym->text : "");
}

/* `for = 1`, `f(in=2)`, `fn if()`, `x.from`. */
static bool report_keyword(tl_parser *ps, int found, const int *wanted, int n)
{
    const char *rest = ps->source->text + ps->prev.span.end;

    rest += strspn(rest, " \t");
    if (found == '=' && is_keyword(ps->prev2.kind) &&
        ps->prev2.span.start == ps->first.span.start) {
        keyword_as_name(ps, &ps->prev2);
        return true;
    }
    if (is_keyword(found) && wants(wanted, n, T_NAME) &&
        (!wants(wanted, n, T_INT) || (rest[0] == '=' && rest[1] != '='))) {
        keyword_as_name(ps, &ps->prev);
        return true;
    }
    return false;
}

static bool report_block(tl_parser *ps, int found, const int *wanted, int n)
{
    if (n != 1 || wanted[0] != T_INDENT) {
        return false;
    }
    tl_parse_error(ps, TL_E0104, ps->prev.span,
                   found == 0 || found == T_DEDENT
                       ? "the block that should follow `:` is missing"
                       : "wanted an indented block behind `:`");
    tl_parse_help(ps, "indent the lines of the block by 4 spaces; `pass` is "
                      "the empty block");
    return true;
}

static bool report_condition(tl_parser *ps, int found)
{
    if (found != '=' || (ps->first.kind != T_IF && ps->first.kind != T_ELIF &&
                         ps->first.kind != T_WHILE)) {
        return false;
    }
    tl_parse_error(ps, TL_E0100, ps->prev.span,
                   "found `=` in a condition, wanted `==`");
    tl_parse_help(ps, "`==` compares; an assignment is a statement");
    return true;
}

/* `@compile` before a statement that is no definition. */
static bool report_annotated(tl_parser *ps, int found, const int *wanted,
                             int n)
{
    tl_buf message;

    if (!wants(wanted, n, T_FN) || !wants(wanted, n, T_RECORD) ||
        !wants(wanted, n, '@') || wants(wanted, n, T_INT)) {
        return false;
    }
    tl_buf_init(&message);
    put_found(ps, found, &message);
    tl_parse_error(ps, TL_E0217, ps->prev.span,
                   "an annotation needs a function, found %s",
                   tl_buf_str(&message));
    tl_buf_fini(&message);
    tl_parse_help(ps, "it stands on the line before `fn name(...)`");
    return true;
}

/* `elif`, `else`, `catch`, `backward` behind nothing that they go on with. */
static bool report_orphan(tl_parser *ps, int found)
{
    const char *before = found == T_ELIF || found == T_ELSE ? "if"
                         : found == T_CATCH                 ? "try"
                         : found == T_BACKWARD              ? "fn"
                                                            : NULL;

    if (before == NULL || ps->prev.span.start != ps->first.span.start) {
        return false;
    }
    tl_parse_error(ps, TL_E0116, ps->prev.span,
                   "%s stands alone: wanted `%s` before it",
                   tl_token_text(found), before);
    tl_parse_help(ps, "it goes on with a `%s` of the same indentation, right "
                      "behind its block", before);
    return true;
}

static void report_plain(tl_parser *ps, int found, const int *wanted, int n)
{
    list l = {.n = 0};
    tl_buf message;

    sum_up(&l, wanted, n);
    tl_buf_init(&message);
    tl_buf_puts(&message, "found ");
    put_found(ps, found, &message);
    put_wanted(&l, &message);
    tl_parse_error(ps, TL_E0100, ps->prev.span, "%s", tl_buf_str(&message));
    tl_buf_fini(&message);
    if (found == T_STRING && ps->prev2.kind == T_STRING) {
        tl_parse_help(ps, "strings are joined by `+`");
    } else if (found == T_DEDENT || found == 0) {
        tl_parse_help(ps, "the statement before this place is not finished");
    }
}

/* Has the scanner reported this very token? */
static bool is_reported(const tl_parser *ps)
{
    const tl_diag_item *last = ps->diag->last;

    return ps->reported && last != NULL &&
           last->span.file == ps->prev.span.file &&
           last->span.start == ps->prev.span.start;
}

void tl_syntax_error(tl_parser *ps, int found, const int *wanted, int nwanted)
{
    bool at_end = found == 0 || (found == T_DEDENT && ps->prev.i == 1);

    if (at_end) {
        tl_parse_need_more(ps);
    }
    if (ps->after_error && (found == T_ELIF || found == T_ELSE ||
                            found == T_CATCH || found == T_BACKWARD)) {
        ps->quiet_line = true; /* belongs to a statement that was skipped */
    }
    if (ps->stop || ps->quiet_line) {
        return;
    }
    if (is_reported(ps)) {
        ps->quiet_line = true;
        return;
    }
    if (!tl_habit_syntax(ps, found, ps->prev.span) &&
        !report_keyword(ps, found, wanted, nwanted) &&
        !report_block(ps, found, wanted, nwanted) &&
        !report_condition(ps, found) &&
        !report_annotated(ps, found, wanted, nwanted) &&
        !report_orphan(ps, found)) {
        report_plain(ps, found, wanted, nwanted);
    }
    ps->quiet_line = true;
}
