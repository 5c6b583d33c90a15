/* value.h - what an expression of a program evaluates to.
 *
 * A tl_value is 16 bytes: a tag and an immediate or a counted object.  Values
 * are immutable to the program; an object may be changed in place only while
 * one reference to it exists (tl_unshared), which is how `xs += [v]` costs
 * what it should.  Only cells change (cell.h), and references go from modules
 * to cells and children, never back, so counts suffice: there are no cycles.
 *
 * Ownership: functions borrow what they are given unless the name says _take;
 * results are new references.  An object belongs to one evaluator's thread.
 *
 * Tensors: TENSOR holds data (concrete domain).  NODE stands for a tensor in
 * the shape and graph domains: it has a type and, in a graph, a number.
 * UNKNOWN is any value that a domain without data cannot know; whatever is
 * computed from it is UNKNOWN too. */
#ifndef TL_INTERP_VALUE_H
#define TL_INTERP_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/diag.h"
#include "runtime/base/intern.h"
#include "runtime/op/shape.h"
#include "runtime/tensor/tensor.h"

typedef enum tl_tag {
    /* immediates */
    TL_V_EMPTY, /* no value: a slot never written, or given away; zero, so
                   that zeroed memory holds none */
    TL_V_NONE,
    TL_V_BOOL,
    TL_V_INT,
    TL_V_FLOAT,
    TL_V_DTYPE,
    TL_V_ELLIPSIS,
    TL_V_UNKNOWN,
    TL_V_BUILTIN, /* a row of builtin.def */
    /* counted by themselves */
    TL_V_TENSOR,
    /* objects: TL_V_STR is the first, all later ones have a tl_obj */
    TL_V_STR,
    TL_V_LIST,
    TL_V_TUPLE,
    TL_V_DICT,
    TL_V_RANGE,
    TL_V_SLICE,
    TL_V_FN,     /* function with captured values */
    TL_V_METHOD, /* function or built-in bound to its first argument */
    TL_V_CLASS,  /* a module definition or record definition */
    TL_V_RECORD,
    TL_V_MODULE,    /* an instance */
    TL_V_CELL,      /* cell(net.w) */
    TL_V_SELECT,    /* select(net, "*.bias") */
    TL_V_TREE,      /* gradients or parameters by path */
    TL_V_NAMESPACE, /* an imported file */
    TL_V_ERROR,     /* what `catch e` binds */
    TL_V_CONTEXT,   /* no_grad, autocast(bf16), mode("eval", m), ... */
    TL_V_NODE,
    TL_V_SYM, /* a host number that may differ from call to call (sym.h) */
    TL_V_ZIP,  /* zip or enumerate of something that is read as it goes */
    TL_V_TYPE, /* a type as a value: the initialiser's second argument */
    TL_V_LATE, /* a text that only the run of a program knows (late.h) */
    TL_V_TAG_COUNT
} tl_tag;

typedef struct tl_obj {
    int32_t refs;
    uint8_t tag;         /* tl_tag */
    struct tl_obj *next; /* while it waits to be freed */
} tl_obj;

typedef struct tl_str tl_str;
typedef struct tl_seq tl_seq;
typedef struct tl_dict tl_dict;
typedef struct tl_range tl_range;
typedef struct tl_slice tl_slice;
typedef struct tl_fn tl_fn;
typedef struct tl_method tl_method;
typedef struct tl_class tl_class;
typedef struct tl_record tl_record;
typedef struct tl_module tl_module;
typedef struct tl_cell tl_cell;
typedef struct tl_select tl_select;
typedef struct tl_tree tl_tree;
typedef struct tl_namespace tl_namespace;
typedef struct tl_error tl_error;
typedef struct tl_context tl_context;
typedef struct tl_dnode tl_dnode;
typedef struct tl_zip tl_zip;
typedef struct tl_symval tl_symval;
typedef struct tl_late tl_late;
typedef struct tl_builtin tl_builtin;

typedef struct tl_value {
    tl_tag tag;
    union {
        bool b;
        int64_t i;
        double f;
        tl_dtype dtype;
        const tl_builtin *builtin;
        tl_tensor *tensor;
        tl_obj *obj;
        tl_str *str;
        tl_seq *seq; /* LIST, TUPLE */
        tl_dict *dict;
        tl_range *range;
        tl_slice *slice;
        tl_fn *fn;
        tl_method *method;
        tl_class *cls;
        tl_record *record;
        tl_module *module;
        tl_cell *cell;
        tl_select *select;
        tl_tree *tree;
        tl_namespace *ns;
        tl_error *error;
        tl_context *context;
        tl_dnode *node;
        tl_zip *zip;
        tl_symval *sym;
        tl_late *late;
    };
} tl_value;

/* ---- the objects that have no file of their own ------------------------ */

struct tl_str {
    tl_obj obj;
    bool ascii;    /* one byte a code point: index directly */
    uint64_t hash; /* 0: not yet computed */
    size_t len;    /* bytes */
    char data[];   /* UTF-8, NUL-terminated */
};

struct tl_seq { /* a list or a tuple */
    tl_obj obj;
    size_t len, cap;
    tl_value *items; /* often behind this struct: only value.c moves it */
};

struct tl_range {
    tl_obj obj;
    int64_t start, stop, step; /* step != 0 */
};

struct tl_slice { /* the a:b:c of an index; NONE where left out */
    tl_obj obj;
    tl_value start, stop, step;
};

/* A tensor without data: shape and graph domains. */
struct tl_dnode {
    tl_obj obj;
    uint32_t id; /* node of the graph; 0 in the shape domain */
    tl_ttype type;
};

/* What a `for` goes over in step.  Of lists and the like, zip and enumerate
 * make a list at once; a module's items come one by one (a loader must not be
 * read to its end first). */
struct tl_zip {
    tl_obj obj;
    bool numbered; /* enumerate: the number comes before the item */
    int64_t start;
    size_t n;
    tl_value sources[];
};

/* What `catch e` binds: texts only, so an error holds no tensors. */
struct tl_error {
    tl_obj obj;
    tl_code code;
    tl_str *message; /* e.msg */
    tl_str *text;    /* the whole diagnostic as it would have been printed */
};

/* ---- constructors ------------------------------------------------------ */

static inline tl_value tl_none(void)
{
    return (tl_value){.tag = TL_V_NONE};
}

static inline tl_value tl_empty(void)
{
    return (tl_value){.tag = TL_V_EMPTY};
}

static inline tl_value tl_unknown(void)
{
    return (tl_value){.tag = TL_V_UNKNOWN};
}

static inline tl_value tl_bool_value(bool b)
{
    return (tl_value){.tag = TL_V_BOOL, .b = b};
}

static inline tl_value tl_int_value(int64_t i)
{
    return (tl_value){.tag = TL_V_INT, .i = i};
}

static inline tl_value tl_float_value(double f)
{
    return (tl_value){.tag = TL_V_FLOAT, .f = f};
}

static inline tl_value tl_dtype_value(tl_dtype d)
{
    return (tl_value){.tag = TL_V_DTYPE, .dtype = d};
}

/* Wraps a reference that the caller owns. */
static inline tl_value tl_tensor_value_take(tl_tensor *t)
{
    return (tl_value){.tag = TL_V_TENSOR, .tensor = t};
}

static inline tl_value tl_obj_value_take(void *obj)
{
    return (tl_value){.tag = (tl_tag)((tl_obj *)obj)->tag, .obj = obj};
}

TL_MUST_USE tl_status tl_str_new(tl_value *out, const char *s, size_t len,
                                 tl_diag *diag);
/* A string of what is in `buf`; E0607 also when the buffer had failed. */
TL_MUST_USE tl_status tl_str_from_buf(tl_value *out, const tl_buf *buf,
                                      tl_diag *diag);
/* A list or tuple of `len` items; takes the items' references and leaves the
 * array itself to the caller. On failure the items are released. */
TL_MUST_USE tl_status tl_seq_new_take(tl_value *out, tl_tag tag,
                                      tl_value *items, size_t len,
                                      tl_diag *diag);
/* Append to a list that is unshared; takes `item`. */
TL_MUST_USE tl_status tl_list_push_take(tl_seq *list, tl_value item,
                                        tl_diag *diag);
TL_MUST_USE tl_status tl_range_new(tl_value *out, int64_t start, int64_t stop,
                                   int64_t step, tl_diag *diag);
int64_t tl_range_len(const tl_range *range);
TL_MUST_USE tl_status tl_slice_new_take(tl_value *out, tl_value start,
                                        tl_value stop, tl_value step,
                                        tl_diag *diag);
TL_MUST_USE tl_status tl_dnode_new(tl_value *out, const tl_ttype *type,
                                   uint32_t id, tl_diag *diag);

/* A sequence of `len` items, all EMPTY, for the caller to fill in. */
TL_MUST_USE tl_status tl_seq_alloc(tl_value *out, tl_tag tag, size_t len,
                                   tl_diag *diag);

/* A zeroed object with one reference and this tag; NULL: out of memory,
 * reported. */
void *tl_obj_new(tl_tag tag, size_t size, tl_diag *diag);

/* ---- reference counts -------------------------------------------------- */

void tl_obj_free(tl_obj *obj); /* internal: the count has reached zero */

static inline bool tl_is_obj(tl_value v)
{
    return v.tag >= TL_V_STR;
}

static inline tl_value tl_ref(tl_value v)
{
    if (v.tag == TL_V_TENSOR) {
        v.tensor->refs++;
    } else if (tl_is_obj(v)) {
        v.obj->refs++;
    }
    return v;
}

static inline void tl_unref(tl_value v)
{
    if (v.tag == TL_V_TENSOR) {
        tl_tensor_unref(v.tensor);
    } else if (tl_is_obj(v) && --v.obj->refs == 0) {
        tl_obj_free(v.obj);
    }
}

/* Release what *v holds and make it EMPTY. */
static inline void tl_drop(tl_value *v)
{
    tl_value old = *v;

    *v = tl_empty();
    tl_unref(old);
}

static inline bool tl_unshared(tl_value v)
{
    return tl_is_obj(v) && v.obj->refs == 1;
}

void tl_unref_all(tl_value *items, size_t len);

/* Number of live objects of the calling thread; tests end at zero. */
int64_t tl_obj_live(void);

/* ---- questions --------------------------------------------------------- */

/* "int", "f32[2, 3]", "list", "Linear", ... for messages. */
tl_shape_text tl_value_type_str(tl_value v);

/* Is it a tensor in some domain? */
static inline bool tl_is_tensor(tl_value v)
{
    return v.tag == TL_V_TENSOR || v.tag == TL_V_NODE;
}

static inline bool tl_is_float_tensor(tl_value v)
{
    return (v.tag == TL_V_TENSOR && tl_dtype_is_float(v.tensor->dtype)) ||
           (v.tag == TL_V_NODE && tl_dtype_is_float(v.node->type.dtype));
}

static inline bool tl_is_number(tl_value v) /* host number */
{
    return v.tag == TL_V_BOOL || v.tag == TL_V_INT || v.tag == TL_V_FLOAT;
}

static inline double tl_number_f(tl_value v) /* of a host number */
{
    return v.tag == TL_V_FLOAT ? v.f
           : v.tag == TL_V_INT ? (double)v.i
                               : (double)v.b;
}

/* Equality of host values, as Python's ==; containers by value, modules,
 * functions and cells by identity.  Tensors inside containers: by identity of
 * the header.  Depth-limited (E0224). */
TL_MUST_USE tl_status tl_value_equal(tl_value a, tl_value b, bool *out,
                                     tl_diag *diag);

/* a < b: -1, 0, 1 for numbers, strings, and lists and tuples of them;
 * otherwise E0207.  TL_UNORDERED when a NaN is in the way. */
#define TL_UNORDERED 2
TL_MUST_USE tl_status tl_value_compare(tl_value a, tl_value b, int *out,
                                       tl_diag *diag);

/* Hash of a dict key (none, bool, int, float, str, dtype, tuple of these);
 * equal keys hash equal (1, 1.0 and true).  E0210 for others. */
TL_MUST_USE tl_status tl_value_hash(tl_value v, uint64_t *out, tl_diag *diag);
/* The hash of the str with these bytes. */
uint64_t tl_hash_text(const char *s, size_t len);

#endif
