/* SPDX-License-Identifier: MIT */
/* From the command line's options to the recogniser's parameters. */
#include <stdlib.h>
#include <string.h>

#include "sotto/alloc.h"

#include "cli/transcribe_params.h"

/* "start,end,..." as numbers, which the library looks at. */
static bool parse_times(const char * text, double * times, int * n) {
    for (*n = 0;; text++) {
        char * end;
        double time = strtod(text, &end);
        if (end == text || !(time >= 0 && time < 1e9) || (*end != 0 && *end != ','))
            return false;
        times[(*n)++] = time;
        text = end;
        if (*text == 0)
            return true;
    }
}

static bool set_clip(const char * text, struct sotto_transcribe_params * params) {
    double * times = sotto_malloc(NULL, strlen(text) / 2 + 1, sizeof(double));
    if (times == NULL) {
        print_last_error();
        return false;
    }
    params->clip_times = times;
    if (parse_times(text, times, &params->n_clip_times))
        return true;
    fprintf(stderr, "sotto transcribe: --clip takes seconds with commas between, not '%s'\n", text);
    return false;
}

/* Ids with commas between into *ids; false, with a message. */
static bool set_ids(const char * option, const char * text, const int32_t ** ids, int * n) {
    if (text == NULL)
        return true;
    int32_t * list = sotto_malloc(NULL, strlen(text) / 2 + 1, sizeof(*list));
    if (list == NULL) {
        print_last_error();
        return false;
    }
    *ids = list;
    for (const char * at = text;; at++) {
        char * end;
        long id = strtol(at, &end, 10);
        if (at[0] < '0' || at[0] > '9' || id > INT32_MAX || (*end != 0 && *end != ','))
            break;
        list[(*n)++] = (int32_t)id;
        at = end;
        if (*at == 0)
            return true;
    }
    fprintf(stderr, "sotto: --%s takes ids of tokens with commas between, not '%s'\n", option, text);
    return false;
}

static void set_real(const struct real * real, float * field) {
    if (real->given)
        *field = (float)real->value;
}

static void set_search(const struct options * options, struct sotto_transcribe_params * params) {
    if (options->beam_size > 0)
        params->beam_size = options->beam_size;
    if (options->best_of > 0)
        params->best_of = options->best_of;
    set_real(&options->patience, &params->patience);
    set_real(&options->length_penalty, &params->length_penalty);
    set_real(&options->temperature, &params->temperature);
    set_real(&options->temperature_inc, &params->temperature_inc);
    if (options->no_fallback)
        params->temperature_inc = 0;
    params->seed = (uint64_t)options->seed;
    set_real(&options->compression_ratio_thold, &params->compression_ratio_thold);
    set_real(&options->entropy_thold, &params->entropy_thold);
    set_real(&options->logprob_thold, &params->logprob_thold);
    set_real(&options->no_speech_thold, &params->no_speech_thold);
}

static void set_language(const struct options * options, struct sotto_transcribe_params * params) {
    params->language = options->language;
    if (options->language_detection_segments > 0)
        params->language_detection_segments = options->language_detection_segments;
    set_real(&options->language_detection_threshold, &params->language_detection_threshold);
    params->multilingual = options->multilingual;
    params->translate = options->translate;
}

static void set_text(const struct options * options, struct sotto_transcribe_params * params) {
    params->initial_prompt = options->prompt;
    params->carry_initial_prompt = options->carry_prompt;
    params->hotwords = options->hotwords;
    params->prefix = options->prefix;
    if (options->max_context >= 0)
        params->n_max_text_ctx = options->max_context;
    params->no_timestamps = options->no_timestamps;
    params->single_segment = options->single_segment;
    params->max_tokens = options->max_tokens;
    params->no_repeat_ngram = options->no_repeat_ngram;
    params->drop_late_history = !options->keep_late_history;
    params->suppress_blank = !options->no_suppress_blank;
    params->early_end = !options->no_early_end;
    set_real(&options->max_initial_ts, &params->max_initial_ts);
    params->suppress_nst = !options->no_suppress_nst;
    params->suppress_regex = options->suppress_regex;
}

bool transcribe_params_make(const struct options * options, struct sotto_transcribe_params * params) {
    *params = sotto_transcribe_default_params();
    set_language(options, params);
    set_text(options, params);
    set_search(options, params);
    if (options->pad_mode != NULL && strcmp(options->pad_mode, "silence") == 0)
        params->pad_mode = SOTTO_PAD_SILENCE;
    params->offset = options->offset_ms / 10;
    params->duration = ((int64_t)options->duration_ms + 9) / 10;
    return (options->clip == NULL || set_clip(options->clip, params)) &&
           set_ids("prompt-tokens", options->prompt_tokens, &params->prompt_tokens, &params->n_prompt_tokens) &&
           set_ids("suppress-tokens", options->suppress_tokens, &params->suppress_tokens, &params->n_suppress_tokens);
}

static void free_ids(const char * text, const int32_t * ids) {
    union {
        const int32_t * read_only;
        int32_t * own;
    } list = { ids };
    if (list.own != NULL)
        sotto_mfree(NULL, list.own, strlen(text) / 2 + 1, sizeof(int32_t));
}

void transcribe_params_free(const struct options * options, struct sotto_transcribe_params * params) {
    union {
        const double * read_only;
        double * own;
    } times = { params->clip_times };
    if (times.own != NULL)
        sotto_mfree(NULL, times.own, strlen(options->clip) / 2 + 1, sizeof(double));
    free_ids(options->prompt_tokens, params->prompt_tokens);
    free_ids(options->suppress_tokens, params->suppress_tokens);
}
