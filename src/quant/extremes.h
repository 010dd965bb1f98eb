/* SPDX-License-Identifier: MIT */
/* Largest, smallest and most extreme values of n numbers, n a multiple of 4. A NaN never wins. */
#ifndef SOTTO_QUANT_EXTREMES_H
#define SOTTO_QUANT_EXTREMES_H

#include "quant/f4.h"
#include "quant/quant_impl.h"

static inline float largest_magnitude(const float * x, int n) {
    f4 most = f4_all(0.0f);
    for (int i = 0; i < n; i += 4) {
        most = f4_max(f4_abs(f4_load(x + i)), most);
    }
    const float a = most[0] > most[1] ? most[0] : most[1], b = most[2] > most[3] ? most[2] : most[3];
    return a > b ? a : b;
}

/* The first of the values whose magnitude is the largest, a; +0 for none and for zeros of either sign. */
static inline float first_extreme(const float * x, int n, float a) {
    i4 up = { 0 }, down = { 0 };
    for (int i = 0; i < n; i += 4) {
        const f4 v = f4_load(x + i);
        up |= v == a;
        down |= v == -a;
    }
    const bool has_up = up[0] | up[1] | up[2] | up[3], has_down = down[0] | down[1] | down[2] | down[3];
    if (a == 0.0f) {
        return 0.0f;
    }
    if (has_up != has_down) {
        return has_up ? a : -a;
    }
    for (int i = 0; i < n; i++) {
        if (fabsf(x[i]) == a) {
            return x[i];
        }
    }
    return 0.0f;
}

/* Of zeros of both signs the first. */
static inline void smallest_and_largest(const float * x, int n, float * smallest, float * largest) {
    f4 lo = f4_all(INFINITY), hi = f4_all(-INFINITY);
    for (int i = 0; i < n; i += 4) {
        lo = f4_min(f4_load(x + i), lo);
        hi = f4_max(f4_load(x + i), hi);
    }
    float least = lo[0], most = hi[0];
    for (int l = 1; l < 4; l++) {
        least = lo[l] < least ? lo[l] : least;
        most = hi[l] > most ? hi[l] : most;
    }
    for (int i = n - 1; i >= 0 && (least == 0.0f || most == 0.0f); i--) {
        least = x[i] == least ? x[i] : least;
        most = x[i] == most ? x[i] : most;
    }
    *smallest = least;
    *largest = most;
}

#endif
