/* SPDX-License-Identifier: MIT */
/* Nibbles that choose from 16 values: iq4_nl and iq4_xs.
 *
 *     iq4_nl   32 elements  d, 16 bytes of nibbles
 *     iq4_xs  256 elements  d, 8 x 2 high bits and 8 x 4 low bits of scales - 32, 8 times 16 bytes of nibbles
 *
 * Low nibbles are the first half of 32 elements. */
#include "core/type_convert.h"
#include "quant/codebooks.h"
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
