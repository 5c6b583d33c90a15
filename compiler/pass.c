/* pass.c - running passes by their rows. */
#include "compiler/pass.h"

#include "compiler/pass_impl.h"

static const struct {
    const char *name;
    tl_pass_fn *fn;
} passes[] = {
#define PASS(name, doc) {#name, tl_pass_##name},
#include "compiler/pass.def"
};

const char *tl_pass_name(tl_pass pass)
{
    return passes[pass].name;
}

tl_status tl_pass_run(tl_graph *g, tl_pass pass, size_t *changes,
                      tl_diag *diag)
{
    return passes[pass].fn(g, changes, diag);
}

tl_status tl_passes_run(tl_graph *g, tl_pass_counts *counts, tl_diag *diag)
{
    for (int p = 0; p < TL_PASS_COUNT; p++) {
        size_t changes = 0;

        TL_TRY(tl_pass_run(g, (tl_pass)p, &changes, diag));
        if (counts) {
            counts->changes[p] += changes;
        }
    }
    return TL_OK;
}
