/* file_out.c - replacing a file at once or not at all.
 *
 * The order (Pillai et al., "All file systems are not created equal", OSDI
 * 2014): write the temporary file, fsync it, rename it, fsync the folder.  A
 * file without a name gets one between the second and the third step. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE */
#endif

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/mem.h"
#include "runtime/io/file.h"

enum {
    TEMP_TRIES = 100,
    TEMP_ROOM = 40 /* bytes of a hidden name, and of "." */
};

/* E0707 with the reason that errno gives; the free space if it is that. */
static tl_status cannot_write(const tl_file_out *f, const char *what,
                              tl_diag *diag)
{
    int error = errno;
    struct statvfs fs;
    tl_status st = tl_fail(diag, TL_E0707, "cannot %s `%s`: %s", what,
                           tl_path_str(f->path).s, strerror(error));

    if ((error == ENOSPC || error == EDQUOT) && f->fd >= 0 &&
        fstatvfs(f->fd, &fs) == 0) {
        tl_diag_note(diag, "%llu bytes were written, %llu are free",
                     (unsigned long long)f->written,
                     (unsigned long long)fs.f_bavail * fs.f_frsize);
    }
    if (!f->published) {
        tl_diag_note(diag, "a file of this name from before is unchanged");
    }
    return st;
}

/* Length of the folder part of a path, with its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Give the file its hidden name, one that nobody else uses: two writers of one
 * path must never share it.  `take` claims it: 0, or -1 and errno. */
static tl_status take_name(tl_file_out *f, mode_t mode,
                           int (*take)(tl_file_out *, mode_t),
                           const char *what, tl_diag *diag)
{
    size_t folder = folder_length(f->path);

    for (int i = 0; i < TEMP_TRIES; i++) {
        uint64_t id;

        if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
            break;
        }
        snprintf(f->temp, folder + TEMP_ROOM, "%.*s.tlang-%016llx.tmp",
                 (int)folder, f->path, (unsigned long long)id);
        if (take(f, mode) == 0) {
            f->named = true;
            return TL_OK;
        }
        if (errno != EEXIST && errno != EINTR) {
            break;
        }
    }
    return cannot_write(f, what, diag);
}

static int create_named(tl_file_out *f, mode_t mode)
{
    f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return f->fd < 0 ? -1 : 0;
}

/* What /proc calls the open file. */
typedef struct fd_path {
    char s[40];
} fd_path;

static fd_path path_of_fd(int fd)
{
    fd_path p;

    snprintf(p.s, sizeof(p.s), "/proc/self/fd/%d", fd);
    return p;
}

static int link_unnamed(tl_file_out *f, mode_t mode)
{
    (void)mode;
    return linkat(AT_FDCWD, path_of_fd(f->fd).s, AT_FDCWD, f->temp,
                  AT_SYMLINK_FOLLOW);
}

/* A file without a name in `folder`; false where that cannot be had, or could
 * not be given a name later. */
static bool create_unnamed(tl_file_out *f, const char *folder, mode_t mode)
{
#ifdef O_TMPFILE
    f->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (f->fd >= 0 && access(path_of_fd(f->fd).s, F_OK) != 0) {
        close(f->fd);
        f->fd = -1;
    }
    return f->fd >= 0;
#else
    (void)f;
    (void)folder;
    (void)mode;
    return false;
#endif
}

/* Open the file that is written, in the folder of `path`. */
static tl_status open_temp(tl_file_out *f, mode_t mode, tl_diag *diag)
{
    size_t folder = folder_length(f->path);

    f->temp = tl_malloc(folder + TEMP_ROOM);
    if (!f->temp) {
        return tl_fail_memory(diag, "a file name", folder + TEMP_ROOM);
    }
    snprintf(f->temp, folder + TEMP_ROOM, "%.*s.", (int)folder, f->path);
    return create_unnamed(f, f->temp, mode)
               ? TL_OK
               : take_name(f, mode, create_named, "write", diag);
}

/* The name to replace: what a symbolic link points to stays linked. */
static tl_status resolve(tl_file_out *f, const char *path, mode_t *mode,
                         tl_diag *diag)
{
    char real[PATH_MAX];
    struct stat info;

    *mode = 0666;
    if (realpath(path, real) && stat(real, &info) == 0) {
        if (!S_ISREG(info.st_mode)) {
            return tl_fail(diag, TL_E0707, "cannot write `%s`: it is %s",
                           tl_path_str(path).s,
                           S_ISDIR(info.st_mode) ? "a folder"
                                                 : "not a regular file");
        }
        *mode = info.st_mode & 0777;
        path = real;
    }
    f->path = tl_strndup(path, strlen(path));
    if (!f->path) {
        return tl_fail_memory(diag, "a file name", strlen(path) + 1);
    }
    return TL_OK;
}

tl_status tl_file_create(tl_file_out *f, const char *path, tl_diag *diag)
{
    mode_t mode;
    tl_status st;

    *f = (tl_file_out){.fd = -1};
    st = resolve(f, path, &mode, diag);
    if (st == TL_OK) {
        st = open_temp(f, mode, diag);
    }
    if (st != TL_OK) {
        tl_file_abort(f);
    }
    return st;
}

tl_status tl_file_write(tl_file_out *f, const void *bytes, size_t n,
                        tl_diag *diag)
{
    const char *p = bytes;

    while (n > 0) {
        size_t part = n < ((size_t)1 << 30) ? n : (size_t)1 << 30;
        ssize_t put = write(f->fd, p, part);

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return cannot_write(f, "write", diag);
        }
        p += put;
        n -= (size_t)put;
        f->written += (uint64_t)put;
    }
    return TL_OK;
}

/* fsync of the folder, so that the new name survives a power loss. */
static tl_status sync_folder(tl_file_out *f, tl_diag *diag)
{
    size_t n = folder_length(f->path);
    char folder[PATH_MAX];
    int fd, rc;

    snprintf(folder, sizeof(folder), "%.*s", (int)n, n ? f->path : "");
    fd = open(n ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return cannot_write(f, "sync the folder of", diag);
    }
    rc = fsync(fd);
    close(fd);
    /* Some network file systems cannot: their rename is durable or not,
     * whatever we do. */
    if (rc != 0 && errno != EINVAL) {
        return cannot_write(f, "sync the folder of", diag);
    }
    return TL_OK;
}

/* The new file takes the place of the old one. */
static tl_status replace(tl_file_out *f, tl_diag *diag)
{
    int rc;

    if (!f->named) {
        TL_TRY(take_name(f, 0, link_unnamed, "name", diag));
    }
    rc = close(f->fd);
    f->fd = -1;
    if (rc != 0) {
        return cannot_write(f, "close", diag);
    }
    if (rename(f->temp, f->path) != 0) {
        return cannot_write(f, "rename the new file to", diag);
    }
    f->named = false;
    f->published = true;
    return TL_OK;
}

static tl_status publish(tl_file_out *f, tl_diag *diag)
{
    sigset_t all, before;
    tl_status st;

    if (fsync(f->fd) != 0) {
        return cannot_write(f, "sync", diag);
    }
    /* no signal between the hidden name and the final one */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    st = replace(f, diag);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    TL_TRY(st);
    return sync_folder(f, diag);
}

tl_status tl_file_commit(tl_file_out *f, tl_diag *diag)
{
    tl_status st = publish(f, diag);

    tl_file_abort(f);
    return st;
}

void tl_file_abort(tl_file_out *f)
{
    if (f->fd >= 0) {
        close(f->fd);
    }
    if (f->named) {
        unlink(f->temp);
    }
    tl_free(f->temp);
    tl_free(f->path);
    *f = (tl_file_out){.fd = -1};
}
