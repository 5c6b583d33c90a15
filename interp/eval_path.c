/* eval_path.c - writing to a path: x[i] = v, r.f = v, net.fc[0].w[1] += v.
 *
 * A path is a root, mostly a name, and steps from it.  The subscripts of all
 * steps are evaluated first and once, from the root on.  Then the containers
 * are read down to the last step, and new ones go back up, each into the
 * place of the old one, until the root is bound or a module has taken the
 * value.  On the way down a slot keeps its value; for the write it is taken
 * out where nothing can see the slot meanwhile, so that the outermost
 * container changes in place (live.c marks that read). */
#include "interp/builtin.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/record.h"
#include "runtime/base/mem.h"

#define FEW 4

typedef struct step {
    const tl_ast *node; /* INDEX or ATTR */
    tl_value subs[TL_MAX_SUBSCRIPTS];
    size_t nsubs;
    tl_value held; /* what the step writes into; EMPTY: the root's name */
} step;

typedef struct path {
    const tl_ast *root;
    step *steps; /* from the root on */
    size_t n;
    step few[FEW];
} path;

/* ---- the path ---------------------------------------------------------- */

static const tl_ast *object_of(const tl_ast *node)
{
    return node->kind == TL_AST_INDEX  ? TL_AST(index, node)->object
           : node->kind == TL_AST_ATTR ? TL_AST(attr, node)->object
                                       : NULL;
}

static void path_fini(path *p)
{
    for (size_t i = 0; i < p->n; i++) {
        tl_unref_all(p->steps[i].subs, p->steps[i].nsubs);
        tl_unref(p->steps[i].held);
    }
    if (p->steps != p->few) {
        tl_free(p->steps);
    }
}

static tl_status eval_subs(tl_eval *ev, step *s)
{
    const tl_ast_index *t = TL_AST(index, s->node);

    if (t->items.len > TL_MAX_SUBSCRIPTS) {
        return tl_fail_at(ev->diag, TL_E0304, t->base.span,
                          "more than %d indices", TL_MAX_SUBSCRIPTS);
    }
    TL_TRY(tl_eval_subscripts(ev, t, s->subs));
    s->nsubs = t->items.len;
    return TL_OK;
}

/* Evaluates the subscripts.  After success to be ended with path_fini. */
static tl_status path_init(tl_eval *ev, path *p, const tl_ast *target)
{
    tl_status st = TL_OK;

    p->n = 0;
    p->steps = p->few;
    for (p->root = target; object_of(p->root); p->root = object_of(p->root)) {
        p->n++;
    }
    if (p->n > FEW) {
        p->steps = tl_calloc(p->n, sizeof(*p->steps));
        if (p->steps == NULL) {
            return tl_fail_memory(ev->diag, "a path",
                                  p->n * sizeof(*p->steps));
        }
    }
    for (size_t i = p->n; i > 0; i--) {
        p->steps[i - 1].node = target;
        p->steps[i - 1].nsubs = 0;
        p->steps[i - 1].held = tl_empty();
        target = object_of(target);
    }
    for (size_t i = 0; i < p->n && st == TL_OK; i++) {
        if (p->steps[i].node->kind == TL_AST_INDEX) {
            st = eval_subs(ev, &p->steps[i]);
        }
    }
    if (st != TL_OK) {
        path_fini(p);
    }
    return st;
}

/* ---- down -------------------------------------------------------------- */

/* The slot of a root that is a variable, or NULL. */
static tl_value *root_slot(tl_eval *ev, const tl_ast *root)
{
    const tl_ref_info *ref =
        root->kind == TL_AST_NAME ? &TL_AST(name, root)->ref : NULL;
    tl_namespace *ns = ev->frame->ns;

    if (ref != NULL && ref->kind == TL_REF_LOCAL) {
        return &ev->frame->slots[ref->index];
    }
    return ref != NULL && ref->kind == TL_REF_GLOBAL &&
                   ref->index < ns->nslots
               ? &ns->slots[ref->index]
               : NULL;
}

/* What the step reads from `c`, which it takes. */
static tl_status get_take(tl_eval *ev, const step *s, tl_value c,
                          tl_value *out)
{
    if (s->node->kind == TL_AST_ATTR) {
        const tl_ast_attr *t = TL_AST(attr, s->node);

        ev->rt->span = t->name_at;
        tl_status st = tl_eval_attr(ev, c, t->name, out);

        tl_unref(c);
        if (st != TL_OK) {
            tl_diag_at(ev->diag, t->name_at);
        }
        return st;
    }
    tl_value subs[TL_MAX_SUBSCRIPTS];

    for (size_t i = 0; i < s->nsubs; i++) {
        subs[i] = tl_ref(s->subs[i]);
    }
    ev->rt->span = s->node->span;
    tl_status st = tl_eval_index_take(ev, c, subs, s->nsubs, out);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, s->node->span);
    }
    return st;
}

/* Reads the first `upto` steps; *out, if wanted, is what the last of them
 * gives. */
static tl_status walk(tl_eval *ev, path *p, size_t upto, tl_value *out)
{
    tl_value *slot = root_slot(ev, p->root), v = tl_empty();

    if (slot != NULL && upto == 0) {
        return TL_OK;
    }
    if (slot != NULL && slot->tag != TL_V_EMPTY) {
        v = tl_ref(*slot);
    } else {
        TL_TRY(tl_eval_expr(ev, p->root, &v));
    }
    for (size_t i = 0; i < upto; i++) {
        if (i > 0 || slot == NULL) {
            p->steps[i].held = tl_ref(v);
        }
        TL_TRY(get_take(ev, &p->steps[i], v, &v));
    }
    if (out != NULL) {
        *out = v;
    } else {
        p->steps[upto].held = v;
    }
    return TL_OK;
}

/* ---- up ---------------------------------------------------------------- */

/* Can c[subs] = v only fail for want of memory? */
static bool put_is_safe(const step *s, tl_value c)
{
    tl_value i = s->nsubs == 1 ? s->subs[0] : tl_empty();

    if (c.tag == TL_V_LIST) {
        return i.tag == TL_V_INT && i.i < (int64_t)c.seq->len &&
               i.i >= -(int64_t)c.seq->len;
    }
    return c.tag == TL_V_DICT && (i.tag == TL_V_STR || i.tag == TL_V_INT);
}

/* The container that step `i` writes into, taken out of its slot if it can
 * be. */
static tl_status container(tl_eval *ev, path *p, size_t i, tl_value *out)
{
    step *s = &p->steps[i];
    tl_value *slot = root_slot(ev, p->root);

    if (s->held.tag != TL_V_EMPTY) {
        *out = s->held;
        s->held = tl_empty();
        return TL_OK;
    }
    if (slot != NULL && TL_AST(name, p->root)->ref.kind == TL_REF_GLOBAL &&
        put_is_safe(s, *slot)) {
        *out = *slot;
        *slot = tl_empty();
        return TL_OK;
    }
    return tl_eval_expr(ev, p->root, out);
}

/* c.name = v; *done if `c` has taken the value. */
static tl_status put_attr_take(tl_eval *ev, const tl_ast_attr *t, tl_value c,
                               tl_value v, tl_value *out, bool *done)
{
    tl_status st = TL_OK;

    *done = c.tag != TL_V_RECORD;
    switch (c.tag) {
    case TL_V_MODULE:
        st = tl_module_set_attr_take(ev, c.module, t->name, v);
        tl_unref(c);
        break;
    case TL_V_RECORD:
        st = tl_record_with_take(ev, c, t->name, v, out);
        break;
    case TL_V_UNKNOWN:
        tl_unref(v);
        break;
    default:
        st = tl_fail_at(ev->diag, TL_E0212, t->name_at,
                        "a field of %s cannot be assigned",
                        tl_value_type_str(c).s);
        tl_unref(v);
        tl_unref(c);
        break;
    }
    if (st != TL_OK) {
        tl_diag_at(ev->diag, t->name_at);
    }
    return st;
}

static tl_status put_take(tl_eval *ev, step *s, tl_value c, tl_value v,
                          tl_value *out, bool *done)
{
    if (s->node->kind == TL_AST_ATTR) {
        return put_attr_take(ev, TL_AST(attr, s->node), c, v, out, done);
    }
    size_t n = s->nsubs;

    s->nsubs = 0;
    *done = false;
    ev->rt->span = s->node->span;
    tl_status st = tl_eval_index_put_take(ev, c, s->subs, n, v, out);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, s->node->span);
    }
    return st;
}

/* Write `v` at the end of a path that has been walked. */
static tl_status write_take(tl_eval *ev, path *p, tl_value v)
{
    bool done = false;

    for (size_t i = p->n; i > 0 && !done; i--) {
        step *s = &p->steps[i - 1];
        tl_value c = tl_empty();
        tl_status st = container(ev, p, i - 1, &c);

        if (st != TL_OK) {
            tl_unref(v);
            tl_diag_at(ev->diag, s->node->span);
            return st;
        }
        TL_TRY(put_take(ev, s, c, v, &v, &done));
    }
    return done ? TL_OK : tl_eval_assign_take(ev, p->root, v);
}

/* ---- entries ----------------------------------------------------------- */

tl_status tl_eval_path_assign_take(tl_eval *ev, const tl_ast *target,
                                   tl_value v)
{
    path p;
    tl_status st = path_init(ev, &p, target);

    if (st != TL_OK) {
        tl_unref(v);
        return st;
    }
    st = walk(ev, &p, p.n - 1, NULL);
    if (st == TL_OK) {
        st = write_take(ev, &p, v);
    } else {
        tl_unref(v);
    }
    path_fini(&p);
    return st;
}

tl_status tl_eval_path_aug_take(tl_eval *ev, const tl_ast_aug *n, tl_value b)
{
    tl_value a = tl_empty(), r = tl_empty();
    path p;
    tl_status st = path_init(ev, &p, n->target);

    if (st != TL_OK) {
        tl_unref(b);
        return st;
    }
    st = walk(ev, &p, p.n, &a);
    if (st != TL_OK) {
        tl_unref(b);
    } else {
        st = tl_eval_binary_nodes(ev, n->op, n->target, a, n->value, b,
                                  n->base.span, &r);
    }
    if (st == TL_OK) {
        st = write_take(ev, &p, r);
    }
    path_fini(&p);
    return st;
}
