/* SPDX-License-Identifier: MIT */
/* The caller's tensors after opening, and their data: mapped, or read into one block. */
#include <string.h>

#include "gguf/gguf_impl.h"

enum where { NOWHERE, READ, MAPPED };

/* Can tensors be used where they lie in the file? */
static bool can_be_mapped(const struct sotto_gguf_context * ctx, const struct gguf_source * source) {
    if (ctx->swapped || source->fd < 0)
        return false;
    uint64_t begin = ctx->start + ctx->data_offset;
    for (size_t i = 0; i < ctx->n_info; i++) {
        if ((begin + ctx->info[i].offset) % sotto_i_gguf_natural_align(ctx->info[i].type) != 0)
            return false;
    }
    return true;
}

static bool map_data(struct sotto_gguf_context * ctx, const struct gguf_source * source, uint32_t flags) {
    if ((flags & SOTTO_GGUF_OPEN_MMAP) == 0 || !can_be_mapped(ctx, source))
        return false;
    ctx->data = sotto_i_gguf_map(&ctx->map, source->fd, ctx->start + ctx->data_offset, ctx->data_size,
                                 (flags & SOTTO_GGUF_OPEN_POPULATE) != 0);
    return ctx->data != NULL;
}

/* Every type has to have a form in the other byte order if the file is in that. */
static enum sotto_status check_swap(const struct sotto_gguf_context * ctx, const struct gguf_source * source) {
    for (size_t i = 0; ctx->swapped && i < ctx->n_info; i++) {
        const struct gguf_info * info = &ctx->info[i];
        if (!sotto_i_gguf_has_other_order(info->type))
            return sotto_i_gguf_no_other_order(info, ctx->data_offset + info->offset, source->name);
    }
    return SOTTO_OK;
}

/* Bytes of the arena for all tensors and, if wanted, their data aligned to SOTTO_DATA_ALIGN. */
static enum sotto_status arena_size(const struct sotto_gguf_context * ctx, bool with_data, size_t * size) {
    size_t overhead = sotto_tensor_overhead();
    size_t records = ctx->n_info + (with_data ? 2 : 0); /* the blob's record and its storage */
    if (records > SIZE_MAX / overhead)
        return sotto_i_gguf_fail(0, SOTTO_E_MEMORY, "gguf: %zu tensors do not fit into memory", records);
    *size = records * overhead;
    if (!with_data)
        return SOTTO_OK;
    uint64_t room = SIZE_MAX - *size;
    if (room < 2 * SOTTO_DATA_ALIGN || ctx->data_size > room - 2 * SOTTO_DATA_ALIGN)
        return sotto_i_gguf_fail(0, SOTTO_E_MEMORY, "gguf: %llu bytes of tensors do not fit into memory",
                                 (unsigned long long)ctx->data_size);
    *size += (size_t)ctx->data_size + 2 * SOTTO_DATA_ALIGN;
    return SOTTO_OK;
}

/* A first tensor that holds the whole data section. */
static enum sotto_status read_blob(struct sotto_gguf_context * ctx, struct gguf_source * source,
                                   struct sotto_context * tensors) {
    struct sotto_tensor * blob = sotto_new_tensor_1d(tensors, SOTTO_TYPE_I8, (int64_t)ctx->data_size);
    uint8_t * memory = sotto_new_buffer(tensors, (size_t)ctx->data_size + SOTTO_DATA_ALIGN);
    if (blob == NULL || memory == NULL)
        return sotto_context_status(tensors);
    sotto_set_name(blob, "GGUF tensor data binary blob");
    blob->data = memory + (SOTTO_DATA_ALIGN - (uintptr_t)memory % SOTTO_DATA_ALIGN) % SOTTO_DATA_ALIGN;
    ctx->data = blob->data;
    const uint64_t present = source->size - ctx->data_offset;
    const size_t n = (size_t)(ctx->data_size < present ? ctx->data_size : present);
    memset((uint8_t *)blob->data + n, 0, (size_t)ctx->data_size - n); /* padding that is missing */
    sotto_i_gguf_skip(source, ctx->data_offset - source->pos);
    enum sotto_status status = sotto_i_gguf_read(source, blob->data, n);
    for (size_t i = 0; ctx->swapped && status == SOTTO_OK && i < ctx->n_info; i++)
        sotto_i_gguf_swap_data(ctx->info[i].type, (uint8_t *)blob->data + ctx->info[i].offset,
                               (size_t)ctx->info[i].size);
    return status;
}

static enum sotto_status make_tensors(struct sotto_gguf_context * ctx, struct gguf_source * source,
                                      struct sotto_context * tensors, enum where where) {
    if (where == READ) {
        if (ctx->data_size > INT64_MAX)
            return sotto_i_gguf_fail(0, SOTTO_E_MEMORY, "gguf: %llu bytes of tensors",
                                     (unsigned long long)ctx->data_size);
        enum sotto_status status = read_blob(ctx, source, tensors);
        if (status != SOTTO_OK)
            return status;
    }
    for (size_t i = 0; i < ctx->n_info; i++) {
        const struct gguf_info * info = &ctx->info[i];
        struct sotto_tensor * tensor = sotto_new_tensor(tensors, info->type, SOTTO_MAX_DIMS, info->ne);
        if (tensor == NULL)
            return sotto_context_status(tensors);
        sotto_set_name(tensor, info->name.text);
        if (where != NOWHERE)
            tensor->data = (uint8_t *)ctx->data + info->offset;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_gguf_load_tensors(struct sotto_gguf_context * ctx, struct gguf_source * source,
                                            const struct sotto_gguf_open_params * params) {
    enum where where = params->no_alloc ? NOWHERE : map_data(ctx, source, params->flags) ? MAPPED : READ;
    size_t size = 0;
    enum sotto_status status = where == READ ? check_swap(ctx, source) : SOTTO_OK;
    if (status == SOTTO_OK)
        status = arena_size(ctx, where == READ, &size);
    if (status != SOTTO_OK)
        return status;
    struct sotto_init_params init = { .mem_size = size, .no_alloc = true };
    struct sotto_context * tensors = sotto_init_ext(init, ctx->allocator);
    if (tensors == NULL)
        return SOTTO_E_MEMORY;
    status = make_tensors(ctx, source, tensors, where);
    if (status != SOTTO_OK) {
        sotto_free(tensors);
        return status;
    }
    sotto_set_no_alloc(tensors, params->no_alloc);
    *params->ctx = tensors;
    return SOTTO_OK;
}
