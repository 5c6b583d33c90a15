/* mem.h - the only allocator of host objects, and its failure injection.
 *
 * Every allocation of tlang passes through here or through runtime/mem (the
 * pool of tensor storages, which consults tl_mem_must_fail as well).  No other
 * file calls malloc (tools/check-banned).  NULL means out of memory; the
 * caller reports it by tl_fail_memory (diag.h).
 *
 * Failure injection is the one piece of process-wide state in the library:
 * a failing allocator is a property of the process.  Counters are atomic. */
#ifndef TL_BASE_MEM_H
#define TL_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `size` bytes, uninitialised; size 0 gives a unique pointer. */
void *tl_malloc(size_t size) __attribute__((malloc));

/* `count` * `size` zeroed bytes; NULL too when the product overflows. */
void *tl_calloc(size_t count, size_t size) __attribute__((malloc));

/* Resize; on failure NULL, and `ptr` stays valid. */
void *tl_realloc(void *ptr, size_t size);

/* Copy of the `len` bytes at `s`, NUL-terminated. */
char *tl_strndup(const char *s, size_t len);

/* Release; NULL is allowed. */
void tl_free(void *ptr);

/* Fail the `n`-th allocation from now (1 = the next); 0 switches off.
 * With `sticky`, every later one fails as well.
 * The environment variable TLANG_TEST_FAIL_ALLOC=N or N+ does the same at
 * start-up in builds with --enable-faults (the default of debug builds). */
void tl_mem_fail_at(uint64_t n, bool sticky);

/* Ask `decide` at each attempt whether it must fail: its number, and what it
 * asks for in bytes.  Comes before tl_mem_fail_at; NULL asks nobody. */
typedef bool tl_mem_decide(uint64_t attempt, size_t bytes);
void tl_mem_fail_by(tl_mem_decide *decide);

/* Counts one allocation attempt of `size` bytes; true if it must fail.
 * For allocators that do not go through tl_malloc. */
bool tl_mem_must_fail(size_t size);

/* Number of allocation attempts since the process started. */
uint64_t tl_mem_attempts(void);

/* Number of blocks from tl_malloc and friends now alive. */
int64_t tl_mem_live_blocks(void);

/* Number of bytes asked for by the attempt that failed last. */
size_t tl_mem_failed_size(void);

/* ---- a ceiling of bytes --------------------------------------------------
 *
 * What is alive is counted in bytes, that of other allocators too, in steps
 * of 64 KiB a thread.  An attempt that would exceed the ceiling fails, and so
 * does one that the machine could not fill with the memory that is available
 * (of the system, and of the process's control group): otherwise the kernel
 * would end the process at its first use. */

/* At most `bytes` from now on; SIZE_MAX is the start: no ceiling, and the
 * machine is not asked. */
void tl_mem_set_limit(size_t bytes);
size_t tl_mem_limit(void);

/* Bytes alive now, up to the steps of other threads. */
size_t tl_mem_live_bytes(void);

/* Another allocator is about to take `bytes`, or has given them back.  False
 * counts nothing. */
bool tl_mem_take(size_t bytes);
void tl_mem_give(size_t bytes);

#endif
