/* SPDX-License-Identifier: MIT */
/* Panels of quantised weights: rows go in and come out unchanged; codes and scales say of every element what the type's
 * own decoder says, bit for bit; every level of this machine agrees with the scalar definition.
 *
 *     test_codes [SEED]
 *
 * Bytes are random, so scales are anything, infinities and NaN included. Panels end at a page that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/codes_kernels.h"
#include "cpu/panel.h"
#include "guarded.h"

enum { PANEL = SOTTO_CPU_PANEL, BLOCKS = 3, MAX_K = BLOCKS * 256, SUBS = MAX_K / SOTTO_I_CODES_MIN_SUB };

static uint64_t seed = 1;
static struct dice dice;

/* A panel of random rows, and the rows. */
struct case_ {
    enum sotto_type type;
    const struct sotto_type_traits * traits;
    size_t row_size;
    struct guarded panel;
    uint8_t rows[PANEL][BLOCKS * 512];
};

static void case_new(struct case_ * c, enum sotto_type type) {
    c->type = type;
    c->traits = sotto_get_type_traits(type);
    c->row_size = c->traits->type_size * BLOCKS;
    c->panel = guarded_new(c->row_size * PANEL);
    for (int lane = 0; lane < PANEL; lane++) {
        for (size_t i = 0; i < c->row_size; i++) {
            c->rows[lane][i] = (uint8_t)dice_next(&dice);
        }
        /* in two steps, as a transfer of part of a row would */
        sotto_i_panel_set(type, c->panel.data, lane, 0, 1, c->rows[lane]);
        sotto_i_panel_set(type, c->panel.data, lane, 1, BLOCKS - 1, c->rows[lane] + c->traits->type_size);
    }
}

static void rows_come_out_unchanged(void ** state) {
    (void)state;
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (sotto_get_type_traits((enum sotto_type)type)->blck_size == 0) {
            continue;
        }
        struct case_ c;
        case_new(&c, (enum sotto_type)type);
        for (int lane = 0; lane < PANEL; lane++) {
            uint8_t back[BLOCKS * 512];
            sotto_i_panel_get(c.type, c.panel.data, lane, 1, BLOCKS - 1, back + c.traits->type_size);
            sotto_i_panel_get(c.type, c.panel.data, lane, 0, 1, back);
            assert_memory_equal(back, c.rows[lane], c.row_size);
        }
        guarded_free(&c.panel);
    }
}

/* Codes of one panel at one level, cleared beforehand. */
struct unpacked {
    _Alignas(64) uint8_t code[MAX_K * PANEL];
    _Alignas(64) float scale[SUBS * PANEL];
    _Alignas(64) float min[SUBS * PANEL];
    _Alignas(64) float values[MAX_K * PANEL];
};

static void unpack(const struct case_ * c, enum sotto_cpu_level level, struct unpacked * u) {
    struct sotto_i_codes_kernels k;
    sotto_i_codes_init(&k, level);
    memset(u, 0, sizeof(*u));
    const struct sotto_i_codes out = { u->code, u->scale, u->min };
    k.unpack[c->type](c->panel.data, BLOCKS, &out);
    k.to_float(sotto_i_codes_form(c->type), &out, BLOCKS * c->traits->blck_size, u->values);
}

/* Equal bits, or NaN both. */
static bool same(const float * a, const float * b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, sizeof(*a)) != 0 && !(a[i] != a[i] && b[i] != b[i])) {
            return false;
        }
    }
    return true;
}

static void values_are_the_decoders(void ** state) {
    (void)state;
    static struct unpacked u;
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        const struct sotto_i_codes_form * form = sotto_i_codes_form((enum sotto_type)type);
        if (form->sub == 0) {
            continue;
        }
        struct case_ c;
        case_new(&c, (enum sotto_type)type);
        unpack(&c, SOTTO_CPU_LEVEL_C, &u);
        const int64_t n = BLOCKS * c.traits->blck_size;
        for (int lane = 0; lane < PANEL; lane++) {
            float want[MAX_K], got[MAX_K];
            c.traits->to_float(c.rows[lane], want, n);
            for (int64_t l = 0; l < n; l++) {
                got[l] = u.values[l * PANEL + lane];
                assert_in_range(u.code[l / 4 * PANEL * 4 + lane * 4 + l % 4], 0, form->top);
            }
            if (!same(want, got, (size_t)n)) {
                fail_msg("seed %llu: %s: codes and scales differ from to_float", (unsigned long long)seed,
                         c.traits->type_name);
            }
        }
        guarded_free(&c.panel);
    }
}

static void levels_agree(void ** state) {
    (void)state;
    static struct unpacked want, got;
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (sotto_i_codes_form((enum sotto_type)type)->sub == 0) {
            continue;
        }
        struct case_ c;
        case_new(&c, (enum sotto_type)type);
        unpack(&c, SOTTO_CPU_LEVEL_C, &want);
        for (int level = 1; level <= (int)sotto_cpu_best_level(); level++) {
            unpack(&c, (enum sotto_cpu_level)level, &got);
            if (memcmp(want.code, got.code, sizeof(want.code)) != 0 || !same(want.scale, got.scale, SUBS * PANEL) ||
                !same(want.min, got.min, SUBS * PANEL) || !same(want.values, got.values, MAX_K * PANEL)) {
                fail_msg("seed %llu: %s: level %s differs from c", (unsigned long long)seed, c.traits->type_name,
                         sotto_cpu_level_name((enum sotto_cpu_level)level));
            }
        }
        guarded_free(&c.panel);
    }
}

int main(int argc, char ** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_out_unchanged),
        cmocka_unit_test(values_are_the_decoders),
        cmocka_unit_test(levels_agree),
    };
    if (argc > 1) {
        seed = strtoull(argv[1], NULL, 0);
    }
    printf("seed %llu\n", (unsigned long long)seed);
    dice.state = seed;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
