/* plan.h - a program made ready for one tuple of sizes: kernels in order,
 * tensors with addresses in one arena.
 *
 * A plan is made for a key: the values of the early atoms, which inputs are
 * given away, and the strides of inputs that are not row-major.  Replaying it
 * is a loop of indirect calls; nothing is allocated but outputs that take no
 * input's storage. */
#ifndef TL_COMPILER_PLAN_H
#define TL_COMPILER_PLAN_H

#include "compiler/program.h"

typedef struct tl_plan tl_plan;

/* Make the plan for the inputs of `run`; p->env holds the early atoms.
 * *out NULL: the program does what a plan cannot; the walk runs it. */
TL_MUST_USE tl_status tl_plan_new(tl_plan **out, tl_program *p, tl_rt *rt,
                                  const tl_run *run);
void tl_plan_free(tl_plan *plan); /* NULL is allowed */

/* Replay it; host inputs stand in p->env.  `settled`: as tl_plan_settle has
 * found. */
TL_MUST_USE tl_status tl_plan_run(tl_plan *plan, tl_program *p, tl_rt *rt,
                                  const tl_run *run, bool settled);

/* After a run that has succeeded: may one that holds the same inputs leave out
 * what concerns them?  Not in plans with effects or regions, or where a held
 * input's storage becomes more than one output. */
bool tl_plan_settle(tl_plan *plan, const tl_run *run);

/* The numbers of the outputs that a settled run sets. */
const uint32_t *tl_plan_given(const tl_plan *plan, uint32_t *n);

void tl_plan_get_stats(const tl_plan *plan, tl_plan_stats *out);

/* Append the plan as text. */
void tl_plan_explain(const tl_plan *plan, const tl_program *p, tl_buf *out);

#endif
