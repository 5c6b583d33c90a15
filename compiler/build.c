/* build.c - values and types of a graph under construction. */
#include "compiler/build.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/op/dim_code.h"

/* A quiet NaN with this in its upper half carries a value's number. */
#define ATTR_TAG UINT64_C(0x7ff87a1d)

double tl_gbuild_attr(tl_gval v)
{
    uint64_t bits = ATTR_TAG << 32 | v;
    double f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

tl_gval tl_gbuild_attr_value(double f)
{
    uint64_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits >> 32 == ATTR_TAG ? (tl_gval)bits : 0;
}

/* ---- sizes -------------------------------------------------------------- */

static tl_status atom_number(void *arg, tl_dim atom, int64_t *n)
{
    tl_gbuild *b = arg;
    uintptr_t found =
        (uintptr_t)tl_map_get(&b->numbers, (void *)atom.word, NULL);

    if (found == 0) {
        return tl_fail(b->diag, TL_E0602,
                       "a size that depends on data: `%s`",
                       tl_dim_str(atom).s);
    }
    *n = (int64_t)found - 1;
    return TL_OK;
}

tl_status tl_gbuild_dim(tl_gbuild *b, tl_dim d, uint32_t *out)
{
    uintptr_t found;
    int64_t *code;
    size_t len;
    tl_status st;

    if (tl_dim_is_num(d)) {
        return tl_graph_size_num(b->g, tl_dim_value(d), out, b->diag);
    }
    found = (uintptr_t)tl_map_get(&b->sizes, (void *)d.word, NULL);
    if (found != 0) {
        *out = (uint32_t)found;
        return TL_OK;
    }
    TL_TRY(tl_dim_encode(d, atom_number, b, &code, &len, b->diag));
    st = tl_graph_size(b->g, code, len, out, b->diag);
    tl_free(code);
    if (st == TL_OK && !tl_map_set(&b->sizes, (void *)d.word,
                                   (void *)(uintptr_t)*out)) {
        st = tl_fail_memory(b->diag, "a size", sizeof(d));
    }
    return st;
}

static tl_status shape_number(tl_gbuild *b, const tl_shape *shape,
                              uint32_t *out)
{
    uint32_t sizes[TL_MAX_RANK];

    for (int i = 0; i < shape->rank; i++) {
        TL_TRY(tl_gbuild_dim(b, shape->dim[i], &sizes[i]));
    }
    return tl_graph_shape(b->g, sizes, shape->rank, out, b->diag);
}

tl_status tl_gbuild_value(tl_gbuild *b, const tl_ttype *type, tl_gvalue *out)
{
    *out = (tl_gvalue){.cls = TL_GC_TENSOR,
                       .dtype = (uint8_t)type->dtype,
                       .rank = (uint8_t)type->shape.rank};
    return shape_number(b, &type->shape, &out->shape);
}

tl_status tl_gbuild_atom(tl_gbuild *b, tl_gatom atom, int64_t least,
                         int64_t hint, tl_dim *out)
{
    uint32_t number;
    char name[24];

    TL_TRY(tl_graph_atom(b->g, atom, &number, b->diag));
    while (b->atoms.len <= number) {
        TL_TRY(TL_VEC_PUSH(&b->hints, 0, b->diag));
        TL_TRY(TL_VEC_PUSH(&b->atoms, tl_dim_num(0), b->diag));
    }
    if (!tl_dim_is_num(b->atoms.items[number])) {
        *out = b->atoms.items[number];
        return TL_OK;
    }
    (void)snprintf(name, sizeof(name), "s%u", number);
    TL_TRY(tl_dim_atom(b->dims, name, least, out, b->diag));
    if (!tl_map_set(&b->numbers, (void *)out->word,
                    (void *)((uintptr_t)number + 1))) {
        return tl_fail_memory(b->diag, "a size", sizeof(*out));
    }
    if (atom.kind == TL_GA_INT && b->values.items[atom.index].late) {
        TL_TRY(TL_VEC_PUSH(&b->late, *out, b->diag));
    }
    b->atoms.items[number] = *out;
    b->hints.items[number] = hint;
    return TL_OK;
}

tl_status tl_gbuild_hint(tl_gbuild *b, tl_dim d, int64_t *out)
{
    int64_t *code;
    size_t len;
    tl_status st;

    if (tl_dim_is_num(d)) {
        *out = tl_dim_value(d);
        return TL_OK;
    }
    TL_TRY(tl_dim_encode(d, atom_number, b, &code, &len, b->diag));
    st = tl_dim_code_eval(code, len, b->hints.items, b->hints.len, out,
                          b->diag);
    tl_free(code);
    return st;
}

/* ---- guards ------------------------------------------------------------- */

/* A guard is looked at before the run: what it needs, made of inputs alone,
 * belongs to no region. */
static void hoist(tl_graph *g, tl_gval v)
{
    tl_gnode *n = &g->nodes.items[g->values.items[v].node];

    if (g->values.items[v].node == 0 || n->owner == 0) {
        return;
    }
    n->owner = 0;
    for (uint32_t k = 0; k < n->nin; k++) {
        hoist(g, tl_goperand(g, n, k));
    }
}

/* What the traced call is like says nothing about an arm that it does not
 * take. */
static tl_status check_unsealed(tl_gbuild *b)
{
    return b->sealed == 0
               ? TL_OK
               : tl_fail(b->diag, TL_E0602,
                         "something is decided in an arm that is not taken");
}

tl_status tl_gbuild_guard(tl_gbuild *b, tl_gval v, tl_gscalar expected)
{
    TL_TRY(check_unsealed(b));
    hoist(b->g, v);
    return tl_graph_guard(b->g, v, expected, b->span, b->diag);
}

tl_gval tl_gbuild_behind_leaf(const tl_gbuild *b, tl_gval v, uint64_t bit)
{
    while (v != 0 && b->values.items[v].leaf) {
        tl_gval of = tl_goperand(b->g, tl_gnode_of(b->g, v), 0);

        if ((b->values.items[of].seen & bit) == 0) {
            break;
        }
        v = of;
    }
    return v;
}

bool tl_gbuild_is_late(const tl_gbuild *b, tl_dim d)
{
    for (size_t i = 0; i < b->late.len; i++) {
        if (tl_dim_has(d, b->late.items[i])) {
            return true;
        }
    }
    return false;
}

/* Guard that `op` holds of two sizes, which stand outside of any region. */
static tl_status guard_sizes(tl_gbuild *b, tl_ghost op, tl_dim x, tl_dim y)
{
    tl_gval in[2], holds;
    tl_gscalar yes = {.i = 0};
    uint32_t owner = b->owner;
    tl_status st;

    yes.b = true;
    b->owner = 0;
    TL_GOTO(st, tl_gbuild_size(b, x, &in[0]));
    TL_GOTO(st, tl_gbuild_size(b, y, &in[1]));
    TL_GOTO(st, tl_gbuild_host(b, op, TL_GC_BOOL, in, 2, &holds));
    st = tl_gbuild_guard(b, holds, yes);
out:
    b->owner = owner;
    return st;
}

static tl_status guard_equal(void *arg, tl_dim x, tl_dim y)
{
    tl_gbuild *b = arg;
    int64_t i, k;

    TL_TRY(tl_gbuild_hint(b, x, &i));
    TL_TRY(tl_gbuild_hint(b, y, &k));
    if (i != k) {
        TL_TRY(check_unsealed(b));
        return TL_ERR_PROGRAM;
    }
    if (tl_gbuild_is_late(b, x) || tl_gbuild_is_late(b, y)) {
        return TL_OK;
    }
    TL_TRY(check_unsealed(b));
    TL_TRY(guard_sizes(b, TL_H_eq_i, x, y));
    return tl_dims_fact_equal(b->dims, x, y, b->diag);
}

static tl_status guard_le(void *arg, tl_dim x, tl_dim y, bool *holds)
{
    tl_gbuild *b = arg;
    int64_t i, k;

    TL_TRY(tl_gbuild_hint(b, x, &i));
    TL_TRY(tl_gbuild_hint(b, y, &k));
    *holds = i <= k;
    TL_TRY(check_unsealed(b));
    if (i > k || tl_gbuild_is_late(b, x) || tl_gbuild_is_late(b, y)) {
        return TL_OK;
    }
    TL_TRY(guard_sizes(b, TL_H_le_i, x, y));
    return tl_dims_fact_le(b->dims, x, y, b->diag);
}

static tl_status pin_size(void *arg, tl_dim d, tl_dim *out)
{
    tl_gbuild *b = arg;
    int64_t n;

    if (tl_dim_is_num(d)) {
        *out = d;
        return TL_OK;
    }
    if (tl_gbuild_is_late(b, d)) {
        return tl_fail(b->diag, TL_E0602,
                       "something is decided by a number that differs from "
                       "turn to turn of a loop");
    }
    TL_TRY(tl_gbuild_hint(b, d, &n));
    *out = tl_dim_num(n);
    return guard_equal(b, d, *out);
}

tl_status tl_gbuild_extent(tl_gbuild *b, tl_dim d, tl_dim *out)
{
    int64_t n;
    bool holds;

    *out = d;
    if (tl_dim_is_num(d) || tl_gbuild_is_late(b, d) ||
        tl_dim_le(b->dims, tl_dim_num(2), d) == TL_PROVED) {
        return TL_OK;
    }
    TL_TRY(tl_gbuild_hint(b, d, &n));
    return n < 2 ? pin_size(b, d, out)
                 : guard_le(b, tl_dim_num(2), d, &holds);
}

/* ---- types -------------------------------------------------------------- */

static bool same_type(const tl_ttype *a, const tl_ttype *b)
{
    return a->dtype == b->dtype && tl_shape_same(&a->shape, &b->shape);
}

/* A copy of the type that lives as long as the builder. */
static tl_status keep_type(tl_gbuild *b, const tl_ttype *type,
                           const tl_ttype **out)
{
    const unsigned n = sizeof(b->recent) / sizeof(b->recent[0]);
    tl_ttype *copy;

    for (unsigned i = 0; i < n; i++) {
        if (b->recent[i] && same_type(b->recent[i], type)) {
            *out = b->recent[i];
            return TL_OK;
        }
    }
    copy = TL_ARENA_NEW(&b->arena, tl_ttype);
    if (!copy) {
        return tl_fail_memory(b->diag, "a type", sizeof(*copy));
    }
    copy->dtype = type->dtype;
    copy->shape.rank = type->shape.rank;
    memcpy(copy->shape.dim, type->shape.dim,
           (size_t)type->shape.rank * sizeof(tl_dim));
    b->recent[b->nrecent++ % n] = copy;
    *out = copy;
    return TL_OK;
}

tl_status tl_gbuild_note(tl_gbuild *b, tl_gval v, const tl_ttype *type,
                         uint64_t seen)
{
    const tl_ttype *kept = NULL;

    if (type) {
        TL_TRY(keep_type(b, type, &kept));
    }
    while (b->values.len <= v) {
        TL_TRY(TL_VEC_PUSH(&b->values, (tl_bvalue){0}, b->diag));
    }
    b->values.items[v] = (tl_bvalue){.type = kept, .seen = seen};
    return TL_OK;
}

/* ---- nodes -------------------------------------------------------------- */

/* Add a node with one result: a tensor of `type`, or a host scalar. */
static tl_status add_one(tl_gbuild *b, tl_gnew *n, const tl_ttype *type,
                         tl_gclass cls, uint64_t seen, tl_gval *out)
{
    tl_gvalue value = {.cls = (uint8_t)cls};

    if (type) {
        TL_TRY(tl_gbuild_value(b, type, &value));
    }
    n->nout = 1;
    n->out = &value;
    n->owner = b->owner;
    n->span = b->span;
    TL_TRY(tl_graph_add(b->g, n, out, b->diag));
    return tl_gbuild_note(b, *out, type, seen);
}

static tl_status add_input(tl_gbuild *b, const tl_ttype *type, tl_gclass cls,
                           tl_gval *out)
{
    tl_gnew n = {.kind = TL_G_INPUT, .data = (uint32_t)b->g->inputs.len};
    uint32_t owner = b->owner;
    tl_status st;

    b->owner = 0;
    st = add_one(b, &n, type, cls, 0, out);
    b->owner = owner;
    if (st != TL_OK) {
        return st;
    }
    return TL_VEC_PUSH(&b->g->inputs, *out, b->diag);
}

tl_status tl_gbuild_input(tl_gbuild *b, const tl_ttype *type, tl_gval *out)
{
    return add_input(b, type, TL_GC_TENSOR, out);
}

tl_status tl_gbuild_host_input(tl_gbuild *b, tl_gclass cls, tl_gval *out)
{
    return add_input(b, NULL, cls, out);
}

tl_status tl_gbuild_const(tl_gbuild *b, const tl_ttype *type,
                          const void *bytes, size_t len, tl_gval *out)
{
    tl_gnew n = {.kind = TL_G_CONST};

    TL_TRY(tl_graph_const(b->g, bytes, len, &n.data, b->diag));
    return add_one(b, &n, type, TL_GC_TENSOR, 0, out);
}

tl_status tl_gbuild_alias(tl_gbuild *b, tl_gval v, tl_gval *out)
{
    tl_gnew n = {.kind = TL_G_ALIAS, .in = &v, .nin = 1};
    uint64_t seen = b->no_grad > 0
                        ? 0
                        : b->values.items[v].seen & b->visible;

    TL_TRY(add_one(b, &n, tl_gbuild_type(b, v), TL_GC_TENSOR, seen, out));
    b->values.items[*out].lowered = b->values.items[v].lowered;
    return TL_OK;
}

tl_status tl_gbuild_num(tl_gbuild *b, tl_gclass cls, tl_gscalar value,
                        tl_gval *out)
{
    tl_gattrs at = {.axis = 0};
    tl_gnew n = {.kind = TL_G_NUM};

    at.i[0] = value.i;
    TL_TRY(tl_graph_attrs(b->g, &at, NULL, NULL, &n.attrs, b->diag));
    return add_one(b, &n, NULL, cls, 0, out);
}

tl_status tl_gbuild_size(tl_gbuild *b, tl_dim d, tl_gval *out)
{
    tl_gattrs at = {.ndims = 1};
    tl_gnew n = {.kind = TL_G_SIZE};
    tl_attrs kept;
    uint32_t size;

    TL_TRY(tl_gbuild_dim(b, d, &size));
    TL_TRY(tl_graph_attrs(b->g, &at, &size, NULL, &n.attrs, b->diag));
    tl_attrs_init(&kept);
    kept.ndims = 1;
    kept.dims[0] = d;
    TL_TRY(tl_gbuild_keep_attrs(b, &kept));
    TL_TRY(add_one(b, &n, NULL, TL_GC_INT, 0, out));
    b->values.items[*out].late = tl_gbuild_is_late(b, d);
    return TL_OK;
}

tl_status tl_gbuild_host(tl_gbuild *b, tl_ghost op, tl_gclass cls,
                         const tl_gval *in, int nin, tl_gval *out)
{
    tl_gnew n = {.kind = TL_G_HOST, .op = (uint16_t)op, .in = in,
                 .nin = (uint32_t)nin};
    bool late = false;

    for (int i = 0; i < nin; i++) {
        late = late || b->values.items[in[i]].late;
    }
    TL_TRY(add_one(b, &n, NULL, cls, 0, out));
    b->values.items[*out].late = late;
    return TL_OK;
}

tl_status tl_gbuild_scalar(tl_gbuild *b, tl_gval v, tl_dtype dtype,
                           tl_gval *out)
{
    tl_gnew n = {.kind = TL_G_SCALAR, .in = &v, .nin = 1};
    tl_ttype type = {.dtype = dtype};

    return add_one(b, &n, &type, TL_GC_TENSOR, 0, out);
}

tl_status tl_gbuild_item(tl_gbuild *b, tl_gval v, tl_gclass cls, tl_gval *out)
{
    tl_gnew n = {.kind = TL_G_ITEM, .in = &v, .nin = 1};

    TL_TRY(add_one(b, &n, NULL, cls, 0, out));
    b->values.items[*out].late = true;
    return TL_OK;
}

tl_status tl_gbuild_effect(tl_gbuild *b, tl_gval condition,
                           const tl_gval *shown, uint32_t nshown,
                           const tl_gval *cells, uint32_t ncells,
                           uint32_t key)
{
    tl_greport report = {nshown, ncells, key};
    uint32_t has = condition != 0, nin = has + nshown + ncells;
    tl_gval *in = tl_calloc(nin > 0 ? nin : 1, sizeof(*in)), unused;
    tl_gnew n = {.kind = has ? TL_G_ASSERT : TL_G_HOSTCALL,
                 .flags = TL_GF_EFFECT, .in = in, .nin = nin,
                 .data = (uint32_t)b->g->reports.len, .owner = b->owner,
                 .span = b->span};
    tl_status st;

    if (!in) {
        return tl_fail_memory(b->diag, "an effect", nin * sizeof(*in));
    }
    in[0] = condition;
    for (uint32_t i = 0; i < nshown; i++) {
        in[has + i] = shown[i];
    }
    for (uint32_t i = 0; i < ncells; i++) {
        in[has + nshown + i] = cells[i];
    }
    st = tl_graph_add(b->g, &n, &unused, b->diag);
    tl_free(in);
    if (st != TL_OK) {
        return st;
    }
    return TL_VEC_PUSH(&b->g->reports, report, b->diag);
}

/* ---- regions ------------------------------------------------------------ */

tl_status tl_gbuild_region_open(tl_gbuild *b, const tl_ttype *const *types,
                                const tl_gclass *cls, uint32_t n,
                                uint32_t *region, tl_gval *first)
{
    tl_gvalue *params = tl_calloc(n + 1, sizeof(*params));
    tl_status st = TL_OK;

    if (!params) {
        return tl_fail_memory(b->diag, "a region", n * sizeof(*params));
    }
    for (uint32_t i = 0; i < n && st == TL_OK; i++) {
        params[i].cls = (uint8_t)cls[i];
        if (types[i]) {
            st = tl_gbuild_value(b, types[i], &params[i]);
        }
    }
    *first = (tl_gval)b->g->values.len;
    if (st == TL_OK) {
        st = tl_graph_region_open(b->g, params, n, region, b->diag);
    }
    tl_free(params);
    for (uint32_t i = 0; i < n && st == TL_OK; i++) {
        bool real = types[i] && tl_dtype_is_float(types[i]->dtype);

        st = tl_gbuild_note(b, *first + i, types[i],
                            real && b->no_grad == 0 ? b->visible : 0);
        if (st == TL_OK) {
            b->values.items[*first + i].late = !types[i];
        }
    }
    if (st == TL_OK) {
        b->owner = *region;
    }
    return st;
}

tl_status tl_gbuild_region_close(tl_gbuild *b, uint32_t region,
                                 uint32_t around)
{
    b->owner = around;
    return tl_graph_region_close(b->g, region, NULL, 0, b->diag);
}

tl_status tl_gbuild_region_results(tl_gbuild *b, uint32_t region,
                                   const tl_gval *v, uint32_t n)
{
    return tl_graph_region_results(b->g, region, v, n, b->diag);
}

/* Type of the stack of `v`: one more axis in front. */
static tl_status stack_type(tl_gbuild *b, tl_gval v, tl_dim turns,
                            tl_ttype *out)
{
    const tl_ttype *t = tl_gbuild_type(b, v);

    if (t->shape.rank == TL_MAX_RANK) {
        return tl_fail(b->diag, TL_E0602, "a value of rank %d in a loop",
                       TL_MAX_RANK);
    }
    out->dtype = t->dtype;
    out->shape.rank = t->shape.rank + 1;
    out->shape.dim[0] = turns;
    memcpy(out->shape.dim + 1, t->shape.dim,
           (size_t)t->shape.rank * sizeof(tl_dim));
    return TL_OK;
}

/* The count of turns of the node that comes next, as a size. */
static tl_status own_count(tl_gbuild *b, tl_dim *out)
{
    tl_gval count = (tl_gval)b->g->values.len;
    tl_gatom atom = {.kind = TL_GA_INT, .index = count};

    TL_TRY(tl_gbuild_note(b, count, NULL, 0));
    b->values.items[count].late = true;
    return tl_gbuild_atom(b, atom, 0, 1, out);
}

/* The blocks that see result k of a node: those that see what its regions
 * give, or, of a loop, any. */
static uint64_t seen_result(const tl_gbuild *b, const tl_gflow *f,
                            tl_gval first, uint32_t k)
{
    const tl_graph *g = b->g;
    const tl_gnode *n = &g->nodes.items[g->values.items[first].node];
    uint64_t seen = 0;

    if (b->no_grad > 0 || f->kind == TL_G_LOOP) {
        return b->no_grad > 0 ? 0 : b->visible;
    }
    for (uint32_t r = n->region; r < n->region + n->nregions; r++) {
        tl_gval v = g->operands.items[g->regions.items[r].results + k];

        seen |= b->values.items[v].seen;
    }
    return seen & b->visible;
}

static tl_status note_flow(tl_gbuild *b, const tl_gflow *f,
                           const tl_ttype *stacks, tl_gval first,
                           tl_gval *out)
{
    uint32_t extra = f->kind == TL_G_LOOP, total = f->n + extra + f->nstacked;
    uint32_t kept = tl_gbuild_keeps_turns(b) ? f->n : 0;

    for (uint32_t i = 0; i < total; i++) {
        const tl_ttype *type =
            i < extra            ? NULL
            : i < extra + f->n ? tl_gbuild_type(b, f->like[i - extra])
                                 : &stacks[i - extra - f->n];
        bool real = type && tl_dtype_is_float(type->dtype) &&
                    i < extra + f->n;

        out[i] = first + i;
        TL_TRY(tl_gbuild_note(
            b, out[i], type,
            real ? seen_result(b, f, first, i - extra) : 0));
        if (i >= extra + f->n + kept && b->no_grad == 0) {
            b->values.items[out[i]].seen =
                b->values.items[f->stacked[i - extra - f->n]].seen &
                b->visible;
        }
        b->values.items[out[i]].late = !type;
        if (type) {
            tl_gval of = i < extra + f->n ? f->like[i - extra]
                                          : f->stacked[i - extra - f->n];

            b->values.items[out[i]].lowered = b->values.items[of].lowered;
            b->values.items[out[i]].weight = i < extra + f->n &&
                                             b->values.items[of].weight;
        }
    }
    return TL_OK;
}

tl_status tl_gbuild_flow(tl_gbuild *b, const tl_gflow *f, tl_gval *out)
{
    uint32_t extra = f->kind == TL_G_LOOP, total = f->n + extra + f->nstacked;
    tl_gvalue *values = tl_calloc(total + 1, sizeof(*values));
    tl_ttype *stacks = tl_calloc(f->nstacked + 1, sizeof(*stacks));
    tl_gnew node = {.kind = f->kind, .in = f->in, .nin = f->nin,
                    .nout = total, .out = values, .region = f->region,
                    .nregions = f->nregions, .owner = b->owner,
                    .span = b->span, .data = f->n};
    tl_dim turns = f->turns ? *f->turns : tl_dim_num(0);
    tl_gval first;
    tl_status st = TL_OK;

    if (!values || !stacks) {
        st = tl_fail_memory(b->diag, "a region", total * sizeof(*values));
        goto out;
    }
    if (f->nstacked > 0 && !f->turns) {
        TL_GOTO(st, own_count(b, &turns));
    }
    values[0].cls = TL_GC_INT;
    for (uint32_t i = 0; i < f->n; i++) {
        values[extra + i] = b->g->values.items[f->like[i]];
    }
    for (uint32_t i = 0; i < f->nstacked; i++) {
        TL_GOTO(st, stack_type(b, f->stacked[i], turns, &stacks[i]));
        TL_GOTO(st, tl_gbuild_value(b, &stacks[i], &values[extra + f->n + i]));
    }
    TL_GOTO(st, tl_gbuild_keep_attrs(b, NULL));
    TL_GOTO(st, tl_graph_add(b->g, &node, &first, b->diag));
    st = note_flow(b, f, stacks, first, out);
out:
    tl_free(values);
    tl_free(stacks);
    return st;
}

/* ---- custom gradients --------------------------------------------------- */

tl_status tl_gbuild_custom(tl_gbuild *b, const tl_gval *in, uint32_t nin,
                           const tl_gval *v, uint32_t nout,
                           const tl_gcustom_ops *ops, void *data,
                           tl_gval *out)
{
    tl_gcustom c = {.node = (uint32_t)b->g->nodes.len, .nin = nin,
                    .nout = nout, .ops = ops, .data = data};
    tl_gval *kept = tl_arena_array(&b->arena, nin + 1, sizeof(*kept));
    uint64_t seen = 0;
    tl_status st = TL_OK;

    if (!kept) {
        st = tl_fail_memory(b->diag, "a custom gradient", nin * sizeof(*in));
    }
    for (uint32_t i = 0; i < nin && st == TL_OK; i++) {
        kept[i] = in[i];
        seen |= b->values.items[in[i]].seen;
    }
    c.in = kept;
    seen = b->no_grad > 0 ? 0 : seen & b->visible;
    for (uint32_t i = 0; i < nout && st == TL_OK; i++) {
        st = tl_gbuild_alias(b, v[i], &out[i]);
        if (st == TL_OK) {
            bool real = tl_dtype_is_float(tl_gbuild_type(b, v[i])->dtype);

            b->values.items[out[i]].seen = real ? seen : 0;
        }
    }
    if (st == TL_OK) {
        st = TL_VEC_PUSH(&b->customs, c, b->diag);
    }
    if (st != TL_OK && ops->free_data) {
        ops->free_data(data);
    }
    return st;
}

/* ---- life --------------------------------------------------------------- */

static tl_status emit_apply(tl_emit *e, tl_op op, const tl_node *in, int nin,
                            const tl_attrs *at, tl_node *out)
{
    tl_gval few[TL_MAX_INPUTS] = {0}, *vin = few, vout[TL_MAX_OUTPUTS];
    tl_gbuild *b = e->impl;
    tl_status st;

    if (nin > TL_MAX_INPUTS) {
        vin = tl_calloc((size_t)nin, sizeof(*vin));
        if (!vin) {
            return tl_fail_memory(b->diag, "operands",
                                  (size_t)nin * sizeof(*vin));
        }
    }
    for (int i = 0; i < nin; i++) {
        vin[i] = TL_GVAL(in[i]);
    }
    st = tl_gbuild_apply(b, op, vin, nin, at, vout);
    for (int i = 0; st == TL_OK && i < tl_op_get(op)->nout; i++) {
        out[i] = TL_GNODE(vout[i]);
    }
    if (vin != few) {
        tl_free(vin);
    }
    return st;
}

static const tl_ttype *emit_type(tl_emit *e, tl_node node)
{
    return tl_gbuild_type(e->impl, TL_GVAL(node));
}

tl_status tl_gbuild_init(tl_gbuild *b, tl_diag *diag)
{
    memset(b, 0, sizeof(*b));
    b->diag = diag;
    tl_arena_init(&b->arena);
    tl_map_init(&b->sizes);
    tl_map_init(&b->numbers);
    b->emit = (tl_emit){emit_apply, emit_type, &b->infer, b};
    TL_TRY(tl_graph_new(&b->g, diag));
    TL_TRY(tl_dims_new(&b->dims, diag));
    b->infer = (tl_infer){.dims = b->dims, .diag = diag,
                          .guard = guard_equal, .guard_le = guard_le,
                          .pin = pin_size, .guard_arg = b};
    return TL_OK;
}

void tl_gbuild_fini(tl_gbuild *b)
{
    for (size_t i = 0; i < b->customs.len; i++) {
        if (b->customs.items[i].ops->free_data) {
            b->customs.items[i].ops->free_data(b->customs.items[i].data);
        }
    }
    tl_graph_free(b->g);
    tl_dims_free(b->dims);
    tl_map_fini(&b->sizes);
    tl_map_fini(&b->numbers);
    tl_free(b->values.items);
    tl_free(b->attrs.items);
    tl_free(b->atoms.items);
    tl_free(b->hints.items);
    tl_free(b->late.items);
    tl_free(b->customs.items);
    tl_arena_fini(&b->arena);
    memset(b, 0, sizeof(*b));
}
