/* SPDX-License-Identifier: MIT */
/* Largest, smallest and most extreme values of short runs, in loops without branches. A NaN never wins. */
#ifndef SOTTO_QUANT_EXTREMES_H
#define SOTTO_QUANT_EXTREMES_H

#include "quant/quant_impl.h"

/* The largest magnitude. Magnitudes of floats are in the order of their bits. */
static inline float largest_magnitude(const float * x, int n) {
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bits &= 0x7FFFFFFF;
        bits = bits > 0x7F800000 ? 0 : bits;
        most = bits > most ? bits : most;
    }
    float a;
    memcpy(&a, &most, sizeof(a));
    return a;
}

/* The first of the values whose magnitude is the largest, a; +0 for none and for zeros of either sign. */
static inline float first_extreme(const float * x, int n, float a) {
    int up = 0, down = 0;
    for (int i = 0; i < n; i++) {
        up |= x[i] == a;
        down |= x[i] == -a;
    }
    if (a == 0.0f) {
        return 0.0f;
    }
    if (up != down) {
        return up ? a : -a;
    }
    for (int i = 0; i < n; i++) {
        if (fabsf(x[i]) == a) {
            return x[i];
        }
    }
    return 0.0f;
}

enum { EXTREME_LANES = 8 };

/* The smallest and largest of n values, n a multiple of EXTREME_LANES; of zeros of both signs the first. */
static inline void smallest_and_largest(const float * x, int n, float * smallest, float * largest) {
    float lo[EXTREME_LANES], hi[EXTREME_LANES];
    for (int l = 0; l < EXTREME_LANES; l++) {
        lo[l] = INFINITY;
        hi[l] = -INFINITY;
    }
    for (int i = 0; i < n; i += EXTREME_LANES) {
        for (int l = 0; l < EXTREME_LANES; l++) {
            lo[l] = x[i + l] < lo[l] ? x[i + l] : lo[l];
            hi[l] = x[i + l] > hi[l] ? x[i + l] : hi[l];
        }
    }
    for (int l = 1; l < EXTREME_LANES; l++) {
        lo[0] = lo[l] < lo[0] ? lo[l] : lo[0];
        hi[0] = hi[l] > hi[0] ? hi[l] : hi[0];
    }
    for (int i = n - 1; i >= 0 && (lo[0] == 0.0f || hi[0] == 0.0f); i--) {
        lo[0] = x[i] == lo[0] ? x[i] : lo[0];
        hi[0] = x[i] == hi[0] ? x[i] : hi[0];
    }
    *smallest = lo[0];
    *largest = hi[0];
}

#endif
