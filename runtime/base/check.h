/* check.h - what only a bug in tlang can break.
 *
 * TL_CHECK is always on: it prints file, line and condition and aborts.
 * TL_ASSERT is on in debug builds (--enable-debug).  Neither is ever used for
 * input: what a user can type or feed gets a diagnostic. */
#ifndef TL_BASE_CHECK_H
#define TL_BASE_CHECK_H

_Noreturn void tl_check_failed(const char *cond, const char *file, int line);

#define TL_CHECK(cond)                                                       \
    ((cond) ? (void)0 : tl_check_failed(#cond, __FILE__, __LINE__))

#ifdef TL_DEBUG
#define TL_ASSERT(cond) TL_CHECK(cond)
#else
#define TL_ASSERT(cond) ((void)sizeof(cond))
#endif

#endif
