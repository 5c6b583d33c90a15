/* graph_intern.c - sizes, shapes, atoms, attributes and constants of a graph,
 * each kept once.
 *
 * An index finds an equal item by hash.  It is a cache: what it does not know
 * is appended. */
#include <stddef.h>
#include <string.h>

#include "compiler/graph_impl.h"
#include "runtime/base/check.h"
#include "runtime/base/map.h"
#include "runtime/base/mem.h"
#include "runtime/op/dim_code.h"

/* ---- the index ---------------------------------------------------------- */

typedef bool same_fn(const tl_graph *g, uint32_t item, const void *key);

static tl_status index_room(tl_gindex *x, tl_diag *diag)
{
    tl_gindex res = {.cap = x->cap ? 2 * x->cap : 32, .count = x->count};

    if (2 * (x->count + 1) <= x->cap) {
        return TL_OK;
    }
    res.slots = tl_calloc(res.cap, sizeof(*res.slots));
    if (!res.slots) {
        return tl_fail_memory(diag, "a graph", res.cap * sizeof(*res.slots));
    }
    for (uint32_t i = 0; i < x->cap; i++) {
        uint32_t at = (uint32_t)(x->slots[i] >> 32) & (res.cap - 1);

        if (x->slots[i] == 0) {
            continue;
        }
        while (res.slots[at] != 0) {
            at = (at + 1) & (res.cap - 1);
        }
        res.slots[at] = x->slots[i];
    }
    tl_free(x->slots);
    *x = res;
    return TL_OK;
}

/* The slot of an equal item, or the free one for it; there is room. */
static uint64_t *index_slot(const tl_gindex *x, uint64_t hash, same_fn *same,
                            const tl_graph *g, const void *key)
{
    uint32_t high = (uint32_t)(hash >> 32), at = high & (x->cap - 1);

    while (x->slots[at] != 0 &&
           !((uint32_t)(x->slots[at] >> 32) == high &&
             same(g, (uint32_t)x->slots[at] - 1, key))) {
        at = (at + 1) & (x->cap - 1);
    }
    return &x->slots[at];
}

static void index_set(tl_gindex *x, uint64_t *slot, uint64_t hash,
                      uint32_t item)
{
    *slot = (hash >> 32 << 32) | (item + 1);
    x->count++;
}

/* ---- sizes -------------------------------------------------------------- */

typedef struct code_key {
    const int64_t *code;
    size_t len;
} code_key;

static bool same_code(const tl_graph *g, uint32_t item, const void *key)
{
    const tl_gsize *s = &g->dims.items[item];
    const code_key *k = key;

    return s->len == k->len && memcmp(&g->code.items[s->code], k->code,
                                      k->len * sizeof(*k->code)) == 0;
}

tl_status tl_graph_size(tl_graph *g, const int64_t *code, size_t len,
                        uint32_t *out, tl_diag *diag)
{
    uint64_t hash = tl_hash_bytes(code, len * sizeof(*code), 1), *slot;
    code_key key = {code, len};
    tl_gsize size = {.len = (uint32_t)len};

    TL_TRY(index_room(&g->size_index, diag));
    slot = index_slot(&g->size_index, hash, same_code, g, &key);
    if (*slot == 0) {
        TL_TRY(TL_GROOM(&g->code, len, diag));
        TL_TRY(TL_GROOM(&g->dims, 1, diag));
        size.code = TL_GPUT(&g->code, code, len);
        index_set(&g->size_index, slot, hash, TL_GPUT(&g->dims, &size, 1));
    }
    *out = (uint32_t)*slot - 1;
    return TL_OK;
}

tl_status tl_graph_size_num(tl_graph *g, int64_t n, uint32_t *out,
                            tl_diag *diag)
{
    const int64_t code[2] = {TL_DC_NUM, n};

    return tl_graph_size(g, code, 2, out, diag);
}

bool tl_graph_size_is_num(const tl_graph *g, uint32_t size, int64_t *out)
{
    const tl_gsize *s = &g->dims.items[size];

    if (s->len != 2 || g->code.items[s->code] != TL_DC_NUM) {
        return false;
    }
    *out = g->code.items[s->code + 1];
    return true;
}

tl_status tl_graph_size_eval(const tl_graph *g, uint32_t size,
                             const int64_t *atoms, int64_t *out,
                             tl_diag *diag)
{
    const tl_gsize *s = &g->dims.items[size];

    return tl_dim_code_eval(&g->code.items[s->code], s->len, atoms,
                            g->atoms.len, out, diag);
}

/* ---- runs of sizes ------------------------------------------------------ */

typedef struct run_key {
    const uint32_t *sizes;
    uint32_t len;
} run_key;

static bool same_run(const tl_graph *g, uint32_t item, const void *key)
{
    const tl_grun *r = &g->runs.items[item];
    const run_key *k = key;

    return r->len == k->len && memcmp(&g->sizes.items[r->first], k->sizes,
                                      k->len * sizeof(*k->sizes)) == 0;
}

tl_status tl_graph_run(tl_graph *g, const uint32_t *sizes, uint32_t n,
                       uint32_t *out, tl_diag *diag)
{
    uint64_t hash = tl_hash_bytes(sizes, n * sizeof(*sizes), 2), *slot;
    run_key key = {sizes, n};
    tl_grun run = {.len = n};

    if (n == 0) {
        *out = 0;
        return TL_OK;
    }
    TL_TRY(index_room(&g->run_index, diag));
    slot = index_slot(&g->run_index, hash, same_run, g, &key);
    if (*slot == 0) {
        TL_TRY(TL_GROOM(&g->sizes, n, diag));
        TL_TRY(TL_GROOM(&g->runs, 1, diag));
        run.first = TL_GPUT(&g->sizes, sizes, n);
        index_set(&g->run_index, slot, hash, TL_GPUT(&g->runs, &run, 1));
    }
    *out = g->runs.items[(uint32_t)*slot - 1].first;
    return TL_OK;
}

tl_status tl_graph_shape(tl_graph *g, const uint32_t *sizes, int rank,
                         uint32_t *out, tl_diag *diag)
{
    return tl_graph_run(g, sizes, (uint32_t)rank, out, diag);
}

/* ---- atoms -------------------------------------------------------------- */

static bool same_atom(const tl_graph *g, uint32_t item, const void *key)
{
    return memcmp(&g->atoms.items[item], key, sizeof(tl_gatom)) == 0;
}

tl_status tl_graph_atom(tl_graph *g, tl_gatom atom, uint32_t *out,
                        tl_diag *diag)
{
    uint64_t hash = tl_hash_bytes(&atom, sizeof(atom), 3), *slot;

    TL_TRY(index_room(&g->atom_index, diag));
    slot = index_slot(&g->atom_index, hash, same_atom, g, &atom);
    if (*slot == 0) {
        TL_TRY(TL_GROOM(&g->atoms, 1, diag));
        index_set(&g->atom_index, slot, hash, TL_GPUT(&g->atoms, &atom, 1));
    }
    *out = (uint32_t)*slot - 1;
    return TL_OK;
}

/* ---- attributes --------------------------------------------------------- */

typedef struct attrs_key {
    tl_gattrs at; /* dims as they are kept; binds 0 */
    const tl_gbind *binds;
} attrs_key;

static bool same_attrs(const tl_graph *g, uint32_t item, const void *key)
{
    const tl_gattrs *at = &g->attrs.items[item];
    const attrs_key *k = key;

    return memcmp(at, &k->at, offsetof(tl_gattrs, binds)) == 0 &&
           (at->nbinds == 0 || memcmp(&g->binds.items[at->binds], k->binds,
                                      at->nbinds * sizeof(*k->binds)) == 0);
}

tl_status tl_graph_attrs(tl_graph *g, const tl_gattrs *at,
                         const uint32_t *dims, const tl_gbind *binds,
                         uint32_t *out, tl_diag *diag)
{
    attrs_key key = {*at, binds};
    uint64_t hash, *slot;

    key.at.binds = key.at.pad = 0;
    for (uint32_t k = 0; k < at->nbinds; k++) { // what the run overwrites
        key.at.i[binds[k].index % 4] *= binds[k].field != 'i';
        key.at.f[binds[k].index % 6] =
            binds[k].field == 'f' ? 0 : key.at.f[binds[k].index % 6];
    }
    TL_TRY(tl_graph_run(g, dims, at->ndims, &key.at.dims, diag));
    hash = tl_hash_bytes(&key.at, offsetof(tl_gattrs, binds), 4);
    if (at->nbinds > 0) {
        hash = tl_hash_bytes(binds, at->nbinds * sizeof(*binds), hash);
    }
    TL_TRY(index_room(&g->attrs_index, diag));
    slot = index_slot(&g->attrs_index, hash, same_attrs, g, &key);
    if (*slot == 0) {
        TL_TRY(TL_GROOM(&g->attrs, 1, diag));
        TL_TRY(TL_GROOM(&g->binds, at->nbinds, diag));
        if (at->nbinds > 0) {
            key.at.binds = TL_GPUT(&g->binds, binds, at->nbinds);
        }
        index_set(&g->attrs_index, slot, hash,
                  TL_GPUT(&g->attrs, &key.at, 1));
    }
    *out = (uint32_t)*slot - 1;
    return TL_OK;
}

/* ---- constants ---------------------------------------------------------- */

typedef struct bytes_key {
    const void *bytes;
    size_t len;
} bytes_key;

static bool same_bytes(const tl_graph *g, uint32_t item, const void *key)
{
    const tl_gconst *c = &g->consts.items[item];
    const bytes_key *k = key;

    return c->len == k->len &&
           (k->len == 0 ||
            memcmp(&g->bytes.items[c->bytes], k->bytes, k->len) == 0);
}

tl_status tl_graph_const(tl_graph *g, const void *bytes, size_t len,
                         uint32_t *out, tl_diag *diag)
{
    uint64_t hash = tl_hash_bytes(bytes, len, 5), *slot;
    bytes_key key = {bytes, len};
    tl_gconst c = {.len = (uint32_t)len};

    TL_TRY(index_room(&g->const_index, diag));
    slot = index_slot(&g->const_index, hash, same_bytes, g, &key);
    if (*slot == 0) {
        TL_TRY(TL_GROOM(&g->bytes, len, diag)); // refuses 2^31 bytes
        TL_TRY(TL_GROOM(&g->consts, 1, diag));
        c.bytes = TL_GPUT(&g->bytes, bytes, len);
        index_set(&g->const_index, slot, hash, TL_GPUT(&g->consts, &c, 1));
    }
    *out = (uint32_t)*slot - 1;
    return TL_OK;
}
