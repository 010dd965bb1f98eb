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
#define GET(field, none) (some(ctx, __func__) != NULL ? ctx->field : (none))

uint32_t sotto_gguf_get_version(const struct sotto_gguf_context * ctx) { return GET(version, 0); }

size_t sotto_gguf_get_alignment(const struct sotto_gguf_context * ctx) { return GET(alignment, 0); }

size_t sotto_gguf_get_data_offset(const struct sotto_gguf_context * ctx) {
    return some(ctx, __func__) != NULL ? (size_t)(ctx->start + ctx->data_offset) : 0;
}

void * sotto_gguf_get_data(const struct sotto_gguf_context * ctx) { return GET(data, NULL); }

size_t sotto_gguf_get_data_size(const struct sotto_gguf_context * ctx) { return (size_t)GET(data_size, 0); }

bool sotto_gguf_is_mapped(const struct sotto_gguf_context * ctx) { return GET(map.base, NULL) != NULL; }

bool sotto_gguf_is_swapped(const struct sotto_gguf_context * ctx) { return GET(swapped, false); }

int64_t sotto_gguf_get_n_kv(const struct sotto_gguf_context * ctx) { return (int64_t)GET(n_kv, 0); }

int64_t sotto_gguf_get_n_tensors(const struct sotto_gguf_context * ctx) { return (int64_t)GET(n_info, 0); }

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
