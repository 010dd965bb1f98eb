/* SPDX-License-Identifier: MIT */
/* What can be asked of sotto_transcribe, on the tiny model: each field that is refused is named, prompts and prefixes
 * arrive where they should, clips are looked at and nothing else, forbidden tokens are not written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/log.h"
#include "sotto/speech.h"
#include "support/tiny_model.h"

enum { RATE = 16000, BRIEF = 2 * RATE, N_SAMPLES = 62 * RATE, BEG = 50364, EOT = 50257 };

static float sound[N_SAMPLES];
static struct sotto_model * model;
static struct sotto_state * state;

static struct sotto_transcribe_params quick(void) {
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    p.language = "en";
    p.no_speech_thold = 1.0f;
    p.temperature_inc = 0;
    p.single_segment = true;
    p.max_tokens = 6;
    return p;
}

static void run(const struct sotto_transcribe_params * p, size_t n) {
    enum sotto_status status = sotto_transcribe(state, sound, n, p);
    if (status != SOTTO_OK)
        fail_msg("%s", sotto_last_error_text());
}

static int32_t token(int window, int i) {
    const struct sotto_token_data * t = sotto_get_window_token(state, window, i);
    assert_non_null(t);
    return t->id;
}

/* ---- refusals ---- */

static void refuse_as(enum sotto_status want, struct sotto_transcribe_params p, const char * field) {
    enum sotto_status got = sotto_transcribe(state, sound, BRIEF, &p);
    if (got != want || !strstr(sotto_last_error_text(), field))
        fail_msg("%s: \"%s\", want %s and \"%s\"", sotto_status_name(got), sotto_last_error_text(),
                 sotto_status_name(want), field);
}

static void refuse(struct sotto_transcribe_params p, const char * field) { refuse_as(SOTTO_E_PARAM, p, field); }

#define REFUSE(field, value)                          \
    do {                                              \
        struct sotto_transcribe_params bad = quick(); \
        bad.field = value;                            \
        refuse(bad, "params." #field);                \
    } while (0)

static void test_bad_numbers(void ** test) {
    (void)test;
    REFUSE(beam_size, 0);
    REFUSE(beam_size, SOTTO_MAX_DECODERS + 1);
    REFUSE(best_of, 0);
    REFUSE(best_of, SOTTO_MAX_DECODERS + 1);
    REFUSE(patience, 2.0f); /* without beams */
    REFUSE(patience, NAN);
    REFUSE(length_penalty, 1.5f);
    REFUSE(length_penalty, NAN);
    REFUSE(temperature, -0.1f);
    REFUSE(temperature, NAN);
    REFUSE(temperature_inc, INFINITY);
    REFUSE(entropy_thold, -1.0f);
    REFUSE(entropy_thold, NAN);
    REFUSE(no_repeat_ngram, -1);
    REFUSE(language_detection_segments, 0);
    REFUSE(n_clip_times, -1);
    REFUSE(n_suppress_tokens, -1);
    REFUSE(n_prompt_tokens, -1);
    struct sotto_transcribe_params p = quick();
    p.beam_size = 2;
    p.patience = 0.1f;
    refuse(p, "params.patience");
    p.patience = 1e30f;
    refuse(p, "params.patience");
    p.patience = -1.0f;
    refuse(p, "params.patience");
}

static void test_bad_lists(void ** test) {
    (void)test;
    static const int32_t ids[] = { 1, 51865 }, negative[] = { -1 };
    static const double falling[] = { 1, 2, 1.5 }, below[] = { -1 }, no_number[] = { NAN }, endless[] = { 0, INFINITY };
    struct sotto_transcribe_params p = quick();
    p.suppress_tokens = ids;
    p.n_suppress_tokens = 2;
    refuse(p, "suppress_tokens[1]");
    p = quick();
    p.prompt_tokens = negative;
    p.n_prompt_tokens = 1;
    refuse(p, "prompt_tokens[0]");
    p.prompt_tokens = NULL;
    refuse(p, "prompt_tokens");
    p.prompt_tokens = ids;
    p.initial_prompt = "both";
    refuse(p, "prompt_tokens");
    p = quick();
    p.clip_times = falling;
    p.n_clip_times = 3;
    refuse(p, "clip_times[2]");
    p.clip_times = below;
    p.n_clip_times = 1;
    refuse(p, "clip_times[0]");
    p.clip_times = no_number;
    refuse(p, "clip_times[0]");
    p.clip_times = endless;
    p.n_clip_times = 2;
    refuse(p, "clip_times[1]");
    p = quick();
    p.suppress_regex = "(a";
    refuse_as(SOTTO_E_REGEX, p, "params.suppress_regex");
}

/* ---- prompts ---- */

static void expect_prompt(struct sotto_transcribe_params p, int n) {
    run(&p, BRIEF);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, n);
}

/* 3 tokens of the task always, one that introduces earlier text. */
static void test_lengths_of_prompts(void ** test) {
    (void)test;
    int32_t ids[300];
    char words[1200] = "";
    for (int i = 0; i < 300; i++) {
        ids[i] = 300 + i;
        memcpy(words + 2 * i, " z", 3);
    }
    struct sotto_transcribe_params p = quick();
    expect_prompt(p, 3);
    p.hotwords = "a";
    expect_prompt(p, 1 + 1 + 3);
    p.prompt_tokens = ids;
    p.n_prompt_tokens = 4;
    expect_prompt(p, 1 + 1 + 4 + 3);
    p.n_prompt_tokens = 300;
    expect_prompt(p, 224 + 3);
    p.carry_initial_prompt = true;
    expect_prompt(p, 224 + 3);
    p.hotwords = words;
    expect_prompt(p, 224 + 3);
    p.prefix = "a"; /* no hotwords then */
    expect_prompt(p, 224 + 3 + 2);
    p.prefix = words; /* 223 of its tokens; the oldest of the prompt make way */
    expect_prompt(p, 447);
    p.n_max_text_ctx = 0;
    expect_prompt(p, 3 + 224);
    p = quick();
    p.prefix = " \n";
    p.hotwords = "";
    expect_prompt(p, 3);
}

/* The result begins with the prefix, whatever is searched how; only the first window's does. */
static void test_prefix(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    int32_t ids[8];
    size_t n;
    assert_int_equal(sotto_tokenize(model, " hello there", 12, ids, 8, &n), SOTTO_OK);
    p.prefix = "  hello there ";
    p.max_tokens = 0;
    for (int way = 0; way < 3; way++) {
        p.beam_size = way == 1 ? 3 : 1;
        p.temperature = way == 2 ? 0.7f : 0.0f;
        run(&p, way == 0 ? 32 * RATE : BRIEF);
        assert_int_equal(token(0, 0), BEG);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(token(0, 1 + (int)i), ids[i]);
        assert_float_equal(sotto_get_window_token(state, 0, 1)->plog, 0, 0);
        assert_int_equal(memcmp(sotto_get_segment(state, 0)->text, " hello there", 12), 0);
        const struct sotto_window * w = sotto_get_window(state, 0);
        assert_true(w->n_tokens > 1 + (int)n);
        assert_float_equal(w->avg_logprob, w->sum_logprob / (w->n_tokens + 1), 1e-5);
        if (way == 0)
            assert_true(token(1, 1) != ids[0] || token(1, 2) != ids[1]);
    }
    p = quick();
    p.no_timestamps = true;
    p.prefix = "hello there";
    run(&p, BRIEF);
    assert_int_equal(token(0, 0), ids[0]);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 4 + (int)n);
}

/* Carried, the initial prompt is in every window's; otherwise only until the history is full or dropped. */
static void test_carried_prompt(void ** test) {
    (void)test;
    static const int32_t ids[] = { 300, 301 };
    struct sotto_transcribe_params p = quick();
    p.prompt_tokens = ids;
    p.n_prompt_tokens = 2;
    p.condition_on_previous_text = false;
    run(&p, N_SAMPLES);
    assert_int_equal(sotto_n_windows(state), 3);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 1 + 2 + 3);
    assert_int_equal(sotto_get_window(state, 1)->n_prompt, 3);
    p.carry_initial_prompt = true;
    run(&p, N_SAMPLES);
    assert_int_equal(sotto_get_window(state, 1)->n_prompt, 1 + 2 + 3);
    p.condition_on_previous_text = true;
    run(&p, N_SAMPLES);
    int n = sotto_get_segment(state, 0)->n_tokens;
    assert_true(n > 0);
    assert_int_equal(sotto_get_window(state, 1)->n_prompt, 1 + 2 + n + 3);
    assert_int_equal(sotto_get_window(state, 2)->n_prompt, 1 + 2 + 3); /* less than 5 s: no history */
    p.temperature = 0.6f; /* what was drawn so hot is forgotten, and no earlier text is used */
    run(&p, N_SAMPLES);
    assert_int_equal(sotto_get_window(state, 1)->n_prompt, 3);
}

/* ---- what may be written ---- */

static bool wrote(int32_t id) {
    for (int i = 0; i < sotto_get_window(state, 0)->n_tokens; i++)
        if (token(0, i) == id)
            return true;
    return false;
}

static char said[2048];

static void keep_warnings(enum sotto_log_level level, const char * text, void * user_data) {
    (void)user_data;
    if (level == SOTTO_LOG_WARN && strlen(said) + strlen(text) < sizeof(said))
        strcat(said, text);
}

static void warns(struct sotto_transcribe_params p, size_t n, const char * expected) {
    said[0] = 0;
    sotto_log_set(keep_warnings, NULL);
    run(&p, n);
    sotto_log_set(NULL, NULL);
    if (expected == NULL ? said[0] != 0 : strstr(said, expected) == NULL)
        fail_msg("\"%s\", want \"%s\"", said, expected != NULL ? expected : "");
}

/* What is done otherwise than asked for is told. */
static void test_warnings(void ** test) {
    (void)test;
    char longer[3000];
    for (size_t i = 0; i < sizeof(longer); i++)
        longer[i] = i % 2 ? 'z' : ' ';
    longer[sizeof(longer) - 1] = 0;
    struct sotto_transcribe_params p = quick();
    warns(p, BRIEF, NULL);
    warns(p, 1599, "less than 100 ms");
    p.initial_prompt = "caf\xC3\xA9";
    warns(p, BRIEF, NULL);
    p.initial_prompt = "caf\xC3 \xFF";
    warns(p, BRIEF, "params.initial_prompt is not UTF-8");
    p.initial_prompt = longer;
    warns(p, BRIEF, "params.initial_prompt has ");
    p = quick();
    p.prefix = "x\xE4";
    warns(p, BRIEF, "params.prefix is not UTF-8");
}

/* D02: what is no good, and was drawn hot at last, is not what the next window goes on from. */
static void test_bad_text_is_no_prompt(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    run(&p, N_SAMPLES);
    assert_true(sotto_n_windows(state) >= 2 && sotto_get_window(state, 1)->n_prompt > 3);
    p.compression_ratio_thold = 0; /* any text repeats itself */
    p.temperature_inc = 0.5f;
    run(&p, N_SAMPLES);
    assert_int_equal(sotto_get_window(state, 0)->n_attempts, 3);
    assert_float_equal(sotto_get_window(state, 0)->temperature, 1, 0);
    for (int i = 0; i < sotto_n_windows(state); i++)
        assert_int_equal(sotto_get_window(state, i)->n_prompt, 3);
}

static void test_suppressed(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    int32_t ids[2];
    run(&p, BRIEF);
    ids[0] = token(0, 1);
    ids[1] = token(0, 2);
    p.suppress_tokens = ids;
    p.n_suppress_tokens = 2;
    for (p.beam_size = 1; p.beam_size < 4; p.beam_size += 2) {
        run(&p, BRIEF);
        assert_false(wrote(ids[0]) || wrote(ids[1]));
    }
    p = quick();
    p.suppress_regex = ".*[aeiou].*"; /* of the whole token */
    run(&p, BRIEF);
    assert_true(sotto_get_window(state, 0)->n_tokens > 1);
    for (int i = 0; i < sotto_get_window(state, 0)->n_tokens; i++)
        if (token(0, i) < EOT)
            assert_null(strpbrk(sotto_token_text(model, token(0, i), NULL), "aeiou"));
    p.suppress_regex = "[^a]"; /* tokens of one byte only */
    run(&p, BRIEF);
    for (int i = 0; i < sotto_get_window(state, 0)->n_tokens; i++) {
        size_t size;
        sotto_token_text(model, token(0, i), &size);
        assert_true(size != 1);
    }
}

static void test_single_segment(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    p.max_tokens = 40;
    run(&p, 31 * RATE);
    assert_int_equal(sotto_n_segments(state), 2);
    assert_int_equal(sotto_get_segment(state, 0)->t0, 0);
    assert_int_equal(sotto_get_segment(state, 0)->t1, 3000);
    assert_int_equal(sotto_get_segment(state, 1)->t1, 3100);
    assert_true(sotto_get_window(state, 0)->n_tokens <= 40);
}

/* ---- clips ---- */

static void test_clips(void ** test) {
    (void)test;
    static const double times[] = { 0.5, 1.0, 3.004, 3.006, 5, 40, 50 };
    struct sotto_transcribe_params p = quick();
    p.clip_times = times;
    p.n_clip_times = 7;
    run(&p, N_SAMPLES);
    static const int seeks[] = { 50, 500, 3500, 5000 }, sizes[] = { 50, 3000, 500, 1200 };
    assert_int_equal(sotto_n_windows(state), 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sotto_get_window(state, i)->seek, seeks[i]);
        assert_int_equal(sotto_get_window(state, i)->n_frames, sizes[i]);
    }
    p.offset = 600; /* the range of both */
    p.duration = 1000;
    run(&p, N_SAMPLES);
    assert_int_equal(sotto_n_windows(state), 1);
    assert_int_equal(sotto_get_window(state, 0)->seek, 600);
    assert_int_equal(sotto_get_window(state, 0)->n_frames, 1000);
    static const struct { /* D05: at the end, behind it, of no length */
        double from, to;
        int n_frames;
    } edges[] = { { 0, 62.0000625, 3000 }, { 61, 62.0000625, 100 }, { 61, 62, 100 }, { 62, 62.0000625, 0 },
                  { 62, 63, 0 },           { 63, 64, 0 },           { 30, 30, 0 },   { 30, 30.05, 0 } };
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        const double edge[] = { edges[i].from, edges[i].to };
        p = quick();
        p.clip_times = edge;
        p.n_clip_times = 2;
        run(&p, N_SAMPLES);
        assert_int_equal(sotto_n_windows(state) > 0, edges[i].n_frames > 0);
        if (edges[i].n_frames > 0)
            assert_int_equal(sotto_get_window(state, 0)->n_frames, edges[i].n_frames);
    }
    static const double beyond[] = { 100, 1e300 };
    p = quick();
    p.clip_times = beyond;
    p.n_clip_times = 2;
    run(&p, N_SAMPLES);
    assert_int_equal(sotto_n_windows(state), 0);
}

/* ---- language ---- */

static void test_several_windows_for_the_language(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    p.language = NULL;
    run(&p, N_SAMPLES);
    int first = sotto_get_language(state), n, again;
    float probs[100];
    memcpy(probs, sotto_get_language_probs(state, &n), 99 * sizeof(*probs));
    assert_int_equal(n, 99);
    p.language_detection_segments = 5; /* more than there are */
    p.language_detection_threshold = 0;
    run(&p, N_SAMPLES);
    assert_memory_equal(sotto_get_language_probs(state, NULL), probs, 99 * sizeof(*probs));
    p.language_detection_threshold = 1.0f;
    run(&p, N_SAMPLES); /* three windows that look alike to a model of noise */
    again = sotto_get_language(state);
    assert_true(again >= 0 && again < 99);
    assert_true(sotto_get_language_probs(state, NULL)[again] >= (again == first ? probs[first] : 0));
    struct sotto_transcribe_params given = quick(); /* the first window is decoded as if it had been encoded once */
    int tokens[6], n_tokens = sotto_get_window(state, 0)->n_tokens;
    assert_true(n_tokens <= 6);
    for (int i = 0; i < n_tokens; i++)
        tokens[i] = token(0, i);
    given.language = sotto_language_code(again);
    run(&given, N_SAMPLES);
    assert_int_equal(sotto_get_window(state, 0)->n_tokens, n_tokens);
    for (int i = 0; i < n_tokens; i++)
        assert_int_equal(token(0, i), tokens[i]);
}

/* Each window is decoded in the language that is found on it alone. */
static void test_a_language_a_window(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick(), alone = quick();
    int languages[8], n = 0;
    p.language = alone.language = NULL;
    p.multilingual = true;
    run(&p, N_SAMPLES);
    int64_t seeks[8];
    for (; n < sotto_n_windows(state) && n < 8; n++) {
        languages[n] = sotto_get_window(state, n)->language;
        seeks[n] = sotto_get_window(state, n)->seek;
    }
    assert_true(n >= 3);
    assert_int_equal(sotto_get_language(state), languages[n - 1]);
    for (int i = 0; i < n; i++) {
        alone.offset = seeks[i];
        run(&alone, N_SAMPLES);
        assert_int_equal(sotto_get_window(state, 0)->language, languages[i]);
        assert_int_equal(sotto_get_language(state), languages[i]);
    }
    p.language = "fr"; /* given, it stays */
    run(&p, N_SAMPLES);
    for (int i = 0; i < sotto_n_windows(state); i++)
        assert_string_equal(sotto_language_code(sotto_get_window(state, i)->language), "fr");
}

static void test_no_repeated_pairs(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    p.no_repeat_ngram = 2;
    p.max_tokens = 0;
    p.no_timestamps = true;
    run(&p, BRIEF);
    int n = sotto_get_window(state, 0)->n_tokens;
    assert_true(n > 20);
    for (int i = 1; i < n; i++)
        for (int k = i + 1; k < n; k++)
            assert_false(token(0, i) == token(0, k) && token(0, i - 1) == token(0, k - 1));
}

static void test_token_data(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    run(&p, BRIEF);
    const struct sotto_token_data * t = sotto_get_window_token(state, 0, 0); /* only timestamps may come first */
    assert_int_equal(t->id, t->tid);
    assert_float_equal(t->ptsum, 1, 1e-5);
    assert_float_equal(t->pt, t->p, 1e-5);
    for (int i = 1; i < sotto_get_window(state, 0)->n_tokens; i++) {
        t = sotto_get_window_token(state, 0, i);
        assert_int_equal(t->size, sizeof(*t));
        assert_true(t->tid >= BEG && t->pt >= 0 && t->pt <= 1.0001f && t->ptsum >= 0 && t->ptsum <= 1.0001f);
        assert_float_equal(t->p, expf(t->plog), 1e-6);
    }
}

int main(void) {
    tiny_model_not_plain_c();
    uint32_t random = 1;
    for (int i = 0; i < N_SAMPLES; i++) {
        random = random * 1664525u + 1013904223u;
        sound[i] = 0.3f * sinf(0.08f * (float)i) + 0.05f * ((float)(random >> 8) / 8388608.0f - 1.0f);
    }
    if (!tiny_model() || sotto_model_open(tiny_model(), NULL, &model) != SOTTO_OK ||
        sotto_state_new(model, NULL, &state) != SOTTO_OK) {
        fprintf(stderr, "test_params: %s\n", sotto_last_error_text());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_lengths_of_prompts),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_carried_prompt),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_bad_text_is_no_prompt),
        cmocka_unit_test(test_suppressed),
        cmocka_unit_test(test_single_segment),
        cmocka_unit_test(test_clips),
        cmocka_unit_test(test_several_windows_for_the_language),
        cmocka_unit_test(test_a_language_a_window),
        cmocka_unit_test(test_no_repeated_pairs),
        cmocka_unit_test(test_token_data),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sotto_state_free(state);
    sotto_model_free(model);
    return failed;
}
