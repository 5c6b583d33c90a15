/* pool.h - pooling on the CPU: what the kernels and their loops share.
 *
 * Every pooling is one over three axes; missing ones have size 1 in front.  A
 * plane is what is pooled of one batch element and channel. */
#ifndef TL_CPU_POOL_H
#define TL_CPU_POOL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tl_pool_span tl_pool_span;

typedef struct tl_pool {
    tl_pool_span *span[3]; /* of each window along an axis */
    int64_t in[3], out[3];
    int64_t size[3], stride[3], pad[3], dilation[3];
    bool adaptive; /* windows of different sizes; dilation is 1 */
    bool count_pad;
    int64_t divisor; /* of averages; 0: the number of elements */
} tl_pool;

/* Taps [lo, hi) of window `o` along axis i that lie in the input, the first
 * tap (maybe in the padding), and the number of elements to divide by. */
struct tl_pool_span {
    int64_t first, lo, hi, count;
};

static inline int64_t tl_pool_volume(const int64_t *size)
{
    return size[0] * size[1] * size[2];
}

static inline tl_pool_span tl_pool_find(const tl_pool *p, int i, int64_t o)
{
    __extension__ typedef unsigned __int128 wide;
    int64_t n = p->in[i], d = p->dilation[i], out = p->out[i];
    tl_pool_span s = {.lo = 0};

    if (p->adaptive) {
        s.first = (int64_t)((wide)o * (wide)n / (wide)out);
        s.hi = (int64_t)(((wide)(o + 1) * (wide)n + (wide)(out - 1)) /
                         (wide)out) -
               s.first;
        s.count = s.hi;
        return s;
    }
    s.first = o * p->stride[i] - p->pad[i];
    s.lo = s.first < 0 ? (-s.first + d - 1) / d : 0;
    s.hi = s.first < n ? (n - 1 - s.first) / d + 1 : 0;
    s.hi = s.hi < p->size[i] ? s.hi : p->size[i];
    s.lo = s.lo < s.hi ? s.lo : s.hi;
    /* padding counts, what hangs over behind it does not */
    s.count = n + p->pad[i] - s.first;
    s.count = !p->count_pad          ? s.hi - s.lo
              : s.count < p->size[i] ? s.count
                                     : p->size[i];
    return s;
}

static inline tl_pool_span tl_pool_at(const tl_pool *p, int i, int64_t o)
{
    return p->span[i][o];
}

/* Loops over one plane, of float or double; compiled twice (pool_rows.c).
 * `scratch` has room for tl_pool_scratch(p) doubles. */
typedef struct tl_pool_loops {
    void (*max)(const tl_pool *p, const void *x, void *y, int64_t *place,
                double *scratch);
    void (*avg)(const tl_pool *p, const void *x, void *y, double *scratch);
    void (*max_grad)(const tl_pool *p, const void *g, const int64_t *place,
                     void *dx);
    void (*avg_grad)(const tl_pool *p, const void *g, void *dx,
                     double *scratch);
} tl_pool_loops;

static inline int64_t tl_pool_scratch(const tl_pool *p)
{
    return 2 * p->out[2];
}

extern const tl_pool_loops tl_pool_f32, tl_pool_f64;
#if defined(__x86_64__)
extern const tl_pool_loops tl_pool_f32_avx2, tl_pool_f64_avx2;
#endif

#endif
