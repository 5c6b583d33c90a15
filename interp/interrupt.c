/* interrupt.c - Ctrl-C: a flag that the evaluator tests between statements.
 *
 * A signal handler can reach nothing but a property of the process, so this
 * belongs to the program and not to the library.
 *
 * The handler has a stack of its own.  Matrix products of oneDNN are compiled
 * code that keeps the stack pointer in a buffer of the heap for a while: a
 * frame that the system puts there for a handler overwrites what lies below
 * (seen as "corrupted size vs. prev_size" after Ctrl-C in `x @ x`).  A stack
 * that the thread has already serves as well: AddressSanitizer unmaps what it
 * finds there when the thread ends, and takes it for its own. */
#include <signal.h>
#include <stddef.h>

#include "interp/session.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

enum { STACK_BYTES = 1 << 16 }; /* a frame holds all vector registers */

void tl_session_catch_interrupts(tl_session *s)
{
    static char stack[STACK_BYTES];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction act = {.sa_handler = on_interrupt};
    stack_t had;

    if (sigaltstack(NULL, &had) == 0 &&
        (!(had.ss_flags & SS_DISABLE) || sigaltstack(&own, NULL) == 0)) {
        act.sa_flags = (int)SA_ONSTACK;
    }
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL); /* system calls are not restarted */
    signal(SIGPIPE, SIG_IGN); /* writing fails instead */
    signal(SIGXFSZ, SIG_IGN);
    s->rt.interrupted = &interrupted;
}
