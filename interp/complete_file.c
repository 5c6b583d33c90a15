/* complete_file.c - paths, and modules that can be imported. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/complete_impl.h"
#include "interp/stdlib.h"

static void add_file(tl_request *r, const char *folder, size_t nfolder,
                     const char *name, const char *after)
{
    tl_buf path;
    struct stat st;

    tl_buf_init(&path);
    tl_buf_add(&path, folder, nfolder);
    tl_buf_puts(&path, name);
    if (!path.failed && stat(tl_buf_str(&path), &st) == 0) {
        bool is_folder = S_ISDIR(st.st_mode);

        if (is_folder) {
            tl_buf_putc(&path, '/');
        }
        tl_complete_add(r, tl_buf_str(&path), is_folder ? "" : after);
    }
    tl_buf_fini(&path);
}

/* Paths that start with the word. */
void tl_complete_paths(tl_request *r, const char *after)
{
    size_t n = r->len;
    tl_buf folder;

    while (n > 0 && r->word[n - 1] != '/') {
        n--;
    }
    tl_buf_init(&folder);
    tl_buf_add(&folder, r->word, n);
    DIR *dir = opendir(n > 0 ? tl_buf_str(&folder) : ".");
    const struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        bool hidden = e->d_name[0] == '.';

        if (strncmp(e->d_name, r->word + n, r->len - n) == 0 &&
            (!hidden || (r->len > n && strcmp(e->d_name, ".") != 0 &&
                         strcmp(e->d_name, "..") != 0))) {
            add_file(r, r->word, n, e->d_name, after);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    tl_buf_fini(&folder);
}

/* Files of tlang in a folder, by the names that import takes. */
static void add_sources(tl_request *r, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        char name[256];
        size_t n = strlen(e->d_name);

        if (n > 3 && n < sizeof(name) && e->d_name[0] != '.' &&
            strcmp(e->d_name + n - 3, ".tl") == 0) {
            memcpy(name, e->d_name, n - 3);
            name[n - 3] = '\0';
            tl_complete_add(r, name, "");
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Modules of the library and files that can be imported. */
void tl_complete_modules(tl_request *r)
{
    const char *dirs = getenv("TLANG_PATH");

    for (size_t i = 0; i < tl_stdlib_count; i++) {
        const char *name = tl_stdlib_files[i].name;

        /* parts of a module (optim.rules) once a dot is typed */
        if (strchr(name, '.') == NULL ||
            memchr(r->word, '.', r->len) != NULL) {
            tl_complete_add(r, name, "");
        }
    }
    add_sources(r, ".");
    while (dirs != NULL && *dirs != '\0') {
        size_t n = strcspn(dirs, ":");
        tl_buf folder;

        tl_buf_init(&folder);
        tl_buf_add(&folder, dirs, n);
        add_sources(r, n > 0 ? tl_buf_str(&folder) : ".");
        tl_buf_fini(&folder);
        dirs += n + (dirs[n] == ':');
    }
}
