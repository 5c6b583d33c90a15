/* program.c - a compiled function: making, guards, runs. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/pass.h"
#include "compiler/program_impl.h"
#include "runtime/base/mem.h"

/* ---- making ------------------------------------------------------------- */

static tl_status list_inputs(tl_program *p, tl_diag *diag)
{
    size_t n = p->g->inputs.len + 1;

    p->hosts = tl_calloc(n, sizeof(*p->hosts));
    p->tensors = tl_calloc(n, sizeof(*p->tensors));
    p->loose = tl_calloc(n, sizeof(*p->loose));
    if (!p->hosts || !p->tensors || !p->loose) {
        return tl_fail_memory(diag, "inputs of a graph", n * sizeof(uint32_t));
    }
    for (uint32_t i = 0; i < p->g->inputs.len; i++) {
        tl_gval v = p->g->inputs.items[i];

        if (p->g->values.items[v].cls == TL_GC_TENSOR) {
            p->tensors[p->ntensors++] = i;
        } else {
            p->hosts[p->nhosts++] = i;
        }
    }
    return TL_OK;
}

static tl_status make_env(tl_program *p, tl_diag *diag)
{
    size_t values = p->g->values.len + 1;

    p->env.scalar = tl_calloc(values, sizeof(*p->env.scalar));
    p->env.known = tl_calloc(values, sizeof(*p->env.known));
    p->env.atom = tl_calloc(p->g->atoms.len + 1, sizeof(*p->env.atom));
    p->consts = tl_calloc(p->g->nodes.len + 1, sizeof(tl_tensor *));
    if (!p->env.scalar || !p->env.known || !p->env.atom || !p->consts) {
        return tl_fail_memory(diag, "host scalars of a graph",
                              values * sizeof(*p->env.scalar));
    }
    return TL_OK;
}

/* Host constants are known from now on. */
static tl_status run_nums(tl_program *p, tl_diag *diag)
{
    for (uint32_t n = 1; n < p->g->nodes.len; n++) {
        if (p->g->nodes.items[n].kind == TL_G_NUM) {
            TL_TRY(tl_graph_host(p->g, n, &p->env, diag));
        }
    }
    return TL_OK;
}

static tl_status make(tl_program *p, tl_diag *diag)
{
    if (!p->options.no_passes) {
        TL_TRY(tl_passes_run(p->g, &p->passes, diag));
    }
    TL_TRY(tl_gfacts_init(&p->facts, p->g, diag));
    TL_TRY(list_inputs(p, diag));
    TL_TRY(make_env(p, diag));
    TL_TRY(tl_program_find_early(p, diag));
    TL_TRY(tl_walk_init(&p->walk, p->g, &p->facts, diag));
    p->walk.env = &p->env;
    p->walk.consts = p->consts;
    return run_nums(p, diag);
}

tl_status tl_program_new(tl_program **out, tl_graph *g,
                         const tl_program_options *options, tl_diag *diag)
{
    tl_program *p = tl_calloc(1, sizeof(*p));
    tl_status st;

    if (!p) {
        tl_graph_free(g);
        return tl_fail_memory(diag, "a program", sizeof(*p));
    }
    p->refs = 1;
    p->g = g;
    tl_diag_init(&p->quiet, NULL);
    p->quiet.muted = true;
    if (options) {
        p->options = *options;
    }
    st = make(p, diag);
    if (st != TL_OK) {
        tl_program_free(p);
        return st;
    }
    *out = p;
    return TL_OK;
}

/* Drop what belongs to a pool. */
static void drop_tensors(tl_program *p)
{
    tl_program_drop_plans(p);
    for (size_t n = 0; p->consts && n < p->g->nodes.len; n++) {
        tl_tensor_unref(p->consts[n]);
        p->consts[n] = NULL;
    }
    p->pool = NULL;
}

tl_program *tl_program_ref(tl_program *p)
{
    p->refs++;
    return p;
}

void tl_program_free(tl_program *p)
{
    if (!p || --p->refs > 0) {
        return;
    }
    drop_tensors(p);
    tl_walk_fini(&p->walk);
    tl_gfacts_fini(&p->facts);
    tl_free(p->env.scalar);
    tl_free(p->env.known);
    tl_free(p->env.atom);
    tl_free(p->consts);
    tl_free(p->hosts);
    tl_free(p->tensors);
    tl_free(p->loose);
    tl_free(p->early);
    tl_free(p->nodes);
    tl_free(p->guards);
    tl_diag_fini(&p->quiet);
    tl_free(p->atoms);
    tl_free(p->sizes);
    tl_free(p->keyed);
    tl_free(p->key);
    tl_graph_free(p->g);
    tl_free(p);
}

const tl_graph *tl_program_graph(const tl_program *p)
{
    return p->g;
}

const tl_pass_counts *tl_program_pass_counts(const tl_program *p)
{
    return &p->passes;
}

/* ---- guards ------------------------------------------------------------- */

static const tl_gguard *first_misfit(const tl_program *p)
{
    for (size_t i = 0; i < p->g->guards.len; i++) {
        const tl_gguard *guard = &p->g->guards.items[i];

        if (guard->value != 0 && p->env.scalar[guard->value].bits !=
                                     guard->expected.bits) {
            return guard;
        }
    }
    return NULL;
}

bool tl_program_fits(tl_program *p, const tl_run *run)
{
    const tl_graph *g = p->g;

    return g->guards.len == 0 ||
           (tl_program_bind_guards(p, run) && first_misfit(p) == NULL);
}

const tl_gguard *tl_program_misfit(tl_program *p, const tl_run *run)
{
    return tl_program_bind_guards(p, run) ? first_misfit(p) : NULL;
}

/* ---- runs --------------------------------------------------------------- */

/* The constants as tensors of this pool. */
static tl_status make_consts(tl_program *p, tl_rt *rt)
{
    const tl_graph *g = p->g;

    for (uint32_t n = 1; n < g->nodes.len; n++) {
        const tl_gnode *node = &g->nodes.items[n];
        const tl_gvalue *v = &g->values.items[node->out];
        const tl_gconst *c = &g->consts.items[node->data];
        int64_t size[TL_MAX_RANK];

        if (node->kind != TL_G_CONST) {
            continue;
        }
        TL_TRY(tl_gvalue_sizes(g, node->out, p->env.atom, size, rt->diag));
        TL_TRY(tl_tensor_new(&p->consts[n], rt->pool, (tl_dtype)v->dtype,
                             v->rank, size, rt->diag));
        tl_tensor_write(p->consts[n], g->bytes.items + c->bytes);
    }
    return TL_OK;
}

static tl_status enter_pool(tl_program *p, tl_rt *rt)
{
    tl_status st;

    if (p->pool == rt->pool) {
        return TL_OK;
    }
    drop_tensors(p);
    st = make_consts(p, rt);
    if (st != TL_OK) {
        drop_tensors(p);
        return st;
    }
    p->pool = rt->pool;
    return TL_OK;
}

/* Ready the program for a run; *plan is NULL where the walk must run it. */
static tl_status prepare(tl_program *p, tl_rt *rt, const tl_run *run,
                         tl_plan **plan)
{
    *plan = NULL;
    TL_TRY(enter_pool(p, rt));
    /* what cannot be bound, the walk reports in its turn */
    if (tl_program_bind(p, run, &p->quiet) && !p->options.walk && !p->late) {
        return tl_program_find_plan(p, rt, run, plan);
    }
    return TL_OK;
}

tl_status tl_program_run(tl_program *p, tl_rt *rt, const tl_run *run)
{
    tl_plan *plan;
    tl_status st;

    if (p->running) {
        return tl_fail(rt->diag, TL_E0699, "a program runs inside itself");
    }
    p->kept = false;
    p->settled = run->held ? p->settled : NULL;
    TL_TRY(prepare(p, rt, run, &plan));
    p->settled = plan == p->settled ? plan : NULL;
    p->running = true;
    if (plan) {
        st = tl_plan_run(plan, p, rt, run, p->settled != NULL);
        p->kept = p->settled != NULL && st == TL_OK;
    } else {
        p->walk.rt = rt;
        st = tl_walk_run(&p->walk, run);
    }
    p->running = false;
    return st;
}

bool tl_program_settle(tl_program *p, const tl_run *run)
{
    p->settled = p->nplans > 0 && tl_plan_settle(p->plans[0], run)
                     ? p->plans[0]
                     : NULL;
    p->nloose = 0;
    for (uint32_t i = 0; i < p->ntensors; i++) {
        if (!run->held[p->tensors[i]]) {
            p->loose[p->nloose++] = p->tensors[i];
        }
    }
    return p->settled != NULL;
}

const uint32_t *tl_program_given(const tl_program *p, uint32_t *n)
{
    *n = 0;
    return p->kept ? tl_plan_given(p->settled, n) : NULL;
}

tl_status tl_program_zeros(tl_program *p, tl_rt *rt, const tl_run *run)
{
    const tl_graph *g = p->g;
    tl_plan *plan;
    tl_status st;

    TL_TRY(prepare(p, rt, run, &plan));
    for (size_t i = 0; i < g->outputs.len; i++) {
        const tl_gvalue *v = &g->values.items[g->outputs.items[i]];
        int64_t size[TL_MAX_RANK];

        if (v->cls != TL_GC_TENSOR) {
            run->out_scalars[i] = (tl_gscalar){.i = 0};
            continue;
        }
        st = tl_gvalue_sizes(g, g->outputs.items[i], p->env.atom, size,
                             rt->diag);
        if (st == TL_OK) {
            st = tl_tensor_new(&run->out_tensors[i], rt->pool,
                               (tl_dtype)v->dtype, v->rank, size, rt->diag);
        }
        if (st != TL_OK) {
            return st; /* the caller releases what there is */
        }
        memset(tl_tensor_data(run->out_tensors[i]), 0,
               (size_t)run->out_tensors[i]->numel *
                   tl_dtype_size((tl_dtype)v->dtype));
    }
    return TL_OK;
}

tl_status tl_program_stats(tl_program *p, tl_rt *rt, const tl_run *run,
                           tl_plan_stats *out)
{
    tl_plan *plan;

    TL_TRY(prepare(p, rt, run, &plan));
    *out = (tl_plan_stats){0};
    if (plan) {
        tl_plan_get_stats(plan, out);
    }
    return TL_OK;
}

tl_status tl_program_explain(tl_program *p, tl_rt *rt, const tl_run *run,
                             tl_buf *out)
{
    tl_plan *plan;

    TL_TRY(prepare(p, rt, run, &plan));
    if (plan) {
        tl_plan_explain(plan, p, out);
    } else {
        tl_buf_puts(out, "no plan: node by node, because sizes or layouts "
                         "become known during the run\n");
    }
    return TL_OK;
}
