/* SPDX-License-Identifier: MIT */
/* Tensors to be written: adding them, changing their type, and saying where their data is. */
#include <string.h>

#include "gguf/gguf_impl.h"

static enum sotto_status check_new_name(const struct sotto_gguf_context * ctx, const char * name, size_t len) {
    int64_t old = sotto_i_gguf_info_find(ctx, name, len);
    if (old >= 0)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_TENSOR_DUPLICATE,
                                 "sotto_gguf_add_tensor: '%s' is the name of tensor %lld; names must be unique",
                                 sotto_i_gguf_show(name, len).text, (long long)old);
    return SOTTO_OK;
}

/* Where the data of a tensor lies. */
static enum sotto_status take_source(const struct sotto_gguf_context * ctx, struct gguf_info * info,
                                     const struct sotto_tensor * tensor) {
    if (tensor->buffer == NULL && (tensor->view_src == NULL || tensor->view_src->buffer == NULL)) {
        info->data = tensor->data;
        return SOTTO_OK;
    }
    info->tensor = sotto_malloc(ctx->allocator, 1, sizeof(*tensor));
    if (info->tensor == NULL)
        return SOTTO_E_MEMORY;
    *info->tensor = *tensor;
    return SOTTO_OK;
}

static enum sotto_status describe(const struct sotto_gguf_context * ctx, struct gguf_info * info,
                                  const struct sotto_tensor * tensor, size_t name_len) {
    info->type = tensor->type;
    memcpy(info->ne, tensor->ne, sizeof(info->ne));
    enum sotto_status status = sotto_i_gguf_name_set(ctx->allocator, &info->name, tensor->name, name_len);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_info_shape(info, 0);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_info_size(info, 0);
    if (status == SOTTO_OK && !sotto_is_contiguous(tensor))
        status = sotto_i_gguf_fail(0, SOTTO_E_GGUF_TENSOR_LAYOUT,
                                   "sotto_gguf_add_tensor: '%s' is not contiguous; give a copy made with sotto_cont",
                                   SHOW(info->name));
    uint64_t total = ctx->data_size;
    if (status == SOTTO_OK && !sotto_i_gguf_advance(&total, info->size, ctx->alignment))
        status = sotto_i_gguf_too_large(info);
    return status == SOTTO_OK ? take_source(ctx, info, tensor) : status;
}

enum sotto_status sotto_gguf_add_tensor(struct sotto_gguf_context * ctx, const struct sotto_tensor * tensor) {
    if (ctx == NULL || tensor == NULL)
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_add_tensor: %s is NULL",
                                 ctx == NULL ? "ctx" : "tensor");
    const char * end = memchr(tensor->name, 0, sizeof(tensor->name));
    if (end == NULL)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_TENSOR_NAME_LENGTH,
                                 "sotto_gguf_add_tensor: the name '%s' has more than %d bytes",
                                 sotto_i_gguf_show(tensor->name, sizeof(tensor->name)).text, GGUF_MAX_TENSOR_NAME);
    size_t len = (size_t)(end - tensor->name);
    enum sotto_status status = check_new_name(ctx, tensor->name, len);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_info_reserve(ctx);
    if (status != SOTTO_OK)
        return status;
    struct gguf_info info = { 0 };
    status = describe(ctx, &info, tensor, len);
    if (status != SOTTO_OK) {
        sotto_i_gguf_info_free(ctx->allocator, &info);
        return status;
    }
    info.offset = ctx->data_size;
    sotto_i_gguf_advance(&ctx->data_size, info.size, ctx->alignment);
    sotto_i_gguf_info_append(ctx, &info);
    return SOTTO_OK;
}

/* The info that a setter names, or NULL with the reason recorded in *status. */
static struct gguf_info * named(struct sotto_gguf_context * ctx, const char * name, const char * function,
                                enum sotto_status * status) {
    *status = SOTTO_OK;
    if (ctx == NULL || name == NULL) {
        *status = sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: %s is NULL", function, ctx == NULL ? "ctx" : "name");
        return NULL;
    }
    size_t len = strlen(name);
    int64_t id = sotto_i_gguf_info_find(ctx, name, len);
    if (id >= 0)
        return &ctx->info[id];
    *status = sotto_i_gguf_fail(0, SOTTO_E_GGUF_NOT_FOUND, "%s: there is no tensor '%s'; add it first", function,
                                sotto_i_gguf_show(name, len).text);
    return NULL;
}

static void drop_source(const struct sotto_gguf_context * ctx, struct gguf_info * info) {
    sotto_mfree(ctx->allocator, info->tensor, 1, sizeof(*info->tensor));
    info->tensor = NULL;
    info->data = NULL;
    info->reader = NULL;
}

enum sotto_status sotto_gguf_set_tensor_type(struct sotto_gguf_context * ctx, const char * name, enum sotto_type type) {
    enum sotto_status status;
    struct gguf_info * info = named(ctx, name, "sotto_gguf_set_tensor_type", &status);
    if (info == NULL)
        return status;
    struct gguf_info old = *info;
    info->type = type;
    status = sotto_i_gguf_info_size(info, 0);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_place(ctx, ctx->alignment);
    if (status != SOTTO_OK) {
        info->type = old.type;
        info->size = old.size;
    } else if (info->tensor != NULL) {
        drop_source(ctx, info); /* the buffer holds the old type */
    }
    return status;
}

enum sotto_status sotto_gguf_set_tensor_data(struct sotto_gguf_context * ctx, const char * name, const void * data) {
    enum sotto_status status;
    struct gguf_info * info = named(ctx, name, "sotto_gguf_set_tensor_data", &status);
    if (info == NULL)
        return status;
    drop_source(ctx, info);
    info->data = data;
    return SOTTO_OK;
}

enum sotto_status sotto_gguf_set_tensor_reader(struct sotto_gguf_context * ctx, const char * name,
                                               sotto_gguf_tensor_reader reader, void * user_data) {
    enum sotto_status status;
    struct gguf_info * info = named(ctx, name, "sotto_gguf_set_tensor_reader", &status);
    if (info == NULL)
        return status;
    drop_source(ctx, info);
    info->reader = reader;
    info->reader_data = user_data;
    return SOTTO_OK;
}
