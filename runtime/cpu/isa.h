/* isa.h - names of what is compiled two or three times.
 *
 * Files in both kernel lists of Makefile.inc are compiled for every CPU and
 * again with AVX2, FMA and F16C (TL_CPU_AVX2).  The second time the functions
 * below have the ending _avx2, and so has TL_ISA(name) of any other name;
 * cpu.c chooses at run time.  Inner loops that gain by it stand in a third
 * list, for AVX-512 (TL_CPU_AVX512, and TL_CPU_AVX2 as well), with the ending
 * _avx512; the build for AVX2 chooses them (TL_BEST_AVX).  All builds have the
 * same bits: nothing is contracted, and sums have fixed trees. */
#ifndef TL_CPU_ISA_H
#define TL_CPU_ISA_H

#include <stdbool.h>

#if defined(TL_CPU_AVX512)
#define TL_ISA(name) name##_avx512
#define tl_fold_get tl_fold_get_avx512
#define tl_fold_map_get tl_fold_map_get_avx512
#elif defined(TL_CPU_AVX2)
#define TL_ISA(name) name##_avx2
#define tl_stage tl_stage_avx2
#define tl_map_loops_get tl_map_loops_get_avx2
#define tl_map_job_tile tl_map_job_tile_avx2
#define tl_map_find tl_map_find_avx2
#define tl_map_job_init tl_map_job_init_avx2
#define tl_map_job_run tl_map_job_run_avx2
#define tl_fold_get tl_fold_get_avx2
#define tl_fold_map_get tl_fold_map_get_avx2
#define tl_moments_merge tl_moments_merge_avx2
#define tl_reduce_plan_init tl_reduce_plan_init_avx2
#define tl_reduce_group tl_reduce_group_avx2
#define tl_reduce_fold tl_reduce_fold_avx2
#define tl_reduce_moments tl_reduce_moments_avx2
#define tl_reduce_along tl_reduce_along_avx2
#define tl_reduce_over tl_reduce_over_avx2
#define tl_reduce_reader_open tl_reduce_reader_open_avx2
#define tl_reduce_acc tl_reduce_acc_avx2
#define tl_reduce_fed tl_reduce_fed_avx2
#define tl_reduce_rows tl_reduce_rows_avx2
#define tl_cpu_map tl_cpu_map_avx2
#define tl_cpu_map_grad tl_cpu_map_grad_avx2
#define tl_cpu_cast tl_cpu_cast_avx2
#define tl_cpu_reduce tl_cpu_reduce_avx2
#define tl_cpu_rand tl_cpu_rand_avx2
#define tl_cpu_randn tl_cpu_randn_avx2
#define tl_cpu_randint tl_cpu_randint_avx2
#define tl_cpu_perm tl_cpu_perm_avx2
#define tl_cpu_dropout tl_cpu_dropout_avx2
#define tl_cpu_bernoulli tl_cpu_bernoulli_avx2
#else
#define TL_ISA(name) name
#endif

/* Has this CPU what the third build needs?  Asked are those with VBMI2, which
 * run 512-bit code without a lower clock (Ice Lake and Zen 4, and later). */
static inline bool tl_cpu_has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2");
#else
    return false;
#endif
}

/* Of a name that all three builds have: its address for this CPU, in code
 * that runs on CPUs with AVX2 (the second build). */
#define TL_BEST_AVX(name)                                                    \
    (tl_cpu_has_avx512() ? &name##_avx512 : &name##_avx2)

/* Iterations of the next loop do not depend on each other, although its
 * pointers may be equal. */
#define TL_INDEPENDENT _Pragma("GCC ivdep")

#endif
