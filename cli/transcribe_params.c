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
    set_real(&options->logprob_thold, &params->logprob_thold);
    set_real(&options->no_speech_thold, &params->no_speech_thold);
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
    params->suppress_nst = !options->no_suppress_nst;
    params->suppress_regex = options->suppress_regex;
}

bool transcribe_params_make(const struct options * options, struct sotto_transcribe_params * params) {
    *params = sotto_transcribe_default_params();
    params->language = options->language;
    params->translate = options->translate;
    set_text(options, params);
    set_search(options, params);
    if (options->pad_mode != NULL && strcmp(options->pad_mode, "silence") == 0)
        params->pad_mode = SOTTO_PAD_SILENCE;
    params->offset = options->offset_ms / 10;
    params->duration = ((int64_t)options->duration_ms + 9) / 10;
    return options->clip == NULL || set_clip(options->clip, params);
}

void transcribe_params_free(const struct options * options, struct sotto_transcribe_params * params) {
    union {
        const double * read_only;
        double * own;
    } times = { params->clip_times };
    if (times.own != NULL)
        sotto_mfree(NULL, times.own, strlen(options->clip) / 2 + 1, sizeof(double));
}
