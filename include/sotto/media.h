/* SPDX-License-Identifier: MIT */
/* Sound from files.
 *
 *     struct sotto_audio_params params = sotto_audio_default_params();
 *     params.rate = SOTTO_SAMPLE_RATE;
 *     struct sotto_audio * audio;
 *     if (sotto_audio_load("clip.mp4", &params, &audio) == SOTTO_OK)
 *         sotto_transcribe(state, audio->samples, audio->n_samples, NULL);
 *     sotto_audio_free(audio);
 *
 * Our own reader knows WAV (RIFF and RF64, also with WAVE_FORMAT_EXTENSIBLE) holding u8, s16, s24, s32, f32, f64,
 * A-law or mu-law, from 1 to 768 kHz and 1 to 64 channels, also as it comes out of a pipe with lengths that nobody
 * filled in; and samples without any header. Everything else is read by FFmpeg's libraries where sotto was built with
 * them: any file that holds sound, video too, told by what is in it and not by its name. Both give the same bits for
 * the same samples: channels become their mean, and rates are changed by our own resampler (windowed sinc; what lies
 * above the new limit comes out at -79 dB or less, time 0 stays at time 0).
 *
 * No number in a file is trusted before it is checked. FFmpeg's messages go to the log (sotto/log.h, DEBUG) instead
 * of stderr, from the first such file on and for the whole process; it may open no other file and no address that a
 * file names. */
#ifndef SOTTO_MEDIA_H
#define SOTTO_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sotto_audio {
    uint32_t size;    /* how much of this struct the library fills */
    float * samples;  /* mono: the mean of all channels; 1.0 is full scale, more is kept as it is */
    size_t n_samples; /* at least 1 */
    int rate;         /* samples a second */
    int channels;     /* of the file */
};

/* Samples without a header, channels interleaved. */
enum sotto_sample_coding {
    SOTTO_SAMPLE_U8,
    SOTTO_SAMPLE_S16,
    SOTTO_SAMPLE_S24,
    SOTTO_SAMPLE_S32,
    SOTTO_SAMPLE_S64,
    SOTTO_SAMPLE_F32,
    SOTTO_SAMPLE_F64,
    SOTTO_SAMPLE_ALAW,
    SOTTO_SAMPLE_MULAW
};
struct sotto_raw_format {
    uint32_t size; /* sizeof(struct sotto_raw_format) */
    enum sotto_sample_coding coding;
    bool big_endian;
    int rate;     /* 1000 .. 768000 */
    int channels; /* 1 .. 64 */
};

/* Read "coding:rate:channels", as in "s16le:16000:1": u8, s16le, s24le, s32le, s64le, f32le, f64le, the same with be,
 * alaw, mulaw. Without ":channels" there is one, without ":rate" too it is 16000. NULLARG; PARAM if it makes no
 * sense. */
SOTTO_API enum sotto_status sotto_raw_format_parse(const char * text, struct sotto_raw_format * format);

enum sotto_audio_reader {
    SOTTO_AUDIO_ANY,   /* our own for what it knows, FFmpeg for the rest */
    SOTTO_AUDIO_OWN,   /* never FFmpeg */
    SOTTO_AUDIO_FFMPEG /* always FFmpeg; UNSUPPORTED without it */
};

/* Was this library built with FFmpeg? */
SOTTO_API bool sotto_audio_has_ffmpeg(void);

struct sotto_audio_params {
    uint32_t size;                            /* sizeof(struct sotto_audio_params) */
    const struct sotto_allocator * allocator; /* NULL = default */
    size_t max_samples;                       /* more is refused (LIMIT); 0 = 2^31 - 1, the most there can be */
    int rate;                                 /* to deliver, 1000 .. 768000; 0 = the file's own */
    enum sotto_audio_reader reader;
    const struct sotto_raw_format * raw; /* the input has no header and is this; NULL = tell by its content */
    bool (*abort)(void * data);          /* asked often; true ends the call with ABORTED; NULL = it goes on */
    void * abort_data;
};
SOTTO_API struct sotto_audio_params sotto_audio_default_params(void);

/* Read a whole file; `*audio` is NULL on failure, else the caller frees it. params NULL: the defaults.
 *   IO               missing, unreadable, a directory
 *   AUDIO_FORMAT     no kind of file that is known
 *   AUDIO_CORRUPT    it contradicts itself, or more than half of it is damaged
 *   AUDIO_EMPTY      no sample in it: an empty recording, a video without sound
 *   AUDIO_CODEC      coded in a way that is not read; the message names it
 *   AUDIO_PARAM      impossible rate, channels or sample width
 *   AUDIO_NAN        a sample is NaN or infinite
 *   LIMIT, MEMORY, NULLARG, PARAM, UNSUPPORTED, ABORTED
 * Sound that ends before its announced length is decoded as far as it goes, damaged pieces become silence of their
 * length; both with a warning to the log. Of several sound tracks the one is taken that FFmpeg thinks best. */
SOTTO_API enum sotto_status sotto_audio_load(const char * path, const struct sotto_audio_params * params,
                                             struct sotto_audio ** audio);

/* The same from anything that can be read once from front to back. `read` delivers up to n > 0 bytes and returns how
 * many, 0 at the end, SIZE_MAX if reading failed (IO). `name` is what messages call it. MP4 and its kin are held in
 * memory as they are, since their table of contents often comes last. */
typedef size_t (*sotto_audio_read_callback)(void * user_data, void * dst, size_t n);
SOTTO_API enum sotto_status sotto_audio_load_callback(sotto_audio_read_callback read, void * user_data,
                                                      const char * name, const struct sotto_audio_params * params,
                                                      struct sotto_audio ** audio);

SOTTO_API void sotto_audio_free(struct sotto_audio * audio); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
