/* SPDX-License-Identifier: MIT */
/* Making and freeing states. Everything that greedy decoding needs is allocated here, so that a recording, once begun,
 * asks for memory only when its result grows, or the first time that several sequences are decoded at once. */
#include <unistd.h>

#include "search.h"

struct sotto_state_params sotto_state_default_params(void) {
    struct sotto_state_params params = { 0 };
    params.size = sizeof(params);
    params.cache_type = SOTTO_TYPE_COUNT;
    return params;
}

static int processors(void) {
#ifdef _SC_NPROCESSORS_ONLN
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n >= 1)
        return n < SOTTO_DEFAULT_N_THREADS ? (int)n : SOTTO_DEFAULT_N_THREADS;
#endif
    return SOTTO_DEFAULT_N_THREADS;
}

static enum sotto_status check_params(const struct sotto_state_params * params) {
    if (params->size < sizeof(*params))
        return sotto_fail(SOTTO_E_PARAM,
                          "sotto_state_new: params.size is %u, want %zu; begin with sotto_state_default_params()",
                          params->size, sizeof(*params));
    if (params->n_threads < 0 || params->n_threads > SOTTO_MAX_N_THREADS)
        return sotto_fail(SOTTO_E_PARAM, "sotto_state_new: params.n_threads is %d, want 0..%d", params->n_threads,
                          SOTTO_MAX_N_THREADS);
    if (params->cache_type != SOTTO_TYPE_F32 && params->cache_type != SOTTO_TYPE_F16 &&
        params->cache_type != SOTTO_TYPE_COUNT)
        return sotto_fail(SOTTO_E_PARAM, "sotto_state_new: params.cache_type is %s, want f32, f16 or SOTTO_TYPE_COUNT",
                          sotto_type_name(params->cache_type));
    if (params->compute != SOTTO_COMPUTE_DEFAULT && params->compute != SOTTO_COMPUTE_F32)
        return sotto_fail(SOTTO_E_PARAM, "sotto_state_new: params.compute is %d, which is not in the list",
                          (int)params->compute);
    return SOTTO_OK;
}

static struct sotto_context * new_records(const struct sotto_state * s, size_t bytes) {
    struct sotto_init_params params = { bytes, NULL, true };
    return sotto_init_ext(params, s->allocator);
}

/* Tensors that stay: the cross cache and the window's mel. */
static enum sotto_status make_data(struct sotto_state * s) {
    const struct sotto_i_hparams * hp = &s->model->hp;
    s->data = new_records(s, (sotto_i_cross_n_tensors(hp) + 1) * sotto_tensor_overhead());
    if (!s->data)
        return SOTTO_E_MEMORY;
    enum sotto_status status = sotto_i_cross_define(&s->cross, s->data, hp, s->cache_type, s->allocator);
    if (status != SOTTO_OK)
        return status;
    s->mel = sotto_new_tensor_2d(s->data, SOTTO_TYPE_F32, SOTTO_I_WINDOW_FRAMES, hp->n_mels);
    if (!s->mel)
        return sotto_context_status(s->data);
    s->buffer = sotto_backend_alloc_ctx_tensors_from_buft_ext(s->data, sotto_backend_cpu_buffer_type(), s->allocator);
    if (!s->buffer)
        return SOTTO_E_MEMORY;
    sotto_backend_buffer_clear(s->buffer, 0);
    sotto_i_cross_init(&s->cross);
    return SOTTO_OK;
}

enum sotto_status sotto_i_state_make_decoder(struct sotto_state * state, int n_beams,
                                             struct sotto_i_decoder * decoder) {
    const struct sotto_i_decoder_params params = { .model = state->model,
                                                   .allocator = state->allocator,
                                                   .backend = state->backend,
                                                   .cross = &state->cross,
                                                   .cache_type = state->cache_type,
                                                   .n_beams = n_beams,
                                                   .n_sampled = SOTTO_I_MAX_SAMPLED };
    return sotto_i_decoder_init(decoder, &params);
}

static enum sotto_status make_graphs(struct sotto_state * s) {
    s->graphs = new_records(s, sotto_i_encoder_overhead(&s->model->hp));
    if (!s->graphs)
        return SOTTO_E_MEMORY;
    enum sotto_status status = sotto_i_encoder_build(&s->encoder, s->graphs, s->backend, s->model, s->mel, &s->cross);
    return status == SOTTO_OK ? sotto_i_state_make_decoder(s, 0, &s->decoder) : status;
}

static enum sotto_status make_scratch(struct sotto_state * s) {
    const struct sotto_i_hparams * hp = &s->model->hp;
    s->base_mask = sotto_malloc(s->allocator, (size_t)hp->n_vocab, sizeof(*s->base_mask));
    s->prompt = sotto_malloc(s->allocator, (size_t)hp->n_text_ctx, sizeof(*s->prompt));
    s->ratio = sotto_i_ratio_new(s->allocator);
    if (!s->base_mask || !s->prompt || !s->ratio)
        return SOTTO_E_MEMORY;
    return sotto_i_mel_new(hp->n_mels, s->backend, s->allocator, &s->transform);
}

static enum sotto_status make_state(struct sotto_state * s, const struct sotto_state_params * params) {
    s->backend = sotto_backend_cpu_init_ext(s->allocator);
    if (!s->backend)
        return SOTTO_E_MEMORY;
    sotto_backend_cpu_set_compute(s->backend, params->compute);
    sotto_backend_set_eval_callback(s->backend, params->eval_callback, params->eval_user_data);
    s->cache_type = params->cache_type;
    if (s->cache_type == SOTTO_TYPE_COUNT)
        s->cache_type = s->model->weight_type == SOTTO_TYPE_F32 ? SOTTO_TYPE_F32 : SOTTO_TYPE_F16;
    s->n_threads = params->n_threads > 0 ? params->n_threads : processors();
    enum sotto_status status = sotto_backend_cpu_set_n_threads(s->backend, s->n_threads);
    if (status == SOTTO_OK)
        status = make_data(s);
    if (status == SOTTO_OK)
        status = make_graphs(s);
    return status == SOTTO_OK ? make_scratch(s) : status;
}

enum sotto_status sotto_state_new(const struct sotto_model * model, const struct sotto_state_params * params,
                                  struct sotto_state ** state) {
    if (!model || !state)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_state_new: model and state must not be NULL");
    *state = NULL;
    struct sotto_state_params defaults = sotto_state_default_params();
    if (!params)
        params = &defaults;
    enum sotto_status status = check_params(params);
    if (status != SOTTO_OK)
        return status;
    const struct sotto_allocator * allocator = params->allocator ? params->allocator : model->allocator;
    struct sotto_state * s = sotto_calloc(allocator, 1, sizeof(*s));
    if (!s)
        return SOTTO_E_MEMORY;
    s->model = model;
    s->allocator = s->result.allocator = allocator;
    s->language = -1;
    atomic_flag_clear(&s->busy);
    status = make_state(s, params);
    if (status != SOTTO_OK) {
        sotto_state_free(s);
        return status;
    }
    *state = s;
    return SOTTO_OK;
}

void sotto_state_free(struct sotto_state * state) {
    if (!state)
        return;
    const struct sotto_allocator * a = state->allocator;
    const struct sotto_i_hparams * hp = &state->model->hp;
    sotto_i_search_free(state->search, a);
    sotto_i_decoder_free(&state->decoder);
    if (state->encoder.plan)
        sotto_backend_graph_plan_free(state->backend, state->encoder.plan);
    sotto_i_mel_free(state->transform);
    sotto_i_ratio_free(state->ratio);
    sotto_i_result_free(&state->result);
    sotto_mfree(a, state->scratch.data, state->scratch.capacity, 1);
    sotto_mfree(a, state->prompt, (size_t)hp->n_text_ctx, sizeof(*state->prompt));
    sotto_mfree(a, state->base_mask, (size_t)hp->n_vocab, sizeof(*state->base_mask));
    sotto_backend_buffer_free(state->buffer);
    sotto_free(state->graphs);
    sotto_free(state->data);
    sotto_i_cross_free(&state->cross, a);
    sotto_backend_free(state->backend);
    sotto_mfree(a, state, 1, sizeof(*state));
}

const struct sotto_model * sotto_state_model(const struct sotto_state * state) { return state ? state->model : NULL; }

enum sotto_status sotto_i_state_enter(struct sotto_state * state, const char * function) {
    if (!state)
        return sotto_fail(SOTTO_E_NULLARG, "%s: state must not be NULL", function);
    if (atomic_flag_test_and_set(&state->busy))
        return sotto_fail(SOTTO_E_BUSY, "%s: the state is in use by another call; make one state a thread", function);
    return SOTTO_OK;
}

void sotto_i_state_leave(struct sotto_state * state) { atomic_flag_clear(&state->busy); }

/* ---- results ---- */

int sotto_n_segments(const struct sotto_state * state) { return state ? (int)state->result.n_segments : 0; }
int sotto_n_windows(const struct sotto_state * state) { return state ? (int)state->result.n_windows : 0; }

const struct sotto_segment * sotto_get_segment(const struct sotto_state * state, int i) {
    return i >= 0 && i < sotto_n_segments(state) ? &state->result.segments[i].shown : NULL;
}

const struct sotto_window * sotto_get_window(const struct sotto_state * state, int i) {
    return i >= 0 && i < sotto_n_windows(state) ? &state->result.windows[i].shown : NULL;
}

const struct sotto_token_data * sotto_get_segment_token(const struct sotto_state * state, int segment, int i) {
    const struct sotto_segment * s = sotto_get_segment(state, segment);
    if (!s || i < 0 || i >= s->n_tokens)
        return NULL;
    return &state->result.tokens[state->result.segments[segment].token_at + (size_t)i];
}

const struct sotto_token_data * sotto_get_window_token(const struct sotto_state * state, int window, int i) {
    const struct sotto_window * w = sotto_get_window(state, window);
    if (!w || i < 0 || i >= w->n_tokens)
        return NULL;
    return &state->result.tokens[state->result.windows[window].token_at + (size_t)i];
}

int sotto_get_language(const struct sotto_state * state) { return state ? state->language : -1; }

const float * sotto_get_language_probs(const struct sotto_state * state, int * count) {
    int n = state ? state->n_language_probs : 0;
    if (count)
        *count = n;
    return n > 0 ? state->language_probs : NULL;
}
