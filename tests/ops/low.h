/* low.h - a row in bf16 and f16 against the same row in f32 on the same
 * values: results are the f32 results rounded, gradients are near them. */
#ifndef TL_TESTS_OPS_LOW_H
#define TL_TESTS_OPS_LOW_H

#include <string.h>

#include "tests/unit/runtime/helper.h"

enum {
    LOW_MAX_IN = 8
};

/* Distance of neighbours at |v|. */
static inline double low_ulp(tl_dtype dtype, double v)
{
    int digits = dtype == TL_bf16 ? 8 : 11;
    int least = dtype == TL_bf16 ? -126 : -14, e;

    frexp(v, &e);
    return ldexp(1, (v == 0 || e - 1 < least ? least : e - 1) - digits + 1);
}

/* Results: within half a unit of the f32 ones, which may differ in their own
 * last digits; statistics that are kept in f32 are equal to a few of them. */
static inline void low_results(tl_op op, const tl_tensor *low,
                               const tl_tensor *wide)
{
    const char *name = tl_op_get(op)->name;

    cr_assert_eq(low->numel, wide->numel);
    if (!tl_dtype_is_float(low->dtype)) {
        for (int64_t i = 0; i < low->numel; i++) {
            cr_expect_eq(tl_tensor_get_i(low, i), tl_tensor_get_i(wide, i),
                         "%s in %s", name, tl_dtype_name(low->dtype));
        }
        return;
    }
    for (int64_t i = 0; i < low->numel; i++) {
        double got = tl_tensor_get_f(low, i), want = tl_tensor_get_f(wide, i);
        double slack = low->dtype == TL_f32 ? fabs(want) * 0x1p-20 + 0x1p-30
                                            : low_ulp(low->dtype, want) * 0.51;

        cr_expect(got == want || fabs(got - want) <= slack ||
                      (isnan(got) && isnan(want)) ||
                      (isinf(got) && fabs(want) > 65504),
                  "%s in %s: element %lld is %.9g, in f32 %.9g", name,
                  tl_dtype_name(low->dtype), (long long)i, got, want);
    }
}

/* Gradients: the formula reads rounded results, so a few units of the largest
 * one. */
static inline void low_gradients(tl_op op, const tl_tensor *low,
                                 const tl_tensor *wide)
{
    double most = 0;

    for (int64_t i = 0; i < wide->numel; i++) {
        most = fmax(most, fabs(tl_tensor_get_f(wide, i)));
    }
    for (int64_t i = 0; i < low->numel; i++) {
        double got = tl_tensor_get_f(low, i), want = tl_tensor_get_f(wide, i);

        cr_expect(fabs(got - want) <= 4 * low_ulp(low->dtype, most) ||
                      (isinf(got) && fabs(want) > 65504),
                  "%s in %s: gradient %lld is %.9g, in f32 %.9g",
                  tl_op_get(op)->name, tl_dtype_name(low->dtype),
                  (long long)i, got, want);
    }
}

/* The call, and gradients of its float operands (NULL: none).  Rows
 * that are gradients may have no second one. */
static inline void low_run(tl_op op, const tl_attrs *at, tl_tensor **in,
                           int nin, tl_tensor **out, tl_tensor **grads)
{
    tl_tensor *leaf[LOW_MAX_IN], *use[LOW_MAX_IN], *of[LOW_MAX_IN], *seed;
    const tl_op_info *row = tl_op_get(op);
    tl_tensor *got[LOW_MAX_IN];
    bool reached[LOW_MAX_IN];
    tl_tape *tape;
    int n = 0;

    OK(tl_grad_open(&rt, &tape));
    for (int i = 0; i < nin; i++) {
        use[i] = in[i];
        leaf[i] = NULL;
        grads[i] = NULL;
        if (tl_dtype_is_float(in[i]->dtype) &&
            (i == 0 || op != TL_OP_cross_entropy)) { /* not of its weight */
            OK(tl_grad_leaf(&rt, tape, in[i], &leaf[i]));
            use[i] = leaf[i];
            of[n++] = leaf[i];
        }
    }
    OK(tl_apply_borrowed(&rt, op, use, nin, at, out));
    tl_grad_close(&rt, tape);
    if (row->differentiable && !strstr(row->name, "_grad") &&
        tl_dtype_is_float(out[0]->dtype)) {
        seed = make(out[0]->dtype, out[0]->rank, out[0]->size, NULL);
        for (int64_t i = 0; i < seed->numel; i++) {
            tl_tensor_set_f(seed, i, (double)(i * 5 % 7 - 3) * 0.25);
        }
        OK(tl_grad_backward(&rt, tape, out[0], seed, of, n, got, reached));
        for (int i = 0, k = 0; i < nin; i++) {
            grads[i] = leaf[i] ? got[k++] : NULL;
        }
        tl_tensor_unref(seed);
    }
    tl_tape_free(tape);
    for (int i = 0; i < nin; i++) {
        tl_tensor_unref(leaf[i]);
    }
}

/* The row on `in`, whose floats are low, and on the same values in f32. */
static inline void check_low(tl_op op, const tl_attrs *at, tl_tensor **in,
                             int nin)
{
    tl_tensor *wide[LOW_MAX_IN], *a[TL_MAX_OUTPUTS], *b[TL_MAX_OUTPUTS];
    tl_tensor *da[LOW_MAX_IN], *db[LOW_MAX_IN];

    for (int i = 0; i < nin; i++) {
        wide[i] = tl_dtype_is_float(in[i]->dtype) ? cast_to(TL_f32, in[i])
                                                  : tl_tensor_ref(in[i]);
    }
    low_run(op, at, in, nin, a, da);
    low_run(op, at, wide, nin, b, db);
    for (int k = 0; k < tl_op_get(op)->nout; k++) {
        low_results(op, a[k], b[k]);
        tl_tensor_unref(a[k]);
        tl_tensor_unref(b[k]);
    }
    for (int i = 0; i < nin; i++) {
        if (da[i]) {
            cr_expect_eq(da[i]->dtype, in[i]->dtype, "%s: gradient %d is %s",
                         tl_op_get(op)->name, i, tl_dtype_name(da[i]->dtype));
            low_gradients(op, da[i], db[i]);
        }
        tl_tensor_unref(da[i]);
        tl_tensor_unref(db[i]);
        tl_tensor_unref(wide[i]);
    }
}

#endif
