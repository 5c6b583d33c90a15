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
    uint32_t *ready;        /* heap of nready steps, the next one first */
    uint32_t nready;
    int64_t *key;   /* by ready step: urgency as the rule has it */
    uint32_t *at;   /* by ready step: 1 + its place in the heap; else 0 */
    uint32_t *touch, *first_touch; /* steps that read or write each buffer */
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

enum { FEW = 8 }; /* operands among which equal ones are looked for */

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

    for (uint32_t k = 0; k < s->nin && s->nin <= FEW; k++) {
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

static int64_t key_of(const order_job *j, uint32_t step, rule by)
{
    int64_t g = by == RULE_PROGRAM ? 0 : urgency(j, step);

    return by == RULE_FREEING && g > 0 ? 0 : g;
}

/* ---- ready steps -------------------------------------------------------- */

static bool comes_before(const order_job *j, uint32_t a, uint32_t b)
{
    return j->key[a] != j->key[b] ? j->key[a] < j->key[b]
                                  : j->place[a] < j->place[b];
}

static void put(order_job *j, uint32_t i, uint32_t step)
{
    j->ready[i] = step;
    j->at[step] = i + 1;
}

/* Put a step into place i of the heap or above it. */
static void rise(order_job *j, uint32_t i, uint32_t step)
{
    while (i > 0 && comes_before(j, step, j->ready[(i - 1) / 2])) {
        put(j, i, j->ready[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(j, i, step);
}

/* ... or below it. */
static void sink(order_job *j, uint32_t i, uint32_t step)
{
    uint32_t child;

    while ((child = 2 * i + 1) < j->nready) {
        if (child + 1 < j->nready &&
            comes_before(j, j->ready[child + 1], j->ready[child])) {
            child++;
        }
        if (!comes_before(j, j->ready[child], step)) {
            break;
        }
        put(j, i, j->ready[child]);
        i = child;
    }
    put(j, i, step);
}

static void add_ready(order_job *j, uint32_t step, rule by)
{
    j->key[step] = key_of(j, step, by);
    rise(j, j->nready++, step);
}

static uint32_t take_first(order_job *j)
{
    uint32_t first = j->ready[0], last = j->ready[--j->nready];

    j->at[first] = 0;
    if (j->nready > 0) {
        sink(j, 0, last);
    }
    return first;
}

/* Fewer steps than before have still to read buffer `b`: ready steps that free
 * it now are more urgent. */
static void fewer_users(order_job *j, uint32_t b, rule by)
{
    for (uint32_t i = j->first_touch[b]; i < j->first_touch[b + 1]; i++) {
        uint32_t step = j->touch[i];
        int64_t key;

        if (j->at[step] == 0) {
            continue;
        }
        key = key_of(j, step, by);
        if (key < j->key[step]) {
            j->key[step] = key;
            rise(j, j->at[step] - 1, step);
        }
    }
}

/* The buffer of operand or result `k` of a step, 0: none. */
static uint32_t buffer_of(const tl_plan *pl, const tl_pstep *s, uint32_t k)
{
    uint32_t v = pl->refs.items[k < s->nin ? s->in + k
                                           : s->out + (k - s->nin)];

    return v ? tl_pval_at(pl, v)->buf : 0;
}

/* Which steps touch each buffer. */
static tl_status list_touches(order_job *j)
{
    const tl_plan *pl = j->pl;
    uint32_t *first = tl_calloc((size_t)pl->bufs.len + 2, sizeof(*first));
    size_t n = 0;

    j->first_touch = first;
    for (uint32_t s = 1; s < pl->steps.len && first; s++) {
        const tl_pstep *step = &pl->steps.items[s];

        for (uint32_t k = 0; k < step->nin + step->nout; k++, n++) {
            first[buffer_of(pl, step, k) + 1]++;
        }
    }
    j->touch = tl_malloc((n + 1) * sizeof(*j->touch));
    if (!first || !j->touch) {
        return tl_plan_no_memory(j->rt, n * sizeof(*j->touch));
    }
    for (size_t b = 0; b <= pl->bufs.len; b++) {
        first[b + 1] += first[b];
    }
    for (uint32_t s = (uint32_t)pl->steps.len; s-- > 1;) {
        const tl_pstep *step = &pl->steps.items[s];

        for (uint32_t k = 0; k < step->nin + step->nout; k++) {
            j->touch[--first[buffer_of(pl, step, k) + 1]] = s;
        }
    }
    memmove(first, first + 1, ((size_t)pl->bufs.len + 1) * sizeof(*first));
    return TL_OK;
}

/* ---- an order ----------------------------------------------------------- */

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

static void run_step(order_job *j, uint32_t step, rule by)
{
    const tl_pstep *s = &j->pl->steps.items[step];

    for (uint32_t i = 0; i < s->nin; i++) {
        j->users[buffer_of(j->pl, s, i)]--;
    }
    for (uint32_t i = 0; i < s->nin && by != RULE_PROGRAM; i++) {
        uint32_t b = buffer_of(j->pl, s, i);

        if (b != 0 && j->users[b] <= FEW) {
            fewer_users(j, b, by);
        }
    }
    for (uint32_t i = j->first[step]; i < j->first[step + 1]; i++) {
        if (--j->waits[j->next[i]] == 0) {
            add_ready(j, j->next[i], by);
        }
    }
}

/* An order by this rule into pl->order.  TL_ERR_INTERNAL for a cycle. */
static tl_status schedule(order_job *j, rule by)
{
    tl_plan *pl = j->pl;
    uint32_t n = 0;

    link_edges(j);
    count_users(j);
    j->nready = 0;
    memset(j->at, 0, pl->steps.len * sizeof(*j->at));
    for (uint32_t s = 1; s < pl->steps.len; s++) {
        if (!pl->steps.items[s].fused && j->waits[s] == 0) {
            add_ready(j, s, by);
        }
    }
    while (j->nready > 0) {
        uint32_t s = take_first(j);

        pl->order[n++] = s;
        run_step(j, s, by);
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
    j->key = tl_calloc(steps, sizeof(*j->key));
    j->at = tl_calloc(steps, sizeof(*j->at));
    j->users = tl_calloc(bufs, sizeof(*j->users));
    j->lasts = tl_calloc(bufs, sizeof(*j->lasts));
    return j->first && j->waits && j->ready && j->place && j->key && j->at &&
                   j->users && j->lasts
               ? list_touches(j)
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
    tl_free(j->key);
    tl_free(j->at);
    tl_free(j->touch);
    tl_free(j->first_touch);
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
