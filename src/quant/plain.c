/* SPDX-License-Identifier: MIT */
/* Blocks of 32 with one scale: q4_0, q4_1, q5_0, q5_1, q8_0, q8_1.
 *
 *            d  m  fifth bits  codes            value
 *     q4_0   2              -  16 of nibbles    (q - 8) d
 *     q4_1   2  2           -  16               q d + m
 *     q5_0   2              4  16               (q - 16) d
 *     q5_1   2  2           4  16               q d + m
 *     q8_0   2              -  32 bytes         q d
 *     q8_1   2  2           -  32               q d, and m = d times the sum of q serves products
 *
 * Low nibbles are elements 0..15, high ones 16..31. */
#include "core/type_convert.h"
#include "quant/quant_impl.h"

enum { N = 32 };

/* ---- decoding */

static void low_high(const uint8_t * nibbles, int * q) {
    for (int i = 0; i < N / 2; i++) {
        q[i] = nibbles[i] & 15;
        q[i + N / 2] = nibbles[i] >> 4;
    }
}

static void fifth_bits(const uint8_t * bits, int * q) {
    const uint32_t high = get_u32(bits);
    for (int i = 0; i < N; i++) {
        q[i] |= (int)((high >> i & 1) << 4);
    }
}

static void scaled(const int * q, int zero, float d, float * y) {
    for (int i = 0; i < N; i++) {
        y[i] = (float)(q[i] - zero) * d;
    }
}

static void scaled_and_moved(const int * q, float d, float m, float * y) {
    for (int i = 0; i < N; i++) {
        y[i] = (float)q[i] * d + m;
    }
}

static void bytes_scaled(const uint8_t * bytes, float d, float * y) {
    for (int i = 0; i < N; i++) {
        y[i] = (float)(int8_t)bytes[i] * d;
    }
}

static void q4_0_decode(const uint8_t * block, float * y) {
    int q[N];
    low_high(block + 2, q);
    scaled(q, 8, get_half(block), y);
}

static void q4_1_decode(const uint8_t * block, float * y) {
    int q[N];
    low_high(block + 4, q);
    scaled_and_moved(q, get_half(block), get_half(block + 2), y);
}

static void q5_0_decode(const uint8_t * block, float * y) {
    int q[N];
    low_high(block + 6, q);
    fifth_bits(block + 2, q);
    scaled(q, 16, get_half(block), y);
}

static void q5_1_decode(const uint8_t * block, float * y) {
    int q[N];
    low_high(block + 8, q);
    fifth_bits(block + 4, q);
    scaled_and_moved(q, get_half(block), get_half(block + 2), y);
}

static void q8_0_decode(const uint8_t * block, float * y) { bytes_scaled(block + 2, get_half(block), y); }
static void q8_1_decode(const uint8_t * block, float * y) { bytes_scaled(block + 4, get_half(block), y); }

DECODE_ROWS(q4_0, N, 18)
DECODE_ROWS(q4_1, N, 20)
DECODE_ROWS(q5_0, N, 22)
DECODE_ROWS(q5_1, N, 24)
DECODE_ROWS(q8_0, N, 34)
DECODE_ROWS(q8_1, N, 36)
