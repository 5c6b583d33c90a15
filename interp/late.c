/* late.c - see late.h. */
#include "interp/late.h"

#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/format.h"
#include "interp/record.h"
#include "interp/trace.h"

/* ---- what is known ------------------------------------------------------ */

#define MAX_DEPTH 1000 /* deeper values have no text (E0224) */

static bool known(tl_value v, int depth);

static bool items_known(const tl_value *items, size_t n, int depth)
{
    for (size_t i = 0; i < n; i++) {
        if (!known(items[i], depth)) {
            return false;
        }
    }
    return true;
}

static bool known(tl_value v, int depth)
{
    size_t at = 0;

    if (++depth > MAX_DEPTH) {
        return true;
    }
    switch (v.tag) {
    case TL_V_UNKNOWN:
    case TL_V_NODE:
    case TL_V_SYM:
    case TL_V_LATE:
        return false;
    case TL_V_LIST:
    case TL_V_TUPLE:
        return items_known(v.seq->items, v.seq->len, depth);
    case TL_V_RECORD:
        return items_known(v.record->fields, tl_record_nfields(v.record),
                           depth);
    case TL_V_DICT:
        for (tl_dict_entry *e; (e = tl_dict_next(v.dict, &at)) != NULL;) {
            if (!known(e->value, depth)) {
                return false;
            }
        }
        return true;
    default:
        return true;
    }
}

bool tl_text_known(tl_value v)
{
    return known(v, 0);
}

/* ---- making ------------------------------------------------------------- */

static tl_status format(tl_value v, tl_value spec, tl_buf *out, tl_diag *diag)
{
    return spec.tag == TL_V_STR
               ? tl_format_spec(v, spec.str->data, spec.str->len, out, diag)
               : tl_format_str(v, out, diag);
}

static tl_status join_pieces(const tl_seq *pieces, tl_value *out,
                             tl_diag *diag)
{
    tl_status st = TL_OK;
    tl_buf buf;

    tl_buf_init(&buf);
    for (size_t i = 0; i < pieces->len && st == TL_OK; i++) {
        tl_value p = pieces->items[i];

        if (p.tag == TL_V_STR) {
            tl_buf_add(&buf, p.str->data, p.str->len);
        } else {
            st = format(p.seq->items[0], p.seq->items[1], &buf, diag);
        }
    }
    if (st == TL_OK) {
        st = tl_str_from_buf(out, &buf, diag);
    }
    tl_buf_fini(&buf);
    return st;
}

tl_status tl_late_new_take(tl_value *out, tl_value pieces, tl_diag *diag)
{
    tl_late *late;

    if (tl_text_known(pieces)) {
        tl_status st = join_pieces(pieces.seq, out, diag);

        tl_unref(pieces);
        return st;
    }
    late = tl_obj_new(TL_V_LATE, sizeof(*late), diag);
    if (late == NULL) {
        tl_unref(pieces);
        return TL_ERR_MEMORY;
    }
    late->pieces = pieces;
    *out = tl_obj_value_take(late);
    return TL_OK;
}

void tl_text_init(tl_text_parts *t)
{
    tl_buf_init(&t->buf);
    t->list = tl_empty();
    t->unknown = false;
}

void tl_text_fini(tl_text_parts *t)
{
    tl_buf_fini(&t->buf);
    tl_drop(&t->list);
}

/* Known text so far becomes a piece. */
static tl_status flush(tl_eval *ev, tl_text_parts *t)
{
    tl_value s;

    if (t->list.tag == TL_V_EMPTY) {
        TL_TRY(tl_seq_alloc(&t->list, TL_V_LIST, 0, ev->diag));
    }
    if (t->buf.len == 0) {
        return TL_OK;
    }
    TL_TRY(tl_str_from_buf(&s, &t->buf, ev->diag));
    tl_buf_fini(&t->buf);
    tl_buf_init(&t->buf);
    return tl_list_push_take(t->list.seq, s, ev->diag);
}

tl_status tl_text_add(tl_eval *ev, tl_text_parts *t, tl_value v,
                      tl_value spec)
{
    tl_value pair[2] = {v, spec}, piece;

    if (tl_text_known(v)) {
        return format(v, spec, &t->buf, ev->diag);
    }
    if (!tl_is_tracing(ev) || v.tag == TL_V_UNKNOWN) {
        t->unknown = true;
        return TL_OK;
    }
    TL_TRY(flush(ev, t));
    tl_ref(v);
    tl_ref(spec);
    TL_TRY(tl_seq_new_take(&piece, TL_V_TUPLE, pair, 2, ev->diag));
    return tl_list_push_take(t->list.seq, piece, ev->diag);
}

tl_status tl_text_finish(tl_eval *ev, tl_text_parts *t, tl_value *out)
{
    tl_value pieces;

    if (t->unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (t->list.tag == TL_V_EMPTY) {
        return tl_str_from_buf(out, &t->buf, ev->diag);
    }
    TL_TRY(flush(ev, t));
    for (size_t i = 0; i < t->list.seq->len; i++) {
        tl_ref(t->list.seq->items[i]);
    }
    TL_TRY(tl_seq_new_take(&pieces, TL_V_TUPLE, t->list.seq->items,
                           t->list.seq->len, ev->diag));
    return tl_late_new_take(out, pieces, ev->diag);
}

tl_status tl_late_read(tl_eval *ev, tl_value *v)
{
    tl_value pieces = tl_ref(((tl_late *)v->obj)->pieces), text;
    tl_status st = tl_sym_read_deep(ev, &pieces);

    if (st == TL_OK && !tl_text_known(pieces)) {
        st = tl_trace_refuse(ev, "the text of a tensor is needed before it "
                                 "is computed");
        tl_diag_help(ev->diag, "such texts stand in `print`, `assert` and "
                               "`raise` only; return the tensor and make the "
                               "text outside");
    }
    if (st != TL_OK) {
        tl_unref(pieces);
        return st;
    }
    TL_TRY(tl_late_new_take(&text, pieces, ev->diag));
    tl_unref(*v);
    *v = text;
    return TL_OK;
}
