/* SPDX-License-Identifier: MIT */
/* Tensors one by one, in pieces of any size, from a file that stayed open. */
#include <string.h>

#include "gguf/gguf_impl.h"

static const char function[] = "sotto_gguf_read_tensor";

/* No block is larger. */
#define MAX_BLOCK                                                 292
#define TYPE(id, NAME, name, elements, bytes, quantised, retired) _Static_assert((bytes) <= MAX_BLOCK, name);
#include "sotto/types.def"
#undef TYPE

/* Bytes of a tensor as they stand in the file. */
static enum sotto_status read_plain(const struct sotto_gguf_context * ctx, const struct gguf_info * info, void * dst,
                                    size_t offset, size_t size) {
    const uint64_t base = ctx->start + ctx->data_offset;
    const uint64_t within = info->file_offset + offset;
    size_t got = 0;
    enum sotto_status status = SOTTO_OK;
    if (base <= INT64_MAX && within <= INT64_MAX - base) /* no file is longer */
        status = sotto_i_gguf_pread(ctx->fd, function, dst, base + within, size, &got);
    if (status == SOTTO_OK && got < size)
        status = sotto_i_gguf_fail(base + within + got, SOTTO_E_GGUF_TRUNCATED,
                                   "%s: tensor '%s' needs %zu bytes more than the file has", function, SHOW(info->name),
                                   size - got);
    return status;
}

/* Bytes of a tensor in the order of the machine: whole blocks in place, parts of one through a copy. */
static enum sotto_status read_swapped(const struct sotto_gguf_context * ctx, const struct gguf_info * info,
                                      uint8_t * dst, size_t offset, size_t size) {
    if (!sotto_i_gguf_has_other_order(info->file_type))
        return sotto_i_gguf_no_other_order(info, ctx->start + ctx->data_offset + info->file_offset, function);
    const size_t block = sotto_type_size(info->file_type);
    enum sotto_status status = SOTTO_OK;
    for (size_t n; size > 0 && status == SOTTO_OK; dst += n, offset += n, size -= n) {
        const size_t inside = offset % block;
        uint8_t part[MAX_BLOCK];
        if (inside == 0 && size >= block) {
            n = size - size % block;
            status = read_plain(ctx, info, dst, offset, n);
            if (status == SOTTO_OK)
                sotto_i_gguf_swap_data(info->file_type, dst, n);
        } else {
            n = size < block - inside ? size : block - inside;
            status = read_plain(ctx, info, part, offset - inside, block);
            if (status == SOTTO_OK) {
                sotto_i_gguf_swap_data(info->file_type, part, block);
                memcpy(dst, part + inside, n);
            }
        }
    }
    return status;
}

enum sotto_status sotto_gguf_read_tensor(const struct sotto_gguf_context * ctx, int64_t id, void * dst, size_t offset,
                                         size_t size) {
    if (ctx == NULL || (dst == NULL && size > 0))
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: %s is NULL", function, ctx == NULL ? "ctx" : "dst");
    if (ctx->fd < 0)
        return sotto_i_gguf_fail(0, SOTTO_E_STATE, "%s: the file is not open; use sotto_gguf_open", function);
    if (id < 0 || (uint64_t)id >= ctx->n_info)
        return sotto_i_gguf_fail(0, SOTTO_E_PARAM, "%s: id %lld, there are %zu tensors", function, (long long)id,
                                 ctx->n_info);
    const struct gguf_info * info = &ctx->info[id];
    if (!info->in_file)
        return sotto_i_gguf_fail(0, SOTTO_E_STATE, "%s: tensor '%s' was added later", function, SHOW(info->name));
    if (offset > info->file_size || size > info->file_size - offset)
        return sotto_i_gguf_fail(0, SOTTO_E_BOUNDS, "%s: bytes %zu + %zu of tensor '%s', which has %llu", function,
                                 offset, size, SHOW(info->name), (unsigned long long)info->file_size);
    return ctx->swapped ? read_swapped(ctx, info, dst, offset, size) : read_plain(ctx, info, dst, offset, size);
}
