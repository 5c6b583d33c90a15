/* intern.c - the table of names: open addressing, at most half full. */
#include "runtime/base/intern.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

void tl_intern_init(tl_intern *table)
{
    *table = (tl_intern){0};
    tl_arena_init(&table->arena);
}

void tl_intern_fini(tl_intern *table)
{
    tl_free(table->slots);
    tl_arena_fini(&table->arena);
    *table = (tl_intern){0};
}

/* The slot of the symbol, or the free one where it goes.  cap > 0. */
static size_t find_slot(const tl_intern *table, const char *s, size_t len,
                        uint64_t hash)
{
    size_t mask = table->cap - 1;
    size_t i = (size_t)hash & mask;

    for (;; i = (i + 1) & mask) {
        const tl_sym *sym = table->slots[i];

        if (!sym || (sym->hash == hash && sym->len == len &&
                     memcmp(sym->text, s, len) == 0)) {
            return i;
        }
    }
}

static bool grow(tl_intern *table)
{
    size_t cap = table->cap ? table->cap * 2 : 64;
    const tl_sym **slots = tl_calloc(cap, sizeof(*slots));

    if (!slots) {
        return false;
    }
    for (size_t i = 0; i < table->cap; i++) {
        const tl_sym *sym = table->slots[i];
        size_t j;

        if (!sym) {
            continue;
        }
        for (j = (size_t)sym->hash & (cap - 1); slots[j];) {
            j = (j + 1) & (cap - 1);
        }
        slots[j] = sym;
    }
    tl_free(table->slots);
    table->slots = slots;
    table->cap = cap;
    return true;
}

const tl_sym *tl_intern_find(const tl_intern *table, const char *s,
                             size_t len)
{
    if (table->cap == 0) {
        return NULL;
    }
    return table->slots[find_slot(table, s, len, tl_hash_bytes(s, len, 0))];
}

static tl_sym *new_sym(tl_intern *table, const char *s, size_t len,
                       uint64_t hash)
{
    tl_sym *sym;
    size_t size;

    if (!tl_add_size(&size, len, sizeof(*sym) + 1)) {
        return NULL;
    }
    sym = tl_arena_alloc(&table->arena, size);
    if (sym) {
        sym->hash = hash;
        sym->len = len;
        if (len > 0) {
            memcpy(sym->text, s, len);
        }
    }
    return sym;
}

const tl_sym *tl_intern_get(tl_intern *table, const char *s, size_t len)
{
    uint64_t hash = tl_hash_bytes(s, len, 0);
    tl_sym *sym;
    size_t i;

    if ((table->count + 1) * 2 > table->cap && !grow(table)) {
        return NULL;
    }
    i = find_slot(table, s, len, hash);
    if (table->slots[i]) {
        return table->slots[i];
    }
    sym = new_sym(table, s, len, hash);
    if (sym) {
        table->slots[i] = sym;
        table->count++;
    }
    return sym;
}
