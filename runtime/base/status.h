/* status.h - the result of every function that can fail.
 *
 * 0 is success.  The message that explains a failure is reported once, where
 * the cause is known, into a tl_diag sink (diag.h); callers pass the status
 * up with TL_TRY.  Out-pointers are written only on success. */
#ifndef TL_BASE_STATUS_H
#define TL_BASE_STATUS_H

typedef enum tl_status_code {
    TL_OK = 0,
#define STATUS(name, exit_code, text) TL_##name,
#include "runtime/base/status.def"
    TL_STATUS_COUNT
} tl_status_code;

/* A status that the compiler does not let anyone drop. */
#define TL_MUST_USE __attribute__((warn_unused_result))
typedef int tl_status;

/* Exit code of a process that ends with `status` (0 for TL_OK). */
int tl_status_exit_code(tl_status status);

/* One line of text for `status`; never NULL. */
const char *tl_status_text(tl_status status);

/* Return from the calling function if `expr` fails. */
#define TL_TRY(expr)                                                         \
    do {                                                                     \
        tl_status tl_try_status_ = (expr);                                   \
        if (tl_try_status_ != TL_OK) {                                       \
            return tl_try_status_;                                           \
        }                                                                    \
    } while (0)

/* Jump to the function's `out:` label if `expr` fails; `st` is its status. */
#define TL_GOTO(st, expr)                                                    \
    do {                                                                     \
        (st) = (expr);                                                       \
        if ((st) != TL_OK) {                                                 \
            goto out;                                                        \
        }                                                                    \
    } while (0)

#endif
