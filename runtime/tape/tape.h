/* tape.h - what ran inside a `grad` block, for differentiation backwards.
 *
 * A tape numbers the tensors that depend on its targets ("watched") and keeps
 * one entry for each operation on them: op, attributes, node numbers, and the
 * values that the gradient reads (op.h: saves_in, saves_out); of the rest
 * stubs.  Tapes nest; the innermost is rt->tape.  Each tape records for
 * itself.  An entry may also be *custom*: a function gives the gradients
 * (custom backward clauses, checkpoints, compiled calls).
 *
 * A tensor knows its numbers by its links; a link of a closed tape is dead
 * since serial numbers are never used again. */
#ifndef TL_TAPE_TAPE_H
#define TL_TAPE_TAPE_H

#include "runtime/op/op.h"
#include "runtime/tensor/tensor.h"

typedef struct tl_tape tl_tape;

/* Gradients of a custom entry: g[nout] (NULL: zero) -> dx[nin] (owned
 * references, NULL: zero; all NULL at the call).  What is in dx after a
 * failure is released by the caller. */
typedef tl_status tl_custom_grad_fn(void *data, tl_tensor *const *g, int nout,
                                    tl_tensor **dx, int nin, tl_diag *diag);

typedef struct tl_tape_entry {
    tl_op op; /* TL_OP_COUNT: custom */
    uint16_t nin, nout;
    tl_attrs *at; /* NULL: the operation has none */
    uint32_t *in_node;  /* 0: not watched */
    uint32_t *out_node;
    tl_tensor **in;  /* values or stubs */
    tl_tensor **out;
    tl_custom_grad_fn *custom;
    void *data;
    void (*free_data)(void *data);
    tl_span span; /* where the program called it */
} tl_tape_entry;

struct tl_tape {
    uint64_t serial;
    tl_tape *outer; /* next tape that records too */
    tl_tape_entry *entries;
    size_t len, cap;
    uint32_t nodes; /* numbers given so far, from 1 */
    tl_arena arena; /* arrays and attributes of entries */
    /* What tl_grad_close restores: a block inside `no_grad` records again,
     * but only on its own tape. */
    tl_tape *below;
    int below_no_grad;
};

/* Open a tape inside `outer` (may be NULL).  `serial` must be fresh. */
TL_MUST_USE tl_status tl_tape_new(tl_tape **out, tl_tape *outer,
                                  uint64_t serial, tl_diag *diag);
void tl_tape_free(tl_tape *tape); /* NULL is allowed */

/* The node of `t` on this tape; 0: not watched. */
static inline uint32_t tl_tape_node(const tl_tape *tape, const tl_tensor *t)
{
    const tl_tape_link *link = &t->link;

    do {
        if (link->tape == tape->serial) {
            return link->node;
        }
        link = link->next;
    } while (link);
    return 0;
}

/* Is one of these watched on `tape` or on a tape around it? */
bool tl_tape_sees(const tl_tape *tape, tl_tensor *const *in, int nin);

/* Give `to` the nodes that `from` has on `tape` and the tapes around it: the
 * two headers are then one value to these tapes. */
TL_MUST_USE tl_status tl_tape_share(const tl_tape *tape, tl_tensor *to,
                                    const tl_tensor *from, tl_diag *diag);

/* Give `t` a number: from now on what is computed from it is recorded. */
TL_MUST_USE tl_status tl_tape_watch(tl_tape *tape, tl_tensor *t,
                                    uint32_t *node, tl_diag *diag);

/* Record an operation that has run, if one of its inputs is watched and the
 * operation is differentiable; numbers its float results.  Inputs that the
 * gradient does not read may be stubs. */
TL_MUST_USE tl_status tl_tape_record(tl_tape *tape, tl_op op,
                                     tl_tensor *const *in, int nin,
                                     tl_tensor *const *out, int nout,
                                     const tl_attrs *at, tl_span span,
                                     tl_diag *diag);

/* Drop what an entry holds; it is empty afterwards. */
void tl_tape_entry_release(tl_tape_entry *entry);

/* Record a custom entry; nothing is kept when no input is watched.  Takes
 * `data` in any case (freed when nothing is kept, and on failure).  Only types
 * of `in` and `out` are kept, so data holds what the gradient reads.  For the
 * tapes around this one it is recorded anew; recording a result again on a
 * tape that has seen it puts the custom entry in the place of what was
 * recorded before. */
TL_MUST_USE tl_status tl_tape_record_custom(
    tl_tape *tape, tl_tensor *const *in, int nin, tl_tensor *const *out,
    int nout, tl_custom_grad_fn *fn, void *data, void (*free_data)(void *),
    tl_span span, tl_diag *diag);

#endif
