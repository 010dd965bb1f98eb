/* SPDX-License-Identifier: MIT */
/* How sound travels: input (bytes) - container - pcm (samples to mono) - sink (resampling, one growing array). */
#ifndef SOTTO_MEDIA_IMPL_H
#define SOTTO_MEDIA_IMPL_H

#include <stdbool.h>

#include "sotto/media.h"

#define MEDIA_MAX_CHANNELS 64
#define MEDIA_MIN_RATE     1000
#define MEDIA_MAX_RATE     768000
#define MEDIA_HEAD         4096

/* ---- bytes (media_input.c) ---- */

struct media_input {
    sotto_audio_read_callback read;
    bool (*seek)(void * user_data, uint64_t at); /* NULL: front to back only */
    void * user_data;
    bool (*abort)(void * data); /* NULL: goes on */
    void * abort_data;
    const char * name;
    uint64_t size;            /* with seek: where the input ends */
    uint64_t at;              /* bytes delivered, or where seeking went */
    uint8_t head[MEDIA_HEAD]; /* the first bytes, kept so that a second reader can begin anew */
    size_t n_head, head_at;
    bool past_head;           /* bytes behind the head were delivered */
    enum sotto_status failed; /* of reading: then the input is not just at its end */
    uint8_t ahead[8];         /* looked at and put back */
    size_t n_ahead;
};

/* ABORTED if the caller wants no more, else OK. */
enum sotto_status sotto_i_media_abort(struct media_input * in);
/* Up to n bytes; *got < n only at the end of the input. IO, ABORTED. */
enum sotto_status sotto_i_media_read(struct media_input * in, void * dst, size_t n, size_t * got);
/* Let the next reads deliver these bytes first; n <= 8, none may be ahead. */
void sotto_i_media_unread(struct media_input * in, const void * bytes, size_t n);
/* Pass over n bytes; *got < n at the end of the input. */
enum sotto_status sotto_i_media_skip(struct media_input * in, uint64_t n, uint64_t * got);
/* Fill the head; once, before anything else is read. */
enum sotto_status sotto_i_media_begin(struct media_input * in);
/* Begin anew; false if what was read is gone. */
bool sotto_i_media_rewind(struct media_input * in);
bool sotto_i_media_seek(struct media_input * in, uint64_t at);

/* ---- samples to mono (pcm_decode.c) ---- */

struct pcm_format {
    enum sotto_sample_coding code;
    bool big; /* endian */
    int channels;
    int rate;
};
size_t sotto_i_pcm_width(enum sotto_sample_coding code); /* bytes of a sample */
bool sotto_i_pcm_host_is_big(void);
/* sum[i] += sample i of one channel, whose samples lie `step` bytes apart. */
void sotto_i_pcm_add(enum sotto_sample_coding code, bool big, const uint8_t * in, size_t step, double * sum, size_t n);
/* Means of channels from their sums. The index of the first that is NaN or infinite, or n. */
size_t sotto_i_pcm_mean(const double * sum, int channels, float * out, size_t n);
/* "s16le" and the like; false if there is no such coding. */
bool sotto_i_pcm_named(const char * name, size_t size, enum sotto_sample_coding * code, bool * big);

/* ---- sound that grows as it is read (media_sink.c) ---- */

struct resampler;

struct media_sink {
    const struct sotto_allocator * allocator;
    const char * name; /* of the input */
    float * samples;
    size_t n, cap;
    size_t max;
    int wanted;   /* rate to deliver, 0 = as it comes */
    int rate;     /* of what is put in, 0 before the first begin */
    int channels; /* of the input */
    struct resampler * resampler;
};
/* What follows has this many samples a second, from this many channels. Again when that changes. */
enum sotto_status sotto_i_sink_begin(struct media_sink * sink, int rate, int channels);
/* The mean of `channels` planes, sample i of plane c at planes[c] + i * step. */
enum sotto_status sotto_i_sink_put(struct media_sink * sink, enum sotto_sample_coding code, bool big,
                                   const uint8_t * const * planes, size_t step, int channels, size_t n);
enum sotto_status sotto_i_sink_silence(struct media_sink * sink, uint64_t n);
enum sotto_status sotto_i_sink_end(struct media_sink * sink);
/* Frees what is only needed while it grows; the samples stay. */
void sotto_i_sink_free(struct media_sink * sink);

/* Decode interleaved samples up to `limit` bytes, or to the end of the input, into a sink that has begun. */
enum sotto_status sotto_i_pcm_read(struct media_input * in, const struct pcm_format * format, uint64_t limit,
                                   struct media_sink * sink);

/* ---- containers ---- */

/* wav_read.c */
enum sotto_status sotto_i_wav_read(struct media_input * in, struct media_sink * sink);
/* ffmpeg_read.c; UNSUPPORTED in builds without FFmpeg. */
enum sotto_status sotto_i_ffmpeg_read(struct media_input * in, struct media_sink * sink);

#endif
