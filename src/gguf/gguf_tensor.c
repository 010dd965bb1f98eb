/* SPDX-License-Identifier: MIT */
/* Infos: what is known of each tensor, where it goes in the file, and where its data comes from. */
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

/* ---- shapes ---- */

enum sotto_status sotto_i_gguf_info_shape(const struct gguf_info * info, uint64_t pos) {
    const int64_t * ne = info->ne;
    int64_t product = 1; /* zeros count as 1, so that they cannot hide an overflow in the strides */
    for (int i = 0; i < SOTTO_MAX_DIMS; i++) {
        if (ne[i] < 0)
            return sotto_i_gguf_fail(pos, SOTTO_E_GGUF_TENSOR_SHAPE, "gguf: tensor '%s': axis %d has %lld elements",
                                     SHOW(info->name), i, (long long)ne[i]);
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
                                 "gguf: tensor '%s': %lld blocks of %zu bytes are too many bytes", SHOW(info->name),
                                 (long long)blocks, traits->type_size);
    bool empty = ne[0] == 0 || ne[1] == 0 || ne[2] == 0 || ne[3] == 0;
    info->size = empty ? 0 : (uint64_t)blocks * traits->type_size;
    return SOTTO_OK;
}

/* Add one tensor's place to a running total. */
static bool advance(uint64_t * total, uint64_t size, uint64_t alignment) {
    uint64_t padded;
    if (!sotto_i_gguf_align(size, alignment, &padded) || padded > UINT64_MAX - *total)
        return false;
    *total += padded;
    return true;
}

static enum sotto_status too_large(const struct gguf_info * info) {
    return sotto_i_gguf_fail(0, SOTTO_E_GGUF_DATA_TOTAL, "gguf: with tensor '%s' all tensors together are too large",
                             SHOW(info->name));
}

enum sotto_status sotto_i_gguf_place(struct sotto_gguf_context * ctx, size_t alignment) {
    uint64_t total = 0;
    for (size_t i = 0; i < ctx->n_info; i++) {
        if (!advance(&total, ctx->info[i].size, alignment))
            return too_large(&ctx->info[i]);
    }
    ctx->alignment = alignment;
    ctx->data_size = 0;
    for (size_t i = 0; i < ctx->n_info; i++) {
        ctx->info[i].offset = ctx->data_size;
        advance(&ctx->data_size, ctx->info[i].size, alignment);
    }
    return SOTTO_OK;
}

/* ---- adding and changing ---- */

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
    if (status == SOTTO_OK && !advance(&total, info->size, ctx->alignment))
        status = too_large(info);
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
    advance(&ctx->data_size, info.size, ctx->alignment);
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
