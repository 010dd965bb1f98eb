/* SPDX-License-Identifier: MIT */
/* Out of memory is a status: on the tiny model, the n-th allocation of load, transcribe and free fails for n = 1, 2, ...
 * until a whole pass needs fewer than n. Every refused pass must report MEMORY, give back every byte, and not disturb
 * the next one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/speech.h"
#include "support/counting_allocator.h"
#include "support/tiny_model.h"

enum { N_SAMPLES = 16000 };

static float sound[N_SAMPLES];

/* What a pass must reproduce. */
struct outcome {
    int n_tokens;
    int32_t tokens[64];
};

static enum sotto_status transcribe(struct sotto_model * model, const struct sotto_allocator * allocator,
                                    struct outcome * outcome) {
    struct sotto_state_params params = sotto_state_default_params();
    params.allocator = allocator;
    params.n_threads = 2;
    struct sotto_state * state = NULL;
    enum sotto_status status = sotto_state_new(model, &params, &state);
    if (status != SOTTO_OK) {
        return status;
    }
    struct sotto_transcribe_params how = sotto_transcribe_default_params();
    how.language = "en";
    how.initial_prompt = "ab cd";
    how.suppress_regex = " [x-z]+";
    how.max_tokens = 2;
    how.no_speech_thold = 1.0f;
    how.beam_size = 2;          /* a decoder for two beams ... */
    how.best_of = 3;            /* ... makes way for one of three, since noise goes wrong at every temperature */
    how.temperature_inc = 0.9f; /* two attempts */
    status = sotto_transcribe(state, sound, N_SAMPLES, &how);
    if (status == SOTTO_OK && sotto_n_windows(state) > 0) {
        const int n = sotto_get_window(state, 0)->n_tokens;
        outcome->n_tokens = n < 64 ? n : 64;
        for (int i = 0; i < outcome->n_tokens; i++) {
            outcome->tokens[i] = sotto_get_window_token(state, 0, i)->id;
        }
    }
    sotto_state_free(state);
    return status;
}

static enum sotto_status pass(const struct sotto_allocator * allocator, struct outcome * outcome) {
    struct sotto_model_params params = sotto_model_default_params();
    params.allocator = allocator;
    struct sotto_model * model = NULL;
    enum sotto_status status = sotto_model_open(tiny_model(), &params, &model);
    if (status == SOTTO_OK) {
        status = transcribe(model, allocator, outcome);
    }
    sotto_model_free(model);
    return status;
}

static void test_every_allocation_fails_once(void ** test) {
    (void)test;
    assert_non_null(tiny_model());
    struct counting_allocator counter;
    counting_allocator_init(&counter);
    struct outcome first = { 0 };
    assert_int_equal(pass(&counter.base, &first), SOTTO_OK);
    const long n_requests = atomic_load(&counter.requests);
    assert_true(n_requests > 0);
    assert_true(first.n_tokens > 0);
    assert_int_equal(atomic_load(&counter.held), 0);

    for (long n = 1; n <= n_requests; n++) {
        counting_allocator_init(&counter);
        atomic_store(&counter.refuse, n);
        struct outcome outcome = { 0 };
        const enum sotto_status status = pass(&counter.base, &outcome);
        if (status != SOTTO_E_MEMORY || atomic_load(&counter.refused) != 1 || atomic_load(&counter.held) != 0) {
            fail_msg("request %ld of %ld: status %s, %ld refused, %lld bytes held, \"%s\"", n, n_requests,
                     sotto_status_name(status), atomic_load(&counter.refused), atomic_load(&counter.held),
                     sotto_last_error_text());
        }
    }
    counting_allocator_init(&counter);
    struct outcome last = { 0 };
    assert_int_equal(pass(&counter.base, &last), SOTTO_OK);
    assert_memory_equal(&last, &first, sizeof(first));
    print_message("%ld allocations, each refused once; peak %.1f MiB\n", n_requests,
                  (double)atomic_load(&counter.peak) / (1 << 20));
}

int main(void) {
    tiny_model_not_plain_c();
    for (int i = 0; i < N_SAMPLES; i++) {
        sound[i] = 0.5f * sinf(0.05f * (float)i) * sinf(0.0007f * (float)i);
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_allocation_fails_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
