/* plan_impl.h - a plan from inside, for plan*.c and fuse.c.
 *
 * Making goes through these stages, each a file:
 *   plan_make    steps and values of the graph's top level, layouts
 *   fuse         elementwise steps become tile programs
 *   plan_order   the order of the steps
 *   plan_memory  what is written in place, when buffers live, addresses
 *   plan_bind    headers, attributes, tile programs
 * and plan_run replays; plan_settle says what a run like the one before need
 * not do again.
 *
 * A *value* is a tensor as one step or more see it: a layout in a *buffer*.
 * Views share the buffer of what they look at.  Results written in place
 * share a buffer by union: `root` of a buffer is where it really lies. */
#ifndef TL_COMPILER_PLAN_IMPL_H
#define TL_COMPILER_PLAN_IMPL_H

#include "compiler/plan.h"
#include "compiler/program_impl.h"
#include "runtime/base/arena.h"

typedef enum tl_pwhere {
    TL_PB_ARENA,
    TL_PB_INPUT,  /* `index` is the input's number */
    TL_PB_CONST,  /* `index` is the node */
    TL_PB_OUTPUT, /* `index` is its place in plan->targets */
    TL_PB_SLICE   /* part of buffer `base`; where, the run knows */
} tl_pwhere;

typedef struct tl_pbuf {
    uint8_t where;
    uint32_t index;
    uint32_t base;
    uint32_t parent;      /* of the union; itself: a root */
    uint32_t first, last; /* positions in the order; of roots */
    uint32_t taken;       /* 1 + position where a result took a root's place */
    uint32_t maker;       /* the step that writes it; 0: none */
    size_t bytes, at;     /* rounded up to TL_PLAN_ALIGN; address */
} tl_pbuf;

enum { TL_PLAN_ALIGN = 64 };
#define TL_PLAN_END UINT32_MAX /* `last` of what outlives the plan */

typedef struct tl_pval {
    tl_gval value; /* of the graph; 0: a copy that a layout needed */
    uint32_t buf;
    uint8_t dtype, rank;
    bool contiguous;
    int64_t numel, offset; /* offset in its buffer, in elements */
    int64_t *size, *stride;
    tl_tensor *t; /* bound */
} tl_pval;

typedef enum tl_pstep_kind {
    TL_PS_KERNEL,
    TL_PS_GRAD,   /* operands: the row's inputs, y, g */
    TL_PS_TILE,   /* a group of parts */
    TL_PS_SCALAR, /* a host scalar into a tensor */
    TL_PS_ITEM,
    TL_PS_HOST,
    TL_PS_EFFECT,
    TL_PS_SLICE, /* where a slice begins, which the run knows */
    TL_PS_REGION /* a branch or loop */
} tl_pstep_kind;

typedef struct tl_pregions tl_pregions; /* plans of regions, plan_region.h */

typedef struct tl_pstep {
    uint8_t kind, which;
    uint16_t op;
    uint32_t node;
    uint32_t in, nin;   /* values, in plan->refs; 0: not read */
    uint32_t out, nout; /* values, in plan->refs */
    uint32_t captured;     /* REGION: values of the graph, in plan->refs, of
                              the operands after the node's own */
    uint32_t space;        /* TILE: a value of its shape */
    uint8_t trailing;      /* ... axes of its rows */
    bool reduces;          /* ... the last part is a reduction at the end */
    uint32_t part, nparts; /* TILE: steps, in plan->refs, by program order */
    uint32_t area;         /* REGION: buffer of its plans' arenas; 0: none */
    bool binds;            /* host scalars in its attributes */
    bool late;             /* sizes in them that the run knows */
    bool effects;          /* is one, or has one inside */
    bool fused;            /* lies in a group */
    bool copy;             /* a copy that a layout needed */
    bool chained;          /* tl_pstep_chains */
    uint8_t taken;         /* 1 + the operand whose storage result 0 took */
    uint8_t why;           /* tl_fuse_why: it is alone, or is not one program
                              with ... */
    uint32_t apart;        /* ... the step that makes an operand; 0: alone */
    uint32_t group;        /* the TILE step that it is part of */
    uint32_t pos;          /* in the order */
    /* bound: */
    tl_kernel_fn *kernel;
    tl_attrs *at;
    tl_tensor **tin, **tout;
    tl_tile *tile;
    tl_tile_reduce *reduction;
    tl_pregions *regions; /* NULL: the walk runs it */
} tl_pstep;

/* An output buffer: storage of a donated input, or a fresh one. */
typedef struct tl_ptarget {
    tl_tensor *t;        /* during a run: the header, a reference */
    tl_storage *storage; /* that the headers point to now */
    tl_tensor **headers; /* that lie in it */
    uint32_t nheaders;
    uint32_t donor;      /* 1 + input; 0: none */
    size_t most;         /* bytes that a donor's storage may have */
    uint32_t value;      /* its first value, which is all of it */
    uint32_t buf;
    uint32_t outputs;    /* that lie in it */
    bool whole;          /* one of them has its type and place */
} tl_ptarget;

/* What the loop of a replay reads of a step. */
typedef struct tl_pcall {
    tl_kernel_fn *kernel;
    tl_tensor **tin, **tout;
    const tl_attrs *at;
    uint32_t step;
    uint16_t op;
    uint8_t kind;
    bool binds;
    int32_t nin, nout;
    uint32_t plain; /* so many from here on are kernels that bind nothing */
} tl_pcall;

/* A tensor input as the headers over it know it. */
typedef struct tl_pinput {
    uint32_t index;
    bool contiguous;
    tl_tensor **headers;
    int64_t *rel; /* offset of each header behind the input's */
    uint32_t nheaders;
    tl_storage *storage;
    int64_t offset;
} tl_pinput;

typedef struct tl_poutput {
    uint32_t value;  /* 0: a host scalar */
    uint32_t target; /* 1 + target, when it is that target's header */
    bool alone;      /* no other output lies there */
} tl_poutput;

/* What a run has to do beside its steps: numbers of plan->inputs, of
 * plan->targets and of outputs. */
typedef struct tl_pwork {
    uint32_t *inputs, *targets, *outputs;
    uint32_t ninputs, ntargets, noutputs;
} tl_pwork;

/* Headers in a slice whose beginning the run knows. */
typedef struct tl_pslice {
    tl_tensor **headers;
    int64_t *rel; /* offset of each behind the slice's beginning */
    uint32_t nheaders;
} tl_pslice;

struct tl_plan {
    tl_program *p;
    tl_plan *parent;  /* that runs it as a region; NULL: the whole */
    uint32_t region;
    const tl_gval *in_vals, *out_vals;
    uint32_t nin, nout;
    const uint8_t *donate; /* by input, while it is made; NULL: none */
    tl_storage area;       /* the arena of a region's plan */
    tl_arena memory; /* of everything below but growing arrays */
    TL_GARRAY(tl_pval) vals;   /* from 1 */
    TL_GARRAY(tl_pbuf) bufs;   /* from 1 */
    TL_GARRAY(tl_pstep) steps; /* from 1, in program order */
    TL_GARRAY(uint32_t) refs;
    uint32_t *val_of;   /* by value of the graph */
    uint32_t *maker_of; /* by host value of the graph: its step */
    uint32_t *order;    /* steps in the order of replay */
    tl_pcall *calls;    /* the same, for replay */
    uint32_t norder;
    tl_ptarget *targets;
    uint32_t ntargets;
    uint8_t *given;       /* by input: is it a donor? */
    uint32_t last_effect; /* position */
    uint32_t last_chained; /* ... of the last step that data may refuse */
    tl_pinput *inputs;
    uint32_t ninputs;
    tl_poutput *outputs;
    tl_pwork all;   /* of any run */
    tl_pwork loose; /* of a run that keeps what is held (plan_settle.c) */
    tl_pslice *slices; /* by buffer; NULL: there are none */
    tl_tensor **arena_headers;
    uint32_t narena_headers;
    tl_storage *bound; /* arena that the headers point to */
    size_t arena, lower_bound;
    uint32_t kernels, fused, copies, donated;
    bool impossible; /* found while it was made: the walk must run it */
    int64_t *key;
    size_t key_len;
    uint64_t hash;
};

static inline tl_pval *tl_pval_at(const tl_plan *pl, uint32_t v)
{
    return &pl->vals.items[v];
}

static inline uint32_t tl_pbuf_root(const tl_plan *pl, uint32_t b)
{
    while (pl->bufs.items[b].parent != b) {
        b = pl->bufs.items[b].parent;
    }
    return b;
}

/* The buffer whose memory a value shows: that under a slice. */
static inline uint32_t tl_pval_memory(const tl_plan *pl, uint32_t v)
{
    uint32_t b = pl->vals.items[v].buf;

    while (pl->bufs.items[b].where == TL_PB_SLICE) {
        b = pl->bufs.items[b].base;
    }
    return tl_pbuf_root(pl, b);
}

static inline uint32_t tl_pval_root(const tl_plan *pl, uint32_t v)
{
    return tl_pbuf_root(pl, pl->vals.items[v].buf);
}

/* Is input `i` given away (in the key of the plan)? */
bool tl_plan_donates(const tl_plan *pl, uint32_t input);

/* Same dtype and shape? */
bool tl_pval_same_type(const tl_pval *a, const tl_pval *b);

/* May result `k` of a step take the storage of operand `i`, as far as the
 * kernel is concerned? */
bool tl_pstep_takes(const tl_plan *pl, const tl_pstep *s, uint32_t i,
                    uint32_t k);

/* Must the step keep its place among steps of which this is true: effects,
 * and what may fail because of data? */
bool tl_pstep_chains(const tl_plan *pl, const tl_pstep *s);

/* A step that waits for another. */
typedef struct tl_pedge {
    uint32_t from, to;
} tl_pedge;

typedef struct tl_pedges {
    tl_pedge *items;
    size_t len, cap;
} tl_pedges;

/* Append the edges between the steps that are not fused (plan_deps.c). */
TL_MUST_USE tl_status tl_plan_edges(const tl_plan *pl, tl_pedges *edges,
                                    tl_diag *diag);

/* Is a value of a target's buffer all of it, as its header shows it? */
bool tl_plan_is_whole(const tl_plan *pl, const tl_ptarget *t, uint32_t v);

/* What the plan of a region is made for; it lives as long as the plan. */
typedef struct tl_pscope {
    uint32_t region;
    uint32_t nin, nout;
    const tl_gval *in;     /* parameters, then what is taken from outside */
    const tl_gval *out;
    const uint8_t *donate; /* by input */
} tl_pscope;

/* The plan of a region inside that of what is around it; *out NULL: it cannot
 * be planned. */
TL_MUST_USE tl_status tl_plan_sub(tl_plan **out, tl_plan *parent,
                                  const tl_pscope *scope, tl_rt *rt);

/* The stages. */
TL_MUST_USE tl_status tl_plan_make(tl_plan *pl, tl_rt *rt, const tl_run *run);
TL_MUST_USE tl_status tl_plan_fuse(tl_plan *pl, tl_rt *rt);
TL_MUST_USE tl_status tl_plan_order(tl_plan *pl, tl_rt *rt);
TL_MUST_USE tl_status tl_plan_place(tl_plan *pl, tl_rt *rt);
TL_MUST_USE tl_status tl_plan_bind(tl_plan *pl, tl_rt *rt);

/* In-place writes, lives of buffers and donations for pl->order; the most
 * bytes of the arena live at one time go to pl->lower_bound. */
TL_MUST_USE tl_status tl_plan_live(tl_plan *pl, tl_rt *rt);

/* Room for the lists of work; pl->all is filled in (plan_settle.c). */
TL_MUST_USE tl_status tl_plan_list_work(tl_plan *pl, tl_rt *rt);

TL_MUST_USE tl_status tl_plan_no_memory(tl_rt *rt, size_t bytes);

#endif
