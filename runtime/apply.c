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
#include "runtime/op/decompose.h"
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
    int keep;        /* input that a failed call gives back, or -1 */
    tl_tensor *kept; /* it, when in[keep] was replaced by a cast */
} call;

static bool has_bit(uint32_t set, int i)
{
    return i < 32 ? ((set >> i) & 1) != 0 : set == UINT32_MAX;
}

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
    if (i == c->keep) {
        c->kept = tl_tensor_ref(x);
    }
    c->in[i] = NULL; /* eaten */
    return tl_apply(c->rt, TL_OP_cast, &x, 1, &at, &c->in[i]);
}

static bool same_shape(const tl_tensor *a, const tl_tensor *b)
{
    return a->rank == b->rank &&
           memcmp(a->size, b->size, (size_t)a->rank * sizeof(*a->size)) == 0;
}

/* All inputs of one dtype and one shape, and conditions of bool? */
static bool uniform(const call *c)
{
    if (c->info->bool_in != 0 && c->in[0]->dtype != TL_bool) {
        return false;
    }
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

/* Can in[i] become a result of this dtype and shape?  A storage much larger
 * than the result is not worth keeping alive. */
static bool reusable(const call *c, int i, tl_dtype dtype, int rank,
                     const int64_t *size)
{
    const tl_tensor *t = c->in[i];

    return t->dtype == dtype && t->rank == rank &&
           tl_tensor_contiguous(t) && t->offset == 0 &&
           memcmp(t->size, size, (size_t)rank * sizeof(*size)) == 0 &&
           tl_tensor_unshared(t) &&
           !(c->recorded && has_bit(c->info->saves_in, i)) &&
           tl_storage_bytes(t->storage) / 2 <=
               (size_t)t->numel * tl_dtype_size(dtype) + 64;
}

/* Make in[i] result k.  While a tape records, the input's own header is
 * still needed for its nodes, and the caller may want it back after a
 * failure: then the result gets a second one. */
static tl_status reuse(call *c, int i, int k)
{
    tl_tensor *t = c->in[i];

    if (c->recorded || i == c->keep) {
        TL_TRY(tl_tensor_alias(&c->out[k], t, c->rt->diag));
    } else {
        tl_tensor_unlink(t);
        c->out[k] = tl_tensor_ref(t);
    }
    c->out[k]->flags &= TL_TENSOR_CONTIGUOUS;
    /* A size-1 axis of a row-major view may have any stride. */
    tl_row_major(t->rank, c->out[k]->size, c->out[k]->stride);
    return TL_OK;
}

static tl_status allocate(call *c, int k, tl_dtype dtype, int rank,
                          const int64_t *size)
{
    TL_TRY(tl_tensor_new(&c->out[k], c->rt->pool, dtype, rank, size,
                         c->rt->diag));
    tl_storage_set_origin(c->out[k]->storage, c->rt->span);
    return TL_OK;
}

/* The result of an elementwise operation, in place if possible. */
static tl_status map_result(call *c, tl_dtype dtype, int rank,
                            const int64_t *size)
{
    if (c->info->cls == TL_CLASS_MAP) {
        for (int i = 0; i < c->nin; i++) {
            if (reusable(c, i, dtype, rank, size)) {
                return reuse(c, i, 0);
            }
        }
    }
    return allocate(c, 0, dtype, rank, size);
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

/* The input whose storage result k of a KERN row may take: the k-th of the
 * set; -1: none. */
static int in_place_input(const call *c, int k)
{
    for (int i = 0; i < c->nin && i < 32; i++) {
        if (has_bit(c->info->in_place, i) && k-- == 0) {
            return i;
        }
    }
    return -1;
}

/* Result k of `type`: allocated, an input that was given away, or a stub that
 * the kernel realises. */
static tl_status new_result(call *c, int k, const tl_ttype *type)
{
    int64_t size[TL_MAX_RANK];
    int rank = type->shape.rank, i;

    if (!concrete_sizes(&type->shape, size)) {
        return tl_tensor_blank(&c->out[k], type->dtype, rank, c->rt->diag);
    }
    i = in_place_input(c, k);
    if (i >= 0 && reusable(c, i, type->dtype, rank, size)) {
        return reuse(c, i, k);
    }
    return allocate(c, k, type->dtype, rank, size);
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
    tl_rt *rt = c->rt;
    tl_kernel_fn *kernel = rt->device->kernel[c->op];
    size_t warnings = rt->diag->nwarnings;
    tl_status st;

    if (!kernel) {
        return tl_fail(rt->diag, TL_E0699, "`%s` has no kernel on %s",
                       c->info->name, rt->device->name);
    }
    st = kernel(&rt->kctx, c->op, c->in, c->nin, c->out, c->info->nout,
                c->at);
    if (rt->diag->nwarnings != warnings) {
        tl_diag_at(rt->diag, rt->span); /* a kernel does not know its place */
    }
    return st;
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

/* The inputs that are joined and cast: of elementwise rows all but the
 * condition of `where`; of KERN rows those that the row names, or a single
 * input that the row does not take as it is. */
static uint32_t joined_inputs(const call *c)
{
    switch (c->info->cls) {
    case TL_CLASS_MAP:
    case TL_CLASS_CMP:
        return UINT32_MAX & ~c->info->bool_in;
    case TL_CLASS_RED:
        return 1;
    default:
        return c->info->join_in != 0 ? c->info->join_in
               : c->nin == 1 && c->info->types != TL_TYPES_ANY ? 1
                                                               : 0;
    }
}

/* Join these inputs and cast them to the dtype in which the row computes. */
static tl_status cast_inputs(call *c, uint32_t set)
{
    tl_dtype dtype = TL_bool; /* the least */

    if (set == 0) {
        return TL_OK;
    }
    for (int i = 0; i < c->nin; i++) {
        if (has_bit(set, i)) {
            dtype = tl_dtype_join(dtype, c->in[i]->dtype);
        }
    }
    TL_TRY(tl_op_compute_dtype(c->op, dtype, &dtype, c->rt->diag));
    for (int i = 0; i < c->nin; i++) {
        if (has_bit(set, i)) {
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

    TL_TRY(infer(c, &type));
    (void)concrete_sizes(&type.shape, size);
    TL_TRY(cast_inputs(c, joined_inputs(c)));
    c->recorded = is_recorded(c);
    return map_result(c, type.dtype, type.shape.rank, size);
}

static tl_status apply_map(call *c)
{
    tl_dtype dtype = c->in[0]->dtype;

    if (uniform(c)) {
        TL_TRY(tl_op_compute_dtype(c->op, dtype, &dtype, c->rt->diag));
        for (int i = 0; i < c->nin; i++) {
            TL_TRY(cast_input(c, i, dtype));
        }
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

    TL_TRY(infer(c, type));
    TL_TRY(cast_inputs(c, joined_inputs(c)));
    c->recorded = is_recorded(c);
    for (int k = 0; k < c->info->nout; k++) {
        TL_TRY(new_result(c, k, &type[k]));
    }
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
    uint32_t weight = c->in[0]->flags & TL_TENSOR_WEIGHT;
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
    /* A tape has a view of its own: its place in the order of gradients must
     * not depend on strides, and under no_grad it is a constant. */
    if (same_layout(&to, c->in[0]) &&
        !(c->rt->tape && tl_tape_sees(c->rt->tape, c->in, 1))) {
        c->out[0] = tl_tensor_ref(c->in[0]);
        return TL_OK;
    }
    c->recorded = is_recorded(c);
    TL_TRY(tl_tensor_view(&c->out[0], c->in[0], to.rank, to.size, to.stride,
                          to.offset, c->rt->diag));
    c->out[0]->flags |= weight;
    return record(c);
}

/* ---- the entrance ------------------------------------------------------- */

/* An operation that changes nothing gives its input, with its nodes. */
static bool is_identity(const call *c)
{
    return c->op == TL_OP_cast && c->at->dtype == c->in[0]->dtype;
}

/* Do two tapes or more record?  Then the gradient of a region may need
 * gradients itself.  Which tapes see an operand does not matter: where a
 * branch decides that, a compiled program could not know it. */
static bool is_nested(const call *c)
{
    return c->rt->tape && c->rt->no_grad == 0 && c->rt->tape->outer;
}

/* Run a region as its parts, each recorded by itself. */
static tl_status apply_parts(call *c)
{
    tl_node out[TL_MAX_OUTPUTS];
    tl_ttype checked[TL_MAX_OUTPUTS];
    tl_apply_emit e;
    tl_status st;

    TL_TRY(infer(c, checked));
    tl_apply_emit_init(&e, c->rt);
    st = tl_op_decompose(&e.emit, c->op, (const tl_node *)c->in, c->nin,
                         c->at, out);
    for (int i = 0; st == TL_OK && i < c->info->nout; i++) {
        c->out[i] = tl_tensor_ref(out[i]);
    }
    tl_apply_emit_fini(&e);
    return st;
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
        return tl_op_decomposes(c->op) && is_nested(c) ? apply_parts(c)
                                                       : apply_kernel(c);
    }
}

/* Give up what a failed call has made and its inputs but the kept one; say
 * what ran out of memory. */
static void abandon(call *c, tl_status st)
{
    for (int k = 0; k < c->info->nout; k++) {
        tl_tensor_unref(c->out[k]);
    }
    for (int i = 0; i < c->nin; i++) {
        if (i != c->keep) {
            tl_tensor_unref(c->in[i]);
        } else if (c->kept) {
            tl_tensor_unref(c->in[i]);
            c->in[i] = c->kept;
        }
    }
    if (st == TL_ERR_MEMORY) {
        tl_diag_note(c->rt->diag, "in the operation `%s`", c->info->name);
    }
}

static tl_status run(tl_rt *rt, tl_op op, tl_tensor **in, int nin,
                     const tl_attrs *at, tl_tensor **out, int keep)
{
    call c;
    tl_status st;

    c.rt = rt;
    c.op = op;
    c.info = tl_op_get(op);
    c.at = at;
    c.in = in;
    c.nin = nin;
    c.recorded = false;
    c.keep = keep;
    c.kept = NULL;
    for (int k = 0; k < c.info->nout; k++) {
        c.out[k] = NULL;
    }
    st = dispatch(&c);
    if (st != TL_OK) {
        abandon(&c, st);
        return st;
    }
    for (int i = 0; i < nin; i++) {
        tl_tensor_unref(in[i]);
    }
    tl_tensor_unref(c.kept);
    for (int k = 0; k < c.info->nout; k++) {
        out[k] = c.out[k];
    }
    return TL_OK;
}

tl_status tl_apply(tl_rt *rt, tl_op op, tl_tensor **in, int nin,
                   const tl_attrs *at, tl_tensor **out)
{
    return run(rt, op, in, nin, at, out, -1);
}

tl_status tl_apply_keeping(tl_rt *rt, tl_op op, tl_tensor **in, int nin,
                           const tl_attrs *at, tl_tensor **out, int kept)
{
    return run(rt, op, in, nin, at, out, kept);
}

tl_status tl_apply_known(tl_rt *rt, tl_op op, tl_tensor *const *in, int nin,
                         const tl_attrs *at, const tl_tensor *known,
                         tl_tensor **out)
{
    TL_TRY(tl_tensor_alias(out, known, rt->diag));
    if (!rt->tape || rt->no_grad > 0 || !tl_tape_sees(rt->tape, in, nin)) {
        return TL_OK;
    }
    for (tl_tape *tape = rt->tape; tape; tape = tape->outer) {
        tl_status st = tl_tape_record(tape, op, in, nin, out, 1, at, rt->span,
                                      rt->diag);

        if (st != TL_OK) {
            tl_tensor_unref(*out);
            return st;
        }
    }
    return TL_OK;
}

tl_status tl_contiguous(tl_rt *rt, tl_tensor *t, tl_tensor **out)
{
    if (tl_tensor_contiguous(t)) {
        *out = tl_tensor_ref(t);
        return TL_OK;
    }
    return tl_apply_borrowed(rt, TL_OP_copy, &t, 1, NULL, out);
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
