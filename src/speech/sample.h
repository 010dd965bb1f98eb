/* SPDX-License-Identifier: MIT */
/* Decoding one window: prompt in, tokens out. The window is encoded already. */
#ifndef SOTTO_SPEECH_SAMPLE_H
#define SOTTO_SPEECH_SAMPLE_H

#include "filter.h"
#include "segment.h"
#include "state.h"

struct sotto_i_sample_params {
    const struct sotto_i_filter * filter;
    const float * base_mask; /* of that filter */
    const int32_t * prompt;
    int n_prompt;
    int sot;          /* index of start-of-transcript in it */
    int limit;        /* tokens to sample at most, 1..224 */
    int early_frames; /* a timestamp above 0.00 and from this frame of the window on ends it; < 0 = none does */
};

struct sotto_i_sampled {
    int n;
    int32_t ids[SOTTO_I_MAX_SAMPLED]; /* the end of text is not among them */
    double plogs[SOTTO_I_MAX_SAMPLED];
    double sum; /* of plogs, and of the end of text if it was drawn */
    float no_speech_prob;
};

/* The most likely token at each step until the end of text. ABORTED, MEMORY, what the engine reports. */
enum sotto_status sotto_i_sample_greedy(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                        struct sotto_i_sampled * sampled);

#endif
