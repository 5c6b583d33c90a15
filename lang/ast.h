/* ast.h - the syntax tree.
 *
 * A tree belongs to its unit (parse.h) and lives in the unit's arena: nobody
 * frees a node.  Every node begins with a tl_ast: its kind, its nesting
 * depth and the bytes that it covers.  The kinds, their fields and the order
 * in which they are evaluated stand in ast.def; the structure of KIND is
 * tl_ast_<type>:
 *
 *     case TL_AST_CALL: {
 *         const tl_ast_call *call = TL_AST(call, node);
 *         ... call->callee, call->args.items[i] ...
 *
 * The parser makes the tree, tl_resolve (scope.h) fills in the tl_ref_info of
 * each name, and a tl_funcdef for each function-like node.  After that a tree
 * never changes, and any number of threads may read it.
 *
 * A tree is at most TL_AST_MAX_DEPTH deep (E0110), not counting BLOCK, ARM
 * and argument nodes, so walkers may recurse: at most about four times as
 * many C frames. */
#ifndef TL_LANG_AST_H
#define TL_LANG_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/base/diag.h"
#include "runtime/base/intern.h"

#define TL_AST_MAX_DEPTH 1000

typedef enum tl_ast_kind {
#define NODE(KIND, type, fields) TL_AST_##KIND,
#include "lang/ast.def"
    TL_AST_COUNT
} tl_ast_kind;

typedef enum tl_oper {
#define OPERATOR(NAME, text) TL_OP_##NAME,
#include "lang/ast.def"
    TL_OPER_COUNT
} tl_oper;

typedef struct tl_ast {
    uint8_t kind;   /* tl_ast_kind */
    bool paren;     /* an expression written in parentheses */
    uint16_t depth; /* of the tree below: 1 for a leaf */
    tl_span span;
} tl_ast;

typedef struct tl_kids {
    tl_ast **items;
    uint32_t len;
} tl_kids;

typedef struct tl_text {
    const char *s; /* NUL-terminated; may hold NULs as well */
    size_t len;
} tl_text;

/* `a.b.c` of an import. */
typedef struct tl_path {
    const tl_sym **names;
    uint32_t len;
} tl_path;

/* ---- what tl_resolve knows about a name -------------------------------- */

typedef enum tl_ref_kind {
    TL_REF_NONE,    /* not resolved (yet) */
    TL_REF_LOCAL,   /* slot `index` of the running frame; may be unset */
    TL_REF_CAPTURE, /* value `index` captured when the function was made */
    TL_REF_SELF_FN, /* the running function itself (a nested fn's own name) */
    TL_REF_GLOBAL,  /* slot `index` of the unit's tl_globals; may be unset */
    TL_REF_FIELD,   /* field `index` of tl_moddef.fields, of the module `self`
                       found by ref.self */
    TL_REF_BUILTIN  /* name in the table of built-in names */
} tl_ref_kind;

/* How a field came about; decides what may be done with it. */
typedef enum tl_field_class {
    TL_FIELD_HEADER,    /* header parameter: constant, or child */
    TL_FIELD_CONSTANT,  /* `f = e`: constant, or child */
    TL_FIELD_PARAM,     /* `param f: T = e`: trained cell */
    TL_FIELD_BUFFER,    /* `buffer f: T = e`: saved cell */
    TL_FIELD_HOST,      /* `f: int|float|bool|tree = e`: host cell */
    TL_FIELD_METHOD     /* `fn f(...)` */
} tl_field_class;

#define TL_FIELD_IS_CELL(c)                                                  \
    ((c) == TL_FIELD_PARAM || (c) == TL_FIELD_BUFFER || (c) == TL_FIELD_HOST)

/* tl_ref_info.self when `self` is slot 0 of the running frame. */
#define TL_SELF_SLOT UINT32_MAX

typedef struct tl_ref_info {
    uint8_t kind;        /* tl_ref_kind */
    uint8_t field_class; /* FIELD only */
    /* LOCAL reads: on no path is the slot read again before it is written,
     * so the reader may move the value out of the slot.  On the root name of
     * a target x[i]... (indices only), and on a name that is the target of
     * an AUG: the slot may be empty during the write, which puts the new
     * value back.  Inside `try` what the handler, or the code after it,
     * reads is never marked; nor are names in types, parameters' defaults
     * and conditions, dimension names, `self`, grad targets, the receiver of
     * a call x.m(...) that is a statement, and anything in a function that
     * mentions breakpoint. */
    bool last;
    uint32_t index;
    uint32_t self; /* FIELD: capture that holds `self`, or TL_SELF_SLOT */
} tl_ref_info;

/* Slots of a function, in ascending order. */
typedef struct tl_slots {
    const uint32_t *items;
    uint32_t len;
} tl_slots;

/* What a function captures when it is made: `outer` is resolved in the
 * enclosing function (LOCAL, CAPTURE, SELF_FN; GLOBAL for a loop variable of
 * the top level).  An unset slot is captured as unset. */
typedef struct tl_capture {
    const tl_sym *name;
    tl_ref_info outer;
} tl_capture;

typedef struct tl_fielddef {
    const tl_sym *name;
    tl_field_class class_;
    bool header;         /* a header parameter has this name too */
    const tl_ast *decl; /* PARAM, CELL, DECL, ASSIGN's NAME, or FN */
    const tl_ast *type; /* annotation, or NULL */
} tl_fielddef;

/* The fields of a module in the order of their declarations, header
 * parameters first.  A field that takes the name of a header parameter takes
 * its place in the table: there is one entry, where the field is declared,
 * and class_ is that of the field. */
typedef struct tl_moddef {
    const tl_sym *name;
    tl_fielddef *fields;
    uint32_t nfields;
} tl_moddef;

typedef enum tl_func_kind {
    TL_FUNC_FN,      /* fn at top level, or nested */
    TL_FUNC_METHOD,  /* fn of a module: slot 0 is self */
    TL_FUNC_LAMBDA,
    TL_FUNC_MODULE,  /* a module's constructor: slot 0 is self, then header
                        parameters; names declared by the body so far are
                        FIELDs, header parameters LOCALs until a field takes
                        the name */
    TL_FUNC_RECORD,  /* a record's constructor: the fields are parameters */
    TL_FUNC_TEST,
    TL_FUNC_UNIT     /* top level: names are GLOBALs; slots hold comprehension
                        variables and dimension names only */
} tl_func_kind;

/* Effects, a bit set.  Inferred for what is known statically. */
typedef enum tl_effect {
    TL_EFFECT_RNG = 1,    /* draws random numbers */
    TL_EFFECT_STATE = 2,  /* writes cells */
    TL_EFFECT_HOST = 4,   /* files, clock, standard output */
    TL_EFFECT_UNKNOWN = 8 /* calls a value that is not known statically */
} tl_effect;

/* What `@...` said. */
typedef struct tl_marks {
    bool compile, checkpoint, no_grad, main;
    bool fallback;             /* compile(fallback=true) */
    const char *mode;          /* compile(mode="..."), or NULL */
    const tl_sym **static_;    /* compile(static=[T, ...]) */
    uint32_t nstatic;
} tl_marks;

/* A function-like thing: all that a call needs, whatever its node. */
typedef struct tl_funcdef {
    tl_func_kind kind;
    const tl_sym *name;    /* NULL for a lambda, test, unit */
    const tl_ast *node;   /* FN, LAMBDA, MODULE, RECORD, TEST, UNIT */
    struct tl_funcdef *outer; /* enclosing one; NULL for a unit */
    tl_moddef *module;     /* methods, constructors and what is nested in
                              them: whose fields are in scope; or NULL */

    tl_kids params;           /* PARAM nodes; ref.index is the slot */
    const tl_ast *ret;       /* return type, or NULL */
    tl_kids where;            /* conditions */
    const tl_ast *body;      /* BLOCK; an expression if expr_body;
                                 NULL for a record */
    const tl_ast *backward;  /* BACKWARD, or NULL */
    bool expr_body;

    uint32_t nslots;
    const tl_sym **slot_names; /* NULL entry: a hidden slot */
    tl_capture *captures;
    uint32_t ncaptures;

    /* Dimension names that the signature binds (upper-case names and packs):
     * slots, in order of first appearance. */
    uint32_t *dims;
    uint32_t ndims;
    /* Slots of the forward part that the backward clause reads. */
    uint32_t *saved;
    uint32_t nsaved;

    tl_marks marks;
    const tl_text *doc; /* docstring, or NULL */
    unsigned effects;   /* tl_effect bits */
    bool has_grad;       /* contains a grad block (not in nested functions) */
    bool has_breakpoint; /* mentions breakpoint: no read is marked last */
    bool has_try;
    bool may_return; /* a return stands in an `if` or a loop (live.c) */
} tl_funcdef;

/* ---- structures of the kinds, from ast.def ----------------------------- */

#define KID(f) tl_ast *f;
#define KIDS(f) tl_kids f;
#define SYM(f) const tl_sym *f;
#define TEXT(f) tl_text f;
#define OP(f) tl_oper f;
#define INT(f) int64_t f;
#define FLOAT(f) double f;
#define FLAG(f) bool f;
#define REF(f) tl_ref_info f;
#define RAW(t, f) t f;
#define NODE(KIND, type, fields)                                             \
    typedef struct tl_ast_##type {                                           \
        tl_ast base;                                                        \
        fields                                                               \
    } tl_ast_##type;
#include "lang/ast.def"
#undef KID
#undef KIDS
#undef SYM
#undef TEXT
#undef OP
#undef INT
#undef FLOAT
#undef FLAG
#undef REF
#undef RAW

/* `node` as a tl_ast_<type> *; the kind is not checked. */
#define TL_AST(type, node) ((tl_ast_##type *)(node))

/* ---- uniform access ----------------------------------------------------- */

typedef enum tl_ast_field_kind {
    TL_AST_F_KID,
    TL_AST_F_KIDS,
    TL_AST_F_SYM,
    TL_AST_F_TEXT,
    TL_AST_F_OP,
    TL_AST_F_INT,
    TL_AST_F_FLOAT,
    TL_AST_F_FLAG,
    TL_AST_F_REF,
    TL_AST_F_RAW
} tl_ast_field_kind;

typedef struct tl_ast_field {
    const char *name;
    uint16_t offset; /* in the node's structure */
    uint8_t kind;    /* tl_ast_field_kind */
} tl_ast_field;

typedef struct tl_ast_info {
    const char *name; /* "call" */
    size_t size;
    const tl_ast_field *fields;
    size_t nfields;
} tl_ast_info;

/* Description of a kind; never NULL for a valid kind. */
const tl_ast_info *tl_ast_info_get(tl_ast_kind kind);

/* The operator as written: "+", "not in". */
const char *tl_op_text(tl_oper op);

/* Call `visit` for each child in field order (NULL children are left out);
 * stops, and returns false, when it returns false. */
typedef bool tl_ast_visit_fn(void *arg, tl_ast *child);
bool tl_ast_children(const tl_ast *node, tl_ast_visit_fn *visit, void *arg);

/* Append the tree as an S-expression, indented, for tests:
 * (binary + (name x) (int 1)).  With `refs`, resolved names show where they
 * live: (name x local:0 last). */
void tl_ast_print(const tl_ast *node, bool refs, tl_buf *out);

#endif
