/* SPDX-License-Identifier: MIT */
/* Panels of quantised weights as codes and scales: the one thing that a type adds to products.
 *
 *     element l of a row = scale * (code - offset) - min        code 0..top, scale and min per `sub` elements
 *
 * bit for bit as to_float decodes it, each operation rounded once. From there products in 8 bits and products in f32
 * are the same for all types. Types without a form are decoded row by row instead. */
#ifndef SOTTO_CPU_CODES_KERNELS_H
#define SOTTO_CPU_CODES_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sotto/cpu.h"

#define SOTTO_I_CODES_MIN_SUB 16

struct sotto_i_codes_form {
    int16_t sub;    /* 16 or 32; 0: the type has no form */
    int16_t offset; /* 0..128 */
    int16_t top;    /* greatest code */
    bool mins;      /* false: min is 0 and not stored */
};
const struct sotto_i_codes_form * sotto_i_codes_form(enum sotto_type type);

/* n elements of 16 rows. */
struct sotto_i_codes {
    uint8_t * code; /* [n / 4][16][4] */
    float * scale;  /* [n / sub][16] */
    float * min;    /* likewise; unused by types without */
};

/* From `blocks` panel blocks of a type (cpu/panel.h), any alignment. No over-read; what `out` points to is aligned to
 * SOTTO_DATA_ALIGN. NULL for types without a form. Equal at all levels bit for bit. */
typedef void (*sotto_i_codes_fn)(const void * panel, int64_t blocks, const struct sotto_i_codes * out);

struct sotto_i_codes_kernels {
    sotto_i_codes_fn unpack[SOTTO_TYPE_COUNT];
    /* n elements as f32 panels: dst[l][16] */
    void (*to_float)(const struct sotto_i_codes_form * form, const struct sotto_i_codes * codes, int64_t n,
                     float * dst);
};

/* Codes of the tables that types look their nibbles up in: values of iq4_nl and iq4_xs + 128, of mxfp4 + 12; and the
 * scale of mxfp4, a halved E8M0. */
extern const uint8_t sotto_i_codes_iq4[16], sotto_i_codes_fp4[16];
static inline float sotto_i_codes_exponent(uint8_t e) {
    const uint32_t bits = e < 2 ? (uint32_t)0x00200000 << e : (uint32_t)(e - 1) << 23;
    float d;
    memcpy(&d, &bits, sizeof(d));
    return d;
}

void sotto_i_codes_init(struct sotto_i_codes_kernels * kernels, enum sotto_cpu_level level);
void sotto_i_codes_init_avx2(struct sotto_i_codes_kernels * kernels);
void sotto_i_codes_init_avx512(struct sotto_i_codes_kernels * kernels);

#endif
