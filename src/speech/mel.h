/* SPDX-License-Identifier: MIT */
/* Log-mel spectrogram of one window at a time.
 *
 * The signal is cut into frames of 400 samples, 160 apart, frame t centred on sample 160t; a product with a
 * windowed DFT basis gives the spectrum, a second one with the mel filters the bands. Both run on the engine.
 * Nothing of the length of the recording is kept: a first pass finds the global maximum, then each window is
 * made from the samples under it. Shapes: T frames, M bands. */
#ifndef SOTTO_SPEECH_MEL_H
#define SOTTO_SPEECH_MEL_H

#include "sotto/speech.h"

#define SOTTO_I_HOP           160   /* samples a frame */
#define SOTTO_I_WINDOW_FRAMES 3000  /* frames the encoder sees at once */
#define SOTTO_I_RATE          16000 /* samples a second */

struct sotto_i_mel;

/* A transformer for `n_mels` bands (1..512) that computes on `backend` (borrowed; must outlive it). `*out` is NULL on
 * failure: MEMORY and what the engine reports. */
enum sotto_status sotto_i_mel_new(int n_mels, sotto_backend_t backend, const struct sotto_allocator * allocator,
                                  struct sotto_i_mel ** out);
void sotto_i_mel_free(struct sotto_i_mel * mel); /* NULL is allowed */

/* Frames that carry content: n / 160. */
int64_t sotto_i_mel_content_frames(size_t n);

/* First pass: the largest log10 value (at least -10) over all bands and frames of the n samples and the silence
 * that follows them. n = 0 gives -10. */
enum sotto_status sotto_i_mel_max(struct sotto_i_mel * mel, const float * pcm, size_t n, float * max_log10);

/* Frames frame0 .. frame0 + n_frames - 1 (n_frames <= 3000), clamped to max_log10 - 8 and scaled, into
 * out[band * 3000 + t]. What is left of the 3000 columns is filled by `pad`: with 0.0 or with the following frames of
 * the padded signal. `silent` (may be NULL) tells whether no value of the n_frames frames lies above the floor. */
enum sotto_status sotto_i_mel_window(struct sotto_i_mel * mel, const float * pcm, size_t n, int64_t frame0,
                                     int n_frames, float max_log10, enum sotto_pad_mode pad, float * out,
                                     bool * silent);

#endif
