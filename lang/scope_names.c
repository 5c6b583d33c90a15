/* scope_names.c - slots, captures, globals, and what a name means.
 *
 * Look-up goes from the innermost function outward.  A LOCAL of an enclosing
 * function becomes a capture of every function in between; a FIELD of an
 * enclosing module needs `self`, which is captured in the same way. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lang/scope_impl.h"

#include "lang/habits.h"
#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include "runtime/base/vec.h"

/* ---- errors -------------------------------------------------------------- */

void tl_scope_keep(tl_resolver *r, tl_status status)
{
    r->status = r->status ? r->status : status;
}

void tl_scope_error(tl_resolver *r, tl_code code, tl_span at, const char *fmt,
                    ...)
{
    char message[512];
    va_list ap;

    if (r->status == TL_ERR_MEMORY) {
        return; /* what lacks may be what could not be added */
    }
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    tl_scope_keep(r, tl_fail_at(r->diag, code, at, "%s", message));
}

static void out_of_memory(tl_resolver *r)
{
    tl_scope_keep(r, tl_fail_memory(r->diag, "the resolver",
                                    tl_mem_failed_size()));
}

/* ---- globals ------------------------------------------------------------- */

void tl_globals_init(tl_globals *globals)
{
    *globals = (tl_globals){0};
    tl_map_init(&globals->index);
}

void tl_globals_fini(tl_globals *globals)
{
    tl_map_fini(&globals->index);
    tl_free(globals->names.items);
    tl_globals_init(globals);
}

int64_t tl_globals_find(const tl_globals *globals, const tl_sym *name)
{
    return (int64_t)(uintptr_t)tl_map_get(&globals->index, name, NULL) - 1;
}

tl_status tl_globals_add(tl_globals *globals, const tl_sym *name,
                         uint32_t *slot, tl_diag *diag)
{
    int64_t found = tl_globals_find(globals, name);

    if (found < 0) {
        found = (int64_t)globals->names.len;
        TL_TRY(TL_VEC_PUSH(&globals->names, name, diag));
        if (!tl_map_set(&globals->index, name,
                        (void *)(uintptr_t)(found + 1))) {
            globals->names.len--;
            return tl_fail_memory(diag, "a name", sizeof(tl_map_entry));
        }
    }
    *slot = (uint32_t)found;
    return TL_OK;
}

/* ---- scopes -------------------------------------------------------------- */

tl_scope *tl_scope_open(tl_resolver *r, tl_scope *outer, tl_func_kind kind,
                        const tl_ast *node, const tl_sym *name)
{
    tl_scope *s = TL_ARENA_NEW(&r->scratch, tl_scope);
    tl_funcdef *func = TL_ARENA_NEW(&r->unit->arena, tl_funcdef);

    if (!s || !func) {
        out_of_memory(r);
        return NULL;
    }
    tl_map_init(&s->vars);
    tl_map_init(&s->dims);
    s->func = func;
    s->outer = outer;
    func->kind = kind;
    func->node = node;
    func->name = name;
    func->outer = outer ? outer->func : NULL;
    tl_scope_keep(r, TL_VEC_PUSH(&r->funcs, func, r->diag));
    return s;
}

/* An array of the scratch vectors, for good. */
static void *keep_array(tl_resolver *r, const void *items, size_t len,
                        size_t size)
{
    void *copy;

    if (len == 0) {
        return NULL;
    }
    copy = tl_arena_array(&r->unit->arena, len, size);
    if (!copy) {
        out_of_memory(r);
        return NULL;
    }
    memcpy(copy, items, len * size);
    return copy;
}

void tl_scope_close(tl_resolver *r, tl_scope *s)
{
    tl_funcdef *func = s->func;

    func->slot_names = keep_array(r, s->slots.items, s->slots.len,
                                  sizeof(*s->slots.items));
    func->nslots = func->slot_names ? (uint32_t)s->slots.len : 0;
    func->captures = keep_array(r, s->captures.items, s->captures.len,
                                sizeof(*s->captures.items));
    func->ncaptures = func->captures ? (uint32_t)s->captures.len : 0;
    tl_free(s->slots.items);
    tl_free(s->captures.items);
    tl_free(s->inner.items);
    tl_map_fini(&s->vars);
    tl_map_fini(&s->dims);
}

uint32_t tl_scope_slot(tl_resolver *r, tl_scope *s, const tl_sym *name)
{
    uint32_t slot = (uint32_t)s->slots.len;

    tl_scope_keep(r, TL_VEC_PUSH(&s->slots, name, r->diag));
    return slot;
}

tl_var *tl_scope_find(const tl_scope *s, const tl_sym *name)
{
    return tl_map_get(&s->vars, name, NULL);
}

static tl_var *add_var(tl_resolver *r, tl_map *map, const tl_sym *name,
                       tl_span at)
{
    tl_var *var = TL_ARENA_NEW(&r->scratch, tl_var);

    if (!var || !tl_map_set(map, name, var)) {
        out_of_memory(r);
        return NULL;
    }
    var->name = name;
    var->at = at;
    return var;
}

tl_var *tl_scope_bind(tl_resolver *r, tl_scope *s, const tl_sym *name,
                      tl_span at, unsigned binds)
{
    tl_var *var = tl_scope_find(s, name);

    if (!var) {
        var = add_var(r, &s->vars, name, at);
        if (!var) {
            return NULL;
        }
        if (s->func->kind == TL_FUNC_UNIT) {
            tl_scope_keep(r, tl_globals_add(r->globals, name, &var->slot,
                                            r->diag));
        } else {
            var->slot = tl_scope_slot(r, s, name);
        }
    }
    var->binds |= binds;
    return var;
}

void tl_scope_push(tl_resolver *r, tl_scope *s, const tl_var *var)
{
    tl_scope_keep(r, TL_VEC_PUSH(&s->inner, *var, r->diag));
}

tl_ref_info tl_scope_dim(tl_resolver *r, tl_scope *s, const tl_sym *name,
                         tl_span at)
{
    bool unit = s->func->kind == TL_FUNC_UNIT;
    tl_var *var = unit ? tl_map_get(&s->dims, name, NULL)
                       : tl_scope_find(s, name);

    if (!var) {
        var = add_var(r, unit ? &s->dims : &s->vars, name, at);
        if (!var) {
            return (tl_ref_info){0};
        }
        var->slot = tl_scope_slot(r, s, name);
        var->binds = TL_BIND_OTHER;
    }
    return (tl_ref_info){.kind = TL_REF_LOCAL, .index = var->slot};
}

bool tl_scope_is_upper(const tl_sym *name)
{
    const unsigned char *s = (const unsigned char *)name->text;

    return (s[0] >= 'A' && s[0] <= 'Z') ||
           (s[0] == 0xce && s[1] >= 0x91 && s[1] <= 0xa9);
}

/* ---- look-up ------------------------------------------------------------- */

int64_t tl_moddef_find(const tl_moddef *module, const tl_sym *name)
{
    for (uint32_t i = 0; module && i < module->nfields; i++) {
        if (module->fields[i].name == name) {
            return i;
        }
    }
    return -1;
}

/* Modules and records are no closures: what they are made of must be the same
 * wherever they are made, loaded or copied. */
static void refuse_capture(tl_resolver *r, const tl_scope *s,
                           const tl_sym *name)
{
    bool module = s->func->kind == TL_FUNC_MODULE;
    tl_span at = s->func->node->span;

    if (module || s->func->kind == TL_FUNC_RECORD) {
        at.end = at.start + 6; /* the word itself */
        tl_scope_error(r, TL_E0116, at,
                       "a %s cannot use the variable `%s` around it",
                       module ? "module" : "record", name->text);
        tl_diag_help(r->diag, "make it a parameter, or move the %s to the "
                              "top level",
                     module ? "module" : "record");
    }
}

/* The index under which `s` captures what `outer` is outside. */
static uint32_t capture(tl_resolver *r, tl_scope *s, const tl_sym *name,
                        tl_ref_info outer)
{
    for (size_t i = 0; i < s->captures.len; i++) {
        const tl_ref_info *have = &s->captures.items[i].outer;

        if (have->kind == outer.kind && have->index == outer.index) {
            return (uint32_t)i;
        }
    }
    refuse_capture(r, s, name);
    tl_scope_keep(r, TL_VEC_PUSH(&s->captures,
                                 ((tl_capture){.name = name, .outer = outer}),
                                 r->diag));
    return s->captures.len ? (uint32_t)s->captures.len - 1 : 0;
}

/* A comprehension or loop variable around this place, or NULL. */
static const tl_var *find_inner(const tl_scope *s, const tl_sym *name)
{
    for (size_t i = s->inner.len; i > 0; i--) {
        if (s->inner.items[i - 1].name == name) {
            return &s->inner.items[i - 1];
        }
    }
    return NULL;
}

static tl_ref_info local(uint32_t slot)
{
    return (tl_ref_info){.kind = TL_REF_LOCAL, .index = slot};
}

static tl_ref_info field_ref(const tl_moddef *module, int64_t i)
{
    return (tl_ref_info){.kind = TL_REF_FIELD,
                         .field_class = (uint8_t)module->fields[i].class_,
                         .index = (uint32_t)i,
                         .self = TL_SELF_SLOT};
}

/* A field that can be seen from this method or constructor. */
static tl_ref_info look_field(const tl_scope *s, const tl_sym *name)
{
    const tl_moddef *module = s->func->module;
    bool method = s->func->kind == TL_FUNC_METHOD;
    int64_t i = -1;

    if (method || s->func->kind == TL_FUNC_MODULE) {
        i = tl_moddef_find(module, name);
    }
    if (i < 0 || (!method && !(s->made && s->made[i]))) {
        return (tl_ref_info){0};
    }
    return field_ref(module, i);
}

/* What the top level knows. */
static tl_ref_info look_global(tl_resolver *r, const tl_scope *s,
                               const tl_sym *name)
{
    const tl_var *dim = tl_map_get(&s->dims, name, NULL);
    int64_t slot;

    if (dim) {
        return local(dim->slot);
    }
    slot = tl_globals_find(r->globals, name);
    if (slot >= 0) {
        return (tl_ref_info){.kind = TL_REF_GLOBAL, .index = (uint32_t)slot};
    }
    if (r->builtins->has(r->builtins->arg, name)) {
        return (tl_ref_info){.kind = TL_REF_BUILTIN};
    }
    return (tl_ref_info){0};
}

/* In the function itself, not in those around it. */
static tl_ref_info look_here(tl_resolver *r, const tl_scope *s,
                             const tl_sym *name)
{
    const tl_var *inner = find_inner(s, name), *var;
    bool unit = s->func->kind == TL_FUNC_UNIT;
    tl_ref_info ref;

    if (inner) {
        return (tl_ref_info){.kind = inner->binds & TL_BIND_LOOP
                                         ? TL_REF_GLOBAL
                                         : TL_REF_LOCAL,
                             .index = inner->slot};
    }
    if (unit) {
        return look_global(r, s, name);
    }
    if (s->func->kind == TL_FUNC_MODULE) {
        ref = look_field(s, name);
        if (ref.kind != TL_REF_NONE) {
            return ref;
        }
    }
    var = tl_scope_find(s, name);
    if (var) {
        return local(var->slot);
    }
    if (s->func->kind == TL_FUNC_FN && s->func->name == name &&
        s->outer->func->kind != TL_FUNC_UNIT) {
        return (tl_ref_info){.kind = TL_REF_SELF_FN};
    }
    return look_field(s, name);
}

/* True if a name of the top level is a loop variable around this place:
 * those are captured, other globals are looked up. */
static bool is_loop_variable(const tl_scope *s, const tl_sym *name)
{
    return s->func->kind == TL_FUNC_UNIT && find_inner(s, name);
}

tl_ref_info tl_scope_look_outside(tl_resolver *r, tl_scope *s,
                                  const tl_sym *name)
{
    tl_scope *outer = s->outer;
    tl_ref_info ref;

    if (!outer) {
        return (tl_ref_info){0};
    }
    /* A method sees its module's fields, not the constructor's frame. */
    ref = s->func->kind == TL_FUNC_METHOD
              ? tl_scope_look_outside(r, outer, name)
              : tl_scope_look(r, outer, name);
    if (ref.kind == TL_REF_FIELD) {
        tl_ref_info self = {.kind = TL_REF_LOCAL};

        if (ref.self != TL_SELF_SLOT) {
            self = (tl_ref_info){.kind = TL_REF_CAPTURE, .index = ref.self};
        }
        ref.self = capture(r, s, r->self, self);
        return ref;
    }
    if (ref.kind == TL_REF_LOCAL || ref.kind == TL_REF_CAPTURE ||
        ref.kind == TL_REF_SELF_FN ||
        (ref.kind == TL_REF_GLOBAL && is_loop_variable(outer, name))) {
        return (tl_ref_info){.kind = TL_REF_CAPTURE,
                             .index = capture(r, s, name, ref)};
    }
    return ref;
}

tl_ref_info tl_scope_look(tl_resolver *r, tl_scope *s, const tl_sym *name)
{
    tl_ref_info ref = look_here(r, s, name);

    return ref.kind != TL_REF_NONE ? ref : tl_scope_look_outside(r, s, name);
}

/* ---- undefined names ----------------------------------------------------- */

typedef struct candidates {
    const char **items;
    size_t len, cap;
} candidates;

static bool add_map(candidates *c, const tl_map *map, tl_diag *diag)
{
    for (size_t i = 0; i < map->len; i++) {
        const tl_sym *name = map->entries[i].key;

        if (name && TL_VEC_PUSH(c, name->text, diag) != TL_OK) {
            return false;
        }
    }
    return true;
}

static bool add_scope(candidates *c, const tl_scope *s, tl_diag *diag)
{
    const tl_moddef *module = s->func->module;
    bool ok = add_map(c, &s->vars, diag) && add_map(c, &s->dims, diag);

    for (uint32_t i = 0; ok && module && i < module->nfields; i++) {
        ok = TL_VEC_PUSH(c, module->fields[i].name->text, diag) == TL_OK;
    }
    for (size_t i = 0; ok && i < s->inner.len; i++) {
        ok = TL_VEC_PUSH(c, s->inner.items[i].name->text, diag) == TL_OK;
    }
    return ok;
}

/* The defined name nearest to `name`; its text lives in a table. */
static const char *nearest(tl_resolver *r, const tl_scope *s,
                           const tl_sym *name)
{
    candidates c = {0};
    const char *found = NULL;
    bool ok = true;

    for (; ok && s; s = s->outer) {
        ok = add_scope(&c, s, r->diag);
    }
    for (size_t i = 0; ok && i < r->globals->names.len; i++) {
        ok = TL_VEC_PUSH(&c, r->globals->names.items[i]->text, r->diag) ==
             TL_OK;
    }
    for (size_t i = 0; ok && i < r->builtins->nnames; i++) {
        ok = TL_VEC_PUSH(&c, r->builtins->names[i], r->diag) == TL_OK;
    }
    if (ok) {
        found = tl_nearest(name->text, c.items, c.len);
    } else {
        tl_scope_keep(r, TL_ERR_MEMORY);
    }
    tl_free(c.items);
    return found;
}

/* The first letter of `name` that looks like an ASCII one, when it has ASCII
 * letters as well; 0 if none. */
static uint32_t lookalike(const tl_sym *name)
{
    if (!strpbrk(name->text, "abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
        return 0;
    }
    for (size_t i = 0; i < name->len;) {
        uint32_t cp;
        size_t n = tl_utf8_decode(name->text + i, name->len - i, &cp);

        if (cp >= 0x80 && tl_habit_lookalike(cp)) {
            return cp;
        }
        i += n ? n : 1;
    }
    return 0;
}

static void help_undefined(tl_resolver *r, const tl_scope *s,
                           const tl_sym *name)
{
    const char *near = nearest(r, s, name);

    if (tl_habit_library(name->text)) {
        tl_diag_help(r->diag, "a module of the library: `import %s`",
                     name->text);
    } else if (near) {
        tl_diag_help(r->diag, "did you mean `%s`?", near);
    }
}

void tl_scope_undefined(tl_resolver *r, const tl_scope *s,
                        const tl_sym *name, tl_span at)
{
    const char *habit = tl_habit_name(name->text);
    uint32_t cp = lookalike(name);
    bool found;

    if (r->status == TL_ERR_MEMORY) {
        return; /* the name may be one that could not be added */
    }
    tl_map_get(&r->reported, name, &found);
    if (found) {
        tl_scope_keep(r, TL_ERR_REJECTED);
        return;
    }
    if (!tl_map_set(&r->reported, name, NULL)) {
        out_of_memory(r);
        return;
    }
    if (habit) {
        tl_scope_error(r, TL_E0117, at, "`%s` is not a name of tlang",
                       name->text);
        tl_diag_help(r->diag, "%s", habit);
    } else if (name == r->self) {
        tl_scope_error(r, TL_E0201, at, "`self` is not defined here");
        tl_diag_help(r->diag, "only the methods and the body of a module "
                              "have `self`");
    } else if (cp) {
        tl_scope_error(r, TL_E0113, at, "`%s` is not defined", name->text);
        tl_diag_help(r->diag, "contains U+%04X, which looks like `%s`",
                     (unsigned)cp, tl_habit_lookalike(cp));
    } else {
        tl_scope_error(r, TL_E0201, at, "`%s` is not defined", name->text);
        help_undefined(r, s, name);
    }
}
