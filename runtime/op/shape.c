/* shape.c - shapes, types, attributes, and the rules that operations share.
 *
 * Every rule works on tl_dim: with numbers it decides, with symbols it
 * proves, refutes or leaves a guard (tl_infer_equal). */
#include "runtime/op/shape.h"

#include <stddef.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/size.h"

void tl_attrs_init(tl_attrs *at)
{
    memset(at, 0, offsetof(tl_attrs, dims));
}

void tl_attrs_copy(tl_attrs *to, const tl_attrs *from)
{
    memcpy(to, from, offsetof(tl_attrs, dims) +
                         from->ndims * sizeof(from->dims[0]));
}

bool tl_attrs_same(const tl_attrs *a, const tl_attrs *b)
{
    return a->ndims == b->ndims &&
           memcmp(a, b, offsetof(tl_attrs, dims) +
                            a->ndims * sizeof(a->dims[0])) == 0;
}

bool tl_dim_is_one(tl_dim d)
{
    return tl_dim_same(d, tl_dim_num(1));
}

tl_status tl_infer_equal(tl_infer *cx, tl_dim a, tl_dim b)
{
    tl_proof proof;

    if (tl_dim_same(a, b)) {
        return TL_OK;
    }
    if (tl_dim_is_num(a) && tl_dim_is_num(b)) {
        return TL_ERR_PROGRAM;
    }
    proof = tl_dim_eq(cx->dims, a, b);
    if (proof != TL_PROVED && cx->guard) {
        return cx->guard(cx->guard_arg, a, b);
    }
    return proof == TL_REFUTED ? TL_ERR_PROGRAM : TL_OK;
}

tl_status tl_infer_le(tl_infer *cx, tl_dim a, tl_dim b)
{
    tl_proof proof = tl_dim_le(cx->dims, a, b);
    bool holds = proof != TL_REFUTED;

    if (proof != TL_PROVED && cx->guard_le &&
        !(tl_dim_is_num(a) && tl_dim_is_num(b))) {
        TL_TRY(cx->guard_le(cx->guard_arg, a, b, &holds));
    }
    return holds ? TL_OK : TL_ERR_PROGRAM;
}

tl_status tl_infer_may_le(tl_infer *cx, tl_dim a, tl_dim b)
{
    tl_dim more;

    if (cx->guard_le || (tl_dim_is_num(a) && tl_dim_is_num(b))) {
        return tl_infer_le(cx, a, b);
    }
    TL_TRY(tl_dim_add(cx->dims, b, tl_dim_num(1), &more, cx->diag));
    return tl_dim_le(cx->dims, more, a) == TL_PROVED ? TL_ERR_PROGRAM : TL_OK;
}

bool tl_infer_yes(tl_infer *cx, tl_status st)
{
    if (st != TL_OK && st != TL_ERR_PROGRAM) {
        (void)tl_diag_pop(cx->diag);
    }
    return st == TL_OK;
}

void tl_infer_example(tl_infer *cx, tl_dim a, tl_dim b)
{
    tl_buf text;

    tl_buf_init(&text);
    if (cx->dims && tl_dim_example(cx->dims, a, b, &text) && !text.failed) {
        tl_diag_note(cx->diag, "for example %s", tl_buf_str(&text));
    }
    tl_buf_fini(&text);
}

/* ---- broadcasting ------------------------------------------------------ */

/* Axis `i` from the right, 1 where it is missing. */
static tl_dim from_right(const tl_shape *s, int i)
{
    return i <= s->rank ? s->dim[s->rank - i] : tl_dim_num(1);
}

static tl_status fail_broadcast(tl_infer *cx, const tl_shape *a,
                                const tl_shape *b, tl_dim da, tl_dim db,
                                int axis)
{
    tl_status st = tl_fail(cx->diag, TL_E0301,
                           "cannot broadcast %s with %s: dimension %d is %s "
                           "against %s",
                           tl_shape_str(a).s, tl_shape_str(b).s, axis,
                           tl_dim_str(da).s, tl_dim_str(db).s);

    tl_infer_example(cx, da, db);
    return st;
}

tl_status tl_shape_broadcast(tl_infer *cx, tl_shape *out, const tl_shape *a,
                             const tl_shape *b)
{
    tl_shape res = {.rank = a->rank > b->rank ? a->rank : b->rank};
    bool a_grows = false, b_grows = false;

    for (int i = 1; i <= res.rank; i++) {
        tl_dim da = from_right(a, i), db = from_right(b, i), d = da;

        if (tl_dim_same(da, db)) {
            // equal: nothing stretches
        } else if (tl_dim_is_one(da)) {
            a_grows = true;
            d = db;
        } else if (tl_dim_is_one(db)) {
            b_grows = true;
        } else {
            tl_status st = tl_infer_equal(cx, da, db);

            if (st != TL_OK) {
                return st == TL_ERR_PROGRAM
                           ? fail_broadcast(cx, a, b, da, db, res.rank - i)
                           : st;
            }
            d = tl_dim_has_fresh(da) ? db : da; // the known one
        }
        res.dim[res.rank - i] = d;
    }
    if (a_grows && b_grows && a->rank != b->rank) {
        return tl_fail(cx->diag, TL_E0310,
                       "%s with %s would stretch both operands to %s",
                       tl_shape_str(a).s, tl_shape_str(b).s,
                       tl_shape_str(&res).s);
    }
    *out = res;
    return TL_OK;
}

/* ---- axes and sizes ---------------------------------------------------- */

tl_status tl_axis_normalise(int64_t axis, int rank, int *out, tl_diag *diag)
{
    if (axis < -rank || axis >= rank) {
        return rank == 0
                   ? tl_fail(diag, TL_E0309,
                             "axis %lld of a tensor without axes",
                             (long long)axis)
                   : tl_fail(diag, TL_E0309, "axis must be in %d..%d, got %lld",
                             -rank, rank - 1, (long long)axis);
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TL_OK;
}

void tl_shape_reduce(tl_shape *out, const tl_shape *in, uint16_t axes,
                     bool keep)
{
    tl_shape res = {0};

    for (int i = 0; i < in->rank; i++) {
        if (!(axes >> i & 1)) {
            res.dim[res.rank++] = in->dim[i];
        } else if (keep) {
            res.dim[res.rank++] = tl_dim_num(1);
        }
    }
    *out = res;
}

tl_status tl_shape_numel(const tl_shape *shape, int64_t *out, tl_diag *diag)
{
    int64_t n = 1;
    bool empty = false;

    for (int i = 0; i < shape->rank; i++) {
        TL_CHECK(tl_dim_is_num(shape->dim[i]));
        empty |= tl_dim_value(shape->dim[i]) == 0;
    }
    for (int i = 0; i < shape->rank && !empty; i++) {
        if (!tl_mul_i64(&n, n, tl_dim_value(shape->dim[i])) ||
            n > TL_MAX_NUMEL) {
            return tl_fail(diag, TL_E0307,
                           "a tensor of shape %s has more than 2^48 elements",
                           tl_shape_str(shape).s);
        }
    }
    *out = empty ? 0 : n;
    return TL_OK;
}

tl_status tl_shape_numel_dim(tl_infer *cx, const tl_shape *shape, tl_dim *out)
{
    tl_dim n = tl_dim_num(1);

    for (int i = 0; i < shape->rank; i++) {
        TL_TRY(tl_dim_mul(cx->dims, n, shape->dim[i], &n, cx->diag));
    }
    *out = n;
    return TL_OK;
}

bool tl_shape_is_concrete(const tl_shape *shape)
{
    for (int i = 0; i < shape->rank; i++) {
        if (!tl_dim_is_num(shape->dim[i])) {
            return false;
        }
    }
    return true;
}

bool tl_shape_same(const tl_shape *a, const tl_shape *b)
{
    if (a->rank != b->rank) {
        return false;
    }
    for (int i = 0; i < a->rank; i++) {
        if (!tl_dim_same(a->dim[i], b->dim[i])) {
            return false;
        }
    }
    return true;
}

/* ---- text -------------------------------------------------------------- */

static void print_shape(const tl_shape *shape, tl_buf *out)
{
    tl_buf_putc(out, '[');
    for (int i = 0; i < shape->rank; i++) {
        tl_buf_puts(out, i ? ", " : "");
        tl_dim_print(shape->dim[i], out);
    }
    tl_buf_putc(out, ']');
}

void tl_ttype_print(const tl_ttype *type, tl_buf *out)
{
    tl_buf_puts(out, tl_dtype_name(type->dtype));
    print_shape(&type->shape, out);
}

/* The text of `buf`, which is released; a long one ends in "...". */
static tl_shape_text fixed_text(tl_buf *buf)
{
    tl_shape_text text;
    size_t room = sizeof(text.s) - 1;
    size_t n = buf->len <= room ? buf->len : room - 3;

    memcpy(text.s, tl_buf_str(buf), n);
    memcpy(text.s + n, buf->len <= room ? "" : "...",
           buf->len <= room ? 1 : 4);
    tl_buf_fini(buf);
    return text;
}

tl_shape_text tl_shape_str(const tl_shape *shape)
{
    tl_buf buf;

    tl_buf_init(&buf);
    print_shape(shape, &buf);
    return fixed_text(&buf);
}

tl_shape_text tl_ttype_str(const tl_ttype *type)
{
    tl_buf buf;

    tl_buf_init(&buf);
    tl_ttype_print(type, &buf);
    return fixed_text(&buf);
}

tl_shape_text tl_dim_str(tl_dim d)
{
    tl_buf buf;

    tl_buf_init(&buf);
    tl_dim_print(d, &buf);
    return fixed_text(&buf);
}
