/* SPDX-License-Identifier: MIT */
/* Attention kernels, level avx512: 6 queries x 4 vectors are 24 sums; one query alone has 4, just enough.
 *
 * pack_keys and widen stay those of avx2: moved in registers of 512 bits (16 x 16 transposed by 64 shuffles) 64 keys of
 * width 64 took 425 ns on Zen 4, against 300 ns with 256 bits and rows joined by loads; values 273 ns against 190 ns. */
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

#include "cpu/attn_text.h"

void sotto_i_attn_init_avx512(struct sotto_i_attn_kernels * kernels) { raise(kernels); }
