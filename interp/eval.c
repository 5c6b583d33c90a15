/* eval.c - contexts, namespaces, and running units of text. */
#define _GNU_SOURCE
#include "interp/eval.h"
#include "interp/compiled.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interp/builtin.h"
#include "interp/domain.h"
#include "interp/eval_impl.h"
#include "interp/format.h"
#include "interp/free.h"
#include "interp/shape.h"
#include "lang/habits.h"
#include "lang/lint.h"
#include "lang/patterns.h"
#include "runtime/base/mem.h"

#define STACK_RESERVE (256 * 1024) /* for kernels and for reporting */

/* The lowest address that evaluation may use on this thread's stack. */
static char *stack_limit(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_destroy(&attr);
    }
    return low == NULL ? NULL : (char *)low + STACK_RESERVE;
}

static tl_status write_stdout(void *arg, const char *s, size_t len)
{
    tl_eval *ev = arg;

    if (fwrite(s, 1, len, stdout) != len) {
        return tl_fail(ev->diag, TL_E0707, "standard output cannot be "
                                           "written");
    }
    return TL_OK;
}

tl_status tl_eval_init(tl_eval *ev, tl_rt *rt, tl_lang *lang,
                       const tl_eval_options *options)
{
    *ev = (tl_eval){.rt = rt, .diag = rt->diag, .lang = lang,
                    .domain = &tl_domain_concrete, .options = options,
                    .write = write_stdout, .write_arg = ev,
                    .stack_limit = stack_limit(), .next_serial = 1};
    tl_map_init(&ev->imports);
    TL_TRY(tl_builtins_init(ev));

    tl_status st = tl_shape_cache_init(ev);

    if (st != TL_OK) {
        tl_builtins_fini(ev);
    }
    return st;
}

/* Every import of a namespace that is not in the list from `keep` on. */
static void forget_imports(tl_eval *ev, const tl_namespace *keep)
{
    for (size_t i = 0; i < ev->imports.len; i++) {
        const tl_map_entry *e = &ev->imports.entries[i];
        const tl_namespace *ns = keep;

        while (ns != NULL && ns != e->value) {
            ns = ns->next;
        }
        if (ns == NULL && e->key != NULL) {
            tl_map_remove(&ev->imports, e->key);
        }
    }
}

void tl_eval_reset(tl_eval *ev, tl_namespace *keep)
{
    tl_drop(&ev->ret);
    tl_compiler_clear(ev->compiler);
    forget_imports(ev, keep);
    for (tl_namespace *ns = ev->all_ns; ns != keep; ns = ns->next) {
        tl_unref_all(ns->slots, ns->nslots);
        tl_free(ns->slots);
        ns->slots = NULL;
        ns->nslots = 0;
    }
    while (ev->all_ns != keep) {
        tl_namespace *ns = ev->all_ns;

        ev->all_ns = ns->next;
        tl_unref(tl_obj_value_take(ns));
    }
    ev->main_ns = NULL;
    tl_shape_cache_clear(ev);
}

void tl_eval_fini(tl_eval *ev)
{
    tl_eval_reset(ev, NULL);
    tl_compiler_free(ev->compiler);
    ev->compiler = NULL;
    tl_map_fini(&ev->imports);
    tl_shape_cache_fini(ev);
    tl_slots_fini(ev);
    tl_builtins_fini(ev);
}

/* ---- namespaces -------------------------------------------------------- */

void tl_namespace_free(tl_obj *obj)
{
    tl_namespace *ns = (tl_namespace *)obj;

    tl_unref_all(ns->slots, ns->nslots);
    tl_free(ns->slots);
    for (size_t i = 0; i < ns->nunits; i++) {
        tl_unit_free(ns->units[i]);
    }
    tl_free(ns->units);
    if (ns->names != NULL) {
        tl_globals_fini(ns->names);
        tl_free(ns->names);
    }
    if (ns->name != NULL) {
        tl_unref(tl_obj_value_take(ns->name));
    }
    if (ns->path != NULL) {
        tl_unref(tl_obj_value_take(ns->path));
    }
}

tl_status tl_namespace_new(tl_namespace **out, tl_eval *ev, const char *name,
                           const char *path)
{
    tl_namespace *ns = tl_obj_new(TL_V_NAMESPACE, sizeof(*ns), ev->diag);
    tl_value s = tl_empty();
    tl_status st = TL_OK;

    if (ns == NULL) {
        return TL_ERR_MEMORY;
    }
    ns->names = tl_malloc(sizeof(*ns->names));
    if (ns->names == NULL) {
        st = tl_fail_memory(ev->diag, "a namespace", sizeof(*ns->names));
        goto out;
    }
    tl_globals_init(ns->names);
    TL_GOTO(st, tl_str_new(&s, name, strlen(name), ev->diag));
    ns->name = s.str;
    TL_GOTO(st, tl_str_new(&s, path, strlen(path), ev->diag));
    ns->path = s.str;
    ns->next = ev->all_ns;
    ev->all_ns = ns; /* the context owns it: functions only point to it */
    *out = ns;
    return TL_OK;
out:
    tl_unref(tl_obj_value_take(ns));
    return st;
}

static tl_status keep_unit(tl_eval *ev, tl_namespace *ns, tl_unit *unit)
{
    tl_unit **units = tl_realloc(ns->units,
                                 (ns->nunits + 1) * sizeof(*units));

    if (units == NULL) {
        tl_unit_free(unit);
        return tl_fail_memory(ev->diag, "a unit", sizeof(*units));
    }
    ns->units = units;
    ns->units[ns->nunits++] = unit;
    return TL_OK;
}

/* ---- running ----------------------------------------------------------- */

static bool has_builtin(void *arg, const tl_sym *name)
{
    return tl_builtin_find(arg, name) != NULL;
}

static unsigned builtin_effects(void *arg, const tl_sym *name)
{
    const tl_builtin *b = tl_builtin_find(arg, name);

    return b != NULL ? b->effects & 7u : 0;
}

/* The last expression of an entry is shown: `x.sum()` is not lost there.  What
 * would change a list in Python still is. */
static void show_last(const tl_unit *unit)
{
    const tl_kids *stmts = &TL_AST(block, unit->root->body)->stmts;
    tl_ast *last = stmts->len > 0 ? stmts->items[stmts->len - 1] : NULL;

    if (last == NULL || last->kind != TL_AST_EXPR_STMT ||
        !TL_AST(expr_stmt, last)->unused || unit->quiet) {
        return;
    }
    tl_ast_expr_stmt *stmt = (tl_ast_expr_stmt *)last;
    const tl_ast_call *call = TL_AST(call, stmt->value);
    const char *habit =
        tl_habit_method(TL_AST(attr, call->callee)->name->text);

    if (habit == NULL || strncmp(habit, "s = ", 4) == 0) {
        stmt->unused = false;
    }
}

/* Parse and resolve; the namespace owns the unit from here on. */
static tl_status load_unit(tl_eval *ev, tl_namespace *ns, const char *name,
                           const char *text, size_t len, bool entry,
                           tl_unit **out)
{
    tl_unit *unit = NULL;
    uint32_t file = tl_sources_add(ev->lang->sources, name, text, len);
    tl_builtins names = {.arg = ev, .has = has_builtin,
                         .effects = builtin_effects};

    if (file == 0) {
        return tl_fail_memory(ev->diag, "a source text", len);
    }
    TL_TRY(entry ? tl_parse_entry(&unit, ev->lang, file, ev->diag)
                 : tl_parse(&unit, ev->lang, file, ev->diag));
    if (!unit->incomplete) {
        if (entry) {
            show_last(unit);
        }
        names.names = tl_builtin_names(ev, TL_V_NONE, &names.nnames);
        tl_status st = tl_resolve(unit, ev->lang, ns->names, &names,
                                  ev->diag);

        if (st == TL_OK) {
            st = tl_patterns_check(unit, ev->diag);
        }
        if (st != TL_OK) {
            tl_unit_free(unit);
            return st;
        }
        if (!entry) { /* what is typed at a prompt is shown, not lost */
            tl_lint(unit, ev->diag);
        }
    }
    *out = unit;
    return keep_unit(ev, ns, unit);
}

/* Run the statements of the top level; the value of a last expression goes
 * to *out when that is wanted. */
static tl_status run_statements(tl_eval *ev, const tl_ast *body,
                                tl_value *out)
{
    const tl_kids *stmts = &TL_AST(block, body)->stmts;
    tl_flow flow = TL_FLOW_NEXT;

    for (uint32_t i = 0; i < stmts->len; i++) {
        const tl_ast *s = stmts->items[i];

        if (out != NULL && i + 1 == stmts->len &&
            s->kind == TL_AST_EXPR_STMT) {
            return tl_eval_rhs(ev, TL_AST(expr_stmt, s)->value, out, &flow);
        }
        TL_TRY(tl_eval_stmt(ev, s, &flow));
        if (flow != TL_FLOW_NEXT) {
            break;
        }
    }
    return TL_OK;
}

static tl_status run_unit(tl_eval *ev, tl_namespace *ns, tl_unit *unit,
                          tl_value *out)
{
    const tl_funcdef *fn = unit->root->func;
    tl_frame frame;

    if (ns == ev->main_ns) {
        TL_TRY(tl_eval_check_flags(ev, unit));
    }
    TL_TRY(tl_frame_push(ev, &frame, fn, ns, NULL, NULL,
                         unit->root->base.span));
    tl_status st = TL_OK;

    if (ev->no_check == 0) {
        st = tl_shape_check_unit(ev, ns, unit);
        if (st == TL_OK) {
            st = tl_compile_check_unit(ev, ns, unit);
        }
    }
    if (st == TL_OK && !(ev->options != NULL && ev->options->check_only)) {
        st = run_statements(ev, fn->body, out);
    }
    tl_frame_pop(ev, &frame);
    return st;
}

tl_status tl_eval_text(tl_eval *ev, tl_namespace *ns, const char *name,
                       const char *text, size_t len, tl_value *out,
                       bool *incomplete)
{
    tl_unit *unit = NULL;
    bool entry = incomplete != NULL || out != NULL;
    tl_value v = tl_none();

    TL_TRY(load_unit(ev, ns, name, text, len, entry, &unit));
    if (unit->incomplete) {
        if (incomplete != NULL) {
            *incomplete = true;
            return TL_OK;
        }
        /* nothing more will come: as a file it says what lacks, and where */
        if (out != NULL) {
            *out = tl_none();
        }
        return tl_eval_text(ev, ns, name, text, len, NULL, NULL);
    }
    if (incomplete != NULL) {
        *incomplete = false;
    }
    TL_TRY(run_unit(ev, ns, unit, out != NULL ? &v : NULL));
    if (out != NULL) {
        if (unit->quiet) {
            tl_drop(&v);
            v = tl_none();
        }
        *out = v;
    }
    return TL_OK;
}

tl_status tl_eval_shape_text(tl_eval *ev, tl_namespace *ns, const char *name,
                             const char *text, size_t len, tl_value *out)
{
    tl_unit *unit = NULL;
    tl_frame frame;

    TL_TRY(load_unit(ev, ns, name, text, len, true, &unit));
    const tl_kids *stmts =
        unit->incomplete ? NULL
                         : &TL_AST(block, unit->root->func->body)->stmts;

    if (stmts == NULL || stmts->len != 1 ||
        stmts->items[0]->kind != TL_AST_EXPR_STMT) {
        return tl_fail(ev->diag, TL_E0720, "`%s` is not an expression", text);
    }
    TL_TRY(tl_frame_push(ev, &frame, unit->root->func, ns, NULL, NULL,
                         unit->root->base.span));
    tl_status st =
        tl_shape_expr(ev, TL_AST(expr_stmt, stmts->items[0])->value, out);

    tl_frame_pop(ev, &frame);
    return st;
}

tl_status tl_eval_test(tl_eval *ev, tl_namespace *ns, const tl_ast *test)
{
    const tl_funcdef *fn = TL_AST(test, test)->func;
    tl_args args = {.span = test->span};
    tl_value r = tl_empty();
    tl_status st = tl_call_code(ev, fn, ns, NULL, NULL, &args, &r);

    tl_unref(r);
    return st;
}

tl_status tl_eval_write(tl_eval *ev, const char *s, size_t len)
{
    return ev->write(ev->write_arg, s, len);
}

/* ---- errors as values -------------------------------------------------- */

tl_status tl_error_take(tl_eval *ev, tl_value *out)
{
    tl_diag_item *item = tl_diag_pop(ev->diag);
    tl_value msg = tl_empty(), text = tl_empty();
    tl_buf buf;
    tl_status st;

    tl_buf_init(&buf);
    const char *m = item != NULL ? item->message : "unknown error";

    TL_GOTO(st, tl_str_new(&msg, m, strlen(m), ev->diag));
    if (item != NULL) {
        tl_diag_print_item(ev->diag, item, TL_DIAG_HUMAN, false, &buf);
    }
    TL_GOTO(st, tl_str_from_buf(&text, &buf, ev->diag));
    tl_error *e = tl_obj_new(TL_V_ERROR, sizeof(*e), ev->diag);

    if (e == NULL) {
        st = TL_ERR_MEMORY;
        goto out;
    }
    e->code = item != NULL ? item->code : TL_CODE_NONE;
    e->message = msg.str;
    e->text = text.str;
    msg = text = tl_empty();
    *out = tl_obj_value_take(e);
    st = TL_OK;
out:
    tl_unref(msg);
    tl_unref(text);
    tl_buf_fini(&buf);
    return st;
}

/* A test block is no function: its frame has its title. */
static void note_test(tl_eval *ev, const tl_frame *frame)
{
    const tl_text *title = &TL_AST(test, frame->fn->node)->title;
    char name[80];

    snprintf(name, sizeof(name), "test \"%.*s%s\"",
             (int)(title->len < 60 ? title->len : 60), title->s,
             title->len > 60 ? "..." : "");
    for (char *p = name; *p != '\0'; p++) {
        *p = (unsigned char)*p < ' ' ? ' ' : *p;
    }
    tl_diag_frame_add(ev->diag, name, frame->call, NULL);
}

void tl_note_frame(tl_eval *ev, const tl_frame *frame)
{
    const tl_funcdef *fn = frame->fn;
    tl_buf buf;

    if (fn->kind == TL_FUNC_TEST) {
        note_test(ev, frame);
        return;
    }
    tl_buf_init(&buf);
    for (uint32_t i = 0; i < fn->params.len && i < 8; i++) {
        const tl_ast_param *p = TL_AST(param, fn->params.items[i]);
        tl_value v = frame->slots[p->ref.index];

        if (v.tag != TL_V_EMPTY) {
            tl_buf_printf(&buf, "%s%s: %s", buf.len > 0 ? ", " : "",
                          p->name->text, tl_value_type_str(v).s);
        }
    }
    tl_diag_frame_add(ev->diag, fn->name != NULL ? fn->name->text : "fn",
                      frame->call, tl_buf_str(&buf));
    tl_buf_fini(&buf);
}
