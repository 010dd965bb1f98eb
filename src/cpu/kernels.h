/* SPDX-License-Identifier: MIT */
/* All kernel families of one level. A family is a struct of function pointers in a header of its own; its init
 * fills every slot with the scalar twin, then raises slots level by level up to the one asked for. */
#ifndef SOTTO_CPU_KERNELS_H
#define SOTTO_CPU_KERNELS_H

#include "cpu/attn_kernels.h"
#include "cpu/codes_kernels.h"
#include "cpu/gemm_kernels.h"
#include "cpu/igemm_kernels.h"
#include "cpu/vec_kernels.h"
#include "sotto/cpu.h"

struct sotto_i_kernels {
    struct sotto_i_gemm_kernels gemm;   /* products: gemm_kernels.h */
    struct sotto_i_igemm_kernels igemm; /* products in 8 bits: igemm_kernels.h */
    struct sotto_i_codes_kernels codes; /* panels of quantised weights: codes_kernels.h */
    struct sotto_i_vec_kernels vec;     /* rows: element functions, reductions, conversions: vec_kernels.h */
    struct sotto_i_attn_kernels attn;   /* attention tiles: attn_kernels.h */
};

void sotto_i_vec_init(struct sotto_i_vec_kernels * kernels, enum sotto_cpu_level level);
void sotto_i_attn_init(struct sotto_i_attn_kernels * kernels, enum sotto_cpu_level level);

/* The table of a level, filled once. Level above the machine's best: NULL. */
const struct sotto_i_kernels * sotto_i_kernels_for(enum sotto_cpu_level level);

#endif
