/* fuse.c - which steps of a plan run as one tile program.
 *
 * Elementwise steps of one shape are joined to the steps that make their
 * operands, in program order, as long as the group stays *convex*: no path
 * leaves it and comes back, so that all of its operands can be there before
 * it runs.  Rows that are reduced or computed as a whole join as well, and a
 * reduction of other axes may end a group (fuse_class.c), which others still
 * join if they read neither its result nor what it reduces: a loss and its
 * gradient are one pass.  Nothing is joined
 * across an effect, and what may fail because of data stays alone, so that
 * failures keep their order.  What only the group reads is never in memory. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/fuse.h"

#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

enum {
    MAX_STEPS = 32, /* of a group; so it has no more results */
    MAX_INPUTS = TL_TILE_MAX_OPERANDS
};

/* What a group is, by its first member. */
typedef struct group {
    uint32_t space;    /* a value of its space's shape */
    uint32_t count;    /* tile steps; 0: nothing can join */
    uint8_t trailing;  /* axes of its rows; 0: it has none */
    uint32_t end;      /* the reduction that ends it, or 0 */
    uint8_t why;       /* count 0: tl_fuse_why */
} group;

typedef struct fuser {
    tl_plan *pl;
    tl_rt *rt;
    uint32_t *group;   /* by step: the number of its first member, itself
                          when alone */
    uint32_t *next;    /* by step: next member of its group; 0: the last */
    uint32_t *tail;    /* by first member: the last member */
    uint32_t *reach;   /* by step: the last member of any group that begins
                          at it or before */
    group *info;
    tl_fuse_class *cls; /* by step */
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

/* Does a step make value v itself, no view of it? */
static bool makes(const fuser *f, uint32_t s, uint32_t v)
{
    for (uint32_t k = 0; k < step_at(f, s)->nout; k++) {
        if (f->pl->refs.items[step_at(f, s)->out + k] == v) {
            return true;
        }
    }
    return false;
}

/* The step that makes operand i of a step; 0: an input, or not read. */
static uint32_t maker_of(const fuser *f, const tl_pstep *s, uint32_t i)
{
    uint32_t v = f->pl->refs.items[s->in + i];

    return v ? f->pl->bufs.items[tl_pval_at(f->pl, v)->buf].maker : 0;
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
 * What ends before the first of `to` does not, nor anything that it waits
 * for, if no group from before its end goes on beyond. */
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
                if (p == to || f->seen[p] == f->search ||
                    f->reach[f->tail[p]] < to) {
                    continue;
                }
                f->seen[p] = f->search;
                f->stack[n++] = p;
            }
        }
    }
    return false;
}

/* Can a step of a group with this space read value v, which step m of the
 * group makes, as it is made?  A row's number may get axes of size 1; what a
 * reduction at the end gives is there when all is done. */
static bool reads_well(const fuser *f, uint32_t m, uint32_t v, uint32_t space,
                       uint32_t trailing)
{
    const tl_pval *x = tl_pval_at(f->pl, v);

    if (f->cls[m] == TL_FUSE_REDUCE) {
        return false;
    }
    return makes(f, m, v)
               ? f->cls[m] != TL_FUSE_FOLD ||
                     tl_fuse_is_per_row(f->pl, v, space, trailing)
               : f->cls[m] == TL_FUSE_FOLD && x->contiguous &&
                     x->offset == 0 &&
                     tl_fuse_is_per_row(f->pl, v, space, trailing);
}

/* Does every step of group `g` read what group `of` makes as it is made, in a
 * group with this space? */
static bool reads_whole(const fuser *f, uint32_t g, uint32_t of,
                        const group *both)
{
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        const tl_pstep *step = step_at(f, s);

        for (uint32_t i = 0; i < step->nin; i++) {
            uint32_t m = maker_of(f, step, i);

            if (m != 0 && f->group[m] == of &&
                !reads_well(f, m, f->pl->refs.items[step->in + i],
                            both->space, both->trailing)) {
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

static bool same_shape(const fuser *f, uint32_t v, uint32_t w)
{
    const tl_pval *x = tl_pval_at(f->pl, v), *y = tl_pval_at(f->pl, w);

    return x->rank == y->rank &&
           memcmp(x->size, y->size, x->rank * sizeof(*x->size)) == 0;
}

/* Does a step of group `a`, but for the reduction, read what that reduces? */
static bool reads_reduced(const fuser *f, uint32_t a, uint32_t reduction)
{
    uint32_t v = f->pl->refs.items[step_at(f, reduction)->in];

    for (uint32_t s = a; s != 0; s = f->next[s]) {
        for (uint32_t i = 0; i < step_at(f, s)->nin && s != reduction; i++) {
            uint32_t w = f->pl->refs.items[step_at(f, s)->in + i];

            if (w != 0 && tl_pval_at(f->pl, w)->buf ==
                              tl_pval_at(f->pl, v)->buf) {
                return true;
            }
        }
    }
    return false;
}

/* A reduction of other axes ends groups `a` and `b`, one of which makes what
 * it reads: nothing else there reads that. */
static bool can_end(const fuser *f, uint32_t a, uint32_t b, const group *both)
{
    const tl_pstep *end = step_at(f, both->end);
    uint32_t v = f->pl->refs.items[end->in], m = maker_of(f, end, 0);

    return both->trailing == 0 && makes(f, m, v) &&
           same_shape(f, v, both->space) && !reads_reduced(f, a, both->end) &&
           !reads_reduced(f, b, both->end);
}

/* Do the spaces of two groups go together?  One of them may have a number a
 * row of the other. */
static tl_fuse_why agree(const fuser *f, uint32_t a, uint32_t b, group *both)
{
    const group *x = &f->info[a], *y = &f->info[b];

    if (x->end != 0 && y->end != 0) {
        return TL_WHY_CLOSED;
    }
    if (x->trailing && y->trailing && x->trailing != y->trailing) {
        return TL_WHY_LENGTH;
    }
    *both = x->trailing >= y->trailing ? *x : *y;
    both->count = x->count + y->count;
    both->end = x->end + y->end;
    if (same_shape(f, x->space, y->space)) {
        return TL_WHY_NONE;
    }
    y = x->trailing >= y->trailing ? y : x;
    return both->trailing != 0 && y->trailing == 0 &&
                   tl_fuse_is_per_row(f->pl, y->space, both->space,
                                      both->trailing)
               ? TL_WHY_NONE
               : TL_WHY_SHAPE;
}

/* What each of them decides by itself; then `both` is what they would be. */
static tl_fuse_why why_not(const fuser *f, uint32_t a, uint32_t b,
                           group *both)
{
    tl_fuse_why why;

    if (f->info[a].count == 0) {
        return (tl_fuse_why)f->info[a].why;
    }
    if (f->info[a].count + f->info[b].count > MAX_STEPS) {
        return TL_WHY_STEPS;
    }
    if (f->segment[a] != f->segment[b]) {
        return TL_WHY_EFFECT;
    }
    why = agree(f, a, b, both);
    if (why == TL_WHY_NONE && both->end != 0 && !can_end(f, a, b, both)) {
        why = TL_WHY_TWICE;
    }
    return why;
}

/* May groups a and b, of which b has the newest step, become one?  Then
 * `both` is what it is. */
static tl_fuse_why can_join(fuser *f, uint32_t a, uint32_t b, group *both)
{
    tl_fuse_why why = why_not(f, a, b, both);

    if (why != TL_WHY_NONE) {
        return why;
    }
    if (count_inputs(f, a, b) > MAX_INPUTS) {
        return TL_WHY_INPUTS;
    }
    if (!reads_whole(f, a, b, both) || !reads_whole(f, b, a, both)) {
        return TL_WHY_VIEW;
    }
    return reaches(f, a, b) || reaches(f, b, a) ? TL_WHY_CYCLE : TL_WHY_NONE;
}

/* Members of both, in program order, are the group of the first of them. */
static void join(fuser *f, uint32_t a, uint32_t b, const group *both)
{
    uint32_t first = a < b ? a : b, last = 0;

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
    for (uint32_t s = first; s < last && f->reach[s] < last; s++) {
        f->reach[s] = last;
    }
    f->info[first] = *both;
}

/* Join step s to the steps that make its operands, or note why not. */
static void join_operands(fuser *f, uint32_t s)
{
    tl_pstep *step = &f->pl->steps.items[s];

    for (uint32_t i = 0; i < step->nin; i++) {
        uint32_t m = maker_of(f, step, i);
        tl_fuse_why why;
        group both;

        if (m == 0 || f->group[m] == f->group[s]) {
            continue;
        }
        why = f->cls[m] == TL_FUSE_REDUCE
                  ? TL_WHY_CLOSED
                  : can_join(f, f->group[m], f->group[s], &both);
        if (why == TL_WHY_NONE) {
            join(f, f->group[m], f->group[s], &both);
        } else if (step->why == TL_WHY_NONE) {
            step->why = (uint8_t)why;
            step->apart = m;
        }
    }
}

static void find_groups(fuser *f)
{
    uint32_t segment = 0;

    for (uint32_t s = 1; s < f->pl->steps.len; s++) {
        tl_pstep *step = &f->pl->steps.items[s];
        tl_fuse_kind k = tl_fuse_kind_of(f->pl, step);

        f->group[s] = f->tail[s] = f->reach[s] = s;
        f->cls[s] = k.cls;
        f->info[s] = (group){.space = k.space,
                             .count = k.count,
                             .end = k.cls == TL_FUSE_REDUCE ? s : 0,
                             .trailing = k.trailing,
                             .why = k.why};
        segment += step->effects;
        f->segment[s] = segment;
        if (k.count != 0) {
            join_operands(f, s);
        } else {
            step->why = k.why;
        }
    }
}

/* The members' reasons, if they still hold, become the group's. */
static void tell_why(fuser *f, uint32_t g, tl_pstep *to)
{
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        const tl_pstep *step = step_at(f, s);

        if (to->why == TL_WHY_NONE && step->apart != 0 &&
            f->group[step->apart] != g) {
            to->why = step->why;
            to->apart = step->apart;
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
    for (uint32_t i = 0; i < pl->nout; i++) {
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

/* Results of a member that somebody else reads. */
static tl_status list_results_of(fuser *f, uint32_t s, tl_pstep *to)
{
    tl_plan *pl = f->pl;

    for (uint32_t k = 0; k < step_at(f, s)->nout; k++) {
        uint32_t v = pl->refs.items[step_at(f, s)->out + k];

        if (f->external[tl_pval_at(pl, v)->buf]) {
            TL_TRY(push(f, v, &to->nout));
        }
    }
    return TL_OK;
}

/* Results, and members; a reduction at the end comes last, its result read or
 * not. */
static tl_status list_results(fuser *f, uint32_t g, tl_pstep *to)
{
    uint32_t end = f->info[g].end;

    to->out = (uint32_t)f->pl->refs.len;
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        if (s != end) {
            TL_TRY(list_results_of(f, s, to));
        }
    }
    if (end != 0) {
        uint32_t v = f->pl->refs.items[step_at(f, end)->out];

        f->external[tl_pval_at(f->pl, v)->buf] = 1;
        TL_TRY(list_results_of(f, end, to));
    }
    to->part = (uint32_t)f->pl->refs.len;
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        if (s != end) {
            TL_TRY(push(f, s, &to->nparts));
        }
    }
    return end != 0 ? push(f, end, &to->nparts) : TL_OK;
}

/* A member becomes a part of step `number`, without buffers of its own where
 * nobody else reads them. */
static void make_part(fuser *f, uint32_t s, uint32_t number)
{
    tl_plan *pl = f->pl;

    pl->steps.items[s].fused = true;
    pl->steps.items[s].group = number;
    for (uint32_t k = 0; k < step_at(f, s)->nout; k++) {
        uint32_t v = pl->refs.items[step_at(f, s)->out + k];
        tl_pbuf *b = &pl->bufs.items[tl_pval_at(pl, v)->buf];

        b->maker = f->external[b - pl->bufs.items] ? number : 0;
        b->bytes = b->maker ? b->bytes : 0;
    }
}

/* Value v, which has an element for each row of the space, with sizes 1 along
 * the rows. */
static tl_status view_per_row(fuser *f, uint32_t v, const group *g,
                              uint32_t *out)
{
    const tl_pval *space = tl_pval_at(f->pl, g->space);
    tl_pval x = *tl_pval_at(f->pl, v);
    tl_layout l;

    x.rank = space->rank;
    x.size = tl_arena_array(&f->pl->memory, 2 * (size_t)x.rank + 1,
                            sizeof(*x.size));
    if (!x.size) {
        return tl_plan_no_memory(f->rt, x.rank * sizeof(*x.size));
    }
    x.stride = x.size + x.rank;
    for (uint32_t i = 0; i < x.rank; i++) {
        x.size[i] = i + g->trailing < x.rank ? space->size[i] : 1;
    }
    tl_layout_row_major(&l, x.rank, x.size);
    memcpy(x.stride, l.stride, x.rank * sizeof(*x.stride));
    *out = (uint32_t)f->pl->vals.len;
    return TL_VEC_PUSH(&f->pl->vals, x, f->rt->diag);
}

/* The gradient of layer_norm takes its statistics as views. */
static tl_status view_statistics(fuser *f, uint32_t g)
{
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        const tl_pstep *step = step_at(f, s);

        if (step->kind != TL_PS_KERNEL || step->op != TL_OP_layer_norm_grad) {
            continue;
        }
        for (uint32_t i = 2; i < 4; i++) {
            uint32_t *v = &f->pl->refs.items[step->in + i];

            TL_TRY(view_per_row(f, *v, &f->info[g], v));
        }
    }
    return TL_OK;
}

/* Make a group a step. */
static tl_status add_group(fuser *f, uint32_t g)
{
    tl_plan *pl = f->pl;
    uint32_t number = (uint32_t)pl->steps.len;
    tl_pstep to = {.kind = TL_PS_TILE,
                   .node = step_at(f, f->tail[g])->node,
                   .space = f->info[g].space,
                   .trailing = f->info[g].trailing,
                   .reduces = f->info[g].end != 0};

    tell_why(f, g, &to);
    TL_TRY(view_statistics(f, g));
    TL_TRY(list_inputs(f, g, &to));
    TL_TRY(list_results(f, g, &to));
    TL_TRY(TL_VEC_PUSH(&pl->steps, to, f->rt->diag));
    for (uint32_t s = g; s != 0; s = f->next[s]) {
        make_part(f, s, number);
    }
    return TL_OK;
}

static tl_status fuse(fuser *f)
{
    size_t n = f->pl->steps.len + 1;
    uint32_t steps = (uint32_t)f->pl->steps.len;

    f->group = tl_calloc(n + 1, 8 * sizeof(uint32_t));
    f->info = tl_calloc(n, sizeof(*f->info));
    f->cls = tl_calloc(n, sizeof(*f->cls));
    f->external = tl_calloc(f->pl->bufs.len + 1, 1);
    if (!f->group || !f->info || !f->cls || !f->external) {
        return tl_plan_no_memory(f->rt, n * 9 * sizeof(uint32_t));
    }
    f->next = f->group + n;
    f->tail = f->next + n;
    f->reach = f->tail + n;
    f->segment = f->reach + n;
    f->seen = f->segment + n;
    f->stack = f->seen + n;
    f->first = f->stack + n;
    TL_TRY(find_before(f));
    find_groups(f);
    find_external(f);
    for (uint32_t g = 1; g < steps; g++) {
        if (f->group[g] == g && f->next[g] != 0) {
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
    tl_free(f.info);
    tl_free(f.cls);
    tl_free(f.before);
    tl_free(f.external);
    return st;
}
