/* SPDX-License-Identifier: MIT */
/* Reading infos: name, axes, type and place of a tensor. Only one place is right: where the tensors before it end. */
#include <string.h>

#include "gguf/gguf_parser.h"

static enum sotto_status check_tensor_name(struct gguf_parser * p, size_t id, const char * text, size_t len,
                                           uint64_t pos) {
    const char * file = p->source->name;
    if (len == 0 && p->strict)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_NAME_EMPTY, "gguf: %s: tensor %zu has no name", file, id);
    if (memchr(text, 0, len) != NULL)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_NAME_NUL, "gguf: %s: tensor %zu is named '%s'", file, id,
                                 sotto_i_gguf_show(text, len).text);
    int64_t old = sotto_i_gguf_info_find(p->ctx, text, len);
    if (old >= 0)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_DUPLICATE, "gguf: %s: tensors %lld and %zu are named '%s'",
                                 file, (long long)old, id, sotto_i_gguf_show(text, len).text);
    return SOTTO_OK;
}

static enum sotto_status read_tensor_name(struct gguf_parser * p, size_t id, struct gguf_name * name) {
    uint64_t pos = p->source->pos;
    uint64_t len;
    enum sotto_status status = sotto_i_gguf_u64(p, &len, "a tensor's name");
    if (status != SOTTO_OK)
        return status;
    if (len > GGUF_MAX_TENSOR_NAME)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_NAME_LENGTH,
                                 "gguf: %s: the name of tensor %zu has %llu bytes, at most %d are allowed",
                                 p->source->name, id, (unsigned long long)len, GGUF_MAX_TENSOR_NAME);
    if (len > sotto_i_gguf_left(p->source))
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_STRING_LENGTH,
                                 "gguf: %s: the name of tensor %zu has %llu bytes, %llu are left", p->source->name, id,
                                 (unsigned long long)len, (unsigned long long)sotto_i_gguf_left(p->source));
    char text[GGUF_MAX_TENSOR_NAME];
    status = sotto_i_gguf_field(p, text, (size_t)len, "a tensor's name");
    if (status == SOTTO_OK)
        status = check_tensor_name(p, id, text, (size_t)len, pos + 8);
    return status == SOTTO_OK ? sotto_i_gguf_name_set(p->ctx->allocator, name, text, (size_t)len) : status;
}

static enum sotto_status read_shape(struct gguf_parser * p, struct gguf_info * info) {
    uint32_t n_dims;
    uint64_t pos = p->source->pos;
    enum sotto_status status = sotto_i_gguf_u32(p, &n_dims, "a number of axes");
    if (status != SOTTO_OK)
        return status;
    if (n_dims > SOTTO_MAX_DIMS)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_DIMS,
                                 "gguf: %s: tensor '%s' has %lu axes, at most %d are allowed", p->source->name,
                                 SHOW(info->name), (unsigned long)n_dims, SOTTO_MAX_DIMS);
    for (uint32_t i = 0; i < SOTTO_MAX_DIMS; i++) {
        uint64_t n = 1;
        if (i < n_dims && status == SOTTO_OK)
            status = sotto_i_gguf_u64(p, &n, "an axis");
        memcpy(&info->ne[i], &n, sizeof(n));
    }
    return status == SOTTO_OK ? sotto_i_gguf_info_shape(info, pos + 4) : status;
}

/* The offset must be where the tensors before end; moves that end on. */
static enum sotto_status read_offset(struct gguf_parser * p, struct gguf_info * info) {
    struct sotto_gguf_context * ctx = p->ctx;
    uint64_t pos = p->source->pos;
    enum sotto_status status = sotto_i_gguf_u64(p, &info->offset, "a tensor's offset");
    if (status != SOTTO_OK)
        return status;
    if (info->offset != ctx->data_size)
        return sotto_i_gguf_fail(
            pos, SOTTO_E_GGUF_TENSOR_OFFSET, "gguf: %s: tensor '%s' is at offset %llu, expected %llu", p->source->name,
            SHOW(info->name), (unsigned long long)info->offset, (unsigned long long)ctx->data_size);
    uint64_t padded;
    if (!sotto_i_gguf_align(info->size, ctx->alignment, &padded) || padded > UINT64_MAX - ctx->data_size)
        return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_DATA_TOTAL,
                                 "gguf: %s: tensor '%s' of %llu bytes at offset %llu passes 2^64", p->source->name,
                                 SHOW(info->name), (unsigned long long)info->size, (unsigned long long)info->offset);
    ctx->data_size += padded;
    info->file_offset = info->offset;
    info->file_size = info->size;
    info->file_type = info->type;
    info->in_file = true;
    return SOTTO_OK;
}

enum sotto_status sotto_i_gguf_read_info(struct gguf_parser * p, size_t id) {
    struct gguf_info info = { 0 };
    uint32_t type = 0;
    enum sotto_status status = sotto_i_gguf_info_reserve(p->ctx);
    if (status == SOTTO_OK)
        status = read_tensor_name(p, id, &info.name);
    if (status == SOTTO_OK)
        status = read_shape(p, &info);
    if (status == SOTTO_OK)
        status = sotto_i_gguf_u32(p, &type, "a tensor's type");
    if (status == SOTTO_OK) {
        info.type = type < SOTTO_TYPE_COUNT ? (enum sotto_type)type : SOTTO_TYPE_COUNT;
        status = type < SOTTO_TYPE_COUNT
                     ? sotto_i_gguf_info_size(&info, p->source->pos - 4)
                     : sotto_i_gguf_fail(p->source->pos - 4, SOTTO_E_GGUF_TENSOR_TYPE,
                                         "gguf: %s: tensor '%s' has type %ld; known are 0 to %d", p->source->name,
                                         SHOW(info.name), (long)(int32_t)type, SOTTO_TYPE_COUNT - 1);
    }
    if (status == SOTTO_OK)
        status = read_offset(p, &info);
    if (status == SOTTO_OK)
        sotto_i_gguf_info_append(p->ctx, &info);
    else
        sotto_i_gguf_info_free(p->ctx->allocator, &info);
    return status;
}
