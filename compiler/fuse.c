/* fuse.c - which steps of a plan run as one tile program.
 *
 * Elementwise steps of one shape are joined to the steps that make their
 * operands, in program order, as long as the group stays *convex*: no path
 * leaves it and comes back, so that all of its operands can be there before
 * it runs.  Nothing is joined across an effect, and what may fail because of
 * data stays alone, so that failures keep their order.  What only the group
 * reads is never in memory. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/fuse.h"

#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

enum {
    MAX_STEPS = 32,  /* of a group; so it has no more results */
    MAX_INPUTS = TL_TILE_MAX_OPERANDS,
    FAR = 8,         /* operands that the tile machine would copy first, */
    MANY = 16384     /* as kernels do with theirs: strides, elements */
};

typedef struct fuser {
    tl_plan *pl;
    tl_rt *rt;
    uint32_t *group;   /* by step: the number of its first member, itself
                          when alone */
    uint32_t *next;    /* by step: next member of its group; 0: the last */
    uint32_t *tail;    /* by first member: the last member */
    uint32_t *count;   /* by first member: steps; 0 where none can join */
    uint32_t *segment; /* by step: effects before it */
    uint32_t *seen;    /* by first member: the search that saw it last */
    uint32_t search;
    uint32_t *stack;
    uint32_t *first, *before; /* by step: those it waits for,
                                 before[first[s] .. first[s + 1]) */
    uint8_t *external; /* by buffer: read outside the group that makes it */
} fuser;

static const tl_pstep *step_at(const fuser *f, uint32_t s)
{
    return &f->pl->steps.items[s];
}

/* The value that a step with one result makes. */
static uint32_t result_of(const fuser *f, uint32_t s)
{
    return f->pl->refs.items[step_at(f, s)->out];
}

/* The step that makes operand i of a step; 0: an input, or not read. */
static uint32_t maker_of(const fuser *f, const tl_pstep *s, uint32_t i)
{
    uint32_t v = f->pl->refs.items[s->in + i];

    return v ? f->pl->bufs.items[tl_pval_at(f->pl, v)->buf].maker : 0;
}

/* ---- what can be fused -------------------------------------------------- */

static tl_dtype compute_dtype(const tl_plan *pl, const tl_pstep *s)
{
    uint32_t v = s->kind == TL_PS_GRAD ? pl->refs.items[s->out]
                                       : pl->refs.items[s->in + s->nin - 1];

    return tl_dtype_arith((tl_dtype)tl_pval_at(pl, v)->dtype);
}

static bool is_scattered(const tl_pval *v, int64_t numel)
{
    int last = v->rank - 1;

    while (last > 0 && v->size[last] == 1) {
        last--;
    }
    return !v->contiguous && v->numel == numel && numel > MANY && last >= 0 &&
           (v->stride[last] > FAR || v->stride[last] < -FAR);
}

static bool is_fusible(const tl_plan *pl, const tl_pstep *s)
{
    const tl_op_info *info = tl_op_get((tl_op)s->op);
    const tl_pval *y;

    if ((s->kind != TL_PS_KERNEL && s->kind != TL_PS_GRAD) || s->copy ||
        s->binds || s->nout != 1 || s->nin == 0 ||
        (s->kind == TL_PS_KERNEL && s->op != TL_OP_cast &&
         info->cls != TL_CLASS_MAP && info->cls != TL_CLASS_CMP) ||
        tl_pstep_is_chained(pl, s)) {
        return false;
    }
    y = tl_pval_at(pl, pl->refs.items[s->out]);
    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];

        if (v != 0 && (is_scattered(tl_pval_at(pl, v), y->numel) ||
                       tl_pval_at(pl, v)->rank > y->rank)) {
            return false;
        }
    }
    return y->numel > 0 &&
           tl_tile_takes((tl_op)s->op,
                         s->kind == TL_PS_GRAD ? s->which : -1,
                         compute_dtype(pl, s));
}

/* ---- convexity ---------------------------------------------------------- */

/* What each step waits for. */
static tl_status find_before(fuser *f)
{
    tl_pedges edges = {0};
    tl_status st = tl_plan_edges(f->pl, &edges, f->rt->diag);

    if (st == TL_OK) {
        f->before = tl_calloc(edges.len + 1, sizeof(*f->before));
        st = f->before ? TL_OK : tl_plan_no_memory(f->rt, edges.len);
    }
    for (size_t i = 0; i < edges.len && st == TL_OK; i++) {
        f->first[edges.items[i].to + 1]++;
    }
    for (size_t s = 0; s < f->pl->steps.len; s++) {
        f->first[s + 1] += f->first[s];
    }
    for (size_t i = edges.len; i-- > 0 && st == TL_OK;) {
        f->before[--f->first[edges.items[i].to + 1]] = edges.items[i].from;
    }
    memmove(f->first, f->first + 1, f->pl->steps.len * sizeof(*f->first));
    f->first[f->pl->steps.len] = (uint32_t)edges.len;
    tl_free(edges.items);
    return st;
}

/* Does group `from` wait for group `to` through a step of another group?
 * Groups that end before the first of `to` do not. */
static bool reaches(fuser *f, uint32_t from, uint32_t to)
{
    uint32_t n = 0;

    f->search++;
    f->seen[from] = f->search;
    f->stack[n++] = from;
    while (n > 0) {
        uint32_t g = f->stack[--n];

        for (uint32_t s = g; s != 0; s = f->next[s]) {
            for (uint32_t i = f->first[s]; i < f->first[s + 1]; i++) {
                uint32_t p = f->group[f->before[i]];

                if (p == to && g != from) {
                    return true;
                }
                if (p == to || f->seen[p] == f->search || f->tail[p] < to) {
                    continue;
                }
                f->seen[p] = f->search;
                f->stack[n++] = p;
            }
        }
    }
    return false;
}

/* Does every step of group `g` read what group `of` makes as it is made, no
 * view of it? */
static bool reads_whole(const fuser *f, uint32_t g, uint32_t of)
{
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        const tl_pstep *step = step_at(f, s);

        for (uint32_t i = 0; i < step->nin; i++) {
            uint32_t m = maker_of(f, step, i);

            if (m != 0 && f->group[m] == of &&
                f->pl->refs.items[step->in + i] != result_of(f, m)) {
                return false;
            }
        }
    }
    return true;
}

/* Inputs of two groups as one; more than MAX_INPUTS is as bad as any. */
static uint32_t count_inputs(const fuser *f, uint32_t a, uint32_t b)
{
    uint32_t found[MAX_INPUTS + 1], n = 0;

    for (int part = 0; part < 2; part++) {
        for (uint32_t s = part ? b : a; s != 0; s = f->next[s]) {
            const tl_pstep *step = step_at(f, s);

            for (uint32_t i = 0; i < step->nin && n <= MAX_INPUTS; i++) {
                uint32_t v = f->pl->refs.items[step->in + i], k = 0;
                uint32_t m = maker_of(f, step, i);

                if (v == 0 || (m != 0 && (f->group[m] == a ||
                                          f->group[m] == b))) {
                    continue;
                }
                while (k < n && found[k] != v) {
                    k++;
                }
                if (k == n) {
                    found[n++] = v;
                }
            }
        }
    }
    return n;
}

/* ---- groups ------------------------------------------------------------- */

static bool can_join(fuser *f, uint32_t a, uint32_t b)
{
    const tl_pval *x = tl_pval_at(f->pl, result_of(f, a));
    const tl_pval *y = tl_pval_at(f->pl, result_of(f, b));

    return a != b && f->count[a] != 0 && f->count[b] != 0 &&
           f->count[a] + f->count[b] <= MAX_STEPS &&
           f->segment[a] == f->segment[b] && x->rank == y->rank &&
           memcmp(x->size, y->size, x->rank * sizeof(*x->size)) == 0 &&
           count_inputs(f, a, b) <= MAX_INPUTS && reads_whole(f, a, b) &&
           reads_whole(f, b, a) && !reaches(f, a, b) && !reaches(f, b, a);
}

/* Members of both, in program order, are the group of the first of them. */
static void join(fuser *f, uint32_t a, uint32_t b)
{
    uint32_t first = a < b ? a : b, total = f->count[a] + f->count[b];
    uint32_t last = 0;

    while (a != 0 || b != 0) {
        uint32_t *from = b == 0 || (a != 0 && a < b) ? &a : &b, s = *from;

        *from = f->next[s];
        f->group[s] = first;
        f->next[s] = 0;
        if (last != 0) {
            f->next[last] = s;
        }
        last = s;
    }
    f->tail[first] = last;
    f->count[first] = total;
}

static void find_groups(fuser *f)
{
    uint32_t segment = 0;

    for (uint32_t s = 1; s < f->pl->steps.len; s++) {
        const tl_pstep *step = step_at(f, s);

        f->group[s] = f->tail[s] = s;
        f->count[s] = is_fusible(f->pl, step);
        segment += step->effects;
        f->segment[s] = segment;
        for (uint32_t i = 0; i < step->nin && f->count[s] != 0; i++) {
            uint32_t m = maker_of(f, step, i);

            if (m != 0 && can_join(f, f->group[m], f->group[s])) {
                join(f, f->group[m], f->group[s]);
            }
        }
    }
}

/* ---- groups as steps ---------------------------------------------------- */

/* Which buffers are read outside the group of their maker, or are outputs. */
static void find_external(fuser *f)
{
    tl_plan *pl = f->pl;

    for (uint32_t s = 1; s < pl->steps.len; s++) {
        const tl_pstep *step = step_at(f, s);

        for (uint32_t i = 0; i < step->nin; i++) {
            uint32_t v = pl->refs.items[step->in + i];
            uint32_t m = maker_of(f, step, i);

            if (m != 0 && f->group[m] != f->group[s]) {
                f->external[tl_pval_at(pl, v)->buf] = 1;
            }
        }
    }
    for (size_t i = 0; i < pl->p->g->outputs.len; i++) {
        uint32_t v = pl->outputs[i].value;

        f->external[v ? tl_pval_at(pl, v)->buf : 0] = 1;
    }
}

static tl_status push(fuser *f, uint32_t v, uint32_t *n)
{
    *n += 1;
    return TL_VEC_PUSH(&f->pl->refs, v, f->rt->diag);
}

/* The operands that come from outside, each once. */
static tl_status list_inputs(fuser *f, uint32_t g, tl_pstep *to)
{
    tl_plan *pl = f->pl;

    to->in = (uint32_t)pl->refs.len;
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        for (uint32_t i = 0; i < step_at(f, s)->nin; i++) {
            uint32_t v = pl->refs.items[step_at(f, s)->in + i], k = 0;
            uint32_t m = maker_of(f, step_at(f, s), i);

            if (v == 0 || (m != 0 && f->group[m] == g)) {
                continue;
            }
            while (k < to->nin && pl->refs.items[to->in + k] != v) {
                k++;
            }
            if (k == to->nin) {
                TL_TRY(push(f, v, &to->nin));
            }
        }
    }
    return TL_OK;
}

static tl_status list_results(fuser *f, uint32_t g, tl_pstep *to)
{
    tl_plan *pl = f->pl;

    to->out = (uint32_t)pl->refs.len;
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        if (f->external[tl_pval_at(pl, result_of(f, s))->buf]) {
            TL_TRY(push(f, result_of(f, s), &to->nout));
        }
    }
    to->part = (uint32_t)pl->refs.len;
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        TL_TRY(push(f, s, &to->nparts));
    }
    return TL_OK;
}

/* Make a group a step; its members stay as parts, without buffers of their
 * own where nobody else reads them. */
static tl_status add_group(fuser *f, uint32_t g)
{
    tl_plan *pl = f->pl;
    tl_pstep to = {.kind = TL_PS_TILE, .node = step_at(f, f->tail[g])->node};
    uint32_t number = (uint32_t)pl->steps.len;

    TL_TRY(list_inputs(f, g, &to));
    TL_TRY(list_results(f, g, &to));
    TL_TRY(TL_VEC_PUSH(&pl->steps, to, f->rt->diag));
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        tl_pbuf *b = &pl->bufs.items[tl_pval_at(pl, result_of(f, s))->buf];

        pl->steps.items[s].fused = true;
        b->maker = f->external[b - pl->bufs.items] ? number : 0;
        b->bytes = b->maker ? b->bytes : 0;
    }
    return TL_OK;
}

static tl_status fuse(fuser *f)
{
    size_t n = f->pl->steps.len + 1;
    uint32_t steps = (uint32_t)f->pl->steps.len;

    f->group = tl_calloc(n + 1, 8 * sizeof(uint32_t));
    f->external = tl_calloc(f->pl->bufs.len + 1, 1);
    if (!f->group || !f->external) {
        return tl_plan_no_memory(f->rt, n * 8 * sizeof(uint32_t));
    }
    f->next = f->group + n;
    f->tail = f->next + n;
    f->count = f->tail + n;
    f->segment = f->count + n;
    f->seen = f->segment + n;
    f->stack = f->seen + n;
    f->first = f->stack + n;
    TL_TRY(find_before(f));
    find_groups(f);
    find_external(f);
    for (uint32_t g = 1; g < steps; g++) {
        if (f->group[g] == g && f->count[g] > 1) {
            TL_TRY(add_group(f, g));
        }
    }
    return TL_OK;
}

tl_status tl_plan_fuse(tl_plan *pl, tl_rt *rt)
{
    fuser f = {.pl = pl, .rt = rt};
    tl_status st = fuse(&f);

    tl_free(f.group);
    tl_free(f.before);
    tl_free(f.external);
    return st;
}

/* ---- tile programs ------------------------------------------------------ */

/* How a part refers to value v: to an input of the group, or to the part
 * that makes it. */
static int16_t reference(const tl_plan *pl, const tl_pstep *s, uint32_t v)
{
    for (uint32_t k = 0; k < s->nin; k++) {
        if (pl->refs.items[s->in + k] == v) {
            return (int16_t)k;
        }
    }
    for (uint32_t p = 0; p < s->nparts; p++) {
        const tl_pstep *part =
            &pl->steps.items[pl->refs.items[s->part + p]];

        if (pl->refs.items[part->out] == v) {
            return (int16_t)(-2 - (int)p);
        }
    }
    return -1;
}

static tl_tile_step tile_step(const tl_plan *pl, const tl_pstep *s,
                              uint32_t p)
{
    const tl_pstep *part = &pl->steps.items[pl->refs.items[s->part + p]];
    uint32_t result = pl->refs.items[part->out];
    tl_tile_step t = {
        .op = part->op,
        .which = (int8_t)(part->kind == TL_PS_GRAD ? part->which : -1),
        .compute = (uint8_t)compute_dtype(pl, part),
        .dtype = tl_pval_at(pl, result)->dtype,
        .nin = (uint8_t)part->nin,
        .to = -1,
        .p = part->at ? part->at->f : NULL};

    for (uint32_t i = 0; i < part->nin; i++) {
        uint32_t v = pl->refs.items[part->in + i];

        t.in[i] = v ? reference(pl, s, v) : -1;
    }
    for (uint32_t k = 0; k < s->nout; k++) {
        if (pl->refs.items[s->out + k] == result) {
            t.to = (int16_t)k;
        }
    }
    return t;
}

tl_status tl_plan_tile(tl_plan *pl, tl_pstep *s, tl_rt *rt)
{
    tl_tile_step steps[MAX_STEPS];
    const tl_pval *y = tl_pval_at(
        pl, pl->refs.items[pl->steps.items[pl->refs.items[s->part]].out]);

    for (uint32_t p = 0; p < s->nparts; p++) {
        steps[p] = tile_step(pl, s, p);
    }
    return tl_tile_new(&s->tile, y->rank, y->size, steps, (int)s->nparts,
                       s->tin, (int)s->nin, s->tout, (int)s->nout, rt->diag);
}
