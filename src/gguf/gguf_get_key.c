/* SPDX-License-Identifier: MIT */
/* Looking up a value by its key, for loaders: what is absent or of another kind is no error. */
#include <string.h>

#include "gguf/gguf_impl.h"

static const struct gguf_kv * single_of_key(const struct sotto_gguf_context * ctx, const char * key) {
    if (ctx == NULL || key == NULL)
        return NULL;
    int64_t id = sotto_i_gguf_kv_find(ctx, key, strlen(key));
    return id >= 0 && !ctx->kv[id].is_array ? &ctx->kv[id] : NULL;
}

/* Any integer as sign and magnitude in 64 bits: false if it is none. */
static bool integer(const struct gguf_kv * kv, bool * negative, uint64_t * bits) {
    int64_t value = 0;
    switch (kv->type) {
#define SIGNED(NAME, ctype)                      \
    case SOTTO_GGUF_TYPE_##NAME: {               \
        ctype x;                                 \
        memcpy(&x, kv->scalar.bytes, sizeof(x)); \
        value = (int64_t)x;                      \
        break;                                   \
    }
        SIGNED(INT8, int8_t)
        SIGNED(INT16, int16_t)
        SIGNED(INT32, int32_t)
        SIGNED(INT64, int64_t)
        SIGNED(UINT8, uint8_t)
        SIGNED(UINT16, uint16_t)
        SIGNED(UINT32, uint32_t)
#undef SIGNED
    case SOTTO_GGUF_TYPE_UINT64:
        *negative = false;
        *bits = kv->scalar.u64;
        return true;
    default: return false;
    }
    *negative = value < 0;
    *bits = (uint64_t)value;
    return true;
}

bool sotto_gguf_get_uint(const struct sotto_gguf_context * ctx, const char * key, uint64_t * out) {
    const struct gguf_kv * kv = single_of_key(ctx, key);
    bool negative;
    uint64_t bits;
    if (kv == NULL || !integer(kv, &negative, &bits) || negative)
        return false;
    *out = bits;
    return true;
}

bool sotto_gguf_get_int(const struct sotto_gguf_context * ctx, const char * key, int64_t * out) {
    const struct gguf_kv * kv = single_of_key(ctx, key);
    bool negative;
    uint64_t bits;
    if (kv == NULL || !integer(kv, &negative, &bits) || (!negative && bits > INT64_MAX))
        return false;
    memcpy(out, &bits, sizeof(*out));
    return true;
}

bool sotto_gguf_get_float(const struct sotto_gguf_context * ctx, const char * key, double * out) {
    const struct gguf_kv * kv = single_of_key(ctx, key);
    if (kv != NULL && kv->type == SOTTO_GGUF_TYPE_FLOAT64) {
        memcpy(out, kv->scalar.bytes, sizeof(*out));
        return true;
    }
    if (kv != NULL && kv->type == SOTTO_GGUF_TYPE_FLOAT32) {
        float value;
        memcpy(&value, kv->scalar.bytes, sizeof(value));
        *out = value;
        return true;
    }
    return false;
}

bool sotto_gguf_get_bool(const struct sotto_gguf_context * ctx, const char * key, bool * out) {
    const struct gguf_kv * kv = single_of_key(ctx, key);
    if (kv == NULL || kv->type != SOTTO_GGUF_TYPE_BOOL)
        return false;
    *out = kv->scalar.bytes[0] != 0;
    return true;
}

bool sotto_gguf_get_str(const struct sotto_gguf_context * ctx, const char * key, const char ** out) {
    const struct gguf_kv * kv = single_of_key(ctx, key);
    if (kv == NULL || kv->type != SOTTO_GGUF_TYPE_STRING)
        return false;
    *out = (const char *)kv->block;
    return true;
}
