/* SPDX-License-Identifier: MIT */
/* What may come next: the rules of spec 5.5 as a row of 0 and -inf that is added to the logits. Rule 8e depends on
 * the logits themselves and is in choose.c. */
#ifndef SOTTO_SPEECH_FILTER_H
#define SOTTO_SPEECH_FILTER_H

#include "tokenizer.h"

struct sotto_i_filter {
    const struct sotto_i_specials * specials;
    bool timestamps;
    bool suppress_blank;
    int32_t blank;            /* the token " " */
    int max_tokens;           /* sampled tokens after which only timestamps and the end are left; 0 = no such limit */
    int no_repeat;            /* text tokens in a row that may not come twice; 0 = they may */
    int max_initial;          /* highest first timestamp, in steps of 0.02 s; < 0 = any */
    const int32_t * suppress; /* ids that are never allowed, besides the special ones */
    int n_suppress;
};

/* The part that is the same at each step: rules 3, 4, 6 and 7 into base[n_vocab]. */
void sotto_i_filter_base(const struct sotto_i_filter * filter, float * base);

/* The whole row into mask[n_vocab], given the n tokens sampled so far in this window. */
void sotto_i_filter_mask(const struct sotto_i_filter * filter, const float * base, const int32_t * tokens, int n,
                         float * mask);

/* Highest first timestamp for a bound in seconds. */
int sotto_i_filter_max_initial(float seconds);

#endif
