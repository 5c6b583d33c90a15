/* Loops of pooling over one plane: rows of windows tap by tap against window
 * by window, over sizes, strides, padding and dilation; both builds. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "runtime/cpu/kern.h"
#include "runtime/cpu/pool.h"

enum { MOST = 2000 };

typedef struct plane {
  tl_pool p;
  tl_pool_span spans[3][64];
  float x[MOST], y[MOST], dx[MOST];
  int64_t place[MOST];
  double scratch[256];
} plane;

static uint64_t seed = 1;

static int64_t draw(int64_t n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)(seed >> 33) % n;
}

/* A random geometry with at least one window. */
static void make(plane *a) {
  tl_pool *p = &a->p;

  memset(a, 0, sizeof *a);
  p->count_pad = draw(2);
  for (int i = 0; i < 3; i++) {
    int64_t span;

    p->in[i] = i == 0 ? draw(3) + 1 : draw(20) + 1;
    p->dilation[i] = draw(2) + 1;
    p->size[i] = draw(p->in[i] < 4 ? p->in[i] : 4) + 1;
    span = (p->size[i] - 1) * p->dilation[i] + 1;
    p->pad[i] = draw(span / 2 + 1);
    p->stride[i] = draw(3) + 1;
    if (span > p->in[i] + 2 * p->pad[i]) {
      p->size[i] = p->dilation[i] = 1;
      p->pad[i] = 0;
      span = 1;
    }
    p->out[i] = (p->in[i] + 2 * p->pad[i] - span) / p->stride[i] + 1;
    p->span[i] = a->spans[i];
    for (int64_t o = 0; o < p->out[i]; o++) {
      a->spans[i][o] = tl_pool_find(p, i, o);
    }
  }
  for (int64_t i = 0; i < tl_pool_volume(p->in); i++) {
    int64_t v = draw(40);

    a->x[i] = v == 0 ? NAN : v == 1 ? -INFINITY : (float)(v - 20);
  }
}

/* Does element `e` of axis i belong to window `o`? */
static bool in_window(const tl_pool *p, int i, int64_t o, int64_t e) {
  int64_t t = e - (o * p->stride[i] - p->pad[i]);

  return t >= 0 && t % p->dilation[i] == 0 && t / p->dilation[i] < p->size[i];
}

/* The place of the first maximum, or nan, of a window; -1: there is none. */
static int64_t plain_place(const plane *a, int64_t o) {
  const tl_pool *p = &a->p;
  int64_t at[3] = {o / (p->out[1] * p->out[2]), o / p->out[2] % p->out[1],
                   o % p->out[2]};
  int64_t best = -1;

  for (int64_t i = 0; i < tl_pool_volume(p->in); i++) {
    int64_t e[3] = {i / (p->in[1] * p->in[2]), i / p->in[2] % p->in[1],
                    i % p->in[2]};

    if (in_window(p, 0, at[0], e[0]) && in_window(p, 1, at[1], e[1]) &&
        in_window(p, 2, at[2], e[2]) &&
        (best < 0 || a->x[i] > a->x[best] ||
         (isnan(a->x[i]) && !isnan(a->x[best])))) {
      best = i;
    }
  }
  return best;
}

static int loops(const tl_pool_loops **out) {
  out[0] = &tl_pool_f32;
#if defined(__x86_64__)
  if (tl_cpu_has_avx2()) {
    out[1] = &tl_pool_f32_avx2;
    return 2;
  }
#endif
  return 1;
}

Test(pool, maxima_are_where_a_plain_search_finds_them) {
  static plane a;
  const tl_pool_loops *of[2];

  for (int n = loops(of), k = 0; k < 300; k++) {
    make(&a);
    of[k % n]->max(&a.p, a.x, a.y, a.place, a.scratch);
    for (int64_t o = 0; o < tl_pool_volume(a.p.out); o++) {
      cr_assert_eq(a.place[o], plain_place(&a, o), "plane %d", k);
      cr_assert(a.place[o] < 0 ? isinf(a.y[o])
                               : memcmp(&a.y[o], &a.x[a.place[o]], 4) == 0);
    }
  }
}

/* sum(avg(x) g) = sum(x avg_grad(g)), for numbers that are exact. */
Test(pool, the_gradient_of_means_is_their_transpose) {
  static plane a;
  static float g[MOST];
  const tl_pool_loops *of[2];

  for (int n = loops(of), k = 0; k < 300; k++) {
    double one = 0, two = 0, size = 0;

    make(&a);
    a.p.divisor = 4;
    for (int64_t i = 0; i < tl_pool_volume(a.p.in); i++) {
      a.x[i] = (float)(draw(40) - 20);
    }
    for (int64_t o = 0; o < tl_pool_volume(a.p.out); o++) {
      g[o] = (float)(draw(40) - 20);
    }
    of[k % n]->avg(&a.p, a.x, a.y, a.scratch);
    of[k % n]->avg_grad(&a.p, g, a.dx, a.scratch);
    for (int64_t o = 0; o < tl_pool_volume(a.p.out); o++) {
      one += (double)a.y[o] * (double)g[o];
      size += fabs((double)a.y[o] * (double)g[o]);
    }
    for (int64_t i = 0; i < tl_pool_volume(a.p.in); i++) {
      two += (double)a.x[i] * (double)a.dx[i];
    }
    cr_assert(fabs(one - two) <= 1e-6 * size, "plane %d: %g, %g", k, one, two);
  }
}

Test(pool, builds_agree) {
  static plane a, b;
  const tl_pool_loops *of[2];

  if (loops(of) < 2) {
    return;
  }
  for (int k = 0; k < 100; k++) {
    make(&a);
    for (int64_t i = 0; i < tl_pool_volume(a.p.in); i++) {
      a.x[i] = (float)draw(1000) / 7;
    }
    memcpy(&b, &a, sizeof b);
    of[0]->avg(&a.p, a.x, a.y, a.scratch);
    of[1]->avg(&b.p, b.x, b.y, b.scratch);
    of[0]->avg_grad(&a.p, a.y, a.dx, a.scratch);
    of[1]->avg_grad(&b.p, b.y, b.dx, b.scratch);
    cr_assert(memcmp(a.y, b.y, sizeof a.y) == 0, "plane %d", k);
    cr_assert(memcmp(a.dx, b.dx, sizeof a.dx) == 0, "plane %d", k);
  }
}
