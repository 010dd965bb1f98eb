/* SPDX-License-Identifier: MIT */
/* The rules for what may come next (spec 5.5), on made logits: masks of single situations, then whole windows decoded
 * from stubs that insist on one timestamp or on one text token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "speech/choose.h"
#include "speech/filter.h"
#include "speech/segment.h"

#define N_VOCAB 51865
#define BLANK   220

static struct sotto_i_specials sp;
static struct sotto_i_filter filter;
static float base[N_VOCAB], mask[N_VOCAB], logits[N_VOCAB];

static int set_up(void ** state) {
    (void)state;
    assert_int_equal(sotto_i_specials_init(N_VOCAB, &sp), SOTTO_OK);
    memset(&filter, 0, sizeof(filter));
    filter.specials = &sp;
    filter.timestamps = true;
    filter.suppress_blank = true;
    filter.blank = BLANK;
    filter.max_initial = sotto_i_filter_max_initial(1.0f);
    return 0;
}

static void make(const int32_t * tokens, int n) {
    sotto_i_filter_base(&filter, base);
    sotto_i_filter_mask(&filter, base, tokens, n, mask);
}

static bool allowed(int32_t id) {
    assert_true(mask[id] == 0 || (isinf(mask[id]) && mask[id] < 0));
    return mask[id] == 0;
}

static int count(int32_t first, int32_t end) {
    int n = 0;
    for (int32_t id = first; id < end; id++)
        n += allowed(id);
    return n;
}

#define MAKE(...)                                 \
    do {                                          \
        const int32_t t[] = { __VA_ARGS__ };      \
        make(t, (int)(sizeof(t) / sizeof(t[0]))); \
    } while (0)

static int32_t at(int k) { return sp.beg + k; } /* timestamp k */

/* ---- single situations ---- */

static void test_ids(void ** state) {
    (void)state;
    assert_int_equal(sp.eot, 50257);
    assert_int_equal(sp.sot, 50258);
    assert_int_equal(sp.language0, 50259);
    assert_int_equal(sp.translate, 50358);
    assert_int_equal(sp.no_timestamps, 50363);
    assert_int_equal(sp.beg, 50364);
}

static void test_first_token(void ** state) {
    (void)state;
    make(NULL, 0);
    assert_int_equal(count(0, sp.beg), 0);            /* 8d: a timestamp must come */
    assert_int_equal(count(sp.beg, N_VOCAB), 50 + 1); /* up to 1.00 s */
    assert_true(allowed(at(50)));
    assert_false(allowed(at(51)));
    filter.max_initial = sotto_i_filter_max_initial(0);
    make(NULL, 0);
    assert_int_equal(count(sp.beg, N_VOCAB), 1501);
    assert_int_equal(count(0, sp.beg), 0);
}

static void test_first_token_without_timestamps(void ** state) {
    (void)state;
    filter.timestamps = false;
    make(NULL, 0);
    assert_false(allowed(BLANK)); /* 2 */
    assert_false(allowed(sp.eot));
    assert_int_equal(count(0, sp.eot), sp.eot - 1);
    assert_int_equal(count(sp.eot, N_VOCAB), 0); /* 3, 4 */
    MAKE(400);
    assert_true(allowed(BLANK));
    assert_true(allowed(sp.eot));
    assert_int_equal(count(sp.beg, N_VOCAB), 0);
    filter.suppress_blank = false;
    make(NULL, 0);
    assert_true(allowed(BLANK) && allowed(sp.eot));
}

static void test_special_tokens_never(void ** state) {
    (void)state;
    MAKE(at(0), 400);
    assert_int_equal(count(sp.sot, sp.beg), 0);
    assert_true(allowed(sp.eot));
}

static void test_suppressed(void ** state) {
    (void)state;
    const int32_t ids[] = { 1, 2, 359 };
    filter.suppress = ids;
    filter.n_suppress = 3;
    MAKE(at(0), 400);
    assert_false(allowed(1) || allowed(2) || allowed(359));
    assert_int_equal(count(0, sp.eot), sp.eot - 3);
}

static void test_after_pair_text(void ** state) {
    (void)state;
    MAKE(at(0)); /* 8a: the only token is a timestamp */
    assert_int_equal(count(sp.beg, N_VOCAB), 0);
    assert_true(allowed(400) && allowed(sp.eot));
    MAKE(at(0), 400, at(100), at(100)); /* two in a row */
    assert_int_equal(count(sp.beg, N_VOCAB), 0);
    assert_true(allowed(400) && allowed(sp.eot));
}

static void test_single_timestamp_needs_its_pair(void ** state) {
    (void)state;
    MAKE(at(0), 400, at(100));
    assert_int_equal(count(0, sp.eot), 0); /* 8b */
    assert_true(allowed(sp.eot));
    assert_false(allowed(at(99))); /* 8c, the pair may repeat it */
    assert_true(allowed(at(100)));
    assert_int_equal(count(sp.beg, N_VOCAB), 1501 - 100);
}

static void test_timestamps_rise(void ** state) {
    (void)state;
    MAKE(at(0), 400);
    assert_false(allowed(at(0))); /* a segment has a length */
    assert_true(allowed(at(1)));
    MAKE(at(10), 400, at(70), at(80), 401, 402);
    assert_false(allowed(at(80)));
    assert_true(allowed(at(81)));
    assert_int_equal(count(sp.beg, N_VOCAB), 1500 - 80);
    MAKE(at(0), 400, at(1500), at(1500), 7);
    assert_int_equal(count(sp.beg, N_VOCAB), 0);
}

static void test_max_tokens(void ** state) {
    (void)state;
    filter.max_tokens = 3;
    MAKE(at(0), 400);
    assert_true(allowed(401));
    MAKE(at(0), 400, 401);
    assert_int_equal(count(0, sp.eot), 0); /* 5 */
    assert_true(allowed(sp.eot) && allowed(at(1)));
}

static void test_max_initial(void ** state) {
    (void)state;
    assert_int_equal(sotto_i_filter_max_initial(1.0f), 50);
    assert_int_equal(sotto_i_filter_max_initial(0.035f), 2); /* rounded */
    assert_int_equal(sotto_i_filter_max_initial(100.0f), 1500);
    assert_true(sotto_i_filter_max_initial(0) < 0);
    assert_true(sotto_i_filter_max_initial(-1) < 0);
    assert_true(sotto_i_filter_max_initial(NAN) < 0);
}

/* ---- choosing ---- */

static void test_choose(void ** state) {
    (void)state;
    struct sotto_i_candidates c = { 400, 50400, 0.3f, 0.2f, 0.25f };
    struct sotto_i_choice choice = sotto_i_choose(&c);
    assert_int_equal(choice.id, 400);
    assert_float_equal(choice.plog, log(0.3), 1e-6);
    c.timestamp_sum = 0.4f; /* 8e: together they are more likely */
    choice = sotto_i_choose(&c);
    assert_int_equal(choice.id, 50400);
    assert_float_equal(choice.plog, log(0.5), 1e-6); /* of what is left */
    c = (struct sotto_i_candidates){ 400, 50400, 0.5f, 0.5f, 0.5f };
    assert_int_equal(sotto_i_choose(&c).id, 400); /* equal: the lower id */
}

/* ---- whole windows from stubs ---- */

/* The greedy choice on `logits` with `mask`, plainly. */
static int32_t stub_choose(void) {
    struct sotto_i_candidates c = { 0, sp.beg, 0, 0, 0 };
    double sum = 0;
    for (int i = 0; i < N_VOCAB; i++)
        sum += exp((double)logits[i] + mask[i]);
    for (int i = 0; i < N_VOCAB; i++) {
        float p = (float)(exp((double)logits[i] + mask[i]) / sum);
        if (i < sp.beg && p > c.p_text) {
            c.text = i;
            c.p_text = p;
        }
        if (i >= sp.beg && p > c.p_timestamp) {
            c.timestamp = i;
            c.p_timestamp = p;
        }
        c.timestamp_sum += i >= sp.beg ? p : 0;
    }
    return sotto_i_choose(&c).id;
}

static int decode(int32_t * tokens, int limit) {
    int n = 0;
    sotto_i_filter_base(&filter, base);
    while (n < limit) {
        sotto_i_filter_mask(&filter, base, tokens, n, mask);
        int32_t id = stub_choose();
        if (id == sp.eot)
            break;
        tokens[n++] = id;
    }
    return n;
}

static void check_rising(const int32_t * tokens, int n) {
    int32_t last = 0;
    for (int i = 0; i < n; i++) {
        if (tokens[i] < sp.beg)
            continue;
        assert_true(tokens[i] >= last);
        last = tokens[i];
    }
}

static void test_no_repeats(void ** state) {
    (void)state;
    filter.no_repeat = 3;
    MAKE(at(0), 10, 20, 30, at(5), at(5), 10, 20); /* timestamps do not count */
    assert_false(allowed(30));
    assert_true(allowed(10) && allowed(20) && allowed(40));
    MAKE(at(0), 10, 20, 30, 20, 10);
    assert_true(allowed(20) && allowed(30));
    MAKE(at(0), 7, 7, 7);
    assert_false(allowed(7));
    MAKE(at(0), 7, 7);
    assert_true(allowed(7));
    MAKE(at(0), 7, 8, 9, 7, 8, 5, 7, 8); /* both that followed */
    assert_true(!allowed(9) && !allowed(5) && allowed(7));
    filter.no_repeat = 1;
    MAKE(at(0), 10, 20);
    assert_true(!allowed(10) && !allowed(20) && allowed(30) && allowed(at(9)));
    filter.no_repeat = 448;
    MAKE(at(0), 10, 20);
    assert_true(allowed(10) && allowed(20));
}

/* Decode a recording of `frames` by windows of the stub; how many windows it took. */
static int run_recording(int64_t frames, int limit) {
    int windows = 0;
    for (int64_t seek = 0; frames - seek >= 10; windows++) {
        int32_t tokens[SOTTO_I_MAX_SAMPLED];
        struct sotto_i_cut cut;
        int n = decode(tokens, limit);
        check_rising(tokens, n);
        struct sotto_i_cut_params p = { &sp, seek, frames - seek < 3000 ? (int)(frames - seek) : 3000, true, false };
        sotto_i_cut_window(&p, tokens, n, &cut);
        assert_true(cut.seek > seek);
        for (int i = 0; i < cut.n; i++)
            assert_true(cut.slices[i].t1 >= cut.slices[i].t0);
        seek = cut.seek;
        assert_true(windows < 100000);
    }
    return windows;
}

static void test_stub_always_zero(void ** state) {
    (void)state;
    memset(logits, 0, sizeof(logits));
    logits[sp.beg] = 50; /* wants 0.00 always */
    logits[400] = 20;
    int windows = run_recording(6500, 24);
    assert_true(windows >= 3);
}

static void test_stub_falling(void ** state) {
    (void)state;
    for (int i = 0; i < N_VOCAB; i++) /* earlier timestamps are better, and better than text */
        logits[i] = i < sp.beg ? 0 : (float)(30.0 - 0.01 * (i - sp.beg));
    logits[400] = 5;
    assert_true(run_recording(6500, 24) >= 3);
}

static void test_stub_repeats_one_token(void ** state) {
    (void)state;
    memset(logits, 0, sizeof(logits));
    logits[400] = 50;
    int32_t tokens[SOTTO_I_MAX_SAMPLED];
    int n = decode(tokens, 40);
    assert_int_equal(n, 40);
    assert_true(tokens[0] >= sp.beg);
    for (int i = 1; i < n; i++)
        assert_int_equal(tokens[i], 400);
    assert_int_equal(run_recording(3000, 40), 1);
}

static void test_stub_wants_the_end(void ** state) {
    (void)state;
    memset(logits, 0, sizeof(logits));
    logits[sp.eot] = 50;
    int32_t tokens[SOTTO_I_MAX_SAMPLED];
    assert_int_equal(decode(tokens, 40), 1); /* not before a first timestamp */
    assert_int_equal(tokens[0], sp.beg);
    assert_int_equal(run_recording(9000, 40), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ids, set_up),
        cmocka_unit_test_setup(test_first_token, set_up),
        cmocka_unit_test_setup(test_first_token_without_timestamps, set_up),
        cmocka_unit_test_setup(test_special_tokens_never, set_up),
        cmocka_unit_test_setup(test_suppressed, set_up),
        cmocka_unit_test_setup(test_after_pair_text, set_up),
        cmocka_unit_test_setup(test_single_timestamp_needs_its_pair, set_up),
        cmocka_unit_test_setup(test_timestamps_rise, set_up),
        cmocka_unit_test_setup(test_max_tokens, set_up),
        cmocka_unit_test_setup(test_max_initial, set_up),
        cmocka_unit_test_setup(test_no_repeats, set_up),
        cmocka_unit_test_setup(test_choose, set_up),
        cmocka_unit_test_setup(test_stub_always_zero, set_up),
        cmocka_unit_test_setup(test_stub_falling, set_up),
        cmocka_unit_test_setup(test_stub_repeats_one_token, set_up),
        cmocka_unit_test_setup(test_stub_wants_the_end, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
