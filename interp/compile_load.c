/* compile_load.c - refusals at load, where the types of a compiled function
 * are written.
 *
 * The function is traced with made-up arguments: tensors of the declared
 * types, whose named sizes are symbols, and numbers, which are symbols.
 * Nothing runs.  A refusal counts if the trace has come to it without looking
 * at a number, so that every call would.  Whatever else goes wrong, a global
 * that is not there yet for one, is left to the first call. */
#include <string.h>

#include "interp/compiled_impl.h"
#include "runtime/base/mem.h"

/* Sizes that no program has by chance; each of a name is another. */
static int64_t made_up_size(uint32_t i)
{
    static const int64_t primes[] = {1009, 1013, 1019, 1021, 1031, 1033,
                                     1039, 1049};

    return primes[i % (sizeof(primes) / sizeof(*primes))];
}

bool tl_is_made_up_size(int64_t size)
{
    for (uint32_t i = 0; i < 8; i++) {
        if (made_up_size(i) == size) {
            return true;
        }
    }
    return false;
}

static bool is_type(const tl_ast *type, const char *name)
{
    const tl_ast *n = type != NULL && type->kind == TL_AST_TYPE_NAME
                          ? TL_AST(type_name, type)->name
                          : NULL;

    return n != NULL && n->kind == TL_AST_NAME &&
           strcmp(TL_AST(name, n)->name->text, name) == 0;
}

/* A tensor of one element that is seen in this shape. */
static tl_status made_up_tensor(tl_eval *ev, tl_dtype dtype, int rank,
                                const int64_t *size, tl_value *out)
{
    int64_t stride[TL_MAX_RANK] = {0};
    tl_tensor *one, *t;

    TL_TRY(tl_tensor_new(&one, ev->rt->pool, dtype, 0, NULL, ev->diag));
    memset(tl_tensor_data(one), 0, tl_dtype_size(dtype));
    tl_status st = tl_tensor_view(&t, one, rank, size, stride, 0, ev->diag);

    tl_tensor_unref(one);
    TL_TRY(st);
    *out = tl_tensor_value_take(t);
    return TL_OK;
}

/* A value for a parameter whose names of sizes stand in the running frame;
 * EMPTY: none can be made up. */
static tl_status made_up(tl_eval *ev, const tl_ast_param *p, tl_value *out)
{
    int64_t size[TL_MAX_RANK];
    tl_dtype dtype;
    bool known;
    int rank;

    if (p->star != 0 || p->type == NULL) {
        return TL_OK;
    }
    if (is_type(p->type, "int")) {
        *out = ev->frame->slots[p->ref.index];
        return TL_OK;
    }
    if (is_type(p->type, "float")) {
        *out = tl_float_value(0.5);
        return TL_OK;
    }
    TL_TRY(tl_declared_sizes(ev, p->type, &known, &dtype, &rank, size));
    for (int i = 0; known && i < rank; i++) {
        known = size[i] >= 0;
    }
    return known ? made_up_tensor(ev, dtype, rank, size, out) : TL_OK;
}

/* Values for all parameters; *n is less than there are where one has none. */
static tl_status make_up(tl_eval *ev, const tl_funcdef *fn, tl_namespace *ns,
                         tl_value *v, size_t *n)
{
    tl_frame frame;
    tl_status st = TL_OK;

    TL_TRY(tl_frame_push(ev, &frame, fn, ns, NULL, NULL, fn->node->span));
    for (uint32_t i = 0; i < fn->ndims; i++) {
        frame.slots[fn->dims[i]] = tl_int_value(made_up_size(i));
    }
    for (uint32_t i = 0; i < fn->params.len; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);

        if (is_type(p->type, "int")) {
            frame.slots[p->ref.index] =
                tl_int_value(made_up_size(fn->ndims + i));
        }
    }
    for (*n = 0; *n < fn->params.len; (*n)++) {
        st = made_up(ev, TL_AST(param, fn->params.items[*n]), &v[*n]);
        if (st != TL_OK || v[*n].tag == TL_V_EMPTY) {
            break;
        }
    }
    tl_frame_pop(ev, &frame);
    return st;
}

static tl_status forget(tl_eval *ev, tl_trace *tr, const tl_ccall *call,
                        tl_value result, tl_entry *e, void *arg)
{
    (void)ev;
    (void)tr;
    (void)call;
    (void)result;
    (void)e;
    (void)arg;
    return TL_OK;
}

/* Sizes of frames are made up, and nobody has called the function. */
static void mend_frames(tl_diag_item *item)
{
    if (item->nframes > 0) {
        item->nframes--;
        item->total_frames--;
    }
    for (size_t i = 0; i < item->nframes; i++) {
        item->frames[i].args = "...";
    }
}

static tl_status check(tl_eval *ev, const tl_funcdef *fn, tl_namespace *ns,
                       tl_value *values)
{
    tl_compiled f = {.fn = fn};
    tl_args args = {.pos = values, .span = fn->node->span};
    tl_ccall call = {.fn = fn, .ns = ns, .args = &args};
    tl_entry e = {.fn = fn};
    bool done;
    tl_status st = make_up(ev, fn, ns, values, &args.npos);

    if (st == TL_OK && args.npos == fn->params.len) {
        f.made_up = true;
        st = tl_trace_call(ev, &f, &call, NULL, &e, forget, NULL, &done);
        tl_free(f.why);
        if (st != TL_OK && f.guards == 0 && ev->diag->last != NULL &&
            ev->diag->last->code == TL_E0602) {
            mend_frames(ev->diag->last);
            tl_compiled_refuse(ev, fn);
            return st;
        }
    }
    if (st != TL_OK && tl_status_catchable(st) && st != TL_ERR_MEMORY) {
        (void)tl_diag_pop(ev->diag);
        st = TL_OK;
    }
    return st;
}

tl_status tl_compile_check_unit(tl_eval *ev, tl_namespace *ns,
                                const tl_unit *unit)
{
    const tl_kids *stmts = &TL_AST(block, unit->root->func->body)->stmts;

    if (ev->compile != TL_COMPILE_MARKED || ev->suppress_errors) {
        return TL_OK;
    }
    for (uint32_t i = 0; i < stmts->len; i++) {
        const tl_funcdef *fn = stmts->items[i]->kind == TL_AST_FN
                                   ? TL_AST(fn, stmts->items[i])->func
                                   : NULL;

        if (fn == NULL || !fn->marks.compile || fn->marks.fallback ||
            fn->params.len == 0) {
            continue;
        }
        tl_value *values = tl_calloc(fn->params.len, sizeof(*values));

        if (values == NULL) {
            return tl_fail_memory(ev->diag, "arguments",
                                  fn->params.len * sizeof(*values));
        }
        tl_status st = check(ev, fn, ns, values);

        tl_unref_all(values, fn->params.len);
        tl_free(values);
        TL_TRY(st);
    }
    return TL_OK;
}
