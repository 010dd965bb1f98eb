/* SPDX-License-Identifier: MIT */
/* Looking: every getter, and the table of value types. */
#include <string.h>

#include "gguf/gguf_impl.h"

static const struct {
    const char * name;
    size_t size;
} TYPES[SOTTO_GGUF_TYPE_COUNT] = {
#define ROW(NAME, suffix, ctype) [SOTTO_GGUF_TYPE_##NAME] = { #suffix, sizeof(ctype) },
    GGUF_FIXED_TYPES(ROW)
#undef ROW
        [SOTTO_GGUF_TYPE_STRING] = { "str", 0 },
    [SOTTO_GGUF_TYPE_ARRAY] = { "arr", 0 },
};
_Static_assert(sizeof(bool) == 1, "a bool of the file is one byte");

static bool known(enum sotto_gguf_type type) { return (unsigned)type < SOTTO_GGUF_TYPE_COUNT; }

const char * sotto_gguf_type_name(enum sotto_gguf_type type) { return known(type) ? TYPES[type].name : NULL; }

size_t sotto_gguf_type_size(enum sotto_gguf_type type) { return known(type) ? TYPES[type].size : 0; }

/* The context, or NULL with NULLARG recorded. */
static const struct sotto_gguf_context * some(const struct sotto_gguf_context * ctx, const char * function) {
    if (ctx == NULL)
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: ctx is NULL", function);
    return ctx;
}
#define GET(field, none) some(ctx, __func__) != NULL ? ctx->field : (none)

uint32_t sotto_gguf_get_version(const struct sotto_gguf_context * ctx) { return GET(version, 0); }

size_t sotto_gguf_get_alignment(const struct sotto_gguf_context * ctx) { return GET(alignment, 0); }

size_t sotto_gguf_get_data_offset(const struct sotto_gguf_context * ctx) {
    return some(ctx, __func__) != NULL ? (size_t)(ctx->start + ctx->data_offset) : 0;
}

void * sotto_gguf_get_data(const struct sotto_gguf_context * ctx) { return GET(data, NULL); }

size_t sotto_gguf_get_data_size(const struct sotto_gguf_context * ctx) { return (size_t)(GET(data_size, 0)); }

int64_t sotto_gguf_get_n_kv(const struct sotto_gguf_context * ctx) { return (int64_t)(GET(n_kv, 0)); }

int64_t sotto_gguf_get_n_tensors(const struct sotto_gguf_context * ctx) { return (int64_t)(GET(n_info, 0)); }

/* ---- pairs ---- */

int64_t sotto_gguf_find_key(const struct sotto_gguf_context * ctx, const char * key) {
    if (ctx == NULL || key == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_find_key: %s is NULL", ctx == NULL ? "ctx" : "key");
        return -1;
    }
    return sotto_i_gguf_kv_find(ctx, key, strlen(key));
}

static const struct gguf_kv * pair(const struct sotto_gguf_context * ctx, int64_t id, const char * function) {
    if (some(ctx, function) == NULL)
        return NULL;
    if (id >= 0 && (uint64_t)id < ctx->n_kv)
        return &ctx->kv[id];
    sotto_i_gguf_fail(0, SOTTO_E_PARAM, "%s: id %lld, there are %zu pairs", function, (long long)id, ctx->n_kv);
    return NULL;
}

static void wrong_type(const struct gguf_kv * kv, const char * function, const char * wanted) {
    sotto_i_gguf_fail(0, SOTTO_E_GGUF_VALUE_TYPE, "%s: '%s' is %s%s of %zu, not %s", function, SHOW(kv->key),
                      kv->is_array ? "an array of " : "", TYPES[kv->type].name, kv->n, wanted);
}

const char * sotto_gguf_get_key(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_kv * kv = pair(ctx, id, __func__);
    return kv != NULL ? kv->key.text : NULL;
}

enum sotto_gguf_type sotto_gguf_get_kv_type(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_kv * kv = pair(ctx, id, __func__);
    if (kv == NULL)
        return SOTTO_GGUF_TYPE_COUNT;
    return kv->is_array ? SOTTO_GGUF_TYPE_ARRAY : kv->type;
}

enum sotto_gguf_type sotto_gguf_get_arr_type(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_kv * kv = pair(ctx, id, __func__);
    if (kv != NULL && kv->is_array)
        return kv->type;
    if (kv != NULL)
        wrong_type(kv, __func__, "an array");
    return SOTTO_GGUF_TYPE_COUNT;
}

/* A pair whose value is one of exactly that type, or NULL. */
static const struct gguf_kv * single(const struct sotto_gguf_context * ctx, int64_t id, enum sotto_gguf_type type,
                                     const char * function) {
    const struct gguf_kv * kv = pair(ctx, id, function);
    if (kv == NULL || (kv->type == type && kv->n == 1))
        return kv;
    wrong_type(kv, function, TYPES[type].name);
    return NULL;
}

#define GETTER(NAME, suffix, ctype)                                                        \
    ctype sotto_gguf_get_val_##suffix(const struct sotto_gguf_context * ctx, int64_t id) { \
        const struct gguf_kv * kv = single(ctx, id, SOTTO_GGUF_TYPE_##NAME, __func__);     \
        ctype value = 0;                                                                   \
        if (kv != NULL)                                                                    \
            memcpy(&value, sotto_i_gguf_kv_data(kv), sizeof(value));                       \
        return value;                                                                      \
    }
GGUF_FIXED_TYPES(GETTER)
#undef GETTER

const char * sotto_gguf_get_val_str_n(const struct sotto_gguf_context * ctx, int64_t id, size_t * len) {
    const struct gguf_kv * kv = single(ctx, id, SOTTO_GGUF_TYPE_STRING, __func__);
    size_t n = 0;
    const char * text = kv != NULL ? sotto_i_gguf_kv_string(kv, 0, &n) : NULL;
    if (len != NULL)
        *len = n;
    return text;
}

const char * sotto_gguf_get_val_str(const struct sotto_gguf_context * ctx, int64_t id) {
    return sotto_gguf_get_val_str_n(ctx, id, NULL);
}

const void * sotto_gguf_get_val_data(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_kv * kv = pair(ctx, id, __func__);
    if (kv == NULL)
        return NULL;
    if (kv->type != SOTTO_GGUF_TYPE_STRING && kv->n == 1)
        return sotto_i_gguf_kv_data(kv);
    wrong_type(kv, __func__, "a single value of fixed size");
    return NULL;
}

/* ---- arrays ---- */

size_t sotto_gguf_get_arr_n(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_kv * kv = pair(ctx, id, __func__);
    return kv != NULL ? kv->n : 0;
}

const void * sotto_gguf_get_arr_data(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_kv * kv = pair(ctx, id, __func__);
    if (kv == NULL)
        return NULL;
    if (kv->is_array && kv->type != SOTTO_GGUF_TYPE_STRING)
        return sotto_i_gguf_kv_data(kv);
    wrong_type(kv, __func__, "an array of fixed-size elements");
    return NULL;
}

const char * sotto_gguf_get_arr_str_n(const struct sotto_gguf_context * ctx, int64_t id, size_t i, size_t * len) {
    const struct gguf_kv * kv = pair(ctx, id, __func__);
    size_t n = 0;
    const char * text = NULL;
    if (kv != NULL && (!kv->is_array || kv->type != SOTTO_GGUF_TYPE_STRING))
        wrong_type(kv, __func__, "an array of strings");
    else if (kv != NULL && i >= kv->n)
        sotto_i_gguf_fail(0, SOTTO_E_PARAM, "%s: element %zu of '%s', which has %zu", __func__, i, SHOW(kv->key),
                          kv->n);
    else if (kv != NULL)
        text = sotto_i_gguf_kv_string(kv, i, &n);
    if (len != NULL)
        *len = n;
    return text;
}

const char * sotto_gguf_get_arr_str(const struct sotto_gguf_context * ctx, int64_t id, size_t i) {
    return sotto_gguf_get_arr_str_n(ctx, id, i, NULL);
}

/* ---- by key, for loaders ---- */

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

/* ---- tensors ---- */

int64_t sotto_gguf_find_tensor(const struct sotto_gguf_context * ctx, const char * name) {
    if (ctx == NULL || name == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_find_tensor: %s is NULL", ctx == NULL ? "ctx" : "name");
        return -1;
    }
    return sotto_i_gguf_info_find(ctx, name, strlen(name));
}

static const struct gguf_info * info_of(const struct sotto_gguf_context * ctx, int64_t id, const char * function) {
    if (some(ctx, function) == NULL)
        return NULL;
    if (id >= 0 && (uint64_t)id < ctx->n_info)
        return &ctx->info[id];
    sotto_i_gguf_fail(0, SOTTO_E_PARAM, "%s: id %lld, there are %zu tensors", function, (long long)id, ctx->n_info);
    return NULL;
}

const char * sotto_gguf_get_tensor_name(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_info * info = info_of(ctx, id, __func__);
    return info != NULL ? info->name.text : NULL;
}

size_t sotto_gguf_get_tensor_offset(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_info * info = info_of(ctx, id, __func__);
    return info != NULL ? (size_t)info->offset : 0;
}

const int64_t * sotto_gguf_get_tensor_ne(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_info * info = info_of(ctx, id, __func__);
    return info != NULL ? info->ne : NULL;
}

enum sotto_type sotto_gguf_get_tensor_type(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_info * info = info_of(ctx, id, __func__);
    return info != NULL ? info->type : SOTTO_TYPE_COUNT;
}

size_t sotto_gguf_get_tensor_size(const struct sotto_gguf_context * ctx, int64_t id) {
    const struct gguf_info * info = info_of(ctx, id, __func__);
    return info != NULL ? (size_t)info->size : 0;
}
