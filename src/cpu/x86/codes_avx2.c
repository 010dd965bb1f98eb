/* SPDX-License-Identifier: MIT */
/* Codes of panels, level avx2. */
#include "cpu/codes_kernels.h"
#include "cpu/simd.h"

#include "cpu/codes_text.h"

void sotto_i_codes_init_avx2(struct sotto_i_codes_kernels * kernels) { raise(kernels); }
