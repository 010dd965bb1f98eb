/* SPDX-License-Identifier: MIT */
/* Kernels on rows, once for all vector widths: included by x86/vec_<level>.c after cpu/simd.h. Contracts are in
 * vec_kernels.h, definitions in vec_c.c; order of sums as in docs/numerics.md.
 *
 * A row is whole vectors and a rest of fewer than VL elements, which is loaded and stored under a mask. Sixteen partial
 * sums are one register of 16 lanes or two of 8. */
#include <math.h>
#include <string.h>

#include "cpu/vec_kernels.h"
#include "cpu/vmath.h"

enum { SUM_CHUNK = 4096, PARTIAL = 16, N_SUM = PARTIAL / VL };

/* ---- conversions ---- */

static void f16_to_f32(const uint16_t * x, float * y, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(y + i, v_load_f16(x + i));
    if (i < n) {
        uint16_t rest[VL] = { 0 };
        memcpy(rest, x + i, (size_t)(n - i) * sizeof(*x));
        v_store_n(y + i, v_load_f16(rest), n - i);
    }
}

static void bf16_to_f32(const uint16_t * x, float * y, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(y + i, v_load_bf16(x + i));
    if (i < n) {
        uint16_t rest[VL] = { 0 };
        memcpy(rest, x + i, (size_t)(n - i) * sizeof(*x));
        v_store_n(y + i, v_load_bf16(rest), n - i);
    }
}

static void f32_to_f16(const float * x, uint16_t * y, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store_f16(y + i, v_load(x + i));
    if (i < n) {
        uint16_t rest[VL];
        v_store_f16(rest, v_load_n(x + i, n - i));
        memcpy(y + i, rest, (size_t)(n - i) * sizeof(*y));
    }
}

/* Half of the last kept bit, less one if that bit is even, then cut; NaN is cut and made quiet. */
SIMD_INLINE VI bf16_bits(V a) {
    const VI bits = v_to_bits(a), odd = vi_and(vi_shr(bits, 16), vi_set1(1));
    const VI rounded = vi_add(bits, vi_add(odd, vi_set1(0x7FFF)));
    const VI quiet = vi_or(bits, vi_set1(0x400000));
    return vi_shr(v_to_bits(v_select(v_isnan(a), v_from_bits(quiet), v_from_bits(rounded))), 16);
}

static void f32_to_bf16(const float * x, uint16_t * y, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vi_store_u16(y + i, bf16_bits(v_load(x + i)));
    if (i < n) {
        uint16_t rest[VL];
        vi_store_u16(rest, bf16_bits(v_load_n(x + i, n - i)));
        memcpy(y + i, rest, (size_t)(n - i) * sizeof(*y));
    }
}

/* ---- maps ---- */

/* y = f(x, p, q), p and q the same for all */
SIMD_INLINE void map(V (*f)(V x, V p, V q), const float * x, float p, float q, float * y, int64_t n) {
    const V vp = v_set1(p), vq = v_set1(q);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(y + i, f(v_load(x + i), vp, vq));
    if (i < n)
        v_store_n(y + i, f(v_load_n(x + i, n - i), vp, vq), n - i);
}

/* y = f(a, b, p) */
SIMD_INLINE void map2(V (*f)(V a, V b, V p), const float * a, const float * b, float p, float * y, int64_t n) {
    const V vp = v_set1(p);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(y + i, f(v_load(a + i), v_load(b + i), vp));
    if (i < n)
        v_store_n(y + i, f(v_load_n(a + i, n - i), v_load_n(b + i, n - i), vp), n - i);
}

SIMD_INLINE V f_add(V a, V b, V p) {
    (void)p;
    return v_add(a, b);
}

SIMD_INLINE V f_mul(V a, V b, V p) {
    (void)p;
    return v_mul(a, b);
}

SIMD_INLINE V f_add_scaled(V x, V y, V s) { return v_fma(s, x, y); }

SIMD_INLINE V f_scale(V x, V s, V q) {
    (void)q;
    return v_mul(s, x);
}

SIMD_INLINE V f_scale_bias(V x, V s, V b) { return v_fma(s, x, b); }
SIMD_INLINE V f_shift_scale(V x, V m, V s) { return v_mul(v_sub(x, m), s); }

SIMD_INLINE V f_gelu(V x, V p, V q) {
    (void)p, (void)q;
    return v_gelu(x);
}

SIMD_INLINE V f_gelu_erf(V x, V p, V q) {
    (void)p, (void)q;
    return v_gelu_erf(x);
}

static void add(const float * a, const float * b, float * y, int64_t n) { map2(f_add, a, b, 0.0f, y, n); }
static void mul(const float * a, const float * b, float * y, int64_t n) { map2(f_mul, a, b, 0.0f, y, n); }
static void scale(const float * x, float s, float * y, int64_t n) { map(f_scale, x, s, 0.0f, y, n); }
static void scale_bias(const float * x, float s, float b, float * y, int64_t n) { map(f_scale_bias, x, s, b, y, n); }
static void shift_scale(const float * x, float m, float s, float * y, int64_t n) { map(f_shift_scale, x, m, s, y, n); }
static void add_scaled(const float * x, float s, float * y, int64_t n) { map2(f_add_scaled, x, y, s, y, n); }
static void gelu(const float * x, float * y, int64_t n) { map(f_gelu, x, 0.0f, 0.0f, y, n); }
static void gelu_erf(const float * x, float * y, int64_t n) { map(f_gelu_erf, x, 0.0f, 0.0f, y, n); }

/* ---- sums ---- */

SIMD_INLINE float tree(const V * p) {
    float a[PARTIAL];
    for (int k = 0; k < N_SUM; k++)
        v_store(a + k * VL, p[k]);
    for (int half = PARTIAL / 2; half > 0; half /= 2)
        for (int q = 0; q < half; q++)
            a[q] += a[q + half];
    return a[0];
}

/* The first n lanes of a, 0 in the others. */
SIMD_INLINE V keep(V a, int64_t n) {
    float lanes[VL];
    v_store(lanes, a);
    return v_load_n(lanes, n);
}

/* Sum of term(p, x, m), which adds what x stands for to p; what is behind the row adds 0. When y is given, map(x, m)
 * goes there and is what x stands for. */
SIMD_INLINE float sum_terms(V (*map1)(V x, V m), V (*term)(V p, V t), const float * x, float m, float * y, int64_t n) {
    const V vm = v_set1(m);
    float total = 0.0f;
    for (int64_t i = 0; i < n;) {
        const int64_t last = n - i < SUM_CHUNK ? n : i + SUM_CHUNK;
        V p[N_SUM];
        for (int k = 0; k < N_SUM; k++)
            p[k] = v_zero();
        for (; i + PARTIAL <= last; i += PARTIAL)
            for (int k = 0; k < N_SUM; k++) {
                const V t = map1(v_load(x + i + k * VL), vm);
                if (y)
                    v_store(y + i + k * VL, t);
                p[k] = term(p[k], t);
            }
        for (int k = 0; i < last; i += VL, k++) {
            const int64_t rest = last - i < VL ? last - i : VL;
            const V t = keep(map1(v_load_n(x + i, rest), vm), rest);
            if (y)
                v_store_n(y + i, t, rest);
            p[k] = term(p[k], t);
        }
        total += tree(p);
    }
    return total;
}

SIMD_INLINE V m_same(V x, V m) {
    (void)m;
    return x;
}

SIMD_INLINE V m_diff(V x, V m) { return v_sub(x, m); }
SIMD_INLINE V m_exp(V x, V m) { return v_exp(v_sub(x, m)); }
SIMD_INLINE V t_add(V p, V t) { return v_add(p, t); }
SIMD_INLINE V t_square(V p, V t) { return v_fma(t, t, p); }

static float sum(const float * x, int64_t n) { return sum_terms(m_same, t_add, x, 0.0f, NULL, n); }
static float sum_sq_diff(const float * x, float m, int64_t n) { return sum_terms(m_diff, t_square, x, m, NULL, n); }
static float exp_sum(const float * x, float m, float * y, int64_t n) { return sum_terms(m_exp, t_add, x, m, y, n); }

/* ---- maxima ---- */

/* Largest lane of four vectors of maxima. None of them is NaN: v_max(x, best) keeps best when x is. */
SIMD_INLINE float max_lane(V a, V b, V c, V d) {
    float lanes[VL], m = -INFINITY;
    v_store(lanes, v_max(v_max(a, b), v_max(c, d)));
    for (int k = 0; k < VL; k++)
        m = lanes[k] > m ? lanes[k] : m;
    return m + 0.0f;
}

/* Largest value, NaN apart; whether there was a NaN. */
SIMD_INLINE float max_and_nan(const float * x, int64_t n, int * nan) {
    const V low = v_set1(-INFINITY);
    V a = low, b = low, c = low, d = low;
    int64_t i = 0;
    *nan = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) {
        const V xa = v_load(x + i), xb = v_load(x + i + VL);
        const V xc = v_load(x + i + 2 * VL), xd = v_load(x + i + 3 * VL);
        a = v_max(xa, a);
        b = v_max(xb, b);
        c = v_max(xc, c);
        d = v_max(xd, d);
        /* a NaN in either makes their sum NaN; so do two infinities, hence the second look */
        if (m_any(v_isnan(v_add(v_add(xa, xb), v_add(xc, xd)))))
            *nan |= m_any(v_isnan(xa)) | m_any(v_isnan(xb)) | m_any(v_isnan(xc)) | m_any(v_isnan(xd));
    }
    for (; i < n; i += VL) {
        float lanes[VL];
        const int64_t rest = n - i < VL ? n - i : VL;
        v_store(lanes, low);
        memcpy(lanes, x + i, (size_t)rest * sizeof(*x));
        a = v_max(v_load(lanes), a);
        *nan |= m_any(v_isnan(v_load(lanes)));
    }
    return max_lane(a, b, c, d);
}

static float row_max(const float * x, int64_t n) {
    int nan;
    const float m = max_and_nan(x, n, &nan);
    return nan ? NAN : m;
}

static int64_t argmax(const float * x, int64_t n) {
    int nan;
    const float m = max_and_nan(x, n, &nan);
    int64_t i = 0;
    while (i + VL <= n && !m_any(v_eq(v_load(x + i), v_set1(m))))
        i += VL;
    for (; i < n; i++)
        if (x[i] == m)
            return i;
    return 0;
}

void SIMD(sotto_i_vec_raise)(struct sotto_i_vec_kernels * kernels) {
    *kernels = (struct sotto_i_vec_kernels)SOTTO_I_VEC_SLOTS;
}
