/* reduce.h - from a program that shows a mismatch to a small one. */
#ifndef TESTS_COMPILE_REDUCE_H
#define TESTS_COMPILE_REDUCE_H

#include <stdbool.h>

#include "runtime/base/buf.h"

/* Does the text show what is looked for? */
typedef bool reduce_test(void *arg, const char *text, size_t len);

/* Make `text` smaller as long as it does: blocks and lines go, expressions
 * become the variables or numbers inside them, numbers become small. */
void reduce_program(tl_buf *text, reduce_test *shows, void *arg);

#endif
