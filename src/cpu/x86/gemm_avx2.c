/* SPDX-License-Identifier: MIT */
/* Matrix product kernels, level avx2: a panel is two registers. Full tile 1 panel x 6 columns, 12 sums. */
#include "cpu/gemm_kernels.h"
#include "cpu/simd.h"

#define MAX_COLS 6

/* clang-format off */
#define TILES(T, X) \
    X(T, 1, 1) X(T, 2, 1) X(T, 4, 1) \
    X(T, 1, 2) X(T, 2, 2) \
    X(T, 1, 3) X(T, 2, 3) \
    X(T, 1, 4) X(T, 1, 5) X(T, 1, 6)
/* clang-format on */

#include "cpu/gemm_text.h"

void sotto_i_gemm_init_avx2(struct sotto_i_gemm_kernels * kernels) { raise(kernels); }
