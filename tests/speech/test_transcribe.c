/* SPDX-License-Identifier: MIT */
/* The recogniser's calls on the tiny model: bad arguments, short and silent sound, callbacks, stopping and going on,
 * nothing left over from one call to the next. What it writes is noise; that it is the same noise is what is tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/speech.h"
#include "support/tiny_model.h"

enum { RATE = 16000, N_SAMPLES = 31 * RATE, BRIEF = 2 * RATE };

static float sound[N_SAMPLES];   /* two windows that are not silent; most tests take the first two seconds */
static float silence[N_SAMPLES]; /* zeros */
static struct sotto_model * model;

static struct sotto_state * new_state(int n_threads) {
    struct sotto_state_params params = sotto_state_default_params();
    struct sotto_state * state = NULL;
    params.n_threads = n_threads;
    assert_int_equal(sotto_state_new(model, &params, &state), SOTTO_OK);
    return state;
}

/* Parameters under which the tiny model's noise is kept, and windows stay short. */
static struct sotto_transcribe_params quick(void) {
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    p.language = "en";
    p.no_speech_thold = 1.0f;
    p.temperature_inc = 0;
    p.max_tokens = 8;
    return p;
}

/* The result of a state, as one text. */
struct record {
    char text[16384];
    size_t size;
};

static void put(struct record * r, const char * format, ...) {
    va_list args;
    va_start(args, format);
    r->size += (size_t)vsnprintf(r->text + r->size, sizeof(r->text) - r->size, format, args);
    va_end(args);
    assert_true(r->size < sizeof(r->text));
}

static void describe(const struct sotto_state * state, struct record * r) {
    memset(r, 0, sizeof(*r));
    put(r, "language %d\n", sotto_get_language(state));
    for (int i = 0; i < sotto_n_windows(state); i++) {
        const struct sotto_window * w = sotto_get_window(state, i);
        put(r, "window %lld %d %d %a:", (long long)w->seek, w->n_frames, w->skipped, w->sum_logprob);
        for (int k = 0; k < w->n_tokens; k++)
            put(r, " %d", sotto_get_window_token(state, i, k)->id);
        put(r, "\n");
    }
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * s = sotto_get_segment(state, i);
        put(r, "segment %lld %lld %d %zu\n", (long long)s->t0, (long long)s->t1, s->n_tokens, s->text_size);
        assert_int_equal(strlen(s->text) <= s->text_size, 1);
    }
}

static void run(struct sotto_state * state, const struct sotto_transcribe_params * p, struct record * r) {
    assert_int_equal(sotto_transcribe(state, sound, BRIEF, p), SOTTO_OK);
    describe(state, r);
}

/* ---- sound that holds nothing ---- */

/* A08: a handful of samples. */
static void test_short(void ** test) {
    (void)test;
    static const size_t sizes[] = { 0, 1, 2, 199, 200, 201, 399, 400, 1599 };
    struct sotto_state * state = new_state(1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        float * exact = malloc(sizes[i] * sizeof(float) + 1); /* so that a sanitizer sees the end */
        memcpy(exact, sound, sizes[i] * sizeof(float));
        assert_int_equal(sotto_transcribe(state, sizes[i] ? exact : NULL, sizes[i], NULL), SOTTO_OK);
        assert_int_equal(sotto_n_segments(state), 0);
        assert_int_equal(sotto_n_windows(state), 0);
        free(exact);
    }
    struct sotto_transcribe_params p = quick();
    assert_int_equal(sotto_transcribe(state, sound, 1600, &p), SOTTO_OK); /* 100 ms are looked at */
    assert_int_equal(sotto_n_windows(state), 1);
    assert_int_equal(sotto_get_window(state, 0)->n_frames, 10);
    sotto_state_free(state);
}

static void test_silence(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(1);
    assert_int_equal(sotto_transcribe(state, silence, N_SAMPLES, NULL), SOTTO_OK);
    assert_int_equal(sotto_n_segments(state), 0);
    assert_int_equal(sotto_n_windows(state), 2);
    assert_true(sotto_get_window(state, 0)->skipped && sotto_get_window(state, 1)->skipped);
    assert_int_equal(sotto_get_language(state), -1);
    sotto_state_free(state);
}

/* D07: language is found on the window that is decoded first. */
static void test_silence_first(void ** test) {
    (void)test;
    enum { N = N_SAMPLES + BRIEF };
    static float both[N];
    memcpy(both + N_SAMPLES, sound, BRIEF * sizeof(float));
    struct sotto_state * state = new_state(2);
    struct sotto_transcribe_params p = quick();
    p.language = NULL;
    assert_int_equal(sotto_transcribe(state, both, N, &p), SOTTO_OK);
    assert_true(sotto_get_window(state, 0)->skipped);
    assert_int_equal(sotto_get_window(state, 1)->seek, 3000);
    assert_false(sotto_get_window(state, 1)->skipped);
    int n, language = -1;
    const float * probs = sotto_get_language_probs(state, &n);
    assert_int_equal(n, 99);
    float first[99];
    memcpy(first, probs, sizeof(first));
    assert_int_equal(sotto_pcm_to_mel(state, both, N, 3000, SOTTO_PAD_ZERO), SOTTO_OK);
    assert_int_equal(sotto_encode(state), SOTTO_OK);
    assert_int_equal(sotto_detect_language(state, &language), SOTTO_OK);
    assert_memory_equal(sotto_get_language_probs(state, NULL), first, sizeof(first));
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += first[i];
    assert_float_equal(sum, 1, 1e-5);
    sotto_state_free(state);
}

/* D05: ranges that leave the sound. */
static void test_ranges(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(2);
    struct sotto_transcribe_params p = quick();
    static const int64_t beyond[] = { 300, 301, 3990, 1000000, INT64_MAX };
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        p.offset = beyond[i];
        p.duration = i % 2 ? INT64_MAX : 0;
        assert_int_equal(sotto_transcribe(state, sound, 3 * RATE, &p), SOTTO_OK);
        assert_int_equal(sotto_n_windows(state), 0);
        assert_int_equal(sotto_get_language(state), 0);
    }
    p.language = NULL; /* D07: nothing to listen to */
    assert_int_equal(sotto_transcribe(state, sound, 3 * RATE, &p), SOTTO_OK);
    assert_int_equal(sotto_get_language(state), -1);
    assert_null(sotto_get_language_probs(state, NULL));
    p.language = "en";
    p.offset = 100;
    p.duration = 201; /* a little too long */
    assert_int_equal(sotto_transcribe(state, sound, 3 * RATE, &p), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->seek, 100);
    assert_int_equal(sotto_get_window(state, 0)->n_frames, 200);
    p.duration = 50;
    assert_int_equal(sotto_transcribe(state, sound, 3 * RATE, &p), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->n_frames, 50);
    sotto_state_free(state);
}

/* ---- bad arguments ---- */

static void refuse(struct sotto_state * state, const struct sotto_transcribe_params * p, enum sotto_status status,
                   const char * word) {
    enum sotto_status got = sotto_transcribe(state, sound, RATE, p);
    if (got != status || !strstr(sotto_last_error_text(), word))
        fail_msg("%s: \"%s\", want %s and \"%s\"", sotto_status_name(got), sotto_last_error_text(),
                 sotto_status_name(status), word);
}

static void test_bad_params(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(1);
    struct sotto_transcribe_params good = quick(), p = good;
    p.size = 4;
    refuse(state, &p, SOTTO_E_PARAM, "size");
    p = good;
    p.n_threads = -1;
    refuse(state, &p, SOTTO_E_PARAM, "n_threads");
    p = good;
    p.max_tokens = -1;
    refuse(state, &p, SOTTO_E_PARAM, "max_tokens");
    p = good;
    p.n_max_text_ctx = -1;
    refuse(state, &p, SOTTO_E_PARAM, "n_max_text_ctx");
    p = good;
    p.offset = -1;
    refuse(state, &p, SOTTO_E_PARAM, "offset");
    p = good;
    p.pad_mode = (enum sotto_pad_mode)9;
    refuse(state, &p, SOTTO_E_PARAM, "pad_mode");
    p = good;
    p.language = "klingon";
    refuse(state, &p, SOTTO_E_LANGUAGE, "klingon");
    p.language = "yue"; /* not in a vocabulary of 51,865 */
    refuse(state, &p, SOTTO_E_LANGUAGE, "cantonese");
    assert_int_equal(sotto_transcribe(NULL, sound, RATE, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_transcribe(state, NULL, RATE, NULL), SOTTO_E_NULLARG);
    sotto_state_free(state);
}

static void test_bad_samples(void ** test) {
    (void)test;
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    struct sotto_state * state = new_state(1);
    float copy[1600];
    for (size_t i = 0; i < 3; i++) {
        memcpy(copy, sound, sizeof(copy));
        copy[1234] = bad[i];
        assert_int_equal(sotto_transcribe(state, copy, 1600, NULL), SOTTO_E_AUDIO_NAN);
        assert_non_null(strstr(sotto_last_error_text(), "1234"));
        assert_int_equal(sotto_pcm_to_mel(state, copy, 1600, 0, SOTTO_PAD_ZERO), SOTTO_E_AUDIO_NAN);
    }
    sotto_state_free(state);
}

static void test_bad_state_params(void ** test) {
    (void)test;
    struct sotto_state * state;
    struct sotto_state_params p = { 0 };
    assert_int_equal(sotto_state_new(NULL, NULL, &state), SOTTO_E_NULLARG);
    assert_int_equal(sotto_state_new(model, &p, &state), SOTTO_E_PARAM);
    p = sotto_state_default_params();
    p.n_threads = 513;
    assert_int_equal(sotto_state_new(model, &p, &state), SOTTO_E_PARAM);
    p = sotto_state_default_params();
    p.cache_type = SOTTO_TYPE_I32;
    assert_int_equal(sotto_state_new(model, &p, &state), SOTTO_E_PARAM);
    p = sotto_state_default_params();
    p.compute = (enum sotto_compute)2;
    assert_int_equal(sotto_state_new(model, &p, &state), SOTTO_E_PARAM);
    assert_null(state);
    sotto_state_free(NULL);
}

static void test_bad_steps(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(1);
    int32_t tokens[448] = { 50258 };
    int language;
    assert_int_equal(sotto_decode(state, tokens, 1, 0), SOTTO_E_STATE);
    assert_int_equal(sotto_detect_language(state, &language), SOTTO_E_STATE);
    assert_null(sotto_get_encoder_output(state));
    assert_null(sotto_get_logits(state));
    assert_int_equal(sotto_set_mel(state, sound, 10, 128), SOTTO_E_PARAM);
    assert_int_equal(sotto_set_mel(state, sound, 3001, 80), SOTTO_E_PARAM);
    assert_int_equal(sotto_set_mel(state, sound, 6710887, 80), SOTTO_E_PARAM); /* times 80 this passes 2^29 floats */
    assert_int_equal(sotto_set_mel(state, NULL, 10, 80), SOTTO_E_NULLARG);
    assert_int_equal(sotto_pcm_to_mel(state, sound, RATE, 101, SOTTO_PAD_ZERO), SOTTO_E_PARAM);
    assert_int_equal(sotto_pcm_to_mel(state, sound, RATE, -1, SOTTO_PAD_ZERO), SOTTO_E_PARAM);
    assert_int_equal(sotto_set_mel(state, NULL, 0, 80), SOTTO_OK); /* all zeros */
    assert_int_equal(sotto_encode(state), SOTTO_OK);
    assert_int_equal(sotto_decode(state, NULL, 1, 0), SOTTO_E_NULLARG);
    assert_int_equal(sotto_decode(state, tokens, 0, 0), SOTTO_E_PARAM);
    assert_int_equal(sotto_decode(state, tokens, 1, 1), SOTTO_E_PARAM); /* nothing at position 0 */
    assert_int_equal(sotto_decode(state, tokens, 449, 0), SOTTO_E_PARAM);
    tokens[1] = 51865;
    assert_int_equal(sotto_decode(state, tokens, 2, 0), SOTTO_E_PARAM);
    tokens[1] = -1;
    assert_int_equal(sotto_decode(state, tokens, 2, 0), SOTTO_E_PARAM);
    tokens[1] = 0;
    assert_int_equal(sotto_decode(state, tokens, 448, 0), SOTTO_OK); /* the whole context */
    assert_int_equal(sotto_decode(state, tokens, 1, 448), SOTTO_E_PARAM);
    sotto_state_free(state);
}

/* ---- one prompt or many steps ---- */

static void test_chunks_do_not_show(void ** test) {
    (void)test;
    enum { N = 150 };
    struct sotto_state * state = new_state(2);
    int32_t tokens[N];
    for (int i = 0; i < N; i++)
        tokens[i] = (int32_t)((i * 7919u) % 51865u);
    assert_int_equal(sotto_pcm_to_mel(state, sound, BRIEF, 0, SOTTO_PAD_ZERO), SOTTO_OK);
    assert_int_equal(sotto_encode(state), SOTTO_OK);
    assert_int_equal(sotto_decode(state, tokens, N, 0), SOTTO_OK);
    size_t size = 51865 * sizeof(float);
    float * first = malloc(size);
    assert_non_null(first);
    memcpy(first, sotto_get_logits(state), size);
    static const int steps[] = { 1, 3, 17, 64, 65 };
    for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
        for (int at = 0; at < N; at += steps[k])
            assert_int_equal(sotto_decode(state, tokens + at, N - at < steps[k] ? N - at : steps[k], at), SOTTO_OK);
        assert_memory_equal(sotto_get_logits(state), first, size);
    }
    free(first);
    sotto_state_free(state);
}

/* ---- callbacks ---- */

struct seen {
    int n_segments, last_percent, n_progress;
    bool inner_busy;
};

static void on_segment(struct sotto_state * state, int n_new, void * user_data) {
    struct seen * seen = user_data;
    assert_true(n_new > 0);
    seen->n_segments += n_new;
    assert_int_equal(sotto_n_segments(state), seen->n_segments);
    assert_non_null(sotto_get_segment(state, seen->n_segments - 1)->text);
    seen->inner_busy =
        sotto_transcribe(state, sound, RATE, NULL) == SOTTO_E_BUSY && sotto_encode(state) == SOTTO_E_BUSY;
}

static void on_progress(struct sotto_state * state, int percent, void * user_data) {
    struct seen * seen = user_data;
    assert_non_null(state);
    assert_true(percent >= seen->last_percent && percent <= 100);
    seen->last_percent = percent;
    seen->n_progress++;
}

static void test_callbacks(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(2);
    struct seen seen = { 0 };
    struct sotto_transcribe_params p = quick();
    p.no_timestamps = true; /* a segment a window */
    p.new_segment = on_segment;
    p.new_segment_user_data = &seen;
    p.progress = on_progress;
    p.progress_user_data = &seen;
    assert_int_equal(sotto_transcribe(state, sound, N_SAMPLES, &p), SOTTO_OK);
    assert_true(seen.n_segments > 0);
    assert_int_equal(seen.n_segments, sotto_n_segments(state));
    assert_true(seen.inner_busy);
    assert_int_equal(seen.last_percent, 100);
    assert_int_equal(seen.n_progress, sotto_n_windows(state) + 1);
    sotto_state_free(state);
}

static bool count_down(void * user_data) {
    int * left = user_data;
    return --*left < 0;
}

/* Stopped at the first, second, ... question; each time the state can be used again. */
static void test_abort(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(2);
    struct sotto_transcribe_params p = quick(), stop;
    struct record whole, again;
    run(state, &p, &whole);
    int n_aborted = 0;
    for (int n = 0; n < 200; n = n * 3 + 1) {
        int left = n;
        stop = p;
        stop.abort = count_down;
        stop.abort_user_data = &left;
        enum sotto_status status = sotto_transcribe(state, sound, BRIEF, &stop);
        assert_true(status == SOTTO_E_ABORTED || status == SOTTO_OK);
        n_aborted += status == SOTTO_E_ABORTED;
    }
    assert_true(n_aborted >= 4);
    run(state, &p, &again);
    assert_string_equal(again.text, whole.text);
    sotto_state_free(state);
}

/* ---- independence ---- */

/* L06: a call leaves nothing behind that the next one notices. */
static void test_calls_are_independent(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(1);
    struct sotto_transcribe_params p = quick(), other = quick();
    struct record fresh, later;
    run(state, &p, &fresh);
    sotto_state_free(state);
    state = new_state(1);
    other.language = NULL;
    other.translate = true;
    other.offset = 50;
    other.duration = 90;
    other.no_timestamps = true;
    other.suppress_nst = false;
    other.initial_prompt = "a prompt of its own, quite long, to fill rows of the cache";
    other.n_threads = 3;
    other.pad_mode = SOTTO_PAD_SILENCE;
    static const double times[] = { 0.6, 0.9, 1.2 };
    static const int32_t none[] = { 1, 2, 3, 50364 };
    other.clip_times = times;
    other.n_clip_times = 3;
    other.suppress_tokens = none;
    other.n_suppress_tokens = 4;
    other.suppress_regex = "[a-z]+";
    other.no_repeat_ngram = 1;
    other.beam_size = 2;
    other.seed = 7;
    assert_int_equal(sotto_transcribe(state, sound, BRIEF, &other), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->seek, 60);
    run(state, &p, &later);
    assert_string_equal(later.text, fresh.text);
    sotto_state_free(state);
}

/* D08: a prompt is used, and a too long one keeps its end. */
static void test_prompt(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(1);
    struct sotto_transcribe_params p = quick();
    p.initial_prompt = "  ";
    assert_int_equal(sotto_transcribe(state, sound, RATE, &p), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 3);
    p.initial_prompt = "a";
    assert_int_equal(sotto_transcribe(state, sound, RATE, &p), SOTTO_OK);
    assert_true(sotto_get_window(state, 0)->n_prompt > 4);
    char prompt[3000];
    memset(prompt, 0, sizeof(prompt));
    for (size_t i = 0; i + 2 < sizeof(prompt); i += 2)
        memcpy(prompt + i, " z", 2);
    p.initial_prompt = prompt;
    assert_int_equal(sotto_transcribe(state, sound, RATE, &p), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 224 + 3);
    p.n_max_text_ctx = 10;
    assert_int_equal(sotto_transcribe(state, sound, RATE, &p), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 10 + 3);
    sotto_state_free(state);
}

struct job {
    pthread_t thread;
    struct sotto_state * state;
    enum sotto_status status;
};

static void * work(void * user_data) {
    struct job * job = user_data;
    struct sotto_transcribe_params p = quick();
    job->status = sotto_transcribe(job->state, sound, BRIEF, &p);
    return NULL;
}

static void test_states_side_by_side(void ** test) {
    (void)test;
    enum { N = 2 };
    struct job jobs[N];
    struct record first, other;
    for (int i = 0; i < N; i++) {
        jobs[i].state = new_state(2);
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < N; i++)
        pthread_join(jobs[i].thread, NULL);
    describe(jobs[0].state, &first);
    assert_true(sotto_n_windows(jobs[0].state) > 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(jobs[i].status, SOTTO_OK);
        describe(jobs[i].state, &other);
        assert_string_equal(other.text, first.text);
        sotto_state_free(jobs[i].state);
    }
}

static void test_getters_outside(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(1);
    assert_int_equal(sotto_n_segments(NULL), 0);
    assert_null(sotto_get_segment(NULL, 0));
    assert_null(sotto_get_segment(state, 0));
    assert_null(sotto_get_segment(state, -1));
    assert_null(sotto_get_window(state, 0));
    assert_null(sotto_get_segment_token(state, 0, 0));
    assert_null(sotto_get_window_token(state, 0, 0));
    assert_null(sotto_get_language_probs(state, NULL));
    assert_ptr_equal(sotto_state_model(state), model);
    sotto_state_free(state);
}

int main(void) {
    uint32_t random = 1;
    for (int i = 0; i < N_SAMPLES; i++) {
        random = random * 1664525u + 1013904223u;
        sound[i] = 0.3f * sinf(0.08f * (float)i) + 0.05f * ((float)(random >> 8) / 8388608.0f - 1.0f);
    }
    if (!tiny_model() || sotto_model_open(tiny_model(), NULL, &model) != SOTTO_OK) {
        fprintf(stderr, "test_transcribe: %s\n", sotto_last_error_text());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_silence_first),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_bad_params),
        cmocka_unit_test(test_bad_samples),
        cmocka_unit_test(test_bad_state_params),
        cmocka_unit_test(test_bad_steps),
        cmocka_unit_test(test_chunks_do_not_show),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_calls_are_independent),
        cmocka_unit_test(test_prompt),
        cmocka_unit_test(test_states_side_by_side),
        cmocka_unit_test(test_getters_outside),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sotto_model_free(model);
    return failed;
}
