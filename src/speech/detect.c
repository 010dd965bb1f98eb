/* SPDX-License-Identifier: MIT */
/* The language of a recording: given, or found on the window that is decoded first and, if that leaves doubt and the
 * caller wants it, on those after it. */
#include "sotto/log.h"

#include "run.h"

enum sotto_status sotto_i_run_set_language(struct sotto_i_run * run) {
    struct sotto_state * s = run->state;
    const char * language = run->params->language;
    s->language = -1;
    s->n_language_probs = 0;
    run->detect = sotto_i_language_is_auto(language);
    run->translate = run->params->translate && run->specials->multilingual;
    if (run->params->translate && !run->translate)
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: an English-only model cannot translate; transcribing\n");
    if (run->detect)
        return SOTTO_OK;
    int id = sotto_language_id(language);
    if (id < 0)
        return sotto_fail(SOTTO_E_LANGUAGE, "sotto_transcribe: language \"%.32s\" is not known; use a code such as en",
                          language);
    if (id >= run->specials->n_languages)
        return sotto_fail(SOTTO_E_LANGUAGE, "sotto_transcribe: this model does not know %s", sotto_language_name(id));
    if (id != 0 && !run->specials->multilingual) {
        sotto_log(SOTTO_LOG_WARN, "sotto_transcribe: an English-only model transcribes English\n");
        id = 0;
    }
    s->language = id;
    return SOTTO_OK;
}

enum sotto_status sotto_i_run_mel(struct sotto_i_run * run, int64_t seek, int n_frames, bool * silent) {
    struct sotto_state * s = run->state;
    s->encoded = false;
    return sotto_i_mel_window(s->transform, run->samples, run->n_samples, seek, n_frames, run->max_log10,
                              run->params->pad_mode, sotto_get_data(s->mel), silent);
}

/* ---- several windows ---- */

/* What the windows say, by language. */
struct poll {
    int votes[SOTTO_I_N_LANGUAGES];
    float best[SOTTO_I_N_LANGUAGES];    /* the largest probability when it won ... */
    int64_t where[SOTTO_I_N_LANGUAGES]; /* ... and the window */
};

/* Encode the window at `seek` and ask it; `*asked` is false if it is silent. */
static enum sotto_status ask(struct sotto_i_run * r, int64_t seek, bool * asked) {
    int64_t left = r->clip_end - seek;
    bool silent;
    enum sotto_status status =
        sotto_i_run_mel(r, seek, left < SOTTO_I_WINDOW_FRAMES ? (int)left : SOTTO_I_WINDOW_FRAMES, &silent);
    *asked = status == SOTTO_OK && !silent;
    if (!*asked)
        return status;
    status = sotto_i_encode(r->state);
    return status == SOTTO_OK ? sotto_i_detect_language(r->state) : status;
}

static void count(struct poll * poll, const struct sotto_state * s, int64_t seek) {
    int language = s->language;
    float p = s->language_probs[language];
    poll->votes[language]++;
    if (p > poll->best[language]) {
        poll->best[language] = p;
        poll->where[language] = seek;
    }
}

static int winner(const struct poll * poll) {
    int best = 0;
    for (int i = 1; i < SOTTO_I_N_LANGUAGES; i++)
        if (poll->votes[i] > poll->votes[best])
            best = i;
    return best;
}

/* Ask the windows after the first one; the state's distribution is that of the window that decides. */
static enum sotto_status ask_around(struct sotto_i_run * r) {
    struct sotto_state * s = r->state;
    struct poll poll = { { 0 }, { 0 }, { 0 } };
    int64_t seek = r->seek;
    bool asked = true;
    count(&poll, s, seek);
    for (int i = 1; i < r->params->language_detection_segments; i++) {
        seek += SOTTO_I_WINDOW_FRAMES;
        if (r->clip_end - seek < SOTTO_I_MIN_FRAMES)
            break;
        enum sotto_status status = ask(r, seek, &asked);
        if (status != SOTTO_OK)
            return status;
        if (asked && s->language_probs[s->language] > r->params->language_detection_threshold)
            return SOTTO_OK;
        if (asked)
            count(&poll, s, seek);
    }
    return ask(r, poll.where[winner(&poll)], &asked);
}

enum sotto_status sotto_i_run_detect(struct sotto_i_run * run) {
    struct sotto_state * s = run->state;
    enum sotto_status status = sotto_i_detect_language(s);
    run->detect = run->params->multilingual;
    if (status != SOTTO_OK || !run->specials->multilingual || run->params->language_detection_segments == 1 ||
        s->language_probs[s->language] > run->params->language_detection_threshold)
        return status;
    status = ask_around(run);
    if (status == SOTTO_OK)
        status = sotto_i_run_mel(run, run->seek, run->n_frames, NULL);
    return status == SOTTO_OK ? sotto_i_encode(s) : status;
}
