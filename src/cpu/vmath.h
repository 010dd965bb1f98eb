/* SPDX-License-Identifier: MIT */
/* exp, tanh, erf and GELU on vectors, over cpu/simd.h. Formulas, error and constants are those of vmath_c.h, and so is the
 * order of every operation: lane for lane the same bits at every width. Include after cpu/simd.h. */
#ifndef SOTTO_CPU_VMATH_H
#define SOTTO_CPU_VMATH_H

#include "cpu/simd.h"
#include "cpu/vmath_c.h"

/* q * x + c, a step of Horner's scheme */
SIMD_INLINE V v_step(V q, V x, float c) { return v_fma(q, x, v_set1(c)); }
SIMD_INLINE V v_abs(V a) { return v_from_bits(vi_and(v_to_bits(a), vi_set1(0x7FFFFFFF))); }
SIMD_INLINE V v_neg(V a) { return v_from_bits(vi_xor(v_to_bits(a), vi_set1(INT32_MIN))); }
/* a, which is not negative, with the sign of s */
SIMD_INLINE V v_with_sign(V a, V s) {
    return v_from_bits(vi_or(v_to_bits(a), vi_and(v_to_bits(s), vi_set1(INT32_MIN))));
}
SIMD_INLINE V v_exp2i(VI n) { return v_from_bits(vi_shl(vi_add(n, vi_set1(127)), 23)); }

SIMD_INLINE V v_exp(V x) {
    x = v_max(v_set1(VM_EXP_MIN), v_min(v_set1(VM_EXP_MAX), x));
    const V t = v_fma(x, v_set1(VM_LOG2E), v_set1(VM_SHIFT)), n = v_sub(t, v_set1(VM_SHIFT));
    const V r = v_fnma(n, v_set1(VM_LN2_LO), v_fnma(n, v_set1(VM_LN2_HI), x));
    V q = v_step(v_set1(VM_EXP_Q4), r, VM_EXP_Q3);
    q = v_step(q, r, VM_EXP_Q2);
    q = v_step(q, r, VM_EXP_Q1);
    q = v_step(q, r, VM_EXP_Q0);
    const V y = v_add(v_set1(1.0f), v_fma(v_mul(r, r), q, r));
    const VI whole = vi_sub(v_to_bits(t), vi_set1(VM_SHIFT_BITS)), half = vi_sra(whole, 1);
    return v_mul(v_mul(y, v_exp2i(half)), v_exp2i(vi_sub(whole, half)));
}

SIMD_INLINE V v_tanh(V x) {
    const V a = v_abs(x), z = v_mul(a, a);
    V q = v_step(v_set1(VM_TANH_Q5), z, VM_TANH_Q4);
    q = v_step(q, z, VM_TANH_Q3);
    q = v_step(q, z, VM_TANH_Q2);
    q = v_step(q, z, VM_TANH_Q1);
    q = v_step(q, z, VM_TANH_Q0);
    const V near = v_fma(v_mul(a, z), q, a);
    const V e = v_exp(v_mul(v_set1(2.0f), v_min(v_set1(VM_TANH_MAX), a)));
    const V far = v_sub(v_set1(1.0f), v_div(v_set1(2.0f), v_add(e, v_set1(1.0f))));
    return v_with_sign(v_select(v_lt(a, v_set1(VM_TANH_SPLIT)), near, far), x);
}

SIMD_INLINE V v_erf(V x) {
    const V a = v_min(v_set1(VM_ERF_MAX), v_abs(x)), z = v_mul(a, a);
    V q = v_step(v_set1(VM_ERF_Q6), z, VM_ERF_Q5);
    q = v_step(q, z, VM_ERF_Q4);
    q = v_step(q, z, VM_ERF_Q3);
    q = v_step(q, z, VM_ERF_Q2);
    q = v_step(q, z, VM_ERF_Q1);
    q = v_step(q, z, VM_ERF_Q0);
    const V near = v_fma(a, q, a);
    V p = v_step(v_set1(VM_ERF_P7), a, VM_ERF_P6);
    p = v_step(p, a, VM_ERF_P5);
    p = v_step(p, a, VM_ERF_P4);
    p = v_step(p, a, VM_ERF_P3);
    p = v_step(p, a, VM_ERF_P2);
    p = v_step(p, a, VM_ERF_P1);
    p = v_step(p, a, VM_ERF_P0);
    const V far = v_sub(v_set1(1.0f), v_exp(p));
    return v_with_sign(v_select(v_lt(a, v_set1(VM_ERF_SPLIT)), near, far), x);
}

SIMD_INLINE V v_gelu(V x) {
    const V w = v_step(v_mul(x, x), v_set1(VM_GELU_K3), VM_GELU_K);
    const V e = v_exp(v_neg(v_mul(x, w)));
    return v_div(v_max(v_set1(-FLT_MAX), x), v_add(v_set1(1.0f), e));
}

SIMD_INLINE V v_gelu_erf(V x) {
    const V half = v_mul(v_set1(0.5f), v_max(v_set1(-FLT_MAX), x));
    return v_fma(half, v_erf(v_mul(x, v_set1(VM_SQRT_HALF))), half);
}

#endif
