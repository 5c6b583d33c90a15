/* scope_collect.c - the first walk: what a function's own statements bind.
 *
 * Nested functions are names here, nothing more.  Comprehension variables
 * belong to their comprehension and are entered by the second walk. */
#include "lang/scope_impl.h"

static unsigned binds_of(const tl_ast *value)
{
    switch (value ? value->kind : TL_AST_NONE) {
    case TL_AST_LIST:
    case TL_AST_LIST_COMP:
        return TL_BIND_LIST;
    case TL_AST_DICT:
    case TL_AST_DICT_COMP:
        return TL_BIND_DICT;
    case TL_AST_STR:
    case TL_AST_FSTRING:
        return TL_BIND_STR;
    default:
        return TL_BIND_OTHER;
    }
}

static void collect_target(tl_resolver *r, tl_scope *s, const tl_ast *node,
                           unsigned binds)
{
    const tl_kids *items;

    switch (node->kind) {
    case TL_AST_NAME:
        tl_scope_bind(r, s, TL_AST(name, node)->name, node->span, binds);
        return;
    case TL_AST_STAR:
        collect_target(r, s, TL_AST(star, node)->value, TL_BIND_OTHER);
        return;
    case TL_AST_TUPLE:
        items = &TL_AST(tuple, node)->items;
        break;
    case TL_AST_LIST:
        items = &TL_AST(list, node)->items;
        break;
    default:
        return; /* a path binds nothing */
    }
    for (uint32_t i = 0; i < items->len; i++) {
        collect_target(r, s, items->items[i], TL_BIND_OTHER);
    }
}

static void collect_def(tl_resolver *r, tl_scope *s, const tl_sym *name,
                        tl_span at)
{
    const tl_var *had = tl_scope_find(s, name);

    if (had && (had->binds & TL_BIND_DEF)) {
        tl_warn(r->diag, TL_W0230, at, "`%s` is defined twice", name->text);
        tl_diag_label_add(r->diag, had->at, "the first one is lost");
    }
    tl_scope_bind(r, s, name, at, TL_BIND_DEF);
}

static void collect_import(tl_resolver *r, tl_scope *s, const tl_ast *node)
{
    const tl_kids *names = node->kind == TL_AST_IMPORT
                               ? &TL_AST(import, node)->names
                               : &TL_AST(from, node)->names;

    for (uint32_t i = 0; i < names->len; i++) {
        const tl_ast *item = names->items[i];
        const tl_sym *name, *alias;

        if (item->kind == TL_AST_IMPORT_NAME) {
            const tl_path *path = &TL_AST(import_name, item)->path;

            name = path->names[path->len - 1]; /* `import a.b` binds b */
            alias = TL_AST(import_name, item)->alias;
        } else {
            name = TL_AST(from_name, item)->name;
            alias = TL_AST(from_name, item)->alias;
        }
        tl_scope_bind(r, s, alias ? alias : name, item->span, TL_BIND_OTHER);
    }
}

typedef struct collector {
    tl_resolver *r;
    tl_scope *s;
} collector;

static bool collect_child(void *arg, tl_ast *child)
{
    collector *c = arg;

    tl_scope_collect(c->r, c->s, child);
    return true;
}

static void collect_assign(tl_resolver *r, tl_scope *s,
                           const tl_ast_assign *assign)
{
    for (uint32_t i = 0; i < assign->targets.len; i++) {
        collect_target(r, s, assign->targets.items[i],
                       binds_of(assign->value));
    }
    if (assign->value->kind == TL_AST_GRAD) {
        tl_scope_collect(r, s, TL_AST(grad, assign->value)->body);
    }
}

void tl_scope_collect(tl_resolver *r, tl_scope *s, const tl_ast *node)
{
    collector c = {r, s};

    switch (node->kind) {
    case TL_AST_ASSIGN:
        collect_assign(r, s, TL_AST(assign, node));
        return;
    case TL_AST_AUG:
        collect_target(r, s, TL_AST(aug, node)->target, TL_BIND_AUG);
        if (TL_AST(aug, node)->value->kind == TL_AST_GRAD) {
            tl_scope_collect(r, s, TL_AST(aug, node)->value);
        }
        return;
    case TL_AST_DECL:
        collect_target(r, s, TL_AST(decl, node)->target,
                       binds_of(TL_AST(decl, node)->value));
        return;
    case TL_AST_FN:
        collect_def(r, s, TL_AST(fn, node)->name, TL_AST(fn, node)->name_at);
        return;
    case TL_AST_MODULE:
        collect_def(r, s, TL_AST(module, node)->name,
                    TL_AST(module, node)->name_at);
        return;
    case TL_AST_RECORD:
        collect_def(r, s, TL_AST(record, node)->name,
                    TL_AST(record, node)->name_at);
        return;
    case TL_AST_IMPORT:
    case TL_AST_FROM:
        collect_import(r, s, node);
        return;
    case TL_AST_FOR:
        collect_target(r, s, TL_AST(for, node)->target, TL_BIND_OTHER);
        tl_scope_collect(r, s, TL_AST(for, node)->body);
        return;
    case TL_AST_WITH_ITEM:
        if (TL_AST(with_item, node)->target) {
            collect_target(r, s, TL_AST(with_item, node)->target,
                           TL_BIND_OTHER);
        }
        return;
    case TL_AST_TRY:
        collect_target(r, s, TL_AST(try, node)->target, TL_BIND_OTHER);
        break;
    case TL_AST_BACKWARD:
        for (uint32_t i = 0; i < TL_AST(backward, node)->names.len; i++) {
            collect_target(r, s, TL_AST(backward, node)->names.items[i],
                           TL_BIND_OTHER);
        }
        break;
    case TL_AST_BLOCK:
    case TL_AST_IF:
    case TL_AST_ARM:
    case TL_AST_WHILE:
    case TL_AST_WITH:
    case TL_AST_GRAD:
    case TL_AST_RETURN:
    case TL_AST_EXPR_STMT:
        break; /* a grad block may be below */
    default:
        return;
    }
    tl_ast_children(node, collect_child, &c);
}
