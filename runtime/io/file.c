/* file.c - reading files whole, gzip included. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#include "runtime/base/buf.h"
#include "runtime/base/mem.h"
#include "runtime/base/size.h"

#define DEFAULT_LIMIT ((size_t)16 << 30)

tl_status tl_path_check(const char *path, size_t len, tl_diag *diag)
{
    if (len == 0 || strlen(path) != len) {
        return tl_fail(diag, TL_E0701, "\"%s\" is no path",
                       tl_path_str(path).s);
    }
    return TL_OK;
}

bool tl_path_ends_with(const char *path, const char *end)
{
    size_t len = strlen(path), n = strlen(end);

    return len > n && strcmp(path + len - n, end) == 0;
}

tl_path_text tl_path_str(const char *path)
{
    tl_path_text text;
    tl_buf buf;

    tl_buf_init(&buf);
    tl_buf_put_escaped(&buf, path, strlen(path));
    if (buf.len > 200) { /* the end of a path tells more than its start */
        snprintf(text.s, sizeof(text.s), "...%s",
                 tl_buf_str(&buf) + buf.len - 197);
    } else {
        snprintf(text.s, sizeof(text.s), "%s", tl_buf_str(&buf));
    }
    tl_buf_fini(&buf);
    return text;
}

/* E0701 with the reason that errno gives. */
static tl_status cannot(tl_diag *diag, const char *what, const char *path)
{
    int error = errno;

    return tl_fail(diag, TL_E0701, "cannot %s `%s`: %s", what,
                   tl_path_str(path).s, strerror(error));
}

static tl_status open_regular(const char *path, int flags, int *fd,
                              uint64_t *size, tl_diag *diag)
{
    struct stat info;
    tl_status st;
    int f;

    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    do {
        f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    } while (f < 0 && errno == EINTR);
    if (f < 0 && errno == ELOOP && (flags & O_NOFOLLOW)) {
        return tl_fail(diag, TL_E0704, "`%s` is a symbolic link",
                       tl_path_str(path).s);
    }
    if (f < 0) {
        return cannot(diag, "open", path);
    }
    if (fstat(f, &info) != 0) {
        st = cannot(diag, "examine", path);
        close(f);
        return st;
    }
    if (!S_ISREG(info.st_mode)) {
        close(f);
        return tl_fail(diag, TL_E0701, "cannot read `%s`: %s",
                       tl_path_str(path).s,
                       S_ISDIR(info.st_mode) ? "it is a folder"
                                             : "it is not a regular file");
    }
    *fd = f;
    *size = (uint64_t)info.st_size;
    return TL_OK;
}

tl_status tl_file_open(const char *path, int *fd, uint64_t *size,
                       tl_diag *diag)
{
    return open_regular(path, 0, fd, size, diag);
}

tl_status tl_file_open_plain(const char *path, int *fd, uint64_t *size,
                             tl_diag *diag)
{
    return open_regular(path, O_NOFOLLOW, fd, size, diag);
}

tl_status tl_file_pread(int fd, const char *path, void *to, size_t n,
                        uint64_t offset, tl_diag *diag)
{
    size_t done = 0;

    while (done < n) {
        size_t part = n - done < ((size_t)1 << 30) ? n - done
                                                   : (size_t)1 << 30;
        ssize_t got =
            pread(fd, (char *)to + done, part, (off_t)(offset + done));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return cannot(diag, "read", path);
        }
        if (got == 0) {
            return tl_fail(diag, TL_E0701,
                           "cannot read `%s`: it ends at byte %llu, but %llu "
                           "are needed",
                           tl_path_str(path).s,
                           (unsigned long long)(offset + done),
                           (unsigned long long)(offset + n));
        }
        done += (size_t)got;
    }
    return TL_OK;
}

void tl_bytes_fini(tl_bytes *bytes)
{
    tl_free(bytes->data);
    bytes->data = NULL;
    bytes->size = 0;
}

static bool is_gzip(const tl_bytes *b)
{
    return b->size >= 2 && (unsigned char)b->data[0] == 0x1f &&
           (unsigned char)b->data[1] == 0x8b;
}

static tl_status over_limit(const char *path, size_t limit, tl_diag *diag)
{
    return tl_fail(diag, TL_E0711, "`%s` holds more than %zu bytes",
                   tl_path_str(path).s, limit);
}

#ifdef HAVE_ZLIB

static void *zlib_alloc(void *opaque, unsigned items, unsigned size)
{
    (void)opaque;
    return tl_calloc(items, size);
}

static void zlib_free(void *opaque, void *ptr)
{
    (void)opaque;
    tl_free(ptr);
}

/* Room for more output; `out` doubles, one byte stays for the NUL. */
static tl_status grow(tl_bytes *out, size_t *cap, size_t limit,
                      const char *path, tl_diag *diag)
{
    size_t bytes = *cap < 32768 ? 65536 : *cap * 2;
    char *p;

    if (*cap > limit) {
        return over_limit(path, limit, diag);
    }
    p = tl_realloc(out->data, bytes);
    if (!p) {
        return tl_fail_memory(diag, "an inflated file", bytes);
    }
    out->data = p;
    *cap = bytes;
    return TL_OK;
}

static tl_status damaged(const char *path, const z_stream *z, tl_diag *diag)
{
    return tl_fail(diag, TL_E0711,
                   "`%s`: the gzip data are damaged near byte %lu",
                   tl_path_str(path).s, (unsigned long)z->total_in);
}

/* Inflate all members of the file. */
static tl_status inflate_all(z_stream *z, const tl_bytes *in, tl_bytes *out,
                             size_t limit, const char *path, tl_diag *diag)
{
    size_t cap = 0, used = 0;
    int rc = Z_OK;

    while (rc != Z_STREAM_END || used < in->size) {
        size_t room, ahead;

        if (rc == Z_STREAM_END && inflateReset(z) != Z_OK) {
            return damaged(path, z, diag);
        }
        if (cap - out->size < 2) {
            TL_TRY(grow(out, &cap, limit, path, diag));
        }
        room = cap - out->size - 1;
        room = room < ((size_t)1 << 30) ? room : (size_t)1 << 30;
        ahead = in->size - used < ((size_t)1 << 30) ? in->size - used
                                                    : (size_t)1 << 30;
        z->next_in = (Bytef *)in->data + used;
        z->avail_in = (uInt)ahead;
        z->next_out = (Bytef *)out->data + out->size;
        z->avail_out = (uInt)room;
        rc = inflate(z, Z_NO_FLUSH);
        used += ahead - z->avail_in;
        out->size += room - z->avail_out;
        if (rc == Z_MEM_ERROR) {
            return tl_fail_memory(diag, "inflating a file", 0);
        }
        if (rc != Z_OK && rc != Z_STREAM_END) {
            return damaged(path, z, diag);
        }
    }
    if (out->size > limit) {
        return over_limit(path, limit, diag);
    }
    out->data[out->size] = '\0';
    return TL_OK;
}

static tl_status gunzip(const tl_bytes *in, tl_bytes *out, size_t limit,
                        const char *path, tl_diag *diag)
{
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free};
    tl_status st;

    *out = (tl_bytes){NULL, 0};
    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        return tl_fail_memory(diag, "inflating a file", 0);
    }
    st = inflate_all(&z, in, out, limit, path, diag);
    inflateEnd(&z);
    if (st != TL_OK) {
        tl_bytes_fini(out);
    }
    return st;
}

#else

static tl_status gunzip(const tl_bytes *in, tl_bytes *out, size_t limit,
                        const char *path, tl_diag *diag)
{
    tl_status st =
        tl_fail(diag, TL_E0701, "`%s` is compressed with gzip, and this build "
                "of tlang reads plain files only", tl_path_str(path).s);

    (void)in;
    (void)out;
    (void)limit;
    tl_diag_help(diag, "`gunzip -k %s`, and name the result; or install "
                 "zlib1g-dev and configure with --with-zlib",
                 tl_path_str(path).s);
    return st;
}

#endif

/* What the kernel makes while it is read, as in /proc, has the size 0. */
static tl_status read_unsized(int fd, const char *path, size_t limit,
                              tl_bytes *out, tl_diag *diag)
{
    char part[4096];
    tl_status st = TL_OK;
    tl_buf all;
    ssize_t n;

    tl_buf_init(&all);
    while ((n = read(fd, part, sizeof(part))) != 0) {
        if (n > 0) {
            tl_buf_add(&all, part, (size_t)n);
        }
        if (n < 0 && errno != EINTR) {
            st = cannot(diag, "read", path);
            break;
        }
        if (all.len > limit) {
            st = over_limit(path, limit, diag);
            break;
        }
    }
    if (st == TL_OK) {
        tl_buf_add(&all, "", 1);
        if (all.failed) {
            st = tl_fail_memory(diag, "a file", sizeof(part));
        }
    }
    if (st != TL_OK) {
        tl_buf_fini(&all);
        return st;
    }
    *out = (tl_bytes){all.data, all.len - 1};
    return TL_OK;
}

static tl_status read_plain(const char *path, size_t limit, tl_bytes *out,
                            tl_diag *diag)
{
    uint64_t size;
    int fd;
    tl_status st;

    TL_TRY(tl_file_open(path, &fd, &size, diag));
    if (size > limit) {
        close(fd);
        return over_limit(path, limit, diag);
    }
    if (size == 0) {
        st = read_unsized(fd, path, limit, out, diag);
        close(fd);
        return st;
    }
    out->size = (size_t)size;
    out->data = tl_malloc(out->size + 1);
    if (!out->data) {
        close(fd);
        return tl_fail_memory(diag, "a file", out->size + 1);
    }
    st = tl_file_pread(fd, path, out->data, out->size, 0, diag);
    close(fd);
    if (st != TL_OK) {
        tl_bytes_fini(out);
        return st;
    }
    out->data[out->size] = '\0';
    return TL_OK;
}

tl_status tl_file_read(const char *path, size_t limit, tl_bytes *out,
                       tl_diag *diag)
{
    tl_bytes raw = {NULL, 0}, inflated;
    tl_status st;

    limit = limit ? limit : DEFAULT_LIMIT;
    TL_TRY(read_plain(path, limit, &raw, diag));
    if (!is_gzip(&raw)) {
        *out = raw;
        return TL_OK;
    }
    st = gunzip(&raw, &inflated, limit, path, diag);
    tl_bytes_fini(&raw);
    if (st == TL_OK) {
        *out = inflated;
    }
    return st;
}
