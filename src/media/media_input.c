/* SPDX-License-Identifier: MIT */
/* Bytes of the input: first those put back, then the kept head, then what the callback delivers. */
#include <errno.h>
#include <string.h>

#include "media/media_impl.h"

static size_t take(void * dst, const uint8_t * from, size_t n_from, size_t n) {
    n = n < n_from ? n : n_from;
    if (n > 0)
        memcpy(dst, from, n);
    return n;
}

enum sotto_status sotto_i_media_abort(struct media_input * in) {
    if (in->failed == SOTTO_OK && in->abort != NULL && in->abort(in->abort_data))
        in->failed = sotto_fail(SOTTO_E_ABORTED, "sotto_audio_load: %s: params->abort stopped it", in->name);
    return in->failed;
}

static enum sotto_status read_failed(struct media_input * in, size_t got) {
    int error = errno;
    if (sotto_i_media_abort(in) == SOTTO_OK)
        in->failed = sotto_fail(SOTTO_E_IO, "sotto_audio_load: %s: reading failed at byte %llu: %s", in->name,
                                (unsigned long long)(in->at + got), strerror(error));
    return in->failed;
}

static enum sotto_status read_source(struct media_input * in, uint8_t * dst, size_t n, size_t * got) {
    *got = 0;
    enum sotto_status status = sotto_i_media_abort(in);
    while (*got < n && status == SOTTO_OK) {
        size_t r = in->read(in->user_data, dst + *got, n - *got);
        if (r == 0)
            break;
        if (r > n - *got)
            return read_failed(in, *got);
        *got += r;
        status = sotto_i_media_abort(in);
    }
    return status;
}

enum sotto_status sotto_i_media_read(struct media_input * in, void * dst, size_t n, size_t * got) {
    *got = 0;
    if (n == 0)
        return SOTTO_OK; /* dst may be NULL */
    uint8_t * to = dst;
    size_t ahead = take(to, in->ahead, in->n_ahead, n);
    memmove(in->ahead, in->ahead + ahead, in->n_ahead - ahead);
    in->n_ahead -= ahead;
    size_t head = take(to + ahead, in->head + in->head_at, in->n_head - in->head_at, n - ahead);
    in->head_at += head;
    size_t more = 0;
    enum sotto_status status = SOTTO_OK;
    if (ahead + head < n)
        status = read_source(in, to + ahead + head, n - ahead - head, &more);
    in->past_head = in->past_head || more > 0;
    *got = ahead + head + more;
    in->at += *got;
    return status;
}

void sotto_i_media_unread(struct media_input * in, const void * bytes, size_t n) {
    memcpy(in->ahead, bytes, n);
    in->n_ahead = n;
    in->at -= n;
}

enum sotto_status sotto_i_media_skip(struct media_input * in, uint64_t n, uint64_t * got) {
    uint8_t bytes[4096];
    *got = 0;
    while (*got < n) {
        size_t want = n - *got < sizeof(bytes) ? (size_t)(n - *got) : sizeof(bytes);
        size_t r;
        enum sotto_status status = sotto_i_media_read(in, bytes, want, &r);
        if (status != SOTTO_OK)
            return status;
        *got += r;
        if (r < want)
            break;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_media_begin(struct media_input * in) {
    return read_source(in, in->head, sizeof(in->head), &in->n_head);
}

bool sotto_i_media_seek(struct media_input * in, uint64_t at) {
    if (in->seek == NULL || !in->seek(in->user_data, at))
        return false;
    in->n_head = in->head_at = in->n_ahead = 0;
    in->past_head = true;
    in->at = at;
    return true;
}

bool sotto_i_media_rewind(struct media_input * in) {
    if (in->past_head)
        return sotto_i_media_seek(in, 0);
    in->head_at = in->n_ahead = 0;
    in->at = 0;
    return true;
}
