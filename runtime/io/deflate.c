/* deflate.c - raw deflate by zlib, and the CRC of archives. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "runtime/io/deflate.h"

#ifdef HAVE_ZLIB
#include <zlib.h>

#include "runtime/base/mem.h"

static voidpf alloc(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return tl_calloc(items, size);
}

static void release(voidpf opaque, voidpf ptr)
{
    (void)opaque;
    tl_free(ptr);
}

/* Counts of zlib are 32 bits wide. */
static uInt piece(size_t left)
{
    return left < ((size_t)1 << 30) ? (uInt)left : (uInt)1 << 30;
}

/* Until the end of the data, or until nothing moves any more. */
static int inflate_all(z_stream *z, char *out, size_t size, const char *in,
                       size_t n, size_t *made)
{
    size_t used = 0;
    int rc = Z_OK;

    *made = 0;
    while (rc == Z_OK) {
        uInt ahead = piece(n - used), room = piece(size - *made);

        z->next_in = (Bytef *)in + used;
        z->avail_in = ahead;
        z->next_out = (Bytef *)out + *made;
        z->avail_out = room;
        rc = inflate(z, Z_NO_FLUSH);
        used += ahead - z->avail_in;
        *made += room - z->avail_out;
    }
    return rc;
}

tl_status tl_inflate(void *out, size_t size, const void *in, size_t n,
                     tl_diag *diag)
{
    z_stream z = {.zalloc = alloc, .zfree = release};
    size_t made;
    char none = 0;
    int rc;

    if (inflateInit2(&z, -15) != Z_OK) {
        return tl_fail_memory(diag, "inflating", 0);
    }
    rc = inflate_all(&z, size ? out : &none, size, n ? in : &none, n, &made);
    inflateEnd(&z);
    if (rc == Z_MEM_ERROR) {
        return tl_fail_memory(diag, "inflating", 0);
    }
    if (rc == Z_STREAM_END && made == size) {
        return TL_OK;
    }
    return rc == Z_STREAM_END || (rc == Z_BUF_ERROR && made == size)
               ? tl_fail(diag, TL_E0711, "the data inflate to %s than the %zu "
                         "bytes expected", made < size ? "fewer" : "more",
                         size)
               : tl_fail(diag, TL_E0711, "the compressed data are damaged "
                         "near byte %zu of the result", made);
}

#else

tl_status tl_inflate(void *out, size_t size, const void *in, size_t n,
                     tl_diag *diag)
{
    (void)out;
    (void)size;
    (void)in;
    (void)n;
    tl_status st = tl_fail(diag, TL_E0701, "the data are compressed, and this "
                           "build of tlang cannot inflate");

    tl_diag_help(diag, "install zlib1g-dev and configure with --with-zlib; or "
                 "write the file without compression");
    return st;
}

#endif

/* Half a byte a turn: a table of 16 needs no start and no room. */
uint32_t tl_crc32(const void *bytes, size_t n)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
        0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const unsigned char *p = bytes;
    uint32_t c = 0xffffffffu;

    for (size_t i = 0; i < n; i++) {
        c = table[(c ^ p[i]) & 15] ^ (c >> 4);
        c = table[(c ^ (p[i] >> 4)) & 15] ^ (c >> 4);
    }
    return c ^ 0xffffffffu;
}
