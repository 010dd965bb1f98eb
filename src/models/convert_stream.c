/* SPDX-License-Identifier: MIT */
/* Models that come through callbacks. Readers look at a file here and there and writers ask for tensors in an order of
 * their own, so a stream is put into a temporary file first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/models_impl.h"

#define PIECE ((size_t)65536)

static enum sotto_status failed(enum sotto_status code, const char * path) {
    return sotto_fail(code, "sotto_convert_stream: %s: %s", path, strerror(errno));
}

static enum sotto_status write_all(int fd, const char * path, const uint8_t * bytes, size_t n) {
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return failed(SOTTO_E_GGUF_IO_WRITE, path);
        bytes += written;
        n -= (size_t)written;
    }
    return SOTTO_OK;
}

static enum sotto_status copy(const struct sotto_model_stream * in, int fd, const char * path, uint8_t * piece) {
    enum sotto_status status = SOTTO_OK;
    size_t n = PIECE;
    while (status == SOTTO_OK && n == PIECE) {
        n = in->read(in->user_data, piece, PIECE);
        if (n > PIECE || (n < PIECE && !in->eof(in->user_data)))
            return sotto_fail(SOTTO_E_IO, "sotto_convert_stream: reading failed");
        status = write_all(fd, path, piece, n);
    }
    return status;
}

static enum sotto_status fill(const struct sotto_model_stream * in, int fd, const char * path,
                              const struct sotto_allocator * allocator) {
    uint8_t * piece = sotto_malloc(allocator, PIECE, 1);
    enum sotto_status status = piece != NULL ? copy(in, fd, path, piece) : SOTTO_E_MEMORY;
    sotto_mfree(allocator, piece, PIECE, 1);
    if (close(fd) != 0 && status == SOTTO_OK)
        status = failed(SOTTO_E_GGUF_IO_WRITE, path);
    return status;
}

static enum sotto_status convert(const struct sotto_model_stream * in, const char * out,
                                 const struct sotto_convert_params * params, const struct sotto_allocator * allocator) {
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    size_t size = n + sizeof(".in.XXXXXX");
    char * path = sotto_malloc(allocator, size, 1);
    if (path == NULL)
        return SOTTO_E_MEMORY;
    snprintf(path, size, "%.*s.in.XXXXXX", (int)n, out);
    int fd = mkstemp(path);
    enum sotto_status status = fd >= 0 ? fill(in, fd, path, allocator) : failed(SOTTO_E_GGUF_IO_OPEN, path);
    if (status == SOTTO_OK)
        status = sotto_convert(path, out, params);
    if (fd >= 0)
        unlink(path);
    sotto_mfree(allocator, path, size, 1);
    return status;
}

enum sotto_status sotto_convert_stream(const struct sotto_model_stream * in, const char * out,
                                       const struct sotto_convert_params * params) {
    if (in == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_convert_stream: in is NULL");
    if (in->size < sizeof(*in))
        return sotto_fail(SOTTO_E_PARAM, "sotto_convert_stream: in->size is %lu, expected %zu", (unsigned long)in->size,
                          sizeof(*in));
    enum sotto_status status = SOTTO_OK;
    if (in->read == NULL || in->eof == NULL || out == NULL)
        status = sotto_fail(SOTTO_E_NULLARG, "sotto_convert_stream: %s is NULL",
                            out == NULL        ? "out"
                            : in->read == NULL ? "in->read"
                                               : "in->eof");
    else if (strlen(out) > 4096)
        status = sotto_fail(SOTTO_E_PARAM, "sotto_convert_stream: the output's name has %zu bytes", strlen(out));
    const struct sotto_allocator * allocator = params != NULL ? params->allocator : NULL;
    if (status == SOTTO_OK)
        status = convert(in, out, params, allocator != NULL ? allocator : sotto_default_allocator());
    if (in->close != NULL)
        in->close(in->user_data);
    return status;
}
