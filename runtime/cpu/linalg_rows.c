/* linalg_rows.c - factorisations of one matrix; compiled twice (isa.h).
 *
 * Golub, Van Loan, "Matrix computations" (2013): Cholesky by rows (4.2.5),
 * Gaussian elimination with partial pivoting (3.4.1), Householder QR (5.2.1)
 * with the signs of LAPACK's dlarfg. */
#include "runtime/cpu/linalg.h"

#include <math.h>
#include <string.h>

#include "runtime/cpu/isa.h"

#define REAL float
#define NAME(fn) fn##_f32
#define TABLE TL_ISA(tl_linalg_f32)
#include "runtime/cpu/linalg_rows.h"

#define REAL double
#define NAME(fn) fn##_f64
#define TABLE TL_ISA(tl_linalg_f64)
#include "runtime/cpu/linalg_rows.h"
