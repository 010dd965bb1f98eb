/* SPDX-License-Identifier: MIT */
/* Scalar kernels on rows: the definition of every slot of vec_kernels.h, plain and never tuned. */
#include <math.h>

#include "cpu/kernels.h"
#include "cpu/vmath_c.h"
#include "sotto/types.h"

enum { SUM_CHUNK = 4096, PARTIAL = 16 };

static void f16_to_f32(const uint16_t * x, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = sotto_fp16_to_fp32(x[i]);
}

static void bf16_to_f32(const uint16_t * x, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = sotto_bf16_to_fp32((sotto_bf16_t){ x[i] });
}

static void f32_to_f16(const float * x, uint16_t * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = sotto_fp32_to_fp16(x[i]);
}

static void f32_to_bf16(const float * x, uint16_t * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = sotto_fp32_to_bf16(x[i]).bits;
}

static void add(const float * a, const float * b, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void mul(const float * a, const float * b, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void scale(const float * x, float s, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = s * x[i];
}

static void scale_bias(const float * x, float s, float b, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = fmaf(s, x[i], b);
}

static void shift_scale(const float * x, float m, float s, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - m) * s;
}

static void add_scaled(const float * x, float s, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = fmaf(s, x[i], y[i]);
}

static void gelu(const float * x, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = sotto_i_geluf(x[i]);
}

static void gelu_erf(const float * x, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = sotto_i_gelu_erff(x[i]);
}

static float tree(float p[PARTIAL]) {
    for (int half = PARTIAL / 2; half > 0; half /= 2)
        for (int q = 0; q < half; q++)
            p[q] += p[q + half];
    return p[0];
}

static float sum(const float * x, int64_t n) {
    float total = 0.0f;
    for (int64_t first = 0; first < n; first += SUM_CHUNK) {
        float p[PARTIAL] = { 0 };
        for (int64_t i = first; i < n && i < first + SUM_CHUNK; i++)
            p[i % PARTIAL] += x[i];
        total += tree(p);
    }
    return total;
}

static float sum_sq_diff(const float * x, float m, int64_t n) {
    float total = 0.0f;
    for (int64_t first = 0; first < n; first += SUM_CHUNK) {
        float p[PARTIAL] = { 0 };
        for (int64_t i = first; i < n && i < first + SUM_CHUNK; i++) {
            const float d = x[i] - m;
            p[i % PARTIAL] = fmaf(d, d, p[i % PARTIAL]);
        }
        total += tree(p);
    }
    return total;
}

static float exp_sum(const float * x, float m, float * y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = sotto_i_expf(x[i] - m);
    return sum(y, n);
}

static float row_max(const float * x, int64_t n) {
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return NAN;
        m = x[i] > m ? x[i] : m;
    }
    return m + 0.0f;
}

static int64_t argmax(const float * x, int64_t n) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(x[i]) && (best < 0 || x[i] > x[best]))
            best = i;
    return best < 0 ? 0 : best;
}

void sotto_i_vec_init(struct sotto_i_vec_kernels * kernels, enum sotto_cpu_level level) {
    *kernels = (struct sotto_i_vec_kernels)SOTTO_I_VEC_SLOTS;
#if defined(__x86_64__)
    if (level >= SOTTO_CPU_LEVEL_AVX2)
        sotto_i_vec_raise_avx2(kernels);
    if (level >= SOTTO_CPU_LEVEL_AVX512)
        sotto_i_vec_raise_avx512(kernels);
#else
    (void)level;
#endif
}
