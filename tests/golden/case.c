/* case.c - what a golden test expects, read from its comments. */
#include "tests/golden/golden.h"

#include <stdlib.h>
#include <string.h>

static const char *const directives[] = {
    "args",   "env",   "stdin",     "exit", "timeout",
    "expect", "error", "error-not", "repl", "json",
};

#define NDIRECTIVES (sizeof directives / sizeof *directives)

/* A comment that is almost a directive would be lost without a word. */
static bool is_misspelt(const char *word, size_t len)
{
    static const char *const stems[] = {"expect", "error", "exit", "stdin",
                                        "arg"};

    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        size_t n = strlen(stems[i]);
        if (len >= n && !strncmp(word, stems[i], n)) {
            return true;
        }
    }
    return false;
}

const char *case_directive(const char *line, const char **value)
{
    if (strncmp(line, "# ", 2)) {
        return NULL;
    }
    const char *word = line + 2;
    size_t len = strcspn(word, ": ");
    if (word[len] != ':') {
        return NULL;
    }
    *value = word + len + 1 + (word[len + 1] == ' ');
    for (size_t i = 0; i < NDIRECTIVES; i++) {
        if (strlen(directives[i]) == len &&
            !strncmp(directives[i], word, len)) {
            return directives[i];
        }
    }
    return is_misspelt(word, len) ? "misspelt" : NULL;
}

static void set_fault(test_case *c, const char *line, const char *why)
{
    if (!c->fault) {
        c->fault = format("\"%s\": %s", line, why);
    }
}

static int read_number(test_case *c, const char *line, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);

    if (end == value || *end || n < 0 || n > 100000) {
        set_fault(c, line, "not a number");
        return 0;
    }
    return (int)n;
}

static void read_switch(test_case *c, const char *line, const char *value,
                        bool *off)
{
    if (strncmp(value, "off", 3)) {
        set_fault(c, line, "only \"off\" is known");
    }
    *off = true;
}

/* dispatch */
static void read_directive(test_case *c, const char *line, const char *name,
                           const char *value)
{
    if (!strcmp(name, "misspelt")) {
        set_fault(c, line, "no such directive");
    } else if (!strcmp(name, "args")) {
        lines words = lines_words(value);
        for (size_t i = 0; i < words.len; i++) {
            lines_add(&c->args, words.items[i], strlen(words.items[i]));
        }
        lines_free(&words);
    } else if (!strcmp(name, "env")) {
        lines_add(&c->env, value, strlen(value));
    } else if (!strcmp(name, "stdin")) {
        free(c->input);
        c->input = format("%s", value);
    } else if (!strcmp(name, "timeout")) {
        c->timeout = read_number(c, line, value);
    } else if (!strcmp(name, "exit")) {
        c->exit = read_number(c, line, value);
        c->has_expectation = true;
    } else if (!strcmp(name, "expect")) {
        lines_add(&c->expect, value, strlen(value));
        c->has_expectation = true;
    } else if (!strcmp(name, "error")) {
        lines_add(&c->error, value, strlen(value));
        c->has_expectation = true;
    } else if (!strcmp(name, "error-not")) {
        lines_add(&c->error_not, value, strlen(value));
    } else if (!strcmp(name, "repl")) {
        read_switch(c, line, value, &c->no_repl);
    } else if (!strcmp(name, "json")) {
        read_switch(c, line, value, &c->no_json);
    }
}

test_case *case_read(const char *path, const char *name)
{
    test_case *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->path = format("%s", path);
    c->name = format("%s", name);
    const char *slash = strrchr(c->path, '/');
    c->base = slash ? slash + 1 : c->path;

    char *s = read_file(path);
    if (!s) {
        c->fault = format("the file cannot be read");
        return c;
    }
    lines all = lines_split(s);
    for (size_t i = 0; i < all.len; i++) {
        char *line = all.items[i];
        line[strcspn(line, "\r")] = '\0';
        const char *value;
        const char *directive = case_directive(line, &value);
        if (directive) {
            read_directive(c, line, directive, value);
        } else if (!strcmp(line, "# helper")) {
            c->helper = true;
        }
    }
    if (!c->fault && !c->has_expectation) {
        c->fault = format("nothing is expected: give a line "
                          "\"# expect:\", \"# error:\" or \"# exit:\"");
    }
    lines_free(&all);
    free(s);
    return c;
}

void case_free(test_case *c)
{
    free(c->path);
    free(c->name);
    free(c->input);
    free(c->fault);
    lines_free(&c->args);
    lines_free(&c->env);
    lines_free(&c->expect);
    lines_free(&c->error);
    lines_free(&c->error_not);
    free(c);
}
