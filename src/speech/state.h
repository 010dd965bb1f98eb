/* SPDX-License-Identifier: MIT */
/* What one recording at a time needs: caches, planned graphs, scratch and the result. */
#ifndef SOTTO_SPEECH_STATE_H
#define SOTTO_SPEECH_STATE_H

#include <stdatomic.h>

#include "decoder.h"
#include "encoder.h"
#include "languages.h"
#include "mel.h"
#include "ratio.h"
#include "result.h"

struct sotto_i_search;

struct sotto_state {
    const struct sotto_model * model;
    const struct sotto_allocator * allocator;
    atomic_flag busy; /* a call is running */
    sotto_backend_t backend;
    int n_threads;
    enum sotto_type cache_type;

    struct sotto_context *data, *graphs; /* records: tensors that stay, and those of the encoder's graph */
    sotto_backend_buffer_t buffer;       /* data of the former */
    struct sotto_tensor * mel;           /* f32 [3000, M], the window in hand */
    struct sotto_i_mel * transform;
    struct sotto_i_encoder encoder;
    struct sotto_i_cross cross;
    struct sotto_i_decoder decoder;
    struct sotto_i_search * search; /* NULL until several sequences are needed */
    bool encoded;                   /* the cross cache belongs to the window in hand */

    struct sotto_i_ratio * ratio;
    float * base_mask;            /* [V] */
    int32_t * prompt;             /* [text positions] */
    struct sotto_i_bytes scratch; /* text of a window or segment */

    struct sotto_i_result result;
    int language;
    int n_language_probs; /* 0 unless the language was detected */
    float language_probs[SOTTO_I_N_LANGUAGES];
};

/* A public call begins: NULLARG, or BUSY if another one is running. Leave after each that was entered. */
enum sotto_status sotto_i_state_enter(struct sotto_state * state, const char * function);
void sotto_i_state_leave(struct sotto_state * state);

/* A decoder with room for n_beams beams over the state's cross cache; the caller frees it, after failure too. */
enum sotto_status sotto_i_state_make_decoder(struct sotto_state * state, int n_beams, struct sotto_i_decoder * decoder);

/* The public functions of the same names, for a state that is entered. */
enum sotto_status sotto_i_encode(struct sotto_state * state);
enum sotto_status sotto_i_detect_language(struct sotto_state * state);
/* AUDIO_NAN if a sample is not finite, NULLARG, PARAM. */
enum sotto_status sotto_i_check_samples(const char * function, const float * samples, size_t n);

#endif
