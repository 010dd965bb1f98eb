/* SPDX-License-Identifier: MIT */
/* Kernels on rows of floats: element functions, reductions, conversions.
 *
 * For all slots: n >= 0, pointers need only their element's alignment, nothing outside the n elements is read or
 * written. An output may be the very same row as an input (y == x), but not overlap it otherwise. NaN in gives NaN
 * out; a NaN's sign and payload are nobody's promise. All else is the same bits at every level. */
#ifndef SOTTO_CPU_VEC_KERNELS_H
#define SOTTO_CPU_VEC_KERNELS_H

#include <stdint.h>

struct sotto_i_vec_kernels {
    /* exact; and rounded to nearest even, overflow gives infinity */
    void (*f16_to_f32)(const uint16_t * x, float * y, int64_t n);
    void (*bf16_to_f32)(const uint16_t * x, float * y, int64_t n);
    void (*f32_to_f16)(const float * x, uint16_t * y, int64_t n);
    void (*f32_to_bf16)(const float * x, uint16_t * y, int64_t n);

    void (*add)(const float * a, const float * b, float * y, int64_t n);          /* y = a + b */
    void (*mul)(const float * a, const float * b, float * y, int64_t n);          /* y = a b */
    void (*scale)(const float * x, float s, float * y, int64_t n);                /* y = s x */
    void (*scale_bias)(const float * x, float s, float b, float * y, int64_t n);  /* y = fma(s, x, b) */
    void (*shift_scale)(const float * x, float m, float s, float * y, int64_t n); /* y = (x - m) s */
    void (*add_scaled)(const float * x, float s, float * y, int64_t n);           /* y = fma(s, x, y) */

    void (*gelu)(const float * x, float * y, int64_t n);     /* the tanh form, sotto_i_geluf of vmath_c.h */
    void (*gelu_erf)(const float * x, float * y, int64_t n); /* the exact form, sotto_i_gelu_erff */

    /* Sums: chunks of 4096, sixteen partial sums, one tree (docs/numerics.md, "Sums over a row"). */
    float (*sum)(const float * x, int64_t n);
    float (*sum_sq_diff)(const float * x, float m, int64_t n);        /* terms (x - m)^2, by fma */
    float (*exp_sum)(const float * x, float m, float * y, int64_t n); /* y = exp(x - m), and their sum */

    /* Largest value, NaN if there is any; -inf for n = 0; a zero is +0. */
    float (*max)(const float * x, int64_t n);
    /* Lowest index of the largest value, NaN apart; 0 if there is none but NaN, or nothing. */
    int64_t (*argmax)(const float * x, int64_t n);
};

/* All slots, from the static functions of the file that says so. */
#define SOTTO_I_VEC_SLOTS                                                                                           \
    {                                                                                                               \
        .f16_to_f32 = f16_to_f32, .bf16_to_f32 = bf16_to_f32, .f32_to_f16 = f32_to_f16, .f32_to_bf16 = f32_to_bf16, \
        .add = add, .mul = mul, .scale = scale, .scale_bias = scale_bias, .shift_scale = shift_scale,               \
        .add_scaled = add_scaled, .gelu = gelu, .gelu_erf = gelu_erf, .sum = sum, .sum_sq_diff = sum_sq_diff,       \
        .exp_sum = exp_sum, .max = row_max, .argmax = argmax,                                                       \
    }

/* Raise slots to a level, which the machine must have. */
void sotto_i_vec_raise_avx2(struct sotto_i_vec_kernels * kernels);
void sotto_i_vec_raise_avx512(struct sotto_i_vec_kernels * kernels);

#endif
