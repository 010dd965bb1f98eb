/* SPDX-License-Identifier: MIT */
/* Where the K types keep things in a block of 256 elements.
 *
 *     q2_K   16 scales (low nibble) and minima (high), 64 of 2-bit codes, d, dmin
 *     q3_K   32 of third bits, 64 of 2-bit codes, 12 of 16 6-bit scales, d
 *     q4_K   d, dmin, 12 of 8 6-bit scales and minima, 128 of nibbles
 *     q5_K   d, dmin, 12 likewise, 32 of fifth bits, 128 of nibbles
 *     q6_K   128 of low nibbles, 64 of upper 2 bits, 16 scales, d
 *     q8_K   d as a float, 256 bytes, 16 sums of 16
 *
 * 2-bit codes: in a run of 128 elements, byte l holds elements l, l + 32, l + 64, l + 96. Nibbles of q4_K and q5_K: in a
 * run of 64, byte l holds l and l + 32. */
#ifndef SOTTO_QUANT_K_LAYOUT_H
#define SOTTO_QUANT_K_LAYOUT_H

#include <stdint.h>

enum {
    Q2K_SCALES = 0,
    Q2K_CODES = 16,
    Q2K_D = 80,
    Q2K_DMIN = 82,
    Q2K_BYTES = 84,
    Q3K_MASK = 0,
    Q3K_CODES = 32,
    Q3K_SCALES = 96,
    Q3K_D = 108,
    Q3K_BYTES = 110,
    Q4K_D = 0,
    Q4K_DMIN = 2,
    Q4K_SCALES = 4,
    Q4K_CODES = 16,
    Q4K_BYTES = 144,
    Q5K_D = 0,
    Q5K_DMIN = 2,
    Q5K_SCALES = 4,
    Q5K_HIGH = 16,
    Q5K_CODES = 48,
    Q5K_BYTES = 176,
    Q6K_LOW = 0,
    Q6K_HIGH = 128,
    Q6K_SCALES = 192,
    Q6K_D = 208,
    Q6K_BYTES = 210,
    Q8K_D = 0,
    Q8K_CODES = 4,
    Q8K_SUMS = 260,
    Q8K_BYTES = 292,
};

/* Six-bit scale and minimum of sub-block j (0..7) of q4_K and q5_K, in 12 bytes: the first four in the low six bits of
 * bytes 0..3 and 4..7, the rest in the nibbles of 8..11 and the upper two bits of all before. */
static inline void get_scale_min(const uint8_t * s, int j, int * scale, int * min) {
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        *min = s[j + 4] >> 4 | (s[j] >> 6) << 4;
    }
}

/* Six-bit scale g (0..15) of q3_K, in 12 bytes: low nibbles in 0..7, upper two bits in 8..11. */
static inline int get_scale6(const uint8_t * s, int g) {
    const int low = g < 8 ? s[g] & 15 : s[g - 8] >> 4;
    return low | (s[8 + g % 4] >> (2 * (g / 4)) & 3) << 4;
}

#endif
