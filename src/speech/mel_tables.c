/* SPDX-License-Identifier: MIT */
/* Basis of the transform and mel filters. */
#include "mel_tables.h"

#include <math.h>

#define PI       3.14159265358979323846
#define LOG_STEP 27.0 /* mels for each factor of 6.4 above 1000 Hz */

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

void sotto_i_mel_filters(int n_bands, float * filters) {
    double step = mel_of(8000.0) / (n_bands + 1);
    for (int b = 0; b < n_bands; b++) {
        double low = hertz_of(b * step);
        double middle = hertz_of((b + 1) * step);
        double high = hertz_of((b + 2) * step);
        for (int k = 0; k < SOTTO_I_BINS; k++) {
            double rising = (40.0 * k - low) / (middle - low);
            double falling = (high - 40.0 * k) / (high - middle);
            double height = rising < falling ? rising : falling;
            filters[k + b * SOTTO_I_BINS] = height > 0.0 ? (float)(height * 2.0 / (high - low)) : 0.0f;
        }
    }
}
