/* SPDX-License-Identifier: MIT */
/* A call of sotto_transcribe while it runs. params.c checks what was asked for, prompt.c writes prompts, detect.c finds
 * the language, window.c decodes a window and keeps what it gave, transcribe.c goes from window to window. */
#ifndef SOTTO_SPEECH_RUN_H
#define SOTTO_SPEECH_RUN_H

#include "sample.h"

#define SOTTO_I_MIN_FRAMES   10  /* less than 100 ms is not looked at */
#define SOTTO_I_MAX_PREVIOUS 224 /* tokens of earlier text in a prompt, the one that introduces it included */
#define SOTTO_I_MAX_HISTORY  (SOTTO_I_MAX_PREVIOUS - 1)

/* Tokens of which the newest, or the first, are kept. */
struct sotto_i_tokens {
    int n;
    int32_t ids[SOTTO_I_MAX_HISTORY];
};

/* What one temperature gave. */
struct sotto_i_attempt {
    struct sotto_i_sampled sampled;
    int n_prompt;
    float avg_logprob, compression_ratio;
    bool failed;
};

struct sotto_i_run {
    struct sotto_state * state;
    const struct sotto_transcribe_params * params;
    const struct sotto_i_specials * specials;
    const float * samples;
    size_t n_samples;
    float max_log10;
    int64_t content;    /* frames of the sound */
    int64_t start, end; /* those to look at */
    int64_t clip_start, clip_end, seek;
    int n_frames; /* of the window in hand */
    bool detect;  /* the language is not known yet */
    bool translate;
    struct sotto_i_filter filter;
    struct sotto_i_tokens history;                   /* the newest tokens of earlier text */
    struct sotto_i_tokens initial, hotwords, prefix; /* the first is empty unless carried, the last once used */
    int max_history;
    struct sotto_i_attempt tried, kept; /* the newest one, the best one so far */
    struct sotto_i_cut cut;
};

/* ---- params.c ---- */

/* PARAM, the message names the field. */
enum sotto_status sotto_i_run_check(const struct sotto_i_run * run);
/* Filter and base mask from checked parameters. PARAM for a regular expression that is none, MEMORY. */
enum sotto_status sotto_i_run_set_filter(struct sotto_i_run * run);

/* ---- prompt.c ---- */

/* Initial prompt, hotwords and prefix as tokens. MEMORY. */
enum sotto_status sotto_i_run_set_prompts(struct sotto_i_run * run);
void sotto_i_run_keep_history(struct sotto_i_run * run, const int32_t * tokens, int n);
/* The prompt of an attempt into state->prompt, and the fields of `sample` about it. */
void sotto_i_run_make_prompt(const struct sotto_i_run * run, float temperature, struct sotto_i_sample_params * sample);

/* ---- detect.c ---- */

/* The language asked for. LANGUAGE. */
enum sotto_status sotto_i_run_set_language(struct sotto_i_run * run);
/* Find it, beginning with the window in hand, which is encoded before and after. */
enum sotto_status sotto_i_run_detect(struct sotto_i_run * run);
/* Spectrogram of the window at `seek` into the state. */
enum sotto_status sotto_i_run_mel(struct sotto_i_run * run, int64_t seek, int n_frames, bool * silent);

/* ---- window.c ---- */

/* The window at run->seek: decode it, keep what it gave, set run->seek to the next one. */
enum sotto_status sotto_i_run_window(struct sotto_i_run * run);

#endif
