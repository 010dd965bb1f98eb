/* SPDX-License-Identifier: MIT */
/* The recogniser step by step: the public functions that sotto_transcribe is made of. */
#include <math.h>
#include <string.h>

#include "state.h"

#define MAX_SAMPLES 2147483647u

enum sotto_status sotto_i_check_samples(const char * function, const float * samples, size_t n) {
    if (!samples && n > 0)
        return sotto_fail(SOTTO_E_NULLARG, "%s: samples must not be NULL", function);
    if (n > MAX_SAMPLES)
        return sotto_fail(SOTTO_E_PARAM, "%s: %zu samples are more than the %u (37 h) that one call takes", function, n,
                          MAX_SAMPLES);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(samples[i]))
            return sotto_fail(SOTTO_E_AUDIO_NAN, "%s: sample %zu is NaN or infinite", function, i);
    return SOTTO_OK;
}

/* ---- spectrogram ---- */

static enum sotto_status pcm_to_mel(struct sotto_state * s, const float * samples, size_t n, int64_t frame0,
                                    enum sotto_pad_mode pad) {
    enum sotto_status status = sotto_i_check_samples("sotto_pcm_to_mel", samples, n);
    if (status != SOTTO_OK)
        return status;
    int64_t left = sotto_i_mel_content_frames(n) - frame0;
    if (frame0 < 0 || left < 0)
        return sotto_fail(SOTTO_E_PARAM, "sotto_pcm_to_mel: frame0 is %lld, the sound has %lld frames",
                          (long long)frame0, (long long)(left + frame0));
    float max_log10;
    status = sotto_i_mel_max(s->transform, samples, n, &max_log10);
    if (status != SOTTO_OK)
        return status;
    int n_frames = left < SOTTO_I_WINDOW_FRAMES ? (int)left : SOTTO_I_WINDOW_FRAMES;
    s->encoded = false;
    return sotto_i_mel_window(s->transform, samples, n, frame0, n_frames, max_log10, pad, sotto_get_data(s->mel), NULL);
}

enum sotto_status sotto_pcm_to_mel(struct sotto_state * state, const float * samples, size_t n_samples, int64_t frame0,
                                   enum sotto_pad_mode pad_mode) {
    enum sotto_status status = sotto_i_state_enter(state, "sotto_pcm_to_mel");
    if (status != SOTTO_OK)
        return status;
    status = pcm_to_mel(state, samples, n_samples, frame0, pad_mode);
    sotto_i_state_leave(state);
    return status;
}

static enum sotto_status set_mel(struct sotto_state * s, const float * data, int n_frames, int n_mels) {
    if (n_mels != s->model->hp.n_mels)
        return sotto_fail(SOTTO_E_PARAM, "sotto_set_mel: n_mels is %d, the model has %d", n_mels, s->model->hp.n_mels);
    if (n_frames < 0 || n_frames > SOTTO_I_WINDOW_FRAMES)
        return sotto_fail(SOTTO_E_PARAM, "sotto_set_mel: n_frames is %d, want 0..%d", n_frames, SOTTO_I_WINDOW_FRAMES);
    if (!data && n_frames > 0)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_set_mel: data must not be NULL");
    float * mel = sotto_get_data(s->mel);
    memset(mel, 0, sotto_nbytes(s->mel));
    for (int band = 0; n_frames > 0 && band < n_mels; band++)
        memcpy(mel + (size_t)band * SOTTO_I_WINDOW_FRAMES, data + (size_t)band * (size_t)n_frames,
               (size_t)n_frames * sizeof(*mel));
    s->encoded = false;
    return SOTTO_OK;
}

enum sotto_status sotto_set_mel(struct sotto_state * state, const float * data, int n_frames, int n_mels) {
    enum sotto_status status = sotto_i_state_enter(state, "sotto_set_mel");
    if (status != SOTTO_OK)
        return status;
    status = set_mel(state, data, n_frames, n_mels);
    sotto_i_state_leave(state);
    return status;
}

const float * sotto_get_mel(const struct sotto_state * state) { return state ? sotto_get_data(state->mel) : NULL; }

/* ---- encoder ---- */

enum sotto_status sotto_i_encode(struct sotto_state * state) {
    state->encoded = false;
    state->decoder.n_decoded = 0;
    state->decoder.last = NULL;
    enum sotto_status status = sotto_backend_graph_plan_compute(state->backend, state->encoder.plan);
    state->encoded = status == SOTTO_OK;
    return status;
}

enum sotto_status sotto_encode(struct sotto_state * state) {
    enum sotto_status status = sotto_i_state_enter(state, "sotto_encode");
    if (status != SOTTO_OK)
        return status;
    status = sotto_i_encode(state);
    sotto_i_state_leave(state);
    return status;
}

const float * sotto_get_encoder_output(const struct sotto_state * state) {
    return state && state->encoded ? sotto_get_data(state->encoder.out) : NULL;
}

/* ---- decoder ---- */

static enum sotto_status check_encoded(const struct sotto_state * s, const char * function) {
    return s->encoded ? SOTTO_OK : sotto_fail(SOTTO_E_STATE, "%s: no window is encoded; call sotto_encode", function);
}

static enum sotto_status check_tokens(const struct sotto_state * s, const int32_t * tokens, int n, int n_past) {
    const struct sotto_i_hparams * hp = &s->model->hp;
    if (!tokens)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_decode: tokens must not be NULL");
    if (n < 1 || n_past < 0 || n > hp->n_text_ctx || n_past > hp->n_text_ctx - n)
        return sotto_fail(SOTTO_E_PARAM, "sotto_decode: %d tokens at position %d do not fit 0..%d", n, n_past,
                          hp->n_text_ctx - 1);
    if (n_past > s->decoder.n_decoded)
        return sotto_fail(SOTTO_E_PARAM, "sotto_decode: n_past is %d, only %d positions were decoded", n_past,
                          s->decoder.n_decoded);
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= hp->n_vocab)
            return sotto_fail(SOTTO_E_PARAM, "sotto_decode: token %d is %d, want 0..%d", i, (int)tokens[i],
                              hp->n_vocab - 1);
    return SOTTO_OK;
}

enum sotto_status sotto_decode(struct sotto_state * state, const int32_t * tokens, int n_tokens, int n_past) {
    enum sotto_status status = sotto_i_state_enter(state, "sotto_decode");
    if (status != SOTTO_OK)
        return status;
    status = check_encoded(state, "sotto_decode");
    if (status == SOTTO_OK)
        status = check_tokens(state, tokens, n_tokens, n_past);
    if (status == SOTTO_OK)
        status = sotto_i_decoder_run(&state->decoder, tokens, n_tokens, n_past, -1);
    sotto_i_state_leave(state);
    return status;
}

const float * sotto_get_logits(const struct sotto_state * state) {
    return state ? sotto_i_decoder_logits(&state->decoder) : NULL;
}

/* ---- language ---- */

static void soft_max(const float * x, float * p, int n) {
    double most = x[0], sum = 0;
    for (int i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (int i = 0; i < n; i++)
        sum += exp(x[i] - most);
    for (int i = 0; i < n; i++)
        p[i] = (float)(exp(x[i] - most) / sum);
}

enum sotto_status sotto_i_detect_language(struct sotto_state * state) {
    const struct sotto_i_specials * sp = sotto_i_model_specials(state->model);
    state->language = 0;
    state->n_language_probs = 0;
    if (!sp->multilingual)
        return SOTTO_OK;
    enum sotto_status status = sotto_i_decoder_run(&state->decoder, &sp->sot, 1, 0, -1);
    if (status != SOTTO_OK)
        return status;
    state->n_language_probs = sp->n_languages;
    soft_max(sotto_i_decoder_logits(&state->decoder) + sp->language0, state->language_probs, sp->n_languages);
    for (int i = 1; i < sp->n_languages; i++)
        if (state->language_probs[i] > state->language_probs[state->language])
            state->language = i;
    return SOTTO_OK;
}

enum sotto_status sotto_detect_language(struct sotto_state * state, int * language) {
    enum sotto_status status = sotto_i_state_enter(state, "sotto_detect_language");
    if (status != SOTTO_OK)
        return status;
    status = check_encoded(state, "sotto_detect_language");
    if (status == SOTTO_OK)
        status = sotto_i_detect_language(state);
    if (status == SOTTO_OK && language)
        *language = state->language;
    sotto_i_state_leave(state);
    return status;
}
