/* SPDX-License-Identifier: MIT */
/* Choosing the next token from what the decoder's graph reports. */
#ifndef SOTTO_SPEECH_CHOOSE_H
#define SOTTO_SPEECH_CHOOSE_H

#include "sotto/speech.h"

/* Over the filtered logits: the best text token and the best timestamp, their probabilities, and that of all
 * timestamps together. */
struct sotto_i_candidates {
    int32_t text, timestamp;
    float p_text, p_timestamp, timestamp_sum;
};

struct sotto_i_choice {
    int32_t id;
    double plog;
};

/* Rule 8e, then the more likely one; the log-probability is that after rule 8e. */
struct sotto_i_choice sotto_i_choose(const struct sotto_i_candidates * c);

#endif
