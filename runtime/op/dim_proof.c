/* dim_proof.c - is a size equal to, or at most, another?
 *
 * Equality is proved by normal forms with facts applied, `<=` by lower bounds
 * of atoms, facts and the bounds of floor division.  Refutation draws sizes
 * of 2 or more for the atoms until every fact holds and the claim does not.
 * The generator is fixed: a program is rejected with the same example each
 * time. */
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/size.h"
#include "runtime/op/dim_impl.h"

enum {
    DRAWS = 32, /* assignments that satisfy every fact */
    TRIES_A_DRAW = 8,
    MAX_LE_FACTS = 3, /* added up in one proof */
    MAX_EVAL_DEPTH = 256
};

/* ---- counterexamples --------------------------------------------------- */

/* An assignment: the value of each atom evaluated so far. */
typedef struct trial {
    const tl_dims *dims;
    uint64_t seed;
    int64_t *value; /* by atom id */
    bool *known;
    bool *shown; /* printed as part of an example */
    int depth;
} trial;

static bool eval(trial *t, tl_dim d, int64_t *out);

/* splitmix64 of (draw, atom): small sizes mostly, so that facts hold. */
static int64_t draw(const trial *t, const tl_atom *x)
{
    uint64_t z = (t->seed + 1) * 0x9e3779b97f4a7c15u +
                 x->id * 0xd1b54a32d192ed03u;
    int64_t least = x->kind == TL_ATOM_NAME && x->least > 2 ? x->least : 2;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return least + (int64_t)((z >> 8) % ((z & 7) == 0 ? 61 : 9));
}

static bool eval_division(trial *t, const tl_atom *x, int64_t *out)
{
    int64_t p, q;

    if (!eval(t, x->p, &p) || !eval(t, x->q, &q) || q == 0) {
        return false;
    }
    *out = tl_floor_div(p, q);
    return true;
}

static bool eval_atom(trial *t, const tl_atom *x, int64_t *out)
{
    const tl_rule *rule = tl_dims_rule_of_atom(t->dims, x);
    bool ok = true;

    if (t->known[x->id]) {
        *out = t->value[x->id];
        return true;
    }
    if (rule) {
        ok = eval(t, rule->to, out);
    } else if (x->kind == TL_ATOM_DIV && !tl_dims_is_opened(t->dims, x)) {
        ok = eval_division(t, x, out);
    } else {
        *out = draw(t, x);
    }
    if (ok) {
        t->value[x->id] = *out;
        t->known[x->id] = true;
    }
    return ok && (x->kind == TL_ATOM_DIV ||
                  *out >= (x->least > 2 ? x->least : 2));
}

static bool eval(trial *t, tl_dim d, int64_t *out)
{
    int64_t sum = 0;
    bool ok = t->depth < MAX_EVAL_DEPTH;
    tl_terms terms;

    t->depth++;
    tl_dim_terms(d, &terms);
    for (int i = 0; ok && i < terms.n; i++) {
        int64_t product = terms.term[i].coef, x;
        const tl_mono *m = terms.term[i].mono;

        for (uint32_t k = 0; ok && m && k < m->degree; k++) {
            ok = eval_atom(t, m->atom[k], &x) &&
                 tl_mul_i64(&product, product, x);
        }
        ok = ok && tl_add_i64(&sum, sum, product);
    }
    t->depth--;
    *out = sum;
    return ok;
}

/* Facts as they were given, and opened quotients, hold for the values. */
static bool facts_hold(trial *t)
{
    for (size_t i = 0; i < t->dims->facts.len; i++) {
        const tl_fact *f = &t->dims->facts.items[i];
        int64_t a, b;

        if (!eval(t, f->a, &a) || !eval(t, f->b, &b) ||
            (f->kind == TL_FACT_EQUAL && a != b) ||
            (f->kind == TL_FACT_LE && a > b) ||
            (f->kind == TL_FACT_DIVIDES && (b == 0 || a % b != 0))) {
            return false;
        }
    }
    for (size_t i = 0; i < t->dims->opened.len; i++) {
        const tl_atom *x = t->dims->opened.items[i];
        int64_t value, quotient;

        if (!eval_atom(t, x, &value) || !eval_division(t, x, &quotient) ||
            value != quotient) {
            return false;
        }
    }
    return true;
}

/* Find an assignment with `bad(a, b)`; its values stay in `t`. */
static bool search(trial *t, tl_dim a, tl_dim b,
                   bool (*bad)(int64_t, int64_t))
{
    int drawn = 0;

    for (uint64_t i = 0; drawn < DRAWS && i < DRAWS * TRIES_A_DRAW; i++) {
        int64_t x, y;

        t->seed = i;
        memset(t->known, 0, t->dims->natoms * sizeof(*t->known));
        if (!facts_hold(t) || !eval(t, a, &x) || !eval(t, b, &y)) {
            continue;
        }
        drawn++;
        if (bad(x, y)) {
            return true;
        }
    }
    return false;
}

static bool trial_init(trial *t, const tl_dims *dims)
{
    *t = (trial){.dims = dims};
    t->value = tl_calloc(dims->natoms + 1, sizeof(*t->value));
    t->known = tl_calloc(2 * ((size_t)dims->natoms + 1), sizeof(*t->known));
    t->shown = t->known ? t->known + dims->natoms + 1 : NULL;
    return t->value && t->known;
}

static void trial_fini(trial *t)
{
    tl_free(t->value);
    tl_free(t->known);
}

static bool refuted(const tl_dims *dims, tl_dim a, tl_dim b,
                    bool (*bad)(int64_t, int64_t))
{
    trial t;
    bool found = false;

    if (tl_dim_has_fresh(a) || tl_dim_has_fresh(b)) {
        return false; // it may be equal to anything
    }
    if (trial_init(&t, dims)) {
        found = search(&t, a, b, bad);
    }
    trial_fini(&t);
    return found;
}

static bool differs(int64_t a, int64_t b)
{
    return a != b;
}

static bool exceeds(int64_t a, int64_t b)
{
    return a > b;
}

/* Append `name = value` of every name in `d` not yet printed. */
static void print_names(trial *t, tl_dim d, bool *any, tl_buf *out)
{
    tl_terms terms;

    tl_dim_terms(d, &terms);
    for (int i = 0; i < terms.n; i++) {
        const tl_mono *m = terms.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            const tl_atom *x = m->atom[k];
            int64_t value;

            if (x->kind == TL_ATOM_DIV) {
                print_names(t, x->p, any, out);
                print_names(t, x->q, any, out);
            } else if (!t->shown[x->id] && eval_atom(t, x, &value)) {
                tl_buf_printf(out, "%s%s = %lld", *any ? ", " : "", x->name,
                              (long long)value);
                t->shown[x->id] = true;
                *any = true;
            }
        }
    }
}

bool tl_dim_example(tl_dims *dims, tl_dim a, tl_dim b, tl_buf *out)
{
    bool found = false, any = false;
    int64_t x = 0, y = 0;
    trial t;

    if (tl_dim_is_num(a) && tl_dim_is_num(b)) {
        return false;
    }
    if (!tl_dim_has_fresh(a) && !tl_dim_has_fresh(b) &&
        trial_init(&t, dims)) {
        found = search(&t, a, b, differs) && eval(&t, a, &x) &&
                eval(&t, b, &y);
        if (found) {
            print_names(&t, a, &any, out);
            print_names(&t, b, &any, out);
            tl_buf_printf(out, ": %lld and %lld", (long long)x, (long long)y);
        }
        trial_fini(&t);
    }
    return found;
}

/* ---- proofs ------------------------------------------------------------ */

tl_proof tl_dim_eq(tl_dims *dims, tl_dim a, tl_dim b)
{
    tl_dim e;

    if (tl_dim_same(a, b)) {
        return TL_PROVED;
    }
    if (tl_dim_is_num(a) && tl_dim_is_num(b)) {
        return TL_REFUTED;
    }
    if (tl_dim_sub(dims, a, b, &e, NULL) != TL_OK ||
        tl_dim_normal(dims, e, &e, NULL) != TL_OK) {
        return TL_UNKNOWN;
    }
    if (tl_dim_is_num(e)) {
        return tl_dim_value(e) == 0 ? TL_PROVED : TL_REFUTED;
    }
    return refuted(dims, a, b, differs) ? TL_REFUTED : TL_UNKNOWN;
}

/* The least value of an atom that is known without facts; false if none. */
static bool atom_least(const tl_atom *x, int64_t *out);

/* A lower bound of `d` from the least values of its atoms. */
static bool lower_bound(tl_dim d, int64_t *out)
{
    int64_t sum = 0;
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        int64_t product = t.term[i].coef, least;
        const tl_mono *m = t.term[i].mono;

        if (m && product < 0) {
            return false;
        }
        for (uint32_t k = 0; m && k < m->degree; k++) {
            if (!atom_least(m->atom[k], &least) || least < 0 ||
                !tl_mul_i64(&product, product, least)) {
                return false;
            }
        }
        if (!tl_add_i64(&sum, sum, product)) {
            return false;
        }
    }
    *out = sum;
    return true;
}

static bool atom_least(const tl_atom *x, int64_t *out)
{
    int64_t p, q;

    if (x->kind != TL_ATOM_DIV) {
        *out = x->kind == TL_ATOM_NAME ? x->least : 0;
        return true;
    }
    if (!lower_bound(x->p, &p) || !lower_bound(x->q, &q) || p < 0 || q < 0) {
        return false; // q is not 0, or the division would have failed
    }
    *out = tl_dim_is_num(x->q) ? p / q : 0;
    return true;
}

static bool not_negative(tl_dim d)
{
    int64_t least;

    return lower_bound(d, &least) && least >= 0;
}

/* Add to `d` multiples of what every p // k adds: k * (p // k) <= p and
 * p <= k * (p // k) + k - 1, for the divisions by numbers in it. */
static bool with_divisions(tl_dims *dims, tl_dim d)
{
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;
        tl_dim qx, upper, x;
        const tl_atom *a = m && m->degree == 1 ? m->atom[0] : NULL;

        if (!a || a->kind != TL_ATOM_DIV || !tl_dim_is_num(a->q) ||
            tl_dim_value(a->q) <= 0 ||
            tl_dim_of(dims, a, &x, NULL) != TL_OK ||
            tl_dim_mul(dims, x, a->q, &qx, NULL) != TL_OK) {
            continue;
        }
        // d >= 0 if k * d - c * (p - k * x) >= 0, p - k * x being >= 0
        if (tl_dim_mul(dims, d, a->q, &upper, NULL) == TL_OK) {
            int64_t c = t.term[i].coef;
            int64_t k = tl_dim_value(a->q);
            tl_dim r;

            if (tl_dim_sub(dims, a->p, qx, &r, NULL) != TL_OK ||
                tl_dim_mul(dims, r, tl_dim_num(c), &r, NULL) != TL_OK ||
                tl_dim_add(dims, upper, r, &upper, NULL) != TL_OK) {
                continue;
            }
            // upper = k * d + c * rest with 0 <= rest <= k - 1
            if (c > 0 &&
                tl_dim_sub(dims, upper, tl_dim_num(c * (k - 1)), &upper,
                           NULL) != TL_OK) {
                continue;
            }
            if (not_negative(upper)) {
                return true;
            }
        }
    }
    return false;
}

/* d >= 0, or d >= the sum of at most `more` differences of facts a <= b. */
static bool with_facts(tl_dims *dims, tl_dim d, size_t from, int more)
{
    if (not_negative(d) || with_divisions(dims, d)) {
        return true;
    }
    for (size_t i = from; more > 0 && i < dims->facts.len; i++) {
        const tl_fact *f = &dims->facts.items[i];
        tl_dim e;

        if (f->kind == TL_FACT_LE &&
            tl_dim_sub(dims, f->b, f->a, &e, NULL) == TL_OK &&
            tl_dim_normal(dims, e, &e, NULL) == TL_OK &&
            tl_dim_sub(dims, d, e, &e, NULL) == TL_OK &&
            with_facts(dims, e, i + 1, more - 1)) {
            return true;
        }
    }
    return false;
}

tl_proof tl_dim_le(tl_dims *dims, tl_dim a, tl_dim b)
{
    tl_dim e;

    if (tl_dim_is_num(a) && tl_dim_is_num(b)) {
        return tl_dim_value(a) <= tl_dim_value(b) ? TL_PROVED : TL_REFUTED;
    }
    if (tl_dim_sub(dims, b, a, &e, NULL) != TL_OK ||
        tl_dim_normal(dims, e, &e, NULL) != TL_OK) {
        return TL_UNKNOWN;
    }
    if (tl_dim_is_num(e)) {
        return tl_dim_value(e) >= 0 ? TL_PROVED : TL_REFUTED;
    }
    if (with_facts(dims, e, 0, MAX_LE_FACTS)) {
        return TL_PROVED;
    }
    return refuted(dims, a, b, exceeds) ? TL_REFUTED : TL_UNKNOWN;
}
