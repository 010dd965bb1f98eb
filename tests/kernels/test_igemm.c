/* SPDX-License-Identifier: MIT */
/* Products in 8 bits, kernels and driver: every level of this machine against the definition, bit for bit.
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

#include "cpu/gemm.h"
#include "cpu/panel.h"
#include "guarded.h"

enum { PANEL = SOTTO_CPU_PANEL, BLOCK = SOTTO_I_K_BLOCK, ROUND = SOTTO_I_ROUND_BLOCK };

static uint64_t seed = 1;
static struct dice dice;
static struct sotto_i_igemm_kernels scalar;

struct level {
    const struct sotto_i_kernels * all;
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

/* ---- driver ---- */

/* A product: quantised rows [n][k] as bytes, columns [m][k], and the result by docs/numerics.md, "Products in bytes". */
struct product {
    enum sotto_type type;
    int64_t n, m, k;
    size_t row_size;
    struct guarded a, b;
    float * want; /* [m][n] */
};

/* Sub-blocks of one row as codes: through a panel in which it is lane 0. */
static void row_codes(const struct product * p, int64_t row, uint8_t * code, float * scale, float * min) {
    static _Alignas(64) uint8_t panel[PANEL * 4096], codes[PANEL * 4096];
    static _Alignas(64) float scales[PANEL * 256], mins[PANEL * 256];
    const struct sotto_type_traits * type = sotto_get_type_traits(p->type);
    const int64_t blocks = p->k / type->blck_size, subs = p->k / sotto_i_codes_form(p->type)->sub;
    struct sotto_i_codes_kernels k;
    sotto_i_codes_init(&k, SOTTO_CPU_LEVEL_C);
    memset(panel, 0, sizeof(panel));
    sotto_i_panel_set(p->type, panel, 0, 0, blocks, (char *)p->a.data + (size_t)row * p->row_size);
    k.unpack[p->type](panel, blocks, &(struct sotto_i_codes){ codes, scales, mins });
    for (int64_t l = 0; l < p->k; l++) {
        code[l] = codes[l / 4 * PANEL * 4 + l % 4];
    }
    for (int64_t s = 0; s < subs; s++) {
        scale[s] = scales[s * PANEL];
        min[s] = sotto_i_codes_form(p->type)->mins ? mins[s * PANEL] : 0.0f;
    }
}

static float definition(const struct product * p, const uint8_t * code, const float * scale, const float * min,
                        const int8_t * q, const float * d) {
    const struct sotto_i_codes_form * form = sotto_i_codes_form(p->type);
    float y = 0.0f;
    for (int64_t l0 = 0; l0 < p->k; l0 += BLOCK) {
        float block = 0.0f;
        for (int64_t l = l0; l < p->k && l < l0 + BLOCK; l += form->sub) {
            int32_t sum = 0, of_q = 0;
            for (int i = 0; i < form->sub; i++) {
                sum += (code[l + i] - form->offset) * q[l + i];
                of_q += q[l + i];
            }
            block = fmaf((float)sum, scale[l / form->sub] * d[l / ROUND], block);
            if (form->mins) {
                block = fmaf(-min[l / form->sub], d[l / ROUND] * (float)of_q, block);
            }
        }
        y = l0 == 0 ? block : y + block;
    }
    return y;
}

static struct product product_new(enum sotto_type type, int64_t n, int64_t m, int64_t k) {
    struct product p = { .type = type, .n = n, .m = m, .k = k, .row_size = sotto_row_size(type, k) };
    p.a = guarded_new((size_t)n * p.row_size);
    p.b = floats((size_t)(m * k));
    p.want = malloc((size_t)(n * m) * sizeof(float));
    for (size_t i = 0; i < (size_t)n * p.row_size;
         i++) { /* few bytes make a scale that is not finite: 0x7C and above */
        ((uint8_t *)p.a.data)[i] = (uint8_t)(dice_next(&dice) % 0x78);
    }
    static uint8_t code[4096];
    static float scale[256], min[256], d[128];
    static int8_t q[4096];
    static int32_t sums[256];
    for (int64_t i = 0; i < n; i++) {
        row_codes(&p, i, code, scale, min);
        for (int64_t j = 0; j < m; j++) {
            scalar.round((float *)p.b.data + j * k, k, q, d, sums);
            p.want[j * n + i] = definition(&p, code, scale, min, q, d);
        }
    }
    return p;
}

static struct guarded to_panels(const struct product * p) {
    const int64_t panels = (p->n + PANEL - 1) / PANEL, blocks = p->k / sotto_blck_size(p->type);
    struct guarded g = guarded_new((size_t)(panels * PANEL) * p->row_size);
    for (int64_t r = 0; r < p->n; r++) {
        sotto_i_panel_set(p->type, (char *)g.data + (size_t)(r / PANEL * PANEL) * p->row_size, (int)(r % PANEL), 0,
                          blocks, (char *)p->a.data + (size_t)r * p->row_size);
    }
    return g;
}

static void check_driver(const struct level * l, const struct product * p, bool packed) {
    struct guarded panels = to_panels(p);
    float * y = calloc((size_t)(p->n * p->m), sizeof(float));
    void * scratch = NULL;
    assert_int_equal(posix_memalign(&scratch, SOTTO_DATA_ALIGN, sotto_i_gemm_scratch()), 0);
    struct sotto_i_gemm g = {
        .kernels = l->all, .bytes = true, .n = p->n, .k = p->k, .y = y, .ldy = p->n, .scratch = scratch
    };
    g.a = (struct sotto_i_gemm_operand){
        packed ? panels.data : p->a.data, p->type, packed, { sotto_type_size(p->type), p->row_size }, NULL
    };
    g.b = (struct sotto_i_gemm_operand){ p->b.data, SOTTO_TYPE_F32, false, { 4, (size_t)p->k * 4 }, NULL };
    const int64_t row = p->n / 2 / PANEL * PANEL, col = p->m / 3;
    const struct sotto_i_gemm_rect parts[] = {
        { 0, row, 0, col }, { row, p->n, 0, col }, { 0, row, col, p->m }, { row, p->n, col, p->m }
    };
    for (int i = 0; i < 4; i++) {
        sotto_i_gemm_run(&g, &parts[i]);
    }
    for (int64_t i = 0; i < p->n * p->m; i++) {
        if (!same(y[i], p->want[i])) {
            fail_msg("seed %llu: %s%s at level %s, %d rows, %d columns, k %d: element %d is %a, should be %a",
                     (unsigned long long)seed, sotto_type_name(p->type), packed ? " packed" : "", l->name, (int)p->n,
                     (int)p->m, (int)p->k, (int)i, (double)y[i], (double)p->want[i]);
        }
    }
    free(y);
    free(scratch);
    guarded_free(&panels);
}

static void driver(void ** arg) {
    static const int64_t shapes[][3] = { { 1, 1, 1 }, { 17, 2, 3 }, { 40, 13, 2 }, { 33, 27, 1 }, { 150, 5, 1 } };
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (sotto_i_codes_form((enum sotto_type)type)->sub == 0) {
            continue;
        }
        for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
            struct product p = product_new((enum sotto_type)type, shapes[i][0], shapes[i][1],
                                           shapes[i][2] * sotto_blck_size((enum sotto_type)type));
            check_driver(*arg, &p, true);
            check_driver(*arg, &p, false);
            free(p.want);
            guarded_free(&p.a);
            guarded_free(&p.b);
        }
    }
    /* more than a group of columns, several blocks of k with a rest */
    struct product p = product_new(SOTTO_TYPE_Q8_0, 20, SOTTO_I_GEMM_GROUP + 5, 2 * BLOCK + 32);
    check_driver(*arg, &p, true);
    free(p.want);
    guarded_free(&p.a);
    guarded_free(&p.b);
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
        l->all = sotto_i_kernels_for((enum sotto_cpu_level)i);
        l->k = l->all->igemm;
        dice.state = seed;
        if (bench) {
            bench_level(l);
            continue;
        }
        const struct CMUnitTest tests[] = { { "tiles", tiles, NULL, NULL, l },
                                            { "rounding", rounding, NULL, NULL, l },
                                            { "driver", driver, NULL, NULL, l } };
        failed += _cmocka_run_group_tests(l->name, tests, 3, NULL, NULL);
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
