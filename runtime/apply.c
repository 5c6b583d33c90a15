/* apply.c - running one operation: types, casts, results, kernel, tapes.
 *
 * A call owns its inputs; what is left of them is released at the end, on
 * failure too.  Elementwise operations on equal shapes and dtypes, the bulk
 * of small programs, never build a tl_ttype.
 *
 * An unshared input may become the result (its storage is overwritten).
 * Nothing that a tape has kept is overwritten, because keeping is a
 * reference; what this very call will keep is looked up in the row. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/apply.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/op/view.h"

typedef struct call {
    tl_rt *rt;
    tl_op op;
    const tl_op_info *info;
    const tl_attrs *at;
    tl_tensor **in; /* owned; NULL once given away */
    int nin;
    tl_tensor *out[TL_MAX_OUTPUTS]; /* owned until the call has succeeded */
    bool recorded; /* on some open tape */
} call;

/* ---- inputs ------------------------------------------------------------- */

/* Replace in[i] by itself as `dtype`; recorded like any operation. */
static tl_status cast_input(call *c, int i, tl_dtype dtype)
{
    tl_tensor *x = c->in[i];
    tl_attrs at;

    if (x->dtype == dtype) {
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    c->in[i] = NULL; /* eaten */
    return tl_apply(c->rt, TL_OP_cast, &x, 1, &at, &c->in[i]);
}

static bool same_shape(const tl_tensor *a, const tl_tensor *b)
{
    return a->rank == b->rank &&
           memcmp(a->size, b->size, (size_t)a->rank * sizeof(*a->size)) == 0;
}

/* All inputs of one dtype and one shape? */
static bool uniform(const call *c)
{
    for (int i = 1; i < c->nin; i++) {
        if (c->in[i]->dtype != c->in[0]->dtype ||
            !same_shape(c->in[i], c->in[0])) {
            return false;
        }
    }
    return true;
}

static bool is_recorded(const call *c)
{
    return c->rt->tape && c->rt->no_grad == 0 &&
           tl_tape_sees(c->rt->tape, c->in, c->nin);
}

/* ---- results ------------------------------------------------------------ */

/* Can in[i] become the result of this dtype and shape?  A storage much larger
 * than the result is not worth keeping alive. */
static bool reusable(const call *c, int i, tl_dtype dtype, int rank,
                     const int64_t *size)
{
    const tl_tensor *t = c->in[i];

    return t->dtype == dtype && t->rank == rank &&
           tl_tensor_contiguous(t) && t->offset == 0 &&
           memcmp(t->size, size, (size_t)rank * sizeof(*size)) == 0 &&
           tl_tensor_unshared(t) &&
           !(c->recorded && ((c->info->saves_in >> i) & 1) != 0) &&
           tl_storage_bytes(t->storage) / 2 <=
               (size_t)t->numel * tl_dtype_size(dtype) + 64;
}

/* Make in[i] the result.  While a tape records, the input's own header is
 * still needed for its nodes, so the result gets a second one. */
static tl_status reuse(call *c, int i)
{
    tl_tensor *t = c->in[i];

    if (c->recorded) {
        TL_TRY(tl_tensor_alias(&c->out[0], t, c->rt->diag));
    } else {
        tl_tensor_unlink(t);
        c->out[0] = tl_tensor_ref(t);
    }
    /* A size-1 axis of a row-major view may have any stride. */
    tl_row_major(t->rank, c->out[0]->size, c->out[0]->stride);
    return TL_OK;
}

/* The result of an elementwise operation, in place if possible. */
static tl_status map_result(call *c, tl_dtype dtype, int rank,
                            const int64_t *size)
{
    if (c->info->cls == TL_CLASS_MAP) {
        for (int i = 0; i < c->nin; i++) {
            if (reusable(c, i, dtype, rank, size)) {
                return reuse(c, i);
            }
        }
    }
    return tl_tensor_new(&c->out[0], c->rt->pool, dtype, rank, size,
                         c->rt->diag);
}

/* Sizes of a shape of numbers; false if one is TL_SIZE_BY_DATA. */
static bool concrete_sizes(const tl_shape *shape, int64_t *size)
{
    bool known = true;

    for (int i = 0; i < shape->rank; i++) {
        size[i] = tl_dim_value(shape->dim[i]);
        known = known && size[i] != TL_SIZE_BY_DATA;
    }
    return known;
}

/* Result `i` of `type`: allocated, or a stub that the kernel realises. */
static tl_status new_result(call *c, int i, const tl_ttype *type)
{
    int64_t size[TL_MAX_RANK];

    if (!concrete_sizes(&type->shape, size)) {
        return tl_tensor_blank(&c->out[i], type->dtype, type->shape.rank,
                               c->rt->diag);
    }
    return tl_tensor_new(&c->out[i], c->rt->pool, type->dtype,
                         type->shape.rank, size, c->rt->diag);
}

/* Types of the results. */
static tl_status infer(call *c, tl_ttype *out)
{
    tl_ttype few[TL_MAX_INPUTS];
    tl_ttype *in = c->nin > 0 ? few : NULL;
    tl_status st;

    if (c->nin > TL_MAX_INPUTS) {
        in = tl_calloc((size_t)c->nin, sizeof(*in));
        if (!in) {
            return tl_fail_memory(c->rt->diag, "types of operands",
                                  (size_t)c->nin * sizeof(*in));
        }
    }
    for (int i = 0; i < c->nin; i++) {
        tl_tensor_type(c->in[i], &in[i]);
    }
    st = tl_op_infer(&c->rt->infer, c->op, in, c->nin, c->at, out);
    if (c->nin > TL_MAX_INPUTS) {
        tl_free(in);
    }
    return st;
}

/* ---- running ------------------------------------------------------------ */

static tl_status run_kernel(call *c)
{
    tl_kernel_fn *kernel = c->rt->device->kernel[c->op];

    if (!kernel) {
        return tl_fail(c->rt->diag, TL_E0699, "`%s` has no kernel on %s",
                       c->info->name, c->rt->device->name);
    }
    return kernel(&c->rt->kctx, c->op, c->in, c->nin, c->out, c->info->nout,
                  c->at);
}

/* Put the call on each open tape. */
static tl_status record(call *c)
{
    if (!c->recorded) {
        return TL_OK;
    }
    for (tl_tape *tape = c->rt->tape; tape; tape = tape->outer) {
        TL_TRY(tl_tape_record(tape, c->op, c->in, c->nin, c->out,
                              c->info->nout, c->at, c->rt->span,
                              c->rt->diag));
    }
    return TL_OK;
}

/* Is input i a bool that stays outside the join (the condition of where)? */
static bool is_condition(const call *c, int i)
{
    return ((c->info->bool_in >> i) & 1) != 0;
}

/* The dtype in which the row computes on these inputs. */
static tl_status compute_dtype(call *c, tl_dtype *out)
{
    tl_dtype joined = TL_bool; /* the least dtype */

    for (int i = 0; i < c->nin; i++) {
        if (!is_condition(c, i)) {
            joined = tl_dtype_join(joined, c->in[i]->dtype);
        }
    }
    return tl_op_compute_dtype(c->op, joined, out, c->rt->diag);
}

/* Bring what is computed with to `dtype`. */
static tl_status cast_inputs(call *c, tl_dtype dtype)
{
    for (int i = 0; i < c->nin; i++) {
        if (!is_condition(c, i)) {
            TL_TRY(cast_input(c, i, dtype));
        }
    }
    return TL_OK;
}

/* Elementwise operations on operands of different shapes or dtypes. */
static tl_status map_general(call *c)
{
    int64_t size[TL_MAX_RANK];
    tl_ttype type;
    tl_dtype dtype;

    TL_TRY(infer(c, &type));
    TL_TRY(compute_dtype(c, &dtype));
    (void)concrete_sizes(&type.shape, size);
    TL_TRY(cast_inputs(c, dtype));
    c->recorded = is_recorded(c);
    return map_result(c, type.dtype, type.shape.rank, size);
}

static tl_status apply_map(call *c)
{
    tl_dtype dtype;

    if (uniform(c)) {
        TL_TRY(tl_op_compute_dtype(c->op, c->in[0]->dtype, &dtype,
                                   c->rt->diag));
        TL_TRY(cast_inputs(c, dtype));
        c->recorded = is_recorded(c);
        TL_TRY(map_result(c, c->info->cls == TL_CLASS_CMP ? TL_bool : dtype,
                          c->in[0]->rank, c->in[0]->size));
    } else {
        TL_TRY(map_general(c));
    }
    TL_TRY(run_kernel(c));
    return record(c);
}

/* Reductions, creators and structured operations. */
static tl_status apply_kernel(call *c)
{
    tl_ttype type[TL_MAX_OUTPUTS];
    tl_dtype dtype;

    TL_TRY(infer(c, type));
    if (c->nin == 1 && c->info->types != TL_TYPES_ANY) {
        TL_TRY(compute_dtype(c, &dtype));
        TL_TRY(cast_inputs(c, dtype));
    }
    for (int i = 0; i < c->info->nout; i++) {
        TL_TRY(new_result(c, i, &type[i]));
    }
    c->recorded = is_recorded(c);
    TL_TRY(run_kernel(c));
    return record(c);
}

/* ---- views -------------------------------------------------------------- */

static void get_layout(const tl_tensor *t, tl_layout *out)
{
    size_t bytes = (size_t)t->rank * sizeof(*t->size);

    out->rank = t->rank;
    out->offset = t->offset;
    memcpy(out->size, t->size, bytes);
    memcpy(out->stride, t->stride, bytes);
}

static bool same_layout(const tl_layout *a, const tl_tensor *t)
{
    size_t bytes = (size_t)a->rank * sizeof(*a->size);

    return a->rank == t->rank && a->offset == t->offset &&
           memcmp(a->size, t->size, bytes) == 0 &&
           memcmp(a->stride, t->stride, bytes) == 0;
}

static tl_status apply_view(call *c)
{
    tl_layout from, to;
    tl_ttype type;

    TL_TRY(infer(c, &type));
    get_layout(c->in[0], &from);
    if (!tl_view_layout(c->op, c->at, &from, &to)) {
        tl_tensor *copy;

        TL_TRY(tl_contiguous(c->rt, c->in[0], &copy));
        tl_tensor_unref(c->in[0]);
        c->in[0] = copy;
        get_layout(copy, &from);
        TL_CHECK(tl_view_layout(c->op, c->at, &from, &to));
    }
    if (same_layout(&to, c->in[0])) {
        c->out[0] = tl_tensor_ref(c->in[0]);
        return TL_OK;
    }
    c->recorded = is_recorded(c);
    TL_TRY(tl_tensor_view(&c->out[0], c->in[0], to.rank, to.size, to.stride,
                          to.offset, c->rt->diag));
    return record(c);
}

/* ---- the entrance ------------------------------------------------------- */

/* An operation that changes nothing gives its input, with its nodes. */
static bool is_identity(const call *c)
{
    return c->op == TL_OP_cast && c->at->dtype == c->in[0]->dtype;
}

static tl_status dispatch(call *c)
{
    volatile sig_atomic_t *interrupted = c->rt->interrupted;

    if (interrupted && *interrupted) {
        return tl_fail(c->rt->diag, TL_E0608, "interrupted");
    }
    if (is_identity(c)) {
        c->out[0] = tl_tensor_ref(c->in[0]);
        return TL_OK;
    }
    switch (c->info->cls) {
    case TL_CLASS_MAP:
    case TL_CLASS_CMP:
        return apply_map(c);
    case TL_CLASS_VIEW:
        return apply_view(c);
    default:
        return apply_kernel(c);
    }
}

/* Give up what a failed call has made; say what ran out of memory. */
static void abandon(call *c, tl_status st)
{
    for (int i = 0; i < c->info->nout; i++) {
        tl_tensor_unref(c->out[i]);
    }
    if (st == TL_ERR_MEMORY) {
        tl_diag_note(c->rt->diag, "in the operation `%s`", c->info->name);
    }
}

static void call_init(call *c, tl_rt *rt, tl_op op, tl_tensor **in, int nin,
                      const tl_attrs *at)
{
    c->rt = rt;
    c->op = op;
    c->info = tl_op_get(op);
    c->at = at;
    c->in = in;
    c->nin = nin;
    c->recorded = false;
    for (int i = 0; i < c->info->nout; i++) {
        c->out[i] = NULL;
    }
}

/* Release the inputs; hand out the results, or release them too. */
static tl_status finish(call *c, tl_status st, tl_tensor **out)
{
    for (int i = 0; i < c->nin; i++) {
        tl_tensor_unref(c->in[i]);
    }
    if (st != TL_OK) {
        abandon(c, st);
        return st;
    }
    for (int i = 0; i < c->info->nout; i++) {
        out[i] = c->out[i];
    }
    return TL_OK;
}

tl_status tl_apply(tl_rt *rt, tl_op op, tl_tensor **in, int nin,
                   const tl_attrs *at, tl_tensor **out)
{
    call c;

    call_init(&c, rt, op, in, nin, at);
    return finish(&c, dispatch(&c), out);
}

tl_status tl_contiguous(tl_rt *rt, tl_tensor *t, tl_tensor **out)
{
    tl_tensor *in = tl_tensor_ref(t);
    tl_attrs at;
    call c;

    if (tl_tensor_contiguous(t)) {
        *out = in;
        return TL_OK;
    }
    tl_attrs_init(&at); /* a cast to its own dtype copies, and is recorded */
    at.dtype = (uint8_t)t->dtype;
    call_init(&c, rt, TL_OP_cast, &in, 1, &at);
    return finish(&c, apply_kernel(&c), out);
}

tl_status tl_apply_borrowed(tl_rt *rt, tl_op op, tl_tensor *const *in,
                            int nin, const tl_attrs *at, tl_tensor **out)
{
    tl_tensor *few[TL_MAX_INPUTS];
    tl_tensor **owned = few;
    tl_status st;

    if (nin > TL_MAX_INPUTS) {
        owned = tl_calloc((size_t)nin, sizeof(tl_tensor *));
        if (!owned) {
            return tl_fail_memory(rt->diag, "a list of operands",
                                  (size_t)nin * sizeof(tl_tensor *));
        }
    }
    for (int i = 0; i < nin; i++) {
        owned[i] = tl_tensor_ref(in[i]);
    }
    st = tl_apply(rt, op, owned, nin, at, out);
    if (owned != few) {
        tl_free(owned);
    }
    return st;
}

tl_status tl_stop(tl_rt *rt, tl_tensor *t, tl_tensor **out)
{
    return tl_tensor_alias(out, t, rt->diag);
}
