/* SPDX-License-Identifier: MIT */
/* Infos: what is known of each tensor, how large it is, and where it goes in the file. */
#include <string.h>

#include "gguf/gguf_impl.h"

void sotto_i_gguf_info_free(const struct sotto_allocator * allocator, struct gguf_info * info) {
    sotto_i_gguf_name_free(allocator, &info->name);
    sotto_mfree(allocator, info->tensor, 1, sizeof(*info->tensor));
    info->tensor = NULL;
}

enum sotto_status sotto_i_gguf_info_reserve(struct sotto_gguf_context * ctx) {
    if (ctx->n_info == ctx->cap_info) {
        size_t cap = ctx->cap_info + ctx->cap_info / 2 + 16;
        struct gguf_info * info = sotto_realloc(ctx->allocator, ctx->info, ctx->cap_info, cap, sizeof(*info));
        if (info == NULL)
            return SOTTO_E_MEMORY;
        ctx->info = info;
        ctx->cap_info = cap;
    }
    return sotto_i_gguf_index_reserve(&ctx->info_index, ctx->allocator, ctx->n_info + 1);
}

void sotto_i_gguf_info_append(struct sotto_gguf_context * ctx, const struct gguf_info * info) {
    ctx->info[ctx->n_info] = *info;
    sotto_i_gguf_index_add(&ctx->info_index, &info->name, ctx->n_info);
    ctx->n_info++;
}

int64_t sotto_i_gguf_info_find(const struct sotto_gguf_context * ctx, const char * name, size_t len) {
    return sotto_i_gguf_index_find(&ctx->info_index, ctx->info, sizeof(*ctx->info), name, len);
}

enum sotto_status sotto_i_gguf_info_shape(const struct gguf_info * info, uint64_t pos) {
    const int64_t * ne = info->ne;
    int64_t product = 1; /* zeros count as 1, so that they cannot hide an overflow in the strides */
    for (int i = 0; i < SOTTO_MAX_DIMS; i++) {
        if (ne[i] < 0)
            return sotto_i_gguf_fail(pos > 0 ? pos + 8 * (uint64_t)i : 0, SOTTO_E_GGUF_TENSOR_SHAPE,
                                     "gguf: tensor '%s': axis %d has %lld elements", SHOW(info->name), i,
                                     (long long)ne[i]);
    }
    for (int i = 0; i < SOTTO_MAX_DIMS; i++) {
        int64_t n = ne[i] > 0 ? ne[i] : 1;
        if (product > INT64_MAX / n)
            return sotto_i_gguf_fail(
                pos, SOTTO_E_GGUF_TENSOR_ELEMENTS, "gguf: tensor '%s': %lld x %lld x %lld x %lld elements are too many",
                SHOW(info->name), (long long)ne[0], (long long)ne[1], (long long)ne[2], (long long)ne[3]);
        product *= n;
    }
    return SOTTO_OK;
}

static enum sotto_status check_type(const struct gguf_info * info, uint64_t pos) {
    int id = (int)info->type;
    if (id < 0 || id >= SOTTO_TYPE_COUNT)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_TYPE, "gguf: tensor '%s' has type %d; known are 0 to %d",
                                 SHOW(info->name), id, SOTTO_TYPE_COUNT - 1);
    const struct sotto_type_traits * traits = sotto_get_type_traits(info->type);
    if (traits->blck_size > 0)
        return SOTTO_OK;
    const char * old = id == SOTTO_TYPE_RETIRED_4 ? " (Q4_2)" : id == SOTTO_TYPE_RETIRED_5 ? " (Q4_3)" : "";
    return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_TYPE_RETIRED, "gguf: tensor '%s' has type %d: %s%s",
                             SHOW(info->name), id, traits->type_name, old);
}

enum sotto_status sotto_i_gguf_info_size(struct gguf_info * info, uint64_t pos) {
    enum sotto_status status = check_type(info, pos);
    if (status != SOTTO_OK)
        return status;
    const struct sotto_type_traits * traits = sotto_get_type_traits(info->type);
    int64_t * ne = info->ne;
    if (ne[0] % traits->blck_size != 0)
        return sotto_i_gguf_fail(
            pos, SOTTO_E_GGUF_TENSOR_BLOCK,
            "gguf: tensor '%s': rows of %lld are no multiple of the %lld elements of a block of %s", SHOW(info->name),
            (long long)ne[0], (long long)traits->blck_size, traits->type_name);
    /* the product with zeros counted as 1 has been found to fit, so this does */
    int64_t product = 1;
    for (int i = 0; i < SOTTO_MAX_DIMS; i++)
        product *= ne[i] > 0 ? ne[i] : 1;
    int64_t blocks = product / traits->blck_size;
    if (blocks > INT64_MAX / (int64_t)traits->type_size)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_BYTES,
                                 "gguf: tensor '%s': %lld x %lld x %lld x %lld elements of %s are too many bytes",
                                 SHOW(info->name), (long long)ne[0], (long long)ne[1], (long long)ne[2],
                                 (long long)ne[3], traits->type_name);
    bool empty = ne[0] == 0 || ne[1] == 0 || ne[2] == 0 || ne[3] == 0;
    info->size = empty ? 0 : (uint64_t)blocks * traits->type_size;
    return SOTTO_OK;
}

bool sotto_i_gguf_advance(uint64_t * total, uint64_t size, uint64_t alignment) {
    uint64_t padded;
    if (!sotto_i_gguf_align(size, alignment, &padded) || padded > UINT64_MAX - *total)
        return false;
    *total += padded;
    return true;
}

enum sotto_status sotto_i_gguf_too_large(const struct gguf_info * info) {
    return sotto_i_gguf_fail(0, SOTTO_E_GGUF_DATA_TOTAL, "gguf: with tensor '%s' all tensors together are too large",
                             SHOW(info->name));
}

enum sotto_status sotto_i_gguf_place(struct sotto_gguf_context * ctx, size_t alignment) {
    uint64_t total = 0;
    for (size_t i = 0; i < ctx->n_info; i++) {
        if (!sotto_i_gguf_advance(&total, ctx->info[i].size, alignment))
            return sotto_i_gguf_too_large(&ctx->info[i]);
    }
    ctx->alignment = alignment;
    ctx->data_size = 0;
    for (size_t i = 0; i < ctx->n_info; i++) {
        ctx->info[i].offset = ctx->data_size;
        sotto_i_gguf_advance(&ctx->data_size, ctx->info[i].size, alignment);
    }
    return SOTTO_OK;
}
