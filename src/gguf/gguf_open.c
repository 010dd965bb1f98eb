/* SPDX-License-Identifier: MIT */
/* Opening: from parameters and a source to a context. */
#include "gguf/gguf_impl.h"

#define FLAGS_KNOWN                                                                                    \
    (SOTTO_GGUF_OPEN_STRICT | SOTTO_GGUF_OPEN_MMAP | SOTTO_GGUF_OPEN_SWAP | SOTTO_GGUF_OPEN_TAIL_PAD | \
     SOTTO_GGUF_OPEN_CHECK_EXTENT | SOTTO_GGUF_OPEN_POPULATE)

struct sotto_gguf_open_params sotto_gguf_open_params_default(void) {
    struct sotto_gguf_open_params params = { .size = sizeof(params) };
    return params;
}

static uint64_t or_default(uint64_t value, uint64_t standard) { return value > 0 ? value : standard; }

/* A complete copy of the caller's parameters. */
static enum sotto_status take_params(struct sotto_gguf_open_params * out, const struct sotto_gguf_open_params * in) {
    *out = sotto_gguf_open_params_default();
    if (in != NULL) {
        if (in->size != 0 && in->size < sizeof(*in))
            return sotto_i_gguf_fail(0, SOTTO_E_PARAM, "sotto_gguf_open: params->size is %lu, expected %zu",
                                     (unsigned long)in->size, sizeof(*in));
        *out = *in;
    }
    if (out->ctx != NULL)
        *out->ctx = NULL;
    if ((out->flags & ~(uint32_t)FLAGS_KNOWN) != 0)
        return sotto_i_gguf_fail(0, SOTTO_E_PARAM, "sotto_gguf_open: unknown bits in flags 0x%lx",
                                 (unsigned long)out->flags);
    out->max_string = or_default(out->max_string, (uint64_t)1 << 30);
    out->max_array = or_default(out->max_array, (uint64_t)1 << 30);
    out->max_kv = or_default(out->max_kv, (uint64_t)1 << 20);
    out->max_tensors = or_default(out->max_tensors, (uint64_t)1 << 20);
    out->max_meta_bytes = or_default(out->max_meta_bytes, (uint64_t)1 << 32);
    return SOTTO_OK;
}

static struct sotto_gguf_open_params from_init(struct sotto_gguf_init_params init) {
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.ctx = init.ctx;
    params.no_alloc = init.no_alloc;
    return params;
}

/* The data must be there by size, less a missing last padding if that may pass. */
static enum sotto_status check_extent(struct sotto_gguf_context * ctx, const struct gguf_source * source,
                                      bool may_lack_padding) {
    uint64_t present = source->size - ctx->data_offset;
    if (present >= ctx->data_size)
        return SOTTO_OK;
    for (size_t i = 0; i < ctx->n_info; i++) {
        const struct gguf_info * info = &ctx->info[i];
        bool last = i + 1 == ctx->n_info;
        uint64_t end = last && !may_lack_padding ? ctx->data_size : info->offset + info->size;
        bool nothing = info->size == 0 && may_lack_padding; /* it may stand behind padding that is missing */
        if (end > present && !nothing)
            return sotto_i_gguf_fail(ctx->data_offset + info->offset, SOTTO_E_GGUF_DATA_EXTENT,
                                     "gguf: %s: tensor '%s' ends at byte %llu of the data, %llu are there",
                                     source->name, SHOW(info->name), (unsigned long long)end,
                                     (unsigned long long)present);
    }
    return SOTTO_OK;
}

static enum sotto_status load(struct sotto_gguf_context * ctx, struct gguf_source * source,
                              const struct sotto_gguf_open_params * params) {
    enum sotto_status status = sotto_i_gguf_parse(ctx, source, params);
    if (status != SOTTO_OK)
        return status;
    ctx->start = source->start;
    bool wants_data = params->ctx != NULL && !params->no_alloc;
    bool tail_pad = (params->flags & SOTTO_GGUF_OPEN_TAIL_PAD) != 0;
    if (wants_data || (params->flags & SOTTO_GGUF_OPEN_CHECK_EXTENT) != 0)
        status = check_extent(ctx, source, tail_pad);
    if (status == SOTTO_OK && (ctx->data_size > SIZE_MAX || ctx->start > SIZE_MAX - ctx->data_offset))
        status = sotto_i_gguf_fail(0, SOTTO_E_LIMIT, "gguf: %s: %llu bytes of tensors are too many for this machine",
                                   source->name, (unsigned long long)ctx->data_size);
    return status == SOTTO_OK && params->ctx != NULL ? sotto_i_gguf_load_tensors(ctx, source, params) : status;
}

/* From a source that could be opened, or could not, as `status` says; closes it, but for the descriptor kept. */
static struct sotto_gguf_context * finish(struct gguf_source * source, enum sotto_status status,
                                          const struct sotto_gguf_open_params * params, bool keep_open) {
    struct sotto_gguf_context * ctx = status == SOTTO_OK ? sotto_i_gguf_new(params->allocator) : NULL;
    if (ctx != NULL) {
        source->allocator = ctx->allocator;
        if (load(ctx, source, params) != SOTTO_OK) {
            sotto_gguf_free(ctx);
            ctx = NULL;
        } else if (keep_open) {
            ctx->fd = source->fd;
            source->fd = -1;
        }
    }
    sotto_i_gguf_source_close(source);
    return ctx;
}

static const struct gguf_source NO_SOURCE = { .fd = -1 };

static struct sotto_gguf_context * open_path(const char * path, const struct sotto_gguf_open_params * in,
                                             bool keep_open) {
    struct sotto_gguf_open_params params;
    if (take_params(&params, in) != SOTTO_OK)
        return NULL;
    if (path == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_open: path is NULL");
        return NULL;
    }
    struct gguf_source source = NO_SOURCE;
    return finish(&source, sotto_i_gguf_source_path(&source, path, params.start), &params, keep_open);
}

struct sotto_gguf_context * sotto_gguf_open(const char * path, const struct sotto_gguf_open_params * params) {
    return open_path(path, params, true);
}

struct sotto_gguf_context * sotto_gguf_init_from_file(const char * path, struct sotto_gguf_init_params init) {
    struct sotto_gguf_open_params params = from_init(init);
    return open_path(path, &params, false);
}

struct sotto_gguf_context * sotto_gguf_init_from_file_ptr(FILE * file, struct sotto_gguf_init_params init) {
    struct sotto_gguf_open_params given = from_init(init);
    struct sotto_gguf_open_params params;
    if (take_params(&params, &given) != SOTTO_OK)
        return NULL;
    if (file == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_init_from_file_ptr: file is NULL");
        return NULL;
    }
    struct gguf_source source = NO_SOURCE;
    return finish(&source, sotto_i_gguf_source_file(&source, file), &params, false);
}

struct sotto_gguf_context * sotto_gguf_open_buffer(const void * data, size_t size,
                                                   const struct sotto_gguf_open_params * in) {
    struct sotto_gguf_open_params params;
    if (take_params(&params, in) != SOTTO_OK)
        return NULL;
    if (data == NULL || size == 0) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_init_from_buffer: %s",
                          data == NULL ? "data is NULL" : "size is 0");
        return NULL;
    }
    struct gguf_source source = NO_SOURCE;
    sotto_i_gguf_source_buffer(&source, data, size, params.start);
    return finish(&source, SOTTO_OK, &params, false);
}

struct sotto_gguf_context * sotto_gguf_init_from_buffer(const void * data, size_t size,
                                                        struct sotto_gguf_init_params init) {
    struct sotto_gguf_open_params params = from_init(init);
    return sotto_gguf_open_buffer(data, size, &params);
}

struct sotto_gguf_context * sotto_gguf_init_from_callback(sotto_gguf_reader_callback_t callback, void * user_data,
                                                          size_t max_chunk_read, uint64_t max_expected_size,
                                                          struct sotto_gguf_init_params init) {
    struct sotto_gguf_open_params given = from_init(init);
    struct sotto_gguf_open_params params;
    if (take_params(&params, &given) != SOTTO_OK)
        return NULL;
    if (callback == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_init_from_callback: callback is NULL");
        return NULL;
    }
    struct gguf_source source = NO_SOURCE;
    sotto_i_gguf_source_callback(&source, callback, user_data, max_chunk_read, max_expected_size);
    return finish(&source, SOTTO_OK, &params, false);
}
