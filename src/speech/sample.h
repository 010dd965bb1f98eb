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
    int n_prefix;         /* of its last tokens, which are the first ones of the result */
    int sot;              /* index of start-of-transcript in it */
    int limit;            /* tokens of the result at most, prefix included */
    int early_frames;     /* a timestamp above 0.00 and from this frame of the window on ends it; < 0 = none does */
    int n_beams;          /* beams, or sequences to draw */
    int max_finished;     /* beams end when so many hypotheses did */
    float length_penalty; /* of the ranking, < 0 = score by length */
    float temperature;    /* of draws */
    uint64_t seed;        /* sequence i is drawn with seed + i */
};

struct sotto_i_sampled {
    int n;
    int32_t ids[SOTTO_I_MAX_TOKENS]; /* the end of text is not among them */
    struct sotto_i_choice choices[SOTTO_I_MAX_TOKENS];
    double sum; /* of the plogs of what was sampled, and of the end of text if it was drawn */
    bool ended; /* it was drawn, or a timestamp came late enough */
    float no_speech_prob;
    uint64_t random; /* state of the generator */
};

/* The most likely token at each step until the end of text. ABORTED, MEMORY, what the engine reports. */
enum sotto_status sotto_i_sample_greedy(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                        struct sotto_i_sampled * sampled);

/* The prefix alone; `index` tells sequences apart. */
void sotto_i_sampled_begin(struct sotto_i_sampled * sampled, const struct sotto_i_sample_params * params, int index);
/* What a step with `choice` does to a sequence; true if it is over. */
bool sotto_i_sampled_extend(struct sotto_i_sampled * sampled, const struct sotto_i_sample_params * params,
                            const struct sotto_i_choice * choice, bool early);

#endif
