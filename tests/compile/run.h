/* run.h - running the text of a program, compiled or not.
 *
 * One session with the library imported serves many programs; between them
 * the evaluator is reset. */
#ifndef TESTS_COMPILE_RUN_H
#define TESTS_COMPILE_RUN_H

#include "interp/session.h"

typedef struct runner {
    tl_session *s; /* NULL: none open */
    tl_namespace *library;
    tl_buf out;    /* what the last program printed */
    tl_buf errors; /* what it reported */
    tl_status status;
    bool refused;  /* it could not be compiled (E0602) */
    bool stopped;  /* it took too many steps (E0608) */
    int programs;  /* of this session */
    /* Called after a run, while its programs are there; or NULL. */
    void (*after)(void *arg, const tl_eval *ev);
    void *arg;
} runner;

void runner_init(runner *r);
/* Also checks that nothing is left alive. */
void runner_fini(runner *r);

/* Run a text; out, errors, status and refused tell what happened. */
void runner_run(runner *r, const char *text, size_t len, tl_compile_what how);

#endif
