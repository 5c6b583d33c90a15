/* count.c - counting, and the limits. */
#include "tests/compile/count.h"

#include <stdio.h>

#include "interp/compiled_impl.h"

enum { MIN_OP = 50, MIN_PAIR = 20, MIN_PASS = 100, MIN_VALID = 98 };

/* Operations that no program of the language reaches when it is compiled, or
 * that this generator has no use for. */
static bool is_exempt(tl_op op)
{
    switch (op) {
    case TL_OP_nonzero: /* sizes that depend on data */
    case TL_OP_unique:
    case TL_OP_copy: /* what a layout needs: no row of a graph */
    case TL_OP_erfc: /* of formulas only */
    case TL_OP_normcdf:
        return true;
    default:
        return false;
    }
}

/* ---- counting ------------------------------------------------------------ */

static count_class class_of_node(const tl_gnode *n)
{
    if (n->kind == TL_G_MAPGRAD) {
        return CC_GRADIENT;
    }
    if (n->kind != TL_G_OP) {
        return CC_OTHER;
    }
    switch (tl_op_get((tl_op)n->op)->cls) {
    case TL_CLASS_MAP:
        return CC_MAP;
    case TL_CLASS_CMP:
        return CC_COMPARE;
    case TL_CLASS_RED:
        return CC_REDUCE;
    case TL_CLASS_VIEW:
        return CC_VIEW;
    default:
        return n->op == TL_OP_cast ? CC_CAST : CC_OTHER;
    }
}

static void count_graph(counts *c, const tl_graph *g)
{
    c->graphs++;
    for (uint32_t i = 1; i < g->nodes.len; i++) {
        const tl_gnode *n = &g->nodes.items[i];
        count_class to = class_of_node(n);

        if (n->kind == TL_G_OP) {
            c->ops[n->op]++;
        }
        for (uint32_t k = 0; to != CC_OTHER && k < n->nin; k++) {
            tl_gval v = tl_goperand(g, n, k);
            count_class from = v == 0 || g->values.items[v].node == 0
                                   ? CC_OTHER
                                   : class_of_node(tl_gnode_of(g, v));

            if (from != CC_OTHER) {
                c->pairs[from][to]++;
            }
        }
    }
}

void counts_add_session(counts *c, const tl_eval *ev)
{
    const tl_compiled *f = ev->compiler != NULL ? ev->compiler->first : NULL;

    for (; f != NULL; f = f->next) {
        for (const tl_entry *e = f->entries; e != NULL; e = e->next) {
            count_graph(c, tl_program_graph(e->program));
            for (int p = 0; p < TL_PASS_COUNT; p++) {
                c->passes[p] +=
                    tl_program_pass_counts(e->program)->changes[p];
            }
        }
    }
}

void counts_add(counts *to, const counts *from)
{
    const size_t *in = (const size_t *)from;
    size_t *out = (size_t *)to;

    for (size_t i = 0; i < sizeof(*to) / sizeof(size_t); i++) {
        out[i] += in[i];
    }
}

/* ---- the table ----------------------------------------------------------- */

static const char *const class_names[] = {"map",  "compare", "gradient",
                                          "cast", "reduce",  "view"};

void counts_print(const counts *c, bool verbose)
{
    printf("%zu programs, %zu valid, %zu refused, %zu failed; %zu traces, "
           "%zu runs; %zu mismatches\n",
           c->programs, c->valid, c->refused, c->failed, c->traces, c->runs,
           c->mismatches);
    for (int p = 0; verbose && p < TL_PASS_COUNT; p++) {
        printf("  pass %-10s %zu\n", tl_pass_name((tl_pass)p), c->passes[p]);
    }
    for (int i = 0; verbose && i < CC_CLASSES; i++) {
        for (int k = 0; k < CC_CLASSES; k++) {
            printf("  %s -> %s %zu\n", class_names[i], class_names[k],
                   c->pairs[i][k]);
        }
    }
    for (int op = 0; verbose && op < TL_OP_COUNT; op++) {
        printf("  %-20s %zu\n", tl_op_get((tl_op)op)->name, c->ops[op]);
    }
}

/* ---- limits -------------------------------------------------------------- */

static bool enough(const char *what, const char *which, size_t n,
                   size_t least)
{
    if (n < least) {
        printf("too few: %s %s: %zu, wanted %zu\n", what, which, n, least);
    }
    return n >= least;
}

bool counts_suffice(const counts *c)
{
    bool ok = enough("valid programs in", "a hundred",
                     c->programs > 0 ? c->valid * 100 / c->programs : 0,
                     MIN_VALID);

    for (int op = 0; op < TL_OP_COUNT; op++) {
        if (!is_exempt((tl_op)op)) {
            ok &= enough("operation", tl_op_get((tl_op)op)->name, c->ops[op],
                         MIN_OP);
        }
    }
    for (int i = 0; i < CC_CLASSES; i++) {
        for (int k = 0; k < CC_CLASSES; k++) {
            char name[64];

            snprintf(name, sizeof(name), "%s -> %s", class_names[i],
                     class_names[k]);
            ok &= enough("pair", name, c->pairs[i][k], MIN_PAIR);
        }
    }
    for (int p = 0; p < TL_PASS_COUNT; p++) {
        ok &= enough("pass", tl_pass_name((tl_pass)p), c->passes[p],
                     MIN_PASS);
    }
    return ok;
}
