/* SPDX-License-Identifier: MIT */
/* Floats of 4 bits under tiny scales: mxfp4 and nvfp4.
 *
 *     mxfp4  32 elements  a power of two e, 16 bytes of nibbles
 *     nvfp4  64 elements  4 scales of 8 bits, one per 16 elements; 4 times 8 bytes of nibbles
 *
 * Codes are indices into twice the values of E2M1, so scales are taken halved. */
#include "core/type_convert.h"
#include "quant/quant_impl.h"

static const int8_t VALUES[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static float of_bits(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* ---- decoding */

/* 2^(e - 128), which is subnormal for the first two */
static float e8m0_half(uint8_t e) { return of_bits(e < 2 ? UINT32_C(0x00200000) << e : (uint32_t)(e - 1) << 23); }

/* Half the value of an unsigned float of 4 bits of exponent and 3 of fraction; 0x7F is zero as well. */
static float ue4m3_half(uint8_t byte) {
    const uint32_t code = byte & 0x7F, exponent = code >> 3, fraction = code & 7;
    if (code == 0x7F) {
        return 0.0f;
    }
    return exponent == 0 ? (float)fraction * 0x1p-10f : of_bits((exponent + 119) << 23 | fraction << 20);
}

/* 2n values: low nibbles first */
static void nibbles_decode(const uint8_t * nibbles, int n, float d, float * y) {
    for (int i = 0; i < n; i++) {
        y[i] = (float)VALUES[nibbles[i] & 15] * d;
        y[i + n] = (float)VALUES[nibbles[i] >> 4] * d;
    }
}

static void mxfp4_decode(const uint8_t * block, float * y) { nibbles_decode(block + 1, 16, e8m0_half(block[0]), y); }

static void nvfp4_decode(const uint8_t * block, float * y) {
    for (int s = 0; s < 4; s++) {
        nibbles_decode(block + 4 + 8 * s, 8, ue4m3_half(block[s]), y + 16 * s);
    }
}

DECODE_ROWS(mxfp4, 32, 17)
DECODE_ROWS(nvfp4, 64, 36)
