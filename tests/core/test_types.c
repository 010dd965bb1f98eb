/* SPDX-License-Identifier: MIT */
/* The table of types, and 16-bit floats in both directions, all of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/status.h"
#include "sotto/types.h"

/* ---- table ---- */

static void rows_are_those_of_the_list(void ** state) {
    (void)state;
#define TYPE(id, NAME, name, elements, bytes, quantised, retired)                            \
    do {                                                                                     \
        const struct sotto_type_traits * row = sotto_get_type_traits((enum sotto_type)(id)); \
        assert_int_equal(SOTTO_TYPE_##NAME, id);                                             \
        assert_string_equal(row->type_name, name);                                           \
        assert_string_equal(sotto_type_name((enum sotto_type)(id)), name);                   \
        assert_int_equal(row->blck_size, elements);                                          \
        assert_int_equal(row->type_size, bytes);                                             \
        assert_int_equal(row->is_quantized, quantised);                                      \
        assert_int_equal((elements) == 0, retired);                                          \
    } while (0);
#include "sotto/types.def"
#undef TYPE
}

static void unknown_and_retired_types_are_named(void ** state) {
    (void)state;
    static const int outside[] = { -1, SOTTO_TYPE_COUNT, 1000, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        enum sotto_type type = (enum sotto_type)outside[i];
        assert_string_equal(sotto_type_name(type), "unknown");
        assert_int_equal(sotto_get_type_traits(type)->type_size, 0);
        sotto_clear_last_error();
        assert_int_equal(sotto_type_size(type), 0);
        assert_int_equal(sotto_last_error(), SOTTO_E_TYPE);
        assert_int_equal(sotto_row_size(type, 32), 0);
        assert_int_equal(sotto_blck_size(type), 0);
        assert_false(sotto_is_quantized(type));
        assert_true(sotto_type_sizef(type) == 0.0);
    }
    static const int retired[] = { 4, 5, 31, 32, 33, 36, 37, 38 };
    for (size_t i = 0; i < sizeof(retired) / sizeof(retired[0]); i++) {
        sotto_clear_last_error();
        assert_int_equal(sotto_row_size((enum sotto_type)retired[i], 32), 0);
        assert_int_equal(sotto_last_error(), SOTTO_E_RETIRED);
    }
    assert_string_equal(sotto_type_name((enum sotto_type)36),
                        "TYPE_IQ4_NL_4_4 REMOVED, use IQ4_NL with runtime repacking");
    assert_non_null(strstr(sotto_last_error_text(), "IQ4_NL with runtime repacking"));
}

static void row_sizes(void ** state) {
    (void)state;
    assert_int_equal(sotto_row_size(SOTTO_TYPE_F32, 7), 28);
    assert_int_equal(sotto_row_size(SOTTO_TYPE_Q4_0, 96), 54);
    assert_int_equal(sotto_row_size(SOTTO_TYPE_Q1_0, 256), 36);
    assert_int_equal(sotto_row_size(SOTTO_TYPE_F16, 0), 0);
    assert_true(sotto_type_sizef(SOTTO_TYPE_Q4_0) == 18.0 / 32.0);
    sotto_clear_last_error();
    assert_int_equal(sotto_row_size(SOTTO_TYPE_Q4_0, 33), 0);
    assert_int_equal(sotto_last_error(), SOTTO_E_SHAPE);
    assert_int_equal(sotto_row_size(SOTTO_TYPE_F32, -1), 0);
    sotto_clear_last_error();
    assert_int_equal(sotto_row_size(SOTTO_TYPE_F64, INT64_MAX), 0);
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
}

/* ---- 16-bit floats ---- */

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Value of a finite 16-bit float with so many exponent bits, by its definition. */
static double value_of(uint16_t bits, int exponent_bits) {
    int mantissa_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    double mantissa = bits & ((1 << mantissa_bits) - 1);
    double size = exponent == 0 ? ldexp(mantissa, 1 - bias - mantissa_bits)
                                : ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return bits & 0x8000 ? -size : size;
}

static float f16_to_f32(uint16_t bits) { return sotto_fp16_to_fp32(bits); }
static uint16_t f32_to_f16(float x) { return sotto_fp32_to_fp16(x); }
static float bf16_to_f32(uint16_t bits) { return sotto_bf16_to_fp32((sotto_bf16_t){ bits }); }
static uint16_t f32_to_bf16(float x) { return sotto_fp32_to_bf16(x).bits; }

/* Every finite value, there and back; and between each two neighbours the tie and what lies beside it. `infinity` is
 * the pattern of +inf; the tie between the largest and it goes to infinity, being the even one. */
static void all_values(float (*widen)(uint16_t), uint16_t (*narrow)(float), int exponent_bits, uint16_t infinity) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        uint16_t size = h & 0x7FFF;
        if (size > infinity) {
            assert_true(isnan(widen((uint16_t)h)));
            assert_int_equal(signbit(widen((uint16_t)h)) != 0, h >> 15);
            continue;
        }
        float x = widen((uint16_t)h);
        assert_int_equal(narrow(x), h);
        if (size == infinity) {
            assert_true(isinf(x) && (x < 0) == (h >> 15));
            continue;
        }
        assert_true((double)x == value_of((uint16_t)h, exponent_bits));
        assert_int_equal(bits_of(x) >> 31, h >> 15);
        uint16_t next = (uint16_t)(h + 1);
        double beyond = value_of(next, exponent_bits); /* for infinity: one step after the largest */
        double middle = (value_of((uint16_t)h, exponent_bits) + beyond) / 2;
        if (middle > 3.4028235e38 || middle < -3.4028235e38) {
            continue; /* no f32 lies there */
        }
        float tie = (float)middle;
        float outward = h & 0x8000 ? -INFINITY : INFINITY;
        assert_true((double)tie == middle);
        assert_int_equal(narrow(tie), h & 1 ? next : h);
        assert_int_equal(narrow(nextafterf(tie, outward)), next);
        assert_int_equal(narrow(nextafterf(tie, 0.0f)), h);
    }
}

static void all_f16(void ** state) {
    (void)state;
    all_values(f16_to_f32, f32_to_f16, 5, 0x7C00);
    assert_int_equal(f32_to_f16(65519.996f), 0x7BFF);
    assert_int_equal(f32_to_f16(65520.0f), 0x7C00);
    assert_int_equal(f32_to_f16(3.4e38f), 0x7C00);
    assert_int_equal(f32_to_f16(1e-10f), 0);
    assert_int_equal(f32_to_f16(-0.0f), 0x8000);
}

static void all_bf16(void ** state) {
    (void)state;
    all_values(bf16_to_f32, f32_to_bf16, 8, 0x7F80);
    uint32_t largest = 0x7F7FFFFF; /* FLT_MAX rounds to infinity */
    float x;
    memcpy(&x, &largest, sizeof(x));
    assert_int_equal(f32_to_bf16(x), 0x7F80);
}

static void nan_stays_nan_and_is_quiet(void ** state) {
    (void)state;
    static const uint32_t patterns[] = { 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF };
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        float x;
        memcpy(&x, &patterns[i], sizeof(x));
        uint16_t half = f32_to_f16(x);
        uint16_t brain = f32_to_bf16(x);
        assert_int_equal(half & 0x7E00, 0x7E00);
        assert_int_equal(brain & 0x7FC0, 0x7FC0);
        assert_int_equal(half >> 15, patterns[i] >> 31);
        assert_int_equal(brain >> 15, patterns[i] >> 31);
    }
    assert_int_equal(bits_of(f16_to_f32(0x7C01)), 0x7FC02000);
}

static void rows_convert_like_scalars(void ** state) {
    (void)state;
    enum { N = 1000 };
    float x[N], y[N];
    sotto_fp16_t half[N];
    sotto_bf16_t brain[N], brain_ref[N];
    for (int i = 0; i < N; i++) {
        x[i] = ldexpf(1.0f + (float)i / N, i % 40 - 25) * (i & 1 ? -1.0f : 1.0f);
    }
    sotto_fp32_to_fp16_row(x, half, N);
    sotto_fp32_to_bf16_row(x, brain, N);
    sotto_fp32_to_bf16_row_ref(x, brain_ref, N);
    assert_memory_equal(brain, brain_ref, sizeof(brain));
    for (int i = 0; i < N; i++) {
        assert_int_equal(half[i], sotto_fp32_to_fp16(x[i]));
        assert_int_equal(brain[i].bits, sotto_fp32_to_bf16(x[i]).bits);
    }
    sotto_fp16_to_fp32_row(half, y, N);
    assert_true(y[17] == sotto_fp16_to_fp32(half[17]) && y[N - 1] == sotto_fp16_to_fp32(half[N - 1]));
    sotto_bf16_to_fp32_row(brain, y, N);
    assert_true(y[17] == sotto_bf16_to_fp32(brain[17]) && y[N - 1] == sotto_bf16_to_fp32(brain[N - 1]));
    sotto_get_type_traits(SOTTO_TYPE_F16)->to_float(half, y, N);
    assert_true(y[5] == sotto_fp16_to_fp32(half[5]));
    sotto_fp16_t again[N];
    sotto_get_type_traits(SOTTO_TYPE_F16)->from_float_ref(x, again, N);
    assert_memory_equal(again, half, sizeof(half));
    sotto_get_type_traits(SOTTO_TYPE_BF16)->from_float_ref(x, brain_ref, N);
    assert_memory_equal(brain, brain_ref, sizeof(brain));
    assert_null(sotto_get_type_traits(SOTTO_TYPE_F32)->to_float);
    assert_null(sotto_get_type_traits(SOTTO_TYPE_I32)->from_float_ref);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_list),
        cmocka_unit_test(unknown_and_retired_types_are_named),
        cmocka_unit_test(row_sizes),
        cmocka_unit_test(all_f16),
        cmocka_unit_test(all_bf16),
        cmocka_unit_test(nan_stays_nan_and_is_quiet),
        cmocka_unit_test(rows_convert_like_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
