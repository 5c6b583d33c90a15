/* build.c - nodes in the arena: lists, statements, expressions.
 *
 * A node's depth is one more than its deepest child's; nodes that only group
 * (blocks, arms, arguments) add nothing, so that the depth is what a reader
 * would count. */
#include "lang/build.h"

#include <string.h>

/* ---- nodes and lists ----------------------------------------------------- */

static bool groups_only(int kind)
{
    switch (kind) {
    case TL_AST_BLOCK:
    case TL_AST_ARM:
    case TL_AST_KEYWORD:
    case TL_AST_STAR:
    case TL_AST_DOUBLE_STAR:
    case TL_AST_PAIR:
    case TL_AST_FPART:
    case TL_AST_SLICE:
    case TL_AST_PARAM:
    case TL_AST_WITH_ITEM:
    case TL_AST_COMP_FOR:
    case TL_AST_COMP_IF:
    case TL_AST_BACKWARD:
    case TL_AST_UNIT:
        return true;
    default:
        return false;
    }
}

static bool deepest(void *arg, tl_ast *child)
{
    uint16_t *depth = arg;

    if (child->depth > *depth) {
        *depth = child->depth;
    }
    return true;
}

/* Set the depth from the children. */
static void measure(tl_parser *ps, tl_ast *node)
{
    uint16_t depth = 0;

    tl_ast_children(node, deepest, &depth);
    depth = (uint16_t)(depth + !groups_only(node->kind));
    if (depth > TL_AST_MAX_DEPTH) {
        tl_parse_stop(ps, TL_E0110, node->span, "nested deeper than 1,000");
        depth = TL_AST_MAX_DEPTH;
    }
    node->depth = depth;
}

static tl_ast *no_memory(tl_parser *ps, size_t bytes)
{
    tl_parse_oom(ps, bytes);
    return &ps->nothing.base;
}

tl_ast *tl_build(tl_parser *ps, const tl_ast *proto)
{
    size_t size = tl_ast_info_get(proto->kind)->size;
    tl_ast *node = tl_arena_alloc(&ps->unit->arena, size);

    if (!node) {
        return no_memory(ps, size);
    }
    memcpy(node, proto, size);
    measure(ps, node);
    return node;
}

/* Room for one more in an array that doubles: it is full when its length is
 * 0 or a power of two.  NULL when out of memory. */
static void *grow(tl_parser *ps, void *items, uint32_t len, size_t size)
{
    void *more;

    if (len & (len - 1)) {
        return items;
    }
    more = tl_arena_array(&ps->unit->arena, len ? 2 * (size_t)len : 1, size);
    if (!more) {
        tl_parse_oom(ps, 2 * (size_t)len * size);
        return NULL;
    }
    if (len) {
        memcpy(more, items, len * size);
    }
    return more;
}

tl_kids tl_build_append(tl_parser *ps, tl_kids list, tl_ast *node)
{
    tl_ast **items = grow(ps, list.items, list.len, sizeof(*items));

    if (items) {
        list.items = items;
        list.items[list.len++] = node;
    }
    return list;
}

tl_kids tl_build_stmt(tl_parser *ps, tl_kids list, tl_ast *stmt)
{
    if (!stmt) {
        return list;
    }
    ps->after_error = false;
    if (stmt->kind != TL_AST_BLOCK) {
        return tl_build_append(ps, list, stmt);
    }
    for (uint32_t i = 0; i < TL_AST(block, stmt)->stmts.len; i++) {
        list = tl_build_append(ps, list, TL_AST(block, stmt)->stmts.items[i]);
    }
    ps->after_error = true; /* what may follow: `else` */
    return list;
}

tl_path tl_build_path(tl_parser *ps, tl_path path, const tl_sym *name)
{
    const tl_sym **names = grow(ps, path.names, path.len, sizeof(*names));

    if (names) {
        path.names = names;
        path.names[path.len++] = name;
    }
    return path;
}

/* ---- statements ---------------------------------------------------------- */

void tl_build_unit(tl_parser *ps, tl_kids stmts, tl_span at)
{
    tl_ast *body = tl_build_block(ps, at, stmts);
    tl_ast *unit = NEW(UNIT, unit, at, .body = body);

    if (unit->kind == TL_AST_UNIT) {
        ps->unit->root = TL_AST(unit, unit);
    }
}

tl_ast *tl_build_block(tl_parser *ps, tl_span at, tl_kids stmts)
{
    if (stmts.len > 0) {
        at.start = stmts.items[0]->span.start;
        at.end = stmts.items[stmts.len - 1]->span.end;
    }
    return NEW(BLOCK, block, at, .stmts = stmts);
}

tl_ast *tl_build_skipped(tl_parser *ps)
{
    ps->after_error = true;
    return NULL;
}

void tl_build_indent(tl_parser *ps, tl_span at)
{
    if (!ps->after_error) {
        tl_parse_error(ps, TL_E0104, at,
                       "this line is indented, but no block begins here");
    }
    ps->after_error = false;
}

tl_ast *tl_build_expr_stmt(tl_parser *ps, tl_span at, tl_ast *value)
{
    bool method = value->kind == TL_AST_CALL &&
                  TL_AST(call, value)->callee->kind == TL_AST_ATTR;

    return NEW(EXPR_STMT, expr_stmt, at, .value = value, .unused = method);
}

static void report_target(tl_parser *ps, const tl_ast *node)
{
    size_t len;
    const char *text = tl_parse_bytes(ps, node->span, &len);
    size_t shown = strcspn(text, "\n");

    shown = shown < len ? shown : len;
    shown = shown < 40 ? shown : 40;
    tl_parse_error(ps, TL_E0114, node->span, "cannot assign to `%.*s%s`",
                   (int)shown, text, shown < len ? "..." : "");
    switch (node->kind) {
    case TL_AST_CALL:
        tl_parse_help(ps, "a function is defined by `fn f(x) = ...`");
        break;
    case TL_AST_COMPARE:
        tl_parse_help(ps, "`==` compares; assignment is `=`");
        break;
    case TL_AST_AS:
        tl_parse_help(ps, "a variable is declared by `x: type = value`");
        break;
    default:
        tl_parse_help(ps, "the left side is a name, `x.f`, `x[i]`, or "
                          "several of them");
        break;
    }
}

static void check_targets(tl_parser *ps, const tl_kids *items)
{
    bool starred = false;

    for (uint32_t i = 0; i < items->len; i++) {
        tl_ast *item = items->items[i];

        if (item->kind != TL_AST_STAR) {
            tl_build_target(ps, item);
            continue;
        }
        if (starred) {
            tl_parse_error(ps, TL_E0114, item->span,
                           "two starred targets in one unpacking");
        }
        starred = true;
        tl_build_target(ps, TL_AST(star, item)->value);
    }
}

tl_ast *tl_build_target(tl_parser *ps, tl_ast *node)
{
    switch (node->kind) {
    case TL_AST_NAME:
    case TL_AST_ATTR:
    case TL_AST_INDEX:
        break;
    case TL_AST_TUPLE:
        check_targets(ps, &TL_AST(tuple, node)->items);
        break;
    case TL_AST_LIST:
        check_targets(ps, &TL_AST(list, node)->items);
        break;
    default:
        report_target(ps, node);
        break;
    }
    return node;
}

tl_ast *tl_build_assign(tl_parser *ps, tl_span at, tl_kids targets,
                        tl_ast *value)
{
    return NEW(ASSIGN, assign, at, .targets = targets, .value = value);
}

tl_ast *tl_build_aug(tl_parser *ps, tl_span at, tl_oper op, tl_ast *target,
                     tl_ast *value)
{
    if (target->kind == TL_AST_TUPLE || target->kind == TL_AST_LIST) {
        tl_parse_error(ps, TL_E0114, target->span,
                       "`%s=` has one target, found several", tl_op_text(op));
    } else {
        tl_build_target(ps, target);
    }
    return NEW(AUG, aug, at, .op = op, .target = target, .value = value);
}

tl_ast *tl_build_if(tl_parser *ps, tl_span at, tl_ast *cond, tl_ast *body,
                    tl_kids elifs, tl_ast *other)
{
    tl_span first = {at.file, cond->span.start, body->span.end};
    tl_kids arms = tl_build_append(
        ps, (tl_kids){0}, NEW(ARM, arm, first, .cond = cond, .body = body));

    for (uint32_t i = 0; i < elifs.len; i++) {
        arms = tl_build_append(ps, arms, elifs.items[i]);
    }
    return NEW(IF, if, at, .arms = arms, .other = other);
}

tl_ast *tl_build_context(tl_parser *ps, tl_span at, tl_ast *value)
{
    if (value->kind == TL_AST_AS && !value->paren) {
        const tl_ast *type = TL_AST(as, value)->type;

        if (type->kind == TL_AST_TYPE_NAME) {
            tl_parse_error(ps, TL_E0117, at,
                           "`with value as name` is Python");
            tl_parse_help(ps, "write `with name = value:`");
        }
    }
    return NEW(WITH_ITEM, with_item, at, .value = value);
}

/* ---- expressions --------------------------------------------------------- */

tl_ast *tl_build_name(tl_parser *ps, tl_span at, const tl_sym *name)
{
    return NEW(NAME, name, at, .name = name);
}

tl_ast *tl_build_tuple_of(tl_parser *ps, tl_span at, tl_kids items,
                          bool comma)
{
    if (items.len != 1 || comma) {
        return NEW(TUPLE, tuple, at, .items = items);
    }
    if (items.items[0]->kind == TL_AST_STAR) {
        tl_parse_error(ps, TL_E0100, items.items[0]->span,
                       "`*` spreads a list, but nothing stands around it");
        tl_parse_help(ps, "write `[*xs]`, or `*xs,` for a tuple");
        return TL_AST(star, items.items[0])->value;
    }
    return items.items[0];
}

tl_ast *tl_build_paren(tl_parser *ps, tl_span at, tl_ast *node)
{
    (void)ps;
    if (node->kind == TL_AST_TUPLE && !node->paren) {
        node->span = at;
    }
    node->paren = true;
    return node;
}

tl_ast *tl_build_compare(tl_parser *ps, tl_span at, tl_ast *left, tl_oper op,
                         tl_ast *right)
{
    tl_ast *node = left;
    tl_ast_compare *compare;
    tl_oper *ops;

    if (left->kind != TL_AST_COMPARE || left->paren) {
        node = NEW(COMPARE, compare, at,
                   .operands = tl_build_append(ps, (tl_kids){0}, left));
    }
    if (node->kind != TL_AST_COMPARE) {
        return node; /* out of memory */
    }
    compare = TL_AST(compare, node);
    if (compare->operands.len == 0) {
        return &ps->nothing.base;
    }
    ops = grow(ps, compare->ops, compare->operands.len - 1, sizeof(*ops));
    if (!ops) {
        return &ps->nothing.base;
    }
    compare->ops = ops;
    ops[compare->operands.len - 1] = op;
    compare->operands = tl_build_append(ps, compare->operands, right);
    node->span = at;
    measure(ps, node);
    return node;
}

tl_ast *tl_build_negate(tl_parser *ps, tl_span at, tl_ast *operand)
{
    if (operand->kind == TL_AST_INT && TL_AST(int, operand)->wide &&
        !operand->paren) {
        TL_AST(int, operand)->wide = false; /* -2^63 */
        operand->span = at;
        return operand;
    }
    return NEW(UNARY, unary, at, .op = TL_OP_NEG, .operand = operand);
}

static void check_keyword(tl_parser *ps, const tl_kids *args, uint32_t i)
{
    const tl_ast_keyword *keyword = TL_AST(keyword, args->items[i]);

    for (uint32_t j = 0; j < i; j++) {
        const tl_ast *other = args->items[j];

        if (other->kind == TL_AST_KEYWORD &&
            TL_AST(keyword, other)->name == keyword->name) {
            tl_parse_error(ps, TL_E0205, keyword->base.span,
                           "argument `%s` is given twice",
                           keyword->name->text);
            tl_diag_label_add(ps->diag, other->span, "first here");
            return;
        }
    }
}

tl_kids tl_build_args(tl_parser *ps, tl_kids args)
{
    bool keywords = false;

    for (uint32_t i = 0; i < args.len && !ps->stop; i++) {
        const tl_ast *arg = args.items[i];

        if (arg->kind == TL_AST_KEYWORD) {
            keywords = true;
            check_keyword(ps, &args, i);
        } else if (arg->kind == TL_AST_DOUBLE_STAR) {
            keywords = true;
        } else if (keywords) {
            tl_parse_error(ps, TL_E0100, arg->span,
                           "a positional argument stands behind a keyword "
                           "argument");
            tl_parse_help(ps, "positional arguments come first");
            break;
        }
    }
    return args;
}

tl_ast *tl_build_generator(tl_parser *ps, tl_span at, tl_ast *value,
                           tl_kids clauses)
{
    tl_parse_error(ps, TL_E0117, at, "tlang has no generator expressions");
    tl_parse_help(ps, "make a list: `[... for ... in ...]`");
    return NEW(LIST_COMP, list_comp, at, .clauses = clauses, .value = value);
}

tl_ast *tl_build_set(tl_parser *ps, tl_span at, tl_ast *items)
{
    tl_parse_error(ps, TL_E0117, at, "tlang has no sets");
    tl_parse_help(ps, "a list is written `[...]`, a dict `{key: value}`");
    return tl_build_paren(ps, at, items);
}
