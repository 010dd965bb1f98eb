/* SPDX-License-Identifier: MIT */
/* The roundings that quantisers are made of, against those of the C library, on floats of every exponent, ties and their
 * neighbours, one at a time and four; and the numbers of files' types. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guarded.h"
#include "quant/extremes.h"
#include "quant/f4.h"
#include "quant/quant_impl.h"
#include "sotto/quant.h"

enum { LIMIT = 4194303 };

static float clamped(float v, float lo, float hi) { return !isfinite(v) ? 0.0f : v < lo ? lo : v > hi ? hi : v; }

static void check(float v, float lo, float hi) {
    const f4 four = { v, -v, v, 1.5f };
    assert_true(q_even(v, lo, hi) == clamped(rintf(isfinite(v) ? v : 0.0f), lo, hi));
    assert_true((float)q_away(v, lo, hi) == clamped(roundf(isfinite(v) ? v : 0.0f), lo, hi));
    assert_true((float)q_trunc(v, lo, hi) == clamped(truncf(isfinite(v) ? v : 0.0f), lo, hi));
    for (int l = 0; l < 4; l++) {
        assert_true(f4_even(four, lo, hi)[l] == q_even(four[l], lo, hi));
        assert_true(f4_away(four, lo, hi)[l] == q_away(four[l], lo, hi));
        assert_true(f4_trunc(four, lo, hi)[l] == q_trunc(four[l], lo, hi));
    }
}

static void check_all_ranges(float v) {
    check(v, -(float)LIMIT, (float)LIMIT);
    check(v, -127.0f, 127.0f);
    check(v, 0.0f, 15.0f);
    check(v, -4.0f, 3.0f);
}

static void roundings_are_those_of_the_library(void ** state) {
    (void)state;
    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        for (uint32_t k = 0; k < 64; k++) {
            const uint32_t bits = exponent << 23 | (k < 32 ? k << 18 : (0x7FFFFFu >> (k - 32) % 24));
            float v;
            memcpy(&v, &bits, sizeof(v));
            check_all_ranges(v);
            check_all_ranges(-v);
        }
    }
    for (float tie = -300.5f; tie < 300.0f; tie += 0.5f) {
        check_all_ranges(tie);
        check_all_ranges(nextafterf(tie, INFINITY));
        check_all_ranges(nextafterf(tie, -INFINITY));
    }
    check_all_ranges((float)LIMIT);
    check_all_ranges((float)LIMIT - 0.5f);
    check_all_ranges((float)LIMIT + 1.0f);
}

static void extremes_are_the_first_of_equals(void ** state) {
    (void)state;
    struct dice dice = { 77 };
    static const float some[] = { 0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, NAN, 1e-45f };
    for (int pass = 0; pass < 2000; pass++) {
        float x[32], a = 0.0f, m = 0.0f, lo = INFINITY, hi = -INFINITY;
        for (int i = 0; i < 32; i++) {
            x[i] = some[dice_below(&dice, pass % 8 + 1)];
            if (fabsf(x[i]) > a) {
                a = fabsf(x[i]);
                m = x[i];
            }
            lo = x[i] < lo ? x[i] : lo;
            hi = x[i] > hi ? x[i] : hi;
        }
        float smallest, largest;
        smallest_and_largest(x, 32, &smallest, &largest);
        assert_true(largest_magnitude(x, 32) == a);
        assert_memory_equal(&(float){ first_extreme(x, 32, a) }, &m, sizeof(m));
        assert_memory_equal(&smallest, &lo, sizeof(lo));
        assert_memory_equal(&largest, &hi, sizeof(hi));
    }
}

static void types_of_files(void ** state) {
    (void)state;
    static const char * const names[] = {
        [0] = "f32",      [1] = "f16",     [2] = "q4_0",     [3] = "q4_1",   [7] = "q8_0",    [8] = "q5_0",
        [9] = "q5_1",     [10] = "q2_K",   [11] = "q3_K",    [12] = "q4_K",  [13] = "q5_K",   [14] = "q6_K",
        [15] = "iq2_xxs", [16] = "iq2_xs", [17] = "iq3_xxs", [18] = "iq1_s", [19] = "iq4_nl", [20] = "iq3_s",
        [21] = "iq2_s",   [22] = "iq4_xs", [23] = "iq1_m",   [24] = "bf16",  [25] = "mxfp4",  [26] = "nvfp4",
        [27] = "q1_0",    [28] = "q2_0",   [40] = NULL,
    };
    for (int ftype = -3; ftype <= 40; ftype++) {
        sotto_clear_last_error();
        const enum sotto_type type = sotto_ftype_to_sotto_type(ftype);
        const char * name = ftype < 0 ? NULL : names[ftype];
        assert_int_equal(sotto_last_error(), name ? SOTTO_OK : SOTTO_E_TYPE);
        if (name) {
            assert_string_equal(sotto_type_name(type), name);
        } else {
            assert_int_equal(type, SOTTO_TYPE_COUNT);
        }
    }
    assert_int_equal(sotto_ftype_to_sotto_type(INT32_MAX), SOTTO_TYPE_COUNT);
    assert_int_equal(sotto_ftype_to_sotto_type(INT32_MIN), SOTTO_TYPE_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roundings_are_those_of_the_library),
        cmocka_unit_test(extremes_are_the_first_of_equals),
        cmocka_unit_test(types_of_files),
    };
    return cmocka_run_group_tests_name("quant.roundings", tests, NULL, NULL);
}
