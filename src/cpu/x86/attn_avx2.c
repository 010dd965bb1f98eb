/* SPDX-License-Identifier: MIT */
/* Attention kernels, level avx2: 6 queries x 2 vectors are 12 sums; few queries take more vectors instead. */
#include <math.h>

#include "cpu/attn_kernels.h"
#include "cpu/simd.h"
#include "cpu/vmath.h"

#define ROWS       6
#define VECS(rows) ((rows) == 1 ? 8 : (rows) == 2 ? 4 : 2)

SIMD_INLINE M m_bits(uint64_t bits) {
    const VI lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(vi_and(vi_set1((int32_t)(bits & 0xFF)), lane), lane));
}

SIMD_INLINE float reduce_max(V a) {
    const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

/* p[q] += p[q+8], then +4, +2, +1 */
SIMD_INLINE float reduce16(const V * p) {
    const V a = v_add(p[0], p[1]);
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* 8 x 8: pairs, quadruples within 128 bits, then the halves. */
SIMD_INLINE void transpose(V * r) {
    V t[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
        const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(r[i], r[i + 1]));
        const __m256d b = _mm256_castps_pd(_mm256_unpackhi_ps(r[i], r[i + 1]));
        const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(r[i + 2], r[i + 3]));
        const __m256d e = _mm256_castps_pd(_mm256_unpackhi_ps(r[i + 2], r[i + 3]));
        t[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
        t[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
        t[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, e));
        t[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, e));
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x20);
        r[4 + i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x31);
    }
}

#include "cpu/attn_text.h"

void sotto_i_attn_init_avx2(struct sotto_i_attn_kernels * kernels) { raise(kernels); }
