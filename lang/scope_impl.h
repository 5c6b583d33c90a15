/* scope_impl.h - what the parts of the resolver share.  Private to lang/.
 *
 *   scope_collect.c  first walk: the names that statements bind
 *   scope.c          second walk: what is read, what may stand where
 *   scope_target.c   what is written
 *   scope_names.c    the tables: slots, captures, fields, globals; look-up
 *   scope_def.c      functions, records, tests: a scope for each
 *   scope_module.c   modules: their fields, their constructor
 *   marks.c          decorators
 *   live.c           last reads, one function at a time
 *   effects.c        effects, to a fixed point over the unit
 *
 * Each function-like node is walked twice: first its own statements for the
 * names that they bind, then everything in order, nested functions where they
 * stand. */
#ifndef TL_LANG_SCOPE_IMPL_H
#define TL_LANG_SCOPE_IMPL_H

#include "lang/scope.h"

/* How a variable was bound, for checks that need no types. */
enum {
    TL_BIND_LIST = 1,  /* a list display or comprehension */
    TL_BIND_DICT = 2,
    TL_BIND_STR = 4,
    TL_BIND_OTHER = 8, /* anything else */
    TL_BIND_AUG = 16,  /* `x += e`, which needs a value that is there */
    TL_BIND_DEF = 32,  /* fn, module, record */
    TL_BIND_LOOP = 64  /* loop variable of the top level: slot is a GLOBAL */
};

typedef struct tl_var {
    const tl_sym *name;
    uint32_t slot; /* LOCAL or GLOBAL */
    unsigned binds; /* TL_BIND bits */
    tl_span at;     /* first binding */
} tl_var;

typedef struct tl_scope {
    tl_funcdef *func;
    struct tl_scope *outer;
    tl_map vars; /* tl_sym -> tl_var: locals; for a unit, its globals */
    tl_map dims; /* of a unit: dimension names, which are locals */
    struct {
        const tl_sym **items;
        size_t len, cap;
    } slots;
    struct {
        tl_capture *items;
        size_t len, cap;
    } captures;
    /* Variables of the comprehensions and, in a unit, of the `for` loops
     * around this place, innermost last. */
    struct {
        tl_var *items;
        size_t len, cap;
    } inner;
    bool *made; /* a constructor: which fields the body has set so far */
    uint32_t loops;       /* around this place, inside the innermost grad */
    uint32_t outer_loops; /* outside of it */
    uint32_t grads;
} tl_scope;

typedef struct tl_resolver {
    tl_unit *unit;
    tl_lang *lang;
    tl_globals *globals;
    const tl_builtins *builtins;
    tl_diag *diag;
    tl_status status; /* of the first error */
    tl_arena scratch; /* variables */
    struct {
        tl_funcdef **items;
        size_t len, cap;
    } funcs; /* all of the unit, the unit's own first */
    struct {
        tl_ast **items;
        size_t len, cap;
    } tests;
    tl_map defs;     /* globals that only a definition binds: tl_var */
    tl_map reported; /* undefined names already reported */
    const tl_sym *self, *breakpoint;
} tl_resolver;

/* ---- errors -------------------------------------------------------------- */

/* Report; the walk goes on. */
void tl_scope_error(tl_resolver *r, tl_code code, tl_span at, const char *fmt,
                    ...) __attribute__((format(printf, 4, 5)));
/* Keep the status of a step that ran out of memory. */
void tl_scope_keep(tl_resolver *r, tl_status status);

/* ---- scope_names.c ------------------------------------------------------- */

tl_scope *tl_scope_open(tl_resolver *r, tl_scope *outer, tl_func_kind kind,
                        const tl_ast *node, const tl_sym *name);
/* Copy slots and captures to the function; frees the scope. */
void tl_scope_close(tl_resolver *r, tl_scope *s);

/* A new slot; NULL name: hidden. */
uint32_t tl_scope_slot(tl_resolver *r, tl_scope *s, const tl_sym *name);
/* The variable of this name in `s`, added if new, with one more way of being
 * bound.  NULL when out of memory. */
tl_var *tl_scope_bind(tl_resolver *r, tl_scope *s, const tl_sym *name,
                      tl_span at, unsigned binds);
tl_var *tl_scope_find(const tl_scope *s, const tl_sym *name);
/* A comprehension or loop variable, until the scope's `inner` is cut. */
void tl_scope_push(tl_resolver *r, tl_scope *s, const tl_var *var);
/* A dimension name that only this frame knows. */
tl_ref_info tl_scope_dim(tl_resolver *r, tl_scope *s, const tl_sym *name,
                         tl_span at);

/* Starts with an upper-case letter, ASCII or Greek: a dimension in shapes. */
bool tl_scope_is_upper(const tl_sym *name);

/* What `name` means at this place of `s`; kind NONE if nothing. */
tl_ref_info tl_scope_look(tl_resolver *r, tl_scope *s, const tl_sym *name);
/* The same as seen from the function around `s`. */
tl_ref_info tl_scope_look_outside(tl_resolver *r, tl_scope *s,
                                  const tl_sym *name);
/* Field of this name, or -1. */
int64_t tl_moddef_find(const tl_moddef *module, const tl_sym *name);
/* Report an undefined name, once. */
void tl_scope_undefined(tl_resolver *r, const tl_scope *s,
                        const tl_sym *name, tl_span at);

/* ---- the walks ----------------------------------------------------------- */

/* First walk: names that these statements bind. */
void tl_scope_collect(tl_resolver *r, tl_scope *s, const tl_ast *node);
/* Second walk. */
void tl_scope_walk(tl_resolver *r, tl_scope *s, tl_ast *node);
void tl_scope_walk_list(tl_resolver *r, tl_scope *s, const tl_kids *list);

/* ---- scope_target.c ------------------------------------------------------ */

/* A target; plain: of an assignment, which must not hide a cell. */
void tl_scope_target(tl_resolver *r, tl_scope *s, tl_ast *node, bool plain);
void tl_scope_aug(tl_resolver *r, tl_scope *s, tl_ast_aug *aug);
/* Variables of a `for` clause: new slots, seen until `inner` is cut. */
void tl_scope_push_targets(tl_resolver *r, tl_scope *s, tl_ast *node);
/* Variables of a loop of the top level: functions made in it capture them. */
void tl_scope_push_loop(tl_resolver *r, tl_scope *s, const tl_ast *node);

/* ---- scope_def.c, scope_module.c ----------------------------------------- */

/* The function-like node, which stands in `s`. */
void tl_scope_def(tl_resolver *r, tl_scope *s, tl_ast *node);
void tl_scope_module(tl_resolver *r, tl_scope *outer, tl_ast_module *node);
/* Where a definition in `s` is stored. */
tl_ref_info tl_scope_stored(const tl_scope *s, const tl_sym *name);
/* The string that a block begins with, or NULL. */
const tl_text *tl_scope_doc(const tl_ast *body);
/* Enter the parameters of s->func. */
void tl_scope_params(tl_resolver *r, tl_scope *s);
/* Enter the dimension names of its signature, which a call binds. */
void tl_scope_dims(tl_resolver *r, tl_scope *s);
/* Walk types, defaults, result and conditions. */
void tl_scope_signature(tl_resolver *r, tl_scope *s);

/* ---- marks.c ------------------------------------------------------------- */

/* Decode the decorators of the function whose scope is `s` into `func`; they
 * are reported where func is NULL (modules, records). */
void tl_marks_decode(tl_resolver *r, const tl_kids *decorators,
                     const tl_scope *s, tl_funcdef *func, bool top_level);

/* ---- live.c, effects.c --------------------------------------------------- */

/* Mark the last reads of the function's slots; `saved` goes to the arena. */
TL_MUST_USE tl_status tl_live_mark(tl_funcdef *func, tl_arena *arena,
                                   tl_diag *diag);
/* Infer the effects of all functions of the unit. */
TL_MUST_USE tl_status tl_effects_infer(tl_resolver *r);

#endif
