/* map_job.c - see map_job.h: a loop over pieces, in tasks. */
#include "runtime/cpu/map_job.h"

#include <string.h>

#include "runtime/cpu/kern.h"

/* Elements lo .. hi of the result. */
static void run_range(const tl_map_job *j, int64_t lo, int64_t hi)
{
    char tile[TL_MAP_OPERANDS + 1][TL_TILE_BYTES]
        __attribute__((aligned(64)));
    int64_t at[TL_MAX_RANK], n;
    int64_t first = hi - lo < j->space.longest ? hi - lo : j->space.longest;
    const void *in[TL_MAP_OPERANDS];

    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        in[i] = tile[i];
        if (j->in[i].data != NULL) {
            tl_map_fill_once(&j->space, &j->in[i], first, tile[i]);
        }
    }
    for (int64_t pos = lo; pos < hi; pos += n) {
        char *to = j->to + pos * j->to_width;
        const void *some = NULL;

        n = tl_map_piece_length(&j->space, pos, hi, at);
        for (int i = 0; i < TL_MAP_OPERANDS; i++) {
            if (j->in[i].data != NULL) {
                in[i] = some = tl_map_piece(&j->space, &j->in[i], pos, at,
                                            n, tile[i]);
            }
        }
        /* what a formula has no use for may be read: it has n elements too */
        for (int i = 0; i < TL_MAP_OPERANDS && some != NULL; i++) {
            in[i] = j->in[i].data != NULL ? in[i] : some;
        }
        if (j->unstage == NULL) {
            j->loop(n, in, to, j->p);
        } else {
            j->loop(n, in, tile[TL_MAP_OPERANDS], j->p);
            j->unstage(n, tile[TL_MAP_OPERANDS], 1, to);
        }
    }
}

static void run_task(void *arg, int64_t task, int worker)
{
    const tl_map_job *j = arg;
    int64_t lo = task * j->chunk;

    (void)worker;
    run_range(j, lo, lo + j->chunk < j->space.n ? lo + j->chunk : j->space.n);
}

/* ---- setting up -------------------------------------------------------- */

void tl_map_job_run(tl_kernel_ctx *k, tl_map_job *j, double ns)
{
    double extra = j->space.nested || j->unstage != NULL ? 1 : 0;
    int64_t ntasks = tl_map_tasks(&j->space, ns + extra, &j->chunk);

    if (ntasks < 2) {
        run_range(j, 0, j->space.n);
        return;
    }
    tl_threads_run(k->threads, ntasks, run_task, j);
}

/* Does a piece pass through a tile? */
static bool tiled(const tl_map_job *j)
{
    bool res = j->unstage != NULL;

    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        const tl_map_operand *o = &j->in[i];

        res = res || (o->data != NULL &&
                      (o->converts || o->layout != TL_LAYOUT_DIRECT));
    }
    return res;
}

void tl_map_job_tile(tl_map_job *j)
{
    tl_map_space *s = &j->space;

    s->longest = TL_TILE_BYTES / j->width / s->period * s->period;
}

void tl_map_job_init(tl_map_job *j, tl_map_loop *loop,
                     tl_tensor *const in[TL_MAP_OPERANDS], tl_tensor *to,
                     tl_dtype compute, const tl_attrs *at)
{
    static const double no_attributes[6] = {0};

    j->loop = loop;
    j->p = at == NULL ? no_attributes : at->f;
    j->to = tl_tensor_data(to);
    j->to_width = (int)tl_dtype_size(to->dtype);
    j->width = (int)tl_dtype_size(compute);
    j->unstage = compute == to->dtype || to->dtype == TL_bool
                     ? NULL
                     : tl_stage(compute, to->dtype);
    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        if (in[i] != NULL && in[i]->storage != NULL) {
            tl_map_operand_init(&j->in[i], in[i], to->rank, to->size,
                                to->numel, compute,
                                tl_stage(in[i]->dtype, compute));
        } else {
            j->in[i].data = NULL;
        }
    }
    tl_map_space_init(&j->space, j->in, TL_MAP_OPERANDS, to->rank, to->size,
                      to->numel);
    if (tiled(j)) {
        tl_map_job_tile(j);
    }
}

int64_t tl_map_find(const tl_tensor *t, tl_tensor *to, double lo,
                    double above, bool outside)
{
    double tile[TL_TILE_BYTES / sizeof(double)];
    tl_tensor *in[TL_MAP_OPERANDS] = {(tl_tensor *)t};
    int64_t at[TL_MAX_RANK] = {0}, n;
    tl_map_job j;
    tl_map_space *s = &j.space;

    tl_map_job_init(&j, NULL, in, to, TL_f64, NULL);
    if (s->longest > TL_TILE_BYTES / (int64_t)sizeof(double)) {
        s->longest = TL_TILE_BYTES / (int64_t)sizeof(double);
    }
    tl_map_fill_once(s, &j.in[0], s->n < s->longest ? s->n : s->longest,
                     (char *)tile);
    for (int64_t pos = 0; pos < s->n; pos += n) {
        const double *v;
        int64_t bad = 0;

        n = tl_map_piece_length(s, pos, s->n, at);
        v = tl_map_piece(s, &j.in[0], pos, at, n, (char *)tile);
        for (int64_t i = 0; i < n; i++) {
            bad += (v[i] >= lo && v[i] < above) != outside;
        }
        for (int64_t i = 0; i < n && bad > 0; i++) {
            if ((v[i] >= lo && v[i] < above) != outside) {
                return pos + i;
            }
        }
    }
    return -1;
}
