/* SPDX-License-Identifier: MIT */
/* Products in 8 bits, level avx2: a panel is two registers; 8 whole sums, the rest in the cache. */
#include "cpu/igemm_kernels.h"
#include "cpu/simd.h"

#define MAX_COLS 4

/* clang-format off */
#define TILES(X) \
    X(1, 1) X(2, 1) \
    X(1, 2) X(2, 2) \
    X(1, 3) X(1, 4)
/* clang-format on */

#include "cpu/igemm_text.h"

void sotto_i_igemm_init_avx2(struct sotto_i_igemm_kernels * kernels) { raise(kernels); }
