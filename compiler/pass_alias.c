/* pass_alias.c - uses of an alias become uses of what it stands for.
 *
 * Aliases tell differentiation apart what has the same elements; afterwards
 * they mean nothing. */
#include "compiler/pass_impl.h"

tl_status tl_pass_alias(tl_graph *g, size_t *changes, tl_diag *diag)
{
    tl_rewrite rw;

    TL_TRY(tl_rewrite_init(&rw, g, diag));
    for (uint32_t i = 1; i < g->nodes.len; i++) {
        const tl_gnode *n = &g->nodes.items[i];

        if (n->kind == TL_G_ALIAS) {
            tl_rewrite_value(&rw, n->out, tl_goperand(g, n, 0));
        }
    }
    tl_rewrite_finish(&rw);
    *changes = rw.changes;
    tl_rewrite_fini(&rw);
    return TL_OK;
}
