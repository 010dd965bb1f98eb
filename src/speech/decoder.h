/* SPDX-License-Identifier: MIT */
/* The decoder: tokens at positions -> logits of the rows that are wanted -> the few numbers that a choice needs.
 *
 * Its graph is planned for a few fixed widths; a prompt runs in chunks, the last one padded with columns that see
 * nothing and write to spare cache rows. Only inputs change from step to step, so a token costs no allocation and no
 * look at shapes, and by the engine's contract the width does not change a bit of a column's result. */
#ifndef SOTTO_SPEECH_DECODER_H
#define SOTTO_SPEECH_DECODER_H

#include "choose.h"
#include "kvcache.h"

#define SOTTO_I_N_WIDTHS  4
#define SOTTO_I_MAX_WIDTH 64

/* What is set before a step. Shared by the graphs of all widths, which view the first columns. */
struct sotto_i_inputs {
    struct sotto_tensor *tokens, *positions, *rows, *seq, *len, *cross_len; /* i32 [64] */
    struct sotto_tensor * wanted; /* i32 [2]: columns whose logits are computed, the last one always */
    struct sotto_tensor * mask;   /* f32 [V]: what the filters add to the last column's logits */
};

/* The graph of one width, and what can be read after it ran. */
struct sotto_i_step {
    int width, n_wanted;
    sotto_backend_graph_plan_t plan;
    struct sotto_tensor * logits;          /* [V, n_wanted], unfiltered */
    struct sotto_tensor * plain;           /* softmax of column 0 of logits; NULL at width 1 */
    struct sotto_tensor * probs;           /* softmax of the last column after the mask */
    struct sotto_tensor *text, *timestamp; /* i32: the best below and from the first timestamp on */
    struct sotto_tensor * timestamp_sum;
};

struct sotto_i_decoder {
    const struct sotto_model * model;
    sotto_backend_t backend;
    struct sotto_i_inputs in;
    struct sotto_i_kvcache cache;
    struct sotto_i_step steps[SOTTO_I_N_WIDTHS];
    const struct sotto_i_step * last; /* that ran, NULL before */
    int n_decoded;                    /* positions in the cache */
    float no_speech_prob;             /* of the newest prompt */
};

size_t sotto_i_decoder_n_inputs(void);
size_t sotto_i_decoder_overhead(const struct sotto_i_hparams * hp);

/* Make the input tensors in `data` (no_alloc); build and plan the graphs in `ctx` once they have data. */
enum sotto_status sotto_i_decoder_define(struct sotto_i_decoder * decoder, struct sotto_context * data);
enum sotto_status sotto_i_decoder_build(struct sotto_i_decoder * decoder, struct sotto_context * ctx);
void sotto_i_decoder_free(struct sotto_i_decoder * decoder);

/* Run n tokens at positions n_past.. through the decoder. `sot` is the index of the start-of-transcript token whose
 * no-speech probability is wanted, or -1. The caller has checked ids and positions. */
enum sotto_status sotto_i_decoder_run(struct sotto_i_decoder * decoder, const int32_t * tokens, int n, int n_past,
                                      int sot);

float * sotto_i_decoder_mask(struct sotto_i_decoder * decoder); /* V values, for the next run */
const float * sotto_i_decoder_logits(const struct sotto_i_decoder * decoder);
enum sotto_status sotto_i_decoder_candidates(const struct sotto_i_decoder * decoder, struct sotto_i_candidates * out);

#endif
