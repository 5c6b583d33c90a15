/* program_impl.h - a program from inside, for program*.c and plan*.c.
 *
 * Tensors of a program belong to the thread and the pool of its runs; a run
 * on another pool makes them anew.
 *
 * A size or host int is *early* if it follows from the inputs alone.  Early
 * atoms that shapes contain are the key of plans; others, such as where a
 * slice begins, are looked up when a step runs. */
#ifndef TL_COMPILER_PROGRAM_IMPL_H
#define TL_COMPILER_PROGRAM_IMPL_H

#include "compiler/plan.h"
#include "compiler/program.h"
#include "compiler/walk.h"

enum { TL_PROGRAM_PLANS = 32 }; /* kept at most */

struct tl_program {
    int refs;
    tl_graph *g;
    tl_program_options options;
    tl_pass_counts passes;
    tl_gfacts facts;
    tl_genv env;
    tl_walk walk;
    tl_pool *pool;      /* that tensors belong to */
    tl_tensor **consts; /* by node */
    tl_storage *arena;  /* of the plan that needs most; NULL before a run */
    bool running;       /* a run inside an effect of this program walks */
    bool late;          /* the top level has shapes that are not early */
    uint32_t *hosts;    /* input numbers of host scalars */
    uint32_t *tensors;  /* ... and of tensors */
    uint32_t nhosts, ntensors;
    uint8_t *early;     /* by value: an early host scalar? */
    uint32_t *nodes;    /* host nodes and loops that the key needs */
    uint32_t nnodes;
    uint32_t *guards;   /* ... that the guards need */
    uint32_t nguards;
    tl_diag quiet;      /* for what is reported elsewhere: muted */
    uint32_t *atoms;    /* of the key */
    uint32_t natoms;
    uint8_t *keyed;     /* by atom: is it one of them? */
    uint32_t *sizes;    /* atoms that are sizes of inputs */
    uint32_t nsizes;
    int64_t *key;       /* of the run: early atoms, donations as bytes, and
                           strides of what is not row-major */
    size_t key_len, key_cap; /* words */
    tl_plan *plans[TL_PROGRAM_PLANS]; /* the one used last first */
    uint32_t nplans;
    tl_plan *settled;   /* one of them, or NULL (tl_program_settle) */
    bool kept;          /* the last run has kept outputs */
    uint32_t *loose;    /* numbers of tensor inputs that are not held */
    uint32_t nloose;
};

/* Find out what is early (program_early.c). */
TL_MUST_USE tl_status tl_program_find_early(tl_program *p, tl_diag *diag);

/* Values of host inputs and early atoms of a run, into p->env.  False: they
 * cannot be computed; the walk will say why. */
bool tl_program_bind(tl_program *p, const tl_run *run, tl_diag *diag);

/* ... and what the guards look at. */
bool tl_program_bind_guards(tl_program *p, const tl_run *run);

/* Is a size made of atoms of the key alone? */
bool tl_program_size_is_keyed(const tl_program *p, uint32_t size);

/* The plan for a run whose early atoms are bound, made if need be; NULL: the
 * walk must run it. */
TL_MUST_USE tl_status tl_program_find_plan(tl_program *p, tl_rt *rt,
                                           const tl_run *run, tl_plan **out);

/* Free plans and arena. */
void tl_program_drop_plans(tl_program *p);

#endif
