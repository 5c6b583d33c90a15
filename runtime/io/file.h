/* file.h - reading whole files, and replacing a file at once or not at all.
 *
 * Only regular files are read: a FIFO or a device would hang or never end. */
#ifndef TL_IO_FILE_H
#define TL_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/diag.h"

typedef struct tl_bytes {
    char *data; /* NUL behind the last byte */
    size_t size;
} tl_bytes;

/* Open a regular file for reading; *size its length.  The caller closes *fd.
 * E0701 with the system's reason. */
TL_MUST_USE tl_status tl_file_open(const char *path, int *fd, uint64_t *size,
                                   tl_diag *diag);

/* The same, but not through a symbolic link: E0704. */
TL_MUST_USE tl_status tl_file_open_plain(const char *path, int *fd,
                                         uint64_t *size, tl_diag *diag);

/* Exactly `n` bytes from `offset`; E0701 if the file ends before. */
TL_MUST_USE tl_status tl_file_pread(int fd, const char *path, void *to,
                                    size_t n, uint64_t offset, tl_diag *diag);

/* The whole file.  What starts with the gzip magic is inflated.  `limit`
 * bounds the bytes in memory, inflated ones too (0: 16 GiB).
 * E0701, also for compressed files in a build without zlib; E0711 damaged
 * gzip data, or over the limit. */
TL_MUST_USE tl_status tl_file_read(const char *path, size_t limit,
                                   tl_bytes *out, tl_diag *diag);
void tl_bytes_fini(tl_bytes *bytes);

/* A file being written in the folder of its final name.  Until tl_file_commit
 * the old file is untouched; afterwards the new one is complete and on the
 * disk: write, fsync, rename, fsync of the folder.  A step that fails is never
 * tried again (a second fsync may report success for lost data).
 *
 * Where the file system can (O_TMPFILE), the file has no name while it is
 * written: a process that is killed leaves nothing.  Elsewhere it has a hidden
 * one, `.tlang-*.tmp`. */
typedef struct tl_file_out {
    int fd;
    char *path; /* final name, symbolic links resolved */
    char *temp; /* hidden name, room for it at first */
    bool named; /* `temp` is a name of the file */
    bool published;
    uint64_t written;
} tl_file_out;

/* Start.  E0707, E0607. */
TL_MUST_USE tl_status tl_file_create(tl_file_out *f, const char *path,
                                     tl_diag *diag);

/* Append.  E0707 tells the free bytes when the disk is full. */
TL_MUST_USE tl_status tl_file_write(tl_file_out *f, const void *bytes,
                                    size_t n, tl_diag *diag);

/* Publish.  On failure too, `f` is finished and its temporary file gone. */
TL_MUST_USE tl_status tl_file_commit(tl_file_out *f, tl_diag *diag);

/* Give up: remove the temporary file.  Does nothing after tl_file_commit. */
void tl_file_abort(tl_file_out *f);

/* E0701 for a path of `len` bytes that is empty or holds a NUL byte, which
 * would cut it short. */
TL_MUST_USE tl_status tl_path_check(const char *path, size_t len,
                                    tl_diag *diag);

/* Does the name end so, with something before it? */
bool tl_path_ends_with(const char *path, const char *end);

/* `path` for a message: control bytes escaped, at most ~200 characters. */
typedef struct tl_path_text {
    char s[256];
} tl_path_text;

tl_path_text tl_path_str(const char *path);

#endif
