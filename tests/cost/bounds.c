/* bounds PROGRAM.tl... - how far the arenas of plans are above the bytes that
 * are live at one time, for `run`.
 *
 * Runs each program with every function compiled and looks at all plans that
 * it leaves, those of branches and loops too.  Prints a line for each figure,
 * a name and a number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/plan_region.h"
#include "interp/compiled_impl.h"
#include "interp/eval_impl.h"
#include "interp/session.h"

enum { LEAST = 200 }; /* plans below which something is wrong */

typedef struct bounds {
    const char *path;
    size_t plans, over; /* more than a twentieth above */
    size_t worst;       /* in a thousand */
    size_t failed;      /* programs; an error is what some are for */
} bounds;

static tl_status drop(void *arg, const char *text, size_t len)
{
    (void)arg, (void)text, (void)len;
    return TL_OK;
}

static void look(bounds *b, const tl_plan *pl)
{
    size_t over = pl->arena - pl->lower_bound;
    size_t thousandths = pl->lower_bound ? over * 1000 / pl->lower_bound
                                         : over;

    b->plans++;
    b->worst = thousandths > b->worst ? thousandths : b->worst;
    if (thousandths > 50) {
        fprintf(stderr, "bounds: %s: an arena of %zu bytes, %zu live\n",
                b->path, pl->arena, pl->lower_bound);
        b->over++;
    }
    for (uint32_t i = 1; i < pl->steps.len; i++) {
        const tl_pregions *r = pl->steps.items[i].regions;

        for (uint32_t k = 0; r != NULL && k < r->count; k++) {
            look(b, r->plan[k]);
        }
    }
}

static void look_program(bounds *b, const tl_program *p)
{
    for (uint32_t i = 0; i < p->nplans; i++) {
        look(b, p->plans[i]);
    }
}

static void look_session(bounds *b, const tl_session *s)
{
    const tl_compiled *f = s->ev.compiler ? s->ev.compiler->first : NULL;

    for (; f != NULL; f = f->next) {
        for (const tl_entry *e = f->entries; e != NULL; e = e->next) {
            look_program(b, e->program);
            if (e->grad != NULL) {
                look_program(b, e->grad->program);
            }
        }
    }
}

static void run_file(bounds *b, const char *path)
{
    static tl_session s;
    static char text[1 << 18];
    FILE *f = fopen(path, "rb");
    size_t len;

    if (f == NULL) {
        fprintf(stderr, "bounds: cannot read %s\n", path);
        exit(2);
    }
    len = fread(text, 1, sizeof(text), f);
    fclose(f);
    b->path = path;
    memset(&s, 0, sizeof(s));
    tl_session_init(&s);
    s.options.threads = 1;
    s.options.compile = "every";
    if (tl_session_start(&s) == TL_OK) {
        s.ev.write = drop;
        b->failed += tl_session_run(&s, path, text, len) != TL_OK;
        look_session(b, &s);
    }
    tl_session_fini(&s);
}

int main(int argc, char **argv)
{
    bounds b = {.plans = 0};

    for (int i = 1; i < argc; i++) {
        run_file(&b, argv[i]);
    }
    if (b.plans < LEAST) {
        fprintf(stderr, "bounds: only %zu plans\n", b.plans);
        return 2;
    }
    printf("programs %d\nfailed %zu\nplans %zu\nover %zu\nworst %zu\n",
           argc - 1, b.failed, b.plans, b.over, b.worst);
    return 0;
}
