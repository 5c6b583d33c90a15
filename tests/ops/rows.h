/* rows.h - what the tests that walk ops.def share: points of a row's domain,
 * layouts, attributes, bits. */
#ifndef TL_TESTS_OPS_ROWS_H
#define TL_TESTS_OPS_ROWS_H

#include <string.h>

#include "tests/unit/runtime/helper.h"

/* Uniform in [0, 1), a function of `state`. */
static inline double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* A point of a row's domain. */
static inline double point(tl_op_domain domain, uint64_t *state)
{
    double t = uniform(state);

    switch (domain) {
    case TL_DOM_POS:
        return 0.1 + 3.9 * t;
    case TL_DOM_NONZERO:
        return t < 0.5 ? -3 + 5.4 * t : 0.3 + 5.4 * (t - 0.5);
    case TL_DOM_UNIT:
        return -0.9 + 1.8 * t;
    case TL_DOM_PROB:
        return 0.05 + 0.9 * t;
    case TL_DOM_BIG:
        return 1.1 + 2.9 * t;
    case TL_DOM_ANY:
        break;
    }
    return -3 + 6 * t;
}

/* Row-major tensor of random points; integers 1 .. 5, or -5 .. 5 where the
 * domain has negative numbers, never 0 where it has not. */
static inline tl_tensor *points(tl_dtype dtype, int rank, const int64_t *size,
                                tl_op_domain domain, uint64_t seed)
{
    uint64_t state = seed * 2 + 1;
    tl_tensor *t = make(dtype, rank, size, NULL);

    for (int i = 0; i < 8; i++) {
        uniform(&state);
    }
    for (int64_t i = 0; i < t->numel; i++) {
        double v = point(domain, &state);

        if (dtype == TL_bool) {
            v = v > 0.5;
        } else if (tl_dtype_kind(dtype) == TL_KIND_INT) {
            v = v < 0 ? floor(v) - 1 : ceil(v);
            v = dtype == TL_u8 ? fabs(v) : v;
        }
        tl_tensor_set_f(t, i, v);
    }
    return t;
}

typedef enum arrangement {
    ROW_MAJOR,
    TRANSPOSED, /* last axis outermost */
    STRIDED,    /* every second element of a larger tensor */
    OFFSET,     /* rows of a wider one, from its fourth element on */
    REVERSED,   /* negative strides */
    ARRANGEMENTS
} arrangement;

/* The values of the row-major tensor `c` in another layout; eats `c`. */
static inline tl_tensor *arranged(tl_tensor *c, arrangement how)
{
    int64_t stride[TL_MAX_RANK], next = how == STRIDED ? 2 : 1, at = 0;
    int64_t extent = 1, offset = how == OFFSET ? 3 : 0;
    tl_tensor *base, *res;

    for (int k = 0; k < c->rank; k++) {
        int i = how == TRANSPOSED ? k : c->rank - 1 - k;

        stride[i] = next;
        next *= c->size[i] + (how == OFFSET ? 1 : 0);
        extent += (c->size[i] > 0 ? c->size[i] - 1 : 0) * stride[i];
    }
    for (int i = 0; i < c->rank && how == REVERSED; i++) {
        offset += (c->size[i] > 0 ? c->size[i] - 1 : 0) * stride[i];
        stride[i] = -stride[i];
    }
    base = make(c->dtype, 1, DIMS(extent + (how == OFFSET ? 3 : 0)), NULL);
    for (int64_t k = 0; k < c->numel; k++) {
        int64_t rest = k;

        at = offset;
        for (int i = c->rank - 1; i >= 0; i--) {
            at += rest % c->size[i] * stride[i];
            rest /= c->size[i];
        }
        if (tl_dtype_is_float(c->dtype)) {
            tl_tensor_set_f(base, at, tl_tensor_get_f(c, k));
        } else {
            tl_tensor_set_i(base, at, tl_tensor_get_i(c, k));
        }
    }
    OK(tl_tensor_view(&res, base, c->rank, c->size, stride, offset, &diag));
    tl_tensor_unref(base);
    tl_tensor_unref(c);
    return res;
}

/* Attributes with which each row makes sense. */
static inline tl_attrs usual_attrs(tl_op op)
{
    tl_attrs at;

    tl_attrs_init(&at);
    at.f[0] = op == TL_OP_var || op == TL_OP_std ? 1 : 0.25;
    at.f[1] = 1.5;
    at.i[0] = 7;
    return at;
}

/* Do two row-major tensors have the same bits (any NaN equals any NaN)? */
static inline bool same_bits(const tl_tensor *a, const tl_tensor *b)
{
    size_t width = tl_dtype_size(a->dtype);
    const char *x = tl_tensor_data(a), *y = tl_tensor_data(b);

    if (a->dtype != b->dtype || a->numel != b->numel) {
        return false;
    }
    for (int64_t i = 0; i < a->numel; i++) {
        if (memcmp(x + i * (int64_t)width, y + i * (int64_t)width, width) !=
                0 &&
            !(tl_dtype_is_float(a->dtype) && isnan(tl_tensor_get_f(a, i)) &&
              isnan(tl_tensor_get_f(b, i)))) {
            return false;
        }
    }
    return true;
}

static inline tl_tensor *run(tl_op op, tl_tensor *const *in, int nin,
                             const tl_attrs *at)
{
    tl_tensor *out[TL_MAX_OUTPUTS];
    tl_status st = tl_apply_borrowed(&rt, op, in, nin, at, out);

    cr_assert_eq(st, TL_OK, "%s: %s", tl_op_get(op)->name, said());
    return out[0];
}

static inline bool is_elementwise(tl_op op)
{
    tl_op_class cls = tl_op_get(op)->cls;

    return cls == TL_CLASS_MAP || cls == TL_CLASS_CMP;
}

#endif
