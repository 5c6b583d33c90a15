/* patterns.c - patterns of axis names are parsed when a file is loaded.
 *
 * "b t (h e) -> b h t e" is a language of its own (runtime/op/pattern.h); a
 * call that is never reached has its pattern checked too. */
#include "lang/patterns.h"

#include <string.h>

#include "runtime/op/pattern.h"

typedef struct walk {
    tl_diag *diag;
    tl_status st;
} walk;

/* The built-in whose pattern a call has; false: another callee. */
static bool pattern_kind(const tl_ast *callee, tl_pattern_kind *out)
{
    const tl_ast_name *name = TL_AST(name, callee);

    if (callee->kind != TL_AST_NAME || name->ref.kind != TL_REF_BUILTIN) {
        return false;
    }
    if (strcmp(name->name->text, "rearrange") == 0) {
        *out = TL_PATTERN_REARRANGE;
    } else if (strcmp(name->name->text, "reduce") == 0) {
        *out = TL_PATTERN_REDUCE;
    } else if (strcmp(name->name->text, "einsum") == 0) {
        *out = TL_PATTERN_EINSUM;
    } else {
        return false;
    }
    return true;
}

/* The literal among the arguments, or NULL. */
static const tl_ast *pattern_of(const tl_ast_call *call)
{
    for (uint32_t i = 0; i < call->args.len; i++) {
        const tl_ast *arg = call->args.items[i];

        if (arg->kind == TL_AST_KEYWORD &&
            strcmp(TL_AST(keyword, arg)->name->text, "pattern") == 0) {
            arg = TL_AST(keyword, arg)->value;
        }
        if (arg->kind == TL_AST_STR) {
            return arg;
        }
    }
    return NULL;
}

/* Bytes of the literal's text in the source; all of it if that has escapes. */
static tl_span span_inside(const tl_ast *literal, tl_pattern_place place)
{
    tl_span span = literal->span;
    size_t quotes = span.end - span.start - TL_AST(str, literal)->text.len;

    if (quotes != 2 && quotes != 6) {
        return span;
    }
    span.start += (uint32_t)(quotes / 2 + place.start);
    span.end = span.start + (uint32_t)(place.end - place.start);
    return span;
}

static void check(walk *w, tl_pattern_kind kind, const tl_ast *literal)
{
    const tl_text *text = &TL_AST(str, literal)->text;
    tl_pattern_place place = {0, 0};
    tl_pattern p;
    tl_status st = tl_pattern_parse(&p, kind, text->s, text->len, &place,
                                    w->diag);

    if (st == TL_OK) {
        return;
    }
    tl_diag_at(w->diag, span_inside(literal, place));
    w->st = st == TL_ERR_PROGRAM ? TL_ERR_REJECTED : st;
}

static bool visit(void *arg, tl_ast *node)
{
    walk *w = arg;
    tl_pattern_kind kind;

    if (node->kind == TL_AST_CALL &&
        pattern_kind(TL_AST(call, node)->callee, &kind)) {
        const tl_ast *literal = pattern_of(TL_AST(call, node));

        if (literal != NULL) {
            check(w, kind, literal);
        }
    }
    return tl_ast_children(node, visit, arg);
}

tl_status tl_patterns_check(const tl_unit *unit, tl_diag *diag)
{
    walk w = {diag, TL_OK};

    visit(&w, &unit->root->base);
    return w.st;
}
