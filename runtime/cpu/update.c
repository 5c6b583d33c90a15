/* update.c - kernels of optimiser updates: one parameter a call.
 *
 * Elements go through in blocks; a block of another dtype than that of the
 * arithmetic is converted into a local row and back.  Results may be the
 * inputs themselves. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/update.h"

#include <math.h>
#include <stdatomic.h>

#include "runtime/cpu/kern.h"

enum { BLOCK = 512, STATES = 2, OPERANDS = 4 }; /* p, g, m, v */

typedef struct update_job {
    tl_update_fn *fn;
    tl_update_consts consts;
    bool wide; /* in double */
    int n_in, n_out;
    const char *in[OPERANDS];
    tl_dtype in_dtype[OPERANDS];
    char *out[1 + STATES];
    tl_dtype out_dtype[1 + STATES];
    int64_t n;
    _Atomic int64_t moved, lost; /* elements of a 16-bit p that the step has
                                    changed, and that rounding kept */
} update_job;

/* Elements [i, i + n) in the type of the arithmetic: in place, or in `row`. */
static const void *load_block(const update_job *job, int operand, int64_t i,
                              int64_t n, double *row)
{
    tl_dtype dtype = job->in_dtype[operand];
    const char *from = job->in[operand];
    float *narrow = (float *)row;

    if (dtype == (job->wide ? TL_f64 : TL_f32)) {
        return from + i * (int64_t)tl_dtype_size(dtype);
    }
    for (int64_t j = 0; j < n; j++) {
        if (job->wide) {
            row[j] = (double)tl_cpu_load_f32(from, dtype, i + j);
        } else {
            narrow[j] = tl_cpu_load_f32(from, dtype, i + j);
        }
    }
    return row;
}

/* Where the row function writes result `r`. */
static void *result_block(const update_job *job, int r, int64_t i,
                          double *row)
{
    tl_dtype dtype = job->out_dtype[r];

    return dtype == (job->wide ? TL_f64 : TL_f32)
               ? job->out[r] + i * (int64_t)tl_dtype_size(dtype)
               : (char *)row;
}

static void store_block(const update_job *job, int r, int64_t i, int64_t n,
                        const double *row)
{
    tl_dtype dtype = job->out_dtype[r];
    const float *narrow = (const float *)row;

    if (dtype == (job->wide ? TL_f64 : TL_f32)) {
        return; // written already
    }
    for (int64_t j = 0; j < n; j++) {
        tl_cpu_store_f32(job->out[r], dtype, i + j,
                         job->wide ? (float)row[j] : narrow[j]);
    }
}

/* Count what a step does to 16-bit parameters: `before` and `after` are in
 * the type of the arithmetic, after not yet rounded. */
static void count_steps(update_job *job, int64_t n, const float *before,
                        const float *after)
{
    int64_t moved = 0, lost = 0;

    for (int64_t j = 0; j < n; j++) {
        uint64_t word = 0; // room for any dtype
        bool kept;

        tl_cpu_store_f32(&word, job->out_dtype[0], 0, after[j]);
        kept = tl_cpu_load_f32(&word, job->out_dtype[0], 0) == before[j];
        moved += !kept;
        lost += kept && after[j] != before[j];
    }
    atomic_fetch_add_explicit(&job->moved, moved, memory_order_relaxed);
    atomic_fetch_add_explicit(&job->lost, lost, memory_order_relaxed);
}

static void update_block(update_job *job, int64_t i, int64_t n)
{
    double in[OPERANDS][BLOCK], out[1 + STATES][BLOCK];
    const void *from[OPERANDS] = {NULL};
    void *to[1 + STATES] = {NULL};
    tl_update_rows rows;

    for (int a = 0; a < job->n_in; a++) {
        from[a] = load_block(job, a, i, n, in[a]);
    }
    for (int r = 0; r < job->n_out; r++) {
        to[r] = result_block(job, r, i, out[r]);
    }
    rows = (tl_update_rows){from[0], from[1], from[2], from[3],
                            to[0],   to[1],   to[2]};
    job->fn(n, &rows, &job->consts);
    if (tl_dtype_arith(job->out_dtype[0]) != job->out_dtype[0]) {
        count_steps(job, n, from[0], to[0]);
    }
    for (int r = 0; r < job->n_out; r++) {
        store_block(job, r, i, n, out[r]);
    }
}

static void update_task(void *arg, int64_t task, int worker)
{
    update_job *job = arg;
    int64_t i = task * TL_CPU_GRAIN, end = i + TL_CPU_GRAIN;

    (void)worker;
    end = end < job->n ? end : job->n;
    for (; i < end; i += BLOCK) {
        update_block(job, i, end - i < BLOCK ? end - i : BLOCK);
    }
}

/* The elements of operand `a` in row-major order; *copy owns them if not the
 * tensor's own. */
static tl_status set_input(tl_kernel_ctx *k, update_job *job, int a,
                           const tl_tensor *t, tl_storage **copy)
{
    size_t width = tl_dtype_size(t->dtype);
    tl_layout l;

    job->in[a] = tl_tensor_data(t);
    job->in_dtype[a] = t->dtype;
    if (tl_tensor_contiguous(t)) {
        return TL_OK;
    }
    TL_TRY(tl_cpu_scratch(k, t->numel, width, copy));
    tl_layout_row_major(&l, t->rank, t->size);
    tl_cpu_copy_elements(k, (int)width, t->rank, t->size,
                         tl_storage_data(*copy), l.stride, job->in[a],
                         t->stride);
    job->in[a] = tl_storage_data(*copy);
    return TL_OK;
}

/* One warning in a sink: a training loop would fill it. */
static bool has_warned(const tl_diag *diag)
{
    const tl_diag_item *item = diag->first;

    while (item && item->code != TL_W0516) {
        item = item->next;
    }
    return item != NULL;
}

/* Every step that was not zero was lost: bf16 has 8 bits (PyTorch's silent
 * stall). */
static void warn_of_rounding(tl_kernel_ctx *k, const update_job *job)
{
    if (job->lost > 0 && job->moved == 0 && !has_warned(k->diag)) {
        tl_warn(k->diag, TL_W0516, (tl_span){0},
                "the step is too small for %s: no element of the parameter "
                "has changed", tl_dtype_name(job->out_dtype[0]));
        tl_diag_help(k->diag, "keep the parameter in f32, and lower its "
                              "storage by autocast");
    }
}

static tl_update_fn *find_rule(tl_update_rule rule, bool wide)
{
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_has_avx2()) {
        return tl_update_table_avx2[rule][wide];
    }
#endif
    return tl_update_table[rule][wide];
}

static tl_status update(tl_kernel_ctx *k, tl_update_rule rule,
                        tl_tensor *const *in, int n_in,
                        tl_tensor *const *out, int n_out,
                        const tl_update_consts *consts)
{
    update_job job = {.consts = *consts, .n_in = n_in, .n_out = n_out,
                      .n = in[0]->numel, .wide = in[0]->dtype == TL_f64};
    tl_storage *copy[OPERANDS] = {NULL};
    tl_status st = TL_OK;

    if (job.n == 0) {
        return TL_OK;
    }
    job.fn = find_rule(rule, job.wide);
    for (int a = 0; a < n_in; a++) {
        TL_GOTO(st, set_input(k, &job, a, in[a], &copy[a]));
    }
    for (int r = 0; r < n_out; r++) {
        job.out[r] = tl_tensor_data(out[r]);
        job.out_dtype[r] = out[r]->dtype;
    }
    tl_cpu_run(k, tl_ceil_div(job.n, TL_CPU_GRAIN), update_task, &job);
    warn_of_rounding(k, &job);
out:
    for (int a = 0; a < n_in; a++) {
        tl_storage_unref(copy[a]);
    }
    return st;
}

static tl_update_consts constants(const tl_attrs *at)
{
    return (tl_update_consts){.lr = at->f[0], .decay = at->f[1],
                              .momentum = at->f[2], .beta2 = at->f[3],
                              .eps = at->f[4], .nesterov = at->flag};
}

tl_status tl_cpu_sgd_update(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                            int nin, tl_tensor *const *out, int nout,
                            const tl_attrs *at)
{
    tl_update_consts c = constants(at);

    (void)op;
    return update(k, TL_UPDATE_SGD, in, nin, out, nout, &c);
}

tl_status tl_cpu_momentum_update(tl_kernel_ctx *k, tl_op op,
                                 tl_tensor *const *in, int nin,
                                 tl_tensor *const *out, int nout,
                                 const tl_attrs *at)
{
    tl_update_consts c = constants(at);

    (void)op;
    return update(k, TL_UPDATE_MOMENTUM, in, nin, out, nout, &c);
}

/* Kingma, Ba, "Adam" (2015), algorithm 1, with its corrections in f64. */
static tl_status adam(tl_kernel_ctx *k, tl_tensor *const *in,
                      tl_tensor *const *out, int nout, const tl_attrs *at,
                      bool decoupled)
{
    tl_update_consts c = constants(at);
    int64_t count = tl_tensor_get_i(in[4], 0);

    if (count < 1) {
        return tl_fail(k->diag, TL_E0416,
                       "an update counts its steps from 1, got %lld",
                       (long long)count);
    }
    c.decoupled = decoupled;
    c.step = c.lr / (1 - pow(c.momentum, (double)count));
    c.root = sqrt(1 - pow(c.beta2, (double)count));
    return update(k, TL_UPDATE_ADAM, in, OPERANDS, out, nout, &c);
}

tl_status tl_cpu_adam_update(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                             int nin, tl_tensor *const *out, int nout,
                             const tl_attrs *at)
{
    (void)op;
    (void)nin;
    return adam(k, in, out, nout, at, false);
}

tl_status tl_cpu_adamw_update(tl_kernel_ctx *k, tl_op op,
                              tl_tensor *const *in, int nin,
                              tl_tensor *const *out, int nout,
                              const tl_attrs *at)
{
    (void)op;
    (void)nin;
    return adam(k, in, out, nout, at, true);
}
