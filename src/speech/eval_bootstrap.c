/* SPDX-License-Identifier: MIT */
/* Is one run better than another, or was it luck? Clips are drawn again and again with replacement, both runs always on
 * the same ones, and the differences sorted. */
#include <stdlib.h>

#include "sotto/eval.h"

/* splitmix64 */
static uint64_t draw(uint64_t * state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int compare(const void * a, const void * b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rate_difference(const struct sotto_eval_pair * sum) {
    return (double)(sum->errors[0] - sum->errors[1]) / (double)sum->units;
}

static void add(struct sotto_eval_pair * sum, const struct sotto_eval_pair * pair) {
    sum->units += pair->units;
    sum->errors[0] += pair->errors[0];
    sum->errors[1] += pair->errors[1];
}

/* One set of clips as large as the whole; again if it has nothing to count in it. */
static double draw_difference(const struct sotto_eval_pair * pairs, size_t n, uint64_t * state) {
    struct sotto_eval_pair sum;
    do {
        sum = (struct sotto_eval_pair){ 0 };
        for (size_t i = 0; i < n; i++)
            add(&sum, &pairs[draw(state) % n]);
    } while (sum.units == 0);
    return rate_difference(&sum);
}

enum sotto_status sotto_eval_bootstrap(const struct sotto_eval_pair * pairs, size_t n_pairs, size_t n_draws,
                                       double confidence, uint64_t seed, const struct sotto_allocator * allocator,
                                       struct sotto_eval_interval * interval) {
    if (pairs == NULL || interval == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_eval_bootstrap: pairs and interval must be given");
    if (n_pairs == 0 || n_draws == 0 || !(confidence > 0 && confidence < 1))
        return sotto_fail(SOTTO_E_PARAM, "sotto_eval_bootstrap: no pairs, no draws, or a confidence outside 0..1");
    struct sotto_eval_pair sum = { 0 };
    for (size_t i = 0; i < n_pairs; i++) {
        if (pairs[i].units < 0 || pairs[i].errors[0] < 0 || pairs[i].errors[1] < 0)
            return sotto_fail(SOTTO_E_PARAM, "sotto_eval_bootstrap: pair %zu has a negative count", i);
        add(&sum, &pairs[i]);
    }
    if (sum.units == 0)
        return sotto_fail(SOTTO_E_PARAM, "sotto_eval_bootstrap: no pair has any unit");
    double * found = sotto_malloc(allocator, n_draws, sizeof(double));
    if (found == NULL)
        return SOTTO_E_MEMORY;
    for (size_t i = 0; i < n_draws; i++)
        found[i] = draw_difference(pairs, n_pairs, &seed);
    qsort(found, n_draws, sizeof(double), compare);
    double last = (double)(n_draws - 1);
    interval->difference = rate_difference(&sum);
    interval->low = found[(size_t)(last * (1 - confidence) / 2 + 0.5)];
    interval->high = found[(size_t)(last * (1 + confidence) / 2 + 0.5)];
    sotto_mfree(allocator, found, n_draws, sizeof(double));
    return SOTTO_OK;
}
