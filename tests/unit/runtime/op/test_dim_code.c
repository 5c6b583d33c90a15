/* Sizes as code: encoding, evaluation, validity, text both ways. */
#include "runtime/op/dim_code.h"

#include <criterion/criterion.h>
#include <string.h>

#include "runtime/base/mem.h"

static tl_dims *dims;
static tl_dim atoms[3];
static tl_diag diag;

static void setup(void)
{
    static const char *const names[] = {"B", "T", "n"};

    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_dims_new(&dims, NULL), TL_OK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(tl_dim_atom(dims, names[i], 0, &atoms[i], NULL), TL_OK);
    }
}

static void teardown(void)
{
    tl_dims_free(dims);
    tl_diag_fini(&diag);
    cr_expect_eq(tl_mem_live_blocks(), 0);
}

TestSuite(dim_code, .init = setup, .fini = teardown);

static tl_status number(void *arg, tl_dim atom, int64_t *n)
{
    int *asked = arg;

    (*asked)++;
    for (int i = 0; i < 3; i++) {
        if (tl_dim_same(atom, atoms[i])) {
            *n = i;
            return TL_OK;
        }
    }
    return TL_ERR_INTERNAL;
}

static tl_dim op(tl_status (*fn)(tl_dims *, tl_dim, tl_dim, tl_dim *,
                                 tl_diag *),
                 tl_dim a, tl_dim b)
{
    tl_dim out;

    cr_assert_eq(fn(dims, a, b, &out, NULL), TL_OK);
    return out;
}

/* 2*B*T + B//2 - (T + 1)//(n + 3) - 7 */
static tl_dim example(void)
{
    tl_dim two = tl_dim_num(2);
    tl_dim d = op(tl_dim_mul, op(tl_dim_mul, two, atoms[0]), atoms[1]);
    tl_dim q = op(tl_dim_div, op(tl_dim_add, atoms[1], tl_dim_num(1)),
                  op(tl_dim_add, atoms[2], tl_dim_num(3)));

    d = op(tl_dim_add, d, op(tl_dim_div, atoms[0], two));
    d = op(tl_dim_sub, d, q);
    return op(tl_dim_sub, d, tl_dim_num(7));
}

typedef struct coded {
    int64_t *code;
    size_t len;
} coded;

static coded encode(tl_dim d)
{
    int asked = 0;
    coded c;

    cr_assert_eq(
        tl_dim_encode(d, number, &asked, &c.code, &c.len, &diag), TL_OK);
    cr_assert(tl_dim_code_valid(c.code, c.len, 3));
    return c;
}

static void expect_text(const int64_t *code, size_t len, const char *want)
{
    tl_dim_words back = {0};
    tl_buf text;
    const char *at;

    tl_buf_init(&text);
    tl_dim_code_print(code, len, &text);
    if (want) {
        cr_expect_str_eq(tl_buf_str(&text), want);
    }
    at = tl_buf_str(&text);
    cr_assert(tl_dim_code_parse(&at, at + text.len, &back, &diag), "%s",
              tl_buf_str(&text));
    cr_expect_eq(*at, 0);
    cr_assert_eq(back.len, len, "%s", tl_buf_str(&text));
    cr_expect_arr_eq(back.items, code, len * sizeof(*code));
    tl_free(back.items);
    tl_buf_fini(&text);
}

Test(dim_code, number_is_two_words)
{
    coded c = encode(tl_dim_num(-5)), zero = encode(tl_dim_num(0));

    cr_assert_eq(c.len, 2);
    cr_expect_eq(c.code[0], TL_DC_NUM);
    cr_expect_eq(c.code[1], -5);
    cr_assert_eq(zero.len, 2);
    cr_expect_eq(zero.code[1], 0);
    tl_free(c.code);
    tl_free(zero.code);
}

Test(dim_code, equal_sizes_have_equal_code)
{
    tl_dim a = op(tl_dim_add, atoms[0], op(tl_dim_mul, atoms[1], atoms[2]));
    tl_dim b = op(tl_dim_add, op(tl_dim_mul, atoms[2], atoms[1]), atoms[0]);
    coded x = encode(a), y = encode(b);

    cr_assert_eq(x.len, y.len);
    cr_expect_arr_eq(x.code, y.code, x.len * sizeof(*x.code));
    tl_free(x.code);
    tl_free(y.code);
}

Test(dim_code, evaluates_to_the_value_of_the_size)
{
    const int64_t value[] = {9, 5, 4};
    coded c = encode(example());
    int64_t n;

    cr_assert_eq(tl_dim_code_eval(c.code, c.len, value, 3, &n, &diag), TL_OK);
    cr_expect_eq(n, 2 * 9 * 5 + 9 / 2 - 6 / 7 - 7);
    tl_free(c.code);
}

Test(dim_code, floordiv_rounds_down)
{
    const int64_t code[] = {TL_DC_NUM, -7, TL_DC_NUM, 2, TL_DC_FLOORDIV};
    int64_t n;

    cr_assert_eq(tl_dim_code_eval(code, 5, NULL, 0, &n, &diag), TL_OK);
    cr_expect_eq(n, -4);
}

Test(dim_code, decoding_gives_the_same_word)
{
    tl_dim d = example(), back;
    coded c = encode(d);

    cr_assert_eq(tl_dim_decode(dims, c.code, c.len, atoms, &back, &diag),
                 TL_OK);
    cr_expect(tl_dim_same(d, back));
    tl_free(c.code);
}

Test(dim_code, overflow_is_reported)
{
    const int64_t mul[] = {TL_DC_NUM, INT64_MAX, TL_DC_NUM, 2, TL_DC_MUL};
    const int64_t add[] = {TL_DC_NUM, INT64_MAX, TL_DC_NUM, 2, TL_DC_ADD};
    const int64_t quo[] = {TL_DC_NUM, INT64_MIN, TL_DC_NUM, -1,
                           TL_DC_FLOORDIV};
    const int64_t *const all[] = {mul, add, quo};

    for (int i = 0; i < 3; i++) {
        int64_t n = 77;

        tl_diag_clear(&diag);
        cr_expect_neq(tl_dim_code_eval(all[i], 5, NULL, 0, &n, &diag), TL_OK);
        cr_expect_eq(diag.last->code, TL_E0307);
        cr_expect_eq(n, 77);
    }
}

Test(dim_code, division_by_zero_is_reported)
{
    const int64_t code[] = {TL_DC_NUM, 4, TL_DC_ATOM, 0, TL_DC_FLOORDIV};
    const int64_t zero = 0;
    int64_t n;

    cr_expect_neq(tl_dim_code_eval(code, 5, &zero, 1, &n, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0401);
}

Test(dim_code, other_words_are_no_code)
{
    const int64_t lone[] = {TL_DC_NUM};
    const int64_t two[] = {TL_DC_NUM, 1, TL_DC_NUM, 2};
    const int64_t few[] = {TL_DC_NUM, 1, TL_DC_ADD};
    const int64_t atom[] = {TL_DC_ATOM, 3};
    const int64_t below[] = {TL_DC_ATOM, -1};
    const int64_t word[] = {TL_DC_NUM, 1, TL_DC_NUM, 2, 99};
    int64_t n;

    cr_expect_not(tl_dim_code_valid(NULL, 0, 3));
    cr_expect_not(tl_dim_code_valid(lone, 1, 3));
    cr_expect_not(tl_dim_code_valid(two, 4, 3));
    cr_expect_not(tl_dim_code_valid(few, 3, 3));
    cr_expect_not(tl_dim_code_valid(atom, 2, 3));
    cr_expect_not(tl_dim_code_valid(below, 2, 3));
    cr_expect_not(tl_dim_code_valid(word, 5, 3));
    cr_expect_neq(tl_dim_code_eval(two, 4, NULL, 0, &n, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0699);
}

Test(dim_code, stack_has_a_limit)
{
    tl_dim_words w = {0};

    w.len = 2 * (TL_DC_MAX_DEPTH + 1) + TL_DC_MAX_DEPTH;
    w.items = tl_calloc(w.len, sizeof(*w.items)); // NUM 0, NUM 0, ...
    for (size_t i = 2 * (TL_DC_MAX_DEPTH + 1); i < w.len; i++) {
        w.items[i] = TL_DC_ADD;
    }
    cr_expect_not(tl_dim_code_valid(w.items, w.len, 0));
    cr_expect(tl_dim_code_valid(w.items + 2, w.len - 3, 0));
    tl_free(w.items);
}

Test(dim_code, text_is_infix)
{
    coded c = encode(example());

    expect_text(c.code, c.len,
                "2*s0*s1 - ((s1 + 1)//(s2 + 3)) + s0//2 - 7");
    tl_free(c.code);
}

#define TEXT(want, ...)                                                      \
    do {                                                                     \
        const int64_t words[] = {__VA_ARGS__};                               \
        expect_text(words, sizeof(words) / sizeof(*words), want);            \
    } while (0)
#define N TL_DC_NUM
#define A TL_DC_ATOM
#define ADD TL_DC_ADD
#define MUL TL_DC_MUL
#define DIV TL_DC_FLOORDIV

Test(dim_code, text_of_code_that_no_size_gives_reads_back)
{
    TEXT("-1*5", N, -1, N, 5, MUL);
    TEXT("-s0", N, -1, A, 0, MUL);
    TEXT("-1", N, -1);
    TEXT("1*s0", N, 1, A, 0, MUL);
    TEXT("-9223372036854775808", N, INT64_MIN);
    TEXT("s0*(-2)", A, 0, N, -2, MUL);
    TEXT("(-2)//s0", N, -2, A, 0, DIV);
    TEXT("s0 - s1", A, 0, N, -1, A, 1, MUL, ADD);
    TEXT("s0 + (s1 + s2)", A, 0, A, 1, A, 2, ADD, ADD);
    TEXT("s0*(s1*s2)", A, 0, A, 1, A, 2, MUL, MUL);
    TEXT("(s0//2)*s1", A, 0, N, 2, DIV, A, 1, MUL);
    TEXT("(s0//2)//s1", A, 0, N, 2, DIV, A, 1, DIV);
    TEXT("-(s0 + 1)*s1", N, -1, A, 0, N, 1, ADD, MUL, A, 1, MUL);
}

/* Valid words drawn at random. */
static void draw(uint64_t seed, tl_dim_words *w)
{
    static const int64_t ops[] = {ADD, MUL, DIV};
    size_t depth = 0;

    w->len = 0;
    for (int step = 0; step < 12 || depth > 1; step++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        unsigned r = (unsigned)(seed >> 33);

        if (depth < 2 || (step < 12 && r % 2 == 0)) {
            w->items[w->len++] = r / 2 % 2 ? N : A;
            w->items[w->len++] =
                r / 2 % 2 ? (int64_t)(r / 4 % 5) - 2 : r / 4 % 3;
            depth++;
        } else {
            w->items[w->len++] = ops[r / 2 % 3];
            depth--;
        }
    }
}

Test(dim_code, any_valid_code_survives_print_and_parse)
{
    int64_t words[64];
    tl_dim_words w = {words, 0, 64};

    for (uint64_t seed = 1; seed <= 3000; seed++) {
        draw(seed, &w);
        cr_assert(tl_dim_code_valid(w.items, w.len, 3));
        expect_text(w.items, w.len, NULL);
    }
}

static bool reads(const char *text)
{
    tl_dim_words w = {0};
    const char *at = text;
    bool ok = tl_dim_code_parse(&at, text + strlen(text), &w, &diag) &&
              *at == 0;

    tl_free(w.items);
    return ok;
}

Test(dim_code, other_text_is_refused)
{
    char deep[2 * TL_DC_MAX_DEPTH + 8] = "";

    cr_expect(reads(" - s0 * 3 //( 2+s1 )"));
    cr_expect_not(reads(""));
    cr_expect_not(reads("s"));
    cr_expect_not(reads("2*"));
    cr_expect_not(reads("(2"));
    cr_expect_not(reads("2 3"));
    cr_expect_not(reads("2/3"));
    cr_expect_not(reads("- - 2"));
    cr_expect_not(reads("9223372036854775808"));
    memset(deep, '(', TL_DC_MAX_DEPTH + 1);
    cr_expect_not(reads(deep));
}

Test(dim_code, failures_are_passed_on_and_free_all)
{
    tl_dim other, d = example();
    int asked = 0;
    int64_t *code = NULL;
    size_t len;
    tl_status st = TL_ERR_MEMORY;

    cr_assert_eq(tl_dim_fresh(dims, "data", &other, &diag), TL_OK);
    cr_expect_eq(tl_dim_encode(op(tl_dim_add, d, other), number, &asked,
                               &code, &len, &diag),
                 TL_ERR_INTERNAL);
    cr_expect_eq(asked, 6);
    cr_expect_null(code);
    for (uint64_t n = 1; st == TL_ERR_MEMORY; n++) {
        tl_mem_fail_at(n, false);
        st = tl_dim_encode(d, number, &asked, &code, &len, &diag);
        tl_mem_fail_at(0, false);
        cr_expect(st == TL_OK || code == NULL);
    }
    cr_expect_eq(st, TL_OK);
    tl_free(code);
}
