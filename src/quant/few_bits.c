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
