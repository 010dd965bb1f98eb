/* SPDX-License-Identifier: MIT */
/* Choosing the next token from what the decoder's graph reports. */
#ifndef SOTTO_SPEECH_CHOOSE_H
#define SOTTO_SPEECH_CHOOSE_H

#include "sotto/speech.h"

#define SOTTO_I_MAX_TOP (SOTTO_MAX_DECODERS + 1)

/* Over the filtered logits: the best text token and the best timestamp, their probabilities, and that of all
 * timestamps together. */
struct sotto_i_candidates {
    int32_t text, timestamp;
    float p_text, p_timestamp, timestamp_sum;
};

/* The same with the n best of each kind, best first. */
struct sotto_i_ranking {
    int n;
    int32_t text[SOTTO_I_MAX_TOP], timestamp[SOTTO_I_MAX_TOP];
    float p_text[SOTTO_I_MAX_TOP], p_timestamp[SOTTO_I_MAX_TOP], timestamp_sum;
};

struct sotto_i_choice {
    int32_t id;
    int32_t tid; /* the most likely timestamp */
    float pt;    /* its probability among timestamps, 0 where none is allowed */
    float ptsum; /* that of all timestamps */
    double plog;
};

/* Rule 8e, then the more likely one; the log-probability is that after rule 8e. */
struct sotto_i_choice sotto_i_choose(const struct sotto_i_candidates * c);

/* Rule 8e, then the best n <= ranking->n into choices, best first, equal ones by id; how many are possible at all. */
int sotto_i_choose_best(const struct sotto_i_ranking * ranking, int n, struct sotto_i_choice * choices);

/* Rule 8e, then the token at u in [0, 1) of the cumulative distribution `drawn`, which lies over n_vocab ids, timestamps
 * from `beg` on. Its log-probability is read from `probs`. */
struct sotto_i_choice sotto_i_choose_drawn(const struct sotto_i_ranking * ranking, const float * probs,
                                           const float * drawn, int n_vocab, int32_t beg, double u);

#endif
