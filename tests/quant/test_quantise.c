/* SPDX-License-Identifier: MIT */
/* Quantising matrices: shapes, splits and threads, rows of all kinds, importance matrices, what is refused. That the bytes
 * are the right ones is the matter of quant_vectors and test_gguf_peer.py. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guarded.h"
#include "quant/quant_impl.h"
#include "sotto/quant.h"
#include "sotto/status.h"
#include "sotto/tensor.h"

enum { MOST = 8 * 1024, UNTOUCHED = 0xA5 };

static float x[MOST], y[MOST], ones[MOST], weights[MOST];
static uint8_t first[4 * MOST], second[4 * MOST];
static struct dice dice;

#define EACH_TYPE(type)                                                                                          \
    for (enum sotto_type type = (enum sotto_type)0; type < SOTTO_TYPE_COUNT; type = (enum sotto_type)(type + 1)) \
        if (sotto_i_quantiser(type))

static bool uses_matrix(enum sotto_type type) { return sotto_i_quantiser(type)->matrix != IGNORES_MATRIX; }

/* No matrix, where there need not be one. */
static const float * none_for(enum sotto_type type) { return sotto_quantize_requires_imatrix(type) ? ones : NULL; }

static void decode(enum sotto_type type, const void * blocks, float * to, int64_t n) {
    if (type == SOTTO_TYPE_F32) {
        memcpy(to, blocks, (size_t)n * sizeof(float));
    } else {
        sotto_get_type_traits(type)->to_float(blocks, to, n);
    }
}

/* Rows of x to `out`, all of them; fails the test if that is refused. */
static size_t quantise(enum sotto_type type, void * out, int64_t rows, int64_t n, const float * w) {
    const size_t bytes = sotto_quantize_chunk(type, x, out, 0, rows, n, w);
    if (bytes != (size_t)rows * sotto_row_size(type, n)) {
        fail_msg("%s: %s", sotto_type_name(type), sotto_last_error_text());
    }
    return bytes;
}

static void random_values(void) {
    for (int i = 0; i < MOST; i++) {
        x[i] = dice_float(&dice) * (1.0f + 3.0f * (float)(dice_below(&dice, 8) == 0));
        weights[i] = 0.01f + fabsf(dice_float(&dice));
    }
}

static int begin(void ** state) {
    (void)state;
    dice.state = 20251201;
    for (int i = 0; i < MOST; i++) {
        ones[i] = 1.0f;
    }
    random_values();
    return 0;
}

static int end(void ** state) {
    (void)state;
    sotto_quantize_free();
    return 0;
}

/* ---- the table ---- */

/* All types of files but integers and f64; those that need a matrix or can use one as quant.md section 5.6 says. */
static void every_type_has_its_quantiser(void ** state) {
    (void)state;
    static const char needing[] = " iq2_xxs iq2_xs iq1_s ";
    static const char ignoring[] = " f32 f16 bf16 q1_0 q2_0 q8_0 tq1_0 tq2_0 mxfp4 nvfp4 ";
    for (int t = 0; t < SOTTO_TYPE_COUNT; t++) {
        const enum sotto_type type = (enum sotto_type)t;
        const struct sotto_i_quantiser * quantiser = sotto_i_quantiser(type);
        const struct sotto_type_traits * traits = sotto_get_type_traits(type);
        const bool work = type == SOTTO_TYPE_Q8_1 || type == SOTTO_TYPE_Q8_K;
        const bool plain = type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16;
        assert_int_equal(quantiser != NULL, plain || (traits->is_quantized && !work));
        char name[32];
        snprintf(name, sizeof(name), " %s ", traits->type_name);
        assert_int_equal(sotto_quantize_requires_imatrix(type), strstr(needing, name) != NULL);
        if (quantiser) {
            assert_int_equal(quantiser->matrix == IGNORES_MATRIX, strstr(ignoring, name) != NULL);
        }
    }
}

/* ---- shapes and splits ---- */

static void check_shape(enum sotto_type type, int64_t rows, int64_t n, const float * w) {
    const size_t row = sotto_row_size(type, n), bytes = (size_t)rows * row;
    struct guarded whole = guarded_new(bytes);
    quantise(type, whole.data, rows, n, w);
    memset(second, UNTOUCHED, sizeof(second));
    for (int64_t r = rows - 1; r >= 0; r--) {
        assert_int_equal(sotto_quantize_chunk(type, x, second, r * n, 1, n, w), row);
    }
    assert_memory_equal(whole.data, second, bytes);
    assert_int_equal(second[bytes], UNTOUCHED);
    const bool has_row = sotto_get_type_traits(type)->from_float_ref && type != SOTTO_TYPE_IQ4_NL;
    for (int64_t r = 0; r < rows && has_row && !w; r++) {
        sotto_get_type_traits(type)->from_float_ref(x + r * n, first, n);
        assert_memory_equal(first, second + (size_t)r * row, row);
    }
    guarded_free(&whole);
}

static void rows_do_not_depend_on_the_split(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        const int64_t block = sotto_blck_size(type), lengths[] = { block, 3 * block, 1024 };
        for (int l = 0; l < 3; l++) {
            for (int64_t rows = 1; rows <= 3; rows += 2) {
                check_shape(type, rows, lengths[l], none_for(type));
                check_shape(type, rows, lengths[l], ones);
                check_shape(type, rows, lengths[l], weights);
            }
        }
    }
}

struct share {
    enum sotto_type type;
    int64_t row, rows, n;
    pthread_t thread;
    size_t bytes;
};

static void * work(void * data) {
    struct share * s = data;
    sotto_quantize_init(s->type);
    s->bytes = sotto_quantize_chunk(s->type, x, second, s->row * s->n, s->rows, s->n, weights);
    return NULL;
}

static void threads_give_the_same_bytes(void ** state) {
    (void)state;
    sotto_quantize_free();
    EACH_TYPE(type) {
        struct share shares[4];
        const int64_t n = 512;
        for (int i = 0; i < 4; i++) {
            shares[i] = (struct share){ .type = type, .row = 2 * i, .rows = 2, .n = n };
            assert_int_equal(pthread_create(&shares[i].thread, NULL, work, &shares[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(shares[i].thread, NULL);
            assert_int_equal(shares[i].bytes, 2 * sotto_row_size(type, n));
        }
        const size_t bytes = quantise(type, first, 8, n, weights);
        assert_memory_equal(first, second, bytes);
    }
}

static void blocks_may_lie_anywhere(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        const int64_t n = 256;
        const size_t bytes = quantise(type, first, 2, n, weights);
        assert_int_equal(sotto_quantize_chunk(type, x, second + 1, 0, 2, n, weights), bytes);
        assert_memory_equal(first, second + 1, bytes);
        if (sotto_is_quantized(type)) {
            float from_odd[512];
            decode(type, first, y, 2 * n);
            decode(type, second + 1, from_odd, 2 * n);
            assert_memory_equal(y, from_odd, sizeof(from_odd));
        }
    }
}

/* ---- rows of all kinds ---- */

static void zeros_of_either_sign_stay_zero(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        for (int kind = 0; kind < 3; kind++) {
            for (int i = 0; i < 512; i++) {
                x[i] = kind == 0 || (kind == 2 && i % 3) ? 0.0f : -0.0f;
            }
            quantise(type, first, 1, 512, kind == 2 && uses_matrix(type) ? weights : none_for(type));
            decode(type, first, y, 512);
            for (int i = 0; i < 512; i++) {
                assert_true(y[i] == 0.0f);
            }
            assert_true(sotto_validate_row_data(type, first, sotto_row_size(type, 512)));
        }
    }
}

/* A lattice need not hold the point where all are equal, or the signs of one. */
static bool is_lattice(enum sotto_type type) { return sotto_i_quantiser(type)->init; }

static void constants_stay_near(void ** state) {
    (void)state;
    static const float values[] = { 1.0f, -1.0f, 0.3f, -77.0f, 1000.0f, 0.02f };
    EACH_TYPE(type) {
        for (int v = 0; v < 6 && !is_lattice(type); v++) {
            for (int i = 0; i < 512; i++) {
                x[i] = values[v];
            }
            quantise(type, first, 1, 512, none_for(type));
            decode(type, first, y, 512);
            for (int i = 0; i < 512; i++) {
                if (!(fabsf(y[i] - x[i]) <= 0.25f * fabsf(x[i]))) {
                    fail_msg("%s: %g became %g", sotto_type_name(type), (double)x[i], (double)y[i]);
                }
            }
        }
    }
}

static void alternating_signs_are_kept(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        for (int i = 0; i < 512; i++) {
            x[i] = i % 2 ? -2.0f : 2.0f;
        }
        quantise(type, first, 1, 512, none_for(type));
        decode(type, first, y, 512);
        for (int i = 0; i < 512 && !is_lattice(type); i++) {
            assert_true((y[i] < 0.0f) == (x[i] < 0.0f) && fabsf(y[i]) <= 3.0f);
        }
    }
}

static void an_outlier_is_kept(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        for (int at = 0; at < 512 && type != SOTTO_TYPE_Q1_0; at += 37) {
            for (int i = 0; i < 512; i++) {
                x[i] = 0.01f * (float)(i % 5 - 2);
            }
            x[at] = at % 2 ? 100.0f : -100.0f;
            quantise(type, first, 1, 512, none_for(type));
            decode(type, first, y, 512);
            if (!(fabsf(y[at] - x[at]) <= 25.0f)) {
                fail_msg("%s: %g became %g", sotto_type_name(type), (double)x[at], (double)y[at]);
            }
        }
    }
}

static void tiny_values_stay_tiny(void ** state) {
    (void)state;
    static const float sizes[] = { 1e-45f, 3e-42f, 1e-39f, 1e-30f, 1e-20f, 6e-8f };
    EACH_TYPE(type) {
        for (int s = 0; s < 6; s++) {
            for (int i = 0; i < 512; i++) {
                x[i] = sizes[s] * (float)(i % 7 - 3);
            }
            for (int with = 0; with < 2; with++) {
                quantise(type, first, 1, 512, with ? weights : none_for(type));
                decode(type, first, y, 512);
                for (int i = 0; i < 512; i++) {
                    assert_true(fabsf(y[i]) <= 1e-5f);
                }
                assert_true(sotto_validate_row_data(type, first, sotto_row_size(type, 512)));
            }
        }
    }
}

/* Scales become infinite where they are binary16; the row can be told to be bad. */
static void scales_that_overflow_are_found(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        const bool wide =
            type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_BF16 || type == SOTTO_TYPE_MXFP4 || type == SOTTO_TYPE_NVFP4;
        for (int i = 0; i < 512; i++) {
            x[i] = 1e9f * (float)(i % 9 - 4);
        }
        for (int with = 0; with < 2; with++) {
            quantise(type, first, 1, 512, with ? weights : none_for(type));
            assert_int_equal(sotto_validate_row_data(type, first, sotto_row_size(type, 512)), wide);
            assert_true(wide || sotto_last_error() == SOTTO_E_PARAM);
        }
    }
}

/* ---- any input at all ---- */

static float any_float(void) {
    static const uint32_t special[] = { 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF,
                                        0xFF7FFFFF, 0x00000001, 0x80000001, 0x007FFFFF, 0x80000000, 0x3F800000 };
    const uint32_t which = dice_below(&dice, 24);
    const uint32_t bits = which < 12 ? special[which] : dice_next(&dice);
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static void nothing_in_a_row_does_harm(void ** state) {
    (void)state;
    static const float sizes[] = { 0.0f, 1e-45f, 1e-38f, 1.0f, 1e20f, 3e38f };
    EACH_TYPE(type) {
        for (int pass = 0; pass < 6; pass++) {
            for (int i = 0; i < 1024; i++) {
                const bool rare = pass > 2 && dice_below(&dice, 64);
                x[i] = rare ? dice_float(&dice) : any_float();
                y[i] = sizes[dice_below(&dice, 6)];
            }
            const float * w = pass % 2 ? y : none_for(type);
            quantise(type, first, 1, 1024, w);
        }
    }
}

static void any_block_can_be_decoded(void ** state) {
    (void)state;
    for (int t = 0; t < SOTTO_TYPE_COUNT; t++) {
        const struct sotto_type_traits * traits = sotto_get_type_traits((enum sotto_type)t);
        for (int pass = 0; pass < 20 && traits->to_float; pass++) {
            for (size_t i = 0; i < 16 * traits->type_size; i++) {
                first[i] = (uint8_t)dice_next(&dice);
            }
            y[16 * traits->blck_size] = 12345.0f;
            traits->to_float(first, y, 16 * traits->blck_size);
            assert_true(y[16 * traits->blck_size] == 12345.0f);
        }
    }
}

/* ---- importance matrices ---- */

static void types_that_cannot_use_a_matrix_ignore_it(void ** state) {
    (void)state;
    const float bad[2] = { NAN, -1.0f };
    EACH_TYPE(type) {
        if (uses_matrix(type)) {
            continue;
        }
        const size_t bytes = quantise(type, first, 2, 512, NULL);
        quantise(type, second, 2, 512, weights);
        assert_memory_equal(first, second, bytes);
        for (int i = 0; i < 512; i++) {
            y[i] = bad[i % 2];
        }
        quantise(type, second, 2, 512, y);
        assert_memory_equal(first, second, bytes);
    }
}

static void a_matrix_changes_what_can_use_it(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        if (uses_matrix(type)) {
            const size_t bytes = quantise(type, first, 2, 512, ones);
            quantise(type, second, 2, 512, weights);
            assert_memory_not_equal(first, second, bytes);
        }
    }
}

static void twice_the_weights_are_the_same_weights(void ** state) {
    (void)state;
    static const float factors[] = { 2.0f, 1024.0f, 0x1p-20f };
    EACH_TYPE(type) {
        const size_t bytes = quantise(type, first, 2, 512, weights);
        for (int f = 0; f < 3; f++) {
            for (int i = 0; i < 512; i++) {
                y[i] = weights[i] * factors[f];
            }
            quantise(type, second, 2, 512, y);
            assert_memory_equal(first, second, bytes);
        }
    }
}

/* Weights that say nothing: zero everywhere, or wherever the row is not. */
static void weights_of_nothing_count_as_one(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        for (int kind = 0; kind < 2 && uses_matrix(type); kind++) {
            for (int i = 0; i < 512; i++) {
                x[i] = kind == 1 && i % 4 == 1 ? 0.0f : x[i];
                y[i] = kind == 1 && x[i] == 0.0f ? 1.0f : 0.0f;
            }
            const size_t bytes = quantise(type, first, 1, 512, ones);
            quantise(type, second, 1, 512, y);
            assert_memory_equal(first, second, bytes);
            assert_true(sotto_validate_row_data(type, second, bytes));
        }
    }
}

/* Weights that are zero in some sub-blocks only. */
static void a_silent_sub_block_is_kept(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        for (int i = 0; i < 512; i++) {
            y[i] = i / 32 % 2 ? 1.0f : 0.0f;
        }
        const size_t bytes = quantise(type, first, 1, 512, uses_matrix(type) ? y : NULL);
        assert_true(sotto_validate_row_data(type, first, bytes));
        decode(type, first, y, 512);
        double error = 0.0, size = 0.0;
        for (int i = 0; i < 512; i++) {
            error += (double)(x[i] - y[i]) * (double)(x[i] - y[i]) * (i / 32 % 2 == 0);
            size += (double)x[i] * (double)x[i] * (i / 32 % 2 == 0);
        }
        if (!(error < 0.6 * size)) {
            fail_msg("%s: %g of %g is lost", sotto_type_name(type), error, size);
        }
    }
}

static void bad_weights_are_refused(void ** state) {
    (void)state;
    static const float bad[] = { NAN, INFINITY, -INFINITY, -1e-45f, -1.0f };
    EACH_TYPE(type) {
        for (int b = 0; b < 5 && uses_matrix(type); b++) {
            for (int at = 0; at < 512; at += 511) {
                memcpy(y, ones, 512 * sizeof(float));
                y[at] = bad[b];
                memset(first, UNTOUCHED, sizeof(first));
                sotto_clear_last_error();
                assert_int_equal(sotto_quantize_chunk(type, x, first, 0, 1, 512, y), 0);
                assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
                assert_int_equal(first[0], UNTOUCHED);
            }
        }
    }
}

/* ---- refusals ---- */

static void refused(enum sotto_status status, enum sotto_type type, const float * src, void * dst, int64_t start,
                    int64_t rows, int64_t n, const float * w) {
    memset(first, UNTOUCHED, sizeof(first));
    sotto_clear_last_error();
    assert_int_equal(sotto_quantize_chunk(type, src, dst, start, rows, n, w), 0);
    assert_int_equal(sotto_last_error(), status);
    assert_true(status == SOTTO_OK || strstr(sotto_last_error_text(), "sotto_quantize_chunk: "));
    for (size_t i = 0; i < sizeof(first); i++) {
        assert_int_equal(first[i], UNTOUCHED);
    }
}

static void wrong_types_are_refused(void ** state) {
    (void)state;
    static const int unknown[] = { -1, SOTTO_TYPE_COUNT, 1000, INT32_MIN, INT32_MAX };
    static const int retired[] = { 4, 5, 31, 32, 33, 36, 37, 38 };
    static const int others[] = { SOTTO_TYPE_I8,  SOTTO_TYPE_I16,  SOTTO_TYPE_I32, SOTTO_TYPE_I64,
                                  SOTTO_TYPE_F64, SOTTO_TYPE_Q8_1, SOTTO_TYPE_Q8_K };
    for (int i = 0; i < 5; i++) {
        refused(SOTTO_E_TYPE, (enum sotto_type)unknown[i], x, first, 0, 1, 256, ones);
        sotto_quantize_init((enum sotto_type)unknown[i]);
        assert_int_equal(sotto_last_error(), SOTTO_E_TYPE);
        assert_false(sotto_quantize_requires_imatrix((enum sotto_type)unknown[i]));
    }
    for (int i = 0; i < 8; i++) {
        refused(SOTTO_E_RETIRED, (enum sotto_type)retired[i], x, first, 0, 1, 256, ones);
        sotto_clear_last_error();
        sotto_quantize_init((enum sotto_type)retired[i]);
        assert_int_equal(sotto_last_error(), SOTTO_E_RETIRED);
        assert_false(sotto_quantize_requires_imatrix((enum sotto_type)retired[i]));
    }
    for (int i = 0; i < 7; i++) {
        refused(SOTTO_E_TYPE, (enum sotto_type)others[i], x, first, 0, 1, 256, ones);
        sotto_clear_last_error();
        sotto_quantize_init((enum sotto_type)others[i]);
        assert_int_equal(sotto_last_error(), SOTTO_OK);
    }
}

static void wrong_arguments_are_refused(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        const int64_t n = 512, block = sotto_blck_size(type);
        refused(SOTTO_E_NULLARG, type, NULL, first, 0, 1, n, ones);
        refused(SOTTO_E_NULLARG, type, x, NULL, 0, 1, n, ones);
        refused(SOTTO_E_PARAM, type, x, first, -n, 1, n, ones);
        refused(SOTTO_E_PARAM, type, x, first, 0, -1, n, ones);
        refused(SOTTO_E_PARAM, type, x, first, 0, 1, -n, ones);
        refused(SOTTO_E_PARAM, type, x, first, n / 2, 1, n, ones);
        refused(SOTTO_E_PARAM, type, x, first, 1, 1, n, ones);
        refused(SOTTO_E_PARAM, type, x, first, 1, 1, 0, ones);
        refused(SOTTO_E_MEMORY, type, x, first, 0, INT64_MAX, n, ones);
        refused(SOTTO_E_MEMORY, type, x, first, INT64_MAX / n * n, INT64_MAX, n, ones);
        refused(SOTTO_E_MEMORY, type, x, first, 0, 1, INT64_MAX / 256 * 256, ones);
        if (block > 1) {
            refused(SOTTO_E_SHAPE, type, x, first, 0, 1, 31, ones);
            refused(SOTTO_E_SHAPE, type, x, first, 0, 1, block + 1, ones);
            refused(SOTTO_E_SHAPE, type, x, first, 0, 1, block / 2, ones);
        }
        if (sotto_quantize_requires_imatrix(type)) {
            refused(SOTTO_E_NULLARG, type, x, first, 0, 1, n, NULL);
        }
    }
}

static void no_rows_are_no_error(void ** state) {
    (void)state;
    EACH_TYPE(type) {
        refused(SOTTO_OK, type, x, first, 0, 0, 512, ones);
        refused(SOTTO_OK, type, x, first, 1024, 0, 512, ones);
        refused(SOTTO_OK, type, x, first, 0, 5, 0, ones);
    }
}

/* Rows that are no whole number of blocks are refused when the tensor is made. */
static void tensors_have_whole_blocks(void ** state) {
    (void)state;
    static const int64_t lengths[] = { 1, 31, 33, 255, 257 };
    for (int t = 0; t < SOTTO_TYPE_COUNT; t++) {
        for (int l = 0; l < 5 && sotto_get_type_traits((enum sotto_type)t)->blck_size > 1; l++) {
            struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16 });
            sotto_clear_last_error();
            assert_null(sotto_new_tensor_2d(ctx, (enum sotto_type)t, lengths[l], 2));
            assert_int_equal(sotto_last_error(), SOTTO_E_SHAPE);
            sotto_free(ctx);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_quantiser),
        cmocka_unit_test_setup_teardown(rows_do_not_depend_on_the_split, begin, end),
        cmocka_unit_test_setup_teardown(threads_give_the_same_bytes, begin, end),
        cmocka_unit_test_setup_teardown(blocks_may_lie_anywhere, begin, end),
        cmocka_unit_test_setup_teardown(zeros_of_either_sign_stay_zero, begin, end),
        cmocka_unit_test_setup_teardown(constants_stay_near, begin, end),
        cmocka_unit_test_setup_teardown(alternating_signs_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(an_outlier_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(tiny_values_stay_tiny, begin, end),
        cmocka_unit_test_setup_teardown(scales_that_overflow_are_found, begin, end),
        cmocka_unit_test_setup_teardown(nothing_in_a_row_does_harm, begin, end),
        cmocka_unit_test_setup_teardown(any_block_can_be_decoded, begin, end),
        cmocka_unit_test_setup_teardown(types_that_cannot_use_a_matrix_ignore_it, begin, end),
        cmocka_unit_test_setup_teardown(a_matrix_changes_what_can_use_it, begin, end),
        cmocka_unit_test_setup_teardown(twice_the_weights_are_the_same_weights, begin, end),
        cmocka_unit_test_setup_teardown(weights_of_nothing_count_as_one, begin, end),
        cmocka_unit_test_setup_teardown(a_silent_sub_block_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(bad_weights_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(wrong_types_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(wrong_arguments_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(no_rows_are_no_error, begin, end),
        cmocka_unit_test(tensors_have_whole_blocks),
    };
    return cmocka_run_group_tests_name("quant.quantise", tests, NULL, NULL);
}
