/* SPDX-License-Identifier: MIT */
/* Which fields of a block are floats, and whether those of given rows are finite. Codes, integers and the scales of nvfp4
 * are good whatever their bits. */
#include "sotto/quant.h"

#include "core/tensor_impl.h"
#include "quant/k_layout.h"
#include "quant/quant_impl.h"
#include "sotto/log.h"

enum kind { END, HALF, BFLOAT, FLOAT, DOUBLE, POWER, /* a power of two in 8 bits */ NIBBLES /* a half, in 4 words */ };

struct field {
    enum kind kind;
    int at;
    const char * name;
};

static const struct field FIELDS[SOTTO_TYPE_COUNT][2] = {
    [SOTTO_TYPE_F32] = { { FLOAT, 0, "value" } },
    [SOTTO_TYPE_F16] = { { HALF, 0, "value" } },
    [SOTTO_TYPE_BF16] = { { BFLOAT, 0, "value" } },
    [SOTTO_TYPE_F64] = { { DOUBLE, 0, "value" } },
    [SOTTO_TYPE_Q1_0] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_Q2_0] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_Q4_0] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_Q4_1] = { { HALF, 0, "d" }, { HALF, 2, "m" } },
    [SOTTO_TYPE_Q5_0] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_Q5_1] = { { HALF, 0, "d" }, { HALF, 2, "m" } },
    [SOTTO_TYPE_Q8_0] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_Q2_K] = { { HALF, Q2K_D, "d" }, { HALF, Q2K_DMIN, "dmin" } },
    [SOTTO_TYPE_Q3_K] = { { HALF, Q3K_D, "d" } },
    [SOTTO_TYPE_Q4_K] = { { HALF, Q4K_D, "d" }, { HALF, Q4K_DMIN, "dmin" } },
    [SOTTO_TYPE_Q5_K] = { { HALF, Q5K_D, "d" }, { HALF, Q5K_DMIN, "dmin" } },
    [SOTTO_TYPE_Q6_K] = { { HALF, Q6K_D, "d" } },
    [SOTTO_TYPE_Q8_K] = { { FLOAT, Q8K_D, "d" } },
    [SOTTO_TYPE_IQ1_S] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_IQ1_M] = { { NIBBLES, 48, "d" } },
    [SOTTO_TYPE_IQ2_XXS] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_IQ2_XS] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_IQ2_S] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_IQ3_XXS] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_IQ3_S] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_IQ4_NL] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_IQ4_XS] = { { HALF, 0, "d" } },
    [SOTTO_TYPE_TQ1_0] = { { HALF, 52, "d" } },
    [SOTTO_TYPE_TQ2_0] = { { HALF, 64, "d" } },
    [SOTTO_TYPE_MXFP4] = { { POWER, 0, "e" } },
};

/* The half whose nibbles, lowest first, are the upper ones of four words. */
static unsigned upper_nibbles(const uint8_t * words) {
    unsigned half = 0;
    for (int i = 0; i < 4; i++) {
        half |= (unsigned)(get_u16(words + 2 * i) >> 12) << (4 * i);
    }
    return half;
}

/* All bits of the exponent set: infinite, or not a number. */
static bool finite(const struct field * field, const uint8_t * block) {
    const uint8_t * p = block + field->at;
    switch (field->kind) {
    case HALF: return (get_u16(p) & 0x7C00) != 0x7C00;
    case NIBBLES: return (upper_nibbles(p) & 0x7C00) != 0x7C00;
    case BFLOAT: return (get_u16(p) & 0x7F80) != 0x7F80;
    case FLOAT: return (get_u32(p) & 0x7F800000) != 0x7F800000;
    case DOUBLE: return (get_u32(p + 4) & 0x7FF00000) != 0x7FF00000;
    case POWER: return p[0] != 255;
    case END: break;
    }
    return true;
}

/* The first field of a block that is not finite, or NULL. */
static const struct field * bad_field(const struct field * fields, const uint8_t * block) {
    for (int f = 0; f < 2; f++) {
        if (!finite(&fields[f], block)) {
            return &fields[f];
        }
    }
    return NULL;
}

static bool check(enum sotto_type type, const uint8_t * data, size_t blocks) {
    const size_t bytes = sotto_type_size(type);
    for (size_t b = 0; b < blocks && FIELDS[type][0].kind != END; b++) {
        const struct field * bad = bad_field(FIELDS[type], data + b * bytes);
        if (bad) {
            sotto_fail(SOTTO_E_PARAM, "sotto_validate_row_data: %s: block %zu, field %s at byte %zu is not finite",
                       sotto_type_name(type), b, bad->name, b * bytes + (size_t)bad->at);
            return false;
        }
    }
    return true;
}

static bool refuse(enum sotto_type type, const void * data, size_t nbytes) {
    enum sotto_status status = sotto_i_type_status(type);
    if (status == SOTTO_OK && type == SOTTO_TYPE_Q8_1) {
        status = SOTTO_E_TYPE;
    }
    if (status != SOTTO_OK) {
        sotto_fail(status, "sotto_validate_row_data: type %d: %s: no rows of it are stored", (int)type,
                   sotto_type_name(type));
    } else if (!data && nbytes > 0) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_validate_row_data: %s: data is NULL", sotto_type_name(type));
    } else if (nbytes % sotto_type_size(type) != 0) {
        sotto_fail(SOTTO_E_SHAPE, "sotto_validate_row_data: %s: %zu bytes are no whole blocks of %zu",
                   sotto_type_name(type), nbytes, sotto_type_size(type));
    } else {
        return false;
    }
    return true;
}

bool sotto_validate_row_data(enum sotto_type type, const void * data, size_t nbytes) {
    if (refuse(type, data, nbytes)) {
        return false;
    }
    if (check(type, data, nbytes / sotto_type_size(type))) {
        return true;
    }
    sotto_log(SOTTO_LOG_ERROR, "%s\n", sotto_last_error_text());
    return false;
}
