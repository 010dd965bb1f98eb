/* SPDX-License-Identifier: MIT */
/* See kvcache.h. */
#include "kvcache.h"

size_t sotto_i_kvcache_n_tensors(const struct sotto_i_hparams * hp) { return 4 * (size_t)hp->n_text_layers + 2; }

static void define_layer(struct sotto_i_kv * kv, struct sotto_context * ctx, enum sotto_type type, int64_t width,
                         int64_t rows) {
    kv->k = sotto_new_tensor_2d(ctx, type, width, rows);
    kv->v = sotto_new_tensor_2d(ctx, type, width, rows);
}

enum sotto_status sotto_i_kvcache_define(struct sotto_i_kvcache * cache, struct sotto_context * ctx,
                                         const struct sotto_i_hparams * hp, enum sotto_type type, int n_spare,
                                         const struct sotto_allocator * allocator) {
    cache->n_layers = hp->n_text_layers;
    cache->n_ctx = hp->n_text_ctx;
    cache->n_spare = n_spare;
    cache->self = sotto_calloc(allocator, 2 * (size_t)cache->n_layers, sizeof(*cache->self));
    if (!cache->self)
        return SOTTO_E_MEMORY;
    cache->cross = cache->self + cache->n_layers;
    for (int i = 0; i < cache->n_layers; i++) {
        define_layer(&cache->self[i], ctx, type, hp->width, cache->n_ctx + n_spare);
        define_layer(&cache->cross[i], ctx, type, hp->width, hp->n_audio_ctx);
    }
    cache->table = sotto_new_tensor_2d(ctx, SOTTO_TYPE_I32, cache->n_ctx, 1);
    cache->cross_table = sotto_new_tensor_2d(ctx, SOTTO_TYPE_I32, hp->n_audio_ctx, 1);
    return sotto_context_status(ctx);
}

static void write_identity(struct sotto_tensor * table) {
    int32_t * row = sotto_get_data(table);
    for (int64_t i = 0; i < table->ne[0]; i++)
        row[i] = (int32_t)i;
}

void sotto_i_kvcache_init(struct sotto_i_kvcache * cache) {
    write_identity(cache->table);
    write_identity(cache->cross_table);
}

void sotto_i_kvcache_free(struct sotto_i_kvcache * cache, const struct sotto_allocator * allocator) {
    sotto_mfree(allocator, cache->self, 2 * (size_t)cache->n_layers, sizeof(*cache->self));
    cache->self = cache->cross = NULL;
}
