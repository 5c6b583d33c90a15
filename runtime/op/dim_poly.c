/* dim_poly.c - interned atoms, monomials and polynomials.
 *
 * A polynomial is a sum of terms in the order of tl_mono_compare with no zero
 * coefficient.  It is built in a tl_poly_work, which keeps that order, and
 * then interned, so equality of polynomials is equality of words. */
#include "runtime/op/dim.h"

#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/op/dim_impl.h"

/* ---- interning --------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

typedef bool same_fn(const tl_dim_object *a, const void *key);

/* The slot that holds an equal object, or the free one where it belongs. */
static size_t set_slot(const tl_dim_set *set, uint64_t hash, same_fn *same,
                       const void *key)
{
    size_t i = (size_t)hash & (set->cap - 1);

    while (set->slots[i] && !(set->slots[i]->hash == hash && same &&
                              same(set->slots[i], key))) {
        i = (i + 1) & (set->cap - 1);
    }
    return i;
}

static tl_status set_reserve(tl_dim_set *set, tl_diag *diag)
{
    tl_dim_set old = *set;

    if (2 * (set->count + 1) <= set->cap) {
        return TL_OK;
    }
    set->cap = old.cap ? 2 * old.cap : 64;
    set->slots = tl_calloc(set->cap, sizeof(*set->slots));
    if (!set->slots) {
        *set = old;
        return tl_fail_memory(diag, "symbolic sizes",
                              2 * (old.cap + 32) * sizeof(*set->slots));
    }
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i]) {
            set->slots[set_slot(set, old.slots[i]->hash, NULL, NULL)] =
                old.slots[i];
        }
    }
    tl_free(old.slots);
    return TL_OK;
}

static tl_status new_object(tl_dims *dims, size_t size, void **out,
                            tl_diag *diag)
{
    *out = tl_arena_alloc(&dims->arena, size);
    return *out ? TL_OK : tl_fail_memory(diag, "symbolic sizes", size);
}

tl_status tl_dims_new(tl_dims **out, tl_diag *diag)
{
    tl_dims *dims = tl_calloc(1, sizeof(*dims));

    if (!dims) {
        return tl_fail_memory(diag, "symbolic sizes", sizeof(*dims));
    }
    tl_arena_init(&dims->arena);
    *out = dims;
    return TL_OK;
}

void tl_dims_free(tl_dims *dims)
{
    if (!dims) {
        return;
    }
    tl_free(dims->atoms.slots);
    tl_free(dims->monos.slots);
    tl_free(dims->polys.slots);
    tl_free(dims->facts.items);
    tl_free(dims->rules.items);
    tl_free(dims->opened.items);
    tl_arena_fini(&dims->arena);
    tl_free(dims);
}

/* ---- atoms ------------------------------------------------------------- */

static bool same_atom(const tl_dim_object *object, const void *key)
{
    const tl_atom *a = (const tl_atom *)object;
    const tl_atom *b = key;

    if (a->kind != b->kind || a->kind == TL_ATOM_FRESH) {
        return false;
    }
    if (a->kind == TL_ATOM_NAME) {
        return strcmp(a->name, b->name) == 0;
    }
    return tl_dim_same(a->p, b->p) && tl_dim_same(a->q, b->q);
}

static uint64_t atom_hash(const tl_atom *a)
{
    uint64_t h = mix(1, (uint64_t)a->kind);

    if (a->kind == TL_ATOM_DIV) {
        return mix(mix(h, a->p.word), a->q.word);
    }
    for (const char *s = a->name; *s; s++) {
        h = mix(h, (unsigned char)*s);
    }
    return h;
}

tl_status tl_dim_get_atom(tl_dims *dims, tl_atom key, const tl_atom **out,
                          tl_diag *diag)
{
    tl_atom *atom;
    void *memory;
    size_t slot;

    TL_TRY(set_reserve(&dims->atoms, diag));
    key.object.hash = atom_hash(&key);
    slot = set_slot(&dims->atoms, key.object.hash, same_atom, &key);
    if (!dims->atoms.slots[slot]) {
        TL_TRY(new_object(dims, sizeof(*atom), &memory, diag));
        atom = memory;
        if (key.name) {
            key.name = tl_arena_strndup(&dims->arena, key.name,
                                        strlen(key.name));
            if (!key.name) {
                return tl_fail_memory(diag, "symbolic sizes", 64);
            }
        }
        key.id = dims->natoms++;
        *atom = key;
        dims->atoms.slots[slot] = &atom->object;
        dims->atoms.count++;
    }
    *out = (const tl_atom *)dims->atoms.slots[slot];
    return TL_OK;
}

tl_status tl_dim_atom(tl_dims *dims, const char *name, int64_t least,
                      tl_dim *out, tl_diag *diag)
{
    tl_atom key = {.kind = TL_ATOM_NAME, .name = name, .least = least};
    const tl_atom *atom;

    TL_TRY(tl_dim_get_atom(dims, key, &atom, diag));
    return tl_dim_of(dims, atom, out, diag);
}

tl_status tl_dim_fresh(tl_dims *dims, const char *why, tl_dim *out,
                       tl_diag *diag)
{
    tl_atom key = {.kind = TL_ATOM_FRESH, .name = why ? why : ""};
    const tl_atom *atom;

    TL_TRY(tl_dim_get_atom(dims, key, &atom, diag));
    return tl_dim_of(dims, atom, out, diag);
}

/* ---- monomials --------------------------------------------------------- */

typedef struct mono_key {
    uint64_t hash;
    uint32_t degree;
    const tl_atom *const *atom;
} mono_key;

static bool same_mono(const tl_dim_object *object, const void *key)
{
    const tl_mono *a = (const tl_mono *)object;
    const mono_key *b = key;

    return a->degree == b->degree &&
           memcmp(a->atom, b->atom, a->degree * sizeof(a->atom[0])) == 0;
}

static tl_status get_mono(tl_dims *dims, const tl_atom *const *atom,
                          uint32_t degree, const tl_mono **out,
                          tl_diag *diag)
{
    mono_key key = {mix(2, degree), degree, atom};
    tl_mono *mono;
    void *memory;
    size_t slot;

    if (degree == 0) {
        *out = NULL;
        return TL_OK;
    }
    TL_TRY(set_reserve(&dims->monos, diag));
    for (uint32_t i = 0; i < degree; i++) {
        key.hash = mix(key.hash, (uintptr_t)atom[i]);
    }
    slot = set_slot(&dims->monos, key.hash, same_mono, &key);
    if (!dims->monos.slots[slot]) {
        size_t bytes = degree * sizeof(mono->atom[0]);

        TL_TRY(new_object(dims, sizeof(*mono) + bytes, &memory, diag));
        mono = memory;
        mono->object.hash = key.hash;
        mono->degree = degree;
        memcpy(mono->atom, atom, bytes);
        dims->monos.slots[slot] = &mono->object;
        dims->monos.count++;
    }
    *out = (const tl_mono *)dims->monos.slots[slot];
    return TL_OK;
}

tl_status tl_mono_of(tl_dims *dims, const tl_atom *atom, const tl_mono **out,
                     tl_diag *diag)
{
    return get_mono(dims, &atom, 1, out, diag);
}

int tl_mono_compare(const tl_mono *a, const tl_mono *b)
{
    uint32_t da = a ? a->degree : 0;
    uint32_t db = b ? b->degree : 0;

    if (a == b) {
        return 0;
    }
    if (da != db) {
        return da > db ? -1 : 1;
    }
    for (uint32_t i = 0; i < da; i++) {
        if (a->atom[i] != b->atom[i]) {
            return a->atom[i]->id < b->atom[i]->id ? -1 : 1;
        }
    }
    return 0;
}

tl_status tl_mono_mul(tl_dims *dims, const tl_mono *a, const tl_mono *b,
                      const tl_mono **out, tl_diag *diag)
{
    const tl_atom *atom[TL_DIM_MAX_DEGREE];
    uint32_t i = 0, j = 0, n = 0;

    if (!a || !b) {
        *out = a ? a : b;
        return TL_OK;
    }
    if (a->degree + b->degree > TL_DIM_MAX_DEGREE) {
        return tl_fail(diag, TL_E0307, "a size expression of degree %u is "
                       "more than %d", a->degree + b->degree,
                       TL_DIM_MAX_DEGREE);
    }
    while (i < a->degree || j < b->degree) {
        bool left = j == b->degree ||
                    (i < a->degree && a->atom[i]->id <= b->atom[j]->id);

        atom[n++] = left ? a->atom[i++] : b->atom[j++];
    }
    return get_mono(dims, atom, n, out, diag);
}

tl_status tl_mono_div(tl_dims *dims, const tl_mono *a, const tl_mono *b,
                      bool *ok, const tl_mono **out, tl_diag *diag)
{
    const tl_atom *atom[TL_DIM_MAX_DEGREE];
    uint32_t i = 0, j = 0, n = 0;

    *ok = true;
    if (!b) {
        *out = a;
        return TL_OK;
    }
    while (a && i < a->degree) {
        if (j < b->degree && a->atom[i] == b->atom[j]) {
            i++;
            j++;
        } else {
            atom[n++] = a->atom[i++];
        }
    }
    *ok = j == b->degree;
    return *ok ? get_mono(dims, atom, n, out, diag) : TL_OK;
}

/* ---- polynomials ------------------------------------------------------- */

tl_status tl_dim_overflow(tl_diag *diag)
{
    return tl_fail(diag, TL_E0307, "a size expression overflows 62 bits");
}

void tl_dim_terms(tl_dim d, tl_terms *out)
{
    if (tl_dim_is_num(d)) {
        out->constant = (tl_term){tl_dim_value(d), NULL};
        out->term = &out->constant;
        out->n = out->constant.coef != 0;
    } else {
        out->term = tl_dim_poly(d)->term;
        out->n = (int)tl_dim_poly(d)->nterms;
    }
}

/* Terms stay sorted, so that finishing has nothing to do. */
tl_status tl_work_add(tl_poly_work *w, int64_t coef, const tl_mono *mono,
                      tl_diag *diag)
{
    int at = 0, order = 1;

    while (at < w->n &&
           (order = tl_mono_compare(mono, w->term[at].mono)) > 0) {
        at++;
    }
    if (coef == 0) {
        return TL_OK;
    }
    if (at < w->n && order == 0) {
        int64_t sum;

        if (!tl_add_i64(&sum, w->term[at].coef, coef) || !tl_dim_fits(sum)) {
            return tl_dim_overflow(diag);
        }
        w->term[at].coef = sum;
        if (sum == 0) {
            w->n--;
            memmove(&w->term[at], &w->term[at + 1],
                    (size_t)(w->n - at) * sizeof(w->term[0]));
        }
        return TL_OK;
    }
    if (w->n == TL_DIM_MAX_TERMS || !tl_dim_fits(coef)) {
        return w->n == TL_DIM_MAX_TERMS
                   ? tl_fail(diag, TL_E0307,
                             "a size expression has more than %d terms",
                             TL_DIM_MAX_TERMS)
                   : tl_dim_overflow(diag);
    }
    memmove(&w->term[at + 1], &w->term[at],
            (size_t)(w->n - at) * sizeof(w->term[0]));
    w->term[at] = (tl_term){coef, mono};
    w->n++;
    return TL_OK;
}

tl_status tl_work_add_dim(tl_dims *dims, tl_poly_work *w, int64_t coef,
                          const tl_mono *mono, tl_dim d, tl_diag *diag)
{
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m;
        int64_t c;

        if (!tl_mul_i64(&c, coef, t.term[i].coef) || !tl_dim_fits(c)) {
            return tl_dim_overflow(diag);
        }
        TL_TRY(tl_mono_mul(dims, mono, t.term[i].mono, &m, diag));
        TL_TRY(tl_work_add(w, c, m, diag));
    }
    return TL_OK;
}

static bool same_poly(const tl_dim_object *object, const void *key)
{
    const tl_poly *a = (const tl_poly *)object;
    const tl_poly_work *b = key;

    if ((int)a->nterms != b->n) {
        return false;
    }
    for (int i = 0; i < b->n; i++) {
        if (a->term[i].coef != b->term[i].coef ||
            a->term[i].mono != b->term[i].mono) {
            return false;
        }
    }
    return true;
}

tl_status tl_work_finish(tl_dims *dims, tl_poly_work *w, tl_dim *out,
                         tl_diag *diag)
{
    uint64_t hash = mix(3, (uint64_t)w->n);
    tl_poly *poly;
    void *memory;
    size_t slot, bytes = (size_t)w->n * sizeof(w->term[0]);

    if (w->n == 0 || !w->term[0].mono) {
        *out = tl_dim_num(w->n ? w->term[0].coef : 0);
        return TL_OK;
    }
    TL_TRY(set_reserve(&dims->polys, diag));
    for (int i = 0; i < w->n; i++) {
        hash = mix(mix(hash, (uint64_t)w->term[i].coef),
                   (uintptr_t)w->term[i].mono);
    }
    slot = set_slot(&dims->polys, hash, same_poly, w);
    if (!dims->polys.slots[slot]) {
        TL_TRY(new_object(dims, sizeof(*poly) + bytes, &memory, diag));
        poly = memory;
        poly->object.hash = hash;
        poly->nterms = (uint32_t)w->n;
        memcpy(poly->term, w->term, bytes);
        dims->polys.slots[slot] = &poly->object;
        dims->polys.count++;
    }
    *out = (tl_dim){(uintptr_t)dims->polys.slots[slot]};
    return TL_OK;
}

tl_status tl_dim_of(tl_dims *dims, const tl_atom *atom, tl_dim *out,
                    tl_diag *diag)
{
    tl_poly_work w = {.n = 1, .term = {{1, NULL}}};

    TL_TRY(tl_mono_of(dims, atom, &w.term[0].mono, diag));
    TL_TRY(tl_work_finish(dims, &w, out, diag));
    ((tl_atom *)atom)->self = *out; // it lies in the arena of `dims`
    return TL_OK;
}

const tl_atom *tl_dim_as_atom(tl_dim d)
{
    const tl_poly *p;

    if (tl_dim_is_num(d)) {
        return NULL;
    }
    p = tl_dim_poly(d);
    return p->nterms == 1 && p->term[0].coef == 1 &&
                   p->term[0].mono->degree == 1
               ? p->term[0].mono->atom[0]
               : NULL;
}

bool tl_dim_is_atom(tl_dim d)
{
    return tl_dim_as_atom(d) != NULL;
}
