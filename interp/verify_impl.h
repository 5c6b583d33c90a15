/* verify_impl.h - what the files of `--verify` share. */
#ifndef TL_INTERP_VERIFY_IMPL_H
#define TL_INTERP_VERIFY_IMPL_H

#include "interp/verify.h"
#include "runtime/base/map.h"

/* A cell that either engine may write. */
typedef struct tl_vcell {
    tl_cell *cell;           /* counted */
    tl_value before, init;   /* a copy, to be put back */
    tl_value theirs;         /* what the engine that ran first has left */
    tl_value pattern;        /* of what the program stores, borrowed */
} tl_vcell;

typedef struct tl_verifier {
    tl_eval *ev;
    const tl_ccall *call;
    tl_entry *e;
    TL_GARRAY(tl_vcell) cells;
    tl_map index; /* tl_cell * -> number + 1 */
    uint64_t draws, seed, inits, ordinal;
    tl_buf text;  /* what the interpreter prints */
    bool swapped; /* the program has run first */
} tl_verifier;

/* Where text goes meanwhile. */
typedef struct tl_captured {
    tl_status (*write)(void *arg, const char *s, size_t len);
    void *arg;
} tl_captured;

tl_captured tl_verify_capture(tl_eval *ev, tl_buf *text);
void tl_verify_release(tl_eval *ev, tl_captured c);

/* Note the state that either engine may change. */
TL_MUST_USE tl_status tl_verify_begin(tl_verifier *v);

/* Keep what the first engine has left, and put back what was there. */
void tl_verify_put_back(tl_verifier *v);
void tl_verify_fini(tl_verifier *v);

/* Run the call interpreted; its text goes to v->text. */
TL_MUST_USE tl_status tl_verify_interpret(tl_verifier *v, tl_value *out);

/* Compare everything; of several differences the one that the program
 * computes first is reported: E0604. */
TL_MUST_USE tl_status tl_verify_compare(tl_verifier *v, tl_value mine,
                                        tl_value theirs, const tl_buf *text);

/* E0604: one engine fails, the program if `mine`, and the other one not. */
TL_MUST_USE tl_status tl_verify_failure(tl_verifier *v, bool mine,
                                        const char *message);

/* The same for calls that a tape sees (verify_tape.c). */
TL_MUST_USE tl_status tl_verify_taped(tl_eval *ev, tl_compiled *f,
                                      const tl_ccall *call, tl_entry *e,
                                      tl_value *out, tl_ran *ran);

#endif
