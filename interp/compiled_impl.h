/* compiled_impl.h - what the files of compiled functions share. */
#ifndef TL_INTERP_COMPILED_IMPL_H
#define TL_INTERP_COMPILED_IMPL_H

#include "interp/compiled.h"
#include "interp/trace.h"

#define TL_MAX_ENTRIES 16 /* of a function; the oldest makes room */

/* A cell as its program knows it. */
typedef struct tl_ecell {
    tl_cell *cell; /* alive as long as the roots match */
    size_t first, len; /* its steps */
    bool read, written;
    tl_value last;    /* what it held when it was last matched, uncounted: an
                         address to compare with */
    tl_value pattern; /* what is stored: nodes are numbers of outputs + 1 */
    tl_value next;    /* while a run takes effect: what will be stored */
    size_t leaf;      /* its first one in `leaves` */
    size_t nleaves;
} tl_ecell;

/* One way in which a function was called, and its program. */
typedef struct tl_entry {
    struct tl_entry *next;
    const tl_funcdef *fn;
    size_t npos, nkw;
    const tl_sym **names; /* of keyword arguments */
    bool no_grad;
    tl_steps steps;
    TL_GARRAY(tl_root) roots;
    TL_GARRAY(tl_input) inputs;
    TL_GARRAY(tl_tmode) modes;
    tl_value *pins;
    size_t npins;
    tl_ecell *cells;
    size_t ncells;
    tl_program *program;
    tl_value result; /* pattern */
    uint64_t draws;  /* that a run takes, where it is the same in each */
    size_t draws_out; /* else: output that is the counter afterwards, + 1 */
    tl_value *effects; /* by key: patterns, as in tl_trace */
    size_t neffects;
    /* Scratch of a call: */
    tl_buf printed; /* written when the run has succeeded */
    tl_leaf_value *leaves; /* of roots, then of cells */
    size_t nleaves, nroot_leaves;
    tl_tensor **tensors; /* by input; borrowed or in `owned` */
    tl_tensor **owned;   /* by input; NULL where borrowed */
    tl_gscalar *scalars;
    uint8_t *donate;
    tl_tensor **results; /* by output; owned */
    tl_gscalar *result_scalars;
    size_t nresults;
    bool running;        /* a call inside the call is interpreted */
} tl_entry;

/* A host scalar of a program as a value. */
static inline tl_value tl_scalar_value(tl_gscalar s, tl_tag tag)
{
    return tag == TL_V_INT     ? tl_int_value(s.i)
           : tag == TL_V_FLOAT ? tl_float_value(s.f)
                               : tl_bool_value(s.b);
}

/* What the effects of a run get (graph_effect.c). */
typedef struct tl_effect_arg {
    tl_eval *ev;
    tl_entry *entry;
} tl_effect_arg;

tl_status tl_entry_effect(void *arg, uint32_t key, uint32_t n,
                          tl_tensor *const *tensors,
                          const tl_gscalar *scalars);

struct tl_compiler {
    tl_map by_fn; /* tl_funcdef * -> first tl_entry */
    tl_map refused; /* tl_funcdef * that run interpreted after a warning */
    tl_compile_stats stats;
};

void tl_entry_free(tl_entry *e); /* NULL is allowed */

/* Trace the call.  *out is NULL when the call is to be interpreted. */
TL_MUST_USE tl_status tl_entry_trace(tl_eval *ev, const tl_funcdef *fn,
                                     tl_namespace *ns, tl_fn *closure,
                                     tl_module *self, const tl_args *args,
                                     const tl_entry *earlier,
                                     tl_entry **out);

#endif
