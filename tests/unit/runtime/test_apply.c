/* test_apply.c - running operations: dtypes, results in place, views, tapes,
 * failures. */
#include "tests/unit/runtime/helper.h"

#include <pthread.h>
#include <string.h>

TestSuite(apply, .init = rt_setup, .fini = rt_teardown);

/* ---- types -------------------------------------------------------------- */

Test(apply, equal_operands_take_no_detour)
{
    tl_tensor *a = vec(TL_f32, 4, NULL), *b = vec(TL_f32, 4, NULL);
    tl_tensor *y = call2(TL_OP_add, a, b);

    cr_expect_eq(y->dtype, TL_f32);
    expect_values(y, VALUES(0, 2, 4, 6));
    expect_values(a, VALUES(0, 1, 2, 3));
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(y);
}

Test(apply, shapes_broadcast)
{
    tl_tensor *a = make(TL_f32, 2, DIMS(2, 1), NULL);
    tl_tensor *b = make(TL_f32, 1, DIMS(1), VALUES(10));
    tl_tensor *c = make(TL_f32, 2, DIMS(2, 3), NULL);
    tl_tensor *y = call2(TL_OP_add, a, b), *z = call2(TL_OP_mul, c, a);

    cr_expect_eq(y->rank, 2);
    expect_values(y, VALUES(10, 11));
    expect_values(z, VALUES(0, 0, 0, 3, 4, 5));
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(c);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
}

Test(apply, dtypes_join)
{
    tl_tensor *a = vec(TL_i32, 3, NULL), *b = vec(TL_f64, 3, NULL);
    tl_tensor *u = vec(TL_u8, 3, NULL), *s = vec(TL_i8, 3, NULL);
    tl_tensor *y = call2(TL_OP_add, a, b), *z = call2(TL_OP_sub, u, s);
    tl_tensor *e = call1(TL_OP_exp, a, NULL), *q = call2(TL_OP_div, a, a);

    cr_expect_eq(y->dtype, TL_f64);
    cr_expect_eq(z->dtype, TL_i16);
    cr_expect_eq(e->dtype, TL_f32);
    cr_expect_eq(q->dtype, TL_f32);
    cr_expect(isnan(tl_tensor_get_f(q, 0)));
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(u);
    tl_tensor_unref(s);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
    tl_tensor_unref(e);
    tl_tensor_unref(q);
}

Test(apply, comparisons_give_bool)
{
    tl_tensor *a = vec(TL_i64, 3, NULL), *b = scalar(TL_f32, 1);
    tl_tensor *y = call2(TL_OP_ge, a, b), *z = call2(TL_OP_eq, a, a);

    cr_expect_eq(y->dtype, TL_bool);
    expect_values(y, VALUES(0, 1, 1));
    cr_expect_eq(z->dtype, TL_bool);
    expect_values(z, VALUES(1, 1, 1));
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
}

Test(apply, conditions_stay_outside_the_join)
{
    tl_tensor *in[3] = {vec(TL_bool, 3, VALUES(1, 0, 1)),
                        vec(TL_i32, 3, NULL), scalar(TL_f32, -1)};
    tl_tensor *y;

    OK(tl_apply(&rt, TL_OP_where, in, 3, NULL, &y));
    cr_expect_eq(y->dtype, TL_f32);
    expect_values(y, VALUES(0, -1, 2));
    tl_tensor_unref(y);
}

Test(apply, cast_to_the_same_dtype_is_the_tensor_itself)
{
    tl_tensor *a = vec(TL_f32, 3, NULL), *y = cast_to(TL_f32, a);

    cr_expect_eq(y, a);
    tl_tensor_unref(a);
    tl_tensor_unref(y);
}

/* ---- in place ----------------------------------------------------------- */

Test(apply, the_last_reference_gives_its_storage)
{
    tl_tensor *a = vec(TL_f32, 4, NULL), *b = vec(TL_f32, 4, NULL);
    void *data = tl_tensor_data(a);
    tl_tensor *y = eat2(TL_OP_add, a, tl_tensor_ref(b));

    cr_expect_eq(tl_tensor_data(y), data);
    expect_values(y, VALUES(0, 2, 4, 6));
    expect_values(b, VALUES(0, 1, 2, 3));
    tl_tensor_unref(b);
    tl_tensor_unref(y);
}

Test(apply, the_second_operand_may_give_it_too)
{
    tl_tensor *a = vec(TL_f32, 4, NULL), *b = vec(TL_f32, 4, NULL);
    void *data = tl_tensor_data(b);
    tl_tensor *y = eat2(TL_OP_sub, tl_tensor_ref(a), b);

    cr_expect_eq(tl_tensor_data(y), data);
    expect_values(y, VALUES(0, 0, 0, 0));
    tl_tensor_unref(a);
    tl_tensor_unref(y);
}

Test(apply, shared_values_are_not_overwritten)
{
    tl_tensor *a = vec(TL_f32, 4, NULL), *alias, *y;

    OK(tl_tensor_alias(&alias, a, &diag));
    y = eat1(TL_OP_neg, a, NULL);
    expect_values(alias, VALUES(0, 1, 2, 3));
    expect_values(y, VALUES(0, -1, -2, -3));
    tl_tensor_unref(alias);
    tl_tensor_unref(y);
}

Test(apply, both_operands_the_same_header)
{
    tl_tensor *a = vec(TL_f32, 4, NULL);
    tl_tensor *y = eat2(TL_OP_mul, tl_tensor_ref(a), a);

    expect_values(y, VALUES(0, 1, 4, 9));
    tl_tensor_unref(y);
}

Test(apply, other_dtypes_and_shapes_get_storage_of_their_own)
{
    tl_tensor *a = vec(TL_i32, 4, NULL), *b = vec(TL_f32, 1, VALUES(2));
    tl_tensor *y = eat1(TL_OP_exp, a, NULL);
    tl_tensor *z = eat2(TL_OP_mul, b, make(TL_f32, 2, DIMS(2, 2), NULL));

    expect_near(y, VALUES(1, 2.718281828, 7.389056099, 20.08553692), 1e-6);
    expect_values(z, VALUES(0, 2, 4, 6));
    tl_tensor_unref(y);
    tl_tensor_unref(z);
}

Test(apply, a_strided_view_is_not_reused)
{
    tl_tensor *a = make(TL_f32, 2, DIMS(2, 3), NULL), *t = transpose(a), *y;

    tl_tensor_unref(a);
    y = eat1(TL_OP_neg, t, NULL);
    cr_expect(tl_tensor_contiguous(y));
    expect_values(y, VALUES(0, -3, -1, -4, -2, -5));
    tl_tensor_unref(y);
}

/* ---- views -------------------------------------------------------------- */

Test(apply, views_share_storage)
{
    tl_tensor *a = make(TL_f32, 2, DIMS(2, 3), NULL), *t = transpose(a);
    tl_tensor *r = reshape(a, 1, DIMS(6));

    cr_expect_eq(t->storage, a->storage);
    cr_expect_eq(r->storage, a->storage);
    expect_values(t, VALUES(0, 3, 1, 4, 2, 5));
    tl_tensor_unref(a);
    tl_tensor_unref(t);
    tl_tensor_unref(r);
}

Test(apply, reshape_copies_what_strides_cannot_say)
{
    tl_tensor *a = make(TL_f32, 2, DIMS(2, 3), NULL), *t = transpose(a);
    tl_tensor *r = reshape(t, 1, DIMS(6)), *c;

    cr_expect_neq(r->storage, a->storage);
    expect_values(r, VALUES(0, 3, 1, 4, 2, 5));
    OK(tl_contiguous(&rt, t, &c));
    cr_expect(tl_tensor_contiguous(c));
    expect_values(c, VALUES(0, 3, 1, 4, 2, 5));
    tl_tensor_unref(a);
    tl_tensor_unref(t);
    tl_tensor_unref(r);
    tl_tensor_unref(c);
}

Test(apply, a_view_that_changes_nothing_is_the_tensor_itself)
{
    tl_tensor *a = make(TL_f32, 2, DIMS(2, 3), NULL);
    tl_tensor *r = reshape(a, 2, DIMS(2, 3));

    cr_expect_eq(r, a);
    tl_tensor_unref(a);
    tl_tensor_unref(r);
}

/* ---- data-dependent sizes, many operands -------------------------------- */

Test(apply, kernels_find_sizes_that_depend_on_data)
{
    tl_tensor *a = vec(TL_f32, 5, VALUES(0, 3, 0, 1, 3));
    tl_tensor *n = call1(TL_OP_nonzero, a, NULL);
    tl_tensor *u[3];
    tl_attrs at;

    tl_attrs_init(&at);
    OK(tl_apply_borrowed(&rt, TL_OP_unique, &a, 1, &at, u));
    cr_assert_eq(n->rank, 2);
    cr_assert_eq(n->size[0], 3);
    expect_values(n, VALUES(1, 3, 4));
    cr_assert_eq(u[0]->size[0], 3);
    expect_values(u[0], VALUES(0, 1, 3));
    tl_tensor_unref(a);
    tl_tensor_unref(n);
    for (int i = 0; i < 3; i++) {
        tl_tensor_unref(u[i]);
    }
}

Test(apply, forty_operands_are_joined)
{
    tl_tensor *in[40], *y;
    tl_attrs at;

    tl_attrs_init(&at);
    for (int i = 0; i < 40; i++) {
        in[i] = vec(i == 39 ? TL_f64 : TL_i32, 1, VALUES(i));
    }
    OK(tl_apply_borrowed(&rt, TL_OP_cat, in, 40, &at, &y));
    cr_expect_eq(y->dtype, TL_f64);
    cr_expect_eq(y->numel, 40);
    for (int i = 0; i < 40; i++) {
        cr_expect_eq(tl_tensor_get_f(y, i), i);
        tl_tensor_unref(in[i]);
    }
    tl_tensor_unref(y);
}

Test(apply, the_mean_of_nothing_is_nan_with_a_warning)
{
    tl_tensor *a = make(TL_f32, 1, DIMS(0), NULL), *y;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = 1;
    rt.span = (tl_span){.file = 1, .start = 2, .end = 3};
    y = call1(TL_OP_mean, a, &at);
    cr_expect(isnan(tl_tensor_get_f(y, 0)));
    cr_expect_eq(diag.nwarnings, 1);
    cr_expect_eq(diag.last->code, TL_W0403);
    cr_expect_eq(diag.last->span.start, 2);
    tl_tensor_unref(a);
    tl_tensor_unref(y);
}

/* ---- writes ------------------------------------------------------------- */

static void put_attrs(tl_attrs *at, int64_t start, int64_t size)
{
    tl_attrs_init(at);
    at->ndims = 3;
    at->dims[0] = tl_dim_num(start);
    at->dims[1] = tl_dim_num(size);
    at->dims[2] = tl_dim_num(1);
}

Test(apply, a_slice_is_written_in_place_when_nobody_else_looks)
{
    tl_tensor *in[2] = {vec(TL_f32, 4, NULL), vec(TL_f32, 2, VALUES(8, 9))};
    void *data = tl_tensor_data(in[0]);
    tl_tensor *y;
    tl_attrs at;

    put_attrs(&at, 1, 2);
    OK(tl_apply(&rt, TL_OP_slice_put, in, 2, &at, &y));
    cr_expect_eq(tl_tensor_data(y), data);
    expect_values(y, VALUES(0, 8, 9, 3));
    tl_tensor_unref(y);
}

Test(apply, a_slice_of_a_shared_tensor_is_written_to_a_copy)
{
    tl_tensor *x = vec(TL_f32, 4, NULL), *v = vec(TL_f32, 2, VALUES(8, 9));
    tl_tensor *in[2] = {x, v}, *y;
    tl_attrs at;

    put_attrs(&at, 1, 2);
    OK(tl_apply_borrowed(&rt, TL_OP_slice_put, in, 2, &at, &y));
    expect_values(x, VALUES(0, 1, 2, 3));
    expect_values(y, VALUES(0, 8, 9, 3));
    tl_tensor_unref(x);
    tl_tensor_unref(v);
    tl_tensor_unref(y);
}

Test(apply, a_write_that_fails_gives_its_tensor_back)
{
    tl_tensor *x = vec(TL_f32, 4, NULL);
    tl_tensor *in[3] = {x, vec(TL_f32, 2, VALUES(8, 9)),
                        vec(TL_i64, 2, VALUES(0, 7))};
    tl_tensor *y;
    tl_attrs at;

    tl_attrs_init(&at);
    at.axes = 1;
    cr_assert_eq(tl_apply_keeping(&rt, TL_OP_index_put, in, 3, &at, &y, 0),
                 TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0405);
    cr_assert_eq(in[0], x);
    expect_values(x, VALUES(0, 1, 2, 3));
    tl_tensor_unref(x);
}

/* ---- failures ----------------------------------------------------------- */

Test(apply, inputs_are_eaten_on_failure_too)
{
    tl_tensor *in[2] = {vec(TL_f32, 3, NULL), vec(TL_f32, 4, NULL)}, *y;

    cr_assert_eq(tl_apply(&rt, TL_OP_add, in, 2, NULL, &y), TL_ERR_PROGRAM);
    cr_expect_eq(diag.last->code, TL_E0301);
}

Test(apply, an_interrupt_stops_before_the_kernel)
{
    volatile sig_atomic_t flag = 1;
    tl_tensor *in[2] = {vec(TL_f32, 3, NULL), vec(TL_f32, 3, NULL)}, *y;

    rt.interrupted = &flag;
    cr_assert_eq(tl_apply(&rt, TL_OP_add, in, 2, NULL, &y), TL_ERR_STOPPED);
    cr_expect_eq(diag.last->code, TL_E0608);
}

Test(apply, out_of_memory_names_the_operation)
{
    tl_tensor *a = vec(TL_f32, 3, NULL), *y;
    bool named = false;

    tl_tensor_trim();
    tl_mem_fail_at(1, true);
    cr_assert_eq(tl_apply_borrowed(&rt, TL_OP_exp, &a, 1, NULL, &y),
                 TL_ERR_MEMORY);
    tl_mem_fail_at(0, false);
    for (size_t i = 0; i < diag.last->nnotes; i++) {
        named = named || strstr(diag.last->notes[i], "`exp`");
    }
    cr_expect_eq(diag.last->code, TL_E0607);
    tl_diag_clear(&diag);
    tl_tensor_unref(a);
}

/* ---- random draws ------------------------------------------------------- */

static tl_tensor *draw(void)
{
    tl_rng_key key = tl_rt_next_draw(&rt);
    tl_tensor *t;
    tl_attrs at;

    tl_attrs_init(&at);
    at.dtype = TL_f32;
    at.ndims = 1;
    at.dims[0] = tl_dim_num(5);
    tl_attrs_set_key(&at, &key);
    OK(tl_apply(&rt, TL_OP_rand, NULL, 0, &at, &t));
    return t;
}

Test(apply, draws_differ_and_a_seed_repeats_them)
{
    tl_tensor *a, *b, *c;

    tl_rt_seed(&rt, 7);
    a = draw();
    b = draw();
    tl_rt_seed(&rt, 7);
    c = draw();
    cr_expect_neq(memcmp(tl_tensor_data(a), tl_tensor_data(b), 20), 0);
    cr_expect_eq(memcmp(tl_tensor_data(a), tl_tensor_data(c), 20), 0);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(c);
}

/* ---- emitter ------------------------------------------------------------ */

Test(apply, an_emitter_owns_what_it_made)
{
    tl_apply_emit em;
    tl_tensor *a = vec(TL_f32, 3, NULL);
    tl_node x, y;

    tl_apply_emit_init(&em, &rt);
    OK(tl_emit1(&em.emit, TL_OP_exp, a, NULL, &x));
    for (int i = 0; i < 20; i++) {
        OK(tl_emit2(&em.emit, TL_OP_add, x, a, NULL, &y));
    }
    cr_expect_eq(em.emit.type(&em.emit, y)->dtype, TL_f32);
    cr_expect_eq(tl_dim_value(em.emit.type(&em.emit, y)->shape.dim[0]), 3);
    expect_near(y, VALUES(1, 3.718281828, 9.389056099), 1e-6);
    tl_apply_emit_fini(&em);
    tl_tensor_unref(a);
}

/* ---- runtimes ----------------------------------------------------------- */

Test(apply, a_runtime_survives_every_failing_allocation)
{
    tl_rt_options options = {.threads = 2};

    for (uint64_t n = 1;; n++) {
        tl_diag d;
        tl_rt other;
        tl_status st;

        tl_diag_init(&d, NULL);
        tl_mem_fail_at(n, false);
        st = tl_rt_init(&other, &options, &d);
        tl_mem_fail_at(0, false);
        if (st == TL_OK) {
            tl_rt_fini(&other);
        }
        tl_diag_fini(&d);
        if (st == TL_OK) {
            cr_assert_gt(n, 2);
            break;
        }
        cr_assert_eq(st, TL_ERR_MEMORY);
    }
}

/* exp(0), exp(1), exp(2) by a thread of its own; gives the storage. */
static void *work(void *arg)
{
    tl_storage *storage = NULL;
    tl_tensor *t;
    tl_diag d;
    tl_rt mine;

    (void)arg;
    tl_diag_init(&d, NULL);
    if (tl_rt_init_worker(&mine, &rt, &d) != TL_OK) {
        return NULL;
    }
    if (tl_tensor_new(&t, mine.pool, TL_f64, 1, DIMS(3), &d) == TL_OK) {
        for (int i = 0; i < 3; i++) {
            tl_tensor_set_f(t, i, i);
        }
        if (tl_apply(&mine, TL_OP_exp, &t, 1, NULL, &t) == TL_OK) {
            storage = tl_storage_ref(t->storage);
            tl_tensor_unref(t);
        }
    }
    tl_rt_fini(&mine);
    tl_diag_fini(&d);
    return storage;
}

Test(apply, a_worker_hands_over_its_storage)
{
    pthread_t thread;
    void *storage;
    tl_tensor *t;

    cr_assert_eq(pthread_create(&thread, NULL, work, NULL), 0);
    cr_assert_eq(pthread_join(thread, &storage), 0);
    cr_assert_not_null(storage);
    OK(tl_tensor_over(&t, storage, TL_f64, 1, DIMS(3), &diag));
    cr_expect(tl_tensor_unshared(t));
    expect_near(t, VALUES(1, exp(1), exp(2)), 1e-15);
    tl_tensor_unref(t);
}
