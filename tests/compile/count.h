/* count.h - what the random programs were made of, and whether that is
 * enough: a generator that degenerates fails the run. */
#ifndef TESTS_COMPILE_COUNT_H
#define TESTS_COMPILE_COUNT_H

#include "compiler/pass.h"
#include "interp/eval.h"
#include "runtime/op/op.h"

/* Classes of operations that a plan may fuse. */
typedef enum count_class {
    CC_MAP,
    CC_COMPARE,
    CC_GRADIENT, /* fused gradient of an elementwise row */
    CC_CAST,
    CC_REDUCE,
    CC_VIEW,
    CC_CLASSES,
    CC_OTHER = CC_CLASSES
} count_class;

/* Plain data: workers send it through a pipe. */
typedef struct counts {
    size_t programs, valid, refused, failed, mismatches;
    size_t traces, runs, graphs;
    size_t ops[TL_OP_COUNT];
    size_t pairs[CC_CLASSES][CC_CLASSES]; /* [producer][consumer] */
    size_t passes[TL_PASS_COUNT];
} counts;

/* Add the programs that a session has compiled. */
void counts_add_session(counts *c, const tl_eval *ev);
void counts_add(counts *to, const counts *from);

/* Print the table; with `verbose` all of it. */
void counts_print(const counts *c, bool verbose);

/* Are all above their limits?  What is not is printed. */
bool counts_suffice(const counts *c);

#endif
