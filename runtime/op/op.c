/* op.c - the table of operations: what ops.def says, by number and by name,
 * and the shape rules that whole classes share.
 *
 * The table is filled by the compiler, but for saves_in and saves_out of MAP
 * rows: they are read off the gradient formulas when the library is loaded,
 * and nothing changes afterwards. */
#include "runtime/op/op.h"

#include <ctype.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/op/rules.h"

static tl_infer_fn infer_map, infer_cmp, infer_red, infer_make;

#define ROW(nm, class, inputs, results, ty, am, dom, text, ...)              \
    {                                                                        \
        .name = #nm, .cls = TL_CLASS_##class, .nin = (inputs),               \
        .nout = (results), .types = TL_TYPES_##ty, .amp = TL_AMP_##am,       \
        .domain = TL_DOM_##dom, .doc = text, __VA_ARGS__                     \
    }
#define FORMULAS(val, ...)                                                   \
    .value = #val, .grad = {__VA_ARGS__}, .differentiable = true,            \
    .infer = infer_map

#define MAP1(nm, val, gx, am, ty, dom, text)                                 \
    ROW(nm, MAP, 1, 1, ty, am, dom, text, FORMULAS(val, #gx)),
#define MAP2(nm, val, ga, gb, am, ty, dom, text)                             \
    ROW(nm, MAP, 2, 1, ty, am, dom, text, FORMULAS(val, #ga, #gb)),
#define MAP3(nm, val, ga, gb, gc, am, ty, dom, text)                         \
    ROW(nm, MAP, 3, 1, ty, am, dom, text, FORMULAS(val, #ga, #gb, #gc)),
#define CMP1(nm, val, ty, dom, text)                                         \
    ROW(nm, CMP, 1, 1, ty, WIDE, dom, text, .value = #val,                   \
        .infer = infer_cmp),
#define CMP2(nm, val, ty, dom, text)                                         \
    ROW(nm, CMP, 2, 1, ty, WIDE, dom, text, .value = #val,                   \
        .infer = infer_cmp),
#define RULES(inf, gr, si, so)                                               \
    .infer = inf, .grad_rule = gr, .saves_in = (si), .saves_out = (so)
#define RED(nm, gr, si, so, am, ty, dom, text)                               \
    ROW(nm, RED, 1, 1, ty, am, dom, text, RULES(infer_red, gr, si, so)),
#define VIEW(nm, inf, gr, text)                                              \
    ROW(nm, VIEW, 1, 1, ANY, WIDE, ANY, text, RULES(inf, gr, 0, 0)),
#define MAKE(nm, text)                                                       \
    ROW(nm, MAKE, 0, 1, ANY, WIDE, ANY, text, .infer = infer_make),
#define KERN(nm, ni, no, inf, gr, si, so, am, ty, dom, text)                 \
    ROW(nm, KERN, ni, no, ty, am, dom, text, RULES(inf, gr, si, so)),

static tl_op_info table[] = {
#include "runtime/op/ops.def"
};

/* Does the name of one letter occur in the formula as a word? */
static bool mentions(const char *text, char name)
{
    for (const char *p = text; *p != 0;) {
        const char *start = p;

        while (isalnum((unsigned char)*p) || *p == '_' || *p == '.') {
            p++;
        }
        if (p - start == 1 && *start == name) {
            return true;
        }
        p += p == start;
    }
    return false;
}

static void read_saves(tl_op_info *row)
{
    static const char names[] = "abc";

    for (int i = 0; i < row->nin; i++) {
        for (int j = 0; j < row->nin && row->grad[i] != NULL; j++) {
            if (mentions(row->grad[i], row->nin == 1 ? 'x' : names[j])) {
                row->saves_in |= 1u << j;
            }
        }
        if (row->grad[i] != NULL && mentions(row->grad[i], 'y')) {
            row->saves_out = 1;
        }
    }
}

/* What the columns of KERN rows do not say. */
static void complete_kern_rows(void)
{
    table[TL_OP_matmul].join_in = 3;
    table[TL_OP_conv].join_in = 3;
    table[TL_OP_conv_transpose].join_in = 3;
    table[TL_OP_conv_weight].join_in = 3;
    table[TL_OP_cat].join_in = UINT32_MAX;
    table[TL_OP_softmax_grad].join_in = 3;
    table[TL_OP_log_softmax_grad].join_in = 3;
    table[TL_OP_cross_entropy].join_in = 5; /* logits, weight */
    table[TL_OP_layer_norm].join_in = 7;
    table[TL_OP_rms_norm].join_in = 3;
    table[TL_OP_batch_norm].join_in = 7;
    table[TL_OP_group_norm].join_in = 7;
    table[TL_OP_sdpa].join_in = 7; /* q, k, v */
    table[TL_OP_max_pool].join_in = 1;
    table[TL_OP_avg_pool].join_in = 1;
    table[TL_OP_resize].join_in = 1;
    table[TL_OP_cholesky].join_in = 1;
    table[TL_OP_solve].join_in = 3;
    table[TL_OP_tri_solve].join_in = 3;
    table[TL_OP_qr].join_in = 1;
    table[TL_OP_slice_put].in_place = 1;
    table[TL_OP_scatter_add].in_place = 1;
    table[TL_OP_index_put].in_place = 1;
    table[TL_OP_sgd_update].in_place = 1;
    /* p, then the state; input 1 is the gradient */
    table[TL_OP_momentum_update].in_place = 5;
    table[TL_OP_adam_update].in_place = 13;
    table[TL_OP_adamw_update].in_place = 13;
}

__attribute__((constructor)) static void complete_table(void)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        tl_op_info *row = &table[op];

        if (row->cls == TL_CLASS_MAP) {
            read_saves(row);
        } else if (row->grad_rule == tl_no_grad) {
            row->grad_rule = NULL;
        }
        row->differentiable |= row->grad_rule != NULL;
    }
    table[TL_OP_where].bool_in = 1;
    complete_kern_rows();
}

const tl_op_info *tl_op_get(tl_op op)
{
    TL_ASSERT((unsigned)op < TL_OP_COUNT);
    return &table[op];
}

tl_op tl_op_find(const char *name)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        if (strcmp(table[op].name, name) == 0) {
            return (tl_op)op;
        }
    }
    return TL_OP_COUNT;
}

tl_status tl_op_infer(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                      const tl_attrs *at, tl_ttype *out)
{
    const tl_op_info *row = tl_op_get(op);

    TL_CHECK(row->nin < 0 || row->nin == nin);
    return row->infer(cx, op, in, nin, at, out);
}

bool tl_op_grad_is_zero(tl_op op, int which)
{
    const char *text = tl_op_get(op)->grad[which];

    return text != NULL && strcmp(text, "(0)") == 0;
}

tl_rng_key tl_attrs_key(const tl_attrs *at)
{
    return (tl_rng_key){.seed = (uint64_t)at->i[0],
                        .draw = (uint64_t)at->i[1],
                        .stream = (uint32_t)(uint64_t)at->i[2],
                        .sub = (uint32_t)((uint64_t)at->i[2] >> 32)};
}

void tl_attrs_set_key(tl_attrs *at, const tl_rng_key *key)
{
    at->i[0] = (int64_t)key->seed;
    at->i[1] = (int64_t)key->draw;
    at->i[2] = (int64_t)(((uint64_t)key->sub << 32) | key->stream);
}

tl_status tl_no_grad(tl_emit *e, const tl_grad_in *gi, tl_node *dx)
{
    (void)dx;
    return tl_fail(e->infer->diag, TL_E0511, "`%s` has no gradient",
                   tl_op_get(gi->op)->name);
}

/* ---- dtypes and shapes of the classes ---------------------------------- */

tl_status tl_op_compute_dtype(tl_op op, tl_dtype joined, tl_dtype *out,
                              tl_diag *diag)
{
    const tl_op_info *row = tl_op_get(op);

    switch (row->types) {
    case TL_TYPES_FLOAT:
        *out = tl_dtype_is_float(joined) ? joined : TL_f32;
        return TL_OK;
    case TL_TYPES_NUM:
        *out = joined == TL_bool ? TL_i64 : joined;
        return TL_OK;
    case TL_TYPES_BOOL:
        if (joined != TL_bool) {
            return tl_fail(diag, TL_E0317,
                           "`%s` is defined for bool tensors, not for %s",
                           row->name, tl_dtype_name(joined));
        }
        break;
    case TL_TYPES_ANY:
        break;
    }
    *out = joined;
    return TL_OK;
}

/* Join and broadcast the operands of an elementwise row. */
static tl_status infer_operands(tl_infer *cx, tl_op op, const tl_ttype *in,
                                int nin, tl_ttype *out)
{
    const tl_op_info *row = tl_op_get(op);
    tl_ttype t = {.dtype = TL_bool, .shape = in[0].shape};

    for (int i = 0; i < nin; i++) {
        if ((row->bool_in >> i & 1) == 0) {
            t.dtype = tl_dtype_join(t.dtype, in[i].dtype);
        } else if (in[i].dtype != TL_bool) {
            return tl_fail(cx->diag, TL_E0308,
                           "`%s` needs a bool condition, not %s", row->name,
                           tl_dtype_name(in[i].dtype));
        }
        if (i > 0) {
            TL_TRY(tl_shape_broadcast(cx, &t.shape, &t.shape, &in[i].shape));
        }
    }
    TL_TRY(tl_op_compute_dtype(op, t.dtype, &t.dtype, cx->diag));
    *out = t;
    return TL_OK;
}

static tl_status infer_map(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)at;
    return infer_operands(cx, op, in, nin, out);
}

static tl_status infer_cmp(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)at;
    TL_TRY(infer_operands(cx, op, in, nin, out));
    out->dtype = TL_bool;
    return TL_OK;
}

static tl_status infer_make(tl_infer *cx, tl_op op, const tl_ttype *in,
                            int nin, const tl_attrs *at, tl_ttype *out)
{
    (void)in;
    (void)nin;
    TL_TRY(at->ndims <= TL_MAX_RANK
               ? TL_OK
               : tl_fail(cx->diag, TL_E0316,
                         "`%s` got %d sizes; a tensor has at most %d axes",
                         tl_op_get(op)->name, (int)at->ndims, TL_MAX_RANK));
    for (int i = 0; i < at->ndims; i++) {
        if (tl_dim_is_num(at->dims[i]) && tl_dim_value(at->dims[i]) < 0) {
            return tl_fail(
                cx->diag, TL_E0306, "`%s` got size %lld for axis %d",
                tl_op_get(op)->name, (long long)tl_dim_value(at->dims[i]), i);
        }
    }
    out->dtype = (tl_dtype)at->dtype;
    out->shape.rank = at->ndims;
    memcpy(out->shape.dim, at->dims, sizeof(tl_dim) * at->ndims);
    return TL_OK;
}

tl_status tl_infer_same(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    (void)at;
    TL_TRY(tl_op_compute_dtype(op, in[0].dtype, &out->dtype, cx->diag));
    out->shape = in[0].shape;
    return TL_OK;
}

static tl_dtype widened(tl_dtype dtype)
{
    return tl_dtype_is_float(dtype) ? dtype : TL_i64;
}

tl_status tl_infer_scan(tl_infer *cx, tl_op op, const tl_ttype *in, int nin,
                        const tl_attrs *at, tl_ttype *out)
{
    (void)nin;
    if (at->axis < 0 || at->axis >= in[0].shape.rank) {
        return tl_fail(cx->diag, TL_E0309,
                       "`%s` along axis %d of %s: no such axis",
                       tl_op_get(op)->name, at->axis, tl_ttype_str(&in[0]).s);
    }
    out->dtype = widened(in[0].dtype);
    out->shape = in[0].shape;
    return TL_OK;
}

/* Dtype of the result of a reduction of elements of `dtype`. */
static tl_dtype reduced_dtype(tl_op op, tl_dtype dtype)
{
    switch (op) {
    case TL_OP_sum:
    case TL_OP_prod:
        return widened(dtype);
    case TL_OP_mean:
    case TL_OP_var:
    case TL_OP_std:
    case TL_OP_norm:
    case TL_OP_logsumexp:
        return tl_dtype_is_float(dtype) ? dtype : TL_f32;
    case TL_OP_argmax:
    case TL_OP_argmin:
        return TL_i64;
    case TL_OP_any:
    case TL_OP_all:
        return TL_bool;
    default:
        return dtype;
    }
}

/* Does the row have no value for nothing? */
static bool needs_elements(tl_op op)
{
    return op == TL_OP_max || op == TL_OP_min || op == TL_OP_argmax ||
           op == TL_OP_argmin;
}

static tl_status infer_red(tl_infer *cx, tl_op op, const tl_ttype *in,
                           int nin, const tl_attrs *at, tl_ttype *out)
{
    const char *name = tl_op_get(op)->name;
    tl_dtype dtype = in[0].dtype;
    int rank = in[0].shape.rank;

    (void)nin;
    if (at->axes >> rank != 0) {
        return tl_fail(cx->diag, TL_E0309, "`%s` over an axis that %s lacks",
                       name, tl_ttype_str(&in[0]).s);
    }
    for (int i = 0; i < rank && needs_elements(op); i++) {
        tl_dim d = in[0].shape.dim[i];

        if ((at->axes >> i & 1) != 0 && tl_dim_is_num(d) &&
            tl_dim_value(d) == 0) {
            return tl_fail(cx->diag, TL_E0402,
                           "`%s` of nothing: %s has size "
                           "0 on axis %d",
                           name, tl_ttype_str(&in[0]).s, i);
        }
    }
    tl_shape_reduce(&out->shape, &in[0].shape, at->axes, at->keep);
    out->dtype = reduced_dtype(op, dtype);
    return TL_OK;
}
