/* graph_impl.h - growing the arrays of a graph, for graph*.c and passes. */
#ifndef TL_COMPILER_GRAPH_IMPL_H
#define TL_COMPILER_GRAPH_IMPL_H

#include "compiler/graph.h"

/* Room for `more` items behind those of an array, whose struct is `*a`:
 * afterwards as many pushes cannot fail.  E0699 beyond 2^31 items. */
#define TL_GROOM(a, more, diag)                                              \
    tl_graph_room((void **)&(a)->items, (a)->len, &(a)->cap,                 \
                  sizeof(*(a)->items), (more), (diag))

TL_MUST_USE tl_status tl_graph_room(void **items, size_t len, size_t *cap,
                                    size_t size, size_t more, tl_diag *diag);

/* Append `n` items for which there is room; the first one's number. */
#define TL_GPUT(a, from, n)                                                  \
    tl_graph_put((a)->items, &(a)->len, sizeof(*(a)->items), (from), (n))

uint32_t tl_graph_put(void *items, size_t *len, size_t size,
                      const void *from, size_t n);

/* A run of `n` numbers in `sizes`, equal runs at one place; 0 for none. */
TL_MUST_USE tl_status tl_graph_run(tl_graph *g, const uint32_t *sizes,
                                   uint32_t n, uint32_t *out, tl_diag *diag);

/* Set first and last of all regions from the owners of nodes. */
void tl_graph_set_ranges(tl_graph *g);

/* Walking a settled graph in the order of its text: a node's regions right
 * before it.  NULL functions are left out. */
typedef struct tl_gvisit {
    void (*open)(void *arg, uint32_t region);
    void (*node)(void *arg, uint32_t node);
    void (*close)(void *arg, uint32_t region);
    void *arg;
} tl_gvisit;

void tl_graph_visit(const tl_graph *g, const tl_gvisit *visit);

/* number[v] = the place of value v in the order of tl_graph_visit, from 1;
 * values.len items. */
void tl_graph_number(const tl_graph *g, uint32_t *number);

/* tl_graph_check, which also says at which node (0: at none). */
TL_MUST_USE tl_status tl_graph_check_at(const tl_graph *g, uint32_t *node,
                                        tl_diag *diag);

/* Do nodes of this kind use `data`? */
bool tl_gkind_has_data(tl_gkind kind);

/* Release all memory of `g` but not `g`. */
void tl_graph_fini(tl_graph *g);

/* The unused first items.  `g` is all zero. */
TL_MUST_USE tl_status tl_graph_init(tl_graph *g, tl_diag *diag);

#endif
