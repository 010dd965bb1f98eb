/* SPDX-License-Identifier: MIT */
/* Where the bytes of a container come from: a path, a stream, memory or a callback, behind one small window.
 *
 *   source  ....delivered....|--window--|........not fetched........|
 *                            pos        pos + window_len            size
 *
 * Memory is its own window. The others fetch WINDOW bytes at a time; large reads go past the window. Every byte is
 * fetched once, in ascending order. */
#include <string.h>

#include "gguf/gguf_impl.h"

#define WINDOW    ((size_t)16384)
#define MAX_PIECE ((size_t)1 << 30)

uint64_t sotto_i_gguf_left(const struct gguf_source * source) { return source->size - source->pos; }

static enum sotto_status ended(const struct gguf_source * source) {
    if (source->callback != NULL)
        return sotto_i_gguf_fail(source->pos, SOTTO_E_GGUF_TRUNCATED,
                                 "gguf: %s ended, %llu bytes at most were expected", source->name,
                                 (unsigned long long)source->size);
    return sotto_i_gguf_fail(source->pos, SOTTO_E_GGUF_IO_READ,
                             "gguf: %s became shorter than its %llu bytes while it was read; read it again when it is "
                             "no longer changed",
                             source->name, (unsigned long long)source->size);
}

/* Fetch up to n bytes that follow the window, which is empty. */
static enum sotto_status fetch(struct gguf_source * source, void * dst, size_t n, size_t * got) {
    *got = 0;
    if (!source->ended) {
        enum sotto_status status = source->fetch(source, dst, source->pos, n, got);
        if (status != SOTTO_OK)
            return status;
        source->ended = *got < n;
    }
    return *got > 0 ? SOTTO_OK : ended(source);
}

static enum sotto_status refill(struct gguf_source * source) {
    if (source->own == NULL) {
        source->own = sotto_malloc(source->allocator, WINDOW, 1);
        if (source->own == NULL)
            return SOTTO_E_MEMORY;
    }
    uint64_t left = sotto_i_gguf_left(source);
    source->window = source->own;
    return fetch(source, source->own, left < WINDOW ? (size_t)left : WINDOW, &source->window_len);
}

static void deliver(struct gguf_source * source, size_t n) {
    source->window += n;
    source->window_len -= n;
    source->pos += n;
}

enum sotto_status sotto_i_gguf_read(struct gguf_source * source, void * dst, uint64_t n) {
    uint8_t * out = dst;
    while (n > 0) {
        enum sotto_status status = SOTTO_OK;
        size_t got = n < source->window_len ? (size_t)n : source->window_len;
        if (got > 0) {
            memcpy(out, source->window, got);
            deliver(source, got);
        } else if (n < WINDOW) {
            status = refill(source);
        } else {
            status = fetch(source, out, n < MAX_PIECE ? (size_t)n : MAX_PIECE, &got);
            source->pos += got;
        }
        if (status != SOTTO_OK)
            return status;
        out += got;
        n -= got;
    }
    return SOTTO_OK;
}

void sotto_i_gguf_skip(struct gguf_source * source, uint64_t n) {
    size_t inside = n < source->window_len ? (size_t)n : source->window_len;
    if (inside > 0)
        deliver(source, inside);
    source->pos += n - inside;
}

void sotto_i_gguf_source_buffer(struct gguf_source * source, const void * data, size_t size, uint64_t start) {
    size_t skip = start < size ? (size_t)start : size;
    source->name = "buffer";
    source->size = size - skip;
    source->start = start;
    source->window = (const uint8_t *)data + skip;
    source->window_len = size - skip;
    source->ended = true;
}

static enum sotto_status fetch_callback(struct gguf_source * source, void * dst, uint64_t offset, size_t n,
                                        size_t * got) {
    *got = 0;
    while (*got < n) {
        size_t piece = n - *got;
        if (source->max_chunk > 0 && piece > source->max_chunk)
            piece = source->max_chunk;
        size_t r = source->callback(source->user_data, (char *)dst + *got, offset + *got, piece);
        if (r > piece)
            return sotto_i_gguf_fail(offset + *got, SOTTO_E_GGUF_IO_READ,
                                     "gguf: the read callback says it delivered %zu bytes of the %zu asked for", r,
                                     piece);
        *got += r;
        if (r < piece)
            break;
    }
    return SOTTO_OK;
}

void sotto_i_gguf_source_callback(struct gguf_source * source, sotto_gguf_reader_callback_t callback, void * user_data,
                                  size_t max_chunk, uint64_t size) {
    source->name = "callback";
    source->callback = callback;
    source->user_data = user_data;
    source->max_chunk = max_chunk;
    source->size = size;
    source->fetch = fetch_callback;
}

void sotto_i_gguf_source_close(struct gguf_source * source) {
    sotto_mfree(source->allocator, source->own, WINDOW, 1);
    sotto_i_gguf_close_fd(source->fd);
    source->own = NULL;
    source->fd = -1;
}
