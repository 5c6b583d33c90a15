/* fuzz_parse.c - libFuzzer target: any bytes through the whole front end.
 *
 * Each input is parsed as a file and as an entry of the REPL, resolved,
 * printed, and its diagnostics formatted.  Besides not crashing, it checks
 * that a failure was reported, that spans lie in the text and in their
 * parents, that refs are within their tables, and that nothing leaks.  The
 * first byte chooses whether an allocation fails, and which.
 *
 *     tests/fuzz/run parse 600 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lang/parse.h"
#include "lang/scope.h"
#include "runtime/base/check.h"
#include "runtime/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_builtin(void *arg, const tl_sym *name)
{
    static const char *const names[] = {"print", "range",      "len", "relu",
                                        "zeros", "breakpoint", "f32"};

    (void)arg;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name->text) == 0) {
            return true;
        }
    }
    return false;
}

static unsigned effects(void *arg, const tl_sym *name)
{
    (void)arg;
    return name->text[0] == 'p' ? TL_EFFECT_HOST : 0;
}

typedef struct checker {
    const tl_source *source;
    const tl_funcdef *func;
    uint32_t depth;
    bool resolved; /* refs are only filled in by a resolve that succeeded */
} checker;

static const tl_funcdef *func_of(const tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_FN:
        return TL_AST(fn, node)->func;
    case TL_AST_LAMBDA:
        return TL_AST(lambda, node)->func;
    case TL_AST_MODULE:
        return TL_AST(module, node)->func;
    case TL_AST_RECORD:
        return TL_AST(record, node)->func;
    case TL_AST_TEST:
        return TL_AST(test, node)->func;
    default:
        return NULL;
    }
}

static void check_ref(const checker *c, const tl_ref_info *ref)
{
    TL_CHECK(ref->kind <= TL_REF_BUILTIN);
    if (ref->kind == TL_REF_LOCAL) {
        TL_CHECK(ref->index < c->func->nslots);
    } else if (ref->kind == TL_REF_CAPTURE) {
        TL_CHECK(ref->index < c->func->ncaptures);
    } else if (ref->kind == TL_REF_FIELD) {
        if (ref->self == TL_SELF_SLOT) {
            TL_CHECK(ref->index < c->func->module->nfields);
        } else { /* perhaps of a module around this one */
            TL_CHECK(ref->self < c->func->ncaptures);
        }
    }
    TL_CHECK(!ref->last || ref->kind == TL_REF_LOCAL);
}

static bool check_node(void *arg, tl_ast *node)
{
    checker c = *(const checker *)arg;
    const tl_funcdef *func = func_of(node);

    TL_CHECK(node->kind < TL_AST_COUNT);
    TL_CHECK(node->span.start <= node->span.end);
    TL_CHECK(node->span.end <= c.source->len);
    TL_CHECK(++c.depth <= 5 * TL_AST_MAX_DEPTH);
    c.func = func ? func : c.func;
    if (node->kind == TL_AST_NAME && c.resolved && c.func) {
        check_ref(&c, &TL_AST(name, node)->ref);
    }
    return tl_ast_children(node, check_node, &c);
}

static void print(const tl_unit *unit)
{
    tl_buf out;

    tl_buf_init(&out);
    tl_ast_print(&unit->root->base, true, &out);
    TL_CHECK(out.len > 0 || out.failed);
    tl_buf_fini(&out);
}

static void check_diag(tl_diag *diag, tl_status status)
{
    tl_buf out;

    TL_CHECK(status == TL_OK || diag->nerrors > 0);
    tl_buf_init(&out);
    tl_diag_print(diag, TL_DIAG_HUMAN, false, &out);
    tl_buf_fini(&out);
}

static void run(tl_lang *lang, const char *text, size_t size, bool entry)
{
    tl_builtins builtins = {.has = is_builtin, .effects = effects};
    tl_globals globals;
    tl_diag diag;
    tl_unit *unit = NULL;
    tl_status status;
    uint32_t file = tl_sources_add(lang->sources, "fuzz", text, size);

    if (file == 0) {
        return;
    }
    tl_diag_init(&diag, lang->sources);
    tl_globals_init(&globals);
    status = entry ? tl_parse_entry(&unit, lang, file, &diag)
                   : tl_parse(&unit, lang, file, &diag);
    if (status == TL_OK && !unit->incomplete) {
        checker c = {.source = tl_sources_get(lang->sources, file)};

        status = tl_resolve(unit, lang, &globals, &builtins, &diag);
        c.resolved = status == TL_OK;
        c.func = c.resolved ? unit->root->func : NULL;
        check_node(&c, &unit->root->base);
        if (status == TL_OK) {
            print(unit);
        }
    }
    check_diag(&diag, status);
    tl_unit_free(unit);
    tl_globals_fini(&globals);
    tl_diag_fini(&diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    int64_t live = tl_mem_live_blocks();
    tl_sources sources;
    tl_intern names;
    tl_lang lang = {&names, &sources};

    if (size == 0) {
        return 0;
    }
    tl_sources_init(&sources);
    tl_intern_init(&names);
    if (data[0] >= 0x80) { /* no text begins so */
        tl_mem_fail_at((data[0] & 0x3fu) + 1u, data[0] & 0x40);
        text++;
        size--;
    }
    run(&lang, text, size, false);
    run(&lang, text, size, true);
    tl_mem_fail_at(0, false);
    tl_intern_fini(&names);
    tl_sources_fini(&sources);
    TL_CHECK(tl_mem_live_blocks() == live);
    return 0;
}
