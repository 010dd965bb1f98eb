/* SPDX-License-Identifier: MIT */
/* Writing a file atomically: a temporary one in the same folder, renamed over the target when it is complete. */
#define _FILE_OFFSET_BITS 64
#define _XOPEN_SOURCE     700 /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gguf/gguf_impl.h"
#include "gguf/gguf_file.h"

#define BUFFER ((size_t)65536)
#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

static enum sotto_status failed(enum sotto_status status, const char * path) {
    return sotto_i_gguf_fail(0, status, "sotto_gguf_write: %s: %s", path, strerror(errno));
}

static void release(struct gguf_file * out) {
    if (out->temp != out->target)
        sotto_mfree(out->allocator, out->temp, out->temp_size, 1);
    sotto_mfree(out->allocator, out->target, out->target_size, 1);
    sotto_mfree(out->allocator, out->buffer, BUFFER, 1);
    sotto_i_gguf_close_fd(out->fd);
}

/* Follow links; a name that leads nowhere stays as it is. */
static enum sotto_status find_target(struct gguf_file * out, const char * path) {
    out->target_size = strlen(path) + 1;
    if (out->target_size < PATH_MAX)
        out->target_size = PATH_MAX;
    out->target = sotto_malloc(out->allocator, out->target_size, 1);
    if (out->target == NULL)
        return SOTTO_E_MEMORY;
    if (realpath(path, out->target) == NULL)
        memcpy(out->target, path, strlen(path) + 1);
    return SOTTO_OK;
}

/* Only a regular file, or none, can be replaced; a link that still is one leads nowhere. */
static bool replaceable(const char * target, const struct stat * st, bool exists) {
    struct stat link;
    if (exists)
        return S_ISREG(st->st_mode);
    return lstat(target, &link) != 0 || !S_ISLNK(link.st_mode);
}

static enum sotto_status open_direct(struct gguf_file * out, mode_t mode) {
    out->temp = out->target;
    out->fd = open(out->target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    return out->fd >= 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_OPEN, out->target);
}

static enum sotto_status open_temp(struct gguf_file * out, mode_t mode) {
    static const char pattern[] = "%s.tmp.%ld.%08lx";
    out->temp_size = strlen(out->target) + sizeof(pattern) + 32;
    out->temp = sotto_malloc(out->allocator, out->temp_size, 1);
    if (out->temp == NULL)
        return SOTTO_E_MEMORY;
    struct timespec now = { 0, 0 };
    timespec_get(&now, TIME_UTC);
    unsigned long random = (unsigned long)now.tv_nsec ^ (unsigned long)(uintptr_t)out;
    for (int i = 0; i < 100; i++) {
        random = random * 1664525u + 1013904223u;
        snprintf(out->temp, out->temp_size, pattern, out->target, (long)getpid(), random & 0xFFFFFFFFu);
        out->fd = open(out->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (out->fd >= 0 || errno != EEXIST)
            break;
    }
    return out->fd >= 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_OPEN, out->temp);
}

static enum sotto_status begin(struct gguf_file * out, const char * path) {
    enum sotto_status status = find_target(out, path);
    if (status != SOTTO_OK)
        return status;
    out->buffer = sotto_malloc(out->allocator, BUFFER, 1);
    if (out->buffer == NULL)
        return SOTTO_E_MEMORY;
    struct stat st;
    bool exists = stat(out->target, &st) == 0;
    mode_t mode = out->params.mode != 0 ? (mode_t)out->params.mode : 0666;
    if ((out->params.flags & SOTTO_GGUF_WRITE_NO_ATOMIC) != 0 || !replaceable(out->target, &st, exists))
        return open_direct(out, mode);
    status = open_temp(out, mode);
    if (status == SOTTO_OK && exists && (out->params.flags & SOTTO_GGUF_WRITE_KEEP_MODE) != 0 &&
        fchmod(out->fd, st.st_mode & 07777) != 0)
        status = failed(SOTTO_E_GGUF_IO_WRITE, out->temp);
    if (status != SOTTO_OK && out->fd >= 0)
        unlink(out->temp);
    return status;
}

enum sotto_status sotto_i_gguf_file_open(struct gguf_file * out, const struct sotto_allocator * allocator,
                                         const char * path, const struct sotto_gguf_write_params * params) {
    *out = (struct gguf_file){ .allocator = allocator, .params = *params, .fd = -1 };
    enum sotto_status status = begin(out, path);
    if (status != SOTTO_OK)
        release(out);
    return status;
}

static enum sotto_status write_all(struct gguf_file * out, const void * data, size_t n) {
    const char * bytes = data;
    while (n > 0) {
        ssize_t r = write(out->fd, bytes, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r == 0)
            errno = ENOSPC;
        if (r <= 0)
            return failed(SOTTO_E_GGUF_IO_WRITE, out->target);
        bytes += r;
        n -= (size_t)r;
    }
    return SOTTO_OK;
}

static enum sotto_status flush(struct gguf_file * out) {
    size_t n = out->fill;
    out->fill = 0;
    return write_all(out, out->buffer, n);
}

enum sotto_status sotto_i_gguf_file_put(struct gguf_file * out, const void * data, size_t n) {
    if (n > BUFFER - out->fill) {
        enum sotto_status status = flush(out);
        if (status != SOTTO_OK)
            return status;
    }
    if (n > BUFFER)
        return write_all(out, data, n);
    memcpy(out->buffer + out->fill, data, n);
    out->fill += n;
    return SOTTO_OK;
}

static enum sotto_status sync_folder(struct gguf_file * out) {
    char * slash = strrchr(out->target, '/');
    const char * folder = ".";
    if (slash != NULL) {
        slash[slash == out->target ? 1 : 0] = 0;
        folder = out->target;
    }
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(SOTTO_E_GGUF_IO_SYNC, folder);
    enum sotto_status status = fsync(fd) == 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_SYNC, folder);
    close(fd);
    return status;
}

static enum sotto_status complete(struct gguf_file * out) {
    bool sync = (out->params.flags & SOTTO_GGUF_WRITE_FSYNC) != 0;
    enum sotto_status status = flush(out);
    if (status != SOTTO_OK)
        return status;
    if (sync && fsync(out->fd) != 0)
        return failed(SOTTO_E_GGUF_IO_SYNC, out->target);
    int fd = out->fd;
    out->fd = -1;
    if (close(fd) != 0)
        return failed(SOTTO_E_GGUF_IO_WRITE, out->target);
    if (out->temp != out->target && rename(out->temp, out->target) != 0)
        return failed(SOTTO_E_GGUF_IO_RENAME, out->target);
    return SOTTO_OK;
}

enum sotto_status sotto_i_gguf_file_finish(struct gguf_file * out, enum sotto_status status) {
    if (status == SOTTO_OK)
        status = complete(out);
    if (status != SOTTO_OK && out->temp != out->target)
        unlink(out->temp);
    if (status == SOTTO_OK && (out->params.flags & SOTTO_GGUF_WRITE_FSYNC) != 0)
        status = sync_folder(out);
    release(out);
    return status;
}
