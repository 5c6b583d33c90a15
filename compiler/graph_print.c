/* graph_print.c - a graph as text.
 *
 *   graph
 *   s0 = size 0 1                        atom: axis 1 of input 0
 *   s1 = int %2                          atom: a host int
 *   const 1 = 0000803f
 *   report 1 = 1 0 7                     shown, cells, key
 *   %1: f32[s0, 64] = input 0
 *   region(%3: int, %4: f32[]) {
 *     %5: f32[] = add %4 %4 { axis=1 }
 *   } %5
 *   %6: int, %7: f32[] = loop 1 %2 %4
 *   guard %2 = 12
 *   output %7
 *
 * Values are numbered in the order of the text.  Spans are not written.
 * graph_parse.c reads it. */
#include <math.h>
#include <string.h>

#include "compiler/graph_impl.h"
#include "runtime/base/mem.h"
#include "runtime/op/dim_code.h"

typedef struct printer {
    const tl_graph *g;
    tl_buf *out;
    uint32_t *number; /* by value: the one of the text */
    int depth;
} printer;

static void print_value(const printer *p, tl_gval v)
{
    if (v == 0) {
        tl_buf_putc(p->out, '_');
    } else {
        tl_buf_printf(p->out, "%%%u", p->number[v]);
    }
}

static void print_size(const printer *p, uint32_t size)
{
    const tl_gsize *s = &p->g->dims.items[size];

    tl_dim_code_print(&p->g->code.items[s->code], s->len, p->out);
}

static void print_sizes(const printer *p, uint32_t first, uint32_t n)
{
    tl_buf_putc(p->out, '[');
    for (uint32_t k = 0; k < n; k++) {
        tl_buf_puts(p->out, k > 0 ? ", " : "");
        print_size(p, p->g->sizes.items[first + k]);
    }
    tl_buf_putc(p->out, ']');
}

/* Exactly: what decimals do not tell is written as bits. */
static void print_float(const printer *p, double f)
{
    uint64_t bits;

    if (isfinite(f)) {
        tl_buf_printf(p->out, "%.17g", f);
        return;
    }
    memcpy(&bits, &f, sizeof(bits));
    tl_buf_printf(p->out, "0x%016llx", (unsigned long long)bits);
}

static void print_scalar(const printer *p, tl_gclass cls, tl_gscalar s)
{
    if (cls == TL_GC_FLOAT) {
        print_float(p, s.f);
    } else {
        tl_buf_printf(p->out, "%lld", (long long)s.i);
    }
}

static const char *const class_names[] = {"", "int", "float", "bool"};

/* "%3: f32[s0, 64]" */
static void print_typed(const printer *p, tl_gval v)
{
    const tl_gvalue *value = &p->g->values.items[v];

    print_value(p, v);
    tl_buf_puts(p->out, ": ");
    if (value->cls != TL_GC_TENSOR) {
        tl_buf_puts(p->out, class_names[value->cls]);
        return;
    }
    tl_buf_puts(p->out, tl_dtype_name((tl_dtype)value->dtype));
    print_sizes(p, value->shape, value->rank);
}

static void print_types(const printer *p, tl_gval first, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        tl_buf_puts(p->out, k > 0 ? ", " : "");
        print_typed(p, first + k);
    }
}

/* ---- attributes --------------------------------------------------------- */

static void print_numbers(const printer *p, const tl_gattrs *at)
{
    const double zero = 0;

    for (int k = 0; k < 4; k++) {
        if (at->i[k] != 0) {
            tl_buf_printf(p->out, " i%d=%lld", k, (long long)at->i[k]);
        }
    }
    for (int k = 0; k < 6; k++) {
        if (memcmp(&at->f[k], &zero, sizeof(zero)) != 0) {
            tl_buf_printf(p->out, " f%d=", k);
            print_float(p, at->f[k]);
        }
    }
}

/* Does the operation read the dtype of its attributes? */
static bool is_typed(const tl_gnode *n)
{
    return n->kind == TL_G_OP &&
           (n->op == TL_OP_cast ||
            tl_op_get((tl_op)n->op)->cls == TL_CLASS_MAKE);
}

static void print_attrs(const printer *p, const tl_gnode *n)
{
    const tl_gattrs *at = &p->g->attrs.items[n->attrs];

    tl_buf_puts(p->out, " {");
    if (at->dtype != 0 || is_typed(n)) {
        tl_buf_printf(p->out, " dtype=%s",
                      tl_dtype_name((tl_dtype)at->dtype));
    }
    tl_buf_puts(p->out, at->keep ? " keep" : "");
    tl_buf_puts(p->out, at->flag ? " flag" : "");
    if (at->axis != 0) {
        tl_buf_printf(p->out, " axis=%d", at->axis);
    }
    if (at->axes != 0) {
        tl_buf_printf(p->out, " axes=%u", at->axes);
    }
    print_numbers(p, at);
    if (at->ndims > 0) {
        tl_buf_puts(p->out, " dims=");
        print_sizes(p, at->dims, at->ndims);
    }
    for (uint32_t k = 0; k < at->nbinds; k++) {
        const tl_gbind *b = &p->g->binds.items[at->binds + k];

        tl_buf_printf(p->out, " %c%u=", b->field, b->index);
        print_value(p, b->value);
    }
    tl_buf_puts(p->out, " }");
}

/* ---- nodes -------------------------------------------------------------- */

static void indent(const printer *p)
{
    for (int k = 0; k < p->depth; k++) {
        tl_buf_puts(p->out, "  ");
    }
}

/* The word for what a node does, and what belongs to it. */
static void print_word(const printer *p, const tl_gnode *n)
{
    switch (n->kind) {
    case TL_G_OP:
        tl_buf_puts(p->out, tl_op_get((tl_op)n->op)->name);
        return;
    case TL_G_MAPGRAD:
        tl_buf_printf(p->out, "grad %s %u", tl_op_get((tl_op)n->op)->name,
                      n->which);
        return;
    case TL_G_HOST:
        tl_buf_printf(p->out, "host %s", tl_ghost_name((tl_ghost)n->op));
        return;
    default:
        tl_buf_puts(p->out, tl_gkind_name((tl_gkind)n->kind));
    }
    if (tl_gkind_has_data((tl_gkind)n->kind)) {
        tl_buf_printf(p->out, " %u", n->data);
    }
}

static void print_node(void *arg, uint32_t node)
{
    const printer *p = arg;
    const tl_gnode *n = &p->g->nodes.items[node];
    const tl_gattrs *at = &p->g->attrs.items[n->attrs];
    tl_gscalar s = {.i = at->i[0]};

    indent(p);
    print_types(p, n->out, n->nout);
    tl_buf_puts(p->out, n->nout > 0 ? " = " : "");
    print_word(p, n);
    for (uint32_t k = 0; k < n->nin; k++) {
        tl_buf_putc(p->out, ' ');
        print_value(p, tl_goperand(p->g, n, k));
    }
    if (n->kind == TL_G_NUM) {
        tl_buf_putc(p->out, ' ');
        print_scalar(p, (tl_gclass)p->g->values.items[n->out].cls, s);
    } else if (n->kind == TL_G_SIZE) {
        tl_buf_putc(p->out, ' ');
        print_size(p, p->g->sizes.items[at->dims]);
    } else if (n->attrs != 0) {
        print_attrs(p, n);
    }
    tl_buf_puts(p->out, n->flags & TL_GF_EFFECT ? " effect" : "");
    tl_buf_puts(p->out, n->flags & TL_GF_RANDOM ? " random" : "");
    tl_buf_putc(p->out, '\n');
}

static void print_open(void *arg, uint32_t region)
{
    printer *p = arg;
    const tl_gregion *r = &p->g->regions.items[region];

    indent(p);
    tl_buf_puts(p->out, "region(");
    print_types(p, r->params, r->nparams);
    tl_buf_puts(p->out, ") {\n");
    p->depth++;
}

static void print_close(void *arg, uint32_t region)
{
    printer *p = arg;
    const tl_gregion *r = &p->g->regions.items[region];

    p->depth--;
    indent(p);
    tl_buf_putc(p->out, '}');
    for (uint32_t k = 0; k < r->nresults; k++) {
        tl_buf_putc(p->out, ' ');
        print_value(p, p->g->operands.items[r->results + k]);
    }
    tl_buf_putc(p->out, '\n');
}

/* ---- the whole ---------------------------------------------------------- */

static void print_atoms(const printer *p)
{
    for (size_t k = 0; k < p->g->atoms.len; k++) {
        const tl_gatom *a = &p->g->atoms.items[k];

        tl_buf_printf(p->out, "s%zu = ", k);
        if (a->kind == TL_GA_SIZE) {
            tl_buf_printf(p->out, "size %u %u\n", a->index, a->axis);
        } else {
            tl_buf_puts(p->out, "int ");
            print_value(p, a->index);
            tl_buf_putc(p->out, '\n');
        }
    }
}

static void print_consts(const printer *p)
{
    for (size_t k = 1; k < p->g->consts.len; k++) {
        const tl_gconst *c = &p->g->consts.items[k];

        tl_buf_printf(p->out, "const %zu = ", k);
        for (uint32_t i = 0; i < c->len; i++) {
            tl_buf_printf(p->out, "%02x", p->g->bytes.items[c->bytes + i]);
        }
        tl_buf_putc(p->out, '\n');
    }
    for (size_t k = 1; k < p->g->reports.len; k++) {
        const tl_greport *r = &p->g->reports.items[k];

        tl_buf_printf(p->out, "report %zu = %u %u %u\n", k, r->nshown,
                      r->ncells, r->key);
    }
}

static void print_ends(const printer *p)
{
    for (size_t k = 0; k < p->g->guards.len; k++) {
        const tl_gguard *guard = &p->g->guards.items[k];

        tl_buf_puts(p->out, "guard ");
        print_value(p, guard->value);
        tl_buf_puts(p->out, " = ");
        print_scalar(p, (tl_gclass)p->g->values.items[guard->value].cls,
                     guard->expected);
        tl_buf_putc(p->out, '\n');
    }
    if (p->g->outputs.len > 0) {
        tl_buf_puts(p->out, "output");
        for (size_t k = 0; k < p->g->outputs.len; k++) {
            tl_buf_putc(p->out, ' ');
            print_value(p, p->g->outputs.items[k]);
        }
        tl_buf_putc(p->out, '\n');
    }
}

void tl_graph_print(const tl_graph *g, tl_buf *out)
{
    printer p = {g, out, tl_calloc(g->values.len, sizeof(*p.number)), 0};
    tl_gvisit visit = {print_open, print_node, print_close, &p};

    if (!p.number) {
        out->failed = true;
        return;
    }
    tl_graph_number(g, p.number);
    tl_buf_puts(out, "graph\n");
    print_atoms(&p);
    print_consts(&p);
    tl_graph_visit(g, &visit);
    print_ends(&p);
    tl_free(p.number);
}
