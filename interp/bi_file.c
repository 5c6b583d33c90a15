/* bi_file.c - built-in functions on files: save, load, resume, csv. */
#include <string.h>

#include "interp/builtin_fns.h"
#include "interp/checkpoint.h"
#include "interp/dict.h"
#include "runtime/base/mem.h"
#include "runtime/io/csv.h"
#include "runtime/io/file.h"

/* ---- arguments --------------------------------------------------------- */

/* The path as C text; E0701 for one with a NUL byte or an empty one. */
static tl_status path_of(tl_eval *ev, tl_value v, const char **out)
{
    TL_TRY(tl_path_check(v.str->data, v.str->len, ev->diag));
    *out = v.str->data;
    return TL_OK;
}

/* The name that the program gave to argument `i` of the call, or NULL. */
static const char *written_name(const tl_eval *ev, size_t i)
{
    const tl_args *args = ev->call_args;
    const tl_ast *e =
        args && args->exprs && i < args->npos ? args->exprs[i] : NULL;

    if (e && e->kind == TL_AST_NAME) {
        return TL_AST(name, e)->name->text;
    }
    return e && e->kind == TL_AST_ATTR ? TL_AST(attr, e)->name->text : NULL;
}

typedef struct objects {
    tl_ck_object *items;
    size_t n;
} objects;

static tl_status add_object(tl_eval *ev, objects *o, const char *name,
                            tl_value v)
{
    if (!name) {
        tl_fail(ev->diag, TL_E0204,
                "object %zu needs a name, under which it is saved", o->n + 1);
        tl_diag_help(ev->diag, "save(path, net, opt=...)");
        return TL_ERR_PROGRAM;
    }
    for (size_t i = 0; i < o->n; i++) {
        if (strcmp(o->items[i].name, name) == 0) {
            return tl_fail(ev->diag, TL_E0205, "two objects are called `%s`",
                           name);
        }
    }
    o->items[o->n++] = (tl_ck_object){.name = name, .value = v};
    return TL_OK;
}

/* The first is called `first`; the others as the variables or keywords. */
static tl_status collect(tl_eval *ev, const char *first, const tl_seq *seq,
                         const tl_dict *named, objects *o)
{
    size_t n = seq->len + named->len;

    o->items = tl_calloc(n + 1, sizeof(*o->items));
    if (!o->items) {
        return tl_fail_memory(ev->diag, "arguments", n * sizeof(*o->items));
    }
    for (size_t i = 0; i < seq->len; i++) {
        TL_TRY(add_object(ev, o, i == 0 ? first : written_name(ev, i + 1),
                          seq->items[i]));
    }
    for (size_t i = 0; i < named->len; i++) {
        const tl_dict_entry *e = &named->entries[i];

        if (e->key.tag == TL_V_STR) {
            TL_TRY(add_object(ev, o, o->n == 0 ? first : e->key.str->data,
                              e->value));
        }
    }
    if (o->n == 0) {
        return tl_fail(ev->diag, TL_E0204, "nothing to save or restore");
    }
    return TL_OK;
}

/* What a folder can hold, since it must be possible to restore it. */
static tl_status check_restorable(tl_eval *ev, const objects *o)
{
    for (size_t i = 0; i < o->n; i++) {
        tl_tag tag = o->items[i].value.tag;
        tl_path_list list;

        if (tag == TL_V_TREE) {
            return tl_fail(ev->diag, TL_E0210,
                           "a folder holds modules, got a tree; help: a "
                           ".safetensors file holds it");
        }
        /* E0210 for what has no cells */
        TL_TRY(tl_paths(ev, o->items[i].value, TL_CELLS_ALL, &list));
        tl_path_list_fini(&list);
        if (tag == TL_V_DICT || tag == TL_V_LIST) {
            tl_module **below = NULL;
            size_t n = 0;

            TL_TRY(tl_modules_below(ev, o->items[i].value, &below, &n));
            tl_free(below);
            if (n == 0) {
                return tl_fail(ev->diag, TL_E0210,
                               "a folder holds modules, `%s` has none",
                               o->items[i].name);
            }
        }
    }
    return TL_OK;
}

/* ---- save -------------------------------------------------------------- */

static tl_status save_file(tl_eval *ev, const char *path, const objects *o)
{
    tl_saved_list list = {0};
    tl_status st = TL_OK;

    for (size_t i = 0; i < o->n && st == TL_OK; i++) {
        st = tl_saved_collect(ev, o->items[i].value,
                              i == 0 ? "" : o->items[i].name, &list);
    }
    if (st == TL_OK) {
        st = tl_checkpoint_write(ev, path, &list, NULL);
    }
    tl_saved_fini(&list);
    return st;
}

/* A file name of another format is surely not meant as a folder. */
static tl_status check_folder_name(tl_eval *ev, const char *path)
{
    static const char *const formats[] = {
        ".npy", ".npz",  ".pt",   ".pth", ".bin",  ".ckpt",
        ".pkl", ".onnx", ".json", ".h5",  ".gguf", ".safetensor"};

    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
        if (tl_path_ends_with(path, formats[i])) {
            tl_fail(ev->diag, TL_E0701, "`save` does not write %s files",
                    formats[i]);
            tl_diag_help(ev->diag, "x.safetensors, or a folder");
            return TL_ERR_FILE;
        }
    }
    return TL_OK;
}

static tl_status save_folder(tl_eval *ev, const char *path, const objects *o,
                             tl_value step)
{
    TL_TRY(check_folder_name(ev, path));
    TL_TRY(check_restorable(ev, o));
    return tl_folder_save(ev, path, o->items, o->n,
                          step.tag == TL_V_INT ? step.i : 0);
}

/* save(path, *objects, step, **named) */
tl_status tl_bi_save(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    objects o = {0};
    const char *path;
    tl_status st;

    (void)self;
    TL_TRY(path_of(ev, args[0], &path));
    st = collect(ev, "model", args[1].seq, args[3].dict, &o);
    if (st == TL_OK && !tl_path_ends_with(path, ".safetensors")) {
        st = save_folder(ev, path, &o, args[2]);
    } else if (st == TL_OK && args[2].tag == TL_V_INT) {
        st = tl_fail(ev->diag, TL_E0205,
                     "a .safetensors file keeps no step: only a folder can "
                     "be resumed");
        tl_diag_help(ev->diag, "save(\"checkpoint\", net, opt, step=i)");
    } else if (st == TL_OK) {
        st = save_file(ev, path, &o);
    }
    tl_free(o.items);
    if (st == TL_OK) {
        *out = tl_none();
    }
    return st;
}

/* ---- load, resume ------------------------------------------------------ */

tl_status tl_bi_load(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    const char *path;

    (void)self;
    TL_TRY(path_of(ev, args[0], &path));
    return tl_load_dict(ev, path, out);
}

static tl_value or_empty(tl_value v)
{
    return v.tag == TL_V_NONE ? tl_empty() : v;
}

/* net.load(path, rename, transpose, ignore) */
tl_status tl_bi_module_load(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_load_options options = {.rename = or_empty(args[2]),
                               .transpose = or_empty(args[3]),
                               .ignore = or_empty(args[4])};
    tl_load_count count = {0};
    tl_writes writes = {0};
    const char *path;
    tl_buf text;
    tl_status st;

    (void)self;
    TL_TRY(path_of(ev, args[1], &path));
    st = tl_load_prepare(ev, path, args[0], &options, &writes, &count);
    if (st == TL_OK) {
        st = tl_writes_commit(ev, &writes);
    }
    tl_writes_fini(&writes);
    TL_TRY(st);
    tl_buf_init(&text);
    tl_buf_printf(&text, "%zu loaded, 0 missing, 0 unexpected", count.loaded);
    st = tl_str_from_buf(out, &text, ev->diag);
    tl_buf_fini(&text);
    return st;
}

static tl_status no_checkpoint(tl_eval *ev, const char *path)
{
    tl_fail(ev->diag, TL_E0701, "there is no checkpoint at %s",
            tl_path_str(path).s);
    if (tl_path_ends_with(path, ".safetensors")) {
        tl_diag_help(ev->diag, "a file is loaded: net.load(path); only a "
                               "folder can be resumed");
    } else {
        tl_diag_help(ev->diag, "resume(path, net, opt, default=0) starts "
                               "anew where there is none");
    }
    return TL_ERR_FILE;
}

/* resume(path, *objects, default, **named) */
tl_status tl_bi_resume(tl_eval *ev, const tl_builtin *self, tl_value *args,
                       tl_value *out)
{
    objects o = {0};
    const char *path;
    bool found = false;
    int64_t step = 0;
    tl_status st;

    (void)self;
    TL_TRY(path_of(ev, args[0], &path));
    st = collect(ev, "model", args[1].seq, args[3].dict, &o);
    if (st == TL_OK) {
        st = check_restorable(ev, &o);
    }
    if (st == TL_OK) {
        st = tl_folder_resume(ev, path, o.items, o.n, &found, &step);
    }
    tl_free(o.items);
    TL_TRY(st);
    if (found) {
        *out = tl_int_value(step);
        return TL_OK;
    }
    if (args[2].tag == TL_V_NONE) {
        return no_checkpoint(ev, path);
    }
    *out = tl_ref(args[2]);
    return TL_OK;
}

/* ---- data -------------------------------------------------------------- */

/* Rows from `skip` on.  Takes `t`. */
static tl_status skip_rows(tl_eval *ev, tl_tensor *t, int64_t skip,
                           tl_tensor **out)
{
    int64_t size[2] = {t->size[0] > skip ? t->size[0] - skip : 0, t->size[1]};
    int64_t first = t->size[0] - size[0];
    tl_status st;

    if (first == 0) {
        *out = t;
        return TL_OK;
    }
    st = tl_tensor_view(out, t, 2, size, t->stride,
                        t->offset + first * t->stride[0], ev->diag);
    tl_tensor_unref(t);
    return st;
}

/* files.csv(path, skip, sep, dtype) */
tl_status tl_bi_files_csv(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    tl_csv_options options = {.dtype = args[3].dtype};
    tl_csv csv = {0};
    tl_tensor *t;
    const char *path;

    (void)self;
    TL_TRY(path_of(ev, args[0], &path));
    if (args[1].i < 0) {
        return tl_fail(ev->diag, TL_E0416,
                       "skip must be at least 0, got %lld",
                       (long long)args[1].i);
    }
    if (args[2].tag == TL_V_STR) {
        if (args[2].str->len != 1) {
            return tl_fail(ev->diag, TL_E0416,
                           "sep must be one character of ASCII");
        }
        options.delimiter = args[2].str->data[0];
    }
    if (options.dtype != TL_f32 && options.dtype != TL_f64) {
        return tl_fail(ev->diag, TL_E0308, "a table is f32 or f64, not %s",
                       tl_dtype_name(options.dtype));
    }
    TL_TRY(tl_csv_read(&csv, path, &options, ev->rt->pool, ev->diag));
    t = tl_tensor_ref(csv.values);
    tl_csv_fini(&csv);
    TL_TRY(skip_rows(ev, t, args[1].i, &t));
    *out = tl_tensor_value_take(t);
    return TL_OK;
}
