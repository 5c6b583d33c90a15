/* Tests of runtime/amp: the policy, nested contexts, the casts of weights. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "runtime/amp/amp.h"

static tl_amp_plan decide(const tl_autocast *amp, tl_op op,
                          const tl_amp_value *x, int n)
{
    tl_amp_vote v = tl_amp_call();

    for (int i = 0; i < n; i++) {
        tl_amp_operand(&v, op, i, x[i]);
    }
    return tl_amp_decide(amp, op, &v);
}

#define PLAN(amp, op, ...)                                                   \
    decide(&(amp), TL_OP_##op, (const tl_amp_value[]){__VA_ARGS__},          \
           (int)(sizeof((const tl_amp_value[]){__VA_ARGS__}) /               \
                 sizeof(tl_amp_value)))

static const tl_amp_value
    f32 = {TL_f32, false, false}, f64 = {TL_f64, false, false},
    bf16 = {TL_bf16, false, false}, low = {TL_bf16, true, false},
    low16 = {TL_f16, true, false}, ints = {TL_i64, false, false},
    bools = {TL_bool, false, false}, param = {TL_f32, false, true},
    param64 = {TL_f64, false, true};

Test(amp, outside_of_a_context_what_is_lowered_is_widened)
{
    tl_autocast amp = {.used = true};

    cr_expect_eq(PLAN(amp, matmul, f32, f32).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, matmul, low, f32).mode, TL_AMP_WIDEN);
    cr_expect_eq(PLAN(amp, relu, low).mode, TL_AMP_WIDEN);
}

Test(amp, classes_decide)
{
    tl_autocast amp = {0};
    tl_amp_before before = tl_amp_enter(&amp, true, TL_bf16);

    cr_expect_eq(PLAN(amp, matmul, f32, f32).mode, TL_AMP_LOWER);
    cr_expect_eq(PLAN(amp, matmul, f32, f32).dtype, TL_bf16);
    cr_expect_eq(PLAN(amp, matmul, low, f32).mode, TL_AMP_LOWER);
    cr_expect_eq(PLAN(amp, exp, low).mode, TL_AMP_WIDEN);
    cr_expect_eq(PLAN(amp, exp, f32).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, relu, low).mode, TL_AMP_STAY);
    cr_expect_eq(PLAN(amp, relu, f32).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, add, low, low).mode, TL_AMP_STAY);
    cr_expect_eq(PLAN(amp, add, low, f32).mode, TL_AMP_WIDEN);
    cr_expect_eq(PLAN(amp, add, low, low16).mode, TL_AMP_WIDEN);
    cr_expect_eq(PLAN(amp, where, bools, low, low).mode, TL_AMP_STAY);
    cr_expect_eq(PLAN(amp, add, low, param).mode, TL_AMP_STAY);
    cr_expect_eq(PLAN(amp, add, param, param).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, add, f32, param).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, add, low, param64).mode, TL_AMP_WIDEN);
    cr_expect_eq(PLAN(amp, lt, low, low).mode, TL_AMP_WIDEN);
    tl_amp_leave(&amp, before);
    cr_expect_not(amp.on);
}

Test(amp, other_dtypes_are_left_alone)
{
    tl_autocast amp = {0};
    tl_amp_before before = tl_amp_enter(&amp, true, TL_bf16);

    cr_expect_eq(PLAN(amp, matmul, f64, f64).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, matmul, bf16, bf16).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, matmul, ints, ints).mode, TL_AMP_AS_IS);
    cr_expect_eq(PLAN(amp, matmul, low, f64).mode, TL_AMP_WIDEN);
    tl_amp_leave(&amp, before);
}

Test(amp, contexts_nest)
{
    tl_autocast amp = {0};
    tl_amp_before a = tl_amp_enter(&amp, true, TL_f16);
    tl_amp_before b = tl_amp_enter(&amp, false, TL_bf16);

    cr_expect_eq(PLAN(amp, matmul, f32, low16).mode, TL_AMP_WIDEN);
    tl_amp_leave(&amp, b);
    cr_expect_eq(PLAN(amp, matmul, f32, low16).dtype, TL_f16);
    tl_amp_leave(&amp, a);
    cr_expect_eq(amp.depth, 0);
}

Test(amp, operands_are_cast_to_what_the_plan_says)
{
    const tl_amp_plan lower = {TL_AMP_LOWER, TL_bf16},
                      stay = {TL_AMP_STAY, TL_f16},
                      widen = {TL_AMP_WIDEN, TL_f32};

    cr_expect_eq(tl_amp_wanted(&lower, TL_OP_matmul, 0, f32), TL_bf16);
    cr_expect_eq(tl_amp_wanted(&lower, TL_OP_matmul, 1, low16), TL_bf16);
    cr_expect_eq(tl_amp_wanted(&stay, TL_OP_add, 1, param), TL_f16);
    cr_expect_eq(tl_amp_wanted(&widen, TL_OP_add, 0, low), TL_f32);
    cr_expect_eq(tl_amp_wanted(&widen, TL_OP_add, 0, bf16), TL_bf16);
    cr_expect_eq(tl_amp_wanted(&widen, TL_OP_index, 1, ints), TL_i64);
}
