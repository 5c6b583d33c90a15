/* scope.h - names to slots, last reads, effects.
 *
 * tl_resolve walks the tree of a unit and fills in every tl_ref_info and
 * tl_funcdef (ast.h).  Rules, from LANGUAGE.md 4:
 *
 * - a name that a function binds anywhere (parameter, assignment, for, with,
 *   catch, nested fn) is LOCAL in all of it; reading it unset is E0202, found
 *   by the evaluator;
 * - a nested fn or lambda captures values when it is made; a default is
 *   evaluated at each call that needs it, in the frame of the callee;
 * - the top level binds GLOBALs, which functions look up at each call; loop
 *   variables of an enclosing top-level `for` are captured as well;
 * - in a module the order is locals, fields, enclosing functions, globals,
 *   built-in names.  A plain assignment to the name of a cell is an error;
 * - comprehension variables are seen in their comprehension only; slots are
 *   never shared;
 * - an upper-case name in the shapes of a signature is a local of that
 *   function, bound by the call.  In annotations inside a body, and in `as`,
 *   an upper-case name that no enclosing function has is a new local: bound
 *   where the slot is unset, compared where it is set. */
#ifndef TL_LANG_SCOPE_H
#define TL_LANG_SCOPE_H

#include "lang/parse.h"
#include "runtime/base/map.h"

/* The names of a file's top level, or of a REPL session: a table that only
 * grows, and outlives units. */
typedef struct tl_globals {
    tl_map index; /* tl_sym -> slot + 1 */
    struct {
        const tl_sym **items;
        size_t len, cap;
    } names;
} tl_globals;

void tl_globals_init(tl_globals *globals);
void tl_globals_fini(tl_globals *globals);

/* Slot of `name`, or -1. */
int64_t tl_globals_find(const tl_globals *globals, const tl_sym *name);

/* Slot of `name`, added if it is new. */
TL_MUST_USE tl_status tl_globals_add(tl_globals *globals, const tl_sym *name,
                                     uint32_t *slot, tl_diag *diag);

/* The built-in names, which belong to the evaluator. */
typedef struct tl_builtins {
    void *arg;
    bool (*has)(void *arg, const tl_sym *name);
    /* tl_effect bits of calling it; NULL: none have any. */
    unsigned (*effects)(void *arg, const tl_sym *name);
    /* for "did you mean"; may be NULL */
    const char *const *names;
    size_t nnames;
} tl_builtins;

/* Resolve `unit`.  Its top-level names are added to `globals`, and taken out
 * again if this fails, so that a REPL session is as it was. */
TL_MUST_USE tl_status tl_resolve(tl_unit *unit, tl_lang *lang,
                                 tl_globals *globals,
                                 const tl_builtins *builtins, tl_diag *diag);

#endif
