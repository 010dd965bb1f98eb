/* SPDX-License-Identifier: MIT */
/* The two byte orders: which bytes of a tensor's data are numbers of more than one byte.
 *
 * A block is a record of bytes with a few wider numbers in it, at most two runs of them. Some types of blocks have
 * numbers for which no order was ever agreed on; they have no row here. */
#include "gguf/gguf_impl.h"

struct run {
    uint16_t at, width, count;
};

static const struct {
    uint8_t align; /* of the widest number; 0: no form in the other order */
    struct run runs[2];
} FORMS[SOTTO_TYPE_COUNT] = {
    [SOTTO_TYPE_F64] = { 8, { { 0, 8, 1 } } },
    [SOTTO_TYPE_I64] = { 8, { { 0, 8, 1 } } },
    [SOTTO_TYPE_F32] = { 4, { { 0, 4, 1 } } },
    [SOTTO_TYPE_I32] = { 4, { { 0, 4, 1 } } },
    [SOTTO_TYPE_F16] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_BF16] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_I16] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_I8] = { 1, { { 0, 1, 1 } } },
    [SOTTO_TYPE_Q4_0] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_Q8_0] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_IQ4_NL] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_Q1_0] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_Q2_0] = { 2, { { 0, 2, 1 } } },
    [SOTTO_TYPE_Q4_1] = { 2, { { 0, 2, 2 } } },
    [SOTTO_TYPE_Q8_1] = { 2, { { 0, 2, 2 } } },
    [SOTTO_TYPE_Q2_K] = { 2, { { 80, 2, 2 } } },
    [SOTTO_TYPE_Q3_K] = { 2, { { 108, 2, 1 } } },
    [SOTTO_TYPE_Q4_K] = { 2, { { 0, 2, 2 } } },
    [SOTTO_TYPE_Q5_K] = { 2, { { 0, 2, 2 } } },
    [SOTTO_TYPE_Q6_K] = { 2, { { 208, 2, 1 } } },
    [SOTTO_TYPE_Q8_K] = { 4, { { 0, 4, 1 }, { 260, 2, 16 } } },
    [SOTTO_TYPE_TQ1_0] = { 2, { { 52, 2, 1 } } },
    [SOTTO_TYPE_TQ2_0] = { 2, { { 64, 2, 1 } } },
    [SOTTO_TYPE_MXFP4] = { 1, { { 0, 1, 1 } } },
    [SOTTO_TYPE_NVFP4] = { 1, { { 0, 1, 1 } } },
};

void sotto_i_gguf_swap(void * values, size_t width, size_t n) {
    uint8_t * b = values;
    for (; n > 0 && width > 1; n--, b += width) {
        for (size_t i = 0; i < width / 2; i++) {
            uint8_t first = b[i];
            b[i] = b[width - 1 - i];
            b[width - 1 - i] = first;
        }
    }
}

bool sotto_i_gguf_has_other_order(enum sotto_type type) { return FORMS[type].align > 0; }

size_t sotto_i_gguf_natural_align(enum sotto_type type) {
    return FORMS[type].align > 0 ? FORMS[type].align
                                 : 2; /* the types without a form begin with, or hold, 16-bit fields */
}

void sotto_i_gguf_swap_data(enum sotto_type type, void * data, size_t size) {
    if (FORMS[type].align == 1)
        return;
    const size_t block = sotto_type_size(type);
    for (uint8_t * at = data; size >= block; at += block, size -= block) {
        for (int i = 0; i < 2; i++) {
            const struct run * run = &FORMS[type].runs[i];
            sotto_i_gguf_swap(at + run->at, run->width, run->count);
        }
    }
}

enum sotto_status sotto_i_gguf_no_other_order(const struct gguf_info * info, uint64_t pos, const char * where) {
    return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_ENDIAN,
                             "%s: tensor '%s': blocks of %s have no agreed form in the other byte order; convert the "
                             "model again on a machine of this order",
                             where, SHOW(info->name), sotto_type_name(info->type));
}
