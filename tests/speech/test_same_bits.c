/* SPDX-License-Identifier: MIT */
/* The promise of docs/numerics.md, whole: encoder output and logits of the tiny model are the same bits at every CPU
 * level of the machine, for 1, 2, 3 and 8 threads with chunks drawn in shuffled orders, in one prompt or token by
 * token, weights in f32, f16, bf16 and several quantised types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/test_hooks.h"
#include "sotto/speech.h"
#include "support/tiny_model.h"

enum { N_SAMPLES = 24000, N_TOKENS = 9, POSITIONS = 1500, MAX_WIDTH = 256, VOCABULARY = 51865 };

static float sound[N_SAMPLES];
static const int32_t tokens[N_TOKENS] = { 50258, 50259, 50359, 50364, 300, 4000, 77, 20000, 50400 };

struct outcome {
    float encoder[POSITIONS * MAX_WIDTH]; /* the rest is 0 if the model is less wide */
    float logits[VOCABULARY];
};

/* Encode the sound and decode the tokens, at once or one by one. */
static void run(const struct sotto_model * model, int n_threads, bool one_by_one, struct outcome * outcome) {
    struct sotto_state_params params = sotto_state_default_params();
    params.n_threads = n_threads;
    struct sotto_state * state = NULL;
    assert_int_equal(sotto_state_new(model, &params, &state), SOTTO_OK);
    assert_int_equal(sotto_pcm_to_mel(state, sound, N_SAMPLES, 0, SOTTO_PAD_ZERO), SOTTO_OK);
    assert_int_equal(sotto_encode(state), SOTTO_OK);
    const size_t width = (size_t)sotto_model_width(model);
    assert_true(width <= MAX_WIDTH);
    memcpy(outcome->encoder, sotto_get_encoder_output(state), POSITIONS * width * sizeof(float));
    if (one_by_one) {
        for (int i = 0; i < N_TOKENS; i++) {
            assert_int_equal(sotto_decode(state, tokens + i, 1, i), SOTTO_OK);
        }
    } else {
        assert_int_equal(sotto_decode(state, tokens, N_TOKENS, 0), SOTTO_OK);
    }
    memcpy(outcome->logits, sotto_get_logits(state), sizeof(outcome->logits));
    sotto_state_free(state);
}

/* The same with chunks in an order of their own; with threads, at least two of them must have run some. */
static void run_shuffled(const struct sotto_model * model, int n_threads, uint64_t seed, struct outcome * outcome) {
    int busy = 0;
    sotto_i_test_hooks(true, seed);
    run(model, n_threads, seed % 2 == 0, outcome);
    for (int i = 0; i < n_threads; i++) {
        busy += sotto_i_test_chunks(i) > 0;
    }
    sotto_i_test_hooks(false, 0);
    assert_true(busy >= (n_threads > 1 ? 2 : 1));
}

/* Plain C takes seconds, and minutes of models wider than 64: not for every type. */
static void compare(enum sotto_type type, enum sotto_cpu_level lowest) {
    static struct outcome first, other;
    static const int threads[] = { 1, 2, 3, 8 };
    const enum sotto_cpu_level top = sotto_cpu_get_level();
    char path[512];
    if (top < lowest) {
        skip();
    }
    snprintf(path, sizeof(path), "%s/same-bits-%d.gguf", getenv("SOTTO_BUILD") ? getenv("SOTTO_BUILD") : "/tmp",
             (int)type);
    assert_true(tiny_model_write(path, type, 7));
    struct sotto_model * model = NULL;
    assert_int_equal(sotto_model_open(path, NULL, &model), SOTTO_OK);
    remove(path);
    run(model, 2, false, &first);
    for (int i = 0; i < POSITIONS * tiny_model_width(type); i++) {
        assert_true(isfinite(first.encoder[i]));
    }
    for (int level = (int)lowest; level <= (int)top; level++) {
        assert_int_equal(sotto_cpu_set_level((enum sotto_cpu_level)level), SOTTO_OK);
        /* plain C and wide models are slow: one run is enough */
        const bool slow = level == SOTTO_CPU_LEVEL_C || tiny_model_width(type) > 64;
        for (size_t i = slow ? 2 : 0; i < (slow ? 3u : 4u); i++) {
            run_shuffled(model, threads[i], 10 * (uint64_t)level + i, &other);
            assert_memory_equal(other.encoder, first.encoder, sizeof(first.encoder));
            assert_memory_equal(other.logits, first.logits, sizeof(first.logits));
        }
    }
    assert_int_equal(sotto_cpu_set_level(top), SOTTO_OK);
    sotto_model_free(model);
}

#define TEST_TYPE(name, type, lowest)            \
    static void test_##name(void ** state) {     \
        (void)state;                             \
        compare(type, SOTTO_CPU_LEVEL_##lowest); \
    }

TEST_TYPE(f32, SOTTO_TYPE_F32, C)
TEST_TYPE(f16, SOTTO_TYPE_F16, C)
TEST_TYPE(bf16, SOTTO_TYPE_BF16, AVX2)
TEST_TYPE(q8_0, SOTTO_TYPE_Q8_0, C)
TEST_TYPE(q4_k, SOTTO_TYPE_Q4_K, AVX2)
TEST_TYPE(q2_0, SOTTO_TYPE_Q2_0, AVX2)

int main(void) {
    uint32_t random = 1;
    for (int i = 0; i < N_SAMPLES; i++) {
        random = random * 1664525u + 1013904223u;
        sound[i] = 0.3f * sinf(0.08f * (float)i) + 0.05f * ((float)(random >> 8) / 8388608.0f - 1.0f);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),  cmocka_unit_test(test_f16),  cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_q8_0), cmocka_unit_test(test_q4_k), cmocka_unit_test(test_q2_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
