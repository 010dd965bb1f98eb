/* SPDX-License-Identifier: MIT */
/* Files of a model: one big one, whole or in numbered parts, read from anywhere; and small ones read at once. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/models_impl.h"

/* "<folder>/<name>", or the name alone, and room for ".part<n>". */
static char * join(const struct sotto_allocator * allocator, const char * folder, const char * name, size_t * size) {
    *size = (folder != NULL ? strlen(folder) : 0) + strlen(name) + 32;
    char * path = sotto_malloc(allocator, *size, 1);
    if (path != NULL)
        snprintf(path, *size, "%s%s%s", folder != NULL ? folder : "", folder != NULL ? "/" : "", name);
    return path;
}

static enum sotto_status failed(const char * path) {
    return sotto_fail(SOTTO_E_IO, "sotto_convert: %s: %s", path, strerror(errno));
}

/* Open for reading; -1 with errno set. Folders are refused. */
static int open_file(const char * path, uint64_t * size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *size = (uint64_t)st.st_size;
        return fd;
    }
    close(fd);
    errno = EISDIR;
    return -1;
}

static enum sotto_status add_part(struct models_stream * stream, int fd, uint64_t size) {
    if (stream->n_parts == stream->cap_parts) {
        size_t cap = stream->cap_parts + 8;
        struct models_part * parts =
            sotto_realloc(stream->allocator, stream->parts, stream->cap_parts, cap, sizeof(*parts));
        if (parts == NULL) {
            close(fd);
            return SOTTO_E_MEMORY;
        }
        stream->parts = parts;
        stream->cap_parts = cap;
    }
    stream->parts[stream->n_parts++] = (struct models_part){ fd, stream->size, size };
    stream->size += size;
    return SOTTO_OK;
}

/* Parts 1, 2, ... as far as they exist. */
static enum sotto_status open_parts(struct models_stream * stream) {
    char * end = stream->path + strlen(stream->path);
    stream->in_parts = true;
    enum sotto_status status = SOTTO_OK;
    while (status == SOTTO_OK) {
        uint64_t size = 0;
        snprintf(end, 32, ".part%zu", stream->n_parts + 1);
        int fd = open_file(stream->path, &size);
        if (fd < 0 && errno == ENOENT) {
            *end = 0; /* without a first part it is the whole file that is missing */
            return stream->n_parts > 0 ? SOTTO_OK : failed(stream->path);
        }
        status = fd < 0 ? failed(stream->path) : add_part(stream, fd, size);
    }
    *end = 0;
    return status;
}

enum sotto_status sotto_i_models_stream_open(struct models_stream * stream, const struct sotto_allocator * allocator,
                                             const char * folder, const char * name) {
    *stream = (struct models_stream){ .allocator = allocator };
    stream->path = join(allocator, folder, name, &stream->path_size);
    if (stream->path == NULL)
        return SOTTO_E_MEMORY;
    uint64_t size = 0;
    int fd = open_file(stream->path, &size);
    if (fd >= 0)
        return add_part(stream, fd, size);
    return errno == ENOENT && folder != NULL ? open_parts(stream) : failed(stream->path);
}

enum sotto_status sotto_i_models_truncated(const struct models_stream * stream, uint64_t at, uint64_t need,
                                           const char * what) {
    char missing[64] = "";
    if (stream->in_parts)
        snprintf(missing, sizeof(missing), "; there is no .part%zu", stream->n_parts + 1);
    return sotto_fail(SOTTO_E_MODEL_TRUNCATED,
                      "sotto_convert: %s: %s at byte %llu needs %llu bytes, the file ends at %llu%s", stream->path,
                      what, (unsigned long long)at, (unsigned long long)need, (unsigned long long)stream->size,
                      missing);
}

static enum sotto_status read_part(const char * path, const struct models_part * part, uint64_t at, char * dst,
                                   size_t n) {
    while (n > 0) {
        ssize_t r = pread(part->fd, dst, n < (1u << 30) ? n : (1u << 30), (off_t)at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r == 0)
            errno = EIO;
        if (r <= 0)
            return failed(path);
        dst += r;
        at += (uint64_t)r;
        n -= (size_t)r;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_models_stream_read(const struct models_stream * stream, uint64_t at, void * dst, size_t n,
                                             const char * what) {
    if (at > stream->size || n > stream->size - at)
        return sotto_i_models_truncated(stream, at, n, what);
    char * out = dst;
    for (size_t i = 0; i < stream->n_parts && n > 0; i++) {
        const struct models_part * part = &stream->parts[i];
        if (at >= part->start + part->size)
            continue;
        uint64_t left = part->start + part->size - at;
        size_t piece = n < left ? n : (size_t)left;
        enum sotto_status status = read_part(stream->path, part, at - part->start, out, piece);
        if (status != SOTTO_OK)
            return status;
        out += piece;
        at += piece;
        n -= piece;
    }
    return SOTTO_OK;
}

void sotto_i_models_stream_close(struct models_stream * stream) {
    for (size_t i = 0; i < stream->n_parts; i++)
        close(stream->parts[i].fd);
    sotto_mfree(stream->allocator, stream->parts, stream->cap_parts, sizeof(*stream->parts));
    sotto_mfree(stream->allocator, stream->path, stream->path_size, 1);
    *stream = (struct models_stream){ .allocator = stream->allocator };
}

uint64_t sotto_i_models_left(const struct models_cursor * c) { return c->stream->size - c->at; }

enum sotto_status sotto_i_models_next(struct models_cursor * c, void * dst, size_t n, const char * what) {
    if (n > sotto_i_models_left(c))
        return sotto_i_models_truncated(c->stream, c->at, n, what);
    if (c->at < c->window_at || c->at + n > c->window_at + c->window_len) {
        uint64_t left = sotto_i_models_left(c);
        c->window_at = c->at;
        c->window_len = left < sizeof(c->window) ? (size_t)left : sizeof(c->window);
        enum sotto_status status = sotto_i_models_stream_read(c->stream, c->at, c->window, c->window_len, what);
        if (status != SOTTO_OK) {
            c->window_len = 0;
            return status;
        }
    }
    memcpy(dst, c->window + (c->at - c->window_at), n);
    c->at += n;
    return SOTTO_OK;
}

enum sotto_status sotto_i_models_number(struct models_cursor * c, uint64_t * value, size_t width, const char * what) {
    uint8_t bytes[8];
    enum sotto_status status = sotto_i_models_next(c, bytes, width, what);
    *value = 0;
    for (size_t i = 0; i < width && status == SOTTO_OK; i++)
        *value |= (uint64_t)bytes[i] << (8 * i);
    return status;
}

enum sotto_status sotto_i_models_exists(const struct sotto_allocator * allocator, const char * folder,
                                        const char * name, bool * exists) {
    size_t size;
    char * path = join(allocator, folder, name, &size);
    if (path == NULL)
        return SOTTO_E_MEMORY;
    *exists = access(path, F_OK) == 0;
    sotto_mfree(allocator, path, size, 1);
    return SOTTO_OK;
}

static enum sotto_status read_text(const struct sotto_allocator * allocator, const char * path, size_t most,
                                   char ** text, size_t * size) {
    uint64_t bytes = 0;
    int fd = open_file(path, &bytes);
    if (fd < 0)
        return failed(path);
    struct models_part part = { fd, 0, bytes };
    enum sotto_status status = SOTTO_OK;
    if (bytes > most)
        status = sotto_fail(SOTTO_E_LIMIT, "sotto_convert: %s has %llu bytes, at most %llu are read", path,
                            (unsigned long long)bytes, (unsigned long long)most);
    if (status == SOTTO_OK) {
        *size = (size_t)bytes + 1;
        *text = sotto_malloc(allocator, *size, 1);
        status = *text != NULL ? read_part(path, &part, 0, *text, *size - 1) : SOTTO_E_MEMORY;
        if (status == SOTTO_OK)
            (*text)[*size - 1] = 0;
    }
    close(fd);
    return status;
}

enum sotto_status sotto_i_models_read_text(const struct sotto_allocator * allocator, const char * folder,
                                           const char * name, size_t most, char ** text, size_t * size) {
    *text = NULL;
    size_t path_size;
    char * path = join(allocator, folder, name, &path_size);
    if (path == NULL)
        return SOTTO_E_MEMORY;
    enum sotto_status status = read_text(allocator, path, most, text, size);
    sotto_mfree(allocator, path, path_size, 1);
    if (status != SOTTO_OK && *text != NULL) {
        sotto_mfree(allocator, *text, *size, 1);
        *text = NULL;
    }
    return status;
}

struct models_shown sotto_i_models_show(const char * text, size_t len) {
    struct models_shown shown;
    size_t n = 0;
    for (; n < len && n < 60; n++)
        shown.text[n] = text[n] >= 0x20 && text[n] < 0x7F ? text[n] : '?';
    shown.text[n] = 0;
    return shown;
}
