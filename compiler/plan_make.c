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

/* Bytes of a tensor of this layout without gaps. */
static size_t bytes_of(const tl_layout *l, const tl_gvalue *type)
{
    size_t bytes = tl_dtype_size((tl_dtype)type->dtype);

    for (int i = 0; i < l->rank; i++) {
        bytes *= (size_t)l->size[i];
    }
    return bytes;
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

/* Has it sizes in its attributes that are looked up when it runs? */
static bool has_late_dims(const maker *m, const tl_gnode *n)
{
    const tl_gattrs *at = &m->g->attrs.items[n->attrs];

    for (uint32_t k = 0; n->attrs != 0 && k < at->ndims; k++) {
        if (!tl_program_size_is_keyed(m->pl->p,
                                      m->g->sizes.items[at->dims + k])) {
            return true;
        }
    }
    return false;
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
    s->late = kind == TL_PS_KERNEL && has_late_dims(m, node);
    for (uint32_t k = from; k < node->nin; k++) {
        tl_gval v = tl_goperand(m->g, node, k);

        TL_TRY(ref_push(m, is_tensor(m, v) ? m->pl->val_of[v] : 0));
        s->nin++;
    }
    return TL_OK;
}

static bool has_keyed_shape(const maker *m, tl_gval v)
{
    const tl_gvalue *value = &m->g->values.items[v];

    for (uint32_t k = 0; k < value->rank; k++) {
        if (!tl_program_size_is_keyed(m->pl->p,
                                      m->g->sizes.items[value->shape + k])) {
            return false;
        }
    }
    return true;
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
        if (!has_keyed_shape(m, v)) {
            m->pl->impossible = true;
            return TL_OK;
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
    s->chained = tl_pstep_chains(m->pl, s);
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

/* A slice whose beginning the run knows: its layout as if it began at 0, in a
 * buffer that a step points into x. */
static tl_status add_slice(maker *m, uint32_t n)
{
    const tl_gnode *node = &m->g->nodes.items[n];
    const tl_gattrs *at = &m->g->attrs.items[node->attrs];
    uint32_t x = m->pl->val_of[tl_goperand(m->g, node, 0)], buf;
    const tl_pval *from = tl_pval_at(m->pl, x);
    tl_layout to = {.rank = from->rank};
    tl_pstep s;

    for (int i = 0; i < to.rank; i++) {
        for (uint32_t k = 1; k < 3; k++) { /* size and step */
            uint32_t size =
                m->g->sizes.items[at->dims + 3 * (uint32_t)i + k];

            if (!tl_program_size_is_keyed(m->pl->p, size)) {
                m->pl->impossible = true;
                return TL_OK;
            }
            TL_TRY(tl_graph_size_eval(m->g, size, m->pl->p->env.atom,
                                      k == 1 ? &to.size[i] : &to.stride[i],
                                      m->rt->diag));
        }
        to.stride[i] *= from->stride[i];
    }
    TL_TRY(step_begin(m, &s, TL_PS_SLICE, n, 0));
    TL_TRY(buf_new(m, TL_PB_SLICE, 0, 0, &buf));
    m->pl->bufs.items[buf].base = tl_pval_at(m->pl, x)->buf;
    m->pl->bufs.items[buf].maker = (uint32_t)m->pl->steps.len;
    TL_TRY(val_new(m, node->out, buf, (tl_dtype)tl_pval_at(m->pl, x)->dtype,
                   &to, &m->pl->val_of[node->out]));
    s.out = (uint32_t)m->pl->refs.len;
    s.nout = 1;
    s.binds = false;
    s.chained = true;
    TL_TRY(ref_push(m, m->pl->val_of[node->out]));
    return TL_VEC_PUSH(&m->pl->steps, s, m->rt->diag);
}

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
    if (has_late_dims(m, node)) {
        if (node->op == TL_OP_slice) {
            return add_slice(m, n);
        }
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

/* A branch or loop: operands, then what its regions take from outside.  Its
 * regions get plans of their own, or the walk runs it. */
static tl_status add_region(maker *m, uint32_t n)
{
    tl_pstep s;
    tl_gval *captured = NULL;
    uint32_t count = 0;
    tl_status st;

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
    TL_GOTO(st, tl_region_plan(m->pl, &s, captured, count, m->rt));
    if (s.regions) {
        TL_GOTO(st, buf_new(m, TL_PB_ARENA, 0, s.regions->arena, &s.area));
        m->pl->bufs.items[s.area].maker = (uint32_t)m->pl->steps.len;
    } else if (!m->pl->impossible) {
        bool sure;

        TL_GOTO(st, tl_region_is_row_major(m->pl, n, &sure, m->rt->diag));
        m->pl->impossible = !sure;
    }
    if (!m->pl->impossible) {
        st = step_end(m, &s);
    }
out:
    if (st != TL_OK || m->pl->impossible) {
        tl_region_free(s.regions);
    }
    tl_free(captured);
    return st;
}

/* A region's parameters are row-major, what it takes from outside lies as it
 * does there. */
static tl_status add_region_inputs(maker *m)
{
    tl_plan *pl = m->pl;

    for (uint32_t i = 0; i < pl->nin && pl->parent; i++) {
        tl_gval v = pl->in_vals[i];
        uint32_t outer = pl->parent->val_of[v], buf;
        const tl_gvalue *type = &m->g->values.items[v];
        int64_t size[TL_MAX_RANK];
        tl_layout l;

        if (type->cls != TL_GC_TENSOR || pl->impossible) {
            continue;
        }
        if (outer != 0) {
            get_layout(tl_pval_at(pl->parent, outer), &l);
            l.offset = 0;
        } else if (has_keyed_shape(m, v)) {
            TL_TRY(tl_gvalue_sizes(m->g, v, pl->p->env.atom, size,
                                   m->rt->diag));
            tl_layout_row_major(&l, type->rank, size);
        } else {
            pl->impossible = true;
            continue;
        }
        TL_TRY(buf_new(m, TL_PB_INPUT, i, bytes_of(&l, type), &buf));
        TL_TRY(val_new(m, v, buf, (tl_dtype)type->dtype, &l, &pl->val_of[v]));
    }
    return TL_OK;
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
    pl->outputs = tl_arena_array(&pl->memory, (size_t)pl->nout + 1,
                                 sizeof(*pl->outputs));
    if (!pl->val_of || !pl->maker_of || !pl->outputs) {
        return tl_plan_no_memory(m->rt, n * sizeof(*pl->val_of));
    }
    TL_TRY(TL_VEC_PUSH(&pl->vals, (tl_pval){0}, m->rt->diag));
    TL_TRY(TL_VEC_PUSH(&pl->bufs, (tl_pbuf){0}, m->rt->diag));
    TL_TRY(TL_VEC_PUSH(&pl->steps, (tl_pstep){0}, m->rt->diag));
    return TL_VEC_PUSH(&pl->refs, 0, m->rt->diag);
}

/* A slice is copied to be an output, so it must be row-major; what a region
 * gives must be in any case. */
static void check_output(tl_plan *pl, uint32_t v)
{
    const tl_pval *x = tl_pval_at(pl, v);

    if (v != 0 && !x->contiguous &&
        (pl->parent || pl->bufs.items[x->buf].where == TL_PB_SLICE)) {
        pl->impossible = true;
    }
}

tl_status tl_plan_make(tl_plan *pl, tl_rt *rt, const tl_run *run)
{
    maker m = {.pl = pl, .g = pl->p->g, .rt = rt, .run = run};
    uint32_t last;

    TL_TRY(make_room(&m));
    TL_TRY(add_region_inputs(&m));
    last = pl->region ? m.g->regions.items[pl->region].last
                      : (uint32_t)m.g->nodes.len;
    for (uint32_t n = pl->region ? m.g->regions.items[pl->region].first : 1;
         n < last && !pl->impossible; n++) {
        if (m.g->nodes.items[n].owner == pl->region) {
            TL_TRY(add_node(&m, n));
        }
    }
    for (uint32_t i = 0; i < pl->nout && !pl->impossible; i++) {
        tl_gval v = pl->out_vals[i];

        pl->outputs[i].value = is_tensor(&m, v) ? pl->val_of[v] : 0;
        check_output(pl, pl->outputs[i].value);
    }
    return TL_OK;
}
