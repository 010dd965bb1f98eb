/* SPDX-License-Identifier: MIT */
/* The mask is set before a step, the step computes logits and what choosing needs of them, the choice is made. */
#include "sample.h"

static void set_mask(struct sotto_state * state, const struct sotto_i_sample_params * p,
                     const struct sotto_i_sampled * sampled) {
    sotto_i_filter_mask(p->filter, p->base_mask, sampled->ids, sampled->n, sotto_i_decoder_mask(&state->decoder));
}

static bool comes_late(const struct sotto_i_sample_params * p, int32_t id) {
    int32_t step = id - p->filter->specials->beg;
    return p->early_frames >= 0 && step > 0 && 2 * step >= p->early_frames;
}

static enum sotto_status choose(struct sotto_state * state, struct sotto_i_choice * choice) {
    struct sotto_i_candidates candidates;
    enum sotto_status status = sotto_i_decoder_candidates(&state->decoder, &candidates);
    if (status == SOTTO_OK)
        *choice = sotto_i_choose(&candidates);
    return status;
}

enum sotto_status sotto_i_sample_greedy(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                        struct sotto_i_sampled * sampled) {
    const int32_t * next = params->prompt;
    int n_next = params->n_prompt, n_past = 0, sot = params->sot;
    sampled->n = 0;
    sampled->sum = 0;
    for (;;) {
        struct sotto_i_choice choice;
        set_mask(state, params, sampled);
        enum sotto_status status = sotto_i_decoder_run(&state->decoder, next, n_next, n_past, sot);
        if (status == SOTTO_OK)
            status = choose(state, &choice);
        if (status != SOTTO_OK)
            return status;
        sampled->no_speech_prob = state->decoder.no_speech_prob;
        sampled->sum += choice.plog;
        if (choice.id == params->filter->specials->eot)
            return SOTTO_OK;
        sampled->ids[sampled->n] = choice.id;
        sampled->plogs[sampled->n++] = choice.plog;
        if (sampled->n >= params->limit || comes_late(params, choice.id))
            return SOTTO_OK;
        n_past += n_next;
        next = &sampled->ids[sampled->n - 1];
        n_next = 1;
        sot = -1;
    }
}
