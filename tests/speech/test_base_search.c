/* SPDX-License-Identifier: MIT */
/* Prefix, beams, draws and clips on Whisper base in f32 and real speech. Tokens and averages are those of faster-whisper
 * 1.2.1 for the same calls; what is drawn has no such truth and is held to reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/media.h"
#include "sotto/speech.h"

static struct sotto_model * model;
static struct sotto_state * state;
static struct sotto_audio * jfk;

static struct sotto_transcribe_params english(void) {
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    p.language = "en";
    p.early_end = false;
    return p;
}

static void run(const struct sotto_transcribe_params * p) {
    enum sotto_status status = sotto_transcribe(state, jfk->samples, jfk->n_samples, p);
    if (status != SOTTO_OK)
        fail_msg("%s", sotto_last_error_text());
}

static void expect(const int32_t * tokens, int n, double avg_logprob) {
    const struct sotto_window * w = sotto_get_window(state, 0);
    assert_int_equal(w->n_tokens, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(sotto_get_window_token(state, 0, i)->id, tokens[i]);
    assert_float_equal(w->avg_logprob, avg_logprob, 1e-3);
}

/* " And so, my fellow", which the model would not write with a comma by itself. */
static void test_prefix(void ** test) {
    (void)test;
    static const int32_t greedy[] = { 50364, 400, 370,  11,  452, 7177, 6280, 11,   1029,  406,
                                      437,   428, 1941, 393, 360, 337,  291,  11,   50744, 50744,
                                      1029,  437, 291,  393, 360, 337,  428,  1941, 13,    50894 };
    static const int32_t beams[] = { 50364, 400, 370,  11,  452, 7177, 6280, 11,   1029,  406,
                                     437,   428, 1941, 393, 360, 337,  291,  11,   50764, 50764,
                                     1029,  437, 291,  393, 360, 337,  428,  1941, 13,    50914 };
    struct sotto_transcribe_params p = english();
    p.prefix = "And so, my fellow";
    run(&p);
    expect(greedy, 30, -0.3073);
    p.beam_size = 5;
    run(&p);
    expect(beams, 30, -0.2144);
    assert_int_equal(sotto_get_window(state, 0)->n_attempts, 1);
    assert_int_equal(sotto_get_segment(state, 0)->t1, 800);
}

/* At 0.6 the likeliest of five samples is the text, commas aside; its average is that of the plain distribution. */
static void test_samples(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = english();
    p.temperature = 0.6f;
    run(&p);
    const struct sotto_window * w = sotto_get_window(state, 0);
    assert_float_equal(w->temperature, 0.6f, 1e-6);
    assert_int_equal(w->n_attempts, 1);
    assert_true(w->avg_logprob > -0.6f && w->avg_logprob < -0.1f);
    char text[512] = "";
    for (int i = 0; i < sotto_n_segments(state); i++)
        strncat(text, sotto_get_segment(state, i)->text, sizeof(text) - strlen(text) - 1);
    assert_non_null(strstr(text, "what you can do for your country"));
}

/* Nothing from outside a clip is written, and times are those of the recording. */
static void test_clip(void ** test) {
    (void)test;
    static const double times[] = { 7.6, 11 };
    struct sotto_transcribe_params p = english();
    p.clip_times = times;
    p.n_clip_times = 2;
    run(&p);
    assert_int_equal(sotto_n_windows(state), 1);
    assert_int_equal(sotto_get_window(state, 0)->n_frames, 340);
    assert_true(sotto_n_segments(state) > 0);
    assert_true(sotto_get_segment(state, 0)->t0 >= 760);
    assert_null(strstr(sotto_get_segment(state, 0)->text, "Americans"));
    assert_non_null(strstr(sotto_get_segment(state, sotto_n_segments(state) - 1)->text, "country"));
}

static bool set_up(void) {
    char path[1024];
    const char *models = getenv("SOTTO_MODELS"), *audio = getenv("SOTTO_AUDIO"), *home = getenv("HOME");
    if (models)
        snprintf(path, sizeof(path), "%s/base-f32.gguf", models);
    else
        snprintf(path, sizeof(path), "%s/.cache/sotto/models/base-f32.gguf", home ? home : "");
    if (sotto_model_open(path, NULL, &model) != SOTTO_OK || sotto_state_new(model, NULL, &state) != SOTTO_OK)
        return false;
    if (audio)
        snprintf(path, sizeof(path), "%s/jfk.wav", audio);
    else
        snprintf(path, sizeof(path), "%s/.cache/sotto/audio/jfk.wav", home ? home : "");
    return sotto_audio_load(path, NULL, &jfk) == SOTTO_OK;
}

int main(void) {
    if (!set_up()) {
        fprintf(stderr, "test_base_search: %s\n", sotto_last_error_text());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_clip),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sotto_audio_free(jfk);
    sotto_state_free(state);
    sotto_model_free(model);
    return failed;
}
