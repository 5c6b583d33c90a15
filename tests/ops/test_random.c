/* Creators and draws: what they are a function of, ranges and moments. */
#include "tests/ops/rows.h"

TestSuite(draws, .init = rt_setup, .fini = rt_teardown);

static tl_attrs drawn(tl_dtype dtype, int64_t n, uint64_t seed)
{
    tl_rng_key key = {.seed = seed, .draw = 3, .stream = TL_STREAM_DRAW};
    tl_attrs at;

    tl_attrs_init(&at);
    tl_attrs_set_key(&at, &key);
    at.dtype = (uint8_t)dtype;
    at.ndims = 1;
    at.dims[0] = tl_dim_num(n);
    return at;
}

static tl_tensor *make_by(tl_op op, const tl_attrs *at)
{
    return run(op, NULL, 0, at);
}

Test(draws, key_survives_the_attributes)
{
    tl_rng_key key = {.seed = UINT64_MAX - 3,
                      .draw = 1ull << 60,
                      .stream = 2,
                      .sub = 0xfffffffe};
    tl_attrs at;
    tl_rng_key back;

    tl_attrs_init(&at);
    tl_attrs_set_key(&at, &key);
    back = tl_attrs_key(&at);
    cr_expect_eq(memcmp(&back, &key, sizeof key), 0);
}

Test(draws, element_i_takes_word_i_of_the_key)
{
    tl_attrs at = drawn(TL_f32, 2001, 7);
    tl_rng_key key = tl_attrs_key(&at);
    tl_tensor *t = make_by(TL_OP_rand, &at);

    for (int64_t i = 0; i < t->numel; i++) {
        uint32_t words[4];

        tl_philox(words, &key, (uint64_t)i / 4);
        cr_assert_eq((float)tl_tensor_get_f(t, i),
                     tl_uniform_f32(words[i % 4]));
    }
    tl_tensor_unref(t);
    at.dtype = TL_f64;
    t = make_by(TL_OP_rand, &at);
    for (int64_t i = 0; i < t->numel; i++) {
        uint32_t words[4];
        int64_t at_word = 2 * (i % 2);

        tl_philox(words, &key, (uint64_t)i / 2);
        cr_assert_eq(tl_tensor_get_f(t, i),
                     tl_uniform_f64(words[at_word], words[at_word + 1]));
    }
    tl_tensor_unref(t);
}

Test(draws, a_longer_draw_begins_with_the_shorter)
{
    static const tl_op ops[] = {TL_OP_rand, TL_OP_randn};

    for (int k = 0; k < 2; k++) {
        for (int d = TL_bf16; d < TL_DTYPE_COUNT; d++) {
            tl_attrs s = drawn((tl_dtype)d, 1023, 1);
            tl_attrs l = drawn((tl_dtype)d, 4001, 1);
            tl_tensor *a = make_by(ops[k], &s), *b = make_by(ops[k], &l);

            for (int64_t i = 0; i < 1023; i++) {
                cr_assert_eq(tl_tensor_get_f(a, i), tl_tensor_get_f(b, i));
            }
            tl_tensor_unref(a);
            tl_tensor_unref(b);
        }
    }
}

static void moments(const tl_tensor *t, double *mean, double *variance)
{
    double sum = 0, square = 0;

    for (int64_t i = 0; i < t->numel; i++) {
        double v = tl_tensor_get_f(t, i);

        sum += v;
        square += v * v;
    }
    *mean = sum / (double)t->numel;
    *variance = square / (double)t->numel - *mean * *mean;
}

Test(draws, uniform_numbers_are_below_one)
{
    for (int d = TL_bf16; d < TL_DTYPE_COUNT; d++) {
        tl_attrs at = drawn((tl_dtype)d, 100000, 2);
        tl_tensor *t = make_by(TL_OP_rand, &at);
        double mean, variance;

        for (int64_t i = 0; i < t->numel; i++) {
            double v = tl_tensor_get_f(t, i);

            cr_assert(v >= 0 && v < 1, "%s: %g", tl_dtype_name((tl_dtype)d),
                      v);
        }
        moments(t, &mean, &variance); /* 4 standard errors and a step */
        cr_expect_float_eq(mean, 0.5, d == TL_bf16 ? 6e-3 : 4e-3);
        cr_expect_float_eq(variance, 1.0 / 12, 2e-3);
        tl_tensor_unref(t);
    }
}

/* Share of normals below x, against the distribution function. */
static double share_below(const tl_tensor *t, double x)
{
    int64_t n = 0;

    for (int64_t i = 0; i < t->numel; i++) {
        n += tl_tensor_get_f(t, i) < x;
    }
    return (double)n / (double)t->numel;
}

Test(draws, normals_have_their_distribution)
{
    for (int d = TL_f32; d < TL_DTYPE_COUNT; d++) {
        tl_attrs at = drawn((tl_dtype)d, 200001, 5);
        tl_tensor *t = make_by(TL_OP_randn, &at);
        double mean, variance;

        moments(t, &mean, &variance);
        cr_expect_float_eq(mean, 0, 0.01);
        cr_expect_float_eq(variance, 1, 0.015);
        for (double x = -3; x <= 3; x += 0.5) {
            cr_expect_float_eq(share_below(t, x), 0.5 * erfc(-x / sqrt(2)),
                               0.005, "%s below %g",
                               tl_dtype_name((tl_dtype)d), x);
        }
        tl_tensor_unref(t);
    }
}

Test(draws, f32_normals_are_the_formula_rounded)
{
    tl_attrs at = drawn(TL_f32, 1000, 11);
    tl_rng_key key = tl_attrs_key(&at);
    tl_tensor *t = make_by(TL_OP_randn, &at);

    for (int64_t i = 0; i < t->numel; i++) {
        uint32_t words[4];
        const uint32_t *w = words + (i % 4 & 2);
        double r, angle, want;

        tl_philox(words, &key, (uint64_t)i / 4);
        r = sqrt(-2 * log((w[0] + 1.0) / 4294967296.0));
        angle = 2 * 3.14159265358979323846 * w[1] / 4294967296.0;
        want = r * (i % 2 == 0 ? cos(angle) : sin(angle));
        cr_assert_float_eq(tl_tensor_get_f(t, i), want, 4e-7);
    }
    tl_tensor_unref(t);
}

Test(draws, whole_numbers_stay_in_their_range_and_reach_its_ends)
{
    tl_attrs at = drawn(TL_i64, 10000, 4);
    tl_tensor *t;
    int64_t seen[7] = {0};

    at.f[0] = -3;
    at.f[1] = 4;
    t = make_by(TL_OP_randint, &at);
    for (int64_t i = 0; i < t->numel; i++) {
        int64_t v = tl_tensor_get_i(t, i);

        cr_assert(v >= -3 && v < 4);
        seen[v + 3]++;
    }
    for (int v = 0; v < 7; v++) {
        cr_expect(seen[v] > 1200 && seen[v] < 1660, "%d: %lld", v - 3,
                  (long long)seen[v]);
    }
    tl_tensor_unref(t);
}

Test(draws, nothing_to_draw_from_is_an_error)
{
    tl_attrs at = drawn(TL_i64, 3, 4);
    tl_tensor *t;

    at.f[0] = 2;
    at.f[1] = 2;
    cr_expect_neq(tl_apply_borrowed(&rt, TL_OP_randint, NULL, 0, &at, &t),
                  TL_OK);
    cr_expect_eq(diag.last->code, TL_E0416);
    cr_expect_str_eq(said(), "`randint` from 2 to below 2: nothing to draw");
    tl_diag_clear(&diag);
}

Test(draws, permutations_have_each_number_once)
{
    static const int64_t lengths[] = {0, 1, 2, 600, 5000};

    for (int k = 0; k < 5; k++) {
        int64_t n = lengths[k], fixed = 0;
        tl_attrs at = drawn(TL_i64, n, 9);
        tl_tensor *t = make_by(TL_OP_perm, &at);
        bool seen[5000] = {false};

        for (int64_t i = 0; i < n; i++) {
            int64_t v = tl_tensor_get_i(t, i);

            cr_assert(v >= 0 && v < n && !seen[v]);
            seen[v] = true;
            fixed += v == i;
        }
        cr_expect(n < 100 || fixed < 8); /* one is expected */
        tl_tensor_unref(t);
    }
}

Test(draws, bernoulli_follows_its_probabilities)
{
    tl_tensor *p = make(TL_f32, 2, DIMS(3, 20000), NULL), *t;
    tl_attrs at = drawn(TL_f32, 0, 6);
    const double want[] = {0, 0.3, 1};

    for (int64_t i = 0; i < p->numel; i++) {
        tl_tensor_set_f(p, i, want[i / 20000]);
    }
    t = run(TL_OP_bernoulli, &p, 1, &at);
    for (int row = 0; row < 3; row++) {
        double sum = 0;

        for (int64_t i = 0; i < 20000; i++) {
            sum += tl_tensor_get_f(t, row * 20000 + i);
        }
        cr_expect_float_eq(sum / 20000, want[row], row == 1 ? 0.013 : 0);
    }
    tl_tensor_unref(t);
    tl_tensor_set_f(p, 7, 1.5);
    cr_expect_neq(tl_apply_borrowed(&rt, TL_OP_bernoulli, &p, 1, &at, &t),
                  TL_OK);
    cr_expect_eq(diag.last->code, TL_E0413);
    cr_expect_str_eq(said(), "probability at [0, 7] is 1.5, outside 0..1");
    tl_diag_clear(&diag);
    tl_tensor_unref(p);
}

Test(draws, dropout_scales_what_it_keeps)
{
    for (int d = TL_bf16; d < TL_DTYPE_COUNT; d++) {
        tl_attrs at = drawn((tl_dtype)d, 0, 8);
        tl_tensor *x = make((tl_dtype)d, 1, DIMS(20000), NULL), *y;
        int64_t kept = 0;

        for (int64_t i = 0; i < x->numel; i++) {
            tl_tensor_set_f(x, i, 3);
        }
        at.f[0] = 0.25;
        y = run(TL_OP_dropout, &x, 1, &at);
        for (int64_t i = 0; i < y->numel; i++) {
            cr_assert(tl_tensor_get_f(y, i) == 0 ||
                      tl_tensor_get_f(y, i) == 4);
            kept += tl_tensor_get_f(y, i) != 0;
        }
        cr_expect_float_eq((double)kept / 20000, 0.75, 0.013);
        tl_tensor_unref(y);
        at.f[0] = 1; /* nothing stays, and nothing is nan */
        tl_tensor_set_f(x, 3, (double)INFINITY);
        y = run(TL_OP_dropout, &x, 1, &at);
        for (int64_t i = 0; i < y->numel; i++) {
            cr_assert_eq(tl_tensor_get_f(y, i), 0);
        }
        tl_tensor_unref(y);
        tl_tensor_unref(x);
    }
}

Test(draws, masks_do_not_depend_on_layout)
{
    tl_attrs at = drawn(TL_f32, 0, 8);

    at.f[0] = 0.5;
    for (int how = 0; how < ARRANGEMENTS; how++) {
        tl_tensor *x = points(TL_f32, 2, DIMS(30, 41), TL_DOM_POS, 2);
        tl_tensor *z = arranged(
            points(TL_f32, 2, DIMS(30, 41), TL_DOM_POS, 2), (arrangement)how);
        tl_tensor *a = run(TL_OP_dropout, &x, 1, &at);
        tl_tensor *b = run(TL_OP_dropout, &z, 1, &at);

        cr_expect(same_bits(a, b));
        tl_tensor_unref(x);
        tl_tensor_unref(z);
        tl_tensor_unref(a);
        tl_tensor_unref(b);
    }
}

/* ---- weighted draws ------------------------------------------------------ */

static tl_tensor *weighted(tl_tensor *w, int64_t count, bool again)
{
    tl_attrs at = drawn(TL_f32, count, 12);

    at.flag = again;
    return run(TL_OP_multinomial, &w, 1, &at);
}

Test(draws, classes_come_as_often_as_their_weights_say)
{
    tl_tensor *w =
                  make(TL_f32, 2, DIMS(2, 4), VALUES(1, 0, 2, 5, 0, 0, 3, 0)),
              *t = weighted(w, 20000, true);
    int64_t seen[2][4] = {{0}};

    for (int64_t i = 0; i < t->numel; i++) {
        seen[i / 20000][tl_tensor_get_i(t, i)]++;
    }
    for (int c = 0; c < 4; c++) {
        double want = tl_tensor_get_f(w, c) / 8;

        cr_expect_float_eq((double)seen[0][c] / 20000, want,
                           want > 0 ? 0.015 : 0);
    }
    cr_expect_eq(seen[1][2], 20000);
    tl_tensor_unref(w);
    tl_tensor_unref(t);
}

Test(draws, without_replacement_no_class_comes_again)
{
    /* of weights 1, 2, 5 the first is drawn first in an eighth of the rows */
    tl_tensor *w = make(TL_f64, 2, DIMS(20000, 4), NULL), *t;
    int64_t first = 0;

    for (int64_t i = 0; i < w->numel; i++) {
        tl_tensor_set_f(w, i, VALUES(1, 2, 0, 5)[i % 4]);
    }
    t = weighted(w, 3, false);
    for (int64_t i = 0; i < t->numel; i += 3) {
        int64_t a = tl_tensor_get_i(t, i), b = tl_tensor_get_i(t, i + 1);
        int64_t c = tl_tensor_get_i(t, i + 2);

        cr_assert(a + b + c == 4 && a != b && b != c && a != 2 && b != 2);
        first += a == 0;
    }
    cr_expect_float_eq((double)first / 20000, 0.125, 0.01);
    tl_tensor_unref(w);
    tl_tensor_unref(t);
}

Test(draws, weights_that_cannot_be_drawn_from)
{
    static const struct {
        double w[3];
        int64_t count;
        bool again;
        const char *message;
    } cases[] = {
        {{1, -1, 0}, 1, true, "weights of row 0 are not all finite and >= 0"},
        {{0, 0, 0}, 1, true, "weights of row 0 are all 0"},
        {{1, 0, 1},
         3,
         false,
         "3 draws from the 2 classes of row 0 that have weight"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tl_tensor *w = vec(TL_f32, 3, cases[i].w), *t;
        tl_attrs at = drawn(TL_f32, cases[i].count, 12);

        at.flag = cases[i].again;
        cr_expect_neq(
            tl_apply_borrowed(&rt, TL_OP_multinomial, &w, 1, &at, &t), TL_OK);
        cr_expect_eq(diag.last->code, TL_E0414);
        cr_expect_str_eq(said(), cases[i].message);
        tl_diag_clear(&diag);
        tl_tensor_unref(w);
    }
}

/* ---- creators ----------------------------------------------------------- */

Test(draws, creators_of_every_dtype)
{
    for (int d = TL_u8; d < TL_DTYPE_COUNT; d++) {
        tl_attrs at = drawn((tl_dtype)d, 4, 0);
        tl_tensor *t;

        at.i[0] = 2;
        at.i[1] = 3;
        at.f[0] = 2;
        at.f[1] = 3;
        t = make_by(TL_OP_full, &at);
        expect_values(t, VALUES(2, 2, 2, 2));
        tl_tensor_unref(t);
        t = make_by(TL_OP_arange, &at);
        expect_values(t, VALUES(2, 5, 8, 11));
        tl_tensor_unref(t);
        at.f[1] = 5;
        t = make_by(TL_OP_linspace, &at);
        expect_values(t, VALUES(2, 3, 4, 5));
        tl_tensor_unref(t);
        at.ndims = 2;
        at.dims[0] = tl_dim_num(2);
        at.dims[1] = tl_dim_num(3);
        t = make_by(TL_OP_eye, &at);
        expect_values(t, VALUES(1, 0, 0, 0, 1, 0));
        tl_tensor_unref(t);
    }
}

Test(draws, eye_of_any_shape)
{
    static const int64_t sizes[][2] = {{0, 3},   {3, 0},   {1, 1},   {5, 2},
                                       {2, 5},   {70, 33}, {33, 70}, {600, 1},
                                       {1, 600}, {40, 40}};

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int64_t rows = sizes[k][0], columns = sizes[k][1];
        tl_attrs at = drawn(TL_f32, 0, 0);
        tl_tensor *t;

        at.ndims = 2;
        at.dims[0] = tl_dim_num(rows);
        at.dims[1] = tl_dim_num(columns);
        t = make_by(TL_OP_eye, &at);
        for (int64_t i = 0; i < t->numel; i++) {
            cr_assert_eq(tl_tensor_get_f(t, i), i / columns == i % columns,
                         "[%lld, %lld] at %lld", (long long)rows,
                         (long long)columns, (long long)i);
        }
        tl_tensor_unref(t);
    }
}

Test(draws, linspace_has_both_ends)
{
    tl_attrs at = drawn(TL_f32, 7, 0);
    tl_tensor *t;

    at.f[0] = 0.1;
    at.f[1] = 0.7;
    t = make_by(TL_OP_linspace, &at);
    cr_expect_eq((float)tl_tensor_get_f(t, 0), 0.1f);
    cr_expect_eq((float)tl_tensor_get_f(t, 6), 0.7f);
    tl_tensor_unref(t);
    at.dims[0] = tl_dim_num(1);
    t = make_by(TL_OP_linspace, &at);
    cr_expect_eq((float)tl_tensor_get_f(t, 0), 0.1f);
    tl_tensor_unref(t);
}
