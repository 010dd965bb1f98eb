/* SPDX-License-Identifier: MIT */
/* Products in 8 bits, level avx512vnni: a panel is one register, a dot product of four codes one instruction. */
#include "cpu/igemm_kernels.h"
#include "cpu/simd.h"

#define MAX_COLS 12

/* clang-format off */
#define TILES(X) \
    X(1, 1) X(2, 1) X(4, 1) \
    X(1, 2) X(2, 2) X(4, 2) \
    X(1, 3) X(2, 3) X(4, 3) \
    X(1, 4) X(2, 4) \
    X(1, 5) X(2, 5) \
    X(1, 6) X(2, 6) \
    X(1, 7) X(1, 8) X(1, 9) X(1, 10) X(1, 11) X(1, 12)
/* clang-format on */

#include "cpu/igemm_text.h"

void sotto_i_igemm_init_avx512vnni(struct sotto_i_igemm_kernels * kernels) { raise(kernels); }
