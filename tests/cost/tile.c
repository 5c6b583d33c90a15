/* tile TURNS fused|kernels - eight elementwise steps over a million floats,
 * as one tile program or kernel by kernel, for `run` to count what a turn
 * costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cpu/cpu.h"
#include "runtime/cpu/tile.h"

enum { N = 1 << 20, STEPS = 8 };

static const tl_op rows[STEPS] = {TL_OP_mul, TL_OP_add,    TL_OP_relu,
                                  TL_OP_mul, TL_OP_square, TL_OP_add,
                                  TL_OP_neg, TL_OP_exp};

typedef struct chain {
    tl_device device;
    tl_diag diag;
    tl_kernel_ctx k;
    tl_tensor *x, *w, *between[STEPS];
    tl_tile_step step[STEPS];
    tl_tile *tile;
} chain;

static void must(tl_status st)
{
    if (st != TL_OK) {
        fputs("tile: out of memory\n", stderr);
        exit(1);
    }
}

static tl_tensor *vector(chain *c)
{
    int64_t n = N;
    tl_tensor *t;

    must(tl_tensor_new(&t, c->k.pool, TL_f32, 1, &n, &c->diag));
    for (int64_t i = 0; i < n; i++) {
        tl_tensor_set_f(t, i, (double)(i % 17) / 16 - 0.5);
    }
    return t;
}

static void open_chain(chain *c)
{
    int64_t n = N;

    tl_diag_init(&c->diag, NULL);
    tl_cpu_device_init(&c->device);
    c->k = (tl_kernel_ctx){.device = &c->device, .diag = &c->diag};
    must(tl_pool_new(&c->k.pool, 0, &c->diag));
    must(tl_threads_new(&c->k.threads, 1, &c->diag));
    c->x = vector(c);
    c->w = vector(c);
    for (int i = 0; i < STEPS; i++) {
        c->between[i] = vector(c);
        c->step[i] = (tl_tile_step){.op = (uint16_t)rows[i],
                                    .which = -1,
                                    .compute = TL_f32,
                                    .dtype = TL_f32,
                                    .nin = (uint8_t)tl_op_get(rows[i])->nin,
                                    .to = -1,
                                    .in = {(int16_t)(i == 0 ? 0 : -1 - i),
                                           1}};
    }
    c->step[STEPS - 1].to = 0;
    must(tl_tile_new(&c->tile, 1, &n, c->step, STEPS,
                     (tl_tensor *[]){c->x, c->w}, 2,
                     &c->between[STEPS - 1], 1, &c->diag));
}

static void run_kernels(chain *c)
{
    for (int i = 0; i < STEPS; i++) {
        tl_tensor *in[2] = {i == 0 ? c->x : c->between[i - 1], c->w};

        must(c->device.kernel[rows[i]](&c->k, rows[i], in, c->step[i].nin,
                                       &c->between[i], 1, NULL));
    }
}

static void close_chain(chain *c)
{
    tl_tile_free(c->tile);
    tl_tensor_unref(c->x);
    tl_tensor_unref(c->w);
    for (int i = 0; i < STEPS; i++) {
        tl_tensor_unref(c->between[i]);
    }
    tl_tensor_trim();
    tl_threads_free(c->k.threads);
    tl_pool_free(c->k.pool);
    tl_diag_fini(&c->diag);
}

int main(int argc, char **argv)
{
    chain c;
    long turns;

    if (argc != 3) {
        fputs("usage: tile TURNS fused|kernels\n", stderr);
        return 2;
    }
    turns = strtol(argv[1], NULL, 10);
    open_chain(&c);
    for (long i = 0; i < turns; i++) {
        if (strcmp(argv[2], "fused") == 0) {
            must(tl_tile_run(c.tile, &c.k));
        } else {
            run_kernels(&c);
        }
    }
    close_chain(&c);
    return 0;
}
