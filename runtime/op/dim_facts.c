/* dim_facts.c - facts about sizes, as rules that rewrite normal forms.
 *
 * An equation (`a == b`, or `a == b * (a // b)` for "b divides a") becomes a
 * rewrite rule: an atom that the rest does not mention is eliminated, or else
 * the leading monomial is replaced.  Where d is eliminated in favour of
 * h * (d // h), the atom d // h is *opened*: it stands for a size of its own,
 * and d is computed from it.  Rewriting is not complete: what it misses is
 * TL_UNKNOWN, checked when numbers are there. */
#include "runtime/base/check.h"
#include "runtime/base/vec.h"
#include "runtime/op/dim_impl.h"

enum { MAX_REWRITES = 64 };

/* ---- rewriting --------------------------------------------------------- */

bool tl_dims_is_opened(const tl_dims *dims, const tl_atom *atom)
{
    for (size_t i = 0; i < dims->opened.len; i++) {
        if (dims->opened.items[i] == atom) {
            return true;
        }
    }
    return false;
}

const tl_rule *tl_dims_rule_of_atom(const tl_dims *dims, const tl_atom *atom)
{
    for (size_t i = 0; i < dims->rules.len; i++) {
        const tl_mono *from = dims->rules.items[i].from;

        if (from->degree == 1 && from->atom[0] == atom) {
            return &dims->rules.items[i];
        }
    }
    return NULL;
}

static tl_status normal_atom(tl_dims *dims, const tl_atom *x, tl_dim *out,
                             tl_diag *diag)
{
    const tl_rule *rule = tl_dims_rule_of_atom(dims, x);
    tl_dim p, q;

    if (rule) {
        *out = rule->to;
        return TL_OK;
    }
    if (x->kind != TL_ATOM_DIV || tl_dims_is_opened(dims, x)) {
        return tl_dim_of(dims, x, out, diag);
    }
    TL_TRY(tl_dim_normal(dims, x->p, &p, diag));
    TL_TRY(tl_dim_normal(dims, x->q, &q, diag));
    return tl_dim_div(dims, p, q, out, diag);
}

/* Replace every atom of `d` by its normal form. */
static tl_status normal_atoms(tl_dims *dims, tl_dim d, tl_dim *out,
                              tl_diag *diag)
{
    tl_dim sum = tl_dim_num(0);
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        tl_dim product = tl_dim_num(t.term[i].coef), x;
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            TL_TRY(normal_atom(dims, m->atom[k], &x, diag));
            TL_TRY(tl_dim_mul(dims, product, x, &product, diag));
        }
        TL_TRY(tl_dim_add(dims, sum, product, &sum, diag));
    }
    *out = sum;
    return TL_OK;
}

/* One use of a rule with a monomial of degree 2 or more. */
static tl_status rewrite_once(tl_dims *dims, tl_dim d, bool *changed,
                              tl_dim *out, tl_diag *diag)
{
    tl_terms t;

    tl_dim_terms(d, &t);
    for (size_t r = 0; r < dims->rules.len; r++) {
        const tl_rule *rule = &dims->rules.items[r];

        for (int i = 0; rule->from->degree > 1 && i < t.n; i++) {
            tl_poly_work w = {0};
            const tl_mono *m = NULL;
            bool ok;

            TL_TRY(tl_mono_div(dims, t.term[i].mono, rule->from, &ok, &m,
                               diag));
            if (!ok) {
                continue;
            }
            TL_TRY(tl_work_add_dim(dims, &w, 1, NULL, d, diag));
            TL_TRY(tl_work_add(&w, -t.term[i].coef, t.term[i].mono, diag));
            TL_TRY(tl_work_add_dim(dims, &w, t.term[i].coef, m, rule->to,
                                   diag));
            *changed = true;
            return tl_work_finish(dims, &w, out, diag);
        }
    }
    return TL_OK;
}

static tl_status rewrite(tl_dims *dims, tl_dim d, tl_dim *out, tl_diag *diag)
{
    TL_TRY(normal_atoms(dims, d, &d, diag));
    for (int i = 0; i < MAX_REWRITES; i++) {
        bool changed = false;

        TL_TRY(rewrite_once(dims, d, &changed, &d, diag));
        if (!changed) {
            break;
        }
        TL_TRY(normal_atoms(dims, d, &d, diag));
    }
    *out = d;
    return TL_OK;
}

tl_status tl_dim_normal(tl_dims *dims, tl_dim d, tl_dim *out, tl_diag *diag)
{
    tl_status st;

    if (tl_dim_is_num(d) || dims->rules.len == 0 ||
        dims->nested > 2 * TL_DIM_MAX_DEPTH) { // a rule that feeds itself
        *out = d;
        return TL_OK;
    }
    dims->nested++;
    st = rewrite(dims, d, out, diag);
    dims->nested--;
    return st;
}

/* ---- facts to rules ---------------------------------------------------- */

static int occurrences(tl_dim d, const tl_atom *atom)
{
    int n = 0;
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            n += m->atom[k] == atom;
        }
    }
    return n;
}

/* Does `atom` occur inside a division of `d` that is not opened and is not
 * `except`? */
static bool hidden_in_division(const tl_dims *dims, tl_dim d,
                               const tl_atom *atom, const tl_atom *except)
{
    tl_terms t;

    tl_dim_terms(d, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;

        for (uint32_t k = 0; m && k < m->degree; k++) {
            const tl_atom *x = m->atom[k];

            if (x->kind == TL_ATOM_DIV && x != except &&
                !tl_dims_is_opened(dims, x) &&
                (tl_dim_mentions(x->p, atom, true) ||
                 tl_dim_mentions(x->q, atom, true))) {
                return true;
            }
        }
    }
    return false;
}

/* The term of `e` whose atom can be eliminated: coefficient +-1, and nothing
 * else mentions it; the youngest such.  `except` is the quotient of a
 * "divides" fact, which may be computed from it. */
static int eliminable(const tl_dims *dims, tl_dim e, const tl_atom *except)
{
    int best = -1;
    tl_terms t;

    tl_dim_terms(e, &t);
    for (int i = 0; i < t.n; i++) {
        const tl_mono *m = t.term[i].mono;
        const tl_atom *x;

        if (!m || m->degree != 1 ||
            (t.term[i].coef != 1 && t.term[i].coef != -1)) {
            continue;
        }
        x = m->atom[0];
        if (x == except || occurrences(e, x) != 1 ||
            hidden_in_division(dims, e, x, except)) {
            continue;
        }
        if (best < 0 || x->id > t.term[best].mono->atom[0]->id) {
            best = i;
        }
    }
    return best;
}

/* e == 0 as a rule: the chosen term, or the leading monomial, on the left. */
static tl_status make_rule(tl_dims *dims, tl_dim e, int term, tl_rule *rule,
                           tl_diag *diag)
{
    tl_poly_work w = {0};
    tl_terms t;

    tl_dim_terms(e, &t);
    TL_TRY(tl_work_add_dim(dims, &w, -t.term[term].coef, NULL, e, diag));
    TL_TRY(tl_work_add(&w, 1, t.term[term].mono, diag));
    TL_TRY(tl_work_finish(dims, &w, &rule->to, diag));
    rule->from = t.term[term].mono;
    return TL_OK;
}

/* The right sides of older rules, by the newest one. */
static tl_status reduce_rules(tl_dims *dims, tl_diag *diag)
{
    for (size_t i = 0; i + 1 < dims->rules.len; i++) {
        tl_dim to;

        TL_TRY(tl_dim_normal(dims, dims->rules.items[i].to, &to, diag));
        dims->rules.items[i].to = to;
    }
    return TL_OK;
}

/* h * x == h * y means x == y when h is a divisor elsewhere: it is not 0. */
static tl_status drop_divisors(tl_dims *dims, tl_dim *e, tl_diag *diag)
{
    for (size_t i = 0; i < dims->opened.len && !tl_dim_is_num(*e); i++) {
        tl_dim q = dims->opened.items[i]->q, quotient, product;

        if (!tl_dim_is_atom(q)) {
            continue;
        }
        TL_TRY(tl_dim_div(dims, *e, q, &quotient, diag));
        TL_TRY(tl_dim_mul(dims, quotient, q, &product, diag));
        if (tl_dim_same(product, *e)) {
            *e = quotient;
        }
    }
    return TL_OK;
}

static tl_status add_equation(tl_dims *dims, tl_dim e, const tl_atom *quotient,
                              tl_diag *diag)
{
    tl_rule rule;
    int term;

    TL_TRY(tl_dim_normal(dims, e, &e, diag));
    TL_TRY(drop_divisors(dims, &e, diag));
    if (tl_dim_is_num(e)) {
        return TL_OK; // known already, or a branch that is never taken
    }
    term = eliminable(dims, e, quotient);
    if (quotient && tl_dim_mentions(e, quotient, false)) {
        TL_TRY(TL_VEC_PUSH(&dims->opened, quotient, diag));
    }
    if (term < 0) {
        int64_t lead = tl_dim_poly(e)->term[0].coef;

        if ((lead != 1 && lead != -1) ||
            tl_dim_poly(e)->term[0].mono->degree < 2) {
            return TL_OK; // kept as a fact for counterexamples
        }
        term = 0;
    }
    TL_TRY(make_rule(dims, e, term, &rule, diag));
    TL_TRY(TL_VEC_PUSH(&dims->rules, rule, diag));
    return reduce_rules(dims, diag);
}

static tl_status add_divides(tl_dims *dims, tl_dim a, tl_dim b, tl_diag *diag)
{
    tl_dim q, e;

    TL_TRY(tl_dim_normal(dims, a, &a, diag));
    TL_TRY(tl_dim_normal(dims, b, &b, diag));
    TL_TRY(tl_dim_div(dims, a, b, &q, diag));
    TL_TRY(tl_dim_mul(dims, b, q, &e, diag));
    TL_TRY(tl_dim_sub(dims, a, e, &e, diag));
    if (!tl_dim_is_num(q)) { // the part that did not divide out
        tl_terms t;

        tl_dim_terms(q, &t);
        for (int i = 0; i < t.n; i++) {
            const tl_mono *m = t.term[i].mono;

            if (m && m->degree == 1 && t.term[i].coef == 1 &&
                m->atom[0]->kind == TL_ATOM_DIV) {
                return add_equation(dims, e, m->atom[0], diag);
            }
        }
    }
    return add_equation(dims, e, NULL, diag);
}

static tl_status apply_fact(tl_dims *dims, const tl_fact *fact, tl_diag *diag)
{
    tl_dim e;

    switch (fact->kind) {
    case TL_FACT_DIVIDES:
        return add_divides(dims, fact->a, fact->b, diag);
    case TL_FACT_EQUAL:
        TL_TRY(tl_dim_sub(dims, fact->a, fact->b, &e, diag));
        return add_equation(dims, e, NULL, diag);
    case TL_FACT_LE:
        break;
    }
    return TL_OK;
}

static tl_status add_fact(tl_dims *dims, tl_fact_kind kind, tl_dim a,
                          tl_dim b, tl_diag *diag)
{
    tl_fact fact = {kind, a, b};

    if (tl_dim_is_num(a) && tl_dim_is_num(b)) {
        return TL_OK;
    }
    TL_TRY(TL_VEC_PUSH(&dims->facts, fact, diag));
    if (apply_fact(dims, &fact, NULL) == TL_ERR_MEMORY) {
        return tl_fail_memory(diag, "facts about sizes", sizeof(fact));
    }
    return TL_OK; // what overflows, or divides by 0, proves nothing
}

tl_status tl_dims_fact_divides(tl_dims *dims, tl_dim a, tl_dim b,
                               tl_diag *diag)
{
    return add_fact(dims, TL_FACT_DIVIDES, a, b, diag);
}

tl_status tl_dims_fact_equal(tl_dims *dims, tl_dim a, tl_dim b, tl_diag *diag)
{
    return add_fact(dims, TL_FACT_EQUAL, a, b, diag);
}

tl_status tl_dims_fact_le(tl_dims *dims, tl_dim a, tl_dim b, tl_diag *diag)
{
    return add_fact(dims, TL_FACT_LE, a, b, diag);
}

size_t tl_dims_mark(const tl_dims *dims)
{
    return dims->facts.len;
}

void tl_dims_release(tl_dims *dims, size_t mark)
{
    TL_CHECK(mark <= dims->facts.len);
    if (mark == dims->facts.len) {
        return;
    }
    dims->facts.len = mark;
    dims->rules.len = 0;
    dims->opened.len = 0;
    for (size_t i = 0; i < mark; i++) {
        if (apply_fact(dims, &dims->facts.items[i], NULL) == TL_ERR_MEMORY) {
            break; // fewer rules prove less
        }
    }
}
