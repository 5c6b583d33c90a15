/* prompt.c - the prompt on a terminal: types into a pseudo-terminal and waits
 * for what has to appear.
 *
 *     prompt PROGRAM [TEXT]      only cases whose name holds TEXT
 *
 * Each case is a session of its own in a scratch folder: text that is sent
 * and text that must follow in the output, in turn.  README.md has the rules.
 * Prints each failure with the screen, and "N passed, N failed". */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_STEPS 40
#define SECONDS 60
#define CTRL_C "\003"
#define CTRL_D "\004"
#define UP "\033[A"
#define DOWN "\033[B"
/* A value behind an entry of the editor, which then turns pastes off. */
#define SHOWN(text) "\033[?2004l\r" text "\r\n"
#define PASTE(text) "\033[200~" text "\033[201~"

typedef struct step {
    const char *send; /* NULL: nothing */
    const char *want;
} step;

typedef struct test_case {
    const char *name;
    const char *args[4];
    int exit_code;
    bool edits; /* needs a line editor */
    bool whole; /* needs one that edits entries of several lines */
    step steps[MAX_STEPS];
} test_case;

static const test_case cases[] = {
    {"a session",
     {NULL},
     0,
     false,
     false,
     {{NULL, "Ctrl-D ends"},
      {NULL, "tl> "},
      {"1 + 1\n", "\n2\r\n"},
      {"x = 3\n", "tl> "},
      {"fn f(a):\n", "..> "},
      {"    return a * x\n", "..> "},
      {"\n", "tl> "},
      {"f(5)\n", "\n15\r\n"},
      {"[1,\n", "..> "},
      {"2]\n", "\n[1, 2]\r\n"},
      {"none\n", "tl> "},
      {"y\n", "E0201"},
      {"x\n", "\n3\r\n"},
      {":who\n", "x     int"},
      {":type f\n", "f(a)\r\neffects: none"},
      {":type 1.5\n", "\nfloat\r\n"},
      {":help\n", ":type EXPR "},
      {NULL, "tl> "},
      {":hlep\n", "help: :help"},
      {NULL, "tl> "},
      {"\n", "tl> "},
      {CTRL_D, ""}}},
    {"commands leave",
     {"repl", "--no-banner", NULL},
     0,
     false,
     false,
     {{NULL, "tl> "}, {":q\n", ""}}},
    {"Ctrl-C forgets the line and ends what runs",
     {"repl", NULL},
     0,
     false,
     false,
     {{NULL, "tl> "},
      {"1 +" CTRL_C, "tl> "},
      {"2 + 2\n", "\n4\r\n"},
      {"fn f():\n", "..> "},
      {CTRL_C, "tl> "},
      {"if true:\n", "..> "},
      {"    print(\"on\" + \"ward\")\n", "..> "},
      {"    while true: pass\n", "..> "},
      {"\n", "onward"},
      {CTRL_C, "E0608"},
      {"3\n", "\n3\r\n"},
      {":quit\n", ""}}},
    {"a file first",
     {"repl", "file.tl", NULL},
     0,
     false,
     false,
     {{NULL, "from the file"},
      {NULL, "tl> "},
      {"v\n", "\n[1.0, 1.0]\r\n"},
      {":q\n", ""}}},
    {"breakpoint",
     {"stop.tl", NULL},
     0,
     false,
     false,
     {{NULL, "breakpoint in f (:continue goes on)"},
      {NULL, "debug> "},
      {"n + top\n", "\n42\r\n"},
      {"n = 7\n", "debug> "},
      {"q\n", "E0201"},
      {":help\n", ":continue "},
      {NULL, "debug> "},
      {":c\n", "n is 2"}}},
    {"history",
     {"repl", "--no-banner", NULL},
     0,
     true,
     false,
     {{NULL, "tl> "},
      {"40 + 2\n", "\n42\r\n"},
      {NULL, "tl> "},
      {"\033[A", "40 + 2"},
      {"\n", "\n42\r\n"},
      {NULL, "tl> "},
      {CTRL_D, ""}}},
    {"completion",
     {"repl", "--no-banner", NULL},
     0,
     true,
     false,
     {{NULL, "tl> "},
      {"import nn\n", "tl> "},
      {"net = nn.Linear(2, 1)\n", "tl> "},
      {"long_name = ones(2)\n", "tl> "},
      {"long_n\t", "long_name"},
      {".sha\t\n", "(2,)"},
      {NULL, "tl> "},
      {"net.bia\t", "net.bias"},
      {".sha" CTRL_C, "tl> "},
      {"nn.Embed\t", "nn.Embedding"},
      {CTRL_C, "tl> "},
      {"contin\t", "continue"},
      {CTRL_C, "tl> "},
      {CTRL_D, ""}}},
    {"help",
     {"repl", "--no-banner", NULL},
     0,
     false,
     false,
     {{NULL, "tl> "},
      {"help(relu)\n", "max(x, 0)"},
      {NULL, "tl> "},
      {"relu?\n", "max(x, 0)"},
      {NULL, "tl> "},
      {"fn f(a):\n", "..> "},
      {"    \"\"\"Doubles.\"\"\"\n", "..> "},
      {"    return 2 * a\n", "..> "},
      {"\n", "tl> "},
      {"f?\n", "fn f(a)\r\n    Doubles."},
      {NULL, "tl> "},
      {"f??\n", "# <repl>\r\nfn f(a):\r\n    \"\"\"Doubles"},
      {NULL, "tl> "},
      {"grad?\n", "d loss / d net"},
      {NULL, "tl> "},
      {"rellu?\n", "help: relu"},
      {NULL, "tl> "},
      {"import nn\n", "tl> "},
      {"nn.Linear?\n", "weight.T + bias"},
      {NULL, "tl> "},
      {"E0302?\n", "E0302: "},
      {NULL, "tl> "},
      {"exit\n", ""}}},
    {"commands of the prompt",
     {"repl", "--no-banner", NULL},
     0,
     false,
     false,
     {{NULL, "tl> "},
      {"x = ones(2, 3)\n", "tl> "},
      {":shape x @ x.T\n", "\nf32[2, 2]\r\n"},
      {":shape x @ x\n", "E0302"},
      {NULL, "tl> "},
      {":explain\n", "E0302: "},
      {NULL, "tl> "},
      {":mem\n", "x                24 B"},
      {NULL, "tl> "},
      {":time x.sum()\n", "\n6.0\r\n"},
      {NULL, "s"},
      {NULL, "tl> "},
      {":bench x.sum()\n", "(p10 to p90)"},
      {NULL, "tl> "},
      {"x = 5\n", "tl> "},
      {"x;\n", "tl> "},
      {":undo\n", "x is what it was"},
      {NULL, "tl> "},
      {"x.shape\n", "\n(2, 3)\r\n"},
      {"ans\n", "\n(2, 3)\r\n"},
      {"out = 1\n", "tl> "},
      {"40 + 2\n", "\n42\r\n"},
      {"out\n", "\n1\r\n"},
      {":save kept.tl 2-\n", "entries in kept.tl"},
      {NULL, "tl> "},
      {":save kept.tl\n", "E0707"},
      {NULL, "tl> "},
      {":run part.tl --n=20\n", "n is 20"},
      {NULL, "tl> "},
      {"part\n", "\n7\r\n"},
      {";cat kept.tl\n", "x = 5"},
      {NULL, "tl> "},
      {"!ls\n", "`;ls`"},
      {NULL, "tl> "},
      {":run\n", ":run needs FILE"},
      {NULL, "tl> "},
      {":quit\n", ""}}},
    {"reload",
     {"repl", "--no-banner", NULL},
     0,
     false,
     false,
     {{NULL, "tl> "},
      {"import mod\n", "tl> "},
      {"from mod import f\n", "tl> "},
      {"w = mod.w\n", "tl> "},
      {"f()\n", "\n1\r\n"},
      {";sed -i 's/return 1/return 2/' mod.tl\n", "tl> "},
      {":reload\n", "mod.tl"},
      {NULL, "tl> "},
      {"f() + mod.f()\n", "\n4\r\n"},
      {"all(w == mod.w)\n", "\ntrue\r\n"},
      {";echo 'x =' >> mod.tl\n", "tl> "},
      {":reload\n", "E01"},
      {NULL, "tl> "},
      {"mod.f()\n", "\n2\r\n"},
      {":reload nothing\n", "E0720"},
      {NULL, "tl> "},
      {CTRL_D, ""}}},
    {"Ctrl-C in a matrix product, and in a long print",
     {"repl", "--no-banner", NULL},
     0,
     false,
     false,
     {{NULL, "tl> "},
      {"x = randn(1500, 1500)\n", "tl> "},
      {"if true:\n", "..> "},
      {"    print(\"on\" + \"ward\")\n", "..> "},
      {"    while true: y = x @ x\n", "..> "},
      {"\n", "onward"},
      {CTRL_C, "E0608"},
      {NULL, "tl> "},
      {"1 + 2\n", "\n3\r\n"},
      {"if true:\n", "..> "},
      {"    while true: print(\"again\" * 40000)\n", "..> "},
      {"\n", "againagain"},
      {CTRL_C, "E0608"},
      {NULL, "tl> "},
      {"2 + 3\n", "\n5\r\n"},
      {NULL, "tl> "},
      {CTRL_D, ""}}},
    {"an entry of several lines is edited as one",
     {"repl", "--no-banner", NULL},
     0,
     true,
     true,
     {{NULL, "tl> "},
      {"fn twice(a):\r", "..>     "},
      {"return a + a\r", "..> "},
      {"\r", "tl> "},
      {"twice(21)\r", SHOWN("42")},
      {NULL, "tl> "},
      {"fn tw" UP, "return a + a"},
      {"\r", "tl> "}, /* recalled: Enter runs it */
      {"for i in range(2):\r", "..>     "},
      {"print(i + 10)\r", "..>     "},
      {"\177", ""},
      {"print(\"out\" + \"side\")\r", SHOWN("10\r\n11\r\noutside")},
      {NULL, "tl> "},
      {"[1,\r", "..> "},
      {"2]\r", SHOWN("[1, 2]")},
      {NULL, "tl> "},
      {"1 +" CTRL_C, "^C"},
      {NULL, "tl> "},
      {"\0311\r", SHOWN("2")}, /* what Ctrl-C took comes back */
      {NULL, "tl> "},
      {CTRL_D, ""}}},
    {"pastes",
     {"repl", "--no-banner", NULL},
     0,
     true,
     true,
     {{NULL, "tl> "},
      {PASTE(">>> u = 3\n>>> u * 2\n6\n"), "u * 2"},
      {"\r", SHOWN("6")},
      {NULL, "tl> "},
      {PASTE("    fn g(a):\n        b = a\n\n        return b + 1\n"),
       "return b + 1"},
      {"\r", "tl> "},
      {"g(8)\r", SHOWN("9")},
      {NULL, "tl> "},
      {PASTE("In [1]: v = 2\r\nIn [2]: v\r\nOut[2]: 2\r\n"), "..> v"},
      {"\r", SHOWN("2")},
      {NULL, "tl> "},
      {CTRL_D, ""}}},
    {"modes of the prompt",
     {"repl", "--no-banner", NULL},
     0,
     true,
     true,
     {{NULL, "tl> "},
      {"?", "help?> "},
      {"\177", "tl> "},
      {"?", "help?> "},
      {"rel\t\r", "max(x, 0)"},
      {NULL, "tl> "},
      {";", "shell> "},
      {"echo do''ne\r", SHOWN("done")},
      {NULL, "tl> "},
      {";", "shell> "},
      {"cd /\r", "tl> "},
      {";", "shell> "},
      {"pwd\r", SHOWN("/")},
      {NULL, "tl> "},
      {"?", "help?> "},
      {"\r", "First steps"},
      {NULL, "tl> "},
      {CTRL_D, ""}}},
    {"completion by context",
     {"repl", "--no-banner", NULL},
     0,
     true,
     true,
     {{NULL, "tl> "},
      {"import nn\r", "tl> "},
      {"nets = [nn.Linear(2, 1)]\r", "tl> "},
      {"nets[0].wei\t", "weight"},
      {CTRL_C, "tl> "},
      {"softm\t", "softmax("},
      {CTRL_C, "tl> "},
      {"softmax(nets, ax\t", "axis="},
      {CTRL_C, "tl> "},
      {"import opt\t", "optim"},
      {CTRL_C, "tl> "},
      {"from mo\t import f\r", "mod import f"},
      {NULL, "tl> "},
      {"files.read(\"fil\t", "file.tl\""},
      {CTRL_C, "tl> "},
      {":rel\t", ":reload "},
      {CTRL_C, "tl> "},
      {"@comp\t", "@compile"},
      {CTRL_C, "tl> "},
      {"\\alph\t\t", "\316\261"},
      {CTRL_C, "tl> "},
      {"nn.Conv\t\t\t", "ConvTranspose2d(c_in"},
      {CTRL_C, "tl> "},
      {CTRL_D, ""}}},
};

/* ---- one session ------------------------------------------------------- */

typedef struct session {
    int fd;
    pid_t pid;
    char seen[1 << 16];
    size_t len, from; /* what is behind `from` was not matched yet */
    bool ended;       /* the program has closed the terminal */
} session;

static void child(const char *program, const test_case *c)
{
    const char *argv[6] = {program, NULL};

    for (int i = 0; i < 4 && c->args[i] != NULL; i++) {
        argv[i + 1] = c->args[i];
        argv[i + 2] = NULL;
    }
    setenv("TERM", c->whole ? "xterm" : "dumb", 1);
    setenv("NO_COLOR", "1", 1);
    setenv("SHELL", "/bin/sh", 1);
    setenv("TLANG_HISTORY", "history", 1);
    setenv("INPUTRC", "/dev/null", 1);
    execv(program, (char **)(void *)argv);
    _exit(127);
}

/* More output; false at its end or when it takes too long. */
static bool read_more(session *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};

    if (s->len + 1 >= sizeof(s->seen)) { /* forget what was matched, or half */
        size_t cut = s->from > 0 ? s->from : s->len / 2;

        memmove(s->seen, s->seen + cut, s->len - cut + 1);
        s->len -= cut;
        s->from = 0;
    }
    if (poll(&p, 1, SECONDS * 1000) <= 0) {
        return false;
    }
    ssize_t n = read(s->fd, s->seen + s->len, sizeof(s->seen) - 1 - s->len);

    if (n <= 0) {
        s->ended = true;
        return false;
    }
    s->len += (size_t)n;
    s->seen[s->len] = '\0';
    return true;
}

static bool run_steps(session *s, const test_case *c)
{
    for (int i = 0; i < MAX_STEPS && c->steps[i].want != NULL; i++) {
        const step *t = &c->steps[i];
        const char *at;

        if (t->send != NULL &&
            write(s->fd, t->send, strlen(t->send)) < 0) {
            printf("  step %d: nobody reads\n", i);
            return false;
        }
        while ((at = strstr(s->seen + s->from, t->want)) == NULL) {
            if (!read_more(s)) {
                printf("  step %d: no \"%s\"\n", i, t->want);
                return false;
            }
        }
        s->from = (size_t)(at - s->seen) + strlen(t->want);
    }
    while (read_more(s)) {
    }
    if (!s->ended) {
        printf("  it goes on after the last step\n");
    }
    return s->ended;
}

/* The program's end; one that does not come is brought about, and false. */
static bool wait_end(pid_t pid, int *status)
{
    for (int i = 0; i < SECONDS * 100; i++) {
        if (waitpid(pid, status, WNOHANG) == pid) {
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, status, 0);
    return false;
}

static bool run_case(const char *program, const test_case *c)
{
    static session s;
    int status = 0;

    s = (session){.len = 0};
    s.pid = forkpty(&s.fd, NULL, NULL, NULL);
    if (s.pid < 0) {
        perror("forkpty");
        return false;
    }
    if (s.pid == 0) {
        child(program, c);
    }
    bool good = run_steps(&s, c);

    if (!good) {
        kill(s.pid, SIGKILL);
    }
    good = wait_end(s.pid, &status) && good;
    close(s.fd);
    if (good && (!WIFEXITED(status) || WEXITSTATUS(status) != c->exit_code)) {
        printf("  status %d\n", status);
        good = false;
    }
    printf("%s %s\n", good ? "ok    " : "FAILED", c->name);
    if (!good) {
        printf("%s\n", s.seen);
    }
    return good;
}

/* ---- all --------------------------------------------------------------- */

static void put_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    if (f == NULL || fputs(text, f) == EOF || fclose(f) != 0) {
        perror(name);
        exit(2);
    }
}

/* Entries are kept once, with their time, readable by the owner only. */
static bool history_is_right(void)
{
    char text[4096];
    FILE *f = fopen("history", "r");
    size_t n = f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0;

    text[n] = '\0';
    if (f != NULL) {
        fclose(f);
    }
    bool good = text[0] == '#' && strstr(text, "\n1 + 1\n#") != NULL &&
                strstr(text, "\nfn f(a):\n    return a * x\n") != NULL;

    printf("%s the history file\n", good ? "ok    " : "FAILED");
    return good;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/tlang-prompt-XXXXXX", program[4096];
    int passed = 0, failed = 0;
    bool edits = false, whole = false;

#if defined(HAVE_READLINE) || defined(HAVE_LIBEDIT)
    edits = true;
#endif
#ifdef HAVE_READLINE
    whole = true;
#endif
    if (argc < 2 || argc > 3 || realpath(argv[1], program) == NULL ||
        mkdtemp(folder) == NULL || chdir(folder) != 0) {
        fprintf(stderr, "usage: prompt PROGRAM [TEXT]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    put_file("file.tl", "print(\"from the file\")\nv = ones(2)\n");
    put_file("stop.tl", "top = 40\nfn f(n):\n    breakpoint()\n"
                        "    print(\"n is\", n)\nf(2)\n");
    put_file("part.tl", "part = 7\n@main\nfn main(n: int = 1):\n"
                        "    print(\"n is\", n)\n");
    put_file("mod.tl", "w = randn(2)\nfn f():\n    return 1\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if ((!cases[i].edits || edits) && (!cases[i].whole || whole) &&
            (argc < 3 || strstr(cases[i].name, argv[2]) != NULL)) {
            bool good = run_case(program, &cases[i]);

            passed += good;
            failed += !good;
        }
    }
    bool good = argc > 2 || history_is_right();

    passed += good;
    failed += !good;
    unlink("file.tl");
    unlink("stop.tl");
    unlink("history");
    unlink("kept.tl");
    unlink("part.tl");
    unlink("mod.tl");
    if (chdir("/") == 0) {
        rmdir(folder);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
