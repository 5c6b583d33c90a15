/* ck_folder.c - checkpoints in folders: a generation of files, and state.json
 * that names it.
 *
 * Order of a save (RELIABILITY.md 2.6): the files of a new generation, each
 * written, synced and renamed; their folders synced; then state.json, by the
 * same steps.  A crash before its rename leaves the old checkpoint, a crash
 * after it the new one.  Old generations go last.  A lock makes several
 * savers of one folder take turns. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "interp/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/io/file.h"
#include "runtime/io/json.h"

#define DATA_FOLDER ".tlang"
#define STATE_FILE "state.json"

/* What state.json says. */
typedef struct state {
    uint64_t version, generation;
    int64_t step;
    uint64_t seed, draws, inits;
    uint64_t *hashes; /* one an object */
} state;

typedef struct folder {
    tl_eval *ev;
    const char *path;
    const tl_ck_object *objects;
    size_t n;
    state state;
    int lock;
} folder;

/* ---- paths ------------------------------------------------------------- */

static tl_status join(tl_eval *ev, const char *a, const char *b,
                      const char *c, char **out)
{
    tl_buf buf;
    char *s;

    tl_buf_init(&buf);
    tl_buf_puts(&buf, a);
    if (b) {
        tl_buf_printf(&buf, "/%s", b);
    }
    if (c) {
        tl_buf_printf(&buf, "/%s", c);
    }
    s = buf.failed ? NULL : tl_strndup(tl_buf_str(&buf), buf.len);
    tl_buf_fini(&buf);
    if (!s) {
        return tl_fail_memory(ev->diag, "a path", strlen(a));
    }
    *out = s;
    return TL_OK;
}

/* folder/.tlang/<generation>[/name.safetensors] */
static tl_status data_path(const folder *f, uint64_t generation,
                           const char *name, char **out)
{
    char sub[64], file[300];

    snprintf(sub, sizeof(sub), DATA_FOLDER "/%" PRIu64, generation);
    if (name) {
        snprintf(file, sizeof(file), "%s.safetensors", name);
    }
    return join(f->ev, f->path, sub, name ? file : NULL, out);
}

static tl_status system_error(const folder *f, const char *path, int error)
{
    return tl_fail(f->ev->diag, TL_E0707, "cannot write %s: %s",
                   tl_path_str(path).s, strerror(error));
}

/* Make `path` and what is missing above it. */
static tl_status make_folders(const folder *f, const char *path)
{
    char *s = tl_strndup(path, strlen(path));
    tl_status st = TL_OK;

    if (!s) {
        return tl_fail_memory(f->ev->diag, "a path", strlen(path));
    }
    for (char *at = s + 1; st == TL_OK; at++) {
        char c = *at;

        if (c != '/' && c != '\0') {
            continue;
        }
        *at = '\0';
        if (mkdir(s, 0777) != 0 && errno != EEXIST) {
            st = system_error(f, s, errno);
        }
        *at = c;
        if (c == '\0') {
            break;
        }
    }
    tl_free(s);
    return st;
}

static tl_status sync_folder(const folder *f, const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;

    /* some file systems cannot sync a folder: EINVAL */
    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL) {
        error = errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    return error ? system_error(f, path, error) : TL_OK;
}

/* ---- state.json -------------------------------------------------------- */

static void print_state(const folder *f, tl_buf *out)
{
    const state *s = &f->state;

    tl_buf_printf(out,
                  "{\n  \"tlang\": %d,\n  \"generation\": %" PRIu64
                  ",\n  \"step\": \"%lld\",\n",
                  TL_CK_VERSION, s->generation, (long long)s->step);
    tl_buf_printf(out,
                  "  \"seed\": \"%" PRIu64 "\",\n  \"draws\": \"%" PRIu64
                  "\",\n  \"inits\": \"%" PRIu64 "\",\n  \"files\": {",
                  s->seed, s->draws, s->inits);
    for (size_t i = 0; i < f->n; i++) {
        tl_buf_printf(out, "%s\n    \"", i ? "," : "");
        tl_buf_put_json(out, f->objects[i].name, strlen(f->objects[i].name));
        tl_buf_printf(out, "\": \"%" PRIu64 "\"", s->hashes[i]);
    }
    tl_buf_puts(out, "\n  }\n}\n");
}

static tl_status write_state(const folder *f)
{
    tl_file_out file;
    tl_buf text;
    char *path;
    tl_status st;

    TL_TRY(join(f->ev, f->path, STATE_FILE, NULL, &path));
    tl_buf_init(&text);
    print_state(f, &text);
    if (text.failed) {
        st = tl_fail_memory(f->ev->diag, "a checkpoint", text.len);
    } else {
        st = tl_file_create(&file, path, f->ev->diag);
    }
    if (st == TL_OK) {
        st = tl_file_write(&file, tl_buf_str(&text), text.len, f->ev->diag);
        if (st == TL_OK) {
            st = tl_file_commit(&file, f->ev->diag);
        } else {
            tl_file_abort(&file);
        }
    }
    tl_buf_fini(&text);
    tl_free(path);
    return st;
}

static bool read_key(tl_json *j, const char *key, bool first)
{
    tl_json_str s;

    return (first || tl_json_expect(j, ',')) && tl_json_string(j, &s) &&
           (strcmp(s.s, key) == 0 || tl_json_fail(j, "another field")) &&
           tl_json_expect(j, ':');
}

/* A number of 64 bits, in quotes since JSON numbers end at 2^53. */
static bool read_u64(tl_json *j, const char *key, uint64_t *out)
{
    tl_json_str s;
    char *end;

    if (!read_key(j, key, false) || !tl_json_string(j, &s)) {
        return false;
    }
    errno = 0;
    *out = strtoull(s.s, &end, 10);
    return (errno == 0 && end != s.s && *end == '\0') ||
           tl_json_fail(j, "no number");
}

static bool read_hashes(tl_json *j, const folder *f, state *s, bool *seen)
{
    bool first = true;

    while (!tl_json_accept(j, '}')) {
        tl_json_str name, text;
        uint64_t hash;
        char *end;

        if ((!first && !tl_json_expect(j, ',')) ||
            !tl_json_string(j, &name) || !tl_json_expect(j, ':') ||
            !tl_json_string(j, &text)) {
            return false;
        }
        first = false;
        hash = strtoull(text.s, &end, 10);
        for (size_t i = 0; i < f->n; i++) {
            if (strcmp(f->objects[i].name, name.s) == 0) {
                s->hashes[i] = hash;
                seen[i] = true;
            }
        }
    }
    return true;
}

static bool parse_state(tl_json *j, const folder *f, state *s, bool *seen)
{
    uint64_t step;

    if (!tl_json_expect(j, '{') || !read_key(j, "tlang", true) ||
        !tl_json_uint(j, &s->version)) {
        return false;
    }
    if (s->version > TL_CK_VERSION) {
        return true; /* the caller reports it */
    }
    if (!read_key(j, "generation", false) ||
        !tl_json_uint(j, &s->generation) || !read_u64(j, "step", &step) ||
        !read_u64(j, "seed", &s->seed) || !read_u64(j, "draws", &s->draws) ||
        !read_u64(j, "inits", &s->inits) || !read_key(j, "files", false) ||
        !tl_json_expect(j, '{') || !read_hashes(j, f, s, seen) ||
        !tl_json_expect(j, '}')) {
        return false;
    }
    s->step = (int64_t)step;
    return tl_json_end(j) || tl_json_fail(j, "more text");
}

static tl_status missing_object(const folder *f, size_t i)
{
    tl_fail(f->ev->diag, TL_E0703, "checkpoint %s holds no `%s`",
            tl_path_str(f->path).s, f->objects[i].name);
    tl_diag_help(f->ev->diag,
                 "the names are those of the variables that "
                 "were saved; or name it: save(path, net, "
                 "%s=...)",
                 f->objects[i].name);
    return TL_ERR_FILE;
}

/* *found false: the folder or its state.json does not exist. */
static tl_status read_state(folder *f, bool *found)
{
    bool *seen = tl_calloc(f->n + 1, sizeof(*seen));
    tl_bytes text = {0};
    char *path = NULL;
    struct stat info;
    tl_json j;
    tl_status st = TL_OK;

    *found = false;
    if (!seen) {
        return tl_fail_memory(f->ev->diag, "a checkpoint", f->n);
    }
    TL_GOTO(st, join(f->ev, f->path, STATE_FILE, NULL, &path));
    if (stat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        goto out;
    }
    TL_GOTO(st, tl_file_read(path, 1 << 20, &text, f->ev->diag));
    if (text.size > 0 && text.data[text.size - 1] == '\n') {
        text.size--;
    }
    tl_json_init(&j, text.data, text.size);
    if (!parse_state(&j, f, &f->state, seen)) {
        st = tl_fail(f->ev->diag, TL_E0705, "%s is damaged at byte %zu: %s",
                     tl_path_str(path).s, j.at,
                     j.error ? j.error : "not understood");
        goto out;
    }
    if (f->state.version > TL_CK_VERSION) {
        st = tl_fail(f->ev->diag, TL_E0710,
                     "%s has format %" PRIu64 ", this build reads up to %d",
                     tl_path_str(path).s, f->state.version, TL_CK_VERSION);
        goto out;
    }
    for (size_t i = 0; i < f->n; i++) {
        if (!seen[i]) {
            st = missing_object(f, i);
            goto out;
        }
    }
    *found = true;
out:
    tl_free(seen);
    tl_free(path);
    tl_bytes_fini(&text);
    return st;
}

/* ---- generations ------------------------------------------------------- */

/* Call `each` for the entries of a folder, without `.` and `..`. */
static void each_entry(const char *path, void *arg,
                       void (*each)(void *arg, const char *folder,
                                    const char *name))
{
    DIR *dir = opendir(path);
    struct dirent *e;

    while (dir && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            each(arg, path, e->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static bool is_generation(const char *name, uint64_t *out)
{
    char *end;

    if (*name < '0' || *name > '9') {
        return false;
    }
    *out = strtoull(name, &end, 10);
    return *end == '\0';
}

static void find_newest(void *arg, const char *path, const char *name)
{
    uint64_t *newest = arg, n;

    (void)path;
    if (is_generation(name, &n) && n > *newest) {
        *newest = n;
    }
}

/* A new, empty generation. */
static tl_status new_generation(folder *f)
{
    uint64_t n = 0;
    char *data = NULL, *path = NULL;
    tl_status st;

    TL_GOTO(st, join(f->ev, f->path, DATA_FOLDER, NULL, &data));
    TL_GOTO(st, make_folders(f, data));
    each_entry(data, &n, find_newest);
    for (;;) {
        TL_GOTO(st, data_path(f, ++n, NULL, &path));
        if (mkdir(path, 0777) == 0) {
            break;
        }
        if (errno != EEXIST) {
            st = system_error(f, path, errno);
            goto out;
        }
        tl_free(path);
        path = NULL;
    }
    f->state.generation = n;
out:
    tl_free(data);
    tl_free(path);
    return st;
}

static void unlink_entry(void *arg, const char *path, const char *name)
{
    tl_buf full;

    (void)arg;
    tl_buf_init(&full);
    tl_buf_printf(&full, "%s/%s", path, name);
    if (!full.failed) {
        (void)unlink(tl_buf_str(&full));
    }
    tl_buf_fini(&full);
}

static void remove_generation(const char *path)
{
    each_entry(path, NULL, unlink_entry);
    (void)rmdir(path);
}

static void sweep_entry(void *arg, const char *path, const char *name)
{
    const folder *f = arg;
    uint64_t n;
    tl_buf full;

    if (!is_generation(name, &n) || n == f->state.generation) {
        return;
    }
    tl_buf_init(&full);
    tl_buf_printf(&full, "%s/%s", path, name);
    if (!full.failed) {
        remove_generation(tl_buf_str(&full));
    }
    tl_buf_fini(&full);
}

/* Remove what no state.json names: older generations and broken-off ones.
 * What cannot be removed does no harm. */
static void sweep(folder *f)
{
    tl_buf data;

    tl_buf_init(&data);
    tl_buf_printf(&data, "%s/" DATA_FOLDER, f->path);
    if (!data.failed) {
        each_entry(tl_buf_str(&data), f, sweep_entry);
    }
    tl_buf_fini(&data);
}

/* folder/model.safetensors for other readers: the same file under a second
 * name.  Where the file system has no links there is none. */
static void link_file(const folder *f, size_t i)
{
    const char *name = f->objects[i].name;
    tl_buf from, to, temp;

    tl_buf_init(&from);
    tl_buf_init(&to);
    tl_buf_init(&temp);
    tl_buf_printf(&from, "%s/" DATA_FOLDER "/%" PRIu64 "/%s.safetensors",
                  f->path, f->state.generation, name);
    tl_buf_printf(&to, "%s/%s.safetensors", f->path, name);
    tl_buf_printf(&temp, "%s/" DATA_FOLDER "/%s.link", f->path, name);
    if (!from.failed && !to.failed && !temp.failed) {
        (void)unlink(tl_buf_str(&temp));
        if (link(tl_buf_str(&from), tl_buf_str(&temp)) == 0 &&
            rename(tl_buf_str(&temp), tl_buf_str(&to)) != 0) {
            (void)unlink(tl_buf_str(&temp));
        }
    }
    tl_buf_fini(&from);
    tl_buf_fini(&to);
    tl_buf_fini(&temp);
}

/* ---- saving ------------------------------------------------------------ */

static tl_status save_object(folder *f, size_t i)
{
    tl_saved_list list = {0};
    char *path = NULL;
    tl_status st;

    TL_GOTO(st, tl_saved_collect(f->ev, f->objects[i].value, "", &list));
    TL_GOTO(st, data_path(f, f->state.generation, f->objects[i].name, &path));
    TL_GOTO(st, tl_checkpoint_write(f->ev, path, &list, &f->state.hashes[i]));
out:
    tl_saved_fini(&list);
    tl_free(path);
    return st;
}

/* Several savers of one folder take turns; without locks they do not. */
static tl_status take_lock(folder *f)
{
    char *path, *data;
    tl_status st;

    TL_TRY(join(f->ev, f->path, DATA_FOLDER, NULL, &data));
    st = make_folders(f, data);
    tl_free(data);
    TL_TRY(st);
    TL_TRY(join(f->ev, f->path, DATA_FOLDER "/lock", NULL, &path));
    f->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    tl_free(path);
    while (f->lock >= 0 && flock(f->lock, LOCK_EX) != 0 && errno == EINTR) {
    }
    return TL_OK;
}

static tl_status write_generation(folder *f)
{
    char *path = NULL, *data = NULL;
    tl_status st;

    TL_GOTO(st, new_generation(f));
    TL_GOTO(st, data_path(f, f->state.generation, NULL, &path));
    for (size_t i = 0; i < f->n; i++) {
        TL_GOTO(st, save_object(f, i));
    }
    TL_GOTO(st, join(f->ev, f->path, DATA_FOLDER, NULL, &data));
    TL_GOTO(st, sync_folder(f, path));
    TL_GOTO(st, sync_folder(f, data));
    TL_GOTO(st, sync_folder(f, f->path));
    st = write_state(f);
out:
    if (st != TL_OK && path) {
        remove_generation(path);
    }
    tl_free(path);
    tl_free(data);
    return st;
}

tl_status tl_folder_save(tl_eval *ev, const char *path,
                         const tl_ck_object *objects, size_t n, int64_t step)
{
    folder f = {
        .ev = ev, .path = path, .objects = objects, .n = n, .lock = -1};
    tl_status st;

    f.state.step = step;
    f.state.seed = ev->rt->seed;
    f.state.draws = ev->rt->draws;
    f.state.inits = ev->rt->inits;
    f.state.hashes = tl_calloc(n + 1, sizeof(*f.state.hashes));
    if (!f.state.hashes) {
        return tl_fail_memory(ev->diag, "a checkpoint", n);
    }
    st = take_lock(&f);
    if (st == TL_OK) {
        st = write_generation(&f);
    }
    if (st == TL_OK) {
        for (size_t i = 0; i < n; i++) {
            link_file(&f, i);
        }
        sweep(&f);
    }
    if (f.lock >= 0) {
        close(f.lock);
    }
    tl_free(f.state.hashes);
    return st;
}

/* ---- resuming ---------------------------------------------------------- */

static tl_status load_object(folder *f, size_t i, tl_writes *writes)
{
    tl_load_options options = {.rename = tl_empty(),
                               .transpose = tl_empty(),
                               .ignore = tl_empty(),
                               .hash = &f->state.hashes[i]};
    char *path;
    tl_status st;

    TL_TRY(data_path(f, f->state.generation, f->objects[i].name, &path));
    st = tl_load_prepare(f->ev, path, f->objects[i].value, &options, writes,
                         NULL);
    tl_free(path);
    return st;
}

static tl_status restore(folder *f)
{
    tl_rt *rt = f->ev->rt;
    tl_writes writes = {0};
    tl_status st = TL_OK;

    for (size_t i = 0; i < f->n && st == TL_OK; i++) {
        st = load_object(f, i, &writes);
    }
    if (st == TL_OK) {
        st = tl_writes_commit(f->ev, &writes);
    }
    tl_writes_fini(&writes);
    TL_TRY(st);
    rt->seed = f->state.seed;
    rt->draws = f->state.draws;
    rt->inits = f->state.inits;
    return TL_OK;
}

tl_status tl_folder_resume(tl_eval *ev, const char *path,
                           const tl_ck_object *objects, size_t n, bool *found,
                           int64_t *step)
{
    folder f = {.ev = ev, .path = path, .objects = objects, .n = n};
    tl_status st;

    f.state.hashes = tl_calloc(n + 1, sizeof(*f.state.hashes));
    if (!f.state.hashes) {
        return tl_fail_memory(ev->diag, "a checkpoint", n);
    }
    st = read_state(&f, found);
    if (st == TL_OK && *found) {
        st = restore(&f);
        *step = f.state.step;
    }
    tl_free(f.state.hashes);
    return st;
}
