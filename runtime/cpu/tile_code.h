/* tile_code.h - a tile program as it runs: private to tile_*.c.
 *
 * tile_make.c turns steps into codes over *places*: where a value of one
 * dtype lies for the piece at hand.  A place is a slot of the worker's room,
 * a part of an input or result, or what a code of the piece has found.  Each
 * place is written by one code.  Slots are given by liveness, so that a loop
 * may write over an operand that dies with it.
 *
 * Three lists of codes: `once` for a range (scalars, rows that repeat, and
 * what is computed of them alone), `body` for each piece, and `check`, which
 * looks for what integers must not do before anything is written. */
#ifndef TL_CPU_TILE_CODE_H
#define TL_CPU_TILE_CODE_H

#include <stdatomic.h>

#include "runtime/cpu/map.h"
#include "runtime/cpu/map_space.h"
#include "runtime/cpu/tile.h"

enum {
    TL_TILE_MAX_CODES = 12 * TL_TILE_MAX_STEPS,
    TL_TILE_MAX_PLACES = 8 * TL_TILE_MAX_STEPS + 4 * TL_TILE_MAX_OPERANDS,
    TL_TILE_OPERANDS = 4 * TL_TILE_MAX_OPERANDS, /* in several dtypes */
    TL_TILE_ROOM = 1 << 17, /* bytes of a worker, on its stack */
    TL_TILE_NEAR = 24576    /* bytes that a piece should keep busy: in L1 */
};

typedef enum tl_tile_kind {
    TL_TILE_LOOP,  /* to = loop(in ..) */
    TL_TILE_STAGE, /* to = in[0] in another dtype */
    TL_TILE_COPY,  /* the bytes of in[0] */
    TL_TILE_FETCH, /* to = the piece of operand `item` */
    TL_TILE_CHECK, /* in[0], doubles, by check `item` */
    /* of programs over rows */
    TL_TILE_SPREAD, /* each row of `to` is the row's element of in[0] */
    TL_TILE_FOLD,   /* an element a row: line `item` of in[0] */
    TL_TILE_LINE    /* row by row: line `item` of in[..]; NO_PLACE: absent */
} tl_tile_kind;

#define TL_TILE_NO_PLACE UINT16_MAX

typedef struct tl_tile_code {
    uint8_t kind, nin, width; /* width: bytes of an element of `to` */
    bool rows;                /* an element a row */
    uint16_t item, to;        /* item of a loop: its step */
    uint16_t in[TL_MAP_OPERANDS];
    union {
        tl_map_loop *loop;
        tl_stage_fn *stage;
    };
    const double *p;
} tl_tile_code;

typedef enum tl_tile_where {
    TL_TILE_SLOT,
    TL_TILE_ONCE,    /* a slot with the same elements in each piece, or the
                        same row again and again: a period more of them */
    TL_TILE_FETCHED, /* its slot, or set by a FETCH */
    TL_TILE_INPUT,   /* operand `item`, as it lies */
    TL_TILE_RESULT,  /* result `item` */
    TL_TILE_ARRAY,   /* array item % 2 of line item / 2 */
    TL_TILE_WINDOW   /* what a reader asks for */
} tl_tile_where;

typedef struct tl_tile_place {
    uint8_t where, width;
    bool rows; /* an element a row */
    uint16_t item;
    int64_t offset; /* of the slot in the room */
} tl_tile_place;

/* What must not be in a step's operand. */
typedef struct tl_tile_check {
    tl_op op;
    uint8_t step, to; /* to: the dtype of its result */
    tl_map_bounds bounds;
    int rank; /* the step's own shape */
    int64_t size[TL_MAX_RANK];
} tl_tile_check;

/* An input in one dtype. */
typedef struct tl_tile_operand {
    tl_map_operand o;
    uint8_t tensor;
    bool rows;      /* an element a row: in the space of rows */
    bool filled;    /* once: a scalar, or rows that repeat */
    uint16_t place; /* ... where */
    char *copy;     /* row-major, owned, of an operand with far strides */
} tl_tile_operand;

/* What is done with whole rows. */
typedef struct tl_tile_line {
    tl_op op;
    int step; /* which has its attributes */
    tl_dtype from, to;
    uint8_t rows_in;  /* operands that have an element a row, bits */
    bool rows_out;    /* so has the first result */
    uint16_t more[2]; /* places of further results */
    /* losses (tile_loss.c) */
    int targets, weight, result; /* inputs, or -1; of a total, or -1 */
    double weight_sum, scale;    /* of this run */
    char *block;    /* owned: the arrays, and room for the weights */
    char *array[2]; /* cost and weight of every row, for the total */
} tl_tile_line;

struct tl_tile {
    tl_map_space space;
    int64_t row;       /* elements of one; 0: the program has no rows */
    tl_map_space rows; /* an element a row */
    int64_t room;      /* bytes that a worker needs */
    bool avx2;         /* which build of the loops */
    int rank;
    int64_t size[TL_MAX_RANK];
    double ns; /* an element takes */
    tl_tensor *in[TL_TILE_MAX_OPERANDS], *to[TL_TILE_MAX_OPERANDS];
    char *data[TL_TILE_MAX_OPERANDS]; /* of the results, at the last run */
    int nto, noperands, nplaces, nonce, nbody, ncheck, nchecks, nlines;
    tl_tile_operand *operand;
    tl_tile_place *place;
    tl_tile_code *once, *body, *check;
    tl_tile_check *checks;
    tl_tile_line *line;
    double (*p)[6];
    int feed_to; /* of a reader: the result that it reads from, or -1: what
                    it asks for goes to its window */
};

/* Which of the two builds of the loops this CPU runs. */
typedef struct tl_tile_isa {
    const tl_map_loops *(*loops)(tl_dtype dtype);
    tl_stage_fn *(*stage)(tl_dtype from, tl_dtype to);
    const tl_map_gelu_loops *gelu;
    bool avx2;
} tl_tile_isa;
tl_tile_isa tl_tile_isa_get(void);

/* A program as tl_tile_new makes it; with feed >= 0 also the result of that
 * step as `dtype` goes to the reader's window. */
typedef struct tl_tile_source {
    int rank, trailing; /* > 0: rows are the last so many axes */
    const int64_t *size;
    const tl_tile_step *steps;
    int nsteps;
    tl_tensor *const *in;
    int nin;
    tl_tensor *const *to;
    int nto;
    int feed;
    tl_dtype dtype;
} tl_tile_source;
TL_MUST_USE tl_status tl_tile_make(tl_tile **out, const tl_tile_source *s,
                                   tl_diag *diag);

/* A worker at a program: its places and its room. */
typedef struct tl_tile_runner {
    const tl_tile *t;
    char *window; /* the elements from `window_at` on */
    int64_t window_at;
    _Atomic uint64_t *bad; /* least step << 48 | element that fails */
    char *room;            /* `own`, or larger */
    const char *at[TL_TILE_MAX_PLACES];
    char own[TL_TILE_ROOM] __attribute__((aligned(64)));
} tl_tile_runner;

/* A piece: n elements from `pos` on, which are `nrows` whole rows from `row`
 * on where the program has rows; coordinates where they are needed. */
typedef struct tl_tile_piece {
    int64_t pos, n, row, nrows;
    int64_t at[TL_MAX_RANK], row_at[TL_MAX_RANK];
} tl_tile_piece;

/* Take the addresses that the tensors have now and make what a run needs
 * before its tasks. */
void tl_tile_refresh(const tl_tile *t, tl_kernel_ctx *k);

/* Look for what must not be; nothing is written. */
TL_MUST_USE tl_status tl_tile_check_all(const tl_tile *t, tl_kernel_ctx *k);

/* Ready for ranges of which one has at most n elements; `room` has t->room
 * bytes, or is NULL where the runner's own suffices. */
void tl_tile_open(tl_tile_runner *r, const tl_tile *t, int64_t n, char *room);

/* The elements lo .. hi. */
void tl_tile_range(tl_tile_runner *r, int64_t lo, int64_t hi);

/* Codes over rows. */
void tl_tile_spread(const tl_tile_runner *r, const tl_tile_code *c,
                    const tl_tile_piece *p);
void tl_tile_fold(const tl_tile_runner *r, const tl_tile_code *c,
                  const tl_tile_piece *p);
void tl_tile_line_rows(const tl_tile_runner *r, const tl_tile_code *c,
                       const tl_tile_piece *p);

/* Losses of a program over rows: memory for them; what a run needs first,
 * E0407 a target that is no class; their totals. */
bool tl_tile_is_loss(tl_op op);
TL_MUST_USE tl_status tl_tile_loss_room(tl_tile *t, tl_diag *diag);
TL_MUST_USE tl_status tl_tile_loss_begin(const tl_tile *t, tl_diag *diag);
void tl_tile_loss_end(const tl_tile *t);

/* Row i of a loss or its gradient, see one_row in tile_rows.c. */
void tl_tile_loss_row(const tl_tile_line *l, const double *p, int64_t i,
                      int64_t n, const void *const *in, void *const *out);

#endif
