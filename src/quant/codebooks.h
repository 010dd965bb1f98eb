/* SPDX-License-Identifier: MIT */
/* Codebooks of the iq types: rows of values that a few bits choose from, and the signs they get.
 *
 * Values of digits: iq2 8, 25, 43; iq3_xxs 4, 12, .. 52, 62; iq3_s 1, 3, .. 15; iq1 -1, 0, 1. A row's code is its
 * digits at 2 bits (rows of 8) or 3 bits (rows of 4), the first digit lowest; rows ascend by code. */
#ifndef SOTTO_QUANT_CODEBOOKS_H
#define SOTTO_QUANT_CODEBOOKS_H

#include <stdint.h>

#define CODEBOOK(name, rows, length)                       \
    extern const int8_t sotto_i_grid_##name[rows][length]; \
    extern const uint16_t sotto_i_codes_##name[rows];
CODEBOOK(iq2_xxs, 256, 8)
CODEBOOK(iq2_xs, 512, 8)
CODEBOOK(iq2_s, 1024, 8)
CODEBOOK(iq3_xxs, 256, 4)
CODEBOOK(iq3_s, 512, 4)
CODEBOOK(iq1_s, 2048, 8)
#undef CODEBOOK

/* The values of iq4_nl and iq4_xs, ascending. */
extern const int8_t sotto_i_iq4_values[16];

/* Seven bits and an eighth that makes the number of ones even. */
static inline uint8_t even_signs(unsigned seven) {
    const unsigned folded = (seven ^ seven >> 4) & 15;
    const unsigned parity = 0x6996U >> folded & 1;
    return (uint8_t)(seven | parity << 7);
}

#endif
