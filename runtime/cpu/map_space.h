/* map_space.h - the elements of a result in pieces, and operands of any
 * layout as rows for such a piece.
 *
 * A space is the row-major order of a shape.  Axes that continue each other in
 * every operand are merged.  A piece is a run of at most `longest` elements;
 * an operand's part of it is used where it lies if its elements lie as those
 * of the result do, else it is brought into a tile (stage.h). */
#ifndef TL_CPU_MAP_SPACE_H
#define TL_CPU_MAP_SPACE_H

#include "runtime/cpu/stage.h"
#include "runtime/op/op.h"
#include "runtime/tensor/tensor.h"

typedef enum tl_map_layout {
    TL_LAYOUT_DIRECT,   /* as the result */
    TL_LAYOUT_SCALAR,   /* one element for all */
    TL_LAYOUT_PERIODIC, /* every row the same, and short */
    TL_LAYOUT_NESTED    /* strides */
} tl_map_layout;

typedef struct tl_map_operand {
    const char *data; /* NULL: not read */
    tl_map_layout layout;
    bool converts; /* its dtype is not that of the rows */
    int width;     /* bytes of an element */
    int row_width; /* bytes of an element of the rows */
    tl_stage_fn *stage;
    int64_t stride[TL_MAX_RANK]; /* of the merged axes, in elements */
} tl_map_operand;

typedef struct tl_map_space {
    bool nested;        /* some operand is */
    int64_t n, longest; /* elements, and those of a piece */
    int64_t period;     /* pieces begin at multiples of it */
    int rank;           /* of the merged axes; at least 1 */
    int64_t size[TL_MAX_RANK];
} tl_map_space;

/* Nanoseconds an element of a row takes, roughly. */
static inline double tl_map_cost(tl_op op, tl_dtype compute)
{
    double ns = 0.2 * (double)tl_dtype_size(compute);

    if (tl_op_get(op)->amp == TL_AMP_F32) {
        ns += compute == TL_f64 ? 15 : 2;
    }
    return ns;
}

/* `t`, broadcast to the shape, as rows of `dtype`, which `stage` makes. */
void tl_map_operand_init(tl_map_operand *o, const tl_tensor *t, int rank,
                         const int64_t *size, int64_t numel, tl_dtype dtype,
                         tl_stage_fn *stage);

/* Merge the axes for `count` operands and settle their layouts; `longest` is
 * all. */
void tl_map_space_init(tl_map_space *s, tl_map_operand *o, int count,
                       int rank, const int64_t *size, int64_t numel);

/* Elements of the piece at `pos`, of a range that ends at `hi`; sets its
 * coordinates `at` if they are needed. */
int64_t tl_map_piece_length(const tl_map_space *s, int64_t pos, int64_t hi,
                            int64_t *at);

/* Coordinates of element `pos` in the merged axes. */
void tl_map_coordinates(const tl_map_space *s, int64_t pos, int64_t *at);

/* Where a loop finds the n elements at `pos` of an operand: in place, or in
 * `tile`. */
const void *tl_map_piece(const tl_map_space *s, const tl_map_operand *o,
                         int64_t pos, const int64_t *at, int64_t n,
                         char *tile);

/* Fill the tile of an operand that has the same elements in each piece with
 * its first n; a periodic one goes on from row to row without end. */
void tl_map_fill_once(const tl_map_space *s, const tl_map_operand *o,
                      int64_t n, char *tile);

/* Tasks for a space of which an element takes `ns`, and the elements of one;
 * below 2 there is nothing to fork. */
int64_t tl_map_tasks(const tl_map_space *s, double ns, int64_t *chunk);

/* Must a row look at its data before it runs: integers divided, integer
 * powers, casts of floats to integers?  `from` is the dtype of the input,
 * which for rows is the one of the loop; `to` that of the result. */
bool tl_map_is_checked(tl_op op, tl_dtype from, tl_dtype to);

/* Bad are the elements (of the second input, or of what is cast) that are in
 * lo <= v < above, or with `outside` those that are not; see tl_map_find. */
typedef struct tl_map_bounds {
    double lo, above;
    bool outside;
} tl_map_bounds;
tl_map_bounds tl_map_bounds_of(tl_op op, tl_dtype to);

/* Report such an element; `where` is the text of its place.  E0401 division
 * by zero, E0416 negative power, E0319 a value without integer form. */
tl_status tl_map_refuse(tl_diag *diag, tl_op op, tl_dtype to,
                        const char *where);

/* Where a cast passes through: f32 or f64 at 16-bit floats, else `to`. */
tl_dtype tl_map_halfway(tl_dtype from, tl_dtype to);

#endif
