/* SPDX-License-Identifier: MIT */
/* Codebooks of the iq types, spread out by the compiler from the codes of codebooks.def. */
#include "quant/codebooks.h"

#define DIGIT_8(code, i) ((code) >> (2 * (i)) & 3)
#define DIGIT_4(code, i) ((code) >> (3 * (i)) & 7)
#define ROW_8(value, c)                                                                       \
    { value(DIGIT_8(c, 0)), value(DIGIT_8(c, 1)), value(DIGIT_8(c, 2)), value(DIGIT_8(c, 3)), \
      value(DIGIT_8(c, 4)), value(DIGIT_8(c, 5)), value(DIGIT_8(c, 6)), value(DIGIT_8(c, 7)) },
#define ROW_4(value, c) { value(DIGIT_4(c, 0)), value(DIGIT_4(c, 1)), value(DIGIT_4(c, 2)), value(DIGIT_4(c, 3)) },

#define VALUE_IQ1(digit)     ((digit)-1)
#define VALUE_IQ2(digit)     (8 + 17 * (digit) + (digit) / 2)
#define VALUE_IQ3_XXS(digit) (4 + 8 * (digit) + (digit) / 7 * 2)
#define VALUE_IQ3_S(digit)   (1 + 2 * (digit))

const int8_t sotto_i_grid_iq2_xxs[256][8] = {
#define IQ2_XXS(code) ROW_8(VALUE_IQ2, code)
#include "quant/codebooks.def"
#undef IQ2_XXS
};
const int8_t sotto_i_grid_iq2_xs[512][8] = {
#define IQ2_XS(code) ROW_8(VALUE_IQ2, code)
#include "quant/codebooks.def"
#undef IQ2_XS
};
const int8_t sotto_i_grid_iq2_s[1024][8] = {
#define IQ2_S(code) ROW_8(VALUE_IQ2, code)
#include "quant/codebooks.def"
#undef IQ2_S
};
const int8_t sotto_i_grid_iq3_xxs[256][4] = {
#define IQ3_XXS(code) ROW_4(VALUE_IQ3_XXS, code)
#include "quant/codebooks.def"
#undef IQ3_XXS
};
const int8_t sotto_i_grid_iq3_s[512][4] = {
#define IQ3_S(code) ROW_4(VALUE_IQ3_S, code)
#include "quant/codebooks.def"
#undef IQ3_S
};
const int8_t sotto_i_grid_iq1_s[2048][8] = {
#define IQ1_S(code) ROW_8(VALUE_IQ1, code)
#include "quant/codebooks.def"
#undef IQ1_S
};

#define CODE(code) code,
const uint16_t sotto_i_codes_iq2_xxs[256] = {
#define IQ2_XXS CODE
#include "quant/codebooks.def"
#undef IQ2_XXS
};
const uint16_t sotto_i_codes_iq2_xs[512] = {
#define IQ2_XS CODE
#include "quant/codebooks.def"
#undef IQ2_XS
};
const uint16_t sotto_i_codes_iq2_s[1024] = {
#define IQ2_S CODE
#include "quant/codebooks.def"
#undef IQ2_S
};
const uint16_t sotto_i_codes_iq3_xxs[256] = {
#define IQ3_XXS CODE
#include "quant/codebooks.def"
#undef IQ3_XXS
};
const uint16_t sotto_i_codes_iq3_s[512] = {
#define IQ3_S CODE
#include "quant/codebooks.def"
#undef IQ3_S
};
const uint16_t sotto_i_codes_iq1_s[2048] = {
#define IQ1_S CODE
#include "quant/codebooks.def"
#undef IQ1_S
};

const int8_t sotto_i_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
