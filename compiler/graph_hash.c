/* graph_hash.c - what decides what a graph computes, as words.
 *
 * One walk gives the words to a sink: values by their place in the walk,
 * sizes, attributes and constants by content.  So graphs that differ only in
 * numbering, spans or unused items are equal. */
#include <string.h>

#include "compiler/graph_impl.h"
#include "runtime/base/map.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

typedef struct words {
    const tl_graph *g;
    uint32_t *number; /* by value */
    void (*sink)(struct words *w, uint64_t word);
    uint64_t hash;
    TL_GARRAY(uint64_t) list; /* of the first graph of a comparison */
    size_t at;                /* in it, for the second */
    bool differ;
} words;

static void put(words *w, uint64_t word)
{
    w->sink(w, word);
}

static void put_pair(words *w, uint32_t a, uint32_t b)
{
    put(w, (uint64_t)a << 32 | b);
}

static void put_bytes(words *w, const void *bytes, size_t len)
{
    const char *p = bytes;

    put(w, len);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;

        memcpy(&word, p + i, len - i < 8 ? len - i : 8);
        put(w, word);
    }
}

static void put_values(words *w, const tl_gval *v, size_t n)
{
    put(w, n);
    for (size_t k = 0; k < n; k++) {
        put(w, w->number[v[k]]);
    }
}

static void put_sizes(words *w, uint32_t first, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const tl_gsize *s =
            &w->g->dims.items[w->g->sizes.items[first + k]];

        put_bytes(w, &w->g->code.items[s->code],
                  s->len * sizeof(w->g->code.items[0]));
    }
}

static void put_types(words *w, tl_gval first, uint32_t n)
{
    put(w, n);
    for (uint32_t k = 0; k < n; k++) {
        const tl_gvalue *v = &w->g->values.items[first + k];

        put_pair(w, v->cls, (uint32_t)v->dtype << 8 | v->rank);
        put_sizes(w, v->shape, v->rank);
    }
}

static void put_attrs(words *w, uint32_t attrs)
{
    const tl_gattrs *at = &w->g->attrs.items[attrs];
    tl_gattrs plain = *at;

    plain.dims = plain.binds = 0;
    put_bytes(w, &plain, sizeof(plain));
    put_sizes(w, at->dims, at->ndims);
    for (uint32_t k = 0; k < at->nbinds; k++) {
        const tl_gbind *b = &w->g->binds.items[at->binds + k];

        put_pair(w, (uint32_t)b->field << 8 | b->index,
                 w->number[b->value]);
    }
}

static void put_data(words *w, const tl_gnode *n)
{
    switch (n->kind) {
    case TL_G_CONST:
        put_bytes(w, &w->g->bytes.items[w->g->consts.items[n->data].bytes],
                  w->g->consts.items[n->data].len);
        break;
    case TL_G_ASSERT:
    case TL_G_HOSTCALL:
        put_bytes(w, &w->g->reports.items[n->data], sizeof(tl_greport));
        break;
    case TL_G_INPUT:
    case TL_G_LOOP:
        put(w, n->data);
        break;
    default:
        break;
    }
}

static void put_node(void *arg, uint32_t node)
{
    words *w = arg;
    const tl_gnode *n = &w->g->nodes.items[node];

    put_pair(w, (uint32_t)n->kind << 16 | n->op,
             (uint32_t)n->which << 8 | (n->flags & ~TL_GF_LOCAL));
    put_values(w, &w->g->operands.items[n->in], n->nin);
    put_types(w, n->out, n->nout);
    put(w, n->attrs != 0);
    if (n->attrs != 0) {
        put_attrs(w, n->attrs);
    }
    put_data(w, n);
}

static void put_open(void *arg, uint32_t region)
{
    words *w = arg;
    const tl_gregion *r = &w->g->regions.items[region];

    put(w, 0xaaaa);
    put_types(w, r->params, r->nparams);
}

static void put_close(void *arg, uint32_t region)
{
    words *w = arg;
    const tl_gregion *r = &w->g->regions.items[region];

    put(w, 0xbbbb);
    put_values(w, &w->g->operands.items[r->results], r->nresults);
}

static void put_atoms(words *w)
{
    put(w, w->g->atoms.len);
    for (size_t k = 0; k < w->g->atoms.len; k++) {
        const tl_gatom *a = &w->g->atoms.items[k];

        put(w, a->kind);
        put_pair(w, a->kind == TL_GA_INT ? w->number[a->index] : a->index,
                 a->axis);
    }
}

static void put_graph(words *w)
{
    tl_gvisit visit = {put_open, put_node, put_close, w};

    tl_graph_number(w->g, w->number);
    put_atoms(w);
    tl_graph_visit(w->g, &visit);
    put_values(w, w->g->inputs.items, w->g->inputs.len);
    put_values(w, w->g->outputs.items, w->g->outputs.len);
    put(w, w->g->guards.len);
    for (size_t k = 0; k < w->g->guards.len; k++) {
        put(w, w->number[w->g->guards.items[k].value]);
        put(w, w->g->guards.items[k].expected.bits);
    }
}

/* ---- sinks -------------------------------------------------------------- */

static void to_hash(words *w, uint64_t word)
{
    w->hash = (w->hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    w->hash ^= w->hash >> 29;
}

static void to_list(words *w, uint64_t word)
{
    if (!w->differ && TL_VEC_PUSH(&w->list, word, NULL) != TL_OK) {
        w->differ = true;
    }
}

static void compare(words *w, uint64_t word)
{
    w->differ = w->differ || w->at == w->list.len ||
                w->list.items[w->at] != word;
    w->at++;
}

/* Give the words of `g` to the sink; false without memory. */
static bool give(words *w, const tl_graph *g,
                 void (*sink)(words *w, uint64_t word))
{
    w->g = g;
    w->sink = sink;
    w->number = tl_calloc(g->values.len, sizeof(*w->number));
    if (!w->number) {
        return false;
    }
    put_graph(w);
    tl_free(w->number);
    return true;
}

uint64_t tl_graph_hash(const tl_graph *g)
{
    words w = {.hash = 0x746c6772};

    return give(&w, g, to_hash) ? w.hash : 0;
}

bool tl_graph_equal(const tl_graph *a, const tl_graph *b)
{
    words w = {.at = 0};
    bool ok = give(&w, a, to_list) && !w.differ && give(&w, b, compare) &&
              !w.differ && w.at == w.list.len;

    tl_free(w.list.items);
    return ok;
}
