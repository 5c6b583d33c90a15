/* pass.h - rewriting graphs; each pass keeps every bit of every output.
 *
 * A pass is a row of pass.def and one file.  It changes nodes in place and
 * renames values through a tl_rewrite, then tl_graph_compact drops what is
 * unreachable.  `changes` of a row counts what it did, for tests. */
#ifndef TL_COMPILER_PASS_H
#define TL_COMPILER_PASS_H

#include "compiler/graph.h"

typedef enum tl_pass {
#define PASS(name, doc) TL_PASS_##name,
#include "compiler/pass.def"
    TL_PASS_COUNT
} tl_pass;

typedef struct tl_pass_counts {
    size_t changes[TL_PASS_COUNT];
} tl_pass_counts;

typedef tl_status tl_pass_fn(tl_graph *g, size_t *changes, tl_diag *diag);

const char *tl_pass_name(tl_pass pass);

TL_MUST_USE tl_status tl_pass_run(tl_graph *g, tl_pass pass, size_t *changes,
                                  tl_diag *diag);

/* All passes in the order of pass.def.  `counts` (may be NULL) is added to. */
TL_MUST_USE tl_status tl_passes_run(tl_graph *g, tl_pass_counts *counts,
                                    tl_diag *diag);

#endif
