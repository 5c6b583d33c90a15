/* tile_make.c - a tile program from its steps: codes, places, slots.
 *
 * Steps are walked in order; each adds codes that read the forms of values
 * (tile_value.c).  tile_slots.c then lays out slots. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/cpu/tile_make.h"

#include <stddef.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/kern.h"

enum {
    FEW = 16384, /* elements that a cache holds in any order */
    NEAR = 8     /* strides within a cache line, about */
};

/* ---- results ------------------------------------------------------------- */

/* The input whose elements a value is, or -1: casts to its own dtype. */
static int input_behind(const tl_tile_maker *m, int ref)
{
    while (ref < -1) {
        const tl_tile_step *s = &m->s->steps[-2 - ref];

        if (s->op != TL_OP_cast || tl_tile_dtype(m, s->in[0]) != s->dtype) {
            return -1;
        }
        ref = s->in[0];
    }
    return ref;
}

/* Is value `ref` the input whose storage result `r` takes?  It may be, as long
 * as one of them has none yet. */
static bool is_taken(const tl_tile_maker *m, int ref, int r)
{
    int in = input_behind(m, ref);

    return in >= 0 &&
           (m->s->in[in]->storage == NULL || m->s->to[r]->storage == NULL ||
            tl_cpu_same_data(m->s->in[in], m->s->to[r]));
}

/* Is it a row on whole rows, which may read after it has written? */
static bool is_line(const tl_tile_step *s)
{
    tl_op_class cls = tl_op_get((tl_op)s->op)->cls;

    return cls == TL_CLASS_RED ||
           (cls == TL_CLASS_KERN && s->op != TL_OP_cast);
}

/* Is the input whose storage result `r` takes read after `step`, by a step or
 * as a result, which is copied last? */
static bool is_read_later(const tl_tile_maker *m, int step, int r)
{
    const tl_tile_source *s = m->s;

    for (int i = 0; i < s->nsteps; i++) {
        bool reads = i > step || (i == step && is_line(&s->steps[i]));

        if (s->steps[i].to >= 0 && is_taken(m, -2 - i, r)) {
            return true;
        }
        for (int k = 0; k < s->steps[i].nin && reads; k++) {
            if (is_taken(m, s->steps[i].in[k], r)) {
                return true;
            }
        }
    }
    return false;
}

/* Has a result an element a row?  With one row or rows of one element it is
 * all the same, and none is spread. */
static bool is_for_rows(const tl_tile_maker *m, int r)
{
    return m->row > 1 && m->s->to[r]->numel != m->space.n;
}

uint16_t tl_tile_target(tl_tile_maker *m, int i, tl_dtype dtype, bool once,
                        bool rows)
{
    int r = m->s->steps[i].to;

    TL_CHECK(r < 0 || (r < m->s->nto && m->s->to[r]->dtype == dtype));
    if (!once && !m->careful) {
        if (r >= 0 && !is_read_later(m, i, r) && is_for_rows(m, r) == rows) {
            return tl_tile_add_place(m, TL_TILE_RESULT, dtype, r, rows);
        }
        if (r < 0 && i == m->s->feed && dtype == m->s->dtype) {
            return tl_tile_add_place(m, TL_TILE_WINDOW, dtype, 0, false);
        }
    }
    return tl_tile_add_place(m, once ? TL_TILE_ONCE : TL_TILE_SLOT, dtype, 0,
                             rows);
}

static void add_copy(tl_tile_maker *m, uint16_t from, uint16_t to)
{
    tl_tile_code *c = tl_tile_add_code(m, TL_TILE_COPY, to);

    c->nin = 1;
    c->in[0] = from;
}

/* The result of step `i` to tensor `r`: spread over rows if the tensor has
 * them whole; an element a row of what is the same in each. */
static void copy_result(tl_tile_maker *m, int i, int r)
{
    tl_dtype dtype = (tl_dtype)m->s->steps[i].dtype;
    bool rows = is_for_rows(m, r);
    uint16_t from = rows ? tl_tile_form(m, -2 - i, dtype)
                         : tl_tile_whole(m, -2 - i, dtype);

    TL_CHECK(m->place[from].rows == rows || tl_tile_is_once(m, from));
    add_copy(m, from, tl_tile_add_place(m, TL_TILE_RESULT, dtype, r, rows));
}

/* Copy results that steps have not written themselves: those that are an
 * input's elements, or the others, which may overwrite such. */
static void copy_results(tl_tile_maker *m, bool inputs)
{
    const tl_tile_source *s = m->s;

    for (int i = 0; i < s->nsteps; i++) {
        tl_dtype dtype = (tl_dtype)s->steps[i].dtype;
        uint16_t from = tl_tile_is_total(&s->steps[i])
                            ? 0
                            : tl_tile_form(m, -2 - i, dtype);
        int r = s->steps[i].to;
        bool is_input = m->place[from].where == TL_TILE_INPUT;

        if (r >= 0 && is_input == inputs && !tl_tile_is_total(&s->steps[i]) &&
            (m->place[from].where != TL_TILE_RESULT ||
             m->place[from].item != r)) {
            copy_result(m, i, r);
        }
    }
}

/* Bring what is reduced to the window, unless it is there, or is read from the
 * result that it is as well. */
static void copy_feed(tl_tile_maker *m)
{
    const tl_tile_source *s = m->s;
    tl_dtype own = (tl_dtype)s->steps[s->feed].dtype;
    uint16_t from = tl_tile_form(m, -2 - s->feed, own), to;

    m->feed_to = -1;
    if (m->place[from].where == TL_TILE_WINDOW) {
        return;
    }
    if (m->place[from].where == TL_TILE_RESULT && own == s->dtype) {
        m->feed_to = m->place[from].item;
        return;
    }
    to = tl_tile_add_place(m, TL_TILE_WINDOW, s->dtype, 0, false);
    if (own == s->dtype) {
        add_copy(m, from, to);
    } else {
        tl_tile_add_stage(m, from, own, s->dtype, to);
    }
}

/* ---- steps --------------------------------------------------------------- */

static bool is_checked(const tl_tile_maker *m, const tl_tile_step *s)
{
    tl_dtype from = s->op == TL_OP_cast ? tl_tile_dtype(m, s->in[0])
                                        : (tl_dtype)s->compute;

    return s->which < 0 &&
           tl_map_is_checked((tl_op)s->op, from, (tl_dtype)s->dtype);
}

/* What the row's kernel looks at is looked at first. */
static void add_check(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];
    tl_tile_check *k = &m->check[m->nchecks];
    int ref = s->op == TL_OP_cast ? s->in[0] : s->in[1];
    uint16_t place = tl_tile_form(m, ref, TL_f64);
    tl_tile_code *c = tl_tile_add_code(m, TL_TILE_CHECK, place);

    *k = (tl_tile_check){
        .op = (tl_op)s->op,
        .step = (uint8_t)i,
        .to = s->dtype,
        .bounds = tl_map_bounds_of((tl_op)s->op, (tl_dtype)s->dtype),
        .rank = m->shape[i].rank};
    memcpy(k->size, m->shape[i].size, sizeof k->size);
    c->nin = 1;
    c->in[0] = place;
    c->item = (uint16_t)m->nchecks++;
}

/* Is a value one number, however often it is needed? */
static bool is_scalar(const tl_tile_maker *m, int ref)
{
    return ref >= 0 ? m->s->in[ref]->numel == 1 : m->scalar[-2 - ref];
}

static void add_cast(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];
    tl_dtype from = tl_tile_dtype(m, s->in[0]), to = (tl_dtype)s->dtype;
    uint16_t place, at;
    tl_dtype half = tl_map_halfway(from, to);

    m->scalar[i] = is_scalar(m, s->in[0]);
    place = tl_tile_form(m, s->in[0], from);
    if (from == to) {
        tl_tile_set_form(m, i, to, place);
        return;
    }
    if (half != to) {
        place = tl_tile_form(m, s->in[0], half);
        from = half;
    }
    at = tl_tile_target(m, i, to,
                        tl_tile_is_once(m, place) && !is_checked(m, s),
                        m->place[place].rows);
    tl_tile_add_stage(m, place, from, to, at);
    tl_tile_set_form(m, i, to, at);
}

/* Have all operands of step `i` an element a row, but for scalars?  Sets
 * whether all are scalars. */
static bool is_of_rows(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];
    bool rows = false;

    m->scalar[i] = true;
    for (int k = 0; k < s->nin; k++) {
        if (s->in[k] != -1 && !is_scalar(m, s->in[k])) {
            tl_dtype own = tl_tile_dtype(m, s->in[k]);

            m->scalar[i] = false;
            rows =
                m->row > 0 && m->place[tl_tile_form(m, s->in[k], own)].rows;
            if (!rows) {
                return false;
            }
        }
    }
    return rows;
}

/* Operands of a loop; returns whether all are the same in each piece. */
static bool loop_operands(tl_tile_maker *m, int i, tl_tile_code *c)
{
    const tl_tile_step *s = &m->s->steps[i];
    int own = tl_op_get((tl_op)s->op)->nin, some = -1;
    bool once = true;

    c->nin = s->which < 0 ? s->nin : TL_MAP_OPERANDS;
    c->rows = is_of_rows(m, i);
    TL_CHECK(s->nin == (s->which < 0 ? own : own + 2));
    for (int k = 0; k < s->nin; k++) {
        int at = k < own ? k : TL_MAP_Y + k - own;

        if (s->in[k] != -1) {
            c->in[at] =
                c->rows ? tl_tile_form(m, s->in[k], (tl_dtype)s->compute)
                        : tl_tile_whole(m, s->in[k], (tl_dtype)s->compute);
            once = once && tl_tile_is_once(m, c->in[at]);
            some = at;
        }
    }
    TL_CHECK(some >= 0);
    for (int at = 0; at < c->nin; at++) { /* not read, but readable */
        int k = at < TL_MAP_Y ? at : own + at - TL_MAP_Y;

        if ((at < TL_MAP_Y && at >= own) || s->in[k] == -1) {
            c->in[at] = c->in[some];
        }
    }
    return once && !is_checked(m, s);
}

/* Is the step gelu, or else its gradient, in f32? */
static bool is_gelu(const tl_tile_step *s, bool value)
{
    return s->op == TL_OP_gelu && s->compute == TL_f32 &&
           (s->which < 0) == value;
}

/* Are both gelu and its gradient wanted of what step `i` reads? */
static bool shares_gelu(const tl_tile_maker *m, int i)
{
    const tl_tile_step *s = m->s->steps;
    bool value = is_gelu(&s[i], true);

    if (!value && !is_gelu(&s[i], false)) {
        return false;
    }
    for (int k = 0; k < m->s->nsteps; k++) {
        if (is_gelu(&s[k], !value) && s[k].in[0] == s[i].in[0]) {
            return true;
        }
    }
    return false;
}

/* The core of gelu of the floats at place x, made once. */
static uint16_t gelu_core(tl_tile_maker *m, uint16_t x)
{
    uint16_t to;
    tl_tile_code *c;

    for (int k = 0; k < m->ncodes; k++) {
        if (m->code[k].kind == TL_TILE_LOOP && m->code[k].in[0] == x &&
            m->code[k].loop == m->isa.gelu->core) {
            return m->code[k].to;
        }
    }
    to = tl_tile_add_place(
        m, tl_tile_is_once(m, x) ? TL_TILE_ONCE : TL_TILE_SLOT, TL_f64, 0,
        m->place[x].rows);
    c = tl_tile_add_code(m, TL_TILE_LOOP, to);
    c->loop = m->isa.gelu->core;
    c->nin = 1;
    c->in[0] = x;
    return to;
}

static void set_gelu(tl_tile_maker *m, const tl_tile_step *s,
                     tl_tile_code *c)
{
    bool value = s->which < 0;

    c->in[1] = gelu_core(m, c->in[0]);
    c->nin = value ? 2 : TL_MAP_OPERANDS;
    c->loop = value ? m->isa.gelu->value : m->isa.gelu->grad;
}

static void add_loop(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];
    const tl_map_loops *loops = m->isa.loops((tl_dtype)s->compute);
    tl_dtype dtype = (tl_dtype)s->dtype;
    tl_dtype raw = tl_op_get((tl_op)s->op)->cls == TL_CLASS_CMP
                       ? TL_bool
                       : (tl_dtype)s->compute;
    tl_tile_code own = {.kind = TL_TILE_LOOP}, *c;
    bool once = loop_operands(m, i, &own);
    uint16_t to;

    to = raw == dtype
             ? tl_tile_target(m, i, dtype, once, own.rows)
             : tl_tile_add_place(m, once ? TL_TILE_ONCE : TL_TILE_SLOT, raw,
                                 0, own.rows);
    own.loop =
        s->which < 0 ? loops->value[s->op] : loops->grad[s->op][s->which];
    TL_CHECK(own.loop != NULL);
    if (shares_gelu(m, i)) {
        set_gelu(m, s, &own);
    }
    own.item = (uint16_t)i;
    own.to = to;
    own.width = m->place[to].width;
    c = tl_tile_add_code(m, TL_TILE_LOOP, to);
    *c = own;
    if (raw != dtype) {
        to = tl_tile_target(m, i, dtype, once, own.rows);
        tl_tile_add_stage(m, c->to, raw, dtype, to);
    }
    tl_tile_set_form(m, i, dtype, to);
}

/* Broadcast a shape of `rank` sizes into another. */
static void stretch(tl_tile_shape *to, int rank, const int64_t *size)
{
    int added = rank - to->rank;

    if (added > 0) {
        memmove(to->size + added, to->size,
                (size_t)to->rank * sizeof *to->size);
        to->rank = rank;
    }
    for (int d = 0; d < rank; d++) {
        int64_t *at = &to->size[to->rank - rank + d];

        *at = d < added || *at == 1 ? size[d] : *at;
    }
}

/* The step's own shape: what its operands broadcast to. */
static void set_shape(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];

    for (int k = 0; k < s->nin; k++) {
        int ref = s->in[k];

        if (ref >= 0) {
            stretch(&m->shape[i], m->s->in[ref]->rank, m->s->in[ref]->size);
        } else if (ref < -1) {
            stretch(&m->shape[i], m->shape[-2 - ref].rank,
                    m->shape[-2 - ref].size);
        }
    }
}

static void add_step(tl_tile_maker *m, int i)
{
    const tl_tile_step *s = &m->s->steps[i];

    set_shape(m, i);
    if (is_checked(m, s)) {
        add_check(m, i);
    }
    if (is_line(s)) {
        tl_tile_add_line(m, i);
        return;
    }
    if (s->op == TL_OP_cast) {
        add_cast(m, i);
    } else {
        add_loop(m, i);
    }
    m->ns += tl_map_cost((tl_op)s->op, (tl_dtype)s->compute);
}

bool tl_tile_takes(tl_op op, int which, tl_dtype compute)
{
    const tl_op_info *row = tl_op_get(op);
    const tl_map_loops *loops = tl_map_loops_get(compute);

    if (op == TL_OP_cast) {
        return which < 0;
    }
    if (compute == TL_f16 || compute == TL_bf16 ||
        (row->cls != TL_CLASS_MAP && row->cls != TL_CLASS_CMP)) {
        return false;
    }
    return which < 0 ? loops->value[op] != NULL
                     : which < row->nin && loops->grad[op][which] != NULL;
}

tl_tile_isa tl_tile_isa_get(void)
{
#ifdef TL_HAVE_AVX2_KERNELS
    if (tl_cpu_avx2_kernels()) {
        return (tl_tile_isa){tl_map_loops_get_avx2, tl_stage_avx2,
                             TL_BEST_AVX(tl_map_gelu), true};
    }
#endif
    return (tl_tile_isa){tl_map_loops_get, tl_stage, &tl_map_gelu, false};
}

/* ---- operands ------------------------------------------------------------ */

static bool is_scattered(const tl_tensor *t, int64_t numel)
{
    int last = t->rank - 1;

    while (last > 0 && t->size[last] == 1) {
        last--;
    }
    return t->numel == numel && numel > FEW && last >= 0 &&
           (t->stride[last] > NEAR || t->stride[last] < -NEAR);
}

/* Has `t` an element a row? */
static bool has_rows(const tl_tile_maker *m, const tl_tensor *t)
{
    int trailing = m->s->trailing;

    for (int i = t->rank - trailing; i < t->rank && trailing > 0; i++) {
        if (i < 0 || t->size[i] != 1) {
            return false;
        }
    }
    return m->row > 1 && t->numel != 1;
}

/* An input in its own dtype.  One with far strides is copied at each run. */
static tl_status set_operand(tl_tile_maker *m, int i, int64_t numel,
                             tl_diag *diag)
{
    const tl_tile_source *s = m->s;
    tl_tile_operand *o = &m->operand[i];
    tl_tensor t = *s->in[i];
    size_t bytes = (size_t)t.numel * tl_dtype_size(t.dtype);
    int rank = s->rank;

    TL_CHECK(t.rank <= rank);
    o->tensor = (uint8_t)i;
    o->rows = has_rows(m, &t);
    if (o->rows) {
        t.rank -= s->trailing;
        rank -= s->trailing;
        numel /= m->row;
    }
    tl_map_operand_init(&o->o, &t, rank, s->size, numel, t.dtype,
                        m->isa.stage(t.dtype, t.dtype));
    if (o->o.layout == TL_LAYOUT_NESTED && is_scattered(&t, numel)) {
        o->copy = tl_malloc(bytes);
        if (o->copy == NULL) {
            return tl_fail_memory(diag, "a transposed operand", bytes);
        }
        o->o.layout = TL_LAYOUT_DIRECT;
    }
    return TL_OK;
}

/* The space of those inputs that have an element a row, or have not. */
static void set_space(tl_tile_maker *m, tl_map_space *space, bool rows,
                      int rank, int64_t numel)
{
    tl_map_operand o[TL_TILE_MAX_OPERANDS];

    for (int i = 0; i < m->s->nin; i++) {
        o[i] = m->operand[i].o;
        o[i].data = m->operand[i].rows == rows ? o[i].data : NULL;
    }
    tl_map_space_init(space, o, m->s->nin, rank, m->s->size, numel);
    for (int i = 0; i < m->s->nin; i++) {
        if (m->operand[i].rows == rows) {
            m->operand[i].o = o[i];
            if (rows && o[i].layout == TL_LAYOUT_PERIODIC) {
                m->operand[i].o.layout = TL_LAYOUT_NESTED;
                space->nested = true;
            }
        }
    }
}

static tl_status set_operands(tl_tile_maker *m, tl_diag *diag)
{
    const tl_tile_source *s = m->s;
    int64_t numel = 1;

    m->row = s->trailing > 0 ? 1 : 0;
    TL_CHECK(s->trailing <= s->rank);
    for (int i = 0; i < s->rank; i++) {
        numel *= s->size[i];
        m->row *= i >= s->rank - s->trailing ? s->size[i] : 1;
    }
    TL_CHECK(m->row > 0 || s->trailing == 0);
    for (int i = 0; i < s->nin; i++) {
        TL_TRY(set_operand(m, i, numel, diag));
    }
    m->noperands = s->nin;
    set_space(m, &m->space, false, s->rank, numel);
    if (m->row > 0) {
        set_space(m, &m->rows, true, s->rank - s->trailing, numel / m->row);
    }
    return TL_OK;
}

/* Codes, places and slots. */
static tl_status fill(tl_tile_maker *m, tl_diag *diag)
{
    const tl_tile_source *s = m->s;

    TL_TRY(set_operands(m, diag));
    for (int i = 0; i < s->nsteps; i++) {
        m->careful = m->careful || is_checked(m, &s->steps[i]);
        if (s->steps[i].p != NULL) {
            memcpy(m->p[i], s->steps[i].p, sizeof m->p[i]);
        }
    }
    for (int i = 0; i < s->nsteps; i++) {
        add_step(m, i);
    }
    copy_results(m, true);
    copy_results(m, false);
    if (s->feed >= 0) {
        copy_feed(m);
    }
    tl_tile_lay_out(m);
    return TL_OK;
}

/* A maker in which nothing is made; what is added sets itself. */
static void begin(tl_tile_maker *m, const tl_tile_source *s)
{
    size_t nin = (size_t)s->nin, n = (size_t)s->nsteps;

    memset(m, 0, offsetof(tl_tile_maker, operand));
    memset(m->operand, 0, nin * sizeof m->operand[0]);
    memset(m->scalar, 0, n * sizeof m->scalar[0]);
    memset(m->first_line, 0, n * sizeof m->first_line[0]);
    memset(m->shape, 0, n * sizeof m->shape[0]);
    memset(m->p, 0, n * sizeof m->p[0]);
    memset(m->form, 0, nin * sizeof m->form[0]);
    memset(m->wide, 0, nin * sizeof m->wide[0]);
    memset(m->form[TL_TILE_MAX_OPERANDS], 0, n * sizeof m->form[0]);
    memset(m->wide[TL_TILE_MAX_OPERANDS], 0, n * sizeof m->wide[0]);
    m->s = s;
    m->isa = tl_tile_isa_get();
}

tl_status tl_tile_make(tl_tile **out, const tl_tile_source *s, tl_diag *diag)
{
    tl_tile_maker *m = tl_malloc(sizeof *m);
    tl_status st;

    TL_CHECK(s->nsteps <= TL_TILE_MAX_STEPS && s->nsteps > 0 &&
             s->nin <= TL_TILE_MAX_OPERANDS &&
             s->nto <= TL_TILE_MAX_OPERANDS);
    if (m == NULL) {
        return tl_fail_memory(diag, "a tile program", sizeof *m);
    }
    begin(m, s);
    TL_GOTO(st, fill(m, diag));
    st = tl_tile_finish(m, out, diag);
out:
    for (int i = 0; i < s->nin; i++) {
        tl_free(m->operand[i].copy);
    }
    tl_free(m);
    return st;
}

tl_status tl_tile_new(tl_tile **out, int rank, const int64_t *shape,
                      const tl_tile_step *steps, int nsteps,
                      tl_tensor *const *in, int nin, tl_tensor *const *to,
                      int nto, tl_diag *diag)
{
    tl_tile_source s = {.rank = rank,
                        .size = shape,
                        .steps = steps,
                        .nsteps = nsteps,
                        .in = in,
                        .nin = nin,
                        .to = to,
                        .nto = nto,
                        .feed = -1};

    return tl_tile_make(out, &s, diag);
}
