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

#include "cpu/attn_text.h"

/* ---- keys and values to f32 ---- */

/* Elements l .. l+3 of row a, then of row b. */
SIMD_INLINE V load_pair(enum sotto_i_attn_type type, const void * a, const void * b, int64_t l) {
    if (type == SOTTO_I_ATTN_F32) {
        const __m128 low = _mm_loadu_ps((const float *)a + l);
        return _mm256_insertf128_ps(_mm256_castps128_ps256(low), _mm_loadu_ps((const float *)b + l), 1);
    }
    const __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)((const uint16_t *)a + l));
    const __m64 * high = (const __m64 *)(const void *)((const uint16_t *)b + l);
    const __m128i half = _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(low), high));
    return type == SOTTO_I_ATTN_F16 ? _mm256_cvtph_ps(half)
                                    : _mm256_castsi256_ps(vi_shl(_mm256_cvtepu16_epi32(half), 16));
}

/* The same of rows that end after n < 4 more elements. */
SIMD_INLINE V load_pair_part(enum sotto_i_attn_type type, const void * a, const void * b, int64_t l, int64_t n) {
    const size_t size = type == SOTTO_I_ATTN_F32 ? sizeof(float) : sizeof(uint16_t);
    float part[2][4] = { { 0.0f } };
    memcpy(part[0], (const char *)a + (size_t)l * size, (size_t)n * size);
    memcpy(part[1], (const char *)b + (size_t)l * size, (size_t)n * size);
    return load_pair(type, part[0], part[1], 0);
}

SIMD_INLINE __m256d low_pairs(V a, V b) { return _mm256_castps_pd(_mm256_unpacklo_ps(a, b)); }
SIMD_INLINE __m256d high_pairs(V a, V b) { return _mm256_castps_pd(_mm256_unpackhi_ps(a, b)); }

/* Four elements of eight keys, r[i] = those of keys i and i + 4, to eight keys of each of four elements. */
SIMD_INLINE void transpose(V * r) {
    const __m256d a = low_pairs(r[0], r[1]), b = high_pairs(r[0], r[1]);
    const __m256d c = low_pairs(r[2], r[3]), d = high_pairs(r[2], r[3]);
    r[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    r[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    r[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    r[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
}

SIMD_INLINE void pack_keys(enum sotto_i_attn_type type, float * packed, const void * const * rows, int64_t d) {
    V r[4];
    for (int j = 0; j < KEYS; j += 8, rows += 8) {
        float * out = packed + j;
        int64_t l = 0;
        for (; l + 4 <= d; l += 4, out += 4 * KEYS) {
            UNROLL for (int i = 0; i < 4; i++) { r[i] = load_pair(type, rows[i], rows[i + 4], l); }
            transpose(r);
            UNROLL for (int i = 0; i < 4; i++) { v_store(out + i * KEYS, r[i]); }
        }
        if (l < d) {
            UNROLL for (int i = 0; i < 4; i++) { r[i] = load_pair_part(type, rows[i], rows[i + 4], l, d - l); }
            transpose(r);
            for (int i = 0; i < d - l; i++) {
                v_store(out + i * KEYS, r[i]);
            }
        }
    }
}

SIMD_INLINE V load_full(enum sotto_i_attn_type type, const void * row, int64_t l) {
    switch (type) {
    case SOTTO_I_ATTN_F16: return v_load_f16((const uint16_t *)row + l);
    case SOTTO_I_ATTN_BF16: return v_load_bf16((const uint16_t *)row + l);
    default: return v_load((const float *)row + l);
    }
}

SIMD_INLINE V load_part(enum sotto_i_attn_type type, const void * row, int64_t l, int64_t n) {
    const size_t size = type == SOTTO_I_ATTN_F32 ? sizeof(float) : sizeof(uint16_t);
    float part[VL] = { 0.0f };
    memcpy(part, (const char *)row + (size_t)l * size, (size_t)n * size);
    return load_full(type, part, 0);
}

SIMD_INLINE void widen(enum sotto_i_attn_type type, float * out, int64_t ld, const void * const * rows, int n,
                       int64_t d) {
    for (int j = 0; j < n; j++, out += ld) {
        int64_t l = 0;
        for (; l + VL <= d; l += VL) {
            v_store(out + l, load_full(type, rows[j], l));
        }
        if (l < d) {
            v_store_n(out + l, load_part(type, rows[j], l, d - l), d - l);
        }
    }
}

#define DEFINE_LOADS(T, name)                                                                        \
    static void pack_keys_##name(float * packed, const void * const * rows, int64_t d) {             \
        pack_keys(SOTTO_I_ATTN_##T, packed, rows, d);                                                \
    }                                                                                                \
    static void widen_##name(float * out, int64_t ld, const void * const * rows, int n, int64_t d) { \
        widen(SOTTO_I_ATTN_##T, out, ld, rows, n, d);                                                \
    }
DEFINE_LOADS(F32, f32)
DEFINE_LOADS(F16, f16)
DEFINE_LOADS(BF16, bf16)

static void prefetch(const void * const * rows, int n, size_t bytes) {
    for (int j = 0; j < n; j++) {
        for (size_t i = 0; i < bytes; i += 64) {
            _mm_prefetch((const char *)rows[j] + i, _MM_HINT_T1);
        }
    }
}

void sotto_i_attn_init_avx2(struct sotto_i_attn_kernels * kernels) {
    *kernels = (struct sotto_i_attn_kernels){
        .pack_keys = { pack_keys_f32, pack_keys_f16, pack_keys_bf16 },
        .widen = { widen_f32, widen_f16, widen_bf16 },
        .prefetch = prefetch,
    };
    raise(kernels);
}
