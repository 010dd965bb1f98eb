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

void sotto_i_sampled_begin(struct sotto_i_sampled * sampled, const struct sotto_i_sample_params * params, int index) {
    sampled->n = params->n_prefix;
    sampled->sum = 0;
    sampled->ended = false;
    sampled->no_speech_prob = 0;
    sampled->random = params->seed + (uint64_t)index;
    for (int i = 0; i < params->n_prefix; i++) {
        int32_t id = params->prompt[params->n_prompt - params->n_prefix + i];
        sampled->ids[i] = id;
        sampled->choices[i] = (struct sotto_i_choice){ .id = id, .tid = params->filter->specials->beg };
    }
}

bool sotto_i_sampled_extend(struct sotto_i_sampled * sampled, const struct sotto_i_sample_params * params,
                            const struct sotto_i_choice * choice, bool early) {
    sampled->sum += choice->plog;
    sampled->ended = choice->id == params->filter->specials->eot;
    if (sampled->ended)
        return true;
    sampled->ids[sampled->n] = choice->id;
    sampled->choices[sampled->n++] = *choice;
    sampled->ended = early && comes_late(params, choice->id);
    return sampled->ended || sampled->n >= params->limit;
}

enum sotto_status sotto_i_sample_greedy(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                        struct sotto_i_sampled * sampled) {
    const int32_t * next = params->prompt;
    int n_next = params->n_prompt, n_past = 0, sot = params->sot;
    sotto_i_sampled_begin(sampled, params, 0);
    for (;;) {
        struct sotto_i_choice choice;
        set_mask(state, params, sampled);
        enum sotto_status status = sotto_i_decoder_run(&state->decoder, next, n_next, n_past, sot);
        if (status == SOTTO_OK)
            status = choose(state, &choice);
        if (status != SOTTO_OK)
            return status;
        sampled->no_speech_prob = state->decoder.no_speech_prob;
        if (sotto_i_sampled_extend(sampled, params, &choice, true))
            return SOTTO_OK;
        n_past += n_next;
        next = &sampled->ids[sampled->n - 1];
        n_next = 1;
        sot = -1;
    }
}
