/* SPDX-License-Identifier: MIT */
/* Pairs: keeping, finding, appending and removing them. */
#include <string.h>

#include "gguf/gguf_impl.h"

const void * sotto_i_gguf_kv_data(const struct gguf_kv * kv) {
    return kv->block != NULL ? (const void *)kv->block : kv->scalar.bytes;
}

const char * sotto_i_gguf_kv_string(const struct gguf_kv * kv, size_t i, size_t * len) {
    size_t begin = kv->ends != NULL && i > 0 ? kv->ends[i - 1] : 0;
    size_t end = kv->ends != NULL ? kv->ends[i] : kv->block_size;
    *len = end - begin - 1;
    return (const char *)kv->block + begin;
}

void sotto_i_gguf_kv_free(const struct sotto_allocator * allocator, struct gguf_kv * kv) {
    sotto_i_gguf_name_free(allocator, &kv->key);
    sotto_mfree(allocator, kv->block, kv->block_size, 1);
    sotto_mfree(allocator, kv->ends, kv->n, sizeof(*kv->ends));
    kv->block = NULL;
    kv->ends = NULL;
}

enum sotto_status sotto_i_gguf_kv_reserve(struct sotto_gguf_context * ctx, size_t more) {
    size_t need = ctx->n_kv + more;
    if (need > ctx->cap_kv) {
        size_t cap = ctx->cap_kv + ctx->cap_kv / 2 + 16;
        if (cap < need)
            cap = need;
        struct gguf_kv * kv = sotto_realloc(ctx->allocator, ctx->kv, ctx->cap_kv, cap, sizeof(*kv));
        if (kv == NULL)
            return SOTTO_E_MEMORY;
        ctx->kv = kv;
        ctx->cap_kv = cap;
    }
    return sotto_i_gguf_index_reserve(&ctx->kv_index, ctx->allocator, need);
}

int64_t sotto_i_gguf_kv_find(const struct sotto_gguf_context * ctx, const char * key, size_t len) {
    return sotto_i_gguf_index_find(&ctx->kv_index, ctx->kv, sizeof(*ctx->kv), key, len);
}

void sotto_i_gguf_kv_remove(struct sotto_gguf_context * ctx, size_t id) {
    sotto_i_gguf_kv_free(ctx->allocator, &ctx->kv[id]);
    memmove(ctx->kv + id, ctx->kv + id + 1, (ctx->n_kv - id - 1) * sizeof(*ctx->kv));
    ctx->n_kv--;
    sotto_i_gguf_index_rebuild(&ctx->kv_index, ctx->kv, sizeof(*ctx->kv), ctx->n_kv);
}

void sotto_i_gguf_kv_append(struct sotto_gguf_context * ctx, const struct gguf_kv * kv) {
    int64_t old = sotto_i_gguf_kv_find(ctx, kv->key.text, kv->key.len);
    if (old >= 0)
        sotto_i_gguf_kv_remove(ctx, (size_t)old);
    ctx->kv[ctx->n_kv] = *kv;
    sotto_i_gguf_index_add(&ctx->kv_index, &kv->key, ctx->n_kv);
    ctx->n_kv++;
}
