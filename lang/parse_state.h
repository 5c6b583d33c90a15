/* parse_state.h - what scanner, layout, parser and constructors share.
 *
 * Private to lang/.  The bytes pass four stages:
 *
 *   lexer.l    raw tokens of one line, f-strings by a stack of modes
 *   layout.c   tl_yylex: NEWLINE, INDENT, DEDENT; brackets; nesting limit
 *   parser.y   the grammar; each action is one constructor call
 *   build.c    nodes in the arena, checks that need one node only
 *
 * An error that ends the parse (out of memory, nesting limit) sets `stop`:
 * the scanner then gives end of file, the parser reports nothing more, and
 * tl_parse returns `status`. */
#ifndef TL_LANG_PARSE_STATE_H
#define TL_LANG_PARSE_STATE_H

#include "lang/ast.h"
#include "lang/parse.h"
#include "runtime/base/status.h"

/* Most brackets, blocks and operators that may be open at once. */
#define TL_MAX_NESTING TL_AST_MAX_DEPTH

/* An open bracket, or an open f-string. */
typedef struct tl_bracket {
    char kind; /* ( [ {, F for `{` of an f-string, S for an f-string */
    char quote;      /* S: the quote character */
    bool triple;     /* S */
    bool in_spec;    /* F: its `:` has been seen */
    uint32_t ops;    /* operators pending outside it, see layout.c */
    tl_span at;
} tl_bracket;

/* A raw token. */
typedef struct tl_token {
    int kind; /* enum tl_yytokentype; 0 at the end */
    tl_span span;
    const tl_sym *sym; /* names and keywords */
    tl_text text;      /* strings */
    int64_t i;
    double f;
    tl_oper op; /* op= */
} tl_token;

typedef struct tl_parser {
    tl_lang *lang;
    tl_unit *unit;
    tl_diag *diag;
    const tl_source *source;
    bool entry; /* of the REPL */

    bool stop; /* nothing more is read, built or reported */
    bool incomplete;
    tl_status status; /* of the first error */
    bool reported;    /* the last error was, so help may be added */

    /* lexer.l */
    void *scanner;
    char *reserve; /* memory of the scanner itself, see lexer.l */
    size_t reserve_left;
    uint32_t pos;     /* offset of the next byte */
    tl_arena scratch; /* freed when the parse ends */

    /* layout.c */
    tl_bracket *brackets; /* TL_MAX_NESTING + 1 of them */
    uint32_t nbrackets;
    uint32_t *indents; /* columns of the open blocks; [0] = 0 */
    uint32_t nindents;
    uint32_t ops;     /* operators pending in the innermost bracket */
    uint32_t nesting; /* brackets, blocks, pending operators in all */
    bool line_start;  /* no token of the logical line given yet */
    bool tab_seen;    /* E0107 and `;` are reported once */
    bool semicolon_seen;
    bool same_line;   /* the line began behind a `;`: no indentation */
    bool dedented;    /* a DEDENT was given before the token held */
    bool fresh;       /* first token of a physical line comes */
    bool held;        /* `next` waits while DEDENTs are given */
    tl_token next;
    tl_token prev, prev2; /* last tokens given to the parser */
    tl_token first;       /* first token of the logical line */
    bool quiet_line; /* an error was reported here: no more on this line */
    bool after_error; /* the last statement was skipped */

    /* build.c: what constructors return when there is no memory */
    tl_ast_none nothing;
} tl_parser;

/* ---- errors -------------------------------------------------------------- */

/* Report at `at`; remembers the status.  Silent once stopped. */
void tl_parse_error(tl_parser *ps, tl_code code, tl_span at, const char *fmt,
                    ...) __attribute__((format(printf, 4, 5)));
/* Help for the error just reported. */
void tl_parse_help(tl_parser *ps, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Report an error that ends the parse. */
void tl_parse_stop(tl_parser *ps, tl_code code, tl_span at, const char *fmt,
                   ...) __attribute__((format(printf, 4, 5)));
/* The text ends too early: in an entry of the REPL that is no error, if none
 * was found before. */
void tl_parse_need_more(tl_parser *ps);
/* Out of memory: ends the parse. */
void tl_parse_oom(tl_parser *ps, size_t bytes);

/* "3:5" of a byte, in one of the caller's buffers. */
typedef struct tl_place {
    char s[32];
} tl_place;
tl_place tl_parse_place(const tl_parser *ps, uint32_t offset);

/* The bytes of a span; never NULL. */
const char *tl_parse_bytes(const tl_parser *ps, tl_span span, size_t *len);

/* ---- stages -------------------------------------------------------------- */

/* lexer.l */
TL_MUST_USE tl_status tl_scanner_init(tl_parser *ps);
void tl_scan(tl_parser *ps, tl_token *out);

/* layout.c */
TL_MUST_USE tl_status tl_layout_init(tl_parser *ps);
bool tl_bracket_open(tl_parser *ps, char kind, tl_span at);
void tl_bracket_pop(tl_parser *ps);
/* Nothing but space and a comment from `offset` to the end of the line. */
bool tl_line_ends(const tl_parser *ps, uint32_t offset);
/* After this token comes no operand, only an operator or an end. */
bool tl_token_ends_value(int token);

/* habits.c: report a token of another language, which the caller replaces */
void tl_habit_token(tl_parser *ps, const char *text, tl_span at);
/* Report the habit that explains the syntax error at token `found`; false if
 * none does. */
bool tl_habit_syntax(tl_parser *ps, int found, tl_span at);

/* syntax.c: the parser met `found` and wanted one of `wanted` */
void tl_syntax_error(tl_parser *ps, int found, const int *wanted,
                     int nwanted);
/* How a token is called in a message: "`:`", "a name". */
const char *tl_token_text(int token);

/* literal.c */
/* Bytes of the number that starts at `s`, in what may be one. */
size_t tl_literal_extent(const char *s, size_t len);
/* Value of a number into `out`; returns its token. */
int tl_literal_number(tl_parser *ps, const char *s, size_t len, tl_token *out);
/* Decode the body of a string, which starts at byte `offset` of the source.
 * fstring: `{{` and `}}` stand for braces. */
void tl_literal_string(tl_parser *ps, const char *s, size_t len,
                       uint32_t offset, bool fstring, tl_token *out);
/* The symbol of a name; reports characters that names do not have, and then
 * gives the name that was probably meant. */
const tl_sym *tl_literal_name(tl_parser *ps, const char *s, size_t len,
                              tl_span at);
/* Report the first byte of the source that may not stand there. */
TL_MUST_USE tl_status tl_literal_check_bytes(tl_parser *ps);

#endif
