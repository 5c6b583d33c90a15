/* compile_explain.c - what was compiled, and why, as text. */
#include <string.h>

#include "interp/compiled_impl.h"

/* Append `text`, its lines indented. */
static void put_indented(const char *text, tl_buf *out)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");

        tl_buf_puts(out, "    ");
        tl_buf_add(out, text, n);
        tl_buf_putc(out, '\n');
        text += n + (text[n] == '\n');
    }
}

tl_status tl_entry_tell(tl_eval *ev, tl_compiled *f, tl_entry *e)
{
    tl_effect_arg arg = {ev, e};
    tl_run run = tl_entry_inputs(e, &arg);
    tl_buf plan;
    tl_status st;

    tl_buf_init(&plan);
    st = tl_program_explain(e->program, ev->rt, &run, &plan);
    if (st == TL_OK) {
        tl_buf_printf(&f->log, "  program %zu: %s\n", e->number,
                      e->cause != NULL ? e->cause : "");
        put_indented(tl_buf_str(&plan), &f->log);
        e->told = true;
    } else {
        tl_entry_release(e);
    }
    tl_buf_fini(&plan);
    return st;
}

static void put_place(const tl_eval *ev, tl_span span, tl_buf *out)
{
    const tl_source *s = tl_sources_get(ev->lang->sources, span.file);
    int line, column;

    if (s != NULL) {
        tl_source_position(s, span.start, &line, &column);
        tl_buf_printf(out, " (%s:%d:%d)", s->name, line, column);
    }
}

/* What its marks ask for and this build does not do. */
static void put_marks(const tl_funcdef *fn, tl_buf *out)
{
    if (fn->marks.mode != NULL && strcmp(fn->marks.mode, "default") != 0) {
        tl_buf_printf(out, "  mode=\"%s\" does what \"default\" does in "
                           "this build\n", fn->marks.mode);
    }
    if (fn->marks.checkpoint) {
        tl_buf_puts(out, "  @checkpoint changes nothing in this build: the "
                         "backward pass recomputes nothing\n");
    }
}

void tl_explain_refusal(const tl_eval *ev, const tl_compiled *f, tl_buf *out)
{
    if (f->why == NULL) {
        tl_buf_puts(out, "not compiled: it raises an error\n");
        return;
    }
    tl_buf_printf(out, "not compiled: %s", f->why);
    put_place(ev, f->why_at, out);
    tl_buf_putc(out, '\n');
}

static void put_function(const tl_eval *ev, const tl_compiled *f, tl_buf *out)
{
    tl_buf_printf(out, "%s", tl_code_title_of(f->fn));
    put_place(ev, f->fn->node->span, out);
    tl_buf_printf(out, ": %zu program%s, %zu run%s", f->programs,
                  f->programs == 1 ? "" : "s", f->runs,
                  f->runs == 1 ? "" : "s");
    if (f->verified > 0) {
        tl_buf_printf(out, ", %zu verified", f->verified);
    }
    if (f->interpreted > 0) {
        tl_buf_printf(out, ", %zu call%s interpreted", f->interpreted,
                      f->interpreted == 1 ? "" : "s");
    }
    tl_buf_putc(out, '\n');
    put_marks(f->fn, out);
    if (f->why != NULL && (f->refused || f->programs == 0)) {
        tl_buf_puts(out, "  ");
        tl_explain_refusal(ev, f, out);
    }
    tl_buf_add(out, f->log.data, f->log.len);
}

void tl_compiler_explain(const tl_eval *ev, tl_buf *out)
{
    const tl_compiled *f = ev->compiler != NULL ? ev->compiler->first : NULL;

    if (f == NULL) {
        tl_buf_puts(out, "nothing was compiled\n");
    }
    for (; f != NULL; f = f->next) {
        put_function(ev, f, out);
    }
}
