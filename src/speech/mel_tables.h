/* SPDX-License-Identifier: MIT */
/* Constants of the spectrogram: the transform's basis and the mel filters, calculated in f64 and rounded once. */
#ifndef SOTTO_SPEECH_MEL_TABLES_H
#define SOTTO_SPEECH_MEL_TABLES_H

#define SOTTO_I_FFT  400 /* samples a frame */
#define SOTTO_I_BINS 201 /* 0 .. 8000 Hz in steps of 40 Hz */
#define SOTTO_I_HALF 200 /* values a frame has once its symmetric halves are folded */

/* Windowed cosines and sines, `cosines` and `sines` [SOTTO_I_HALF, SOTTO_I_BINS]: with w the periodic Hann window,
 *   cosines[l + 200 k] = w[l + 1] cos(2 pi k (l + 1) / 400)   times x[l + 1] + x[399 - l], l < 199; x[200] for l = 199
 *   sines  [l + 200 k] = w[l + 1] sin(2 pi k (l + 1) / 400)   times x[l + 1] - x[399 - l], l < 199; 0 for l = 199 */
void sotto_i_mel_basis(float * cosines, float * sines);

/* Filters of n_bands bands, Slaney's scale and area: filters[k + 201 b] for bin k. */
void sotto_i_mel_filters(int n_bands, float * filters);

#endif
