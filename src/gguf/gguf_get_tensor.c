/* SPDX-License-Identifier: MIT */
/* Getters of tensors. */
#include <string.h>

#include "gguf/gguf_impl.h"

int64_t sotto_gguf_find_tensor(const struct sotto_gguf_context * ctx, const char * name) {
    if (ctx == NULL || name == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_find_tensor: %s is NULL", ctx == NULL ? "ctx" : "name");
        return -1;
    }
    return sotto_i_gguf_info_find(ctx, name, strlen(name));
}

static const struct gguf_info * info_of(const struct sotto_gguf_context * ctx, int64_t id, const char * function) {
    if (ctx == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: ctx is NULL", function);
        return NULL;
    }
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
