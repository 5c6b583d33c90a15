/* init_key.c - the keys of initialisers (LANGUAGE.md 4).
 *
 * A cell's start is a function of (seed when made, ordinal of the outermost
 * constructor call since `seed`, path under it), and not of what else was
 * made or drawn: adding a layer changes no other layer's start.  Only calls
 * whose instance owns a `param` are counted. */
#include "interp/module.h"

#include <string.h>

static bool owns_param(const tl_path_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        if (list->items[i].cell->kind == TL_CELL_PARAM) {
            return true;
        }
    }
    return false;
}

static void name_cell(tl_cell *cell, tl_str *path)
{
    tl_str *old = cell->name;

    if (path == old) {
        return;
    }
    cell->name = tl_ref((tl_value){.tag = TL_V_STR, .str = path}).str;
    if (old) {
        tl_unref((tl_value){.tag = TL_V_STR, .str = old});
    }
}

static void key_cell(tl_eval *ev, tl_cell *cell, tl_str *path,
                     uint64_t ordinal)
{
    if (cell->keyed) {
        return;
    }
    cell->keyed = true;
    cell->key_seed = ev->rt->seed;
    cell->key = tl_hash_bytes(path->data, path->len, ordinal);
    name_cell(cell, path);
}

tl_status tl_init_assign_keys(tl_eval *ev, tl_value root)
{
    tl_path_list own = {0}, all = {0};
    uint64_t ordinal = ev->rt->inits;
    tl_status st;

    TL_TRY(tl_paths(ev, root, TL_CELLS_ALL, &own));
    TL_GOTO(st, tl_paths(ev, root, TL_CELLS_ALL | TL_PATHS_REFERRED, &all));
    for (size_t i = 0; i < own.len; i++) {
        key_cell(ev, own.items[i].cell, own.items[i].path, ordinal);
    }
    for (size_t i = 0; i < all.len; i++) { /* made inside, but not owned */
        key_cell(ev, all.items[i].cell, all.items[i].path, ordinal);
    }
    if (owns_param(&own)) {
        ev->rt->inits++;
    }
out:
    tl_path_list_fini(&own);
    tl_path_list_fini(&all);
    return st;
}

tl_rng_key tl_eval_next_key(tl_eval *ev)
{
    if (!ev->init_key.on) {
        return tl_rt_next_draw(ev->rt);
    }
    return (tl_rng_key){.seed = ev->init_key.seed,
                        .draw = ev->init_key.key,
                        .stream = TL_STREAM_INIT,
                        .sub = ev->init_key.sub++};
}
