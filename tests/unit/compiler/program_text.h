/* program_text.h - programs from text, and their runs. */
#ifndef TL_TEST_COMPILER_PROGRAM_TEXT_H
#define TL_TEST_COMPILER_PROGRAM_TEXT_H

#include "compiler/plan_region.h"
#include "tests/unit/compiler/program_test.h"

/* ---- running ------------------------------------------------------------ */

enum { MOST = 8 };

typedef struct call {
    tl_tensor *in[MOST], *out[MOST];
    tl_gscalar scalar[MOST], out_scalar[MOST];
    uint8_t donate[MOST];
    tl_run run;
    char log[256]; /* of effects */
    bool refuse;   /* effects fail */
} call;

static inline tl_program *parse(const char *text, bool walk)
{
    tl_program_options options = {.walk = walk, .no_passes = true};
    tl_program *p;
    tl_graph *g;

    OK(tl_graph_parse(&g, text, strlen(text), &diag));
    OK(tl_graph_check(g, &diag));
    OK(tl_program_new(&p, g, &options, &diag));
    return p;
}

static inline tl_status note(void *arg, uint32_t key, uint32_t n,
                      tl_tensor *const *tensors, const tl_gscalar *scalars)
{
    call *c = arg;
    size_t len = strlen(c->log);

    snprintf(c->log + len, sizeof(c->log) - len, "%u:", key);
    for (uint32_t i = 0; i < n; i++) {
        len = strlen(c->log);
        if (tensors[i]) {
            snprintf(c->log + len, sizeof(c->log) - len, " %g",
                     tl_tensor_get_f(tensors[i], 0));
        } else {
            snprintf(c->log + len, sizeof(c->log) - len, " %lld",
                     (long long)scalars[i].i);
        }
    }
    len = strlen(c->log);
    snprintf(c->log + len, sizeof(c->log) - len, ";");
    return c->refuse ? tl_fail(&diag, TL_E0221, "refused") : TL_OK;
}

static inline void call_init(call *c)
{
    memset(c, 0, sizeof(*c));
    c->run = (tl_run){.tensors = c->in,
                      .scalars = c->scalar,
                      .donate = c->donate,
                      .effect = note,
                      .arg = c,
                      .out_tensors = c->out,
                      .out_scalars = c->out_scalar};
}

static inline void drop_outputs(call *c)
{
    for (int i = 0; i < MOST; i++) {
        tl_tensor_unref(c->out[i]);
        c->out[i] = NULL;
    }
}

static inline void call_fini(call *c)
{
    drop_outputs(c);
    for (int i = 0; i < MOST; i++) {
        tl_tensor_unref(c->in[i]);
    }
}

/* Both ways of running a text. */
static const bool ways[] = {true, false};

static inline void run(tl_program *p, call *c)
{
    drop_outputs(c);
    c->log[0] = 0;
    OK(tl_program_run(p, &rt, &c->run));
}

static inline bool is_planned(tl_program *p, call *c)
{
    tl_plan_stats s;

    OK(tl_program_stats(p, &rt, &c->run, &s));
    return s.kernels > 0;
}

/* Branches and loops of the plan, inner ones too, that the walk runs. */
static inline int walked(const tl_plan *pl)
{
    int n = 0;

    for (uint32_t i = 1; i < pl->steps.len; i++) {
        const tl_pstep *s = &pl->steps.items[i];

        if (s->kind == TL_PS_REGION) {
            n += !s->regions;
            for (uint32_t k = 0; s->regions && k < s->regions->count; k++) {
                n += walked(s->regions->plan[k]);
            }
        }
    }
    return n;
}

#define EACH_WAY(p, text)                                                    \
    for (int way = 0; way < 2; way++)                                        \
        for (tl_program *p = parse(text, ways[way]); p;                      \
             tl_program_free(p), p = NULL)

/* ---- texts -------------------------------------------------------------- */

/* x = x * 2 + i; a stack of what x was before. */
static const char counted[] = "graph\n"
                              "s0 = int %2\n"
                              "%1: f32[2] = input 0\n"
                              "%2: int = input 1\n"
                              "region(%3: int, %4: f32[2]) {\n"
                              "  %5: f32[] = scalar %3\n"
                              "  %6: f32[2] = add %4 %4\n"
                              "  %7: f32[2] = add %6 %5\n"
                              "} %7 %4\n"
                              "%8: int, %9: f32[2], %10: f32[s0, 2] = "
                              "loop 1 %2 %1\n"
                              "%11: f32[2] = neg %9\n"
                              "output %11 %10 %8\n";

/* A cell (input 0) is updated twice, with an assert between. */
static const char checked[] = "graph\n"
                              "report 1 = 1 0 7\n"
                              "report 2 = 1 1 8\n"
                              "report 3 = 2 0 9\n"
                              "%1: f32[2] = input 0\n"
                              "%2: f32[2] = input 1\n"
                              "%3: int = input 2\n"
                              "%4: f32[2] = add %1 %2\n"
                              "hostcall 1 %4 effect\n"
                              "%5: f32[2] = mul %4 %2\n"
                              "%6: bool[2] = lt %5 %1\n"
                              "%7: bool[] = any %6 { flag axes=1 }\n"
                              "assert 2 %7 %2 %4 effect\n"
                              "%8: f32[2] = sub %5 %2\n"
                              "hostcall 3 %3 %8 effect\n"
                              "output %8\n";

#endif
