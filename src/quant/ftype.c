/* SPDX-License-Identifier: MIT */
/* The type numbers of model files: each stands for most tensors of a file. */
#include "sotto/quant.h"

#include "sotto/status.h"

enum { NO_TYPE = -1 };

static const int8_t TYPES[] = {
    [0] = SOTTO_TYPE_F32,
    [1] = SOTTO_TYPE_F16,
    [2] = SOTTO_TYPE_Q4_0,
    [3] = SOTTO_TYPE_Q4_1,
    [4] = NO_TYPE,
    [5] = NO_TYPE,
    [6] = NO_TYPE,
    [7] = SOTTO_TYPE_Q8_0,
    [8] = SOTTO_TYPE_Q5_0,
    [9] = SOTTO_TYPE_Q5_1,
    [10] = SOTTO_TYPE_Q2_K,
    [11] = SOTTO_TYPE_Q3_K,
    [12] = SOTTO_TYPE_Q4_K,
    [13] = SOTTO_TYPE_Q5_K,
    [14] = SOTTO_TYPE_Q6_K,
    [15] = SOTTO_TYPE_IQ2_XXS,
    [16] = SOTTO_TYPE_IQ2_XS,
    [17] = SOTTO_TYPE_IQ3_XXS,
    [18] = SOTTO_TYPE_IQ1_S,
    [19] = SOTTO_TYPE_IQ4_NL,
    [20] = SOTTO_TYPE_IQ3_S,
    [21] = SOTTO_TYPE_IQ2_S,
    [22] = SOTTO_TYPE_IQ4_XS,
    [23] = SOTTO_TYPE_IQ1_M,
    [24] = SOTTO_TYPE_BF16,
    [25] = SOTTO_TYPE_MXFP4,
    [26] = SOTTO_TYPE_NVFP4,
    [27] = SOTTO_TYPE_Q1_0,
    [28] = SOTTO_TYPE_Q2_0,
};

enum sotto_type sotto_ftype_to_sotto_type(int ftype) {
    const int known = (int)(sizeof(TYPES) / sizeof(*TYPES));
    if (ftype >= 0 && ftype < known && TYPES[ftype] != NO_TYPE) {
        return (enum sotto_type)TYPES[ftype];
    }
    sotto_fail(SOTTO_E_TYPE, "sotto_ftype_to_sotto_type: %d stands for no single type", ftype);
    return SOTTO_TYPE_COUNT;
}
