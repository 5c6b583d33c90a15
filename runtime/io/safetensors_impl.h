/* safetensors_impl.h - what the files of the safetensors reader share. */
#ifndef TL_IO_SAFETENSORS_IMPL_H
#define TL_IO_SAFETENSORS_IMPL_H

#include "runtime/base/arena.h"
#include "runtime/io/safetensors.h"

#define TL_ST_MAX_HEADER ((uint64_t)100000000)

/* One file, or the files of an index: then the entries are those of all
 * shards, each with its own file, and there is no header. */
struct tl_safetensors {
    int fd; /* -1: of an index */
    char *path;
    char *header;
    uint64_t header_len, data_len;
    tl_arena arena; /* shapes */
    struct {
        tl_st_entry *items;
        size_t len, cap;
    } entries;
    struct {
        tl_st_pair *items;
        size_t len, cap;
    } metadata;
    const tl_st_entry **by_name;
    struct {
        tl_safetensors **items;
        size_t len, cap;
    } shards;
    tl_diag *diag; /* while opening */
};

/* A reader of nothing, to be closed with tl_safetensors_close. */
TL_MUST_USE tl_status tl_st_new(tl_safetensors **out, const char *path,
                                tl_diag *diag);

/* Open one file into a new reader; `plain`: not through a symbolic link. */
TL_MUST_USE tl_status tl_st_open_file(tl_safetensors *st, bool plain);

/* Open the files of an index into a new reader. */
TL_MUST_USE tl_status tl_st_open_index(tl_safetensors *st);

/* Build by_name; no name may stand twice. */
TL_MUST_USE tl_status tl_st_check_names(tl_safetensors *st);

#endif
