/* cpu.h - the CPU device. */
#ifndef TL_CPU_CPU_H
#define TL_CPU_CPU_H

#include "runtime/tensor/device.h"

/* Fill the table of kernels; picks AVX2+FMA kernels where the CPU has them.
 * Cheap: no library is initialised before its first use. */
void tl_cpu_device_init(tl_device *device);

/* Name of the matrix-product backend: "onednn", "own". */
const char *tl_cpu_matmul_backend(void);

#endif
