/* SPDX-License-Identifier: MIT */
/* Kernels of products in 8 bits: every level of this machine against the scalar definition, bit for bit.
 *
 *     test_igemm [SEED] [--bench]
 *
 * Operands end at a page that cannot be read, outputs are surrounded by canaries. Codes reach their type's top and
 * activations both ends, so that sums in 16 bits would overflow if they could. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cpu/igemm_kernels.h"
#include "guarded.h"

enum { PANEL = SOTTO_CPU_PANEL, BLOCK = SOTTO_I_K_BLOCK, ROUND = SOTTO_I_ROUND_BLOCK };

static uint64_t seed = 1;
static struct dice dice;
static struct sotto_i_igemm_kernels scalar;

struct level {
    struct sotto_i_igemm_kernels k;
    const char * name;
};

static bool same(float a, float b) { return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b)); }

/* ---- operands of a tile ---- */

struct operands {
    struct guarded code, scale, min, q, d, start, sum;
    struct sotto_i_igemm_tile t;
};

static struct guarded floats(size_t n) {
    struct guarded g = guarded_new(n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        ((float *)g.data)[i] = dice_float(&dice);
    }
    return g;
}

/* 0..top with many at the ends. */
static int code(int top) {
    const uint32_t r = dice_next(&dice) % 4;
    return r == 0 ? 0 : r == 1 ? top : (int)(dice_next(&dice) % (uint32_t)(top + 1));
}

static struct operands operands_new(const struct sotto_i_codes_form * form, int panels, int cols, int64_t k) {
    const int64_t ld = sotto_i_strip_ld(cols);
    const size_t subs = (size_t)(k / form->sub), step = (size_t)k * PANEL;
    struct operands o = { .code = guarded_new(step * (size_t)panels), .q = guarded_new((size_t)(k * ld)) };
    for (size_t i = 0; i < step * (size_t)panels; i++) {
        ((uint8_t *)o.code.data)[i] = (uint8_t)code(form->top);
    }
    for (int64_t i = 0; i < k * ld; i++) {
        ((int8_t *)o.q.data)[i] = (int8_t)(code(254) - 127);
    }
    o.scale = floats(subs * PANEL * (size_t)panels);
    o.min = floats(subs * PANEL * (size_t)panels);
    o.d = floats((size_t)(k / ROUND * ld));
    o.sum = floats(subs * (size_t)ld);
    o.start = guarded_new(subs * (size_t)ld * sizeof(int32_t));
    for (size_t s = 0; s < subs; s++) {
        for (int64_t j = 0; j < ld; j++) {
            int32_t sum = 0;
            for (int64_t l = (int64_t)s * form->sub; l < (int64_t)(s + 1) * form->sub; l++) {
                sum += ((int8_t *)o.q.data)[(l / 4 * ld + j) * 4 + l % 4];
            }
            ((int32_t *)o.start.data)[s * (size_t)ld + (size_t)j] = -form->offset * sum;
        }
    }
    o.t = (struct sotto_i_igemm_tile){ .form = form,
                                       .w = { o.code.data, o.scale.data, o.min.data },
                                       .code_step = step,
                                       .scale_step = subs * PANEL,
                                       .q = o.q.data,
                                       .d = o.d.data,
                                       .start = o.start.data,
                                       .sum = o.sum.data,
                                       .ld = ld,
                                       .k = k,
                                       .panels = panels,
                                       .cols = cols,
                                       .add = dice_next(&dice) % 2 };
    return o;
}

static void operands_free(struct operands * o) {
    struct guarded * all[] = { &o->code, &o->scale, &o->min, &o->q, &o->d, &o->start, &o->sum };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        guarded_free(all[i]);
    }
}

/* ---- tests ---- */

static void check_tile(const struct level * l, enum sotto_type type, int panels, int cols, int64_t k) {
    struct operands o = operands_new(sotto_i_codes_form(type), panels, cols, k);
    const int64_t ldc = PANEL * panels + 3;
    const size_t n = (size_t)(ldc * cols) + 1;
    float *want = malloc(n * sizeof(float)), *got = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        want[i] = got[i] = dice_float(&dice);
    }
    o.t.ldc = ldc;
    o.t.c = want + 1;
    scalar.tile(&o.t);
    o.t.c = got + 1;
    l->k.tile(&o.t);
    for (size_t i = 0; i < n; i++) {
        if (!same(want[i], got[i])) {
            fail_msg("seed %llu: tile %s at level %s, %d panels x %d columns, k %d: element %zu is %a, should be %a",
                     (unsigned long long)seed, sotto_type_name(type), l->name, panels, cols, (int)k, i, (double)got[i],
                     (double)want[i]);
        }
    }
    free(want);
    free(got);
    operands_free(&o);
}

static void tiles(void ** arg) {
    static const int64_t ks[] = { 0, 32, 96, 256 };
    const struct level * l = *arg;
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        for (int cols = 1; sotto_i_codes_form((enum sotto_type)type)->sub && cols <= l->k.max_cols; cols++) {
            for (int panels = 1; panels <= l->k.panels[cols]; panels *= 2) {
                check_tile(l, (enum sotto_type)type, panels, cols, ks[dice_next(&dice) % 4]);
                check_tile(l, (enum sotto_type)type, panels, cols, 256);
            }
        }
    }
}

enum kind { PLAIN, ZERO, TINY, HUGE_, NOT_FINITE, HALVES, KINDS };

static float value(enum kind kind, int i) {
    switch (kind) {
    case ZERO: return i % 2 ? 0.0f : -0.0f;
    case TINY: return ldexpf(dice_float(&dice), -121 - (int)(dice_next(&dice) % 20));
    case HUGE_: return dice_float(&dice) * 1e38f;
    case NOT_FINITE: return i % 7 == 3 ? (dice_next(&dice) % 2 ? NAN : -INFINITY) : dice_float(&dice);
    case HALVES: return i == 0 ? 127.0f : (float)(dice_next(&dice) % 254) - 126.5f; /* ties, all exact */
    default: return dice_float(&dice) * 3.0f;
    }
}

static void check_round(const struct level * l, enum kind kind, int blocks) {
    const size_t n = (size_t)blocks * ROUND;
    struct guarded x = guarded_new(n * sizeof(float)), q = guarded_new(n), d = guarded_new((size_t)blocks * 4);
    struct guarded sums = guarded_new((size_t)blocks * 8);
    for (size_t i = 0; i < n; i++) {
        ((float *)x.data)[i] = value(kind, (int)(i % ROUND));
    }
    int8_t * want_q = malloc(n + 1);
    float * want_d = malloc((size_t)blocks * 4 + 1);
    int32_t * want_sums = malloc((size_t)blocks * 8 + 1);
    scalar.round(x.data, (int64_t)n, want_q, want_d, want_sums);
    l->k.round(x.data, (int64_t)n, q.data, d.data, sums.data);
    assert_memory_equal(q.data, want_q, n);
    assert_memory_equal(sums.data, want_sums, (size_t)blocks * 8);
    for (int b = 0; b < blocks; b++) {
        const float got = ((float *)d.data)[b];
        assert_true(same(got, want_d[b]));
        for (int i = 0; i < ROUND; i++) { /* what rounding means, apart from any kernel */
            const float v = ((float *)x.data)[b * ROUND + i];
            const int whole = ((int8_t *)q.data)[b * ROUND + i];
            assert_true(isnan(got) ? kind == NOT_FINITE && whole == 0
                                   : fabs((double)v - (double)got * whole) <= 0.5001 * (double)got + 0x1p-120);
        }
    }
    free(want_q);
    free(want_d);
    free(want_sums);
    guarded_free(&x);
    guarded_free(&q);
    guarded_free(&d);
    guarded_free(&sums);
}

static void rounding(void ** arg) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (int blocks = 0; blocks < 10; blocks++) {
            check_round(*arg, (enum kind)kind, blocks);
        }
    }
}

/* ---- timing ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_tile(void (*tile)(const struct sotto_i_igemm_tile *), const struct sotto_i_igemm_tile * t) {
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        const double start = now();
        int n = 0;
        do {
            tile(t);
            n++;
        } while (now() - start < 2e-3);
        best = fmin(best, (now() - start) / n);
    }
    return best;
}

static void bench_level(const struct level * l) {
    static const enum sotto_type types[] = { SOTTO_TYPE_Q8_0, SOTTO_TYPE_Q4_0, SOTTO_TYPE_Q4_K, SOTTO_TYPE_Q6_K };
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        for (int cols = 1; cols <= l->k.max_cols; cols++) {
            const int panels = l->k.panels[cols];
            struct operands o = operands_new(sotto_i_codes_form(types[i]), panels, cols, BLOCK);
            float * c = calloc((size_t)(PANEL * panels * cols), sizeof(float));
            o.t.c = c;
            o.t.ldc = PANEL * panels;
            const double here = time_tile(l->k.tile, &o.t), plain = time_tile(scalar.tile, &o.t);
            printf("%-10s tile %-4s %d x %2d  %8.0f ns  %6.1f GOP/s  %5.1f times the scalar twin\n", l->name,
                   sotto_type_name(types[i]), panels, cols, here * 1e9, 2e-9 * PANEL * panels * cols * BLOCK / here,
                   plain / here);
            free(c);
            operands_free(&o);
        }
    }
}

static struct level levels[SOTTO_CPU_LEVEL_COUNT];

int main(int argc, char ** argv) {
    bool bench = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0) {
            bench = true;
        } else {
            seed = strtoull(argv[i], NULL, 0);
        }
    }
    printf("seed %llu\n", (unsigned long long)seed);
    sotto_i_igemm_init(&scalar, SOTTO_CPU_LEVEL_C);
    int failed = 0;
    for (int i = 0; i <= (int)sotto_cpu_best_level(); i++) {
        struct level * l = &levels[i];
        l->name = sotto_cpu_level_name((enum sotto_cpu_level)i);
        sotto_i_igemm_init(&l->k, (enum sotto_cpu_level)i);
        dice.state = seed;
        if (bench) {
            bench_level(l);
            continue;
        }
        const struct CMUnitTest tests[] = { { "tiles", tiles, NULL, NULL, l },
                                            { "rounding", rounding, NULL, NULL, l } };
        failed += _cmocka_run_group_tests(l->name, tests, 2, NULL, NULL);
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
