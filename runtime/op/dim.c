/* dim.c - arithmetic of symbolic sizes.
 *
 * Numbers take a path of their own that needs no context.  `p // q` is
 * reduced before it becomes an atom: numbers common to both, what divides
 * exactly, and nested divisions by numbers.  Interning is in dim_poly.c,
 * facts and proofs in dim_facts.c, text in dim_print.c. */
#include "runtime/op/dim.h"

#include "runtime/base/size.h"
#include "runtime/op/dim_impl.h"

/* ---- arithmetic -------------------------------------------------------- */

static bool both_numbers(tl_dim a, tl_dim b)
{
    return tl_dim_is_num(a) && tl_dim_is_num(b);
}

static tl_status number(int64_t n, bool ok, tl_dim *out, tl_diag *diag)
{
    if (!ok || !tl_dim_fits(n)) {
        return tl_dim_overflow(diag);
    }
    *out = tl_dim_num(n);
    return TL_OK;
}

static tl_status add_scaled(tl_dims *dims, tl_dim a, int64_t scale, tl_dim b,
                            tl_dim *out, tl_diag *diag)
{
    tl_poly_work w = {0};

    TL_TRY(tl_work_add_dim(dims, &w, 1, NULL, a, diag));
    TL_TRY(tl_work_add_dim(dims, &w, scale, NULL, b, diag));
    return tl_work_finish(dims, &w, out, diag);
}

tl_status tl_dim_add(tl_dims *dims, tl_dim a, tl_dim b, tl_dim *out,
                     tl_diag *diag)
{
    int64_t n = 0;

    if (both_numbers(a, b)) {
        bool ok = tl_add_i64(&n, tl_dim_value(a), tl_dim_value(b));

        return number(n, ok, out, diag);
    }
    return add_scaled(dims, a, 1, b, out, diag);
}

tl_status tl_dim_sub(tl_dims *dims, tl_dim a, tl_dim b, tl_dim *out,
                     tl_diag *diag)
{
    int64_t n = 0;

    if (both_numbers(a, b)) {
        bool ok = tl_sub_i64(&n, tl_dim_value(a), tl_dim_value(b));

        return number(n, ok, out, diag);
    }
    return add_scaled(dims, a, -1, b, out, diag);
}

/* Apart from tl_dim_mul so that a product of numbers does not clear the two
 * kilobytes of `w`. */
__attribute__((noinline)) static tl_status
mul_polys(tl_dims *dims, tl_dim a, tl_dim b, tl_dim *out, tl_diag *diag)
{
    tl_poly_work w = {0};
    tl_terms t;

    tl_dim_terms(a, &t);
    for (int i = 0; i < t.n; i++) {
        TL_TRY(tl_work_add_dim(dims, &w, t.term[i].coef, t.term[i].mono, b,
                               diag));
    }
    return tl_work_finish(dims, &w, out, diag);
}

tl_status tl_dim_mul(tl_dims *dims, tl_dim a, tl_dim b, tl_dim *out,
                     tl_diag *diag)
{
    int64_t n = 0;

    if (both_numbers(a, b)) {
        bool ok = tl_mul_i64(&n, tl_dim_value(a), tl_dim_value(b));

        return number(n, ok, out, diag);
    }
    return mul_polys(dims, a, b, out, diag);
}

/* ---- floor division ---------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;

        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static int64_t content(tl_dim d)
{
    int64_t g = 0;
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        g = gcd(g, t.term[i].coef);
    }
    return g;
}

static tl_status divide_content(tl_dims *dims, tl_dim d, int64_t c,
                                tl_dim *out, tl_diag *diag)
{
    tl_poly_work w = {0};
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        TL_TRY(tl_work_add(&w, t.term[i].coef / c, t.term[i].mono, diag));
    }
    return tl_work_finish(dims, &w, out, diag);
}

/* p = q * quotient + rest by long division on leading monomials.  With
 * `partial` (q a single term) coefficients divide by floor, else exactly. */
static tl_status long_divide(tl_dims *dims, tl_dim p, tl_dim q, bool partial,
                             tl_dim *quotient, tl_dim *rest, tl_diag *diag)
{
    tl_poly_work left = {0}, quot = {0}, kept = {0};
    tl_terms divisor;

    tl_dim_terms(q, &divisor);
    TL_TRY(tl_work_add_dim(dims, &left, 1, NULL, p, diag));
    while (left.n > 0) {
        tl_term lead = left.term[0];
        int64_t lead_q = divisor.term[0].coef;
        int64_t c = tl_floor_div(lead.coef, lead_q);
        const tl_mono *m = NULL;
        bool ok;

        TL_TRY(tl_mono_div(dims, lead.mono, divisor.term[0].mono, &ok, &m,
                           diag));
        if (ok && c != 0 && (partial || lead.coef % lead_q == 0)) {
            TL_TRY(tl_work_add(&quot, c, m, diag));
            TL_TRY(tl_work_add_dim(dims, &left, -c, m, q, diag));
        }
        if (left.n > 0 && left.term[0].mono == lead.mono) {
            TL_TRY(tl_work_add(&kept, left.term[0].coef, lead.mono, diag));
            TL_TRY(tl_work_add(&left, -left.term[0].coef, lead.mono, diag));
        }
    }
    TL_TRY(tl_work_finish(dims, &quot, quotient, diag));
    return tl_work_finish(dims, &kept, rest, diag);
}

/* (x // a + r) // b = (x + a * r) // (a * b) for numbers a, b > 0 and any
 * integer r, when x // a is the only division by a number in p. */
static tl_status unnest(tl_dims *dims, tl_dim *p, tl_dim *q, bool *changed,
                        tl_diag *diag)
{
    const tl_atom *inner = NULL;
    tl_poly_work w = {0};
    tl_dim a, rest;
    tl_terms t;

    *changed = false;
    if (!tl_dim_is_num(*q) || tl_dim_value(*q) < 0) {
        return TL_OK;
    }
    tl_dim_terms(*p, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            if (m->atom[k]->kind != TL_ATOM_DIV) {
                continue;
            }
            if (inner || m->degree != 1 || t.term[i].coef != 1) {
                return TL_OK;
            }
            inner = m->atom[k];
        }
    }
    if (!inner || !tl_dim_is_num(inner->q) || tl_dim_value(inner->q) < 0) {
        return TL_OK;
    }
    a = inner->q;
    TL_TRY(tl_dim_of(dims, inner, &rest, diag));
    TL_TRY(tl_dim_sub(dims, *p, rest, &rest, diag));
    TL_TRY(tl_work_add_dim(dims, &w, 1, NULL, inner->p, diag));
    TL_TRY(tl_work_add_dim(dims, &w, tl_dim_value(a), NULL, rest, diag));
    TL_TRY(tl_work_finish(dims, &w, p, diag));
    TL_TRY(tl_dim_mul(dims, a, *q, q, diag));
    *changed = true;
    return TL_OK;
}

/* How deep divisions nest in `d`. */
static uint32_t nesting(tl_dim d)
{
    uint32_t depth = 0;
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            depth = m->atom[k]->depth > depth ? m->atom[k]->depth : depth;
        }
    }
    return depth;
}

/* The atom p // q, or a number when p is 0. */
static tl_status division_atom(tl_dims *dims, tl_dim p, tl_dim q, tl_dim *out,
                               tl_diag *diag)
{
    tl_atom key = {.kind = TL_ATOM_DIV, .p = p, .q = q};
    const tl_atom *atom;

    if (tl_dim_is_num(p) && tl_dim_value(p) == 0) {
        *out = p;
        return TL_OK;
    }
    key.depth = 1 + (nesting(p) > nesting(q) ? nesting(p) : nesting(q));
    if (key.depth > TL_DIM_MAX_DEPTH) {
        return tl_fail(diag, TL_E0307,
                       "divisions of a size nest deeper than %d",
                       TL_DIM_MAX_DEPTH);
    }
    TL_TRY(tl_dim_get_atom(dims, key, &atom, diag));
    return tl_dim_of(dims, atom, out, diag);
}

static tl_status divide(tl_dims *dims, tl_dim p, tl_dim q, tl_dim *out,
                        tl_diag *diag)
{
    int64_t common = gcd(content(p), content(q));
    tl_dim quotient, rest, tail;
    bool changed;
    tl_terms t;

    if (common > 1) {
        TL_TRY(divide_content(dims, p, common, &p, diag));
        TL_TRY(divide_content(dims, q, common, &q, diag));
    }
    if (both_numbers(p, q)) {
        *out = tl_dim_num(tl_floor_div(tl_dim_value(p), tl_dim_value(q)));
        return TL_OK;
    }
    tl_dim_terms(q, &t);
    TL_TRY(long_divide(dims, p, q, t.n == 1, &quotient, &rest, diag));
    if (tl_dim_is_num(rest) && tl_dim_value(rest) == 0) {
        *out = quotient;
        return TL_OK;
    }
    if (t.n != 1) { // an inexact quotient by a sum says nothing
        return division_atom(dims, p, q, out, diag);
    }
    TL_TRY(unnest(dims, &rest, &q, &changed, diag));
    if (changed || !tl_dim_same(rest, p)) {
        TL_TRY(divide(dims, rest, q, &tail, diag));
    } else {
        TL_TRY(division_atom(dims, rest, q, &tail, diag));
    }
    return tl_dim_add(dims, quotient, tail, out, diag);
}

tl_status tl_dim_div(tl_dims *dims, tl_dim a, tl_dim b, tl_dim *out,
                     tl_diag *diag)
{
    if (tl_dim_is_num(b) && tl_dim_value(b) == 0) {
        return tl_fail(diag, TL_E0401, "a size is divided by zero");
    }
    if (both_numbers(a, b)) {
        *out = tl_dim_num(tl_floor_div(tl_dim_value(a), tl_dim_value(b)));
        return TL_OK;
    }
    return divide(dims, a, b, out, diag);
}

tl_status tl_dim_mod(tl_dims *dims, tl_dim a, tl_dim b, tl_dim *out,
                     tl_diag *diag)
{
    tl_dim q, qb;

    if (both_numbers(a, b) && tl_dim_value(b) != 0) {
        *out = tl_dim_num(tl_floor_mod(tl_dim_value(a), tl_dim_value(b)));
        return TL_OK;
    }
    TL_TRY(tl_dim_div(dims, a, b, &q, diag));
    TL_TRY(tl_dim_mul(dims, q, b, &qb, diag));
    return tl_dim_sub(dims, a, qb, out, diag);
}

/* ---- looking inside ---------------------------------------------------- */

bool tl_dim_mentions(tl_dim d, const tl_atom *atom, bool deep)
{
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            const tl_atom *x = m->atom[k];

            if (x == atom || (deep && x->kind == TL_ATOM_DIV &&
                              (tl_dim_mentions(x->p, atom, true) ||
                               tl_dim_mentions(x->q, atom, true)))) {
                return true;
            }
        }
    }
    return false;
}

bool tl_dim_has(tl_dim d, tl_dim atom)
{
    const tl_atom *a = tl_dim_as_atom(atom);

    return a && tl_dim_mentions(d, a, true);
}

bool tl_dim_has_fresh(tl_dim d)
{
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            const tl_atom *x = m->atom[k];

            if (x->kind == TL_ATOM_FRESH ||
                (x->kind == TL_ATOM_DIV && (tl_dim_has_fresh(x->p) ||
                                            tl_dim_has_fresh(x->q)))) {
                return true;
            }
        }
    }
    return false;
}

static tl_status replace_atom(tl_dims *dims, const tl_atom *x,
                              const tl_dim *from, const tl_dim *to, int n,
                              tl_dim *out, tl_diag *diag)
{
    tl_dim p, q;

    for (int i = 0; i < n; i++) {
        if (tl_dim_as_atom(from[i]) == x) {
            *out = to[i];
            return TL_OK;
        }
    }
    if (x->kind != TL_ATOM_DIV) {
        return tl_dim_of(dims, x, out, diag);
    }
    TL_TRY(tl_dim_replace(dims, x->p, from, to, n, &p, diag));
    TL_TRY(tl_dim_replace(dims, x->q, from, to, n, &q, diag));
    return tl_dim_div(dims, p, q, out, diag);
}

tl_status tl_dim_replace(tl_dims *dims, tl_dim d, const tl_dim *from,
                         const tl_dim *to, int n, tl_dim *out, tl_diag *diag)
{
    tl_dim sum = tl_dim_num(0);
    tl_terms t;

    if (tl_dim_is_num(d)) {
        *out = d;
        return TL_OK;
    }
    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        tl_dim product = tl_dim_num(t.term[i].coef), x;
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            TL_TRY(replace_atom(dims, m->atom[k], from, to, n, &x, diag));
            TL_TRY(tl_dim_mul(dims, product, x, &product, diag));
        }
        TL_TRY(tl_dim_add(dims, sum, product, &sum, diag));
    }
    *out = sum;
    return TL_OK;
}
