/* program_test.h - programs built beside the tensors that tl_apply makes, and
 * their runs by walk, plan and plan without fusion, compared bit for bit. */
#ifndef TL_TEST_COMPILER_PROGRAM_TEST_H
#define TL_TEST_COMPILER_PROGRAM_TEST_H

#include <stdio.h>
#include <string.h>

#include "compiler/build.h"
#include "compiler/program.h"
#include "runtime/base/vec.h"
#include "tests/unit/runtime/helper.h"

enum { MAX_VALUES = 8192 };

static char world_label[32]; /* of random ones, for messages */

/* A graph under construction; `t` is what tl_apply makes of each value. */
typedef struct world {
    tl_gbuild b;
    tl_gval v[MAX_VALUES];
    tl_tensor *t[MAX_VALUES]; /* references */
    int n;
    tl_tensor *in[MAX_VALUES]; /* by input; NULL for host scalars */
    tl_gscalar scalar[MAX_VALUES];
    uint8_t donate[MAX_VALUES];
    int nin;
    tl_tensor *want[MAX_VALUES]; /* by output */
    int nout;
} world;

static inline void world_init(world *w)
{
    memset(w, 0, sizeof(*w));
    OK(tl_gbuild_init(&w->b, &diag));
}

static inline int keep(world *w, tl_gval v, tl_tensor *t)
{
    cr_assert_lt(w->n, MAX_VALUES);
    w->v[w->n] = v;
    w->t[w->n] = t;
    return w->n++;
}

/* The next input, with this value (a reference). */
static inline int input(world *w, tl_tensor *t)
{
    tl_ttype type;
    tl_gval v;

    tl_tensor_type(t, &type);
    OK(tl_gbuild_input(&w->b, &type, &v));
    w->in[w->nin++] = tl_tensor_ref(t);
    return keep(w, v, t);
}

static inline tl_gval host_input(world *w, tl_gclass cls, tl_gscalar s)
{
    tl_gval v;

    OK(tl_gbuild_host_input(&w->b, cls, &v));
    w->scalar[w->nin++] = s;
    return v;
}

/* Run `op` both ways; its first result's number, or -1 if tl_apply refuses
 * it. */
static inline int apply(world *w, tl_op op, const int *in, int nin,
                        const tl_attrs *at)
{
    tl_tensor *t[8], *out[4];
    tl_gval v[8], result[4];
    int first = w->n;

    for (int i = 0; i < nin; i++) {
        t[i] = w->t[in[i]];
        v[i] = w->v[in[i]];
    }
    if (tl_apply_borrowed(&rt, op, t, nin, at, out) != TL_OK) {
        tl_diag_clear(&diag);
        return -1;
    }
    OK(tl_gbuild_apply(&w->b, op, v, nin, at, result));
    for (int k = 0; k < tl_op_get(op)->nout; k++) {
        keep(w, result[k], out[k]);
    }
    return first;
}

static inline int apply1(world *w, tl_op op, int x, const tl_attrs *at)
{
    return apply(w, op, &x, 1, at);
}

static inline int apply2(world *w, tl_op op, int x, int y)
{
    return apply(w, op, (int[]){x, y}, 2, NULL);
}

static inline void output_value(world *w, tl_gval v, tl_tensor *want)
{
    OK(TL_VEC_PUSH(&w->b.g->outputs, v, &diag));
    w->want[w->nout++] = want ? tl_tensor_ref(want) : NULL;
}

static inline void output(world *w, int x)
{
    output_value(w, w->v[x], w->t[x]);
}

/* Equal types and bits; any NaN is equal to any other. */
static inline bool same_bits(const tl_tensor *a, const tl_tensor *b)
{
    size_t width = tl_dtype_size(a->dtype);
    bool same = a->dtype == b->dtype && a->rank == b->rank &&
                memcmp(a->size, b->size,
                       (size_t)a->rank * sizeof(*a->size)) == 0;
    char *x, *y;

    if (!same) {
        return false;
    }
    x = tl_malloc(width * (size_t)a->numel + 1);
    y = tl_malloc(width * (size_t)a->numel + 1);
    tl_tensor_read(a, x);
    tl_tensor_read(b, y);
    for (int64_t i = 0; i < a->numel && same; i++) {
        same = memcmp(x + (size_t)i * width, y + (size_t)i * width, width) ==
                   0 ||
               (tl_dtype_is_float(a->dtype) && isnan(tl_tensor_get_f(a, i)) &&
                isnan(tl_tensor_get_f(b, i)));
    }
    tl_free(x);
    tl_free(y);
    return same;
}

static inline tl_tensor *clone(tl_tensor *t)
{
    tl_tensor *c;

    OK(tl_tensor_new(&c, rt.pool, t->dtype, t->rank, t->size, &diag));
    OK(rt.device->kernel[TL_OP_copy](&rt.kctx, TL_OP_copy, &t, 1, &c, 1,
                                     NULL));
    return c;
}

/* A run of a program on the world's inputs; donated ones are clones. */
typedef struct result {
    tl_tensor *in[MAX_VALUES], *out[MAX_VALUES];
    tl_gscalar out_scalar[MAX_VALUES];
    tl_run run;
} result;

static inline void result_open(result *r, const world *w)
{
    memset(r, 0, sizeof(*r));
    for (int i = 0; i < w->nin; i++) {
        if (w->in[i]) {
            r->in[i] = w->donate[i] ? clone(w->in[i])
                                    : tl_tensor_ref(w->in[i]);
        }
    }
    r->run = (tl_run){.tensors = r->in,
                      .scalars = w->scalar,
                      .donate = w->donate,
                      .out_tensors = r->out,
                      .out_scalars = r->out_scalar};
}

static inline void result_close(result *r)
{
    for (int i = 0; i < MAX_VALUES; i++) {
        tl_tensor_unref(r->in[i]);
        tl_tensor_unref(r->out[i]);
    }
}

/* Are the outputs what tl_apply gave, layouts included? */
static inline void expect_outputs(const result *r, const world *w,
                                  const char *what)
{
    for (int i = 0; i < w->nout; i++) {
        if (w->want[i]) {
            cr_expect(same_bits(r->out[i], w->want[i]), "%s %s: output %d",
                      world_label, what, i);
            cr_expect_eq(tl_tensor_contiguous(r->out[i]),
                         tl_tensor_contiguous(w->want[i]),
                         "%s %s: layout of output %d", world_label, what, i);
        }
    }
}

/* A program of a copy of the world's graph. */
static inline tl_program *program(const world *w, bool walk, bool no_fuse)
{
    tl_program_options options = {
        .walk = walk, .no_fuse = no_fuse, .no_passes = true};
    tl_program *p;
    tl_buf text;
    tl_graph *g;

    tl_buf_init(&text);
    tl_graph_print(w->b.g, &text);
    OK(tl_graph_parse(&g, tl_buf_str(&text), text.len, &diag));
    tl_buf_fini(&text);
    OK(tl_program_new(&p, g, &options, &diag));
    return p;
}

/* Run by walk, plan and plan without fusion, thrice each; all must give what
 * tl_apply gave.  The figures are those of the plan with fusion. */
static inline void expect_all(const world *w, tl_plan_stats *stats)
{
    static const char *const names[] = {"walk", "plan", "fused plan"};

    for (int kind = 0; kind < 3; kind++) {
        tl_program *p = program(w, kind == 0, kind == 1);
        result r;

        for (int i = 0; i < 3; i++) {
            result_open(&r, w);
            OK(tl_program_run(p, &rt, &r.run));
            expect_outputs(&r, w, names[kind]);
            result_close(&r);
        }
        if (stats) {
            result_open(&r, w);
            OK(tl_program_stats(p, &rt, &r.run, stats));
            result_close(&r);
        }
        tl_program_free(p);
    }
}

static inline void world_fini(world *w)
{
    for (int i = 0; i < w->n; i++) {
        tl_tensor_unref(w->t[i]);
    }
    for (int i = 0; i < MAX_VALUES; i++) {
        tl_tensor_unref(w->in[i]);
        tl_tensor_unref(w->want[i]);
    }
    tl_gbuild_fini(&w->b);
}

#endif
