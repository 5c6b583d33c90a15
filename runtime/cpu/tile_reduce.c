/* tile_reduce.c - reductions of what steps compute.
 *
 * The kernel of RED rows does the work (reduce.c): a program with a window
 * takes the place of its operand. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/cpu.h"
#include "runtime/cpu/reduce.h"

#include <string.h>

#include "runtime/base/mem.h"

struct tl_tile_reduce {
    tl_op op;
    tl_attrs at;
    tl_tensor x; /* a stub of the operand */
    int64_t size[2 * TL_MAX_RANK];
    tl_tile *feed;
    tl_tensor *result;
    tl_reduce_fed_fn *kernel;
};

/* A row-major tensor of the space, without storage. */
static void set_stub(tl_tile_reduce *t, tl_dtype dtype, int rank,
                     const int64_t *shape)
{
    t->x = (tl_tensor){.refs = 1,
                       .dtype = dtype,
                       .rank = rank,
                       .numel = 1,
                       .flags = TL_TENSOR_CONTIGUOUS,
                       .size = t->size,
                       .stride = t->size + TL_MAX_RANK};
    memcpy(t->x.size, shape, (size_t)rank * sizeof *shape);
    tl_row_major(rank, shape, t->x.stride);
    for (int i = 0; i < rank; i++) {
        t->x.numel *= shape[i];
    }
}

tl_status tl_tile_reduce_new(tl_tile_reduce **out, tl_op op,
                             const tl_attrs *at, int rank,
                             const int64_t *shape, const tl_tile_step *steps,
                             int nsteps, tl_tensor *const *in, int nin,
                             tl_tensor *const *to, int nto, tl_tensor *result,
                             tl_diag *diag)
{
    tl_dtype dtype = (tl_dtype)steps[nsteps - 1].dtype;
    tl_tile_source s = {.rank = rank,
                        .size = shape,
                        .steps = steps,
                        .nsteps = nsteps,
                        .in = in,
                        .nin = nin,
                        .to = to,
                        .nto = nto,
                        .feed = nsteps - 1,
                        .dtype = tl_reduce_acc(op, dtype)};
    tl_tile_reduce *t = tl_calloc(1, sizeof *t);
    tl_status st;

    if (t == NULL) {
        return tl_fail_memory(diag, "a reduction", sizeof *t);
    }
    st = tl_tile_make(&t->feed, &s, diag);
    if (st != TL_OK) {
        tl_free(t);
        return st;
    }
    t->op = op;
    tl_attrs_copy(&t->at, at);
    set_stub(t, dtype, rank, shape);
    t->result = result;
    t->kernel = tl_reduce_fed;
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_avx2_kernels()) {
        t->kernel = tl_reduce_fed_avx2;
    }
#endif
    *out = t;
    return TL_OK;
}

tl_status tl_tile_reduce_run(const tl_tile_reduce *t, tl_kernel_ctx *k)
{
    tl_tensor x = t->x;

    tl_tile_refresh(t->feed, k);
    TL_TRY(tl_tile_check_all(t->feed, k));
    return t->kernel(k, t->op, &x, t->feed, t->result, &t->at);
}

void tl_tile_reduce_free(tl_tile_reduce *t)
{
    if (t != NULL) {
        tl_tile_free(t->feed);
        tl_free(t);
    }
}
