/* iter.c - what `for` goes over.
 *
 * Lists, tuples, dicts (keys), strings (characters), ranges, tensors (along
 * axis 0), modules: with size() and at(i), or with next(), and zips of these.
 * A list is walked as it was when the loop began: values do not change. */
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/eval_impl.h"
#include "interp/sym.h"
#include "runtime/base/mem.h"

enum {
    ITER_NONE,
    ITER_SEQ,
    ITER_DICT,
    ITER_RANGE,
    ITER_INDEX,
    ITER_TENSOR,
    ITER_AT,
    ITER_NEXT,
    ITER_ZIP };

static const tl_funcdef *method(tl_eval *ev, const tl_module *m,
                                const char *name, size_t len)
{
    return tl_class_method(m->cls,
                           tl_intern_find(ev->lang->names, name, len));
}

static tl_status call_method(tl_eval *ev, tl_module *m, const char *name,
                             size_t len, tl_value *arg, tl_value *out)
{
    tl_args args = {.pos = arg, .npos = arg != NULL, .span = ev->rt->span};

    return tl_call_code(ev, method(ev, m, name, len), m->cls->ns, NULL, m,
                        &args, out);
}

static tl_status module_init(tl_eval *ev, tl_module *m, tl_iter *state)
{
    tl_value n = tl_empty();

    if (method(ev, m, "next", 4) != NULL) {
        state->kind = ITER_NEXT;
        return TL_OK;
    }
    if (method(ev, m, "size", 4) == NULL || method(ev, m, "at", 2) == NULL) {
        tl_status st = tl_fail(ev->diag, TL_E0210,
                               "a %s cannot be iterated over",
                               tl_class_name(m->cls));

        tl_diag_help(ev->diag, "give it `fn size() -> int` and "
                               "`fn at(i: int)`, or `fn next()`");
        return st;
    }
    TL_TRY(call_method(ev, m, "size", 4, NULL, &n));
    if (n.tag != TL_V_INT && n.tag != TL_V_UNKNOWN) {
        tl_status st = tl_fail(ev->diag, TL_E0210,
                               "`size` must give an int, got %s",
                               tl_value_type_str(n).s);

        tl_unref(n);
        return st;
    }
    state->kind = ITER_AT;
    state->n = n.tag == TL_V_INT ? n.i : 1;
    return TL_OK;
}

static tl_status tensor_init(tl_eval *ev, tl_value it, tl_iter *state)
{
    tl_ttype type;

    TL_TRY(tl_eval_type(ev, it, &type));
    if (type.shape.rank == 0) {
        return tl_fail(ev->diag, TL_E0304,
                       "a scalar tensor cannot be iterated over");
    }
    state->kind = ITER_TENSOR;
    tl_dim n = type.shape.dim[0];
    tl_infer *infer = tl_eval_infer(ev);

    if (!tl_dim_is_num(n) && infer->pin != NULL) {
        TL_TRY(infer->pin(infer->guard_arg, n, &n));
    }
    state->n = tl_dim_is_num(n) ? tl_dim_value(n) : 1;
    return TL_OK;
}

/* One iterator for each source of a zip. */
static tl_status zip_init(tl_eval *ev, const tl_zip *zip, tl_iter *state)
{
    state->kind = ITER_ZIP;
    state->sub = tl_calloc(zip->n == 0 ? 1 : zip->n, sizeof(*state->sub));
    if (state->sub == NULL) {
        return tl_fail_memory(ev->diag, "zip", zip->n * sizeof(*state->sub));
    }
    for (; state->n < (int64_t)zip->n; state->n++) {
        TL_TRY(tl_iter_init_take(ev, tl_ref(zip->sources[state->n]),
                                 &state->sub[state->n]));
    }
    return TL_OK;
}

static tl_status init(tl_eval *ev, tl_value it, tl_iter *state)
{
    switch (it.tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
        state->kind = ITER_SEQ;
        state->n = (int64_t)it.seq->len;
        return TL_OK;
    case TL_V_DICT:
        state->kind = ITER_DICT;
        state->n = (int64_t)it.dict->len;
        return TL_OK;
    case TL_V_RANGE:
        state->kind = ITER_RANGE;
        state->n = tl_range_len(it.range);
        return TL_OK;
    case TL_V_STR:
        state->kind = ITER_INDEX;
        state->n = tl_container_len(it);
        return TL_OK;
    case TL_V_TENSOR:
    case TL_V_NODE:
        return tensor_init(ev, it, state);
    case TL_V_MODULE:
        return module_init(ev, it.module, state);
    case TL_V_ZIP:
        return zip_init(ev, it.zip, state);
    default:
        return tl_fail(ev->diag, TL_E0210, "%s cannot be iterated over",
                       tl_value_type_str(it).s);
    }
}

tl_status tl_iter_init_take(tl_eval *ev, tl_value it, tl_iter *state)
{
    tl_status st = tl_sym_read(ev, &it);

    *state = (tl_iter){.source = it};
    if (st == TL_OK) {
        st = init(ev, it, state);
    }

    if (st != TL_OK) {
        tl_iter_fini(state);
    }
    return st;
}

/* One item of each source as a tuple; the first that has ended ends all. */
static tl_status zip_next(tl_eval *ev, tl_iter *s, bool *more, tl_value *out)
{
    const tl_zip *zip = s->source.zip;
    size_t at = zip->numbered;
    tl_value tuple = tl_empty();
    tl_status st = TL_OK;

    *more = s->n > 0;
    TL_TRY(tl_seq_alloc(&tuple, TL_V_TUPLE, at + zip->n, ev->diag));
    if (zip->numbered) {
        tuple.seq->items[0] = tl_int_value(
            (int64_t)((uint64_t)zip->start + (uint64_t)s->i++));
    }
    for (int64_t k = 0; k < s->n && *more && st == TL_OK; k++) {
        tl_value v = tl_empty();

        st = tl_iter_next(ev, &s->sub[k], more, &v);
        if (st == TL_OK && *more) {
            tuple.seq->items[at++] = v;
        }
    }
    if (st != TL_OK || !*more) {
        tl_unref(tuple);
        return st;
    }
    *out = tuple;
    return TL_OK;
}

static tl_status item(tl_eval *ev, tl_iter *s, tl_value *out)
{
    tl_value i = tl_int_value(s->i++);

    switch (s->kind) {
    case ITER_SEQ:
        *out = tl_ref(s->source.seq->items[i.i]);
        return TL_OK;
    case ITER_RANGE:
        *out = tl_int_value(s->source.range->start +
                            i.i * s->source.range->step);
        return TL_OK;
    case ITER_INDEX:
        return tl_container_index(s->source, i, out, ev->diag);
    case ITER_TENSOR:
        return tl_eval_index_take(ev, tl_ref(s->source), &i, 1, out);
    default:
        return call_method(ev, s->source.module, "at", 2, &i, out);
    }
}

tl_status tl_iter_next(tl_eval *ev, tl_iter *s, bool *more, tl_value *out)
{
    *more = true;
    if (s->kind == ITER_NEXT) {
        TL_TRY(call_method(ev, s->source.module, "next", 4, NULL, out));
        *more = out->tag != TL_V_NONE;
        return TL_OK;
    }
    if (s->kind == ITER_ZIP) {
        return zip_next(ev, s, more, out);
    }
    while (s->kind == ITER_DICT && s->i < s->n) {
        const tl_dict_entry *e = &s->source.dict->entries[s->i++];

        if (e->key.tag != TL_V_EMPTY) {
            *out = tl_ref(e->key);
            return TL_OK;
        }
    }
    if (s->i >= s->n) {
        *more = false;
        return TL_OK;
    }
    return item(ev, s, out);
}

bool tl_iter_is_stream(const tl_iter *state)
{
    return state->kind == ITER_NEXT;
}

void tl_iter_fini(tl_iter *state)
{
    for (int64_t i = 0; state->sub != NULL && i < state->n; i++) {
        tl_iter_fini(&state->sub[i]);
    }
    tl_free(state->sub);
    state->sub = NULL;
    tl_drop(&state->source);
}
