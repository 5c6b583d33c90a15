/* pattern.h - rearrange, reduce and einsum by patterns of axis names.
 *
 *     "b t (h e) -> b h t e"     rearrange: split, order, merge
 *     "b c h w -> b c"           reduce: what the right side lacks is reduced
 *     "b h t e, b h s e -> b h t s"   einsum: what it lacks is summed
 *
 * Axes are names separated by blanks, `1` (an axis of size 1), `...` (any
 * further axes), and outside of einsum groups in parentheses, `(...)` among
 * them.  A pattern is parsed, at load, without operands; its errors (E0323)
 * name the bytes that they are about. */
#ifndef TL_OP_PATTERN_H
#define TL_OP_PATTERN_H

#include "runtime/op/op.h"

enum {
    TL_PATTERN_LABELS = 48,  /* different names */
    TL_PATTERN_OPERANDS = 8, /* of einsum */
    TL_PATTERN_ITEMS = 32    /* of one side */
};

typedef enum tl_pattern_kind {
    TL_PATTERN_REARRANGE,
    TL_PATTERN_REDUCE,
    TL_PATTERN_EINSUM
} tl_pattern_kind;

enum { TL_LABEL_ONE = -1, TL_LABEL_REST = -2 }; /* `1`, `...` */

/* One axis of a side; axes of one group have one `group` number. */
typedef struct tl_pattern_item {
    int label, group;
    bool grouped;        /* in parentheses, if alone: `(...)` */
    uint16_t start, end; /* bytes */
} tl_pattern_item;

typedef struct tl_pattern_side {
    int n, groups;
    int rest; /* index of `...`, or -1 */
    tl_pattern_item item[TL_PATTERN_ITEMS];
} tl_pattern_side;

typedef struct tl_pattern {
    const char *text; /* borrowed */
    tl_pattern_kind kind;
    int noperands, nlabels;
    struct {
        uint16_t start, len; /* of the name, where it is first */
    } label[TL_PATTERN_LABELS];
    tl_pattern_side in[TL_PATTERN_OPERANDS], out;
} tl_pattern;

/* Bytes of the pattern that an error is about. */
typedef struct tl_pattern_place {
    size_t start, end;
} tl_pattern_place;

/* Parse `text`.  On failure `place` says where. */
TL_MUST_USE tl_status tl_pattern_parse(tl_pattern *p, tl_pattern_kind kind,
                                       const char *text, size_t len,
                                       tl_pattern_place *place,
                                       tl_diag *diag);

/* A size given by keyword: `h=8`. */
typedef struct tl_pattern_size {
    const char *name;
    tl_dim size;
} tl_pattern_size;

/* rearrange, and reduce by the RED row `reduce`. */
TL_MUST_USE tl_status tl_pattern_apply(tl_emit *e, const tl_pattern *p,
                                       tl_op reduce, tl_node x,
                                       const tl_pattern_size *sizes,
                                       int nsizes, tl_node *out,
                                       tl_pattern_place *place);

/* einsum of as many operands as the pattern has. */
TL_MUST_USE tl_status tl_pattern_einsum(tl_emit *e, const tl_pattern *p,
                                        const tl_node *in, tl_node *out,
                                        tl_pattern_place *place);

/* Report E0323 about an item. */
tl_status tl_pattern_fail(const tl_pattern_item *item,
                          tl_pattern_place *place, tl_diag *diag,
                          const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Text of a label, for messages. */
typedef struct tl_label_text {
    char s[40];
} tl_label_text;

tl_label_text tl_pattern_label(const tl_pattern *p, int label);

#endif
