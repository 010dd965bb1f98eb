/* SPDX-License-Identifier: MIT */
/* One window: encoded, decoded at one temperature after the other until it goes well, cut into segments; the cut tells
 * where the next one begins (spec 5.8, 5.9). */
#include <math.h>

#include "run.h"
#include "search.h"
#include "slice_text.h"

#define LATE_FRAMES     500 /* less than this left: drop_late_history */
#define MAX_TEMPERATURE 1.000001
#define LOOP_STEPS      750  /* a window without an end and without a timestamp from here on, 15 s, goes in circles */
#define LAST_TOKENS     32   /* whose entropy is looked at */
#define FORGET          0.5f /* what was drawn at a temperature above is no part of later prompts */

/* ---- an attempt ---- */

/* Tokens of the result at most. */
static int token_limit(const struct sotto_i_run * r, const struct sotto_i_sample_params * p) {
    int limit = r->state->model->hp.n_text_ctx - p->n_prompt;
    limit = p->n_prefix + (limit < SOTTO_I_MAX_SAMPLED ? limit : SOTTO_I_MAX_SAMPLED);
    return limit < SOTTO_I_MAX_TOKENS ? limit : SOTTO_I_MAX_TOKENS;
}

/* The limit asked for, where nothing but the filters' rule 5 would keep it. */
static int asked_limit(const struct sotto_i_run * r, const struct sotto_i_sample_params * p, int limit) {
    int asked = r->params->max_tokens;
    if (asked == 0 || (r->filter.max_tokens > 0 && r->filter.timestamps))
        return limit;
    asked = asked > p->n_prefix ? asked : p->n_prefix + 1;
    return asked < limit ? asked : limit;
}

static int early_frames(const struct sotto_i_run * r) {
    int64_t left = r->content - r->seek - SOTTO_I_MIN_FRAMES;
    if (!r->params->early_end || !r->filter.timestamps)
        return -1;
    return left < SOTTO_I_WINDOW_FRAMES ? (int)left : SOTTO_I_WINDOW_FRAMES + 1;
}

static enum sotto_status sample(struct sotto_i_run * r, struct sotto_i_sample_params * p,
                                struct sotto_i_sampled * sampled) {
    bool draw = p->temperature > 0;
    p->n_beams = draw ? r->params->best_of : r->params->beam_size;
    if (!draw && p->n_beams == 1)
        return sotto_i_sample_greedy(r->state, p, sampled);
    enum sotto_status status = sotto_i_search_reserve(r->state, p->n_beams);
    if (status != SOTTO_OK)
        return status;
    return draw ? sotto_i_search_draw(r->state, p, sampled) : sotto_i_search_beams(r->state, p, sampled);
}

/* It ran to the limit without getting far. */
static bool is_loop(const struct sotto_i_run * r, const struct sotto_i_sampled * sampled, int limit) {
    if (!r->filter.timestamps || sampled->ended || sampled->n < limit)
        return false;
    for (int i = sampled->n - 1; i >= 0; i--)
        if (sampled->ids[i] >= r->specials->beg)
            return sampled->ids[i] - r->specials->beg < LOOP_STEPS;
    return true;
}

/* Many tokens, and few of them different: entropy over how often each occurs among the last ones. */
static bool is_monotonous(const struct sotto_i_run * r, const struct sotto_i_sampled * sampled) {
    if (!(r->params->entropy_thold > 0) || sampled->n <= LAST_TOKENS)
        return false;
    const int32_t * last = sampled->ids + sampled->n - LAST_TOKENS;
    double entropy = 0;
    for (int i = 0; i < LAST_TOKENS; i++) {
        int n = 0;
        for (int k = 0; k < LAST_TOKENS; k++)
            n += last[k] == last[i];
        entropy -= log((double)n / LAST_TOKENS) / LAST_TOKENS;
    }
    return entropy < (double)r->params->entropy_thold;
}

static enum sotto_status measure(struct sotto_i_run * r, struct sotto_i_attempt * a, float no_speech_prob, int limit) {
    const struct sotto_transcribe_params * p = r->params;
    struct sotto_state * s = r->state;
    enum sotto_status status =
        sotto_i_text_of(s->model->tokenizer, r->specials->eot, a->sampled.ids, a->sampled.n, &s->scratch, s->allocator);
    if (status != SOTTO_OK)
        return status;
    a->avg_logprob = (float)(a->sampled.sum / (a->sampled.n + 1));
    a->compression_ratio = sotto_i_ratio_of(s->ratio, s->scratch.data, s->scratch.size);
    bool unlikely = a->avg_logprob < p->logprob_thold;
    a->failed = a->compression_ratio > p->compression_ratio_thold || unlikely || is_loop(r, &a->sampled, limit) ||
                is_monotonous(r, &a->sampled);
    if (unlikely && no_speech_prob > p->no_speech_thold)
        a->failed = false;
    return SOTTO_OK;
}

/* Into run->tried. The first attempt tells whether there is speech. */
static enum sotto_status attempt(struct sotto_i_run * r, float temperature, struct sotto_window * window) {
    struct sotto_i_attempt * a = &r->tried;
    struct sotto_i_sample_params p = { .filter = &r->filter, .base_mask = r->state->base_mask };
    sotto_i_run_make_prompt(r, temperature, &p);
    int limit = token_limit(r, &p);
    p.limit = asked_limit(r, &p, limit);
    p.early_frames = early_frames(r);
    p.temperature = temperature;
    p.seed = r->params->seed;
    p.length_penalty = r->params->length_penalty;
    p.max_finished = (int)((double)r->params->beam_size * (double)r->params->patience + 0.5);
    a->n_prompt = p.n_prompt;
    enum sotto_status status = sample(r, &p, &a->sampled);
    if (status != SOTTO_OK)
        return status;
    if (window->n_attempts++ == 0)
        window->no_speech_prob = a->sampled.no_speech_prob;
    window->temperature = temperature;
    return measure(r, a, window->no_speech_prob, limit);
}

/* ---- fallback ---- */

/* Of attempts that all failed: one that does not repeat itself, then the likelier one. */
static bool is_better(const struct sotto_i_run * r, const struct sotto_i_attempt * a,
                      const struct sotto_i_attempt * b) {
    bool a_repeats = a->compression_ratio > r->params->compression_ratio_thold;
    bool b_repeats = b->compression_ratio > r->params->compression_ratio_thold;
    return a_repeats != b_repeats ? b_repeats : a->avg_logprob > b->avg_logprob;
}

/* Into run->kept. */
static enum sotto_status decode(struct sotto_i_run * r, struct sotto_window * window) {
    double temperature = (double)r->params->temperature, inc = (double)r->params->temperature_inc;
    for (int i = 0; i == 0 || (inc > 0 && temperature + i * inc <= MAX_TEMPERATURE); i++) {
        enum sotto_status status = attempt(r, (float)(temperature + i * inc), window);
        if (status != SOTTO_OK)
            return status;
        if (i == 0 || !r->tried.failed || is_better(r, &r->tried, &r->kept))
            r->kept = r->tried;
        if (!r->tried.failed)
            break;
    }
    return SOTTO_OK;
}

static enum sotto_status decode_window(struct sotto_i_run * r, struct sotto_window * window) {
    enum sotto_status status = r->detect ? sotto_i_run_detect(r) : SOTTO_OK;
    if (status == SOTTO_OK)
        status = decode(r, window);
    if (status != SOTTO_OK)
        return status;
    const struct sotto_i_attempt * a = &r->kept;
    window->language = r->state->language;
    window->n_prompt = a->n_prompt;
    window->n_tokens = a->sampled.n;
    window->sum_logprob = a->sampled.sum;
    window->avg_logprob = a->avg_logprob;
    window->compression_ratio = a->compression_ratio;
    window->skipped =
        window->no_speech_prob > r->params->no_speech_thold && !(window->avg_logprob > r->params->logprob_thold);
    r->prefix.n = 0;
    return sotto_i_result_add_window(&r->state->result, window, a->sampled.choices);
}

/* ---- segments ---- */

/* Segments without length or text are dropped, and their tokens are no history either. */
static enum sotto_status add_slice(struct sotto_i_run * r, int i, const struct sotto_window * window) {
    struct sotto_state * s = r->state;
    const struct sotto_i_slice * slice = &r->cut.slices[i];
    const struct sotto_i_slices all = { s->model->tokenizer, r->specials->eot, r->kept.sampled.ids, &r->cut };
    const int32_t * ids = r->kept.sampled.ids + slice->first;
    int n = slice->end - slice->first;
    enum sotto_status status = sotto_i_slice_text(&all, i, &s->scratch, s->allocator);
    size_t size = s->scratch.size;
    if (status != SOTTO_OK)
        return status;
    sotto_i_trim(s->scratch.data, &size);
    if (size == 0 || slice->t0 == slice->t1)
        return SOTTO_OK;
    struct sotto_segment segment = { .t0 = slice->t0, .t1 = slice->t1 };
    segment.avg_logprob = window->avg_logprob;
    segment.no_speech_prob = window->no_speech_prob;
    segment.compression_ratio = window->compression_ratio;
    segment.temperature = window->temperature;
    sotto_i_run_keep_history(r, ids, n);
    return sotto_i_result_add_segment(&s->result, &segment, s->scratch.data, s->scratch.size, slice->first, n);
}

static enum sotto_status emit(struct sotto_i_run * r, const struct sotto_window * window) {
    struct sotto_state * s = r->state;
    int before = sotto_n_segments(s), n = r->kept.sampled.n;
    const struct sotto_i_cut_params p = { .specials = r->specials,
                                          .seek = r->seek,
                                          .n_frames = r->n_frames,
                                          .timestamps = r->filter.timestamps && !r->params->single_segment,
                                          .limited = r->params->max_tokens > 0 && n > r->params->max_tokens };
    sotto_i_cut_window(&p, r->kept.sampled.ids, n, &r->cut);
    for (int i = 0; i < r->cut.n; i++) {
        enum sotto_status status = add_slice(r, i, window);
        if (status != SOTTO_OK)
            return status;
    }
    if (!r->params->condition_on_previous_text || window->temperature > FORGET)
        r->history.n = 0;
    r->seek = r->cut.seek;
    int n_new = sotto_n_segments(s) - before;
    if (n_new > 0 && r->params->new_segment)
        r->params->new_segment(s, n_new, r->params->new_segment_user_data);
    return SOTTO_OK;
}

/* ---- the window ---- */

static enum sotto_status skip_window(struct sotto_i_run * r, struct sotto_window * window) {
    window->skipped = true;
    r->seek += r->n_frames;
    return sotto_i_result_add_window(&r->state->result, window, NULL);
}

enum sotto_status sotto_i_run_window(struct sotto_i_run * run) {
    int64_t left = run->clip_end - run->seek;
    bool silent;
    run->n_frames = left < SOTTO_I_WINDOW_FRAMES ? (int)left : SOTTO_I_WINDOW_FRAMES;
    struct sotto_window window = { .seek = run->seek, .n_frames = run->n_frames, .language = -1 };
    enum sotto_status status = sotto_i_run_mel(run, run->seek, run->n_frames, &silent);
    if (status != SOTTO_OK)
        return status;
    if (silent)
        return skip_window(run, &window);
    if (run->params->drop_late_history && run->seek > run->start && left < LATE_FRAMES)
        run->history.n = 0;
    status = sotto_i_encode(run->state);
    if (status == SOTTO_OK)
        status = decode_window(run, &window);
    if (status != SOTTO_OK)
        return status;
    if (!window.skipped)
        return emit(run, &window);
    run->seek += run->n_frames;
    return SOTTO_OK;
}
