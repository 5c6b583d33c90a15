/* repl_command.c - the commands of the prompt: one row each. */
#include <stdio.h>
#include <string.h>

#include "interp/repl.h"

typedef struct command {
    const char *name, *argument, *doc;
    void (*run)(tl_repl *r, const char *arg);
    bool required; /* the argument */
} command;

static void leave(tl_repl *r, const char *arg)
{
    (void)arg;
    r->leaving = true;
}

static void list(tl_repl *r, const char *arg);

static const command commands[] = {
    {":help", "", "this list", list, false},
    {":type", "EXPR", "its type; of a function its head and effects",
     tl_repl_type, true},
    {":shape", "EXPR", "its type without computing it", tl_repl_shape, true},
    {":who", "", "names of the session", tl_repl_who, false},
    {":mem", "", "memory in use, and by which names", tl_repl_mem, false},
    {":time", "CODE", "run it, say how long it took", tl_repl_time, true},
    {":bench", "EXPR", "run it again and again: median, p10 to p90",
     tl_repl_bench, true},
    {":run", "FILE [--FLAG=V]", "run a file in this session", tl_repl_run_file,
     true},
    {":reload", "[MODULE]", "read imported files again; tensors are kept",
     tl_repl_reload, false},
    {":save", "FILE [3-9]", "write entries to a file", tl_repl_save, true},
    {":history", "[TEXT]", "entries with their numbers", tl_repl_history,
     false},
    {":undo", "", "names as they were before the last entry", tl_repl_undo,
     false},
    {":explain", "[CODE]", "what an error means: the last one; or how f(x) "
     "is compiled", tl_repl_explain, false},
    {":quit", "", "end; so does Ctrl-D", leave, false},
    {":continue", "", "go on, at a breakpoint", leave, false},
    {NULL, NULL, NULL, NULL, false}};

/* Short forms. */
static const struct {
    const char *name, *means;
} aliases[] = {{":q", ":quit"}, {":c", ":continue"}, {":h", ":help"},
               {":t", ":type"}};

const char *const *tl_repl_commands(void)
{
    /* in the order of `commands`, which a test compares */
    static const char *const names[] = {
        ":help",   ":type", ":shape",   ":who",  ":mem",     ":time",
        ":bench",  ":run",  ":reload",  ":save", ":history", ":undo",
        ":explain", ":quit", ":continue", NULL};

    return names;
}

static void list(tl_repl *r, const char *arg)
{
    (void)arg;
    for (const command *c = commands; c->name != NULL; c++) {
        char left[64];

        if (strcmp(c->name, ":continue") == 0 && !r->debugging) {
            continue;
        }
        snprintf(left, sizeof(left), "%s %s", c->name, c->argument);
        printf("  %-24s %s\n", left, c->doc);
    }
    printf("  %-24s %s\n  %-24s %s\n  %-24s %s\n", "?NAME  NAME?",
           "what a name means", "NAME??", "the text that defined it",
           ";COMMAND", "a shell command");
}

static const command *find(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof(aliases) / sizeof(*aliases); i++) {
        if (strlen(aliases[i].name) == len &&
            memcmp(aliases[i].name, word, len) == 0) {
            word = aliases[i].means;
            len = strlen(word);
            break;
        }
    }
    for (const command *c = commands; c->name != NULL; c++) {
        if (strlen(c->name) == len && memcmp(c->name, word, len) == 0) {
            return c;
        }
    }
    return NULL;
}

static void unknown(tl_repl *r, const char *line, size_t len)
{
    const char *const *names = tl_repl_commands();
    size_t n = 0;
    char word[64];

    while (names[n] != NULL) {
        n++;
    }
    snprintf(word, sizeof(word), "%.*s", (int)len, line);
    tl_status st = tl_fail(&r->s->diag, TL_E0720, "there is no command %s",
                           word);
    const char *near = tl_nearest(word, names, n);

    tl_diag_help(&r->s->diag, "%s", near != NULL ? near : "`:help` lists "
                 "the commands");
    tl_repl_report(r, st);
}

void tl_repl_command(tl_repl *r, const char *line)
{
    size_t len = strcspn(line, " ");
    const char *arg = line + len + strspn(line + len, " ");
    const command *c = find(line, len);

    if (c == NULL ||
        (strcmp(c->name, ":continue") == 0 && !r->debugging)) {
        unknown(r, line, len);
        return;
    }
    if (c->required && *arg == '\0') {
        tl_repl_report(r, tl_fail(&r->s->diag, TL_E0720, "%s needs %s",
                                  c->name, c->argument));
        return;
    }
    c->run(r, arg);
    tl_session_flush(r->s);
}
