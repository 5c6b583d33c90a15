/* stdlib.h - the library written in tlang, embedded as text.
 *
 * The build turns each file of stdlib/ into a row (tools/embed), so that the
 * program needs no files of its own at run time.  The texts are constant and
 * live as long as the process. */
#ifndef TL_INTERP_STDLIB_H
#define TL_INTERP_STDLIB_H

#include <stddef.h>

typedef struct tl_stdlib_file {
    const char *name; /* of the module: nn, or a.b for stdlib/a/b.tl */
    const char *text; /* NUL-terminated */
    size_t len;       /* of text, in bytes */
} tl_stdlib_file;

/* `tl_stdlib_count` rows in order of name, then one of NULLs. */
extern const tl_stdlib_file tl_stdlib_files[];
extern const size_t tl_stdlib_count;

#endif
