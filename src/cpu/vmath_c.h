/* SPDX-License-Identifier: MIT */
/* exp, tanh, erf and GELU on one float: the definition. vmath.h does the same operations in the same order on vectors, so
 * both give the same bits; whoever changes a line here changes it there (tests/kernels/test_vec.c compares them).
 *
 * The polynomials are minimax fits made for this file (Remez exchange in double precision, coefficients then rounded
 * to float). Errors are measured over every 257th float, against double precision:
 *
 *            largest error                                 special values
 *   exp      0.97 ulp, denormal results 0.74 ulp           -inf and below -104: 0; above 88.7229: +inf; NaN: NaN
 *   tanh     1.03 ulp (8.8e-8 relative)                    -0: -0; +-inf: +-1; NaN: NaN
 *   erf      7.5e-8 absolute                               -0: -0; +-inf: +-1; NaN: NaN
 *
 * No operation depends on a rounding mode other than nearest even; denormals are neither flushed nor skipped. */
#ifndef SOTTO_CPU_VMATH_C_H
#define SOTTO_CPU_VMATH_C_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* exp: x = n ln 2 + r, |r| <= ln 2 / 2. VM_SHIFT = 1.5 * 2^23: adding it leaves the nearest integer in the low bits.
 * The first part of ln 2 has 15 bits, so n * VM_LN2_HI is exact. */
#define VM_LOG2E      0x1.715476p+0f
#define VM_SHIFT      0x1.8p+23f
#define VM_SHIFT_BITS 0x4B400000
#define VM_LN2_HI     0x1.62e4p-1f
#define VM_LN2_LO     0x1.7f7d1cp-20f
#define VM_EXP_MIN    -105.0f /* exp of it rounds to 0 */
#define VM_EXP_MAX    89.0f   /* exp of it rounds to infinity */

/* e^r = 1 + r + r^2 q(r), |r| <= 0.3466, relative error 3.1e-9 */
#define VM_EXP_Q0 0x1.fffffcp-2f
#define VM_EXP_Q1 0x1.555492p-3f
#define VM_EXP_Q2 0x1.5558f2p-5f
#define VM_EXP_Q3 0x1.1239e2p-7f
#define VM_EXP_Q4 0x1.6a2434p-10f

/* tanh x = x + x^3 q(x^2), |x| < 0.8, relative error 3.4e-9; from there on 1 - 2 / (e^2|x| + 1) */
#define VM_TANH_SPLIT 0.8f
#define VM_TANH_MAX   10.0f /* tanh of it rounds to 1 */
#define VM_TANH_Q0    -0x1.55553ep-2f
#define VM_TANH_Q1    0x1.110b7ep-3f
#define VM_TANH_Q2    -0x1.b92feap-5f
#define VM_TANH_Q3    0x1.5d356ep-6f
#define VM_TANH_Q4    -0x1.e69e70p-8f
#define VM_TANH_Q5    0x1.a19afap-10f

/* erf x = x + x q(x^2), |x| < 1, absolute error 1.2e-9; from there on 1 - e^p(|x|), where p is ln(1 - erf) on [1, 4],
 * absolute error of the result 2.1e-11 */
#define VM_ERF_SPLIT 1.0f
#define VM_ERF_MAX   4.0f /* erf of it rounds to 1 */
#define VM_ERF_Q0    0x1.06eba8p-3f
#define VM_ERF_Q1    -0x1.81273ep-2f
#define VM_ERF_Q2    0x1.ce2d20p-4f
#define VM_ERF_Q3    -0x1.b7fbb4p-6f
#define VM_ERF_Q4    0x1.5419f6p-8f
#define VM_ERF_Q5    -0x1.a485ecp-11f
#define VM_ERF_Q6    0x1.4ae4d0p-14f
#define VM_ERF_P0    0x1.8a5752p-13f
#define VM_ERF_P1    -0x1.212c0cp+0f
#define VM_ERF_P2    -0x1.443566p-1f
#define VM_ERF_P3    -0x1.bc1516p-4f
#define VM_ERF_P4    0x1.9d0304p-6f
#define VM_ERF_P5    -0x1.138cbcp-8f
#define VM_ERF_P6    0x1.cec600p-12f
#define VM_ERF_P7    -0x1.6bd7e2p-16f

/* GELU: k = 2 sqrt(2/pi), k 0.044715, sqrt(1/2) */
#define VM_GELU_K    0x1.988454p+0f
#define VM_GELU_K3   0x1.2444f2p-4f
#define VM_SQRT_HALF 0x1.6a09e6p-1f

static inline float sotto_i_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint32_t sotto_i_to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* "a > b ? a : b" and "a < b ? a : b": b when either is NaN, as the vector instructions have it. */
static inline float sotto_i_maxf(float a, float b) { return a > b ? a : b; }

static inline float sotto_i_minf(float a, float b) { return a < b ? a : b; }

static inline float sotto_i_expf(float x) {
    x = sotto_i_maxf(VM_EXP_MIN, sotto_i_minf(VM_EXP_MAX, x));
    const float t = fmaf(x, VM_LOG2E, VM_SHIFT), n = t - VM_SHIFT;
    const float r = fmaf(-n, VM_LN2_LO, fmaf(-n, VM_LN2_HI, x));
    float q = fmaf(VM_EXP_Q4, r, VM_EXP_Q3);
    q = fmaf(q, r, VM_EXP_Q2);
    q = fmaf(q, r, VM_EXP_Q1);
    q = fmaf(q, r, VM_EXP_Q0);
    const float y = 1.0f + fmaf(r * r, q, r);
    /* two factors: 2^n alone may lie outside the range of floats. The first product is exact, the second rounds once. */
    const int32_t whole = (int32_t)(sotto_i_to_bits(t) - (uint32_t)VM_SHIFT_BITS);
    const int32_t half = (whole - (whole & 1)) / 2;
    const float s0 = sotto_i_from_bits(((uint32_t)half + 127u) << 23);
    const float s1 = sotto_i_from_bits(((uint32_t)whole - (uint32_t)half + 127u) << 23);
    return y * s0 * s1;
}

static inline float sotto_i_tanhf(float x) {
    const uint32_t sign = sotto_i_to_bits(x) & 0x80000000u;
    const float a = sotto_i_from_bits(sotto_i_to_bits(x) & 0x7FFFFFFFu);
    const float z = a * a;
    float q = fmaf(VM_TANH_Q5, z, VM_TANH_Q4);
    q = fmaf(q, z, VM_TANH_Q3);
    q = fmaf(q, z, VM_TANH_Q2);
    q = fmaf(q, z, VM_TANH_Q1);
    q = fmaf(q, z, VM_TANH_Q0);
    const float near = fmaf(a * z, q, a);
    const float e = sotto_i_expf(2.0f * sotto_i_minf(VM_TANH_MAX, a));
    const float far = 1.0f - 2.0f / (e + 1.0f);
    return sotto_i_from_bits(sotto_i_to_bits(a < VM_TANH_SPLIT ? near : far) | sign);
}

static inline float sotto_i_erff(float x) {
    const uint32_t sign = sotto_i_to_bits(x) & 0x80000000u;
    const float a = sotto_i_minf(VM_ERF_MAX, sotto_i_from_bits(sotto_i_to_bits(x) & 0x7FFFFFFFu));
    const float z = a * a;
    float q = fmaf(VM_ERF_Q6, z, VM_ERF_Q5);
    q = fmaf(q, z, VM_ERF_Q4);
    q = fmaf(q, z, VM_ERF_Q3);
    q = fmaf(q, z, VM_ERF_Q2);
    q = fmaf(q, z, VM_ERF_Q1);
    q = fmaf(q, z, VM_ERF_Q0);
    const float near = fmaf(a, q, a);
    float p = fmaf(VM_ERF_P7, a, VM_ERF_P6);
    p = fmaf(p, a, VM_ERF_P5);
    p = fmaf(p, a, VM_ERF_P4);
    p = fmaf(p, a, VM_ERF_P3);
    p = fmaf(p, a, VM_ERF_P2);
    p = fmaf(p, a, VM_ERF_P1);
    p = fmaf(p, a, VM_ERF_P0);
    const float far = 1.0f - sotto_i_expf(p);
    return sotto_i_from_bits(sotto_i_to_bits(a < VM_ERF_SPLIT ? near : far) | sign);
}

/* x/2 (1 + tanh u) = x / (1 + e^-2u), u = k/2 (x + 0.044715 x^3): nothing cancels, and where x^2 overflows the
 * exponential is still 0 or infinity. -0 far on the left, x far on the right. */
static inline float sotto_i_geluf(float x) {
    const float w = fmaf(x * x, VM_GELU_K3, VM_GELU_K);
    return sotto_i_maxf(-FLT_MAX, x) / (1.0f + sotto_i_expf(-(x * w)));
}

/* x/2 (1 + erf(x sqrt(1/2))); +0 far on the left, x far on the right. */
static inline float sotto_i_gelu_erff(float x) {
    const float half = 0.5f * sotto_i_maxf(-FLT_MAX, x);
    return fmaf(half, sotto_i_erff(x * VM_SQRT_HALF), half);
}

#endif
