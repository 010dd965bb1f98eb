/* SPDX-License-Identifier: MIT */
/* Rows of every weight type to f32: at every level of this machine the bits of the type's own decoder.
 *
 *     test_unpack [SEED]      test_unpack --bench
 *
 * Bytes are random, so scales are anything, infinities and NaN included. Rows end at a page that cannot be read, and
 * begin at any address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cpu/gemm_kernels.h"
#include "guarded.h"

enum { MAX_BLOCKS = 5, MAX_BLOCK = 256, FLOATS = MAX_BLOCKS * MAX_BLOCK };

static uint64_t seed = 1;
static struct dice dice;

static const struct sotto_type_traits * traits_of(int type) { return sotto_get_type_traits((enum sotto_type)type); }

/* Equal bits, or NaN both. */
static bool same(const float * a, const float * b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, sizeof(*a)) != 0 && !(a[i] != a[i] && b[i] != b[i])) {
            return false;
        }
    }
    return true;
}

static void compare(int type, int level, int64_t blocks) {
    const struct sotto_type_traits * t = traits_of(type);
    const int64_t n = blocks * t->blck_size;
    const size_t size = (size_t)blocks * t->type_size;
    struct sotto_i_gemm_kernels k;
    struct guarded x = guarded_new(size), y = guarded_new((size_t)n * sizeof(float));
    float want[FLOATS];
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *)x.data)[i] = (uint8_t)dice_next(&dice);
    }
    sotto_i_gemm_init(&k, (enum sotto_cpu_level)level);
    t->to_float(x.data, want, n);
    k.unpack[type](x.data, y.data, n);
    if (!same(want, y.data, n)) {
        fail_msg("seed %llu: %s: %d blocks at level %s differ from to_float", (unsigned long long)seed, t->type_name,
                 (int)blocks, sotto_cpu_level_name((enum sotto_cpu_level)level));
    }
    guarded_free(&x);
    guarded_free(&y);
}

static void every_level_is_the_decoder(void ** state) {
    (void)state;
    int types = 0;
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (!traits_of(type)->to_float) {
            continue;
        }
        types++;
        for (int level = 0; level <= (int)sotto_cpu_best_level(); level++) {
            for (int64_t blocks = 0; blocks <= MAX_BLOCKS; blocks++) {
                compare(type, level, blocks);
            }
        }
    }
    assert_true(types >= 25); /* f16, bf16 and all that files hold */
}

/* Products take exactly the types of weights. */
static void other_types_have_no_slot(void ** state) {
    (void)state;
    struct sotto_i_gemm_kernels k;
    sotto_i_gemm_init(&k, sotto_cpu_best_level());
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        assert_int_equal(k.unpack[type] != NULL, traits_of(type)->to_float != NULL || type == SOTTO_TYPE_F32);
    }
}

/* ---- --bench ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds for each element of a row that stays in the first cache. */
static double time_of(int type, int level) {
    enum { N = 4096, RUNS = 200, TRIES = 7 };
    static uint8_t x[N * 4];
    static float y[N];
    struct sotto_i_gemm_kernels k;
    double best = 1e9;
    sotto_i_gemm_init(&k, (enum sotto_cpu_level)level);
    for (int i = 0; i < TRIES; i++) {
        const double start = now();
        for (int run = 0; run < RUNS; run++) {
            k.unpack[type](x, y, N);
        }
        const double each = (now() - start) / RUNS / N * 1e9;
        best = each < best ? each : best;
    }
    return best;
}

static void bench(void) {
    printf("%-8s", "ns");
    for (int level = 0; level <= (int)sotto_cpu_best_level(); level++) {
        printf(" %10s", sotto_cpu_level_name((enum sotto_cpu_level)level));
    }
    printf("\n");
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (!traits_of(type)->to_float) {
            continue;
        }
        printf("%-8s", traits_of(type)->type_name);
        for (int level = 0; level <= (int)sotto_cpu_best_level(); level++) {
            printf(" %10.3f", time_of(type, level));
        }
        printf("\n");
    }
}

int main(int argc, char ** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_is_the_decoder),
        cmocka_unit_test(other_types_have_no_slot),
    };
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    if (argc > 1) {
        seed = strtoull(argv[1], NULL, 0);
    }
    printf("seed %llu\n", (unsigned long long)seed);
    dice.state = seed;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
