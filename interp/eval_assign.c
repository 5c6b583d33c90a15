/* eval_assign.c - writing to names and tuples of targets, and `op=`.
 *
 * Paths such as x[i] are written in eval_path.c.  x op= v takes the old value
 * out of its slot first wherever nothing can see the slot meanwhile, so that
 * the operation may work in place (ast.h: ref.last of a target). */
#include "interp/builtin.h"
#include "interp/container.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "runtime/base/mem.h"

/* Make room for global number `index`. */
static tl_status globals_grow(tl_eval *ev, tl_namespace *ns, uint32_t index)
{
    if (index < ns->nslots) {
        return TL_OK;
    }
    size_t n = (size_t)index + 16;
    tl_value *slots = tl_realloc(ns->slots, n * sizeof(*slots));

    if (slots == NULL) {
        return tl_fail_memory(ev->diag, "a top-level name",
                              n * sizeof(*slots));
    }
    for (size_t i = ns->nslots; i < n; i++) {
        slots[i] = tl_empty();
    }
    ns->slots = slots;
    ns->nslots = n;
    return TL_OK;
}

static void replace(tl_value *slot, tl_value v)
{
    tl_value old = *slot;

    *slot = v;
    tl_unref(old);
}

tl_status tl_bind_ref_take(tl_eval *ev, const tl_ref_info *ref, tl_span span,
                           tl_value v)
{
    tl_frame *f = ev->frame;
    tl_status st = TL_OK;

    switch ((tl_ref_kind)ref->kind) {
    case TL_REF_LOCAL:
        replace(&f->slots[ref->index], v);
        return TL_OK;
    case TL_REF_GLOBAL:
        st = globals_grow(ev, f->ns, ref->index);
        if (st == TL_OK) {
            replace(&f->ns->slots[ref->index], v);
            return TL_OK;
        }
        break;
    case TL_REF_FIELD:
        return tl_module_init_field_take(ev, tl_ref_self(ev, ref), ref->index,
                                         span, v);
    default:
        st = tl_fail_at(ev->diag, TL_E0212, span,
                        "this name cannot be assigned here");
        break;
    }
    tl_unref(v);
    return st;
}

tl_status tl_namespace_bind(tl_eval *ev, tl_namespace *ns,
                            const tl_sym *name, tl_value v)
{
    uint32_t slot;
    tl_ref_info ref = {.kind = TL_REF_GLOBAL};

    if (name == NULL || v.tag == TL_V_EMPTY) {
        return TL_OK;
    }
    TL_TRY(tl_globals_add(ns->names, name, &slot, ev->diag));
    ref.index = slot;
    tl_frame top = {.ns = ns}, *frame = ev->frame;

    ev->frame = &top;
    tl_status st = tl_bind_ref_take(ev, &ref, (tl_span){0}, tl_ref(v));

    ev->frame = frame;
    return st;
}

/* ---- unpacking --------------------------------------------------------- */

static tl_status unpack_count(tl_eval *ev, const tl_ast *target, size_t want,
                              bool more_ok, size_t got)
{
    return tl_fail_at(ev->diag, TL_E0219, target->span,
                      "cannot unpack %zu value%s into %s%zu name%s", got,
                      got == 1 ? "" : "s", more_ok ? "at least " : "", want,
                      want == 1 ? "" : "s");
}

/* All items of `v` as a list. */
static tl_status collect_take(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_value list = tl_empty();
    tl_iter iter = {0};
    bool more;
    tl_status st = tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    st = tl_iter_init_take(ev, v, &iter);
    while (st == TL_OK) {
        tl_value item = tl_empty();

        st = tl_iter_next(ev, &iter, &more, &item);
        if (st != TL_OK || !more) {
            break;
        }
        st = tl_list_push_take(list.seq, item, ev->diag);
    }
    tl_iter_fini(&iter);
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *out = list;
    return TL_OK;
}

/* The part of `all` that target `i` of `n` gets; `star` is the index of the
 * starred target, or n. */
static tl_status unpack_part(tl_eval *ev, const tl_seq *all, uint32_t i,
                             uint32_t n, uint32_t star, tl_value *out)
{
    size_t extra = star < n ? all->len - (n - 1) : 0;

    if (i != star) {
        size_t at = i < star ? i : i + extra - 1;

        *out = tl_ref(all->items[at]);
        return TL_OK;
    }
    tl_value list = tl_empty();
    tl_status st = tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag);

    for (size_t k = 0; k < extra && st == TL_OK; k++) {
        st = tl_list_push_take(list.seq, tl_ref(all->items[i + k]),
                               ev->diag);
    }
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *out = list;
    return TL_OK;
}

static tl_status assign_all_unknown(tl_eval *ev, const tl_kids *targets)
{
    for (uint32_t i = 0; i < targets->len; i++) {
        const tl_ast *t = targets->items[i];

        if (t->kind == TL_AST_STAR) {
            t = TL_AST(star, t)->value;
        }
        TL_TRY(tl_eval_assign_take(ev, t, tl_unknown()));
    }
    return TL_OK;
}

/* Is it open how many items `v` has?  Only without data. */
static bool open_ended(tl_eval *ev, tl_value v)
{
    tl_ttype type;

    switch (v.tag) {
    case TL_V_UNKNOWN:
        return true;
    case TL_V_MODULE:
    case TL_V_ZIP:
        return !ev->domain->has_data;
    case TL_V_TENSOR:
    case TL_V_NODE:
        return tl_eval_type(ev, v, &type) == TL_OK && type.shape.rank > 0 &&
               !tl_dim_is_num(type.shape.dim[0]);
    default:
        return false;
    }
}

/* What is unpacked has as many items as there are names, or the run says so:
 * those of a tensor have a type.  Eats `v`. */
static tl_status assign_open(tl_eval *ev, const tl_kids *targets, tl_value v)
{
    bool typed = tl_is_tensor(v);
    tl_status st = TL_OK;

    for (uint32_t i = 0; i < targets->len; i++) {
        typed = typed && targets->items[i]->kind != TL_AST_STAR;
    }
    for (uint32_t i = 0; i < targets->len && typed && st == TL_OK; i++) {
        tl_value sub = tl_int_value(i), item = tl_empty();

        st = tl_eval_index_take(ev, tl_ref(v), &sub, 1, &item);
        if (st == TL_OK) {
            st = tl_eval_assign_take(ev, targets->items[i], item);
        }
    }
    tl_unref(v);
    return typed || st != TL_OK ? st : assign_all_unknown(ev, targets);
}

static tl_status assign_unpack(tl_eval *ev, const tl_ast *target,
                               const tl_kids *targets, tl_value v)
{
    uint32_t n = targets->len, star = n;
    tl_value all = tl_empty();

    if (open_ended(ev, v)) {
        return assign_open(ev, targets, v);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (targets->items[i]->kind == TL_AST_STAR) {
            star = i;
        }
    }
    if (v.tag == TL_V_LIST || v.tag == TL_V_TUPLE) {
        all = v;
    } else {
        tl_status st = collect_take(ev, v, &all);

        if (st != TL_OK) {
            tl_diag_at(ev->diag, target->span);
            return st;
        }
    }
    tl_status st = TL_OK;
    size_t got = all.seq->len;

    if (star < n ? got + 1 < n : got != n) {
        st = unpack_count(ev, target, star < n ? n - 1 : n, star < n, got);
    }
    for (uint32_t i = 0; i < n && st == TL_OK; i++) {
        const tl_ast *t = targets->items[i];
        tl_value part = tl_empty();

        st = unpack_part(ev, all.seq, i, n, star, &part);
        if (st == TL_OK) {
            t = t->kind == TL_AST_STAR ? TL_AST(star, t)->value : t;
            st = tl_eval_assign_take(ev, t, part);
        }
    }
    tl_unref(all);
    return st;
}

/* ---- any target -------------------------------------------------------- */

tl_status tl_eval_assign_take(tl_eval *ev, const tl_ast *target, tl_value v)
{
    switch ((tl_ast_kind)target->kind) {
    case TL_AST_NAME:
        return tl_bind_ref_take(ev, &TL_AST(name, target)->ref, target->span,
                                v);
    case TL_AST_TUPLE:
        return assign_unpack(ev, target, &TL_AST(tuple, target)->items, v);
    case TL_AST_LIST:
        return assign_unpack(ev, target, &TL_AST(list, target)->items, v);
    case TL_AST_ATTR:
    case TL_AST_INDEX:
        return tl_eval_path_assign_take(ev, target, v);
    default:
        tl_unref(v);
        return tl_fail_at(ev->diag, TL_E0114, target->span,
                          "this cannot be assigned");
    }
}

/* ---- target op= value -------------------------------------------------- */

/* May a failing `a op b` be noticed after the slot of `a` was emptied?  Two
 * lists or strings only run out of memory. */
static bool concat_safe(const tl_ast_aug *n, tl_value a, tl_value b)
{
    return n->op == TL_OP_ADD && a.tag == b.tag && a.tag == TL_V_LIST;
}

static tl_status aug_read(tl_eval *ev, const tl_ast_aug *n, tl_value rhs,
                          tl_value *out)
{
    const tl_ref_info *ref = &TL_AST(name, n->target)->ref;
    tl_namespace *ns = ev->frame->ns;

    if (ref->kind == TL_REF_GLOBAL && ref->index < ns->nslots &&
        concat_safe(n, ns->slots[ref->index], rhs)) {
        *out = ns->slots[ref->index];
        ns->slots[ref->index] = tl_empty();
        return TL_OK;
    }
    return tl_eval_expr(ev, n->target, out);
}

tl_status tl_eval_aug(tl_eval *ev, const tl_ast_aug *n, tl_flow *flow)
{
    tl_value a = tl_empty(), b = tl_empty(), r = tl_empty();

    TL_TRY(tl_eval_rhs(ev, n->value, &b, flow));
    if (n->target->kind != TL_AST_NAME) {
        return tl_eval_path_aug_take(ev, n, b);
    }
    tl_status st = aug_read(ev, n, b, &a);

    if (st != TL_OK) {
        tl_unref(b);
        return st;
    }
    TL_TRY(tl_eval_binary_nodes(ev, n->op, n->target, a, n->value, b,
                                n->base.span, &r));
    return tl_eval_assign_take(ev, n->target, r);
}
