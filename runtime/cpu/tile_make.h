/* tile_make.h - a tile program while it is made: private to tile_make.c,
 * tile_value.c, tile_rows.c and tile_slots.c. */
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
    tl_map_space space, rows;
    int64_t row;  /* elements of a row, 0: no rows */
    int64_t room; /* bytes of a worker */
    int feed_to;
    double ns;
    bool careful; /* there are checks: results are written last */
    int noperands, nplaces, ncodes, nchecks, nlines;
    /* From here on only what the source needs has been set: much would cost
     * more to clear than to use. */
    tl_tile_operand operand[TL_TILE_OPERANDS];
    tl_tile_place place[TL_TILE_MAX_PLACES];
    tl_tile_code code[TL_TILE_MAX_CODES]; /* all, in order */
    uint8_t use[TL_TILE_MAX_CODES];       /* tl_tile_list, bits */
    bool scalar[TL_TILE_MAX_STEPS];       /* results that are one number */
    tl_tile_check check[TL_TILE_MAX_STEPS];
    tl_tile_line line[TL_TILE_MAX_STEPS];
    uint16_t first_line[TL_TILE_MAX_STEPS]; /* of a KERN row's step */
    tl_tile_shape shape[TL_TILE_MAX_STEPS];
    double p[TL_TILE_MAX_STEPS][6];
    /* place of each value in each dtype, plus 1; 0: there is none yet */
    uint16_t form[TL_TILE_MAX_OPERANDS + TL_TILE_MAX_STEPS][TL_DTYPE_COUNT];
    /* ... spread over rows, where the value has an element a row */
    uint16_t wide[TL_TILE_MAX_OPERANDS + TL_TILE_MAX_STEPS][TL_DTYPE_COUNT];
} tl_tile_maker;

/* Lists of the finished program that a code is in. */
enum tl_tile_list {
    TL_TILE_IN_ONCE = 1,
    TL_TILE_IN_BODY = 2,
    TL_TILE_IN_CHECK = 4
};

uint16_t tl_tile_add_place(tl_tile_maker *m, tl_tile_where where,
                           tl_dtype dtype, int item, bool rows);
bool tl_tile_is_once(const tl_tile_maker *m, uint16_t place);
tl_tile_code *tl_tile_add_code(tl_tile_maker *m, tl_tile_kind kind,
                               uint16_t to);

/* The place of an input (ref >= 0) or a step's result (-2 - ref) in `dtype`;
 * adds the codes that bring it there.  The value has an element a row if its
 * place has; as _whole it is spread then. */
uint16_t tl_tile_form(tl_tile_maker *m, int ref, tl_dtype dtype);
uint16_t tl_tile_whole(tl_tile_maker *m, int ref, tl_dtype dtype);

/* The place where step `i` puts its result: a slot, the result tensor where
 * nothing forbids it; and that it did. */
uint16_t tl_tile_target(tl_tile_maker *m, int i, tl_dtype dtype, bool once,
                        bool rows);
void tl_tile_add_stage(tl_tile_maker *m, uint16_t from, tl_dtype dtype,
                       tl_dtype to_dtype, uint16_t to);
void tl_tile_set_form(tl_tile_maker *m, int step, tl_dtype dtype,
                      uint16_t place);
tl_dtype tl_tile_dtype(const tl_tile_maker *m, int ref);

/* The line of step `i`, to be filled in. */
tl_tile_line *tl_tile_new_line(tl_tile_maker *m, int i);

/* Codes of step `i`, a cross_entropy or its gradient. */
void tl_tile_add_loss(tl_tile_maker *m, int i);

/* Is the value of a step the total of a loss, no value of the space? */
bool tl_tile_is_total(const tl_tile_step *s);

/* Codes of step `i`, a RED or KERN row on rows. */
void tl_tile_add_line(tl_tile_maker *m, int i);

/* Which codes go to which list; slots; the length of pieces. */
void tl_tile_lay_out(tl_tile_maker *m);

/* The program, with copies of what it needs; takes the operands' copies. */
TL_MUST_USE tl_status tl_tile_finish(tl_tile_maker *m, tl_tile **out,
                                     tl_diag *diag);

#endif
