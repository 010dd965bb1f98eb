/* SPDX-License-Identifier: MIT */
/* Nibbles that choose from 16 values: iq4_nl and iq4_xs.
 *
 *     iq4_nl   32 elements  d, 16 bytes of nibbles
 *     iq4_xs  256 elements  d, 8 x 2 high bits and 8 x 4 low bits of scales - 32, 8 times 16 bytes of nibbles
 *
 * Low nibbles are the first half of 32 elements. */
#include "core/type_convert.h"
#include "quant/codebooks.h"
#include "quant/extremes.h"
#include "quant/f4.h"
#include "quant/fit.h"
#include "quant/quant_impl.h"

enum { SUB = 32 };

/* ---- decoding */

static void nibbles_decode(const uint8_t * nibbles, float d, float * y) {
    for (int i = 0; i < SUB / 2; i++) {
        y[i] = d * (float)sotto_i_iq4_values[nibbles[i] & 15];
        y[i + SUB / 2] = d * (float)sotto_i_iq4_values[nibbles[i] >> 4];
    }
}

static void iq4_nl_decode(const uint8_t * block, float * y) { nibbles_decode(block + 2, get_half(block), y); }

static void iq4_xs_decode(const uint8_t * block, float * y) {
    const float d = get_half(block);
    const unsigned high = get_u16(block + 2);
    for (int j = 0; j < 8; j++) {
        const int scale = (block[4 + j / 2] >> (4 * (j % 2)) & 15) + 16 * (int)(high >> (2 * j) & 3);
        nibbles_decode(block + 8 + 16 * j, d * (float)(scale - 32), y + SUB * j);
    }
}

DECODE_ROWS(iq4_nl, SUB, 18)
DECODE_ROWS(iq4_xs, QK_K, 136)

/* ---- encoding */

/* Where the nearest value changes, and by how much; equally near ones give the larger. */
static const float BORDERS[15] = { -115.5f, -93.5f, -74.0f, -57.0f, -42.0f, -28.5f, -16.0f, -4.5f,
                                   7.0f,    19.0f,  31.5f,  45.5f,  61.0f,  79.0f,  101.0f };
static const float STEPS[15] = { 23, 21, 18, 16, 14, 13, 12, 11, 12, 12, 13, 15, 16, 20, 24 };

static f4 nearest_values(f4 v) {
    v = f4_clamp(v, -127.0f, 113.0f);
    f4 value = f4_all(-127.0f);
    for (int k = 0; k < 15; k++) {
        value += (f4)((i4)(v >= BORDERS[k]) & (i4)f4_all(STEPS[k]));
    }
    return value;
}

static void nearest_codes(const float * x, float inverse, uint8_t * codes) {
    for (int i = 0; i < SUB; i += 16) {
        i4 code[4];
        for (int p = 0; p < 4; p++) {
            const f4 v = f4_clamp(f4_load(x + i + 4 * p) * inverse, -127.0f, 113.0f);
            code[p] = (i4){ 0 };
            for (int k = 0; k < 15; k++) {
                code[p] -= (i4)(v >= BORDERS[k]);
            }
        }
        i4_put_16(code, codes + i);
    }
}

/* The start and the inverse scales around it, side by side. */
enum { AROUND = 7, TRIALS = 2 + 2 * AROUND };

struct trials {
    float inverse[TRIALS], xk[TRIALS], kk[TRIALS]; /* sums of w k x and w k k over the values k that are nearest */
};

static void sum_trials(const float * x, const float * w, struct trials * t) {
    for (int part = 0; part < TRIALS; part += 4) {
        f4 xk = f4_all(0.0f), kk = f4_all(0.0f);
        const f4 inverse = f4_load(t->inverse + part);
        for (int i = 0; i < SUB; i++) {
            const f4 k = nearest_values(inverse * x[i]), wk = w[i] * k;
            xk += wk * x[i];
            kk += wk * k;
        }
        memcpy(t->xk + part, &xk, sizeof(xk));
        memcpy(t->kk + part, &kk, sizeof(kk));
    }
}

/* The scale that fits 32 values best. */
static float search(const float * x, const float * w) {
    const float a = largest_magnitude(x, SUB);
    if (a < 1e-15f) {
        return 0.0f;
    }
    const float m = first_extreme(x, SUB, a);
    struct trials t = { .inverse = { 1.0f / (-m / -127.0f) } };
    for (int k = -AROUND; k <= AROUND; k++) {
        t.inverse[1 + AROUND + k] = ((float)k + -127.0f) / m;
    }
    sum_trials(x, w, &t);
    float scale = t.kk[0] != 0.0f ? t.xk[0] / t.kk[0] : 0.0f, best = scale * t.xk[0];
    for (int k = 1; k < TRIALS; k++) {
        if (t.kk[k] > 0.0f && t.xk[k] * t.xk[k] > best * t.kk[k]) {
            scale = t.xk[k] / t.kk[k];
            best = scale * t.xk[k];
        }
    }
    return scale;
}

/* Weights: squares, or those of a matrix. */
static void weigh(const float * x, const float * column, float sigma2, float * w) {
    if (column) {
        sotto_i_weigh(x, column, SUB, sigma2, w);
        return;
    }
    for (int i = 0; i < SUB; i++) {
        w[i] = x[i] * x[i];
    }
}

static void codes_encode(const float * x, float inverse, uint8_t * nibbles) {
    uint8_t codes[SUB];
    nearest_codes(x, inverse, codes);
    for (int i = 0; i < SUB / 2; i++) {
        nibbles[i] = (uint8_t)(codes[i] | codes[i + SUB / 2] << 4);
    }
}

/* The row quantiser, for activations and conversions, has no time to search: the extreme value becomes -127. */
static void iq4_nl_encode(const float * x, uint8_t * block) {
    const float a = largest_magnitude(x, SUB);
    if (a < 1e-15f) {
        put_half(block, 0.0f);
        codes_encode(x, 0.0f, block + 2);
        return;
    }
    const float inverse = q_inverse(first_extreme(x, SUB, a) / -127.0f);
    float xk = 0.0f, kk = 0.0f;
    codes_encode(x, inverse, block + 2);
    for (int i = 0; i < SUB; i++) {
        const int code = block[2 + i % (SUB / 2)] >> (i / (SUB / 2) * 4) & 15;
        const float k = (float)sotto_i_iq4_values[code], wk = x[i] * x[i] * k;
        xk += wk * x[i];
        kk += wk * k;
    }
    put_half(block, kk != 0.0f ? xk / kk : 0.0f);
}

ENCODE_ROWS(iq4_nl, SUB, 18)

void sotto_i_quantise_iq4_nl(const float * x, void * y, int64_t n, const float * w) {
    uint8_t * block = y;
    for (int64_t i = 0; i < n; i += SUB, block += 18) {
        float weights[SUB];
        weigh(x + i, w ? w + i : NULL, 2.0f * (sotto_i_sum_of_squares(x + i, SUB) / (float)SUB), weights);
        const float scale = search(x + i, weights);
        put_half(block, scale);
        codes_encode(x + i, q_inverse(scale), block + 2);
    }
}

static void iq4_xs_block(const float * x, const float * column, uint8_t * block) {
    const float sigma2 = 2.0f * (sotto_i_sum_of_squares(x, QK_K) / (float)QK_K);
    float scales[QK_K / SUB];
    for (int j = 0; j < QK_K / SUB; j++) {
        float w[SUB];
        weigh(x + SUB * j, column ? column + SUB * j : NULL, sigma2, w);
        scales[j] = search(x + SUB * j, w);
    }
    const float m = first_extreme(scales, QK_K / SUB, largest_magnitude(scales, QK_K / SUB));
    const float d = -m / 32.0f, inverse = q_inverse(d);
    unsigned high = 0;
    memset(block + 4, 0, 4);
    for (int j = 0; j < QK_K / SUB; j++) {
        const float s = q_even(inverse * scales[j], -32.0f, 31.0f);
        const unsigned code = (unsigned)((int)s + 32);
        high |= (code >> 4) << (2 * j);
        block[4 + j / 2] |= (uint8_t)((code & 15) << (4 * (j % 2)));
        codes_encode(x + SUB * j, q_inverse(d * s), block + 8 + 16 * j);
    }
    put_half(block, d);
    put_u16(block + 2, (uint16_t)high);
}

void sotto_i_quantise_iq4_xs(const float * x, void * y, int64_t n, const float * w) {
    uint8_t * block = y;
    for (int64_t i = 0; i < n; i += QK_K, block += 136) {
        iq4_xs_block(x + i, w ? w + i : NULL, block);
    }
}

void sotto_i_iq4_xs_from_float(const float * x, void * y, int64_t n) { sotto_i_quantise_iq4_xs(x, y, n, NULL); }
