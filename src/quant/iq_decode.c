/* SPDX-License-Identifier: MIT */
/* Decoding of the lattice types: 256 elements in sub-blocks of 32, each four groups of 8.
 *
 *     iq2_xxs  d, 8 x (4 row indices of 8 bits, 4 sign fields of 7 bits, scale of 4)
 *     iq2_xs   d, 32 x (row of 9 bits, signs of 7), 16 scales of 4 bits
 *     iq2_s    d, 32 low bytes of rows, 32 sign bytes, 8 bytes of 2 high bits of rows, 16 scales of 4 bits
 *     iq3_xxs  d, 64 row indices of 8 bits, 8 x (4 sign fields of 7 bits, scale of 4)
 *     iq3_s    d, 64 low bytes of rows, 8 bytes of high bits, 32 sign bytes, 8 scales of 4 bits
 *     iq1_s    d, 32 low bytes of rows, 8 x (4 x 3 high bits, scale of 3, sign of the shift)
 *     iq1_m    32 low bytes of rows, 32 nibbles (3 high bits, sign of the shift), 4 x (4 scales of 3, a nibble of d)
 *
 * Rows of iq3 have 4 values, two to a group. */
#include "core/type_convert.h"
#include "quant/codebooks.h"
#include "quant/quant_impl.h"

/* 8 elements: scale times the row's values, bit i of signs turns the i-th */
static inline void put_signed(float scale, const int8_t * row, unsigned signs, float * y) {
    for (unsigned i = 0; i < 8; i++) {
        const int turn = -(int)(signs >> i & 1);
        y[i] = scale * (float)((row[i] ^ turn) - turn);
    }
}

static inline void put_signed_2(float scale, const int8_t * low, const int8_t * high, unsigned signs, float * y) {
    int8_t row[8];
    memcpy(row, low, 4);
    memcpy(row + 4, high, 4);
    put_signed(scale, row, signs, y);
}

static inline float iq2_scale(float d, unsigned code) { return d * (0.5f + (float)code) * 0.25f; }

static void iq2_xxs_decode(const uint8_t * block, float * y) {
    const float d = get_half(block);
    for (int j = 0; j < 8; j++) {
        const uint8_t * rows = block + 2 + 8 * j;
        const uint32_t rest = get_u32(rows + 4);
        const float scale = iq2_scale(d, rest >> 28);
        for (int r = 0; r < 4; r++) {
            put_signed(scale, sotto_i_grid_iq2_xxs[rows[r]], even_signs(rest >> (7 * r) & 127), y + 32 * j + 8 * r);
        }
    }
}

static void iq2_xs_decode(const uint8_t * block, float * y) {
    const float d = get_half(block);
    for (int g = 0; g < 16; g++) {
        const float scale = iq2_scale(d, block[66 + g / 2] >> (4 * (g % 2)) & 15);
        for (int r = 2 * g; r < 2 * g + 2; r++) {
            const unsigned v = get_u16(block + 2 + 2 * r);
            put_signed(scale, sotto_i_grid_iq2_xs[v & 511], even_signs(v >> 9), y + 8 * r);
        }
    }
}

static void iq2_s_decode(const uint8_t * block, float * y) {
    const uint8_t *low = block + 2, *signs = block + 34, *high = block + 66, *scales = block + 74;
    const float d = get_half(block);
    for (int g = 0; g < 16; g++) {
        const float scale = iq2_scale(d, scales[g / 2] >> (4 * (g % 2)) & 15);
        for (int r = 2 * g; r < 2 * g + 2; r++) {
            const unsigned row = low[r] | (high[r / 4] >> (2 * (r % 4)) & 3U) << 8;
            put_signed(scale, sotto_i_grid_iq2_s[row], signs[r], y + 8 * r);
        }
    }
}

static void iq3_xxs_decode(const uint8_t * block, float * y) {
    const float d = get_half(block);
    for (int j = 0; j < 8; j++) {
        const uint32_t rest = get_u32(block + 66 + 4 * j);
        const float scale = d * (0.5f + (float)(rest >> 28)) * 0.5f;
        for (int r = 0; r < 4; r++) {
            const uint8_t * rows = block + 2 + 8 * j + 2 * r;
            put_signed_2(scale, sotto_i_grid_iq3_xxs[rows[0]], sotto_i_grid_iq3_xxs[rows[1]],
                         even_signs(rest >> (7 * r) & 127), y + 32 * j + 8 * r);
        }
    }
}

static void iq3_s_decode(const uint8_t * block, float * y) {
    const uint8_t *low = block + 2, *high = block + 66, *signs = block + 74, *scales = block + 106;
    const float d = get_half(block);
    for (int j = 0; j < 8; j++) {
        const float scale = d * (float)(1 + 2 * (scales[j / 2] >> (4 * (j % 2)) & 15));
        for (int r = 0; r < 4; r++) {
            const uint8_t * rows = low + 8 * j + 2 * r;
            const unsigned bits = (unsigned)high[j] >> (2 * r);
            put_signed_2(scale, sotto_i_grid_iq3_s[rows[0] | (bits & 1) << 8],
                         sotto_i_grid_iq3_s[rows[1] | (bits >> 1 & 1) << 8], signs[4 * j + r], y + 32 * j + 8 * r);
        }
    }
}

/* 8 elements of iq1: values -1, 0, 1 and a shift of an eighth */
static inline void put_shifted(float scale, const int8_t * row, bool down, float * y) {
    const float shift = down ? -0.125f : 0.125f;
    for (int i = 0; i < 8; i++) {
        y[i] = scale * ((float)row[i] + shift);
    }
}

static void iq1_s_decode(const uint8_t * block, float * y) {
    const float d = get_half(block);
    for (int j = 0; j < 8; j++) {
        const unsigned rest = get_u16(block + 34 + 2 * j);
        const float scale = d * (float)(2 * (rest >> 12 & 7) + 1);
        for (int r = 0; r < 4; r++) {
            const unsigned row = block[2 + 4 * j + r] | (rest >> (3 * r) & 7) << 8;
            put_shifted(scale, sotto_i_grid_iq1_s[row], rest >> 15, y + 32 * j + 8 * r);
        }
    }
}

static void iq1_m_decode(const uint8_t * block, float * y) {
    const uint8_t *low = block, *high = block + 32, *scales = block + 48;
    unsigned bits = 0;
    for (int i = 0; i < 4; i++) {
        bits |= (unsigned)get_u16(scales + 2 * i) >> 12 << (4 * i);
    }
    const float d = sotto_fp16_to_fp32((uint16_t)bits);
    for (int g = 0; g < 16; g++) {
        const float scale = d * (float)(2 * (get_u16(scales + g / 4 * 2) >> (3 * (g % 4)) & 7) + 1);
        for (int r = 0; r < 2; r++) {
            const unsigned nibble = high[g] >> (4 * r) & 15U;
            put_shifted(scale, sotto_i_grid_iq1_s[low[2 * g + r] | (nibble & 7) << 8], nibble >> 3, y + 16 * g + 8 * r);
        }
    }
}

DECODE_ROWS(iq2_xxs, QK_K, 66)
DECODE_ROWS(iq2_xs, QK_K, 74)
DECODE_ROWS(iq2_s, QK_K, 82)
DECODE_ROWS(iq3_xxs, QK_K, 98)
DECODE_ROWS(iq3_s, QK_K, 110)
DECODE_ROWS(iq1_s, QK_K, 50)
DECODE_ROWS(iq1_m, QK_K, 56)
