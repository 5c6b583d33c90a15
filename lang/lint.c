/* lint.c - the lints of lint.def: one function each, called for every node. */
#include "lang/lint.h"

typedef void lint_fn(const tl_ast *node, tl_diag *diag);

/* Statements behind one that never lets them run. */
static void unreachable(const tl_ast *node, tl_diag *diag)
{
    const tl_kids *stmts = &TL_AST(block, node)->stmts;

    if (node->kind != TL_AST_BLOCK) {
        return;
    }
    for (uint32_t i = 0; i + 1 < stmts->len; i++) {
        const tl_ast *s = stmts->items[i];

        if (s->kind == TL_AST_RETURN || s->kind == TL_AST_BREAK ||
            s->kind == TL_AST_CONTINUE || s->kind == TL_AST_RAISE) {
            tl_warn(diag, TL_W0232, stmts->items[i + 1]->span,
                    "this statement is never reached");
            tl_diag_label_add(diag, s->span, "the block ends here");
            return;
        }
    }
}

/* x == 3 as a statement: nothing happens. */
static void lost_comparison(const tl_ast *node, tl_diag *diag)
{
    const tl_ast *value = node->kind == TL_AST_EXPR_STMT
                              ? TL_AST(expr_stmt, node)->value
                              : NULL;

    if (value && value->kind == TL_AST_COMPARE) {
        tl_warn(diag, TL_W0233, value->span,
                "the result of this comparison is lost");
        tl_diag_help(diag, "`=` assigns; `assert` checks");
    }
}

static lint_fn *const lints[] = {
#define LINT(code, function) function,
#include "lang/lint.def"
};

typedef struct walk {
    tl_diag *diag;
} walk;

static bool visit(void *arg, tl_ast *node)
{
    walk *w = arg;

    for (size_t i = 0; i < sizeof(lints) / sizeof(*lints); i++) {
        lints[i](node, w->diag);
    }
    return tl_ast_children(node, visit, arg);
}

void tl_lint(const tl_unit *unit, tl_diag *diag)
{
    walk w = {diag};

    visit(&w, &unit->root->base);
}
