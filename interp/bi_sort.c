/* bi_sort.c - sorting lists: a stable merge sort over (key, item) pairs.
 *
 * Keys are host values, or tensors of one element, which are read once.  A
 * NaN is equal to everything, so it stays where it is among its neighbours. */
#include "interp/bi_walk.h"
#include "interp/builtin_fns.h"
#include "interp/container.h"
#include "runtime/base/mem.h"

typedef struct pair {
    tl_value key;
    tl_value item; /* borrowed from the list */
} pair;

typedef struct sorter {
    tl_eval *ev;
    pair *pairs, *spare; /* of n each */
    size_t n;
    bool reverse;
} sorter;

/* ---- keys -------------------------------------------------------------- */

static tl_status make_key(tl_eval *ev, tl_value f, tl_value item,
                          tl_value *out)
{
    tl_value key = tl_ref(item);

    if (f.tag != TL_V_NONE && f.tag != TL_V_EMPTY) {
        tl_value arg = key;
        tl_status st = tl_eval_call_values(ev, f, &arg, 1, &key);

        tl_unref(arg);
        TL_TRY(st);
    }
    if (tl_is_tensor(key)) {
        tl_value tensor = key;
        tl_status st = tl_eval_read(ev, tensor, &key);

        tl_unref(tensor);
        TL_TRY(st);
    }
    *out = key;
    return TL_OK;
}

static tl_status make_keys(sorter *s, tl_value xs, tl_value f, bool *known)
{
    *known = true;
    for (size_t i = 0; i < s->n && *known; i++) {
        TL_TRY(make_key(s->ev, f, xs.seq->items[i], &s->pairs[i].key));
        s->pairs[i].item = xs.seq->items[i];
        *known = tl_value_known(s->pairs[i].key);
    }
    return TL_OK;
}

/* ---- merging ----------------------------------------------------------- */

/* May `a`, which stands before `b`, stay there? */
static tl_status in_order(const sorter *s, const pair *a, const pair *b,
                          bool *out)
{
    int c;

    TL_TRY(tl_value_compare(a->key, b->key, &c, s->ev->diag));
    *out = c == TL_UNORDERED || (s->reverse ? c >= 0 : c <= 0);
    return TL_OK;
}

/* Merge pairs[from .. mid) and pairs[mid .. to) into spare. */
static tl_status merge(sorter *s, size_t from, size_t mid, size_t to)
{
    size_t i = from, j = mid, k = from;

    while (i < mid && j < to) {
        bool first;

        TL_TRY(in_order(s, &s->pairs[i], &s->pairs[j], &first));
        s->spare[k++] = first ? s->pairs[i++] : s->pairs[j++];
    }
    while (i < mid) {
        s->spare[k++] = s->pairs[i++];
    }
    while (j < to) {
        s->spare[k++] = s->pairs[j++];
    }
    return TL_OK;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static tl_status merge_sort(sorter *s)
{
    for (size_t width = 1; width < s->n; width *= 2) {
        pair *t;

        for (size_t i = 0; i < s->n; i += 2 * width) {
            TL_TRY(merge(s, i, least(i + width, s->n),
                         least(i + 2 * width, s->n)));
        }
        t = s->pairs;
        s->pairs = s->spare;
        s->spare = t;
    }
    return TL_OK;
}

/* ---- the functions ----------------------------------------------------- */

static tl_status sorted_items(const sorter *s, tl_value *out)
{
    TL_TRY(tl_seq_alloc(out, TL_V_LIST, s->n, s->ev->diag));
    for (size_t i = 0; i < s->n; i++) {
        out->seq->items[i] = tl_ref(s->pairs[i].item);
    }
    return TL_OK;
}

tl_status tl_sort_list(tl_eval *ev, tl_value xs, tl_value key, bool reverse,
                       tl_value *out)
{
    size_t n = xs.seq->len;
    pair *memory = tl_calloc(2 * n + 1, sizeof(*memory));
    sorter s = {.ev = ev, .pairs = memory, .n = n, .reverse = reverse};
    tl_status st = TL_OK;
    bool known;

    if (memory == NULL) {
        return tl_fail_memory(ev->diag, "sorting", 2 * n * sizeof(*memory));
    }
    s.spare = memory + n;
    for (size_t i = 0; i < n; i++) {
        s.pairs[i].key = tl_empty();
    }
    TL_GOTO(st, make_keys(&s, xs, key, &known));
    if (!known) {
        *out = tl_unknown();
        goto out;
    }
    TL_GOTO(st, merge_sort(&s));
    st = sorted_items(&s, out);
out:
    /* after a failed merge a pair may stand in either half: keys are
     * released from the untouched half, which is always complete */
    for (size_t i = 0; i < n; i++) {
        tl_unref(s.pairs[i].key);
    }
    tl_free(memory);
    return st;
}

/* sorted(xs, key, reverse) */
tl_status tl_bi_sorted(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    tl_value list = tl_empty();
    tl_status st;

    (void)self;
    if (!tl_walk_known(ev, args[0])) {
        *out = tl_unknown();
        return TL_OK;
    }
    if (args[0].tag == TL_V_LIST || args[0].tag == TL_V_TUPLE) {
        return tl_sort_list(ev, args[0], args[1], args[2].b, out);
    }
    TL_TRY(tl_walk_list(ev, args[0], &list));
    st = tl_sort_list(ev, list, args[1], args[2].b, out);
    tl_unref(list);
    return st;
}
