/* value.c - making and freeing values, and their type names.
 *
 * Objects are freed by a worklist: the object whose count reached zero is
 * queued, and whoever is at the queue already frees it too.  So no structure,
 * however deep, needs a deep C stack.  Queue and count belong to the thread,
 * as objects do.  Comparing and hashing are in value_cmp.c. */
#include "interp/value.h"

#include <stdio.h>
#include <string.h>

#include "interp/free.h"
#include "interp/late.h"
#include "interp/sym.h"
#include "interp/module.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

static _Thread_local struct {
    tl_obj *queue; /* dead, not yet freed */
    bool running;
    int64_t live;
} heap;

/* ---- objects ----------------------------------------------------------- */

void *tl_obj_new(tl_tag tag, size_t size, tl_diag *diag)
{
    tl_obj *obj = tl_calloc(1, size);

    if (obj == NULL) {
        (void)tl_fail_memory(diag, "value", size);
        return NULL;
    }
    obj->refs = 1;
    obj->tag = (uint8_t)tag;
    heap.live++;
    return obj;
}

int64_t tl_obj_live(void)
{
    return heap.live;
}

void tl_unref_all(tl_value *items, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        tl_unref(items[i]);
    }
}

static bool seq_is_inline(const tl_seq *seq)
{
    return seq->items == (const tl_value *)(seq + 1);
}

static void seq_free(tl_seq *seq)
{
    tl_unref_all(seq->items, seq->len);
    if (!seq_is_inline(seq)) {
        tl_free(seq->items);
    }
}

static void error_free(tl_error *error)
{
    if (error->message != NULL) {
        tl_unref(tl_obj_value_take(error->message));
    }
    if (error->text != NULL) {
        tl_unref(tl_obj_value_take(error->text));
    }
}

static void slice_free(tl_slice *slice)
{
    tl_unref(slice->start);
    tl_unref(slice->stop);
    tl_unref(slice->step);
}

/* Release what the object holds; see free.h. */
static void release(tl_obj *obj)
{
    switch ((tl_tag)obj->tag) {
    case TL_V_LIST:
    case TL_V_TUPLE:
        seq_free((tl_seq *)obj);
        break;
    case TL_V_DICT:
        tl_dict_free(obj);
        break;
    case TL_V_SLICE:
        slice_free((tl_slice *)obj);
        break;
    case TL_V_SYM:
        tl_unref(((tl_symval *)obj)->hint);
        break;
    case TL_V_LATE:
        tl_unref(((tl_late *)obj)->pieces);
        break;
    case TL_V_ERROR:
        error_free((tl_error *)obj);
        break;
    case TL_V_ZIP:
        tl_unref_all(((tl_zip *)obj)->sources, ((tl_zip *)obj)->n);
        break;
    case TL_V_FN:
        tl_fn_free(obj);
        break;
    case TL_V_METHOD:
        tl_method_free(obj);
        break;
    case TL_V_CLASS:
        tl_class_free(obj);
        break;
    case TL_V_CONTEXT:
        tl_context_free(obj);
        break;
    case TL_V_NAMESPACE:
        tl_namespace_free(obj);
        break;
    case TL_V_RECORD:
        tl_record_free(obj);
        break;
    case TL_V_MODULE:
        tl_module_free(obj);
        break;
    case TL_V_CELL:
        tl_cell_free(obj);
        break;
    case TL_V_SELECT:
        tl_select_free(obj);
        break;
    case TL_V_TREE:
        tl_tree_free(obj);
        break;
    default: /* str, range, node, type: nothing but themselves */
        break;
    }
}

void tl_obj_free(tl_obj *obj)
{
    obj->next = heap.queue;
    heap.queue = obj;
    if (heap.running) {
        return;
    }
    heap.running = true;
    while ((obj = heap.queue) != NULL) {
        heap.queue = obj->next;
        release(obj);
        heap.live--;
        tl_free(obj);
    }
    heap.running = false;
}

/* ---- strings ----------------------------------------------------------- */

static bool is_ascii(const char *s, size_t len)
{
    unsigned char seen = 0;

    for (size_t i = 0; i < len; i++) {
        seen |= (unsigned char)s[i];
    }
    return seen < 0x80;
}

tl_status tl_str_new(tl_value *out, const char *s, size_t len, tl_diag *diag)
{
    tl_str *str = tl_obj_new(TL_V_STR, sizeof(*str) + len + 1, diag);

    if (str == NULL) {
        return TL_ERR_MEMORY;
    }
    if (len > 0) {
        memcpy(str->data, s, len);
    }
    str->len = len;
    str->ascii = is_ascii(str->data, len);
    *out = tl_obj_value_take(str);
    return TL_OK;
}

tl_status tl_str_from_buf(tl_value *out, const tl_buf *buf, tl_diag *diag)
{
    if (buf->failed) {
        return tl_fail_memory(diag, "text", buf->len);
    }
    return tl_str_new(out, buf->data, buf->len, diag);
}

/* ---- lists and tuples -------------------------------------------------- */

tl_status tl_seq_alloc(tl_value *out, tl_tag tag, size_t len, tl_diag *diag)
{
    size_t bytes;
    tl_seq *seq;

    TL_ASSERT(tag == TL_V_LIST || tag == TL_V_TUPLE);
    if (!tl_mul_size(&bytes, len, sizeof(tl_value)) ||
        !tl_add_size(&bytes, bytes, sizeof(*seq))) {
        return tl_fail_memory(diag, "list", SIZE_MAX);
    }
    seq = tl_obj_new(tag, bytes, diag);
    if (seq == NULL) {
        return TL_ERR_MEMORY;
    }
    seq->items = (tl_value *)(seq + 1);
    seq->len = seq->cap = len;
    for (size_t i = 0; i < len; i++) {
        seq->items[i] = tl_empty();
    }
    *out = tl_obj_value_take(seq);
    return TL_OK;
}

tl_status tl_seq_new_take(tl_value *out, tl_tag tag, tl_value *items,
                          size_t len, tl_diag *diag)
{
    tl_value seq; /* `out` may be one of the items */
    tl_status st = tl_seq_alloc(&seq, tag, len, diag);

    if (st != TL_OK) {
        tl_unref_all(items, len);
        return st;
    }
    if (len > 0) {
        memcpy(seq.seq->items, items, len * sizeof(*items));
    }
    *out = seq;
    return TL_OK;
}

/* Room for one more item: the array moves out of the object the first
 * time, and doubles later. */
static tl_status list_grow(tl_seq *list, tl_diag *diag)
{
    size_t cap = list->cap < 4 ? 8 : list->cap * 2, bytes;
    tl_value *items = NULL;

    if (!tl_mul_size(&bytes, cap, sizeof(*items))) {
        return tl_fail_memory(diag, "list", SIZE_MAX);
    }
    if (!seq_is_inline(list)) {
        items = tl_realloc(list->items, bytes);
    } else if ((items = tl_malloc(bytes)) != NULL) {
        memcpy(items, list->items, list->len * sizeof(*items));
    }
    if (items == NULL) {
        return tl_fail_memory(diag, "list", bytes);
    }
    list->items = items;
    list->cap = cap;
    return TL_OK;
}

tl_status tl_list_push_take(tl_seq *list, tl_value item, tl_diag *diag)
{
    if (list->len == list->cap) {
        tl_status st = list_grow(list, diag);

        if (st != TL_OK) {
            tl_unref(item);
            return st;
        }
    }
    list->items[list->len++] = item;
    return TL_OK;
}

/* ---- ranges, slices, nodes --------------------------------------------- */

tl_status tl_range_new(tl_value *out, int64_t start, int64_t stop,
                       int64_t step, tl_diag *diag)
{
    tl_range *range;

    if (step == 0) {
        return tl_fail(diag, TL_E0416, "the step of a range must not be 0");
    }
    range = tl_obj_new(TL_V_RANGE, sizeof(*range), diag);
    if (range == NULL) {
        return TL_ERR_MEMORY;
    }
    range->start = start;
    range->stop = stop;
    range->step = step;
    *out = tl_obj_value_take(range);
    return TL_OK;
}

int64_t tl_range_len(const tl_range *range)
{
    /* unsigned: the distance may exceed INT64_MAX */
    uint64_t gap, step, n;

    if (range->step > 0) {
        if (range->start >= range->stop) {
            return 0;
        }
        gap = (uint64_t)range->stop - (uint64_t)range->start;
        step = (uint64_t)range->step;
    } else {
        if (range->start <= range->stop) {
            return 0;
        }
        gap = (uint64_t)range->start - (uint64_t)range->stop;
        step = -(uint64_t)range->step;
    }
    n = (gap - 1) / step + 1;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

tl_status tl_slice_new_take(tl_value *out, tl_value start, tl_value stop,
                            tl_value step, tl_diag *diag)
{
    tl_slice *slice = tl_obj_new(TL_V_SLICE, sizeof(*slice), diag);

    if (slice == NULL) {
        tl_unref(start);
        tl_unref(stop);
        tl_unref(step);
        return TL_ERR_MEMORY;
    }
    slice->start = start;
    slice->stop = stop;
    slice->step = step;
    *out = tl_obj_value_take(slice);
    return TL_OK;
}

tl_status tl_dnode_new(tl_value *out, const tl_ttype *type, uint32_t id,
                       tl_diag *diag)
{
    tl_dnode *node = tl_obj_new(TL_V_NODE, sizeof(*node), diag);

    if (node == NULL) {
        return TL_ERR_MEMORY;
    }
    node->id = id;
    node->type = *type;
    *out = tl_obj_value_take(node);
    return TL_OK;
}

/* ---- type names -------------------------------------------------------- */

static const char *const tag_names[TL_V_TAG_COUNT] = {
    [TL_V_NONE] = "none",
    [TL_V_EMPTY] = "nothing",
    [TL_V_BOOL] = "bool",
    [TL_V_INT] = "int",
    [TL_V_FLOAT] = "float",
    [TL_V_DTYPE] = "dtype",
    [TL_V_ELLIPSIS] = "...",
    [TL_V_UNKNOWN] = "unknown",
    [TL_V_BUILTIN] = "function",
    [TL_V_TENSOR] = "tensor",
    [TL_V_STR] = "str",
    [TL_V_LIST] = "list",
    [TL_V_TUPLE] = "tuple",
    [TL_V_DICT] = "dict",
    [TL_V_RANGE] = "range",
    [TL_V_SLICE] = "slice",
    [TL_V_FN] = "function",
    [TL_V_METHOD] = "method",
    [TL_V_CLASS] = "definition",
    [TL_V_RECORD] = "record",
    [TL_V_MODULE] = "module",
    [TL_V_CELL] = "cell",
    [TL_V_SELECT] = "select",
    [TL_V_TREE] = "tree",
    [TL_V_NAMESPACE] = "imported file",
    [TL_V_ERROR] = "error",
    [TL_V_CONTEXT] = "context",
    [TL_V_NODE] = "tensor",
    [TL_V_SYM] = "number",
    [TL_V_ZIP] = "zip",
    [TL_V_TYPE] = "type",
    [TL_V_LATE] = "str",
};

static const char *class_name(const tl_class *cls, const char *fallback)
{
    if (cls == NULL || cls->code == NULL || cls->code->name == NULL) {
        return fallback;
    }
    return cls->code->name->text;
}

tl_shape_text tl_value_type_str(tl_value v)
{
    const char *name = tag_names[v.tag];
    tl_shape_text text;
    tl_ttype type;

    switch (v.tag) {
    case TL_V_TENSOR:
        tl_tensor_shown_type(v.tensor, &type);
        return tl_ttype_str(&type);
    case TL_V_NODE:
        return tl_ttype_str(&v.node->type);
    case TL_V_SYM:
        name = tag_names[v.sym->hint.tag];
        break;
    case TL_V_RECORD:
        name = class_name(v.record->cls, name);
        break;
    case TL_V_MODULE:
        name = class_name(v.module->cls, name);
        break;
    default:
        break;
    }
    snprintf(text.s, sizeof(text.s), "%s", name);
    return text;
}
