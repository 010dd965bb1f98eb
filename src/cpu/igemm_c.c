/* SPDX-License-Identifier: MIT */
/* Products in 8 bits in plain C: the definition that every other level must match bit for bit. Not tuned. */
#include <math.h>
#include <string.h>

#include "cpu/igemm_kernels.h"

enum { PANEL = SOTTO_CPU_PANEL, BLOCK = SOTTO_I_ROUND_BLOCK };

/* Sub-block s of row `lane` of panel `p` times column j. */
static int32_t whole_sum(const struct sotto_i_igemm_tile * t, int p, int lane, int j, int64_t s) {
    const int sub = t->form->sub;
    int32_t sum = t->start[s * t->ld + j];
    for (int64_t l = s * sub; l < (s + 1) * sub; l++) {
        const int code = t->w.code[(size_t)p * t->code_step + (size_t)(l / 4 * PANEL * 4 + lane * 4 + l % 4)];
        sum += code * t->q[(l / 4 * t->ld + j) * 4 + l % 4];
    }
    return sum;
}

static float element(const struct sotto_i_igemm_tile * t, int p, int lane, int j) {
    const int sub = t->form->sub;
    float y = 0.0f;
    for (int64_t s = 0; s < t->k / sub; s++) {
        const size_t at = (size_t)p * t->scale_step + (size_t)(s * PANEL + lane);
        const float scale = t->w.scale[at] * t->d[s * sub / BLOCK * t->ld + j];
        y = fmaf((float)whole_sum(t, p, lane, j, s), scale, y);
        if (t->form->mins) {
            y = fmaf(-t->w.min[at], t->sum[s * t->ld + j], y);
        }
    }
    return y;
}

static void tile_c(const struct sotto_i_igemm_tile * t) {
    for (int j = 0; j < t->cols; j++) {
        for (int r = 0; r < PANEL * t->panels; r++) {
            float * c = t->c + j * t->ldc + r;
            const float y = element(t, r / PANEL, r % PANEL, j);
            *c = t->add ? *c + y : y;
        }
    }
}

/* Greatest magnitude as bits, in whose order NaN and infinity come last. */
static uint32_t greatest(const float * x) {
    uint32_t most = 0;
    for (int i = 0; i < BLOCK; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof(bits));
        bits &= 0x7FFFFFFF;
        most = bits > most ? bits : most;
    }
    return most;
}

static void round_c(const float * x, int64_t n, int8_t * q, float * d, int32_t * sums) {
    for (int64_t b = 0; b < n / BLOCK; b++, x += BLOCK, q += BLOCK) {
        const struct sotto_i_round_scale s = sotto_i_round_scale(greatest(x));
        d[b] = s.d;
        for (int i = 0; i < BLOCK; i++) {
            q[i] = s.inverse == 0.0f ? 0 : (int8_t)lrintf(x[i] * s.inverse);
        }
        for (int half = 0; half < 2; half++) {
            sums[2 * b + half] = 0;
            for (int i = 0; i < 16; i++) {
                sums[2 * b + half] += q[16 * half + i];
            }
        }
    }
}

void sotto_i_igemm_init(struct sotto_i_igemm_kernels * kernels, enum sotto_cpu_level level) {
    *kernels = (struct sotto_i_igemm_kernels){ .max_cols = 4, .tile = tile_c, .round = round_c };
    for (int n = 0; n <= SOTTO_I_GEMM_MAX_COLS; n++) {
        kernels->panels[n] = 1;
    }
#if defined(__x86_64__)
    if (level >= SOTTO_CPU_LEVEL_AVX2) {
        sotto_i_igemm_init_avx2(kernels);
    }
    if (level >= SOTTO_CPU_LEVEL_AVX512) {
        sotto_i_igemm_init_avx512(kernels);
    }
    if (level >= SOTTO_CPU_LEVEL_AVX512VNNI) {
        sotto_i_igemm_init_avx512vnni(kernels);
    }
#else
    (void)level;
#endif
}
