/* SPDX-License-Identifier: MIT */
/* Writing a file atomically: a temporary one in the same folder, renamed over the target when it is complete. What is no
 * regular file (a pipe, a device) cannot be replaced and is written directly. */
#define _FILE_OFFSET_BITS 64
#define _XOPEN_SOURCE     700 /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "models/models_impl.h"

#define BUFFER ((size_t)65536)
#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

static enum sotto_status failed(enum sotto_status status, const char * path) {
    return sotto_fail(status, "sotto_convert: %s: %s", path, strerror(errno));
}

static void release(struct models_out * out) {
    sotto_mfree(out->allocator, out->temp, out->temp_size, 1);
    sotto_mfree(out->allocator, out->target, out->target_size, 1);
    sotto_mfree(out->allocator, out->buffer, BUFFER, 1);
    if (out->fd >= 0)
        close(out->fd);
}

/* Follow links; a name that leads nowhere stays as it is. */
static enum sotto_status find_target(struct models_out * out, const char * path) {
    size_t size = strlen(path) + 1;
    out->target_size = size > PATH_MAX ? size : PATH_MAX;
    out->target = sotto_malloc(out->allocator, out->target_size, 1);
    if (out->target == NULL)
        return SOTTO_E_MEMORY;
    if (realpath(path, out->target) == NULL)
        memcpy(out->target, path, size);
    return SOTTO_OK;
}

/* Nothing there, or a regular file; a link that still is one leads nowhere. */
static bool replaceable(const char * target) {
    struct stat st;
    return lstat(target, &st) != 0 || S_ISREG(st.st_mode);
}

static enum sotto_status open_temp(struct models_out * out) {
    out->temp_size = strlen(out->target) + 64;
    out->temp = sotto_malloc(out->allocator, out->temp_size, 1);
    if (out->temp == NULL)
        return SOTTO_E_MEMORY;
    struct timespec now = { 0, 0 };
    timespec_get(&now, TIME_UTC);
    unsigned long random = (unsigned long)now.tv_nsec ^ (unsigned long)(uintptr_t)out;
    for (int i = 0; i < 100; i++) {
        random = random * 1664525u + 1013904223u;
        snprintf(out->temp, out->temp_size, "%s.tmp.%ld.%08lx", out->target, (long)getpid(), random & 0xFFFFFFFFu);
        out->fd = open(out->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd >= 0 || errno != EEXIST)
            break;
    }
    return out->fd >= 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_OPEN, out->temp);
}

static enum sotto_status begin(struct models_out * out, const char * path) {
    enum sotto_status status = find_target(out, path);
    if (status != SOTTO_OK)
        return status;
    out->buffer = sotto_malloc(out->allocator, BUFFER, 1);
    if (out->buffer == NULL)
        return SOTTO_E_MEMORY;
    if (replaceable(out->target))
        return open_temp(out);
    out->fd = open(out->target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return out->fd >= 0 ? SOTTO_OK : failed(SOTTO_E_GGUF_IO_OPEN, out->target);
}

enum sotto_status sotto_i_models_out_open(struct models_out * out, const struct sotto_allocator * allocator,
                                          const char * path) {
    *out = (struct models_out){ .allocator = allocator, .fd = -1 };
    enum sotto_status status = begin(out, path);
    if (status != SOTTO_OK)
        release(out);
    return status;
}

static enum sotto_status write_all(struct models_out * out, const void * data, size_t n) {
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

static enum sotto_status flush(struct models_out * out) {
    size_t n = out->fill;
    out->fill = 0;
    return write_all(out, out->buffer, n);
}

enum sotto_status sotto_i_models_out_put(struct models_out * out, const void * data, size_t n) {
    enum sotto_status status = n > BUFFER - out->fill ? flush(out) : SOTTO_OK;
    if (status != SOTTO_OK || n > BUFFER)
        return status == SOTTO_OK ? write_all(out, data, n) : status;
    memcpy(out->buffer + out->fill, data, n);
    out->fill += n;
    return SOTTO_OK;
}

static enum sotto_status complete(struct models_out * out) {
    enum sotto_status status = flush(out);
    if (status != SOTTO_OK)
        return status;
    int fd = out->fd;
    out->fd = -1;
    if (close(fd) != 0)
        return failed(SOTTO_E_GGUF_IO_WRITE, out->target);
    if (out->temp != NULL && rename(out->temp, out->target) != 0)
        return failed(SOTTO_E_GGUF_IO_RENAME, out->target);
    return SOTTO_OK;
}

enum sotto_status sotto_i_models_out_finish(struct models_out * out, enum sotto_status status) {
    if (status == SOTTO_OK)
        status = complete(out);
    if (status != SOTTO_OK && out->temp != NULL)
        unlink(out->temp);
    release(out);
    return status;
}
