/* loss.h - attributes of the losses. */
#ifndef TL_OP_LOSS_H
#define TL_OP_LOSS_H

/* attrs.i[1] of cross_entropy. */
typedef enum tl_loss_reduce {
    TL_LOSS_NONE,
    TL_LOSS_MEAN,
    TL_LOSS_SUM
} tl_loss_reduce;

#endif
