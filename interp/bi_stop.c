/* bi_stop.c - stop(x) of values that hold values.
 *
 * They are rebuilt with their tensors stopped, as tl_bi_stop does it.  A module
 * is no value: its cells would be read as before, so it is refused. */
#include "interp/builtin_fns.h"
#include "interp/call.h"
#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/record.h"
#include "interp/tree.h"
#include "runtime/base/mem.h"

static tl_status stop_value(tl_eval *ev, tl_value v, tl_value *out);

/* `n` values, stopped; to be freed with tl_free. */
static tl_status stop_items(tl_eval *ev, const tl_value *from, size_t n,
                            tl_value **out)
{
    tl_value *items = tl_calloc(n ? n : 1, sizeof(*items));

    if (items == NULL) {
        return tl_fail_memory(ev->diag, "a stopped value",
                              n * sizeof(*items));
    }
    for (size_t i = 0; i < n; i++) {
        tl_status st = stop_value(ev, from[i], &items[i]);

        if (st != TL_OK) {
            tl_unref_all(items, i);
            tl_free(items);
            return st;
        }
    }
    *out = items;
    return TL_OK;
}

static tl_status stop_seq(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_value *items;

    TL_TRY(stop_items(ev, v.seq->items, v.seq->len, &items));
    tl_status st = tl_seq_new_take(out, v.tag, items, v.seq->len, ev->diag);

    tl_free(items);
    return st;
}

/* Its finite flag stays. */
static tl_status stop_tree(tl_eval *ev, tl_value v, tl_value *out)
{
    TL_TRY(tl_bi_stop(ev, NULL, &v, out));
    tl_status st = tl_tree_join_flag(ev, out->tree, v.tree);

    if (st != TL_OK) {
        tl_unref(*out);
    }
    return st;
}

static tl_status stop_record(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_value *items;
    uint32_t n = tl_record_nfields(v.record);

    TL_TRY(stop_items(ev, v.record->fields, n, &items));
    tl_status st = tl_record_new_take(ev, v.record->cls, items, out);

    tl_free(items);
    return st;
}

static tl_status stop_dict(tl_eval *ev, tl_value v, tl_value *out)
{
    tl_value made;
    tl_dict_entry *e;
    tl_status st = TL_OK;
    size_t i = 0;

    TL_TRY(tl_dict_new(&made, ev->diag));
    while (st == TL_OK && (e = tl_dict_next(v.dict, &i)) != NULL) {
        tl_value item = tl_empty();

        st = stop_value(ev, e->value, &item);
        if (st == TL_OK) {
            st = tl_dict_set_take(made.dict, tl_ref(e->key), item, ev->diag);
        }
    }
    if (st != TL_OK) {
        tl_unref(made);
        return st;
    }
    *out = made;
    return TL_OK;
}

static tl_status stop_value(tl_eval *ev, tl_value v, tl_value *out)
{
    TL_TRY(tl_check_stack(ev, ev->rt->span));
    switch (v.tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
        return stop_seq(ev, v, out);
    case TL_V_DICT:
        return stop_dict(ev, v, out);
    case TL_V_TREE:
        return stop_tree(ev, v, out);
    case TL_V_RECORD:
        return stop_record(ev, v, out);
    case TL_V_MODULE:
    case TL_V_CELL:
    case TL_V_SELECT: {
        tl_status st = tl_fail(ev->diag, TL_E0210,
                               "`stop` takes values, got %s",
                               tl_value_type_str(v).s);

        tl_diag_help(ev->diag, "stop what it computes, or compute it "
                               "`with no_grad:`");
        return st;
    }
    default:
        return tl_bi_stop(ev, NULL, &v, out);
    }
}

tl_status tl_bi_stop_all(tl_eval *ev, const tl_builtin *self, tl_value *args,
                         tl_value *out)
{
    (void)self;
    return stop_value(ev, args[0], out);
}
