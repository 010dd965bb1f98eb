/* SPDX-License-Identifier: MIT */
/* Several sequences on one window, one decoder step for all of them: beam search, and drawing at a temperature. */
#ifndef SOTTO_SPEECH_SEARCH_H
#define SOTTO_SPEECH_SEARCH_H

#include "sample.h"

#define SOTTO_I_MAX_FINISHED (2 * SOTTO_MAX_DECODERS) /* hypotheses that a beam search collects at most */

struct sotto_i_candidate {
    double score; /* sum of log-probabilities */
    int beam;
    struct sotto_i_choice choice;
};

struct sotto_i_search {
    int n_beams; /* room for */
    int n_live, n_finished;
    struct sotto_i_sampled *live, *next;   /* [n_beams] each */
    struct sotto_i_sampled * finished;     /* [SOTTO_I_MAX_FINISHED], in the order in which they finished */
    struct sotto_i_candidate * candidates; /* [n_beams * (n_beams + 1)] */
};

/* NULL and MEMORY on failure. */
struct sotto_i_search * sotto_i_search_new(int n_beams, const struct sotto_allocator * allocator);
void sotto_i_search_free(struct sotto_i_search * search, const struct sotto_allocator * allocator);

/* Make state->search and a decoder with room for n_beams, unless they are there. MEMORY: all is as before. */
enum sotto_status sotto_i_search_reserve(struct sotto_state * state, int n_beams);

/* Search with params->n_beams beams, or draw as many sequences; the best one into *best. Reserve before. The other
 * hypotheses stay in state->search->finished. */
enum sotto_status sotto_i_search_beams(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                       struct sotto_i_sampled * best);
enum sotto_status sotto_i_search_draw(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                      struct sotto_i_sampled * best);

#endif
