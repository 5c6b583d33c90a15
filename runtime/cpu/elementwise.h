/* elementwise.h - kernels of elementwise rows, reductions and creators. */
#ifndef TL_CPU_ELEMENTWISE_H
#define TL_CPU_ELEMENTWISE_H

#include "runtime/tensor/device.h"

/* MAP and CMP rows, and the fused gradient (device.h). */
tl_kernel_fn tl_cpu_map, tl_cpu_map_avx2;
tl_map_grad_fn tl_cpu_map_grad, tl_cpu_map_grad_avx2;

/* A copy in another dtype or layout. */
tl_kernel_fn tl_cpu_cast_avx2;

/* RED rows; see README.md for the tree of sums. */
tl_kernel_fn tl_cpu_reduce, tl_cpu_reduce_avx2;

/* Draws. */
tl_kernel_fn tl_cpu_rand_avx2, tl_cpu_randn_avx2, tl_cpu_randint_avx2;
tl_kernel_fn tl_cpu_perm_avx2, tl_cpu_dropout_avx2, tl_cpu_bernoulli_avx2;

/* MAKE rows: tl_cpu_<name>. */
#define MAKE(name, ...) tl_kernel_fn tl_cpu_##name;
#include "runtime/op/ops.def"

#endif
