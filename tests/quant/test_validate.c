/* SPDX-License-Identifier: MIT */
/* Rows that are not finite: every field of every type, and everything that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/log.h"
#include "sotto/quant.h"
#include "sotto/status.h"

enum { BLOCKS = 5, MOST = 300 * BLOCKS };

/* quant.md section 6: where a block holds floats, and of how many bytes; iq1_m and mxfp4 are apart. */
static const struct {
    enum sotto_type type;
    int bytes, at[2]; /* -1: none */
} FIELDS[] = {
    { SOTTO_TYPE_F32, 4, { 0, -1 } },    { SOTTO_TYPE_F16, 2, { 0, -1 } },    { SOTTO_TYPE_BF16, -2, { 0, -1 } },
    { SOTTO_TYPE_F64, 8, { 0, -1 } },    { SOTTO_TYPE_Q1_0, 2, { 0, -1 } },   { SOTTO_TYPE_Q2_0, 2, { 0, -1 } },
    { SOTTO_TYPE_Q4_0, 2, { 0, -1 } },   { SOTTO_TYPE_Q4_1, 2, { 0, 2 } },    { SOTTO_TYPE_Q5_0, 2, { 0, -1 } },
    { SOTTO_TYPE_Q5_1, 2, { 0, 2 } },    { SOTTO_TYPE_Q8_0, 2, { 0, -1 } },   { SOTTO_TYPE_Q2_K, 2, { 80, 82 } },
    { SOTTO_TYPE_Q3_K, 2, { 108, -1 } }, { SOTTO_TYPE_Q4_K, 2, { 0, 2 } },    { SOTTO_TYPE_Q5_K, 2, { 0, 2 } },
    { SOTTO_TYPE_Q6_K, 2, { 208, -1 } }, { SOTTO_TYPE_Q8_K, 4, { 0, -1 } },   { SOTTO_TYPE_IQ2_XXS, 2, { 0, -1 } },
    { SOTTO_TYPE_IQ2_XS, 2, { 0, -1 } }, { SOTTO_TYPE_IQ2_S, 2, { 0, -1 } },  { SOTTO_TYPE_IQ3_XXS, 2, { 0, -1 } },
    { SOTTO_TYPE_IQ3_S, 2, { 0, -1 } },  { SOTTO_TYPE_IQ1_S, 2, { 0, -1 } },  { SOTTO_TYPE_IQ4_NL, 2, { 0, -1 } },
    { SOTTO_TYPE_IQ4_XS, 2, { 0, -1 } }, { SOTTO_TYPE_TQ1_0, 2, { 52, -1 } }, { SOTTO_TYPE_TQ2_0, 2, { 64, -1 } },
};

static uint8_t data[MOST];
static char logged[2000];

static void note(enum sotto_log_level level, const char * text, void * user_data) {
    (void)user_data;
    assert_int_equal(level, SOTTO_LOG_ERROR);
    snprintf(logged, sizeof(logged), "%s", text);
}

/* Blocks of bits that are all set, but for what has to be finite. */
static void all_set(enum sotto_type type) {
    memset(data, 0xFF, sizeof(data));
    const size_t bytes = sotto_type_size(type);
    for (size_t f = 0; f < sizeof(FIELDS) / sizeof(*FIELDS); f++) {
        for (int i = 0; FIELDS[f].type == type && i < 2 && FIELDS[f].at[i] >= 0; i++) {
            for (int b = 0; b < BLOCKS; b++) {
                memset(data + (size_t)b * bytes + FIELDS[f].at[i], 0, (size_t)abs(FIELDS[f].bytes));
            }
        }
    }
}

static bool valid(enum sotto_type type) {
    logged[0] = '\0';
    sotto_clear_last_error();
    const bool good = sotto_validate_row_data(type, data, BLOCKS * sotto_type_size(type));
    assert_int_equal(sotto_last_error(), good ? SOTTO_OK : SOTTO_E_PARAM);
    assert_int_equal(strlen(logged) == 0, good);
    return good;
}

static void put(uint8_t * p, uint64_t bits, int bytes) {
    for (int i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(bits >> (8 * i));
    }
}

/* The field at `p` of block `b` with all kinds of contents. */
static void check_field(enum sotto_type type, uint8_t * p, int kind, int b) {
    const int bytes = abs(kind);
    const uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    const uint64_t infinity = kind == 2 ? 0x7C00 : kind == -2 ? 0x7F80 : kind == 4 ? 0x7F800000 : UINT64_C(0x7FF) << 52;
    const uint64_t bad[] = { infinity, infinity | top, infinity + 1, infinity | 1 | top, 2 * top - 1, top - 1 };
    const uint64_t good[] = { 0, top, 1, infinity - 1, (infinity - 1) | top };
    char place[40];
    snprintf(place, sizeof(place), ": block %d, field ", b);
    for (int i = 0; i < 6; i++) {
        put(p, bad[i], bytes);
        assert_false(valid(type));
        assert_non_null(strstr(sotto_last_error_text(), place));
        assert_non_null(strstr(logged, sotto_last_error_text()));
    }
    for (int i = 0; i < 5; i++) {
        put(p, good[i], bytes);
        assert_true(valid(type));
    }
}

static void every_float_of_every_type_counts(void ** state) {
    (void)state;
    for (size_t f = 0; f < sizeof(FIELDS) / sizeof(*FIELDS); f++) {
        const enum sotto_type type = FIELDS[f].type;
        all_set(type);
        for (int i = 0; i < 2 && FIELDS[f].at[i] >= 0; i++) {
            for (int b = 0; b < BLOCKS; b++) {
                check_field(type, data + (size_t)b * sotto_type_size(type) + FIELDS[f].at[i], FIELDS[f].bytes, b);
            }
        }
    }
}

static void the_first_bad_block_is_named(void ** state) {
    (void)state;
    all_set(SOTTO_TYPE_Q4_K);
    put(data + 3 * 144, 0x7C00, 2);
    put(data + 2 * 144 + 2, 0x7C00, 2);
    assert_false(valid(SOTTO_TYPE_Q4_K));
    assert_non_null(strstr(sotto_last_error_text(), "q4_K: block 2, field dmin at byte 290"));
    put(data + 2 * 144, 0x7C00, 2);
    assert_false(valid(SOTTO_TYPE_Q4_K));
    assert_non_null(strstr(sotto_last_error_text(), "q4_K: block 2, field d at byte 288"));
}

/* The scale in the upper nibbles of four words. */
static void set_nibbles(uint8_t * block, unsigned half) {
    for (int i = 0; i < 4; i++) {
        block[49 + 2 * i] = (uint8_t)((half >> (4 * i) & 15) << 4 | 15);
    }
}

static void the_scale_in_four_words(void ** state) {
    (void)state;
    static const unsigned bad[] = { 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF, 0x7FFF },
                          good[] = { 0, 0x7BFF, 0xFBFF, 0x8000 };
    memset(data, 0xFF, sizeof(data));
    for (int b = 0; b < BLOCKS; b++) {
        set_nibbles(data + 56 * b, 0x3800);
    }
    assert_true(valid(SOTTO_TYPE_IQ1_M));
    for (int i = 0; i < 6; i++) {
        set_nibbles(data + 56 * 4, bad[i]);
        assert_false(valid(SOTTO_TYPE_IQ1_M));
        assert_non_null(strstr(sotto_last_error_text(), ": block 4, field d at byte 272"));
    }
    for (int i = 0; i < 4; i++) {
        set_nibbles(data + 56 * 4, good[i]);
        assert_true(valid(SOTTO_TYPE_IQ1_M));
    }
}

static void a_power_of_two_is_not_255(void ** state) {
    (void)state;
    memset(data, 0xFF, sizeof(data));
    for (int b = 0; b < BLOCKS; b++) {
        data[17 * b] = 254;
    }
    assert_true(valid(SOTTO_TYPE_MXFP4));
    data[17 * 3] = 255;
    assert_false(valid(SOTTO_TYPE_MXFP4));
    assert_non_null(strstr(sotto_last_error_text(), ": block 3, field e at byte 51"));
}

static void other_bytes_are_all_good(void ** state) {
    (void)state;
    static const enum sotto_type types[] = { SOTTO_TYPE_NVFP4, SOTTO_TYPE_I8, SOTTO_TYPE_I16, SOTTO_TYPE_I32,
                                             SOTTO_TYPE_I64 };
    for (int t = 0; t < 5; t++) {
        memset(data, 0xFF, sizeof(data));
        assert_true(valid(types[t]));
        for (size_t i = 0; i < sizeof(data); i++) {
            data[i] = (uint8_t)(i * 37 + 11);
        }
        assert_true(valid(types[t]));
    }
}

static void refused(enum sotto_status status, int type, const void * rows, size_t bytes) {
    sotto_clear_last_error();
    assert_false(sotto_validate_row_data((enum sotto_type)type, rows, bytes));
    assert_int_equal(sotto_last_error(), status);
    assert_non_null(strstr(sotto_last_error_text(), "sotto_validate_row_data: "));
}

static void what_is_no_row_is_refused(void ** state) {
    (void)state;
    static const int retired[] = { 4, 5, 31, 32, 33, 36, 37, 38 };
    memset(data, 0, sizeof(data));
    refused(SOTTO_E_TYPE, -1, data, 0);
    refused(SOTTO_E_TYPE, SOTTO_TYPE_COUNT, data, 0);
    refused(SOTTO_E_TYPE, SOTTO_TYPE_Q8_1, data, 36);
    for (int i = 0; i < 8; i++) {
        refused(SOTTO_E_RETIRED, retired[i], data, 0);
    }
    for (int t = 0; t < SOTTO_TYPE_COUNT; t++) {
        const size_t bytes = sotto_get_type_traits((enum sotto_type)t)->type_size;
        if (bytes == 0 || t == SOTTO_TYPE_Q8_1) {
            continue;
        }
        refused(SOTTO_E_NULLARG, t, NULL, bytes);
        if (bytes > 1) {
            refused(SOTTO_E_SHAPE, t, data, bytes - 1);
            refused(SOTTO_E_SHAPE, t, data, bytes + 1);
        }
        assert_true(sotto_validate_row_data((enum sotto_type)t, data, 0));
        assert_true(sotto_validate_row_data((enum sotto_type)t, data, BLOCKS * bytes));
    }
}

static int begin(void ** state) {
    (void)state;
    sotto_log_set(note, NULL);
    return 0;
}

static int end(void ** state) {
    (void)state;
    sotto_log_set(NULL, NULL);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_float_of_every_type_counts), cmocka_unit_test(the_first_bad_block_is_named),
        cmocka_unit_test(the_scale_in_four_words),          cmocka_unit_test(a_power_of_two_is_not_255),
        cmocka_unit_test(other_bytes_are_all_good),         cmocka_unit_test(what_is_no_row_is_refused),
    };
    return cmocka_run_group_tests_name("quant.validate", tests, begin, end);
}
