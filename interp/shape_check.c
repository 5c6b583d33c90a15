/* shape_check.c - when the shape pass runs, and what becomes of its findings.
 *
 * Passes are remembered by a 64-bit hash of the signature.  A hash that
 * stands for two signatures only means that one of them is checked by the
 * run instead of before it. */
#include "interp/dict.h"
#include "interp/shape_impl.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"

struct tl_sig_cache {
    uint64_t *hashes; /* open addressing; 0: free */
    size_t count, cap;
};

#define HASH_ITEMS 16 /* of a container; the rest counts as alike */
#define HASH_DEPTH 6

tl_status tl_shape_cache_init(tl_eval *ev)
{
    ev->checked = tl_calloc(1, sizeof(*ev->checked));
    return ev->checked != NULL
               ? TL_OK
               : tl_fail_memory(ev->diag, "the shape pass",
                                sizeof(*ev->checked));
}

void tl_shape_cache_clear(tl_eval *ev)
{
    if (ev->checked != NULL) {
        tl_free(ev->checked->hashes);
        *ev->checked = (struct tl_sig_cache){0};
    }
}

void tl_shape_cache_fini(tl_eval *ev)
{
    if (ev->checked != NULL) {
        tl_free(ev->checked->hashes);
        tl_free(ev->checked);
        ev->checked = NULL;
    }
}

/* Is `h` in the table?  Adds it if there is room; a table that cannot grow
 * only costs passes. */
static bool seen_or_add(struct tl_sig_cache *c, uint64_t h)
{
    h = h == 0 ? 1 : h;
    if (2 * c->count >= c->cap) {
        size_t cap = c->cap > 0 ? 2 * c->cap : 256;
        uint64_t *fresh = tl_calloc(cap, sizeof(*fresh));

        if (fresh == NULL) {
            return false;
        }
        for (size_t i = 0; i < c->cap; i++) {
            size_t at = c->hashes[i] & (cap - 1);

            while (c->hashes[i] != 0 && fresh[at] != 0) {
                at = (at + 1) & (cap - 1);
            }
            if (c->hashes[i] != 0) {
                fresh[at] = c->hashes[i];
            }
        }
        tl_free(c->hashes);
        c->hashes = fresh;
        c->cap = cap;
    }
    size_t at = h & (c->cap - 1);

    while (c->hashes[at] != 0) {
        if (c->hashes[at] == h) {
            return true;
        }
        at = (at + 1) & (c->cap - 1);
    }
    c->hashes[at] = h;
    c->count++;
    return false;
}

/* ---- signatures -------------------------------------------------------- */

static inline uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static uint64_t hash_tensor(uint64_t h, const tl_tensor *t)
{
    h = mix(h, (uint64_t)tl_tensor_shown(t) << 8 | (uint64_t)t->rank);
    for (int i = 0; i < t->rank; i++) {
        h = mix(h, (uint64_t)t->size[i]);
    }
    return h;
}

static uint64_t hash_value(uint64_t h, tl_value v, int depth);

static uint64_t hash_values(uint64_t h, const tl_value *items, size_t n,
                            int depth)
{
    h = mix(h, n);
    for (size_t i = 0; i < n && i < HASH_ITEMS && depth < HASH_DEPTH; i++) {
        h = hash_value(h, items[i], depth + 1);
    }
    return h;
}

static uint64_t hash_dict(uint64_t h, const tl_dict *d, int depth)
{
    h = mix(h, d->live);
    for (size_t i = 0; i < d->len && i < HASH_ITEMS && depth < HASH_DEPTH;
         i++) {
        h = mix(h, d->entries[i].hash);
        h = hash_value(h, d->entries[i].value, depth + 1);
    }
    return h;
}

static uint64_t hash_node(uint64_t h, const tl_ttype *t)
{
    h = mix(h, (uint64_t)t->dtype << 8 | (uint64_t)t->shape.rank);
    for (int i = 0; i < t->shape.rank; i++) {
        h = mix(h, t->shape.dim[i].word);
    }
    return h;
}

/* Types, and the values that decide a program's shape: bools and strings. */
static uint64_t hash_value(uint64_t h, tl_value v, int depth)
{
    h = mix(h, (uint64_t)v.tag);
    switch (v.tag) {
    case TL_V_TENSOR:
        return hash_tensor(h, v.tensor);
    case TL_V_NODE:
        return hash_node(h, &v.node->type);
    case TL_V_BOOL:
        return mix(h, v.b);
    case TL_V_DTYPE:
        return mix(h, (uint64_t)v.dtype);
    case TL_V_STR:
        return tl_hash_bytes(v.str->data, v.str->len, h);
    case TL_V_LIST:
    case TL_V_TUPLE:
        return hash_values(h, v.seq->items, v.seq->len, depth);
    case TL_V_DICT:
        return hash_dict(h, v.dict, depth);
    case TL_V_MODULE:
        return mix(h, v.module->serial);
    case TL_V_FN:
        h = mix(h, (uint64_t)(uintptr_t)v.fn->code);
        return hash_values(h, v.fn->captures, v.fn->ncaptures, depth);
    case TL_V_BUILTIN:
        return mix(h, (uint64_t)(uintptr_t)v.builtin);
    case TL_V_TREE:
        return hash_values(h, v.tree->items, v.tree->shape->len, depth);
    case TL_V_RECORD:
        h = mix(h, (uint64_t)(uintptr_t)v.record->cls->code);
        return hash_values(h, v.record->fields,
                           v.record->cls->code->params.len, depth);
    default:
        return h;
    }
}

static uint64_t signature(const tl_funcdef *fn, const tl_fn *closure,
                          const tl_module *self, const tl_args *args)
{
    uint64_t h = mix(0x746c, (uint64_t)(uintptr_t)fn);

    h = mix(h, self != NULL ? self->serial : 0);
    if (closure != NULL) {
        h = hash_values(h, closure->captures, closure->ncaptures, 0);
    }
    for (size_t i = 0; i < args->npos; i++) {
        h = hash_value(h, args->pos[i], 0);
    }
    for (size_t i = 0; i < args->nkw; i++) {
        h = mix(h, (uint64_t)(uintptr_t)args->names[i]);
        h = hash_value(h, args->kw[i], 0);
    }
    return h;
}

/* ---- passes ------------------------------------------------------------ */

/* What a pass changes in the context and has to put back. */
typedef struct saved {
    const tl_domain *domain;
    void *state;
    uint64_t draws, inits, seed, serial, ordinal;
    tl_value ret;
    bool muted;
    size_t nwarnings;
    tl_shape_state own;
} saved;

static tl_status pass_begin(tl_eval *ev, saved *s)
{
    *s = (saved){.domain = ev->domain, .state = ev->domain_state,
                 .draws = ev->rt->draws, .inits = ev->rt->inits,
                 .seed = ev->rt->seed, .serial = ev->next_serial,
                 .ordinal = ev->init_ordinal, .ret = ev->ret,
                 .muted = ev->diag->muted,
                 .nwarnings = ev->diag->nwarnings};
    TL_TRY(tl_dims_new(&s->own.dims, ev->diag));
    s->own.infer = (tl_infer){.dims = s->own.dims, .diag = ev->diag};
    ev->ret = tl_empty();
    ev->domain = &tl_domain_shape;
    ev->domain_state = &s->own;
    ev->no_check++;
    return TL_OK;
}

static void pass_end(tl_eval *ev, saved *s)
{
    tl_unref(ev->ret);
    for (size_t i = 0; i < s->own.cells.len; i++) {
        tl_unref(tl_obj_value_take(s->own.cells.items[i].cell));
        tl_unref(s->own.cells.items[i].value);
    }
    tl_free(s->own.cells.items);
    tl_dims_free(s->own.dims);
    ev->no_check--;
    ev->ret = s->ret;
    ev->domain = s->domain;
    ev->domain_state = s->state;
    ev->rt->draws = s->draws;
    ev->rt->inits = s->inits;
    ev->rt->seed = s->seed;
    ev->next_serial = s->serial;
    ev->init_ordinal = s->ordinal;
    ev->diag->muted = s->muted;
}

/* Is this something about the program's names, types and shapes, which would
 * be the same in every run?  Values (an index, a division) and files are the
 * run's to report, after the effects that come before. */
static bool reportable(tl_code code)
{
    switch (code) {
    case TL_E0202:
    case TL_E0212:
    case TL_E0215:
    case TL_E0218:
    case TL_E0220:
    case TL_E0221:
    case TL_E0222:
    case TL_E0224:
    case TL_E0319:
        return false;
    default:
        return (code >= TL_E0201 && code < TL_E0401) || code == TL_E0402 ||
               (code >= TL_E0408 && code <= TL_E0412) || code == TL_E0415 ||
               (code >= TL_E0501 && code <= TL_E0506) || code == TL_E0512 ||
               code == TL_E0513 || code == TL_E0720;
    }
}

/* What a pass that ended with `st` tells the caller. */
static tl_status finding(tl_eval *ev, const saved *s, tl_status st)
{
    if (st == TL_OK) {
        return TL_OK;
    }
    if (!tl_status_catchable(st) || st == TL_ERR_MEMORY) {
        return st;
    }
    if (s->own.silent) {
        return TL_OK;
    }
    if (ev->diag->last != NULL && ev->diag->last->settled) {
        return st;
    }
    if (ev->diag->last == NULL || !reportable(ev->diag->last->code)) {
        (void)tl_diag_pop(ev->diag);
        return TL_OK;
    }
    return st;
}

/* The arguments of a call, again as borrowed copies that may be taken. */
static tl_status call_again(tl_eval *ev, const tl_funcdef *fn,
                            tl_namespace *ns, tl_fn *closure, tl_module *self,
                            const tl_args *args)
{
    size_t n = args->npos + args->nkw;
    tl_value few[2 * TL_INLINE_ARGS], *v = few, r = tl_empty();

    if (n > 2 * TL_INLINE_ARGS) {
        v = tl_calloc(n, sizeof(*v));
        if (v == NULL) {
            return tl_fail_memory(ev->diag, "arguments", n * sizeof(*v));
        }
    }
    for (size_t i = 0; i < args->npos; i++) {
        v[i] = tl_ref(args->pos[i]);
    }
    for (size_t i = 0; i < args->nkw; i++) {
        v[args->npos + i] = tl_ref(args->kw[i]);
    }
    tl_args again = *args;

    again.pos = v;
    again.kw = v + args->npos;
    tl_status st = tl_call_code(ev, fn, ns, closure, self, &again, &r);

    tl_unref(r);
    tl_unref_all(v, n);
    if (v != few) {
        tl_free(v);
    }
    return st;
}

tl_status tl_shape_check_call(tl_eval *ev, const tl_funcdef *fn,
                              tl_namespace *ns, tl_fn *closure,
                              tl_module *self, const tl_args *args)
{
    saved s;

    if (fn->kind == TL_FUNC_RECORD || fn->kind == TL_FUNC_TEST ||
        seen_or_add(ev->checked, signature(fn, closure, self, args))) {
        return TL_OK;
    }
    TL_TRY(pass_begin(ev, &s));
    tl_status st = call_again(ev, fn, ns, closure, self, args);

    pass_end(ev, &s);
    return finding(ev, &s, st);
}

/* Statements of the top level, then @main if this is the program itself. */
static tl_status unit_pass(tl_eval *ev, tl_namespace *ns, const tl_unit *unit)
{
    const tl_kids *stmts =
        &TL_AST(block, unit->root->func->body)->stmts;
    tl_flow flow = TL_FLOW_NEXT;

    for (uint32_t i = 0; i < stmts->len && flow == TL_FLOW_NEXT; i++) {
        TL_TRY(tl_eval_stmt(ev, stmts->items[i], &flow));
    }
    if (unit->main != NULL && ns == ev->main_ns &&
        !(ev->options != NULL && ev->options->run_tests)) {
        return tl_eval_main(ev, ns, unit->main->func);
    }
    return TL_OK;
}

tl_status tl_shape_check_unit(tl_eval *ev, tl_namespace *ns,
                              const tl_unit *unit)
{
    tl_snapshot before;
    saved s;

    TL_TRY(pass_begin(ev, &s));
    tl_status st = tl_snapshot_take(ev, &before);

    if (st == TL_OK) {
        st = unit_pass(ev, ns, unit);
        tl_status back = tl_snapshot_restore(ev, &before);

        st = back != TL_OK ? back : st;
        tl_snapshot_fini(&before);
    }
    pass_end(ev, &s);
    st = finding(ev, &s, st);
    return st == TL_ERR_PROGRAM && !ev->diag->last->settled ? TL_ERR_REJECTED
                                                            : st;
}

tl_status tl_shape_expr(tl_eval *ev, const tl_ast *expr, tl_value *out)
{
    tl_snapshot before;
    tl_value v = tl_unknown();
    saved s;

    TL_TRY(pass_begin(ev, &s));
    tl_status st = tl_snapshot_take(ev, &before);

    if (st == TL_OK) {
        st = tl_eval_expr(ev, expr, &v);
        tl_status back = tl_snapshot_restore(ev, &before);

        st = back != TL_OK ? back : st;
        tl_snapshot_fini(&before);
    }
    pass_end(ev, &s);
    st = finding(ev, &s, st);
    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    *out = v;
    return TL_OK;
}
