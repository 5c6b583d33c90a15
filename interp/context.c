/* context.c - entering and leaving `with` contexts. */
#include "interp/context.h"

#include <string.h>

#include "interp/autocast.h"
#include "interp/builtin.h"
#include "interp/container.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/free.h"
#include "runtime/base/mem.h"

tl_status tl_context_new_take(tl_eval *ev, tl_context_kind kind,
                              tl_value value, tl_value *out)
{
    tl_context *c = tl_obj_new(TL_V_CONTEXT, sizeof(*c), ev->diag);

    if (c == NULL) {
        tl_unref(value);
        return TL_ERR_MEMORY;
    }
    c->kind = kind;
    c->value = value;
    *out = tl_obj_value_take(c);
    return TL_OK;
}

void tl_context_free(tl_obj *obj)
{
    tl_unref(((tl_context *)obj)->value);
}

/* Force the mode of every module below; the list of modules with the modes
 * that they had is the state to restore. */
static tl_status enter_mode(tl_eval *ev, const tl_context *c, tl_value *state)
{
    tl_module **mods = NULL;
    size_t n = 0;
    tl_value list = tl_empty();

    TL_TRY(tl_modules_below(ev, c->value, &mods, &n));
    tl_status st = tl_seq_new_take(&list, TL_V_LIST, NULL, 0, ev->diag);

    for (size_t i = 0; i < n && st == TL_OK; i++) {
        mods[i]->obj.refs++;
        st = tl_list_push_take(list.seq, tl_obj_value_take(mods[i]),
                               ev->diag);
        if (st == TL_OK) {
            st = tl_list_push_take(list.seq, tl_int_value(mods[i]->forced),
                                   ev->diag);
        }
    }
    for (size_t i = 0; i < n && st == TL_OK; i++) {
        if (ev->domain->saw_mode != NULL) {
            ev->domain->saw_mode(ev, mods[i]);
        }
        mods[i]->forced = c->eval ? 1 : 2;
    }
    tl_free(mods);
    if (st != TL_OK) {
        tl_unref(list);
        return st;
    }
    *state = list;
    return TL_OK;
}

/* `with no_grad:` names a row of builtin_grad.def. */
static bool is_no_grad(tl_value v)
{
    return v.tag == TL_V_BUILTIN && strcmp(v.builtin->name, "no_grad") == 0;
}

tl_status tl_context_enter(tl_eval *ev, tl_value context, tl_value *state)
{
    if (context.tag == TL_V_UNKNOWN) {
        return TL_OK;
    }
    if (is_no_grad(context)) {
        ev->rt->no_grad++;
        return TL_OK;
    }
    if (context.tag == TL_V_BUILTIN) {
        return tl_fail(ev->diag, TL_E0210,
                       "`%s` is not a context: call it with its arguments",
                       context.builtin->name);
    }
    if (context.tag != TL_V_CONTEXT) {
        tl_status st = tl_fail(ev->diag, TL_E0210,
                               "`with` needs a context, got %s",
                               tl_value_type_str(context).s);

        tl_diag_help(ev->diag, "no_grad, mode(\"eval\", m), autocast(bf16), "
                               "device(\"cpu\")");
        return st;
    }
    switch (context.context->kind) {
    case TL_CONTEXT_MODE:
        return enter_mode(ev, context.context, state);
    case TL_CONTEXT_AUTOCAST:
        tl_autocast_enter(ev, context.context->on, context.context->dtype,
                          state);
        return TL_OK;
    default:
        return TL_OK;
    }
}

void tl_context_leave(tl_eval *ev, tl_value context, tl_value state)
{
    if (is_no_grad(context)) {
        ev->rt->no_grad--;
    }
    if (context.tag == TL_V_CONTEXT && state.tag == TL_V_INT) {
        tl_autocast_leave(ev, state);
    }
    if (context.tag == TL_V_CONTEXT && state.tag == TL_V_LIST) {
        for (size_t i = 0; i + 1 < state.seq->len; i += 2) {
            state.seq->items[i].module->forced =
                (int8_t)state.seq->items[i + 1].i;
        }
    }
    tl_unref(state);
}
