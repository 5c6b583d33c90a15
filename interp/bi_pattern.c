/* bi_pattern.c - rearrange, reduce and einsum by patterns of axis names.
 *
 * runtime/op/pattern.h parses the patterns and composes registered
 * operations; errors point inside the string where the source shows it. */
#include <string.h>

#include "interp/bi_tensor.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/emit.h"
#include "runtime/op/pattern.h"

enum { MAX_SIZES = 32 }; /* given by keyword */

/* The error that was just reported is about bytes of the pattern: show them
 * where the text of the call has it. */
static void point_inside(tl_eval *ev, const tl_str *pattern,
                         tl_pattern_place place)
{
    tl_span call = ev->rt->span;
    const tl_source *src = tl_sources_get(ev->lang->sources, call.file);

    if (src == NULL || call.end > src->len || place.end <= place.start) {
        return;
    }
    for (uint32_t i = call.start; i + pattern->len <= call.end; i++) {
        if (memcmp(src->text + i, pattern->data, pattern->len) == 0) {
            tl_diag_at(ev->diag,
                       (tl_span){call.file, (uint32_t)(i + place.start),
                                 (uint32_t)(i + place.end)});
            return;
        }
    }
}

static tl_status parse(tl_eval *ev, tl_pattern *p, tl_pattern_kind kind,
                       const tl_str *text)
{
    tl_pattern_place place = {0, 0};
    tl_status st = tl_pattern_parse(p, kind, text->data, text->len, &place,
                                    ev->diag);

    if (st == TL_ERR_PROGRAM) {
        point_inside(ev, text, place);
    }
    return st;
}

/* Sizes given by keyword; *unknown: one of them is UNKNOWN. */
static tl_status keyword_sizes(tl_eval *ev, const tl_dict *d,
                               tl_pattern_size *sizes, int *n, bool *unknown)
{
    const tl_dict_entry *e;
    size_t i = 0;

    *n = 0;
    *unknown = false;
    while ((e = tl_dict_next(d, &i)) != NULL) {
        const char *name = e->key.str->data;

        if (e->value.tag == TL_V_UNKNOWN) {
            *unknown = true;
            continue;
        }
        if (e->value.tag != TL_V_INT || *n == MAX_SIZES) {
            return tl_fail(ev->diag, TL_E0210,
                           "the size of `%s` must be an int, got %s", name,
                           tl_value_type_str(e->value).s);
        }
        if (e->value.i < 0) {
            return tl_fail(ev->diag, TL_E0306,
                           "size must be at least 0, got %s=%lld", name,
                           (long long)e->value.i);
        }
        sizes[(*n)++] = (tl_pattern_size){name, tl_dim_num(e->value.i)};
    }
    return TL_OK;
}

/* rearrange, or reduce by `how`, of args[0] with the pattern args[1]. */
static tl_status apply(tl_eval *ev, tl_pattern_kind kind, tl_op how,
                       tl_value *args, const tl_dict *by_name, tl_value *out)
{
    tl_pattern_size sizes[MAX_SIZES];
    tl_pattern_place place = {0, 0};
    tl_eval_emit e;
    tl_pattern p;
    bool unknown;
    tl_node x;
    int n;

    TL_TRY(parse(ev, &p, kind, args[1].str));
    TL_TRY(keyword_sizes(ev, by_name, sizes, &n, &unknown));
    if (unknown) {
        *out = tl_unknown();
        return TL_OK;
    }
    tl_eval_emit_init(&e, ev);
    tl_status st = tl_eval_emit_node_take(&e, tl_arg_take(args, 0), &x);

    if (st == TL_OK) {
        st = tl_pattern_apply(&e.emit, &p, how, x, sizes, n, &x, &place);
    }
    if (st == TL_OK) {
        *out = tl_eval_emit_value(x);
    } else if (st == TL_ERR_PROGRAM) {
        point_inside(ev, args[1].str, place);
    }
    tl_eval_emit_fini(&e);
    return st;
}

tl_status tl_bi_rearrange(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)self;
    return apply(ev, TL_PATTERN_REARRANGE, TL_OP_COUNT, args, args[2].dict,
                 out);
}

/* The reduction that a function of the language is. */
static tl_status reduction(tl_eval *ev, tl_value how, tl_op *out)
{
    *out = how.tag == TL_V_BUILTIN ? how.builtin->op : TL_OP_COUNT;
    switch (*out) {
    case TL_OP_sum:
    case TL_OP_mean:
    case TL_OP_prod:
    case TL_OP_max:
    case TL_OP_min:
    case TL_OP_any:
    case TL_OP_all:
    case TL_OP_norm:
    case TL_OP_logsumexp:
        return TL_OK;
    default:
        return tl_fail(ev->diag, TL_E0416,
                       "`reduce` takes sum, mean, prod, max, min, any, all, "
                       "norm or logsumexp, got %s",
                       how.tag == TL_V_BUILTIN ? how.builtin->name
                                               : tl_value_type_str(how).s);
    }
}

tl_status tl_bi_reduce_axes(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_op how;

    (void)self;
    TL_TRY(reduction(ev, args[2], &how));
    return apply(ev, TL_PATTERN_REDUCE, how, args, args[3].dict, out);
}

/* Operands of einsum as nodes; *unknown: one of them is UNKNOWN. */
static tl_status operands(tl_eval *ev, tl_eval_emit *e, const tl_seq *xs,
                          tl_node *in, bool *unknown)
{
    *unknown = false;
    for (size_t i = 0; i < xs->len; i++) {
        tl_value x = tl_empty();

        if (xs->items[i].tag == TL_V_UNKNOWN) {
            *unknown = true;
            continue;
        }
        TL_TRY(tl_eval_as_tensor_take(ev, tl_ref(xs->items[i]), &x));
        TL_TRY(tl_eval_emit_node_take(e, x, &in[i]));
    }
    return TL_OK;
}

tl_status tl_bi_einsum(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_node in[TL_PATTERN_OPERANDS], y;
    const tl_seq *xs = args[1].seq;
    tl_pattern_place place = {0, 0};
    tl_eval_emit e;
    tl_pattern p;
    bool unknown;

    (void)self;
    TL_TRY(parse(ev, &p, TL_PATTERN_EINSUM, args[0].str));
    if ((size_t)p.noperands != xs->len) {
        return tl_fail(ev->diag, TL_E0323,
                       "the pattern has %d operands, the call %zu",
                       p.noperands, xs->len);
    }
    tl_eval_emit_init(&e, ev);
    tl_status st = operands(ev, &e, xs, in, &unknown);

    if (st == TL_OK && unknown) {
        *out = tl_unknown();
    } else if (st == TL_OK) {
        st = tl_pattern_einsum(&e.emit, &p, in, &y, &place);
        if (st == TL_OK) {
            *out = tl_eval_emit_value(y);
        } else if (st == TL_ERR_PROGRAM) {
            point_inside(ev, args[0].str, place);
        }
    }
    tl_eval_emit_fini(&e);
    return st;
}
