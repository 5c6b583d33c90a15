/* steps PROGRAM.tl [TURNS] - figures of a compiled step in its steady state,
 * for `run`.
 *
 * The program defines `turn()`, which calls one compiled function.  It is run
 * compiled and interpreted; then it prints a line for each figure, a name and
 * a number, all of them the same in every run.  With TURNS its kernels are
 * taken away and that many calls are made, to measure what a call costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "compiler/plan_impl.h"
#include "interp/compiled_impl.h"
#include "interp/eval_impl.h"
#include "interp/session.h"
#include "runtime/base/mem.h"

enum { WARM = 2, TURNS = 8, ROUNDS = 3 };

/* The linker gives all calls of the allocator these names (Makefile.am). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static uint64_t allocations;

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    allocations++;
    return __real_realloc(p, size);
}

typedef struct figures {
    uint64_t faults; /* of TURNS turns */
    uint64_t allocations, requests; /* of ROUNDS * TURNS turns; requests count
                                       those of the pool's free lists too */
    size_t peak; /* bytes in tensors at one time */
} figures;

static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 20);

    if (f == NULL || text == NULL) {
        fprintf(stderr, "steps: cannot read %s\n", path);
        exit(2);
    }
    *len = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

static void must(tl_session *s, tl_status st)
{
    if (st != TL_OK) {
        (void)tl_session_report(s, st);
        exit(2);
    }
}

static void open_session(tl_session *s, const char *path, const char *compile)
{
    size_t len;
    char *text = read_file(path, &len);

    tl_session_init(s);
    s->options.threads = 1;
    s->options.compile = compile;
    must(s, tl_session_start(s));
    must(s, tl_session_run(s, path, text, len));
    free(text);
}

static void turn(tl_session *s)
{
    const tl_sym *name = tl_intern_find(s->ev.lang->names, "turn", 4);
    const tl_namespace *ns = s->ev.main_ns;
    tl_value out = tl_empty();

    for (size_t i = 0; i < ns->names->names.len; i++) {
        if (ns->names->names.items[i] == name) {
            must(s, tl_eval_call_values(&s->ev, ns->slots[i], NULL, 0, &out));
            tl_unref(out);
            return;
        }
    }
    fputs("steps: the program defines no turn()\n", stderr);
    exit(2);
}

static uint64_t page_faults(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_minflt + (uint64_t)u.ru_majflt;
}

/* Page faults: the least of several rounds.  What a step needs shows in each;
 * the kernel takes a page away now and then (to balance or reclaim memory),
 * which costs one that is not the program's. */
static figures measure(tl_session *s)
{
    tl_pool_stats pool;
    figures f = {.faults = UINT64_MAX};

    for (int i = 0; i < WARM; i++) {
        turn(s);
    }
    tl_pool_reset_peak(s->rt.pool);
    f.allocations = allocations;
    f.requests = tl_mem_attempts();
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t faults = page_faults();

        for (int i = 0; i < TURNS; i++) {
            turn(s);
        }
        faults = page_faults() - faults;
        f.faults = faults < f.faults ? faults : f.faults;
    }
    f.requests = tl_mem_attempts() - f.requests;
    f.allocations = allocations - f.allocations;
    tl_pool_get_stats(s->rt.pool, &pool);
    f.peak = pool.peak;
    return f;
}

/* The plan of the one program that was run last. */
static const tl_plan *plan_of(const tl_session *s)
{
    const tl_compiled *f = s->ev.compiler ? s->ev.compiler->first : NULL;

    return f && f->entries && f->entries->program->nplans > 0
               ? f->entries->program->plans[0]
               : NULL;
}

static bool is_update(uint16_t op)
{
    return op == TL_OP_sgd_update || op == TL_OP_momentum_update ||
           op == TL_OP_adam_update || op == TL_OP_adamw_update;
}

/* Gradients (operands 1 of updates) whose memory is not free once the last
 * update that reads them has run; *n is the number of updates. */
static unsigned outliving(const tl_plan *pl, unsigned *n)
{
    unsigned late = 0;

    *n = 0;
    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        const tl_pstep *s = &pl->steps.items[pl->order[pos]];

        if (s->kind == TL_PS_KERNEL && is_update(s->op)) {
            uint32_t root = tl_pval_memory(pl, pl->refs.items[s->in + 1]);
            const tl_pbuf *b = &pl->bufs.items[root];

            late += b->where != TL_PB_ARENA || b->last > pos;
            (*n)++;
        }
    }
    return late;
}

/* KiB that the steps of a plan read and write, each operand and result once a
 * step. */
static size_t moved(const tl_plan *pl)
{
    size_t bytes = 0;

    for (uint32_t pos = 0; pos < pl->norder; pos++) {
        const tl_pstep *s = &pl->steps.items[pl->order[pos]];

        for (uint32_t i = 0; i < s->nin + s->nout; i++) {
            const uint32_t *refs = &pl->refs.items[i < s->nin ? s->in
                                                              : s->out];
            uint32_t v = refs[i < s->nin ? i : i - s->nin];
            const tl_pval *x = tl_pval_at(pl, v);

            bytes += v ? (size_t)x->numel * tl_dtype_size((tl_dtype)x->dtype)
                       : 0;
        }
    }
    return bytes >> 10;
}

static void put(const char *name, size_t figure)
{
    printf("%s %zu\n", name, figure);
}

static void put_plan(const tl_plan *pl)
{
    unsigned updates, late = outliving(pl, &updates);
    size_t over = pl->arena - pl->lower_bound;

    put("kernels", pl->kernels);
    put("moved", moved(pl)); /* KiB */
    put("copies", pl->copies);
    put("not-donated", pl->ntargets - pl->donated);
    put("arena-over-bound", /* in a thousand */
        pl->lower_bound ? over * 1000 / pl->lower_bound : over);
    put("updates", updates);
    put("outliving-gradients", late);
}

static tl_status nothing(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                         int nin, tl_tensor *const *out, int nout,
                         const tl_attrs *at)
{
    (void)k, (void)op, (void)in, (void)nin, (void)out, (void)nout, (void)at;
    return TL_OK;
}

/* Calls without their kernels. */
static void empty_calls(tl_session *s, long turns)
{
    struct timespec a, b;
    const tl_plan *pl;

    turn(s);
    turn(s);
    pl = plan_of(s);
    for (uint32_t i = 0; i < pl->norder; i++) {
        pl->calls[i].kernel = nothing;
    }
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < turns; i++) {
        turn(s);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("ns %.0f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 +
                         (double)(b.tv_nsec - a.tv_nsec)) / (double)turns);
}

int main(int argc, char **argv)
{
    static tl_session interpreted, compiled;
    figures a, b;

    if (argc != 2 && argc != 3) {
        fputs("usage: steps PROGRAM.tl [TURNS]\n", stderr);
        return 2;
    }
    if (argc == 3) {
        open_session(&compiled, argv[1], NULL);
        empty_calls(&compiled, strtol(argv[2], NULL, 10));
        tl_session_fini(&compiled);
        return 0;
    }
    open_session(&interpreted, argv[1], "off");
    a = measure(&interpreted);
    tl_session_fini(&interpreted);
    open_session(&compiled, argv[1], NULL);
    b = measure(&compiled);
    if (plan_of(&compiled) == NULL) {
        fputs("steps: there is no plan\n", stderr);
        return 2;
    }
    put_plan(plan_of(&compiled));
    put("faults", b.faults);
    put("allocations", b.allocations);
    put("storages", (b.requests - b.allocations) / (ROUNDS * TURNS));
    put("peak", b.peak * 100 / a.peak); /* in a hundred of the interpreter's */
    tl_session_fini(&compiled);
    return 0;
}
