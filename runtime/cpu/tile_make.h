/* tile_make.h - a tile program while it is made: private to tile_make.c and
 * tile_slots.c. */
#ifndef TL_CPU_TILE_MAKE_H
#define TL_CPU_TILE_MAKE_H

#include "runtime/cpu/tile_code.h"

typedef struct tl_tile_shape {
    int rank;
    int64_t size[TL_MAX_RANK];
} tl_tile_shape;

typedef struct tl_tile_maker {
    const tl_tile_source *s;
    tl_tile_isa isa;
    tl_map_space space;
    double ns;
    bool careful; /* there are checks: results are written last */
    int noperands, nplaces, ncodes, nchecks;
    tl_tile_operand operand[TL_TILE_OPERANDS];
    tl_tile_place place[TL_TILE_MAX_PLACES];
    tl_tile_code code[TL_TILE_MAX_CODES]; /* all, in order */
    uint8_t use[TL_TILE_MAX_CODES];       /* tl_tile_list, bits */
    tl_tile_check check[TL_TILE_MAX_STEPS];
    tl_tile_shape shape[TL_TILE_MAX_STEPS];
    double p[TL_TILE_MAX_STEPS][6];
    /* place of each value in each dtype, plus 1; 0: there is none yet */
    uint16_t form[TL_TILE_MAX_OPERANDS + TL_TILE_MAX_STEPS][TL_DTYPE_COUNT];
} tl_tile_maker;

/* Lists of the finished program that a code is in. */
enum tl_tile_list {
    TL_TILE_IN_ONCE = 1,
    TL_TILE_IN_BODY = 2,
    TL_TILE_IN_CHECK = 4
};

uint16_t tl_tile_add_place(tl_tile_maker *m, tl_tile_where where,
                           tl_dtype dtype, int item);
tl_tile_code *tl_tile_add_code(tl_tile_maker *m, tl_tile_kind kind,
                               uint16_t to);

/* The place of an input (ref >= 0) or a step's result (-2 - ref) in `dtype`;
 * adds the codes that bring it there. */
uint16_t tl_tile_form(tl_tile_maker *m, int ref, tl_dtype dtype);

/* Which codes go to which list; slots; the length of pieces. */
void tl_tile_lay_out(tl_tile_maker *m);

/* The program, with copies of what it needs; takes the operands' copies. */
TL_MUST_USE tl_status tl_tile_finish(tl_tile_maker *m, tl_tile **out,
                                     tl_diag *diag);

#endif
