/* ast.c - the description of each kind of node, and walking by it.
 *
 * The `fields` columns of ast.def become rows of (name, offset, kind); the
 * walker here and the printer in ast_print.c read nothing else. */
#include "lang/ast.h"

#include "runtime/base/check.h"

#define ROW(KIND, f)                                                         \
    {.name = #f, .offset = offsetof(THIS, f), .kind = TL_AST_F_##KIND},
#define KID(f) ROW(KID, f)
#define KIDS(f) ROW(KIDS, f)
#define SYM(f) ROW(SYM, f)
#define TEXT(f) ROW(TEXT, f)
#define OP(f) ROW(OP, f)
#define INT(f) ROW(INT, f)
#define FLOAT(f) ROW(FLOAT, f)
#define FLAG(f) ROW(FLAG, f)
#define REF(f) ROW(REF, f)
#define RAW(t, f) ROW(RAW, f)

/* A field does not know the structure it stands in, hence THIS, and a
 * function a kind to be its scope.  The row at the end keeps arrays of nodes
 * without fields legal; it is not counted. */
#define NODE(KIND, type, fields_)                                            \
    static const tl_ast_info *info_##type(void)                              \
    {                                                                        \
        typedef tl_ast_##type THIS;                                          \
        static const tl_ast_field rows[] = {fields_{.name = NULL}};          \
        static const tl_ast_info info = {                                    \
            .name = #type,                                                   \
            .size = sizeof(THIS),                                            \
            .fields = rows,                                                  \
            .nfields = sizeof(rows) / sizeof(rows[0]) - 1};                  \
        return &info;                                                        \
    }
#include "lang/ast.def"

typedef const tl_ast_info *info_getter(void);

const tl_ast_info *tl_ast_info_get(tl_ast_kind kind)
{
    static info_getter *const infos[] = {
#define NODE(KIND, type, fields_) info_##type,
#include "lang/ast.def"
    };

    TL_CHECK((unsigned)kind < TL_AST_COUNT);
    return infos[kind]();
}

const char *tl_op_text(tl_oper op)
{
    static const char *const texts[] = {
#define OPERATOR(NAME, text) text,
#include "lang/ast.def"
    };

    TL_CHECK((unsigned)op < TL_OPER_COUNT);
    return texts[op];
}

static bool visit_list(const tl_kids *list, tl_ast_visit_fn *visit, void *arg)
{
    for (uint32_t i = 0; i < list->len; i++) {
        if (!visit(arg, list->items[i])) {
            return false;
        }
    }
    return true;
}

bool tl_ast_children(const tl_ast *node, tl_ast_visit_fn *visit, void *arg)
{
    const tl_ast_info *info = tl_ast_info_get(node->kind);

    for (size_t i = 0; i < info->nfields; i++) {
        const void *field = (const char *)node + info->fields[i].offset;

        if (info->fields[i].kind == TL_AST_F_KID) {
            tl_ast *kid = *(tl_ast *const *)field;

            if (kid && !visit(arg, kid)) {
                return false;
            }
        } else if (info->fields[i].kind == TL_AST_F_KIDS &&
                   !visit_list(field, visit, arg)) {
            return false;
        }
    }
    return true;
}
