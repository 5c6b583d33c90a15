/* plan_order.c - the order of the steps.
 *
 * Program order is tried first.  Then orders that keep it but run at once
 * whatever frees more memory than it takes, such as an update, which ends the
 * life of a gradient; and orders that always run what adds least.  The order
 * with the fewest bytes live at one time wins, the earlier of equals.
 *
 * Besides what plan_deps.c says, the first writer of a donated input runs
 * after all its readers, and after the effects and steps that may fail which
 * stand before it. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/plan_impl.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

typedef struct order_job {
    tl_plan *pl;
    tl_rt *rt;
    tl_pedges edges;
    uint32_t *next, *first; /* successors: next[first[s] .. first[s + 1]) */
    uint32_t *waits;        /* by step: predecessors still to run */
    uint32_t *users;        /* by buffer: steps still to read it */
    uint32_t *ready;
    uint32_t *place; /* by step: its place in program order */
    bool *lasts;     /* by buffer: is an output in it? */
} order_job;

/* ---- edges -------------------------------------------------------------- */

static tl_status add_edge(order_job *j, uint32_t from, uint32_t to)
{
    tl_pedge e = {from, to};

    return from == 0 || from == to ? TL_OK
                                   : TL_VEC_PUSH(&j->edges, e, j->rt->diag);
}

/* Which step writes over each donor: `writer` by buffer. */
static void find_writers(const tl_plan *pl, uint32_t *writer)
{
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        const tl_ptarget *t = &pl->targets[i];

        if (t->donor != 0) {
            uint32_t in = pl->in_vals[t->donor - 1];

            writer[tl_pval_at(pl, pl->val_of[in])->buf] =
                pl->order[pl->bufs.items[t->buf].first];
        }
    }
}

/* Readers of a donor, and chained steps before it in this order, come before
 * the step that writes over it. */
static tl_status donor_edges(order_job *j)
{
    const tl_plan *pl = j->pl;
    uint32_t *writer = j->users; /* not in use yet */
    uint32_t chained = 0;

    memset(writer, 0, pl->bufs.len * sizeof(*writer));
    find_writers(pl, writer);
    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        const tl_pstep *s = &pl->steps.items[pl->order[pos]];

        for (uint32_t i = 0; i < s->nin; i++) {
            uint32_t v = pl->refs.items[s->in + i];
            uint32_t w = v ? writer[tl_pval_memory(pl, v)] : 0;

            if (w != 0) {
                TL_TRY(add_edge(j, pl->order[pos], w));
            }
        }
        for (uint32_t k = 0; k < s->nout; k++) {
            const tl_pbuf *b = &pl->bufs.items
                                    [tl_pval_root(pl, pl->refs.items
                                                          [s->out + k])];

            if (b->where == TL_PB_OUTPUT && b->first == pos &&
                pl->targets[b->index].donor != 0) {
                TL_TRY(add_edge(j, chained, pl->order[pos]));
            }
        }
        chained = s->chained ? pl->order[pos] : chained;
    }
    return TL_OK;
}

/* Successors and numbers of predecessors from the edges. */
static void link_edges(order_job *j)
{
    size_t n = j->pl->steps.len;

    memset(j->first, 0, (n + 2) * sizeof(*j->first));
    memset(j->waits, 0, n * sizeof(*j->waits));
    for (size_t i = 0; i < j->edges.len; i++) {
        j->first[j->edges.items[i].from + 1]++;
        j->waits[j->edges.items[i].to]++;
    }
    for (size_t s = 0; s <= n; s++) {
        j->first[s + 1] += j->first[s];
    }
    for (size_t i = j->edges.len; i-- > 0;) {
        tl_pedge e = j->edges.items[i];

        j->next[--j->first[e.from + 1]] = e.to;
    }
    memmove(j->first, j->first + 1, (n + 1) * sizeof(*j->first));
}

/* ---- scheduling --------------------------------------------------------- */

typedef enum rule {
    RULE_PROGRAM, /* the first in program order */
    RULE_FREEING, /* ... but what frees memory at once */
    RULE_LEAST    /* what adds least */
} rule;

/* Is operand i, in buffer b, the first of those of its step in b, and does
 * nothing else still read b?  Steps with many operands have each once. */
static bool is_last_use(const order_job *j, const tl_pstep *s, uint32_t i,
                        uint32_t b)
{
    const tl_plan *pl = j->pl;
    uint32_t times = 1;

    for (uint32_t k = 0; k < s->nin && s->nin <= 8; k++) {
        uint32_t w = pl->refs.items[s->in + k];

        if (k != i && w != 0 && tl_pval_at(pl, w)->buf == b) {
            if (k < i) {
                return false;
            }
            times++;
        }
    }
    return j->users[b] == times;
}

/* Bytes that running a step adds to those live in the arena. */
static int64_t growth(const order_job *j, const tl_pstep *s)
{
    const tl_plan *pl = j->pl;
    int64_t bytes = 0;

    for (uint32_t k = 0; k < s->nout; k++) {
        uint32_t b = tl_pval_at(pl, pl->refs.items[s->out + k])->buf;

        if (!j->lasts[b] && j->users[b] > 0) {
            bytes += (int64_t)pl->bufs.items[b].bytes;
        }
    }
    bytes += (int64_t)pl->bufs.items[s->area].bytes; /* for a moment */
    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];
        uint32_t b = v ? tl_pval_at(pl, v)->buf : 0;

        if (b != 0 && pl->bufs.items[b].maker != 0 && !j->lasts[b] &&
            is_last_use(j, s, i, b)) {
            bytes -= (int64_t)pl->bufs.items[b].bytes;
        }
    }
    return bytes;
}

/* What to run first, the least: effects and host scalars, which cost nothing
 * and for which writes into donors wait; else by growth. */
static int64_t urgency(const order_job *j, uint32_t step)
{
    const tl_pstep *s = &j->pl->steps.items[step];

    return s->kind == TL_PS_EFFECT || s->kind == TL_PS_ITEM ||
                   s->kind == TL_PS_HOST
               ? INT64_MIN
               : growth(j, s);
}

/* Which of the ready steps comes next. */
static uint32_t choose(const order_job *j, uint32_t nready, rule by)
{
    uint32_t best = 0;
    int64_t best_growth = 0;

    for (uint32_t i = 0; i < nready; i++) {
        uint32_t s = j->ready[i];
        int64_t g = by == RULE_PROGRAM ? 0 : urgency(j, s);

        g = by == RULE_FREEING && g > 0 ? 0 : g;
        if (i == 0 || g < best_growth ||
            (g == best_growth && j->place[s] < j->place[j->ready[best]])) {
            best = i;
            best_growth = g;
        }
    }
    return best;
}

static void count_users(order_job *j)
{
    tl_plan *pl = j->pl;

    memset(j->users, 0, pl->bufs.len * sizeof(*j->users));
    for (uint32_t n = 1; n < pl->steps.len; n++) {
        const tl_pstep *s = &pl->steps.items[n];

        for (uint32_t i = 0; i < s->nin && !s->fused; i++) {
            uint32_t v = pl->refs.items[s->in + i];

            j->users[v ? tl_pval_at(pl, v)->buf : 0]++;
        }
    }
}

static void run_step(order_job *j, uint32_t step, uint32_t *nready)
{
    const tl_pstep *s = &j->pl->steps.items[step];

    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = j->pl->refs.items[s->in + i];

        j->users[v ? tl_pval_at(j->pl, v)->buf : 0]--;
    }
    for (uint32_t i = j->first[step]; i < j->first[step + 1]; i++) {
        if (--j->waits[j->next[i]] == 0) {
            j->ready[(*nready)++] = j->next[i];
        }
    }
}

/* An order by this rule into pl->order.  TL_ERR_INTERNAL for a cycle. */
static tl_status schedule(order_job *j, rule by)
{
    tl_plan *pl = j->pl;
    uint32_t nready = 0, n = 0;

    link_edges(j);
    count_users(j);
    for (uint32_t s = 1; s < pl->steps.len; s++) {
        if (!pl->steps.items[s].fused && j->waits[s] == 0) {
            j->ready[nready++] = s;
        }
    }
    while (nready > 0) {
        uint32_t i = choose(j, nready, by), s = j->ready[i];

        j->ready[i] = j->ready[--nready];
        pl->order[n++] = s;
        run_step(j, s, &nready);
    }
    return n == pl->norder
               ? TL_OK
               : tl_fail(j->rt->diag, TL_E0699, "steps that wait for each "
                                                "other");
}

/* ---- the whole ---------------------------------------------------------- */

static tl_status make_room(order_job *j)
{
    size_t steps = j->pl->steps.len + 2, bufs = j->pl->bufs.len + 1;

    j->first = tl_calloc(steps + 1, sizeof(*j->first));
    j->waits = tl_calloc(steps, sizeof(*j->waits));
    j->ready = tl_calloc(steps, sizeof(*j->ready));
    j->place = tl_calloc(steps, sizeof(*j->place));
    j->users = tl_calloc(bufs, sizeof(*j->users));
    j->lasts = tl_calloc(bufs, sizeof(*j->lasts));
    return j->first && j->waits && j->ready && j->place && j->users &&
                   j->lasts
               ? TL_OK
               : tl_plan_no_memory(j->rt, steps * sizeof(*j->first));
}

static void free_room(order_job *j)
{
    tl_free(j->edges.items);
    tl_free(j->next);
    tl_free(j->first);
    tl_free(j->waits);
    tl_free(j->ready);
    tl_free(j->place);
    tl_free(j->users);
    tl_free(j->lasts);
}

/* A group stands where its last part does. */
static void set_places(order_job *j)
{
    tl_plan *pl = j->pl;

    pl->norder = 0;
    for (uint32_t s = 1; s < pl->steps.len; s++) {
        const tl_pstep *step = &pl->steps.items[s];

        pl->norder += !step->fused;
        j->place[s] = step->kind == TL_PS_TILE
                          ? pl->refs.items[step->part + step->nparts - 1]
                          : s;
    }
    for (uint32_t i = 0; i < pl->nout; i++) {
        if (pl->outputs[i].value != 0) {
            j->lasts[tl_pval_at(pl, pl->outputs[i].value)->buf] = true;
        }
    }
}

static tl_status room_for_edges(order_job *j)
{
    uint32_t *next = tl_realloc(j->next, (j->edges.len + 1) * sizeof(*next));

    if (!next) {
        return tl_plan_no_memory(j->rt, j->edges.len * sizeof(*next));
    }
    j->next = next;
    return TL_OK;
}

/* Try the other rules; pl->order is the best, and its facts are in place. */
static tl_status improve(order_job *j)
{
    static const rule rules[] = {RULE_FREEING, RULE_LEAST};
    tl_plan *pl = j->pl;
    size_t bytes = pl->norder * sizeof(*pl->order);
    size_t best = pl->lower_bound;
    uint32_t donated = pl->donated;
    uint32_t *kept = tl_malloc(bytes + 1);
    tl_status st = TL_OK;

    if (!kept) {
        return tl_plan_no_memory(j->rt, bytes);
    }
    memcpy(kept, pl->order, bytes);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        TL_GOTO(st, schedule(j, rules[i]));
        TL_GOTO(st, tl_plan_live(pl, j->rt));
        if (pl->donated >= donated && pl->lower_bound < best) {
            best = pl->lower_bound;
            donated = pl->donated;
            memcpy(kept, pl->order, bytes);
        }
    }
    memcpy(pl->order, kept, bytes);
    st = tl_plan_live(pl, j->rt);
out:
    tl_free(kept);
    return st;
}

/* Could some input be the donor of a target? */
static bool is_wanted(const tl_plan *pl, const tl_ptarget *t)
{
    for (uint32_t i = 0; i < pl->nin && t->whole; i++) {
        uint32_t v = pl->val_of[pl->in_vals[i]];

        if (v != 0 && tl_plan_donates(pl, i) &&
            tl_pval_same_type(tl_pval_at(pl, v), tl_pval_at(pl, t->value))) {
            return true;
        }
    }
    return false;
}

/* Nothing is written into a donor before a chained step.  Targets without a
 * donor that are first written earlier wait for the last chained step, unless
 * it needs them. */
static tl_status wait_for_chained(order_job *j)
{
    tl_plan *pl = j->pl;
    uint32_t last = pl->order[pl->last_chained];
    uint8_t *leads = tl_calloc(pl->steps.len + 1, 1);
    tl_status st = TL_OK;

    if (!leads) {
        return tl_plan_no_memory(j->rt, pl->steps.len);
    }
    leads[last] = 1;
    for (uint32_t pos = pl->norder; pos-- > 0;) {
        uint32_t s = pl->order[pos];

        for (uint32_t i = j->first[s]; i < j->first[s + 1]; i++) {
            leads[s] |= leads[j->next[i]];
        }
    }
    for (uint32_t i = 0; i < pl->ntargets && st == TL_OK; i++) {
        const tl_ptarget *t = &pl->targets[i];
        uint32_t pos = pl->bufs.items[t->buf].first;

        if (t->donor == 0 && pos < pl->last_chained &&
            !leads[pl->order[pos]] && is_wanted(pl, t)) {
            st = add_edge(j, last, pl->order[pos]);
        }
    }
    tl_free(leads);
    return st;
}

/* Program order, and one in which more inputs give their storage away. */
static tl_status first_order(order_job *j)
{
    tl_plan *pl = j->pl;
    size_t edges;
    uint32_t donated;

    TL_TRY(room_for_edges(j));
    TL_TRY(schedule(j, RULE_PROGRAM));
    TL_TRY(tl_plan_live(pl, j->rt));
    edges = j->edges.len;
    donated = pl->donated;
    TL_TRY(wait_for_chained(j));
    if (j->edges.len == edges) {
        return TL_OK;
    }
    TL_TRY(room_for_edges(j));
    TL_TRY(schedule(j, RULE_PROGRAM));
    TL_TRY(tl_plan_live(pl, j->rt));
    if (pl->donated > donated) {
        return TL_OK;
    }
    j->edges.len = edges;
    TL_TRY(schedule(j, RULE_PROGRAM));
    return tl_plan_live(pl, j->rt);
}

static tl_status order(order_job *j)
{
    tl_plan *pl = j->pl;

    TL_TRY(make_room(j));
    set_places(j);
    pl->order = tl_arena_array(&pl->memory, (size_t)pl->norder + 1,
                               sizeof(*pl->order));
    if (!pl->order) {
        return tl_plan_no_memory(j->rt, pl->norder * sizeof(*pl->order));
    }
    TL_TRY(tl_plan_edges(pl, &j->edges, j->rt->diag));
    TL_TRY(first_order(j));
    TL_TRY(donor_edges(j));
    TL_TRY(room_for_edges(j));
    return improve(j);
}

tl_status tl_plan_order(tl_plan *pl, tl_rt *rt)
{
    order_job j = {.pl = pl, .rt = rt};
    tl_status st = order(&j);

    free_room(&j);
    return st;
}
