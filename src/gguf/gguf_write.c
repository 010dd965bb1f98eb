/* SPDX-License-Identifier: MIT */
/* The writer: header, pairs, infos and data into a sink, which counts, fills memory, or writes to a file or stream.
 *
 * A sink remembers its first failure and then ignores what it is given, so that the code that lays out the bytes has
 * no error paths. Data goes out from where it lies; what lies behind a function or in a backend's buffer passes through
 * one staging buffer in whole rows, and likewise what is turned into the other byte order. */
#include <errno.h>
#include <string.h>

#include "gguf/gguf_impl.h"

#define STAGE     ((size_t)1 << 20)
#define MAX_PIECE ((size_t)16 << 20)

struct sink {
    void (*put)(struct sink * sink, const void * data, size_t n);
    enum sotto_status status;
    uint64_t at; /* bytes so far */
    bool swap;   /* into the other byte order */
    uint8_t * memory;
    FILE * file;
    struct sotto_file * out;
};

static void put(struct sink * sink, const void * data, size_t n) {
    if (sink->status == SOTTO_OK && n > 0) {
        sink->put(sink, data, n);
        sink->at += n;
    }
}

static void put_nowhere(struct sink * sink, const void * data, size_t n) {
    (void)sink;
    (void)data;
    (void)n;
}

static void put_memory(struct sink * sink, const void * data, size_t n) { memcpy(sink->memory + sink->at, data, n); }

static void put_stream(struct sink * sink, const void * data, size_t n) {
    if (fwrite(data, 1, n, sink->file) != n)
        sink->status =
            sotto_i_gguf_fail(sink->at, SOTTO_E_GGUF_IO_WRITE, "gguf: writing to a stream: %s", strerror(errno));
}

static void put_file(struct sink * sink, const void * data, size_t n) {
    sink->status = sotto_i_gguf_failed_at(sink->at, sotto_file_write(sink->out, data, n));
}

/* ---- metadata ---- */

/* n values of `width` bytes. */
static void put_values(struct sink * sink, const void * values, size_t width, size_t n) {
    if (!sink->swap || width == 1) {
        put(sink, values, width * n);
        return;
    }
    const uint8_t * from = values;
    for (uint8_t turned[256]; n > 0;) {
        size_t some = n < sizeof(turned) / width ? n : sizeof(turned) / width;
        memcpy(turned, from, some * width);
        sotto_i_gguf_swap(turned, width, some);
        put(sink, turned, some * width);
        from += some * width;
        n -= some;
    }
}

static void put_u32(struct sink * sink, uint32_t value) { put_values(sink, &value, sizeof(value), 1); }

static void put_u64(struct sink * sink, uint64_t value) { put_values(sink, &value, sizeof(value), 1); }

static void put_text(struct sink * sink, const char * text, size_t len) {
    put_u64(sink, len);
    put(sink, text, len);
}

static void put_padding(struct sink * sink, size_t alignment) {
    static const uint8_t zeros[256];
    uint64_t n = (alignment - sink->at % alignment) % alignment;
    for (; n > 0 && sink->status == SOTTO_OK; n -= n < sizeof(zeros) ? n : sizeof(zeros))
        put(sink, zeros, n < sizeof(zeros) ? (size_t)n : sizeof(zeros));
}

static void put_pair(struct sink * sink, const struct gguf_kv * kv) {
    put_text(sink, kv->key.text, kv->key.len);
    if (kv->is_array)
        put_u32(sink, SOTTO_GGUF_TYPE_ARRAY);
    put_u32(sink, (uint32_t)kv->type);
    if (kv->is_array)
        put_u64(sink, kv->n);
    if (kv->type != SOTTO_GGUF_TYPE_STRING) {
        put_values(sink, sotto_i_gguf_kv_data(kv), sotto_gguf_type_size(kv->type), kv->n);
        return;
    }
    for (size_t i = 0; i < kv->n; i++) {
        size_t len;
        const char * text = sotto_i_gguf_kv_string(kv, i, &len);
        put_text(sink, text, len);
    }
}

static void put_info(struct sink * sink, const struct gguf_info * info) {
    uint32_t n_dims = SOTTO_MAX_DIMS;
    while (n_dims > 1 && info->ne[n_dims - 1] == 1)
        n_dims--;
    put_text(sink, info->name.text, info->name.len);
    put_u32(sink, n_dims);
    put_values(sink, info->ne, sizeof(info->ne[0]), n_dims);
    put_u32(sink, (uint32_t)info->type);
    put_u64(sink, info->offset);
}

static void put_meta(struct sink * sink, const struct sotto_gguf_context * ctx) {
    put(sink, SOTTO_GGUF_MAGIC, 4);
    put_u32(sink, SOTTO_GGUF_VERSION);
    put_u64(sink, ctx->n_info);
    put_u64(sink, ctx->n_kv);
    for (size_t i = 0; i < ctx->n_kv; i++)
        put_pair(sink, &ctx->kv[i]);
    for (size_t i = 0; i < ctx->n_info; i++)
        put_info(sink, &ctx->info[i]);
    put_padding(sink, ctx->alignment);
}

static bool host_is_big_endian(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

enum sotto_status sotto_gguf_set_big_endian(struct sotto_gguf_context * ctx, bool big_endian) {
    if (ctx == NULL)
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_set_big_endian: ctx is NULL");
    ctx->write_swapped = big_endian != host_is_big_endian();
    return SOTTO_OK;
}

size_t sotto_gguf_get_meta_size(const struct sotto_gguf_context * ctx) {
    if (ctx == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_get_meta_size: ctx is NULL");
        return 0;
    }
    struct sink sink = { .put = put_nowhere };
    put_meta(&sink, ctx);
    return (size_t)sink.at;
}

enum sotto_status sotto_gguf_get_meta_data(const struct sotto_gguf_context * ctx, void * data) {
    if (ctx == NULL || data == NULL)
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "sotto_gguf_get_meta_data: %s is NULL",
                                 ctx == NULL ? "ctx" : "data");
    struct sink sink = { .put = put_memory, .memory = data, .swap = ctx->write_swapped };
    put_meta(&sink, ctx);
    return sink.status;
}

/* ---- data ---- */

static void put_host(struct sink * sink, const struct gguf_info * info) {
    const uint8_t * data = info->data;
    for (uint64_t left = info->size; left > 0 && sink->status == SOTTO_OK;) {
        size_t n = left < MAX_PIECE ? (size_t)left : MAX_PIECE;
        put(sink, data, n);
        data += n;
        left -= n;
    }
}

static enum sotto_status fetch(const struct gguf_info * info, size_t id, uint8_t * stage, size_t offset, size_t n) {
    if (info->reader != NULL)
        return info->reader(info->reader_data, (int64_t)id, stage, offset, n);
    if (info->tensor != NULL)
        return sotto_backend_tensor_get(info->tensor, stage, offset, n);
    memcpy(stage, (const uint8_t *)info->data + offset, n);
    return SOTTO_OK;
}

/* Bytes that are staged at a time: whole rows, or only whole blocks of what lies in memory and is not moved by rows. */
static size_t piece_of(const struct gguf_info * info) {
    size_t unit = (size_t)info->size / (size_t)(info->ne[1] * info->ne[2] * info->ne[3]);
    if (info->data != NULL)
        unit = sotto_type_size(info->type);
    size_t piece = unit < STAGE ? STAGE / unit * unit : unit;
    return piece < info->size ? piece : (size_t)info->size;
}

static void put_staged(struct sink * sink, const struct sotto_gguf_context * ctx, size_t id) {
    const struct gguf_info * info = &ctx->info[id];
    size_t size = (size_t)info->size;
    size_t piece = piece_of(info);
    uint8_t * stage = sotto_malloc(ctx->allocator, piece, 1);
    if (stage == NULL)
        sink->status = SOTTO_E_MEMORY;
    for (size_t at = 0; at < size && sink->status == SOTTO_OK; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        sink->status = fetch(info, id, stage, at, n);
        if (sink->swap && sink->status == SOTTO_OK)
            sotto_i_gguf_swap_data(info->type, stage, n);
        put(sink, stage, n);
    }
    sotto_mfree(ctx->allocator, stage, piece, 1);
}

static void put_all(struct sink * sink, const struct sotto_gguf_context * ctx, bool only_meta) {
    put_meta(sink, ctx);
    for (size_t i = 0; i < ctx->n_info && !only_meta; i++) {
        if (ctx->info[i].size > 0 && ctx->info[i].data != NULL && !sink->swap)
            put_host(sink, &ctx->info[i]);
        else if (ctx->info[i].size > 0)
            put_staged(sink, ctx, i);
        put_padding(sink, ctx->alignment);
    }
}

/* What can be known before the first byte is written. */
static enum sotto_status check(const struct sotto_gguf_context * ctx, const char * function, bool only_meta) {
    if (ctx == NULL)
        return sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: ctx is NULL", function);
    if (ctx->data_size > SIZE_MAX)
        return sotto_i_gguf_fail(0, SOTTO_E_GGUF_DATA_TOTAL, "%s: the tensors are too large for this machine",
                                 function);
    for (size_t i = 0; i < ctx->n_info; i++) {
        const struct gguf_info * info = &ctx->info[i];
        if (ctx->write_swapped && !sotto_i_gguf_has_other_order(info->type))
            return sotto_i_gguf_no_other_order(info, 0, function);
        if (!only_meta && info->size > 0 && info->data == NULL && info->tensor == NULL && info->reader == NULL)
            return sotto_i_gguf_fail(0, SOTTO_E_GGUF_TENSOR_NODATA,
                                     "%s: tensor '%s' has no data; give it with sotto_gguf_set_tensor_data", function,
                                     SHOW(info->name));
    }
    return SOTTO_OK;
}

bool sotto_gguf_write_to_file_ptr(const struct sotto_gguf_context * ctx, FILE * file, bool only_meta) {
    static const char function[] = "sotto_gguf_write_to_file_ptr";
    if (check(ctx, function, only_meta) != SOTTO_OK)
        return false;
    if (file == NULL) {
        sotto_i_gguf_fail(0, SOTTO_E_NULLARG, "%s: file is NULL", function);
        return false;
    }
    struct sink sink = { .put = put_stream, .file = file, .swap = ctx->write_swapped };
    put_all(&sink, ctx, only_meta);
    if (sink.status == SOTTO_OK && fflush(file) != 0)
        sink.status = sotto_i_gguf_fail(sink.at, SOTTO_E_GGUF_IO_WRITE, "%s: %s", function, strerror(errno));
    return sink.status == SOTTO_OK;
}

bool sotto_gguf_write(const struct sotto_gguf_context * ctx, const char * path, bool only_meta,
                      const struct sotto_gguf_write_params * params) {
    static const char function[] = "sotto_gguf_write";
    const uint32_t known = SOTTO_GGUF_WRITE_FSYNC | SOTTO_GGUF_WRITE_NO_ATOMIC | SOTTO_GGUF_WRITE_KEEP_MODE;
    struct sotto_gguf_write_params p = { .size = sizeof(p) };
    if (params != NULL && params->size != 0 && params->size < sizeof(p)) {
        sotto_i_gguf_fail(0, SOTTO_E_PARAM, "%s: params->size is %lu, expected %zu", function,
                          (unsigned long)params->size, sizeof(p));
        return false;
    }
    if (params != NULL)
        p = *params;
    if (path == NULL || (p.flags & ~known) != 0) {
        sotto_i_gguf_fail(0, path == NULL ? SOTTO_E_NULLARG : SOTTO_E_PARAM, "%s: path %s, flags 0x%lx", function,
                          path == NULL ? "is NULL" : path, (unsigned long)p.flags);
        return false;
    }
    if (check(ctx, function, only_meta) != SOTTO_OK)
        return false;
    struct sotto_file_params file = { sizeof(file), p.flags, p.mode, ctx->allocator };
    struct sink sink = { .put = put_file, .swap = ctx->write_swapped };
    if (sotto_i_gguf_failed_at(0, sotto_file_create(path, &file, &sink.out)) != SOTTO_OK)
        return false;
    put_all(&sink, ctx, only_meta);
    enum sotto_status status = sotto_file_finish(sink.out, sink.status);
    if (sink.status == SOTTO_OK)
        sotto_i_gguf_failed_at(sink.at, status);
    return status == SOTTO_OK;
}

bool sotto_gguf_write_to_file(const struct sotto_gguf_context * ctx, const char * path, bool only_meta) {
    return sotto_gguf_write(ctx, path, only_meta, NULL);
}
