/* SPDX-License-Identifier: MIT */
/* From a window's tokens to segments and the start of the next window (spec 5.9). Times are frames of 10 ms. */
#ifndef SOTTO_SPEECH_SEGMENT_H
#define SOTTO_SPEECH_SEGMENT_H

#include "tokenizer.h"

#define SOTTO_I_MAX_SAMPLED 224 /* tokens that can be sampled in a window */
#define SOTTO_I_MAX_TOKENS  448 /* with those of a prefix */

struct sotto_i_slice {
    int first, end; /* tokens first..end-1 */
    int64_t t0, t1;
};

struct sotto_i_cut {
    int n; /* slices */
    struct sotto_i_slice slices[SOTTO_I_MAX_TOKENS];
    int64_t seek; /* where the next window begins, at least one frame further */
};

struct sotto_i_cut_params {
    const struct sotto_i_specials * specials;
    int64_t seek;    /* of this window */
    int n_frames;    /* its length, > 0 */
    bool timestamps; /* false: one segment over the whole window */
    bool limited;    /* the window was ended by max_tokens: go on from its last timestamp */
};

/* Cut n <= 448 tokens (the end of text not among them). */
void sotto_i_cut_window(const struct sotto_i_cut_params * params, const int32_t * tokens, int n,
                        struct sotto_i_cut * cut);

#endif
