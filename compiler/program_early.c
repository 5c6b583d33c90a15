/* program_early.c - what of a graph follows from its inputs alone: the atoms
 * that plans are made for, and their values in a run. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "compiler/program_impl.h"
#include "runtime/base/mem.h"
#include "runtime/op/dim_code.h"

static bool atom_is_early(const tl_program *p, uint32_t atom)
{
    const tl_gatom *a = &p->g->atoms.items[atom];

    return a->kind == TL_GA_SIZE || p->early[a->index] != 0;
}

/* Do all atoms of a size have the property? */
static bool all_atoms(const tl_program *p, uint32_t size,
                      bool (*has)(const tl_program *p, uint32_t atom))
{
    const tl_gsize *s = &p->g->dims.items[size];
    const int64_t *code = p->g->code.items + s->code;

    for (uint32_t i = 0; i < s->len; i++) {
        if (code[i] == TL_DC_ATOM && !has(p, (uint32_t)code[i + 1])) {
            return false;
        }
        i += code[i] == TL_DC_ATOM || code[i] == TL_DC_NUM;
    }
    return true;
}

static bool atom_is_keyed(const tl_program *p, uint32_t atom)
{
    return p->keyed[atom] != 0;
}

bool tl_program_size_is_keyed(const tl_program *p, uint32_t size)
{
    return all_atoms(p, size, atom_is_keyed);
}

static bool size_is_early(const tl_program *p, uint32_t size)
{
    return all_atoms(p, size, atom_is_early);
}

static bool sizes_are_early(const tl_program *p, uint32_t first, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (!size_is_early(p, p->g->sizes.items[first + k])) {
            return false;
        }
    }
    return true;
}

/* The size that a SIZE node gives. */
static uint32_t size_of_node(const tl_program *p, const tl_gnode *n)
{
    return p->g->sizes.items[p->g->attrs.items[n->attrs].dims];
}

/* Is the first result of a node at the top level early? */
static bool node_is_early(const tl_program *p, const tl_gnode *n)
{
    switch ((tl_gkind)n->kind) {
    case TL_G_INPUT:
        return p->g->values.items[n->out].cls != TL_GC_TENSOR;
    case TL_G_NUM:
        return true;
    case TL_G_SIZE:
        return size_is_early(p, size_of_node(p, n));
    case TL_G_HOST:
        for (uint32_t k = 0; k < n->nin; k++) {
            if (!p->early[tl_goperand(p->g, n, k)]) {
                return false;
            }
        }
        return true;
    case TL_G_LOOP: /* makes all its turns */
        return n->nregions == 1 && p->early[tl_goperand(p->g, n, 0)];
    default:
        return false;
    }
}

/* The host ints in a size. */
static void need_atoms(const tl_program *p, uint32_t size, uint8_t *needed)
{
    const tl_gsize *s = &p->g->dims.items[size];
    const int64_t *code = p->g->code.items + s->code;

    for (uint32_t i = 0; i < s->len; i++) {
        if (code[i] == TL_DC_ATOM) {
            const tl_gatom *a = &p->g->atoms.items[code[i + 1]];

            if (a->kind == TL_GA_INT) {
                needed[a->index] = 1;
            }
        }
        i += code[i] == TL_DC_ATOM || code[i] == TL_DC_NUM;
    }
}

/* From what is needed to all that it is computed from, and list the nodes of
 * it in order. */
static void list_needed(const tl_program *p, uint8_t *needed, uint32_t *list,
                        uint32_t *len)
{
    const tl_graph *g = p->g;

    for (uint32_t n = (uint32_t)g->nodes.len; n-- > 1;) {
        const tl_gnode *node = &g->nodes.items[n];

        if (node->owner != 0 || node->nout == 0 || !needed[node->out]) {
            continue;
        }
        for (uint32_t k = 0; k < node->nin; k++) {
            if (node->kind == TL_G_HOST || (node->kind == TL_G_LOOP && !k)) {
                needed[tl_goperand(g, node, k)] = 1;
            }
        }
        if (node->kind == TL_G_SIZE) {
            need_atoms(p, size_of_node(p, node), needed);
        }
    }
    for (uint32_t n = 1; n < g->nodes.len; n++) {
        const tl_gnode *node = &g->nodes.items[n];

        if (node->owner == 0 && node->nout > 0 && needed[node->out] &&
            (node->kind == TL_G_HOST || node->kind == TL_G_SIZE ||
             node->kind == TL_G_LOOP)) {
            list[(*len)++] = n;
        }
    }
}

/* The nodes behind the key, and behind the guards. */
static tl_status list_nodes(tl_program *p, tl_diag *diag)
{
    const tl_graph *g = p->g;
    size_t values = g->values.len + 1;
    uint8_t *needed = tl_calloc(values, 2);

    if (!needed) {
        return tl_fail_memory(diag, "facts about a graph", values);
    }
    for (uint32_t i = 0; i < p->natoms; i++) {
        const tl_gatom *a = &g->atoms.items[p->atoms[i]];

        if (a->kind == TL_GA_INT) {
            needed[a->index] = 1;
        }
    }
    list_needed(p, needed, p->nodes, &p->nnodes);
    for (size_t i = 0; i < g->guards.len; i++) {
        needed[values + g->guards.items[i].value] = 1;
    }
    list_needed(p, needed + values, p->guards, &p->nguards);
    tl_free(needed);
    return TL_OK;
}

/* The early atoms that shapes contain; is every shape of the top level made of
 * such? */
static void find_keyed(tl_program *p)
{
    const tl_graph *g = p->g;

    for (uint32_t v = 1; v < g->values.len; v++) {
        const tl_gvalue *value = &g->values.items[v];

        for (uint32_t k = 0; k < value->rank; k++) {
            const tl_gsize *s =
                &g->dims.items[g->sizes.items[value->shape + k]];
            const int64_t *code = g->code.items + s->code;

            for (uint32_t i = 0; i < s->len; i++) {
                if (code[i] == TL_DC_ATOM &&
                    atom_is_early(p, (uint32_t)code[i + 1])) {
                    p->keyed[code[i + 1]] = 1;
                }
                i += code[i] == TL_DC_ATOM || code[i] == TL_DC_NUM;
            }
        }
        if (p->facts.region[v] == 0 &&
            !sizes_are_early(p, value->shape, value->rank)) {
            p->late = true;
        }
    }
}

static void list_atoms(tl_program *p)
{
    for (uint32_t a = 0; a < p->g->atoms.len; a++) {
        if (p->keyed[a]) {
            p->atoms[p->natoms++] = a;
        }
        if (p->g->atoms.items[a].kind == TL_GA_SIZE) {
            p->sizes[p->nsizes++] = a;
        }
    }
}

tl_status tl_program_find_early(tl_program *p, tl_diag *diag)
{
    const tl_graph *g = p->g;
    size_t atoms = g->atoms.len + 1;

    p->early = tl_calloc(g->values.len + 1, 1);
    p->nodes = tl_calloc(g->nodes.len + 1, sizeof(*p->nodes));
    p->guards = tl_calloc(g->nodes.len + 1, sizeof(*p->guards));
    p->atoms = tl_calloc(atoms, sizeof(*p->atoms));
    p->sizes = tl_calloc(atoms, sizeof(*p->sizes));
    p->keyed = tl_calloc(atoms, 1);
    if (!p->early || !p->nodes || !p->guards || !p->atoms || !p->sizes ||
        !p->keyed) {
        return tl_fail_memory(diag, "facts about a graph", g->values.len);
    }
    for (uint32_t n = 1; n < g->nodes.len; n++) {
        const tl_gnode *node = &g->nodes.items[n];

        if (node->owner == 0 && node->nout > 0) {
            p->early[node->out] = node_is_early(p, node);
        }
    }
    find_keyed(p);
    list_atoms(p);
    return list_nodes(p, diag);
}

/* ---- in a run ----------------------------------------------------------- */

static void set_host(tl_program *p, tl_gval v, tl_gscalar s)
{
    p->env.scalar[v] = s;
    p->env.known[v] = 1;
    if (p->facts.atom[v] != 0) {
        p->env.atom[p->facts.atom[v] - 1] = s.i;
    }
}

static bool run_nodes(tl_program *p, const uint32_t *nodes, uint32_t count,
                      tl_diag *diag)
{
    const tl_graph *g = p->g;

    for (uint32_t i = 0; i < count; i++) {
        const tl_gnode *n = &g->nodes.items[nodes[i]];

        if (n->kind == TL_G_LOOP) {
            int64_t turns = p->env.scalar[tl_goperand(g, n, 0)].i;

            set_host(p, n->out, (tl_gscalar){.i = turns > 0 ? turns : 0});
            continue;
        }
        if (tl_graph_host(g, nodes[i], &p->env, diag) != TL_OK) {
            return false;
        }
        set_host(p, n->out, p->env.scalar[n->out]);
    }
    return true;
}

bool tl_program_bind(tl_program *p, const tl_run *run, tl_diag *diag)
{
    const tl_graph *g = p->g;

    for (uint32_t i = 0; i < p->nhosts; i++) {
        set_host(p, g->inputs.items[p->hosts[i]], run->scalars[p->hosts[i]]);
    }
    for (uint32_t i = 0; i < p->nsizes; i++) {
        const tl_gatom *a = &g->atoms.items[p->sizes[i]];

        p->env.atom[p->sizes[i]] = run->tensors[a->index]->size[a->axis];
    }
    return run_nodes(p, p->nodes, p->nnodes, diag);
}

bool tl_program_bind_guards(tl_program *p, const tl_run *run)
{
    return tl_program_bind(p, run, &p->quiet) &&
           run_nodes(p, p->guards, p->nguards, &p->quiet);
}
