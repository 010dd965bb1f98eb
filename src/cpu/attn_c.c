/* SPDX-License-Identifier: MIT */
/* Attention in plain C: the definition of every slot of attn_kernels.h, in the words of docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "cpu/attn_kernels.h"
#include "cpu/kernels.h"
#include "cpu/vmath_c.h"

enum { KEYS = SOTTO_I_ATTN_KEYS, K_BLOCK = 256, MASKED_F16 = 0xFC00 };

static float element(enum sotto_i_attn_type type, const void * row, int64_t i) {
    const uint16_t * half = row;
    switch (type) {
    case SOTTO_I_ATTN_F16: return sotto_fp16_to_fp32(half[i]);
    case SOTTO_I_ATTN_BF16: return sotto_i_from_bits((uint32_t)half[i] << 16);
    default: return ((const float *)row)[i];
    }
}

static void pack_keys(enum sotto_i_attn_type type, float * packed, const void * const * rows, int64_t d) {
    for (int64_t l = 0; l < d; l++) {
        for (int j = 0; j < KEYS; j++) {
            packed[l * KEYS + j] = element(type, rows[j], l);
        }
    }
}

static void widen(enum sotto_i_attn_type type, float * out, int64_t ld, const void * const * rows, int n, int64_t d) {
    for (int j = 0; j < n; j++) {
        for (int64_t l = 0; l < d; l++) {
            out[j * ld + l] = element(type, rows[j], l);
        }
    }
}

static void pack_keys_f32(float * packed, const void * const * rows, int64_t d) {
    pack_keys(SOTTO_I_ATTN_F32, packed, rows, d);
}
static void pack_keys_f16(float * packed, const void * const * rows, int64_t d) {
    pack_keys(SOTTO_I_ATTN_F16, packed, rows, d);
}
static void pack_keys_bf16(float * packed, const void * const * rows, int64_t d) {
    pack_keys(SOTTO_I_ATTN_BF16, packed, rows, d);
}
static void widen_f32(float * out, int64_t ld, const void * const * rows, int n, int64_t d) {
    widen(SOTTO_I_ATTN_F32, out, ld, rows, n, d);
}
static void widen_f16(float * out, int64_t ld, const void * const * rows, int n, int64_t d) {
    widen(SOTTO_I_ATTN_F16, out, ld, rows, n, d);
}
static void widen_bf16(float * out, int64_t ld, const void * const * rows, int n, int64_t d) {
    widen(SOTTO_I_ATTN_BF16, out, ld, rows, n, d);
}

static void prefetch(const void * const * rows, int n, size_t bytes) {
    (void)rows;
    (void)n;
    (void)bytes;
}

/* One product, in blocks of 256. */
static float dot(const float * q, const float * key, int64_t d) {
    float y = 0.0f;
    for (int64_t first = 0; first < d; first += K_BLOCK) {
        const int64_t last = first + K_BLOCK < d ? first + K_BLOCK : d;
        float s = 0.0f;
        for (int64_t l = first; l < last; l++) {
            s = fmaf(q[l], key[l * KEYS], s);
        }
        y = first == 0 ? s : y + s;
    }
    return y;
}

static void dots(float * x, const float * q, int64_t ldq, int n, const float * packed, int64_t d) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < KEYS; j++) {
            x[i * KEYS + j] = dot(q + i * ldq, packed + j, d);
        }
    }
}

static uint64_t unmasked(const uint16_t * mask, int n) {
    uint64_t bits = 0;
    for (int j = 0; j < n; j++) {
        bits |= (uint64_t)(mask[j] != MASKED_F16) << j;
    }
    return bits;
}

/* Step 1: the score of position j of query i. */
static float score(const struct sotto_i_attn_weigh * t, int i, int j) {
    float x = t->x[i * KEYS + j];
    x = t->softcap != 0.0f ? t->softcap * sotto_i_tanhf((t->scale / t->softcap) * x) : t->scale * x;
    return t->mask == NULL ? x : fmaf(t->slope[i], sotto_fp16_to_fp32(t->mask[i][j]), x);
}

/* Largest open score, at least `max`. NaN is passed over, unless there is nothing but NaN and -inf: then it is the
 * maximum, so that it reaches the result. */
static float highest(const float * x, uint64_t open, float max) {
    float nan = 0.0f;
    for (int j = 0; j < KEYS; j++) {
        if ((open >> j & 1) != 0) {
            max = x[j] > max ? x[j] : max;
            nan = x[j] != x[j] ? x[j] : nan;
        }
    }
    return max == -INFINITY && nan != nan ? nan : max;
}

/* Sixteen partial sums and their tree. */
static float sum_of(const float * w) {
    float p[16] = { 0.0f };
    for (int j = 0; j < KEYS; j++) {
        p[j % 16] += w[j];
    }
    for (int half = 8; half > 0; half /= 2) {
        for (int q = 0; q < half; q++) {
            p[q] += p[q + half];
        }
    }
    return p[0];
}

static void weigh_one(const struct sotto_i_attn_weigh * t, int i) {
    float * x = t->x + i * KEYS;
    for (int j = 0; j < KEYS; j++) {
        x[j] = (t->open[i] >> j & 1) != 0 ? score(t, i, j) : -INFINITY;
    }
    const float before = t->max[i], max = highest(x, t->open[i], before);
    if (t->open[i] == 0 || max == -INFINITY) {
        t->open[i] = 0;
        t->factor[i] = 1.0f;
        return;
    }
    t->max[i] = max;
    t->factor[i] = before == -INFINITY ? 0.0f : sotto_i_expf(before - max);
    for (int j = 0; j < KEYS; j++) {
        x[j] = (t->open[i] >> j & 1) != 0 ? sotto_i_expf(x[j] - max) : 0.0f;
    }
    t->sum[i] = fmaf(t->sum[i], t->factor[i], sum_of(x));
}

static void weigh(const struct sotto_i_attn_weigh * t) {
    for (int i = 0; i < t->n; i++) {
        weigh_one(t, i);
    }
}

static void values(float * o, int64_t ldo, int n, const float * w, const float * factor, const uint64_t * open,
                   const float * const * v, int64_t d) {
    for (int i = 0; i < n; i++) {
        for (int64_t l = 0; l < d && open[i] != 0; l++) {
            float sum = o[i * ldo + l] * factor[i];
            for (int j = 0; j < KEYS; j++) {
                if ((open[i] >> j & 1) != 0) {
                    sum = fmaf(w[i * KEYS + j], v[j][l], sum);
                }
            }
            o[i * ldo + l] = sum;
        }
    }
}

void sotto_i_attn_init(struct sotto_i_attn_kernels * kernels, enum sotto_cpu_level level) {
    *kernels = (struct sotto_i_attn_kernels){
        .pack_keys = { pack_keys_f32, pack_keys_f16, pack_keys_bf16 },
        .widen = { widen_f32, widen_f16, widen_bf16 },
        .prefetch = prefetch,
        .dots = dots,
        .unmasked = unmasked,
        .weigh = weigh,
        .values = values,
    };
#if defined(__x86_64__)
    if (level >= SOTTO_CPU_LEVEL_AVX2) {
        sotto_i_attn_init_avx2(kernels);
    }
    if (level >= SOTTO_CPU_LEVEL_AVX512) {
        sotto_i_attn_init_avx512(kernels);
    }
#else
    (void)level;
#endif
}
