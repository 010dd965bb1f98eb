/* SPDX-License-Identifier: MIT */
/* The long-form loop: window after window, each telling where the next one begins (spec 5.2). */
#include <math.h>

#include "sotto/log.h"

#include "run.h"

/* The frames to look at: offset .. offset + duration, inside the sound. */
static void set_range(struct sotto_i_run * r) {
    r->content = sotto_i_mel_content_frames(r->n_samples);
    r->start = r->params->offset < r->content ? r->params->offset : r->content;
    r->end = r->content;
    if (r->params->duration > 0 && r->params->duration < r->content - r->start)
        r->end = r->start + r->params->duration;
    r->seek = r->start;
}

static void report(const struct sotto_i_run * r) {
    if (!r->params->progress)
        return;
    int64_t all = r->end - r->start, done = r->seek < r->end ? r->seek - r->start : all;
    int percent = all > 0 && done < all ? (int)(100 * done / all) : 100;
    r->params->progress(r->state, percent, r->params->progress_user_data);
}

static bool wants_abort(const struct sotto_i_run * r) {
    return r->params->abort && r->params->abort(r->params->abort_user_data);
}

static enum sotto_status run_clip(struct sotto_i_run * r, int64_t start, int64_t end) {
    enum sotto_status status = SOTTO_OK;
    r->seek = r->clip_start = start;
    r->clip_end = end;
    while (status == SOTTO_OK && end - r->seek >= SOTTO_I_MIN_FRAMES) {
        report(r);
        if (wants_abort(r))
            return sotto_fail(SOTTO_E_ABORTED, "sotto_transcribe: the caller asked to stop at frame %lld",
                              (long long)r->seek);
        status = sotto_i_run_window(r);
    }
    return status;
}

/* The frame of clip time i, inside the range. */
static int64_t clip_frame(const struct sotto_i_run * r, int i) {
    if (i >= r->params->n_clip_times)
        return r->end;
    double frame = floor(100 * r->params->clip_times[i] + 0.5);
    if (frame < (double)r->start)
        return r->start;
    return frame < (double)r->end ? (int64_t)frame : r->end;
}

static enum sotto_status run_clips(struct sotto_i_run * r) {
    enum sotto_status status = r->params->n_clip_times == 0 ? run_clip(r, r->start, r->end) : SOTTO_OK;
    for (int i = 0; i < r->params->n_clip_times && status == SOTTO_OK; i += 2)
        status = run_clip(r, clip_frame(r, i), clip_frame(r, i + 1));
    if (status == SOTTO_OK) {
        r->seek = r->end;
        report(r);
    }
    return status;
}

static enum sotto_status prepare(struct sotto_i_run * r) {
    enum sotto_status status = sotto_i_run_check(r);
    if (status == SOTTO_OK)
        status = sotto_i_check_samples("sotto_transcribe", r->samples, r->n_samples);
    if (status == SOTTO_OK)
        status = sotto_i_run_set_language(r);
    if (status == SOTTO_OK)
        status = sotto_i_run_set_filter(r);
    if (status != SOTTO_OK)
        return status;
    set_range(r);
    if (r->content < SOTTO_I_MIN_FRAMES)
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: less than 100 ms of sound\n");
    return sotto_i_run_set_prompts(r);
}

static enum sotto_status transcribe(struct sotto_i_run * r) {
    struct sotto_state * s = r->state;
    enum sotto_status status = prepare(r);
    if (status != SOTTO_OK || r->end - r->start < SOTTO_I_MIN_FRAMES)
        return status;
    if (r->params->n_threads > 0)
        status = sotto_backend_cpu_set_n_threads(s->backend, r->params->n_threads);
    if (status != SOTTO_OK)
        return status;
    sotto_backend_set_abort_callback(s->backend, r->params->abort, r->params->abort_user_data);
    status = sotto_i_mel_max(s->transform, r->samples, r->n_samples, &r->max_log10);
    if (status == SOTTO_OK)
        status = run_clips(r);
    sotto_backend_set_abort_callback(s->backend, NULL, NULL);
    if (r->params->n_threads > 0) { /* the next call's are its own affair; the pool was that large before */
        enum sotto_status back = sotto_backend_cpu_set_n_threads(s->backend, s->n_threads);
        status = status == SOTTO_OK ? back : status;
    }
    return status;
}

/* A run is too large for the stacks that threads may have. */
static enum sotto_status start(struct sotto_state * state, const float * samples, size_t n_samples,
                               const struct sotto_transcribe_params * params) {
    struct sotto_i_run * run = sotto_calloc(state->allocator, 1, sizeof(*run));
    if (!run)
        return SOTTO_E_MEMORY;
    run->state = state;
    run->params = params;
    run->samples = samples;
    run->n_samples = n_samples;
    run->specials = sotto_i_model_specials(state->model);
    enum sotto_status status = transcribe(run);
    sotto_mfree(state->allocator, run, 1, sizeof(*run));
    return status;
}

enum sotto_status sotto_transcribe(struct sotto_state * state, const float * samples, size_t n_samples,
                                   const struct sotto_transcribe_params * params) {
    enum sotto_status status = sotto_i_state_enter(state, "sotto_transcribe");
    if (status != SOTTO_OK)
        return status;
    const struct sotto_transcribe_params defaults = sotto_transcribe_default_params();
    sotto_i_result_clear(&state->result);
    status = start(state, samples, n_samples, params ? params : &defaults);
    sotto_i_state_leave(state);
    return status;
}
