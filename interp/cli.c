/* cli.c - run a file, an expression or standard input. */
#include "interp/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interp/eval.h"
#include "interp/format.h"
#include "runtime/io/file.h"

/* All that a run owns. */
typedef struct session {
    tl_intern names;
    tl_sources sources;
    tl_diag diag;
    tl_rt rt;
    tl_lang lang;
    tl_eval ev;
    tl_eval_options options;
} session;

static void report(session *s)
{
    tl_buf buf;

    tl_buf_init(&buf);
    tl_diag_print(&s->diag, TL_DIAG_HUMAN, false, &buf);
    fflush(stdout);
    fwrite(tl_buf_str(&buf), 1, buf.len, stderr);
    tl_buf_fini(&buf);
    tl_diag_clear(&s->diag);
}

static tl_status run_text(session *s, const char *name, const char *text,
                          size_t len, tl_value *echo)
{
    tl_namespace *ns = NULL;

    TL_TRY(tl_namespace_new(&ns, &s->ev, "main", name));
    s->ev.main_ns = ns;
    TL_TRY(tl_eval_text(&s->ev, ns, name, text, len, echo, NULL));
    tl_unit *unit = ns->units[ns->nunits - 1];

    if (unit->main != NULL) {
        return tl_eval_main(&s->ev, ns, unit->main->func);
    }
    return TL_OK;
}

static tl_status run_file(session *s, const char *path)
{
    tl_bytes text = {0};

    TL_TRY(tl_file_read(path, 0, &text, &s->diag));
    tl_status st = run_text(s, path, text.data, text.size, NULL);

    tl_bytes_fini(&text);
    return st;
}

int tl_cli_main(int argc, char **argv)
{
    static session s; /* too large for a stack frame */
    tl_rt_options rt_options = {0};
    tl_status st;

    tl_intern_init(&s.names);
    tl_sources_init(&s.sources);
    tl_diag_init(&s.diag, &s.sources);
    s.lang = (tl_lang){&s.names, &s.sources};
    st = tl_rt_init(&s.rt, &rt_options, &s.diag);
    if (st == TL_OK) {
        s.options.main_args = (const char **)argv + 2;
        s.options.nmain_args = argc > 2 ? argc - 2 : 0;
        st = tl_eval_init(&s.ev, &s.rt, &s.lang, &s.options);
    }
    if (st == TL_OK && argc > 2 && strcmp(argv[1], "-e") == 0) {
        tl_value v = tl_none();
        tl_buf buf;

        tl_buf_init(&buf);
        st = run_text(&s, "<-e>", argv[2], strlen(argv[2]), &v);
        if (st == TL_OK && v.tag != TL_V_NONE) {
            st = tl_format_repr(v, &buf, &s.diag);
            printf("%s\n", tl_buf_str(&buf));
        }
        tl_unref(v);
        tl_buf_fini(&buf);
    } else if (st == TL_OK && argc > 1) {
        st = run_file(&s, argv[1]);
    }
    report(&s);
    tl_eval_fini(&s.ev);
    tl_rt_fini(&s.rt);
    tl_diag_fini(&s.diag);
    tl_sources_fini(&s.sources);
    tl_intern_fini(&s.names);
    return tl_status_exit_code(st);
}
