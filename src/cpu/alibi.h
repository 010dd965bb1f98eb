/* SPDX-License-Identifier: MIT */
/* ALiBi: how strongly a head feels its mask, a falling geometric series over the heads (spec: soft_max). */
#ifndef SOTTO_CPU_ALIBI_H
#define SOTTO_CPU_ALIBI_H

#include <math.h>
#include <stdint.h>

/* Slope of head `head` of n_heads; 1 if max_bias <= 0. */
static inline float sotto_i_alibi_slope(float max_bias, int64_t n_heads, int64_t head) {
    if (!(max_bias > 0.0f))
        return 1.0f;
    int64_t n = 1;
    while (n <= n_heads / 2)
        n *= 2;
    const double step = (double)max_bias / (double)n;
    const double power = head < n ? (double)(head + 1) : (double)(2 * (head - n) + 1) / 2.0;
    return (float)exp2(-step * power);
}

#endif
