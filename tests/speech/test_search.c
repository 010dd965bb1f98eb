/* SPDX-License-Identifier: MIT */
/* Several sequences at once: the rows that beams share against lists of their own, choices against the whole
 * distribution, and on the tiny model beams, draws and fallback, which must not depend on threads or on earlier calls. */
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

#include "speech/search.h"
#include "support/tiny_model.h"

enum { RATE = 16000, N_SAMPLES = 2 * RATE };

static float sound[N_SAMPLES];
static struct sotto_model * model;
static uint32_t seed = 1;

static int random_below(int n) {
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)n);
}

static struct sotto_state * new_state(int n_threads) {
    struct sotto_state_params params = sotto_state_default_params();
    struct sotto_state * state = NULL;
    params.n_threads = n_threads;
    assert_int_equal(sotto_state_new(model, &params, &state), SOTTO_OK);
    return state;
}

/* One attempt at 16 tokens of noise, kept whatever it is. */
static struct sotto_transcribe_params quick(void) {
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    p.language = "en";
    p.no_speech_thold = 1.0f;
    p.temperature_inc = 0;
    p.single_segment = true;
    p.max_tokens = 16;
    return p;
}

/* ---- rows of the cache ---- */

enum { BEAMS = 5, STEPS = 60, PROMPT = 3, CONTEXT = 80 };

/* Which step's token each beam has at each position: what its rows must stand for. */
struct past {
    int stamps[BEAMS][CONTEXT];
};

static int table_at(const struct sotto_i_kvcache * cache, int beam, int position) {
    return ((int32_t *)sotto_get_data(cache->table))[(1 + beam) * CONTEXT + position];
}

/* Each row holds the token of one step of one beam; beams that share a past share its rows. */
static void check_rows(const struct sotto_i_kvcache * cache, const struct past * past, const int * owner, int n,
                       int end) {
    for (int beam = 0; beam < n; beam++) {
        for (int i = 0; i < PROMPT; i++)
            assert_int_equal(table_at(cache, beam, i), i);
        for (int i = PROMPT; i < end; i++)
            assert_int_equal(owner[table_at(cache, beam, i)], past->stamps[beam][i]);
    }
}

static void test_rows_are_shared(void ** test) {
    (void)test;
    struct sotto_i_hparams hp = { .n_text_layers = 1, .width = 4, .n_text_ctx = CONTEXT };
    struct sotto_i_kvcache cache = { 0 };
    struct sotto_init_params records = { 8 * sotto_tensor_overhead(), NULL, true };
    struct sotto_context * ctx = sotto_init(records);
    assert_int_equal(sotto_i_kvcache_define(&cache, ctx, &hp, SOTTO_TYPE_F32, BEAMS, STEPS, 8, NULL), SOTTO_OK);
    sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors_from_buft(ctx, sotto_backend_cpu_buffer_type());
    assert_non_null(buffer);
    sotto_i_kvcache_init(&cache);
    for (int round = 0; round < 50; round++) {
        static struct past past, next;
        int owner[CONTEXT + BEAMS * STEPS] = { 0 }, parents[BEAMS] = { 0 }, n = 1 + random_below(BEAMS), stamp = 0;
        sotto_i_kvcache_share(&cache, PROMPT);
        sotto_i_kvcache_follow(&cache, parents, n, PROMPT);
        for (int at = PROMPT; at < PROMPT + STEPS; at++) {
            for (int beam = 0; beam < n; beam++) {
                past.stamps[beam][at] = ++stamp;
                owner[sotto_i_kvcache_take(&cache, beam, at)] = stamp;
            }
            int n_next = 1 + random_below(BEAMS);
            for (int beam = 0; beam < n_next; beam++) {
                parents[beam] = random_below(n);
                memcpy(next.stamps[beam], past.stamps[parents[beam]], sizeof(next.stamps[beam]));
            }
            sotto_i_kvcache_follow(&cache, parents, n_next, at + 1);
            past = next;
            n = n_next;
            check_rows(&cache, &past, owner, n, at + 1);
        }
        sotto_i_kvcache_follow(&cache, parents, 0, PROMPT + STEPS);
        assert_int_equal(cache.n_free, cache.n_rows - PROMPT);
    }
    sotto_i_kvcache_free(&cache, NULL);
    sotto_backend_buffer_free(buffer);
    sotto_free(ctx);
}

/* ---- choices ---- */

enum { WORDS = 6, ALL = 10 }; /* a vocabulary: text 0..5, timestamps 6..9 */

static struct sotto_i_ranking rank(const float * probs, int n) {
    struct sotto_i_ranking r = { .n = n };
    bool used[ALL] = { false };
    for (int k = 0; k < 2 * n; k++) {
        int first = k < n ? 0 : WORDS, end = k < n ? WORDS : ALL, best = -1;
        for (int i = first; i < end; i++)
            if (!used[i] && (best < 0 || probs[i] > probs[best]))
                best = i;
        used[best] = true;
        (k < n ? r.text : r.timestamp)[k % n] = best;
        (k < n ? r.p_text : r.p_timestamp)[k % n] = probs[best];
    }
    for (int i = WORDS; i < ALL; i++)
        r.timestamp_sum += probs[i];
    return r;
}

static void test_best_choices(void ** test) {
    (void)test;
    const float text_wins[ALL] = { 0.1f, 0.3f, 0, 0.1f, 0, 0.2f, 0, 0.1f, 0.15f, 0.05f };
    const float stamps_win[ALL] = { 0.1f, 0.2f, 0.1f, 0, 0, 0, 0.1f, 0.15f, 0.3f, 0.05f };
    struct sotto_i_choice c[4];
    struct sotto_i_ranking r = rank(text_wins, 4);
    assert_int_equal(sotto_i_choose_best(&r, 4, c), 4);
    static const int32_t in_order[] = { 1, 5, 8, 0 }; /* of equal ones the lower id */
    for (int i = 0; i < 4; i++)
        assert_int_equal(c[i].id, in_order[i]);
    assert_float_equal(c[2].plog, log(0.15), 1e-6);
    assert_int_equal(c[0].tid, 8);
    assert_float_equal(c[0].pt, 0.5, 1e-6);
    assert_float_equal(c[0].ptsum, 0.3, 1e-6);
    r = rank(stamps_win, 4); /* rule 8e: together they are 0.6 */
    assert_int_equal(sotto_i_choose_best(&r, 3, c), 3);
    assert_int_equal(c[0].id, 8);
    assert_int_equal(c[1].id, 7);
    assert_int_equal(c[2].id, 6);
    assert_float_equal(c[0].plog, log(0.5), 1e-6);
    assert_float_equal(c[0].ptsum, 1, 0);
    const float certain[ALL] = { [2] = 1 };
    r = rank(certain, 4);
    assert_int_equal(sotto_i_choose_best(&r, 4, c), 1);
    assert_int_equal(c[0].id, 2);
    assert_float_equal(c[0].pt, 0, 0);
}

static void test_draws(void ** test) {
    (void)test;
    const float probs[ALL] = { 0.1f, 0.3f, 0, 0.1f, 0, 0.2f, 0, 0.1f, 0.15f, 0.05f };
    const float drawn[ALL] = { 0.2f, 0.2f, 0, 0.1f, 0, 0.1f, 0, 0.2f, 0.1f, 0.1f };
    static const struct {
        double u;
        int32_t id;
    } cases[] = {
        { 0, 0 }, { 0.19, 0 }, { 0.21, 1 }, { 0.41, 3 }, { 0.55, 5 }, { 0.7, 7 }, { 0.85, 8 }, { 0.9999, 9 }
    };
    struct sotto_i_ranking r = rank(probs, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sotto_i_choice c = sotto_i_choose_drawn(&r, probs, drawn, ALL, WORDS, cases[i].u);
        assert_int_equal(c.id, cases[i].id);
        assert_float_equal(c.plog, log((double)probs[c.id]), 1e-7); /* of the distribution as it is, not as drawn */
    }
    r.timestamp_sum = 0.9f; /* rule 8e: only timestamps are left */
    assert_int_equal(sotto_i_choose_drawn(&r, probs, drawn, ALL, WORDS, 0).id, 7);
    assert_int_equal(sotto_i_choose_drawn(&r, probs, drawn, ALL, WORDS, 0.6).id, 8);
}

/* ---- the tiny model ---- */

struct outcome {
    int n, ids[256];
    double sum;
    float logs[256], temperature;
};

static void run(struct sotto_state * state, const struct sotto_transcribe_params * p, struct outcome * out) {
    memset(out, 0, sizeof(*out));
    assert_int_equal(sotto_transcribe(state, sound, N_SAMPLES, p), SOTTO_OK);
    const struct sotto_window * w = sotto_get_window(state, 0);
    out->n = w->n_tokens;
    out->sum = w->sum_logprob;
    out->temperature = w->temperature;
    for (int i = 0; i < w->n_tokens; i++) {
        out->ids[i] = sotto_get_window_token(state, 0, i)->id;
        out->logs[i] = sotto_get_window_token(state, 0, i)->plog;
    }
}

/* Fresh or used, with one thread or three. */
static void same_everywhere(const struct sotto_transcribe_params * p, struct outcome * first) {
    struct outcome other;
    struct sotto_transcribe_params wide = quick();
    wide.beam_size = SOTTO_MAX_DECODERS;
    wide.max_tokens = 3;
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        struct sotto_state * state = new_state(n_threads);
        run(state, p, n_threads == 1 ? first : &other);
        if (n_threads > 1)
            assert_memory_equal(&other, first, sizeof(other));
        run(state, &wide, &other);
        run(state, p, &other); /* more columns than needed now */
        assert_memory_equal(&other, first, sizeof(other));
        sotto_state_free(state);
    }
}

static void test_beams(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    struct outcome greedy, best, other;
    same_everywhere(&p, &greedy);
    assert_true(greedy.n > 0);
    p.beam_size = 4;
    same_everywhere(&p, &best);
    assert_true(best.sum / best.n >= greedy.sum / greedy.n || best.n != greedy.n);
    struct sotto_state * state = new_state(2);
    p.beam_size = 3;
    p.patience = 2.0f;
    p.length_penalty = 1.0f;
    run(state, &p, &other);
    assert_true(state->search->n_finished >= 3 && state->search->n_finished <= 6);
    p = quick();
    run(state, &p, &other); /* greedy again */
    assert_memory_equal(&other, &greedy, sizeof(other));
    sotto_state_free(state);
}

static void test_sampling(void ** test) {
    (void)test;
    struct sotto_transcribe_params p = quick();
    struct outcome greedy, drawn, other;
    struct sotto_state * state = new_state(1);
    run(state, &p, &greedy);
    p.temperature = 0.8f;
    same_everywhere(&p, &drawn);
    assert_float_equal(drawn.temperature, 0.8f, 0);
    assert_true(memcmp(drawn.ids, greedy.ids, sizeof(drawn.ids)) != 0);
    double sum = 0;
    for (int i = 0; i < drawn.n; i++)
        sum += (double)drawn.logs[i];
    assert_true(sum >= drawn.sum - 1e-4); /* the end, if it was drawn, is not among them */
    p.seed = 1234;
    run(state, &p, &other);
    assert_true(memcmp(drawn.ids, other.ids, sizeof(drawn.ids)) != 0);
    p.seed = 0;
    p.best_of = 1; /* sample 0 alone cannot be better than the best of five that it belongs to */
    run(state, &p, &other);
    assert_true(drawn.sum / drawn.n >= other.sum / other.n);
    p.temperature = 1e-3f; /* so cold that the likeliest token is drawn */
    run(state, &p, &other);
    assert_memory_equal(other.ids, greedy.ids, sizeof(other.ids));
    assert_memory_equal(other.logs, greedy.logs, sizeof(other.logs));
    sotto_state_free(state);
}

/* Of the last 32 tokens of a window, in nats. */
static double entropy_of(const struct sotto_state * state, int n) {
    double entropy = 0;
    for (int i = n - 32; i < n; i++) {
        int same = 0;
        for (int k = n - 32; k < n; k++)
            same += sotto_get_window_token(state, 0, k)->id == sotto_get_window_token(state, 0, i)->id;
        entropy -= log(same / 32.0) / 32;
    }
    return entropy;
}

static void test_entropy(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(2);
    struct sotto_transcribe_params p = quick();
    struct outcome outcome;
    p.logprob_thold = -100;
    p.compression_ratio_thold = 1000;
    p.no_timestamps = true;
    p.no_repeat_ngram = 2;              /* else it is one token all along */
    for (int n = 32; n <= 40; n += 8) { /* 32 tokens are too few to tell */
        p.max_tokens = n;
        p.temperature_inc = 0;
        run(state, &p, &outcome);
        assert_int_equal(sotto_get_window(state, 0)->n_tokens, n);
        double entropy = entropy_of(state, n);
        assert_true(entropy > 0.01);
        for (int more = 0; more < 2; more++) {
            p.temperature_inc = 1.0f;
            p.entropy_thold = (float)(entropy * (more ? 1.001 : 0.999));
            run(state, &p, &outcome);
            assert_int_equal(sotto_get_window(state, 0)->n_attempts, more && n > 32 ? 2 : 1);
        }
    }
    sotto_state_free(state);
}

static void test_fallback(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(2);
    struct sotto_transcribe_params p = quick();
    struct outcome all, last;
    p.temperature_inc = 0.2f;
    p.logprob_thold = -0.001f; /* noise is less likely than that, so every attempt fails */
    p.compression_ratio_thold = 100;
    run(state, &p, &all);
    assert_int_equal(sotto_get_window(state, 0)->n_attempts, 6);
    assert_float_equal(all.temperature, 1.0f, 1e-6);
    for (int i = 0; i <= 5; i++) { /* the likeliest of them was kept */
        struct sotto_transcribe_params one = p;
        one.temperature_inc = 0;
        one.temperature = (float)(i * (double)0.2f);
        run(state, &one, &last);
        assert_int_equal(sotto_get_window(state, 0)->n_attempts, 1);
        assert_true(all.sum / (all.n + 1) >= last.sum / (last.n + 1));
    }
    p.temperature_inc = 0.5f;
    run(state, &p, &last);
    assert_int_equal(sotto_get_window(state, 0)->n_attempts, 3);
    p.no_speech_thold = -1.0f; /* silence is not tried again, and not kept */
    run(state, &p, &last);
    assert_int_equal(sotto_get_window(state, 0)->n_attempts, 1);
    assert_true(sotto_get_window(state, 0)->skipped);
    p = quick();
    p.temperature_inc = 0.2f;
    p.logprob_thold = -100; /* likely enough */
    p.compression_ratio_thold = 100;
    run(state, &p, &last);
    assert_int_equal(sotto_get_window(state, 0)->n_attempts, 1);
    assert_float_equal(last.temperature, 0, 0);
    p.compression_ratio_thold = 0; /* any text repeats itself */
    run(state, &p, &last);
    assert_int_equal(sotto_get_window(state, 0)->n_attempts, 6);
    sotto_state_free(state);
}

/* Earlier text is in prompts below a temperature of 0.5 only, hotwords always. */
static void test_warm_prompts(void ** test) {
    (void)test;
    struct sotto_state * state = new_state(1);
    struct sotto_transcribe_params p = quick();
    struct outcome out;
    int32_t tokens[] = { 300, 301, 302 };
    p.max_tokens = 2;
    p.prompt_tokens = tokens;
    p.n_prompt_tokens = 3;
    p.temperature = 0.4f;
    run(state, &p, &out);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 1 + 3 + 3);
    p.temperature = 0.5f;
    run(state, &p, &out);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 3);
    p.hotwords = "a";
    run(state, &p, &out);
    assert_int_equal(sotto_get_window(state, 0)->n_prompt, 1 + 1 + 3);
    sotto_state_free(state);
}

/* ---- side by side ---- */

struct job {
    pthread_t thread;
    struct sotto_state * state;
    struct outcome out;
};

static struct sotto_transcribe_params busy(void) {
    struct sotto_transcribe_params p = quick();
    p.beam_size = 3;
    p.temperature_inc = 0.5f;
    p.logprob_thold = -0.001f;
    return p;
}

static void * work(void * user_data) {
    struct job * job = user_data;
    struct sotto_transcribe_params p = busy();
    run(job->state, &p, &job->out);
    return NULL;
}

/* Several states on one model, a thread each: the same bits as one by one. */
static void test_side_by_side(void ** test) {
    (void)test;
    enum { N = 3 };
    static struct job jobs[N];
    struct outcome alone;
    struct sotto_transcribe_params p = busy();
    struct sotto_state * state = new_state(1);
    run(state, &p, &alone);
    sotto_state_free(state);
    for (int i = 0; i < N; i++) {
        jobs[i].state = new_state(1 + i);
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < N; i++)
        pthread_join(jobs[i].thread, NULL);
    for (int i = 0; i < N; i++) {
        assert_memory_equal(&jobs[i].out, &alone, sizeof(alone));
        sotto_state_free(jobs[i].state);
    }
}

int main(void) {
    tiny_model_not_plain_c();
    for (int i = 0; i < N_SAMPLES; i++)
        sound[i] = 0.3f * sinf(0.08f * (float)i) + 0.05f * ((float)random_below(20001) / 10000.0f - 1.0f);
    if (!tiny_model() || sotto_model_open(tiny_model(), NULL, &model) != SOTTO_OK) {
        fprintf(stderr, "test_search: %s\n", sotto_last_error_text());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_shared), cmocka_unit_test(test_best_choices),
        cmocka_unit_test(test_draws),           cmocka_unit_test(test_entropy),
        cmocka_unit_test(test_beams),           cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_fallback),        cmocka_unit_test(test_warm_prompts),
        cmocka_unit_test(test_side_by_side),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sotto_model_free(model);
    return failed;
}
