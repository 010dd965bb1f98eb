/* SPDX-License-Identifier: MIT */
/* Floats of 4 bits under tiny scales: mxfp4 and nvfp4.
 *
 *     mxfp4  32 elements  a power of two e, 16 bytes of nibbles
 *     nvfp4  64 elements  4 scales of 8 bits, one per 16 elements; 4 times 8 bytes of nibbles
 *
 * Codes are indices into twice the values of E2M1, so scales are taken halved. */
#include "core/type_convert.h"
#include "quant/extremes.h"
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

/* Half the value of an unsigned float of 4 bits of exponent and 3 of fraction. Bit 7 is ignored, but in one place: 0x7F
 * is zero, 0xFF is not. */
static float ue4m3_half(uint8_t byte) {
    const uint32_t code = byte & 0x7F, exponent = code >> 3, fraction = code & 7;
    if (byte == 0x7F) {
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

/* ---- encoding */

enum { MOST = 32 };

/* Codes of the values nearest to 4 elements, each the first of equally near ones: so never that of -0. */
static i4 nearest_codes(f4 x, float d) {
    f4 least = f4_abs(x), code = f4_all(0.0f);
    for (int c = 1; c < 16; c++) {
        const f4 error = f4_abs((float)VALUES[c] * d - x);
        code = f4_where(error < least, f4_all((float)c), code);
        least = f4_min(error, least);
    }
    return f4_trunc(code, 0.0f, 15.0f);
}

static void nibbles_encode(const float * x, int n, float d, uint8_t * nibbles) {
    uint8_t codes[MOST];
    for (int i = 0; i < 2 * n; i += 16) {
        i4 v[4];
        for (int k = 0; k < 4; k++) {
            v[k] = nearest_codes(f4_load(x + i + 4 * k), d);
        }
        i4_put_16(v, codes + i);
    }
    for (int i = 0; i < n; i++) {
        nibbles[i] = (uint8_t)(codes[i] | codes[i + n] << 4);
    }
}

/* The power of two whose 6 d is near the largest magnitude. The logarithm is rounded to a float before the floor, so
 * just below a power of two it may be that of the power. */
static uint8_t mxfp4_exponent(float a) {
    if (a == 0.0f) {
        return 0;
    }
    const float exponent = floorf((float)log2((double)a)) + 125.0f;
    return (uint8_t)(exponent < 0.0f ? 0.0f : exponent > 254.0f ? 254.0f : exponent);
}

static uint8_t ue4m3(float v) {
    if (!(v > 0.0f)) {
        return 0;
    }
    v = v < 448.0f ? v : 448.0f;
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    const int exponent = (int)(bits >> 23) - 127 + 7;
    if (exponent <= 0) {
        return (uint8_t)q_trunc(v * 512.0f + 0.5f, 0.0f, 7.0f);
    }
    const uint32_t code = ((uint32_t)exponent << 3 | (bits >> 20 & 7)) + (bits >> 19 & 1);
    return (uint8_t)(code < 0x78 ? code : 0x7E);
}

static void mxfp4_encode(const float * x, uint8_t * block) {
    block[0] = mxfp4_exponent(largest_magnitude(x, 32));
    nibbles_encode(x, 16, e8m0_half(block[0]), block + 1);
}

static void nvfp4_encode(const float * x, uint8_t * block) {
    for (int s = 0; s < 4; s++) {
        block[s] = ue4m3(largest_magnitude(x + 16 * s, 16) / 6.0f);
        nibbles_encode(x + 16 * s, 8, ue4m3_half(block[s]), block + 4 + 8 * s);
    }
}

ENCODE_ROWS(mxfp4, 32, 17)
ENCODE_ROWS(nvfp4, 64, 36)
