/* live_impl.h - sets of slots, and the walk that both passes of live.c make.
 * Private to lang/. */
#ifndef TL_LANG_LIVE_IMPL_H
#define TL_LANG_LIVE_IMPL_H

#include <string.h>

#include "lang/scope_impl.h"

typedef uint64_t tl_live_word;
enum {
    TL_LIVE_BITS = 64
};

typedef struct tl_live {
    tl_arena arena;
    size_t nwords;
    tl_live_word *now;    /* live here */
    tl_live_word *pinned; /* live everywhere in the enclosing try bodies */
    const tl_live_word *at_exit;
    const tl_live_word *at_break, *at_continue;
    bool marking; /* second pass */
    bool in_type; /* reads are not marked */
    tl_live_word *written; /* by the innermost `if` or loop so far; NULL: there
                              is none */
    tl_arena *kept;   /* for what stays in the tree */
    bool may_return;
    tl_map loops; /* tl_ast -> tl_live_word *: G */
    bool failed;
} tl_live;

/* A set that is empty, or a copy of `from`; NULL, and `failed`, when out of
 * memory. */
tl_live_word *tl_live_set(tl_live *l, const tl_live_word *from);

static inline bool tl_live_has(const tl_live_word *set, uint32_t i)
{
    return set[i / TL_LIVE_BITS] >> (i % TL_LIVE_BITS) & 1;
}

static inline void tl_live_put(tl_live_word *set, uint32_t i)
{
    set[i / TL_LIVE_BITS] |= (tl_live_word)1 << (i % TL_LIVE_BITS);
}

static inline void tl_live_drop(tl_live_word *set, uint32_t i)
{
    set[i / TL_LIVE_BITS] &= ~((tl_live_word)1 << (i % TL_LIVE_BITS));
}

static inline void tl_live_join(const tl_live *l, tl_live_word *into,
                                const tl_live_word *from)
{
    for (size_t i = 0; i < l->nwords; i++) {
        into[i] |= from[i];
    }
}

static inline void tl_live_copy(const tl_live *l, tl_live_word *to,
                                const tl_live_word *from)
{
    memcpy(to, from, l->nwords * sizeof(*to));
}

/* Process a node: before, `now` is what is live behind it; afterwards what is
 * live before it.  Marks reads in the second pass. */
void tl_live_visit(tl_live *l, tl_ast *node);

#endif
