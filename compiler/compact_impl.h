/* compact_impl.h - what compact.c and compact_mark.c share. */
#ifndef TL_COMPILER_COMPACT_IMPL_H
#define TL_COMPILER_COMPACT_IMPL_H

#include "compiler/graph_impl.h"
#include "compiler/rewrite.h"

typedef struct tl_compaction {
    tl_graph *from, *to;
    uint8_t *live;        /* by node */
    uint8_t *value_live;  /* by value, of nodes with regions; of what a loop
                             carries: that result */
    uint32_t *param;      /* by value: the region whose parameter it is */
    uint8_t *size_live;   /* by size */
    uint8_t *atom_live;   /* by atom */
    uint32_t now;         /* node of the sweep */
    bool again;           /* something behind the sweep became needed */
    uint32_t *value;      /* new numbers; 0: none yet */
    uint32_t *region;
    uint32_t *size;
    uint32_t *atom;
    uint32_t *attrs;
    uint32_t *constant;
    uint32_t *report;
    uint32_t *shape;      /* by first number of a run: of the last one seen */
    uint8_t *rank;        /* and how long that was, + 1 */
    uint32_t nvalues;
    int64_t *code;        /* of one size */
    uint32_t *numbers;    /* sizes of one run */
    tl_status st;
    tl_diag *diag;
} tl_compaction;

/* Mark what is needed: live, value_live, size_live, atom_live. */
void tl_compact_mark(tl_compaction *c);

/* After marking, of a live node: is its result or operand k kept, and result
 * or parameter k of its region `region`? */
bool tl_compact_keeps_out(const tl_compaction *c, const tl_gnode *n,
                          uint32_t k);
bool tl_compact_keeps_in(const tl_compaction *c, const tl_gnode *n,
                         uint32_t k);
bool tl_compact_keeps_param(const tl_compaction *c, const tl_gnode *n,
                            uint32_t region, uint32_t k);
bool tl_compact_keeps_result(const tl_compaction *c, const tl_gnode *n,
                             uint32_t region, uint32_t k);

#endif
