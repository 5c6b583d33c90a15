/* graph_types.c - do operands and results of a node agree, by kind?
 *
 * Operations are asked through tl_op_infer, with sizes as polynomials and the
 * facts of the graph's guards.  Facts that a trace had and no guard states
 * (declared sizes) are not known here: where sizes are symbols, a rule that
 * fails decides nothing, and sizes are compared where both are numbers. */
#include <string.h>

#include "compiler/graph_check_impl.h"
#include "runtime/base/mem.h"

static const tl_gvalue *operand(const tl_gcheck *c, const tl_gnode *n,
                                uint32_t k)
{
    return &c->g->values.items[tl_goperand(c->g, n, k)];
}

static const tl_gvalue *result(const tl_gcheck *c, const tl_gnode *n,
                               uint32_t k)
{
    return &c->g->values.items[n->out + k];
}

/* So many operands, results and regions? */
static tl_status counts(tl_gcheck *c, const tl_gnode *n, uint32_t nin,
                        uint32_t nout, uint32_t nregions)
{
    if (n->nin != nin || n->nout != nout || n->nregions != nregions) {
        return TL_GBAD(c, "%u operands, %u results, %u regions; expected "
                       "%u, %u, %u", n->nin, n->nout, n->nregions, nin, nout,
                       nregions);
    }
    return TL_OK;
}

static tl_status class_is(tl_gcheck *c, const tl_gvalue *v, tl_gclass cls)
{
    return v->cls == cls ? TL_OK
                         : TL_GBAD(c, "a value of class %u, expected %u",
                                   v->cls, cls);
}

/* ---- types -------------------------------------------------------------- */

static bool is_number(const tl_gcheck *c, uint32_t size, int64_t *out)
{
    return tl_graph_size_is_num(c->g, size, out);
}

/* Not numbers that differ? */
static bool sizes_agree(const tl_gcheck *c, uint32_t a, uint32_t b)
{
    int64_t x, y;

    return a == b || !is_number(c, a, &x) || !is_number(c, b, &y) || x == y;
}

/* One type, as far as numbers tell?  `skip`: leading axes of b. */
static bool types_agree(const tl_gcheck *c, const tl_gvalue *a,
                        const tl_gvalue *b, uint32_t skip)
{
    if (a->cls != b->cls || a->dtype != b->dtype ||
        a->rank + skip != b->rank) {
        return false;
    }
    for (uint32_t k = 0; k < a->rank; k++) {
        if (!sizes_agree(c, c->g->sizes.items[a->shape + k],
                         c->g->sizes.items[b->shape + skip + k])) {
            return false;
        }
    }
    return true;
}

static tl_status same(tl_gcheck *c, const tl_gvalue *a, const tl_gvalue *b)
{
    return types_agree(c, a, b, 0) ? TL_OK
                                   : TL_GBAD(c, "types that do not agree");
}

static void get_type(const tl_gcheck *c, const tl_gvalue *v, tl_ttype *out)
{
    memset(out, 0, sizeof(*out));
    out->dtype = (tl_dtype)v->dtype;
    out->shape.rank = v->rank;
    for (uint32_t k = 0; k < v->rank; k++) {
        out->shape.dim[k] = c->dim[c->g->sizes.items[v->shape + k]];
    }
}

static void get_attrs(const tl_gcheck *c, const tl_gnode *n, tl_attrs *out)
{
    const tl_gattrs *at = &c->g->attrs.items[n->attrs];

    memset(out, 0, sizeof(*out));
    out->dtype = at->dtype;
    out->keep = at->keep != 0;
    out->flag = at->flag != 0;
    out->axis = at->axis;
    out->axes = at->axes;
    out->ndims = at->ndims;
    memcpy(out->i, at->i, sizeof(out->i));
    memcpy(out->f, at->f, sizeof(out->f));
    for (uint32_t k = 0; k < at->ndims; k++) {
        out->dims[k] = c->dim[c->g->sizes.items[at->dims + k]];
    }
}

/* ---- operations --------------------------------------------------------- */

static bool has_bit(uint32_t set, uint32_t i)
{
    return i < 32 ? ((set >> i) & 1) != 0 : set == UINT32_MAX;
}

/* Operands that have been joined and cast (runtime/apply.c). */
static uint32_t joined_operands(const tl_op_info *info, uint32_t nin)
{
    switch (info->cls) {
    case TL_CLASS_MAP:
    case TL_CLASS_CMP:
        return UINT32_MAX & ~info->bool_in;
    case TL_CLASS_RED:
        return 1;
    case TL_CLASS_KERN:
        return info->join_in != 0 ? info->join_in
               : nin == 1 && info->types != TL_TYPES_ANY ? 1
                                                         : 0;
    default:
        return 0;
    }
}

static tl_status check_dtypes(tl_gcheck *c, const tl_gnode *n)
{
    const tl_op_info *info = tl_op_get((tl_op)n->op);
    uint32_t set = joined_operands(info, n->nin);
    int have = -1;
    tl_dtype want;

    for (uint32_t k = 0; k < n->nin; k++) {
        const tl_gvalue *v = operand(c, n, k);

        TL_TRY(class_is(c, v, TL_GC_TENSOR));
        if (!has_bit(set, k)) {
            continue;
        }
        if (have < 0) {
            have = v->dtype;
            if (tl_op_compute_dtype((tl_op)n->op, (tl_dtype)have, &want,
                                    &c->quiet) != TL_OK ||
                want != (tl_dtype)have) {
                return TL_GBAD(c, "`%s` does not compute in %s", info->name,
                               tl_dtype_name((tl_dtype)have));
            }
        } else if (v->dtype != have) {
            return TL_GBAD(c, "operands of `%s` are not cast", info->name);
        }
    }
    return TL_OK;
}

static bool all_numbers(const tl_dim *dim, int n)
{
    for (int k = 0; k < n; k++) {
        if (!tl_dim_is_num(dim[k])) {
            return false;
        }
    }
    return true;
}

/* What the rules take for granted of attributes. */
static bool attrs_sound(tl_op op, const tl_ttype *in, const tl_attrs *at)
{
    int rank = in[0].shape.rank;

    if (at->axis < 0 || at->axis >= TL_MAX_RANK) {
        return false;
    }
    if (op == TL_OP_slice || op == TL_OP_slice_put) {
        if (at->ndims != 3 * rank) {
            return false;
        }
        for (int k = 2; k < at->ndims; k += 3) {
            if (!tl_dim_is_num(at->dims[k]) ||
                tl_dim_value(at->dims[k]) == 0) {
                return false;
            }
        }
        return true;
    }
    return op == TL_OP_permute ? all_numbers(at->dims, at->ndims)
                               : at->ndims <= TL_MAX_RANK;
}

static tl_status check_result(tl_gcheck *c, const tl_gvalue *v,
                              const tl_ttype *want)
{
    bool ok = v->cls == TL_GC_TENSOR && v->dtype == want->dtype &&
              v->rank == want->shape.rank;

    for (int k = 0; ok && k < want->shape.rank; k++) {
        tl_dim have = c->dim[c->g->sizes.items[v->shape + (uint32_t)k]];
        tl_dim d = want->shape.dim[k];

        ok = !tl_dim_is_num(have) || !tl_dim_is_num(d) ||
             tl_dim_value(d) < 0 || // by data
             tl_dim_same(have, d);
    }
    return ok ? TL_OK
              : TL_GBAD(c, "its result is not %s", tl_ttype_str(want).s);
}

static tl_status infer(tl_gcheck *c, const tl_gnode *n, const tl_ttype *in)
{
    tl_infer cx = {.dims = c->dims, .diag = &c->quiet};
    tl_ttype out[TL_MAX_OUTPUTS];
    tl_attrs at;
    bool numbers;
    tl_status st;

    get_attrs(c, n, &at);
    if (!attrs_sound((tl_op)n->op, in, &at)) {
        return TL_GBAD(c, "attributes of `%s`",
                       tl_op_get((tl_op)n->op)->name);
    }
    numbers = all_numbers(at.dims, at.ndims);
    for (uint32_t k = 0; k < n->nin; k++) {
        numbers = numbers && all_numbers(in[k].shape.dim, in[k].shape.rank);
    }
    memset(out, 0, sizeof(out));
    st = tl_op_infer(&cx, (tl_op)n->op, in, (int)n->nin, &at, out);
    if (st == TL_ERR_MEMORY) {
        return tl_fail_memory(c->diag, "a check", 0);
    }
    if (st != TL_OK) {
        return numbers ? TL_GBAD(c, "its shape rule refuses it") : TL_OK;
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        TL_TRY(check_result(c, result(c, n, k), &out[k]));
    }
    return TL_OK;
}

static tl_status check_op(tl_gcheck *c, const tl_gnode *n)
{
    const tl_op_info *info = tl_op_get((tl_op)n->op);
    tl_ttype *in;
    tl_status st;

    TL_TRY(counts(c, n, info->nin < 0 ? n->nin : (uint32_t)info->nin,
                  (uint32_t)info->nout, 0));
    if (n->nin == 0 && info->nin != 0) {
        return TL_GBAD(c, "`%s` of nothing", info->name);
    }
    TL_TRY(check_dtypes(c, n));
    in = tl_calloc(n->nin + 1, sizeof(*in));
    if (!in) {
        return tl_fail_memory(c->diag, "a check", n->nin * sizeof(*in));
    }
    for (uint32_t k = 0; k < n->nin; k++) {
        get_type(c, operand(c, n, k), &in[k]);
    }
    st = infer(c, n, in);
    tl_free(in);
    return st;
}

/* Operands of the row, its result and the upstream gradient. */
static tl_status check_mapgrad(tl_gcheck *c, const tl_gnode *n)
{
    const tl_op_info *info = tl_op_get((tl_op)n->op);

    if (info->cls != TL_CLASS_MAP || n->which >= info->nin) {
        return TL_GBAD(c, "`%s` has no such gradient", info->name);
    }
    TL_TRY(counts(c, n, (uint32_t)info->nin + 2, 1, 0));
    if (tl_goperand(c->g, n, n->nin - 1) == 0) {
        return TL_GBAD(c, "no upstream gradient");
    }
    for (uint32_t k = 0; k < n->nin; k++) {
        const tl_gvalue *v = operand(c, n, k);

        if (tl_goperand(c->g, n, k) == 0) {
            continue;
        }
        TL_TRY(class_is(c, v, TL_GC_TENSOR));
        if (v->dtype != result(c, n, 0)->dtype &&
            !has_bit(info->bool_in, k)) {
            return TL_GBAD(c, "operands of a gradient are not cast");
        }
    }
    return same(c, operand(c, n, n->nin - 1), result(c, n, 0));
}

/* ---- sources ------------------------------------------------------------ */

static tl_status check_input(tl_gcheck *c, const tl_gnode *n)
{
    TL_TRY(counts(c, n, 0, 1, 0));
    if (n->data >= c->g->inputs.len ||
        c->g->inputs.items[n->data] != n->out || n->owner != 0) {
        return TL_GBAD(c, "it is not input %u", n->data);
    }
    return TL_OK;
}

static tl_status check_const(tl_gcheck *c, const tl_gnode *n)
{
    const tl_gvalue *v;
    int64_t numel = 1, size;

    TL_TRY(counts(c, n, 0, 1, 0));
    v = result(c, n, 0);
    TL_TRY(class_is(c, v, TL_GC_TENSOR));
    for (uint32_t k = 0; k < v->rank; k++) {
        if (!is_number(c, c->g->sizes.items[v->shape + k], &size) ||
            size < 0 || __builtin_mul_overflow(numel, size, &numel)) {
            return TL_GBAD(c, "a constant without known sizes");
        }
    }
    if (n->data == 0 || n->data >= c->g->consts.len ||
        __builtin_mul_overflow(numel,
                               (int64_t)tl_dtype_size((tl_dtype)v->dtype),
                               &size) ||
        size != c->g->consts.items[n->data].len ||
        (uint64_t)c->g->consts.items[n->data].bytes + (uint64_t)size >
            c->g->bytes.len) {
        return TL_GBAD(c, "constant %u has other bytes", n->data);
    }
    return TL_OK;
}

/* Nothing but i[0], or dims[0]. */
static bool plain_attrs(const tl_gattrs *at, uint32_t ndims)
{
    tl_gattrs want = {.ndims = (uint16_t)ndims, .dims = at->dims};

    want.i[0] = ndims == 0 ? at->i[0] : 0;
    return memcmp(at, &want, sizeof(want)) == 0;
}

static tl_status check_num(tl_gcheck *c, const tl_gnode *n)
{
    const tl_gattrs *at = &c->g->attrs.items[n->attrs];
    bool size = n->kind == TL_G_SIZE;
    const tl_gvalue *v;

    TL_TRY(counts(c, n, 0, 1, 0));
    v = result(c, n, 0);
    if (n->attrs == 0 || !plain_attrs(at, size ? 1 : 0)) {
        return TL_GBAD(c, "attributes of a host constant");
    }
    if (size ? v->cls != TL_GC_INT : v->cls == TL_GC_TENSOR) {
        return TL_GBAD(c, "a host constant of class %u", v->cls);
    }
    return v->cls != TL_GC_BOOL || (uint64_t)at->i[0] <= 1
               ? TL_OK
               : TL_GBAD(c, "a bool that is %lld", (long long)at->i[0]);
}

static tl_status check_alias(tl_gcheck *c, const tl_gnode *n)
{
    TL_TRY(counts(c, n, 1, 1, 0));
    return same(c, operand(c, n, 0), result(c, n, 0));
}

static tl_status check_scalar(tl_gcheck *c, const tl_gnode *n)
{
    bool item = n->kind == TL_G_ITEM;
    const tl_gvalue *tensor, *host;

    TL_TRY(counts(c, n, 1, 1, 0));
    tensor = item ? operand(c, n, 0) : result(c, n, 0);
    host = item ? result(c, n, 0) : operand(c, n, 0);
    if (tensor->cls != TL_GC_TENSOR || host->cls == TL_GC_TENSOR ||
        (!item && tensor->rank != 0)) {
        return TL_GBAD(c, "a tensor and a host scalar are expected");
    }
    return TL_OK;
}

/* ---- host arithmetic ---------------------------------------------------- */

/* Class of the operands of a row, by the end of its name. */
static tl_gclass host_class(tl_ghost op)
{
    const char *name = tl_ghost_name(op);
    char last = name[strlen(name) - 1];

    return op == TL_H_and || op == TL_H_or || op == TL_H_not ? TL_GC_BOOL
           : last == 'i'                                     ? TL_GC_INT
                                                             : TL_GC_FLOAT;
}

static tl_status check_choose(tl_gcheck *c, const tl_gnode *n)
{
    const tl_gvalue *out = result(c, n, 0);

    TL_TRY(class_is(c, operand(c, n, 0), TL_GC_BOOL));
    TL_TRY(class_is(c, operand(c, n, 1), (tl_gclass)out->cls));
    TL_TRY(class_is(c, operand(c, n, 2), (tl_gclass)out->cls));
    return out->cls != TL_GC_TENSOR ? TL_OK
                                    : TL_GBAD(c, "a choice of tensors");
}

static tl_status check_host(tl_gcheck *c, const tl_gnode *n)
{
    tl_ghost op = (tl_ghost)n->op;
    tl_gclass in = host_class(op), out = in;

    if (op == TL_H_NONE) {
        return TL_GBAD(c, "no arithmetic");
    }
    TL_TRY(counts(c, n, (uint32_t)tl_ghost_inputs(op), 1, 0));
    if (op == TL_H_choose) {
        return check_choose(c, n);
    }
    if (op == TL_H_to_float || op == TL_H_to_int) {
        if (operand(c, n, 0)->cls == TL_GC_TENSOR) {
            return TL_GBAD(c, "a tensor is no host scalar");
        }
        return class_is(c, result(c, n, 0),
                        op == TL_H_to_int ? TL_GC_INT : TL_GC_FLOAT);
    }
    if (op >= TL_H_lt_i && op <= TL_H_ne_f) {
        out = TL_GC_BOOL;
    }
    for (uint32_t k = 0; k < n->nin; k++) {
        TL_TRY(class_is(c, operand(c, n, k), in));
    }
    return class_is(c, result(c, n, 0), out);
}

/* ---- regions ------------------------------------------------------------ */

static const tl_gvalue *region_result(const tl_gcheck *c, const tl_gregion *r,
                                      uint32_t k)
{
    return &c->g->values.items[c->g->operands.items[r->results + k]];
}

static tl_status check_if(tl_gcheck *c, const tl_gnode *n)
{
    TL_TRY(counts(c, n, 1, n->nout, 2));
    TL_TRY(class_is(c, operand(c, n, 0), TL_GC_BOOL));
    for (uint32_t arm = 0; arm < 2; arm++) {
        const tl_gregion *r = &c->g->regions.items[n->region + arm];

        if (r->nparams != 0 || r->nresults != n->nout) {
            return TL_GBAD(c, "an arm with %u parameters and %u results",
                           r->nparams, r->nresults);
        }
        for (uint32_t k = 0; k < n->nout; k++) {
            TL_TRY(same(c, region_result(c, r, k), result(c, n, k)));
        }
    }
    return TL_OK;
}

/* The carried values of a loop are of one type wherever they pass. */
static tl_status check_carried(tl_gcheck *c, const tl_gnode *n,
                               const tl_gregion *body)
{
    for (uint32_t k = 0; k < n->data; k++) {
        const tl_gvalue *v = result(c, n, 1 + k);

        TL_TRY(same(c, operand(c, n, 1 + k), v));
        TL_TRY(same(c, &c->g->values.items[body->params + 1 + k], v));
        TL_TRY(same(c, region_result(c, body, k), v));
        if (n->nregions == 2) {
            const tl_gregion *test = &c->g->regions.items[n->region];

            TL_TRY(same(c, &c->g->values.items[test->params + k], v));
        }
    }
    for (uint32_t k = n->data; k < body->nresults; k++) {
        if (!types_agree(c, region_result(c, body, k), result(c, n, 1 + k),
                         1)) {
            return TL_GBAD(c, "a stack of another type");
        }
    }
    return TL_OK;
}

static tl_status check_loop(tl_gcheck *c, const tl_gnode *n)
{
    const tl_gregion *body, *test = &c->g->regions.items[n->region];

    if (n->nregions < 1 || n->nregions > 2 || n->data >= UINT8_MAX ||
        n->nin != n->data + 1) {
        return TL_GBAD(c, "operands or regions of a loop");
    }
    body = &test[n->nregions - 1];
    if (body->nparams != n->data + 1 || body->nresults < n->data ||
        n->nout != 1 + body->nresults) {
        return TL_GBAD(c, "the body's parameters or results");
    }
    TL_TRY(class_is(c, &c->g->values.items[body->params], TL_GC_INT));
    TL_TRY(class_is(c, result(c, n, 0), TL_GC_INT));
    if (tl_goperand(c->g, n, 0) != 0) {
        TL_TRY(class_is(c, operand(c, n, 0), TL_GC_INT));
    }
    if (n->nregions == 2) {
        if (test->nparams != n->data || test->nresults != 1) {
            return TL_GBAD(c, "the test's parameters or results");
        }
        TL_TRY(class_is(c, region_result(c, test, 0), TL_GC_BOOL));
    }
    return check_carried(c, n, body);
}

/* ---- effects ------------------------------------------------------------ */

static tl_status check_effect(tl_gcheck *c, const tl_gnode *n)
{
    bool assertion = n->kind == TL_G_ASSERT;
    const tl_greport *r = &c->g->reports.items[n->data];

    if (n->data == 0 || n->data >= c->g->reports.len ||
        (uint64_t)r->nshown + r->ncells + assertion != n->nin) {
        return TL_GBAD(c, "report %u", n->data);
    }
    TL_TRY(counts(c, n, n->nin, 0, 0));
    if (assertion) {
        const tl_gvalue *v = operand(c, n, 0);

        if (v->cls != TL_GC_BOOL &&
            (v->cls != TL_GC_TENSOR || v->dtype != TL_bool)) {
            return TL_GBAD(c, "a condition that is no bool");
        }
    }
    return TL_OK;
}

tl_status tl_graph_check_types(tl_gcheck *c, const tl_gnode *n)
{
    bool effect = n->kind == TL_G_ASSERT || n->kind == TL_G_HOSTCALL;

    if (effect != ((n->flags & TL_GF_EFFECT) != 0)) {
        return TL_GBAD(c, "a wrong effect flag");
    }
    switch ((tl_gkind)n->kind) {
    case TL_G_OP:
        return check_op(c, n);
    case TL_G_MAPGRAD:
        return check_mapgrad(c, n);
    case TL_G_INPUT:
        return check_input(c, n);
    case TL_G_CONST:
        return check_const(c, n);
    case TL_G_ALIAS:
        return check_alias(c, n);
    case TL_G_NUM:
    case TL_G_SIZE:
        return check_num(c, n);
    case TL_G_HOST:
        return check_host(c, n);
    case TL_G_SCALAR:
    case TL_G_ITEM:
        return check_scalar(c, n);
    case TL_G_IF:
        return check_if(c, n);
    case TL_G_LOOP:
        return check_loop(c, n);
    case TL_G_ASSERT:
    case TL_G_HOSTCALL:
        return check_effect(c, n);
    case TL_G_NONE:
    case TL_G_KIND_COUNT:
        break;
    }
    return TL_GBAD(c, "no kind");
}
