/* Symbolic sizes: normal forms, facts, proofs, counterexamples, text. */
#include "runtime/op/dim.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/size.h"

static tl_dims *dims;
static tl_dim B, T, n, d, h, k;

static tl_dim atom(const char *name)
{
    tl_dim out;

    cr_assert_eq(tl_dim_atom(dims, name, 0, &out, NULL), TL_OK);
    return out;
}

static void setup(void)
{
    cr_assert_eq(tl_dims_new(&dims, NULL), TL_OK);
    B = atom("B");
    T = atom("T");
    n = atom("n");
    d = atom("d");
    h = atom("h");
    k = atom("k");
}

static void teardown(void)
{
    tl_dims_free(dims);
    cr_expect_eq(tl_mem_live_blocks(), 0);
}

TestSuite(dim, .init = setup, .fini = teardown);

static tl_dim num(int64_t x)
{
    return tl_dim_num(x);
}

#define BINARY(name, function)                                               \
    static tl_dim name(tl_dim a, tl_dim b)                                   \
    {                                                                        \
        tl_dim out;                                                          \
        cr_assert_eq(function(dims, a, b, &out, NULL), TL_OK);               \
        return out;                                                          \
    }
BINARY(add, tl_dim_add)
BINARY(sub, tl_dim_sub)
BINARY(mul, tl_dim_mul)
BINARY(quo, tl_dim_div)
BINARY(mod, tl_dim_mod)

static void expect_text(tl_dim x, const char *want)
{
    tl_buf buf;

    tl_buf_init(&buf);
    tl_dim_print(x, &buf);
    cr_expect_str_eq(tl_buf_str(&buf), want);
    tl_buf_fini(&buf);
}

Test(dim, numbers_need_no_context)
{
    tl_dim out;

    cr_assert_eq(tl_dim_div(NULL, num(-7), num(2), &out, NULL), TL_OK);
    cr_expect_eq(tl_dim_value(out), -4);
    cr_assert_eq(tl_dim_mod(NULL, num(-7), num(2), &out, NULL), TL_OK);
    cr_expect_eq(tl_dim_value(out), 1);
    cr_expect_eq(tl_dim_eq(NULL, num(3), num(3)), TL_PROVED);
    cr_expect_eq(tl_dim_eq(NULL, num(3), num(2)), TL_REFUTED);
    cr_expect_eq(tl_dim_le(NULL, num(3), num(2)), TL_REFUTED);
}

Test(dim, sums_and_products_are_one_word_in_any_order)
{
    cr_expect(tl_dim_same(add(B, T), add(T, B)));
    cr_expect(tl_dim_same(mul(add(B, num(1)), T), add(T, mul(T, B))));
    cr_expect(tl_dim_same(mul(add(B, T), sub(B, T)),
                          sub(mul(B, B), mul(T, T))));
    cr_expect(tl_dim_same(sub(add(B, T), T), B));
    cr_expect_eq(tl_dim_value(sub(B, B)), 0);
}

Test(dim, division_takes_out_what_divides)
{
    cr_expect(tl_dim_same(quo(mul(B, T), T), B));
    cr_expect(tl_dim_same(quo(add(mul(num(4), B), num(2)), num(2)),
                          add(mul(num(2), B), num(1))));
    cr_expect(tl_dim_same(quo(add(mul(B, T), n), T), add(B, quo(n, T))));
    cr_expect(tl_dim_same(quo(mul(num(2), n), mul(num(2), k)), quo(n, k)));
    cr_expect(tl_dim_same(quo(sub(mul(B, B), mul(T, T)), add(B, T)),
                          sub(B, T)));
    cr_expect_eq(tl_dim_value(mod(mul(num(6), B), num(3))), 0);
}

Test(dim, division_by_numbers_is_canonical)
{
    /* (5 n + 7) // 2 == 2 n + 3 + (n + 1) // 2 */
    cr_expect(tl_dim_same(quo(add(mul(num(5), n), num(7)), num(2)),
                          add(add(mul(num(2), n), num(3)),
                              quo(add(n, num(1)), num(2)))));
    cr_expect(tl_dim_same(quo(quo(n, num(2)), num(3)), quo(n, num(6))));
    cr_expect(tl_dim_same(quo(add(quo(n, num(2)), num(1)), num(3)),
                          quo(add(n, num(2)), num(6))));
}

/* Every identity of floor division that dim.c uses, against numbers. */
Test(dim, division_agrees_with_numbers)
{
    tl_dim p[] = {add(mul(num(5), n), num(-7)),
                  add(quo(n, num(2)), mul(num(-3), k)),
                  mul(num(6), mul(n, k)), sub(k, mul(num(4), n)), num(5)};
    tl_dim q[] = {num(2), num(-3), mul(num(2), k), add(n, num(1)), n,
                  mul(num(-1), k)};
    tl_dim from[] = {n, k};

    for (size_t i = 0; i < sizeof(p) / sizeof(*p); i++) {
        for (size_t j = 0; j < sizeof(q) / sizeof(*q); j++) {
            tl_dim symbolic = quo(p[i], q[j]);

            for (int v = 1; v < 40; v++) {
                tl_dim to[] = {num(v % 8 + 1), num(v / 8 + 1)};
                tl_dim got, x, y;

                cr_assert_eq(tl_dim_replace(dims, symbolic, from, to, 2, &got,
                                            NULL), TL_OK);
                cr_assert_eq(tl_dim_replace(dims, p[i], from, to, 2, &x,
                                            NULL), TL_OK);
                cr_assert_eq(tl_dim_replace(dims, q[j], from, to, 2, &y,
                                            NULL), TL_OK);
                cr_expect_eq(tl_dim_value(got), tl_dim_value(quo(x, y)),
                             "p %zu, q %zu, assignment %d", i, j, v);
            }
        }
    }
}

Test(dim, mod_is_what_floor_division_leaves)
{
    cr_expect(tl_dim_same(add(mul(quo(n, k), k), mod(n, k)), n));
}

Test(dim, division_by_zero_is_an_error)
{
    tl_diag diag;
    tl_dim out = num(42);

    tl_diag_init(&diag, NULL);
    cr_expect_neq(tl_dim_div(dims, n, num(0), &out, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0401);
    cr_expect_eq(tl_dim_value(out), 42);
    tl_diag_fini(&diag);
}

Test(dim, overflow_is_an_error)
{
    tl_diag diag;
    tl_dim out, big = num((int64_t)1 << 61);

    tl_diag_init(&diag, NULL);
    cr_expect_neq(tl_dim_mul(NULL, big, num(2), &out, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0307);
    cr_expect_neq(tl_dim_mul(dims, mul(B, big), num(4), &out, &diag), TL_OK);
    cr_expect_neq(tl_dim_add(dims, mul(B, big), mul(B, big), &out, &diag),
                  TL_OK);
    cr_expect_eq(diag.nerrors, 3);
    tl_diag_fini(&diag);
}

Test(dim, large_expressions_are_refused)
{
    tl_dim sum = num(1), power = B, out;
    tl_status st = TL_OK;
    char name[16];

    for (int i = 0; i < 200 && st == TL_OK; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        st = tl_dim_add(dims, sum, atom(name), &sum, NULL);
    }
    cr_expect_neq(st, TL_OK);
    for (st = TL_OK; st == TL_OK;) {
        st = tl_dim_mul(dims, power, B, &power, NULL);
    }
    for (int i = 0; i < 200; i++) {
        st = tl_dim_div(dims, power, add(k, num(i)), &out, NULL);
        power = st == TL_OK ? add(out, num(1)) : power;
    }
    cr_expect_neq(st, TL_OK);
}

Test(dim, text)
{
    tl_dim fresh;

    cr_assert_eq(tl_dim_fresh(dims, "a mask", &fresh, NULL), TL_OK);
    expect_text(num(768), "768");
    expect_text(num(-1), "-1");
    expect_text(add(mul(num(2), B), quo(n, num(2))), "2*B + n//2");
    expect_text(sub(n, num(1)), "n - 1");
    expect_text(sub(T, n), "T - n");
    expect_text(sub(n, T), "n - T");
    expect_text(sub(num(0), B), "-B");
    expect_text(mul(num(2), quo(n, num(2))), "2*(n//2)");
    expect_text(quo(add(B, num(1)), mul(num(2), h)), "(B + 1)//(2*h)");
    expect_text(mul(B, mul(T, num(3))), "3*B*T");
    expect_text(fresh, "_");
}

Test(dim, same_name_is_the_same_atom)
{
    cr_expect(tl_dim_same(atom("B"), B));
    cr_expect(tl_dim_is_atom(B));
    cr_expect_not(tl_dim_is_atom(add(B, num(1))));
    cr_expect(tl_dim_has(quo(add(B, T), k), T));
    cr_expect_not(tl_dim_has(quo(add(B, T), k), n));
}

Test(dim, fresh_atoms_are_never_refuted_or_proved)
{
    tl_dim x, y;

    cr_assert_eq(tl_dim_fresh(dims, NULL, &x, NULL), TL_OK);
    cr_assert_eq(tl_dim_fresh(dims, NULL, &y, NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, x, y), TL_UNKNOWN);
    cr_expect_eq(tl_dim_eq(dims, x, num(3)), TL_UNKNOWN);
    cr_expect_eq(tl_dim_eq(dims, x, add(x, num(1))), TL_REFUTED);
    cr_expect_eq(tl_dim_eq(dims, x, x), TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, num(0), x), TL_PROVED);
    cr_expect(tl_dim_has_fresh(quo(x, num(2))));
}

Test(dim, different_names_are_refuted_with_an_example)
{
    tl_buf buf;

    tl_buf_init(&buf);
    cr_expect_eq(tl_dim_eq(dims, B, T), TL_REFUTED);
    cr_expect_eq(tl_dim_eq(dims, d, num(768)), TL_REFUTED);
    cr_expect_eq(tl_dim_eq(dims, mul(num(2), quo(n, num(2))), n), TL_REFUTED);
    cr_expect(tl_dim_example(dims, mul(num(2), quo(n, num(2))), n, &buf));
    cr_expect_eq(strncmp(tl_buf_str(&buf), "n = ", 4), 0);
    cr_expect_not_null(strstr(tl_buf_str(&buf), " and "));
    tl_buf_fini(&buf);
}

Test(dim, divides_fact_gives_the_quotient_back)
{
    cr_expect_eq(tl_dim_eq(dims, mul(h, quo(d, h)), d), TL_REFUTED);
    cr_assert_eq(tl_dims_fact_divides(dims, d, h, NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, mul(h, quo(d, h)), d), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, mod(d, h), num(0)), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, quo(mul(num(2), d), h),
                           mul(num(2), quo(d, h))), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, d, h), TL_REFUTED);
}

Test(dim, divides_fact_by_a_number)
{
    cr_assert_eq(tl_dims_fact_divides(dims, n, num(4), NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, mul(num(2), quo(n, num(2))), n), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, quo(n, num(2)), mul(num(2), quo(n, num(4)))),
                 TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, mul(num(8), quo(n, num(8))), n), TL_REFUTED);
}

Test(dim, divides_facts_of_two_divisors)
{
    cr_assert_eq(tl_dims_fact_divides(dims, d, h, NULL), TL_OK);
    cr_assert_eq(tl_dims_fact_divides(dims, d, k, NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, mul(h, quo(d, h)), d), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, mul(k, quo(d, k)), d), TL_PROVED);
    cr_expect_neq(tl_dim_eq(dims, d, B), TL_PROVED);
}

Test(dim, divides_fact_of_a_sum)
{
    tl_dim s = add(n, num(1));

    cr_assert_eq(tl_dims_fact_divides(dims, s, num(2), NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, mul(num(2), quo(s, num(2))), s), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, mul(num(2), quo(n, num(2))), n), TL_REFUTED);
}

Test(dim, equal_fact_substitutes)
{
    cr_assert_eq(tl_dims_fact_equal(dims, B, T, NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, B, T), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, quo(B, k), quo(T, k)), TL_PROVED);
    cr_assert_eq(tl_dims_fact_equal(dims, n, mul(num(2), B), NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, quo(n, num(2)), T), TL_PROVED);
    cr_expect_eq(tl_dim_eq(dims, n, B), TL_REFUTED);
}

Test(dim, equal_fact_of_products_rewrites)
{
    cr_assert_eq(tl_dims_fact_equal(dims, mul(B, T), mul(n, k), NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, mul(mul(B, T), d), mul(mul(n, k), d)),
                 TL_PROVED);
    cr_expect_neq(tl_dim_eq(dims, B, n), TL_PROVED);
}

Test(dim, fact_that_feeds_itself_ends)
{
    tl_dim q = quo(mul(B, T), n);

    cr_assert_eq(tl_dims_fact_equal(dims, mul(B, T), mul(n, q), NULL), TL_OK);
    cr_expect_neq(tl_dim_eq(dims, mul(B, T), k), TL_PROVED);
}

Test(dim, le_by_bounds_facts_and_division)
{
    cr_expect_eq(tl_dim_le(dims, num(0), mul(B, T)), TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, B, add(B, T)), TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, quo(n, num(2)), n), TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, n, add(mul(num(2), quo(n, num(2))), num(1))),
                 TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, n, mul(num(2), quo(n, num(2)))),
                 TL_REFUTED);
    cr_expect_eq(tl_dim_le(dims, T, n), TL_REFUTED);
    cr_assert_eq(tl_dims_fact_le(dims, T, n, NULL), TL_OK);
    cr_expect_eq(tl_dim_le(dims, T, n), TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, T, add(n, k)), TL_PROVED);
    cr_assert_eq(tl_dims_fact_le(dims, n, k, NULL), TL_OK);
    cr_expect_eq(tl_dim_le(dims, T, k), TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, k, T), TL_REFUTED);
}

Test(dim, least_of_an_atom_is_known)
{
    tl_dim m;

    cr_assert_eq(tl_dim_atom(dims, "m", 3, &m, NULL), TL_OK);
    cr_expect_eq(tl_dim_le(dims, num(3), m), TL_PROVED);
    cr_expect_eq(tl_dim_le(dims, num(4), m), TL_REFUTED);
    cr_expect_eq(tl_dim_le(dims, m, num(2)), TL_REFUTED);
}

Test(dim, released_facts_are_forgotten_and_older_ones_kept)
{
    size_t mark;

    cr_assert_eq(tl_dims_fact_divides(dims, d, h, NULL), TL_OK);
    mark = tl_dims_mark(dims);
    cr_assert_eq(tl_dims_fact_equal(dims, B, T, NULL), TL_OK);
    cr_assert_eq(tl_dims_fact_equal(dims, d, mul(num(2), h), NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, quo(d, h), num(2)), TL_PROVED);
    tl_dims_release(dims, mark);
    cr_expect_eq(tl_dim_eq(dims, B, T), TL_REFUTED);
    cr_expect_eq(tl_dim_eq(dims, quo(d, h), num(2)), TL_REFUTED);
    cr_expect_eq(tl_dim_eq(dims, mul(h, quo(d, h)), d), TL_PROVED);
}

Test(dim, contradictory_facts_refute_nothing)
{
    cr_assert_eq(tl_dims_fact_equal(dims, n, num(3), NULL), TL_OK);
    cr_assert_eq(tl_dims_fact_equal(dims, n, num(4), NULL), TL_OK);
    cr_expect_eq(tl_dim_eq(dims, B, T), TL_UNKNOWN);
}

Test(dim, replace_is_simultaneous)
{
    tl_dim from[] = {B, T}, to[] = {T, B}, out;

    cr_assert_eq(tl_dim_replace(dims, add(mul(num(2), B), quo(T, k)), from,
                                to, 2, &out, NULL), TL_OK);
    cr_expect(tl_dim_same(out, add(mul(num(2), T), quo(B, k))));
}

/* ---- random expressions -------------------------------------------------- */

enum { NAMES = 4, TRIALS = 3000 };

static uint64_t state;

static int64_t pick(int64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)bound);
}

/* A random expression, and its value for each of `count` assignments; false
 * where a division by zero (or an overflow) has no value. */
static bool expression(int depth, int count, const int64_t (*value)[NAMES],
                       tl_dim *out, int64_t *results)
{
    const tl_dim name[NAMES] = {B, T, k, h};
    int64_t left[64], right[64];
    tl_status st = TL_OK;
    tl_dim a, b;
    int op;

    if (depth == 0 || pick(4) == 0) {
        int which = (int)pick(NAMES + 1);
        int64_t constant = pick(7) - 2;

        *out = which < NAMES ? name[which] : num(constant);
        for (int i = 0; i < count; i++) {
            results[i] = which < NAMES ? value[i][which] : constant;
        }
        return true;
    }
    if (!expression(depth - 1, count, value, &a, left) ||
        !expression(depth - 1, count, value, &b, right)) {
        return false;
    }
    op = (int)pick(5);
    for (int i = 0; i < count && op >= 3; i++) {
        if (right[i] == 0) {
            return false;
        }
    }
    st = op == 0   ? tl_dim_add(dims, a, b, out, NULL)
         : op == 1 ? tl_dim_sub(dims, a, b, out, NULL)
         : op == 2 ? tl_dim_mul(dims, a, b, out, NULL)
         : op == 3 ? tl_dim_div(dims, a, b, out, NULL)
                   : tl_dim_mod(dims, a, b, out, NULL);
    for (int i = 0; i < count; i++) {
        results[i] = op == 0   ? left[i] + right[i]
                     : op == 1 ? left[i] - right[i]
                     : op == 2 ? left[i] * right[i]
                     : op == 3 ? tl_floor_div(left[i], right[i])
                               : tl_floor_mod(left[i], right[i]);
    }
    return st == TL_OK;
}

/* Assignments of 1 .. 4, all different sorts. */
static void assign(int count, int64_t (*value)[NAMES])
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < NAMES; j++) {
            value[i][j] = 1 + pick(4);
        }
    }
}

Test(dim, random_expressions_agree_with_numbers)
{
    int64_t value[16][NAMES], want[64];
    int checked = 0;

    state = 1;
    for (int trial = 0; trial < TRIALS; trial++) {
        tl_dim from[NAMES] = {B, T, k, h}, x, got;

        assign(16, value);
        if (!expression(4, 16, (const int64_t(*)[NAMES])value, &x, want)) {
            continue;
        }
        for (int i = 0; i < 16; i++) {
            tl_dim to[NAMES];

            for (int j = 0; j < NAMES; j++) {
                to[j] = num(value[i][j]);
            }
            /* what is divided by in between may be 0 only together */
            if (tl_dim_replace(dims, x, from, to, NAMES, &got, NULL) ==
                TL_OK) {
                cr_assert_eq(tl_dim_value(got), want[i], "trial %d", trial);
                checked++;
            }
        }
    }
    cr_expect_gt(checked, 5 * TRIALS, "%d", checked);
}

enum { ALL = 256 }; /* every assignment of 1 .. 4 */

static int64_t every[ALL][NAMES];

/* A random pair of expressions with their values. */
typedef struct sides {
    tl_dim a, b;
    int64_t x[ALL], y[ALL];
} sides;

static bool random_sides(int depth, sides *s)
{
    uint64_t start = state;

    for (int c = 0; c < ALL; c += 64) { /* the same ones, 64 values at a time */
        const int64_t(*part)[NAMES] = &((const int64_t(*)[NAMES])every)[c];

        state = start;
        if (!expression(depth, 64, part, &s->a, s->x + c) ||
            !expression(depth, 64, part, &s->b, s->y + c)) {
            return false;
        }
    }
    return true;
}

/* Add a random fact; `holds` keeps the assignments that satisfy it. */
static bool random_fact(bool *holds)
{
    int64_t kind = pick(3);
    sides s;

    if (!random_sides(1, &s) || tl_dim_same(s.b, num(0))) {
        return false;
    }
    for (int i = 0; i < ALL; i++) {
        holds[i] &= kind == 0   ? s.x[i] == s.y[i]
                    : kind == 1 ? s.x[i] <= s.y[i]
                                : s.y[i] != 0 && s.x[i] % s.y[i] == 0;
    }
    cr_assert_eq(kind == 0   ? tl_dims_fact_equal(dims, s.a, s.b, NULL)
                 : kind == 1 ? tl_dims_fact_le(dims, s.a, s.b, NULL)
                             : tl_dims_fact_divides(dims, s.a, s.b, NULL),
                 TL_OK);
    return true;
}

/* What is proved of a random claim holds where the facts do. */
static void random_claim(const bool *holds, int *proved, int *refuted)
{
    tl_proof eq, le;
    sides s;

    if (!random_sides(2, &s)) {
        return;
    }
    eq = tl_dim_eq(dims, s.a, s.b);
    le = tl_dim_le(dims, s.a, s.b);
    *proved += eq == TL_PROVED && !tl_dim_same(s.a, s.b);
    *proved += le == TL_PROVED && !tl_dim_is_num(s.a);
    *refuted += eq == TL_REFUTED;
    for (int i = 0; i < ALL; i++) {
        cr_assert(!holds[i] || eq != TL_PROVED || s.x[i] == s.y[i]);
        cr_assert(!holds[i] || le != TL_PROVED || s.x[i] <= s.y[i]);
    }
}

Test(dim, proofs_hold_wherever_the_facts_do)
{
    int proved = 0, refuted = 0;

    for (int i = 0; i < ALL; i++) {
        for (int j = 0, rest = i; j < NAMES; j++, rest /= 4) {
            every[i][j] = 1 + rest % 4;
        }
    }
    state = 2;
    for (int trial = 0; trial < TRIALS; trial++) {
        size_t mark = tl_dims_mark(dims);
        bool holds[ALL];

        for (int i = 0; i < ALL; i++) {
            holds[i] = true;
        }
        if (random_fact(holds) && random_fact(holds)) {
            for (int claim = 0; claim < 6; claim++) {
                random_claim(holds, &proved, &refuted);
            }
        }
        tl_dims_release(dims, mark);
    }
    cr_expect_gt(proved, 100, "%d", proved);
    cr_expect_gt(refuted, 1000, "%d", refuted);
}

Test(dim, every_failed_allocation_is_a_status)
{
    for (uint64_t at = 1; at < 200; at++) {
        tl_dims *other = NULL;
        tl_dim x, y, z;

        tl_mem_fail_at(at, true);
        if (tl_dims_new(&other, NULL) == TL_OK &&
            tl_dim_atom(other, "x", 0, &x, NULL) == TL_OK &&
            tl_dim_atom(other, "y", 0, &y, NULL) == TL_OK &&
            tl_dim_div(other, x, y, &z, NULL) == TL_OK &&
            tl_dims_fact_divides(other, x, y, NULL) == TL_OK) {
            cr_expect_neq(tl_dim_eq(other, x, y), TL_PROVED);
        }
        tl_mem_fail_at(0, false);
        tl_dims_free(other);
    }
}
