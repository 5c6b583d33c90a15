/* plan_live.c - what is written in place, which inputs give their storage to
 * outputs, and when buffers live, for one order of the steps.
 *
 * Steps are taken in order.  A result takes the storage of an operand that
 * dies there and that its kernel allows (a union of two buffers).  A buffer
 * with an output in it lies outside the arena.  Its first writer may write
 * straight into an input that is given away (its *donor*): every reader of
 * that input has run by then, or is the writer itself.
 *
 * After a failed effect the caller keeps the cells that the effect lists; so
 * nothing is written into a donor while an effect is still to come that does
 * not list the new value. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/fuse.h"
#include "compiler/plan_impl.h"
#include "runtime/base/mem.h"

bool tl_plan_donates(const tl_plan *pl, uint32_t input)
{
    return pl->donate && pl->donate[input] != 0;
}

bool tl_pval_same_type(const tl_pval *a, const tl_pval *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->size, b->size, a->rank * sizeof(*a->size)) == 0;
}

/* The k-th input of the set that a row writes in place; -1: none. */
static int in_place_input(const tl_op_info *info, uint32_t k)
{
    for (int i = 0; i < 32; i++) {
        if ((info->in_place >> i & 1) != 0 && k-- == 0) {
            return i;
        }
    }
    return -1;
}

bool tl_pstep_takes(const tl_plan *pl, const tl_pstep *s, uint32_t i,
                    uint32_t k)
{
    const tl_op_info *info = tl_op_get((tl_op)s->op);

    switch ((tl_pstep_kind)s->kind) {
    case TL_PS_KERNEL:
        return info->cls == TL_CLASS_MAP
                   ? true
                   : info->cls == TL_CLASS_KERN &&
                         in_place_input(info, k) == (int)i;
    case TL_PS_GRAD:
        return i == s->nin - 1;
    case TL_PS_TILE:
        return tl_fuse_takes(pl, s, k);
    default:
        return false;
    }
}

/* ---- in place ----------------------------------------------------------- */

/* How many operands of a step lie in this buffer? */
static uint32_t readers(const tl_plan *pl, const tl_pstep *s, uint32_t root)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];

        n += v != 0 && tl_pval_memory(pl, v) == root;
    }
    return n;
}

/* Could result `k` lie where operand `i` lies, both alone and whole there? */
static bool fits(const tl_plan *pl, const tl_pstep *s, uint32_t i, uint32_t k)
{
    uint32_t v = pl->refs.items[s->in + i];
    const tl_pval *a = tl_pval_at(pl, v);
    const tl_pval *r = tl_pval_at(pl, pl->refs.items[s->out + k]);

    return v != 0 && a->contiguous && a->offset == 0 &&
           tl_pval_same_type(a, r) && tl_pstep_takes(pl, s, i, k) &&
           readers(pl, s, tl_pval_root(pl, v)) == 1 &&
           pl->bufs.items[tl_pval_root(pl, v)].bytes ==
               pl->bufs.items[r->buf].bytes;
}

/* Could the header of input buffer `b` be that of value `v`? */
static bool is_like(const tl_plan *pl, const tl_pbuf *b, uint32_t v)
{
    uint32_t in = pl->val_of[pl->in_vals[b->index]];

    return tl_pval_at(pl, in)->contiguous &&
           tl_pval_same_type(tl_pval_at(pl, in), tl_pval_at(pl, v));
}

/* Does the result at `pos` get a donor among the operands? */
static bool has_donor(const tl_plan *pl, const tl_pstep *s, uint32_t k,
                      uint32_t pos)
{
    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];
        const tl_pbuf *b = &pl->bufs.items[v ? tl_pval_root(pl, v) : 0];

        if (b->where == TL_PB_INPUT && b->last == pos &&
            tl_plan_donates(pl, b->index) && fits(pl, s, i, k) &&
            is_like(pl, b, pl->refs.items[s->out + k])) {
            return true;
        }
    }
    return false;
}

static void take_place(tl_plan *pl, tl_pstep *s, uint32_t k, uint32_t pos)
{
    uint32_t r = tl_pval_at(pl, pl->refs.items[s->out + k])->buf;

    if (pl->bufs.items[r].where == TL_PB_OUTPUT &&
        has_donor(pl, s, k, pos)) {
        return;
    }
    for (uint32_t i = 0; i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];
        uint32_t root = v ? tl_pval_root(pl, v) : 0;
        tl_pbuf *b = &pl->bufs.items[root];

        if (root != 0 && b->maker != 0 && b->last == pos &&
            b->taken != pos + 1 && fits(pl, s, i, k)) {
            pl->bufs.items[r].parent = root;
            b->last = pl->bufs.items[r].last;
            b->taken = pos + 1; /* by one result only */
            if (pl->bufs.items[r].where == TL_PB_OUTPUT) {
                b->where = TL_PB_OUTPUT;
            }
            s->taken = (uint8_t)(k == 0 && i < 255 ? i + 1 : s->taken);
            return;
        }
    }
}

/* ---- lives -------------------------------------------------------------- */

static void reset(tl_plan *pl)
{
    for (uint32_t b = 1; b < pl->bufs.len; b++) {
        tl_pbuf *buf = &pl->bufs.items[b];

        buf->parent = b;
        buf->first = buf->last = buf->taken = 0;
        if (buf->maker != 0 && buf->where != TL_PB_SLICE) {
            buf->where = TL_PB_ARENA;
            buf->index = 0;
        }
    }
    for (uint32_t s = 1; s < pl->steps.len; s++) {
        pl->steps.items[s].taken = 0;
    }
    memset(pl->given, 0, pl->nin);
    pl->ntargets = 0;
    pl->last_effect = 0;
    pl->last_chained = 0;
}

/* A buffer is read at `pos`, and what it is a slice of. */
static void set_used(tl_plan *pl, uint32_t b, uint32_t pos)
{
    pl->bufs.items[b].last = pos;
    while (pl->bufs.items[b].where == TL_PB_SLICE) {
        b = pl->bufs.items[b].base;
        pl->bufs.items[b].last = pos;
    }
}

/* An output lies in a buffer.  A slice is copied at the end, until when what
 * it looks at is in place. */
static void set_lasting(tl_plan *pl, uint32_t b)
{
    bool slice = pl->bufs.items[b].where == TL_PB_SLICE;
    tl_pbuf *buf;

    while (pl->bufs.items[b].where == TL_PB_SLICE) {
        pl->bufs.items[b].last = pl->norder;
        b = pl->bufs.items[b].base;
    }
    buf = &pl->bufs.items[b];
    if (!slice || buf->maker == 0) {
        buf->last = TL_PLAN_END;
    } else if (buf->last != TL_PLAN_END) {
        buf->last = pl->norder;
    }
    if (!slice && buf->maker != 0) {
        buf->where = TL_PB_OUTPUT;
    }
}

/* First and last position of each buffer by itself; a buffer with an output
 * in it lasts. */
static void set_lives(tl_plan *pl)
{
    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        const tl_pstep *s = &pl->steps.items[pl->order[pos]];

        pl->last_effect = s->effects ? pos : pl->last_effect;
        pl->last_chained = s->chained ? pos : pl->last_chained;
        for (uint32_t i = 0; i < s->nin; i++) {
            uint32_t v = pl->refs.items[s->in + i];

            if (v != 0) {
                set_used(pl, tl_pval_at(pl, v)->buf, pos);
            }
        }
        if (s->area != 0) {
            pl->bufs.items[s->area].first = pl->bufs.items[s->area].last =
                pos;
        }
        for (uint32_t k = 0; k < s->nout; k++) {
            tl_pbuf *b = &pl->bufs.items
                              [tl_pval_at(pl, pl->refs.items[s->out + k])
                                   ->buf];

            b->first = b->last = pos;
        }
    }
    for (uint32_t i = 0; i < pl->nout; i++) {
        if (pl->outputs[i].value != 0) {
            set_lasting(pl, tl_pval_at(pl, pl->outputs[i].value)->buf);
        }
    }
}

/* ---- donors ------------------------------------------------------------- */

/* Does the effect list a value of this buffer among the cells? */
static bool lists(const tl_plan *pl, const tl_pstep *s, uint32_t root)
{
    const tl_graph *g = pl->p->g;
    const tl_gnode *n = &g->nodes.items[s->node];
    uint32_t first = g->reports.items[n->data].nshown +
                     (n->kind == TL_G_ASSERT ? 1 : 0);

    for (uint32_t i = first; s->kind == TL_PS_EFFECT && i < s->nin; i++) {
        uint32_t v = pl->refs.items[s->in + i];

        if (v != 0 && tl_pval_root(pl, v) == root) {
            return true;
        }
    }
    return false;
}

/* Does an effect after `pos` leave out the values of this buffer? */
static bool unlisted(const tl_plan *pl, uint32_t root, uint32_t pos)
{
    for (uint32_t i = pos + 1; i <= pl->last_effect; i++) {
        const tl_pstep *s = &pl->steps.items[pl->order[i]];

        if (s->effects && !lists(pl, s, root)) {
            return true;
        }
    }
    return false;
}

/* May input buffer `b` give its storage to target `t`?  Not before something
 * that data may refuse: a run that fails has changed nothing.  Of what a loop
 * carries nobody else knows. */
static bool may_donate(const tl_plan *pl, const tl_ptarget *t, uint32_t b)
{
    const tl_pbuf *from = &pl->bufs.items[b];
    const tl_pbuf *to = &pl->bufs.items[t->buf];

    if (from->where != TL_PB_INPUT || from->last > to->first ||
        (to->first < pl->last_chained && !pl->parent) ||
        !tl_plan_donates(pl, from->index) || !is_like(pl, from, t->value)) {
        return false;
    }
    return !pl->given[from->index] &&
           (pl->parent || !unlisted(pl, t->buf, to->first));
}

/* The step that writes a target first, and which of its results that is. */
static const tl_pstep *first_writer(const tl_plan *pl, const tl_ptarget *t,
                                    uint32_t *k)
{
    const tl_pstep *s =
        &pl->steps.items[pl->order[pl->bufs.items[t->buf].first]];

    for (*k = 0; *k < s->nout; (*k)++) {
        if (tl_pval_root(pl, pl->refs.items[s->out + *k]) == t->buf) {
            break;
        }
    }
    return s;
}

static void give(tl_plan *pl, tl_ptarget *t, uint32_t input)
{
    t->donor = input + 1;
    pl->given[input] = 1;
}

/* A donor that the first writer reads. */
static void donor_direct(tl_plan *pl, tl_ptarget *t)
{
    uint32_t k;
    const tl_pstep *s = first_writer(pl, t, &k);

    for (uint32_t i = 0; i < s->nin && t->donor == 0; i++) {
        uint32_t v = pl->refs.items[s->in + i];

        if (v != 0 && may_donate(pl, t, tl_pval_root(pl, v)) &&
            fits(pl, s, i, k)) {
            give(pl, t, pl->bufs.items[tl_pval_root(pl, v)].index);
        }
    }
}

/* Any other input of the type whose last reader ran before. */
static void donor_other(tl_plan *pl, tl_ptarget *t)
{
    const tl_pbuf *to = &pl->bufs.items[t->buf];

    for (uint32_t i = 0; i < pl->nin && t->donor == 0; i++) {
        uint32_t v = pl->val_of[pl->in_vals[i]]; /* 0: a host scalar */
        const tl_pval *a = tl_pval_at(pl, v);
        const tl_pbuf *from = &pl->bufs.items[a->buf];

        if (from->last < to->first && may_donate(pl, t, a->buf)) {
            give(pl, t, i);
        }
    }
}

bool tl_plan_is_whole(const tl_plan *pl, const tl_ptarget *t, uint32_t v)
{
    const tl_pval *a = tl_pval_at(pl, v);

    return a->contiguous && a->offset == 0 &&
           tl_pval_same_type(a, tl_pval_at(pl, t->value));
}

/* The next target: the buffer in which output value v lies. */
static void add_target(tl_plan *pl, uint32_t root)
{
    tl_ptarget *t = &pl->targets[pl->ntargets++];
    const tl_pstep *s;
    uint32_t k;

    *t = (tl_ptarget){.buf = root};
    s = first_writer(pl, t, &k);
    t->value = pl->refs.items[s->out + k];
    pl->bufs.items[root].index = pl->ntargets; /* 1 + target for now */
}

static void set_targets(tl_plan *pl)
{
    pl->donated = 0;
    for (uint32_t i = 0; i < pl->nout; i++) {
        uint32_t v = pl->outputs[i].value;
        uint32_t root = v ? tl_pval_root(pl, v) : 0;
        tl_ptarget *t;

        if (root == 0 || pl->bufs.items[root].where != TL_PB_OUTPUT) {
            continue;
        }
        if (pl->bufs.items[root].index == 0) {
            add_target(pl, root);
        }
        t = &pl->targets[pl->bufs.items[root].index - 1];
        t->outputs++;
        t->whole |= tl_plan_is_whole(pl, t, v);
    }
    for (int direct = 1; direct >= 0; direct--) {
        for (uint32_t i = 0; i < pl->ntargets; i++) {
            tl_ptarget *t = &pl->targets[i];

            if (t->donor == 0 && t->whole) {
                (direct ? donor_direct : donor_other)(pl, t);
            }
        }
    }
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        pl->bufs.items[pl->targets[i].buf].index = i;
        pl->donated += pl->targets[i].donor != 0;
    }
}

/* ---- the bound ---------------------------------------------------------- */

static tl_status set_bound(tl_plan *pl, tl_rt *rt)
{
    size_t n = (size_t)pl->norder + 2; /* slices are copied after the end */
    size_t *change = tl_calloc(n, 2 * sizeof(*change));
    size_t *freed, live = 0;

    if (!change) {
        return tl_plan_no_memory(rt, pl->norder * sizeof(*change));
    }
    freed = change + n;
    for (uint32_t b = 1; b < pl->bufs.len; b++) {
        const tl_pbuf *buf = &pl->bufs.items[b];

        if (buf->parent == b && buf->where == TL_PB_ARENA) {
            change[buf->first] += buf->bytes;
            freed[buf->last + 1] += buf->bytes;
        }
    }
    pl->lower_bound = 0;
    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        live += change[pos];
        live -= freed[pos];
        pl->lower_bound = live > pl->lower_bound ? live : pl->lower_bound;
    }
    tl_free(change);
    return TL_OK;
}

static tl_status make_room(tl_plan *pl, tl_rt *rt)
{
    size_t outputs = (size_t)pl->nout + 1;
    size_t inputs = (size_t)pl->nin + 1;

    if (pl->targets) {
        return TL_OK;
    }
    pl->targets = tl_arena_array(&pl->memory, outputs, sizeof(*pl->targets));
    pl->given = tl_arena_array(&pl->memory, inputs, 1);
    return pl->targets && pl->given ? TL_OK : tl_plan_no_memory(rt, outputs);
}

tl_status tl_plan_live(tl_plan *pl, tl_rt *rt)
{
    TL_TRY(make_room(pl, rt));
    reset(pl);
    set_lives(pl);
    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        tl_pstep *s = &pl->steps.items[pl->order[pos]];

        for (uint32_t k = 0; k < s->nout; k++) {
            take_place(pl, s, k, pos);
        }
    }
    set_targets(pl);
    return set_bound(pl, rt);
}
