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
#include "quant/extremes.h"
#include "quant/plain.h"
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

/* ---- encoding: scales are rounded for storage only, codes come from the unrounded ones */

/* Codes 0..15 as low nibbles, 16..31 as high ones, eight at a time; their order in a word does not matter. */
static void put_low_high(const uint8_t * q, uint8_t * nibbles) {
    const uint64_t mask = UINT64_C(0x0F0F0F0F0F0F0F0F);
    for (int i = 0; i < N / 2; i += 8) {
        uint64_t low, high;
        memcpy(&low, q + i, sizeof(low));
        memcpy(&high, q + i + N / 2, sizeof(high));
        low = (low & mask) | (high & mask) << 4;
        memcpy(nibbles + i, &low, sizeof(low));
    }
}

static void put_fifth_bits(const uint8_t * q, uint8_t * bits) {
    put_u32(bits, bit_4_of_16(q) | bit_4_of_16(q + 16) << 16);
}

void sotto_i_q4_0_pack(float d, const uint8_t * q, uint8_t * block) {
    put_half(block, d);
    put_low_high(q, block + 2);
}

void sotto_i_q4_1_pack(float d, float m, const uint8_t * q, uint8_t * block) {
    put_half(block, d);
    put_half(block + 2, m);
    put_low_high(q, block + 4);
}

void sotto_i_q5_0_pack(float d, const uint8_t * q, uint8_t * block) {
    put_half(block, d);
    put_fifth_bits(q, block + 2);
    put_low_high(q, block + 6);
}

void sotto_i_q5_1_pack(float d, float m, const uint8_t * q, uint8_t * block) {
    put_half(block, d);
    put_half(block + 2, m);
    put_fifth_bits(q, block + 4);
    put_low_high(q, block + 8);
}

/* Codes 0..2 zero - 1 around `zero`, the most extreme value on the end that has one more level; returns the scale. */
static inline float centred(const float * x, int zero, uint8_t * q) {
    const float m = first_extreme(x, N, largest_magnitude(x, N));
    const float d = m / (float)-zero, inverse = q_inverse(d), top = (float)(2 * zero - 1);
    for (int i = 0; i < N; i += 16) {
        i4 v[4];
        for (int k = 0; k < 4; k++) {
            v[k] = f4_trunc(f4_load(x + i + 4 * k) * inverse + ((float)zero + 0.5f), 0.0f, top);
        }
        i4_put_16(v, q + i);
    }
    return d;
}

/* Codes 0..top from the smallest value to the largest; returns the scale. */
static inline float from_smallest(const float * x, int top, float * smallest, uint8_t * q) {
    float largest;
    smallest_and_largest(x, N, smallest, &largest);
    const float min = *smallest, d = (largest - min) / (float)top, inverse = q_inverse(d);
    for (int i = 0; i < N; i += 16) {
        i4 v[4];
        for (int k = 0; k < 4; k++) {
            v[k] = f4_trunc((f4_load(x + i + 4 * k) - min) * inverse + 0.5f, 0.0f, (float)top);
        }
        i4_put_16(v, q + i);
    }
    return d;
}

/* Codes -127..127; returns the scale. */
static inline float symmetric(const float * x, uint8_t * q) {
    const float d = largest_magnitude(x, N) / 127.0f, inverse = q_inverse(d);
    for (int i = 0; i < N; i += 16) {
        i4 v[4];
        for (int k = 0; k < 4; k++) {
            v[k] = f4_away(f4_load(x + i + 4 * k) * inverse, -127.0f, 127.0f);
        }
        i4_put_16(v, q + i);
    }
    return d;
}

static void q4_0_encode(const float * x, uint8_t * block) {
    uint8_t q[N];
    const float d = centred(x, 8, q);
    sotto_i_q4_0_pack(d, q, block);
}

static void q4_1_encode(const float * x, uint8_t * block) {
    uint8_t q[N];
    float m;
    const float d = from_smallest(x, 15, &m, q);
    sotto_i_q4_1_pack(d, m, q, block);
}

static void q5_0_encode(const float * x, uint8_t * block) {
    uint8_t q[N];
    const float d = centred(x, 16, q);
    sotto_i_q5_0_pack(d, q, block);
}

static void q5_1_encode(const float * x, uint8_t * block) {
    uint8_t q[N];
    float m;
    const float d = from_smallest(x, 31, &m, q);
    sotto_i_q5_1_pack(d, m, q, block);
}

static void q8_0_encode(const float * x, uint8_t * block) {
    uint8_t q[N];
    put_half(block, symmetric(x, q));
    memcpy(block + 2, q, N);
}

static void q8_1_encode(const float * x, uint8_t * block) {
    uint8_t q[N];
    const float d = symmetric(x, q);
    int sum = 0;
    for (int i = 0; i < N; i++) {
        sum += (int8_t)q[i];
    }
    put_half(block, d);
    put_half(block + 2, (float)sum * d);
    memcpy(block + 4, q, N);
}

ENCODE_ROWS(q4_0, N, 18)
ENCODE_ROWS(q4_1, N, 20)
ENCODE_ROWS(q5_0, N, 22)
ENCODE_ROWS(q5_1, N, 24)
ENCODE_ROWS(q8_0, N, 34)
ENCODE_ROWS(q8_1, N, 36)
