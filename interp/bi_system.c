/* bi_system.c - time, environment, text files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "interp/bi_walk.h"
#include "interp/builtin_fns.h"
#include "interp/dict.h"
#include "runtime/base/utf8.h"
#include "runtime/io/file.h"

/* ---- time -------------------------------------------------------------- */

static tl_value clock_value(clockid_t clock)
{
    struct timespec t = {0};

    (void)clock_gettime(clock, &t);
    return tl_float_value((double)t.tv_sec + (double)t.tv_nsec * 1e-9);
}

tl_status tl_bi_time(tl_eval *ev, const tl_builtin *self, tl_value *args,
                     tl_value *out)
{
    (void)ev;
    (void)self;
    (void)args;
    *out = clock_value(CLOCK_REALTIME);
    return TL_OK;
}

tl_status tl_bi_monotonic(tl_eval *ev, const tl_builtin *self, tl_value *args,
                          tl_value *out)
{
    (void)ev;
    (void)self;
    (void)args;
    *out = clock_value(CLOCK_MONOTONIC);
    return TL_OK;
}

static bool interrupted(const tl_eval *ev)
{
    return ev->rt->interrupted != NULL && *ev->rt->interrupted != 0;
}

tl_status tl_bi_sleep(tl_eval *ev, const tl_builtin *self, tl_value *args,
                      tl_value *out)
{
    double seconds = args[0].f;
    struct timespec rest;

    (void)self;
    if (!(seconds >= 0 && seconds < 1e9)) {
        return tl_fail(ev->diag, TL_E0416,
                       "seconds must be in 0..1e9, got %g", seconds);
    }
    rest.tv_sec = (time_t)seconds;
    rest.tv_nsec = (long)((seconds - (double)rest.tv_sec) * 1e9);
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR &&
           !interrupted(ev)) {
    }
    *out = tl_none();
    return TL_OK;
}

/* env(name, default) */
tl_status tl_bi_env(tl_eval *ev, const tl_builtin *self, tl_value *args,
                    tl_value *out)
{
    const char *text = getenv(args[0].str->data);

    (void)self;
    if (text == NULL) {
        *out = tl_ref(args[1]);
        return TL_OK;
    }
    return tl_str_new(out, text, strlen(text), ev->diag);
}

/* ---- reading ----------------------------------------------------------- */

static tl_status check_utf8(tl_eval *ev, const char *path,
                            const tl_bytes *bytes)
{
    uint32_t cp;

    for (size_t i = 0; i < bytes->size;) {
        size_t n = tl_utf8_decode(bytes->data + i, bytes->size - i, &cp);

        if (n == 0) {
            return tl_fail(ev->diag, TL_E0712,
                           "%s is not UTF-8 text: byte 0x%02x at offset %zu",
                           tl_path_str(path).s, (unsigned char)bytes->data[i],
                           i);
        }
        i += n;
    }
    return TL_OK;
}

/* The bytes of a text file; the caller releases them. */
static tl_status read_text(tl_eval *ev, const tl_str *path, tl_bytes *out)
{
    tl_status st;

    TL_TRY(tl_path_check(path->data, path->len, ev->diag));
    TL_TRY(tl_file_read(path->data, 0, out, ev->diag));
    st = check_utf8(ev, path->data, out);
    if (st != TL_OK) {
        tl_bytes_fini(out);
    }
    return st;
}

tl_status tl_bi_files_read(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_bytes bytes;
    tl_status st;

    (void)self;
    TL_TRY(read_text(ev, args[0].str, &bytes));
    st = tl_str_new(out, bytes.data, bytes.size, ev->diag);
    tl_bytes_fini(&bytes);
    return st;
}

/* The lines of a text, which end in LF or CRLF. */
static tl_status split_lines(tl_eval *ev, const char *s, size_t len,
                             tl_value list)
{
    while (len > 0) {
        const char *end = memchr(s, '\n', len);
        size_t n = end == NULL ? len : (size_t)(end - s);
        size_t used = end == NULL ? n : n + 1;
        tl_value line;

        if (end != NULL && n > 0 && s[n - 1] == '\r') {
            n--;
        }
        TL_TRY(tl_str_new(&line, s, n, ev->diag));
        TL_TRY(tl_list_push_take(list.seq, line, ev->diag));
        s += used;
        len -= used;
    }
    return TL_OK;
}

tl_status tl_bi_files_lines(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    tl_value list = tl_empty();
    tl_bytes bytes;
    tl_status st;

    (void)self;
    TL_TRY(read_text(ev, args[0].str, &bytes));
    TL_GOTO(st, tl_seq_alloc(&list, TL_V_LIST, 0, ev->diag));
    TL_GOTO(st, split_lines(ev, bytes.data, bytes.size, list));
    *out = tl_ref(list);
out:
    tl_unref(list);
    tl_bytes_fini(&bytes);
    return st;
}

/* ---- writing ----------------------------------------------------------- */

tl_status tl_bi_files_write(tl_eval *ev, const tl_builtin *self,
                            tl_value *args, tl_value *out)
{
    const tl_str *path = args[0].str, *text = args[1].str;
    tl_file_out file;
    tl_status st;

    (void)self;
    TL_TRY(tl_path_check(path->data, path->len, ev->diag));
    TL_TRY(tl_file_create(&file, path->data, ev->diag));
    st = tl_file_write(&file, text->data, text->len, ev->diag);
    if (st != TL_OK) {
        tl_file_abort(&file);
        return st;
    }
    *out = tl_none();
    return tl_file_commit(&file, ev->diag);
}

static tl_status system_error(tl_eval *ev, tl_code code, const char *verb,
                              const char *path)
{
    return tl_fail(ev->diag, code, "cannot %s %s: %s", verb,
                   tl_path_str(path).s, strerror(errno));
}

static bool write_all(int fd, const char *s, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, s, len);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            s += n;
            len -= (size_t)n;
        }
    }
    return true;
}

tl_status tl_bi_files_append(tl_eval *ev, const tl_builtin *self,
                             tl_value *args, tl_value *out)
{
    const tl_str *path = args[0].str, *text = args[1].str;
    bool written;
    int fd;

    (void)self;
    TL_TRY(tl_path_check(path->data, path->len, ev->diag));
    fd = open(path->data,
              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
        return system_error(ev, TL_E0707, "write", path->data);
    }
    written = write_all(fd, text->data, text->len);
    if (close(fd) != 0 || !written) {
        return system_error(ev, TL_E0707, "write", path->data);
    }
    *out = tl_none();
    return TL_OK;
}

/* ---- folders and paths ------------------------------------------------- */

tl_status tl_bi_files_exists(tl_eval *ev, const tl_builtin *self,
                             tl_value *args, tl_value *out)
{
    struct stat info;

    (void)self;
    TL_TRY(tl_path_check(args[0].str->data, args[0].str->len,
                         ev->diag));
    *out = tl_bool_value(stat(args[0].str->data, &info) == 0);
    return TL_OK;
}

static tl_status read_names(tl_eval *ev, DIR *dir, tl_value list)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)) != NULL) {
        tl_value name;
        tl_bytes bytes;

        if (entry->d_name[0] == '.') {
            continue;
        }
        bytes = (tl_bytes){.data = (char *)(uintptr_t)entry->d_name,
                           .size = strlen(entry->d_name)};
        TL_TRY(check_utf8(ev, "the name of a file", &bytes));
        TL_TRY(tl_str_new(&name, bytes.data, bytes.size, ev->diag));
        TL_TRY(tl_list_push_take(list.seq, name, ev->diag));
    }
    return TL_OK;
}

tl_status tl_bi_files_list(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    tl_value list = tl_empty();
    tl_status st;
    DIR *dir;

    (void)self;
    TL_TRY(tl_path_check(args[0].str->data, args[0].str->len,
                         ev->diag));
    dir = opendir(args[0].str->data);
    if (dir == NULL) {
        return system_error(ev, TL_E0701, "list", args[0].str->data);
    }
    TL_GOTO(st, tl_seq_alloc(&list, TL_V_LIST, 0, ev->diag));
    TL_GOTO(st, read_names(ev, dir, list));
    st = tl_sort_list(ev, list, tl_none(), false, out);
out:
    closedir(dir);
    tl_unref(list);
    return st;
}

/* A part that starts with "/" starts anew, as in Python. */
tl_status tl_bi_files_join(tl_eval *ev, const tl_builtin *self,
                           tl_value *args, tl_value *out)
{
    const tl_seq *parts = args[0].seq;
    tl_status st;
    tl_buf path;

    (void)self;
    tl_buf_init(&path);
    for (size_t i = 0; i < parts->len; i++) {
        const tl_str *part = parts->items[i].str;

        if (part->data[0] == '/') {
            tl_buf_clear(&path);
        } else if (path.len > 0 && path.data[path.len - 1] != '/') {
            tl_buf_putc(&path, '/');
        }
        tl_buf_add(&path, part->data, part->len);
    }
    st = tl_str_from_buf(out, &path, ev->diag);
    tl_buf_fini(&path);
    return st;
}
