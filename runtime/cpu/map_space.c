/* map_space.c - see map_space.h: layouts, merged axes, pieces. */
#include "runtime/cpu/map_space.h"

#include <math.h>
#include <string.h>

#include "runtime/cpu/kern.h"

enum {
    LONG_ROW = 128,  /* rows from which pieces end where rows end */
    TASK_NS = 50000, /* what a task should take */
    ALIGN = 64       /* pieces of tasks begin at multiples, in elements */
};

/* ---- layouts --------------------------------------------------------- */

void tl_map_operand_init(tl_map_operand *o, const tl_tensor *t, int rank,
                         const int64_t *size, int64_t numel, tl_dtype dtype,
                         tl_stage_fn *stage)
{
    /* A stub is made ready before it has elements; they come later, but there
     * will be some. */
    o->data = t->storage != NULL ? tl_tensor_data(t) : (const void *)t;
    o->width = (int)tl_dtype_size(t->dtype);
    o->row_width = (int)tl_dtype_size(dtype);
    o->stage = stage;
    o->converts = t->dtype != dtype;
    if (t->numel == 1) {
        o->layout = TL_LAYOUT_SCALAR;
    } else if (t->numel == numel && tl_tensor_contiguous(t)) {
        o->layout = TL_LAYOUT_DIRECT;
    } else {
        o->layout = TL_LAYOUT_NESTED;
        tl_cpu_broadcast(t, rank, size, o->stride);
    }
}

static bool is_nested(const tl_map_operand *o)
{
    return o->data != NULL && o->layout == TL_LAYOUT_NESTED;
}

static bool any_nested(const tl_map_operand *o, int count)
{
    for (int i = 0; i < count; i++) {
        if (is_nested(&o[i])) {
            return true;
        }
    }
    return false;
}

/* Do two axes of every nested operand continue each other? */
static bool mergeable(const tl_map_space *s, const tl_map_operand *o,
                      int count, int outer, int inner)
{
    for (int i = 0; i < count; i++) {
        if (is_nested(&o[i]) &&
            o[i].stride[outer] != o[i].stride[inner] * s->size[inner]) {
            return false;
        }
    }
    return true;
}

/* Merge what can be merged, drop axes of size 1.  Works from the inside. */
static void merge_axes(tl_map_space *s, tl_map_operand *o, int count,
                       int rank, const int64_t *size)
{
    int top = TL_MAX_RANK; /* merged axes are collected at the end */

    memcpy(s->size, size, sizeof(int64_t) * (size_t)rank);
    for (int i = rank - 1; i >= 0; i--) {
        if (s->size[i] == 1) {
            continue;
        }
        if (top < TL_MAX_RANK && mergeable(s, o, count, i, top)) {
            s->size[top] *= s->size[i];
            continue;
        }
        top--;
        s->size[top] = s->size[i];
        for (int k = 0; k < count; k++) {
            o[k].stride[top] = o[k].stride[i];
        }
    }
    s->rank = TL_MAX_RANK - top;
    memmove(s->size, s->size + top, sizeof(int64_t) * (size_t)s->rank);
    for (int k = 0; k < count; k++) {
        memmove(o[k].stride, o[k].stride + top,
                sizeof(int64_t) * (size_t)s->rank);
    }
    if (s->rank == 0) {
        s->rank = 1;
        s->size[0] = 1;
    }
}

/* Is every row of the merged axes the same? */
static bool is_periodic(const tl_map_space *s, const tl_map_operand *o)
{
    for (int i = 0; i < s->rank - 1; i++) {
        if (o->stride[i] != 0) {
            return false;
        }
    }
    return s->rank > 1 && s->size[s->rank - 1] < LONG_ROW;
}

void tl_map_space_init(tl_map_space *s, tl_map_operand *o, int count,
                       int rank, const int64_t *size, int64_t numel)
{
    s->n = s->longest = numel;
    s->rank = 1;
    s->size[0] = numel;
    s->period = 1;
    s->nested = any_nested(o, count);
    if (!s->nested) {
        return;
    }
    merge_axes(s, o, count, rank, size);
    for (int i = 0; i < count; i++) {
        if (is_nested(&o[i]) && is_periodic(s, &o[i])) {
            o[i].layout = TL_LAYOUT_PERIODIC;
            s->period = s->size[s->rank - 1];
        }
    }
    s->nested = any_nested(o, count);
}

/* ---- pieces ---------------------------------------------------------- */

/* The n elements from coordinates `at` on, row by row, into `tile`. */
static void gather(const tl_map_space *s, const tl_map_operand *o,
                   const int64_t *at, int64_t n, char *tile)
{
    int64_t index[TL_MAX_RANK], offset = 0;
    int last = s->rank - 1;

    for (int i = 0; i <= last; i++) {
        index[i] = at[i];
        offset += at[i] * o->stride[i];
    }
    while (n > 0) {
        int64_t room = s->size[last] - index[last], m = n < room ? n : room;

        o->stage(m, o->data + offset * o->width, o->stride[last], tile);
        tile += m * o->row_width;
        n -= m;
        offset += m * o->stride[last];
        index[last] += m;
        for (int i = last; i > 0 && index[i] == s->size[i]; i--) {
            offset += o->stride[i - 1] - index[i] * o->stride[i];
            index[i] = 0;
            index[i - 1]++;
        }
    }
}

static int64_t offset_of(const tl_map_space *s, const tl_map_operand *o,
                         const int64_t *at)
{
    int64_t offset = 0;

    for (int i = 0; i < s->rank; i++) {
        offset += at[i] * o->stride[i];
    }
    return offset;
}

const void *tl_map_piece(const tl_map_space *s, const tl_map_operand *o,
                         int64_t pos, const int64_t *at, int64_t n,
                         char *tile)
{
    const int last = s->rank - 1;

    switch (o->layout) {
    case TL_LAYOUT_SCALAR:
    case TL_LAYOUT_PERIODIC:
        return tile; /* filled once */
    case TL_LAYOUT_DIRECT:
        if (!o->converts) {
            return o->data + pos * o->width;
        }
        o->stage(n, o->data + pos * o->width, 1, tile);
        return tile;
    case TL_LAYOUT_NESTED:
        break;
    }
    if (!o->converts && o->stride[last] == 1 &&
        at[last] + n <= s->size[last]) {
        return o->data + offset_of(s, o, at) * o->width;
    }
    gather(s, o, at, n, tile);
    return tile;
}

void tl_map_coordinates(const tl_map_space *s, int64_t pos, int64_t *at)
{
    for (int i = s->rank - 1; i >= 0; i--) {
        at[i] = pos % s->size[i];
        pos /= s->size[i];
    }
}

int64_t tl_map_piece_length(const tl_map_space *s, int64_t pos, int64_t hi,
                            int64_t *at)
{
    int64_t n = hi - pos < s->longest ? hi - pos : s->longest;
    int64_t row = s->size[s->rank - 1];

    if (s->nested) {
        tl_map_coordinates(s, pos, at);
        if (row >= LONG_ROW && n > row - at[s->rank - 1]) {
            n = row - at[s->rank - 1];
        }
    }
    return n;
}

void tl_map_fill_once(const tl_map_space *s, const tl_map_operand *o,
                      int64_t n, char *tile)
{
    const int64_t first[TL_MAX_RANK] = {0};

    if (o->layout == TL_LAYOUT_SCALAR) {
        o->stage(n, o->data, 0, tile);
    } else if (o->layout == TL_LAYOUT_PERIODIC) {
        gather(s, o, first, n, tile);
    }
}

int64_t tl_map_tasks(const tl_map_space *s, double ns, int64_t *chunk)
{
    int64_t ntasks = (int64_t)(ns * (double)s->n / TASK_NS);

    if (ntasks < 2) {
        *chunk = s->n;
        return 1;
    }
    *chunk = ALIGN * s->period;
    *chunk *= tl_ceil_div(s->n, ntasks * *chunk);
    return tl_ceil_div(s->n, *chunk);
}

/* ---- what rows cannot take ----------------------------------------------- */

bool tl_map_is_checked(tl_op op, tl_dtype from, tl_dtype to)
{
    if (op == TL_OP_cast) {
        return tl_dtype_is_float(from) && tl_dtype_kind(to) == TL_KIND_INT;
    }
    return !tl_dtype_is_float(from) &&
           (op == TL_OP_floordiv || op == TL_OP_mod || op == TL_OP_pow);
}

tl_map_bounds tl_map_bounds_of(tl_op op, tl_dtype to)
{
    static const int bits[TL_DTYPE_COUNT] = {[TL_u8] = 8,
                                             [TL_i8] = 7,
                                             [TL_i16] = 15,
                                             [TL_i32] = 31,
                                             [TL_i64] = 63};
    double above = ldexp(1, bits[to]), lo = to == TL_u8 ? 0 : -above;

    if (op == TL_OP_pow) {
        return (tl_map_bounds){0, (double)INFINITY, true};
    }
    if (op != TL_OP_cast) { /* zero is the only whole number below a half */
        return (tl_map_bounds){0, 0.5, false};
    }
    /* what truncates into the range; 2^63 has no neighbour below -2^63 */
    lo = to == TL_i64 ? lo : nextafter(lo - 1, 0);
    return (tl_map_bounds){lo, above, true};
}

tl_status tl_map_refuse(tl_diag *diag, tl_op op, tl_dtype to,
                        const char *where)
{
    switch (op) {
    case TL_OP_cast:
        return tl_fail(diag, TL_E0319, "value at %s has no %s form", where,
                       tl_dtype_name(to));
    case TL_OP_pow:
        return tl_fail(diag, TL_E0416, "negative power of an integer at %s",
                       where);
    default:
        return tl_fail(diag, TL_E0401, "integer `%s` by zero at %s",
                       op == TL_OP_mod ? "%" : "//", where);
    }
}

tl_dtype tl_map_halfway(tl_dtype from, tl_dtype to)
{
    if (tl_stage(from, to) != NULL) {
        return to;
    }
    return tl_dtype_arith(from) != from ? TL_f32 : TL_f64;
}
