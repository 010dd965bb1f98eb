/* SPDX-License-Identifier: MIT */
/* Between reading bytes, walking containers, and decoding samples. */
#ifndef SOTTO_MEDIA_IMPL_H
#define SOTTO_MEDIA_IMPL_H

#include <stdbool.h>

#include "sotto/media.h"

#define MEDIA_MAX_CHANNELS 64
#define MEDIA_MIN_RATE     1000
#define MEDIA_MAX_RATE     768000

/* ---- bytes, front to back (audio_load.c) ---- */

struct media_input {
    sotto_audio_read_callback read;
    void * user_data;
    const char * name;
    uint64_t at;      /* bytes delivered */
    uint8_t ahead[8]; /* looked at and put back */
    size_t n_ahead;
};

/* Up to n bytes; *got < n only at the end of the input. IO. */
enum sotto_status sotto_i_media_read(struct media_input * in, void * dst, size_t n, size_t * got);
/* Let the next reads deliver these bytes first; n <= 8, none may be ahead. */
void sotto_i_media_unread(struct media_input * in, const void * bytes, size_t n);
/* Pass over n bytes; *got < n at the end of the input. */
enum sotto_status sotto_i_media_skip(struct media_input * in, uint64_t n, uint64_t * got);

/* ---- samples (pcm_decode.c) ---- */

enum pcm_code { PCM_U8, PCM_S16, PCM_S24, PCM_S32, PCM_F32, PCM_F64, PCM_ALAW, PCM_MULAW };

struct pcm_format {
    enum pcm_code code;
    int channels;
    int rate;
};
size_t sotto_i_pcm_width(enum pcm_code code); /* bytes of a sample */
/* Decode n frames of little-endian samples to the mean of their channels. The index of the first frame that is NaN or
 * infinite, or n. */
size_t sotto_i_pcm_decode(const struct pcm_format * format, const uint8_t * in, float * out, size_t n);

/* ---- sound that grows as it is read (audio_load.c) ---- */

struct media_sink {
    const struct sotto_allocator * allocator;
    float * samples;
    size_t n, cap;
    size_t max;
};
/* Decode everything up to `limit` bytes, or to the end of the input, into the sink. */
enum sotto_status sotto_i_media_decode(struct media_input * in, const struct pcm_format * format, uint64_t limit,
                                       struct media_sink * sink);

/* ---- containers (wav_read.c) ---- */

enum sotto_status sotto_i_wav_read(struct media_input * in, struct pcm_format * format, struct media_sink * sink);

#endif
