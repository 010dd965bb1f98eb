/* SPDX-License-Identifier: MIT */
/* What all formats of src/quant share: fields of blocks, roundings, and the table of quantisers.
 *
 * Everything here and in the folder is strict binary32: one rounding an operation, in the order written, sums from index
 * 0 upwards. So the bytes are the same everywhere, and those of the formats' other writers. Loops are written so that
 * a compiler can run lanes side by side where that keeps the order. */
#ifndef SOTTO_QUANT_IMPL_H
#define SOTTO_QUANT_IMPL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sotto/status.h"
#include "sotto/types.h"

enum { QK_K = 256 }; /* elements of the large blocks */

/* ---- fields: little-endian, any alignment */

static inline uint16_t get_u16(const uint8_t * p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t get_u32(const uint8_t * p) { return get_u16(p) | (uint32_t)get_u16(p + 2) << 16; }
static inline float get_half(const uint8_t * p) { return sotto_fp16_to_fp32(get_u16(p)); }

static inline float get_f32(const uint8_t * p) {
    const uint32_t bits = get_u32(p);
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline void put_u16(uint8_t * p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void put_u32(uint8_t * p, uint32_t v) {
    put_u16(p, (uint16_t)v);
    put_u16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_half(uint8_t * p, float v) { put_u16(p, sotto_fp32_to_fp16(v)); }

static inline void put_f32(uint8_t * p, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put_u32(p, bits);
}

/* ---- rows as blocks: sotto_i_<name>_to_float() of a static <name>_decode(block, y), and so on */

#define DECODE_ROWS(name, elements, bytes)                                 \
    void sotto_i_##name##_to_float(const void * x, float * y, int64_t n) { \
        const uint8_t * block = x;                                         \
        for (int64_t i = 0; i < n; i += (elements), block += (bytes)) {    \
            name##_decode(block, y + i);                                   \
        }                                                                  \
    }
#define ENCODE_ROWS(name, elements, bytes)                                   \
    void sotto_i_##name##_from_float(const float * x, void * y, int64_t n) { \
        uint8_t * block = y;                                                 \
        for (int64_t i = 0; i < n; i += (elements), block += (bytes)) {      \
            name##_encode(x + i, block);                                     \
        }                                                                    \
    }

/* ---- roundings: of v (0 if it is not finite) to a whole number of lo..hi, which are whole, |lo|, |hi| <= 4194303.
 * Clamping first changes nothing, as rounding is monotone, and keeps every conversion defined. */

static inline float q_clamp(float v, float lo, float hi) {
    v = fabsf(v) <= 0x1.fffffep127f ? v : 0.0f;
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

/* nearest, ties to even */
static inline float q_even(float v, float lo, float hi) { return (q_clamp(v, lo, hi) + 0x1.8p23f) - 0x1.8p23f; }

/* nearest, ties away from zero: what is added is the float before 0.5, so that nothing below a tie reaches it */
static inline int32_t q_away(float v, float lo, float hi) {
    v = q_clamp(v, lo, hi);
    return (int32_t)(v + copysignf(0x1.fffffep-2f, v));
}

/* towards zero */
static inline int32_t q_trunc(float v, float lo, float hi) { return (int32_t)q_clamp(v, lo, hi); }

static inline float q_inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

/* ---- the table of quantisers, of rows in quantisers.def */

enum sotto_i_matrix { IGNORES_MATRIX, USES_MATRIX, NEEDS_MATRIX };

struct sotto_i_quantiser {
    /* One row of n elements, whole blocks, to y of any alignment. w: a weight per column, finite and >= 0, or NULL;
     * w is never NULL for types that need it, and anything for those that ignore it. */
    void (*row)(const float * x, void * y, int64_t n, const float * w);
    enum sotto_i_matrix matrix;
    /* Make the search tables once, from any thread; records what fails. NULL: there are none. */
    enum sotto_status (*init)(void);
    void (*free)(void);
};

/* NULL for types that nothing is quantised to. */
const struct sotto_i_quantiser * sotto_i_quantiser(enum sotto_type type);

/* Quantisers, each in its type's file, and the makers of tables. */
#define PLAIN(NAME, name)
#define QUANTISER(NAME, name, matrix) \
    void sotto_i_quantise_##name(const float * x, void * y, int64_t n, const float * w);
#define QUANTISER_WITH_TABLES(NAME, name, matrix)  \
    QUANTISER(NAME, name, matrix)                  \
    enum sotto_status sotto_i_##name##_init(void); \
    void sotto_i_##name##_free(void);
#include "quant/quantisers.def"
#undef PLAIN
#undef QUANTISER
#undef QUANTISER_WITH_TABLES

#endif
