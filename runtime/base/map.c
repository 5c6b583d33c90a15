/* map.c - the ordered hash map.
 *
 * `entries` holds up to `cap` pairs in order of insertion; `index` has twice
 * as many slots, each 0 or the number of an entry plus one, found by linear
 * probing.  A removed entry keeps its slot with key NULL, so chains stay
 * whole; rebuilding, when the entries are full, drops the holes. */
#include "runtime/base/map.h"

#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/size.h"

void tl_map_init(tl_map *map)
{
    *map = (tl_map){0};
}

void tl_map_fini(tl_map *map)
{
    tl_free(map->entries);
    tl_free(map->index);
    tl_map_init(map);
}

static size_t hash_pointer(const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(h ^ (h >> 32));
}

/* The slot of `key`, or the free slot where it would go. */
static size_t find_slot(const tl_map *map, const void *key)
{
    size_t mask = map->cap * 2 - 1;
    size_t i = hash_pointer(key) & mask;

    while (map->index[i] != 0 &&
           map->entries[map->index[i] - 1].key != key) {
        i = (i + 1) & mask;
    }
    return i;
}

static tl_map_entry *find_entry(const tl_map *map, const void *key)
{
    uint32_t n;

    if (map->live == 0 || !key) {
        return NULL;
    }
    n = map->index[find_slot(map, key)];
    return n ? &map->entries[n - 1] : NULL;
}

void *tl_map_get(const tl_map *map, const void *key, bool *found)
{
    const tl_map_entry *e = find_entry(map, key);

    if (found) {
        *found = e != NULL;
    }
    return e ? e->value : NULL;
}

/* Move the live entries to a table that has room for one more. */
static bool rebuild(tl_map *map)
{
    size_t cap = map->cap ? map->cap : 8;
    tl_map res = {0};

    while (map->live >= cap - cap / 4) {
        cap *= 2;
    }
    if (cap > UINT32_MAX / 2) {
        return false;
    }
    res.entries = tl_calloc(cap, sizeof(*res.entries));
    res.index = tl_calloc(cap * 2, sizeof(*res.index));
    if (!res.entries || !res.index) {
        tl_map_fini(&res);
        return false;
    }
    res.cap = cap;
    for (size_t i = 0; i < map->len; i++) {
        if (map->entries[i].key) {
            res.index[find_slot(&res, map->entries[i].key)] =
                (uint32_t)res.len + 1;
            res.entries[res.len++] = map->entries[i];
        }
    }
    res.live = res.len;
    tl_map_fini(map);
    *map = res;
    return true;
}

bool tl_map_set(tl_map *map, const void *key, void *value)
{
    tl_map_entry *e = find_entry(map, key);

    if (e) {
        e->value = value;
        return true;
    }
    if (map->len == map->cap && !rebuild(map)) {
        return false;
    }
    map->index[find_slot(map, key)] = (uint32_t)map->len + 1;
    map->entries[map->len++] = (tl_map_entry){key, value};
    map->live++;
    return true;
}

bool tl_map_remove(tl_map *map, const void *key)
{
    tl_map_entry *e = find_entry(map, key);

    if (!e) {
        return false;
    }
    *e = (tl_map_entry){0};
    map->live--;
    return true;
}

static uint64_t read_bytes(const unsigned char *p, size_t n)
{
    uint64_t w = 0;

    memcpy(&w, p, n);
    return w;
}

/* The two halves of a 128-bit product, folded. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 p = (unsigned __int128)a * b;

    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t tl_hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const uint64_t k0 = UINT64_C(0xa0761d6478bd642f);
    const uint64_t k1 = UINT64_C(0xe7037ed1a0b428db);
    const unsigned char *p = bytes;
    uint64_t h = seed ^ mix(seed ^ k0, k1);
    size_t left = len;

    for (; left > 16; left -= 16, p += 16) {
        h = mix(read_bytes(p, 8) ^ k1, read_bytes(p + 8, 8) ^ h);
    }
    if (left > 8) {
        h = mix(read_bytes(p, 8) ^ k1, read_bytes(p + 8, left - 8) ^ h);
    } else if (left > 0) {
        h = mix(read_bytes(p, left) ^ k1, h ^ k0);
    }
    return mix(h ^ k0, (uint64_t)len ^ k1);
}
