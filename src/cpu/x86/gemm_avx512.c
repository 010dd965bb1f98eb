/* SPDX-License-Identifier: MIT */
/* Matrix product kernels, level avx512: a panel is one register. Full tile 2 panels x 12 columns, 24 sums. */
#include "cpu/gemm_kernels.h"
#include "cpu/simd.h"

#define MAX_COLS 12

/* clang-format off */
#define TILES(T, X) \
    X(T, 1, 1) X(T, 2, 1) X(T, 4, 1) X(T, 8, 1) \
    X(T, 1, 2) X(T, 2, 2) X(T, 4, 2) X(T, 8, 2) \
    X(T, 1, 3) X(T, 2, 3) X(T, 4, 3) X(T, 8, 3) \
    X(T, 1, 4) X(T, 2, 4) X(T, 4, 4) \
    X(T, 1, 5) X(T, 2, 5) X(T, 4, 5) \
    X(T, 1, 6) X(T, 2, 6) X(T, 4, 6) \
    X(T, 1, 7) X(T, 2, 7) \
    X(T, 1, 8) X(T, 2, 8) \
    X(T, 1, 9) X(T, 2, 9) \
    X(T, 1, 10) X(T, 2, 10) \
    X(T, 1, 11) X(T, 2, 11) \
    X(T, 1, 12) X(T, 2, 12)
/* clang-format on */

#include "cpu/gemm_text.h"

void sotto_i_gemm_init_avx512(struct sotto_i_gemm_kernels * kernels) { raise(kernels); }
