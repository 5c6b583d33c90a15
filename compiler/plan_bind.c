/* plan_bind.c - headers, attributes and tile programs of a plan whose
 * addresses are known.
 *
 * A header of a plan borrows its storage: it holds no reference, so that
 * inputs stay unshared and nothing is kept alive between runs.  Which storage
 * it shows is set when the arena, an input or an output is another one than
 * at the run before (plan_run.c). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/fuse.h"
#include "compiler/plan_impl.h"
#include "runtime/base/mem.h"

typedef struct binder {
    tl_plan *pl;
    tl_rt *rt;
    tl_attrs **attrs; /* by attributes of the graph, without binds */
    uint32_t *input_of; /* by input: its number in pl->inputs, plus 1 */
} binder;

/* ---- headers ------------------------------------------------------------ */

static tl_status header_new(binder *b, uint32_t v)
{
    tl_pval *val = tl_pval_at(b->pl, v);
    size_t bytes = val->rank * sizeof(int64_t);
    const tl_pbuf *buf = &b->pl->bufs.items[tl_pval_root(b->pl, v)];

    if (v == 0 || val->t) {
        return TL_OK;
    }
    TL_TRY(tl_tensor_blank(&val->t, (tl_dtype)val->dtype, val->rank,
                           b->rt->diag));
    memcpy(val->t->size, val->size, bytes);
    memcpy(val->t->stride, val->stride, bytes);
    val->t->numel = val->numel;
    val->t->flags = val->contiguous ? TL_TENSOR_CONTIGUOUS : 0;
    val->t->offset = val->offset;
    if (buf->where == TL_PB_ARENA) {
        val->t->offset += (int64_t)(buf->at /
                                    tl_dtype_size((tl_dtype)val->dtype));
    } else if (buf->where == TL_PB_CONST) {
        const tl_tensor *c = b->pl->p->consts[buf->index];

        val->t->offset += c->offset;
        val->t->storage = c->storage;
    }
    return TL_OK;
}

static tl_status make_headers(binder *b)
{
    tl_plan *pl = b->pl;

    for (uint32_t n = 1; n < pl->steps.len; n++) {
        const tl_pstep *s = &pl->steps.items[n];

        for (uint32_t i = 0; i < s->nin && !s->fused; i++) {
            TL_TRY(header_new(b, pl->refs.items[s->in + i]));
        }
        for (uint32_t k = 0; k < s->nout && !s->fused; k++) {
            TL_TRY(header_new(b, pl->refs.items[s->out + k]));
        }
    }
    for (uint32_t i = 0; i < pl->nout; i++) {
        uint32_t v = pl->outputs[i].value;

        if (pl->bufs.items[tl_pval_at(pl, v)->buf].where == TL_PB_SLICE) {
            TL_TRY(header_new(b, v)); /* it is copied */
        }
    }
    return TL_OK;
}

/* ---- lists of headers by what they lie in ------------------------------- */

static void count_headers(tl_plan *pl, uint32_t *input_of)
{
    for (uint32_t v = 1; v < pl->vals.len; v++) {
        const tl_pbuf *buf = &pl->bufs.items[tl_pval_root(pl, v)];

        if (!pl->vals.items[v].t) {
            continue;
        }
        if (buf->where == TL_PB_ARENA) {
            pl->narena_headers++;
        } else if (buf->where == TL_PB_OUTPUT) {
            pl->targets[buf->index].nheaders++;
        } else if (buf->where == TL_PB_SLICE) {
            pl->slices[pl->vals.items[v].buf].nheaders++;
        } else if (buf->where == TL_PB_INPUT) {
            if (input_of[buf->index] == 0) {
                pl->inputs[pl->ninputs].index = buf->index;
                input_of[buf->index] = ++pl->ninputs;
            }
            pl->inputs[input_of[buf->index] - 1].nheaders++;
        }
    }
}

static void fill_lists(tl_plan *pl, const uint32_t *input_of)
{
    pl->narena_headers = 0;
    for (uint32_t v = 1; v < pl->vals.len; v++) {
        const tl_pval *val = tl_pval_at(pl, v);
        const tl_pbuf *buf = &pl->bufs.items[tl_pval_root(pl, v)];

        if (!val->t) {
            continue;
        }
        if (buf->where == TL_PB_ARENA) {
            pl->arena_headers[pl->narena_headers++] = val->t;
        } else if (buf->where == TL_PB_OUTPUT) {
            tl_ptarget *t = &pl->targets[buf->index];

            t->headers[t->nheaders++] = val->t;
        } else if (buf->where == TL_PB_SLICE) {
            tl_pslice *s = &pl->slices[val->buf];

            s->headers[s->nheaders] = val->t;
            s->rel[s->nheaders++] = val->offset;
        } else if (buf->where == TL_PB_INPUT) {
            tl_pinput *in = &pl->inputs[input_of[buf->index] - 1];

            in->headers[in->nheaders] = val->t;
            in->rel[in->nheaders++] = val->offset;
        }
    }
}

/* Arrays for the lists; their lengths become 0 again. */
static tl_status room_for_lists(tl_plan *pl, tl_rt *rt)
{
    tl_arena *m = &pl->memory;

    pl->arena_headers = tl_arena_array(m, (size_t)pl->narena_headers + 1,
                                       sizeof(tl_tensor *));
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        tl_ptarget *t = &pl->targets[i];

        t->headers = tl_arena_array(m, (size_t)t->nheaders + 1,
                                    sizeof(tl_tensor *));
        if (!t->headers) {
            return tl_plan_no_memory(rt, t->nheaders);
        }
        t->nheaders = 0;
    }
    for (uint32_t i = 0; i < pl->ninputs; i++) {
        tl_pinput *in = &pl->inputs[i];

        in->headers = tl_arena_array(m, (size_t)in->nheaders + 1,
                                     sizeof(tl_tensor *));
        in->rel = tl_arena_array(m, (size_t)in->nheaders + 1,
                                 sizeof(*in->rel));
        if (!in->headers || !in->rel) {
            return tl_plan_no_memory(rt, in->nheaders);
        }
        in->nheaders = 0;
    }
    for (uint32_t b = 1; b < pl->bufs.len; b++) {
        tl_pslice *s = &pl->slices[b];

        if (s->nheaders == 0) {
            continue;
        }
        s->headers = tl_arena_array(m, s->nheaders, sizeof(tl_tensor *));
        s->rel = tl_arena_array(m, s->nheaders, sizeof(*s->rel));
        if (!s->headers || !s->rel) {
            return tl_plan_no_memory(rt, s->nheaders);
        }
        s->nheaders = 0;
    }
    return pl->arena_headers ? TL_OK
                             : tl_plan_no_memory(rt, pl->narena_headers);
}

static tl_status list_headers(binder *b)
{
    tl_plan *pl = b->pl;
    size_t n = (size_t)pl->nin + 1;
    uint32_t *input_of = tl_arena_array(&pl->memory, n, sizeof(*input_of));

    pl->inputs = tl_arena_array(&pl->memory, n, sizeof(*pl->inputs));
    pl->slices = tl_arena_array(&pl->memory, pl->bufs.len + 1,
                                sizeof(*pl->slices));
    if (!input_of || !pl->inputs || !pl->slices) {
        return tl_plan_no_memory(b->rt, n * sizeof(*pl->inputs));
    }
    b->input_of = input_of;
    count_headers(pl, input_of);
    TL_TRY(room_for_lists(pl, b->rt));
    fill_lists(pl, input_of);
    return TL_OK;
}

/* ---- steps -------------------------------------------------------------- */

static tl_status bind_attrs(binder *b, tl_pstep *s)
{
    const tl_gnode *n = &b->pl->p->g->nodes.items[s->node];
    const tl_attrs *out;

    bool own = s->binds || s->late;

    if (n->attrs == 0 || s->copy ||
        (s->kind != TL_PS_KERNEL && s->kind != TL_PS_GRAD)) {
        return TL_OK;
    }
    if (!own && b->attrs[n->attrs]) {
        s->at = b->attrs[n->attrs];
        return TL_OK;
    }
    s->at = TL_ARENA_NEW(&b->pl->memory, tl_attrs);
    if (!s->at) {
        return tl_plan_no_memory(b->rt, sizeof(*s->at));
    }
    if (s->late) {
        return TL_OK; /* each run sets them */
    }
    if (!own) {
        b->attrs[n->attrs] = s->at;
    }
    return tl_gnode_attrs(b->pl->p->g, n, &b->pl->p->env, s->at, &out,
                          b->rt->diag);
}

static tl_status bind_operands(binder *b, tl_pstep *s)
{
    tl_plan *pl = b->pl;

    s->tin = tl_arena_array(&pl->memory, (size_t)s->nin + s->nout + 1,
                            sizeof(tl_tensor *));
    if (!s->tin) {
        return tl_plan_no_memory(b->rt, s->nin * sizeof(tl_tensor *));
    }
    s->tout = s->tin + s->nin;
    for (uint32_t i = 0; i < s->nin; i++) {
        s->tin[i] = tl_pval_at(pl, pl->refs.items[s->in + i])->t;
    }
    for (uint32_t k = 0; k < s->nout; k++) {
        s->tout[k] = tl_pval_at(pl, pl->refs.items[s->out + k])->t;
    }
    return TL_OK;
}

/* Headers show the storages of inputs and targets, as if inputs began at
 * their storage's beginning; a target with a donor shows the donor's. */
static void point_headers(const binder *b)
{
    tl_plan *pl = b->pl;

    for (uint32_t i = 0; i < pl->ninputs; i++) {
        tl_pinput *in = &pl->inputs[i];

        for (uint32_t k = 0; k < in->nheaders; k++) {
            in->headers[k]->storage = in->storage;
            in->headers[k]->offset = in->rel[k];
        }
    }
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        tl_ptarget *t = &pl->targets[i];
        uint32_t in = t->donor != 0 ? b->input_of[t->donor - 1] : 0;

        if (in != 0) {
            t->storage = pl->inputs[in - 1].storage;
        }
        for (uint32_t k = 0; k < t->nheaders; k++) {
            t->headers[k]->storage = t->storage;
        }
    }
}

/* The next run points them to real storages. */
static void forget_storages(tl_plan *pl)
{
    for (uint32_t i = 0; i < pl->ninputs; i++) {
        pl->inputs[i].storage = NULL;
    }
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        pl->targets[i].storage = NULL;
    }
    pl->bound = NULL;
}

/* What a tile program finds at its making to share storage, it must share for
 * good: here every buffer has an address of its own, which nobody reads, the
 * arena the highest, and a target has its donor's. */
static tl_status bind_tiles(binder *b)
{
    tl_plan *pl = b->pl;
    size_t count = 1 + (size_t)pl->ninputs + pl->ntargets + pl->bufs.len;
    tl_storage *fake = tl_calloc(count, sizeof(*fake)), *next = fake;
    tl_status st = TL_OK;

    if (!fake) {
        return tl_plan_no_memory(b->rt, count * sizeof(*fake));
    }
    for (size_t i = 0; i < count; i++) {
        fake[count - 1 - i].data = (void *)((uintptr_t)(i + 1) << 32);
    }
    for (uint32_t i = 0; i < pl->narena_headers; i++) {
        pl->arena_headers[i]->storage = fake;
    }
    for (uint32_t i = 0; i < pl->ninputs; i++) {
        pl->inputs[i].storage = ++next;
    }
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        pl->targets[i].storage = ++next;
    }
    for (uint32_t i = 1; i < pl->bufs.len; i++) {
        next++;
        for (uint32_t k = 0; k < pl->slices[i].nheaders; k++) {
            pl->slices[i].headers[k]->storage = next;
        }
    }
    point_headers(b);
    for (uint32_t n = 1; n < pl->steps.len && st == TL_OK; n++) {
        tl_pstep *s = &pl->steps.items[n];

        if (s->kind == TL_PS_TILE) {
            pl->fused += s->nparts;
            st = tl_plan_tile(pl, s, b->rt);
        }
    }
    forget_storages(pl);
    tl_free(fake);
    return st;
}

static tl_status bind_steps(binder *b)
{
    tl_plan *pl = b->pl;

    for (uint32_t n = 1; n < pl->steps.len; n++) {
        tl_pstep *s = &pl->steps.items[n];

        if (s->kind != TL_PS_TILE) {
            TL_TRY(bind_attrs(b, s));
        }
        if (s->fused) {
            continue;
        }
        TL_TRY(bind_operands(b, s));
        if (s->kind == TL_PS_KERNEL) {
            s->kernel = b->rt->device->kernel[s->op];
            pl->impossible = pl->impossible || !s->kernel;
        }
        pl->kernels += s->kind <= TL_PS_TILE || s->kind == TL_PS_REGION;
    }
    return pl->impossible ? TL_OK : bind_tiles(b);
}

/* Which outputs are headers of targets. */
static void bind_outputs(tl_plan *pl)
{
    for (uint32_t i = 0; i < pl->nout; i++) {
        tl_poutput *o = &pl->outputs[i];
        const tl_pbuf *buf =
            &pl->bufs.items[o->value ? tl_pval_root(pl, o->value) : 0];

        if (o->value != 0 && buf->where == TL_PB_OUTPUT &&
            tl_plan_is_whole(pl, &pl->targets[buf->index], o->value)) {
            o->target = buf->index + 1;
            o->alone = pl->targets[buf->index].outputs == 1;
        }
    }
    for (uint32_t i = 0; i < pl->ntargets; i++) {
        const tl_pval *v = tl_pval_at(pl, pl->targets[i].value);

        pl->targets[i].most =
            2 * ((size_t)v->numel * tl_dtype_size((tl_dtype)v->dtype) + 64);
    }
}

static tl_status bind_calls(tl_plan *pl, tl_rt *rt)
{
    pl->calls = tl_arena_array(&pl->memory, (size_t)pl->norder + 1,
                               sizeof(*pl->calls));
    if (!pl->calls) {
        return tl_plan_no_memory(rt, pl->norder * sizeof(*pl->calls));
    }
    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        tl_pstep *s = &pl->steps.items[pl->order[pos]];

        s->pos = pos;
        pl->calls[pos] = (tl_pcall){.kernel = s->kernel,
                                    .tin = s->tin,
                                    .tout = s->tout,
                                    .at = s->at,
                                    .step = pl->order[pos],
                                    .op = s->op,
                                    .kind = s->kind,
                                    .binds = s->binds || s->late,
                                    .nin = (int32_t)s->nin,
                                    .nout = (int32_t)s->nout};
    }
    for (uint32_t pos = pl->norder; pos-- > 0;) {
        tl_pcall *c = &pl->calls[pos];

        if (c->kind == TL_PS_KERNEL && !c->binds) {
            c->plain = pos + 1 < pl->norder ? c[1].plain + 1 : 1;
        }
    }
    return TL_OK;
}

tl_status tl_plan_bind(tl_plan *pl, tl_rt *rt)
{
    binder b = {.pl = pl, .rt = rt};
    tl_status st;

    b.attrs = tl_calloc(pl->p->g->attrs.len + 1, sizeof(tl_attrs *));
    if (!b.attrs) {
        return tl_plan_no_memory(rt, pl->p->g->attrs.len);
    }
    TL_GOTO(st, make_headers(&b));
    TL_GOTO(st, list_headers(&b));
    TL_GOTO(st, bind_steps(&b));
    bind_outputs(pl);
    TL_GOTO(st, bind_calls(pl, rt));
    st = tl_plan_list_work(pl, rt);
out:
    tl_free(b.attrs);
    return st;
}
