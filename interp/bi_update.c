/* bi_update.c - update rules of optimisers over whole trees.
 *
 * One call does every leaf.  Leaves that nothing else sees (a tree that is
 * given away) are updated in place.  `decay` is a number, or a dict from
 * patterns to numbers of which the first that matches a leaf's path decides;
 * a leaf that none matches has no decay. */
#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "compiler/build.h"
#include "interp/dict.h"
#include "interp/sym.h"
#include "interp/tree.h"

/* Leaves of one operand: a tree's items, or a single tensor. */
static size_t leaf_count(tl_value v)
{
    return v.tag == TL_V_TREE ? v.tree->shape->len : 1;
}

static tl_status check_operand(tl_eval *ev, tl_value first, tl_value v,
                               const char *name)
{
    bool ok = tl_is_tensor(v) && leaf_count(first) == 1; /* of one cell */

    if (first.tag == TL_V_TREE && v.tag == TL_V_TREE) {
        ok = tl_tree_shape_same(v.tree->shape, first.tree->shape);
    }
    if (ok) {
        return TL_OK;
    }
    return tl_fail(ev->diag, TL_E0512,
                   "`%s` does not have the structure of the parameters: got "
                   "%s and %s",
                   name, tl_value_type_str(v).s, tl_value_type_str(first).s);
}

/* Take leaf `i` out of `v` where `v` is unshared, else a reference. */
static tl_value leaf_take(tl_value *v, size_t i)
{
    if (v->tag != TL_V_TREE) {
        tl_value t = *v;

        *v = tl_empty();
        return t;
    }
    tl_value t = v->tree->items[i];

    if (!tl_unshared(*v)) {
        return tl_ref(t);
    }
    v->tree->items[i] = tl_none(); /* nothing looks at it any more */
    return t;
}

static tl_status decay_of(tl_eval *ev, tl_value decay, tl_value params,
                          size_t i, double *out)
{
    *out = 0;
    if (tl_is_number(decay)) {
        *out = tl_number_f(decay);
        return TL_OK;
    }
    if (decay.tag != TL_V_DICT) {
        return tl_fail(ev->diag, TL_E0210,
                       "decay is a number or a dict from pattern to number, "
                       "got %s",
                       tl_value_type_str(decay).s);
    }
    const char *path =
        params.tag == TL_V_TREE ? params.tree->shape->paths[i]->data : "";

    for (size_t k = 0; k < decay.dict->len; k++) {
        const tl_dict_entry *e = &decay.dict->entries[k];

        if (e->key.tag == TL_V_EMPTY) {
            continue;
        }
        if (e->key.tag != TL_V_STR || !tl_is_number(e->value)) {
            return tl_fail(ev->diag, TL_E0210,
                           "decay maps patterns to numbers, got %s: %s",
                           tl_value_type_str(e->key).s,
                           tl_value_type_str(e->value).s);
        }
        if (tl_glob_match(e->key.str->data, path)) {
            *out = tl_number_f(e->value);
            return TL_OK;
        }
    }
    return TL_OK;
}

/* The learning rate may be a symbol; the other numbers decide what is
 * compiled. */
static tl_status read_all_but(tl_eval *ev, tl_value *args, int n, int rate)
{
    for (int i = 0; i < n; i++) {
        if (i != rate) {
            TL_TRY(tl_sym_read_deep(ev, &args[i]));
        }
    }
    return TL_OK;
}

static tl_status number_attr(tl_eval *ev, tl_value v, double *out)
{
    uint32_t host;

    if (!tl_is_sym(v)) {
        *out = v.f;
        return TL_OK;
    }
    TL_TRY(tl_sym_host(ev, v, true, &host));
    *out = tl_gbuild_attr(host);
    return TL_OK;
}

/* An update in the making. */
typedef struct update {
    tl_op op;
    tl_attrs at;
    tl_value decay;
    tl_value *in[4]; /* params, grads, state... */
    int nin, nout;
    tl_value count; /* adam: i64[], else EMPTY */
} update;

/* All results; the first operand's structure is that of the results. */
static tl_status run_update(tl_eval *ev, update *u, tl_value *lists)
{
    size_t n = leaf_count(*u->in[0]);

    for (size_t i = 0; i < n; i++) {
        tl_value ops[5], res[TL_MAX_OUTPUTS];
        int k = 0;

        TL_TRY(decay_of(ev, u->decay, *u->in[0], i, &u->at.f[1]));
        for (; k < u->nin; k++) {
            ops[k] = leaf_take(u->in[k], i);
        }
        if (u->count.tag != TL_V_EMPTY) {
            ops[k++] = tl_ref(u->count);
        }
        TL_TRY(tl_eval_op(ev, u->op, ops, k, &u->at, res));
        for (int j = 0; j < u->nout; j++) {
            tl_status st = tl_list_push_take(lists[j].seq, res[j], ev->diag);

            if (st != TL_OK) {
                tl_unref_all(res + j + 1, (size_t)(u->nout - j - 1));
                return st;
            }
        }
    }
    return TL_OK;
}

/* Result j: a tree, or the one tensor.  Takes the items of the list. */
static tl_status result(tl_eval *ev, tl_tree_shape *shape, tl_value list,
                        const tl_tree *flags, tl_value *out)
{
    if (shape == NULL) {
        *out = tl_ref(list.seq->items[0]);
        return TL_OK;
    }
    list.seq->len = 0;
    TL_TRY(tl_tree_new_take(out, shape, list.seq->items, ev->diag));
    return flags != NULL ? tl_tree_join_flag(ev, out->tree, flags) : TL_OK;
}

static tl_status update_take(tl_eval *ev, update *u, tl_value *res)
{
    tl_value lists[TL_MAX_OUTPUTS];
    tl_tree_shape *shape = NULL;
    tl_value grads = tl_ref(*u->in[1]); /* its flag goes to the results */
    tl_status st = TL_OK;
    int made = 0;

    for (; made < u->nout && st == TL_OK; made++) {
        lists[made] = tl_empty();
        st = tl_seq_new_take(&lists[made], TL_V_LIST, NULL, 0, ev->diag);
    }
    if (u->in[0]->tag == TL_V_TREE) {
        shape = tl_tree_shape_ref(u->in[0]->tree->shape);
    }
    if (st == TL_OK) {
        st = run_update(ev, u, lists);
    }
    for (int j = 0; j < u->nout && st == TL_OK; j++) {
        st = result(ev, shape, lists[j],
                    grads.tag == TL_V_TREE ? grads.tree : NULL, &res[j]);
        if (st != TL_OK) {
            tl_unref_all(res, (size_t)j);
        }
    }
    tl_unref_all(lists, (size_t)made);
    tl_tree_shape_unref(shape);
    tl_unref(grads);
    return st;
}

tl_status tl_bi_sgd_update(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    update u = {.in = {&args[0], &args[1], &args[2]}, .nin = 2, .nout = 1,
                .op = TL_OP_sgd_update, .decay = args[6],
                .count = tl_empty()};
    tl_value pair[2];

    (void)self;
    tl_attrs_init(&u.at);
    TL_TRY(read_all_but(ev, args, 7, 3));
    u.decay = args[6];
    TL_TRY(number_attr(ev, args[3], &u.at.f[0]));
    u.at.f[2] = args[4].f;
    u.at.flag = args[5].b;
    TL_TRY(check_operand(ev, args[0], args[1], "grads"));
    if (args[2].tag != TL_V_NONE) {
        TL_TRY(check_operand(ev, args[0], args[2], "momentum_buffer"));
        u.op = TL_OP_momentum_update;
        u.nin = 3;
        u.nout = 2;
    }
    TL_TRY(update_take(ev, &u, pair));
    if (u.nout == 1) {
        pair[1] = tl_none();
    }
    return tl_seq_new_take(out, TL_V_TUPLE, pair, 2, ev->diag);
}

tl_status tl_bi_adam_update(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    update u = {.in = {&args[0], &args[1], &args[2], &args[3]}, .nin = 4,
                .nout = 3, .op = self->op, .decay = args[9],
                .count = args[4]};
    tl_value three[3];

    tl_attrs_init(&u.at);
    TL_TRY(read_all_but(ev, args, 10, 5));
    u.decay = args[9];
    TL_TRY(number_attr(ev, args[5], &u.at.f[0]));
    u.at.f[2] = args[6].f;
    u.at.f[3] = args[7].f;
    u.at.f[4] = args[8].f;
    TL_TRY(check_operand(ev, args[0], args[1], "grads"));
    TL_TRY(check_operand(ev, args[0], args[2], "m"));
    TL_TRY(check_operand(ev, args[0], args[3], "v"));
    TL_TRY(update_take(ev, &u, three));
    return tl_seq_new_take(out, TL_V_TUPLE, three, 3, ev->diag);
}
