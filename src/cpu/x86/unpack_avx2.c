/* SPDX-License-Identifier: MIT */
/* Rows of quantised types to f32, level avx2. */
#include "cpu/codes_kernels.h"
#include "cpu/gemm_kernels.h"
#include "cpu/simd.h"

#include "cpu/unpack_text.h"

void sotto_i_unpack_init_avx2(struct sotto_i_gemm_kernels * kernels) { raise(kernels); }
