/* plan_make.c - steps and values of a graph's top level.
 *
 * Layouts come about as in tl_apply: results of kernels are row-major, views
 * are made by tl_view_layout on what they look at, and where the strides do
 * not allow one a row-major copy is made first. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/plan_impl.h"
#include "compiler/plan_region.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/base/vec.h"

typedef struct maker {
    tl_plan *pl;
    const tl_graph *g;
    tl_rt *rt;
    const tl_run *run;
} maker;

tl_status tl_plan_no_memory(tl_rt *rt, size_t bytes)
{
    return tl_fail_memory(rt->diag, "a plan", bytes);
}

/* ---- values ------------------------------------------------------------- */

static size_t rounded(size_t bytes)
{
    return (bytes + TL_PLAN_ALIGN - 1) / TL_PLAN_ALIGN * TL_PLAN_ALIGN;
}

static tl_status buf_new(maker *m, tl_pwhere where, uint32_t index,
                         size_t bytes, uint32_t *out)
{
    tl_pbuf b = {.where = (uint8_t)where,
                 .index = index,
                 .parent = (uint32_t)m->pl->bufs.len,
                 .bytes = rounded(bytes)};

    *out = (uint32_t)m->pl->bufs.len;
    return TL_VEC_PUSH(&m->pl->bufs, b, m->rt->diag);
}

/* A value with this layout in a buffer. */
static tl_status val_new(maker *m, tl_gval value, uint32_t buf,
                         tl_dtype dtype, const tl_layout *l, uint32_t *out)
{
    tl_pval v = {.value = value,
                 .buf = buf,
                 .dtype = (uint8_t)dtype,
                 .rank = (uint8_t)l->rank,
                 .numel = 1,
                 .offset = l->offset,
                 .contiguous = true};
    size_t bytes = (size_t)l->rank * sizeof(int64_t);
    int64_t step = 1;

    v.size = tl_arena_alloc(&m->pl->memory, 2 * bytes + 1);
    if (!v.size) {
        return tl_plan_no_memory(m->rt, 2 * bytes);
    }
    v.stride = v.size + l->rank;
    memcpy(v.size, l->size, bytes);
    memcpy(v.stride, l->stride, bytes);
    for (int i = 0; i < l->rank; i++) {
        v.numel *= l->size[i];
    }
    for (int i = l->rank - 1; i >= 0 && v.numel > 1; i--) {
        v.contiguous = v.contiguous &&
                       (l->size[i] == 1 || l->stride[i] == step);
        step *= l->size[i];
    }
    *out = (uint32_t)m->pl->vals.len;
    return TL_VEC_PUSH(&m->pl->vals, v, m->rt->diag);
}

/* A row-major value with a buffer of its own. */
static tl_status result_new(maker *m, tl_gval value, tl_dtype dtype, int rank,
                            const int64_t *size, uint32_t *out)
{
    tl_layout l;
    size_t bytes = tl_dtype_size(dtype);
    uint32_t buf;

    for (int i = 0; i < rank; i++) {
        if (size[i] < 0 || !tl_mul_size(&bytes, bytes, (size_t)size[i])) {
            m->pl->impossible = true; /* the walk says what is wrong */
            return TL_OK;
        }
    }
    tl_layout_row_major(&l, rank, size);
    TL_TRY(buf_new(m, TL_PB_ARENA, 0, bytes, &buf));
    m->pl->bufs.items[buf].maker = (uint32_t)m->pl->steps.len;
    return val_new(m, value, buf, dtype, &l, out);
}

static void get_layout(const tl_pval *v, tl_layout *out)
{
    size_t bytes = (size_t)v->rank * sizeof(int64_t);

    out->rank = v->rank;
    out->offset = v->offset;
    memcpy(out->size, v->size, bytes);
    memcpy(out->stride, v->stride, bytes);
}

static bool same_layout(const tl_layout *l, const tl_pval *v)
{
    size_t bytes = (size_t)v->rank * sizeof(int64_t);

    return l->rank == v->rank && l->offset == v->offset &&
           memcmp(l->size, v->size, bytes) == 0 &&
           memcmp(l->stride, v->stride, bytes) == 0;
}

static bool is_tensor(const maker *m, tl_gval v)
{
    return v != 0 && m->g->values.items[v].cls == TL_GC_TENSOR;
}

/* ---- steps -------------------------------------------------------------- */

static tl_status ref_push(maker *m, uint32_t v)
{
    return TL_VEC_PUSH(&m->pl->refs, v, m->rt->diag);
}

/* Does a node do something outside, itself or in a region? */
static bool has_effects(const tl_graph *g, const tl_gnode *n)
{
    if (n->kind == TL_G_ASSERT || n->kind == TL_G_HOSTCALL) {
        return true;
    }
    for (uint32_t i = 0; i < n->nregions; i++) {
        const tl_gregion *r = &g->regions.items[n->region + i];

        for (uint32_t k = r->first; k < r->last; k++) {
            uint8_t kind = g->nodes.items[k].kind;

            if (kind == TL_G_ASSERT || kind == TL_G_HOSTCALL) {
                return true;
            }
        }
    }
    return false;
}

/* Begin a step for node n: its tensor operands from `from` on. */
static tl_status step_begin(maker *m, tl_pstep *s, tl_pstep_kind kind,
                            uint32_t n, uint32_t from)
{
    const tl_gnode *node = &m->g->nodes.items[n];

    *s = (tl_pstep){.kind = (uint8_t)kind,
                    .which = node->which,
                    .op = node->op,
                    .node = n,
                    .in = (uint32_t)m->pl->refs.len};
    s->effects = has_effects(m->g, node);
    s->binds = m->g->attrs.items[node->attrs].nbinds > 0;
    for (uint32_t k = from; k < node->nin; k++) {
        tl_gval v = tl_goperand(m->g, node, k);

        TL_TRY(ref_push(m, is_tensor(m, v) ? m->pl->val_of[v] : 0));
        s->nin++;
    }
    return TL_OK;
}

/* Its results, one value for each tensor result of the node, and push it. */
static tl_status step_end(maker *m, tl_pstep *s)
{
    const tl_gnode *node = &m->g->nodes.items[s->node];
    uint32_t first = (uint32_t)m->pl->vals.len;

    for (uint32_t k = 0; k < node->nout; k++) {
        tl_gval v = node->out + k;
        const tl_gvalue *type = &m->g->values.items[v];
        int64_t size[TL_MAX_RANK];

        if (type->cls != TL_GC_TENSOR) {
            m->pl->maker_of[v] = (uint32_t)m->pl->steps.len;
            continue;
        }
        TL_TRY(tl_gvalue_sizes(m->g, v, m->pl->p->env.atom, size,
                               m->rt->diag));
        TL_TRY(result_new(m, v, (tl_dtype)type->dtype, type->rank, size,
                          &m->pl->val_of[v]));
        if (m->pl->impossible) {
            return TL_OK;
        }
        s->nout++;
    }
    s->out = (uint32_t)m->pl->refs.len;
    for (uint32_t k = 0; k < s->nout; k++) {
        TL_TRY(ref_push(m, first + k));
    }
    return TL_VEC_PUSH(&m->pl->steps, *s, m->rt->diag);
}

static tl_status add_step(maker *m, tl_pstep_kind kind, uint32_t n,
                          uint32_t from)
{
    tl_pstep s;

    TL_TRY(step_begin(m, &s, kind, n, from));
    return step_end(m, &s);
}

/* A row-major copy of value x, for node n. */
static tl_status add_copy(maker *m, uint32_t n, uint32_t x, uint32_t *out)
{
    tl_pval v = m->pl->vals.items[x];
    tl_pstep s = {.kind = TL_PS_KERNEL,
                  .op = TL_OP_copy,
                  .node = n,
                  .copy = true,
                  .in = (uint32_t)m->pl->refs.len,
                  .nin = 1,
                  .nout = 1};

    TL_TRY(ref_push(m, x));
    TL_TRY(result_new(m, 0, (tl_dtype)v.dtype, v.rank, v.size, out));
    if (m->pl->impossible) {
        return TL_OK;
    }
    s.out = (uint32_t)m->pl->refs.len;
    TL_TRY(ref_push(m, *out));
    m->pl->copies++;
    return TL_VEC_PUSH(&m->pl->steps, s, m->rt->diag);
}

/* ---- kinds of nodes ----------------------------------------------------- */

static tl_status add_view(maker *m, uint32_t n)
{
    const tl_gnode *node = &m->g->nodes.items[n];
    uint32_t x = m->pl->val_of[tl_goperand(m->g, node, 0)];
    tl_layout from, to;
    const tl_attrs *at;
    tl_attrs storage;

    if (m->g->attrs.items[node->attrs].nbinds > 0) {
        m->pl->impossible = true;
        return TL_OK;
    }
    TL_TRY(tl_gnode_attrs(m->g, node, &m->pl->p->env, &storage, &at,
                          m->rt->diag));
    get_layout(&m->pl->vals.items[x], &from);
    if (!tl_view_layout((tl_op)node->op, at, &from, &to)) {
        TL_TRY(add_copy(m, n, x, &x));
        if (m->pl->impossible) {
            return TL_OK;
        }
        get_layout(&m->pl->vals.items[x], &from);
        m->pl->impossible = !tl_view_layout((tl_op)node->op, at, &from, &to);
    }
    if (same_layout(&to, &m->pl->vals.items[x])) {
        m->pl->val_of[node->out] = x;
        return TL_OK;
    }
    return val_new(m, node->out, m->pl->vals.items[x].buf,
                   (tl_dtype)m->pl->vals.items[x].dtype, &to,
                   &m->pl->val_of[node->out]);
}

static tl_status add_op(maker *m, uint32_t n)
{
    const tl_gnode *node = &m->g->nodes.items[n];

    if (tl_op_get((tl_op)node->op)->cls == TL_CLASS_VIEW) {
        return add_view(m, n);
    }
    if (node->op == TL_OP_cast) {
        uint32_t x = m->pl->val_of[tl_goperand(m->g, node, 0)];

        if (m->pl->vals.items[x].dtype ==
            m->g->values.items[node->out].dtype) {
            m->pl->val_of[node->out] = x;
            return TL_OK;
        }
    }
    return add_step(m, TL_PS_KERNEL, n, 0);
}

static tl_status add_input(maker *m, uint32_t n)
{
    const tl_gnode *node = &m->g->nodes.items[n];
    const tl_gvalue *type = &m->g->values.items[node->out];
    const tl_tensor *t;
    tl_layout l;
    uint32_t buf;

    if (type->cls != TL_GC_TENSOR) {
        return TL_OK;
    }
    t = m->run->tensors[node->data];
    if (t->dtype != (tl_dtype)type->dtype || t->rank != type->rank) {
        m->pl->impossible = true;
        return TL_OK;
    }
    tl_layout_row_major(&l, t->rank, t->size);
    if (!tl_tensor_contiguous(t)) {
        memcpy(l.stride, t->stride, (size_t)t->rank * sizeof(*t->stride));
    }
    TL_TRY(buf_new(m, TL_PB_INPUT, node->data,
                   (size_t)t->numel * tl_dtype_size(t->dtype), &buf));
    return val_new(m, node->out, buf, t->dtype, &l,
                   &m->pl->val_of[node->out]);
}

static tl_status add_const(maker *m, uint32_t n)
{
    const tl_tensor *t = m->pl->p->consts[n];
    tl_gval v = m->g->nodes.items[n].out;
    tl_layout l;
    uint32_t buf;

    tl_layout_row_major(&l, t->rank, t->size);
    TL_TRY(buf_new(m, TL_PB_CONST, n, 0, &buf));
    return val_new(m, v, buf, t->dtype, &l, &m->pl->val_of[v]);
}

/* A branch or loop: operands, then what its regions take from outside. */
static tl_status add_region(maker *m, uint32_t n)
{
    tl_pstep s;
    tl_gval *captured = NULL;
    uint32_t count = 0;
    bool sure;
    tl_status st;

    TL_TRY(tl_region_is_row_major(m->pl, n, &sure, m->rt->diag));
    if (!sure) {
        m->pl->impossible = true;
        return TL_OK;
    }
    TL_TRY(step_begin(m, &s, TL_PS_REGION, n, 0));
    TL_GOTO(st, tl_region_captured(m->pl->p, n, &captured, &count,
                                   m->rt->diag));
    for (uint32_t k = 0; k < count; k++) {
        TL_GOTO(st, ref_push(m, m->pl->val_of[captured[k]]));
        s.nin++;
    }
    s.captured = (uint32_t)m->pl->refs.len;
    for (uint32_t k = 0; k < count; k++) {
        TL_GOTO(st, ref_push(m, captured[k]));
    }
    st = step_end(m, &s);
out:
    tl_free(captured);
    return st;
}

static tl_status add_node(maker *m, uint32_t n)
{
    const tl_gnode *node = &m->g->nodes.items[n];

    switch ((tl_gkind)node->kind) {
    case TL_G_OP:
        return add_op(m, n);
    case TL_G_MAPGRAD:
        return add_step(m, TL_PS_GRAD, n, 0);
    case TL_G_INPUT:
        return add_input(m, n);
    case TL_G_CONST:
        return add_const(m, n);
    case TL_G_ALIAS:
        m->pl->val_of[node->out] = m->pl->val_of[tl_goperand(m->g, node, 0)];
        return TL_OK;
    case TL_G_NUM: /* known since the program was made */
        return TL_OK;
    case TL_G_SIZE:
    case TL_G_HOST:
        return add_step(m, TL_PS_HOST, n, node->nin);
    case TL_G_SCALAR:
        return add_step(m, TL_PS_SCALAR, n, node->nin);
    case TL_G_ITEM:
        return add_step(m, TL_PS_ITEM, n, 0);
    case TL_G_ASSERT:
    case TL_G_HOSTCALL:
        return add_step(m, TL_PS_EFFECT, n, 0);
    case TL_G_IF:
    case TL_G_LOOP:
        return add_region(m, n);
    default:
        m->pl->impossible = true;
        return TL_OK;
    }
}

/* ---- the whole ---------------------------------------------------------- */

static tl_status make_room(maker *m)
{
    tl_plan *pl = m->pl;
    size_t n = m->g->values.len + 1;

    pl->val_of = tl_arena_array(&pl->memory, n, sizeof(*pl->val_of));
    pl->maker_of = tl_arena_array(&pl->memory, n, sizeof(*pl->maker_of));
    pl->outputs = tl_arena_array(&pl->memory, m->g->outputs.len + 1,
                                 sizeof(*pl->outputs));
    if (!pl->val_of || !pl->maker_of || !pl->outputs) {
        return tl_plan_no_memory(m->rt, n * sizeof(*pl->val_of));
    }
    TL_TRY(TL_VEC_PUSH(&pl->vals, (tl_pval){0}, m->rt->diag));
    TL_TRY(TL_VEC_PUSH(&pl->bufs, (tl_pbuf){0}, m->rt->diag));
    TL_TRY(TL_VEC_PUSH(&pl->steps, (tl_pstep){0}, m->rt->diag));
    return TL_VEC_PUSH(&pl->refs, 0, m->rt->diag);
}

tl_status tl_plan_make(tl_plan *pl, tl_rt *rt, const tl_run *run)
{
    maker m = {.pl = pl, .g = pl->p->g, .rt = rt, .run = run};

    TL_TRY(make_room(&m));
    for (uint32_t n = 1; n < m.g->nodes.len && !pl->impossible; n++) {
        if (m.g->nodes.items[n].owner == 0) {
            TL_TRY(add_node(&m, n));
        }
    }
    for (size_t i = 0; i < m.g->outputs.len && !pl->impossible; i++) {
        tl_gval v = m.g->outputs.items[i];

        pl->outputs[i].value = is_tensor(&m, v) ? pl->val_of[v] : 0;
    }
    return TL_OK;
}
