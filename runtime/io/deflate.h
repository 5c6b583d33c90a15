/* deflate.h - data inside archives: raw deflate (RFC 1951) and CRC-32. */
#ifndef TL_IO_DEFLATE_H
#define TL_IO_DEFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/diag.h"

/* Inflate in[0 .. n) to exactly out[0 .. size).  E0711 for damaged data, or
 * data of another size; E0701 in a build without zlib; E0607. */
TL_MUST_USE tl_status tl_inflate(void *out, size_t size, const void *in,
                                 size_t n, tl_diag *diag);

/* The CRC-32 of zip, gzip and PNG (polynomial 0xedb88320, reflected). */
uint32_t tl_crc32(const void *bytes, size_t n);

#endif
