/* record.c - records: plain data with named fields. */
#include "interp/record.h"

#include <stdio.h>
#include <string.h>

#include "interp/call.h"
#include "interp/free.h"
#include "runtime/base/mem.h"

static uint32_t nfields(const tl_class *cls)
{
    return cls->code->params.len;
}

static const tl_ast_param *field(const tl_class *cls, uint32_t i)
{
    return TL_AST(param, cls->code->params.items[i]);
}

static tl_status record_new(tl_eval *ev, tl_class *cls, tl_record **out)
{
    uint32_t n = nfields(cls);
    tl_record *r =
        tl_obj_new(TL_V_RECORD, sizeof(*r) + n * sizeof(tl_value), ev->diag);

    if (!r) {
        return TL_ERR_MEMORY;
    }
    r->cls = tl_ref((tl_value){.tag = TL_V_CLASS, .cls = cls}).cls;
    for (uint32_t i = 0; i < n; i++) {
        r->fields[i] = tl_empty();
    }
    *out = r;
    return TL_OK;
}

void tl_record_free(tl_obj *obj)
{
    tl_record *r = (tl_record *)obj;

    tl_unref_all(r->fields, nfields(r->cls));
    tl_unref((tl_value){.tag = TL_V_CLASS, .cls = r->cls});
}

uint32_t tl_record_nfields(const tl_record *r)
{
    return nfields(r->cls);
}

tl_status tl_record_new_take(tl_eval *ev, tl_class *cls, tl_value *fields,
                             tl_value *out)
{
    tl_record *r;
    tl_status st = record_new(ev, cls, &r);

    if (st != TL_OK) {
        tl_unref_all(fields, nfields(cls));
        return st;
    }
    memcpy(r->fields, fields, nfields(cls) * sizeof(*fields));
    *out = tl_obj_value_take(r);
    return TL_OK;
}

tl_status tl_record_construct(tl_eval *ev, tl_class *cls, tl_args *args,
                              tl_value *out)
{
    tl_record *r;
    tl_frame frame;
    tl_status st;

    TL_TRY(record_new(ev, cls, &r));
    st =
        tl_frame_push(ev, &frame, cls->code, cls->ns, NULL, NULL, args->span);
    if (st == TL_OK) {
        st = tl_bind_args(ev, args);
        for (uint32_t i = 0; st == TL_OK && i < nfields(cls); i++) {
            r->fields[i] = tl_ref(frame.slots[field(cls, i)->ref.index]);
        }
        tl_frame_pop(ev, &frame);
    }
    if (st != TL_OK) {
        tl_unref(tl_obj_value_take(r));
        return st;
    }
    *out = tl_obj_value_take(r);
    return TL_OK;
}

static void help_fields(tl_eval *ev, const char *const *names, uint32_t n)
{
    tl_buf text;

    tl_buf_init(&text);
    for (uint32_t i = 0; i < n; i++) {
        tl_buf_printf(&text, "%s`%s`", i > 0 ? ", " : "", names[i]);
    }
    tl_diag_help(ev->diag, "its fields are %s", tl_buf_str(&text));
    tl_buf_fini(&text);
}

/* Number of the field, or E0211. */
static tl_status find(tl_eval *ev, const tl_record *r, const tl_sym *name,
                      uint32_t *out)
{
    uint32_t n = nfields(r->cls);
    const char **names;
    const char *near;

    for (uint32_t i = 0; i < n; i++) {
        if (field(r->cls, i)->name == name) {
            *out = i;
            return TL_OK;
        }
    }
    names = tl_malloc((n + 1) * sizeof(*names));
    if (!names) {
        return tl_fail_memory(ev->diag, "names", n * sizeof(*names));
    }
    for (uint32_t i = 0; i < n; i++) {
        names[i] = field(r->cls, i)->name->text;
    }
    near = tl_nearest(name->text, names, n);
    tl_fail(ev->diag, TL_E0211, "record %s has no `%s`",
            tl_class_name(r->cls), name->text);
    if (near) {
        tl_diag_help(ev->diag, "`%s`", near);
    } else {
        help_fields(ev, names, n);
    }
    tl_free(names);
    return TL_ERR_PROGRAM;
}

tl_status tl_record_get_attr(tl_eval *ev, tl_record *r, const tl_sym *name,
                             tl_value *out)
{
    uint32_t i;

    TL_TRY(find(ev, r, name, &i));
    *out = tl_ref(r->fields[i]);
    return TL_OK;
}

/* A copy of `r` with its own references. */
static tl_status unshare(tl_eval *ev, tl_record *r, tl_record **out)
{
    tl_record *copy;

    TL_TRY(record_new(ev, r->cls, &copy));
    for (uint32_t i = 0; i < nfields(r->cls); i++) {
        copy->fields[i] = tl_ref(r->fields[i]);
    }
    *out = copy;
    return TL_OK;
}

/* Do all fields still fit their annotations, with the same dimensions? */
static tl_status check_fields(tl_eval *ev, tl_record *r)
{
    const tl_class *cls = r->cls;
    tl_span here = ev->frame ? ev->frame->call : (tl_span){0};
    tl_frame frame;
    tl_status st = TL_OK;

    TL_TRY(tl_frame_push(ev, &frame, cls->code, cls->ns, NULL, NULL, here));
    for (uint32_t i = 0; st == TL_OK && i < nfields(cls); i++) {
        const tl_ast_param *p = field(cls, i);
        char what[80];

        snprintf(what, sizeof(what), "`%s`", p->name->text);
        st = tl_check_type(ev, p->type, &r->fields[i], what, (tl_span){0});
    }
    tl_frame_pop(ev, &frame);
    return st;
}

tl_status tl_record_with_take(tl_eval *ev, tl_value r, const tl_sym *name,
                              tl_value v, tl_value *out)
{
    tl_record *to = r.record;
    uint32_t i = 0;
    tl_status st = find(ev, r.record, name, &i);

    if (st == TL_OK && !tl_unshared(r)) {
        st = unshare(ev, r.record, &to);
        if (st == TL_OK) {
            tl_unref(r);
            r = tl_obj_value_take(to);
        }
    }
    if (st != TL_OK) {
        tl_unref(r);
        tl_unref(v);
        return st;
    }
    tl_unref(to->fields[i]);
    to->fields[i] = v;
    st = check_fields(ev, to);
    if (st != TL_OK) {
        tl_unref(r);
        return st;
    }
    *out = r;
    return TL_OK;
}
