/* SPDX-License-Identifier: MIT */
/* Values of GGUF's pairs as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/inspect.h"

bool is_gguf_array(const struct sotto_gguf_context * gguf, int64_t id) {
    return sotto_gguf_get_kv_type(gguf, id) == SOTTO_GGUF_TYPE_ARRAY;
}

static void put_string(const struct sotto_gguf_context * gguf, int64_t id, size_t i, FILE * to) {
    size_t len;
    const char * text = is_gguf_array(gguf, id) ? sotto_gguf_get_arr_str_n(gguf, id, i, &len)
                                                : sotto_gguf_get_val_str_n(gguf, id, &len);
    put_json_string(to, text, len <= SHOWN_BYTES ? len : whole_characters(text, SHOWN_BYTES));
}

static void put_real(double value, int digits, FILE * to) {
    if (isfinite(value))
        fprintf(to, "%.*g", digits, value);
    else
        fputs("null", to);
}

/* The number of that type at `at`, which may be unaligned. */
static void put_number(enum sotto_gguf_type type, const char * at, FILE * to) {
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } x;
    memcpy(&x, at, sotto_gguf_type_size(type));
    switch (type) {
    case SOTTO_GGUF_TYPE_UINT8: fprintf(to, "%" PRIu8, x.u8); break;
    case SOTTO_GGUF_TYPE_INT8: fprintf(to, "%" PRId8, x.i8); break;
    case SOTTO_GGUF_TYPE_UINT16: fprintf(to, "%" PRIu16, x.u16); break;
    case SOTTO_GGUF_TYPE_INT16: fprintf(to, "%" PRId16, x.i16); break;
    case SOTTO_GGUF_TYPE_UINT32: fprintf(to, "%" PRIu32, x.u32); break;
    case SOTTO_GGUF_TYPE_INT32: fprintf(to, "%" PRId32, x.i32); break;
    case SOTTO_GGUF_TYPE_UINT64: fprintf(to, "%" PRIu64, x.u64); break;
    case SOTTO_GGUF_TYPE_INT64: fprintf(to, "%" PRId64, x.i64); break;
    case SOTTO_GGUF_TYPE_FLOAT32: put_real((double)x.f32, 9, to); break;
    case SOTTO_GGUF_TYPE_FLOAT64: put_real(x.f64, 17, to); break;
    case SOTTO_GGUF_TYPE_BOOL: fputs(x.u8 != 0 ? "true" : "false", to); break;
    default: fputs("null", to); break;
    }
}

void put_gguf_value(const struct sotto_gguf_context * gguf, int64_t id, size_t i, FILE * to) {
    bool array = is_gguf_array(gguf, id);
    enum sotto_gguf_type type = array ? sotto_gguf_get_arr_type(gguf, id) : sotto_gguf_get_kv_type(gguf, id);
    if (type == SOTTO_GGUF_TYPE_STRING)
        put_string(gguf, id, i, to);
    else if (array)
        put_number(type, (const char *)sotto_gguf_get_arr_data(gguf, id) + i * sotto_gguf_type_size(type), to);
    else
        put_number(type, sotto_gguf_get_val_data(gguf, id), to);
}
