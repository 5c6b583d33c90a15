/* Patterns of axis names: parsing and its errors, rearrange, reduce, and
 * einsum against plain loops. */
#include <string.h>

#include "runtime/op/pattern.h"
#include "tests/unit/runtime/helper.h"

TestSuite(pattern, .init = rt_setup, .fini = rt_teardown);

static tl_pattern parsed;
static tl_pattern_place place;

static tl_status parse(tl_pattern_kind kind, const char *text)
{
    return tl_pattern_parse(&parsed, kind, text, strlen(text), &place, &diag);
}

/* ---- errors ------------------------------------------------------------ */

/* The error is about the bytes of `about` at its last place in the text. */
static void expect_refused(tl_pattern_kind kind, const char *text,
                           const char *about, const char *message)
{
    const char *at = NULL;

    cr_assert_neq(parse(kind, text), TL_OK, "%s", text);
    cr_expect_eq(diag.last->code, TL_E0323);
    cr_expect_str_eq(diag.last->message, message);
    for (const char *p = strstr(text, about); p; p = strstr(p + 1, about)) {
        at = p;
    }
    cr_assert_not_null(at);
    cr_expect_eq(place.start, at - text, "%s: %zu", text, place.start);
    cr_expect_eq(place.end, at - text + strlen(about), "%s", text);
}

Test(pattern, errors_point_inside_the_string)
{
    expect_refused(TL_PATTERN_REARRANGE, "b (h w -> b h w", "(",
                   "this `(` is never closed");
    expect_refused(TL_PATTERN_REARRANGE, "b ((h) w) -> b h w", "(",
                   "groups do not nest");
    expect_refused(TL_PATTERN_REARRANGE, "b h -> b h h", "h",
                   "`h` stands twice on one side");
    expect_refused(TL_PATTERN_REARRANGE, "b h -> b w", "w",
                   "`w` is not in any input");
    expect_refused(TL_PATTERN_REARRANGE, "b hw -> b", "hw",
                   "`hw` is lost: the right side of rearrange has every axis");
    expect_refused(TL_PATTERN_REARRANGE, "... a ... -> a", "...",
                   "`...` stands twice on one side");
    expect_refused(TL_PATTERN_REARRANGE, "b, c -> b", ",",
                   "this pattern has one operand");
    expect_refused(TL_PATTERN_EINSUM, "i (j k) -> i", "(",
                   "einsum has no groups; rearrange its result");
    expect_refused(TL_PATTERN_EINSUM, "i j, j k -> i z", "z",
                   "`z` is not in any input");
    expect_refused(TL_PATTERN_EINSUM, "i j, k + j -> i", "+",
                   "a pattern has axis names, `1`, `...`, groups in "
                   "parentheses and one `->`");
}

Test(pattern, malformed_text_is_refused)
{
    static const char *const text[] = {"", "a b", "a -> b -> c", "a -> a, b",
                                       "2 -> a", "a$ -> a", ")", "->->",
                                       "a )-> a", ", -> "};

    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        cr_expect_neq(parse(TL_PATTERN_REARRANGE, text[i]), TL_OK, "%s",
                      text[i]);
        cr_expect_leq(place.end, strlen(text[i]) + 1);
    }
}

/* ---- rearrange and reduce ---------------------------------------------- */

static tl_tensor *apply(const char *text, tl_tensor *x,
                        const tl_pattern_size *sizes, int n, tl_op reduce)
{
    tl_pattern_kind kind = reduce == TL_OP_COUNT ? TL_PATTERN_REARRANGE
                                                 : TL_PATTERN_REDUCE;
    tl_apply_emit e;
    tl_node out;
    tl_tensor *res;

    OK(parse(kind, text));
    tl_apply_emit_init(&e, &rt);
    OK(tl_pattern_apply(&e.emit, &parsed, reduce, x, sizes, n, &out, &place));
    res = tl_tensor_ref(out);
    tl_apply_emit_fini(&e);
    return res;
}

static void expect_sizes(const tl_tensor *t, int rank, const int64_t *size)
{
    cr_assert_eq(t->rank, rank);
    for (int i = 0; i < rank; i++) {
        cr_expect_eq(t->size[i], size[i], "axis %d is %lld", i,
                     (long long)t->size[i]);
    }
}

Test(pattern, rearrange_splits_orders_and_merges)
{
    tl_tensor *x = make(TL_f32, 3, DIMS(2, 3, 8), NULL), *y, *z;
    tl_pattern_size h = {"h", tl_dim_num(4)};

    y = apply("b t (h e) -> b h t e", x, &h, 1, TL_OP_COUNT);
    expect_sizes(y, 4, DIMS(2, 4, 3, 2));
    for (int64_t i = 0; i < y->numel; i++) {
        int64_t b = i / 24, hh = i / 6 % 4, t = i / 2 % 3, e = i % 2;

        cr_assert_eq(tl_tensor_get_i(y, i), b * 24 + t * 8 + hh * 2 + e);
    }
    z = apply("b h t e -> b t (h e)", y, NULL, 0, TL_OP_COUNT);
    expect_values(z, VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                            15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                            27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38,
                            39, 40, 41, 42, 43, 44, 45, 46, 47));
    tl_tensor_unref(z);
    z = apply("... e -> (...) 1 e", y, NULL, 0, TL_OP_COUNT);
    expect_sizes(z, 3, DIMS(24, 1, 2));
    tl_tensor_unref(z);
    z = apply("a ... -> ... a", y, NULL, 0, TL_OP_COUNT);
    expect_sizes(z, 4, DIMS(4, 3, 2, 2));
    tl_tensor_unref(z);
    z = apply("a b c d -> (a b c d)", y, NULL, 0, TL_OP_COUNT);
    expect_sizes(z, 1, DIMS(48));
    tl_tensor_unref(z);
    z = apply("a b c d -> () a (b c) d ()", y, NULL, 0, TL_OP_COUNT);
    expect_sizes(z, 5, DIMS(1, 2, 12, 2, 1));
    tl_tensor_unref(z);
    tl_tensor_unref(x);
    tl_tensor_unref(y);
}

Test(pattern, reduce_over_what_is_missing)
{
    tl_tensor *x = make(TL_f32, 4, DIMS(2, 3, 2, 2), NULL), *y;
    tl_pattern_size two = {"i", tl_dim_num(1)};

    y = apply("b c h w -> b c", x, NULL, 0, TL_OP_mean);
    expect_values(y, VALUES(1.5, 5.5, 9.5, 13.5, 17.5, 21.5));
    tl_tensor_unref(y);
    y = apply("b c h w -> c 1", x, NULL, 0, TL_OP_sum);
    expect_sizes(y, 2, DIMS(3, 1));
    expect_values(y, VALUES(60, 92, 124));
    tl_tensor_unref(y);
    y = apply("b ... w -> b ...", x, NULL, 0, TL_OP_max);
    expect_sizes(y, 3, DIMS(2, 3, 2));
    tl_tensor_unref(y);
    y = apply("b c (h i) w -> h", x, &two, 1, TL_OP_sum);
    expect_sizes(y, 1, DIMS(2));
    tl_tensor_unref(y);
    y = apply("... -> ", x, NULL, 0, TL_OP_sum);
    expect_values(y, VALUES(276));
    tl_tensor_unref(y);
    tl_tensor_unref(x);
}

Test(pattern, operands_must_fit)
{
    tl_tensor *x = make(TL_f32, 2, DIMS(6, 1), NULL);
    tl_pattern_size four = {"h", tl_dim_num(4)}, other = {"q", tl_dim_num(4)};
    tl_apply_emit e;
    tl_node out;

    tl_apply_emit_init(&e, &rt);
    OK(parse(TL_PATTERN_REARRANGE, "(h w) 1 -> h w"));
    cr_expect_neq(tl_pattern_apply(&e.emit, &parsed, TL_OP_COUNT, x, &four, 1,
                                   &out, &place), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0323);
    cr_expect_neq(tl_pattern_apply(&e.emit, &parsed, TL_OP_COUNT, x, NULL, 0,
                                   &out, &place), TL_OK);
    cr_expect_eq(place.start, 3); /* w, the second without a size */
    cr_expect_neq(tl_pattern_apply(&e.emit, &parsed, TL_OP_COUNT, x, &other, 1,
                                   &out, &place), TL_OK);
    cr_expect_str_eq(said(), "`q` is not an axis of the pattern");
    OK(parse(TL_PATTERN_REARRANGE, "a b c -> c b a"));
    cr_expect_neq(tl_pattern_apply(&e.emit, &parsed, TL_OP_COUNT, x, NULL, 0,
                                   &out, &place), TL_OK);
    OK(parse(TL_PATTERN_REARRANGE, "(...) b -> b (...)"));
    cr_expect_neq(tl_pattern_apply(&e.emit, &parsed, TL_OP_COUNT, x, NULL, 0,
                                   &out, &place), TL_OK);
    cr_expect_str_eq(said(), "`...` cannot be split off an axis");
    OK(parse(TL_PATTERN_REARRANGE, "1 b -> b"));
    cr_expect_neq(tl_pattern_apply(&e.emit, &parsed, TL_OP_COUNT, x, NULL, 0,
                                   &out, &place), TL_OK);
    cr_expect_eq(place.end, 1);
    tl_apply_emit_fini(&e);
    tl_tensor_unref(x);
}

/* ---- einsum ------------------------------------------------------------ */

static tl_tensor *numbers(int rank, const int64_t *size, uint64_t seed)
{
    tl_tensor *t = make(TL_f64, rank, size, NULL);

    for (int64_t i = 0; i < t->numel; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tl_tensor_set_f(t, i, (double)(seed >> 11) * 0x1p-52 - 1);
    }
    return t;
}

/* Sum over all assignments of the letters of `names`, one a letter; `of[i]`
 * are the letters of operand i, `to` those of the result. */
static void check_einsum(const char *text, const char *const *of,
                         const char *to, int n, tl_tensor **in)
{
    int64_t size[128] = {0}, total = 1, at[128], numel = 1;
    char letters[32] = "";
    double want[4096] = {0};
    tl_apply_emit e;
    tl_node node;

    for (int i = 0; i < n; i++) {
        for (int j = 0; of[i][j]; j++) {
            int c = of[i][j];

            if (!size[c]) {
                strncat(letters, &of[i][j], 1);
            }
            size[c] = size[c] > in[i]->size[j] ? size[c] : in[i]->size[j];
        }
    }
    for (char *c = letters; *c; c++) {
        total *= size[(int)*c];
    }
    for (int64_t k = 0; k < total; k++) {
        int64_t rest = k, place_of = 0;
        double product = 1;

        for (char *c = letters; *c; c++) {
            at[(int)*c] = rest % size[(int)*c];
            rest /= size[(int)*c];
        }
        for (int i = 0; i < n; i++) {
            int64_t from = 0;

            for (int j = 0; of[i][j]; j++) {
                int64_t have = in[i]->size[j];

                from = from * have + (have == 1 ? 0 : at[(int)of[i][j]]);
            }
            product *= tl_tensor_get_f(in[i], from);
        }
        for (const char *c = to; *c; c++) {
            place_of = place_of * size[(int)*c] + at[(int)*c];
        }
        want[place_of] += product;
    }
    for (const char *c = to; *c; c++) {
        numel *= size[(int)*c];
    }
    OK(parse(TL_PATTERN_EINSUM, text));
    tl_apply_emit_init(&e, &rt);
    OK(tl_pattern_einsum(&e.emit, &parsed, (const tl_node *)in, &node,
                         &place));
    cr_assert_eq(((tl_tensor *)node)->numel, numel, "%s", text);
    for (int64_t i = 0; i < numel; i++) {
        double got = tl_tensor_get_f(node, i);

        cr_expect(fabs(got - want[i]) < 1e-12, "%s [%lld]: %g, not %g", text,
                  (long long)i, got, want[i]);
    }
    tl_apply_emit_fini(&e);
    for (int i = 0; i < n; i++) {
        tl_tensor_unref(in[i]);
    }
}
#define EINSUM(text, to, of, ...)                                            \
    check_einsum(text, (const char *const[]){of, __VA_ARGS__}, to, n_in, ins)

static tl_tensor *ins[3];
static int n_in;

static void operands(int n, tl_tensor *a, tl_tensor *b, tl_tensor *c)
{
    n_in = n;
    ins[0] = a;
    ins[1] = b;
    ins[2] = c;
}

Test(pattern, einsum_of_one_operand)
{
    operands(1, numbers(2, DIMS(3, 4), 1), NULL, NULL);
    EINSUM("i j -> j i", "ji", "ij", NULL);
    operands(1, numbers(2, DIMS(3, 4), 1), NULL, NULL);
    EINSUM("i j -> ", "", "ij", NULL);
    operands(1, numbers(2, DIMS(3, 4), 1), NULL, NULL);
    EINSUM("i j -> j", "j", "ij", NULL);
    operands(1, numbers(2, DIMS(3, 3), 1), NULL, NULL);
    EINSUM("i i -> i", "i", "ii", NULL);
    operands(1, numbers(3, DIMS(3, 2, 3), 1), NULL, NULL);
    EINSUM("i j i -> j", "j", "iji", NULL);
}

Test(pattern, einsum_of_two_operands)
{
    operands(2, numbers(2, DIMS(3, 4), 1), numbers(2, DIMS(4, 5), 2), NULL);
    EINSUM("i j, j k -> i k", "ik", "ij", "jk");
    operands(2, numbers(2, DIMS(4, 3), 1), numbers(2, DIMS(5, 4), 2), NULL);
    EINSUM("j i, k j -> k i", "ki", "ji", "kj");
    operands(2, numbers(4, DIMS(2, 3, 4, 5), 1),
             numbers(4, DIMS(2, 3, 6, 5), 2), NULL);
    EINSUM("b h t e, b h s e -> b h t s", "bhts", "bhte", "bhse");
    operands(2, numbers(3, DIMS(2, 3, 4), 1), numbers(2, DIMS(4, 5), 2), NULL);
    EINSUM("b t d, d k -> b t k", "btk", "btd", "dk");
    operands(2, numbers(1, DIMS(3), 1), numbers(1, DIMS(4), 2), NULL);
    EINSUM("i, j -> i j", "ij", "i", "j");
    operands(2, numbers(1, DIMS(3), 1), numbers(1, DIMS(3), 2), NULL);
    EINSUM("i, i -> ", "", "i", "i");
    operands(2, numbers(1, DIMS(3), 1), numbers(1, DIMS(3), 2), NULL);
    EINSUM("i, i -> i", "i", "i", "i");
    operands(2, numbers(3, DIMS(2, 3, 4), 1), numbers(3, DIMS(4, 3, 5), 2),
             NULL);
    EINSUM("a b c, c b d -> d a", "da", "abc", "cbd");
    operands(2, numbers(2, DIMS(3, 2), 1), numbers(2, DIMS(4, 5), 2), NULL);
    EINSUM("i x, j k -> k i", "ki", "ix", "jk");
    operands(2, numbers(3, DIMS(2, 3, 3), 1), numbers(2, DIMS(3, 2), 2), NULL);
    EINSUM("a i i, i k -> a k", "ak", "aii", "ik");
}

Test(pattern, einsum_of_three_operands)
{
    operands(3, numbers(2, DIMS(2, 3), 1), numbers(2, DIMS(3, 4), 2),
             numbers(2, DIMS(4, 5), 3));
    EINSUM("i j, j k, k l -> i l", "il", "ij", "jk", "kl");
    operands(3, numbers(2, DIMS(2, 3), 1), numbers(2, DIMS(2, 4), 2),
             numbers(3, DIMS(3, 4, 2), 3));
    EINSUM("b i, b j, i j k -> b k", "bk", "bi", "bj", "ijk");
}

Test(pattern, einsum_rest_axes_stretch)
{
    operands(2, numbers(3, DIMS(2, 3, 4), 1), numbers(2, DIMS(4, 5), 2), NULL);
    EINSUM("... j, j k -> ... k", "abk", "abj", "jk");
    operands(2, numbers(4, DIMS(2, 1, 3, 4), 1), numbers(3, DIMS(6, 4, 5), 2),
             NULL);
    EINSUM("... i j, ... j k -> ... i k", "abik", "abij", "bjk");
    operands(2, numbers(2, DIMS(1, 4), 1), numbers(2, DIMS(6, 4), 2), NULL);
    EINSUM("... j, ... j -> ", "", "aj", "aj");
}

Test(pattern, einsum_names_the_sizes_that_differ)
{
    tl_tensor *in[] = {make(TL_f32, 2, DIMS(2, 3), NULL),
                       make(TL_f32, 2, DIMS(4, 5), NULL)};
    tl_apply_emit e;
    tl_node out;

    tl_apply_emit_init(&e, &rt);
    OK(parse(TL_PATTERN_EINSUM, "i j, j k -> i k"));
    cr_expect_neq(tl_pattern_einsum(&e.emit, &parsed, (const tl_node *)in,
                                    &out, &place), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0323);
    cr_expect_str_eq(said(), "`j` is 3 in operand 0, 4 in operand 1");
    cr_expect_eq(place.start, 5);
    OK(parse(TL_PATTERN_EINSUM, "ij, jk -> ij"));
    cr_expect_neq(tl_pattern_einsum(&e.emit, &parsed, (const tl_node *)in,
                                    &out, &place), TL_OK);
    cr_expect_str_eq(diag.last->help,
                     "separate the names of axes by blanks");
    tl_apply_emit_fini(&e);
    tl_tensor_unref(in[0]);
    tl_tensor_unref(in[1]);
}
