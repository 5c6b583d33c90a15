/* safetensors.h - reading and writing .safetensors files.
 *
 * Layout: u64 little-endian length N of the header; N bytes of JSON, padded
 * with spaces; the data.  The header maps names to {dtype, shape,
 * data_offsets: [begin, end)}, relative to the start of the data, and
 * "__metadata__" to strings.
 *
 * Files are untrusted (RELIABILITY.md 3.2).  Opening checks the whole header:
 * the entries tile the data without hole, overlap or tail, each has the size
 * of its dtype and shape, names are unique; what is allowed by the format
 * but written by nobody (unknown fields, a leading space) is refused too.
 * Data are read with pread, never mapped: a file that is truncated meanwhile
 * gives an error, not a signal.  All faults are E0713 with the rule broken,
 * the tensor and the byte offset in the file. */
#ifndef TL_IO_SAFETENSORS_H
#define TL_IO_SAFETENSORS_H

#include "runtime/tensor/tensor.h"

typedef struct tl_safetensors tl_safetensors;

/* One tensor of a file; lives as long as the tl_safetensors. */
typedef struct tl_st_entry {
    const char *name; /* untrusted text: print it escaped */
    const char *type; /* dtype as the file calls it */
    uint64_t begin, end;
    const int64_t *size;
    int16_t rank;     /* 0 .. 64 */
    int16_t loadable; /* tlang has this dtype, and rank is at most 16 */
    tl_dtype dtype;   /* if loadable */
    const tl_safetensors *file; /* one of the shards, where there are some */
} tl_st_entry;

typedef struct tl_st_pair {
    const char *key, *value;
} tl_st_pair;

/* A tensor to write. */
typedef struct tl_st_item {
    const char *name;
    const tl_tensor *tensor;
} tl_st_item;

/* Read and check the header.  E0701, E0713.  A path that ends in .index.json
 * names shards beside it: all their headers are read, and their tensors
 * appear as those of one file.  E0704 for a shard that is not a plain file
 * name, or a symbolic link. */
TL_MUST_USE tl_status tl_safetensors_open(tl_safetensors **out,
                                          const char *path, tl_diag *diag);
void tl_safetensors_close(tl_safetensors *st); /* NULL is allowed */

/* The entries, in the order of their data, and the metadata. */
const tl_st_entry *tl_safetensors_entries(const tl_safetensors *st,
                                          size_t *n);
const tl_st_pair *tl_safetensors_metadata(const tl_safetensors *st,
                                          size_t *n);

/* The entry called `name`, or NULL. */
const tl_st_entry *tl_safetensors_find(const tl_safetensors *st,
                                       const char *name);

/* Read one tensor.  bool bytes other than 0 become true.  E0713 for a dtype
 * that tlang does not have or a rank over 16. */
TL_MUST_USE tl_status tl_safetensors_read(const tl_st_entry *entry,
                                          tl_pool *pool, tl_tensor **out,
                                          tl_diag *diag);

/* Write a file, replacing an old one at once or not at all (file.h): widest
 * dtypes first, then by name, so that all data are aligned and equal inputs
 * give equal bytes.  Names must be distinct, valid and not "__metadata__"
 * (E0713).  E0707. */
TL_MUST_USE tl_status tl_safetensors_write(const char *path,
                                           const tl_st_item *items, size_t n,
                                           const tl_st_pair *metadata,
                                           size_t nmetadata, tl_diag *diag);

#endif
