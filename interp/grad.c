/* grad.c - grad blocks: targets, leaves, gradients per target.
 *
 * A block resolves its targets, enters the domain's grad state, evaluates its
 * body, reads the loss, and leaves with one gradient for each leaf: one of a
 * variable or a cell, one for each path of a tree. */
#include "interp/grad.h"

#include "interp/autocast.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"

/* ---- targets ----------------------------------------------------------- */

static tl_status bad_target(tl_eval *ev, const tl_ast *e, tl_value v)
{
    tl_status st = tl_fail_at(ev->diag, TL_E0502, e->span,
                              "%s cannot be a target of `grad`",
                              tl_value_type_str(v).s);

    if (v.tag == TL_V_FLOAT || v.tag == TL_V_INT) {
        tl_diag_help(ev->diag, "make it a tensor before: `a = tensor(a)`");
    } else if (tl_is_tensor(v)) {
        tl_diag_help(ev->diag, "only float tensors have gradients: `f32(x)`");
    }
    return st;
}

/* The cell that a path or a field name means, or NULL. */
static tl_status target_cell(tl_eval *ev, const tl_ast *e, tl_value *keep,
                             tl_cell **out)
{
    *out = NULL;
    if (e->kind == TL_AST_NAME) {
        const tl_ast_name *n = TL_AST(name, e);

        if (n->ref.kind == TL_REF_FIELD) {
            *out = tl_module_cell_of(tl_ref_self(ev, &n->ref), n->name);
        }
        return TL_OK;
    }
    if (e->kind != TL_AST_ATTR) {
        return TL_OK;
    }
    TL_TRY(tl_eval_expr(ev, TL_AST(attr, e)->object, keep));
    if (keep->tag == TL_V_MODULE) {
        *out = tl_module_cell_of(keep->module, TL_AST(attr, e)->name);
    }
    return TL_OK;
}

/* A tree of cells: module, list or dict of modules, select. */
static tl_status cells_target(tl_eval *ev, tl_target *t, tl_value v)
{
    TL_TRY(tl_tree_shape_of(ev, v, &t->shape));
    if (t->shape->len == 0) {
        tl_warn(ev->diag, TL_W0507, t->span,
                "%s has no parameters: its gradient is empty",
                tl_value_type_str(v).s);
    }
    if (v.tag != TL_V_SELECT && v.tag != TL_V_CELL) {
        TL_TRY(tl_modules_below(ev, v, &t->modules, &t->nmodules));
        for (size_t i = 0; i < t->nmodules; i++) {
            t->modules[i]->obj.refs++; /* the body may drop them */
        }
    }
    t->kind = v.tag == TL_V_CELL ? TL_TARGET_CELL : TL_TARGET_CELLS;
    return TL_OK;
}

static tl_status cell_target(tl_eval *ev, tl_target *t, tl_cell *cell)
{
    cell->obj.refs++;
    tl_value v = tl_obj_value_take(cell);
    tl_status st = cells_target(ev, t, v);

    tl_unref(v);
    return st;
}

/* A trace may not put its nodes into the program's own variables. */
static tl_status check_global(tl_eval *ev, const tl_ast *e)
{
    if (ev->domain->global == NULL ||
        TL_AST(name, e)->ref.kind != TL_REF_GLOBAL) {
        return TL_OK;
    }
    tl_status st = tl_fail_at(ev->diag, TL_E0602, e->span,
                              "the target `%s` is a global variable",
                              TL_AST(name, e)->name->text);

    tl_diag_help(ev->diag, "make it a parameter of the compiled function");
    return st;
}

/* A variable: its value becomes the leaf; *slot is where it goes back. */
static tl_status variable_target(tl_eval *ev, tl_target *t, const tl_ast *e,
                                 tl_value v)
{
    if (e->kind != TL_AST_NAME || !tl_is_float_tensor(v)) {
        return bad_target(ev, e, v);
    }
    TL_TRY(check_global(ev, e));
    t->kind = TL_TARGET_VARIABLE;
    t->leaf = tl_ref(v);
    return TL_OK;
}

/* Where the value of a NAME lives, or NULL. */
static tl_value *name_slot(tl_eval *ev, const tl_ast *e)
{
    const tl_ref_info *ref = &TL_AST(name, e)->ref;
    tl_frame *f = ev->frame;

    switch ((tl_ref_kind)ref->kind) {
    case TL_REF_LOCAL:
        return &f->slots[ref->index];
    case TL_REF_CAPTURE:
        return &f->closure->captures[ref->index];
    case TL_REF_GLOBAL:
        return ref->index < f->ns->nslots ? &f->ns->slots[ref->index] : NULL;
    default:
        return NULL;
    }
}


/* Cells that two targets share get the gradient in both; a variable has one
 * leaf, so it can be named once. */
static tl_status check_once(tl_eval *ev, const tl_gradblk *b,
                            const tl_ast_grad *n, size_t i)
{
    const tl_ast *e = n->targets.items[i];

    for (size_t k = 0; k < i; k++) {
        if (b->targets[i].kind == TL_TARGET_VARIABLE &&
            b->targets[k].kind == TL_TARGET_VARIABLE &&
            name_slot(ev, e) == name_slot(ev, n->targets.items[k])) {
            tl_status st = tl_fail_at(ev->diag, TL_E0506, e->span,
                                      "the target `%s` is given twice",
                                      TL_AST(name, e)->name->text);

            tl_diag_label_add(ev->diag, n->targets.items[k]->span,
                              "first here");
            return st;
        }
    }
    return TL_OK;
}

static tl_status make_target(tl_eval *ev, tl_target *t, const tl_ast *e)
{
    tl_value v = tl_empty();
    tl_cell *cell = NULL;

    t->span = e->span;
    tl_status st = target_cell(ev, e, &v, &cell);

    if (st == TL_OK && cell != NULL) {
        st = cell_target(ev, t, cell);
    } else if (st == TL_OK) {
        tl_drop(&v);
        st = tl_eval_expr(ev, e, &v);
        if (st == TL_OK) {
            switch (v.tag) {
            case TL_V_MODULE:
            case TL_V_LIST:
            case TL_V_TUPLE:
            case TL_V_DICT:
            case TL_V_SELECT:
            case TL_V_CELL:
                st = cells_target(ev, t, v);
                break;
            case TL_V_UNKNOWN:
                t->kind = TL_TARGET_VARIABLE;
                t->leaf = v;
                break;
            default:
                st = variable_target(ev, t, e, v);
                break;
            }
        }
    }
    tl_unref(v);
    return st;
}

/* ---- blocks ------------------------------------------------------------ */

static size_t target_leaves(const tl_target *t)
{
    return t->kind == TL_TARGET_VARIABLE ? 1 : t->shape->len;
}

size_t tl_grad_count(const tl_gradblk *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->ntargets; i++) {
        n += target_leaves(&b->targets[i]);
    }
    return n;
}

/* The table of watched cells, each once. */
static tl_status collect_leaves(tl_eval *ev, tl_gradblk *b)
{
    size_t n = tl_grad_count(b);

    b->leaves = tl_calloc(n > 0 ? n : 1, sizeof(*b->leaves));
    if (b->leaves == NULL) {
        return tl_fail_memory(ev->diag, "a grad block",
                              n * sizeof(*b->leaves));
    }
    for (size_t i = 0; i < b->ntargets; i++) {
        const tl_target *t = &b->targets[i];

        for (size_t k = 0; t->shape != NULL && k < t->shape->len; k++) {
            tl_cell *cell = t->shape->cells[k];

            if (tl_map_get(&b->by_cell, cell, NULL) != NULL) {
                continue;
            }
            tl_leaf *leaf = &b->leaves[b->nleaves++];

            leaf->cell = cell;
            cell->watchers++;
            if (!tl_map_set(&b->by_cell, cell, leaf)) {
                return tl_fail_memory(ev->diag, "a grad block", 0);
            }
        }
    }
    return TL_OK;
}

static tl_status block_init(tl_eval *ev, tl_gradblk *b, const tl_ast_grad *n)
{
    tl_map_init(&b->by_cell);
    b->span = n->base.span;
    b->targets = tl_calloc(n->targets.len, sizeof(*b->targets));
    if (b->targets == NULL) {
        return tl_fail_memory(ev->diag, "a grad block",
                              n->targets.len * sizeof(*b->targets));
    }
    if (n->scaler != NULL) {
        TL_TRY(tl_eval_expr(ev, n->scaler, &b->scaler));
    }
    for (uint32_t i = 0; i < n->targets.len; i++) {
        b->ntargets++;
        TL_TRY(make_target(ev, &b->targets[i], n->targets.items[i]));
        TL_TRY(check_once(ev, b, n, i));
    }
    return collect_leaves(ev, b);
}

static void block_fini(tl_gradblk *b)
{
    for (size_t i = 0; i < b->nleaves; i++) {
        b->leaves[i].cell->watchers--;
        tl_unref(b->leaves[i].leaf);
    }
    for (size_t i = 0; i < b->ntargets; i++) {
        tl_target *t = &b->targets[i];

        for (size_t k = 0; k < t->nmodules; k++) {
            tl_unref(tl_obj_value_take(t->modules[k]));
        }
        tl_free(t->modules);
        tl_tree_shape_unref(t->shape);
        tl_unref(t->leaf);
    }
    tl_free(b->targets);
    tl_free(b->leaves);
    tl_map_fini(&b->by_cell);
    tl_unref(b->scaler);
    tl_tape_free(b->tape);
}

/* Modules of the targets are in training mode while the block is open. */
static void mark_training(tl_gradblk *b, int by)
{
    for (size_t i = 0; i < b->ntargets; i++) {
        for (size_t k = 0; k < b->targets[i].nmodules; k++) {
            b->targets[i].modules[k]->training += by;
        }
    }
}

/* ---- results ----------------------------------------------------------- */

/* One target's gradient out of `grads`, whose items it takes.  That of a cell
 * is a tensor, but a tree where it has a flag to carry. */
static tl_status target_result(tl_eval *ev, const tl_gradblk *b,
                               const tl_target *t, tl_value *grads,
                               tl_value finite, tl_value *out)
{
    bool scaled = b->scaler.tag == TL_V_MODULE;

    if (t->kind == TL_TARGET_VARIABLE ||
        (t->kind == TL_TARGET_CELL && !scaled)) {
        *out = grads[0];
        grads[0] = tl_empty();
        return TL_OK;
    }
    tl_status st = tl_tree_new_take(out, t->shape, grads, ev->diag);

    for (size_t i = 0; i < t->shape->len; i++) {
        grads[i] = tl_empty();
    }
    if (st == TL_OK && scaled) {
        out->tree->finite = tl_ref(finite);
        out->tree->scaler = tl_ref(b->scaler);
    }
    return st;
}

static tl_status results(tl_eval *ev, const tl_gradblk *b, tl_value *grads,
                         tl_value finite, tl_value *out)
{
    tl_value few[TL_INLINE_ARGS];
    size_t at = 0;

    if (b->ntargets > TL_INLINE_ARGS) {
        return tl_fail_at(ev->diag, TL_E0502, b->span,
                          "more than %d targets", TL_INLINE_ARGS);
    }
    for (size_t i = 0; i < b->ntargets; i++) {
        const tl_target *t = &b->targets[i];
        tl_status st = target_result(ev, b, t, grads + at, finite, &few[i]);

        if (st != TL_OK) {
            tl_unref_all(few, i);
            return st;
        }
        at += target_leaves(t);
    }
    if (b->ntargets == 1) {
        *out = few[0];
        return TL_OK;
    }
    return tl_seq_new_take(out, TL_V_TUPLE, few, b->ntargets, ev->diag);
}

/* The loss, when the body has ended. */
static tl_status read_loss(tl_eval *ev, const tl_ast *e, tl_value *out)
{
    tl_ttype type;

    TL_TRY(tl_eval_expr(ev, e, out));
    if (out->tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    if (!tl_is_tensor(*out)) {
        return tl_fail_at(ev->diag, TL_E0501, e->span,
                          "the loss must be f32[] or f64[], got %s",
                          tl_value_type_str(*out).s);
    }
    TL_TRY(tl_eval_type(ev, *out, &type));
    if (type.shape.rank != 0 ||
        (type.dtype != TL_f32 && type.dtype != TL_f64)) {
        tl_status st = tl_fail_at(ev->diag, TL_E0501, e->span,
                                  "the loss must be f32[] or f64[], got %s",
                                  tl_ttype_str(&type).s);

        if (type.shape.rank == 0) {
            tl_diag_help(ev->diag, "cast it: `f32(loss)`");
        } else {
            tl_diag_help(ev->diag, "reduce it: `.mean()` or `.sum()`");
        }
        return st;
    }
    return tl_eval_widen(ev, out);
}

/* Put the leaves of variables into their slots. */
static void place_leaves(tl_eval *ev, tl_gradblk *b, const tl_ast_grad *n)
{
    for (size_t i = 0; i < b->ntargets; i++) {
        tl_target *t = &b->targets[i];
        const tl_ast *e = n->targets.items[i];
        tl_value *slot;

        if (t->kind == TL_TARGET_VARIABLE && e->kind == TL_AST_NAME &&
            (slot = name_slot(ev, e)) != NULL) {
            tl_value old = *slot;

            *slot = tl_ref(t->leaf);
            tl_unref(old);
        }
    }
}

/* Body and loss of an entered block, then its gradients. */
static tl_status run_block(tl_eval *ev, tl_gradblk *b, const tl_ast_grad *n,
                           tl_value *out, tl_flow *flow)
{
    size_t ngrads = tl_grad_count(b);
    tl_value loss = tl_empty(), finite = tl_empty();
    tl_value *grads = tl_calloc(ngrads > 0 ? ngrads : 1, sizeof(*grads));
    tl_status st = TL_OK;
    bool left = false;

    if (grads == NULL) {
        st = tl_fail_memory(ev->diag, "gradients", ngrads * sizeof(*grads));
        goto out;
    }
    for (size_t i = 0; i < ngrads; i++) {
        grads[i] = tl_empty();
    }
    place_leaves(ev, b, n);
    ev->grads = b;
    mark_training(b, 1);
    st = tl_eval_block(ev, n->body, flow);
    if (st == TL_OK && *flow == TL_FLOW_NEXT) {
        st = read_loss(ev, n->loss, &loss);
    }
    mark_training(b, -1);
    ev->grads = b->outer;
    if (st == TL_OK && *flow == TL_FLOW_NEXT) {
        left = true;
        st = ev->domain->grad_leave(ev, b, loss, grads, &finite);
        if (st == TL_OK) {
            st = results(ev, b, grads, finite, out);
        }
    }
    tl_unref_all(grads, ngrads);
out:
    if (!left) {
        ev->domain->grad_abandon(ev, b);
    }
    tl_free(grads);
    tl_unref(loss);
    tl_unref(finite);
    return st;
}

tl_status tl_eval_grad(tl_eval *ev, const tl_ast *node, tl_value *out,
                       tl_flow *flow)
{
    const tl_ast_grad *n = TL_AST(grad, node);
    tl_gradblk b = {.outer = ev->grads};
    tl_status st = block_init(ev, &b, n);

    if (st == TL_OK) {
        st = ev->domain->grad_enter(ev, &b);
    }
    if (st == TL_OK) {
        st = run_block(ev, &b, n, out, flow);
    }
    if (st != TL_OK) {
        tl_diag_at(ev->diag, node->span);
    }
    block_fini(&b);
    return st;
}
