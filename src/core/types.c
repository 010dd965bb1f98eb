/* SPDX-License-Identifier: MIT */
/* The table of element types, and sizes of rows. */
#include "sotto/types.h"

#include "core/checked.h"
#include "core/tensor_impl.h"
#include "core/type_convert.h"
#include "sotto/status.h"

static void f16_to_float(const void * x, float * y, int64_t n) { sotto_fp16_to_fp32_row(x, y, n); }
static void f16_from_float(const float * x, void * y, int64_t n) { sotto_fp32_to_fp16_row(x, y, n); }
static void bf16_to_float(const void * x, float * y, int64_t n) { sotto_bf16_to_fp32_row(x, y, n); }
static void bf16_from_float(const float * x, void * y, int64_t n) { sotto_fp32_to_bf16_row_ref(x, y, n); }

/* Who converts a row to f32 and from it, for every type. */
#define NONE               NULL, NULL
#define CONVERT_F32        NONE
#define CONVERT_F16        f16_to_float, f16_from_float
#define CONVERT_Q4_0       sotto_i_q4_0_to_float, sotto_i_q4_0_from_float
#define CONVERT_Q4_1       sotto_i_q4_1_to_float, sotto_i_q4_1_from_float
#define CONVERT_RETIRED_4  NONE
#define CONVERT_RETIRED_5  NONE
#define CONVERT_Q5_0       sotto_i_q5_0_to_float, sotto_i_q5_0_from_float
#define CONVERT_Q5_1       sotto_i_q5_1_to_float, sotto_i_q5_1_from_float
#define CONVERT_Q8_0       sotto_i_q8_0_to_float, sotto_i_q8_0_from_float
#define CONVERT_Q8_1       NULL, sotto_i_q8_1_from_float
#define CONVERT_Q2_K       sotto_i_q2_k_to_float, sotto_i_q2_k_from_float
#define CONVERT_Q3_K       sotto_i_q3_k_to_float, sotto_i_q3_k_from_float
#define CONVERT_Q4_K       sotto_i_q4_k_to_float, sotto_i_q4_k_from_float
#define CONVERT_Q5_K       sotto_i_q5_k_to_float, sotto_i_q5_k_from_float
#define CONVERT_Q6_K       sotto_i_q6_k_to_float, sotto_i_q6_k_from_float
#define CONVERT_Q8_K       NONE
#define CONVERT_IQ2_XXS    sotto_i_iq2_xxs_to_float, NULL
#define CONVERT_IQ2_XS     sotto_i_iq2_xs_to_float, NULL
#define CONVERT_IQ3_XXS    sotto_i_iq3_xxs_to_float, sotto_i_iq3_xxs_from_float
#define CONVERT_IQ1_S      sotto_i_iq1_s_to_float, NULL
#define CONVERT_IQ4_NL     sotto_i_iq4_nl_to_float, sotto_i_iq4_nl_from_float
#define CONVERT_IQ3_S      sotto_i_iq3_s_to_float, sotto_i_iq3_s_from_float
#define CONVERT_IQ2_S      sotto_i_iq2_s_to_float, sotto_i_iq2_s_from_float
#define CONVERT_IQ4_XS     sotto_i_iq4_xs_to_float, sotto_i_iq4_xs_from_float
#define CONVERT_I8         NONE
#define CONVERT_I16        NONE
#define CONVERT_I32        NONE
#define CONVERT_I64        NONE
#define CONVERT_F64        NONE
#define CONVERT_IQ1_M      sotto_i_iq1_m_to_float, NULL
#define CONVERT_BF16       bf16_to_float, bf16_from_float
#define CONVERT_RETIRED_31 NONE
#define CONVERT_RETIRED_32 NONE
#define CONVERT_RETIRED_33 NONE
#define CONVERT_TQ1_0      sotto_i_tq1_0_to_float, sotto_i_tq1_0_from_float
#define CONVERT_TQ2_0      sotto_i_tq2_0_to_float, sotto_i_tq2_0_from_float
#define CONVERT_RETIRED_36 NONE
#define CONVERT_RETIRED_37 NONE
#define CONVERT_RETIRED_38 NONE
#define CONVERT_MXFP4      sotto_i_mxfp4_to_float, sotto_i_mxfp4_from_float
#define CONVERT_NVFP4      sotto_i_nvfp4_to_float, sotto_i_nvfp4_from_float
#define CONVERT_Q1_0       sotto_i_q1_0_to_float, sotto_i_q1_0_from_float
#define CONVERT_Q2_0       sotto_i_q2_0_to_float, sotto_i_q2_0_from_float

static const struct sotto_type_traits rows[SOTTO_TYPE_COUNT] = {
#define TYPE(id, NAME, name, elements, bytes, quantised, retired) \
    [id] = { name, elements, 0, bytes, quantised, CONVERT_##NAME },
#include "sotto/types.def"
#undef TYPE
};

static const struct sotto_type_traits no_row = { .type_name = "unknown" };

static bool listed(enum sotto_type type) { return (unsigned)type < SOTTO_TYPE_COUNT; }

enum sotto_status sotto_i_type_status(enum sotto_type type) {
    if (!listed(type)) {
        return SOTTO_E_TYPE;
    }
    return rows[type].blck_size == 0 ? SOTTO_E_RETIRED : SOTTO_OK;
}

const struct sotto_type_traits * sotto_get_type_traits(enum sotto_type type) {
    return listed(type) ? &rows[type] : &no_row;
}

const char * sotto_type_name(enum sotto_type type) { return sotto_get_type_traits(type)->type_name; }

/* The row of a type that can be used, NULL and an error for others. */
static const struct sotto_type_traits * usable(const char * function, enum sotto_type type) {
    enum sotto_status status = sotto_i_type_status(type);
    if (status != SOTTO_OK) {
        sotto_fail(status, "%s: type %d: %s", function, (int)type, sotto_type_name(type));
        return NULL;
    }
    return &rows[type];
}

int64_t sotto_blck_size(enum sotto_type type) {
    const struct sotto_type_traits * row = usable("sotto_blck_size", type);
    return row ? row->blck_size : 0;
}

size_t sotto_type_size(enum sotto_type type) {
    const struct sotto_type_traits * row = usable("sotto_type_size", type);
    return row ? row->type_size : 0;
}

double sotto_type_sizef(enum sotto_type type) {
    const struct sotto_type_traits * row = usable("sotto_type_sizef", type);
    return row ? (double)row->type_size / (double)row->blck_size : 0.0;
}

bool sotto_is_quantized(enum sotto_type type) {
    const struct sotto_type_traits * row = usable("sotto_is_quantized", type);
    return row && row->is_quantized;
}

size_t sotto_row_size(enum sotto_type type, int64_t n) {
    const struct sotto_type_traits * row = usable("sotto_row_size", type);
    if (!row) {
        return 0;
    }
    if (n < 0 || n % row->blck_size != 0) {
        sotto_fail(SOTTO_E_SHAPE, "sotto_row_size: %lld elements of %s: give a multiple of %lld", (long long)n,
                   row->type_name, (long long)row->blck_size);
        return 0;
    }
    size_t bytes;
    uint64_t blocks = (uint64_t)(n / row->blck_size);
    if (blocks > SIZE_MAX || !sotto_i_mul((size_t)blocks, row->type_size, &bytes)) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_row_size: %lld elements of %s: the size overflows", (long long)n,
                   row->type_name);
        return 0;
    }
    return bytes;
}

bool sotto_i_is_float_type(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16;
}

bool sotto_i_is_weight_type(enum sotto_type type) {
    bool work = type == SOTTO_TYPE_Q8_1 || type == SOTTO_TYPE_Q8_K;
    return sotto_i_is_float_type(type) || (sotto_get_type_traits(type)->is_quantized && !work);
}

/* Conversions within graphs can neither make search tables nor tell that they are missing. */
static bool needs_tables(enum sotto_type type) {
    return type == SOTTO_TYPE_IQ2_S || type == SOTTO_TYPE_IQ3_XXS || type == SOTTO_TYPE_IQ3_S;
}

bool sotto_i_takes_float_rows(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || (sotto_get_type_traits(type)->from_float_ref && !needs_tables(type));
}

bool sotto_i_gives_float_rows(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || sotto_get_type_traits(type)->to_float;
}
