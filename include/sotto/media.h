/* SPDX-License-Identifier: MIT */
/* Sound from files.
 *
 *     struct sotto_audio * audio;
 *     if (sotto_audio_load("clip.wav", NULL, &audio) == SOTTO_OK && audio->rate == SOTTO_SAMPLE_RATE)
 *         sotto_transcribe(state, audio->samples, audio->n_samples, NULL);
 *     sotto_audio_free(audio);
 *
 * Read so far: WAV (RIFF and RF64, also with WAVE_FORMAT_EXTENSIBLE) holding u8, s16, s24, s32, f32, f64, A-law or
 * mu-law, from 1 to 768 kHz and 1 to 64 channels, also as it comes out of a pipe with lengths that nobody filled in.
 * Samples are delivered at the file's own rate. No number in a file is trusted before it is checked. */
#ifndef SOTTO_MEDIA_H
#define SOTTO_MEDIA_H

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

struct sotto_audio_params {
    uint32_t size;                            /* sizeof(struct sotto_audio_params) */
    const struct sotto_allocator * allocator; /* NULL = default */
    size_t max_samples;                       /* more is refused (LIMIT); 0 = 2^31 - 1, the most there can be */
};
SOTTO_API struct sotto_audio_params sotto_audio_default_params(void);

/* Read a whole file; `*audio` is NULL on failure, else the caller frees it. params NULL: the defaults.
 *   IO               missing, unreadable, a directory
 *   AUDIO_FORMAT     no kind of file that is known
 *   AUDIO_CORRUPT    it contradicts itself
 *   AUDIO_EMPTY      no sample in it
 *   AUDIO_CODEC      coded in another way than the above; the message names the codec
 *   AUDIO_PARAM      impossible rate, channels or sample width
 *   AUDIO_NAN        a sample is NaN or infinite
 *   LIMIT, MEMORY, NULLARG, PARAM
 * Sound that ends before its announced length is decoded as far as it goes, with a warning to the log. */
SOTTO_API enum sotto_status sotto_audio_load(const char * path, const struct sotto_audio_params * params,
                                             struct sotto_audio ** audio);

/* The same from anything that can be read once from front to back. `read` delivers up to n > 0 bytes and returns how
 * many, 0 at the end, SIZE_MAX if reading failed (IO). `name` is what messages call it. */
typedef size_t (*sotto_audio_read_callback)(void * user_data, void * dst, size_t n);
SOTTO_API enum sotto_status sotto_audio_load_callback(sotto_audio_read_callback read, void * user_data,
                                                      const char * name, const struct sotto_audio_params * params,
                                                      struct sotto_audio ** audio);

SOTTO_API void sotto_audio_free(struct sotto_audio * audio); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
