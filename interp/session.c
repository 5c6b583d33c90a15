/* session.c - set-up, reporting and running of one session. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "interp/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/io/file.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

void tl_session_init(tl_session *s)
{
    tl_intern_init(&s->names);
    tl_sources_init(&s->sources);
    tl_diag_init(&s->diag, &s->sources);
    s->lang = (tl_lang){&s->names, &s->sources};
}

enum { WRITTEN_AT_ONCE = 1 << 16 }; /* bytes, between looks at Ctrl-C */

static tl_status write_output(void *arg, const char *text, size_t len);

/* A long text can be interrupted. */
static tl_status write_long(tl_session *s, const char *text, size_t len)
{
    while (len > 0) {
        size_t n = len < WRITTEN_AT_ONCE ? len : WRITTEN_AT_ONCE;

        TL_TRY(write_output(s, text, n));
        TL_TRY(tl_rt_tick(&s->rt));
        text += n;
        len -= n;
    }
    return TL_OK;
}

/* Output of the program; warnings so far are shown before it. */
static tl_status write_output(void *arg, const char *text, size_t len)
{
    tl_session *s = arg;

    if (len > WRITTEN_AT_ONCE) {
        return write_long(s, text, len);
    }

    if (s->diag.nwarnings > 0 && s->diag.nerrors == 0) {
        tl_session_report(s, TL_OK);
    }
    if (fwrite(text, 1, len, stdout) != len) {
        s->output_error = errno;
        return tl_fail(&s->diag, TL_E0707,
                       "standard output cannot be written: %s",
                       strerror(errno));
    }
    return TL_OK;
}

/* The ceiling of all memory: beyond --memory-limit, which is that of tensors,
 * a quarter and 64 MiB for the rest; without it what the machine has, but for
 * a sixteenth. */
static void set_ceiling(const tl_session *s, size_t limit)
{
    tl_pool_stats stats;

    tl_pool_get_stats(s->rt.pool, &stats);
    if (limit == 0 || limit > stats.machine / 2) {
        tl_mem_set_limit(stats.machine - stats.machine / 16);
    } else {
        tl_mem_set_limit(limit + limit / 4 + ((size_t)64 << 20));
    }
}

tl_status tl_session_start(tl_session *s)
{
    const tl_options *o = &s->options;
    tl_rt_options rt = {.threads = (int)o->threads,
                        .deterministic = o->deterministic,
                        .memory_limit = (size_t)o->memory_limit,
                        .seed = (uint64_t)o->seed};

    TL_TRY(tl_rt_init(&s->rt, &rt, &s->diag));
    set_ceiling(s, rt.memory_limit);
    s->up = true;
    TL_TRY(tl_eval_init(&s->ev, &s->rt, &s->lang, &s->eval_options));
    s->ev.write = write_output;
    s->ev.write_arg = s;
    if (o->compile != NULL) {
        s->ev.compile = strcmp(o->compile, "off") == 0     ? TL_COMPILE_OFF
                        : strcmp(o->compile, "every") == 0 ? TL_COMPILE_EVERY
                                                           : s->ev.compile;
    }
    s->ev.suppress_errors = o->suppress_errors;
    s->ev.explain = o->explain;
    s->ev.dry_run = o->dry_run;
    s->ev.verify = o->verify;
    return TL_OK;
}

void tl_session_fini(tl_session *s)
{
    if (s->up) {
        tl_eval_fini(&s->ev);
        tl_rt_fini(&s->rt);
    }
    tl_diag_fini(&s->diag);
    tl_sources_fini(&s->sources);
    tl_intern_fini(&s->names);
}

const char *tl_session_version(void)
{
    return PACKAGE_VERSION;
}

bool tl_session_color(const tl_session *s, int fd)
{
    const tl_options *o = &s->options;
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    const char *force = getenv("CLICOLOR_FORCE"), *cli = getenv("CLICOLOR");

    if (o->color != NULL && strcmp(o->color, "auto") != 0) {
        return strcmp(o->color, "always") == 0;
    }
    if (no != NULL && *no != '\0') {
        return false;
    }
    if (force == NULL) {
        force = getenv("FORCE_COLOR");
    }
    if (force != NULL && *force != '\0' && strcmp(force, "0") != 0) {
        return true;
    }
    if (cli != NULL && strcmp(cli, "0") == 0) {
        return false;
    }
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

void tl_session_flush(tl_session *s)
{
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && s->output_error == 0) {
        s->output_error = errno != 0 ? errno : EIO;
    }
}

/* Is the newest diagnostic of output that nobody reads? */
static bool is_broken_pipe(const tl_session *s)
{
    return s->output_error == EPIPE && s->diag.last != NULL &&
           s->diag.last->code == TL_E0707;
}

int tl_session_report(tl_session *s, tl_status status)
{
    const char *f = s->options.format;
    tl_diag_format format = TL_DIAG_HUMAN;
    tl_buf buf;

    if (f != NULL && strcmp(f, "json") == 0) {
        format = TL_DIAG_JSON;
    } else if (f != NULL && strcmp(f, "short") == 0) {
        format = TL_DIAG_SHORT;
    }
    tl_session_flush(s);
    tl_buf_init(&buf);
    if ((status != TL_OK || !s->options.quiet) && !is_broken_pipe(s)) {
        bool color =
            format != TL_DIAG_JSON && tl_session_color(s, STDERR_FILENO);

        tl_diag_print(&s->diag, format, color, &buf);
    }
    fwrite(tl_buf_str(&buf), 1, buf.len, stderr);
    tl_buf_fini(&buf);
    tl_diag_clear(&s->diag);
    return tl_status_exit_code(status);
}

tl_status tl_session_run(tl_session *s, const char *name, const char *text,
                         size_t len)
{
    tl_namespace *ns = NULL;

    TL_TRY(tl_namespace_new(&ns, &s->ev, "main", name));
    s->ev.main_ns = ns;
    TL_TRY(tl_eval_text(&s->ev, ns, name, text, len, NULL, NULL));
    tl_unit *unit = ns->units[ns->nunits - 1];

    if (s->eval_options.check_only || s->eval_options.run_tests) {
        return TL_OK;
    }
    return unit->main != NULL
               ? tl_eval_main(&s->ev, ns, unit->main->func)
               : TL_OK;
}

/* All of standard input. */
static tl_status read_stdin(tl_session *s, tl_buf *buf)
{
    char part[65536];
    ssize_t n;

    while ((n = read(STDIN_FILENO, part, sizeof(part))) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return tl_fail(&s->diag, TL_E0701,
                           "standard input cannot be read: %s",
                           strerror(errno));
        }
        if (buf->len + (size_t)n > TL_MOST_SOURCE) {
            return tl_fail(&s->diag, TL_E0711,
                           "standard input holds more than %d bytes",
                           TL_MOST_SOURCE);
        }
        tl_buf_add(buf, part, (size_t)n);
    }
    return buf->failed ? tl_fail_memory(&s->diag, "standard input", buf->len)
                       : TL_OK;
}

tl_status tl_session_run_file(tl_session *s, const char *path)
{
    tl_bytes text = {0};
    tl_buf buf;
    tl_status st;

    if (strcmp(path, "-") != 0) {
        TL_TRY(tl_file_read(path, TL_MOST_SOURCE, &text, &s->diag));
        st = tl_session_run(s, path, text.data, text.size);
        tl_bytes_fini(&text);
        return st;
    }
    tl_buf_init(&buf);
    st = read_stdin(s, &buf);
    if (st == TL_OK) {
        st = tl_session_run(s, "<stdin>", tl_buf_str(&buf), buf.len);
    }
    tl_buf_fini(&buf);
    return st;
}
