/* SPDX-License-Identifier: MIT */
/* Kernels on rows, level avx512. */
#include "cpu/simd.h"
#include "cpu/vec_text.h"
