/* test_vec.c - growing arrays. */
#include <criterion/criterion.h>

#include <stdint.h>

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

typedef struct ints {
    int *items;
    size_t len, cap;
} ints;

static tl_status push_many(ints *v, int n, tl_diag *diag)
{
    for (int i = 0; i < n; i++) {
        TL_TRY(TL_VEC_PUSH(v, i, diag));
    }
    return TL_OK;
}

Test(vec, keeps_what_was_pushed)
{
    ints v = {0};
    tl_diag d;

    tl_diag_init(&d, NULL);
    cr_assert_eq(push_many(&v, 10000, &d), TL_OK);
    cr_assert_eq(v.len, 10000);
    for (int i = 0; i < 10000; i++) {
        cr_assert_eq(v.items[i], i);
    }
    tl_free(v.items);
    tl_diag_fini(&d);
}

Test(vec, out_of_memory_leaves_the_array_whole)
{
    ints v = {0};
    tl_diag d;

    tl_diag_init(&d, NULL);
    cr_assert_eq(push_many(&v, 8, &d), TL_OK);
    tl_mem_fail_at(1, true);
    cr_assert_eq(TL_VEC_PUSH(&v, 8, &d), TL_ERR_MEMORY);
    tl_mem_fail_at(0, false);
    cr_assert_eq(v.len, 8);
    cr_assert_eq(v.items[7], 7);
    cr_assert_eq(d.nerrors, 1);
    cr_assert_eq(d.last->code, TL_E0607);
    tl_free(v.items);
    tl_diag_fini(&d);
}

Test(vec, overflowing_size_is_out_of_memory)
{
    void *items = NULL;
    size_t cap = SIZE_MAX / 4;
    tl_diag d;

    tl_diag_init(&d, NULL);
    cr_assert_eq(tl_vec_grow(&items, cap, &cap, 64, &d), TL_ERR_MEMORY);
    cr_assert_eq(cap, SIZE_MAX / 4);
    tl_diag_fini(&d);
}
