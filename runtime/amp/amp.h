/* amp.h - automatic mixed precision: what `autocast` does with an operation,
 * and the casts of weights that it keeps.
 *
 * Inside `with autocast(bf16):` a row's AMP column decides (op.h: tl_amp):
 *
 *   LOW   f32 operands are cast to the low dtype; the result is stored in it
 *   F32   lowered operands are widened; the result is f32
 *   WIDE  where every float operand is lowered to one dtype, the result is
 *         lowered to it; else as F32.  Host numbers and f32 parameters do not
 *         count and follow the others: `x @ w + b` is lowered
 *
 * Outside of the context, or inside of `autocast(none)`, lowered operands are
 * widened.  Views are stored as their base is.  What the program sees is f32
 * throughout, so f64, f16, bf16 and integer operands are what they are
 * without a context: an operation whose operands join to another dtype than
 * f32 is left alone, lowered operands widened.
 *
 * Whoever evaluates a program asks here, for tensors and for values of a
 * graph alike, so a compiled function rounds where the interpreter rounds.
 * Source of the classes: Micikevicius and others 2018, section 3, and
 * PyTorch's table (README.md). */
#ifndef TL_AMP_AMP_H
#define TL_AMP_AMP_H

#include "runtime/op/op.h"
#include "runtime/tensor/tensor.h"

/* A weight and its cast, both counted. */
typedef struct tl_amp_cast {
    tl_tensor *weight, *low;
} tl_amp_cast;

/* The state of a runtime, zero at first. */
typedef struct tl_autocast {
    bool used;    /* a context was open: lowered values may exist */
    bool on;      /* operations are lowered, to */
    tl_dtype low; /* bf16 or f16 */
    int depth;    /* contexts that are open */
    tl_amp_cast *casts; /* kept until the outermost one is left */
    size_t ncasts, cap;
} tl_autocast;

/* ---- contexts ----------------------------------------------------------- */

/* What a context changes, for the caller to keep. */
typedef struct tl_amp_before {
    bool on;
    tl_dtype low;
} tl_amp_before;

/* Enter a context that lowers to `low`, or does not lower (`on` false). */
tl_amp_before tl_amp_enter(tl_autocast *amp, bool on, tl_dtype low);

/* Leave it.  With the outermost one the casts go. */
void tl_amp_leave(tl_autocast *amp, tl_amp_before before);

/* ---- the policy --------------------------------------------------------- */

/* What is known of the operands of one call; add them all, then decide. */
typedef struct tl_amp_vote {
    tl_dtype shown;   /* to which the tensors that are joined join, as the
                         program sees them */
    tl_dtype stored;  /* of lowered ones, where `lowered` */
    bool lowered;     /* one operand at least is */
    bool wide, mixed; /* a float is not lowered; two low dtypes */
} tl_amp_vote;

typedef enum tl_amp_mode {
    TL_AMP_AS_IS, /* nothing to do */
    TL_AMP_LOWER, /* operands that are joined become `dtype`, in which the
                     result is stored */
    TL_AMP_STAY,  /* parameters become `dtype`, the others stay; the result is
                     lowered */
    TL_AMP_WIDEN  /* lowered operands become f32 */
} tl_amp_mode;

typedef struct tl_amp_plan {
    tl_amp_mode mode;
    tl_dtype dtype;
} tl_amp_plan;

/* An empty vote. */
tl_amp_vote tl_amp_call(void);

/* Is operand `i` of the row, stored as `dtype`, one that the row joins? */
bool tl_amp_is_joined(tl_op op, int i, tl_dtype dtype);

/* What the policy asks of an operand. */
typedef struct tl_amp_value {
    tl_dtype stored;
    bool lowered, weight; /* tl_tensor_flags */
} tl_amp_value;

/* Count operand `i`. */
void tl_amp_operand(tl_amp_vote *v, tl_op op, int i, tl_amp_value x);

tl_amp_plan tl_amp_decide(const tl_autocast *amp, tl_op op,
                          const tl_amp_vote *v);

/* The dtype that operand `i` has to be cast to; `stored`: none. */
tl_dtype tl_amp_wanted(const tl_amp_plan *plan, tl_op op, int i,
                       tl_amp_value x);

/* ---- casts of weights --------------------------------------------------- */

/* The kept cast to `dtype` of what lies in memory as `weight` does (another
 * view of the same elements serves too), borrowed, or NULL. */
tl_tensor *tl_amp_find(const tl_autocast *amp, const tl_tensor *weight,
                       tl_dtype dtype);

/* Keep `low` as the cast of `weight`.  Both are referenced, so nothing writes
 * the weight in place while its cast is kept.  E0607. */
TL_MUST_USE tl_status tl_amp_keep(tl_autocast *amp, tl_tensor *weight,
                                  tl_tensor *low, tl_diag *diag);

/* Drop the casts of what shares the storage of `t` (NULL: all): a cell that
 * held it is written. */
void tl_amp_forget(tl_autocast *amp, const tl_tensor *t);

#endif
