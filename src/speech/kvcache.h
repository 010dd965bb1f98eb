/* SPDX-License-Identifier: MIT */
/* Keys and values.
 *
 * self: per decoder layer a pool of rows. A table tells which row holds each position of a sequence:
 *
 *     rows    0 .. n_ctx - 1   the text of sequence 0, whose table is the identity; prompts are run there
 *             .. n_rows - 1    taken and given back one by one by beams
 *             .. + n_spare     where the unused columns of a step write
 *
 *       Sequences 1 .. n_beams are beams. All begin with the rows of the prompt, and a beam that goes on from another
 *       one's past holds the same rows: rows count their holders, and no key or value is ever copied.
 * cross: per decoder layer keys and values of each position of the encoder, made once a window and read for each token,
 *       head by head: keys [positions, D/H, H] and values [D/H, positions, H], as attention reads them.
 *
 * Matrices of self are [D, rows]; all are f32 or f16. */
#ifndef SOTTO_SPEECH_KVCACHE_H
#define SOTTO_SPEECH_KVCACHE_H

#include "model.h"

struct sotto_i_kv {
    struct sotto_tensor *k, *v;
};

struct sotto_i_cross {
    int n_layers;
    struct sotto_i_kv * layers;
    struct sotto_tensor * table; /* i32 [positions, 1], the identity */
};

struct sotto_i_kvcache {
    int n_layers, n_ctx, n_beams;
    int n_rows; /* that sequences can hold */
    struct sotto_i_kv * layers;
    struct sotto_tensor * table; /* i32 [n_ctx, 1 + n_beams] */
    int first;                   /* position after the prompt that the beams share */
    int n_live;                  /* beams that hold rows */
    uint8_t * holders;           /* of each row [n_rows] */
    int32_t * free_rows;         /* a stack [n_rows] */
    int n_free;
    int32_t * next; /* tables in the making [n_beams][n_ctx] */
};

/* Arena records that the _define functions make. */
size_t sotto_i_cross_n_tensors(const struct sotto_i_hparams * hp);
size_t sotto_i_kvcache_n_tensors(const struct sotto_i_hparams * hp);

/* Make the tensors in `ctx` (no_alloc); their data comes with the context's buffer. MEMORY. _init once it is there. */
enum sotto_status sotto_i_cross_define(struct sotto_i_cross * cross, struct sotto_context * ctx,
                                       const struct sotto_i_hparams * hp, enum sotto_type type,
                                       const struct sotto_allocator * allocator);
void sotto_i_cross_init(struct sotto_i_cross * cross);
void sotto_i_cross_free(struct sotto_i_cross * cross, const struct sotto_allocator * allocator);

/* Room for n_beams beams of at most n_sampled tokens behind a prompt. */
enum sotto_status sotto_i_kvcache_define(struct sotto_i_kvcache * cache, struct sotto_context * ctx,
                                         const struct sotto_i_hparams * hp, enum sotto_type type, int n_beams,
                                         int n_sampled, int n_spare, const struct sotto_allocator * allocator);
void sotto_i_kvcache_init(struct sotto_i_kvcache * cache);
void sotto_i_kvcache_free(struct sotto_i_kvcache * cache, const struct sotto_allocator * allocator);

/* Beams 0 .. n_beams - 1 (sequences 1 ..) begin anew after the n_prompt rows of sequence 0. */
void sotto_i_kvcache_share(struct sotto_i_kvcache * cache, int n_prompt);
/* A row for `position` of a beam. There is always one, as long as no beam has more positions than were defined. */
int32_t sotto_i_kvcache_take(struct sotto_i_kvcache * cache, int beam, int position);
/* There are n beams now, and beam j goes on from what beam parents[j] holds below `end`. */
void sotto_i_kvcache_follow(struct sotto_i_kvcache * cache, const int * parents, int n, int end);

#endif
