/* The inner loops of every build that this CPU runs have the same bits: called
 * directly, as the kernels choose the widest. */
#include <math.h>
#include <string.h>

#include "runtime/cpu/fold.h"
#include "runtime/cpu/map.h"
#include "runtime/cpu/rowmath.h"
#include "runtime/cpu/scalar.h"
#include "tests/ops/rows.h"

#ifdef __x86_64__

TestSuite(builds, .init = rt_setup, .fini = rt_teardown);

enum {
    N = 1003, /* vectors and a tail */
    OPERANDS = 5
};

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
}

/* Floats of any size, special ones among them; tame: none of these. */
static void fill(float *x, int64_t n, uint64_t seed, bool tame)
{
    for (int64_t i = 0; i < n; i++) {
        double u = uniform(&seed), v = uniform(&seed);

        x[i] = (float)(12 * u - 6);
        if (tame) {
            continue;
        }
        x[i] = v < 0.01   ? NAN
               : v < 0.02 ? INFINITY
               : v < 0.03 ? -0.0f
               : v < 0.04 ? -INFINITY
               : v < 0.5  ? x[i]
                          : (float)ldexp(u - 0.5, (int)(v * 300) - 150);
    }
}

/* Equal bytes, NaN with NaN of floats and doubles. */
static bool alike(const void *a, const void *b, int64_t n, size_t width)
{
    const char *x = a, *y = b;

    for (int64_t i = 0; i < n; i++, x += width, y += width) {
        float f, g;
        double d, e;

        if (memcmp(x, y, width) == 0) {
            continue;
        }
        memcpy(&f, x, sizeof f);
        memcpy(&g, y, sizeof g);
        if (width == sizeof f && isnan(f) && isnan(g)) {
            continue;
        }
        if (width != sizeof d) {
            return false;
        }
        memcpy(&d, x, sizeof d);
        memcpy(&e, y, sizeof e);
        if (!isnan(d) || !isnan(e)) {
            return false;
        }
    }
    return true;
}

/* ---- elementwise rows ---------------------------------------------------- */

static void compare_loops(tl_map_loop *a, tl_map_loop *b, tl_op op,
                          const char *what)
{
    static float room[OPERANDS][N], y[N], z[N];
    const void *in[OPERANDS];
    tl_attrs at = usual_attrs(op);
    size_t width =
        tl_op_get(op)->cls == TL_CLASS_CMP ? sizeof(char) : sizeof(float);

    if (a == NULL || b == NULL) {
        cr_expect(a == b, "%s is missing once", what);
        return;
    }
    for (int i = 0; i < OPERANDS; i++) {
        fill(room[i], N, 90 + (uint64_t)i, false);
        in[i] = room[i];
    }
    a(N, in, y, at.f);
    b(N, in, z, at.f);
    cr_expect(alike(y, z, N, width), "%s: %s", tl_op_get(op)->name, what);
}

static void compare_tables(const tl_map_loops *a, const tl_map_loops *b)
{
    for (int op = 0; op < TL_OP_COUNT; op++) {
        compare_loops(a->value[op], b->value[op], (tl_op)op, "value");
        for (int i = 0; i < 3; i++) {
            compare_loops(a->grad[op][i], b->grad[op][i], (tl_op)op,
                          "gradient");
        }
    }
}

Test(builds, elementwise_rows_agree)
{
    if (has_avx2()) {
        compare_tables(&tl_map_f32, &tl_map_f32_avx2);
    }
    if (tl_cpu_has_avx512()) {
        compare_tables(&tl_map_f32, &tl_map_f32_avx512);
    }
}

/* What a loop computes when its inputs let it be quick is what it computes
 * otherwise (map_f32.c). */
Test(builds, quick_forms_have_the_same_bits)
{
    static float a[N], b[N];
    int near = 0;

    for (int k = 0; k < 200; k++) {
        fill(a, N, 1000 + (uint64_t)k, k % 2 == 0);
        fill(b, N, 5000 + (uint64_t)k, k % 2 == 0);
        for (int i = 0; i < N; i++) {
            float x = a[i] * 1000, got[5], want[5];

            if (!(tl_abs_f32(x) < TL_SMALL_ANGLE)) {
                x = 0x1.fffffep20f;
            }
            if (!tl_fmod_is_near_f32(a[i], b[i])) {
                b[i] = a[i] == a[i] && a[i] - a[i] == 0 ? a[i] : 3;
                a[i] = tl_fmod_is_near_f32(a[i], b[i]) ? a[i] : 0;
                b[i] = tl_fmod_is_near_f32(a[i], b[i]) ? b[i] : 3;
            }
            near += tl_abs_f32(a[i]) > tl_abs_f32(b[i]);
            for (int quick = 0; quick < 2; quick++) {
                float *to = quick != 0 ? got : want;

                to[0] = tl_sin_of_f32(x, quick != 0);
                to[1] = tl_cos_of_f32(x, quick != 0);
                to[2] = tl_tan_of_f32(x, quick != 0);
                to[3] = tl_mod_of_f32(a[i], b[i], quick != 0);
                to[4] = tl_floordiv_of_f32(a[i], b[i], quick != 0);
            }
            cr_assert(memcmp(got, want, sizeof got) == 0, "%a, %a %% %a",
                      (double)x, (double)a[i], (double)b[i]);
        }
    }
    cr_expect_gt(near, N); /* not all quotients are below 1 */
}

/* ---- folds --------------------------------------------------------------- */

enum {
    W = 21 /* neighbouring results */
};

static void compare_folds(const tl_fold *a, const tl_fold *b, const void *x,
                          size_t width, const char *what)
{
    static double left[2][TL_LANES * W];

    for (int64_t n = 0; n <= TL_LEAF; n++) {
        a->leaf(x, n, left[0]);
        b->leaf(x, n, left[1]);
        cr_expect(alike(left[0], left[1], 1, width), "%s: leaf of %d", what,
                  (int)n);
    }
    a->quad(x, left[0]);
    b->quad(x, left[1]);
    cr_expect(alike(left[0], left[1], 1, width), "%s: quad", what);
    a->clear(left[0], W);
    b->clear(left[1], W);
    a->row(left[0], x, TL_LANES * W);
    b->row(left[1], x, TL_LANES * W);
    cr_expect(alike(left[0], left[1], (int64_t)TL_LANES * W, width),
              "%s: row", what);
    a->join(left[0], W, left[0]);
    b->join(left[1], W, left[1]);
    cr_expect(alike(left[0], left[1], W, width), "%s: join", what);
    a->merge(x, left[0], W);
    b->merge(x, left[1], W);
    cr_expect(alike(left[0], left[1], W, width), "%s: merge", what);
}

static void compare_fold_maps(tl_fold_map_fn *a, tl_fold_map_fn *b,
                              const void *x, size_t width)
{
    static double y[N], z[N];

    for (int64_t step = 0; step < 2 && a != NULL; step++) {
        a(N, x, x, step, y);
        b(N, x, x, step, z);
        cr_expect(alike(y, z, N, width), "map of a fold");
    }
}

static void check_folds(tl_dtype acc, const void *x, size_t width)
{
    for (int k = 0; k < TL_FOLD_KINDS; k++) {
        const tl_fold *plain = tl_fold_get(acc, (tl_fold_kind)k);

        if (has_avx2()) {
            compare_folds(plain, tl_fold_get_avx2(acc, (tl_fold_kind)k), x,
                          width, "avx2");
        }
        if (tl_cpu_has_avx512()) {
            compare_folds(plain, tl_fold_get_avx512(acc, (tl_fold_kind)k), x,
                          width, "avx512");
        }
    }
    for (int m = TL_FOLD_X; m <= TL_FOLD_EXP_MINUS; m++) {
        tl_fold_map_fn *plain = tl_fold_map_get(acc, (tl_fold_map)m);

        if (has_avx2()) {
            compare_fold_maps(plain,
                              tl_fold_map_get_avx2(acc, (tl_fold_map)m), x,
                              width);
        }
        if (tl_cpu_has_avx512()) {
            compare_fold_maps(plain,
                              tl_fold_map_get_avx512(acc, (tl_fold_map)m), x,
                              width);
        }
    }
}

Test(builds, folds_agree)
{
    static float x[TL_QUAD];
    static double wide[TL_QUAD];

    for (int wild = 0; wild < 2; wild++) {
        fill(x, TL_QUAD, 7, wild == 0);
        for (int i = 0; i < TL_QUAD; i++) {
            wide[i] = (double)x[i] * 1.0000001;
        }
        check_folds(TL_f32, x, sizeof *x);
        check_folds(TL_f64, wide, sizeof *wide);
    }
}

/* ---- rows ---------------------------------------------------------------- */

/* Everything of `m` on rows x and g, one result after the other in `to`;
 * returns how many floats. */
static int64_t run_rows(const tl_rowmath *m, const float *x, const float *g,
                        float *to)
{
    const void *in[] = {x, g};
    tl_row_loss loss = {.smoothing = 0.1, .weight_sum = N, .target = 7};
    float mean = 0.3f, rstd = 1.7f;
    tl_row_stats stats = {.mean = &mean, .rstd = &rstd, .w = &rstd,
                          .b = &mean, .ga = &mean, .gb = &rstd};
    tl_line_fn *const lines[] = {m->softmax, m->log_softmax, m->softmax_grad,
                                 m->log_softmax_grad};
    double few[10] = {0}, lse = m->logsumexp(N, x);
    float *from = to;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++, to += N) {
        void *out[] = {to};

        lines[i](NULL, 0, N, in, out);
    }
    m->loss_grad(N, x, lse, &loss, 0.25, to);
    m->normalise(N, x, 0.3, 1.7, g, g, to += N);
    m->normalise_grad(N, g, x, 0.3, 1.7, NULL, to += N);
    m->scale(N, x, 1.7, g, to += N);
    m->scale_grad(N, g, x, 1.7, NULL, to += N);
    m->affine(N, x, &stats, to += N);
    m->affine_grad(N, g, x, &stats, to += N);
    few[0] = m->sum(N, x);
    few[1] = lse;
    few[2] = m->loss(N, x, lse, &loss);
    m->mean_m2(N, x, &few[3], &few[4]);
    m->moments(N, x, 1e-5, &few[5], &few[6]);
    few[7] = m->rms(N, x, 1e-5);
    m->affine_sums(N, g, x, &stats, &few[8]);
    to += N;
    for (int i = 0; i < 10; i++) {
        to[2 * i] = (float)few[i];
        to[2 * i + 1] = (float)(few[i] - (double)(float)few[i]);
    }
    return to + 20 - from;
}

Test(builds, row_arithmetic_agrees)
{
    static float x[N], g[N], to[3][12 * N];

    fill(g, N, 8, true);
    for (int wild = 0; wild < 2; wild++) {
        int64_t n;

        fill(x, N, 9, wild == 0);
        n = run_rows(&tl_rowmath_f32, x, g, to[0]);
        if (has_avx2()) {
            run_rows(&tl_rowmath_f32_avx2, x, g, to[1]);
            cr_expect(alike(to[0], to[1], n, sizeof(float)), "avx2");
        }
        if (tl_cpu_has_avx512()) {
            run_rows(&tl_rowmath_f32_avx512, x, g, to[2]);
            cr_expect(alike(to[0], to[2], n, sizeof(float)), "avx512");
        }
    }
}
#endif
