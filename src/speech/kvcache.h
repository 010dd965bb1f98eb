/* SPDX-License-Identifier: MIT */
/* Keys and values.
 *
 * self: per decoder layer a pool of rows. A table tells which row holds each position of a sequence; today there is one
 *       sequence and the table is the identity. Behind the rows of the text come spare ones, where the unused
 *       columns of a chunk write.
 * cross: per decoder layer a row for each position of the encoder, made once a window.
 *
 * Matrices are [D, rows], f32 or f16. */
#ifndef SOTTO_SPEECH_KVCACHE_H
#define SOTTO_SPEECH_KVCACHE_H

#include "model.h"

struct sotto_i_kv {
    struct sotto_tensor *k, *v;
};

struct sotto_i_kvcache {
    int n_layers;
    int n_ctx;   /* rows of text */
    int n_spare; /* rows after them */
    struct sotto_i_kv *self, *cross;
    struct sotto_tensor *table, *cross_table; /* i32 [positions, 1] */
};

/* Arena records that _define makes. */
size_t sotto_i_kvcache_n_tensors(const struct sotto_i_hparams * hp);

/* Make the tensors in `ctx` (no_alloc); their data comes with the context's buffer. MEMORY. */
enum sotto_status sotto_i_kvcache_define(struct sotto_i_kvcache * cache, struct sotto_context * ctx,
                                         const struct sotto_i_hparams * hp, enum sotto_type type, int n_spare,
                                         const struct sotto_allocator * allocator);
/* Once the data is there: write the tables. */
void sotto_i_kvcache_init(struct sotto_i_kvcache * cache);
void sotto_i_kvcache_free(struct sotto_i_kvcache * cache, const struct sotto_allocator * allocator);

#endif
