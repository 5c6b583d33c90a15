/* isa.h - names of what is compiled twice.
 *
 * Files in both kernel lists of Makefile.inc are compiled for every CPU and
 * again with AVX2, FMA and F16C (TL_CPU_AVX2).  TL_ISA(name) is `name` in the
 * first and name_avx2 in the second; cpu.c chooses at run time.  Both have
 * the same bits: nothing is contracted, and sums have fixed trees. */
#ifndef TL_CPU_ISA_H
#define TL_CPU_ISA_H

#ifdef TL_CPU_AVX2
#define TL_ISA(name) name##_avx2
#else
#define TL_ISA(name) name
#endif

/* Iterations of the next loop do not depend on each other, although its
 * pointers may be equal. */
#define TL_INDEPENDENT _Pragma("GCC ivdep")

#endif
