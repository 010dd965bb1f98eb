/* SPDX-License-Identifier: MIT */
/* All live sequences have the same length. The prompt is run once, as in greedy decoding; beam 0 repeats its last token
 * in the graph of the beams, and what follows from there is one step of all beams after the other. After each the live
 * ones are chosen anew, and the cache's tables follow. */
#include <math.h>
#include <stdlib.h>

#include "search.h"

/* ---- memory ---- */

struct sotto_i_search * sotto_i_search_new(int n_beams, const struct sotto_allocator * allocator) {
    size_t n = (size_t)n_beams;
    struct sotto_i_search * s = sotto_calloc(allocator, 1, sizeof(*s));
    if (!s)
        return NULL;
    s->n_beams = n_beams;
    s->live = sotto_calloc(allocator, n, sizeof(*s->live));
    s->next = sotto_calloc(allocator, n, sizeof(*s->next));
    s->finished = sotto_calloc(allocator, SOTTO_I_MAX_FINISHED, sizeof(*s->finished));
    s->candidates = sotto_calloc(allocator, n * (n + 1), sizeof(*s->candidates));
    if (s->live && s->next && s->finished && s->candidates)
        return s;
    sotto_i_search_free(s, allocator);
    return NULL;
}

void sotto_i_search_free(struct sotto_i_search * search, const struct sotto_allocator * allocator) {
    if (!search)
        return;
    size_t n = (size_t)search->n_beams;
    sotto_mfree(allocator, search->live, n, sizeof(*search->live));
    sotto_mfree(allocator, search->next, n, sizeof(*search->next));
    sotto_mfree(allocator, search->finished, SOTTO_I_MAX_FINISHED, sizeof(*search->finished));
    sotto_mfree(allocator, search->candidates, n * (n + 1), sizeof(*search->candidates));
    sotto_mfree(allocator, search, 1, sizeof(*search));
}

enum sotto_status sotto_i_search_reserve(struct sotto_state * state, int n_beams) {
    if (state->search && state->search->n_beams >= n_beams)
        return SOTTO_OK;
    struct sotto_i_decoder decoder;
    enum sotto_status status = sotto_i_state_make_decoder(state, n_beams, &decoder);
    struct sotto_i_search * search = status == SOTTO_OK ? sotto_i_search_new(n_beams, state->allocator) : NULL;
    if (!search) {
        sotto_i_decoder_free(&decoder);
        return status == SOTTO_OK ? SOTTO_E_MEMORY : status;
    }
    sotto_i_decoder_free(&state->decoder);
    sotto_i_search_free(state->search, state->allocator);
    state->decoder = decoder;
    state->search = search;
    return SOTTO_OK;
}

/* ---- steps ---- */

/* Run the prompt, and n sequences stand behind it. */
static enum sotto_status begin(struct sotto_state * state, const struct sotto_i_sample_params * p) {
    struct sotto_i_search * s = state->search;
    int n = p->n_prompt - 1 > p->sot ? p->n_prompt - 1 : p->sot + 1;
    enum sotto_status status = sotto_i_decoder_run(&state->decoder, p->prompt, n, 0, p->sot);
    if (status != SOTTO_OK)
        return status;
    sotto_i_decoder_branch(&state->decoder, p->n_prompt);
    sotto_i_decoder_set_temperature(&state->decoder, p->temperature);
    s->n_live = p->n_beams;
    s->n_finished = 0;
    for (int i = 0; i < p->n_beams; i++) {
        sotto_i_sampled_begin(&s->live[i], p, i);
        s->live[i].no_speech_prob = state->decoder.no_speech_prob;
    }
    return SOTTO_OK;
}

/* Columns of the next step: behind the prompt all sequences are one. */
static int n_columns(const struct sotto_i_search * s, const struct sotto_i_sample_params * p) {
    return s->live[0].n == p->n_prefix ? 1 : s->n_live;
}

/* Of the newest tokens. */
static int position(const struct sotto_i_search * s, const struct sotto_i_sample_params * p) {
    return p->n_prompt - 1 + s->live[0].n - p->n_prefix;
}

static enum sotto_status run(struct sotto_state * state, const struct sotto_i_sample_params * p) {
    struct sotto_i_search * s = state->search;
    int32_t tokens[SOTTO_MAX_DECODERS];
    int n = n_columns(s, p);
    for (int i = 0; i < n; i++) {
        const struct sotto_i_sampled * live = &s->live[i];
        tokens[i] = live->n > p->n_prefix ? live->ids[live->n - 1] : p->prompt[p->n_prompt - 1];
        sotto_i_filter_mask(p->filter, p->base_mask, live->ids, live->n, sotto_i_decoder_beam_mask(&state->decoder, i));
    }
    return sotto_i_decoder_run_beams(&state->decoder, tokens, n, position(s, p));
}

/* s->next holds the n sequences that live on, from those of `parents`. */
static void go_on(struct sotto_state * state, const struct sotto_i_sample_params * p, const int * parents, int n) {
    struct sotto_i_search * s = state->search;
    sotto_i_kvcache_follow(&state->decoder.cache, parents, n, position(s, p) + 1);
    struct sotto_i_sampled * live = s->next;
    s->next = s->live;
    s->live = live;
    s->n_live = n;
}

static double rank(const struct sotto_i_sampled * sampled, float length_penalty) {
    double n = sampled->n > 1 ? sampled->n : 1;
    return length_penalty < 0 ? sampled->sum / n : sampled->sum / pow((5 + n) / 6, (double)length_penalty);
}

static void take_best(const struct sotto_i_search * s, float length_penalty, struct sotto_i_sampled * best) {
    int winner = 0;
    for (int i = 1; i < s->n_finished; i++)
        if (rank(&s->finished[i], length_penalty) > rank(&s->finished[winner], length_penalty))
            winner = i;
    *best = s->finished[winner];
}

/* ---- beams ---- */

static int by_score(const void * left, const void * right) {
    const struct sotto_i_candidate *a = left, *b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->beam != b->beam)
        return a->beam - b->beam;
    return a->choice.id < b->choice.id ? -1 : a->choice.id > b->choice.id;
}

/* The n_beams + 1 best tokens of each beam, best scores first; how many. */
static int gather(const struct sotto_state * state, const struct sotto_i_sample_params * p) {
    struct sotto_i_search * s = state->search;
    struct sotto_i_choice choices[SOTTO_I_MAX_TOP];
    struct sotto_i_ranking ranking;
    int n = 0, n_beams = n_columns(s, p);
    for (int beam = 0; beam < n_beams; beam++) {
        sotto_i_decoder_ranking(&state->decoder, beam, p->n_beams + 1, &ranking);
        int found = sotto_i_choose_best(&ranking, p->n_beams + 1, choices);
        for (int i = 0; i < found; i++)
            s->candidates[n++] = (struct sotto_i_candidate){ s->live[beam].sum + choices[i].plog, beam, choices[i] };
    }
    qsort(s->candidates, (size_t)n, sizeof(*s->candidates), by_score);
    return n;
}

/* Best first, candidates finish or live on, until there are enough of the living; how many. */
static int walk(struct sotto_i_search * s, const struct sotto_i_sample_params * p, int n_candidates, int * parents) {
    int n_next = 0;
    for (int i = 0; i < n_candidates && n_next < p->n_beams; i++) {
        const struct sotto_i_candidate * c = &s->candidates[i];
        struct sotto_i_sampled * next = &s->next[n_next];
        *next = s->live[c->beam];
        sotto_i_sampled_extend(next, p, &c->choice, false);
        if (!next->ended)
            parents[n_next++] = c->beam;
        else if (s->n_finished < p->max_finished)
            s->finished[s->n_finished++] = *next;
    }
    return n_next;
}

static enum sotto_status advance_beams(struct sotto_state * state, const struct sotto_i_sample_params * p) {
    int parents[SOTTO_MAX_DECODERS];
    struct sotto_i_search * s = state->search;
    enum sotto_status status = run(state, p);
    if (status != SOTTO_OK)
        return status;
    int n = walk(s, p, gather(state, p), parents);
    if (n == 0 && s->n_finished == 0) /* the filters leave nothing */
        s->finished[s->n_finished++] = s->live[0];
    go_on(state, p, parents, n);
    return SOTTO_OK;
}

enum sotto_status sotto_i_search_beams(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                       struct sotto_i_sampled * best) {
    struct sotto_i_search * s = state->search;
    enum sotto_status status = begin(state, params);
    bool done = false;
    while (status == SOTTO_OK && !done) {
        status = advance_beams(state, params);
        done = s->n_live == 0 || s->live[0].n >= params->limit || s->n_finished >= params->max_finished;
    }
    if (status != SOTTO_OK)
        return status;
    for (int i = 0; i < s->n_live && s->n_finished < params->n_beams; i++)
        s->finished[s->n_finished++] = s->live[i];
    take_best(s, params->length_penalty, best);
    return SOTTO_OK;
}

/* ---- drawing ---- */

/* SplitMix64: a number in [0, 1). */
static double draw(uint64_t * state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static struct sotto_i_choice draw_token(const struct sotto_state * state, int column, uint64_t * random) {
    const struct sotto_i_decoder * d = &state->decoder;
    const struct sotto_i_specials * sp = sotto_i_model_specials(state->model);
    struct sotto_i_ranking ranking;
    sotto_i_decoder_ranking(d, column, 1, &ranking);
    return sotto_i_choose_drawn(&ranking, sotto_i_decoder_beam_probs(d, column), sotto_i_decoder_beam_drawn(d, column),
                                sp->n_vocab, sp->beg, draw(random));
}

static enum sotto_status advance_draws(struct sotto_state * state, const struct sotto_i_sample_params * p) {
    struct sotto_i_search * s = state->search;
    int parents[SOTTO_MAX_DECODERS], n_next = 0, n = n_columns(s, p);
    enum sotto_status status = run(state, p);
    if (status != SOTTO_OK)
        return status;
    for (int i = 0; i < s->n_live; i++) {
        struct sotto_i_sampled * next = &s->next[n_next];
        *next = s->live[i];
        struct sotto_i_choice choice = draw_token(state, i < n ? i : 0, &next->random);
        if (sotto_i_sampled_extend(next, p, &choice, true))
            s->finished[s->n_finished++] = *next;
        else
            parents[n_next++] = i < n ? i : 0;
    }
    go_on(state, p, parents, n_next);
    return SOTTO_OK;
}

enum sotto_status sotto_i_search_draw(struct sotto_state * state, const struct sotto_i_sample_params * params,
                                      struct sotto_i_sampled * best) {
    enum sotto_status status = begin(state, params);
    while (status == SOTTO_OK && state->search->n_live > 0)
        status = advance_draws(state, params);
    if (status == SOTTO_OK)
        take_best(state->search, params->length_penalty, best);
    return status;
}
