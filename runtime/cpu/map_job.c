/* map_job.c - see map_job.h: layouts, pieces, tasks. */
#include "runtime/cpu/map_job.h"

#include <string.h>

#include "runtime/cpu/kern.h"

enum {
    LONG_ROW = 128,  /* rows from which pieces end where rows end */
    TASK_NS = 50000, /* what a task should take */
    ALIGN = 64       /* pieces of tasks begin at multiples, in elements */
};

/* ---- layouts ----------------------------------------------------------- */

/* Strides of `t` along the axes of the result. */
static void operand_strides(tl_map_operand *o, const tl_tensor *t,
                            const tl_tensor *to)
{
    int extra = to->rank - t->rank;

    for (int i = 0; i < to->rank; i++) {
        bool missing = i < extra || t->size[i - extra] == 1;

        o->stride[i] = missing ? 0 : t->stride[i - extra];
    }
}

static void operand_init(tl_map_operand *o, const tl_tensor *t,
                         const tl_tensor *to, tl_dtype dtype)
{
    o->data = tl_tensor_data(t);
    o->width = (int)tl_dtype_size(t->dtype);
    o->stage = tl_stage(t->dtype, dtype);
    o->converts = t->dtype != dtype;
    if (t->numel == 1) {
        o->layout = TL_LAYOUT_SCALAR;
    } else if (t->numel == to->numel && tl_tensor_contiguous(t)) {
        o->layout = TL_LAYOUT_DIRECT;
    } else {
        o->layout = TL_LAYOUT_NESTED;
        operand_strides(o, t, to);
    }
}

/* Do axes i - 1 and i of every nested operand continue each other? */
static bool mergeable(const tl_map_job *j, int outer, int inner)
{
    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        const tl_map_operand *o = &j->in[i];

        if (o->data != NULL && o->layout == TL_LAYOUT_NESTED &&
            o->stride[outer] != o->stride[inner] * j->size[inner]) {
            return false;
        }
    }
    return true;
}

/* Merge what can be merged, drop axes of size 1.  Works from the inside. */
static void merge_axes(tl_map_job *j, const tl_tensor *to)
{
    int top = TL_MAX_RANK; /* merged axes are collected at the end */

    memcpy(j->size, to->size, sizeof(int64_t) * (size_t)to->rank);
    for (int i = to->rank - 1; i >= 0; i--) {
        if (j->size[i] == 1) {
            continue;
        }
        if (top < TL_MAX_RANK && mergeable(j, i, top)) {
            j->size[top] *= j->size[i];
            continue;
        }
        top--;
        j->size[top] = j->size[i];
        for (int k = 0; k < TL_MAP_OPERANDS; k++) {
            j->in[k].stride[top] = j->in[k].stride[i];
        }
    }
    j->rank = TL_MAX_RANK - top;
    memmove(j->size, j->size + top, sizeof(int64_t) * (size_t)j->rank);
    for (int k = 0; k < TL_MAP_OPERANDS; k++) {
        memmove(j->in[k].stride, j->in[k].stride + top,
                sizeof(int64_t) * (size_t)j->rank);
    }
    if (j->rank == 0) {
        j->rank = 1;
        j->size[0] = 1;
    }
}

/* ---- pieces ------------------------------------------------------------ */

/* The n elements from coordinates `at` on, row by row, into `tile`. */
static void gather(const tl_map_job *j, const tl_map_operand *o,
                   const int64_t *at, int64_t n, char *tile)
{
    int64_t index[TL_MAX_RANK], offset = 0;
    int last = j->rank - 1;

    for (int i = 0; i <= last; i++) {
        index[i] = at[i];
        offset += at[i] * o->stride[i];
    }
    while (n > 0) {
        int64_t room = j->size[last] - index[last], m = n < room ? n : room;

        o->stage(m, o->data + offset * o->width, o->stride[last], tile);
        tile += m * j->width;
        n -= m;
        offset += m * o->stride[last];
        index[last] += m;
        for (int i = last; i > 0 && index[i] == j->size[i]; i--) {
            offset += o->stride[i - 1] - index[i] * o->stride[i];
            index[i] = 0;
            index[i - 1]++;
        }
    }
}

static int64_t offset_of(const tl_map_job *j, const tl_map_operand *o,
                         const int64_t *at)
{
    int64_t offset = 0;

    for (int i = 0; i < j->rank; i++) {
        offset += at[i] * o->stride[i];
    }
    return offset;
}

/* Where the loop finds the n elements at `pos` of operand `o`. */
static const void *piece(const tl_map_job *j, const tl_map_operand *o,
                         int64_t pos, const int64_t *at, int64_t n,
                         char *tile)
{
    const int last = j->rank - 1;

    switch (o->layout) {
    case TL_LAYOUT_SCALAR:
    case TL_LAYOUT_PERIODIC:
        return tile; /* filled once */
    case TL_LAYOUT_DIRECT:
        if (!o->converts) {
            return o->data + pos * o->width;
        }
        o->stage(n, o->data + pos * o->width, 1, tile);
        return tile;
    case TL_LAYOUT_NESTED:
        break;
    }
    if (!o->converts && o->stride[last] == 1 &&
        at[last] + n <= j->size[last]) {
        return o->data + offset_of(j, o, at) * o->width;
    }
    gather(j, o, at, n, tile);
    return tile;
}

static void coordinates(const tl_map_job *j, int64_t pos, int64_t *at)
{
    for (int i = j->rank - 1; i >= 0; i--) {
        at[i] = pos % j->size[i];
        pos /= j->size[i];
    }
}

/* Elements of the piece at `pos`; sets its coordinates if they are needed. */
static int64_t piece_length(const tl_map_job *j, int64_t pos, int64_t hi,
                            int64_t *at)
{
    int64_t n = hi - pos < j->longest ? hi - pos : j->longest;
    int64_t row = j->size[j->rank - 1];

    if (j->nested) {
        coordinates(j, pos, at);
        if (row >= LONG_ROW && n > row - at[j->rank - 1]) {
            n = row - at[j->rank - 1];
        }
    }
    return n;
}

/* Fill the tile of an operand that has the same elements in each piece. */
static void fill_once(const tl_map_job *j, const tl_map_operand *o, int64_t n,
                      char *tile)
{
    const int64_t first[TL_MAX_RANK] = {0};

    n = n < j->longest ? n : j->longest;
    if (o->layout == TL_LAYOUT_SCALAR) {
        o->stage(n, o->data, 0, tile);
    } else if (o->layout == TL_LAYOUT_PERIODIC) {
        gather(j, o, first, n, tile);
    }
}

/* Elements lo .. hi of the result. */
static void run_range(const tl_map_job *j, int64_t lo, int64_t hi)
{
    char tile[TL_MAP_OPERANDS + 1][TL_TILE_BYTES]
        __attribute__((aligned(64)));
    int64_t at[TL_MAX_RANK], n;
    const void *in[TL_MAP_OPERANDS];

    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        in[i] = tile[i];
        if (j->in[i].data != NULL) {
            fill_once(j, &j->in[i], hi - lo, tile[i]);
        }
    }
    for (int64_t pos = lo; pos < hi; pos += n) {
        char *to = j->to + pos * j->to_width;

        n = piece_length(j, pos, hi, at);
        for (int i = 0; i < TL_MAP_OPERANDS; i++) {
            if (j->in[i].data != NULL) {
                in[i] = piece(j, &j->in[i], pos, at, n, tile[i]);
            }
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
    run_range(j, lo, lo + j->chunk < j->n ? lo + j->chunk : j->n);
}

/* ---- setting up -------------------------------------------------------- */

void tl_map_job_run(tl_kernel_ctx *k, tl_map_job *j, double ns)
{
    double extra = j->nested || j->unstage != NULL ? 1 : 0;
    int64_t ntasks = (int64_t)((ns + extra) * (double)j->n / TASK_NS);

    if (ntasks < 2) {
        run_range(j, 0, j->n);
        return;
    }
    j->chunk = ALIGN * j->period;
    j->chunk *= tl_ceil_div(j->n, ntasks * j->chunk);
    tl_threads_run(k->threads, tl_ceil_div(j->n, j->chunk), run_task, j);
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

/* Is every row of the merged axes the same? */
static bool is_periodic(const tl_map_job *j, const tl_map_operand *o)
{
    for (int i = 0; i < j->rank - 1; i++) {
        if (o->stride[i] != 0) {
            return false;
        }
    }
    return j->rank > 1 && j->size[j->rank - 1] < LONG_ROW;
}

static bool any_nested(const tl_map_job *j)
{
    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        if (j->in[i].data != NULL && j->in[i].layout == TL_LAYOUT_NESTED) {
            return true;
        }
    }
    return false;
}

/* Operands are set; find axes and pieces. */
static void set_pieces(tl_map_job *j, const tl_tensor *to)
{
    j->rank = 1;
    j->size[0] = j->n;
    j->period = 1;
    j->nested = any_nested(j);
    if (j->nested) {
        merge_axes(j, to);
        for (int i = 0; i < TL_MAP_OPERANDS; i++) {
            tl_map_operand *o = &j->in[i];

            if (o->data != NULL && o->layout == TL_LAYOUT_NESTED &&
                is_periodic(j, o)) {
                o->layout = TL_LAYOUT_PERIODIC;
                j->period = j->size[j->rank - 1];
            }
        }
        j->nested = any_nested(j);
    }
    j->longest = j->n;
    if (tiled(j)) {
        j->longest = TL_TILE_BYTES / j->width / j->period * j->period;
    }
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
    j->n = to->numel;
    j->unstage = compute == to->dtype || to->dtype == TL_bool
                     ? NULL
                     : tl_stage(compute, to->dtype);
    for (int i = 0; i < TL_MAP_OPERANDS; i++) {
        if (in[i] != NULL && in[i]->storage != NULL) {
            operand_init(&j->in[i], in[i], to, compute);
        } else {
            j->in[i].data = NULL;
        }
    }
    set_pieces(j, to);
}

int64_t tl_map_find(const tl_tensor *t, tl_tensor *to, double lo,
                    double above, bool outside)
{
    double tile[TL_TILE_BYTES / sizeof(double)];
    tl_tensor *in[TL_MAP_OPERANDS] = {(tl_tensor *)t};
    int64_t at[TL_MAX_RANK] = {0}, n;
    tl_map_job j;

    tl_map_job_init(&j, NULL, in, to, TL_f64, NULL);
    if (j.longest > TL_TILE_BYTES / (int64_t)sizeof(double)) {
        j.longest = TL_TILE_BYTES / (int64_t)sizeof(double);
    }
    fill_once(&j, &j.in[0], j.n, (char *)tile);
    for (int64_t pos = 0; pos < j.n; pos += n) {
        const double *v;
        int64_t bad = 0;

        n = piece_length(&j, pos, j.n, at);
        v = piece(&j, &j.in[0], pos, at, n, (char *)tile);
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
