/* apply_rt.c - setting up the runtime of an evaluator; seeds and draws. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "runtime/apply.h"
#include "runtime/base/mem.h"
#include "runtime/cpu/cpu.h"

/* What kernels get is the same for every call. */
static void set_kernel_context(tl_rt *rt, bool deterministic)
{
    rt->kctx = (tl_kernel_ctx){.device = rt->device,
                               .threads = rt->threads,
                               .pool = rt->pool,
                               .diag = rt->diag,
                               .deterministic = deterministic};
    rt->infer = (tl_infer){.diag = rt->diag};
}

tl_status tl_rt_init(tl_rt *rt, const tl_rt_options *options, tl_diag *diag)
{
    int threads = options->threads;
    tl_status st;

    memset(rt, 0, sizeof(*rt));
    rt->diag = diag;
    rt->owns = true;
    rt->next_tape = 1;
    tl_rt_seed(rt, options->seed);
    if (threads == 0) {
        threads = tl_threads_available();
    }
    rt->device = tl_calloc(1, sizeof(*rt->device));
    if (!rt->device) {
        return tl_fail_memory(diag, "a device", sizeof(*rt->device));
    }
    tl_cpu_device_init(rt->device);
    TL_GOTO(st, tl_pool_new(&rt->pool, options->memory_limit, diag));
    TL_GOTO(st, tl_threads_new(&rt->threads, threads, diag));
    set_kernel_context(rt, options->deterministic);
    return TL_OK;
out:
    tl_rt_fini(rt);
    return st;
}

tl_status tl_rt_init_worker(tl_rt *rt, const tl_rt *of, tl_diag *diag)
{
    memset(rt, 0, sizeof(*rt));
    rt->diag = diag;
    rt->device = of->device;
    rt->pool = of->pool;
    rt->next_tape = 1;
    rt->interrupted = of->interrupted;
    tl_rt_seed(rt, of->seed);
    TL_TRY(tl_threads_new(&rt->threads, 1, diag));
    set_kernel_context(rt, of->kctx.deterministic);
    return TL_OK;
}

tl_status tl_rt_tick(tl_rt *rt)
{
    if (rt->interrupted != NULL && *rt->interrupted) {
        *rt->interrupted = 0;
        return tl_fail(rt->diag, TL_E0608, "interrupted");
    }
    if (rt->steps > 0 && --rt->steps == 0) {
        rt->steps = 1; /* whatever still runs ends at once, too */
        return tl_fail(rt->diag, TL_E0608, "the limit of steps is reached");
    }
    return TL_OK;
}

void tl_rt_fini(tl_rt *rt)
{
    tl_amp_forget(&rt->amp, NULL);
    tl_free(rt->amp.casts);
    tl_tensor_trim();
    tl_threads_free(rt->threads);
    if (rt->owns) {
        tl_pool_free(rt->pool);
        if (rt->device) {
            tl_cpu_device_fini(rt->device);
        }
        tl_free(rt->device);
    }
    memset(rt, 0, sizeof(*rt));
}

void tl_rt_seed(tl_rt *rt, uint64_t seed)
{
    rt->seed = seed;
    rt->draws = 0;
    rt->inits = 0;
}

tl_rng_key tl_rt_next_draw(tl_rt *rt)
{
    return (tl_rng_key){.seed = rt->seed,
                        .draw = rt->draws++,
                        .stream = TL_STREAM_DRAW};
}
