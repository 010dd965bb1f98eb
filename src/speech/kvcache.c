/* SPDX-License-Identifier: MIT */
/* See kvcache.h. */
#include <string.h>

#include "kvcache.h"

size_t sotto_i_cross_n_tensors(const struct sotto_i_hparams * hp) { return 2 * (size_t)hp->n_text_layers + 1; }
size_t sotto_i_kvcache_n_tensors(const struct sotto_i_hparams * hp) { return 2 * (size_t)hp->n_text_layers + 1; }

static void write_identity(struct sotto_tensor * table, int64_t n) {
    int32_t * row = sotto_get_data(table);
    for (int64_t i = 0; i < n; i++)
        row[i] = (int32_t)i;
}

/* ---- cross ---- */

enum sotto_status sotto_i_cross_define(struct sotto_i_cross * cross, struct sotto_context * ctx,
                                       const struct sotto_i_hparams * hp, enum sotto_type type,
                                       const struct sotto_allocator * allocator) {
    const int64_t positions = hp->n_audio_ctx, heads = hp->n_text_heads, width = hp->width / heads;
    cross->n_layers = hp->n_text_layers;
    cross->layers = sotto_calloc(allocator, (size_t)cross->n_layers, sizeof(*cross->layers));
    if (!cross->layers)
        return SOTTO_E_MEMORY;
    for (int i = 0; i < cross->n_layers; i++) {
        cross->layers[i].k = sotto_new_tensor_3d(ctx, type, positions, width, heads);
        cross->layers[i].v = sotto_new_tensor_3d(ctx, type, width, positions, heads);
    }
    cross->table = sotto_new_tensor_2d(ctx, SOTTO_TYPE_I32, hp->n_audio_ctx, 1);
    return sotto_context_status(ctx);
}

void sotto_i_cross_init(struct sotto_i_cross * cross) { write_identity(cross->table, cross->table->ne[0]); }

void sotto_i_cross_free(struct sotto_i_cross * cross, const struct sotto_allocator * allocator) {
    sotto_mfree(allocator, cross->layers, (size_t)cross->n_layers, sizeof(*cross->layers));
    cross->layers = NULL;
}

/* ---- self ---- */

static enum sotto_status allocate(struct sotto_i_kvcache * cache, const struct sotto_allocator * allocator) {
    cache->holders = sotto_calloc(allocator, (size_t)cache->n_rows, sizeof(*cache->holders));
    cache->free_rows = sotto_calloc(allocator, (size_t)cache->n_rows, sizeof(*cache->free_rows));
    cache->next = sotto_calloc(allocator, (size_t)cache->n_beams * (size_t)cache->n_ctx, sizeof(*cache->next));
    return cache->holders && cache->free_rows && cache->next ? SOTTO_OK : SOTTO_E_MEMORY;
}

enum sotto_status sotto_i_kvcache_define(struct sotto_i_kvcache * cache, struct sotto_context * ctx,
                                         const struct sotto_i_hparams * hp, enum sotto_type type, int n_beams,
                                         int n_sampled, int n_spare, const struct sotto_allocator * allocator) {
    cache->n_layers = hp->n_text_layers;
    cache->n_ctx = hp->n_text_ctx;
    cache->n_beams = n_beams;
    cache->n_rows = hp->n_text_ctx + n_beams * n_sampled;
    cache->layers = sotto_calloc(allocator, (size_t)cache->n_layers, sizeof(*cache->layers));
    if (!cache->layers)
        return SOTTO_E_MEMORY;
    for (int i = 0; i < cache->n_layers; i++) {
        cache->layers[i].k = sotto_new_tensor_2d(ctx, type, hp->width, cache->n_rows + n_spare);
        cache->layers[i].v = sotto_new_tensor_2d(ctx, type, hp->width, cache->n_rows + n_spare);
    }
    cache->table = sotto_new_tensor_2d(ctx, SOTTO_TYPE_I32, cache->n_ctx, 1 + n_beams);
    enum sotto_status status = sotto_context_status(ctx);
    return status == SOTTO_OK && n_beams > 0 ? allocate(cache, allocator) : status;
}

void sotto_i_kvcache_init(struct sotto_i_kvcache * cache) { write_identity(cache->table, cache->n_ctx); }

void sotto_i_kvcache_free(struct sotto_i_kvcache * cache, const struct sotto_allocator * allocator) {
    sotto_mfree(allocator, cache->layers, (size_t)cache->n_layers, sizeof(*cache->layers));
    sotto_mfree(allocator, cache->holders, (size_t)cache->n_rows, sizeof(*cache->holders));
    sotto_mfree(allocator, cache->free_rows, (size_t)cache->n_rows, sizeof(*cache->free_rows));
    sotto_mfree(allocator, cache->next, (size_t)cache->n_beams * (size_t)cache->n_ctx, sizeof(*cache->next));
    cache->layers = NULL;
    cache->holders = NULL;
    cache->free_rows = cache->next = NULL;
}

/* ---- beams ---- */

static int32_t * table_of(const struct sotto_i_kvcache * cache, int beam) {
    return (int32_t *)sotto_get_data(cache->table) + (size_t)(1 + beam) * (size_t)cache->n_ctx;
}

void sotto_i_kvcache_share(struct sotto_i_kvcache * cache, int n_prompt) {
    cache->first = n_prompt;
    cache->n_live = cache->n_free = 0;
    for (int row = cache->n_rows - 1; row >= n_prompt; row--) {
        cache->holders[row] = 0;
        cache->free_rows[cache->n_free++] = row;
    }
    for (int beam = 0; beam < cache->n_beams; beam++)
        for (int i = 0; i < n_prompt; i++)
            table_of(cache, beam)[i] = i;
}

int32_t sotto_i_kvcache_take(struct sotto_i_kvcache * cache, int beam, int position) {
    int32_t row = cache->free_rows[--cache->n_free];
    cache->holders[row] = 1;
    table_of(cache, beam)[position] = row;
    return row;
}

static void let_go(struct sotto_i_kvcache * cache, int beam, int end) {
    for (int i = cache->first; i < end; i++) {
        int32_t row = table_of(cache, beam)[i];
        if (--cache->holders[row] == 0)
            cache->free_rows[cache->n_free++] = row;
    }
}

void sotto_i_kvcache_follow(struct sotto_i_kvcache * cache, const int * parents, int n, int end) {
    size_t first = (size_t)cache->first, n_held = (size_t)(end - cache->first);
    for (int beam = 0; beam < n; beam++) {
        int32_t * next = cache->next + (size_t)beam * (size_t)cache->n_ctx;
        memcpy(next, table_of(cache, parents[beam]) + first, n_held * sizeof(*next));
        for (size_t i = 0; i < n_held; i++)
            cache->holders[next[i]]++;
    }
    for (int beam = 0; beam < cache->n_live; beam++)
        let_go(cache, beam, end);
    for (int beam = 0; beam < n; beam++)
        memcpy(table_of(cache, beam) + first, cache->next + (size_t)beam * (size_t)cache->n_ctx,
               n_held * sizeof(*cache->next));
    cache->n_live = n;
}
