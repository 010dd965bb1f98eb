/* SPDX-License-Identifier: MIT */
/* Setting pairs.
 *
 * A set builds the new pair aside, makes room, and only then removes an old pair of that key and appends: nothing can
 * fail half-way. */
#include <string.h>

#include "gguf/gguf_impl.h"

/* What every setter checks first. */
static enum sotto_status check_key(const struct sotto_gguf_context * ctx, const char * key, const char * function,
                                   size_t * len) {
    if (ctx == NULL || key == NULL)
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: %s is NULL", function, ctx == NULL ? "ctx" : "key");
    *len = strlen(key);
    if (*len == 0)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_KEY_EMPTY, "%s: the key is empty", function);
    if (*len > GGUF_MAX_KEY)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_KEY_LENGTH, "%s: the key has %zu bytes, at most %d are allowed",
                                 function, *len, GGUF_MAX_KEY);
    return SOTTO_OK;
}

static bool is_alignment(const char * key) { return strcmp(key, SOTTO_GGUF_KEY_GENERAL_ALIGNMENT) == 0; }

/* Start a pair for a setter: everything but its value. */
static enum sotto_status begin(const struct sotto_gguf_context * ctx, const char * key, const char * function,
                               enum sotto_gguf_type type, bool is_array, size_t n, struct gguf_kv * kv) {
    memset(kv, 0, sizeof(*kv));
    size_t len = 0;
    enum sotto_status status = check_key(ctx, key, function, &len);
    if (status != SOTTO_OK)
        return status;
    if (is_alignment(key) && (type != SOTTO_GGUF_TYPE_UINT32 || is_array))
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_ALIGN_TYPE, "%s: %s must be a single u32", function, key);
    kv->type = type;
    kv->is_array = is_array;
    kv->n = n;
    return sotto_i_gguf_name_set(ctx->allocator, &kv->key, key, len);
}

/* Append the finished pair, or free it if `status` or the room says no. */
static enum sotto_status finish(struct sotto_gguf_context * ctx, struct gguf_kv * kv, enum sotto_status status) {
    if (status == SOTTO_OK)
        status = sotto_i_gguf_kv_reserve(ctx, 1);
    if (status == SOTTO_OK && is_alignment(kv->key.text))
        status = sotto_i_gguf_place(ctx, kv->scalar.u32);
    if (status == SOTTO_OK)
        sotto_i_gguf_kv_append(ctx, kv);
    else
        sotto_i_gguf_kv_free(ctx->allocator, kv);
    return status;
}

static enum sotto_status set_scalar(struct sotto_gguf_context * ctx, const char * key, enum sotto_gguf_type type,
                                    const void * value, const char * function) {
    struct gguf_kv kv;
    enum sotto_status status = begin(ctx, key, function, type, false, 1, &kv);
    if (status != SOTTO_OK)
        return status;
    memcpy(kv.scalar.bytes, value, sotto_gguf_type_size(type));
    if (is_alignment(key))
        status = sotto_i_gguf_check_alignment(kv.scalar.u32, 0);
    return finish(ctx, &kv, status);
}

#define SETTER(NAME, suffix, ctype)                                                                                 \
    enum sotto_status sotto_gguf_set_val_##suffix(struct sotto_gguf_context * ctx, const char * key, ctype value) { \
        return set_scalar(ctx, key, SOTTO_GGUF_TYPE_##NAME, &value, "sotto_gguf_set_val_" #suffix);                 \
    }
GGUF_FIXED_TYPES(SETTER)
#undef SETTER

static enum sotto_status set_string(struct sotto_gguf_context * ctx, const char * key, const char * value, size_t len,
                                    const char * function) {
    struct gguf_kv kv;
    enum sotto_status status = begin(ctx, key, function, SOTTO_GGUF_TYPE_STRING, false, 1, &kv);
    if (status != SOTTO_OK)
        return status;
    if (value == NULL)
        return finish(ctx, &kv, sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: the value is NULL", function));
    if (len == SIZE_MAX)
        return finish(ctx, &kv, sotto_i_gguf_fail(0, SOTTO_E_MEMORY, "%s: %zu bytes", function, len));
    kv.block = sotto_malloc(ctx->allocator, len + 1, 1);
    if (kv.block == NULL)
        return finish(ctx, &kv, SOTTO_E_MEMORY);
    kv.block_size = len + 1;
    memcpy(kv.block, value, len);
    kv.block[len] = 0;
    return finish(ctx, &kv, SOTTO_OK);
}

enum sotto_status sotto_gguf_set_val_str(struct sotto_gguf_context * ctx, const char * key, const char * value) {
    return set_string(ctx, key, value, value != NULL ? strlen(value) : 0, "sotto_gguf_set_val_str");
}

enum sotto_status sotto_gguf_set_val_str_n(struct sotto_gguf_context * ctx, const char * key, const char * value,
                                           size_t len) {
    return set_string(ctx, key, value, len, "sotto_gguf_set_val_str_n");
}

enum sotto_status sotto_gguf_set_arr_data(struct sotto_gguf_context * ctx, const char * key, enum sotto_gguf_type type,
                                          const void * data, size_t n) {
    static const char function[] = "sotto_gguf_set_arr_data";
    struct gguf_kv kv;
    enum sotto_status status = begin(ctx, key, function, type, true, n, &kv);
    if (status != SOTTO_OK)
        return status;
    size_t width = sotto_gguf_type_size(type);
    if (width == 0)
        status = sotto_i_gguf_fail(0, SOTTO_E_GGUF_VALUE_TYPE,
                                   "%s: %s: type %d has no fixed size; strings go through sotto_gguf_set_arr_str",
                                   function, key, (int)type);
    else if (data == NULL && n > 0)
        status = sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: data is NULL, n is %zu", function, n);
    if (status != SOTTO_OK || n == 0)
        return finish(ctx, &kv, status);
    kv.block = sotto_malloc(ctx->allocator, n, width);
    if (kv.block == NULL)
        return finish(ctx, &kv, SOTTO_E_MEMORY);
    kv.block_size = n * width;
    memcpy(kv.block, data, kv.block_size);
    if (type == SOTTO_GGUF_TYPE_BOOL) {
        for (size_t i = 0; i < n; i++)
            kv.block[i] = kv.block[i] != 0;
    }
    return finish(ctx, &kv, SOTTO_OK);
}

/* Bytes of all strings with a 0 after each. */
static enum sotto_status total_length(const char ** strings, size_t n, size_t * total) {
    *total = 0;
    if (strings == NULL && n > 0)
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_set_arr_str: strings is NULL, n is %zu", n);
    for (size_t i = 0; i < n; i++) {
        if (strings[i] == NULL)
            return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_set_arr_str: string %zu is NULL", i);
        size_t len = strlen(strings[i]) + 1;
        if (len > SIZE_MAX - *total)
            return sotto_i_gguf_fail(0, SOTTO_E_MEMORY, "sotto_gguf_set_arr_str: the strings are too long together");
        *total += len;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_gguf_set_arr_str(struct sotto_gguf_context * ctx, const char * key, const char ** strings,
                                         size_t n) {
    struct gguf_kv kv;
    enum sotto_status status = begin(ctx, key, "sotto_gguf_set_arr_str", SOTTO_GGUF_TYPE_STRING, true, n, &kv);
    if (status != SOTTO_OK)
        return status;
    size_t total;
    status = total_length(strings, n, &total);
    if (status != SOTTO_OK || n == 0)
        return finish(ctx, &kv, status);
    kv.block = sotto_malloc(ctx->allocator, total, 1);
    kv.ends = sotto_malloc(ctx->allocator, n, sizeof(*kv.ends));
    kv.block_size = total;
    if (kv.block == NULL || kv.ends == NULL)
        return finish(ctx, &kv, SOTTO_E_MEMORY);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(strings[i]) + 1;
        memcpy(kv.block + at, strings[i], len);
        at += len;
        kv.ends[i] = at;
    }
    return finish(ctx, &kv, SOTTO_OK);
}

int64_t sotto_gguf_remove_key(struct sotto_gguf_context * ctx, const char * key) {
    size_t len = 0;
    if (check_key(ctx, key, "sotto_gguf_remove_key", &len) != SOTTO_OK)
        return -1;
    int64_t id = sotto_i_gguf_kv_find(ctx, key, len);
    if (id < 0)
        return -1;
    if (is_alignment(key) && sotto_i_gguf_place(ctx, SOTTO_GGUF_DEFAULT_ALIGNMENT) != SOTTO_OK)
        return -1;
    sotto_i_gguf_kv_remove(ctx, (size_t)id);
    return id;
}

static enum sotto_status copy_pair(const struct sotto_allocator * allocator, struct gguf_kv * to,
                                   const struct gguf_kv * from) {
    *to = *from;
    to->key.text = NULL;
    to->block = NULL;
    to->ends = NULL;
    enum sotto_status status = sotto_i_gguf_name_set(allocator, &to->key, from->key.text, from->key.len);
    if (from->block != NULL) {
        to->block = sotto_malloc(allocator, from->block_size, 1);
        if (to->block == NULL)
            return SOTTO_E_MEMORY;
        memcpy(to->block, from->block, from->block_size);
    }
    if (from->ends != NULL) {
        to->ends = sotto_malloc(allocator, from->n, sizeof(*to->ends));
        if (to->ends == NULL)
            return SOTTO_E_MEMORY;
        memcpy(to->ends, from->ends, from->n * sizeof(*to->ends));
    }
    return status;
}

static enum sotto_status copy_pairs(const struct sotto_allocator * allocator, struct gguf_kv * copies,
                                    const struct sotto_gguf_context * src, size_t * n) {
    for (*n = 0; *n < src->n_kv;) {
        enum sotto_status status = copy_pair(allocator, &copies[*n], &src->kv[*n]);
        (*n)++; /* a copy that failed half-way is freed with the rest */
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

/* Remove every pair whose key is in `src`, all in one go. */
static void drop_overridden(struct sotto_gguf_context * ctx, const struct sotto_gguf_context * src) {
    size_t kept = 0;
    for (size_t i = 0; i < ctx->n_kv; i++) {
        struct gguf_kv * kv = &ctx->kv[i];
        if (sotto_i_gguf_kv_find(src, kv->key.text, kv->key.len) >= 0)
            sotto_i_gguf_kv_free(ctx->allocator, kv);
        else
            ctx->kv[kept++] = *kv;
    }
    ctx->n_kv = kept;
    sotto_i_gguf_index_rebuild(&ctx->kv_index, ctx->kv, sizeof(*ctx->kv), kept);
}

enum sotto_status sotto_gguf_set_kv(struct sotto_gguf_context * ctx, const struct sotto_gguf_context * src) {
    if (ctx == NULL || src == NULL)
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_set_kv: %s is NULL", ctx == NULL ? "ctx" : "src");
    if (ctx == src || src->n_kv == 0)
        return SOTTO_OK;
    struct gguf_kv * copies = sotto_malloc(ctx->allocator, src->n_kv, sizeof(*copies));
    if (copies == NULL)
        return SOTTO_E_MEMORY;
    size_t n;
    enum sotto_status status = copy_pairs(ctx->allocator, copies, src, &n);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_kv_reserve(ctx, n);
    int64_t alignment =
        sotto_i_gguf_kv_find(src, SOTTO_GGUF_KEY_GENERAL_ALIGNMENT, strlen(SOTTO_GGUF_KEY_GENERAL_ALIGNMENT));
    if (status == SOTTO_OK && alignment >= 0)
        status = sotto_i_gguf_place(ctx, src->kv[alignment].scalar.u32);
    if (status == SOTTO_OK)
        drop_overridden(ctx, src);
    for (size_t i = 0; i < n; i++) {
        if (status == SOTTO_OK)
            sotto_i_gguf_kv_append(ctx, &copies[i]);
        else
            sotto_i_gguf_kv_free(ctx->allocator, &copies[i]);
    }
    sotto_mfree(ctx->allocator, copies, src->n_kv, sizeof(*copies));
    return status;
}
