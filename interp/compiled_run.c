/* compiled_run.c - runs of programs: inputs, effects, what they change.
 *
 * A run that fails has changed nothing; the caller lets the interpreter
 * repeat it.  What a run prints is kept until it has succeeded. */
#include "interp/compiled_impl.h"
#include "runtime/base/mem.h"
#include "runtime/tape/tape.h"

/* ---- a run -------------------------------------------------------------- */

/* May the program write into what the cell holds, if nothing else refers to
 * the tensor?  Those of a tree are seen by whoever else has the tree. */
static bool may_donate(const tl_ecell *c)
{
    tl_value v = c->cell->value;

    return c->written && (v.tag != TL_V_TREE || tl_unshared(v));
}

static tl_status gather_input(tl_eval *ev, tl_entry *e, size_t i)
{
    const tl_input *in = &e->inputs.items[i];
    const tl_leaf_value *leaf = NULL;
    tl_tensor *t = NULL;

    switch (in->kind) {
    case TL_IN_UPSTREAM: /* of gradients only */
        return TL_OK;
    case TL_IN_SEED:
        e->scalars[i].i = (int64_t)ev->rt->seed;
        return TL_OK;
    case TL_IN_DRAWS:
        e->scalars[i].i = (int64_t)ev->rt->draws;
        return TL_OK;
    case TL_IN_PIN:
        t = e->pins[in->index].tensor;
        break;
    case TL_IN_LEAF:
        leaf = &e->leaves[in->index];
        break;
    case TL_IN_CELL:
        leaf = &e->leaves[e->cells[in->index].leaf + in->leaf];
        e->donate[i] = may_donate(&e->cells[in->index]);
        break;
    }
    if (leaf != NULL) {
        t = leaf->tensor;
        e->scalars[i] = leaf->scalar;
    }
    e->tensors[i] = t;
    if (in->layout != 0) {
        TL_TRY(tl_layout_base(ev->rt, t, in->layout, &e->owned[i]));
        e->tensors[i] = e->owned[i];
    }
    return TL_OK;
}

tl_status tl_entry_gather(tl_eval *ev, tl_entry *e)
{
    const tl_holds *h = &e->holds;

    if (h->now) {
        for (size_t i = 0; i < h->nloose_inputs; i++) {
            TL_TRY(gather_input(ev, e, h->loose_inputs[i]));
        }
        return TL_OK;
    }
    for (size_t i = 0; i < e->inputs.len; i++) {
        TL_TRY(gather_input(ev, e, i));
    }
    return TL_OK;
}

/* Release result `i`. */
static void drop_result(tl_entry *e, size_t i)
{
    if (e->results[i] != NULL) {
        tl_tensor_unref(e->results[i]);
        e->results[i] = NULL;
    }
}

void tl_entry_release(tl_entry *e)
{
    const tl_holds *h = &e->holds;
    size_t n = h->now ? h->nloose_inputs : e->inputs.len;
    uint32_t ngiven;
    const uint32_t *given = tl_program_given(e->program, &ngiven);

    for (size_t k = 0; k < n; k++) {
        size_t i = h->now ? h->loose_inputs[k] : k;

        tl_tensor_unref(e->owned[i]);
        e->owned[i] = NULL;
    }
    for (size_t k = 0; k < (given != NULL ? ngiven : e->nresults); k++) {
        drop_result(e, given != NULL ? given[k] : k);
    }
}

/* An output as a value that the program sees as `shown`: what autocast has
 * lowered is stored otherwise. */
static tl_status shown_tensor(tl_eval *ev, tl_tensor *t, tl_dtype shown,
                              tl_value *out)
{
    tl_tensor *made;

    TL_TRY(tl_tensor_show(&made, t, shown, ev->diag));
    if (made != t && ev->rt->tape != NULL) {
        tl_status st = tl_tape_share(ev->rt->tape, made, t, ev->diag);

        if (st != TL_OK) {
            tl_tensor_unref(made);
            return st;
        }
    }
    *out = tl_tensor_value_take(made);
    return TL_OK;
}

/* An output in place of a node of a pattern.  It may be what a cell holds, or
 * lie there. */
static tl_status result_of(void *arg, tl_value node, tl_value *out)
{
    const tl_effect_arg *to = arg;
    tl_entry *e = to->entry;
    const tl_tensor *t;

    if (node.tag == TL_V_SYM) {
        *out = tl_scalar_value(e->result_scalars[node.sym->id - 1],
                               node.sym->hint.tag);
        return TL_OK;
    }
    t = e->results[node.node->id - 1];
    if (t->refs != 1 || !tl_storage_unshared(t->storage)) {
        tl_cells_used(to->ev);
    }
    return shown_tensor(to->ev, e->results[node.node->id - 1],
                        node.node->type.dtype, out);
}

bool tl_tree_is_unchanged(const tl_entry *e, tl_value pattern, tl_value now)
{
    if (now.tag != TL_V_TREE || pattern.tag != TL_V_TREE ||
        now.tree->shape != pattern.tree->shape ||
        now.tree->finite.tag != TL_V_EMPTY ||
        pattern.tree->finite.tag != TL_V_EMPTY) {
        return false;
    }
    for (size_t i = 0; i < now.tree->shape->len; i++) {
        tl_value p = pattern.tree->items[i];

        if (p.tag != TL_V_NODE ||
            now.tree->items[i].tensor != e->results[p.node->id - 1]) {
            return false;
        }
    }
    return true;
}

/* What the cell will hold: EMPTY if it has been written in place. */
static tl_status new_value(tl_eval *ev, tl_entry *e, tl_ecell *c)
{
    tl_value now = c->cell->value;
    tl_effect_arg to = {ev, e};

    if (c->pattern.tag == TL_V_NODE && now.tag == TL_V_TENSOR &&
        now.tensor == e->results[c->pattern.node->id - 1]) {
        return TL_OK;
    }
    return tl_tree_is_unchanged(e, c->pattern, now)
               ? TL_OK
               : tl_lift_back(ev, c->pattern, result_of, &to, &c->next);
}

static tl_status store_cell(tl_eval *ev, tl_ecell *c)
{
    tl_value v = c->next;

    c->next = tl_empty();
    if (v.tag == TL_V_EMPTY) {
        return TL_OK;
    }
    if (c->cell->hold == TL_HOLD_TENSOR && !c->cell->has_type) {
        return tl_cell_write_take(ev, c->cell, v); /* adopts its type */
    }
    if (ev->rt->amp.ncasts > 0 && c->cell->value.tag == TL_V_TENSOR) {
        tl_amp_forget(&ev->rt->amp, c->cell->value.tensor);
    }
    tl_cell_store_take(ev, c->cell, v);
    return TL_OK;
}

tl_run tl_entry_inputs(tl_entry *e, tl_effect_arg *arg)
{
    return (tl_run){.tensors = e->tensors, .scalars = e->scalars,
                    .donate = e->taped ? NULL : e->donate,
                    .held = e->holds.now ? e->holds.inputs : NULL,
                    .effect = tl_entry_effect, .arg = arg,
                    .out_tensors = e->results,
                    .out_scalars = e->result_scalars};
}

bool tl_entry_fits(tl_eval *ev, tl_entry *e)
{
    tl_run run = tl_entry_inputs(e, NULL);
    tl_status st = tl_entry_gather(ev, e);

    if (st != TL_OK) {
        (void)tl_diag_pop(ev->diag);
    }
    if (st != TL_OK || !tl_program_fits(e->program, &run)) {
        tl_entry_release(e);
        return false;
    }
    return true;
}

/* The k-th cell that a run may have changed.  If it has kept outputs, none of
 * a held cell is there. */
static tl_ecell *changed_cell(tl_entry *e, size_t k, bool kept)
{
    return &e->cells[kept ? e->holds.loose_cells[k] : k];
}

/* What a run has computed takes effect: all new values are made before the
 * first cell is written. */
static tl_status commit(tl_eval *ev, tl_entry *e, tl_value *out)
{
    uint32_t ngiven;
    bool kept = tl_program_given(e->program, &ngiven) != NULL;
    size_t n = kept ? e->holds.nloose_cells : e->ncells;
    tl_value result = tl_empty();
    tl_effect_arg to = {ev, e};
    tl_status st = tl_lift_back(ev, e->result, result_of, &to, &result);

    for (size_t k = 0; k < n && st == TL_OK; k++) {
        tl_ecell *c = changed_cell(e, k, kept);

        if (c->written) {
            st = new_value(ev, e, c);
        }
    }
    if (st != TL_OK) {
        for (size_t k = 0; k < n; k++) {
            tl_drop(&changed_cell(e, k, kept)->next);
        }
        tl_unref(result);
        return st;
    }
    ev->rt->draws = e->draws_out > 0
                        ? (uint64_t)e->result_scalars[e->draws_out - 1].i
                        : ev->rt->draws + e->draws;
    for (size_t k = 0; k < n; k++) {
        tl_status stored = store_cell(ev, changed_cell(e, k, kept));

        st = st == TL_OK ? stored : st;
    }
    if (st == TL_OK && e->printed.len > 0) {
        st = tl_eval_write(ev, tl_buf_str(&e->printed), e->printed.len);
    }
    if (st != TL_OK) {
        tl_unref(result);
        return st;
    }
    *out = result;
    return TL_OK;
}

/* Do not run it: the results are zeros, and no cell is written. */
static tl_status run_dry(tl_eval *ev, tl_entry *e, const tl_run *run,
                         tl_value *out)
{
    tl_effect_arg to = {ev, e};

    TL_TRY(tl_program_zeros(e->program, ev->rt, run));
    return tl_lift_back(ev, e->result, result_of, &to, out);
}

tl_status tl_entry_run(tl_eval *ev, tl_entry *e, tl_value *out, bool *ran)
{
    tl_effect_arg arg = {ev, e};
    tl_run run = tl_entry_inputs(e, &arg);
    tl_status st;

    e->running = true;
    if (ev->dry_run) {
        st = run_dry(ev, e, &run, out);
        *ran = true;
    } else {
        st = tl_program_run(e->program, ev->rt, &run);
        if (st == TL_OK && e->taped && !ev->verify) {
            st = tl_entry_record(ev, e);
        }
        *ran = st == TL_OK;
        if (st == TL_OK) {
            st = commit(ev, e, out);
        }
        if (e->taped || e->in_grad || ev->rt->amp.ncasts > 0) {
            tl_cells_used(ev); /* a tape, or the casts, keep tensors */
        }
        if (st != TL_OK) {
            e->holds.on = false;
        } else {
            tl_entry_hold(e, &run);
        }
    }
    tl_buf_fini(&e->printed);
    tl_buf_init(&e->printed);
    tl_entry_release(e);
    e->running = false;
    return st;
}
