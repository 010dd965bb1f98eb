/* SPDX-License-Identifier: MIT */
/* Quantisers of the K types. Each sub-block is fitted by itself; the scales (and minima) are then quantised in turn, by
 * their weights if there is a matrix; and with what was stored, codes are made once more. */
#include "core/type_convert.h"
#include "quant/extremes.h"
#include "quant/fit.h"
#include "quant/k_layout.h"
#include "quant/quant_impl.h"

/* One block of 256 = groups * n elements on its way. */
struct block {
    const float * x;
    const float * matrix; /* a weight per element, or NULL */
    int groups, n;
    float w[QK_K];
    float scales[16], minima[16];
    uint8_t codes[QK_K];
    uint8_t s[16], m[16]; /* quantised scales and minima */
    float d, dmin;        /* their scales, as stored */
};

/* ---- weights */

/* With a matrix: the columns' weights times sqrt(factor * mean of squares of the block + x^2). */
static void weigh(struct block * b, float factor) {
    const float sigma2 = factor * sotto_i_sum_of_squares(b->x, QK_K) / (float)QK_K;
    for (int i = 0; i < QK_K; i += b->n) {
        sotto_i_weigh(b->x + i, b->matrix + i, b->n, sigma2, b->w + i);
    }
}

static void weigh_by_magnitude(struct block * b) {
    for (int i = 0; i < QK_K; i++) {
        b->w[i] = fabsf(b->x[i]);
    }
}

/* The same above a floor that is the sub-block's root mean square. */
static void weigh_by_raised_magnitude(struct block * b) {
    for (int g = 0; g < b->groups; g++) {
        const float * x = b->x + g * b->n;
        const float u = sqrtf(sotto_i_sum_of_squares(x, b->n) / (float)b->n);
        for (int i = 0; i < b->n; i++) {
            b->w[g * b->n + i] = u + fabsf(x[i]);
        }
    }
}

static void sum_weights(const struct block * b, float * sums) {
    for (int g = 0; g < b->groups; g++) {
        sums[g] = 0.0f;
        for (int i = 0; i < b->n; i++) {
            sums[g] += b->w[g * b->n + i];
        }
    }
}

/* ---- scales of scales */

/* Spread values from 0 to the largest over codes 0..top; returns the scale. */
static float spread(const float * values, int n, int top, uint8_t * codes) {
    float largest = 0.0f;
    for (int i = 0; i < n; i++) {
        largest = values[i] > largest ? values[i] : largest;
    }
    const float inverse = largest > 0.0f ? (float)top / largest : 0.0f;
    for (int i = 0; i < n; i++) {
        codes[i] = (uint8_t)q_even(inverse * values[i], 0.0f, (float)top);
    }
    return largest / (float)top;
}

static float fit_positive(const float * values, const float * w, int n, int top, uint8_t * codes) {
    int8_t signed_codes[16];
    const float scale = sotto_i_fit_positive(values, w, n, top, signed_codes);
    for (int i = 0; i < n; i++) {
        codes[i] = (uint8_t)(signed_codes[i] > 0 ? signed_codes[i] : 0);
    }
    return scale;
}

static float rounded_half(float v) { return sotto_fp16_to_fp32(sotto_fp32_to_fp16(v)); }

/* Scales and minima to codes 0..top. */
static void quantise_scales_and_minima(struct block * b, int top) {
    if (b->matrix) {
        float sums[16] = { 0.0f };
        sum_weights(b, sums);
        b->d = fit_positive(b->scales, sums, b->groups, top, b->s);
        b->dmin = fit_positive(b->minima, sums, b->groups, top, b->m);
    } else {
        b->d = spread(b->scales, b->groups, top, b->s);
        b->dmin = spread(b->minima, b->groups, top, b->m);
    }
    b->d = rounded_half(b->d);
    b->dmin = rounded_half(b->dmin);
}

/* Codes lo..hi of (x + min) / scale, stored from 0, unless the scale is 0. */
static void recode(const float * x, int n, float scale, float min, float lo, float hi, uint8_t * codes) {
    for (int i = 0; i < n && scale != 0.0f; i++) {
        codes[i] = (uint8_t)(q_even((x[i] + min) / scale, lo, hi) - lo);
    }
}

static void recode_above_minima(struct block * b, int top) {
    for (int g = 0; g < b->groups; g++) {
        recode(b->x + g * b->n, b->n, b->d * (float)b->s[g], b->dmin * (float)b->m[g], 0.0f, (float)top,
               b->codes + g * b->n);
    }
}

/* ---- codes in place */

/* 2 bits: byte l of a run of 128 has elements l, l + 32, l + 64, l + 96 */
static void put_two_bits(const uint8_t * codes, uint8_t * out) {
    for (int i = 0; i < QK_K / 4; i++) {
        const uint8_t * c = codes + i / 32 * 128 + i % 32;
        out[i] = (uint8_t)((c[0] & 3) | (c[32] & 3) << 2 | (c[64] & 3) << 4 | (c[96] & 3) << 6);
    }
}

/* Nibbles: byte l of a run of 64 has elements l and l + 32 */
static void put_nibbles(const uint8_t * codes, uint8_t * out) {
    for (int i = 0; i < QK_K / 2; i++) {
        const uint8_t * c = codes + i / 32 * 64 + i % 32;
        out[i] = (uint8_t)((c[0] & 15) | (c[32] & 15) << 4);
    }
}

/* Bit `bit` of the codes: bit j of byte l is that of element 32 j + l */
static void put_bits(const uint8_t * codes, int bit, uint8_t * out) {
    for (int l = 0; l < 32; l++) {
        unsigned bits = 0;
        for (int j = 0; j < 8; j++) {
            bits |= (unsigned)(codes[32 * j + l] >> bit & 1) << j;
        }
        out[l] = (uint8_t)bits;
    }
}

static void put_scales_and_minima(const struct block * b, uint8_t * s) {
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(b->s[j] | (b->s[j + 4] >> 4) << 6);
        s[j + 4] = (uint8_t)(b->m[j] | (b->m[j + 4] >> 4) << 6);
        s[j + 8] = (uint8_t)((b->s[j + 4] & 15) | (b->m[j + 4] & 15) << 4);
    }
}

/* ---- q2_K */

static const struct sotto_i_offset_search Q2K_PLAIN = { 3, -0.5f, 0.1f, 15, true };
static const struct sotto_i_offset_search Q2K_WEIGHTED = { 3, -0.9f, 0.05f, 36, false };

static void q2_k_quantise(const float * x, const float * matrix, uint8_t * out) {
    struct block b = { .x = x, .matrix = matrix, .groups = 16, .n = 16 };
    if (matrix) {
        weigh(&b, 1.0f);
    } else {
        weigh_by_magnitude(&b);
    }
    sotto_i_fit_offset(matrix ? &Q2K_WEIGHTED : &Q2K_PLAIN, x, b.w, 16, 16, b.scales, b.minima, b.codes);
    quantise_scales_and_minima(&b, 15);
    recode_above_minima(&b, 3);
    for (int g = 0; g < 16; g++) {
        out[Q2K_SCALES + g] = (uint8_t)(b.s[g] | b.m[g] << 4);
    }
    put_two_bits(b.codes, out + Q2K_CODES);
    put_half(out + Q2K_D, b.d);
    put_half(out + Q2K_DMIN, b.dmin);
}

/* ---- q4_K, q5_K */

static const struct sotto_i_offset_search Q4K_PLAIN = { 15, -1.0f, 0.1f, 20, false };
static const struct sotto_i_offset_search Q4K_WEIGHTED = { 15, -0.9f, 0.05f, 36, false };
static const struct sotto_i_offset_search Q5K_PLAIN = { 31, -0.5f, 0.1f, 15, false };
static const struct sotto_i_offset_search Q5K_WEIGHTED = { 31, -0.9f, 0.05f, 36, false };

static void fit_eight(struct block * b, const struct sotto_i_offset_search * how) {
    if (b->matrix) {
        weigh(b, 2.0f);
    } else {
        weigh_by_raised_magnitude(b);
    }
    sotto_i_fit_offset(how, b->x, b->w, 8, 32, b->scales, b->minima, b->codes);
    quantise_scales_and_minima(b, 63);
    recode_above_minima(b, how->top);
}

static void q4_k_quantise(const float * x, const float * matrix, uint8_t * out) {
    struct block b = { .x = x, .matrix = matrix, .groups = 8, .n = 32 };
    fit_eight(&b, matrix ? &Q4K_WEIGHTED : &Q4K_PLAIN);
    put_half(out + Q4K_D, b.d);
    put_half(out + Q4K_DMIN, b.dmin);
    put_scales_and_minima(&b, out + Q4K_SCALES);
    put_nibbles(b.codes, out + Q4K_CODES);
}

static void q5_k_quantise(const float * x, const float * matrix, uint8_t * out) {
    struct block b = { .x = x, .matrix = matrix, .groups = 8, .n = 32 };
    fit_eight(&b, matrix ? &Q5K_WEIGHTED : &Q5K_PLAIN);
    put_half(out + Q5K_D, b.d);
    put_half(out + Q5K_DMIN, b.dmin);
    put_scales_and_minima(&b, out + Q5K_SCALES);
    put_bits(b.codes, 4, out + Q5K_HIGH);
    put_nibbles(b.codes, out + Q5K_CODES);
}

/* ---- q3_K, q6_K: scales of either sign */

/* The scale of the largest magnitude, with its sign. */
static float most_extreme(const float * scales) { return first_extreme(scales, 16, largest_magnitude(scales, 16)); }

/* Scales to codes 0..63 for -32..31. */
static void quantise_q3_k_scales(struct block * b) {
    if (b->matrix) {
        float sums[16] = { 0.0f };
        sum_weights(b, sums);
        sotto_i_fit_signed(32, b->scales, sums, 1, 16, &b->d, b->s);
    } else {
        const float extreme = most_extreme(b->scales), inverse = -32.0f / extreme;
        for (int g = 0; g < 16; g++) {
            b->s[g] = extreme == 0.0f ? 0 : (uint8_t)(q_even(inverse * b->scales[g], -32.0f, 31.0f) + 32.0f);
        }
        b->d = extreme == 0.0f ? 0.0f : 1.0f / inverse;
    }
    b->d = rounded_half(b->d);
}

static void put_q3_k_scales(const uint8_t * s, uint8_t * out) {
    for (int g = 0; g < 8; g++) {
        out[g] = (uint8_t)((s[g] & 15) | (s[g + 8] & 15) << 4);
    }
    for (int g = 0; g < 4; g++) {
        out[8 + g] = (uint8_t)(s[g] >> 4 | (s[g + 4] >> 4) << 2 | (s[g + 8] >> 4) << 4 | (s[g + 12] >> 4) << 6);
    }
}

static void q3_k_quantise(const float * x, const float * matrix, uint8_t * out) {
    struct block b = { .x = x, .matrix = matrix, .groups = 16, .n = 16 };
    if (matrix) {
        weigh(&b, 2.0f);
        sotto_i_fit_signed(4, x, b.w, 16, 16, b.scales, b.codes);
    } else {
        sotto_i_fit_signed_moving(4, x, 16, 16, b.scales, b.codes);
    }
    quantise_q3_k_scales(&b);
    for (int g = 0; g < 16; g++) {
        recode(x + 16 * g, 16, b.d * (float)(b.s[g] - 32), 0.0f, -4.0f, 3.0f, b.codes + 16 * g);
    }
    put_bits(b.codes, 2, out + Q3K_MASK);
    put_two_bits(b.codes, out + Q3K_CODES);
    put_q3_k_scales(b.s, out + Q3K_SCALES);
    put_half(out + Q3K_D, b.d);
}

static void put_q6_k_codes(const uint8_t * codes, uint8_t * out) {
    for (int i = 0; i < QK_K / 4; i++) {
        const uint8_t * c = codes + i / 32 * 128 + i % 32;
        uint8_t * low = out + Q6K_LOW + i / 32 * 64 + i % 32;
        low[0] = (uint8_t)((c[0] & 15) | (c[64] & 15) << 4);
        low[32] = (uint8_t)((c[32] & 15) | (c[96] & 15) << 4);
        out[Q6K_HIGH + i] = (uint8_t)(c[0] >> 4 | (c[32] >> 4) << 2 | (c[64] >> 4) << 4 | (c[96] >> 4) << 6);
    }
}

static void q6_k_quantise(const float * x, const float * matrix, uint8_t * out) {
    struct block b = { .x = x, .matrix = matrix, .groups = 16, .n = 16 };
    for (int i = 0; i < QK_K && matrix; i += 16) {
        sotto_i_columns(x + i, matrix + i, 16, b.w + i);
    }
    sotto_i_fit_signed(32, x, matrix ? b.w : NULL, 16, 16, b.scales, b.codes);
    const float extreme = most_extreme(b.scales);
    if (fabsf(extreme) < 1e-15f) {
        memset(out, 0, Q6K_BYTES);
        return;
    }
    const float inverse = -128.0f / extreme;
    b.d = rounded_half(1.0f / inverse);
    for (int g = 0; g < 16; g++) {
        const float s = q_even(inverse * b.scales[g], -128.0f, 127.0f);
        recode(x + 16 * g, 16, b.d * s, 0.0f, -32.0f, 31.0f, b.codes + 16 * g);
        out[Q6K_SCALES + g] = (uint8_t)(int8_t)s;
    }
    put_q6_k_codes(b.codes, out);
    put_half(out + Q6K_D, b.d);
}

/* ---- q8_K */

static void q8_k_encode(const float * x, uint8_t * block) {
    const float extreme = first_extreme(x, QK_K, largest_magnitude(x, QK_K));
    const float inverse = extreme != 0.0f ? -127.0f / extreme : 0.0f;
    put_f32(block + Q8K_D, q_inverse(inverse));
    for (int g = 0; g < 16; g++) {
        int sum = 0;
        for (int i = 16 * g; i < 16 * g + 16; i++) {
            const int q = (int)q_even(inverse * x[i], -127.0f, 127.0f);
            block[Q8K_CODES + i] = (uint8_t)q;
            sum += q;
        }
        put_u16(block + Q8K_SUMS + 2 * g, (uint16_t)sum);
    }
}

ENCODE_ROWS(q8_k, QK_K, Q8K_BYTES)

/* ---- rows */

#define QUANTISE_ROWS(name, bytes)                                                        \
    void sotto_i_quantise_##name(const float * x, void * y, int64_t n, const float * w) { \
        uint8_t * out = y;                                                                \
        for (int64_t i = 0; i < n; i += QK_K, out += (bytes)) {                           \
            name##_quantise(x + i, w ? w + i : NULL, out);                                \
        }                                                                                 \
    }                                                                                     \
    void sotto_i_##name##_from_float(const float * x, void * y, int64_t n) { sotto_i_quantise_##name(x, y, n, NULL); }

QUANTISE_ROWS(q2_k, Q2K_BYTES)
QUANTISE_ROWS(q3_k, Q3K_BYTES)
QUANTISE_ROWS(q4_k, Q4K_BYTES)
QUANTISE_ROWS(q5_k, Q5K_BYTES)
QUANTISE_ROWS(q6_k, Q6K_BYTES)
