/* tile_slots.c - the last part of making a tile program: which codes are
 * needed where, a slot for each place, the length of pieces. */
#include "runtime/cpu/tile_make.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/cpu/reduce.h"

enum {
    PAD = 64,    /* slots begin at multiples of it, in bytes */
    SHORT = 512, /* elements below which codes cost more than they do */
    LONG = 4096  /* ... and above which there is nothing to gain */
};

typedef struct layout {
    int last[TL_TILE_MAX_PLACES];      /* code that reads a place last */
    int16_t slot[TL_TILE_MAX_PLACES];  /* of each place */
    uint8_t width[TL_TILE_MAX_PLACES]; /* of each slot, and ... */
    bool rows[TL_TILE_MAX_PLACES];
    bool is_free[TL_TILE_MAX_PLACES];
    int nslots;
} layout;

/* ---- lists --------------------------------------------------------------- */

/* Further places that a code writes; their number is returned. */
static int more_places(const tl_tile_maker *m, const tl_tile_code *c,
                       uint16_t *place)
{
    int n = 0;

    for (int k = 0; k < 2 && c->kind == TL_TILE_LINE; k++) {
        if (m->line[c->item].more[k] != TL_TILE_NO_PLACE) {
            place[n++] = m->line[c->item].more[k];
        }
    }
    return n;
}

/* Backwards from what is written and what is checked. */
static void find_uses(tl_tile_maker *m, uint8_t *want)
{
    for (int i = m->ncodes - 1; i >= 0; i--) {
        const tl_tile_code *c = &m->code[i];
        uint8_t where = m->place[c->to].where, use = want[c->to];
        uint16_t more[2];
        int nmore = more_places(m, c, more);

        for (int k = 0; k < nmore; k++) {
            use |= want[more[k]];
        }

        if (c->kind == TL_TILE_CHECK) {
            use = TL_TILE_IN_CHECK;
        } else if (where == TL_TILE_RESULT || where == TL_TILE_WINDOW ||
                   where == TL_TILE_ARRAY) {
            use |= TL_TILE_IN_BODY;
        }
        want[c->to] |= use; /* it is written, wanted or not */
        for (int k = 0; k < nmore; k++) {
            want[more[k]] |= use;
        }
        for (int k = 0; k < c->nin; k++) {
            if (c->in[k] != TL_TILE_NO_PLACE) {
                want[c->in[k]] |= use;
            }
        }
        m->use[i] = use == 0                ? 0
                    : where == TL_TILE_ONCE ? TL_TILE_IN_ONCE
                                            : use;
        if (c->kind == TL_TILE_CHECK) {
            m->use[i] = TL_TILE_IN_CHECK;
        }
    }
}

/* ---- slots --------------------------------------------------------------- */

static bool has_slot(const tl_tile_place *p)
{
    return p->where == TL_TILE_SLOT || p->where == TL_TILE_FETCHED;
}

static void take_slot(const tl_tile_maker *m, layout *l, uint16_t place)
{
    const tl_tile_place *p = &m->place[place];
    int i = 0;

    if (!has_slot(p)) {
        return;
    }
    while (i < l->nslots && !(l->is_free[i] && l->width[i] == p->width &&
                              l->rows[i] == p->rows)) {
        i++;
    }
    l->nslots += i == l->nslots;
    l->is_free[i] = false;
    l->width[i] = p->width;
    l->rows[i] = p->rows;
    l->slot[place] = (int16_t)i;
}

/* Slots of what code `i` reads last. */
static void free_slots(const tl_tile_maker *m, layout *l, int i)
{
    const tl_tile_code *c = &m->code[i];

    for (int k = 0; k < c->nin; k++) {
        uint16_t in = c->in[k];

        if (in != TL_TILE_NO_PLACE && has_slot(&m->place[in]) &&
            l->last[in] == i) {
            l->is_free[l->slot[in]] = true;
        }
    }
}

/* A code may write over an operand that it reads last: loops and conversions
 * to a dtype of the same width allow it, lines do not. */
static void give_slots(const tl_tile_maker *m, layout *l)
{
    const int body = TL_TILE_IN_BODY | TL_TILE_IN_CHECK;

    for (int i = 0; i < m->ncodes; i++) {
        for (int k = 0; k < m->code[i].nin && (m->use[i] & body) != 0; k++) {
            if (m->code[i].in[k] != TL_TILE_NO_PLACE) {
                l->last[m->code[i].in[k]] = i;
            }
        }
    }
    for (int i = 0; i < m->ncodes; i++) {
        const tl_tile_code *c = &m->code[i];
        uint16_t more[2];
        int nmore = more_places(m, c, more);

        if ((m->use[i] & body) == 0) {
            continue;
        }
        if (c->kind != TL_TILE_LINE) {
            free_slots(m, l, i);
        }
        if (c->kind != TL_TILE_CHECK) {
            take_slot(m, l, c->to);
        }
        for (int k = 0; k < nmore; k++) {
            take_slot(m, l, more[k]);
        }
        if (c->kind == TL_TILE_LINE) {
            free_slots(m, l, i);
        }
    }
}

/* ---- the length of pieces ------------------------------------------------ */

/* Bytes of an element in places of these kinds, and number of the places. */
static int64_t bytes_in(const tl_tile_maker *m, const uint8_t *want,
                        bool once, int *count)
{
    int64_t bytes = 0;

    for (int i = 0; i < m->nplaces; i++) {
        const tl_tile_place *p = &m->place[i];

        if (!has_slot(p) && !p->rows && (p->where == TL_TILE_ONCE) == once &&
            (!once || want[i] != 0)) {
            bytes += p->width;
            (*count)++;
        }
    }
    return bytes;
}

static void set_longest(tl_tile_maker *m, const layout *l,
                        const uint8_t *want)
{
    tl_map_space *s = &m->space;
    int moving = 0, once = 0;
    int64_t streams = bytes_in(m, want, false, &moving);
    int64_t pinned = bytes_in(m, want, true, &once), slots = 0, room, n;

    for (int i = 0; i < l->nslots; i++) {
        slots += l->rows[i] ? 0 : l->width[i];
    }
    if (slots + pinned == 0 && m->ncodes == 1 && m->row == 0) {
        return; /* one loop over tensors: in one piece */
    }
    room = TL_TILE_ROOM - (once + l->nslots) * PAD - pinned * s->period;
    n = TL_TILE_NEAR / (streams + pinned + slots + 1);
    n = n < SHORT ? SHORT : n > LONG ? LONG : n;
    if (m->row > 0) { /* whole rows, whatever room they take */
        n = n / m->row < 1 ? 1 : n / m->row;
        n = n > TL_REDUCE_ROWS ? TL_REDUCE_ROWS : n;
        s->longest = n < s->n / m->row ? n * m->row : s->n;
        return;
    }
    if (slots + pinned > 0 && n > room / (slots + pinned)) {
        n = room / (slots + pinned);
    }
    n = n > PAD ? n / PAD * PAD : n;
    TL_CHECK(n > 0);
    s->longest = n < s->n ? n : s->n;
}

/* Offsets in the room; its size is returned. */
static int64_t place_slots(tl_tile_maker *m, const layout *l,
                           const uint8_t *want)
{
    int64_t n = m->space.longest, next = 0;
    int64_t at[TL_TILE_MAX_PLACES];

    for (int i = 0; i < l->nslots; i++) {
        int64_t count = l->rows[i] ? n / m->row : n;

        at[i] = next;
        next += (count * l->width[i] + PAD - 1) / PAD * PAD;
    }
    for (int i = 0; i < m->nplaces; i++) {
        tl_tile_place *p = &m->place[i];

        if (has_slot(p) && want[i] != 0) {
            p->offset = at[l->slot[i]];
        } else if (p->where == TL_TILE_ONCE && want[i] != 0) {
            p->offset = next;
            next +=
                ((n + m->space.period - 1) * p->width + PAD - 1) / PAD * PAD;
        }
    }
    TL_CHECK(next <= TL_TILE_ROOM || m->row > 0);
    return next;
}

void tl_tile_lay_out(tl_tile_maker *m)
{
    uint8_t want[TL_TILE_MAX_PLACES] = {0};
    layout l;

    memset(&l, 0, sizeof l);
    find_uses(m, want);
    give_slots(m, &l);
    set_longest(m, &l, want);
    m->room = place_slots(m, &l, want);
    for (int i = 0; i < m->noperands; i++) { /* read by no needed code */
        tl_tile_operand *o = &m->operand[i];

        o->filled = o->filled && want[o->place] != 0;
    }
}

/* ---- the program --------------------------------------------------------- */

static tl_tile_code *list_of(const tl_tile_maker *m, const tl_tile *t,
                             int list, int *count)
{
    tl_tile_code *to = tl_calloc((size_t)m->ncodes, sizeof *to);

    for (int i = 0; i < m->ncodes && to != NULL; i++) {
        if ((m->use[i] & list) != 0) {
            to[*count] = m->code[i];
            if (to[*count].kind == TL_TILE_LOOP) {
                to[*count].p = t->p[to[*count].item];
            }
            (*count)++;
        }
    }
    return to;
}

static void *copy_of(const void *from, size_t count, size_t size)
{
    void *to = tl_calloc(count + 1, size);

    if (to != NULL && count > 0) {
        memcpy(to, from, count * size);
    }
    return to;
}

static void set_plain_fields(const tl_tile_maker *m, tl_tile *t)
{
    const tl_tile_source *s = m->s;

    t->space = m->space;
    t->rows = m->rows;
    t->row = m->row;
    t->room = m->room;
    t->avx2 = m->isa.avx2;
    t->rank = s->rank;
    memcpy(t->size, s->size, (size_t)s->rank * sizeof *s->size);
    t->ns = m->ns + (m->space.nested ? 1 : 0);
    for (int i = 0; i < s->nin; i++) {
        t->in[i] = s->in[i];
    }
    for (int i = 0; i < s->nto; i++) {
        t->to[i] = s->to[i];
    }
    t->nto = s->nto;
    t->nplaces = m->nplaces;
    t->nchecks = m->nchecks;
    t->nlines = m->nlines;
    t->feed_to = m->feed_to;
}

tl_status tl_tile_finish(tl_tile_maker *m, tl_tile **out, tl_diag *diag)
{
    tl_tile *t = tl_calloc(1, sizeof *t);

    if (t != NULL) {
        set_plain_fields(m, t);
        t->operand =
            copy_of(m->operand, (size_t)m->noperands, sizeof *t->operand);
        t->place = copy_of(m->place, (size_t)m->nplaces, sizeof *t->place);
        t->checks = copy_of(m->check, (size_t)m->nchecks, sizeof *t->checks);
        t->line = copy_of(m->line, (size_t)m->nlines, sizeof *t->line);
        t->p = copy_of(m->p, (size_t)m->s->nsteps, sizeof *t->p);
        if (t->p != NULL) {
            t->once = list_of(m, t, TL_TILE_IN_ONCE, &t->nonce);
            t->body = list_of(m, t, TL_TILE_IN_BODY, &t->nbody);
            t->check = list_of(m, t, TL_TILE_IN_CHECK, &t->ncheck);
        }
    }
    if (t == NULL || !t->operand || !t->place || !t->checks || !t->p ||
        !t->line || !t->once || !t->body || !t->check) {
        tl_tile_free(t); /* copies are still the maker's */
        return tl_fail_memory(diag, "a tile program", sizeof *t);
    }
    if (tl_tile_loss_room(t, diag) != TL_OK) {
        tl_tile_free(t);
        return TL_ERR_MEMORY;
    }
    t->noperands = m->noperands;
    for (int i = 0; i < m->noperands; i++) {
        m->operand[i].copy = NULL;
    }
    *out = t;
    return TL_OK;
}

void tl_tile_free(tl_tile *t)
{
    if (t == NULL) {
        return;
    }
    for (int i = 0; i < t->noperands; i++) {
        tl_free(t->operand[i].copy);
    }
    tl_free(t->operand);
    tl_free(t->place);
    tl_free(t->once);
    tl_free(t->body);
    tl_free(t->check);
    tl_free(t->checks);
    for (int i = 0; i < t->nlines && t->line != NULL; i++) {
        tl_free(t->line[i].block);
    }
    tl_free(t->line);
    tl_free(t->p);
    tl_free(t);
}
