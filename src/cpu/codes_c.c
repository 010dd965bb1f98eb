/* SPDX-License-Identifier: MIT */
/* Codes and scales of panels in plain C, through the standard layout: the definition. A row's block is taken out of the
 * panel and its codes follow from the block's description in the format's page, element by element. */
#include <string.h>

#include "cpu/codes_kernels.h"
#include "cpu/panel.h"

enum { PANEL = SOTTO_CPU_PANEL, MAX_BLOCK = 256, MAX_SUBS = 16, MAX_BYTES = 256 };

static const struct sotto_i_codes_form forms[SOTTO_TYPE_COUNT] = {
    [SOTTO_TYPE_Q4_0] = { 32, 8, 15, false },      [SOTTO_TYPE_Q4_1] = { 32, 0, 15, true },
    [SOTTO_TYPE_Q5_0] = { 32, 16, 31, false },     [SOTTO_TYPE_Q5_1] = { 32, 0, 31, true },
    [SOTTO_TYPE_Q8_0] = { 32, 128, 255, false },   [SOTTO_TYPE_Q2_K] = { 16, 0, 3, true },
    [SOTTO_TYPE_Q3_K] = { 16, 4, 7, false },       [SOTTO_TYPE_Q4_K] = { 32, 0, 15, true },
    [SOTTO_TYPE_Q5_K] = { 32, 0, 31, true },       [SOTTO_TYPE_Q6_K] = { 16, 32, 63, false },
    [SOTTO_TYPE_IQ4_NL] = { 32, 128, 241, false }, [SOTTO_TYPE_IQ4_XS] = { 32, 128, 241, false },
    [SOTTO_TYPE_MXFP4] = { 32, 12, 24, false },
};

const struct sotto_i_codes_form * sotto_i_codes_form(enum sotto_type type) { return &forms[type]; }

/* A block of one row. */
struct row {
    uint8_t code[MAX_BLOCK];
    float scale[MAX_SUBS], min[MAX_SUBS];
};

static float half(const uint8_t * x) {
    uint16_t bits;
    memcpy(&bits, x, 2);
    return sotto_fp16_to_fp32(bits);
}

/* Nibbles of 32 elements: the low ones first. */
static void nibbles(const uint8_t * x, uint8_t * code) {
    for (int i = 0; i < 16; i++) {
        code[i] = x[i] & 15;
        code[i + 16] = x[i] >> 4;
    }
}

static void fifth_bits(const uint8_t * x, uint8_t * code) {
    for (int i = 0; i < 32; i++) {
        code[i] = (uint8_t)(code[i] | (x[i / 8] >> (i % 8) & 1) << 4);
    }
}

static void row_q4_0(const uint8_t * x, struct row * r) {
    nibbles(x + 2, r->code);
    r->scale[0] = half(x);
}

static void row_q4_1(const uint8_t * x, struct row * r) {
    nibbles(x + 4, r->code);
    r->scale[0] = half(x);
    r->min[0] = -half(x + 2);
}

static void row_q5_0(const uint8_t * x, struct row * r) {
    nibbles(x + 6, r->code);
    fifth_bits(x + 2, r->code);
    r->scale[0] = half(x);
}

static void row_q5_1(const uint8_t * x, struct row * r) {
    nibbles(x + 8, r->code);
    fifth_bits(x + 4, r->code);
    r->scale[0] = half(x);
    r->min[0] = -half(x + 2);
}

static void row_q8_0(const uint8_t * x, struct row * r) {
    for (int i = 0; i < 32; i++) {
        r->code[i] = x[2 + i] ^ 128;
    }
    r->scale[0] = half(x);
}

static void row_q2_k(const uint8_t * x, struct row * r) {
    const float d = half(x + 80), dmin = half(x + 82);
    for (int e = 0; e < 256; e++) {
        r->code[e] = x[16 + e / 128 * 32 + e % 32] >> (2 * (e / 32 % 4)) & 3;
    }
    for (int g = 0; g < 16; g++) {
        r->scale[g] = d * (float)(x[g] & 15);
        r->min[g] = dmin * (float)(x[g] >> 4);
    }
}

static void row_q3_k(const uint8_t * x, struct row * r) {
    const uint8_t * scales = x + 96;
    const float d = half(x + 108);
    for (int e = 0; e < 256; e++) {
        const int two = x[32 + e / 128 * 32 + e % 32] >> (2 * (e / 32 % 4)) & 3;
        r->code[e] = (uint8_t)(two | (x[e % 32] >> (e / 32) & 1) << 2);
    }
    for (int g = 0; g < 16; g++) {
        const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
        const int high = scales[8 + g % 4] >> (2 * (g / 4)) & 3;
        r->scale[g] = d * (float)((low | high << 4) - 32);
    }
}

/* Six-bit scales and minima of q4_K and q5_K. */
static void scales_k(const uint8_t * x, struct row * r) {
    const uint8_t * s = x + 4;
    const float d = half(x), dmin = half(x + 2);
    for (int j = 0; j < 8; j++) {
        const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        const int min = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
        r->scale[j] = d * (float)scale;
        r->min[j] = dmin * (float)min;
    }
}

static void row_q4_k(const uint8_t * x, struct row * r) {
    for (int e = 0; e < 256; e++) {
        r->code[e] = x[16 + e / 64 * 32 + e % 32] >> (4 * (e / 32 % 2)) & 15;
    }
    scales_k(x, r);
}

static void row_q5_k(const uint8_t * x, struct row * r) {
    for (int e = 0; e < 256; e++) {
        const int low = x[48 + e / 64 * 32 + e % 32] >> (4 * (e / 32 % 2)) & 15;
        r->code[e] = (uint8_t)(low | (x[16 + e % 32] >> (e / 32) & 1) << 4);
    }
    scales_k(x, r);
}

static void row_q6_k(const uint8_t * x, struct row * r) {
    const float d = half(x + 208);
    for (int e = 0; e < 256; e++) {
        const int n = e / 128, k = e / 32 % 4, l = e % 32;
        const int low = x[64 * n + 32 * (k % 2) + l] >> (4 * (k / 2)) & 15;
        r->code[e] = (uint8_t)(low | (x[128 + 32 * n + l] >> (2 * k) & 3) << 4);
    }
    for (int g = 0; g < 16; g++) {
        r->scale[g] = d * (float)(int8_t)x[192 + g];
    }
}

const uint8_t sotto_i_codes_iq4[16] = { 1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241 };
const uint8_t sotto_i_codes_fp4[16] = { 12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0 };

static void look_up(const uint8_t * table, uint8_t * code, int n) {
    for (int i = 0; i < n; i++) {
        code[i] = table[code[i]];
    }
}

static void row_iq4_nl(const uint8_t * x, struct row * r) {
    nibbles(x + 2, r->code);
    look_up(sotto_i_codes_iq4, r->code, 32);
    r->scale[0] = half(x);
}

static void row_iq4_xs(const uint8_t * x, struct row * r) {
    const float d = half(x);
    for (int j = 0; j < 8; j++) {
        const int low = x[4 + j / 2] >> (4 * (j % 2)) & 15, high = x[2 + j / 4] >> (2 * (j % 4)) & 3;
        r->scale[j] = d * (float)((low | high << 4) - 32);
        nibbles(x + 8 + 16 * j, r->code + 32 * j);
    }
    look_up(sotto_i_codes_iq4, r->code, 256);
}

static void row_mxfp4(const uint8_t * x, struct row * r) {
    r->scale[0] = sotto_i_codes_exponent(x[0]);
    nibbles(x + 1, r->code);
    look_up(sotto_i_codes_fp4, r->code, 32);
}

typedef void (*row_fn)(const uint8_t * x, struct row * r);

/* All rows of all panel blocks, one after another. */
static void unpack(enum sotto_type type, row_fn row_of, const void * panel, int64_t blocks,
                   const struct sotto_i_codes * out) {
    const struct sotto_i_codes_form * form = &forms[type];
    const int n = (int)sotto_get_type_traits(type)->blck_size, subs = n / form->sub;
    for (int64_t b = 0; b < blocks; b++) {
        for (int lane = 0; lane < PANEL; lane++) {
            uint8_t block[MAX_BYTES];
            struct row r;
            sotto_i_panel_get(type, panel, lane, b, 1, block);
            row_of(block, &r);
            for (int e = 0; e < n; e++) {
                out->code[(b * n + e) / 4 * PANEL * 4 + lane * 4 + e % 4] = r.code[e];
            }
            for (int s = 0; s < subs; s++) {
                out->scale[(b * subs + s) * PANEL + lane] = r.scale[s];
                if (form->mins) {
                    out->min[(b * subs + s) * PANEL + lane] = r.min[s];
                }
            }
        }
    }
}

/* clang-format off */
#define TYPES(X) \
    X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1) X(Q8_0, q8_0) \
    X(Q2_K, q2_k) X(Q3_K, q3_k) X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k) \
    X(IQ4_NL, iq4_nl) X(IQ4_XS, iq4_xs) X(MXFP4, mxfp4)
/* clang-format on */

#define DEFINE(TYPE, name)                                                                                \
    static void unpack_##name##_c(const void * panel, int64_t blocks, const struct sotto_i_codes * out) { \
        unpack(SOTTO_TYPE_##TYPE, row_##name, panel, blocks, out);                                        \
    }
TYPES(DEFINE)

static void to_float_c(const struct sotto_i_codes_form * form, const struct sotto_i_codes * codes, int64_t n,
                       float * dst) {
    for (int64_t l = 0; l < n; l++) {
        for (int lane = 0; lane < PANEL; lane++) {
            const int64_t at = l / form->sub * PANEL + lane;
            const int code = codes->code[l / 4 * PANEL * 4 + lane * 4 + l % 4] - form->offset;
            const float y = codes->scale[at] * (float)code;
            dst[l * PANEL + lane] = form->mins ? y - codes->min[at] : y;
        }
    }
}

void sotto_i_codes_init(struct sotto_i_codes_kernels * kernels, enum sotto_cpu_level level) {
#define ENTRY(TYPE, name) kernels->unpack[SOTTO_TYPE_##TYPE] = unpack_##name##_c;
    *kernels = (struct sotto_i_codes_kernels){ .to_float = to_float_c };
    TYPES(ENTRY)
#if defined(__x86_64__)
    if (level >= SOTTO_CPU_LEVEL_AVX2) {
        sotto_i_codes_init_avx2(kernels);
    }
    if (level >= SOTTO_CPU_LEVEL_AVX512) {
        sotto_i_codes_init_avx512(kernels);
    }
#else
    (void)level;
#endif
}
