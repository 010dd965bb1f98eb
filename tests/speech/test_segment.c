/* SPDX-License-Identifier: MIT */
/* Cutting a window into segments and the rule for the next seek (spec 5.9), and what is measured of a window's text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "support/counting_allocator.h"
#include "speech/ratio.h"
#include "speech/result.h"
#include "speech/segment.h"

static struct sotto_i_specials sp;
static struct sotto_i_cut_params params;
static struct sotto_i_cut cut;

static int set_up(void ** state) {
    (void)state;
    assert_int_equal(sotto_i_specials_init(51865, &sp), SOTTO_OK);
    params = (struct sotto_i_cut_params){ &sp, 1000, 3000, true, false };
    return 0;
}

#define T(k) (50364 + (k)) /* timestamp k */
#define A    400           /* text */
#define CUT(...)                                                               \
    do {                                                                       \
        const int32_t t[] = { __VA_ARGS__ };                                   \
        sotto_i_cut_window(&params, t, (int)(sizeof(t) / sizeof(t[0])), &cut); \
    } while (0)

static void check_slice(int i, int first, int end, int64_t t0, int64_t t1) {
    assert_true(i < cut.n);
    assert_int_equal(cut.slices[i].first, first);
    assert_int_equal(cut.slices[i].end, end);
    assert_int_equal(cut.slices[i].t0, t0);
    assert_int_equal(cut.slices[i].t1, t1);
}

static void test_pairs(void ** state) {
    (void)state;
    CUT(T(0), A, T(100), T(100), A, A, T(300), T(300));
    assert_int_equal(cut.n, 2);
    check_slice(0, 0, 3, 1000, 1200);
    check_slice(1, 3, 7, 1200, 1600);
    assert_int_equal(cut.seek, 1600); /* the next window begins where the last pair is */
}

static void test_text_after_the_last_pair_waits(void ** state) {
    (void)state;
    CUT(T(0), A, T(100), T(120), A, A);
    assert_int_equal(cut.n, 1);
    check_slice(0, 0, 3, 1000, 1200);
    assert_int_equal(cut.seek, 1200);
}

/* D03: text, one closing timestamp, nothing after it: the window is finished. */
static void test_single_end(void ** state) {
    (void)state;
    CUT(T(0), A, A, T(600));
    assert_int_equal(cut.n, 1);
    check_slice(0, 0, 4, 1000, 2200);
    assert_int_equal(cut.seek, 4000);
    CUT(T(0), A, T(100), T(100), A, T(600));
    assert_int_equal(cut.n, 2);
    check_slice(1, 3, 6, 1200, 2200);
    assert_int_equal(cut.seek, 4000);
}

/* D03: no timestamp at the end at all. */
static void test_no_end(void ** state) {
    (void)state;
    CUT(T(0), A, A);
    assert_int_equal(cut.n, 1);
    check_slice(0, 0, 3, 1000, 4000);
    assert_int_equal(cut.seek, 4000);
    CUT(T(30), A, A); /* a first timestamp above 0.00 is the last one, too */
    check_slice(0, 0, 3, 1000, 1060);
    assert_int_equal(cut.seek, 4000);
    CUT(A, A);
    check_slice(0, 0, 2, 1000, 4000);
}

/* D04: timestamps that stand still do not stop the loop. */
static void test_progress(void ** state) {
    (void)state;
    CUT(T(0), T(0));
    assert_int_equal(cut.seek, 4000);
    CUT(T(0), A, T(0), T(0), A);
    assert_int_equal(cut.seek, 4000);
    CUT(T(0));
    assert_int_equal(cut.seek, 4000);
    sotto_i_cut_window(&params, NULL, 0, &cut);
    assert_int_equal(cut.n, 0);
    assert_int_equal(cut.seek, 4000);
    params.n_frames = 10; /* the shortest window */
    CUT(T(0), T(0));
    assert_int_equal(cut.seek, 1010);
}

static void test_without_timestamps(void ** state) {
    (void)state;
    params.timestamps = false;
    CUT(A, A, A);
    assert_int_equal(cut.n, 1);
    check_slice(0, 0, 3, 1000, 4000);
    assert_int_equal(cut.seek, 4000);
}

/* A window ended by max_tokens goes on from its last timestamp, single or not. */
static void test_limited(void ** state) {
    (void)state;
    params.limited = true;
    CUT(T(0), A, A, T(250));
    assert_int_equal(cut.n, 1);
    check_slice(0, 0, 4, 1000, 1500);
    assert_int_equal(cut.seek, 1500);
    CUT(T(0), A, T(100), T(100), A, T(250));
    assert_int_equal(cut.n, 2);
    check_slice(1, 3, 6, 1200, 1500);
    assert_int_equal(cut.seek, 1500);
}

static void test_long_run_of_timestamps(void ** state) {
    (void)state;
    int32_t t[SOTTO_I_MAX_SAMPLED];
    for (int i = 0; i < SOTTO_I_MAX_SAMPLED; i++)
        t[i] = T(i);
    sotto_i_cut_window(&params, t, SOTTO_I_MAX_SAMPLED, &cut);
    assert_int_equal(cut.n, SOTTO_I_MAX_SAMPLED - 1);
    assert_true(cut.seek > 1000);
}

/* ---- the text of a window ---- */

static void test_ratio(void ** state) {
    (void)state;
    struct counting_allocator counting;
    counting_allocator_init(&counting);
    struct sotto_i_ratio * ratio = sotto_i_ratio_new(&counting.base);
    assert_non_null(ratio);
    const char * jfk = "And so my fellow Americans, ask not what your country can do for you, ask what you can do for "
                       "your country.";
    char thanks[221] = "";
    for (int i = 0; i < 20; i++)
        strcat(thanks, "Thank you. ");
    for (int pass = 0; pass < 2; pass++) { /* one compressor serves many windows */
        assert_float_equal(sotto_i_ratio_of(ratio, jfk, strlen(jfk)), 107.0 / 79.0, 1e-6);
        assert_float_equal(sotto_i_ratio_of(ratio, thanks, strlen(thanks)), 219.0 / 22.0, 1e-6);
        assert_float_equal(sotto_i_ratio_of(ratio, " a ", 3), 1.0 / 9.0, 1e-6);
        assert_float_equal(sotto_i_ratio_of(ratio, "", 0), 0, 0);
        assert_float_equal(sotto_i_ratio_of(ratio, "  \n", 3), 0, 0);
    }
    sotto_i_ratio_free(ratio);
    assert_true(counting.requests > 0);
    assert_int_equal(counting.held, 0);
}

/* ---- the store of results ---- */

static void add_window(struct sotto_i_result * r, int n) {
    struct sotto_i_choice tokens[SOTTO_I_MAX_TOKENS];
    for (int i = 0; i < n; i++)
        tokens[i] = (struct sotto_i_choice){ .id = (int32_t)r->n_windows * 1000 + i, .plog = -0.5 };
    struct sotto_window window = { .seek = (int64_t)r->n_windows * 3000, .n_frames = 3000, .n_tokens = n };
    assert_int_equal(sotto_i_result_add_window(r, &window, tokens), SOTTO_OK);
}

/* Pointers into text and tokens stay right while the arrays grow. */
static void test_result_grows(void ** state) {
    (void)state;
    struct counting_allocator counting;
    counting_allocator_init(&counting);
    struct sotto_i_result r = { .allocator = &counting.base };
    for (int w = 0; w < 60; w++) {
        add_window(&r, 40);
        struct sotto_segment segment = { .t0 = w, .t1 = w + 1 };
        char text[8] = { ' ', 'w', (char)('0' + w / 10), (char)('0' + w % 10), 0 };
        assert_int_equal(sotto_i_result_add_segment(&r, &segment, text, 4, 5, 30), SOTTO_OK);
    }
    for (int w = 0; w < 60; w++) {
        const struct sotto_i_found_segment * s = &r.segments[w];
        assert_int_equal(s->shown.window, w);
        assert_int_equal(strlen(s->shown.text), s->shown.text_size);
        assert_int_equal((s->shown.text[2] - '0') * 10 + s->shown.text[3] - '0', w);
        assert_int_equal(r.tokens[s->token_at].id, w * 1000 + 5);
        assert_float_equal(r.tokens[s->token_at].p, 0.60653066, 1e-6);
    }
    sotto_i_result_clear(&r);
    assert_int_equal(r.n_segments + r.n_tokens + r.n_windows, 0);
    sotto_i_result_free(&r);
    assert_int_equal(counting.held, 0);
}

static void test_result_out_of_memory(void ** state) {
    (void)state;
    struct counting_allocator counting;
    counting_allocator_init(&counting);
    struct sotto_i_result r = { .allocator = &counting.base };
    struct sotto_window window = { .n_tokens = 0 };
    struct sotto_segment segment = { .t0 = 0 };
    atomic_store(&counting.refuse, 1);
    assert_int_equal(sotto_i_result_add_window(&r, &window, NULL), SOTTO_E_MEMORY);
    assert_int_equal(r.n_windows, 0);
    assert_int_equal(sotto_i_result_add_window(&r, &window, NULL), SOTTO_OK);
    atomic_store(&counting.refuse, atomic_load(&counting.requests) + 1);
    assert_int_equal(sotto_i_result_add_segment(&r, &segment, " a", 2, 0, 0), SOTTO_E_MEMORY);
    assert_int_equal(r.n_segments, 0);
    assert_int_equal(sotto_i_result_add_segment(&r, &segment, " a", 2, 0, 0), SOTTO_OK);
    assert_string_equal(r.segments[0].shown.text, " a");
    sotto_i_result_free(&r);
    assert_int_equal(counting.held, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_pairs, set_up),
        cmocka_unit_test_setup(test_text_after_the_last_pair_waits, set_up),
        cmocka_unit_test_setup(test_single_end, set_up),
        cmocka_unit_test_setup(test_no_end, set_up),
        cmocka_unit_test_setup(test_progress, set_up),
        cmocka_unit_test_setup(test_without_timestamps, set_up),
        cmocka_unit_test_setup(test_limited, set_up),
        cmocka_unit_test_setup(test_long_run_of_timestamps, set_up),
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_result_grows),
        cmocka_unit_test(test_result_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
