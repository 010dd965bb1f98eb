/* SPDX-License-Identifier: MIT */
/* Loading: bytes from a file or callback, through a container, to one growing array of samples. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sotto/log.h"

#include "media/media_impl.h"

#define BLOCK 16384 /* bytes read at once; holds a frame of 64 channels of f64 many times */

/* What the caller gets, and what freeing it needs. */
struct loaded {
    struct sotto_audio audio;
    const struct sotto_allocator * allocator;
    size_t cap;
};

/* ---- bytes ---- */

enum sotto_status sotto_i_media_read(struct media_input * in, void * dst, size_t n, size_t * got) {
    size_t ahead = n < in->n_ahead ? n : in->n_ahead;
    if (ahead > 0)
        memcpy(dst, in->ahead, ahead);
    memmove(in->ahead, in->ahead + ahead, in->n_ahead - ahead);
    in->n_ahead -= ahead;
    *got = ahead;
    while (*got < n) {
        size_t r = in->read(in->user_data, (uint8_t *)dst + *got, n - *got);
        if (r == 0)
            break;
        if (r > n - *got)
            return sotto_fail(SOTTO_E_IO, "sotto_audio_load: %s: reading failed at byte %llu: %s", in->name,
                              (unsigned long long)in->at, strerror(errno));
        *got += r;
    }
    in->at += *got;
    return SOTTO_OK;
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

/* ---- samples ---- */

static enum sotto_status reserve(struct media_sink * sink, const struct media_input * in, size_t more) {
    if (more > sink->max - sink->n)
        return sotto_fail(SOTTO_E_LIMIT, "sotto_audio_load: %s has more than %zu samples; cut it into pieces", in->name,
                          sink->max);
    if (sink->n + more <= sink->cap)
        return SOTTO_OK;
    size_t cap = sink->cap + sink->cap / 2 + BLOCK;
    float * samples = sotto_realloc(sink->allocator, sink->samples, sink->cap, cap, sizeof(*samples));
    if (samples == NULL)
        return SOTTO_E_MEMORY;
    sink->samples = samples;
    sink->cap = cap;
    return SOTTO_OK;
}

static enum sotto_status decode_frames(const struct media_input * in, const struct pcm_format * format,
                                       const uint8_t * block, size_t n, struct media_sink * sink) {
    enum sotto_status status = reserve(sink, in, n);
    if (status != SOTTO_OK || n == 0)
        return status;
    size_t good = sotto_i_pcm_decode(format, block, sink->samples + sink->n, n);
    if (good < n)
        return sotto_fail(SOTTO_E_AUDIO_NAN, "sotto_audio_load: %s: sample %zu is NaN or infinite", in->name,
                          sink->n + good);
    sink->n += n;
    return SOTTO_OK;
}

enum sotto_status sotto_i_media_decode(struct media_input * in, const struct pcm_format * format, uint64_t limit,
                                       struct media_sink * sink) {
    uint8_t block[BLOCK];
    size_t frame = sotto_i_pcm_width(format->code) * (size_t)format->channels;
    size_t whole = BLOCK / frame * frame;
    for (uint64_t left = limit; left > 0;) {
        size_t want = left < whole ? (size_t)left : whole;
        size_t got;
        enum sotto_status status = sotto_i_media_read(in, block, want, &got);
        if (status == SOTTO_OK)
            status = decode_frames(in, format, block, got / frame, sink);
        if (status != SOTTO_OK)
            return status;
        if (got % frame != 0)
            sotto_log(SOTTO_LOG_WARN, "sotto_audio_load: %s: the sound ends inside a sample, which is left out\n",
                      in->name);
        left -= got;
        if (got < want)
            break;
    }
    return SOTTO_OK;
}

/* ---- loading ---- */

struct sotto_audio_params sotto_audio_default_params(void) {
    struct sotto_audio_params params = { .size = sizeof(params) };
    return params;
}

static enum sotto_status take_params(struct sotto_audio_params * out, const struct sotto_audio_params * in) {
    *out = sotto_audio_default_params();
    if (in != NULL) {
        if (in->size < sizeof(*in))
            return sotto_fail(SOTTO_E_PARAM, "sotto_audio_load: params->size is %lu, expected %zu",
                              (unsigned long)in->size, sizeof(*in));
        *out = *in;
    }
    if (out->allocator == NULL)
        out->allocator = sotto_default_allocator();
    if (out->max_samples == 0 || out->max_samples > INT32_MAX)
        out->max_samples = INT32_MAX;
    return SOTTO_OK;
}

/* Decode into a record that is there already; its samples are the sink's in any case. */
static enum sotto_status load_into(struct loaded * loaded, struct media_input * in, struct media_sink * sink) {
    struct pcm_format format = { .channels = 1 };
    enum sotto_status status = sotto_i_wav_read(in, &format, sink);
    if (status == SOTTO_OK && sink->n == 0)
        status = sotto_fail(SOTTO_E_AUDIO_EMPTY, "sotto_audio_load: %s holds no sample", in->name);
    loaded->audio = (struct sotto_audio){ .size = sizeof(loaded->audio),
                                          .samples = sink->samples,
                                          .n_samples = sink->n,
                                          .rate = format.rate,
                                          .channels = format.channels };
    loaded->cap = sink->cap;
    return status;
}

static enum sotto_status load(struct media_input * in, const struct sotto_audio_params * params,
                              struct sotto_audio ** audio) {
    struct loaded * loaded = sotto_calloc(params->allocator, 1, sizeof(*loaded));
    if (loaded == NULL)
        return SOTTO_E_MEMORY;
    loaded->allocator = params->allocator;
    struct media_sink sink = { .allocator = params->allocator, .max = params->max_samples };
    enum sotto_status status = load_into(loaded, in, &sink);
    if (status == SOTTO_OK)
        *audio = &loaded->audio;
    else
        sotto_audio_free(&loaded->audio);
    return status;
}

enum sotto_status sotto_audio_load_callback(sotto_audio_read_callback read, void * user_data, const char * name,
                                            const struct sotto_audio_params * given, struct sotto_audio ** audio) {
    if (audio != NULL)
        *audio = NULL;
    if (read == NULL || name == NULL || audio == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_audio_load_callback: %s is NULL",
                          read == NULL   ? "read"
                          : name == NULL ? "name"
                                         : "audio");
    struct sotto_audio_params params;
    enum sotto_status status = take_params(&params, given);
    struct media_input in = { .read = read, .user_data = user_data, .name = name };
    return status == SOTTO_OK ? load(&in, &params, audio) : status;
}

static size_t read_fd(void * user_data, void * dst, size_t n) {
    ssize_t r;
    do
        r = read(*(int *)user_data, dst, n);
    while (r < 0 && errno == EINTR);
    return r < 0 ? SIZE_MAX : (size_t)r;
}

static int open_file(const char * path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        errno = EISDIR;
        return -1;
    }
    return fd;
}

enum sotto_status sotto_audio_load(const char * path, const struct sotto_audio_params * params,
                                   struct sotto_audio ** audio) {
    if (audio != NULL)
        *audio = NULL;
    if (path == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_audio_load: path is NULL");
    int fd = open_file(path);
    if (fd < 0)
        return sotto_fail(SOTTO_E_IO, "sotto_audio_load: %s: %s", path, strerror(errno));
    enum sotto_status status = sotto_audio_load_callback(read_fd, &fd, path, params, audio);
    close(fd);
    return status;
}

void sotto_audio_free(struct sotto_audio * audio) {
    if (audio == NULL)
        return;
    struct loaded * loaded = (struct loaded *)audio; /* its first member */
    sotto_mfree(loaded->allocator, audio->samples, loaded->cap, sizeof(*audio->samples));
    sotto_mfree(loaded->allocator, loaded, 1, sizeof(*loaded));
}
