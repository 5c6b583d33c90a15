/* pass_dead.c - what no output and no effect needs is dropped.
 *
 * Results of branches and values carried by loops that nothing reads go
 * first, so that what only they need goes with them. */
#include "compiler/pass_impl.h"

tl_status tl_pass_dead(tl_graph *g, size_t *changes, tl_diag *diag)
{
    return tl_graph_compact(g, changes, diag);
}
