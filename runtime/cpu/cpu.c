/* cpu.c - the CPU's table of kernels, made from ops.def.
 *
 * What is compiled twice (isa.h) is chosen here, once. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime/cpu/conv.h"
#include "runtime/cpu/elementwise.h"
#include "runtime/cpu/kern.h"

/* Kernels for every CPU. */
static void set_plain(tl_device *device)
{
    tl_kernel_fn **kernel = device->kernel;

    device->map_grad = tl_cpu_map_grad;
#define MAP1(name, ...) kernel[TL_OP_##name] = tl_cpu_map;
#define MAP2(name, ...) kernel[TL_OP_##name] = tl_cpu_map;
#define MAP3(name, ...) kernel[TL_OP_##name] = tl_cpu_map;
#define CMP1(name, ...) kernel[TL_OP_##name] = tl_cpu_map;
#define CMP2(name, ...) kernel[TL_OP_##name] = tl_cpu_map;
#define RED(name, ...) kernel[TL_OP_##name] = tl_cpu_reduce;
#define VIEW(name, ...) kernel[TL_OP_##name] = NULL;
#define MAKE(name, ...) kernel[TL_OP_##name] = tl_cpu_##name;
#define KERN(name, ...) kernel[TL_OP_##name] = tl_cpu_##name;
#include "runtime/op/ops.def"
}

#ifdef TL_HAVE_AVX2_KERNELS
static void set_avx2(tl_device *device)
{
    tl_kernel_fn **kernel = device->kernel;

    device->map_grad = tl_cpu_map_grad_avx2;
#define MAP1(name, ...) kernel[TL_OP_##name] = tl_cpu_map_avx2;
#define MAP2(name, ...) kernel[TL_OP_##name] = tl_cpu_map_avx2;
#define MAP3(name, ...) kernel[TL_OP_##name] = tl_cpu_map_avx2;
#define CMP1(name, ...) kernel[TL_OP_##name] = tl_cpu_map_avx2;
#define CMP2(name, ...) kernel[TL_OP_##name] = tl_cpu_map_avx2;
#define RED(name, ...) kernel[TL_OP_##name] = tl_cpu_reduce_avx2;
#include "runtime/op/ops.def"
    kernel[TL_OP_cast] = tl_cpu_cast_avx2;
    kernel[TL_OP_rand] = tl_cpu_rand_avx2;
    kernel[TL_OP_randn] = tl_cpu_randn_avx2;
    kernel[TL_OP_randint] = tl_cpu_randint_avx2;
    kernel[TL_OP_perm] = tl_cpu_perm_avx2;
    kernel[TL_OP_dropout] = tl_cpu_dropout_avx2;
    kernel[TL_OP_bernoulli] = tl_cpu_bernoulli_avx2;
}
#endif

#ifdef TL_HAVE_AVX2_KERNELS
/* clang 14 has no name for this feature: CPUID leaf 1, ECX bit 29, which takes
 * microseconds in a virtual machine. */
static bool has_f16c(void)
{
#if defined(__clang__) || __GNUC__ < 12
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
#else
    return __builtin_cpu_supports("f16c") != 0;
#endif
}
#endif

bool tl_cpu_avx2_kernels(void)
{
#ifdef TL_HAVE_AVX2_KERNELS
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           has_f16c();
#else
    return false;
#endif
}

void tl_cpu_device_init(tl_device *device)
{
    device->name = "cpu";
    device->convs = NULL;
    set_plain(device);
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_avx2_kernels()) {
        set_avx2(device);
    }
#endif
}

void tl_cpu_device_fini(tl_device *device)
{
    tl_conv_cache_free(device->convs);
    device->convs = NULL;
}
