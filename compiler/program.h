/* program.h - a compiled function: a graph made ready to run, and its runs.
 *
 * A program owns its graph.  For each tuple of values of the graph's atoms it
 * keeps a *plan*: kernels to call in order, tensors with addresses in one
 * arena, what may be written in place.  A plan is made when its sizes are
 * first seen and replayed from then on; nothing is compiled again.
 *
 * The bits are those of tl_apply on the same operations: a plan calls the
 * same kernels with operands of the same layout, or loops that are made of
 * the same inner loops (runtime/cpu/tile.h). */
#ifndef TL_COMPILER_PROGRAM_H
#define TL_COMPILER_PROGRAM_H

#include "compiler/graph.h"
#include "compiler/pass.h"
#include "runtime/rt.h"

typedef struct tl_program tl_program;

typedef struct tl_program_options {
    bool walk;    /* no plan: run node by node through tl_apply (the oracle
                     of tests, and what late sizes need) */
    bool no_fuse; /* plan without the tile machine */
    bool no_passes;
} tl_program_options;

/* Run the passes over `g`, which is taken (freed on failure too). */
TL_MUST_USE tl_status tl_program_new(tl_program **out, tl_graph *g,
                                     const tl_program_options *options,
                                     tl_diag *diag);
/* One owner more: those that share a program run it by turns. */
tl_program *tl_program_ref(tl_program *p);
void tl_program_free(tl_program *p); /* one owner less; NULL is allowed */

const tl_graph *tl_program_graph(const tl_program *p);

/* What the passes have changed, for tests. */
const tl_pass_counts *tl_program_pass_counts(const tl_program *p);

/* An effect of the caller, in program order: `scalars` and `tensors` have
 * `n` items, of each value the one that its class says (borrowed); first the
 * report's `nshown` values, then its `ncells` values of cells.  `key` is the
 * report's.  For an assert it is called only when the condition is false and
 * must fail. */
typedef tl_status tl_effect_fn(void *arg, uint32_t key, uint32_t n,
                               tl_tensor *const *tensors,
                               const tl_gscalar *scalars);

typedef struct tl_run {
    /* By input number; of each input what its class says.  Tensors are
     * borrowed, unless `donate` says that the caller gives up its value if
     * header and storage are unshared: then an output may take the storage,
     * and in[i] is still the caller's reference to a tensor whose contents
     * are lost or are the output's. */
    tl_tensor *const *tensors;
    const tl_gscalar *scalars;
    const uint8_t *donate; /* by input; NULL: nothing is */
    const uint8_t *held;   /* by input, tensors only: it is what it was when
                              tl_program_settle was called, and again nobody
                              else sees those that are given away; NULL:
                              nothing is known */
    tl_effect_fn *effect;
    void *arg;
    /* By output number; new references (an output that took the storage of a
     * donated input is that input's header, referenced). */
    tl_tensor **out_tensors;
    tl_gscalar *out_scalars;
} tl_run;

/* Run it.  The guards of the graph hold for these inputs (tl_program_fits).
 * After a failure no output is set. */
TL_MUST_USE tl_status tl_program_run(tl_program *p, tl_rt *rt,
                                     const tl_run *run);

/* After a run that has succeeded: its inputs marked in run->held, row-major
 * all of them, are where they will be in the next runs with `held` set.  True:
 * such runs do less, and may keep outputs that took a held input's storage:
 * they write them, and set none of them.  A run without `held` ends this. */
bool tl_program_settle(tl_program *p, const tl_run *run);

/* The numbers of the outputs that the last run has set, *n of them; NULL: all
 * were, if it has succeeded. */
const uint32_t *tl_program_given(const tl_program *p, uint32_t *n);

/* Do the guards hold?  Nothing is reported. */
bool tl_program_fits(tl_program *p, const tl_run *run);

/* The first guard that does not hold; NULL: all do, or they cannot be
 * computed. */
const tl_gguard *tl_program_misfit(tl_program *p, const tl_run *run);

/* Zeros in place of what a run for these inputs would give; its plan is made.
 * After a failure some outputs may be set. */
TL_MUST_USE tl_status tl_program_zeros(tl_program *p, tl_rt *rt,
                                       const tl_run *run);

/* What a plan needs, for --explain and for tests. */
typedef struct tl_plan_stats {
    size_t kernels;    /* calls, a fused group counting as one */
    size_t fused;      /* nodes that lie in groups of two or more */
    size_t copies;     /* copies that layouts needed */
    size_t arena;      /* bytes of the arena: the plan's peak */
    size_t lower_bound; /* most bytes live at one time in this order */
    size_t donated;    /* outputs that take an input's storage */
} tl_plan_stats;

/* Of the plan for these inputs (made if need be). */
TL_MUST_USE tl_status tl_program_stats(tl_program *p, tl_rt *rt,
                                       const tl_run *run,
                                       tl_plan_stats *out);

/* Append the plan for these inputs as text: its kernels in order, with what
 * was fused, and memory. */
TL_MUST_USE tl_status tl_program_explain(tl_program *p, tl_rt *rt,
                                         const tl_run *run, tl_buf *out);

#endif
