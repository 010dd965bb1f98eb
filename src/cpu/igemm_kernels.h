/* SPDX-License-Identifier: MIT */
/* Kernels of products in 8 bits: quantised weights as codes (codes_kernels.h) times activations rounded to bytes.
 *
 * Activations are rounded in blocks of 32 along k: x = d * q, q in -127..127 and d = max|x| / 127, so that
 *
 *     sum of weight * x over a sub-block = (scale * d) * (sum of (code - offset) * q) - min * (d * sum of q)
 *
 * with both sums in whole numbers, exact in 32 bits. Sub-blocks join in f32 in ascending order, as docs/numerics.md
 * says. Panels and strips, tiles and the contract of slots are those of gemm_kernels.h with words of four codes in the
 * place of single floats. */
#ifndef SOTTO_CPU_IGEMM_KERNELS_H
#define SOTTO_CPU_IGEMM_KERNELS_H

#include <math.h>
#include <string.h>

#include "cpu/codes_kernels.h"
#include "cpu/gemm_kernels.h"

#define SOTTO_I_ROUND_BLOCK 32 /* activations that share a d */

/* One tile: c[j][r] = the sum above over k elements, or c += that. Up to `cols` columns of one strip. */
struct sotto_i_igemm_tile {
    const struct sotto_i_codes_form * form;
    struct sotto_i_codes w;       /* the first panel's k elements */
    size_t code_step, scale_step; /* from one panel to the next, in bytes of codes and in scales */
    const int8_t * q;             /* strip: [k / 4][ld][4] */
    const float * d;              /* [k / 32][ld] */
    const int32_t * start;        /* [k / sub][ld]: -offset * sum of q */
    const float * sum;            /* [k / sub][ld]: d * sum of q; used with minima */
    int64_t ld;
    float * c;
    int64_t ldc, k; /* k: 0 .. SOTTO_I_K_BLOCK, a multiple of 32 */
    int panels, cols;
    bool add;
};

struct sotto_i_igemm_kernels {
    int max_cols;
    int panels[SOTTO_I_GEMM_MAX_COLS + 1];
    void (*tile)(const struct sotto_i_igemm_tile * t);

    /* n floats, a multiple of 32, to bytes; sums[i] of q[16 * i ..]. A block whose magnitudes are all below 2^-120 is
     * zeros; one with a NaN or an infinity has q = 0 and d = NaN. Halves round to even. */
    void (*round)(const float * x, int64_t n, int8_t * q, float * d, int32_t * sums);
};

/* d and 127 / max of a block by its greatest magnitude's bits; inverse 0 where all q are 0. */
struct sotto_i_round_scale {
    float d, inverse;
};
static inline struct sotto_i_round_scale sotto_i_round_scale(uint32_t greatest) {
    float most;
    memcpy(&most, &greatest, sizeof(most));
    if (greatest < 0x03800000 || greatest >= 0x7F800000) { /* 2^-120; infinity */
        return (struct sotto_i_round_scale){ greatest < 0x03800000 ? 0.0f : NAN, 0.0f };
    }
    return (struct sotto_i_round_scale){ most / 127.0f, 127.0f / most };
}

void sotto_i_igemm_init(struct sotto_i_igemm_kernels * kernels, enum sotto_cpu_level level);
void sotto_i_igemm_init_avx2(struct sotto_i_igemm_kernels * kernels);
void sotto_i_igemm_init_avx512(struct sotto_i_igemm_kernels * kernels);
void sotto_i_igemm_init_avx512vnni(struct sotto_i_igemm_kernels * kernels);

#endif
