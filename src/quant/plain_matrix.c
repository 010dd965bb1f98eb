/* SPDX-License-Identifier: MIT */
/* q4_0, q4_1, q5_0 and q5_1 with an importance matrix: fits by the weights q sqrt(mean of squares of the row + x^2). */
#include "core/type_convert.h"
#include "quant/fit.h"
#include "quant/plain.h"
#include "quant/quant_impl.h"

enum { N = 32, AT_ONCE = 8 };

/* Up to AT_ONCE blocks of a row, and what the fits say of them. */
struct blocks {
    int n;
    float w[AT_ONCE * N];
    float scales[AT_ONCE], minima[AT_ONCE];
    uint8_t codes[AT_ONCE * N];
};

static void q4_0_blocks(const float * x, struct blocks * b, uint8_t * out) {
    sotto_i_fit_signed(8, x, b->w, b->n, N, b->scales, b->codes);
    for (int i = 0; i < b->n; i++) {
        sotto_i_q4_0_pack(b->scales[i], b->codes + N * i, out + 18 * i);
    }
}

static void q5_0_blocks(const float * x, struct blocks * b, uint8_t * out) {
    sotto_i_fit_signed(16, x, b->w, b->n, N, b->scales, b->codes);
    for (int i = 0; i < b->n; i++) {
        sotto_i_q5_0_pack(b->scales[i], b->codes + N * i, out + 22 * i);
    }
}

static void q4_1_blocks(const float * x, struct blocks * b, uint8_t * out) {
    static const struct sotto_i_offset_search how = { 15, -0.9f, 0.05f, 36, false };
    sotto_i_fit_offset(&how, x, b->w, b->n, N, b->scales, b->minima, b->codes);
    for (int i = 0; i < b->n; i++) {
        sotto_i_q4_1_pack(b->scales[i], -b->minima[i], b->codes + N * i, out + 20 * i);
    }
}

static void q5_1_blocks(const float * x, struct blocks * b, uint8_t * out) {
    static const struct sotto_i_offset_search how = { 31, -0.9f, 0.05f, 36, false };
    sotto_i_fit_offset(&how, x, b->w, b->n, N, b->scales, b->minima, b->codes);
    for (int i = 0; i < b->n; i++) {
        sotto_i_q5_1_pack(b->scales[i], -b->minima[i], b->codes + N * i, out + 24 * i);
    }
}

typedef void (*blocks_fn)(const float * x, struct blocks * b, uint8_t * out);

static void weighted_row(blocks_fn quantise, int bytes, const float * x, void * y, int64_t n, const float * matrix) {
    const float sigma2 = sotto_i_sum_of_squares(x, n) / (float)n;
    uint8_t * out = y;
    for (int64_t i = 0; i < n; i += AT_ONCE * N) {
        struct blocks b;
        b.n = n - i < AT_ONCE * N ? (int)(n - i) / N : AT_ONCE;
        for (int k = 0; k < b.n * N; k += N) {
            sotto_i_weigh(x + i + k, matrix + i + k, N, sigma2, b.w + k);
        }
        quantise(x + i, &b, out + i / N * bytes);
    }
}

#define QUANTISE_ROWS(name, bytes)                                                        \
    void sotto_i_quantise_##name(const float * x, void * y, int64_t n, const float * w) { \
        if (w) {                                                                          \
            weighted_row(name##_blocks, bytes, x, y, n, w);                               \
        } else {                                                                          \
            sotto_i_##name##_from_float(x, y, n);                                         \
        }                                                                                 \
    }

QUANTISE_ROWS(q4_0, 18)
QUANTISE_ROWS(q4_1, 20)
QUANTISE_ROWS(q5_0, 22)
QUANTISE_ROWS(q5_1, 24)
