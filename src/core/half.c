/* SPDX-License-Identifier: MIT */
/* Binary16 and bfloat16 to f32 and back, with integer arithmetic only: the result does not depend on the rounding
 * mode, and is that of the processors' own instructions. A signalling NaN becomes quiet. */
#include "sotto/types.h"

#include <string.h>

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* x / 2^shift, rounded to nearest, halves to even; 1 <= shift <= 24 */
static uint32_t shift_even(uint32_t x, unsigned shift) {
    uint32_t half = 1u << (shift - 1);
    uint32_t quotient = x >> shift;
    uint32_t rest = x & ((half << 1) - 1);
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

float sotto_fp16_to_fp32(sotto_fp16_t x) {
    uint32_t sign = (uint32_t)(x & 0x8000) << 16;
    uint32_t exponent = (x >> 10) & 0x1F;
    uint32_t mantissa = x & 0x3FF;
    if (exponent == 0x1F) {
        return float_of(sign | 0x7F800000 | (mantissa ? 0x400000 | (mantissa << 13) : 0));
    }
    if (exponent == 0) {
        return float_of(sign | bits_of((float)mantissa * 0x1p-24f));
    }
    return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

sotto_fp16_t sotto_fp32_to_fp16(float x) {
    uint32_t bits = bits_of(x);
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t size = bits & 0x7FFFFFFF;
    uint32_t half;
    if (size > 0x7F800000) {
        half = 0x7E00 | ((size >> 13) & 0x3FF);
    } else if (size >= 0x477FF000) { /* 65520 and more round to infinity */
        half = 0x7C00;
    } else if (size >= 0x38800000) { /* 2^-14: normal */
        half = shift_even(size - (112u << 23), 13);
    } else if (size >= 0x33000000) { /* 2^-25: subnormal, or rounded up to 2^-14 */
        half = shift_even((size & 0x7FFFFF) | 0x800000, 126 - (size >> 23));
    } else {
        half = 0;
    }
    return (sotto_fp16_t)(sign | half);
}

void sotto_fp16_to_fp32_row(const sotto_fp16_t * x, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = sotto_fp16_to_fp32(x[i]);
    }
}

void sotto_fp32_to_fp16_row(const float * x, sotto_fp16_t * y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = sotto_fp32_to_fp16(x[i]);
    }
}

float sotto_bf16_to_fp32(sotto_bf16_t x) { return float_of((uint32_t)x.bits << 16); }

sotto_bf16_t sotto_fp32_to_bf16(float x) {
    uint32_t bits = bits_of(x);
    bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    return (sotto_bf16_t){ (uint16_t)(nan ? (bits >> 16) | 0x40 : shift_even(bits, 16)) };
}

void sotto_bf16_to_fp32_row(const sotto_bf16_t * x, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = sotto_bf16_to_fp32(x[i]);
    }
}

void sotto_fp32_to_bf16_row(const float * x, sotto_bf16_t * y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = sotto_fp32_to_bf16(x[i]);
    }
}

void sotto_fp32_to_bf16_row_ref(const float * x, sotto_bf16_t * y, int64_t n) { sotto_fp32_to_bf16_row(x, y, n); }
