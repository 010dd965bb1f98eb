/* SPDX-License-Identifier: MIT */
/* Loading: which reader it takes, from a file or a callback, and what the caller gets. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media/media_impl.h"

/* What the caller gets, and what freeing it needs. */
struct loaded {
    struct sotto_audio audio;
    const struct sotto_allocator * allocator;
    size_t cap;
};

struct sotto_audio_params sotto_audio_default_params(void) {
    struct sotto_audio_params params = { .size = sizeof(params) };
    return params;
}

static enum sotto_status bad_param(const char * name, long value) {
    return sotto_fail(SOTTO_E_PARAM, "sotto_audio_load: params->%s is %ld, which makes no sense", name, value);
}

static enum sotto_status check_raw(const struct sotto_raw_format * raw) {
    if (raw->size < sizeof(*raw))
        return bad_param("raw->size", (long)raw->size);
    if ((int)raw->coding < 0 || raw->coding > SOTTO_SAMPLE_MULAW)
        return bad_param("raw->coding", (long)raw->coding);
    if (raw->rate < MEDIA_MIN_RATE || raw->rate > MEDIA_MAX_RATE)
        return bad_param("raw->rate", raw->rate);
    if (raw->channels < 1 || raw->channels > MEDIA_MAX_CHANNELS)
        return bad_param("raw->channels", raw->channels);
    return SOTTO_OK;
}

static enum sotto_status take_params(struct sotto_audio_params * out, const struct sotto_audio_params * in) {
    *out = sotto_audio_default_params();
    if (in != NULL) {
        if (in->size < sizeof(*in))
            return bad_param("size", (long)in->size);
        *out = *in;
    }
    if (out->allocator == NULL)
        out->allocator = sotto_default_allocator();
    if (out->max_samples == 0 || out->max_samples > INT32_MAX)
        out->max_samples = INT32_MAX;
    if (out->rate != 0 && (out->rate < MEDIA_MIN_RATE || out->rate > MEDIA_MAX_RATE))
        return bad_param("rate", out->rate);
    if ((int)out->reader < 0 || out->reader > SOTTO_AUDIO_FFMPEG)
        return bad_param("reader", (long)out->reader);
    return out->raw != NULL ? check_raw(out->raw) : SOTTO_OK;
}

static enum sotto_status read_raw(struct media_input * in, const struct sotto_raw_format * raw,
                                  struct media_sink * sink) {
    struct pcm_format format = { raw->coding, raw->big_endian, raw->channels, raw->rate };
    enum sotto_status status = sotto_i_sink_begin(sink, raw->rate, raw->channels);
    return status == SOTTO_OK ? sotto_i_pcm_read(in, &format, UINT64_MAX, sink) : status;
}

static bool is_wav(const struct media_input * in) {
    return in->n_head >= 12 && memcmp(in->head + 8, "WAVE", 4) == 0 &&
           (memcmp(in->head, "RIFF", 4) == 0 || memcmp(in->head, "RF64", 4) == 0);
}

/* Our own reader for WAV, FFmpeg for the rest and for what is in a WAV but is no PCM. */
static enum sotto_status read_container(struct media_input * in, enum sotto_audio_reader reader,
                                        struct media_sink * sink) {
    if (reader == SOTTO_AUDIO_ANY && !sotto_audio_has_ffmpeg())
        reader = SOTTO_AUDIO_OWN;
    if (reader == SOTTO_AUDIO_FFMPEG || (reader == SOTTO_AUDIO_ANY && !is_wav(in)))
        return sotto_i_ffmpeg_read(in, sink);
    enum sotto_status status = sotto_i_wav_read(in, sink);
    if (status == SOTTO_E_AUDIO_CODEC && reader == SOTTO_AUDIO_ANY && sotto_i_media_rewind(in))
        status = sotto_i_ffmpeg_read(in, sink);
    return status;
}

/* Decode into a record that is there already; its samples are the sink's in any case. */
static enum sotto_status load_into(struct loaded * loaded, struct media_input * in,
                                   const struct sotto_audio_params * params, struct media_sink * sink) {
    enum sotto_status status = sotto_i_media_begin(in);
    if (status == SOTTO_OK)
        status = params->raw != NULL ? read_raw(in, params->raw, sink) : read_container(in, params->reader, sink);
    if (status == SOTTO_OK)
        status = sotto_i_sink_end(sink);
    sotto_i_sink_free(sink);
    loaded->audio = (struct sotto_audio){ .size = sizeof(loaded->audio),
                                          .samples = sink->samples,
                                          .n_samples = sink->n,
                                          .rate = sink->wanted != 0 ? sink->wanted : sink->rate,
                                          .channels = sink->channels };
    loaded->cap = sink->cap;
    return status;
}

static enum sotto_status load(struct media_input * in, const struct sotto_audio_params * given,
                              struct sotto_audio ** audio) {
    struct sotto_audio_params params;
    enum sotto_status status = take_params(&params, given);
    if (status != SOTTO_OK)
        return status;
    in->abort = params.abort;
    in->abort_data = params.abort_data;
    struct loaded * loaded = sotto_calloc(params.allocator, 1, sizeof(*loaded));
    if (loaded == NULL)
        return SOTTO_E_MEMORY;
    loaded->allocator = params.allocator;
    struct media_sink sink = {
        .allocator = params.allocator, .name = in->name, .max = params.max_samples, .wanted = params.rate
    };
    status = load_into(loaded, in, &params, &sink);
    if (status == SOTTO_OK)
        *audio = &loaded->audio;
    else
        sotto_audio_free(&loaded->audio);
    return status;
}

enum sotto_status sotto_audio_load_callback(sotto_audio_read_callback read, void * user_data, const char * name,
                                            const struct sotto_audio_params * params, struct sotto_audio ** audio) {
    if (audio != NULL)
        *audio = NULL;
    if (read == NULL || name == NULL || audio == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_audio_load_callback: %s is NULL",
                          read == NULL   ? "read"
                          : name == NULL ? "name"
                                         : "audio");
    struct media_input in = { .read = read, .user_data = user_data, .name = name };
    return load(&in, params, audio);
}

/* ---- files ---- */

struct open_file {
    int fd;
    const struct media_input * in;
};

/* A signal ends it only if the caller then wants that. */
static size_t read_fd(void * user_data, void * dst, size_t n) {
    const struct open_file * file = user_data;
    const struct media_input * in = file->in;
    ssize_t r;
    do
        r = read(file->fd, dst, n);
    while (r < 0 && errno == EINTR && !(in->abort != NULL && in->abort(in->abort_data)));
    return r < 0 ? SIZE_MAX : (size_t)r;
}

static bool seek_fd(void * user_data, uint64_t at) {
    const struct open_file * file = user_data;
    return at <= INT64_MAX && lseek(file->fd, (off_t)at, SEEK_SET) == (off_t)at;
}

static int open_file(const char * path, struct stat * st) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    int error = fstat(fd, st) != 0 ? errno : S_ISDIR(st->st_mode) ? EISDIR : 0;
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

enum sotto_status sotto_audio_load(const char * path, const struct sotto_audio_params * params,
                                   struct sotto_audio ** audio) {
    if (audio != NULL)
        *audio = NULL;
    if (path == NULL || audio == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_audio_load: %s is NULL", path == NULL ? "path" : "audio");
    struct stat st;
    int fd = open_file(path, &st);
    if (fd < 0)
        return sotto_fail(SOTTO_E_IO, "sotto_audio_load: %s: %s", path, strerror(errno));
    struct open_file file = { .fd = fd };
    struct media_input in = { .read = read_fd, .user_data = &file, .name = path };
    file.in = &in;
    if (S_ISREG(st.st_mode)) {
        in.seek = seek_fd;
        in.size = (uint64_t)st.st_size;
    }
    enum sotto_status status = load(&in, params, audio);
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
