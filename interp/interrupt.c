/* interrupt.c - Ctrl-C: a flag that the evaluator tests between statements.
 *
 * A signal handler can reach nothing but a property of the process, so this
 * belongs to the program and not to the library. */
#include <signal.h>
#include <stddef.h>

#include "interp/session.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

void tl_session_catch_interrupts(tl_session *s)
{
    struct sigaction act = {.sa_handler = on_interrupt};

    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL); /* system calls are not restarted */
    signal(SIGPIPE, SIG_IGN); /* writing fails instead */
    signal(SIGXFSZ, SIG_IGN);
    s->rt.interrupted = &interrupted;
}
