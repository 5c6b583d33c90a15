/* tile_run.c - running a tile program: pieces, tasks, checks. */
#include "runtime/cpu/tile_code.h"

#include <string.h>

#include "runtime/cpu/kern.h"

enum {
    PLACE_BITS = 48
}; /* of an element's number in `bad` */

/* ---- codes --------------------------------------------------------------- */

static void note_bad(const tl_tile_runner *r, const tl_tile_check *c,
                     int64_t at)
{
    uint64_t found = (uint64_t)c->step << PLACE_BITS | (uint64_t)at;
    uint64_t least = atomic_load_explicit(r->bad, memory_order_relaxed);

    while (found < least &&
           !atomic_compare_exchange_weak(r->bad, &least, found)) {
    }
}

/* Is each of the n elements from `at` on as it must be? */
static bool holds(const tl_tile_runner *r, const tl_tile_code *c, int64_t pos,
                  int64_t n)
{
    const tl_tile_check *k = &r->t->checks[c->item];
    const tl_map_bounds *b = &k->bounds;
    const double *v = (const double *)(const void *)r->at[c->in[0]];

    for (int64_t i = 0; i < n; i++) {
        if ((v[i] >= b->lo && v[i] < b->above) != b->outside) {
            note_bad(r, k, pos + i);
            return false;
        }
    }
    return true;
}

static void run_loop(const char *const *at, const tl_tile_code *c, int64_t n)
{
    const void *in[TL_MAP_OPERANDS];

    for (int i = 0; i < c->nin; i++) {
        in[i] = at[c->in[i]];
    }
    c->loop(n, in, (char *)(uintptr_t)at[c->to], c->p);
}

static void fetch(tl_tile_runner *r, const tl_tile_code *c,
                  const tl_tile_piece *p)
{
    const tl_tile *t = r->t;
    const tl_map_operand *o = &t->operand[c->item].o;
    char *tile = r->room + t->place[c->to].offset;

    r->at[c->to] =
        c->rows ? tl_map_piece(&t->rows, o, p->row, p->row_at, p->nrows, tile)
                : tl_map_piece(&t->space, o, p->pos, p->at, p->n, tile);
}

/* The codes of a list for a piece; a check that fails ends them. */
static void run_codes(tl_tile_runner *r, const tl_tile_code *c, int count,
                      const tl_tile_piece *p)
{
    const char **at = r->at;

    for (const tl_tile_code *end = c + count; c < end; c++) {
        char *to = (char *)(uintptr_t)at[c->to];
        int64_t n = c->rows ? p->nrows : p->n;

        switch ((tl_tile_kind)c->kind) {
        case TL_TILE_LOOP:
            run_loop(at, c, n);
            break;
        case TL_TILE_STAGE:
            c->stage(n, at[c->in[0]], 1, to);
            break;
        case TL_TILE_COPY:
            memmove(to, at[c->in[0]], (size_t)(n * c->width));
            break;
        case TL_TILE_FETCH:
            fetch(r, c, p);
            break;
        case TL_TILE_CHECK:
            if (!holds(r, c, p->pos, n)) {
                return;
            }
            break;
        case TL_TILE_SPREAD:
            tl_tile_spread(r, c, p);
            break;
        case TL_TILE_FOLD:
            tl_tile_fold(r, c, p);
            break;
        case TL_TILE_LINE:
            tl_tile_line_rows(r, c, p);
            break;
        }
    }
}

/* ---- a range ------------------------------------------------------------- */

void tl_tile_open(tl_tile_runner *r, const tl_tile *t, int64_t n, char *room)
{
    tl_tile_piece all = {.n = n < t->space.longest ? n : t->space.longest};

    all.n += t->space.period - 1;
    r->t = t;
    r->room = room != NULL ? room : r->own;
    r->window = NULL;
    r->bad = NULL;
    for (int i = 0; i < t->nplaces; i++) {
        r->at[i] = r->room + t->place[i].offset;
    }
    for (int i = 0; i < t->noperands; i++) {
        const tl_tile_operand *o = &t->operand[i];

        if (o->filled) {
            tl_map_fill_once(&t->space, &o->o, all.n,
                             r->room + t->place[o->place].offset);
        }
    }
    run_codes(r, t->once, t->nonce, &all);
}

/* Places that move with the piece. */
static void move_places(tl_tile_runner *r, const tl_tile_piece *piece)
{
    const tl_tile *t = r->t;
    int64_t pos = piece->pos;
    int64_t phase = t->space.period > 1 ? pos % t->space.period : 0;

    for (int i = 0; i < t->nplaces; i++) {
        const tl_tile_place *p = &t->place[i];

        switch ((tl_tile_where)p->where) {
        case TL_TILE_INPUT:
            r->at[i] = t->operand[p->item].o.data +
                       (p->rows ? piece->row : pos) * p->width;
            break;
        case TL_TILE_RESULT:
            r->at[i] =
                t->data[p->item] + (p->rows ? piece->row : pos) * p->width;
            break;
        case TL_TILE_ARRAY:
            r->at[i] = t->line[p->item / 2].array[p->item % 2] +
                       piece->row * p->width;
            break;
        case TL_TILE_WINDOW:
            r->at[i] = r->window == NULL /* a check */
                           ? r->room
                           : r->window + (pos - r->window_at) * p->width;
            break;
        case TL_TILE_ONCE:
            r->at[i] = r->room + p->offset + phase * p->width;
            break;
        case TL_TILE_SLOT:
        case TL_TILE_FETCHED:
            break;
        }
    }
}

static void run_list(tl_tile_runner *r, const tl_tile_code *list, int count,
                     int64_t lo, int64_t hi)
{
    tl_tile_piece p;

    for (p.pos = lo; p.pos < hi; p.pos += p.n) {
        p.n = tl_map_piece_length(&r->t->space, p.pos, hi, p.at);
        move_places(r, &p);
        run_codes(r, list, count, &p);
    }
}

/* Whole rows, as many at a time as pieces have. */
static void run_rows(tl_tile_runner *r, int64_t lo, int64_t hi)
{
    const tl_tile *t = r->t;
    int64_t most = t->space.longest / t->row;
    tl_tile_piece p;

    for (p.row = lo; p.row < hi; p.row += p.nrows) {
        p.nrows = hi - p.row < most ? hi - p.row : most;
        p.pos = p.row * t->row;
        p.n = p.nrows * t->row;
        if (t->space.nested) {
            tl_map_coordinates(&t->space, p.pos, p.at);
        }
        if (t->rows.nested) {
            tl_map_coordinates(&t->rows, p.row, p.row_at);
        }
        move_places(r, &p);
        run_codes(r, t->body, t->nbody, &p);
    }
}

void tl_tile_range(tl_tile_runner *r, int64_t lo, int64_t hi)
{
    if (r->t->row > 0) {
        run_rows(r, lo / r->t->row, hi / r->t->row);
        return;
    }
    run_list(r, r->t->body, r->t->nbody, lo, hi);
}

/* ---- tasks --------------------------------------------------------------- */

typedef struct tile_job {
    const tl_tile *t;
    int64_t chunk;
    char *rooms; /* of the workers, or NULL */
    bool checks;
    _Atomic uint64_t bad;
} tile_job;

static void run_task(void *arg, int64_t task, int worker)
{
    tile_job *job = arg;
    const tl_tile *t = job->t;
    int64_t lo = task * job->chunk, hi = lo + job->chunk;
    tl_tile_runner r;

    hi = hi < t->space.n ? hi : t->space.n;
    tl_tile_open(&r, t, hi - lo,
                 job->rooms == NULL ? NULL : job->rooms + worker * t->room);
    r.bad = &job->bad;
    if (job->checks) {
        run_list(&r, t->check, t->ncheck, lo, hi);
    } else {
        tl_tile_range(&r, lo, hi);
    }
}

static void run_job(tl_kernel_ctx *k, tile_job *job)
{
    const tl_tile *t = job->t;
    int64_t ntasks = tl_map_tasks(&t->space, t->ns, &job->chunk);

    if (t->row > 0) { /* whole rows */
        job->chunk = tl_ceil_div(job->chunk, t->row) * t->row;
        ntasks = tl_ceil_div(t->space.n, job->chunk);
    }
    tl_cpu_run(k, ntasks, run_task, job);
}

/* ---- what integers must not do ------------------------------------------- */

/* Where element `at` of the program lies in the step's own shape. */
static tl_place_text place_in(const tl_tile *t, const tl_tile_check *c,
                              int64_t at)
{
    int64_t index[TL_MAX_RANK], size[TL_MAX_RANK], own = 0;
    tl_tensor shape = {.rank = c->rank, .size = size};
    int added = t->rank - c->rank;

    for (int i = t->rank - 1; i >= 0; i--) {
        index[i] = at % t->size[i];
        at /= t->size[i];
    }
    for (int i = 0; i < c->rank; i++) {
        size[i] = c->size[i];
        own = own * size[i] + (size[i] == 1 ? 0 : index[i + added]);
    }
    return tl_cpu_place(&shape, own);
}

tl_status tl_tile_check_all(const tl_tile *t, tl_kernel_ctx *k)
{
    tile_job job = {.t = t, .checks = true, .bad = UINT64_MAX};
    uint64_t bad;

    if (t->nchecks == 0 || t->space.n == 0) {
        return TL_OK;
    }
    run_job(k, &job);
    bad = atomic_load(&job.bad);
    for (int i = 0; i < t->nchecks && bad != UINT64_MAX; i++) {
        if (t->checks[i].step == bad >> PLACE_BITS) {
            int64_t at = (int64_t)(bad & ((1ull << PLACE_BITS) - 1));

            return tl_map_refuse(k->diag, t->checks[i].op,
                                 (tl_dtype)t->checks[i].to,
                                 place_in(t, &t->checks[i], at).s);
        }
    }
    return TL_OK;
}

/* ---- a run --------------------------------------------------------------- */

void tl_tile_refresh(const tl_tile *t, tl_kernel_ctx *k)
{
    for (int i = 0; i < t->nto; i++) {
        ((tl_tile *)(uintptr_t)t)->data[i] = tl_tensor_data(t->to[i]);
    }
    for (int i = 0; i < t->noperands; i++) {
        tl_tile_operand *o = &t->operand[i];
        const tl_tensor *x = t->in[o->tensor];
        tl_layout to;

        o->o.data = tl_tensor_data(x);
        if (o->copy != NULL) {
            tl_layout_row_major(&to, x->rank, x->size);
            tl_cpu_copy_elements(k, o->o.width, x->rank, x->size, o->copy,
                                 to.stride, o->o.data, x->stride);
            o->o.data = o->copy;
        }
    }
}

/* All pieces, each worker with room enough. */
static tl_status run_pieces(const tl_tile *t, tl_kernel_ctx *k)
{
    tile_job job = {.t = t};
    tl_storage *rooms = NULL;

    if (t->room > TL_TILE_ROOM) {
        TL_TRY(tl_cpu_scratch(k, tl_threads_count(k->threads),
                              (size_t)t->room, &rooms));
        job.rooms = tl_storage_data(rooms);
    }
    run_job(k, &job);
    tl_storage_unref(rooms);
    return TL_OK;
}

tl_status tl_tile_run(const tl_tile *t, tl_kernel_ctx *k)
{
    tl_tile_refresh(t, k);
    TL_TRY(tl_tile_loss_begin(t, k->diag));
    TL_TRY(tl_tile_check_all(t, k));
    if (t->space.n > 0) {
        TL_TRY(run_pieces(t, k));
    }
    tl_tile_loss_end(t);
    return TL_OK;
}
