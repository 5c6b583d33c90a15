/* compiled_hold.c - calls that leave every cell with the tensors that it has.
 *
 * In the steady state of training a program writes parameters and moments in
 * place.  Cells that a run has left like that are *held*: their tensors, and
 * whatever the program has bound to them, need not be looked up again as long
 * as nobody has stored into the cell, and nobody else sees a tensor that is
 * written.  Whoever stores or takes a reference counts it (tl_cells_used): if
 * the count is what it was, nothing has changed, and a call with 200 parameters
 * costs little more than their kernels.  Otherwise one short loop looks.
 *
 * A held cell is alive as long as the roots match.  Whoever gives an ecell
 * another cell sets holds.on to false. */
#include <string.h>

#include "interp/compiled_impl.h"
#include "interp/dict.h"
#include "interp/record.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"

enum { FEW = 4 }; /* tensors for which it is not worth the lists */

void tl_holds_fini(tl_holds *h)
{
    tl_free(h->items);
    tl_free(h->trees);
    tl_free(h->inputs);
    tl_free(h->loose_inputs);
    tl_free(h->loose_cells);
    *h = (tl_holds){.never = true};
}

/* False: there is no memory. */
static bool make_room(tl_entry *e)
{
    tl_holds *h = &e->holds;
    size_t ninputs = e->inputs.len + 1, ncells = e->ncells + 1;

    if (h->items != NULL) {
        return true;
    }
    h->items = tl_calloc(ninputs, sizeof(*h->items));
    h->trees = tl_calloc(ncells, sizeof(*h->trees));
    h->inputs = tl_calloc(ninputs, 1);
    h->loose_inputs = tl_calloc(ninputs, sizeof(*h->loose_inputs));
    h->loose_cells = tl_calloc(ncells, sizeof(*h->loose_cells));
    if (!h->items || !h->trees || !h->inputs || !h->loose_inputs ||
        !h->loose_cells) {
        tl_holds_fini(h);
        return false;
    }
    return true;
}

/* ---- is it as it was? --------------------------------------------------- */

/* A tree in a cell changes only where nobody else has it, and with a store. */
static bool trees_hold(const tl_entry *e)
{
    for (size_t i = 0; i < e->holds.ntrees; i++) {
        const tl_ecell *c = &e->cells[e->holds.trees[i]];
        tl_value v = c->cell->value;

        if (v.tag != TL_V_TREE || v.tree != c->last.tree ||
            c->version != c->cell->version ||
            (c->written && !tl_unshared(v))) {
            return false;
        }
    }
    return true;
}

static bool tensors_hold(const tl_entry *e)
{
    const tl_hold *h = e->holds.items;
    const tl_hold *end = h + e->holds.len;
    const tl_hold *written = h + e->holds.nwritten;

    for (; h < written; h++) {
        const tl_tensor *t = h->tensor; /* alive if the version is the same */

        if (*h->version != h->seen || t->refs != 1 || t->link.tape != 0 ||
            !tl_storage_unshared(h->storage)) {
            return false;
        }
    }
    for (; h < end; h++) {
        if (*h->version != h->seen) {
            return false;
        }
    }
    return true;
}

bool tl_entry_holds(const tl_eval *ev, tl_entry *e)
{
    if (e->holds.uses == ev->cell_uses) {
        TL_ASSERT(trees_hold(e) && tensors_hold(e));
        return true;
    }
    if (!trees_hold(e) || !tensors_hold(e)) {
        return false;
    }
    e->holds.uses = ev->cell_uses;
    return true;
}

/* ---- what can be held --------------------------------------------------- */

/* Does the result show this output?  Then it is wanted of each run. */
static bool shows(tl_value pattern, uint32_t output);

static bool any_shows(const tl_value *items, size_t n, uint32_t output)
{
    for (size_t i = 0; i < n; i++) {
        if (shows(items[i], output)) {
            return true;
        }
    }
    return false;
}

static bool shows(tl_value v, uint32_t output)
{
    size_t at = 0;

    switch (v.tag) {
    case TL_V_NODE:
        return v.node->id == output;
    case TL_V_LIST:
    case TL_V_TUPLE:
        return any_shows(v.seq->items, v.seq->len, output);
    case TL_V_RECORD:
        return any_shows(v.record->fields, tl_record_nfields(v.record),
                         output);
    case TL_V_TREE:
        return shows(v.tree->finite, output) ||
               any_shows(v.tree->items, v.tree->shape->len, output);
    case TL_V_FN:
        return any_shows(v.fn->captures, v.fn->ncaptures, output);
    case TL_V_DICT:
        for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
            if (shows(e->value, output)) {
                return true;
            }
        }
        return false;
    default:
        return false;
    }
}

static bool result_shows(const tl_entry *e, tl_value pattern)
{
    if (pattern.tag == TL_V_TREE) {
        for (size_t i = 0; i < pattern.tree->shape->len; i++) {
            if (result_shows(e, pattern.tree->items[i])) {
                return true;
            }
        }
        return false;
    }
    return pattern.tag == TL_V_NODE && shows(e->result, pattern.node->id);
}

/* Has the run left the cell as it was, as far as its tensors go? */
static bool can_hold(const tl_entry *e, const tl_ecell *c)
{
    tl_value v = c->cell->value;

    if (!c->read || (c->written && result_shows(e, c->pattern))) {
        return false;
    }
    if (v.tag == TL_V_TREE) {
        return c->nleaves == v.tree->shape->len &&
               (!c->written || (tl_unshared(v) &&
                                tl_tree_is_unchanged(e, c->pattern, v)));
    }
    return v.tag == TL_V_TENSOR &&
           (!c->written ||
            (c->pattern.tag == TL_V_NODE &&
             e->results[c->pattern.node->id - 1] == v.tensor));
}

static const tl_value *slot_of(const tl_ecell *c, uint32_t leaf)
{
    return c->cell->value.tag == TL_V_TREE ? &c->cell->value.tree->items[leaf]
                                           : &c->cell->value;
}

static bool is_plain(const tl_entry *e, size_t i, const tl_value *slot)
{
    return e->inputs.items[i].layout == 0 && slot->tag == TL_V_TENSOR &&
           slot->tensor == e->tensors[i] && slot->tensor->link.tape == 0 &&
           tl_tensor_contiguous(slot->tensor);
}

/* Only cells of which each tensor is an input as it is. */
static void find_held(tl_entry *e)
{
    for (size_t i = 0; i < e->ncells; i++) {
        e->cells[i].held = can_hold(e, &e->cells[i]);
        e->cells[i].plain = 0;
    }
    for (size_t i = 0; i < e->inputs.len; i++) {
        const tl_input *in = &e->inputs.items[i];

        if (in->kind == TL_IN_CELL && e->cells[in->index].held) {
            tl_ecell *c = &e->cells[in->index];

            c->plain += is_plain(e, i, slot_of(c, in->leaf));
        }
    }
    for (size_t i = 0; i < e->ncells; i++) {
        tl_ecell *c = &e->cells[i];

        c->held = c->held && c->plain == c->nleaves;
    }
}

static void list_cells(tl_entry *e)
{
    tl_holds *h = &e->holds;

    h->ntrees = h->nloose_cells = 0;
    for (size_t i = 0; i < e->ncells; i++) {
        tl_ecell *c = &e->cells[i];

        if (!c->held) {
            h->loose_cells[h->nloose_cells++] = (uint32_t)i;
            continue;
        }
        c->last = c->cell->value;
        c->version = c->cell->version;
        if (c->last.tag == TL_V_TREE) {
            h->trees[h->ntrees++] = (uint32_t)i;
        }
    }
}

/* Inputs of held cells that are written, or of those that are not. */
static void list_inputs(tl_entry *e, bool written)
{
    tl_holds *h = &e->holds;

    for (size_t i = 0; i < e->inputs.len; i++) {
        const tl_input *in = &e->inputs.items[i];
        const tl_ecell *c =
            in->kind == TL_IN_CELL ? &e->cells[in->index] : NULL;

        if (c == NULL || !c->held) {
            if (written) {
                h->loose_inputs[h->nloose_inputs++] = (uint32_t)i;
            }
        } else if (c->written == written) {
            h->inputs[i] = 1;
            h->items[h->len++] = (tl_hold){.version = &c->cell->version,
                                           .seen = c->cell->version,
                                           .tensor = e->tensors[i],
                                           .storage = e->tensors[i]->storage};
        }
    }
}

void tl_entry_hold(tl_entry *e, tl_run *run)
{
    tl_holds *h = &e->holds;

    uint32_t ngiven;

    if (h->never || e->taped || e->in_grad ||
        tl_program_given(e->program, &ngiven) != NULL) { /* it is held */
        return;
    }
    if (e->ncells < FEW || !make_room(e)) {
        h->never = true;
        return;
    }
    find_held(e);
    list_cells(e);
    memset(h->inputs, 0, e->inputs.len);
    h->len = h->nloose_inputs = 0;
    list_inputs(e, true);
    h->nwritten = h->len;
    list_inputs(e, false);
    run->held = h->inputs;
    h->uses = 0; /* the next call looks */
    h->on = h->len >= FEW && tl_program_settle(e->program, run);
}
