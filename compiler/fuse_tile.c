/* fuse_tile.c - the tile program of a group. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/fuse.h"

typedef struct maker {
    const tl_plan *pl;
    const tl_pstep *s;
    tl_tile_step steps[TL_TILE_MAX_STEPS];
    uint32_t value[TL_TILE_MAX_STEPS]; /* that each step makes */
    int n;
} maker;

/* How a step refers to value v: to an input of the group, or to the step that
 * makes it.  A view of such stands for it: a row's number with more axes. */
static int16_t reference(const maker *m, uint32_t v)
{
    const tl_plan *pl = m->pl;

    for (uint32_t k = 0; k < m->s->nin; k++) {
        if (pl->refs.items[m->s->in + k] == v) {
            return (int16_t)k;
        }
    }
    for (int i = 0; i < m->n; i++) {
        if (tl_pval_at(pl, m->value[i])->buf == tl_pval_at(pl, v)->buf) {
            return (int16_t)(-2 - i);
        }
    }
    return -1;
}

/* The result of the group that is value v; -1: none. */
static int16_t result_number(const maker *m, uint32_t v)
{
    for (uint32_t k = 0; k < m->s->nout; k++) {
        if (m->pl->refs.items[m->s->out + k] == v) {
            return (int16_t)k;
        }
    }
    return -1;
}

static void push(maker *m, const tl_pstep *part, uint32_t k,
                 tl_tile_step step)
{
    uint32_t v = m->pl->refs.items[part->out + k];

    step.op = part->op;
    step.dtype = tl_pval_at(m->pl, v)->dtype;
    step.to = result_number(m, v);
    step.p = part->at ? part->at->f : NULL;
    m->value[m->n] = v;
    m->steps[m->n++] = step;
}

/* The operands of a part in its own order; layer_norm's in that of the tile
 * machine, which wants a place for the weight before the bias. */
static void set_operands(const maker *m, const tl_pstep *part,
                         tl_tile_step *step)
{
    const tl_plan *pl = m->pl;

    step->nin = (uint8_t)part->nin;
    for (uint32_t i = 0; i < part->nin; i++) {
        uint32_t v = pl->refs.items[part->in + i];

        step->in[i] = v ? reference(m, v) : -1;
    }
    if (part->kind != TL_PS_KERNEL) {
        return;
    }
    if (part->op == TL_OP_layer_norm) {
        int16_t second = part->nin > 1 ? step->in[1] : -1;
        bool bias = part->nin == 2 && part->at && part->at->flag;

        step->in[1] = bias ? -1 : second;
        step->in[2] = bias ? second : part->nin == 3 ? step->in[2] : -1;
        step->nin = 3;
    } else if (part->op == TL_OP_layer_norm_grad) {
        step->in[4] = part->nin == 5 ? step->in[4] : -1;
        step->nin = 5;
    }
}

static void add_part(maker *m, const tl_pstep *part)
{
    tl_tile_step step = {
        .which = (int8_t)(part->kind == TL_PS_GRAD ? part->which : -1),
        .compute = (uint8_t)tl_fuse_compute(m->pl, part)};
    int first = m->n;

    set_operands(m, part, &step);
    push(m, part, 0, step);
    for (uint32_t k = 1; k < part->nout; k++) { /* statistics of rows */
        push(m, part, k,
             (tl_tile_step){.which = (int8_t)k,
                            .nin = 1,
                            .in = {(int16_t)(-2 - first)}});
    }
}

/* The parts, that which a reduction at the end reads behind the others. */
static void add_parts(maker *m)
{
    const tl_plan *pl = m->pl;
    const tl_pstep *s = m->s;
    const uint32_t *parts = &pl->refs.items[s->part];
    uint32_t n = s->nparts - (s->reduces ? 1 : 0), last = 0;
    uint32_t fed = s->reduces
                       ? pl->refs.items[pl->steps.items[parts[n]].in]
                       : 0;

    for (uint32_t p = 0; p < n; p++) {
        const tl_pstep *part = &pl->steps.items[parts[p]];

        if (fed != 0 && pl->refs.items[part->out] == fed) {
            last = parts[p];
        } else {
            add_part(m, part);
        }
    }
    if (last != 0) {
        add_part(m, &pl->steps.items[last]);
    }
}

tl_status tl_plan_tile(tl_plan *pl, tl_pstep *s, tl_rt *rt)
{
    maker m = {.pl = pl, .s = s};
    const tl_pval *space = tl_pval_at(pl, s->space);
    const tl_pstep *end;

    add_parts(&m);
    if (s->reduces) {
        end = &pl->steps.items[pl->refs.items[s->part + s->nparts - 1]];
        return tl_tile_reduce_new(&s->reduction, (tl_op)end->op, end->at,
                                  space->rank, space->size, m.steps, m.n,
                                  s->tin, (int)s->nin, s->tout,
                                  (int)s->nout - 1, s->tout[s->nout - 1],
                                  rt->diag);
    }
    if (s->trailing > 0) {
        return tl_tile_rows_new(&s->tile, space->rank, space->size,
                                s->trailing, m.steps, m.n, s->tin,
                                (int)s->nin, s->tout, (int)s->nout, rt->diag);
    }
    return tl_tile_new(&s->tile, space->rank, space->size, m.steps, m.n,
                       s->tin, (int)s->nin, s->tout, (int)s->nout, rt->diag);
}
