/* complete.h - what may stand at a place in a text that is being typed.
 *
 * By context: names and keywords; fields and methods behind a dot; keywords
 * of the call around; modules behind `import` and `from`; names of a module
 * behind `from m import`; marks behind `@`; paths inside strings; commands of
 * the prompt behind `:`; documented names behind `?`; \alpha and the like.
 * Nothing is evaluated: values are looked up along names and fields. */
#ifndef TL_INTERP_COMPLETE_H
#define TL_INTERP_COMPLETE_H

#include "interp/eval.h"
#include "runtime/base/arena.h"

typedef struct tl_candidate {
    const char *text;  /* what the word becomes */
    const char *after; /* to put behind it if it is the only one: "(", "=" */
    const char *note;  /* a signature to show in lists, or NULL */
} tl_candidate;

typedef struct tl_completion {
    tl_arena arena; /* owns the texts */
    size_t start;   /* of the word, which ends at the cursor */
    tl_candidate *items;
    size_t len, cap;
} tl_completion;

/* Fill `out` (zeroed) for the cursor behind `cursor` bytes of `text`, in the
 * order of names and each once.  `commands` are the prompt's, NULL at the end.
 * Short of memory there are fewer. */
void tl_complete(tl_eval *ev, tl_namespace *ns, const char *const *commands,
                 const char *text, size_t cursor, tl_completion *out);
void tl_completion_fini(tl_completion *c);

/* What all candidates start with; at least the word itself. */
size_t tl_completion_common(const tl_completion *c);

/* What a path of names and fields means. */
typedef struct tl_found {
    tl_value value;           /* borrowed; EMPTY: of a method, or nothing */
    const tl_funcdef *code;   /* what would run when it is called, or NULL */
    const tl_builtin *builtin; /* the same for a built-in, or NULL */
    bool is_method;            /* the first parameter is the object */
} tl_found;

/* Look up names and fields joined by dots ("net.fc", "nn.Linear",
 * "blocks[0].fc", "x.sum").  False: nothing of that name, or something that
 * would have to be computed. */
bool tl_complete_find(tl_eval *ev, tl_namespace *ns, const char *path,
                      size_t len, tl_found *out);

/* The parameters of what can be called, "(x, axis=none)", appended to *out.
 * False: it is nothing that can be called. */
bool tl_complete_signature(tl_eval *ev, const tl_found *f, tl_buf *out);

/* Where a cursor is (complete_scan.c). */
typedef enum tl_place_kind {
    TL_PLACE_CODE,
    TL_PLACE_STRING,
    TL_PLACE_COMMENT
} tl_place_kind;

typedef struct tl_place {
    tl_place_kind kind;
    size_t start;     /* of the string's text, or of the word in code */
    size_t path;      /* of the names with dots that end in the word */
    bool dotted;      /* a dot stands before the word */
    size_t statement; /* where it begins, behind its indentation */
    size_t call;      /* the `(` of the innermost call, or SIZE_MAX */
} tl_place;

tl_place tl_place_find(const char *text, size_t cursor);

/* Beginning of the names with dots and constant subscripts that end before
 * `end`; `end` if there are none. */
size_t tl_place_path(const char *text, size_t end);

#endif
