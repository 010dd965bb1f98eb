/* SPDX-License-Identifier: MIT */
/* Fits of scales and codes to values, shared by the quantisers.
 *
 * x and w are `groups` runs of n values and weights, one after the other; each group gets a scale (and a minimum) and n
 * codes. n <= FIT_MAX. Groups are fitted independently, several side by side; a group's result is the same in any
 * company. Whatever the values and weights, also not finite ones, codes lie in the range named. */
#ifndef SOTTO_QUANT_FIT_H
#define SOTTO_QUANT_FIT_H

#include <stdbool.h>
#include <stdint.h>

enum { FIT_MAX = 32 };

/* The weights of n values under an importance matrix, q_i * sqrt(sigma2 + x_i^2), where q is the matrix's column or, if it
 * leaves nothing that differs from 0 (an all-zero matrix says nothing of importance), 1 for each. */
void sotto_i_weigh(const float * x, const float * column, int n, float sigma2, float * w);
/* The q of sotto_i_weigh alone. */
void sotto_i_columns(const float * x, const float * column, int n, float * q);

/* Sum of squares, from index 0 upwards. */
float sotto_i_sum_of_squares(const float * x, int64_t n);

/* x ~ scale * code, codes 0..top, for values that are >= 0 (a negative one may get a negative code, >= -127). */
float sotto_i_fit_positive(const float * x, const float * w, int n, int top, int8_t * codes);

/* x ~ scale * code - minimum, codes 0..top, minimum >= 0. */
struct sotto_i_offset_search {
    int top;
    float first, step; /* trial k spreads the values over top + first + step * k codes */
    int trials;        /* the last k */
    bool absolute;     /* errors count as they are, not squared */
};
void sotto_i_fit_offset(const struct sotto_i_offset_search * how, const float * x, const float * w, int groups, int n,
                        float * scales, float * minima, uint8_t * codes);

/* x ~ scale * (code - half), codes 0..2 half - 1, the scale of either sign; w NULL: squares of x. */
void sotto_i_fit_signed(int half, const float * x, const float * w, int groups, int n, float * scales, uint8_t * codes);
/* The same by moving single codes from one start instead of trying many scales; weights are squares of x. */
void sotto_i_fit_signed_moving(int half, const float * x, int groups, int n, float * scales, uint8_t * codes);

#endif
