/* apply.h - the runtime of one evaluator, and the only way to run an
 * operation: shape rule, casts, allocation, kernel, tape. */
#ifndef TL_APPLY_H
#define TL_APPLY_H

#include <signal.h>

#include "runtime/amp/amp.h"
#include "runtime/base/diag.h"
#include "runtime/base/rng.h"
#include "runtime/base/threads.h"
#include "runtime/mem/pool.h"
#include "runtime/op/op.h"
#include "runtime/tape/tape.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

/* One thread's runtime.  Pool and threads may be shared with others. */
typedef struct tl_rt {
    tl_diag *diag;
    tl_pool *pool;
    tl_threads *threads;
    tl_device *device;
    tl_kernel_ctx kctx;
    tl_infer infer;     /* numbers only */
    tl_tape *tape;      /* innermost open tape, or NULL */
    int no_grad;        /* > 0: nothing is recorded */
    tl_autocast amp;    /* asked by who evaluates; apply sees what is stored */
    uint64_t next_tape; /* serial numbers */
    uint64_t seed;
    uint64_t draws;     /* counter of the stream `draw` */
    uint64_t inits;     /* ordinal of outermost constructor calls */
    tl_span span;       /* what the evaluator runs now, for tapes */
    volatile sig_atomic_t *interrupted; /* NULL, or set by SIGINT */
    int64_t steps;      /* statements and turns still allowed; 0: no limit */
    bool owns;          /* pool, threads and device are freed with it */
} tl_rt;

/* Options of tl_rt_init. */
typedef struct tl_rt_options {
    int threads;         /* 0: tl_threads_available() */
    bool deterministic;
    size_t memory_limit; /* bytes of storages; 0: none */
    uint64_t seed;
} tl_rt_options;

TL_MUST_USE tl_status tl_rt_init(tl_rt *rt, const tl_rt_options *options,
                                 tl_diag *diag);

/* A runtime for another thread: pool and device of `of`, which outlives it,
 * and no workers (kernels run on the calling thread). */
TL_MUST_USE tl_status tl_rt_init_worker(tl_rt *rt, const tl_rt *of,
                                        tl_diag *diag);

/* Called for each statement and each turn of a loop: E0608 after an interrupt,
 * and when the steps are used up. */
TL_MUST_USE tl_status tl_rt_tick(tl_rt *rt);

/* Every tensor must be gone.  Called by the thread that used `rt`. */
void tl_rt_fini(tl_rt *rt);

/* Run `op` on `in`; out[0 .. nout) receive new references.
 *
 * *Eats* its inputs: one reference of each in[i] is consumed, on failure too,
 * so a caller keeps what it wants by tl_tensor_ref first.  An input whose
 * last reference is eaten gives its storage to the result where dtype and
 * layout agree: this is how writes in place come about.
 *
 * MAP, CMP: inputs are joined (tl_dtype_join), cast and broadcast.  `at` may
 * be NULL for operations without attributes. */
TL_MUST_USE tl_status tl_apply(tl_rt *rt, tl_op op, tl_tensor **in, int nin,
                               const tl_attrs *at, tl_tensor **out);

/* The same, but when it fails the caller still owns in[kept], with its value:
 * for writes such as `x[i] = v`, which may take the storage of x, and after
 * whose failure x is what it was.  Kernels that write in place (op.h:
 * in_place) check what depends on data before they write. */
TL_MUST_USE tl_status tl_apply_keeping(tl_rt *rt, tl_op op, tl_tensor **in,
                                       int nin, const tl_attrs *at,
                                       tl_tensor **out, int kept);

/* The same with borrowed inputs. */
TL_MUST_USE tl_status tl_apply_borrowed(tl_rt *rt, tl_op op,
                                        tl_tensor *const *in, int nin,
                                        const tl_attrs *at, tl_tensor **out);

/* The call op(in), whose result has the elements of `known`: a header of its
 * own on the same storage, recorded as the call would be.  Borrows. */
TL_MUST_USE tl_status tl_apply_known(tl_rt *rt, tl_op op,
                                     tl_tensor *const *in, int nin,
                                     const tl_attrs *at,
                                     const tl_tensor *known, tl_tensor **out);

/* A row-major version of `t` (itself, referenced, when it is already). */
TL_MUST_USE tl_status tl_contiguous(tl_rt *rt, tl_tensor *t, tl_tensor **out);

/* The same value as a constant to every tape: `stop(t)`.  Borrows `t`. */
TL_MUST_USE tl_status tl_stop(tl_rt *rt, tl_tensor *t, tl_tensor **out);

/* An emitter that runs at once; nodes are tl_tensor *, which the emitter
 * owns until tl_apply_emit_fini.  `rt` outlives it. */
typedef struct tl_apply_emit {
    tl_emit emit;
    tl_rt *rt;
    tl_tensor **owned;
    size_t len, cap;
    tl_ttype types[8]; /* what the last eight type() calls answered */
    unsigned ntypes;
} tl_apply_emit;

void tl_apply_emit_init(tl_apply_emit *e, tl_rt *rt);
void tl_apply_emit_fini(tl_apply_emit *e);

/* Key of the next draw of the stream `draw`; advances the counter. */
tl_rng_key tl_rt_next_draw(tl_rt *rt);

/* seed(n): restart every stream. */
void tl_rt_seed(tl_rt *rt, uint64_t seed);

#endif
