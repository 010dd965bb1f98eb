/* SPDX-License-Identifier: MIT */
/* What can be asked of sotto_transcribe: defaults, checks, and the filters that follow. */
#include <math.h>
#include <regex.h>

#include "sotto/log.h"

#include "run.h"
#include "search.h"

struct sotto_transcribe_params sotto_transcribe_default_params(void) {
    struct sotto_transcribe_params p = { 0 };
    p.size = sizeof(p);
    p.language_detection_segments = 1;
    p.language_detection_threshold = 0.5f;
    p.n_max_text_ctx = SOTTO_I_MAX_PREVIOUS;
    p.condition_on_previous_text = true;
    p.drop_late_history = true;
    p.suppress_blank = true;
    p.suppress_nst = true;
    p.early_end = true;
    p.max_initial_ts = 1.0f;
    p.beam_size = 1;
    p.patience = 1.0f;
    p.length_penalty = -1.0f;
    p.temperature_inc = 0.2f;
    p.best_of = 5;
    p.compression_ratio_thold = 2.4f;
    p.no_speech_thold = 0.6f;
    p.logprob_thold = -1.0f;
    p.pad_mode = SOTTO_PAD_ZERO;
    return p;
}

/* ---- checks ---- */

struct check {
    bool holds;
    const char *field, *want;
};

static enum sotto_status first_failure(const struct check * checks, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!checks[i].holds)
            return sotto_fail(SOTTO_E_PARAM, "sotto_transcribe: params.%s must be %s", checks[i].field, checks[i].want);
    return SOTTO_OK;
}

static enum sotto_status check_search(const struct sotto_transcribe_params * p) {
    double finished = floor((double)p->beam_size * (double)p->patience + 0.5);
    const struct check checks[] = {
        { p->beam_size >= 1 && p->beam_size <= SOTTO_MAX_DECODERS, "beam_size", "1..16" },
        { p->best_of >= 1 && p->best_of <= SOTTO_MAX_DECODERS, "best_of", "1..16" },
        { p->beam_size > 1 || p->patience == 1.0f, "patience", "1 without beams; set beam_size" },
        { finished >= 1 && finished <= SOTTO_I_MAX_FINISHED, "patience", "such that beam_size * patience is 1..32" },
        { p->length_penalty <= 1.0f, "length_penalty", "0..1, or negative for the plain mean" },
        { p->temperature >= 0 && isfinite(p->temperature), "temperature", "0 or more" },
        { isfinite(p->temperature_inc), "temperature_inc", "a number" },
        { p->entropy_thold >= 0, "entropy_thold", "0 or more" },
    };
    return first_failure(checks, sizeof(checks) / sizeof(checks[0]));
}

static enum sotto_status check_text(const struct sotto_transcribe_params * p) {
    const struct check checks[] = {
        { p->n_max_text_ctx >= 0, "n_max_text_ctx", "0 or more" },
        { p->max_tokens >= 0, "max_tokens", "0 or more" },
        { p->no_repeat_ngram >= 0, "no_repeat_ngram", "0 or more" },
        { p->language_detection_segments >= 1, "language_detection_segments", "1 or more" },
        { p->n_prompt_tokens >= 0, "n_prompt_tokens", "0 or more" },
        { p->prompt_tokens || p->n_prompt_tokens == 0, "prompt_tokens", "set for n_prompt_tokens" },
        { !p->initial_prompt || p->n_prompt_tokens == 0, "prompt_tokens", "NULL beside initial_prompt" },
        { p->n_suppress_tokens >= 0, "n_suppress_tokens", "0 or more" },
        { p->suppress_tokens || p->n_suppress_tokens == 0, "suppress_tokens", "set for n_suppress_tokens" },
    };
    return first_failure(checks, sizeof(checks) / sizeof(checks[0]));
}

static enum sotto_status check_range(const struct sotto_transcribe_params * p) {
    const struct check checks[] = {
        { p->n_threads >= 0 && p->n_threads <= SOTTO_MAX_N_THREADS, "n_threads", "0..512" },
        { p->offset >= 0 && p->duration >= 0, "offset and duration", "0 or more" },
        { p->pad_mode == SOTTO_PAD_ZERO || p->pad_mode == SOTTO_PAD_SILENCE, "pad_mode",
          "SOTTO_PAD_ZERO or SOTTO_PAD_SILENCE" },
        { p->n_clip_times >= 0, "n_clip_times", "0 or more" },
        { p->clip_times || p->n_clip_times == 0, "clip_times", "set for n_clip_times" },
    };
    enum sotto_status status = first_failure(checks, sizeof(checks) / sizeof(checks[0]));
    for (int i = 0; i < p->n_clip_times && status == SOTTO_OK; i++)
        if (!(p->clip_times[i] >= (i > 0 ? p->clip_times[i - 1] : 0.0)) || !isfinite(p->clip_times[i]))
            return sotto_fail(SOTTO_E_PARAM,
                              "sotto_transcribe: params.clip_times[%d] must be at or after the one before", i);
    return status;
}

static enum sotto_status check_ids(const struct sotto_i_run * run, const char * field, const int32_t * ids, int n) {
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= run->specials->n_vocab)
            return sotto_fail(SOTTO_E_PARAM, "sotto_transcribe: params.%s[%d] is %d, want 0..%d", field, i, (int)ids[i],
                              run->specials->n_vocab - 1);
    return SOTTO_OK;
}

enum sotto_status sotto_i_run_check(const struct sotto_i_run * run) {
    const struct sotto_transcribe_params * p = run->params;
    const struct check size = { p->size >= sizeof(*p), "size", "set by sotto_transcribe_default_params()" };
    enum sotto_status status = first_failure(&size, 1);
    if (status == SOTTO_OK)
        status = check_range(p);
    if (status == SOTTO_OK)
        status = check_text(p);
    if (status == SOTTO_OK)
        status = check_search(p);
    if (status == SOTTO_OK)
        status = check_ids(run, "prompt_tokens", p->prompt_tokens, p->n_prompt_tokens);
    return status == SOTTO_OK ? check_ids(run, "suppress_tokens", p->suppress_tokens, p->n_suppress_tokens) : status;
}

/* ---- filter ---- */

static void forbid_matches(const struct sotto_i_run * run, const regex_t * regex, float * mask) {
    for (int32_t id = 0; id < run->specials->eot; id++) {
        size_t size;
        const char * text = sotto_i_tokenizer_bytes(run->state->model->tokenizer, id, &size);
        regmatch_t match;
        /* the leftmost match is the longest: the whole text, if it can be */
        if (regexec(regex, text, 1, &match, 0) == 0 && match.rm_so == 0 && (size_t)match.rm_eo == size)
            mask[id] = -INFINITY;
    }
}

static enum sotto_status forbid_regex(struct sotto_i_run * run) {
    regex_t regex;
    char text[128];
    int rc = regcomp(&regex, run->params->suppress_regex, REG_EXTENDED);
    if (rc == REG_ESPACE)
        return sotto_fail(SOTTO_E_MEMORY, "sotto_transcribe: no memory for params.suppress_regex");
    if (rc != 0) {
        regerror(rc, &regex, text, sizeof(text));
        return sotto_fail(SOTTO_E_REGEX, "sotto_transcribe: params.suppress_regex must be an extended expression: %s",
                          text);
    }
    forbid_matches(run, &regex, run->state->base_mask);
    regfree(&regex);
    return SOTTO_OK;
}

enum sotto_status sotto_i_run_set_filter(struct sotto_i_run * run) {
    const struct sotto_transcribe_params * p = run->params;
    const struct sotto_model * model = run->state->model;
    struct sotto_i_filter * f = &run->filter;
    f->specials = run->specials;
    f->timestamps = !p->no_timestamps && model->hp.timestamps;
    if (!p->no_timestamps && !f->timestamps)
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: the model was trained without timestamps; none are made\n");
    f->suppress_blank = p->suppress_blank;
    f->blank = sotto_i_tokenizer_blank(model->tokenizer);
    f->max_tokens = p->single_segment ? 0 : p->max_tokens;
    f->no_repeat = p->no_repeat_ngram;
    f->max_initial = sotto_i_filter_max_initial(p->max_initial_ts);
    if (p->suppress_nst)
        f->suppress = sotto_i_tokenizer_non_speech(model->tokenizer, &f->n_suppress);
    sotto_i_filter_base(f, run->state->base_mask);
    for (int i = 0; i < p->n_suppress_tokens; i++)
        run->state->base_mask[p->suppress_tokens[i]] = -INFINITY;
    return p->suppress_regex && p->suppress_regex[0] ? forbid_regex(run) : SOTTO_OK;
}
