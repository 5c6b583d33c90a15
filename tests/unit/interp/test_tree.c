/* test_tree.c - structures of trees, access, flags. */
#include "tests/unit/interp/suite.h"

TestSuite(test_tree, .init = setup, .fini = teardown);

/* A tree of scalars 1, 2, ... under these paths. */
static tl_value make(const char *const *paths, size_t n)
{
    tl_str *strs[8];
    tl_value items[8], v;
    tl_tree_shape *shape;

    for (size_t i = 0; i < n; i++) {
        tl_tensor *t;

        cr_assert_eq(tl_str_new(&v, paths[i], strlen(paths[i]), &r.diag),
                     TL_OK);
        strs[i] = v.str;
        cr_assert_eq(tl_tensor_scalar_f(&t, r.rt.pool, TL_f32,
                                        (double)(i + 1), &r.diag),
                     TL_OK);
        items[i] = tl_tensor_value_take(t);
    }
    cr_assert_eq(tl_tree_shape_new(&shape, strs, n, &r.diag), TL_OK);
    cr_assert_eq(tl_tree_new_take(&v, shape, items, &r.diag), TL_OK);
    tl_tree_shape_unref(shape);
    for (size_t i = 0; i < n; i++) {
        tl_unref((tl_value){.tag = TL_V_STR, .str = strs[i]});
    }
    return v;
}

static const char *const few[] = {"a.w", "a.b.v", "ab", "c.0.w", "c.10.w"};

Test(test_tree, leaf_by_path)
{
    tl_value t = make(few, 5), leaf;

    cr_assert_eq(tl_tree_get(&r.ev, t.tree, "ab", 2, &leaf), TL_OK);
    cr_expect_eq(leaf.tag, TL_V_TENSOR);
    cr_expect_eq(tl_tensor_get_f(leaf.tensor, 0), 3);
    tl_unref(leaf);
    tl_unref(t);
}

Test(test_tree, a_name_is_no_prefix_of_a_longer_name)
{
    tl_value t = make(few, 5), sub;

    cr_assert_eq(tl_tree_get(&r.ev, t.tree, "a", 1, &sub), TL_OK);
    cr_assert_eq(sub.tag, TL_V_TREE);
    cr_expect_eq(sub.tree->shape->len, 2);
    cr_expect_str_eq(sub.tree->shape->paths[1]->data, "b.v");
    tl_unref(sub);
    cr_assert_eq(tl_tree_index(&r.ev, t.tree, tl_int_value(1), &sub),
                 TL_ERR_PROGRAM);
    cr_expect_eq(run_code(&r), TL_E0211);
    tl_unref(t);
}

Test(test_tree, number_is_a_part_of_the_path)
{
    tl_value t = make(few, 5), c, sub;

    cr_assert_eq(tl_tree_get(&r.ev, t.tree, "c", 1, &c), TL_OK);
    cr_assert_eq(tl_tree_index(&r.ev, c.tree, tl_int_value(10), &sub), TL_OK);
    cr_assert_eq(sub.tag, TL_V_TREE);
    cr_expect_eq(tl_tensor_get_f(sub.tree->items[0].tensor, 0), 5);
    tl_unref(sub);
    tl_unref(c);
    tl_unref(t);
}

Test(test_tree, nearest_path_is_proposed)
{
    tl_value t = make(few, 5), out;

    cr_assert_neq(tl_tree_get(&r.ev, t.tree, "a.b.x", 5, &out), TL_OK);
    cr_expect_str_eq(r.diag.last->help, "`a.b.v`");
    tl_unref(t);
}

Test(test_tree, structures_compare_by_paths)
{
    tl_value a = make(few, 5), b = make(few, 5), c = make(few, 4);

    cr_expect(tl_tree_shape_same(a.tree->shape, b.tree->shape));
    cr_expect_not(tl_tree_shape_same(a.tree->shape, c.tree->shape));
    tl_unref(a);
    tl_unref(b);
    tl_unref(c);
}

Test(test_tree, unshared_operand_is_written_in_place)
{
    tl_value t = make(few, 5), u;
    tl_storage *storage = t.tree->items[2].tensor->storage;

    cr_assert_eq(
        tl_tree_binary_take(&r.ev, TL_OP_MUL, t, tl_float_value(2.0), &u),
        TL_OK);
    cr_expect_eq(u.tree->items[2].tensor->storage, storage);
    cr_expect_eq(tl_tensor_get_f(u.tree->items[2].tensor, 0), 6);
    tl_unref(u);
}

Test(test_tree, shared_operand_stays)
{
    tl_value t = make(few, 5), u;

    cr_assert_eq(tl_tree_binary_take(&r.ev, TL_OP_MUL, tl_ref(t),
                                     tl_float_value(2.0), &u),
                 TL_OK);
    cr_expect_eq(tl_tensor_get_f(t.tree->items[2].tensor, 0), 3);
    tl_unref(u);
    tl_unref(t);
}

Test(test_tree, flags_join)
{
    tl_value t = make(few, 2), bad, sum, flag;

    cr_assert_eq(tl_tree_binary_take(&r.ev, TL_OP_DIV, tl_ref(t),
                                     tl_int_value(0), &bad),
                 TL_OK);
    cr_expect_eq(bad.tree->finite.tag, TL_V_TENSOR);
    cr_assert_eq(tl_tree_binary_take(&r.ev, TL_OP_ADD, t, bad, &sum), TL_OK);
    cr_assert_eq(tl_eval_read(&r.ev, sum.tree->finite, &flag), TL_OK);
    cr_expect_eq(flag.tag, TL_V_BOOL);
    cr_expect_not(flag.b);
    tl_unref(sum);
}
