/* SPDX-License-Identifier: MIT */
/* Element types: names, sizes, and conversion of scalars and rows.
 *
 * A quantised type stores rows in blocks of `blck_size` elements that take `type_size` bytes. Functions on
 * a type id accept any number: outside 0..SOTTO_TYPE_COUNT-1 those that return a size record SOTTO_E_TYPE,
 * for a removed type SOTTO_E_RETIRED, and return 0; the name and the row of the table come without an error.
 * All may be called from any thread. */
#ifndef SOTTO_TYPES_H
#define SOTTO_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sotto_type {
#define TYPE(id, NAME, name, elements, bytes, quantised, retired) SOTTO_TYPE_##NAME = id,
#include "sotto/types.def"
#undef TYPE
    SOTTO_TYPE_COUNT = 43
};

typedef uint16_t sotto_fp16_t;
typedef struct {
    uint16_t bits;
} sotto_bf16_t;

/* What can be done with a type. Conversions work on rows of n elements, n a multiple of blck_size. */
struct sotto_type_traits {
    const char * type_name;
    int64_t blck_size;
    int64_t blck_size_interleave; /* always 0 */
    size_t type_size;             /* bytes per block */
    bool is_quantized;
    void (*to_float)(const void * x, float * y, int64_t n);       /* NULL: integers, f32, f64, work types */
    void (*from_float_ref)(const float * x, void * y, int64_t n); /* NULL: no row quantiser */
};

/* Row of the table; for unknown ids a row of zeros with the name "unknown", never NULL. */
SOTTO_API const struct sotto_type_traits * sotto_get_type_traits(enum sotto_type type);

SOTTO_API const char * sotto_type_name(enum sotto_type type); /* "unknown" outside the list */
SOTTO_API int64_t sotto_blck_size(enum sotto_type type);      /* elements per block, 0 for removed types */
SOTTO_API size_t sotto_type_size(enum sotto_type type);       /* bytes per block */
SOTTO_API double sotto_type_sizef(enum sotto_type type);      /* bytes per element */
SOTTO_API bool sotto_is_quantized(enum sotto_type type);

/* Bytes of a row of n elements; 0 and SOTTO_E_SHAPE if n is negative or no multiple of the block, 0 and
 * SOTTO_E_MEMORY on overflow. */
SOTTO_API size_t sotto_row_size(enum sotto_type type, int64_t n);

/* IEEE binary16 and bfloat16, rounding to nearest even; NaN stays NaN, bf16 NaN is made quiet. */
SOTTO_API float sotto_fp16_to_fp32(sotto_fp16_t x);
SOTTO_API sotto_fp16_t sotto_fp32_to_fp16(float x);
SOTTO_API void sotto_fp16_to_fp32_row(const sotto_fp16_t * x, float * y, int64_t n);
SOTTO_API void sotto_fp32_to_fp16_row(const float * x, sotto_fp16_t * y, int64_t n);
SOTTO_API float sotto_bf16_to_fp32(sotto_bf16_t x);
SOTTO_API sotto_bf16_t sotto_fp32_to_bf16(float x);
SOTTO_API void sotto_bf16_to_fp32_row(const sotto_bf16_t * x, float * y, int64_t n);
SOTTO_API void sotto_fp32_to_bf16_row(const float * x, sotto_bf16_t * y, int64_t n);
SOTTO_API void sotto_fp32_to_bf16_row_ref(const float * x, sotto_bf16_t * y, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
