/* SPDX-License-Identifier: MIT */
/* Matrix product kernels in plain C: the definition that every other level must match bit for bit. Not tuned. */
#include <math.h>
#include <string.h>

#include "core/tensor_impl.h"
#include "cpu/gemm_kernels.h"

enum { PANEL = SOTTO_CPU_PANEL };

static void tile_c(const struct sotto_i_gemm_tile * t) {
    const float * a = t->a;
    for (int j = 0; j < t->cols; j++) {
        for (int r = 0; r < PANEL * t->panels; r++) {
            const float * lane = a + (size_t)(r / PANEL) * t->a_step + r % PANEL;
            float sum = 0.0f;
            for (int64_t l = 0; l < t->k; l++) {
                sum = fmaf(lane[l * PANEL], t->b[l * t->ldb + j], sum);
            }
            float * c = t->c + j * t->ldc + r;
            *c = t->add ? *c + sum : sum;
        }
    }
}

static void unpack_f32_c(const void * x, float * y, int64_t n) { memcpy(y, x, (size_t)n * sizeof(float)); }

static void pack_c(const float * const * rows, int n, int64_t k, float * dst, int64_t ld) {
    for (int64_t l = 0; l < k; l++) {
        for (int64_t r = 0; r < ld; r++) {
            dst[l * ld + r] = r < n ? rows[r][l] : 0.0f;
        }
    }
}

void sotto_i_gemm_init(struct sotto_i_gemm_kernels * kernels, enum sotto_cpu_level level) {
    *kernels = (struct sotto_i_gemm_kernels){ .max_cols = 4, .tile = tile_c, .pack = pack_c };
    for (int n = 0; n <= SOTTO_I_GEMM_MAX_COLS; n++) {
        kernels->panels[n] = 1;
    }
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (sotto_i_is_weight_type((enum sotto_type)type)) {
            kernels->unpack[type] = sotto_get_type_traits((enum sotto_type)type)->to_float;
        }
    }
    kernels->unpack[SOTTO_TYPE_F32] = unpack_f32_c;
#if defined(__x86_64__)
    if (level >= SOTTO_CPU_LEVEL_AVX2) {
        sotto_i_gemm_init_avx2(kernels);
        sotto_i_unpack_init_avx2(kernels);
    }
    if (level >= SOTTO_CPU_LEVEL_AVX512) {
        sotto_i_gemm_init_avx512(kernels);
        sotto_i_unpack_init_avx512(kernels);
    }
#else
    (void)level;
#endif
}
