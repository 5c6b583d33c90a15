/* Factorisations of one matrix: our own loops, plain and with AVX2, and
 * LAPACK's where it is built in, against the products that define them. */
#include "config.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "runtime/cpu/kern.h"
#include "runtime/cpu/linalg.h"

enum { MOST = 40, ROOM = 4 * MOST * MOST + 8 * MOST };

/* Every table for f64; the number of them. */
static int tables(const tl_linalg **out) {
  int n = 0;

  out[n++] = &tl_linalg_f64;
#if defined(__x86_64__)
  if (tl_cpu_has_avx2()) {
    out[n++] = &tl_linalg_f64_avx2;
  }
#endif
#ifdef HAVE_LAPACK
  out[n++] = &tl_lapack_f64;
#endif
  return n;
}

static void fill(int64_t n, double *x, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x[i] = (double)(seed >> 11) * 0x1p-52 - 1;
  }
}

/* to[m, n] = a[m, k] b[k, n], or a b' */
static void product(int64_t m, int64_t k, int64_t n, const double *a,
                    const double *b, bool turned, double *to) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;

      for (int64_t t = 0; t < k; t++) {
        sum += a[i * k + t] * (turned ? b[j * k + t] : b[t * n + j]);
      }
      to[i * n + j] = sum;
    }
  }
}

static double worst(int64_t n, const double *a, const double *b) {
  double most = 0;

  for (int64_t i = 0; i < n; i++) {
    most = fmax(most, fabs(a[i] - b[i]));
  }
  return most;
}

Test(linalg, cholesky_is_a_root) {
  static double x[ROOM], a[ROOM], l[ROOM], back[ROOM];
  const tl_linalg *table[3];

  for (int t = tables(table); t-- > 0;) {
    for (int64_t n = 1; n <= MOST; n += n < 20 ? 1 : 7) {
      fill(n * n, x, (uint64_t)n);
      product(n, n, n, x, x, true, a);
      for (int64_t i = 0; i < n; i++) {
        a[i * n + i] += 1;
      }
      memcpy(l, a, sizeof l);
      cr_assert_eq(table[t]->cholesky(n, l), 0);
      product(n, n, n, l, l, true, back);
      cr_expect_lt(worst(n * n, a, back), 1e-12, "table %d, n %d", t, (int)n);
      for (int64_t i = 0; i < n * n; i++) {
        cr_assert(i % n <= i / n || l[i] == 0);
      }
    }
  }
}

Test(linalg, refusals_name_the_place) {
  const double half[9] = {4, 0, 0, 0, 0, 0, 0, 0, 9};
  const tl_linalg *table[3];
  double a[9], x[3], work[64];

  for (int t = tables(table); t-- > 0;) {
    memcpy(a, half, sizeof a);
    cr_expect_eq(table[t]->cholesky(3, a), 2);
    memcpy(a, half, sizeof a);
    a[4] = NAN;
    cr_expect_eq(table[t]->cholesky(3, a), 2);
    memcpy(a, half, sizeof a);
    fill(3, x, 1);
    cr_expect_eq(table[t]->solve(3, 1, a, x, work), 2);
  }
}

Test(linalg, solve_needs_pivots) {
  static double a[ROOM], lu[ROOM], b[ROOM], x[ROOM], back[ROOM], work[ROOM];
  const tl_linalg *table[3];

  for (int t = tables(table); t-- > 0;) {
    for (int64_t n = 1; n <= MOST; n += n < 20 ? 1 : 7) {
      int64_t k = n % 4 + 1;

      fill(n * n, a, (uint64_t)n + 7);
      a[0] = n > 1 ? 0 : 2; /* a pivot has to be looked for */
      fill(n * k, b, (uint64_t)n + 8);
      memcpy(lu, a, sizeof lu);
      memcpy(x, b, sizeof x);
      cr_assert_eq(table[t]->solve(n, k, lu, x, work), 0);
      product(n, n, k, a, x, false, back);
      cr_expect_lt(worst(n * k, b, back), 1e-9, "table %d, n %d", t, (int)n);
    }
  }
}

Test(linalg, triangles_in_all_four_forms) {
  static double a[ROOM], full[ROOM], b[ROOM], x[ROOM], back[ROOM];
  const int64_t n = 17, k = 3;

  fill(n * n, a, 3);
  fill(n * k, b, 4);
  for (int64_t i = 0; i < n; i++) {
    a[i * n + i] = 5;
  }
  for (int form = 0; form < 4; form++) {
    bool upper = form / 2, turned = form % 2;

    for (int64_t i = 0; i < n * n; i++) {
      int64_t r = i / n, c = i % n;

      full[turned ? c * n + r : i] = (upper ? c >= r : c <= r) ? a[i] : 0;
    }
    memcpy(x, b, sizeof x);
    tl_linalg_f64.tri_solve(n, k, a, upper, turned, x);
    product(n, n, k, full, x, false, back);
    cr_expect_lt(worst(n * k, b, back), 1e-12, "form %d", form);
  }
}

static void check_qr(const tl_linalg *table, int64_t m, int64_t n) {
  static double a[ROOM], copy[ROOM], q[ROOM], r[ROOM], back[ROOM], work[ROOM];
  int64_t k = m < n ? m : n;

  fill(m * n, a, (uint64_t)(m * 50 + n));
  memcpy(copy, a, sizeof copy);
  table->qr(m, n, copy, q, r, work);
  product(m, k, n, q, r, false, back);
  cr_expect_lt(worst(m * n, a, back), 1e-13);
  for (int64_t i = 0; i < k; i++) {
    for (int64_t j = 0; j < k; j++) {
      double dot = 0;

      for (int64_t t = 0; t < m; t++) {
        dot += q[t * k + i] * q[t * k + j];
      }
      cr_expect_lt(fabs(dot - (i == j)), 1e-13);
    }
    for (int64_t j = 0; j < i; j++) {
      cr_expect_eq(r[i * n + j], 0);
    }
  }
}

Test(linalg, qr_of_every_form) {
  static const int64_t size[][2] = {{1, 1}, {5, 5}, {7, 3},   {3, 7},
                                    {1, 9}, {9, 1}, {40, 17}, {17, 40}};
  const tl_linalg *table[3];

  for (int t = tables(table); t-- > 0;) {
    for (int i = 0; i < 8; i++) {
      check_qr(table[t], size[i][0], size[i][1]);
    }
  }
}

/* LAPACK and our own loops take the same signs. */
Test(linalg, signs_of_r_are_those_of_lapack) {
  double a[4] = {3, 5, 4, 0}, q[4], r[4], work[32];

  tl_linalg_f64.qr(2, 2, a, q, r, work);
  cr_expect_lt(fabs(r[0] + 5) + fabs(r[1] + 3) + fabs(r[3] + 4), 1e-14);
}

/* Both builds of the kernels have the same bits. */
Test(linalg, builds_agree) {
#if defined(__x86_64__)
  static float a[ROOM], b[ROOM], q[2][ROOM], r[2][ROOM], work[ROOM];
  const tl_linalg *table[2] = {&tl_linalg_f32, &tl_linalg_f32_avx2};

  if (!tl_cpu_has_avx2()) {
    return;
  }
  for (int t = 0; t < 2; t++) {
    for (int i = 0; i < 33 * 21; i++) {
      a[i] = (float)((i * 37 + 11) % 67 - 33) / 16;
    }
    table[t]->qr(33, 21, a, q[t], r[t], work);
    for (int i = 0; i < 21 * 21; i++) {
      b[i] = (float)((i * 37 + 11) % 67) / 64 + (i % 22 == 0 ? 40 : 0);
    }
    cr_assert_eq(table[t]->solve(21, 21, b, r[t], work), 0);
  }
  cr_expect(memcmp(q[0], q[1], 33 * 21 * sizeof(float)) == 0);
  cr_expect(memcmp(r[0], r[1], 21 * 21 * sizeof(float)) == 0);
#endif
}
