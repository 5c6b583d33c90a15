/* cli.c - flags, subcommands and environment of the program.
 *
 * options.def is the one list of them; help, parsing and did-you-mean walk
 * it.  tlang's flags stand before the file, the program's after it. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "interp/cli.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/compiled.h"
#include "interp/format.h"
#include "interp/session.h"
#include "runtime/base/mem.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

extern char **environ;

typedef enum kind { KIND_FLAG, KIND_TEXT, KIND_COUNT, KIND_SIZE, KIND_CHOICE
} kind;

typedef struct option_row {
    const char *name;
    char letter;
    kind kind;
    size_t field;
    const char *argument, *doc;
} option_row;

static const option_row option_rows[] = {
#define OPTION(name, letter, k, field, argument, doc)                        \
    {name, letter, KIND_##k, offsetof(tl_options, field), argument, doc},
#include "interp/options.def"
};

typedef struct command_row {
    const char *name, *usage, *doc;
} command_row;

static const command_row command_rows[] = {
#define COMMAND(name, usage, doc) {#name, usage, doc},
#include "interp/options.def"
};

static const struct {
    const char *name, *option;
} variable_rows[] = {
#define VARIABLE(name, option) {name, option},
#include "interp/options.def"
};

#define COUNT_OF(a) (sizeof(a) / sizeof(*(a)))

/* ---- values of options ------------------------------------------------- */

static tl_status bad(tl_session *s, const option_row *o, const char *text)
{
    const char *wanted = o->kind == KIND_COUNT  ? "a whole number from 0"
                         : o->kind == KIND_SIZE ? "a size such as 512M or 8G"
                         : o->kind == KIND_FLAG ? "true or false"
                                                : o->argument;

    return tl_fail(&s->diag, TL_E0720, "--%s needs %s, got \"%s\"", o->name,
                   wanted, text);
}

/* A whole number, with K, M or G behind it for sizes. */
static bool parse_count(const char *text, bool size, int64_t *out)
{
    char *end;

    errno = 0;
    long long v = strtoll(text, &end, 10);
    int shift = 0;

    if (end == text || errno != 0 || v < 0) {
        return false;
    }
    if (size && *end != '\0') {
        static const char units[] = "KMGT";
        const char *u = memchr(units, *end & ~0x20, sizeof(units) - 1);

        shift = u != NULL ? 10 * (int)(u - units + 1) : 0;
        end += u != NULL;
        end += *end == 'i';
        end += *end == 'B';
    }
    if (*end != '\0' || v > (INT64_MAX >> shift)) {
        return false;
    }
    *out = (int64_t)v << shift;
    return true;
}

static bool in_list(const char *word, const char *list)
{
    size_t n = strlen(word);

    for (const char *p = list; *p != '\0'; p += strcspn(p, "|"),
                    p += *p == '|') {
        if (strcspn(p, "|") == n && memcmp(p, word, n) == 0) {
            return true;
        }
    }
    return false;
}

static tl_status set_option(tl_session *s, const option_row *o,
                            const char *text)
{
    void *field = (char *)&s->options + o->field;

    switch (o->kind) {
    case KIND_FLAG:
        if (text != NULL && !in_list(text, "1|true|0|false|")) {
            return bad(s, o, text);
        }
        *(bool *)field = text == NULL || in_list(text, "1|true");
        return TL_OK;
    case KIND_CHOICE:
        if (!in_list(text, o->argument)) {
            return bad(s, o, text);
        }
        *(const char **)field = text;
        return TL_OK;
    case KIND_TEXT:
        if (field == &s->options.expr && s->options.expr != NULL) {
            return tl_fail(&s->diag, TL_E0720, "--expr is given twice: "
                           "\"%s\" and \"%s\"", s->options.expr, text);
        }
        *(const char **)field = text;
        return TL_OK;
    default:
        if (!parse_count(text, o->kind == KIND_SIZE, field)) {
            return bad(s, o, text);
        }
        if (s->options.threads > TL_MOST_THREADS) {
            return tl_fail(&s->diag, TL_E0720,
                           "--threads needs a whole number from 0 to %d, got "
                           "\"%s\"", TL_MOST_THREADS, text);
        }
        return TL_OK;
    }
}

static const option_row *find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < COUNT_OF(option_rows); i++) {
        if (strlen(option_rows[i].name) == len &&
            memcmp(option_rows[i].name, name, len) == 0) {
            return &option_rows[i];
        }
    }
    return NULL;
}

static const option_row *find_letter(char letter)
{
    for (size_t i = 0; i < COUNT_OF(option_rows); i++) {
        if (option_rows[i].letter == letter) {
            return &option_rows[i];
        }
    }
    return NULL;
}

static tl_status unknown_option(tl_session *s, const char *arg)
{
    const char *names[COUNT_OF(option_rows)];

    for (size_t i = 0; i < COUNT_OF(option_rows); i++) {
        names[i] = option_rows[i].name;
    }
    tl_status st = tl_fail(&s->diag, TL_E0720, "there is no option %s", arg);
    char word[64];

    arg += strspn(arg, "-");
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(arg, "="), arg);
    const char *near = tl_nearest(word, names, COUNT_OF(option_rows));

    if (near != NULL) {
        tl_diag_help(&s->diag, "--%s", near);
    } else {
        tl_diag_help(&s->diag, "`tlang help` lists them; flags of the "
                               "program stand after the file");
    }
    return st;
}

/* One option at argv[0]; *used words. */
static tl_status parse_option(tl_session *s, char **argv, int argc, int *used)
{
    const char *arg = argv[0], *value = NULL;
    const option_row *o;

    *used = 1;
    if (arg[1] == '-') {
        size_t n = strcspn(arg + 2, "=");

        o = find_option(arg + 2, n);
        value = arg[2 + n] == '=' ? arg + 3 + n : NULL;
    } else {
        o = find_letter(arg[1]);
        value = arg[1] != '\0' && arg[2] != '\0' ? arg + 2 : NULL;
    }
    if (o == NULL) {
        return unknown_option(s, arg);
    }
    if (o->kind != KIND_FLAG && value == NULL) {
        if (strcmp(o->name, "compile") == 0) {
            value = "default";
        } else if (argc < 2) {
            return tl_fail(&s->diag, TL_E0720, "%s needs %s", arg,
                           o->argument);
        } else {
            value = argv[1];
            *used = 2;
        }
    }
    return set_option(s, o, value);
}

/* ---- environment ------------------------------------------------------- */

static void unknown_variable(tl_session *s, const char *name, size_t len)
{
    const char *names[COUNT_OF(variable_rows)];
    char word[64];

    for (size_t i = 0; i < COUNT_OF(variable_rows); i++) {
        names[i] = variable_rows[i].name;
    }
    snprintf(word, sizeof(word), "%.*s", (int)len, name);
    tl_warn(&s->diag, TL_W0721, (tl_span){0},
            "the environment variable %s means nothing to tlang", word);
    const char *near = tl_nearest(word, names, COUNT_OF(variable_rows));

    if (near != NULL) {
        tl_diag_help(&s->diag, "%s", near);
    }
}

static tl_status read_environment(tl_session *s)
{
    for (char **e = environ; *e != NULL; e++) {
        size_t len = strcspn(*e, "="), row = 0;

        if (strncmp(*e, "TLANG_", 6) != 0) {
            continue;
        }
        while (row < COUNT_OF(variable_rows) &&
               (strlen(variable_rows[row].name) != len ||
                memcmp(variable_rows[row].name, *e, len) != 0)) {
            row++;
        }
        if (row == COUNT_OF(variable_rows)) {
            unknown_variable(s, *e, len);
            continue;
        }
        const char *name = variable_rows[row].option;

        if (*name != '\0' && (*e)[len + 1] != '\0') {
            TL_TRY(set_option(s, find_option(name, strlen(name)),
                              *e + len + 1));
        }
    }
    return TL_OK;
}

/* ---- help -------------------------------------------------------------- */

static void print_help(void)
{
    printf("usage: tlang [OPTIONS] FILE [--FLAG=VALUE ...]\n"
           "       tlang [OPTIONS] COMMAND ...\n\ncommands:\n");
    for (size_t i = 0; i < COUNT_OF(command_rows); i++) {
        printf("  %-28s %s\n", command_rows[i].usage, command_rows[i].doc);
    }
    printf("\noptions:\n");
    for (size_t i = 0; i < COUNT_OF(option_rows); i++) {
        const option_row *o = &option_rows[i];
        char left[80];

        snprintf(left, sizeof(left), "%c%c%c --%s%s%s",
                 o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                 o->letter ? ',' : ' ', o->name, *o->argument ? "=" : "",
                 o->kind == KIND_CHOICE ? "..." : o->argument);
        printf("  %-28s %s\n", left, o->doc);
        if (o->kind == KIND_CHOICE) {
            printf("  %-28s %s\n", "", o->argument);
        }
    }
}

static void print_version(void)
{
    printf("tlang %s\n", PACKAGE_VERSION);
#ifdef HAVE_ONEDNN
    printf("matrix products: oneDNN\n");
#else
    printf("matrix products: own kernels\n");
#endif
}

static tl_status check_device(tl_session *s)
{
    const char *d = s->options.device;

    if (d == NULL || strcmp(d, "cpu") == 0 || strcmp(d, "auto") == 0) {
        return TL_OK;
    }
    return tl_fail(&s->diag, TL_E0605, "no device %s; have cpu", d);
}

/* ---- commands ---------------------------------------------------------- */

/* -e EXPR: run it, show the value. */
static tl_status run_expr(tl_session *s, const char *text)
{
    tl_namespace *ns = NULL;
    tl_value v = tl_none();
    tl_buf buf;

    TL_TRY(tl_namespace_new(&ns, &s->ev, "main", "<-e>"));
    s->ev.main_ns = ns;
    TL_TRY(tl_eval_text(&s->ev, ns, "<-e>", text, strlen(text), &v, NULL));
    tl_buf_init(&buf);
    tl_status st = TL_OK;

    if (v.tag != TL_V_NONE) {
        st = tl_format_repr(v, &buf, &s->diag);
        tl_buf_putc(&buf, '\n');
    }
    if (st == TL_OK && buf.len > 0) {
        st = tl_eval_write(&s->ev, tl_buf_str(&buf), buf.len);
    }
    tl_buf_fini(&buf);
    tl_unref(v);
    return st;
}

static tl_status unknown_command(tl_session *s, const char *word)
{
    const char *names[COUNT_OF(command_rows)];

    for (size_t i = 0; i < COUNT_OF(command_rows); i++) {
        names[i] = command_rows[i].name;
    }
    tl_status st = tl_fail(&s->diag, TL_E0720,
                           "there is no file and no command `%s`", word);
    const char *near = tl_nearest(word, names, COUNT_OF(command_rows));

    if (near != NULL) {
        tl_diag_help(&s->diag, "tlang %s", near);
    }
    return st;
}

static int run_program(tl_session *s, char **argv, int argc)
{
    s->eval_options.main_args = (const char **)argv + 1;
    s->eval_options.nmain_args = argc - 1;
    int code = tl_session_report(s, tl_session_run_file(s, argv[0]));

    if (s->options.explain) {
        tl_buf text;

        tl_buf_init(&text);
        if (s->ev.compile == TL_COMPILE_OFF) {
            tl_buf_puts(&text, "--compile=off: everything is interpreted\n");
        } else if (s->options.compile != NULL &&
                   strchr(s->options.compile, '-') != NULL) {
            tl_buf_printf(&text, "--compile=%s does what --compile=default "
                          "does in this build\n", s->options.compile);
        }
        tl_compiler_explain(&s->ev, &text);
        fwrite(tl_buf_str(&text), 1, text.len, stderr);
        tl_buf_fini(&text);
    }
    return code;
}

/* The words after the options, with the session up. */
static int dispatch(tl_session *s, char **argv, int argc)
{
    const char *word = argc > 0 ? argv[0] : "";

    if (argc == 0) {
        char stdin_name[] = "-", *one[] = {stdin_name};

        return isatty(STDIN_FILENO) ? tl_cmd_repl(s, NULL)
                                    : run_program(s, one, 1);
    }
    if (strcmp(word, "run") == 0 && argc > 1) {
        return run_program(s, argv + 1, argc - 1);
    }
    if (strcmp(word, "repl") == 0) {
        return tl_cmd_repl(s, argc > 1 ? argv[1] : NULL);
    }
    if (strcmp(word, "test") == 0) {
        return tl_cmd_test(s, argv + 1, argc - 1);
    }
    if (strcmp(word, "check") == 0) {
        return tl_cmd_check(s, argv + 1, argc - 1);
    }
    if (strcmp(word, "new") == 0 && argc > 1) {
        return tl_cmd_new(s, argv[1]);
    }
    if (strcmp(word, "explain") == 0 && argc > 1) {
        return tl_cmd_explain(s, argv[1]);
    }
    if (strcmp(word, "doc") == 0 ||
        (strcmp(word, "help") == 0 && argc > 1)) {
        return tl_cmd_doc(s, argv + 1, argc - 1);
    }
    if (strcmp(word, "help") == 0) {
        print_help();
        return 0;
    }
    if (strcmp(word, "version") == 0) {
        print_version();
        return 0;
    }
    if (strcmp(word, "run") == 0 || strcmp(word, "explain") == 0 ||
        strcmp(word, "new") == 0) {
        return tl_session_report(s, tl_fail(&s->diag, TL_E0720,
                                            "`%s` needs an argument", word));
    }
    if (strcmp(word, "-") != 0 && strchr(word, '/') == NULL &&
        strchr(word, '.') == NULL && access(word, F_OK) != 0) {
        return tl_session_report(s, unknown_command(s, word));
    }
    return run_program(s, argv, argc);
}

/* Commands behind which tlang's own options may stand. */
static bool takes_options(const char *word)
{
    return strcmp(word, "test") == 0 || strcmp(word, "repl") == 0 ||
           strcmp(word, "check") == 0 || strcmp(word, "doc") == 0;
}

static tl_status parse_arguments(tl_session *s, int argc, char **argv,
                                 int *first)
{
    int i = 1, used;

    TL_TRY(read_environment(s));
    while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        TL_TRY(parse_option(s, argv + i, argc - i, &used));
        i += used;
    }
    if (i < argc && takes_options(argv[i])) {
        char *word = argv[i];

        while (i + 1 < argc && argv[i + 1][0] == '-' && argv[i + 1][1]) {
            TL_TRY(parse_option(s, argv + i + 1, argc - i - 1, &used));
            i += used;
            argv[i] = word;
        }
    }
    *first = i;
    return check_device(s);
}

/* What was printed has to have arrived; a pipe that nobody reads any more ends
 * quietly, with the code that a shell gives for SIGPIPE. */
static int finish(tl_session *s, int code)
{
    tl_session_flush(s);
    if (s->output_error == EPIPE) {
        return code == 0 || code == 7 ? 128 + SIGPIPE : code;
    }
    if (s->output_error != 0 && code != 7) {
        tl_session_report(s, tl_fail(&s->diag, TL_E0707,
                                     "standard output cannot be written: %s",
                                     strerror(s->output_error)));
        return code == 0 ? 7 : code;
    }
    return code;
}

int tl_cli_main(int argc, char **argv)
{
    tl_session *s = tl_calloc(1, sizeof(*s));
    int first = 1, code;

    if (s == NULL) {
        return 4;
    }
    tl_session_init(s);
    tl_status st = parse_arguments(s, argc, argv, &first);

    if (st == TL_OK && (s->options.help || s->options.version)) {
        s->options.help ? print_help() : print_version();
        code = 0;
    } else {
        if (st == TL_OK) {
            st = tl_session_start(s);
        }
        if (st == TL_OK) {
            tl_session_catch_interrupts(s);
            if (isatty(STDIN_FILENO)) {
                tl_session_allow_breakpoints(s);
            }
        }
        if (st != TL_OK) {
            code = tl_session_report(s, st);
        } else if (s->options.expr != NULL) {
            code = tl_session_report(s, run_expr(s, s->options.expr));
        } else {
            code = dispatch(s, argv + first, argc - first);
        }
    }
    code = finish(s, code);
    tl_session_fini(s);
    tl_free(s);
    return code;
}
