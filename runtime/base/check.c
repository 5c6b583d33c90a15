/* check.c - what happens when an invariant of tlang is broken: say where, and
 * stop.  The only place of the library that writes to a stream and aborts. */
#include "runtime/base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void tl_check_failed(const char *cond, const char *file, int line)
{
    fflush(stdout);
    fprintf(stderr, "tlang: internal error: %s:%d: check failed: %s\n", file,
            line, cond);
    abort();
}
