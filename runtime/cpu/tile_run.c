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

/* The codes of a list for the n elements at `pos`; a check that fails ends
 * them. */
static void run_codes(tl_tile_runner *r, const tl_tile_code *c, int count,
                      int64_t pos, const int64_t *coords, int64_t n)
{
    const char **at = r->at;

    for (const tl_tile_code *end = c + count; c < end; c++) {
        char *to = (char *)(uintptr_t)at[c->to];

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
            at[c->to] =
                tl_map_piece(&r->t->space, &r->t->operand[c->item].o, pos,
                             coords, n, r->room + r->t->place[c->to].offset);
            break;
        case TL_TILE_CHECK:
            if (!holds(r, c, pos, n)) {
                return;
            }
            break;
        }
    }
}

/* ---- a range ------------------------------------------------------------- */

void tl_tile_open(tl_tile_runner *r, const tl_tile *t, int64_t n)
{
    r->t = t;
    r->window = NULL;
    r->bad = NULL;
    n = (n < t->space.longest ? n : t->space.longest) + t->space.period - 1;
    for (int i = 0; i < t->nplaces; i++) {
        r->at[i] = r->room + t->place[i].offset;
    }
    for (int i = 0; i < t->noperands; i++) {
        const tl_tile_operand *o = &t->operand[i];

        if (o->filled) {
            tl_map_fill_once(&t->space, &o->o, n,
                             r->room + t->place[o->place].offset);
        }
    }
    run_codes(r, t->once, t->nonce, 0, NULL, n);
}

/* Places that move with the piece. */
static void move_places(tl_tile_runner *r, int64_t pos)
{
    const tl_tile *t = r->t;
    int64_t phase = t->space.period > 1 ? pos % t->space.period : 0;

    for (int i = 0; i < t->nplaces; i++) {
        const tl_tile_place *p = &t->place[i];

        switch ((tl_tile_where)p->where) {
        case TL_TILE_INPUT:
            r->at[i] = t->operand[p->item].o.data + pos * p->width;
            break;
        case TL_TILE_RESULT:
            r->at[i] = t->data[p->item] + pos * p->width;
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
    int64_t coords[TL_MAX_RANK], n;

    for (int64_t pos = lo; pos < hi; pos += n) {
        n = tl_map_piece_length(&r->t->space, pos, hi, coords);
        move_places(r, pos);
        run_codes(r, list, count, pos, coords, n);
    }
}

void tl_tile_range(tl_tile_runner *r, int64_t lo, int64_t hi)
{
    run_list(r, r->t->body, r->t->nbody, lo, hi);
}

/* ---- tasks --------------------------------------------------------------- */

typedef struct tile_job {
    const tl_tile *t;
    int64_t chunk;
    bool checks;
    _Atomic uint64_t bad;
} tile_job;

static void run_task(void *arg, int64_t task, int worker)
{
    tile_job *job = arg;
    const tl_tile *t = job->t;
    int64_t lo = task * job->chunk, hi = lo + job->chunk;
    tl_tile_runner r;

    (void)worker;
    hi = hi < t->space.n ? hi : t->space.n;
    tl_tile_open(&r, t, hi - lo);
    r.bad = &job->bad;
    if (job->checks) {
        run_list(&r, t->check, t->ncheck, lo, hi);
    } else {
        tl_tile_range(&r, lo, hi);
    }
}

static void run_job(tl_kernel_ctx *k, tile_job *job)
{
    int64_t ntasks = tl_map_tasks(&job->t->space, job->t->ns, &job->chunk);

    if (job->t->space.n > 0) {
        tl_cpu_run(k, ntasks, run_task, job);
    }
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

    if (t->nchecks == 0) {
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

tl_status tl_tile_run(const tl_tile *t, tl_kernel_ctx *k)
{
    tile_job job = {.t = t};

    tl_tile_refresh(t, k);
    TL_TRY(tl_tile_check_all(t, k));
    run_job(k, &job);
    return TL_OK;
}
