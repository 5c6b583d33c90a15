/* matmul.c - the matrix product: operands, blocks, tasks.
 *
 * One contract (research/contract.md, DESIGN.md 3): a product is cut into
 * blocks by shape, number of threads and backend alone; each block is one
 * call over all of K in one task.  An operand is given to the backend as it
 * lies if it is row-major or a transposed matrix with any leading dimension;
 * other strides are copied row-major first.  Leading axes of the left operand
 * merge when the right one is a matrix.  A batch of n products takes, for
 * each, the blocks of ceil(threads / n) threads. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdatomic.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/kern.h"

enum { DETERMINISTIC_THREADS = 16 };

static const double TASK_FLOPS = 8e5; /* 20 us of a core */

/* ---- backends ---------------------------------------------------------- */

static bool plain_f32(const tl_gemm *g)
{
    tl_gemm_plain(TL_f32, g);
    return true;
}

static const tl_gemm_backend plain_backend = {"plain", plain_f32, 0, 256, 256};

#ifdef TL_HAVE_AVX2_KERNELS
static const tl_gemm_backend own_backend = {"own", tl_gemm_own_f32, 1 << 20,
                                            512, 512};
#endif
#ifdef HAVE_ONEDNN
static const tl_gemm_backend onednn_backend = {"onednn", tl_gemm_onednn, 0,
                                               512, 1024};
#endif

static const tl_gemm_backend *const backends[] = {
#ifdef HAVE_ONEDNN
    &onednn_backend,
#endif
#ifdef TL_HAVE_AVX2_KERNELS
    &own_backend,
#endif
    &plain_backend,
};

static bool usable(const tl_gemm_backend *b)
{
    return strcmp(b->name, "own") != 0 || tl_cpu_has_avx2();
}

const tl_gemm_backend *tl_gemm_find(const char *name)
{
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        if (strcmp(backends[i]->name, name) == 0 && usable(backends[i])) {
            return backends[i];
        }
    }
    return NULL;
}

const tl_gemm_backend *tl_gemm_default(void)
{
    size_t i = 0;

    while (!usable(backends[i])) {
        i++;
    }
    return backends[i];
}

const char *tl_cpu_matmul_backend(void)
{
    return tl_gemm_default()->name;
}

/* ---- blocks ------------------------------------------------------------ */

static int64_t round_up(int64_t x, int64_t to)
{
    return tl_ceil_div(x, to) * to;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The pair in [tm, tm + t) x [tn, tn + t) with the least product that t
 * divides; among equals the squarest block. */
static void balance(int64_t m, int64_t n, int64_t t, int64_t *tm, int64_t *tn)
{
    int64_t best = INT64_MAX, best_m = *tm, best_n = *tn;
    double best_ratio = 0;

    for (int64_t i = *tm; i < *tm + t; i++) {
        for (int64_t j = *tn; j < *tn + t; j++) {
            double h = (double)m / (double)i, w = (double)n / (double)j;
            double ratio = h > w ? h / w : w / h;

            if (i * j % t == 0 &&
                (i * j < best || (i * j == best && ratio < best_ratio))) {
                best = i * j;
                best_m = i;
                best_n = j;
                best_ratio = ratio;
            }
        }
    }
    *tm = best_m;
    *tn = best_n;
}

tl_blocks tl_gemm_blocks(const tl_gemm_backend *backend, int64_t m, int64_t n,
                         int64_t k, int64_t threads)
{
    int64_t tm = tl_ceil_div(m, backend->rows);
    int64_t tn = tl_ceil_div(n, backend->columns);
    double flops = 2.0 * (double)m * (double)n * (double)k;
    tl_blocks b;

    while (tm * tn < threads && flops / (double)(tm * tn) > 1.6e6) {
        if (m * tn > n * tm) { // a block is higher than wide
            tm++;
        } else {
            tn++;
        }
    }
    if (threads > 1 && tm * tn > 1 && tm * tn < 4 * threads &&
        tm * tn % threads != 0) {
        balance(m, n, threads, &tm, &tn);
    }
    b.rows = least(m, round_up(tl_ceil_div(m, tm), 8));
    b.columns = least(n, round_up(tl_ceil_div(n, tn), 16));
    b.tm = tl_ceil_div(m, b.rows);
    b.tn = tl_ceil_div(n, b.columns);
    return b;
}

/* ---- operands ---------------------------------------------------------- */

/* A stack of matrices: `lead` axes, then rows and columns, as a backend takes
 * them: element (i, j) at i * ld + j, or at j * ld + i if `transposed`. */
typedef struct operand {
    const char *data;
    tl_dtype dtype;
    int lead;
    int64_t size[TL_MAX_RANK], stride[TL_MAX_RANK]; /* of leading axes */
    int64_t rows, columns, ld;
    bool transposed;
    tl_storage *copy; /* owned; NULL: the tensor's own elements */
} operand;

/* Is a matrix with these strides one of the two accepted forms? */
static bool accepted(int64_t rows, int64_t columns, int64_t row,
                     int64_t column, operand *o)
{
    if (column == 1 || columns == 1) {
        o->ld = rows == 1 ? columns : row;
        o->transposed = false;
        if (o->ld >= columns && o->ld > 0) {
            return true;
        }
    }
    if (row == 1 && column >= rows && column > 0) {
        o->ld = column;
        o->transposed = true;
        return true;
    }
    return false;
}

/* Layout of an operand with two axes at least, the leading ones merged into
 * the rows if `merge`.  False: the strides do not allow it. */
static bool matrix_layout(const tl_tensor *t, bool right, bool merge,
                          tl_layout *out)
{
    tl_layout l;
    int64_t merged[2] = {1, 0}, stride[2];

    tl_cpu_layout(t, &l);
    if (l.rank == 1) {
        int new_axis = right ? 1 : 0;

        l.size[1] = l.size[0];
        l.stride[1] = l.stride[0];
        l.size[new_axis] = 1;
        l.stride[new_axis] = right ? 1 : l.size[1];
        l.rank = 2;
    }
    if (!merge || l.rank == 2) {
        *out = l;
        return true;
    }
    merged[1] = l.size[l.rank - 1];
    for (int i = 0; i < l.rank - 1; i++) {
        merged[0] *= l.size[i];
    }
    if (!tl_layout_reshape(&l, 2, merged, stride)) {
        return false;
    }
    *out = (tl_layout){.rank = 2, .size = {merged[0], merged[1]},
                       .stride = {stride[0], stride[1]}};
    return true;
}

/* The operand as a tensor of the backend's dtype, row-major: for strides that
 * no backend takes, and for f16 and bf16, which become f32. */
static tl_status copy_operand(tl_kernel_ctx *k, const tl_tensor *t,
                              operand *o)
{
    tl_dtype dtype = tl_dtype_arith(t->dtype);
    tl_layout row_major;

    TL_TRY(tl_cpu_scratch(k, t->numel, tl_dtype_size(dtype), &o->copy));
    tl_layout_row_major(&row_major, t->rank, t->size);
    o->data = tl_storage_data(o->copy);
    o->dtype = dtype;
    if (dtype == t->dtype) {
        tl_cpu_copy_elements(k, (int)tl_dtype_size(dtype), t->rank, t->size,
                             tl_storage_data(o->copy), row_major.stride,
                             tl_tensor_data(t), t->stride);
        return TL_OK;
    }
    return tl_cpu_widen(k, t, tl_storage_data(o->copy));
}

static tl_status set_operand(tl_kernel_ctx *k, const tl_tensor *t, bool right,
                             bool merge, operand *o)
{
    tl_layout l;
    bool fits = t->dtype == tl_dtype_arith(t->dtype) &&
                matrix_layout(t, right, merge, &l);

    o->data = t->numel ? tl_tensor_data(t) : NULL;
    o->dtype = t->dtype;
    if (fits) {
        o->rows = l.size[l.rank - 2];
        o->columns = l.size[l.rank - 1];
        fits = accepted(o->rows, o->columns, l.stride[l.rank - 2],
                        l.stride[l.rank - 1], o);
    }
    if (!fits) {
        tl_tensor copy = *t; // the same sizes, row-major strides
        tl_layout row_major;

        TL_TRY(copy_operand(k, t, o));
        tl_layout_row_major(&row_major, t->rank, t->size);
        copy.stride = row_major.stride;
        TL_CHECK(matrix_layout(&copy, right, merge, &l));
        o->rows = l.size[l.rank - 2];
        o->columns = l.size[l.rank - 1];
        TL_CHECK(o->rows == 0 || o->columns == 0 ||
                 accepted(o->rows, o->columns, l.stride[l.rank - 2],
                          l.stride[l.rank - 1], o));
    }
    o->lead = l.rank - 2;
    memcpy(o->size, l.size, (size_t)o->lead * sizeof(*o->size));
    memcpy(o->stride, l.stride, (size_t)o->lead * sizeof(*o->stride));
    return TL_OK;
}

/* ---- tasks ------------------------------------------------------------- */

typedef struct product {
    tl_gemm whole; /* one matrix of the batch, without pointers */
    operand a, b;
    const tl_gemm_backend *backend; /* NULL: dtype's own loops */
    tl_dtype dtype;
    char *c;
    size_t width, c_width;
    int lead; /* leading axes of the result */
    int64_t size[TL_MAX_RANK];
    int64_t batch;
    tl_blocks blocks;
    int64_t per_task; /* blocks */
    char *scratch;
    _Atomic bool failed;
} product;

/* Place of matrix `index` of the batch in an operand that broadcasts. */
static int64_t batch_offset(const product *p, const operand *o, int64_t index)
{
    int64_t offset = 0;

    for (int i = p->lead - 1; i >= 0; i--) {
        int axis = i - (p->lead - o->lead);
        int64_t at = index % p->size[i];

        index /= p->size[i];
        if (axis >= 0 && o->size[axis] != 1) {
            offset += at * o->stride[axis];
        }
    }
    return offset;
}

/* Block `number` of the batch, by `worker`. */
static void run_block(product *p, int64_t number, int worker)
{
    const tl_blocks *cut = &p->blocks;
    int64_t per_matrix = cut->tm * cut->tn;
    int64_t index = number / per_matrix, block = number % per_matrix;
    int64_t i = block % cut->tm * cut->rows;
    int64_t j = block / cut->tm * cut->columns;
    tl_gemm g = p->whole;
    int64_t a = batch_offset(p, &p->a, index) + (g.ta ? i : i * g.lda);
    int64_t b = batch_offset(p, &p->b, index) + (g.tb ? j * g.ldb : j);

    g.a = p->a.data + a * (int64_t)p->width;
    g.b = p->b.data + b * (int64_t)p->width;
    g.c = p->c + (index * g.m * g.n + i * g.ldc + j) * (int64_t)p->c_width;
    g.m = least(cut->rows, p->whole.m - i);
    g.n = least(cut->columns, p->whole.n - j);
    if (!p->backend) {
        tl_gemm_plain(p->dtype, &g);
        return;
    }
    g.scratch = p->scratch != NULL
                    ? p->scratch + (size_t)worker * p->backend->scratch
                    : NULL;
    if (!p->backend->run(&g)) {
        atomic_store_explicit(&p->failed, true, memory_order_relaxed);
    }
}

static void block_task(void *arg, int64_t task, int worker)
{
    product *p = arg;
    int64_t total = p->batch * p->blocks.tm * p->blocks.tn;
    int64_t end = least((task + 1) * p->per_task, total);

    for (int64_t i = task * p->per_task; i < end; i++) {
        run_block(p, i, worker);
    }
}

/* Blocks of small products go together, so that a task lasts 20 us. */
static int64_t blocks_a_task(const product *p)
{
    double flops = 2.0 * (double)p->blocks.rows * (double)p->blocks.columns *
                   (double)p->whole.k;

    return flops >= TASK_FLOPS ? 1 : (int64_t)(TASK_FLOPS / (flops + 1)) + 1;
}

const tl_gemm_backend *tl_gemm_backend_of(tl_dtype dtype)
{
#ifdef TL_HAVE_AVX2_KERNELS
    static const tl_gemm_backend own_f64 = {"own", tl_gemm_own_f64, 1 << 20,
                                            256, 256};

    if (dtype == TL_f64 && tl_cpu_has_avx2()) {
        return &own_f64;
    }
#endif
    return dtype == TL_f32 ? tl_gemm_default() : NULL;
}

static tl_status run_blocks(tl_kernel_ctx *k, product *p)
{
    int64_t threads = k->deterministic ? DETERMINISTIC_THREADS
                                       : tl_threads_count(k->threads);
    tl_storage *scratch = NULL;
    tl_status st = TL_OK;

    p->blocks = tl_gemm_blocks(p->backend ? p->backend : &plain_backend,
                               p->whole.m, p->whole.n, p->whole.k,
                               tl_ceil_div(threads, p->batch));
    if (p->backend && p->backend->scratch > 0) {
        TL_TRY(tl_cpu_scratch(k, tl_threads_count(k->threads),
                              p->backend->scratch, &scratch));
        p->scratch = tl_storage_data(scratch);
    }
    p->per_task = blocks_a_task(p);
    tl_cpu_run(k, tl_ceil_div(p->batch * p->blocks.tm * p->blocks.tn,
                              p->per_task), block_task, p);
    if (p->failed) {
        st = tl_fail_memory(k->diag, "a matrix product", 0);
    }
    tl_storage_unref(scratch);
    return st;
}

/* Sizes of the product and of its batch. */
static void set_sizes(product *p, const tl_tensor *y)
{
    p->whole = (tl_gemm){.ta = p->a.transposed, .tb = p->b.transposed,
                         .m = p->a.rows, .n = p->b.columns, .k = p->a.columns,
                         .lda = p->a.ld, .ldb = p->b.ld,
                         .ldc = p->b.columns};
    p->lead = p->a.lead > p->b.lead ? p->a.lead : p->b.lead;
    p->batch = 1;
    for (int i = 0; i < p->lead; i++) {
        p->size[i] = y->size[i];
        p->batch *= p->size[i];
    }
}

/* The product into `c`, row-major of p->dtype's result. */
static tl_status multiply(tl_kernel_ctx *k, product *p, tl_tensor *const *in,
                          const tl_tensor *y, char *c)
{
    bool merge = in[1]->rank <= 2;
    tl_status st;

    TL_GOTO(st, set_operand(k, in[0], false, merge, &p->a));
    TL_GOTO(st, set_operand(k, in[1], true, false, &p->b));
    p->dtype = p->a.dtype;
    p->width = tl_dtype_size(p->dtype);
    p->c_width = p->dtype == TL_i8 ? 4 : p->width;
    p->backend = tl_gemm_backend_of(p->dtype);
    p->c = c;
    set_sizes(p, y);
    if (p->whole.k == 0) {
        memset(c, 0, (size_t)y->numel * p->c_width);
    } else {
        st = run_blocks(k, p);
    }
out:
    tl_storage_unref(p->a.copy);
    tl_storage_unref(p->b.copy);
    return st;
}

tl_status tl_cpu_matmul(tl_kernel_ctx *k, tl_op op, tl_tensor *const *in,
                        int nin, tl_tensor *const *out, int nout,
                        const tl_attrs *at)
{
    product p = {.batch = 1};
    tl_tensor *y = out[0];
    tl_dtype arith = tl_dtype_arith(y->dtype);
    tl_storage *wide = NULL;
    tl_status st;

    (void)op;
    (void)nin;
    (void)nout;
    (void)at;
    if (y->numel == 0) {
        return TL_OK;
    }
    if (arith == y->dtype) {
        return multiply(k, &p, in, y, tl_tensor_data(y));
    }
    TL_TRY(tl_cpu_scratch(k, y->numel, sizeof(float), &wide));
    st = multiply(k, &p, in, y, tl_storage_data(wide));
    if (st == TL_OK) {
        tl_cpu_narrow(k, tl_storage_data(wide), y);
    }
    tl_storage_unref(wide);
    return st;
}
