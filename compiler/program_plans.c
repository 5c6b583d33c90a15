/* program_plans.c - which plan a run replays: keys and the table of plans.
 *
 * A key is the early atoms, which inputs are given away, and the strides of
 * inputs that are not row-major.  The plan used last is compared first, then
 * the few others by their hashes. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>

#include "compiler/plan_impl.h"
#include "runtime/base/map.h"
#include "runtime/base/mem.h"

/* ---- keys --------------------------------------------------------------- */

static size_t donate_words(const tl_program *p)
{
    return (p->g->inputs.len + sizeof(int64_t) - 1) / sizeof(int64_t);
}

static tl_status key_room(tl_program *p, size_t words, tl_diag *diag)
{
    int64_t *key;

    if (words <= p->key_cap) {
        return TL_OK;
    }
    key = tl_realloc(p->key, words * sizeof(*key));
    if (!key) {
        return tl_fail_memory(diag, "the key of a plan",
                              words * sizeof(*key));
    }
    p->key = key;
    p->key_cap = words;
    return TL_OK;
}

static bool all_row_major(const tl_program *p, const tl_run *run)
{
    bool settled = run->held && p->settled;
    const uint32_t *input = settled ? p->loose : p->tensors;
    uint32_t n = settled ? p->nloose : p->ntensors;
    uint32_t flags = TL_TENSOR_CONTIGUOUS;

    for (uint32_t i = 0; i < n; i++) {
        flags &= run->tensors[input[i]]->flags;
    }
    return flags != 0;
}

static tl_status add_strides(tl_program *p, const tl_run *run, tl_diag *diag)
{
    for (uint32_t i = 0; i < p->ntensors; i++) {
        const tl_tensor *t = run->tensors[p->tensors[i]];

        if (tl_tensor_contiguous(t)) {
            continue;
        }
        TL_TRY(key_room(p, p->key_len + 1 + (size_t)t->rank, diag));
        p->key[p->key_len++] = i;
        memcpy(p->key + p->key_len, t->stride,
               (size_t)t->rank * sizeof(*t->stride));
        p->key_len += (size_t)t->rank;
    }
    return TL_OK;
}

static tl_status make_key(tl_program *p, const tl_run *run, tl_diag *diag)
{
    size_t words = p->natoms + donate_words(p);

    TL_TRY(key_room(p, words + 1, diag));
    for (uint32_t i = 0; i < p->natoms; i++) {
        p->key[i] = p->env.atom[p->atoms[i]];
    }
    if (words > p->natoms) {
        p->key[words - 1] = 0;
        if (run->donate) {
            memcpy(p->key + p->natoms, run->donate, p->g->inputs.len);
        } else {
            memset(p->key + p->natoms, 0,
                   donate_words(p) * sizeof(*p->key));
        }
    }
    p->key_len = words;
    return all_row_major(p, run) ? TL_OK : add_strides(p, run, diag);
}

/* ---- the table ---------------------------------------------------------- */

static bool has_key(const tl_plan *pl, const tl_program *p)
{
    return pl->key_len == p->key_len &&
           memcmp(pl->key, p->key, p->key_len * sizeof(*p->key)) == 0;
}

/* Move plan i to the front. */
static void bring_forward(tl_program *p, uint32_t i)
{
    tl_plan *pl = p->plans[i];

    memmove(p->plans + 1, p->plans, i * sizeof(tl_plan *));
    p->plans[0] = pl;
}

static bool find_plan(tl_program *p, uint64_t hash)
{
    for (uint32_t i = 0; i < p->nplans; i++) {
        if (p->plans[i]->hash == hash && has_key(p->plans[i], p)) {
            bring_forward(p, i);
            return true;
        }
    }
    return false;
}

/* Take a copy of the key for a new plan and put the plan first; the one not
 * used for longest goes. */
static tl_status keep_plan(tl_program *p, tl_plan *pl, uint64_t hash,
                           tl_diag *diag)
{
    size_t bytes = p->key_len * sizeof(*p->key);

    pl->key = tl_malloc(bytes + 1);
    if (!pl->key) {
        return tl_fail_memory(diag, "the key of a plan", bytes);
    }
    memcpy(pl->key, p->key, bytes);
    pl->key_len = p->key_len;
    pl->hash = hash;
    if (p->nplans == TL_PROGRAM_PLANS) {
        tl_plan *last = p->plans[--p->nplans];

        p->settled = last == p->settled ? NULL : p->settled;
        tl_plan_free(last);
    }
    p->plans[p->nplans++] = pl;
    bring_forward(p, p->nplans - 1);
    return TL_OK;
}

tl_status tl_program_find_plan(tl_program *p, tl_rt *rt, const tl_run *run,
                               tl_plan **out)
{
    tl_plan *pl;
    uint64_t hash;
    tl_status st;

    TL_TRY(make_key(p, run, rt->diag));
    if (p->nplans > 0 && has_key(p->plans[0], p)) {
        *out = p->plans[0];
        return TL_OK;
    }
    hash = tl_hash_bytes(p->key, p->key_len * sizeof(*p->key), 0);
    if (find_plan(p, hash)) {
        *out = p->plans[0];
        return TL_OK;
    }
    TL_TRY(tl_plan_new(&pl, p, rt, run));
    if (pl) {
        st = keep_plan(p, pl, hash, rt->diag);
        if (st != TL_OK) {
            tl_plan_free(pl);
            return st;
        }
    }
    *out = pl;
    return TL_OK;
}

void tl_program_drop_plans(tl_program *p)
{
    p->settled = NULL;
    while (p->nplans > 0) {
        tl_plan_free(p->plans[--p->nplans]);
    }
    tl_storage_unref(p->arena);
    p->arena = NULL;
}
