/* SPDX-License-Identifier: MIT */
/* One vocabulary for vectors of floats, so that a kernel's text is written once and compiled per level.
 *
 * A three-line file per level includes this and then the text:
 *     #include "cpu/simd.h"
 *     #include "cpu/vec_text.h"
 * The level follows from the compiler's flags; a text that sees neither refuses to compile. All functions are static.
 *
 *   V      VL floats (8 or 16)             VI     VL 32-bit integers
 *   M      a mask of VL lanes               SIMD(name) -> name_avx2, name_avx512
 *
 * v_fma(a, b, c) = a*b + c rounded once; v_fnma = c - a*b. Comparisons with NaN are false. v_max(a, b) is
 * "a > b ? a : b", so it returns b when either is NaN. */
#ifndef SOTTO_CPU_SIMD_H
#define SOTTO_CPU_SIMD_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile this file with the flags of its level"
#endif

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define SIMD_JOIN2(a, b) a##_##b
#define SIMD_JOIN(a, b)  SIMD_JOIN2(a, b)
#define SIMD(name)       SIMD_JOIN(name, SIMD_LEVEL)
#define SIMD_INLINE      static inline __attribute__((always_inline, unused))

/* Q: four floats, for interleaving; q_transpose turns q[i][j] into q[j][i]. */
typedef __m128 Q;
SIMD_INLINE Q q_load(const float * p) { return _mm_loadu_ps(p); }
SIMD_INLINE void q_store(float * p, Q a) { _mm_storeu_ps(p, a); }
SIMD_INLINE Q q_zero(void) { return _mm_setzero_ps(); }
SIMD_INLINE void q_transpose(Q q[4]) { _MM_TRANSPOSE4_PS(q[0], q[1], q[2], q[3]); }

/* Ask for the cache line at p, which need not be readable. */
SIMD_INLINE void v_prefetch(const void * p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }

/* Before a loop of constant length whose arrays are to live in registers. Not with clang's sanitizers, whose checks of
 * the unrolled text take it minutes to compile. */
#if !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 32")
#elif __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define UNROLL _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif

#if defined(__AVX512F__)

#define SIMD_LEVEL avx512
#define VL         16
typedef __m512 V;
typedef __m512i VI;
typedef __mmask16 M;

SIMD_INLINE V v_load(const float * p) { return _mm512_loadu_ps(p); }
SIMD_INLINE void v_store(float * p, V a) { _mm512_storeu_ps(p, a); }
SIMD_INLINE V v_set1(float a) { return _mm512_set1_ps(a); }
SIMD_INLINE V v_zero(void) { return _mm512_setzero_ps(); }
SIMD_INLINE V v_add(V a, V b) { return _mm512_add_ps(a, b); }
SIMD_INLINE V v_sub(V a, V b) { return _mm512_sub_ps(a, b); }
SIMD_INLINE V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
SIMD_INLINE V v_div(V a, V b) { return _mm512_div_ps(a, b); }
SIMD_INLINE V v_sqrt(V a) { return _mm512_sqrt_ps(a); }
SIMD_INLINE V v_fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
SIMD_INLINE V v_fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
SIMD_INLINE V v_max(V a, V b) { return _mm512_max_ps(a, b); }
SIMD_INLINE V v_min(V a, V b) { return _mm512_min_ps(a, b); }
/* first n lanes, n in 0..VL; others read as 0 and are not stored */
SIMD_INLINE M v_first(int64_t n) { return (M)((1u << n) - 1u); }
SIMD_INLINE V v_load_n(const float * p, int64_t n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
SIMD_INLINE void v_store_n(float * p, V a, int64_t n) { _mm512_mask_storeu_ps(p, v_first(n), a); }
/* IEEE binary16, round to nearest even */
SIMD_INLINE V v_load_f16(const uint16_t * p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE void v_store_f16(uint16_t * p, V a) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SIMD_INLINE V v_load_bf16(const uint16_t * p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
/* the low halves of the lanes, which are below 65536 */
SIMD_INLINE void vi_store_u16(uint16_t * p, VI a) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(a)); }
SIMD_INLINE M v_lt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SIMD_INLINE M v_gt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
SIMD_INLINE M v_eq(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
SIMD_INLINE M v_isnan(V a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
SIMD_INLINE int m_any(M m) { return m != 0; }
/* m ? a : b */
SIMD_INLINE V v_select(M m, V a, V b) { return _mm512_mask_blend_ps(m, b, a); }
SIMD_INLINE VI v_to_bits(V a) { return _mm512_castps_si512(a); }
SIMD_INLINE V v_from_bits(VI a) { return _mm512_castsi512_ps(a); }
SIMD_INLINE VI vi_set1(int32_t a) { return _mm512_set1_epi32(a); }
SIMD_INLINE VI vi_add(VI a, VI b) { return _mm512_add_epi32(a, b); }
SIMD_INLINE VI vi_sub(VI a, VI b) { return _mm512_sub_epi32(a, b); }
SIMD_INLINE VI vi_and(VI a, VI b) { return _mm512_and_si512(a, b); }
SIMD_INLINE VI vi_or(VI a, VI b) { return _mm512_or_si512(a, b); }
SIMD_INLINE VI vi_xor(VI a, VI b) { return _mm512_xor_si512(a, b); }
#define vi_shl(a, n) _mm512_slli_epi32(a, n)
#define vi_sra(a, n) _mm512_srai_epi32(a, n)
#define vi_shr(a, n) _mm512_srli_epi32(a, n)
SIMD_INLINE VI v_to_int(V a) { return _mm512_cvtps_epi32(a); } /* nearest even */
SIMD_INLINE V vi_to_float(VI a) { return _mm512_cvtepi32_ps(a); }
SIMD_INLINE VI vi_load(const void * p) { return _mm512_loadu_si512(p); }
SIMD_INLINE VI vi_load_u16(const uint16_t * p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)); }
SIMD_INLINE VI vi_load_u8(const void * p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE VI vi_load_i8(const void * p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
/* each lane shifted right by its own amount */
SIMD_INLINE VI vi_shr_each(VI a, VI n) { return _mm512_srlv_epi32(a, n); }
/* the binary16 at p, any alignment, in all lanes */
SIMD_INLINE V v_set1_f16(const void * p) {
    int16_t bits;
    memcpy(&bits, p, sizeof(bits));
    return _mm512_cvtph_ps(_mm256_set1_epi16(bits));
}
SIMD_INLINE VI vi_max(VI a, VI b) { return _mm512_max_epi32(a, b); }
SIMD_INLINE int32_t vi_greatest(VI a) { return _mm512_reduce_max_epi32(a); }
/* lanes -128..127 as bytes */
SIMD_INLINE void vi_store_i8(int8_t * p, VI a) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(a)); }
SIMD_INLINE void vi_store(void * p, VI a) { _mm512_storeu_si512(p, a); }
/* table of 16 bytes, for vi_lookup: each byte of `a`, 0..15, replaced by the table's */
SIMD_INLINE VI vi_table(const uint8_t * p) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE VI vi_lookup(VI table, VI a) { return _mm512_shuffle_epi8(table, a); }
/* shifts by a variable that is the same for all lanes */
SIMD_INLINE VI vi_shl_by(VI a, int n) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(n)); }
SIMD_INLINE VI vi_shr_by(VI a, int n) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(n)); }

#else

#define SIMD_LEVEL   avx2
#define VL           8
typedef __m256 V;
typedef __m256i VI;
typedef __m256 M;

SIMD_INLINE V v_load(const float * p) { return _mm256_loadu_ps(p); }
SIMD_INLINE void v_store(float * p, V a) { _mm256_storeu_ps(p, a); }
SIMD_INLINE V v_set1(float a) { return _mm256_set1_ps(a); }
SIMD_INLINE V v_zero(void) { return _mm256_setzero_ps(); }
SIMD_INLINE V v_add(V a, V b) { return _mm256_add_ps(a, b); }
SIMD_INLINE V v_sub(V a, V b) { return _mm256_sub_ps(a, b); }
SIMD_INLINE V v_mul(V a, V b) { return _mm256_mul_ps(a, b); }
SIMD_INLINE V v_div(V a, V b) { return _mm256_div_ps(a, b); }
SIMD_INLINE V v_sqrt(V a) { return _mm256_sqrt_ps(a); }
SIMD_INLINE V v_fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
SIMD_INLINE V v_fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
SIMD_INLINE V v_max(V a, V b) { return _mm256_max_ps(a, b); }
SIMD_INLINE V v_min(V a, V b) { return _mm256_min_ps(a, b); }
SIMD_INLINE __m256i v_first(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SIMD_INLINE V v_load_n(const float * p, int64_t n) { return _mm256_maskload_ps(p, v_first(n)); }
SIMD_INLINE void v_store_n(float * p, V a, int64_t n) { _mm256_maskstore_ps(p, v_first(n), a); }
SIMD_INLINE V v_load_f16(const uint16_t * p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE void v_store_f16(uint16_t * p, V a) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SIMD_INLINE V v_load_bf16(const uint16_t * p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
SIMD_INLINE void vi_store_u16(uint16_t * p, VI a) {
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}
SIMD_INLINE M v_lt(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
SIMD_INLINE M v_gt(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
SIMD_INLINE M v_eq(V a, V b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
SIMD_INLINE M v_isnan(V a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
SIMD_INLINE int m_any(M m) { return _mm256_movemask_ps(m) != 0; }
SIMD_INLINE V v_select(M m, V a, V b) { return _mm256_blendv_ps(b, a, m); }
SIMD_INLINE VI v_to_bits(V a) { return _mm256_castps_si256(a); }
SIMD_INLINE V v_from_bits(VI a) { return _mm256_castsi256_ps(a); }
SIMD_INLINE VI vi_set1(int32_t a) { return _mm256_set1_epi32(a); }
SIMD_INLINE VI vi_add(VI a, VI b) { return _mm256_add_epi32(a, b); }
SIMD_INLINE VI vi_sub(VI a, VI b) { return _mm256_sub_epi32(a, b); }
SIMD_INLINE VI vi_and(VI a, VI b) { return _mm256_and_si256(a, b); }
SIMD_INLINE VI vi_or(VI a, VI b) { return _mm256_or_si256(a, b); }
SIMD_INLINE VI vi_xor(VI a, VI b) { return _mm256_xor_si256(a, b); }
#define vi_shl(a, n) _mm256_slli_epi32(a, n)
#define vi_sra(a, n) _mm256_srai_epi32(a, n)
#define vi_shr(a, n) _mm256_srli_epi32(a, n)
SIMD_INLINE VI v_to_int(V a) { return _mm256_cvtps_epi32(a); }
SIMD_INLINE V vi_to_float(VI a) { return _mm256_cvtepi32_ps(a); }
SIMD_INLINE VI vi_load(const void * p) { return _mm256_loadu_si256((const __m256i *)p); }
SIMD_INLINE VI vi_load_u16(const uint16_t * p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE VI vi_load_u8(const void * p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
SIMD_INLINE VI vi_load_i8(const void * p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
SIMD_INLINE VI vi_shr_each(VI a, VI n) { return _mm256_srlv_epi32(a, n); }
SIMD_INLINE V v_set1_f16(const void * p) {
    int16_t bits;
    memcpy(&bits, p, sizeof(bits));
    return _mm256_cvtph_ps(_mm_set1_epi16(bits));
}
SIMD_INLINE VI vi_max(VI a, VI b) { return _mm256_max_epi32(a, b); }
SIMD_INLINE int32_t vi_greatest(VI a) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1)));
}
SIMD_INLINE void vi_store_i8(int8_t * p, VI a) {
    const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(half, half));
}
SIMD_INLINE void vi_store(void * p, VI a) { _mm256_storeu_si256((__m256i *)p, a); }
SIMD_INLINE VI vi_table(const uint8_t * p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p)); }
SIMD_INLINE VI vi_lookup(VI table, VI a) { return _mm256_shuffle_epi8(table, a); }
/* shifts by a variable that is the same for all lanes */
SIMD_INLINE VI vi_shl_by(VI a, int n) { return _mm256_sll_epi32(a, _mm_cvtsi32_si128(n)); }
SIMD_INLINE VI vi_shr_by(VI a, int n) { return _mm256_srl_epi32(a, _mm_cvtsi32_si128(n)); }

#endif

#endif
