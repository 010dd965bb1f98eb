/* SPDX-License-Identifier: MIT */
/* The long-form loop: window after window from seek on, each encoded, decoded, cut into segments; the cut tells where
 * the next one begins (spec 5.2 - 5.4, 5.8 - 5.10). */
#include <string.h>

#include "sotto/log.h"

#include "sample.h"

#define MIN_FRAMES   10  /* less than 100 ms is not looked at */
#define LATE_FRAMES  500 /* less than this left: drop_late_history */
#define MAX_PREVIOUS 224 /* tokens of earlier text in a prompt, the one that introduces it included */

struct run {
    struct sotto_state * state;
    const struct sotto_transcribe_params * params;
    const struct sotto_i_specials * specials;
    const float * samples;
    size_t n_samples;
    float max_log10;
    int64_t start, seek, end; /* frames */
    int n_frames;             /* of the window in hand */
    bool detect;              /* the language is not known yet */
    bool translate;
    struct sotto_i_filter filter;
    int32_t history[MAX_PREVIOUS - 1]; /* the newest tokens of earlier text */
    int n_history, max_history;
    struct sotto_i_sampled sampled;
    struct sotto_i_cut cut;
};

struct sotto_transcribe_params sotto_transcribe_default_params(void) {
    struct sotto_transcribe_params p = { 0 };
    p.size = sizeof(p);
    p.n_max_text_ctx = MAX_PREVIOUS;
    p.condition_on_previous_text = true;
    p.drop_late_history = true;
    p.suppress_blank = true;
    p.suppress_nst = true;
    p.early_end = true;
    p.max_initial_ts = 1.0f;
    p.compression_ratio_thold = 2.4f;
    p.no_speech_thold = 0.6f;
    p.logprob_thold = -1.0f;
    p.pad_mode = SOTTO_PAD_ZERO;
    return p;
}

/* ---- before the first window ---- */

static enum sotto_status bad_param(const char * field, const char * want) {
    return sotto_fail(SOTTO_E_PARAM, "sotto_transcribe: params.%s must be %s", field, want);
}

static enum sotto_status check_params(const struct sotto_transcribe_params * p) {
    if (p->size < sizeof(*p))
        return bad_param("size", "set by sotto_transcribe_default_params()");
    if (p->n_threads < 0 || p->n_threads > SOTTO_MAX_N_THREADS)
        return bad_param("n_threads", "0..512");
    if (p->n_max_text_ctx < 0)
        return bad_param("n_max_text_ctx", "0 or more");
    if (p->max_tokens < 0)
        return bad_param("max_tokens", "0 or more");
    if (p->offset < 0 || p->duration < 0)
        return bad_param("offset and duration", "0 or more");
    if (p->pad_mode != SOTTO_PAD_ZERO && p->pad_mode != SOTTO_PAD_SILENCE)
        return bad_param("pad_mode", "SOTTO_PAD_ZERO or SOTTO_PAD_SILENCE");
    return SOTTO_OK;
}

static enum sotto_status set_language(struct run * r) {
    struct sotto_state * s = r->state;
    const char * language = r->params->language;
    s->language = -1;
    s->n_language_probs = 0;
    r->detect = sotto_i_language_is_auto(language);
    r->translate = r->params->translate && r->specials->multilingual;
    if (r->params->translate && !r->translate)
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: an English-only model cannot translate; transcribing\n");
    if (r->detect)
        return SOTTO_OK;
    int id = sotto_language_id(language);
    if (id < 0)
        return sotto_fail(SOTTO_E_LANGUAGE, "sotto_transcribe: language \"%.32s\" is not known; use a code such as en",
                          language);
    if (id >= r->specials->n_languages)
        return sotto_fail(SOTTO_E_LANGUAGE, "sotto_transcribe: this model does not know %s", sotto_language_name(id));
    if (id != 0 && !r->specials->multilingual) {
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: an English-only model transcribes English\n");
        id = 0;
    }
    s->language = id;
    return SOTTO_OK;
}

static void set_filter(struct run * r) {
    const struct sotto_transcribe_params * p = r->params;
    struct sotto_i_filter * f = &r->filter;
    f->specials = r->specials;
    f->timestamps = !p->no_timestamps && r->state->model->hp.timestamps;
    if (!p->no_timestamps && !f->timestamps)
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: the model was trained without timestamps; none are made\n");
    f->suppress_blank = p->suppress_blank;
    f->blank = sotto_i_tokenizer_blank(r->state->model->tokenizer);
    f->max_tokens = p->max_tokens;
    f->max_initial = sotto_i_filter_max_initial(p->max_initial_ts);
    if (p->suppress_nst)
        f->suppress = sotto_i_tokenizer_non_speech(r->state->model->tokenizer, &f->n_suppress);
    sotto_i_filter_base(f, r->state->base_mask);
}

/* The frames to look at: offset .. offset + duration, inside the sound. */
static void set_range(struct run * r) {
    int64_t content = sotto_i_mel_content_frames(r->n_samples);
    r->start = r->params->offset < content ? r->params->offset : content;
    r->end = content;
    if (r->params->duration > 0 && r->params->duration < content - r->start)
        r->end = r->start + r->params->duration;
    r->seek = r->start;
}

/* ---- history ---- */

static void keep_history(struct run * r, const int32_t * tokens, int n) {
    int max = (int)(sizeof(r->history) / sizeof(r->history[0]));
    if (n > max) {
        tokens += n - max;
        n = max;
    }
    int drop = r->n_history + n > max ? r->n_history + n - max : 0;
    memmove(r->history, r->history + drop, (size_t)(r->n_history - drop) * sizeof(*r->history));
    r->n_history -= drop;
    memcpy(r->history + r->n_history, tokens, (size_t)n * sizeof(*tokens));
    r->n_history += n;
}

/* Most history tokens in a prompt, so that it leaves room in the context for what it introduces and one token more. */
static int history_limit(const struct run * r) {
    int room = r->state->model->hp.n_text_ctx - 6;
    int limit = r->params->n_max_text_ctx < MAX_PREVIOUS ? r->params->n_max_text_ctx : MAX_PREVIOUS;
    limit = limit < room ? limit : room;
    return limit > 1 ? limit - 1 : 0;
}

/* " " and the prompt without outer white space, as tokens. */
static enum sotto_status encode_prompt(struct run * r, const char * text, size_t size) {
    struct sotto_state * s = r->state;
    s->scratch.size = 0;
    enum sotto_status status = sotto_i_text_append(&s->scratch, s->allocator, " ", 1);
    if (status == SOTTO_OK)
        status = sotto_i_text_append(&s->scratch, s->allocator, text, size);
    if (status != SOTTO_OK)
        return status;
    size_t max = s->scratch.size, n = 0;
    int32_t * ids = sotto_malloc(s->allocator, max, sizeof(*ids));
    if (!ids)
        return SOTTO_E_MEMORY;
    status = sotto_i_tokenizer_encode(s->model->tokenizer, s->scratch.data, s->scratch.size, ids, max, &n);
    if (status == SOTTO_OK) {
        size_t keep = n < (size_t)r->max_history ? n : (size_t)r->max_history;
        if (keep < n)
            sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: the prompt has %zu tokens, its last %zu are used\n", n, keep);
        keep_history(r, ids + (n - keep), (int)keep);
    }
    sotto_mfree(s->allocator, ids, max, sizeof(*ids));
    return status;
}

static enum sotto_status set_prompt(struct run * r) {
    r->max_history = history_limit(r);
    if (!r->params->initial_prompt)
        return SOTTO_OK;
    size_t size = strlen(r->params->initial_prompt);
    const char * text = sotto_i_trim(r->params->initial_prompt, &size);
    return size > 0 ? encode_prompt(r, text, size) : SOTTO_OK;
}

/* ---- one window ---- */

/* The prompt into state->prompt; where start-of-transcript is in it. */
static int make_prompt(struct run * r, int * n_prompt) {
    int32_t * prompt = r->state->prompt;
    int n = 0, h = r->n_history < r->max_history ? r->n_history : r->max_history;
    if (h > 0) {
        prompt[n++] = r->specials->prev;
        memcpy(prompt + n, r->history + (r->n_history - h), (size_t)h * sizeof(*prompt));
        n += h;
    }
    int sot = n;
    prompt[n++] = r->specials->sot;
    if (r->specials->multilingual) {
        prompt[n++] = r->specials->language0 + r->state->language;
        prompt[n++] = r->translate ? r->specials->translate : r->specials->transcribe;
    }
    if (!r->filter.timestamps)
        prompt[n++] = r->specials->no_timestamps;
    *n_prompt = n;
    return sot;
}

static int token_limit(const struct run * r, int n_prompt) {
    int limit = r->state->model->hp.n_text_ctx - n_prompt;
    if (limit > SOTTO_I_MAX_SAMPLED)
        limit = SOTTO_I_MAX_SAMPLED;
    if (!r->filter.timestamps && r->params->max_tokens > 0 && r->params->max_tokens < limit)
        limit = r->params->max_tokens;
    return limit;
}

static int early_frames(const struct run * r) {
    int64_t left = r->end - r->seek - MIN_FRAMES;
    if (!r->params->early_end || !r->filter.timestamps)
        return -1;
    return left < SOTTO_I_WINDOW_FRAMES ? (int)left : SOTTO_I_WINDOW_FRAMES + 1;
}

static enum sotto_status decode_window(struct run * r, struct sotto_window * window) {
    struct sotto_state * s = r->state;
    if (r->detect) {
        enum sotto_status status = sotto_i_detect_language(s);
        if (status != SOTTO_OK)
            return status;
        r->detect = false;
    }
    struct sotto_i_sample_params p = { .filter = &r->filter, .base_mask = s->base_mask, .prompt = s->prompt };
    p.sot = make_prompt(r, &p.n_prompt);
    p.limit = token_limit(r, p.n_prompt);
    p.early_frames = early_frames(r);
    window->n_prompt = p.n_prompt;
    return sotto_i_sample_greedy(s, &p, &r->sampled);
}

/* The bytes of text tokens among n tokens, in state->scratch. */
static enum sotto_status gather_text(struct run * r, const int32_t * ids, int n) {
    struct sotto_state * s = r->state;
    s->scratch.size = 0;
    enum sotto_status status = sotto_i_text_append(&s->scratch, s->allocator, "", 0);
    for (int i = 0; i < n && status == SOTTO_OK; i++) {
        if (ids[i] >= r->specials->eot)
            continue;
        size_t size;
        const char * bytes = sotto_i_tokenizer_bytes(s->model->tokenizer, ids[i], &size);
        status = sotto_i_text_append(&s->scratch, s->allocator, bytes, size);
    }
    return status;
}

static enum sotto_status measure(struct run * r, struct sotto_window * window) {
    const struct sotto_i_sampled * sampled = &r->sampled;
    enum sotto_status status = gather_text(r, sampled->ids, sampled->n);
    if (status != SOTTO_OK)
        return status;
    window->n_tokens = sampled->n;
    window->sum_logprob = sampled->sum;
    window->avg_logprob = (float)(sampled->sum / (sampled->n + 1));
    window->no_speech_prob = sampled->no_speech_prob;
    window->compression_ratio = sotto_i_ratio_of(r->state->ratio, r->state->scratch.data, r->state->scratch.size);
    window->skipped =
        window->no_speech_prob > r->params->no_speech_thold && !(window->avg_logprob > r->params->logprob_thold);
    return sotto_i_result_add_window(&r->state->result, window, sampled->ids, sampled->plogs);
}

/* Segments without length or text are dropped, and their tokens are no history either. */
static enum sotto_status add_slice(struct run * r, const struct sotto_i_slice * slice,
                                   const struct sotto_window * window) {
    struct sotto_state * s = r->state;
    const int32_t * ids = r->sampled.ids + slice->first;
    int n = slice->end - slice->first;
    enum sotto_status status = gather_text(r, ids, n);
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
    keep_history(r, ids, n);
    return sotto_i_result_add_segment(&s->result, &segment, s->scratch.data, s->scratch.size, slice->first, n);
}

static enum sotto_status emit(struct run * r, const struct sotto_window * window) {
    struct sotto_state * s = r->state;
    int before = sotto_n_segments(s);
    const struct sotto_i_cut_params p = { .specials = r->specials,
                                          .seek = r->seek,
                                          .n_frames = r->n_frames,
                                          .timestamps = r->filter.timestamps,
                                          .limited =
                                              r->params->max_tokens > 0 && r->sampled.n > r->params->max_tokens };
    sotto_i_cut_window(&p, r->sampled.ids, r->sampled.n, &r->cut);
    for (int i = 0; i < r->cut.n; i++) {
        enum sotto_status status = add_slice(r, &r->cut.slices[i], window);
        if (status != SOTTO_OK)
            return status;
    }
    /* text that goes in circles would go on doing so in the next window */
    if (!r->params->condition_on_previous_text || window->compression_ratio > r->params->compression_ratio_thold)
        r->n_history = 0;
    r->seek = r->cut.seek;
    int n_new = sotto_n_segments(s) - before;
    if (n_new > 0 && r->params->new_segment)
        r->params->new_segment(s, n_new, r->params->new_segment_user_data);
    return SOTTO_OK;
}

static enum sotto_status skip_window(struct run * r, struct sotto_window * window) {
    window->skipped = true;
    r->seek += r->n_frames;
    return sotto_i_result_add_window(&r->state->result, window, NULL, NULL);
}

static enum sotto_status run_window(struct run * r) {
    struct sotto_state * s = r->state;
    bool silent;
    r->n_frames = r->end - r->seek < SOTTO_I_WINDOW_FRAMES ? (int)(r->end - r->seek) : SOTTO_I_WINDOW_FRAMES;
    struct sotto_window window = { .seek = r->seek, .n_frames = r->n_frames };
    s->encoded = false;
    enum sotto_status status = sotto_i_mel_window(s->transform, r->samples, r->n_samples, r->seek, r->n_frames,
                                                  r->max_log10, r->params->pad_mode, sotto_get_data(s->mel), &silent);
    if (status != SOTTO_OK)
        return status;
    if (silent)
        return skip_window(r, &window);
    if (r->params->drop_late_history && r->seek > r->start && r->end - r->seek < LATE_FRAMES)
        r->n_history = 0;
    status = sotto_i_encode(s);
    if (status == SOTTO_OK)
        status = decode_window(r, &window);
    if (status == SOTTO_OK)
        status = measure(r, &window);
    if (status != SOTTO_OK)
        return status;
    if (!window.skipped)
        return emit(r, &window);
    r->seek += r->n_frames;
    return SOTTO_OK;
}

/* ---- the loop ---- */

static void report(const struct run * r) {
    if (!r->params->progress)
        return;
    int64_t all = r->end - r->start, done = r->seek < r->end ? r->seek - r->start : all;
    int percent = all > 0 && done < all ? (int)(100 * done / all) : 100;
    r->params->progress(r->state, percent, r->params->progress_user_data);
}

static bool wants_abort(const struct run * r) {
    return r->params->abort && r->params->abort(r->params->abort_user_data);
}

static enum sotto_status run_windows(struct run * r) {
    enum sotto_status status = SOTTO_OK;
    while (status == SOTTO_OK && r->end - r->seek >= MIN_FRAMES) {
        report(r);
        if (wants_abort(r))
            return sotto_fail(SOTTO_E_ABORTED, "sotto_transcribe: the caller asked to stop at frame %lld",
                              (long long)r->seek);
        status = run_window(r);
    }
    if (status == SOTTO_OK) {
        r->seek = r->end;
        report(r);
    }
    return status;
}

static enum sotto_status prepare(struct run * r) {
    enum sotto_status status = check_params(r->params);
    if (status == SOTTO_OK)
        status = sotto_i_check_samples("sotto_transcribe", r->samples, r->n_samples);
    if (status == SOTTO_OK)
        status = set_language(r);
    if (status != SOTTO_OK)
        return status;
    set_filter(r);
    set_range(r);
    if (sotto_i_mel_content_frames(r->n_samples) < MIN_FRAMES)
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: less than 100 ms of sound\n");
    return set_prompt(r);
}

static enum sotto_status transcribe(struct run * r) {
    struct sotto_state * s = r->state;
    enum sotto_status status = prepare(r);
    if (status != SOTTO_OK || r->end - r->seek < MIN_FRAMES)
        return status;
    if (r->params->n_threads > 0)
        status = sotto_backend_cpu_set_n_threads(s->backend, r->params->n_threads);
    if (status != SOTTO_OK)
        return status;
    sotto_backend_set_abort_callback(s->backend, r->params->abort, r->params->abort_user_data);
    status = sotto_i_mel_max(s->transform, r->samples, r->n_samples, &r->max_log10);
    if (status == SOTTO_OK)
        status = run_windows(r);
    sotto_backend_set_abort_callback(s->backend, NULL, NULL);
    if (r->params->n_threads > 0) { /* the next call's are its own affair; the pool was that large before */
        enum sotto_status back = sotto_backend_cpu_set_n_threads(s->backend, s->n_threads);
        status = status == SOTTO_OK ? back : status;
    }
    return status;
}

enum sotto_status sotto_transcribe(struct sotto_state * state, const float * samples, size_t n_samples,
                                   const struct sotto_transcribe_params * params) {
    enum sotto_status status = sotto_i_state_enter(state, "sotto_transcribe");
    if (status != SOTTO_OK)
        return status;
    struct sotto_transcribe_params defaults = sotto_transcribe_default_params();
    struct run r = {
        .state = state, .params = params ? params : &defaults, .samples = samples, .n_samples = n_samples
    };
    r.specials = sotto_i_model_specials(state->model);
    sotto_i_result_clear(&state->result);
    status = transcribe(&r);
    sotto_i_state_leave(state);
    return status;
}
