/* Making graphs: nodes, regions, what is kept once, settling. */
#include "compiler/graph.h"

#include <criterion/criterion.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/op/dim_code.h"

static tl_graph *g;
static tl_diag diag;

static void setup(void)
{
    tl_diag_init(&diag, NULL);
    cr_assert_eq(tl_graph_new(&g, &diag), TL_OK);
}

static void teardown(void)
{
    tl_graph_free(g);
    tl_diag_fini(&diag);
    cr_expect_eq(tl_mem_live_blocks(), 0);
}

TestSuite(graph, .init = setup, .fini = teardown);

static tl_gvalue int_type = {.cls = TL_GC_INT};
static tl_gvalue bool_type = {.cls = TL_GC_BOOL};

static tl_gval add(tl_gkind kind, uint32_t owner, const tl_gvalue *type,
                   const tl_gval *in, uint32_t nin)
{
    tl_gnew n = {.kind = kind, .in = in, .nin = nin, .nout = 1, .out = type,
                 .owner = owner};
    tl_gval v;

    cr_assert_eq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    return v;
}

static tl_gval input(const tl_gvalue *type)
{
    return add(TL_G_INPUT, 0, type, NULL, 0);
}

static tl_gval host(uint32_t owner, tl_gval a, tl_gval b)
{
    tl_gnew n = {.kind = TL_G_HOST, .op = TL_H_add_i,
                 .in = (tl_gval[]){a, b}, .nin = 2, .nout = 1,
                 .out = &int_type, .owner = owner};
    tl_gval v;

    cr_assert_eq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    return v;
}

static uint32_t open_region(void)
{
    uint32_t r;

    cr_assert_eq(tl_graph_region_open(g, NULL, 0, &r, &diag), TL_OK);
    return r;
}

static void close_region(uint32_t r, tl_gval result)
{
    cr_assert_eq(tl_graph_region_close(g, r, &result, 1, &diag), TL_OK);
}

static tl_gval add_if(uint32_t owner, tl_gval cond, uint32_t region)
{
    tl_gnew n = {.kind = TL_G_IF, .in = &cond, .nin = 1, .nout = 1,
                 .out = &int_type, .region = region, .nregions = 2,
                 .owner = owner};
    tl_gval v;

    cr_assert_eq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    return v;
}

/* ---- nodes -------------------------------------------------------------- */

Test(graph, first_items_are_unused)
{
    cr_expect_eq(g->nodes.len, 1);
    cr_expect_eq(g->values.len, 1);
    cr_expect_eq(g->reports.len, 1);
    cr_expect_eq(g->inputs.len, 0);
    cr_expect_eq(g->nodes.items[0].kind, TL_G_NONE);
}

Test(graph, node_has_operands_and_results)
{
    tl_gval a = input(&int_type), b = input(&int_type);
    tl_gval sum = host(0, a, b);
    const tl_gnode *n = tl_gnode_of(g, sum);

    cr_expect_eq(n->kind, TL_G_HOST);
    cr_expect_eq(n->nin, 2);
    cr_expect_eq(tl_goperand(g, n, 0), a);
    cr_expect_eq(tl_goperand(g, n, 1), b);
    cr_expect_eq(g->values.items[sum].cls, TL_GC_INT);
    cr_expect_eq(g->values.items[sum].result, 0);
}

Test(graph, results_of_a_node_are_consecutive)
{
    tl_gvalue types[3] = {int_type, bool_type, int_type};
    tl_gnew n = {.kind = TL_G_LOOP, .nout = 3, .out = types};
    tl_gval first;

    cr_assert_eq(tl_graph_add(g, &n, &first, &diag), TL_OK);
    for (uint32_t k = 0; k < 3; k++) {
        cr_expect_eq(g->values.items[first + k].node, 1);
        cr_expect_eq(g->values.items[first + k].result, k);
        cr_expect_eq(g->values.items[first + k].cls, types[k].cls);
    }
}

Test(graph, host_scalars_have_no_tensor_fields)
{
    tl_gvalue type = {.cls = TL_GC_INT, .dtype = 7, .rank = 2, .shape = 3};
    const tl_gvalue *v = &g->values.items[input(&type)];

    cr_expect_eq(v->dtype + v->rank + (int)v->shape, 0);
}

/* ---- regions ------------------------------------------------------------ */

Test(graph, regions_of_a_node_are_consecutive_when_branches_nest)
{
    tl_gval c = input(&bool_type), x = input(&int_type), inner, v;
    uint32_t then, other, a, b;
    const tl_gnode *n;

    then = open_region();
    a = open_region();
    close_region(a, host(a, x, x));
    b = open_region();
    close_region(b, x);
    inner = add_if(then, c, a);
    close_region(then, inner);
    other = open_region();
    close_region(other, host(other, x, x));
    cr_assert_neq(other, then + 1);
    v = add_if(0, c, then);

    n = tl_gnode_of(g, v);
    for (uint32_t k = 0; k < 2; k++) {
        const tl_gregion *r = &g->regions.items[n->region + k];

        cr_expect_eq(&g->nodes.items[r->node], n);
        cr_expect_eq(r->nresults, 1);
        for (uint32_t i = r->first; i < r->last; i++) {
            if (g->nodes.items[i].kind == TL_G_IF) {
                cr_expect_eq(g->nodes.items[i].owner, n->region + k);
            }
        }
    }
    n = tl_gnode_of(g, inner);
    cr_expect_eq(n->owner, tl_gnode_of(g, v)->region);
    cr_expect_eq(&g->nodes.items[g->regions.items[n->region].node], n);
    cr_expect_eq(&g->nodes.items[g->regions.items[n->region + 1].node], n);
    cr_expect_eq(
        tl_gnode_of(g, g->operands.items[g->regions.items[n->region].results])
            ->owner,
        n->region);
}

Test(graph, parameters_are_values_without_a_node)
{
    tl_gvalue params[2] = {int_type, bool_type};
    uint32_t r;

    cr_assert_eq(tl_graph_region_open(g, params, 2, &r, &diag), TL_OK);
    for (uint32_t k = 0; k < 2; k++) {
        const tl_gvalue *v =
            &g->values.items[g->regions.items[r].params + k];

        cr_expect_eq(v->node, 0);
        cr_expect_eq(v->result, k);
        cr_expect_eq(v->cls, params[k].cls);
    }
    cr_assert_eq(tl_graph_region_close(g, r, NULL, 0, &diag), TL_OK);
}

Test(graph, only_the_innermost_region_closes)
{
    uint32_t outer = open_region(), inner = open_region();

    cr_expect_neq(tl_graph_region_close(g, outer, NULL, 0, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0699);
    cr_expect_eq(tl_graph_region_close(g, inner, NULL, 0, &diag), TL_OK);
    cr_expect_eq(tl_graph_region_close(g, outer, NULL, 0, &diag), TL_OK);
}

Test(graph, node_needs_an_open_owner_and_its_regions)
{
    tl_gnew n = {.kind = TL_G_NUM, .nout = 1, .out = &int_type, .owner = 1};
    uint32_t r = open_region();
    tl_gval v;

    cr_expect_eq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    cr_assert_eq(tl_graph_region_close(g, r, NULL, 0, &diag), TL_OK);
    cr_expect_neq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    n = (tl_gnew){.kind = TL_G_IF, .region = r, .nregions = 2};
    cr_expect_neq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0699);
    n.nregions = 1;
    cr_expect_eq(tl_graph_add(g, &n, &v, &diag), TL_OK);
    cr_expect_neq(tl_graph_add(g, &n, &v, &diag), TL_OK);
}

/* ---- settling ----------------------------------------------------------- */

Test(graph, settling_moves_outer_nodes_before_the_regions_around_them)
{
    tl_gval c = input(&bool_type), x = input(&int_type), y, z, deep, v;
    uint32_t then = open_region(), inner, other, last;
    const tl_gregion *r;

    tl_gval own = host(then, x, x);
    y = host(0, x, x); // of the whole, inside `then`
    inner = open_region();
    z = host(then, y, own); // of `then`, inside `inner`
    deep = host(inner, z, y);
    close_region(inner, deep);
    last = open_region();
    close_region(last, x);
    close_region(then, add_if(then, c, inner));
    other = open_region();
    close_region(other, x);
    v = add_if(0, c, then);

    cr_assert_eq(tl_graph_settle(g, &diag), TL_OK);
    cr_expect_eq(tl_gnode_of(g, x), &g->nodes.items[2]);
    cr_expect_eq(tl_gnode_of(g, y), &g->nodes.items[3]);
    cr_expect_eq(tl_gnode_of(g, own), &g->nodes.items[4]);
    cr_expect_eq(tl_gnode_of(g, z), &g->nodes.items[5]);
    cr_expect_eq(tl_gnode_of(g, deep), &g->nodes.items[6]);
    cr_expect_eq(tl_gnode_of(g, v), &g->nodes.items[8]);
    r = &g->regions.items[tl_gnode_of(g, v)->region];
    cr_expect_eq(r[0].first, 4);
    cr_expect_eq(r[0].last, 8);
    cr_expect_eq(r[0].node, 8);
    cr_expect_eq(r[1].first, 8);
    cr_expect_eq(r[1].last, 8);
}

Test(graph, settling_begins_a_region_with_its_own_node)
{
    tl_gval c = input(&bool_type), x = input(&int_type), y, v;
    uint32_t then = open_region(), other;

    y = host(0, x, x); // stands first in `then`, where it can stay
    close_region(then, host(then, y, x));
    other = open_region();
    close_region(other, x);
    v = add_if(0, c, then);
    cr_assert_eq(tl_graph_settle(g, &diag), TL_OK);
    cr_expect_eq(tl_gnode_of(g, y), &g->nodes.items[3]);
    cr_expect_eq(g->regions.items[tl_gnode_of(g, v)->region].first, 4);
    cr_expect_eq(g->regions.items[tl_gnode_of(g, v)->region].last, 5);
}

Test(graph, settling_refuses_an_open_region)
{
    (void)open_region();
    cr_expect_neq(tl_graph_settle(g, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0699);
}

/* ---- what is kept once -------------------------------------------------- */

Test(graph, equal_sizes_have_equal_numbers)
{
    const int64_t code[] = {TL_DC_NUM, 2, TL_DC_ATOM, 0, TL_DC_MUL};
    uint32_t a, b, c, n;

    cr_assert_eq(tl_graph_size(g, code, 5, &a, &diag), TL_OK);
    for (int64_t k = 0; k < 100; k++) {
        cr_assert_eq(tl_graph_size_num(g, k, &n, &diag), TL_OK);
    }
    cr_assert_eq(tl_graph_size(g, code, 5, &b, &diag), TL_OK);
    cr_assert_eq(tl_graph_size_num(g, 99, &c, &diag), TL_OK);
    cr_expect_eq(a, b);
    cr_expect_eq(c, n);
    cr_expect_neq(a, c);
    cr_expect_eq(g->dims.len, 102);
}

Test(graph, only_a_number_is_a_number)
{
    const int64_t code[] = {TL_DC_ATOM, 5};
    uint32_t num, atom;
    int64_t n = 0;

    cr_assert_eq(tl_graph_size_num(g, -3, &num, &diag), TL_OK);
    cr_assert_eq(tl_graph_size(g, code, 2, &atom, &diag), TL_OK);
    cr_expect(tl_graph_size_is_num(g, num, &n));
    cr_expect_eq(n, -3);
    cr_expect_not(tl_graph_size_is_num(g, atom, &n));
}

Test(graph, shapes_and_atoms_are_kept_once)
{
    const uint32_t ab[] = {1, 2}, ba[] = {2, 1};
    tl_gatom atom = {TL_GA_SIZE, 0, 1}, other = {TL_GA_SIZE, 0, 2};
    uint32_t x, y, z, a, b, c;

    cr_assert_eq(tl_graph_shape(g, ab, 2, &x, &diag), TL_OK);
    cr_assert_eq(tl_graph_shape(g, ba, 2, &y, &diag), TL_OK);
    cr_assert_eq(tl_graph_shape(g, ab, 2, &z, &diag), TL_OK);
    cr_expect_eq(x, z);
    cr_expect_neq(x, y);
    cr_assert_eq(tl_graph_shape(g, ab, 0, &z, &diag), TL_OK);
    cr_expect_eq(z, 0);
    cr_assert_eq(tl_graph_atom(g, atom, &a, &diag), TL_OK);
    cr_assert_eq(tl_graph_atom(g, other, &b, &diag), TL_OK);
    cr_assert_eq(tl_graph_atom(g, atom, &c, &diag), TL_OK);
    cr_expect_eq(a, 0);
    cr_expect_eq(b, 1);
    cr_expect_eq(c, a);
}

static uint32_t attrs(double f, uint32_t dim, tl_gval bound)
{
    tl_gattrs at = {.axis = 1, .ndims = 1, .nbinds = bound != 0,
                    .dims = 12345, .binds = 777, .pad = 9};
    tl_gbind bind = {.field = 'f', .index = 2, .value = bound};
    uint32_t out;

    at.f[0] = f;
    cr_assert_eq(tl_graph_attrs(g, &at, &dim, &bind, &out, &diag), TL_OK);
    return out;
}

Test(graph, attributes_differ_by_bits_sizes_and_binds)
{
    uint32_t a = attrs(0.0, 1, 0);

    cr_expect_eq(attrs(0.0, 1, 0), a);
    cr_expect_neq(attrs(-0.0, 1, 0), a);
    cr_expect_neq(attrs(0.0, 2, 0), a);
    cr_expect_neq(attrs(0.0, 1, 3), a);
    cr_expect_eq(attrs(0.0, 1, 3), attrs(0.0, 1, 3));
    cr_expect_neq(attrs(0.0, 1, 3), attrs(0.0, 1, 4));
    cr_expect_eq(g->sizes.items[g->attrs.items[a].dims], 1);
    cr_expect_eq(g->attrs.items[a].pad, 0);
}

Test(graph, constants_are_kept_once)
{
    uint32_t a, b, c, d;

    cr_assert_eq(tl_graph_const(g, "abcd", 4, &a, &diag), TL_OK);
    cr_assert_eq(tl_graph_const(g, "abce", 4, &b, &diag), TL_OK);
    cr_assert_eq(tl_graph_const(g, "abcd", 4, &c, &diag), TL_OK);
    cr_assert_eq(tl_graph_const(g, "", 0, &d, &diag), TL_OK);
    cr_expect_eq(a, c);
    cr_expect_neq(a, b);
    cr_expect_eq(g->consts.items[d].len, 0);
    cr_expect_eq(
        memcmp(&g->bytes.items[g->consts.items[b].bytes], "abce", 4), 0);
}

Test(graph, types_agree_by_class_dtype_and_sizes)
{
    const uint32_t ab[] = {1, 2}, ba[] = {2, 1};
    tl_gvalue t = {.cls = TL_GC_TENSOR, .dtype = TL_f32, .rank = 2};
    tl_gval a, b, c, d;

    cr_assert_eq(tl_graph_shape(g, ab, 2, &t.shape, &diag), TL_OK);
    a = input(&t);
    b = input(&t);
    t.dtype = TL_f64;
    c = input(&t);
    cr_assert_eq(tl_graph_shape(g, ba, 2, &t.shape, &diag), TL_OK);
    d = input(&t);
    cr_expect(tl_graph_same_type(g, a, b));
    cr_expect_not(tl_graph_same_type(g, a, c));
    cr_expect_not(tl_graph_same_type(g, c, d));
    cr_expect_not(tl_graph_same_type(g, a, input(&int_type)));
}

Test(graph, sizes_are_evaluated)
{
    const int64_t code[] = {TL_DC_NUM, 2, TL_DC_ATOM, 0, TL_DC_MUL};
    tl_gatom atom = {TL_GA_SIZE, 0, 0};
    int64_t value = 21, n;
    uint32_t a, s;

    cr_assert_eq(tl_graph_atom(g, atom, &a, &diag), TL_OK);
    cr_assert_eq(tl_graph_size(g, code, 5, &s, &diag), TL_OK);
    cr_assert_eq(tl_graph_size_eval(g, s, &value, &n, &diag), TL_OK);
    cr_expect_eq(n, 42);
    value = INT64_MAX;
    cr_expect_neq(tl_graph_size_eval(g, s, &value, &n, &diag), TL_OK);
    cr_expect_eq(diag.last->code, TL_E0307);
}

/* ---- memory ------------------------------------------------------------- */

static tl_status build(tl_graph *h)
{
    const int64_t code[] = {TL_DC_ATOM, 0};
    tl_gattrs at = {.ndims = 1, .nbinds = 1};
    tl_gbind bind = {.field = 'i', .value = 1};
    tl_gscalar one = {.i = 1};
    tl_gnew n = {.kind = TL_G_NUM, .nout = 1, .out = &int_type};
    uint32_t size, r;
    tl_gval v;

    TL_TRY(tl_graph_atom(h, (tl_gatom){0}, &r, &diag));
    TL_TRY(tl_graph_size(h, code, 2, &size, &diag));
    TL_TRY(tl_graph_attrs(h, &at, &size, &bind, &n.attrs, &diag));
    TL_TRY(tl_graph_const(h, "x", 1, &n.data, &diag));
    TL_TRY(tl_graph_region_open(h, &int_type, 1, &r, &diag));
    n.owner = r;
    TL_TRY(tl_graph_add(h, &n, &v, &diag));
    TL_TRY(tl_graph_region_close(h, r, &v, 1, &diag));
    n = (tl_gnew){.kind = TL_G_IF, .region = r, .nregions = 1};
    TL_TRY(tl_graph_add(h, &n, &v, &diag));
    TL_TRY(tl_graph_guard(h, v, one, (tl_span){0}, &diag));
    return tl_graph_settle(h, &diag);
}

Test(graph, every_failed_allocation_is_reported_and_leaves_nothing)
{
    int64_t live = tl_mem_live_blocks();
    tl_status st = TL_ERR_MEMORY;
    uint64_t n;

    for (n = 1; st == TL_ERR_MEMORY; n++) {
        tl_graph *h = NULL;

        tl_diag_clear(&diag);
        live = tl_mem_live_blocks();
        tl_mem_fail_at(n, false);
        st = tl_graph_new(&h, &diag);
        st = st == TL_OK ? build(h) : st;
        tl_mem_fail_at(0, false);
        cr_expect(st == TL_OK || diag.nerrors == 1);
        tl_graph_free(h);
        tl_diag_clear(&diag);
        cr_expect_eq(tl_mem_live_blocks(), live);
    }
    cr_expect_eq(st, TL_OK);
    cr_expect_gt(n, 20);
}
