/* SPDX-License-Identifier: MIT */
/* The recogniser on Whisper base in f16 and real speech: the text of jfk, tails beyond whole windows, silence before and
 * between, prompts, f16 beside f32 weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/media.h"
#include "sotto/speech.h"

#define RATE   16000
#define CLIP   "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0880.wav"
#define FRENCH "/usr/share/asterisk/sounds/fr_CA_f_June/vm-options.wav"

static struct sotto_model * model; /* base, f16 */
static struct sotto_state * state;
static struct sotto_audio *jfk, *clip;
static const char * jfk_text =
    " And so my fellow Americans ask not what your country can do for you, ask what you can do for your country.";

static void home_path(char * out, size_t size, const char * variable, const char * folder, const char * file) {
    const char * set = getenv(variable);
    if (set && set[0])
        snprintf(out, size, "%s/%s", set, file);
    else
        snprintf(out, size, "%s/.cache/sotto/%s/%s", getenv("HOME"), folder, file);
}

static struct sotto_transcribe_params english(void) {
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    p.language = "en";
    return p;
}

/* All texts of the last call, joined. */
static const char * text(const struct sotto_state * s) {
    static char all[8192];
    size_t n = 0;
    all[0] = 0;
    for (int i = 0; i < sotto_n_segments(s) && n < sizeof(all); i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s", sotto_get_segment(s, i)->text);
    return all;
}

/* A recording of `seconds`: zeros, with sounds added at places. */
static float * recording(double seconds, size_t * n) {
    *n = (size_t)(seconds * RATE);
    float * samples = calloc(*n, sizeof(float));
    assert_non_null(samples);
    return samples;
}

static void place(float * samples, size_t n, double seconds, const struct sotto_audio * sound) {
    size_t at = (size_t)(seconds * RATE);
    assert_true(at + sound->n_samples <= n);
    memcpy(samples + at, sound->samples, sound->n_samples * sizeof(float));
}

/* How often `word` occurs, letter case aside. */
static int occurrences(const char * where, const char * word) {
    int count = 0;
    size_t size = strlen(word);
    for (; *where; where++) {
        size_t i = 0;
        while (i < size && tolower((unsigned char)where[i]) == tolower((unsigned char)word[i]))
            i++;
        count += i == size;
    }
    return count;
}

static void test_jfk(void ** test) {
    (void)test;
    assert_int_equal(sotto_transcribe(state, jfk->samples, jfk->n_samples, NULL), SOTTO_OK); /* language detected */
    assert_string_equal(text(state), jfk_text);
    assert_string_equal(sotto_language_code(sotto_get_language(state)), "en");
    assert_true(sotto_get_language_probs(state, NULL)[0] > 0.9f);
    assert_int_equal(sotto_n_segments(state), 2);
    assert_int_equal(sotto_get_segment(state, 0)->t0, 0);
    assert_int_equal(sotto_get_segment(state, 0)->t1, 760);
    assert_int_equal(sotto_get_segment(state, 1)->t1, 1060);
    assert_float_equal(sotto_get_segment(state, 0)->compression_ratio, 1.341772, 1e-5);
}

/* A10: speech in the last seconds, past the last whole window. */
static void test_tail(void ** test) {
    (void)test;
    static const double seconds[] = { 31, 45, 60.5 };
    struct sotto_transcribe_params p = english();
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        size_t n;
        float * samples = recording(seconds[i], &n);
        place(samples, n, 0, clip);
        place(samples, n, seconds[i] - (double)jfk->n_samples / RATE, jfk);
        assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
        if (!strstr(text(state), "for your country."))
            fail_msg("%.1f s: the last words are missing: %s", seconds[i], text(state));
        free(samples);
    }
}

/* D03: 11 s of speech and 19 s of silence are one window, and nothing is heard in the silence. */
static void test_nothing_after_speech(void ** test) {
    (void)test;
    size_t n;
    float * samples = recording(30, &n);
    struct sotto_transcribe_params p = english();
    place(samples, n, 0, jfk);
    assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
    int last = sotto_n_segments(state) - 1;
    assert_true(last >= 0);
    assert_true(sotto_get_segment(state, last)->t1 <= 1200);
    assert_int_equal(sotto_n_windows(state), 1);
    free(samples);
}

/* D07: the language of what is decoded, though 40 s of zeros come first; and with an offset. */
static void test_language_of_the_first_speech(void ** test) {
    (void)test;
    size_t n;
    float * samples = recording(52, &n);
    place(samples, n, 40, jfk);
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
    assert_string_equal(sotto_language_code(sotto_get_language(state)), "en");
    assert_true(sotto_get_window(state, 0)->skipped);
    assert_int_equal(occurrences(text(state), "country"), 2);
    p.offset = 4000;
    assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->seek, 4000);
    assert_string_equal(text(state), jfk_text);
    assert_true(sotto_get_segment(state, 0)->t0 >= 4000);
    free(samples);
}

/* D07: a minute of English, then one of French; with an offset the French is what counts, and with `multilingual` both. */
static void test_language_behind_an_offset(void ** test) {
    (void)test;
    struct sotto_audio_params params = sotto_audio_default_params();
    struct sotto_audio * french;
    params.rate = RATE;
    assert_int_equal(sotto_audio_load(FRENCH, &params, &french), SOTTO_OK);
    size_t n;
    float * samples = recording(120, &n);
    for (int i = 0; i < 5; i++)
        place(samples, n, 12 * i, jfk);
    double seconds = (double)french->n_samples / RATE;
    for (double at = 60; at + seconds < 120; at += seconds + 0.5)
        place(samples, n, at, french);
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    p.duration = 3000;
    assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
    assert_string_equal(sotto_language_code(sotto_get_language(state)), "en");
    p.offset = 6000;
    assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
    assert_string_equal(sotto_language_code(sotto_get_language(state)), "fr");
    p.offset = p.duration = 0;
    p.max_tokens = 20;
    p.multilingual = true;
    static const double times[] = { 20, 40, 70, 90 };
    p.clip_times = times;
    p.n_clip_times = 4;
    assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
    for (int i = 0; i < sotto_n_windows(state); i++) {
        const struct sotto_window * w = sotto_get_window(state, i);
        if (!w->skipped)
            assert_string_equal(sotto_language_code(w->language), w->seek < 6000 ? "en" : "fr");
    }
    free(samples);
    sotto_audio_free(french);
}

/* D02: silence between, earlier text carried on: the text before it is not repeated into it. */
static void test_silence_between(void ** test) {
    (void)test;
    size_t n;
    float * samples = recording(90, &n);
    struct sotto_transcribe_params p = english();
    place(samples, n, 0, clip);
    place(samples, n, 60, jfk);
    assert_int_equal(sotto_transcribe(state, samples, n, &p), SOTTO_OK);
    assert_int_equal(occurrences(text(state), "ill-disposed"), occurrences(text(state), "disposed"));
    assert_true(occurrences(text(state), "ill-disposed") <= 2);
    assert_int_equal(occurrences(text(state), "country"), 2);
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * s = sotto_get_segment(state, i);
        assert_true(s->t1 <= 1600 || s->t0 >= 5900);
    }
    free(samples);
}

/* D08: a prompt of one word does not cost the last clause. */
static void test_prompt_keeps_the_tail(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = english();
    p.initial_prompt = "Kennedy";
    assert_int_equal(sotto_transcribe(state, jfk->samples, jfk->n_samples, &p), SOTTO_OK);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 1 + 1 + 3); /* prev, the word, three of the task */
    assert_int_equal(occurrences(text(state), "country"), 2);
    assert_non_null(strstr(text(state), "what you can do for your country"));
}

static void test_without_timestamps(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = english();
    p.no_timestamps = true;
    assert_int_equal(sotto_transcribe(state, jfk->samples, jfk->n_samples, &p), SOTTO_OK);
    assert_int_equal(sotto_n_segments(state), 1);
    assert_int_equal(sotto_get_segment(state, 0)->t1, 1100);
    assert_int_equal(occurrences(text(state), "country"), 2);
    for (int i = 0; i < sotto_get_segment(state, 0)->n_tokens; i++)
        assert_true(sotto_get_segment_token(state, 0, i)->id < sotto_token_special(model, SOTTO_TOKEN_EOT));
}

/* f16 weights and caches: the same tokens as all in f32, probabilities near. */
static void test_f16_beside_f32(void ** test) {
    (void)test;
    char path[1024];
    home_path(path, sizeof(path), "SOTTO_MODELS", "models", "base-f32.gguf");
    struct sotto_model * wide = NULL;
    struct sotto_state * other = NULL;
    if (sotto_model_open(path, NULL, &wide) != SOTTO_OK)
        skip(); /* made by the conversion test */
    struct sotto_transcribe_params p = english();
    assert_int_equal(sotto_state_new(wide, NULL, &other), SOTTO_OK);
    const struct sotto_audio * sounds[] = { jfk, clip };
    for (int k = 0; k < 2; k++) {
        assert_int_equal(sotto_transcribe(state, sounds[k]->samples, sounds[k]->n_samples, &p), SOTTO_OK);
        assert_int_equal(sotto_transcribe(other, sounds[k]->samples, sounds[k]->n_samples, &p), SOTTO_OK);
        const struct sotto_window *a = sotto_get_window(state, 0), *b = sotto_get_window(other, 0);
        assert_int_equal(a->n_tokens, b->n_tokens);
        for (int i = 0; i < a->n_tokens; i++)
            assert_int_equal(sotto_get_window_token(state, 0, i)->id, sotto_get_window_token(other, 0, i)->id);
        assert_float_equal(a->avg_logprob, b->avg_logprob, 0.01);
        assert_float_equal(a->no_speech_prob, b->no_speech_prob, 0.01);
    }
    sotto_state_free(other);
    sotto_model_free(wide);
}

static bool set_up(void) {
    char path[1024];
    home_path(path, sizeof(path), "SOTTO_MODELS", "models", "base.gguf");
    if (sotto_model_open(path, NULL, &model) != SOTTO_OK || sotto_state_new(model, NULL, &state) != SOTTO_OK)
        return false;
    home_path(path, sizeof(path), "SOTTO_AUDIO", "audio", "jfk.wav");
    return sotto_audio_load(path, NULL, &jfk) == SOTTO_OK && sotto_audio_load(CLIP, NULL, &clip) == SOTTO_OK;
}

int main(void) {
    if (!set_up()) {
        fprintf(stderr, "test_base_transcribe: %s\n", sotto_last_error_text());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jfk),
        cmocka_unit_test(test_tail),
        cmocka_unit_test(test_nothing_after_speech),
        cmocka_unit_test(test_language_of_the_first_speech),
        cmocka_unit_test(test_language_behind_an_offset),
        cmocka_unit_test(test_silence_between),
        cmocka_unit_test(test_prompt_keeps_the_tail),
        cmocka_unit_test(test_without_timestamps),
        cmocka_unit_test(test_f16_beside_f32),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sotto_audio_free(jfk);
    sotto_audio_free(clip);
    sotto_state_free(state);
    sotto_model_free(model);
    return failed;
}
