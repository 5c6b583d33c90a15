/* map.h - a hash map from pointers (interned symbols, objects) to pointers,
 * which iterates in the order of insertion. */
#ifndef TL_BASE_MAP_H
#define TL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tl_map_entry {
    const void *key; /* NULL once removed */
    void *value;
} tl_map_entry;

typedef struct tl_map {
    tl_map_entry *entries; /* in order of insertion, holes where removed */
    uint32_t *index;       /* open addressing into entries; 0 = free */
    size_t len, live, cap; /* len counts holes, live does not */
} tl_map;

void tl_map_init(tl_map *map);
void tl_map_fini(tl_map *map);

/* Value of `key`, or NULL; *found (may be NULL) tells a stored NULL apart. */
void *tl_map_get(const tl_map *map, const void *key, bool *found);

/* Insert or replace; false when out of memory. `key` is not NULL. */
bool tl_map_set(tl_map *map, const void *key, void *value);

/* Remove; false if it was not there. */
bool tl_map_remove(tl_map *map, const void *key);

/* 64-bit hash of bytes (wyhash-like quality; not for keys of attackers). */
uint64_t tl_hash_bytes(const void *bytes, size_t len, uint64_t seed);

#endif
