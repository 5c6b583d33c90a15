/* test_tape.c - watching, recording, what is saved and what is not. */
#include "runtime/tape/tape.h"

#include <criterion/criterion.h>

#include "runtime/base/mem.h"

static tl_diag diag;
static tl_pool *pool;
static const tl_span nowhere;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_pool_new(&pool, 0, &diag), TL_OK);
}

static void teardown(void)
{
    tl_tensor_trim();
    cr_assert_eq(tl_tensor_live(), 0);
    cr_assert_eq(tl_pool_free(pool), 0);
    tl_diag_fini(&diag);
    cr_assert_eq(tl_mem_live_blocks(), 0);
}

TestSuite(tape, .init = setup, .fini = teardown);

static tl_tensor *make(tl_dtype dtype)
{
    tl_tensor *t;

    cr_assert_eq(tl_tensor_new(&t, pool, dtype, 1, (int64_t[]){3}, &diag),
                 TL_OK);
    return t;
}

static tl_tape *open_tape(tl_tape *outer, uint64_t serial)
{
    tl_tape *tape;

    cr_assert_eq(tl_tape_new(&tape, outer, serial, &diag), TL_OK);
    return tape;
}

static void record(tl_tape *tape, tl_op op, tl_tensor *a, tl_tensor *b,
                   tl_tensor *y)
{
    tl_tensor *in[2] = {a, b};

    cr_assert_eq(tl_tape_record(tape, op, in, b ? 2 : 1, &y, 1, NULL,
                                nowhere, &diag), TL_OK);
}

Test(tape, unwatched_operations_are_not_recorded)
{
    tl_tape *tape = open_tape(NULL, 1);
    tl_tensor *a = make(TL_f32), *y = make(TL_f32);

    record(tape, TL_OP_exp, a, NULL, y);
    cr_expect_eq(tape->len, 0);
    cr_expect_eq(tl_tape_node(tape, y), 0);
    tl_tensor_unref(a);
    tl_tensor_unref(y);
    tl_tape_free(tape);
}

Test(tape, results_of_watched_inputs_get_nodes)
{
    tl_tape *tape = open_tape(NULL, 1);
    tl_tensor *a = make(TL_f32), *y = make(TL_f32);
    uint32_t node;

    cr_assert_eq(tl_tape_watch(tape, a, &node, &diag), TL_OK);
    cr_expect_eq(node, 1);
    record(tape, TL_OP_exp, a, NULL, y);
    cr_assert_eq(tape->len, 1);
    cr_expect_eq(tape->entries[0].in_node[0], 1);
    cr_expect_eq(tape->entries[0].out_node[0], 2);
    cr_expect_eq(tl_tape_node(tape, y), 2);
    tl_tensor_unref(a);
    tl_tensor_unref(y);
    tl_tape_free(tape);
}

/* d exp reads its result, d log its input, d add neither. */
Test(tape, only_what_the_gradient_reads_is_kept)
{
    tl_tape *tape = open_tape(NULL, 1);
    tl_tensor *a = make(TL_f32), *b = make(TL_f32), *y = make(TL_f32);
    tl_tensor *z = make(TL_f32), *s = make(TL_f32);
    uint32_t node;

    cr_assert_eq(tl_tape_watch(tape, a, &node, &diag), TL_OK);
    record(tape, TL_OP_exp, a, NULL, y);
    record(tape, TL_OP_log, a, NULL, z);
    record(tape, TL_OP_add, a, b, s);
    cr_assert_eq(tape->len, 3);
    cr_expect_null(tape->entries[0].in[0]->storage);
    cr_expect_eq(tape->entries[0].out[0], y);
    cr_expect_eq(tape->entries[1].in[0], a);
    cr_expect_null(tape->entries[1].out[0]->storage);
    cr_expect_null(tape->entries[2].in[0]->storage);
    cr_expect_null(tape->entries[2].in[1]->storage);
    cr_expect_null(tape->entries[2].out[0]->storage);
    cr_expect_eq(tape->entries[2].in[0]->size[0], 3);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(y);
    tl_tensor_unref(z);
    tl_tensor_unref(s);
    tl_tape_free(tape);
}

Test(tape, results_that_are_no_floats_are_not_recorded)
{
    tl_tape *tape = open_tape(NULL, 1);
    tl_tensor *a = make(TL_f32), *y = make(TL_bool);
    uint32_t node;

    cr_assert_eq(tl_tape_watch(tape, a, &node, &diag), TL_OK);
    record(tape, TL_OP_isnan, a, NULL, y);
    cr_expect_eq(tape->len, 0);
    tl_tensor_unref(a);
    tl_tensor_unref(y);
    tl_tape_free(tape);
}

Test(tape, nested_tapes_number_for_themselves)
{
    tl_tape *outer = open_tape(NULL, 1), *inner = open_tape(outer, 2);
    tl_tensor *a = make(TL_f32), *b = make(TL_f32), *y = make(TL_f32);
    tl_tensor *c;
    uint32_t node;

    cr_assert_eq(tl_tape_watch(outer, a, &node, &diag), TL_OK);
    cr_assert_eq(tl_tape_watch(inner, b, &node, &diag), TL_OK);
    cr_assert_eq(tl_tape_watch(inner, a, &node, &diag), TL_OK);
    cr_expect_eq(node, 2);
    cr_expect_eq(tl_tape_node(outer, a), 1);
    cr_expect_eq(tl_tape_node(inner, a), 2);
    cr_expect_eq(tl_tape_node(outer, b), 0);
    cr_expect(tl_tape_sees(inner, &a, 1));
    cr_expect_not(tl_tape_sees(outer, &b, 1));
    record(outer, TL_OP_exp, a, NULL, y);
    cr_expect_eq(tl_tape_node(outer, y), 2);
    cr_expect_eq(tl_tape_node(inner, y), 0);
    cr_assert_eq(tl_tensor_alias(&c, a, &diag), TL_OK);
    cr_assert_eq(tl_tape_share(inner, c, a, &diag), TL_OK);
    cr_expect_eq(tl_tape_node(outer, c), 1);
    cr_expect_eq(tl_tape_node(inner, c), 2);
    tl_tensor_unref(a);
    tl_tensor_unref(b);
    tl_tensor_unref(c);
    tl_tensor_unref(y);
    tl_tape_free(inner);
    tl_tape_free(outer);
}

Test(tape, attributes_are_copied_without_their_unused_sizes)
{
    tl_tape *tape = open_tape(NULL, 1);
    tl_tensor *a = make(TL_f32), *y = make(TL_f32);
    uint32_t node;
    tl_attrs at;

    tl_attrs_init(&at);
    at.f[0] = 0.25;
    at.ndims = 2;
    at.dims[1] = tl_dim_num(7);
    cr_assert_eq(tl_tape_watch(tape, a, &node, &diag), TL_OK);
    cr_assert_eq(tl_tape_record(tape, TL_OP_leaky_relu, &a, 1, &y, 1, &at,
                                nowhere, &diag), TL_OK);
    at.f[0] = 0;
    at.dims[1] = tl_dim_num(0);
    cr_expect_eq(tape->entries[0].at->f[0], 0.25);
    cr_expect_eq(tl_dim_value(tape->entries[0].at->dims[1]), 7);
    tl_tensor_unref(a);
    tl_tensor_unref(y);
    tl_tape_free(tape);
}

static void count_free(void *data)
{
    ++*(int *)data;
}

static tl_status no_gradient(void *data, tl_tensor *const *g, int nout,
                             tl_tensor **dx, int nin, tl_diag *d)
{
    (void)data;
    (void)g;
    (void)nout;
    (void)dx;
    (void)nin;
    (void)d;
    return TL_OK;
}

Test(tape, data_of_custom_entries_are_freed_once)
{
    tl_tape *tape = open_tape(NULL, 1);
    tl_tensor *a = make(TL_f32), *y = make(TL_f32);
    uint32_t node;
    int freed = 0;

    cr_assert_eq(tl_tape_record_custom(tape, &a, 1, &y, 1, no_gradient,
                                       &freed, count_free, nowhere, &diag),
                 TL_OK);
    cr_expect_eq(freed, 1, "not watched: freed at once");
    cr_assert_eq(tl_tape_watch(tape, a, &node, &diag), TL_OK);
    cr_assert_eq(tl_tape_record_custom(tape, &a, 1, &y, 1, no_gradient,
                                       &freed, count_free, nowhere, &diag),
                 TL_OK);
    cr_expect_eq(freed, 1);
    tl_tape_free(tape);
    cr_expect_eq(freed, 2);
    tl_tensor_unref(a);
    tl_tensor_unref(y);
}

Test(tape, every_failing_allocation_is_survived)
{
    for (uint64_t n = 1;; n++) {
        tl_tape *tape = NULL, *outer = open_tape(NULL, 1);
        tl_tensor *a = make(TL_f32), *y = make(TL_f32), *z = make(TL_f32);
        uint32_t node;
        int freed = 0;
        tl_status st;

        tl_tensor_trim();
        tl_mem_fail_at(n, false);
        st = tl_tape_new(&tape, outer, 2, &diag);
        if (st == TL_OK) {
            st = tl_tape_watch(outer, a, &node, &diag);
        }
        if (st == TL_OK) {
            st = tl_tape_watch(tape, a, &node, &diag);
        }
        if (st == TL_OK) {
            st = tl_tape_record(tape, TL_OP_exp, &a, 1, &y, 1, NULL, nowhere,
                                &diag);
        }
        if (st == TL_OK) {
            st = tl_tape_record_custom(tape, &y, 1, &z, 1, no_gradient,
                                       &freed, count_free, nowhere, &diag);
            cr_assert_eq(freed, st == TL_OK ? 0 : 1);
        }
        tl_mem_fail_at(0, false);
        tl_tape_free(tape);
        tl_tape_free(outer);
        tl_tensor_unref(a);
        tl_tensor_unref(y);
        tl_tensor_unref(z);
        cr_assert_eq(tl_tensor_live(), 0);
        if (st == TL_OK) {
            cr_assert_gt(n, 5);
            break;
        }
        cr_assert_eq(st, TL_ERR_MEMORY);
    }
}
