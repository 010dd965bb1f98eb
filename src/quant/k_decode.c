/* SPDX-License-Identifier: MIT */
/* Decoding of the K types: see k_layout.h. Element e = 128 n + 32 k + l. */
#include "core/type_convert.h"
#include "quant/k_layout.h"
#include "quant/quant_impl.h"

static void q2_k_decode(const uint8_t * block, float * y) {
    const float d = get_half(block + Q2K_D), dmin = get_half(block + Q2K_DMIN);
    for (int g = 0; g < 16; g++) {
        const uint8_t sm = block[Q2K_SCALES + g];
        const uint8_t * codes = block + Q2K_CODES + g / 8 * 32 + g % 2 * 16;
        const float scale = d * (float)(sm & 15), min = dmin * (float)(sm >> 4);
        const int shift = g / 2 % 4 * 2;
        for (int i = 0; i < 16; i++) {
            y[16 * g + i] = scale * (float)(codes[i] >> shift & 3) - min;
        }
    }
}

static void q3_k_decode(const uint8_t * block, float * y) {
    const float d = get_half(block + Q3K_D);
    for (int g = 0; g < 16; g++) {
        const uint8_t * codes = block + Q3K_CODES + g / 8 * 32 + g % 2 * 16;
        const uint8_t * mask = block + Q3K_MASK + g % 2 * 16;
        const float scale = d * (float)(get_scale6(block + Q3K_SCALES, g) - 32);
        const int shift = g / 2 % 4 * 2, bit = g / 2;
        for (int i = 0; i < 16; i++) {
            const int q = (codes[i] >> shift & 3) + (mask[i] >> bit & 1) * 4 - 4;
            y[16 * g + i] = scale * (float)q;
        }
    }
}

static void q4_k_decode(const uint8_t * block, float * y) {
    const float d = get_half(block + Q4K_D), dmin = get_half(block + Q4K_DMIN);
    for (int j = 0; j < 8; j++) {
        int s, m;
        get_scale_min(block + Q4K_SCALES, j, &s, &m);
        const uint8_t * codes = block + Q4K_CODES + j / 2 * 32;
        const float scale = d * (float)s, min = dmin * (float)m;
        const int shift = j % 2 * 4;
        for (int l = 0; l < 32; l++) {
            y[32 * j + l] = scale * (float)(codes[l] >> shift & 15) - min;
        }
    }
}

static void q5_k_decode(const uint8_t * block, float * y) {
    const float d = get_half(block + Q5K_D), dmin = get_half(block + Q5K_DMIN);
    const uint8_t * high = block + Q5K_HIGH;
    for (int j = 0; j < 8; j++) {
        int s, m;
        get_scale_min(block + Q5K_SCALES, j, &s, &m);
        const uint8_t * codes = block + Q5K_CODES + j / 2 * 32;
        const float scale = d * (float)s, min = dmin * (float)m;
        const int shift = j % 2 * 4;
        for (int l = 0; l < 32; l++) {
            const int q = (codes[l] >> shift & 15) | (high[l] >> j & 1) << 4;
            y[32 * j + l] = scale * (float)q - min;
        }
    }
}

static void q6_k_decode(const uint8_t * block, float * y) {
    const float d = get_half(block + Q6K_D);
    for (int g = 0; g < 16; g++) {
        const int n = g / 8, k = g / 2 % 4, half = g % 2 * 16;
        const uint8_t * low = block + Q6K_LOW + 64 * n + 32 * (k % 2) + half;
        const uint8_t * high = block + Q6K_HIGH + 32 * n + half;
        const float scale = d * (float)(int8_t)block[Q6K_SCALES + g];
        const int low_shift = k / 2 * 4, high_shift = 2 * k;
        for (int i = 0; i < 16; i++) {
            const int q = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
            y[16 * g + i] = scale * (float)(q - 32);
        }
    }
}

static void q8_k_decode(const uint8_t * block, float * y) {
    const float d = get_f32(block + Q8K_D);
    for (int i = 0; i < QK_K; i++) {
        y[i] = d * (float)(int8_t)block[Q8K_CODES + i];
    }
}

DECODE_ROWS(q2_k, QK_K, Q2K_BYTES)
DECODE_ROWS(q3_k, QK_K, Q3K_BYTES)
DECODE_ROWS(q4_k, QK_K, Q4K_BYTES)
DECODE_ROWS(q5_k, QK_K, Q5K_BYTES)
DECODE_ROWS(q6_k, QK_K, Q6K_BYTES)
DECODE_ROWS(q8_k, QK_K, Q8K_BYTES)
