/* fstring.c - f"..." */
#include "interp/eval_impl.h"
#include "interp/late.h"
#include "interp/sym.h"

static tl_status add_parts(tl_eval *ev, const tl_kids *parts,
                           tl_text_parts *t);

/* The text behind the colon; it may hold values itself. */
static tl_status format_of(tl_eval *ev, const tl_kids *parts, tl_value *out)
{
    tl_text_parts t;
    tl_status st;

    *out = tl_none();
    if (parts->len == 0) {
        return TL_OK;
    }
    tl_text_init(&t);
    st = add_parts(ev, parts, &t);
    if (st == TL_OK) {
        st = tl_text_finish(ev, &t, out);
    }
    tl_text_fini(&t);
    return st == TL_OK ? tl_sym_read(ev, out) : st;
}

static tl_status add_part(tl_eval *ev, const tl_ast_fpart *p,
                          tl_text_parts *t)
{
    tl_value v = tl_empty(), spec = tl_none();
    tl_status st;

    TL_GOTO(st, tl_eval_expr(ev, p->value, &v));
    TL_GOTO(st, format_of(ev, &p->spec, &spec));
    t->unknown = t->unknown || spec.tag == TL_V_UNKNOWN;
    st = tl_text_add(ev, t, v, spec);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, p->base.span);
    }
out:
    tl_unref(v);
    tl_unref(spec);
    return st;
}

static tl_status add_parts(tl_eval *ev, const tl_kids *parts,
                           tl_text_parts *t)
{
    for (uint32_t i = 0; i < parts->len; i++) {
        const tl_ast *p = parts->items[i];

        if (p->kind == TL_AST_STR) {
            tl_text text = TL_AST(str, p)->text;

            tl_buf_add(&t->buf, text.s, text.len);
        } else {
            TL_TRY(add_part(ev, TL_AST(fpart, p), t));
        }
    }
    return TL_OK;
}

tl_status tl_eval_fstring(tl_eval *ev, const tl_ast_fstring *n, tl_value *out)
{
    tl_text_parts t;
    tl_status st;

    tl_text_init(&t);
    st = add_parts(ev, &n->parts, &t);
    if (st == TL_OK) {
        st = tl_text_finish(ev, &t, out);
    }
    tl_text_fini(&t);
    return st;
}
