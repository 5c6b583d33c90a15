/* test_tensor.c - headers, views, elements, sharing, failing allocations. */
#include "runtime/tensor/tensor.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "runtime/base/mem.h"

static tl_diag diag;
static tl_pool *pool;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
}

static void teardown(void)
{
    tl_pool_stats stats;

    tl_tensor_trim();
    cr_assert_eq(tl_tensor_live(), 0);
    tl_pool_get_stats(pool, &stats);
    cr_assert_eq(stats.storages, 0);
    cr_assert_eq(tl_pool_free(pool), 0);
    tl_diag_fini(&diag);
    cr_assert_eq(tl_mem_live_blocks(), 0);
}

TestSuite(tensor, .init = setup, .fini = teardown);

static tl_tensor *make(tl_dtype dtype, int rank, const int64_t *size)
{
    tl_tensor *t = NULL;

    cr_assert_eq(tl_tensor_new(&t, pool, dtype, rank, size, &diag), TL_OK);
    return t;
}

Test(tensor, new_is_row_major)
{
    tl_tensor *t = make(TL_f32, 3, (int64_t[]){2, 3, 4});

    cr_assert_eq(t->numel, 24);
    cr_assert_eq(t->stride[0], 12);
    cr_assert_eq(t->stride[1], 4);
    cr_assert_eq(t->stride[2], 1);
    cr_assert(tl_tensor_contiguous(t));
    cr_assert(tl_tensor_unshared(t));
    tl_tensor_unref(t);
}

Test(tensor, rank_over_four_allocates_dims)
{
    int64_t size[16];
    tl_tensor *t;

    for (int i = 0; i < 16; i++) {
        size[i] = i % 3 + 1;
    }
    t = make(TL_i8, 16, size);
    cr_assert_eq(memcmp(t->size, size, sizeof(size)), 0);
    cr_assert_eq(t->numel, 6 * 6 * 6 * 6 * 6);
    tl_tensor_unref(t);
}

Test(tensor, empty_has_no_elements_but_sizes)
{
    tl_tensor *t = make(TL_f64, 2, (int64_t[]){0, 5});

    cr_assert_eq(t->numel, 0);
    cr_assert(tl_tensor_contiguous(t));
    tl_tensor_unref(t);
}

Test(tensor, too_many_elements_is_e0307)
{
    tl_tensor *t = NULL;
    int64_t size[3] = {1 << 20, 1 << 20, 1 << 20};

    cr_assert_eq(tl_tensor_new(&t, pool, TL_f32, 3, size, &diag),
                 TL_ERR_PROGRAM);
    cr_assert_eq(diag.last->code, TL_E0307);
    cr_assert_null(t);
}

Test(tensor, zero_size_does_not_hide_overflow)
{
    tl_tensor *t = NULL;
    int64_t size[3] = {(int64_t)1 << 60, (int64_t)1 << 60, 0};

    cr_assert_neq(tl_tensor_new(&t, pool, TL_f32, 3, size, &diag), TL_OK);
}

Test(tensor, view_of_transposed_reads_by_strides)
{
    tl_tensor *t = make(TL_i32, 2, (int64_t[]){2, 3}), *v;

    for (int i = 0; i < 6; i++) {
        tl_tensor_set_i(t, i, i);
    }
    cr_assert_eq(tl_tensor_view(&v, t, 2, (int64_t[]){3, 2},
                                (int64_t[]){1, 3}, 0, &diag),
                 TL_OK);
    cr_assert_not(tl_tensor_contiguous(v));
    cr_assert_eq(tl_tensor_get_i(v, 0), 0);
    cr_assert_eq(tl_tensor_get_i(v, 1), 3);
    cr_assert_eq(tl_tensor_get_i(v, 4), 2);
    cr_assert_not(tl_tensor_unshared(t));
    tl_tensor_unref(t);
    cr_assert(tl_tensor_unshared(v));
    tl_tensor_unref(v);
}

Test(tensor, negative_strides_read_backwards)
{
    tl_tensor *t = make(TL_f32, 1, (int64_t[]){4}), *v;
    float out[4];

    for (int i = 0; i < 4; i++) {
        tl_tensor_set_f(t, i, i);
    }
    cr_assert_eq(tl_tensor_view(&v, t, 1, (int64_t[]){4}, (int64_t[]){-1}, 3,
                                &diag),
                 TL_OK);
    tl_tensor_read(v, out);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(out[i], (float)(3 - i));
    }
    tl_tensor_unref(v);
    tl_tensor_unref(t);
}

Test(tensor, contiguous_ignores_strides_of_size_one_axes)
{
    tl_tensor *t = make(TL_f32, 1, (int64_t[]){6}), *v;

    cr_assert_eq(tl_tensor_view(&v, t, 3, (int64_t[]){2, 1, 3},
                                (int64_t[]){3, 77, 1}, 0, &diag),
                 TL_OK);
    cr_assert(tl_tensor_contiguous(v));
    tl_tensor_unref(v);
    tl_tensor_unref(t);
}

Test(tensor, alias_shares_storage_and_has_no_nodes)
{
    tl_tensor *t = make(TL_f32, 1, (int64_t[]){6}), *a, *s;

    t->link.tape = 7;
    cr_assert_eq(tl_tensor_alias(&a, t, &diag), TL_OK);
    cr_assert_eq(tl_tensor_stub(&s, t, &diag), TL_OK);
    cr_assert_eq(a->storage, t->storage);
    cr_assert_eq(a->link.tape, 0);
    cr_assert_null(s->storage);
    cr_assert_not(tl_tensor_unshared(s));
    cr_assert_eq(s->size[0], 6);
    tl_tensor_unref(t);
    tl_tensor_unref(a);
    tl_tensor_unref(s);
}

Test(tensor, realize_gives_a_stub_its_sizes)
{
    tl_tensor *t;

    cr_assert_eq(tl_tensor_blank(&t, TL_i64, 2, &diag), TL_OK);
    cr_assert_null(t->storage);
    cr_assert_eq(
        tl_tensor_realize(t, pool, (int64_t[]){3, 2}, &diag), TL_OK);
    cr_assert_eq(t->numel, 6);
    tl_tensor_set_i(t, 5, 42);
    cr_assert_eq(tl_tensor_get_i(t, 5), 42);
    tl_tensor_unref(t);
}

Test(tensor, a_storage_may_get_a_header_of_its_own)
{
    tl_tensor *t = make(TL_i32, 1, (int64_t[]){6}), *u = NULL;

    tl_tensor_set_i(t, 5, 42);
    cr_assert_eq(tl_tensor_over(&u, tl_storage_ref(t->storage), TL_i32, 2,
                                (int64_t[]){2, 3}, &diag), TL_OK);
    tl_tensor_unref(t);
    cr_assert(tl_tensor_unshared(u));
    cr_assert_eq(tl_tensor_get_i(u, 5), 42);
    cr_assert_neq(tl_tensor_over(&t, tl_storage_ref(u->storage), TL_i32, 2,
                                 (int64_t[]){1 << 30, 1 << 30}, &diag),
                  TL_OK);
    cr_assert(tl_tensor_unshared(u));
    tl_tensor_unref(u);
}

Test(tensor, elements_of_each_dtype_round_trip)
{
    for (int d = 0; d < TL_DTYPE_COUNT; d++) {
        tl_tensor *t = make((tl_dtype)d, 1, (int64_t[]){2});

        tl_tensor_set_f(t, 0, 1.0);
        tl_tensor_set_i(t, 1, d == TL_bool ? 1 : 100);
        cr_assert_eq(tl_tensor_get_f(t, 0), 1.0);
        cr_assert_eq(tl_tensor_get_i(t, 1), d == TL_bool ? 1 : 100);
        tl_tensor_unref(t);
    }
}

Test(tensor, integers_wrap_and_floats_truncate)
{
    tl_tensor *t = make(TL_i8, 1, (int64_t[]){1});
    tl_tensor *f = make(TL_f64, 1, (int64_t[]){1});

    tl_tensor_set_i(t, 0, 200);
    cr_assert_eq(tl_tensor_get_i(t, 0), -56);
    tl_tensor_set_f(f, 0, -2.75);
    cr_assert_eq(tl_tensor_get_i(f, 0), -2);
    tl_tensor_set_f(f, 0, 1e300);
    cr_assert_eq(tl_tensor_get_i(f, 0), INT64_MAX);
    tl_tensor_unref(t);
    tl_tensor_unref(f);
}

/* 1 + 2^-11 + 2^-40 lies just above the middle of two f16 numbers, but its
 * nearest float is the middle. */
Test(tensor, doubles_round_once_to_16_bits)
{
    tl_tensor *t = make(TL_f16, 0, NULL), *b = make(TL_bf16, 0, NULL);

    tl_tensor_set_f(t, 0, 1 + 0x1p-11 + 0x1p-40);
    cr_assert_eq(tl_tensor_get_f(t, 0), 1 + 0x1p-10);
    tl_tensor_set_f(t, 0, 1 + 0x1p-11);
    cr_assert_eq(tl_tensor_get_f(t, 0), 1.0);
    tl_tensor_set_f(b, 0, 1 + 0x1p-8 + 0x1p-50);
    cr_assert_eq(tl_tensor_get_f(b, 0), 1 + 0x1p-7);
    tl_tensor_set_f(t, 0, (double)NAN);
    cr_assert(isnan(tl_tensor_get_f(t, 0)));
    tl_tensor_unref(t);
    tl_tensor_unref(b);
}

Test(tensor, scalars_have_rank_zero)
{
    tl_tensor *f, *i;

    cr_assert_eq(tl_tensor_scalar_f(&f, pool, TL_f32, 0.5, &diag), TL_OK);
    cr_assert_eq(
        tl_tensor_scalar_i(&i, pool, TL_i64, INT64_MIN, &diag), TL_OK);
    cr_assert_eq(f->rank, 0);
    cr_assert_eq(tl_tensor_get_f(f, 0), 0.5);
    cr_assert_eq(tl_tensor_get_i(i, 0), INT64_MIN);
    tl_tensor_unref(f);
    tl_tensor_unref(i);
}

Test(tensor, type_has_sizes_as_numbers)
{
    tl_tensor *t = make(TL_bf16, 2, (int64_t[]){2, 3});
    tl_ttype type;

    tl_tensor_type(t, &type);
    cr_assert_eq(type.dtype, TL_bf16);
    cr_assert_eq(type.shape.rank, 2);
    cr_assert_eq(tl_dim_value(type.shape.dim[1]), 3);
    tl_tensor_unref(t);
}

Test(tensor, every_failing_allocation_is_reported_and_leaks_nothing)
{
    int64_t size[5] = {1, 2, 3, 4, 5};

    for (uint64_t n = 1;; n++) {
        tl_tensor *t = NULL, *v = NULL;
        tl_status st;

        tl_tensor_trim();
        tl_mem_fail_at(n, false);
        st = tl_tensor_new(&t, pool, TL_f32, 5, size, &diag);
        if (st == TL_OK) {
            st = tl_tensor_alias(&v, t, &diag);
        }
        tl_mem_fail_at(0, false);
        tl_tensor_unref(v);
        tl_tensor_unref(t);
        cr_assert_eq(tl_tensor_live(), 0);
        if (st == TL_OK) {
            cr_assert_gt(n, 3);
            break;
        }
        cr_assert_eq(st, TL_ERR_MEMORY);
        cr_assert_eq(diag.last->code, TL_E0607);
    }
}
