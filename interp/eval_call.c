/* eval_call.c - calls: arguments, dispatch on the callee, running code. */
#include "interp/builtin_fns.h"
#include "interp/compiled.h"
#include "interp/container.h"
#include "interp/dict.h"
#include "interp/domain.h"
#include "interp/shape.h"
#include "interp/eval_impl.h"
#include "interp/record.h"
#include "interp/graph_ways.h"
#include "interp/renew.h"
#include "runtime/base/mem.h"

/* The arguments of a call while they are evaluated: arrays of `cap`, first
 * on the C stack, then on the heap. */
typedef struct arg_list {
    tl_value pos_inline[TL_INLINE_ARGS], kw_inline[TL_INLINE_ARGS];
    const tl_sym *names_inline[TL_INLINE_ARGS];
    const tl_ast *exprs_inline[2 * TL_INLINE_ARGS];
    tl_value *pos, *kw;
    const tl_sym **names;
    const tl_ast **exprs, **kw_exprs;
    size_t npos, nkw, cap_pos, cap_kw;
    bool unknown; /* a starred argument was UNKNOWN */
} arg_list;

static void args_init(arg_list *a)
{
    a->pos = a->pos_inline;
    a->kw = a->kw_inline;
    a->names = a->names_inline;
    a->exprs = a->exprs_inline;
    a->kw_exprs = a->exprs_inline + TL_INLINE_ARGS;
    a->npos = a->nkw = 0;
    a->cap_pos = a->cap_kw = TL_INLINE_ARGS;
    a->unknown = false;
}

/* Each array moves by itself: memory may have run out between two. */
static void release(void *items, const void *first)
{
    if (items != first) {
        tl_free(items);
    }
}

static void args_fini(arg_list *a)
{
    tl_unref_all(a->pos, a->npos);
    tl_unref_all(a->kw, a->nkw);
    release(a->pos, a->pos_inline);
    release(a->exprs, a->exprs_inline);
    release(a->kw, a->kw_inline);
    release(a->names, a->names_inline);
    release(a->kw_exprs, a->exprs_inline + TL_INLINE_ARGS);
}

/* Double one array, moving it to the heap at first. */
static bool grow(void **items, const void *first, size_t n, size_t size)
{
    void *p = tl_malloc(2 * n * size);

    if (p == NULL) {
        return false;
    }
    __builtin_memcpy(p, *items, n * size);
    if (*items != first) {
        tl_free(*items);
    }
    *items = p;
    return true;
}

static tl_status add_pos(tl_eval *ev, arg_list *a, tl_value v,
                         const tl_ast *expr)
{
    if (a->npos == a->cap_pos) {
        if (!grow((void **)&a->exprs, a->exprs_inline, a->npos,
                  sizeof(*a->exprs)) ||
            !grow((void **)&a->pos, a->pos_inline, a->npos,
                  sizeof(*a->pos))) {
            tl_unref(v);
            return tl_fail_memory(ev->diag, "arguments",
                                  2 * a->npos * sizeof(v));
        }
        a->cap_pos *= 2;
    }
    a->exprs[a->npos] = expr;
    a->pos[a->npos++] = v;
    return TL_OK;
}

static tl_status add_kw(tl_eval *ev, arg_list *a, const tl_sym *name,
                        tl_value v, const tl_ast *expr)
{
    if (a->nkw == a->cap_kw) {
        if (!grow((void **)&a->kw_exprs, a->exprs_inline + TL_INLINE_ARGS,
                  a->nkw, sizeof(*a->kw_exprs)) ||
            !grow((void **)&a->names, a->names_inline, a->nkw,
                  sizeof(*a->names)) ||
            !grow((void **)&a->kw, a->kw_inline, a->nkw, sizeof(*a->kw))) {
            tl_unref(v);
            return tl_fail_memory(ev->diag, "arguments",
                                  2 * a->nkw * sizeof(v));
        }
        a->cap_kw *= 2;
    }
    a->kw_exprs[a->nkw] = expr;
    a->names[a->nkw] = name;
    a->kw[a->nkw++] = v;
    return TL_OK;
}

static tl_status add_starred(tl_eval *ev, arg_list *a, const tl_ast *e)
{
    tl_value it = tl_empty();
    tl_iter iter = {0};
    bool more;

    TL_TRY(tl_eval_expr(ev, e, &it));
    if (it.tag == TL_V_UNKNOWN) {
        a->unknown = true;
        return TL_OK;
    }
    tl_status st = tl_iter_init_take(ev, it, &iter);

    while (st == TL_OK) {
        tl_value v = tl_empty();

        st = tl_iter_next(ev, &iter, &more, &v);
        if (st != TL_OK || !more) {
            break;
        }
        st = add_pos(ev, a, v, e);
    }
    tl_iter_fini(&iter);
    if (st != TL_OK) {
        tl_diag_at(ev->diag, e->span);
    }
    return st;
}

static tl_status add_double_starred(tl_eval *ev, arg_list *a, const tl_ast *e)
{
    tl_value d = tl_empty();
    tl_status st = TL_OK;

    TL_TRY(tl_eval_expr(ev, e, &d));
    if (d.tag == TL_V_UNKNOWN) {
        a->unknown = true;
        return TL_OK;
    }
    if (d.tag != TL_V_DICT) {
        st = tl_fail_at(ev->diag, TL_E0210, e->span,
                        "`**` needs a dict, got %s", tl_value_type_str(d).s);
    }
    for (size_t i = 0; st == TL_OK && i < d.dict->len; i++) {
        const tl_dict_entry *p = &d.dict->entries[i];

        if (p->key.tag == TL_V_EMPTY) {
            continue;
        }
        if (p->key.tag != TL_V_STR) {
            st = tl_fail_at(ev->diag, TL_E0210, e->span,
                            "keys of `**` must be str, got %s",
                            tl_value_type_str(p->key).s);
            break;
        }
        const tl_sym *name = tl_intern_get(
            ev->lang->names, p->key.str->data, p->key.str->len);

        st = name == NULL ? tl_fail_memory(ev->diag, "a name", 0)
                          : add_kw(ev, a, name, tl_ref(p->value), e);
    }
    tl_unref(d);
    return st;
}

static tl_status eval_args(tl_eval *ev, arg_list *a, const tl_kids *args)
{
    for (uint32_t i = 0; i < args->len; i++) {
        const tl_ast *e = args->items[i];
        tl_value v = tl_empty();

        switch ((tl_ast_kind)e->kind) {
        case TL_AST_KEYWORD:
            TL_TRY(tl_eval_expr(ev, TL_AST(keyword, e)->value, &v));
            TL_TRY(add_kw(ev, a, TL_AST(keyword, e)->name, v,
                          TL_AST(keyword, e)->value));
            break;
        case TL_AST_STAR:
            TL_TRY(add_starred(ev, a, TL_AST(star, e)->value));
            break;
        case TL_AST_DOUBLE_STAR:
            TL_TRY(add_double_starred(ev, a, TL_AST(double_star, e)->value));
            break;
        default:
            TL_TRY(tl_eval_expr(ev, e, &v));
            TL_TRY(add_pos(ev, a, v, e));
            break;
        }
    }
    return TL_OK;
}

/* ---- dispatch ---------------------------------------------------------- */

static tl_status call_class(tl_eval *ev, tl_class *cls, tl_args *args,
                            tl_value *out)
{
    return cls->code->kind == TL_FUNC_RECORD
               ? tl_record_construct(ev, cls, args, out)
               : tl_module_construct(ev, cls, args, out);
}

/* f32(x): cast a tensor, or make a scalar tensor of a number. */
static tl_status call_dtype(tl_eval *ev, tl_dtype dtype, tl_args *args,
                            tl_value *out)
{
    tl_value v = tl_empty();
    tl_attrs at;

    if (args->npos != 1 || args->nkw != 0) {
        return tl_fail_at(ev->diag, TL_E0203, args->span,
                          "`%s` takes one value, got %zu",
                          tl_dtype_name(dtype), args->npos + args->nkw);
    }
    v = args->pos[0];
    args->pos[0] = tl_empty();
    TL_TRY(tl_eval_as_tensor_take(ev, v, &v));
    if (v.tag == TL_V_UNKNOWN) {
        *out = v;
        return TL_OK;
    }
    tl_attrs_init(&at);
    at.dtype = (uint8_t)dtype;
    return tl_eval_op(ev, TL_OP_cast, &v, 1, &at, out);
}

static tl_status call_method(tl_eval *ev, const tl_method *m, tl_args *args,
                             tl_value *out)
{
    if (m->builtin != NULL) {
        return tl_builtin_call(ev, m->builtin, tl_ref(m->self), args, out);
    }
    return tl_call_code(ev, m->code, m->ns, NULL, m->self.module, args, out);
}

static tl_status call_module(tl_eval *ev, tl_module *m, tl_args *args,
                             tl_value *out)
{
    const tl_sym *name = tl_intern_find(ev->lang->names, "forward", 7);
    const tl_funcdef *fwd = tl_class_method(m->cls, name);

    if (fwd == NULL) {
        tl_status st =
            tl_fail_at(ev->diag, TL_E0206, args->span,
                       "module %s has no `forward`, so it cannot be called",
                       m->cls->code->name->text);

        tl_diag_help(ev->diag, "call one of its methods: `m.method(...)`");
        return st;
    }
    return tl_call_code(ev, fwd, m->cls->ns, NULL, m, args, out);
}

tl_status tl_eval_call(tl_eval *ev, tl_value f, tl_args *args, tl_value *out)
{
    switch (f.tag) {
    case TL_V_BUILTIN:
        return tl_builtin_call(ev, f.builtin, tl_empty(), args, out);
    case TL_V_FN:
        return tl_call_code(ev, f.fn->code, f.fn->ns, f.fn, f.fn->self, args,
                            out);
    case TL_V_METHOD:
        return call_method(ev, f.method, args, out);
    case TL_V_CLASS:
        return call_class(ev, f.cls, args, out);
    case TL_V_MODULE:
        return call_module(ev, f.module, args, out);
    case TL_V_DTYPE:
        return call_dtype(ev, f.dtype, args, out);
    case TL_V_UNKNOWN:
        *out = tl_unknown();
        return TL_OK;
    default: {
        tl_status st = tl_fail_at(ev->diag, TL_E0206, args->span,
                                  "a value of type %s cannot be called",
                                  tl_value_type_str(f).s);

        if (tl_is_tensor(f)) {
            tl_diag_help(ev->diag, "to index, write `x[...]`");
        }
        return st;
    }
    }
}

tl_status tl_eval_call_values(tl_eval *ev, tl_value callee,
                              const tl_value *values,
                              size_t n, tl_value *out)
{
    tl_value copy[TL_INLINE_ARGS];

    TL_CHECK(n <= TL_INLINE_ARGS);
    for (size_t i = 0; i < n; i++) {
        copy[i] = tl_ref(values[i]);
    }
    tl_args args = {.pos = copy, .npos = n, .span = ev->rt->span};
    tl_status st = tl_eval_call(ev, callee, &args, out);

    tl_unref_all(copy, n);
    return st;
}

/* obj.name(args) without making a bound method. */
static tl_status call_attr(tl_eval *ev, const tl_ast_attr *a, tl_value obj,
                           tl_args *args, tl_value *out)
{
    tl_value f = tl_empty();

    if (obj.tag == TL_V_MODULE) {
        const tl_funcdef *m = tl_class_method(obj.module->cls, a->name);

        if (m != NULL) {
            return tl_call_code(ev, m, obj.module->cls->ns, NULL, obj.module,
                                args, out);
        }
    }
    const tl_builtin *b = tl_builtin_method(ev, obj.tag, a->name);

    if (b != NULL) {
        return tl_builtin_call(ev, b, tl_ref(obj), args, out);
    }
    tl_status st = tl_eval_attr(ev, obj, a->name, &f);

    if (st != TL_OK) {
        tl_diag_at(ev->diag, a->name_at);
        return st;
    }
    st = tl_eval_call(ev, f, args, out);
    tl_unref(f);
    return st;
}

tl_status tl_eval_call_node(tl_eval *ev, const tl_ast_call *n, tl_value *out)
{
    bool attr = n->callee->kind == TL_AST_ATTR;
    const tl_ast *head = attr ? TL_AST(attr, n->callee)->object : n->callee;
    tl_value f = tl_empty();
    arg_list a;

    TL_TRY(tl_check_stack(ev, n->base.span));
    TL_TRY(tl_eval_expr(ev, head, &f));
    if (f.tag == TL_V_BUILTIN && f.builtin->fn == tl_bi_cell &&
        n->args.len == 1) { /* its argument is a path, not a value */
        return tl_eval_cell(ev, n->args.items[0], out);
    }
    args_init(&a);
    tl_status st = eval_args(ev, &a, &n->args);

    if (st == TL_OK && a.unknown) {
        *out = tl_unknown();
    } else if (st == TL_OK) {
        tl_args args = {.pos = a.pos, .npos = a.npos, .names = a.names,
                        .kw = a.kw, .nkw = a.nkw, .span = n->base.span,
                        .exprs = a.exprs, .kw_exprs = a.kw_exprs};

        ev->rt->span = n->base.span;
        st = attr ? call_attr(ev, TL_AST(attr, n->callee), f, &args, out)
                  : tl_eval_call(ev, f, &args, out);
        if (st != TL_OK) {
            tl_diag_at(ev->diag, n->base.span);
        }
    }
    args_fini(&a);
    tl_unref(f);
    return st;
}

/* ---- running code ------------------------------------------------------ */

/* Evaluate the body in the running frame. */
static tl_status run_body(tl_eval *ev, const tl_funcdef *fn, tl_value *out)
{
    tl_flow flow = TL_FLOW_NEXT;

    if (fn->expr_body) {
        return tl_eval_expr(ev, fn->body, out);
    }
    TL_TRY(tl_eval_block(ev, fn->body, &flow));
    if (flow == TL_FLOW_RETURN) {
        *out = ev->ret;
        ev->ret = tl_empty();
    } else {
        *out = flow == TL_FLOW_DEAD ? tl_unknown() : tl_none();
    }
    return TL_OK;
}

tl_status tl_run_function(tl_eval *ev, const tl_funcdef *fn, tl_value *out)
{
    tl_value r = tl_empty();
    tl_frame *f = ev->frame;
    tl_status st = run_body(ev, fn, &r);

    if (st == TL_OK && f->partial.tag != TL_V_EMPTY) {
        st = ev->domain->join(ev, &r, f->partial);
    } else if (f->partial.tag != TL_V_EMPTY && tl_is_tracing(ev)) {
        st = tl_graph_exits(ev, st, &r);
    }
    tl_drop(&f->partial);
    if (st == TL_OK && fn->may_return) {
        st = tl_renew_value(ev, &r);
    }
    if (st == TL_OK && fn->ret != NULL) {
        st = tl_check_type(ev, fn->ret, &r, "the result", fn->ret->span);
    }
    if (st != TL_OK) {
        tl_unref(r);
        return st;
    }
    *out = r;
    return TL_OK;
}

static tl_status run_marked(tl_eval *ev, const tl_funcdef *fn, tl_value *out)
{
    if (fn->backward != NULL) {
        return tl_call_custom(ev, fn, out);
    }
    if (!fn->marks.no_grad) {
        return tl_run_function(ev, fn, out);
    }
    ev->rt->no_grad++;
    tl_status st = tl_run_function(ev, fn, out);

    ev->rt->no_grad--;
    return st;
}

/* Bind the arguments and run the code in this domain. */
static tl_status run_code(tl_eval *ev, const tl_ccall *c, tl_value *out)
{
    tl_frame frame;

    TL_TRY(tl_frame_push(ev, &frame, c->fn, c->ns, c->closure, c->self,
                         c->args->span));
    tl_status st = tl_bind_args(ev, c->args);

    if (st == TL_OK && tl_is_tracing(ev)) {
        st = tl_trace_bound(ev, c->fn);
    }
    if (st == TL_OK) {
        st = run_marked(ev, c->fn, out);
        if (st != TL_OK) {
            tl_note_frame(ev, &frame);
        }
    }
    tl_frame_pop(ev, &frame);
    return st;
}

static tl_status call_compiled(tl_eval *ev, const tl_ccall *c, tl_value *out)
{
    tl_ran ran;

    TL_TRY(tl_compiled_call(ev, c, out, &ran));
    if (ran == TL_RAN) {
        return TL_OK;
    }
    TL_TRY(tl_shape_check_call(ev, c->fn, c->ns, c->closure, c->self,
                               c->args));
    if (ran != TL_RAN_DOUBTFUL) {
        return run_code(ev, c, out);
    }
    tl_compiled_pause(ev, c, true);
    tl_status st = run_code(ev, c, out);

    tl_compiled_pause(ev, c, false);
    if (st == TL_OK) {
        tl_compiled_doubt(ev, c);
    }
    return st;
}

tl_status tl_call_code(tl_eval *ev, const tl_funcdef *fn, tl_namespace *ns,
                       tl_fn *closure, tl_module *self, tl_args *args,
                       tl_value *out)
{
    if (ev->domain->has_data && ev->no_check == 0) {
        if (tl_is_compiled(ev, fn, ns)) {
            return call_compiled(
                ev, &(tl_ccall){fn, ns, closure, self, args}, out);
        }
        TL_TRY(tl_shape_check_call(ev, fn, ns, closure, self, args));
    }
    return run_code(ev, &(tl_ccall){fn, ns, closure, self, args}, out);
}

/* ---- function values --------------------------------------------------- */

static tl_value captured(tl_eval *ev, const tl_ref_info *ref)
{
    tl_frame *f = ev->frame;

    switch ((tl_ref_kind)ref->kind) {
    case TL_REF_LOCAL:
        return tl_ref(f->slots[ref->index]);
    case TL_REF_CAPTURE:
        return tl_ref(f->closure->captures[ref->index]);
    case TL_REF_SELF_FN:
        return tl_ref((tl_value){.tag = TL_V_FN, .fn = f->closure});
    case TL_REF_GLOBAL:
        return ref->index < f->ns->nslots ? tl_ref(f->ns->slots[ref->index])
                                          : tl_empty();
    default:
        return tl_empty();
    }
}

tl_status tl_make_fn(tl_eval *ev, const tl_funcdef *code, tl_value *out)
{
    tl_fn *fn = tl_obj_new(TL_V_FN,
                           sizeof(*fn) + code->ncaptures * sizeof(tl_value),
                           ev->diag);

    if (fn == NULL) {
        return TL_ERR_MEMORY;
    }
    fn->code = code;
    fn->ns = ev->frame->ns;
    fn->ncaptures = code->ncaptures;
    for (uint32_t i = 0; i < code->ncaptures; i++) {
        fn->captures[i] = captured(ev, &code->captures[i].outer);
    }
    *out = tl_obj_value_take(fn);
    if (ev->frame->fn->kind == TL_FUNC_MODULE) {
        return tl_module_cut_captures(ev, ev->frame->self, out);
    }
    fn->self = ev->frame->self;
    if (fn->self != NULL) {
        fn->self->obj.refs++;
    }
    return TL_OK;
}

tl_status tl_make_class(tl_eval *ev, const tl_funcdef *code, tl_value *out)
{
    tl_class *cls = tl_obj_new(TL_V_CLASS, sizeof(*cls), ev->diag);

    if (cls == NULL) {
        return TL_ERR_MEMORY;
    }
    cls->code = code;
    cls->ns = ev->frame->ns;
    *out = tl_obj_value_take(cls);
    return TL_OK;
}
