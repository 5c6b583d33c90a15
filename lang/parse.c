/* parse.c - a unit from its source text; errors of the parser. */
#include "lang/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lang/parse_state.h"

#include "lang/parser.h"
#include "runtime/base/mem.h"

/* ---- errors -------------------------------------------------------------- */

/* Once the text is known to be incomplete nothing that follows counts. */
static bool silent(const tl_parser *ps)
{
    return ps->stop || ps->incomplete;
}

static void report(tl_parser *ps, tl_code code, tl_span at, const char *fmt,
                   va_list ap)
{
    char message[512];
    tl_status status;

    vsnprintf(message, sizeof(message), fmt, ap);
    status = tl_fail_at(ps->diag, code, at, "%s", message);
    ps->status = ps->status ? ps->status : status;
}

void tl_parse_error(tl_parser *ps, tl_code code, tl_span at, const char *fmt,
                    ...)
{
    va_list ap;

    ps->reported = !silent(ps);
    if (ps->reported) {
        va_start(ap, fmt);
        report(ps, code, at, fmt, ap);
        va_end(ap);
    }
}

void tl_parse_help(tl_parser *ps, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    if (ps->reported) {
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        tl_diag_help(ps->diag, "%s", text);
    }
}

void tl_parse_stop(tl_parser *ps, tl_code code, tl_span at, const char *fmt,
                   ...)
{
    va_list ap;

    if (!ps->stop) {
        va_start(ap, fmt);
        report(ps, code, at, fmt, ap);
        va_end(ap);
    }
    ps->incomplete = false;
    ps->stop = true;
}

void tl_parse_oom(tl_parser *ps, size_t bytes)
{
    if (!ps->stop) {
        ps->status = tl_fail_memory(ps->diag, "the syntax tree", bytes);
    }
    ps->incomplete = false;
    ps->stop = true;
}

void tl_parse_need_more(tl_parser *ps)
{
    if (ps->entry && ps->status == TL_OK && !ps->stop) {
        ps->incomplete = true;
    }
}

tl_place tl_parse_place(const tl_parser *ps, uint32_t offset)
{
    tl_place place;
    int line, column;

    tl_source_position(ps->source, offset, &line, &column);
    snprintf(place.s, sizeof(place.s), "%d:%d", line, column);
    return place;
}

const char *tl_parse_bytes(const tl_parser *ps, tl_span span, size_t *len)
{
    *len = span.end - span.start;
    return ps->source->text + span.start;
}

/* ---- units --------------------------------------------------------------- */

static bool is_compound(const tl_ast *stmt)
{
    switch (stmt->kind) {
    case TL_AST_IF:
    case TL_AST_WHILE:
    case TL_AST_FOR:
    case TL_AST_WITH:
    case TL_AST_TRY:
    case TL_AST_FN:
    case TL_AST_MODULE:
    case TL_AST_RECORD:
    case TL_AST_TEST:
        return true;
    case TL_AST_ASSIGN:
        return TL_AST(assign, stmt)->value->kind == TL_AST_GRAD;
    case TL_AST_EXPR_STMT:
        return TL_AST(expr_stmt, stmt)->value->kind == TL_AST_GRAD;
    default:
        return false;
    }
}

/* The text ends in a line of spaces at most. */
static bool ends_blank(const tl_source *source)
{
    size_t n = source->len;
    int newlines = 0;

    while (n > 0 && strchr(" \t\r\n", source->text[n - 1])) {
        newlines += source->text[--n] == '\n';
    }
    return newlines > 1 || n == 0;
}

static void finish_entry(tl_parser *ps)
{
    tl_unit *unit = ps->unit;
    const tl_kids *stmts;

    unit->incomplete = ps->incomplete;
    if (unit->incomplete || !unit->root) {
        unit->root = NULL;
        return;
    }
    stmts = &TL_AST(block, unit->root->body)->stmts;
    unit->open_block = stmts->len > 0 && !ends_blank(ps->source) &&
                       is_compound(stmts->items[stmts->len - 1]);
}

static tl_status run_parser(tl_parser *ps)
{
    int result;

    TL_TRY(tl_literal_check_bytes(ps));
    TL_TRY(tl_layout_init(ps));
    TL_TRY(tl_scanner_init(ps));
    result = tl_yyparse(ps);
    if (result != 0 && ps->status == TL_OK && !ps->incomplete) {
        return tl_fail(ps->diag, TL_E0100, "the text cannot be parsed");
    }
    if (ps->status != TL_OK) {
        return ps->status == TL_ERR_MEMORY ? TL_ERR_MEMORY : TL_ERR_REJECTED;
    }
    if (ps->entry) {
        finish_entry(ps);
    }
    return TL_OK;
}

static tl_status parse(tl_unit **out, tl_lang *lang, uint32_t file,
                       bool entry, tl_diag *diag)
{
    tl_parser ps = {.lang = lang, .diag = diag, .entry = entry};
    tl_status status;

    ps.nothing = (tl_ast_none){.base = {.kind = TL_AST_NONE, .depth = 1}};
    ps.source = tl_sources_get(lang->sources, file);
    ps.unit = tl_calloc(1, sizeof(*ps.unit));
    if (!ps.source || !ps.unit) {
        tl_free(ps.unit);
        return tl_fail_memory(diag, "a source file", sizeof(*ps.unit));
    }
    ps.unit->file = file;
    tl_arena_init(&ps.unit->arena);
    tl_arena_init(&ps.scratch);
    status = run_parser(&ps);
    tl_arena_fini(&ps.scratch);
    if (status != TL_OK) {
        tl_unit_free(ps.unit);
        return status;
    }
    *out = ps.unit;
    return TL_OK;
}

tl_status tl_parse(tl_unit **out, tl_lang *lang, uint32_t file, tl_diag *diag)
{
    return parse(out, lang, file, false, diag);
}

tl_status tl_parse_entry(tl_unit **out, tl_lang *lang, uint32_t file,
                         tl_diag *diag)
{
    return parse(out, lang, file, true, diag);
}

void tl_unit_free(tl_unit *unit)
{
    if (unit) {
        tl_arena_fini(&unit->arena);
        tl_free(unit);
    }
}
