/* SPDX-License-Identifier: MIT */
/* The decoder: tokens at positions -> logits of the rows that are wanted -> the few numbers that a choice needs.
 *
 * Its graph is planned for a few fixed widths; a prompt runs in chunks, the last one padded with columns that see
 * nothing and write to spare cache rows. Only inputs change from step to step, so a token costs no allocation and no
 * look at shapes, and by the engine's contract the width does not change a bit of a column's result.
 *
 * A decoder made for beams has one graph more, in which each column is the newest token of another sequence. */
#ifndef SOTTO_SPEECH_DECODER_H
#define SOTTO_SPEECH_DECODER_H

#include "choose.h"
#include "kvcache.h"

#define SOTTO_I_N_WIDTHS  4
#define SOTTO_I_MAX_WIDTH 64

/* What is set before a step. Shared by the graphs of all widths, which view the first columns. */
struct sotto_i_inputs {
    struct sotto_tensor *tokens, *positions, *rows, *seq, *len, *cross_seq, *cross_len; /* i32 [64] */
    struct sotto_tensor * wanted; /* i32 [2]: columns whose logits are computed, the last one always */
    struct sotto_tensor * mask;   /* f32 [V]: what the filters add to the last column's logits */
    struct sotto_tensor * masks;  /* f32 [V, beams]: to those of each beam; NULL without beams */
    struct sotto_tensor * cool;   /* f32 [1]: 1 / temperature of the beams' draws; likewise */
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

/* The graph of a step of all beams, and what can be read of each column after it ran. */
struct sotto_i_beam_step {
    int width; /* 0 if the decoder was made without beams */
    sotto_backend_graph_plan_t plan;
    struct sotto_tensor * probs;           /* [V, beams], as above */
    struct sotto_tensor * drawn;           /* [V, beams], softmax of the masked logits / temperature */
    struct sotto_tensor *text, *timestamp; /* i32 [beams + 1, beams]: the best ones, best first */
    struct sotto_tensor * timestamp_sum;   /* [1, beams] */
};

struct sotto_i_decoder {
    const struct sotto_model * model;
    const struct sotto_allocator * allocator;
    sotto_backend_t backend;
    const struct sotto_i_cross * cross;
    struct sotto_context *data, *graphs;
    sotto_backend_buffer_t buffer; /* of data */
    struct sotto_i_inputs in;
    struct sotto_i_kvcache cache;
    struct sotto_i_step steps[SOTTO_I_N_WIDTHS];
    struct sotto_i_beam_step beams;
    const struct sotto_i_step * last; /* that ran, NULL before */
    int n_decoded;                    /* positions in the cache */
    float no_speech_prob;             /* of the newest prompt */
};

/* Caches, inputs and planned graphs for n_beams beams, 0..SOTTO_MAX_DECODERS, of at most n_sampled tokens. After failure
 * as well, free it. */
struct sotto_i_decoder_params {
    const struct sotto_model * model;
    const struct sotto_allocator * allocator;
    sotto_backend_t backend;
    const struct sotto_i_cross * cross;
    enum sotto_type cache_type;
    int n_beams, n_sampled;
};
enum sotto_status sotto_i_decoder_init(struct sotto_i_decoder * decoder, const struct sotto_i_decoder_params * params);
void sotto_i_decoder_free(struct sotto_i_decoder * decoder);

/* Run n tokens at positions n_past.. through the decoder. `sot` is the index of the start-of-transcript token whose
 * no-speech probability is wanted, or -1. The caller has checked ids and positions. */
enum sotto_status sotto_i_decoder_run(struct sotto_i_decoder * decoder, const int32_t * tokens, int n, int n_past,
                                      int sot);

float * sotto_i_decoder_mask(struct sotto_i_decoder * decoder); /* V values, for the next run */
const float * sotto_i_decoder_logits(const struct sotto_i_decoder * decoder);
enum sotto_status sotto_i_decoder_candidates(const struct sotto_i_decoder * decoder, struct sotto_i_candidates * out);

/* ---- beams ---- */

/* The prompt was run; beam 0 shall run its last token again. */
void sotto_i_decoder_branch(struct sotto_i_decoder * decoder, int n_prompt);
/* Run one token of each of n beams at `position`, each in a row of its own unless that is the prompt's. */
enum sotto_status sotto_i_decoder_run_beams(struct sotto_i_decoder * decoder, const int32_t * tokens, int n,
                                            int position);
float * sotto_i_decoder_beam_mask(struct sotto_i_decoder * decoder, int beam); /* V values, for the next run */
void sotto_i_decoder_set_temperature(struct sotto_i_decoder * decoder, float temperature); /* of draws; 0 counts as 1 */
const float * sotto_i_decoder_beam_probs(const struct sotto_i_decoder * decoder, int beam);
const float * sotto_i_decoder_beam_drawn(const struct sotto_i_decoder * decoder, int beam);
/* The best n <= beams + 1 of each kind. */
void sotto_i_decoder_ranking(const struct sotto_i_decoder * decoder, int beam, int n, struct sotto_i_ranking * out);

#endif
