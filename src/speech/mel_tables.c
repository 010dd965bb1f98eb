/* SPDX-License-Identifier: MIT */
/* Basis of the transform and mel filters. */
#include "mel_tables.h"

#include <math.h>

#include "sotto/speech.h"

#define PI       3.14159265358979323846
#define TOP      8000.0 /* hertz */
#define LOG_STEP 27.0   /* mels for each factor of 6.4 above 1000 Hz */

void sotto_i_mel_basis(float * cosines, float * sines) {
    for (int k = 0; k < SOTTO_I_BINS; k++) {
        for (int l = 0; l < SOTTO_I_HALF; l++) {
            int n = l + 1;
            double window = 0.5 * (1.0 - cos(2.0 * PI * n / SOTTO_I_FFT));
            double angle = 2.0 * PI * (k * n % SOTTO_I_FFT) / SOTTO_I_FFT;
            cosines[l + k * SOTTO_I_HALF] = (float)(window * cos(angle));
            sines[l + k * SOTTO_I_HALF] = n < SOTTO_I_HALF ? (float)(window * sin(angle)) : 0.0f;
        }
    }
}

static double mel_of(double hertz) {
    return hertz < 1000.0 ? 3.0 * hertz / 200.0 : 15.0 + LOG_STEP * log(hertz / 1000.0) / log(6.4);
}

static double hertz_of(double mel) {
    return mel < 15.0 ? 200.0 * mel / 3.0 : 1000.0 * exp((mel - 15.0) * log(6.4) / LOG_STEP);
}

/* Corner i of n_bands filters, 0 .. n_bands + 1, in hertz; the last one exactly, so that bin 200 lies in no filter. */
static double corner(int i, int n_bands) { return i > n_bands ? TOP : hertz_of(mel_of(TOP) * i / (n_bands + 1)); }

void sotto_i_mel_filters(int n_bands, float * filters) {
    for (int b = 0; b < n_bands; b++) {
        double low = corner(b, n_bands);
        double middle = corner(b + 1, n_bands);
        double high = corner(b + 2, n_bands);
        for (int k = 0; k < SOTTO_I_BINS; k++) {
            double rising = (40.0 * k - low) / (middle - low);
            double falling = (high - 40.0 * k) / (high - middle);
            double height = rising < falling ? rising : falling;
            filters[k + b * SOTTO_I_BINS] = height > 0.0 ? (float)(height * 2.0 / (high - low)) : 0.0f;
        }
    }
}

enum sotto_status sotto_mel_filters(int n_mels, float * filters) {
    if (!filters)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_mel_filters: filters is NULL");
    if (n_mels < 1 || n_mels > 512)
        return sotto_fail(SOTTO_E_PARAM, "sotto_mel_filters: n_mels is %d, want 1 to 512", n_mels);
    sotto_i_mel_filters(n_mels, filters);
    return SOTTO_OK;
}
