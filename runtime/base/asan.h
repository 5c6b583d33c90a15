/* asan.h - tell AddressSanitizer which parts of our own heaps are free.
 *
 * No-ops in other builds.  Used by the arena and by the pool of runtime/mem,
 * whose blocks the sanitizer cannot see by itself. */
#ifndef TL_BASE_ASAN_H
#define TL_BASE_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define TL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TL_ASAN 1
#endif
#endif

#ifdef TL_ASAN
#include <sanitizer/asan_interface.h>
#define TL_POISON(ptr, size) ASAN_POISON_MEMORY_REGION((ptr), (size))
#define TL_UNPOISON(ptr, size) ASAN_UNPOISON_MEMORY_REGION((ptr), (size))
#else
#define TL_POISON(ptr, size) ((void)(ptr), (void)(size))
#define TL_UNPOISON(ptr, size) ((void)(ptr), (void)(size))
#endif

#endif
