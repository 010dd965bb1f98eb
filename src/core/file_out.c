/* SPDX-License-Identifier: MIT */
/* Writing a file atomically: a temporary one in the same folder, renamed over the target when it is complete. */
#define _FILE_OFFSET_BITS 64
#define _XOPEN_SOURCE     700 /* realpath */
#include "sotto/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

enum { BUFFER = 65536 };

struct sotto_file {
    const struct sotto_allocator * allocator;
    uint32_t flags;
    mode_t mode;
    enum sotto_status status; /* the first failure */
    char * target;            /* what `path` names, links followed */
    char * temp;              /* what is written; NULL if that is the target itself */
    bool announced;           /* temp is among the names */
    size_t target_size, temp_size;
    FILE * stream; /* on fd and its owner; NULL until asked for */
    int fd;
    size_t fill;
    uint8_t buffer[BUFFER];
};

static enum sotto_status failed(enum sotto_status status, const char * function, const char * path) {
    return sotto_fail(status, "%s: %s: %s", function, path, strerror(errno));
}

/* ---- the names of temporary files, for those who end the process at once ---- */

enum { MOST_NAMES = 64 };
static _Atomic(char *) names[MOST_NAMES];

static bool announce(char * name) {
    for (int i = 0; i < MOST_NAMES; i++) {
        char * none = NULL;
        if (atomic_compare_exchange_strong(&names[i], &none, name))
            return true;
    }
    return false;
}

/* false: sotto_file_remove_temporaries has it at this moment, and it may not be freed. */
static bool withdraw(char * name) {
    for (int i = 0; i < MOST_NAMES; i++) {
        char * found = name;
        if (atomic_compare_exchange_strong(&names[i], &found, NULL))
            return true;
    }
    return false;
}

void sotto_file_remove_temporaries(void) {
    for (int i = 0; i < MOST_NAMES; i++) {
        char *name = atomic_exchange(&names[i], NULL), *none = NULL; /* nobody frees it meanwhile */
        if (name == NULL)
            continue;
        unlink(name);
        atomic_compare_exchange_strong(&names[i], &none, name);
    }
}

/* Close without a word, for a second error has nothing to add. */
static void release(struct sotto_file * file) {
    if (file->stream != NULL)
        fclose(file->stream);
    else if (file->fd >= 0)
        close(file->fd);
    if (!file->announced || withdraw(file->temp))
        sotto_mfree(file->allocator, file->temp, file->temp_size, 1);
    sotto_mfree(file->allocator, file->target, file->target_size, 1);
    sotto_mfree(file->allocator, file, 1, sizeof(*file));
}

/* ---- beginning ---- */

/* Follow links; a name that leads nowhere stays as it is. */
static enum sotto_status find_target(struct sotto_file * file, const char * path) {
    size_t size = strlen(path) + 1;
    file->target_size = size > PATH_MAX ? size : PATH_MAX;
    file->target = sotto_malloc(file->allocator, file->target_size, 1);
    if (file->target == NULL)
        return SOTTO_E_MEMORY;
    if (realpath(path, file->target) == NULL)
        memcpy(file->target, path, size);
    return SOTTO_OK;
}

static enum sotto_status open_direct(struct sotto_file * file) {
    file->fd = open(file->target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, file->mode);
    return file->fd >= 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_OPEN, "sotto_file_create", file->target);
}

static enum sotto_status open_temp(struct sotto_file * file) {
    file->temp_size = strlen(file->target) + 64;
    file->temp = sotto_malloc(file->allocator, file->temp_size, 1);
    if (file->temp == NULL)
        return SOTTO_E_MEMORY;
    struct timespec now = { 0, 0 };
    timespec_get(&now, TIME_UTC);
    unsigned long random = (unsigned long)now.tv_nsec ^ (unsigned long)(uintptr_t)file;
    for (int i = 0; i < 100; i++) {
        random = random * 1664525u + 1013904223u;
        snprintf(file->temp, file->temp_size, "%s.tmp.%ld.%08lx", file->target, (long)getpid(), random & 0xFFFFFFFFu);
        file->fd = open(file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file->mode);
        if (file->fd >= 0 || errno != EEXIST)
            break;
    }
    file->announced = file->fd >= 0 && announce(file->temp);
    return file->fd >= 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_OPEN, "sotto_file_create", file->target);
}

static enum sotto_status begin(struct sotto_file * file, const char * path) {
    enum sotto_status status = find_target(file, path);
    if (status != SOTTO_OK)
        return status;
    /* Only a regular file, or none, can be replaced; a link that still is one leads nowhere, and so does no name. */
    struct stat st;
    bool exists = lstat(file->target, &st) == 0;
    bool replaceable = path[0] != 0 && (!exists || S_ISREG(st.st_mode));
    if ((file->flags & SOTTO_FILE_NO_ATOMIC) != 0 || !replaceable)
        return open_direct(file);
    status = open_temp(file);
    if (status == SOTTO_OK && exists && (file->flags & SOTTO_FILE_KEEP_MODE) != 0 &&
        fchmod(file->fd, st.st_mode & 07777) != 0) {
        status = failed(SOTTO_E_GGUF_IO_WRITE, "sotto_file_create", file->target);
        unlink(file->temp);
    }
    return status;
}

static enum sotto_status check(const char * path, const struct sotto_file_params * params, struct sotto_file ** file) {
    static const char function[] = "sotto_file_create";
    const uint32_t known = SOTTO_FILE_FSYNC | SOTTO_FILE_NO_ATOMIC | SOTTO_FILE_KEEP_MODE;
    if (path == NULL || file == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "%s: %s is NULL", function, path == NULL ? "path" : "file");
    if (params != NULL && params->size < sizeof(*params))
        return sotto_fail(SOTTO_E_PARAM, "%s: params->size is %lu, expected %zu", function, (unsigned long)params->size,
                          sizeof(*params));
    if (params != NULL && (params->flags & ~known) != 0)
        return sotto_fail(SOTTO_E_PARAM, "%s: unknown bits in flags 0x%lx", function, (unsigned long)params->flags);
    return SOTTO_OK;
}

enum sotto_status sotto_file_create(const char * path, const struct sotto_file_params * params,
                                    struct sotto_file ** file) {
    if (file != NULL)
        *file = NULL;
    enum sotto_status status = check(path, params, file);
    if (status != SOTTO_OK)
        return status;
    const struct sotto_allocator * allocator = params != NULL ? params->allocator : NULL;
    struct sotto_file * f = sotto_malloc(allocator, 1, sizeof(*f));
    if (f == NULL)
        return SOTTO_E_MEMORY;
    f->allocator = allocator;
    f->flags = params != NULL ? params->flags : 0;
    f->mode = params != NULL && params->mode != 0 ? (mode_t)params->mode : 0666;
    f->status = SOTTO_OK;
    f->announced = false;
    f->target = f->temp = NULL;
    f->target_size = f->temp_size = 0;
    f->stream = NULL;
    f->fd = -1;
    f->fill = 0;
    status = begin(f, path);
    if (status == SOTTO_OK)
        *file = f;
    else
        release(f);
    return status;
}

/* ---- writing ---- */

static enum sotto_status write_all(struct sotto_file * file, const void * data, size_t n) {
    const char * bytes = data;
    while (n > 0) {
        ssize_t r = write(file->fd, bytes, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r == 0)
            errno = ENOSPC;
        if (r <= 0)
            return failed(SOTTO_E_GGUF_IO_WRITE, "sotto_file_write", file->target);
        bytes += r;
        n -= (size_t)r;
    }
    return SOTTO_OK;
}

static enum sotto_status flush(struct sotto_file * file) {
    size_t n = file->fill;
    file->fill = 0;
    return write_all(file, file->buffer, n);
}

static enum sotto_status put(struct sotto_file * file, const void * data, size_t n) {
    if (file->stream != NULL)
        return fwrite(data, 1, n, file->stream) == n ? SOTTO_OK
                                                     : failed(SOTTO_E_GGUF_IO_WRITE, "sotto_file_write", file->target);
    enum sotto_status status = n > BUFFER - file->fill ? flush(file) : SOTTO_OK;
    if (status != SOTTO_OK || n > BUFFER)
        return status == SOTTO_OK ? write_all(file, data, n) : status;
    memcpy(file->buffer + file->fill, data, n);
    file->fill += n;
    return SOTTO_OK;
}

enum sotto_status sotto_file_write(struct sotto_file * file, const void * data, size_t n) {
    if (file == NULL || (data == NULL && n > 0))
        return sotto_fail(SOTTO_E_NULLARG, "sotto_file_write: %s is NULL", file == NULL ? "file" : "data");
    if (file->status == SOTTO_OK && n > 0)
        file->status = put(file, data, n);
    return file->status;
}

FILE * sotto_file_stream(struct sotto_file * file) {
    if (file == NULL) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_file_stream: file is NULL");
        return NULL;
    }
    if (file->stream != NULL)
        return file->stream;
    if (file->status == SOTTO_OK)
        file->status = flush(file);
    if (file->status == SOTTO_OK && (file->stream = fdopen(file->fd, "w")) == NULL)
        file->status = failed(SOTTO_E_MEMORY, "sotto_file_stream", file->target);
    return file->stream;
}

/* ---- finishing ---- */

static enum sotto_status sync_folder(struct sotto_file * file) {
    char * slash = strrchr(file->target, '/');
    const char * folder = ".";
    if (slash != NULL) {
        slash[slash == file->target ? 1 : 0] = 0;
        folder = file->target;
    }
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failed(SOTTO_E_GGUF_IO_SYNC, "sotto_file_finish", folder);
    enum sotto_status status = fsync(fd) == 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_SYNC, "sotto_file_finish", folder);
    close(fd);
    return status;
}

static enum sotto_status flush_stream(struct sotto_file * file) {
    if (fflush(file->stream) != 0)
        return failed(SOTTO_E_GGUF_IO_WRITE, "sotto_file_finish", file->target);
    if (ferror(file->stream) != 0) /* its reason is lost */
        return sotto_fail(SOTTO_E_GGUF_IO_WRITE,
                          "sotto_file_finish: %s: not all of it could be written; is there room?", file->target);
    return SOTTO_OK;
}

static bool close_file(struct sotto_file * file) {
    FILE * stream = file->stream;
    int fd = file->fd;
    file->stream = NULL;
    file->fd = -1;
    return (stream != NULL ? fclose(stream) : close(fd)) == 0;
}

static enum sotto_status complete(struct sotto_file * file) {
    static const char function[] = "sotto_file_finish";
    enum sotto_status status = file->status;
    if (status == SOTTO_OK)
        status = file->stream != NULL ? flush_stream(file) : flush(file);
    if (status != SOTTO_OK)
        return status;
    if ((file->flags & SOTTO_FILE_FSYNC) != 0 && fsync(file->fd) != 0)
        return failed(SOTTO_E_GGUF_IO_SYNC, function, file->target);
    if (!close_file(file))
        return failed(SOTTO_E_GGUF_IO_WRITE, function, file->target);
    if (file->temp != NULL && rename(file->temp, file->target) != 0)
        return failed(SOTTO_E_GGUF_IO_RENAME, function, file->target);
    return SOTTO_OK;
}

enum sotto_status sotto_file_finish(struct sotto_file * file, enum sotto_status status) {
    if (file == NULL)
        return status;
    if (status == SOTTO_OK)
        status = complete(file);
    if (status != SOTTO_OK && file->temp != NULL)
        unlink(file->temp);
    if (status == SOTTO_OK && (file->flags & SOTTO_FILE_FSYNC) != 0)
        status = sync_folder(file);
    release(file);
    return status;
}
