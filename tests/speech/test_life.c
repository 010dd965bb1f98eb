/* SPDX-License-Identifier: MIT */
/* Opening and closing again and again keeps nothing (case L05): models, states, files that are none.
 *
 *     test_life [N]     models to open; life_long.sh takes a thousand */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "sotto/speech.h"
#include "support/counting_allocator.h"
#include "support/gguf_example.h"
#include "support/tiny_model.h"

static int n_models = 30;
static float sound[3200];

static long peak_kib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* Calls `once` n times; after the first few nothing may grow any more. */
static void again_and_again(void (*once)(const struct sotto_allocator * allocator), int n) {
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    long before = 0, long_peak = 0;
    for (int i = 0; i < n; i++) {
        once(&allocator.base);
        assert_int_equal(allocator.held, 0);
        if (i == n / 4) {
            before = peak_kib();
            long_peak = (long)allocator.peak;
        }
    }
    assert_int_equal(allocator.peak, long_peak);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__has_feature)
    assert_true(peak_kib() - before < 32768); /* what a sanitizer keeps for itself is not ours */
#endif
    (void)before;
}

static void model_and_state(const struct sotto_allocator * allocator) {
    struct sotto_model_params params = sotto_model_default_params();
    struct sotto_model * model;
    struct sotto_state * state;
    params.allocator = allocator;
    assert_int_equal(sotto_model_open(tiny_model(), &params, &model), SOTTO_OK);
    assert_int_equal(sotto_state_new(model, NULL, &state), SOTTO_OK);
    sotto_state_free(state);
    sotto_model_free(model);
}

static void models(void ** test) {
    (void)test;
    again_and_again(model_and_state, n_models);
}

static struct sotto_model * shared;

static void state_that_works(const struct sotto_allocator * allocator) {
    struct sotto_state_params params = sotto_state_default_params();
    struct sotto_transcribe_params p = sotto_transcribe_default_params();
    struct sotto_state * state;
    params.allocator = allocator;
    params.n_threads = 2;
    p.max_tokens = 1;
    p.temperature_inc = 0;
    p.language = "en";
    assert_int_equal(sotto_state_new(shared, &params, &state), SOTTO_OK);
    assert_int_equal(sotto_transcribe(state, sound, 3200, &p), SOTTO_OK);
    assert_int_equal(sotto_n_windows(state), 1);
    sotto_state_free(state);
}

static void states(void ** test) {
    (void)test;
    assert_int_equal(sotto_model_open(tiny_model(), NULL, &shared), SOTTO_OK);
    again_and_again(state_that_works, n_models);
    sotto_model_free(shared);
}

static char cut[600];

static void failing_load(const struct sotto_allocator * allocator) {
    struct sotto_model_params params = sotto_model_default_params();
    struct sotto_model * model;
    params.allocator = allocator;
    assert_int_not_equal(sotto_model_open(cut, &params, &model), SOTTO_OK);
    assert_null(model);
    assert_int_equal(sotto_model_open("/nonexistent", &params, &model), SOTTO_E_IO);
}

static void models_that_are_none(void ** test) {
    (void)test;
    size_t size;
    uint8_t * bytes = read_bytes(tiny_model(), &size);
    assert_non_null(bytes);
    snprintf(cut, sizeof(cut), "%s", temp_path("cut.gguf"));
    static const size_t sizes[] = { 0, 24, 5000 };
    for (int i = 0; i < 3; i++) {
        write_bytes(cut, bytes, sizes[i]);
        again_and_again(failing_load, 1000);
    }
    write_bytes(cut, bytes, size - 1); /* only the last weight is not whole */
    again_and_again(failing_load, n_models);
    remove(cut);
    free(bytes);
}

int main(int argc, char ** argv) {
    if (argc > 1)
        n_models = atoi(argv[1]);
    tiny_model_not_plain_c();
    for (int i = 0; i < 3200; i++)
        sound[i] = (float)(i % 80) / 80.0f - 0.5f;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),
        cmocka_unit_test(states),
        cmocka_unit_test(models_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
