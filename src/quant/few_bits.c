/* SPDX-License-Identifier: MIT */
/* One scale and codes of two or three values: q1_0, q2_0, tq1_0, tq2_0.
 *
 *     q1_0   128 elements  d, 16 bytes: a bit each, lowest first; d or -d
 *     q2_0    64 elements  d, 16 bytes: four codes of 2 bits each, lowest first; (q - 1) d
 *     tq2_0  256 elements  64 bytes, d: in a run of 128, byte l holds elements l, l + 32, l + 64, l + 96
 *     tq1_0  256 elements  48 bytes of five base-3 digits, 4 bytes of four, d: digits -1, 0, 1
 *
 * The five digits of a byte, first the most significant, are its numerator over 243 in 256ths: multiplying the byte by
 * 3^n, mod 256, shifts n digits out, and the next is the byte times 3 over 256. */
#include "core/type_convert.h"
#include "quant/extremes.h"
#include "quant/quant_impl.h"

enum { Q1 = 128, Q2 = 64, DIGITS = 5 };

/* ---- decoding */

static void q1_0_decode(const uint8_t * block, float * y) {
    const float d = get_half(block);
    for (int i = 0; i < Q1; i++) {
        y[i] = block[2 + i / 8] >> (i % 8) & 1 ? d : -d;
    }
}

static void q2_0_decode(const uint8_t * block, float * y) {
    const float d = get_half(block);
    for (int i = 0; i < Q2; i++) {
        y[i] = (float)((block[2 + i / 4] >> (2 * (i % 4)) & 3) - 1) * d;
    }
}

/* The digits of `n` bytes: digit k of byte i is element k * n + i. */
static void digits_decode(const uint8_t * bytes, int n, int digits, float d, float * y) {
    uint8_t power = 1;
    for (int k = 0; k < digits; k++) {
        for (int i = 0; i < n; i++) {
            const int digit = (uint8_t)(bytes[i] * power) * 3 >> 8;
            y[k * n + i] = (float)(digit - 1) * d;
        }
        power = (uint8_t)(power * 3);
    }
}

static void tq1_0_decode(const uint8_t * block, float * y) {
    const float d = get_half(block + 52);
    digits_decode(block, 32, DIGITS, d, y);
    digits_decode(block + 32, 16, DIGITS, d, y + 160);
    digits_decode(block + 48, 4, 4, d, y + 240);
}

static void tq2_0_decode(const uint8_t * block, float * y) {
    const float d = get_half(block + 64);
    for (int i = 0; i < QK_K; i++) {
        const int q = block[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3;
        y[i] = (float)(q - 1) * d;
    }
}

DECODE_ROWS(q1_0, Q1, 18)
DECODE_ROWS(q2_0, Q2, 18)
DECODE_ROWS(tq1_0, QK_K, 54)
DECODE_ROWS(tq2_0, QK_K, 66)

/* ---- encoding */

static void q1_0_encode(const float * x, uint8_t * block) {
    float sum = 0.0f;
    for (int i = 0; i < Q1; i++) {
        sum += fabsf(x[i]);
    }
    put_half(block, sum / (float)Q1);
    for (int b = 0; b < Q1 / 8; b++) {
        unsigned bits = 0;
        for (int i = 0; i < 8; i++) {
            bits |= (unsigned)(x[8 * b + i] >= 0.0f) << i;
        }
        block[2 + b] = (uint8_t)bits;
    }
}

/* Codes 0, 1, 2 for -1, 0, 1 times the largest magnitude, which is returned. */
static float ternary(const float * x, int n, uint8_t * q) {
    const float d = largest_magnitude(x, n), inverse = q_inverse(d);
    for (int i = 0; i < n; i++) {
        q[i] = (uint8_t)(q_away(x[i] * inverse, -1.0f, 1.0f) + 1);
    }
    return d;
}

static void q2_0_encode(const float * x, uint8_t * block) {
    uint8_t q[Q2];
    put_half(block, ternary(x, Q2, q));
    for (int i = 0; i < Q2 / 4; i++) {
        block[2 + i] = (uint8_t)(q[4 * i] | q[4 * i + 1] << 2 | q[4 * i + 2] << 4 | q[4 * i + 3] << 6);
    }
}

/* Digit k of byte i from q[k * n + i]; what is missing at five digits is 0. */
static void digits_encode(const uint8_t * q, int n, int digits, uint8_t * bytes) {
    for (int i = 0; i < n; i++) {
        int number = 0;
        for (int k = 0; k < DIGITS; k++) {
            number = 3 * number + (k < digits ? q[k * n + i] : 0);
        }
        bytes[i] = (uint8_t)((number * 256 + 242) / 243);
    }
}

static void tq1_0_encode(const float * x, uint8_t * block) {
    uint8_t q[QK_K];
    put_half(block + 52, ternary(x, QK_K, q));
    digits_encode(q, 32, DIGITS, block);
    digits_encode(q + 160, 16, DIGITS, block + 32);
    digits_encode(q + 240, 4, 4, block + 48);
}

static void tq2_0_encode(const float * x, uint8_t * block) {
    uint8_t q[QK_K];
    put_half(block + 64, ternary(x, QK_K, q));
    for (int i = 0; i < 64; i++) {
        const uint8_t * first = q + i / 32 * 128 + i % 32;
        block[i] = (uint8_t)(first[0] | first[32] << 2 | first[64] << 4 | first[96] << 6);
    }
}

ENCODE_ROWS(q1_0, Q1, 18)
ENCODE_ROWS(q2_0, Q2, 18)
ENCODE_ROWS(tq1_0, QK_K, 54)
ENCODE_ROWS(tq2_0, QK_K, 66)
