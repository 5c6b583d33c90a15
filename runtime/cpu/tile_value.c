/* tile_value.c - values of a tile program while it is made: codes, places,
 * and the forms of values.
 *
 * The value of an input or step in some dtype is made when it is first asked
 * for and kept; so an operand that several rows read is converted once. */
#include "runtime/cpu/tile_make.h"

#include "runtime/base/check.h"

/* ---- codes and places ---------------------------------------------------- */

uint16_t tl_tile_add_place(tl_tile_maker *m, tl_tile_where where,
                           tl_dtype dtype, int item, bool rows)
{
    TL_CHECK(m->nplaces < TL_TILE_MAX_PLACES);
    m->place[m->nplaces] =
        (tl_tile_place){.where = (uint8_t)where,
                        .width = (uint8_t)tl_dtype_size(dtype),
                        .rows = rows,
                        .item = (uint16_t)item};
    return (uint16_t)m->nplaces++;
}

tl_tile_code *tl_tile_add_code(tl_tile_maker *m, tl_tile_kind kind,
                               uint16_t to)
{
    tl_tile_code *c = &m->code[m->ncodes++];

    TL_CHECK(m->ncodes <= TL_TILE_MAX_CODES);
    *c = (tl_tile_code){.kind = (uint8_t)kind,
                        .to = to,
                        .width = m->place[to].width,
                        .rows = m->place[to].rows};
    return c;
}

bool tl_tile_is_once(const tl_tile_maker *m, uint16_t place)
{
    return m->place[place].where == TL_TILE_ONCE;
}

/* A slot of what is computed from `from`. */
static uint16_t slot_after(tl_tile_maker *m, uint16_t from, tl_dtype dtype)
{
    return tl_tile_add_place(
        m, tl_tile_is_once(m, from) ? TL_TILE_ONCE : TL_TILE_SLOT, dtype, 0,
        m->place[from].rows);
}

void tl_tile_add_stage(tl_tile_maker *m, uint16_t from, tl_dtype dtype,
                       tl_dtype to_dtype, uint16_t to)
{
    tl_tile_code *c = tl_tile_add_code(m, TL_TILE_STAGE, to);

    c->stage = m->isa.stage(dtype, to_dtype);
    TL_CHECK(c->stage != NULL);
    c->nin = 1;
    c->in[0] = from;
}

/* ---- values -------------------------------------------------------------- */

/* Values are the inputs, then the results of steps. */
static int value_of(int ref)
{
    TL_CHECK(ref != -1 && ref < TL_TILE_MAX_OPERANDS &&
             ref > -2 - TL_TILE_MAX_STEPS);
    return ref >= 0 ? ref : TL_TILE_MAX_OPERANDS - 2 - ref;
}

tl_dtype tl_tile_dtype(const tl_tile_maker *m, int ref)
{
    return ref >= 0 ? m->s->in[ref]->dtype
                    : (tl_dtype)m->s->steps[-2 - ref].dtype;
}

/* Input `i` as an operand in `dtype`; layouts are those of the first ones,
 * which have the inputs' own dtypes. */
static int operand_as(tl_tile_maker *m, int i, tl_dtype dtype)
{
    tl_tile_operand *o = &m->operand[m->noperands];

    if (m->s->in[i]->dtype == dtype) {
        return i;
    }
    TL_CHECK(m->noperands < TL_TILE_OPERANDS);
    *o = m->operand[i];
    o->copy = NULL;
    o->o.row_width = (int)tl_dtype_size(dtype);
    o->o.stage = m->isa.stage(m->s->in[i]->dtype, dtype);
    o->o.converts = true;
    TL_CHECK(o->o.stage != NULL);
    return m->noperands++;
}

/* A place for an input in `dtype`. */
static uint16_t input_place(tl_tile_maker *m, int i, tl_dtype dtype)
{
    tl_dtype own = m->s->in[i]->dtype;
    bool rows = m->operand[i].rows;
    uint16_t place;
    int k;

    if (m->operand[i].o.layout == TL_LAYOUT_DIRECT) {
        if (own == dtype) {
            return tl_tile_add_place(m, TL_TILE_INPUT, own, i, rows);
        }
        place = tl_tile_add_place(m, TL_TILE_SLOT, dtype, 0, rows);
        tl_tile_add_stage(m, tl_tile_form(m, i, own), own, dtype, place);
        return place;
    }
    k = operand_as(m, i, dtype);
    if (m->operand[i].o.layout == TL_LAYOUT_NESTED) {
        place = tl_tile_add_place(m, TL_TILE_FETCHED, dtype, k, rows);
        tl_tile_add_code(m, TL_TILE_FETCH, place)->item = (uint16_t)k;
        return place;
    }
    place = tl_tile_add_place(m, TL_TILE_ONCE, dtype, k, false);
    m->operand[k].place = place;
    m->operand[k].filled = true;
    return place;
}

uint16_t tl_tile_form(tl_tile_maker *m, int ref, tl_dtype dtype)
{
    uint16_t *form = m->form[value_of(ref)], place;

    if (form[dtype] != 0) {
        return (uint16_t)(form[dtype] - 1);
    }
    if (ref >= 0) {
        place = input_place(m, ref, dtype);
    } else {
        tl_dtype own = tl_tile_dtype(m, ref);
        uint16_t from;

        TL_CHECK(form[own] != 0); /* a step reads earlier ones only */
        from = (uint16_t)(form[own] - 1);
        place = slot_after(m, from, dtype);
        tl_tile_add_stage(m, from, own, dtype, place);
    }
    form[dtype] = (uint16_t)(place + 1);
    return place;
}

uint16_t tl_tile_whole(tl_tile_maker *m, int ref, tl_dtype dtype)
{
    uint16_t *wide = &m->wide[value_of(ref)][dtype], place;
    uint16_t from = tl_tile_form(m, ref, dtype);
    tl_tile_code *c;

    if (!m->place[from].rows) {
        return from;
    }
    if (*wide == 0) {
        place = tl_tile_add_place(m, TL_TILE_SLOT, dtype, 0, false);
        c = tl_tile_add_code(m, TL_TILE_SPREAD, place);
        c->stage = m->isa.stage(dtype, dtype);
        c->nin = 1;
        c->in[0] = from;
        *wide = (uint16_t)(place + 1);
    }
    return (uint16_t)(*wide - 1);
}

void tl_tile_set_form(tl_tile_maker *m, int step, tl_dtype dtype,
                      uint16_t place)
{
    m->form[value_of(-2 - step)][dtype] = (uint16_t)(place + 1);
}
