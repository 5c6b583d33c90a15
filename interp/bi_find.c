/* bi_find.c - where data files are.
 *
 * files.find(name): the path itself if it is there; else below TLANG_DATA_DIR,
 * the folder `data` beside the program's script, the folder of data that tlang
 * was installed with (also where that was moved to), and that of the source
 * tree in which it was built. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/builtin_fns.h"
#include "interp/datadir.h" /* TL_DATADIR; made by make */

#define DATA "/examples/data"
#define MOVED_DATA "/share/tlang" DATA

/* Try folder/name; keeps the text in `path` if it is there. */
static bool try_folder(tl_buf *path, tl_buf *tried, const char *folder,
                       size_t len, const char *name)
{
    tl_buf_clear(path);
    if (len > 0) {
        tl_buf_add(path, folder, len);
        tl_buf_putc(path, '/');
    }
    tl_buf_puts(path, name);
    tried->failed = tried->failed || path->failed;
    if (!path->failed && access(tl_buf_str(path), R_OK) == 0) {
        return true;
    }
    tl_buf_printf(tried, "%s%s", tried->len > 0 ? ", " : "",
                  tl_buf_str(path));
    return false;
}

/* The folder above that of the program, "" if it is not known. */
static void program_root(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);

    out[n > 0 ? n : 0] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(out, '/');

        if (slash != NULL) {
            *slash = '\0';
        }
    }
}

static bool find(tl_eval *ev, tl_buf *path, tl_buf *tried, const char *name)
{
    const char *script =
        ev->main_ns != NULL ? ev->main_ns->path->data : "";
    const char *slash = strrchr(script, '/');
    const char *own = getenv("TLANG_DATA_DIR");
    char root[4096];

    if (try_folder(path, tried, "", 0, name)) {
        return true;
    }
    if (name[0] == '/') {
        return false;
    }
    if (own != NULL && try_folder(path, tried, own, strlen(own), name)) {
        return true;
    }
    memcpy(root, "data", sizeof("data"));
    if (slash != NULL && (size_t)(slash - script) < sizeof(root) - 8) {
        memcpy(root, script, (size_t)(slash - script) + 1);
        memcpy(root + (slash - script) + 1, "data", sizeof("data"));
    }
    if (try_folder(path, tried, root, strlen(root), name)) {
        return true;
    }
    if (try_folder(path, tried, TL_DATADIR DATA, strlen(TL_DATADIR DATA),
                   name)) {
        return true;
    }
    program_root(root, sizeof(root) - sizeof(MOVED_DATA));
    char *end = root + strlen(root);

    memcpy(end, MOVED_DATA, sizeof(MOVED_DATA));
    if (try_folder(path, tried, root, strlen(root), name)) {
        return true;
    }
    memcpy(end, DATA, sizeof(DATA));
    return try_folder(path, tried, root, strlen(root), name);
}

tl_status tl_bi_files_find(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_buf path, tried;
    tl_status st;

    (void)self;
    tl_buf_init(&path);
    tl_buf_init(&tried);
    bool found = find(ev, &path, &tried, args[0].str->data);

    if (tried.failed) { /* what was not tried may have been there */
        st = tl_fail_memory(ev->diag, "a path", path.len);
    } else if (found) {
        st = tl_str_from_buf(out, &path, ev->diag);
    } else {
        st = tl_fail(ev->diag, TL_E0701, "there is no file `%s`",
                     args[0].str->data);
        tl_diag_note(ev->diag, "tried %s", tl_buf_str(&tried));
        tl_diag_help(ev->diag, "TLANG_DATA_DIR names a folder of data");
    }
    tl_buf_fini(&path);
    tl_buf_fini(&tried);
    return st;
}
