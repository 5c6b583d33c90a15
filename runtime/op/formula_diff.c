/* formula_diff.c - derivatives of formulas, and formulas as operations.
 *
 * + - * / and ?: by calculus; a call of fn by the gradient formula of row fn,
 * with the arguments for its inputs, the call itself for y and the inner
 * derivative for g (the chain rule). */
#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/op/formula_impl.h"

/* ---- substitution ------------------------------------------------------- */

typedef struct bindings {
    const tl_formula *in[3];
    const tl_formula *y, *g; /* NULL: stays the name */
} bindings;

/* `f` with names replaced, made of nodes of `b`; NULL when out of memory. */
static const tl_formula *substitute(formula_builder *b, const tl_formula *f,
                                    const bindings *names)
{
    const tl_formula *arg[3] = {NULL, NULL, NULL}, *to = NULL;

    switch (f->kind) {
    case FORMULA_CONST:
        return tl_formula_const(b, f->value);
    case FORMULA_NAME:
        to = f->name < 3      ? names->in[f->name]
             : f->name == 'y' ? names->y
             : f->name == 'g' ? names->g
                              : NULL;
        return to != NULL ? to : tl_formula_name(b, f->name);
    case FORMULA_OP:
        break;
    }
    for (int i = 0; i < f->nargs; i++) {
        arg[i] = substitute(b, f->arg[i], names);
    }
    return tl_formula_op(b, f->op, arg[0], arg[1], arg[2]);
}

/* ---- derivatives -------------------------------------------------------- */

typedef struct differ {
    formula_builder *b;
    int which;
    const tl_formula **memo; /* by id of the node */
    int nmemo;
    tl_status status;
} differ;

static const tl_formula *diff(differ *d, const tl_formula *f);

/* The term of argument `i` in the derivative of the call `f`. */
static const tl_formula *diff_argument(differ *d, const tl_formula *f, int i,
                                       const tl_formula *inner)
{
    const tl_formula *rule = NULL;
    bindings names = {
        .in = {f->arg[0], f->arg[1], f->arg[2]}, .y = f, .g = inner};

    if (d->status == TL_OK) {
        d->status =
            tl_formula_parse_with(d->b, tl_op_get(f->op)->grad[i], &rule);
    }
    return rule == NULL ? NULL : substitute(d->b, rule, &names);
}

static const tl_formula *diff_call(differ *d, const tl_formula *f)
{
    const tl_formula *sum = tl_formula_const(d->b, 0);

    for (int i = 0; i < f->nargs && sum != NULL; i++) {
        const tl_formula *inner = diff(d, f->arg[i]);

        if (inner == NULL) {
            return NULL;
        }
        if (!tl_formula_is_zero(inner)) {
            sum = tl_formula_op(d->b, TL_OP_add, sum,
                                diff_argument(d, f, i, inner), NULL);
        }
    }
    return sum;
}

static const tl_formula *diff_op(differ *d, const tl_formula *f)
{
    const tl_formula *u = f->arg[0], *v = f->arg[1];
    formula_builder *b = d->b;

    switch (f->op) {
    case TL_OP_neg:
        return tl_formula_op(b, TL_OP_neg, diff(d, u), NULL, NULL);
    case TL_OP_add:
    case TL_OP_sub:
        return tl_formula_op(b, f->op, diff(d, u), diff(d, v), NULL);
    case TL_OP_mul:
    case TL_OP_zmul:
        return tl_formula_op(
            b, TL_OP_add, tl_formula_op(b, f->op, diff(d, u), v, NULL),
            tl_formula_op(b, f->op, u, diff(d, v), NULL), NULL);
    case TL_OP_div: /* u'/v - (u/v) (v'/v) */
        return tl_formula_op(
            b, TL_OP_sub, tl_formula_op(b, TL_OP_div, diff(d, u), v, NULL),
            tl_formula_op(b, TL_OP_mul, f,
                          tl_formula_op(b, TL_OP_div, diff(d, v), v, NULL),
                          NULL),
            NULL);
    case TL_OP_where:
        return tl_formula_op(b, TL_OP_where, u, diff(d, v),
                             diff(d, f->arg[2]));
    case TL_OP_eq:
    case TL_OP_ne:
    case TL_OP_lt:
    case TL_OP_le:
    case TL_OP_gt:
    case TL_OP_ge:
        return tl_formula_const(b, 0);
    default:
        return diff_call(d, f);
    }
}

static const tl_formula *diff(differ *d, const tl_formula *f)
{
    const tl_formula *res;

    if (f->id < d->nmemo && d->memo[f->id] != NULL) {
        return d->memo[f->id];
    }
    if (f->kind == FORMULA_OP) {
        res = diff_op(d, f);
    } else {
        bool hit = f->kind == FORMULA_NAME && f->name == d->which;

        res = tl_formula_const(d->b, hit ? 1 : 0);
    }
    if (f->id < d->nmemo) {
        d->memo[f->id] = res;
    }
    return res;
}

tl_status tl_formula_diff(tl_arena *arena, const tl_formula *f,
                          const tl_formula *value, int which,
                          const tl_formula **out, tl_diag *diag)
{
    formula_builder b = {.arena = arena, .diag = diag, .simplify = true};
    differ d = {.b = &b, .which = which, .status = TL_OK};
    bindings none = {.y = NULL}, names = {.y = NULL};
    const tl_formula *res = NULL;

    TL_CHECK(value != NULL || !tl_formula_uses(f, 'y'));
    if (value != NULL) {
        names.y = substitute(&b, value, &none);
    }
    f = substitute(&b, f, &names);
    if (f != NULL) {
        d.nmemo = b.count;
        d.memo = tl_arena_array(arena, (size_t)b.count, sizeof *d.memo);
        res = d.memo == NULL ? NULL : diff(&d, f);
    }
    TL_TRY(d.status);
    if (res == NULL) {
        return tl_fail_memory(diag, "a derivative", sizeof(tl_formula));
    }
    *out = res;
    return TL_OK;
}

/* ---- operations --------------------------------------------------------- */

typedef struct emitter {
    tl_emit *e;
    const tl_formula_nodes *names;
    tl_node *made; /* by id */
} emitter;

static tl_status emit_node(emitter *em, const tl_formula *f, tl_node *out);

static tl_status emit_name(emitter *em, int name, tl_node *out)
{
    const tl_formula_nodes *n = em->names;

    if (name >= '0' && name <= '5') {
        return tl_emit_const(em->e, n->p[name - '0'], n->dtype, out);
    }
    *out = name < 3 ? n->in[name] : name == 'y' ? n->y : n->g;
    TL_CHECK(*out != NULL);
    return TL_OK;
}

/* The condition of ?: as a bool node; `a != 0` of a bool is a itself. */
static tl_status emit_condition(emitter *em, const tl_formula *f,
                                tl_node *out)
{
    if (f->kind == FORMULA_OP && f->op == TL_OP_ne &&
        tl_formula_is_zero(f->arg[1])) {
        TL_TRY(emit_node(em, f->arg[0], out));
        if (em->e->type(em->e, *out)->dtype == TL_bool) {
            return TL_OK;
        }
    }
    return emit_node(em, f, out);
}

static tl_status emit_op(emitter *em, const tl_formula *f, tl_node *out)
{
    tl_node arg[3];

    for (int i = 0; i < f->nargs; i++) {
        TL_TRY(f->op == TL_OP_where && i == 0
                   ? emit_condition(em, f->arg[i], &arg[i])
                   : emit_node(em, f->arg[i], &arg[i]));
    }
    return em->e->apply(em->e, f->op, arg, f->nargs, NULL, out);
}

static tl_status emit_node(emitter *em, const tl_formula *f, tl_node *out)
{
    tl_node made = em->made[f->id];

    if (made == NULL) {
        switch (f->kind) {
        case FORMULA_CONST:
            TL_TRY(tl_emit_const(em->e, f->value, em->names->dtype, &made));
            break;
        case FORMULA_NAME:
            TL_TRY(emit_name(em, f->name, &made));
            break;
        case FORMULA_OP:
            TL_TRY(emit_op(em, f, &made));
            break;
        }
        em->made[f->id] = made;
    }
    *out = made;
    return TL_OK;
}

tl_status tl_formula_emit(tl_emit *e, const tl_formula *f,
                          const tl_formula_nodes *names, tl_node *out)
{
    emitter em = {.e = e, .names = names};
    size_t n = (size_t)f->id + 1; /* the root has the largest id it reaches */
    tl_status st;

    em.made = tl_calloc(n, sizeof *em.made);
    if (em.made == NULL) {
        return tl_fail_memory(e->infer->diag, "a formula", n * sizeof f);
    }
    st = emit_node(&em, f, out);
    tl_free(em.made);
    return st;
}
