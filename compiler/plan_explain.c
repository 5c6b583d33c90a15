/* plan_explain.c - a plan as text: kernels in order, sizes, memory. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/fuse.h"
#include "compiler/plan_region.h"
#include "runtime/base/size.h"

static void put_shape(const tl_pval *v, tl_buf *out)
{
    tl_buf_printf(out, "%s[", tl_dtype_name((tl_dtype)v->dtype));
    for (int i = 0; i < v->rank; i++) {
        tl_buf_printf(out, i ? ", %lld" : "%lld", (long long)v->size[i]);
    }
    tl_buf_putc(out, ']');
}

/* The name of a step by itself. */
static void put_name(const tl_plan *pl, const tl_pstep *s, tl_buf *out)
{
    const tl_gnode *n = &pl->p->g->nodes.items[s->node];

    switch ((tl_pstep_kind)s->kind) {
    case TL_PS_KERNEL:
        tl_buf_puts(out, tl_op_get((tl_op)s->op)->name);
        break;
    case TL_PS_GRAD:
        tl_buf_printf(out, "%s'%d", tl_op_get((tl_op)s->op)->name, s->which);
        break;
    case TL_PS_SLICE:
        tl_buf_puts(out, "slice");
        break;
    case TL_PS_HOST:
        tl_buf_puts(out, n->kind == TL_G_HOST ? tl_ghost_name((tl_ghost)s->op)
                                              : "size");
        break;
    default:
        tl_buf_puts(out, tl_gkind_name((tl_gkind)n->kind));
        break;
    }
}

static void put_place(const tl_plan *pl, uint32_t v, tl_buf *out)
{
    const tl_pbuf *b = &pl->bufs.items[tl_pval_root(pl, v)];
    const tl_ptarget *t;

    if (b->where == TL_PB_ARENA) {
        tl_buf_printf(out, " at %zu", b->at);
        return;
    }
    if (b->where == TL_PB_SLICE) {
        tl_buf_puts(out, " where the run says");
        return;
    }
    t = &pl->targets[b->index];
    if (t->donor != 0) {
        tl_buf_printf(out, " over input %u", t->donor - 1);
    } else {
        tl_buf_puts(out, " new");
    }
}

static void put_fused(const tl_plan *pl, const tl_pstep *s, tl_buf *out)
{
    tl_buf_puts(out, "fused(");
    for (uint32_t p = 0; p < s->nparts; p++) {
        tl_buf_puts(out, p ? " " : "");
        put_name(pl, &pl->steps.items[pl->refs.items[s->part + p]], out);
    }
    tl_buf_putc(out, ')');
}

static size_t bytes_of(const tl_plan *pl, uint32_t v)
{
    const tl_pval *val = tl_pval_at(pl, v);

    return v ? (size_t)val->numel * tl_dtype_size((tl_dtype)val->dtype) : 0;
}

static void put_step(const tl_plan *pl, const tl_pstep *s, uint32_t pos,
                     tl_buf *out);

static void put_steps(const tl_plan *pl, tl_buf *out)
{
    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        put_step(pl, &pl->steps.items[pl->order[pos]], pos, out);
    }
}

/* Why the step runs by itself, or is not one program with another one. */
static void put_why(const tl_plan *pl, const tl_pstep *s, tl_buf *out)
{
    const tl_pstep *other = &pl->steps.items[s->apart];
    bool alone;
    const char *text;

    if (s->why == TL_WHY_NONE || s->why == TL_WHY_OTHER ||
        s->why == TL_WHY_COPY) {
        return; /* or it is seen */
    }
    text = tl_fuse_why_text((tl_fuse_why)s->why, &alone);
    if (s->apart == 0) {
        tl_buf_printf(out, "; alone: it %s", text);
        return;
    }
    other = other->fused ? &pl->steps.items[other->group] : other;
    tl_buf_printf(out, alone ? "; not with %u: that %s" : "; not with %u: %s",
                  other->pos, text);
}

static void put_step(const tl_plan *pl, const tl_pstep *s, uint32_t pos,
                     tl_buf *out)
{
    size_t bytes = 0;

    tl_buf_printf(out, "%5u  ", pos);
    if (s->kind == TL_PS_TILE) {
        put_fused(pl, s, out);
    } else {
        put_name(pl, s, out);
    }
    tl_buf_puts(out, s->copy ? " (a view needs it)" : "");
    for (uint32_t i = 0; i < s->nin; i++) {
        bytes += bytes_of(pl, pl->refs.items[s->in + i]);
    }
    for (uint32_t k = 0; k < s->nout; k++) {
        uint32_t v = pl->refs.items[s->out + k];

        bytes += bytes_of(pl, v);
        tl_buf_puts(out, k ? ", " : " -> ");
        put_shape(tl_pval_at(pl, v), out);
        put_place(pl, v, out);
    }
    tl_buf_printf(out, s->taken ? ", in place" : "");
    tl_buf_printf(out, ", %s", tl_bytes_str(bytes).s);
    put_why(pl, s, out);
    tl_buf_putc(out, '\n');
    for (uint32_t k = 0; s->regions && k < s->regions->count; k++) {
        tl_buf_printf(out, "       region %u:\n", k);
        put_steps(s->regions->plan[k], out);
    }
}

void tl_plan_explain(const tl_plan *pl, const tl_program *p, tl_buf *out)
{
    size_t fresh = 0;

    (void)p;
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        fresh += pl->targets[i].donor ? 0
                                      : bytes_of(pl, pl->targets[i].value);
    }
    tl_buf_printf(out,
                  "%u kernels, %u operations fused, %u copies\n"
                  "memory: arena %s, least possible in this order %s, "
                  "new outputs %s, %u of %u outputs over inputs\n",
                  pl->kernels, pl->fused, pl->copies,
                  tl_bytes_str(pl->arena).s, tl_bytes_str(pl->lower_bound).s,
                  tl_bytes_str(fresh).s, pl->donated, pl->ntargets);
    put_steps(pl, out);
}
