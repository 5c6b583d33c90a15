/* fuse.h - which steps of a plan run as one tile program.
 *
 * A group has a *space*: the shape over which its elementwise steps run.  If
 * it has rows (`trailing` axes of the space), some of its values have a number
 * a row: the shape of the space with sizes 1 along the row, or what a
 * reduction of rows gives, in any shape. */
#ifndef TL_COMPILER_FUSE_H
#define TL_COMPILER_FUSE_H

#include "compiler/plan_impl.h"

/* Why two steps are not one program (fuse.def). */
typedef enum tl_fuse_why {
    TL_WHY_NONE,
#define ALONE(name, text) TL_WHY_##name,
#define APART(name, text) TL_WHY_##name,
#include "compiler/fuse.def"
    TL_WHY_COUNT
} tl_fuse_why;

/* Its text; *alone: it is of one step, "it <text>". */
const char *tl_fuse_why_text(tl_fuse_why why, bool *alone);

typedef enum tl_fuse_class {
    TL_FUSE_NONE,
    TL_FUSE_ELEMENT,
    TL_FUSE_ROW,   /* rows computed as a whole: softmax, layer_norm */
    TL_FUSE_FOLD,  /* rows reduced to a number */
    TL_FUSE_REDUCE /* another reduction: it ends a group */
} tl_fuse_class;

/* What a step by itself is. */
typedef struct tl_fuse_kind {
    tl_fuse_class cls;
    uint32_t space;    /* a value of the space's shape */
    uint32_t count;    /* steps of a tile program; 0: it takes no part */
    uint8_t trailing;  /* ROW, FOLD: axes of the row */
    uint8_t why;       /* count 0: tl_fuse_why */
} tl_fuse_kind;

tl_fuse_kind tl_fuse_kind_of(const tl_plan *pl, const tl_pstep *s);

/* Has value v sizes 1 along the rows of the space, and is else like it? */
bool tl_fuse_is_per_row(const tl_plan *pl, uint32_t v, uint32_t space,
                        uint32_t trailing);

/* The dtype in which an elementwise step computes. */
tl_dtype tl_fuse_compute(const tl_plan *pl, const tl_pstep *s);

/* May result `k` of a group take the storage of an operand? */
bool tl_fuse_takes(const tl_plan *pl, const tl_pstep *s, uint32_t k);

/* Make the tile program of a TILE step whose headers are bound. */
TL_MUST_USE tl_status tl_plan_tile(tl_plan *pl, tl_pstep *s, tl_rt *rt);

#endif
