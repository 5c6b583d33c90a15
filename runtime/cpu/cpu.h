/* cpu.h - the CPU device. */
#ifndef TL_CPU_CPU_H
#define TL_CPU_CPU_H

#include "runtime/tensor/device.h"

/* Fill the table of kernels; picks AVX2+FMA kernels where the CPU has them.
 * Cheap: no library is initialised before its first use. */
void tl_cpu_device_init(tl_device *device);

/* Release what the device has kept. */
void tl_cpu_device_fini(tl_device *device);

/* Does this CPU run the kernels that are compiled for AVX2, FMA and F16C? */
bool tl_cpu_avx2_kernels(void);

/* Name of the matrix-product backend: "onednn", "own". */
const char *tl_cpu_matmul_backend(void);

#endif
