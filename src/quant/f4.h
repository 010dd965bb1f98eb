/* SPDX-License-Identifier: MIT */
/* Four floats side by side, for loops that compilers leave scalar. Each lane of each operation is the plain operation on
 * floats, rounded to nearest. The one place of src/quant with compiler extensions: gcc's and clang's vectors, which every
 * processor has in some form. */
#ifndef SOTTO_QUANT_F4_H
#define SOTTO_QUANT_F4_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));

static inline f4 f4_all(float v) { return (f4){ v, v, v, v }; }
static inline f4 f4_where(i4 mask, f4 a, f4 b) { return (f4)((mask & (i4)a) | (~mask & (i4)b)); }
static inline f4 f4_abs(f4 a) { return (f4)((i4)a & 0x7FFFFFFF); }

static inline f4 f4_load(const float * x) {
    f4 v;
    memcpy(&v, x, sizeof(v));
    return v;
}

/* a > b ? a : b and a < b ? a : b, so b if one is not a number */
#ifdef __SSE2__
static inline f4 f4_max(f4 a, f4 b) { return (f4)_mm_max_ps((__m128)a, (__m128)b); }
static inline f4 f4_min(f4 a, f4 b) { return (f4)_mm_min_ps((__m128)a, (__m128)b); }
#else
static inline f4 f4_max(f4 a, f4 b) { return f4_where((i4)(a > b), a, b); }
static inline f4 f4_min(f4 a, f4 b) { return f4_where((i4)(a < b), a, b); }
#endif

/* q_clamp(), q_even(), q_away() and q_trunc() of each lane: see quant_impl.h */
static inline f4 f4_clamp(f4 v, float lo, float hi) {
    v = (f4)((i4)(f4_abs(v) <= 0x1.fffffep127f) & (i4)v);
    return f4_min(f4_max(v, f4_all(lo)), f4_all(hi));
}
static inline f4 f4_even(f4 v, float lo, float hi) { return (f4_clamp(v, lo, hi) + 0x1.8p23f) - 0x1.8p23f; }
static inline i4 f4_trunc(f4 v, float lo, float hi) { return __builtin_convertvector(f4_clamp(v, lo, hi), i4); }
static inline i4 f4_away(f4 v, float lo, float hi) {
    v = f4_clamp(v, lo, hi);
    const i4 half = ((i4)v & INT32_MIN) | (i4)f4_all(0x1.fffffep-2f); /* of v's sign */
    return __builtin_convertvector(v + (f4)half, i4);
}

/* Sixteen numbers of -128..127, as bytes. */
static inline void i4_put_16(const i4 * v, uint8_t * out) {
#ifdef __SSE2__
    const __m128i low = _mm_packs_epi32((__m128i)v[0], (__m128i)v[1]);
    const __m128i high = _mm_packs_epi32((__m128i)v[2], (__m128i)v[3]);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_packs_epi16(low, high));
#else
    for (int i = 0; i < 16; i++) {
        out[i] = (uint8_t)v[i / 4][i % 4];
    }
#endif
}

/* Bit 4 of sixteen bytes, the first lowest. */
static inline uint32_t bit_4_of_16(const uint8_t * p) {
#ifdef __SSE2__
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(bytes, 3));
#else
    uint32_t bits = 0;
    for (int i = 0; i < 16; i++) {
        bits |= (uint32_t)(p[i] >> 4 & 1) << i;
    }
    return bits;
#endif
}

#endif
