/* main.c - the program: one thread with a large stack runs the command line.
 *
 * Evaluation recurses with the program; its depth is limited by the
 * evaluator, on a stack that is only touched as far as it is used. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "config.h"
#include "interp/cli.h"

#ifdef TL_SANITIZED
#define FOR_LSAN __attribute__((visibility("default")))

FOR_LSAN const char *__lsan_default_suppressions(void);
FOR_LSAN const char *__lsan_default_options(void);

/* Fontconfig, behind cairo, keeps its configuration to the end. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
#endif

#define STACK_BYTES ((size_t)512 << 20)

typedef struct job {
    int argc;
    char **argv;
    int exit_code;
} job;

static void *run(void *arg)
{
    job *j = arg;

    j->exit_code = tl_cli_main(j->argc, j->argv);
    return NULL;
}

/* Descriptors 0 to 2 exist: otherwise the next file that is opened would be
 * one of them, and what is printed would go into it.  What is put in their
 * place refuses their use. */
static void keep_standard_streams(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) {
            return;
        }
    }
}

int main(int argc, char **argv)
{
    job j = {.argc = argc, .argv = argv, .exit_code = 70};
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;

    keep_standard_streams();
    if (pthread_attr_init(&attr) != 0 ||
        pthread_attr_setstacksize(&attr, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attr, run, &j) != 0) {
        run(&j); /* a smaller stack: programs recurse less deeply */
        return j.exit_code;
    }
    /* signals are for the other thread: Ctrl-C has to end its read() */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_join(thread, NULL);
    return j.exit_code;
}
