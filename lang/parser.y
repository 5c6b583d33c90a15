/* parser.y - the grammar of LANGUAGE.md: LALR(1), no conflicts, no
 * precedence lines.
 *
 * Each action is one constructor call (build.h).  The grammar says what can
 * be written; what may stand where (return outside a function, a cell
 * outside a module, the targets of an assignment) is checked by build.c and
 * scope.c, which can say more about it.  Hence there is one kind of block.
 *
 * Errors: an unexpected token skips to the end of its line; the block that
 * may hang from that line is parsed for its own errors. */
%require "3.8"
%define api.pure full
%define api.prefix {tl_yy}
%define api.token.prefix {T_}
%define api.value.type {union tl_value}
%define api.location.type {tl_span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {tl_parser *ps}

%code requires {
#include "lang/parse_state.h"

/* Semantic values. */
union tl_value {
    const tl_sym *sym;
    tl_text text;
    int64_t i;
    double f;
    tl_oper op;
    tl_ast *node;
    tl_kids list;
    tl_path path;
};
}

%code provides {
/* layout.c */
int tl_yylex(union tl_value *value, tl_span *at, tl_parser *ps);
}

%code {
#include "lang/build.h"
#include "runtime/base/mem.h"

/* The stack cannot get this deep: layout.c limits what may be open. */
#define YYMAXDEPTH (16 * TL_MAX_NESTING)
#define YYMALLOC tl_malloc
#define YYFREE tl_free
#define YYSTACK_USE_ALLOCA 0

#define YYLLOC_DEFAULT(now, rhs, n)                                          \
    do {                                                                     \
        if (n) {                                                             \
            (now) = YYRHSLOC(rhs, 1);                                        \
            (now).end = YYRHSLOC(rhs, n).end;                                \
        } else {                                                             \
            (now) = YYRHSLOC(rhs, 0);                                        \
            (now).start = (now).end;                                         \
        }                                                                    \
    } while (0)

/* The only message that comes this way is "memory exhausted". */
static void tl_yyerror(const tl_span *at, tl_parser *ps, const char *message)
{
    (void)at;
    (void)message;
    tl_parse_oom(ps, tl_mem_failed_size());
}

#define BINARY(at, o, l, r)                                                  \
    NEW(BINARY, binary, at, .op = TL_OP_##o, .left = (l), .right = (r))
#define BETWEEN(a, b) ((tl_span){(a).file, (a).start, (b).end})
#define LIST1(node) tl_build_append(ps, (tl_kids){0}, node)
#define APPEND(list, node) tl_build_append(ps, list, node)
#define NOTHING ((tl_kids){0})
}

%token <sym> NAME MODULE RECORD PARAM BUFFER GRAD WRT WHERE TEST
%token NEWLINE INDENT DEDENT
%token <i> INT
%token <f> FLOAT
%token <text> STRING FTEXT
%token FSTART FOPEN FCOLON FCLOSE FEND
%token FN RETURN IF ELIF ELSE FOR IN WHILE BREAK CONTINUE PASS WITH AS IMPORT
%token FROM AND OR NOT TRUE FALSE NONE ASSERT RAISE TRY CATCH BACKWARD
%token ARROW FATARROW PIPE POW DSLASH ELLIPSIS EQ NE LE GE
%token <op> AUG

%type <sym> ident alias
%type <op> cmpop
%type <path> qual
%type <list> stmts decos params plist idents where exprs_list names imports
%type <list> from_names elifs targets_list ctxs chain args alist subs slist
%type <list> fparts spec pairs comp tyargs tylist
%type <node> stmt def deco core_def fn_def back pdecl module_def record_def
%type <node> ret init suite simple impone from_name compound gradblk via
%type <node> else_ targets target ctx exprs element expr pipe or and not cmp
%type <node> add mul unary power postfix atom pair arg sub optx fpart
%type <node> type tyname tybase tytuple tyfn tyarg dim dmul datom qexpr

%%
file: %empty            { tl_build_unit(ps, NOTHING, @$); }
    | stmts             { tl_build_unit(ps, $1, @1); }
    ;

/* ---- blocks and definitions ---- */
stmts: stmt             { $$ = tl_build_stmt(ps, NOTHING, $1); }
    | stmts stmt        { $$ = tl_build_stmt(ps, $1, $2); }
    ;
stmt: simple NEWLINE    { $$ = $1; }
    | compound
    | def
    | TEST STRING ':' suite
        { $$ = NEW(TEST, test, @$, .title = $2, .body = $4); }
    | PARAM ident ':' type init NEWLINE
        { $$ = tl_build_cell(ps, @$, false, $2, @2, $4, $5); }
    | BUFFER ident ':' type init NEWLINE
        { $$ = tl_build_cell(ps, @$, true, $2, @2, $4, $5); }
    | error NEWLINE     { $$ = tl_build_skipped(ps); yyerrok; }
    | INDENT { tl_build_indent(ps, @1); } stmts DEDENT
        { $$ = NEW(BLOCK, block, @3, .stmts = $3); }
    ;
suite: simple NEWLINE
        { $$ = tl_build_block(ps, @1, LIST1($1)); @$ = $$->span; }
    | NEWLINE INDENT stmts DEDENT
        { $$ = tl_build_block(ps, @3, $3); @$ = $$->span; }
    ;
def: core_def           { $$ = $1; }
    | decos core_def    { $$ = tl_build_decorated(ps, @$, $1, $2); }
    ;
decos: deco             { $$ = LIST1($1); }
    | decos deco        { $$ = APPEND($1, $2); }
    ;
deco: '@' ident NEWLINE
        { $$ = tl_build_decorator(ps, @1, @2, $2, NOTHING); }
    | '@' ident '(' args ')' NEWLINE
        { $$ = tl_build_decorator(ps, @1, @5, $2, $4); }
    ;
core_def: fn_def | module_def | record_def ;
fn_def: FN ident '(' params ')' ret where ':' suite back
        { $$ = tl_build_fn(ps, @$, (tl_fn_parts){$2, @2, $4, $6, $7, $9,
                                                 $10}); }
    | FN ident '(' params ')' ret where '=' expr NEWLINE back
        { $$ = tl_build_fn(ps, @$, (tl_fn_parts){$2, @2, $4, $6, $7, $9,
                                                 $11}); }
    ;
ret: %empty             { $$ = NULL; }
    | ARROW type        { $$ = $2; }
    ;
where: %empty           { $$ = NOTHING; }
    | WHERE exprs_list  { $$ = $2; }
    ;
back: %empty            { $$ = NULL; }
    | BACKWARD names ':' suite
        { $$ = NEW(BACKWARD, backward, @$, .names = $2, .body = $4); }
    ;
names: idents | idents ',' ;
idents: ident           { $$ = LIST1(tl_build_name(ps, @1, $1)); }
    | idents ',' ident  { $$ = APPEND($1, tl_build_name(ps, @3, $3)); }
    ;
params: %empty          { $$ = NOTHING; }
    | plist
    | plist ','
    ;
plist: pdecl            { $$ = LIST1($1); }
    | plist ',' pdecl   { $$ = APPEND($1, $3); }
    ;
pdecl: ident
        { $$ = tl_build_param(ps, @$, @1, 0, $1, NULL, NULL); }
    | ident ':' type
        { $$ = tl_build_param(ps, @$, @1, 0, $1, $3, NULL); }
    | ident '=' expr
        { $$ = tl_build_param(ps, @$, @1, 0, $1, NULL, $3); }
    | ident ':' type '=' expr
        { $$ = tl_build_param(ps, @$, @1, 0, $1, $3, $5); }
    | '*' ident
        { $$ = tl_build_param(ps, @$, @2, 1, $2, NULL, NULL); }
    | '*' ident ':' type
        { $$ = tl_build_param(ps, @$, @2, 1, $2, $4, NULL); }
    | POW ident
        { $$ = tl_build_param(ps, @$, @2, 2, $2, NULL, NULL); }
    | POW ident ':' type
        { $$ = tl_build_param(ps, @$, @2, 2, $2, $4, NULL); }
    ;
module_def: MODULE ident ':' suite
        { $$ = tl_build_module(ps, @$, $2, @2, NOTHING, $4); }
    | MODULE ident '(' params ')' ':' suite
        { $$ = tl_build_module(ps, @$, $2, @2, $4, $7); }
    ;
record_def: RECORD ident ':' suite
        { $$ = tl_build_record(ps, @$, $2, @2, $4); }
    ;
init: %empty            { $$ = NULL; }
    | '=' expr          { $$ = $2; }
    ;

/* ---- statements ---- */
simple: exprs           { $$ = tl_build_expr_stmt(ps, @$, $1); }
    | chain exprs       { $$ = tl_build_assign(ps, @$, $1, $2); }
    | exprs AUG exprs   { $$ = tl_build_aug(ps, @$, $2, $1, $3); }
    | ident ':' type init
        { $$ = NEW(DECL, decl, @$, .target = tl_build_name(ps, @1, $1),
                   .type = $3, .value = $4); }
    | RETURN            { $$ = NEW(RETURN, return, @$, .value = NULL); }
    | RETURN exprs      { $$ = NEW(RETURN, return, @$, .value = $2); }
    | BREAK             { $$ = NEW(BREAK, break, @$); }
    | CONTINUE          { $$ = NEW(CONTINUE, continue, @$); }
    | PASS              { $$ = NEW(PASS, pass, @$); }
    | ASSERT expr       { $$ = NEW(ASSERT, assert, @$, .cond = $2); }
    | ASSERT expr ',' expr
        { $$ = NEW(ASSERT, assert, @$, .cond = $2, .message = $4); }
    | RAISE expr        { $$ = NEW(RAISE, raise, @$, .value = $2); }
    | IMPORT imports    { $$ = NEW(IMPORT, import, @$, .names = $2); }
    | FROM qual IMPORT from_names
        { $$ = NEW(FROM, from, @$, .path = $2, .names = $4); }
    | FROM qual IMPORT '(' from_names ')'
        { $$ = NEW(FROM, from, @$, .path = $2, .names = $5); }
    | FROM qual IMPORT '(' from_names ',' ')'
        { $$ = NEW(FROM, from, @$, .path = $2, .names = $5); }
    ;
chain: exprs '='        { $$ = LIST1(tl_build_target(ps, $1)); }
    | chain exprs '='   { $$ = APPEND($1, tl_build_target(ps, $2)); }
    ;
imports: impone         { $$ = LIST1($1); }
    | imports ',' impone { $$ = APPEND($1, $3); }
    ;
impone: qual alias
        { $$ = NEW(IMPORT_NAME, import_name, @$, .path = $1, .alias = $2); }
    ;
from_names: from_name   { $$ = LIST1($1); }
    | from_names ',' from_name { $$ = APPEND($1, $3); }
    ;
from_name: ident alias
        { $$ = NEW(FROM_NAME, from_name, @$, .name = $1, .alias = $2); }
    ;
alias: %empty           { $$ = NULL; }
    | AS ident          { $$ = $2; }
    ;
compound: chain gradblk { $$ = tl_build_assign(ps, @$, $1, $2); }
    | exprs AUG gradblk { $$ = tl_build_aug(ps, @$, $2, $1, $3); }
    | RETURN gradblk    { $$ = NEW(RETURN, return, @$, .value = $2); }
    | gradblk           { $$ = tl_build_expr_stmt(ps, @$, $1); }
    | IF expr ':' suite elifs else_
        { $$ = tl_build_if(ps, @$, $2, $4, $5, $6); }
    | WHILE expr ':' suite
        { $$ = NEW(WHILE, while, @$, .cond = $2, .body = $4); }
    | FOR targets IN exprs ':' suite
        { $$ = NEW(FOR, for, @$, .target = $2, .iter = $4, .body = $6); }
    | WITH ctxs ':' suite
        { $$ = NEW(WITH, with, @$, .items = $2, .body = $4); }
    | TRY ':' suite CATCH ident ':' suite
        { $$ = NEW(TRY, try, @$, .body = $3,
                   .target = tl_build_name(ps, @5, $5), .handler = $7); }
    ;
gradblk: GRAD ident WRT exprs_list via ':' suite
        { $$ = NEW(GRAD, grad, @$, .loss = tl_build_name(ps, @2, $2),
                   .targets = $4, .scaler = $5, .body = $7); }
    ;
via: %empty             { $$ = NULL; }
    | WITH expr         { $$ = $2; }
    ;
elifs: %empty           { $$ = NOTHING; }
    | elifs ELIF expr ':' suite
        { $$ = APPEND($1, NEW(ARM, arm, BETWEEN(@3, @5), .cond = $3,
                              .body = $5)); }
    ;
else_: %empty           { $$ = NULL; }
    | ELSE ':' suite    { $$ = $3; }
    ;
targets: targets_list   { $$ = tl_build_tuple_of(ps, @$, $1, false); }
    | targets_list ','  { $$ = tl_build_tuple_of(ps, @$, $1, true); }
    ;
targets_list: target    { $$ = LIST1($1); }
    | targets_list ',' target { $$ = APPEND($1, $3); }
    ;
target: ident           { $$ = tl_build_name(ps, @1, $1); }
    | '*' ident
        { $$ = NEW(STAR, star, @$, .value = tl_build_name(ps, @2, $2)); }
    | '(' targets ')'   { $$ = $2; }
    ;
ctxs: ctx               { $$ = LIST1($1); }
    | ctxs ',' ctx      { $$ = APPEND($1, $3); }
    ;
ctx: expr               { $$ = tl_build_context(ps, @$, $1); }
    | ident '=' expr
        { $$ = NEW(WITH_ITEM, with_item, @$,
                   .target = tl_build_name(ps, @1, $1), .value = $3); }
    ;

/* ---- expressions ---- */
exprs: exprs_list       { $$ = tl_build_tuple_of(ps, @$, $1, false); }
    | exprs_list ','    { $$ = tl_build_tuple_of(ps, @$, $1, true); }
    ;
exprs_list: element     { $$ = LIST1($1); }
    | exprs_list ',' element { $$ = APPEND($1, $3); }
    ;
element: expr
    | '*' or            { $$ = NEW(STAR, star, @$, .value = $2); }
    ;
expr: pipe
    | pipe IF pipe ELSE expr
        { $$ = NEW(COND, cond, @$, .then = $1, .cond = $3, .other = $5); }
    | FN '(' params ')' FATARROW expr
        { $$ = NEW(LAMBDA, lambda, @$, .params = $3, .body = $6); }
    ;
pipe: or
    | pipe PIPE or      { $$ = NEW(PIPE, pipe, @$, .left = $1, .right = $3); }
    ;
or: and
    | or OR and
        { $$ = NEW(LOGIC, logic, @$, .op = TL_OP_OR, .left = $1,
                   .right = $3); }
    ;
and: not
    | and AND not
        { $$ = NEW(LOGIC, logic, @$, .op = TL_OP_AND, .left = $1,
                   .right = $3); }
    ;
not: cmp
    | NOT not
        { $$ = NEW(UNARY, unary, @$, .op = TL_OP_NOT, .operand = $2); }
    ;
cmp: add
    | cmp cmpop add     { $$ = tl_build_compare(ps, @$, $1, $2, $3); }
    | cmp AS type       { $$ = NEW(AS, as, @$, .value = $1, .type = $3); }
    ;
cmpop: '<'              { $$ = TL_OP_LT; }
    | '>'               { $$ = TL_OP_GT; }
    | LE                { $$ = TL_OP_LE; }
    | GE                { $$ = TL_OP_GE; }
    | EQ                { $$ = TL_OP_EQ; }
    | NE                { $$ = TL_OP_NE; }
    | IN                { $$ = TL_OP_IN; }
    | NOT IN            { $$ = TL_OP_NOT_IN; }
    ;
add: mul
    | add '+' mul       { $$ = BINARY(@$, ADD, $1, $3); }
    | add '-' mul       { $$ = BINARY(@$, SUB, $1, $3); }
    ;
mul: unary
    | mul '*' unary     { $$ = BINARY(@$, MUL, $1, $3); }
    | mul '/' unary     { $$ = BINARY(@$, DIV, $1, $3); }
    | mul DSLASH unary  { $$ = BINARY(@$, FLOORDIV, $1, $3); }
    | mul '%' unary     { $$ = BINARY(@$, MOD, $1, $3); }
    | mul '@' unary     { $$ = BINARY(@$, MATMUL, $1, $3); }
    ;
unary: power
    | '-' unary         { $$ = tl_build_negate(ps, @$, $2); }
    | '+' unary
        { $$ = NEW(UNARY, unary, @$, .op = TL_OP_POS, .operand = $2); }
    ;
power: postfix
    | postfix POW unary { $$ = BINARY(@$, POW, $1, $3); }
    ;
postfix: atom
    | postfix '.' ident
        { $$ = NEW(ATTR, attr, @$, .object = $1, .name = $3,
                   .name_at = @3); }
    | postfix '(' args ')'
        { $$ = NEW(CALL, call, @$, .callee = $1, .args = $3); }
    | postfix '[' subs ']'
        { $$ = NEW(INDEX, index, @$, .object = $1, .items = $3,
                   .tuple = $3.len != 1); }
    | postfix '[' slist ',' ']'
        { $$ = NEW(INDEX, index, @$, .object = $1, .items = $3,
                   .tuple = true); }
    ;
atom: ident             { $$ = tl_build_name(ps, @1, $1); }
    | INT               { $$ = NEW(INT, int, @$, .value = $1,
                                   .wide = $1 == INT64_MIN); }
    | FLOAT             { $$ = NEW(FLOAT, float, @$, .value = $1); }
    | STRING            { $$ = NEW(STR, str, @$, .text = $1); }
    | FSTART fparts FEND { $$ = NEW(FSTRING, fstring, @$, .parts = $2); }
    | TRUE              { $$ = NEW(BOOL, bool, @$, .value = true); }
    | FALSE             { $$ = NEW(BOOL, bool, @$, .value = false); }
    | NONE              { $$ = NEW(NONE, none, @$); }
    | ELLIPSIS          { $$ = NEW(ELLIPSIS, ellipsis, @$); }
    | '(' ')'           { $$ = NEW(TUPLE, tuple, @$, .items = NOTHING); }
    | '(' exprs ')'     { $$ = tl_build_paren(ps, @$, $2); }
    | '(' expr comp ')' { $$ = tl_build_generator(ps, @$, $2, $3); }
    | '[' ']'           { $$ = NEW(LIST, list, @$, .items = NOTHING); }
    | '[' exprs_list ']' { $$ = NEW(LIST, list, @$, .items = $2); }
    | '[' exprs_list ',' ']' { $$ = NEW(LIST, list, @$, .items = $2); }
    | '[' expr comp ']'
        { $$ = NEW(LIST_COMP, list_comp, @$, .clauses = $3, .value = $2); }
    | '{' '}'           { $$ = NEW(DICT, dict, @$, .items = NOTHING); }
    | '{' pairs '}'     { $$ = NEW(DICT, dict, @$, .items = $2); }
    | '{' pairs ',' '}' { $$ = NEW(DICT, dict, @$, .items = $2); }
    | '{' expr ':' expr comp '}'
        { $$ = NEW(DICT_COMP, dict_comp, @$, .clauses = $5, .key = $2,
                   .value = $4); }
    | '{' exprs '}'     { $$ = tl_build_set(ps, @$, $2); }
    ;
comp: FOR targets IN pipe
        { $$ = LIST1(NEW(COMP_FOR, comp_for, @$, .target = $2,
                         .iter = $4)); }
    | comp FOR targets IN pipe
        { $$ = APPEND($1, NEW(COMP_FOR, comp_for, BETWEEN(@2, @5),
                              .target = $3, .iter = $5)); }
    | comp IF pipe
        { $$ = APPEND($1, NEW(COMP_IF, comp_if, BETWEEN(@2, @3),
                              .cond = $3)); }
    ;
pairs: pair             { $$ = LIST1($1); }
    | pairs ',' pair    { $$ = APPEND($1, $3); }
    ;
pair: expr ':' expr     { $$ = NEW(PAIR, pair, @$, .key = $1, .value = $3); }
    | POW or            { $$ = NEW(DOUBLE_STAR, double_star, @$,
                                   .value = $2); }
    ;
args: %empty            { $$ = NOTHING; }
    | alist             { $$ = tl_build_args(ps, $1); }
    | alist ','         { $$ = tl_build_args(ps, $1); }
    ;
alist: arg              { $$ = LIST1($1); }
    | alist ',' arg     { $$ = APPEND($1, $3); }
    ;
arg: expr
    | expr comp         { $$ = tl_build_generator(ps, @$, $1, $2); }
    | ident '=' expr
        { $$ = NEW(KEYWORD, keyword, @$, .name = $1, .value = $3); }
    | '*' expr          { $$ = NEW(STAR, star, @$, .value = $2); }
    | POW expr          { $$ = NEW(DOUBLE_STAR, double_star, @$,
                                   .value = $2); }
    ;
subs: slist ;
slist: sub              { $$ = LIST1($1); }
    | slist ',' sub     { $$ = APPEND($1, $3); }
    ;
sub: expr
    | optx ':' optx
        { $$ = NEW(SLICE, slice, @$, .lo = $1, .hi = $3); }
    | optx ':' optx ':' optx
        { $$ = NEW(SLICE, slice, @$, .lo = $1, .hi = $3, .step = $5); }
    ;
optx: %empty            { $$ = NULL; }
    | expr
    ;
fparts: %empty          { $$ = NOTHING; }
    | fparts fpart      { $$ = APPEND($1, $2); }
    ;
fpart: FTEXT            { $$ = NEW(STR, str, @$, .text = $1); }
    | FOPEN exprs FCLOSE
        { $$ = NEW(FPART, fpart, @$, .value = $2); }
    | FOPEN exprs FCOLON spec FCLOSE
        { $$ = NEW(FPART, fpart, @$, .value = $2, .spec = $4); }
    ;
spec: fparts ;

/* ---- types and dimensions ---- */
type: tyname | tytuple | tyfn ;
tyfn: FN '(' ')' ARROW type
        { $$ = NEW(TYPE_FN, type_fn, @$, .params = NOTHING, .ret = $5); }
    | FN '(' tylist ')' ARROW type
        { $$ = NEW(TYPE_FN, type_fn, @$, .params = $3, .ret = $6); }
    ;
tyname: tybase
    | tybase '?'        { $$ = NEW(TYPE_OPT, type_opt, @$, .type = $1); }
    ;
tybase: qexpr           { $$ = tl_build_type(ps, @$, $1, NOTHING, false); }
    | qexpr '[' ']'     { $$ = tl_build_type(ps, @$, $1, NOTHING, true); }
    | qexpr '[' tyargs ']' { $$ = tl_build_type(ps, @$, $1, $3, true); }
    | NONE              { $$ = tl_build_type(ps, @$, NEW(NONE, none, @1),
                                             NOTHING, false); }
    ;
tytuple: '(' type ',' tylist ')'
        { $$ = tl_build_type_tuple(ps, @$, $2, $4); }
    ;
tylist: type            { $$ = LIST1($1); }
    | tylist ',' type   { $$ = APPEND($1, $3); }
    ;
tyargs: tyarg           { $$ = LIST1($1); }
    | tyargs ',' tyarg  { $$ = APPEND($1, $3); }
    ;
tyarg: dim
    | tyfn
    | ELLIPSIS          { $$ = NEW(DIM_REST, dim_rest, @$); }
    | '*' ident         { $$ = NEW(DIM_PACK, dim_pack, @$, .name = $2); }
    ;
dim: dmul
    | dim '+' dmul      { $$ = tl_build_dim(ps, @$, TL_OP_ADD, $1, $3); }
    | dim '-' dmul      { $$ = tl_build_dim(ps, @$, TL_OP_SUB, $1, $3); }
    ;
dmul: datom
    | dmul '*' datom    { $$ = tl_build_dim(ps, @$, TL_OP_MUL, $1, $3); }
    | dmul DSLASH datom { $$ = tl_build_dim(ps, @$, TL_OP_FLOORDIV, $1,
                                            $3); }
    | dmul '%' datom    { $$ = tl_build_dim(ps, @$, TL_OP_MOD, $1, $3); }
    ;
datom: INT              { $$ = NEW(INT, int, @$, .value = $1,
                                   .wide = $1 == INT64_MIN); }
    | '-' INT           { $$ = tl_build_negate(ps, @$,
                                               NEW(INT, int, @2, .value = $2,
                                                   .wide = $2 ==
                                                           INT64_MIN)); }
    | tyname
    | tytuple
    | '(' dim ')'       { $$ = tl_build_paren(ps, @$, $2); }
    ;
qexpr: ident            { $$ = tl_build_name(ps, @1, $1); }
    | qexpr '.' ident
        { $$ = NEW(ATTR, attr, @$, .object = $1, .name = $3,
                   .name_at = @3); }
    ;
qual: ident             { $$ = tl_build_path(ps, (tl_path){0}, $1); }
    | qual '.' ident    { $$ = tl_build_path(ps, $1, $3); }
    ;
ident: NAME | MODULE | RECORD | PARAM | BUFFER | GRAD | WRT | WHERE | TEST ;
%%

/* The token whose symbol this is. */
static int token_of(yysymbol_kind_t symbol)
{
    for (int token = 0; token <= YYMAXUTOK; token++) {
        if (YYTRANSLATE(token) == symbol) {
            return token;
        }
    }
    return 0;
}

static int yyreport_syntax_error(const yypcontext_t *context, tl_parser *ps)
{
    enum { MAX_WANTED = 64 };
    yysymbol_kind_t symbols[MAX_WANTED];
    int wanted[MAX_WANTED];
    int n = yypcontext_expected_tokens(context, symbols, MAX_WANTED);

    if (n < 0) {
        return n;
    }
    for (int i = 0; i < n; i++) {
        wanted[i] = token_of(symbols[i]);
    }
    tl_syntax_error(ps, ps->prev.kind, wanted, n);
    return 0;
}
