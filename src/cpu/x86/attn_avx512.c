/* SPDX-License-Identifier: MIT */
/* Attention kernels, level avx512: 6 queries x 4 vectors are 24 sums; one query alone has 4, just enough. */
#include <math.h>

#include "cpu/attn_kernels.h"
#include "cpu/simd.h"
#include "cpu/vmath.h"

#define ROWS       6
#define VECS(rows) 4

SIMD_INLINE M m_bits(uint64_t bits) { return (M)bits; }

SIMD_INLINE float reduce_max(V a) { return _mm512_reduce_max_ps(a); }

/* p[q] += p[q+8], then +4, +2, +1 */
SIMD_INLINE float reduce16(const V * p) {
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(p[0]), _mm512_extractf32x8_ps(p[0], 1));
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* 16 x 16: pairs, then quadruples within 128 bits, then the 128-bit pieces. */
SIMD_INLINE void transpose(V * r) {
    V t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
        const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(r[i], r[i + 1]));
        const __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(r[i], r[i + 1]));
        const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(r[i + 2], r[i + 3]));
        const __m512d e = _mm512_castps_pd(_mm512_unpackhi_ps(r[i + 2], r[i + 3]));
        t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, e));
        t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, e));
    }
    /* t[4 g + i] holds element i of each 128-bit piece (elements i, 4 + i, 8 + i, 12 + i) of rows 4 g .. 4 g + 3 */
#pragma GCC unroll 16
    for (int i = 0; i < 4; i++) {
        const V a = _mm512_shuffle_f32x4(t[i], t[4 + i], 0x88), b = _mm512_shuffle_f32x4(t[i], t[4 + i], 0xDD);
        const V c = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], 0x88),
                e = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], 0xDD);
        r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        r[8 + i] = _mm512_shuffle_f32x4(a, c, 0xDD);
        r[4 + i] = _mm512_shuffle_f32x4(b, e, 0x88);
        r[12 + i] = _mm512_shuffle_f32x4(b, e, 0xDD);
    }
}

#include "cpu/attn_text.h"

void sotto_i_attn_init_avx512(struct sotto_i_attn_kernels * kernels) { raise(kernels); }
