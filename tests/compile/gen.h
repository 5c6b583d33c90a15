/* gen.h - random programs: a function of (seed, number).
 *
 * A program has functions marked `@compile`, calls them several times with
 * arguments that change, and prints every bit of what comes out. */
#ifndef TESTS_COMPILE_GEN_H
#define TESTS_COMPILE_GEN_H

#include <stdint.h>

#include "runtime/base/buf.h"

void gen_program(uint64_t seed, uint64_t number, tl_buf *out);

#endif
