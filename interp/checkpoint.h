/* checkpoint.h - cells in files: what is saved under which name, strict
 * loading, folders that can be resumed.
 *
 * A file holds tensors by path; in its metadata stand host cells ("opt.lr":
 * "0.001"), the other paths of shared cells ("head.weight": "wte.weight") and
 * TL_CK_VERSION_KEY.  A cell that holds a tree is saved as its values
 * ("opt.m.fc1.weight").
 *
 * A folder holds one file for each object and state.json, which tells the
 * step, the state of the random streams and a hash of every file.  The data
 * of one save lie in .tlang/<generation>/; the write of state.json, which
 * names the generation, is the moment at which the new checkpoint replaces
 * the old one.  The names beside state.json are links for other readers. */
#ifndef TL_INTERP_CHECKPOINT_H
#define TL_INTERP_CHECKPOINT_H

#include "interp/tree.h"
#include "runtime/io/safetensors.h"

#define TL_CK_VERSION_KEY "__tlang__"
#define TL_CK_VERSION 1

/* ---- what is saved (checkpoint.c) -------------------------------------- */

typedef struct tl_saved {
    char *name;     /* with the prefix */
    tl_cell *cell;  /* borrowed; NULL for a value of a tree or dict */
    int64_t item;   /* of a cell that holds a tree; -1: the cell's value */
    size_t first;   /* index of the first name of the same cell */
    tl_value value; /* of a tree or dict: the tensor, borrowed; else EMPTY */
} tl_saved;

typedef struct tl_saved_list {
    tl_saved *items;
    size_t len, cap;
} tl_saved_list;

/* Append what `root` saves: modules and containers of them, a cell, a
 * selection, a tree, a dict of tensors.  Names begin with `prefix` and a dot,
 * if it is not empty.  E0210; E0202 for a tree cell without value. */
TL_MUST_USE tl_status tl_saved_collect(tl_eval *ev, tl_value root,
                                       const char *prefix,
                                       tl_saved_list *list);
void tl_saved_fini(tl_saved_list *list);

/* Text of a host cell's value, and back; false: no such value. */
void tl_host_print(tl_value v, tl_buf *out);
bool tl_host_parse(const tl_cell *cell, const char *text, tl_value *out);

/* ---- writing (save.c) -------------------------------------------------- */

/* Write one file with all of `list`.  *hash (may be NULL) tells its contents.
 * E0707, E0713. */
TL_MUST_USE tl_status tl_checkpoint_write(tl_eval *ev, const char *path,
                                          const tl_saved_list *list,
                                          uint64_t *hash);

/* Hash of one tensor under its name; those of a file are added up. */
TL_MUST_USE tl_status tl_checkpoint_hash(const char *name, const tl_tensor *t,
                                         uint64_t *out, tl_diag *diag);

/* ---- loading (load.c, load_report.c) ----------------------------------- */

typedef struct tl_load_options {
    tl_value rename;    /* DICT str -> str, or EMPTY */
    tl_value transpose; /* list or tuple of patterns, or EMPTY */
    tl_value ignore;
    const uint64_t *hash; /* of the contents, if known: E0705 */
} tl_load_options;

/* New values of cells, checked but not yet written. */
typedef struct tl_writes {
    struct tl_write {
        tl_cell *cell; /* counted */
        tl_value value;
    } * items;
    size_t len, cap;
} tl_writes;

typedef struct tl_load_count {
    size_t loaded, ignored;
} tl_load_count;

/* Read `path` for the cells below `root` into `writes`; nothing is written.
 * E0701, E0703, E0705, E0710, E0713. */
TL_MUST_USE tl_status tl_load_prepare(tl_eval *ev, const char *path,
                                      tl_value root,
                                      const tl_load_options *options,
                                      tl_writes *writes,
                                      tl_load_count *count);
/* Write them. */
TL_MUST_USE tl_status tl_writes_commit(tl_eval *ev, tl_writes *writes);
void tl_writes_fini(tl_writes *writes);

/* A file as a dict of tensors, in the order of the data. */
TL_MUST_USE tl_status tl_load_dict(tl_eval *ev, const char *path,
                                   tl_value *out);

/* A key of the file, after renaming. */
typedef struct tl_file_key {
    const tl_st_entry *entry;
    char *key;
    bool used, ignored;
} tl_file_key;

/* A cell and what is to go there. */
typedef struct tl_match {
    const tl_saved *saved;
    const tl_file_key *key; /* NULL: missing */
    bool transpose;
    bool wrong_type;
} tl_match;

/* Report E0703; `matches` are those with a fault. */
tl_status tl_load_misfit(tl_eval *ev, const char *path, tl_value root,
                         const tl_match *matches, size_t nmatches,
                         const tl_file_key *keys, size_t nkeys,
                         size_t loaded);

/* Declared or present type of what `saved` names; false: any will do. */
bool tl_saved_type(const tl_saved *saved, tl_ttype *out);

/* ---- folders (ck_folder.c) --------------------------------------------- */

/* An argument of save() or resume(). */
typedef struct tl_ck_object {
    const char *name; /* of its file */
    tl_value value;   /* borrowed */
} tl_ck_object;

TL_MUST_USE tl_status tl_folder_save(tl_eval *ev, const char *path,
                                     const tl_ck_object *objects, size_t n,
                                     int64_t step);

/* Restore objects and random state; *step.  *found false: there is no
 * checkpoint, nothing was done. */
TL_MUST_USE tl_status tl_folder_resume(tl_eval *ev, const char *path,
                                       const tl_ck_object *objects, size_t n,
                                       bool *found, int64_t *step);

#endif
