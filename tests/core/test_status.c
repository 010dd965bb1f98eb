/* SPDX-License-Identifier: MIT */
/* Statuses, the newest failure of a thread, log messages, and the allocator's helpers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "sotto/log.h"
#include "sotto/status.h"

/* ---- statuses ---- */

static void every_status_has_a_name_and_a_sentence(void ** state) {
    (void)state;
    static const struct {
        int value;
        const char * name;
    } list[] = {
#define STATUS(value, NAME, spelled, sentence) { value, "SOTTO_E_" #NAME },
#include "sotto/status.def"
#undef STATUS
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        assert_string_equal(sotto_status_name((enum sotto_status)list[i].value), list[i].name);
        assert_true(strlen(sotto_status_text((enum sotto_status)list[i].value)) > 10);
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(list[k].value, list[i].value);
        }
    }
    assert_string_equal(sotto_status_name(SOTTO_OK), "SOTTO_OK");
    assert_string_equal(sotto_status_name((enum sotto_status)12345), "SOTTO_E_UNKNOWN");
    assert_non_null(sotto_status_text((enum sotto_status) - 1));
}

static void message_begins_with_the_spelled_name(void ** state) {
    (void)state;
    assert_int_equal(sotto_fail(SOTTO_E_SHAPE, "f: %d is not %d", 1, 2), SOTTO_E_SHAPE);
    assert_int_equal(sotto_last_error(), SOTTO_E_SHAPE);
    assert_string_equal(sotto_last_error_text(), "SHAPE: f: 1 is not 2");
    sotto_fail(SOTTO_E_AUDIO_NAN, "x");
    assert_string_equal(sotto_last_error_text(), "SOTTO_E_AUDIO_NAN: x");
}

static void message_may_quote_the_last_one(void ** state) {
    (void)state;
    sotto_fail(SOTTO_E_IO, "inner");
    sotto_fail(SOTTO_E_STATE, "outer (%s)", sotto_last_error_text());
    assert_string_equal(sotto_last_error_text(), "STATE: outer (SOTTO_E_IO: inner)");
}

static void success_leaves_the_last_error(void ** state) {
    (void)state;
    sotto_fail(SOTTO_E_PARAM, "kept");
    assert_int_equal(sotto_fail(SOTTO_OK, "not recorded"), SOTTO_OK);
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    sotto_clear_last_error();
    assert_int_equal(sotto_last_error(), SOTTO_OK);
    assert_string_equal(sotto_last_error_text(), "");
}

static void long_messages_are_cut(void ** state) {
    (void)state;
    char longer[4000];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    sotto_fail(SOTTO_E_PARAM, "%s", longer);
    assert_int_equal(strlen(sotto_last_error_text()), 1023);
}

static void * fail_in_a_thread(void * unused) {
    (void)unused;
    if (sotto_last_error() != SOTTO_OK) {
        return NULL;
    }
    sotto_fail(SOTTO_E_MEMORY, "elsewhere");
    return (void *)(uintptr_t)sotto_last_error();
}

static void each_thread_has_its_own_error(void ** state) {
    (void)state;
    pthread_t thread;
    void * got;
    sotto_fail(SOTTO_E_PARAM, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_in_a_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_int_equal((uintptr_t)got, SOTTO_E_MEMORY);
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_string_equal(sotto_last_error_text(), "PARAM: here");
}

/* ---- log ---- */

struct heard {
    int count;
    enum sotto_log_level level;
    size_t length;
    char text[128];
};

static void hear(enum sotto_log_level level, const char * text, void * user_data) {
    struct heard * heard = user_data;
    heard->count++;
    heard->level = level;
    heard->length = strlen(text);
    snprintf(heard->text, sizeof(heard->text), "%s", text);
}

static void failures_are_logged_once(void ** state) {
    (void)state;
    struct heard heard = { 0 };
    sotto_log_set(hear, &heard);
    sotto_fail(SOTTO_E_BOUNDS, "g: %s", "too far");
    sotto_log_set(NULL, NULL);
    sotto_fail(SOTTO_E_BOUNDS, "silent");
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.level, SOTTO_LOG_ERROR);
    assert_string_equal(heard.text, "BOUNDS: g: too far\n");
}

static void log_messages_have_any_length(void ** state) {
    (void)state;
    static char longer[100000];
    memset(longer, 'y', sizeof(longer) - 1);
    struct heard heard = { 0 };
    sotto_log_set(hear, &heard);
    sotto_log(SOTTO_LOG_INFO, "%s\n", longer);
    assert_int_equal(heard.length, sizeof(longer));
    sotto_log_callback callback;
    void * user_data;
    sotto_log_get(&callback, &user_data);
    assert_ptr_equal(user_data, &heard);
    assert_true(callback == hear);
    sotto_log_get(NULL, NULL);
    sotto_log_set(NULL, NULL);
}

static void long_messages_are_cut_without_memory(void ** state) {
    (void)state;
    static char longer[5000];
    memset(longer, 'z', sizeof(longer) - 1);
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    allocator.refuse = 1;
    struct heard heard = { 0 };
    assert_int_equal(sotto_set_default_allocator(&allocator.base), SOTTO_OK);
    sotto_log_set(hear, &heard);
    sotto_log(SOTTO_LOG_INFO, "%s", longer);
    sotto_log_set(NULL, NULL);
    assert_int_equal(sotto_set_default_allocator(NULL), SOTTO_OK);
    assert_int_equal(heard.count, 1);
    assert_in_range(heard.length, 1000, 2000);
    assert_int_equal(allocator.refused, 1);
}

/* ---- allocator ---- */

static void helpers_count_and_zero(void ** state) {
    (void)state;
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    unsigned char * p = sotto_calloc(&allocator.base, 100, 3);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(p[i], 0);
        p[i] = (unsigned char)i;
    }
    p = sotto_realloc(&allocator.base, p, 100, 200, 3);
    assert_non_null(p);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(p[i], (unsigned char)i);
    }
    assert_int_equal(allocator.held, 600);
    sotto_mfree(&allocator.base, p, 200, 3);
    sotto_mfree(&allocator.base, NULL, 7, 7);
    assert_int_equal(allocator.held, 0);
}

static void overflow_and_refusal_are_memory_errors(void ** state) {
    (void)state;
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    sotto_clear_last_error();
    assert_null(sotto_malloc(&allocator.base, SIZE_MAX / 2, 3));
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
    assert_null(sotto_calloc(&allocator.base, SIZE_MAX, SIZE_MAX));
    assert_int_equal(allocator.requests, 0);
    char * p = sotto_malloc(&allocator.base, 10, 1);
    assert_null(sotto_realloc(&allocator.base, p, 10, SIZE_MAX / 2, 3));
    allocator.refuse = 2;
    sotto_clear_last_error();
    assert_null(sotto_realloc(&allocator.base, p, 10, 20, 1));
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
    sotto_mfree(&allocator.base, p, 10, 1);
    assert_int_equal(allocator.held, 0);
}

static void nothing_is_no_error(void ** state) {
    (void)state;
    sotto_clear_last_error();
    assert_null(sotto_malloc(NULL, 0, 5));
    assert_null(sotto_calloc(NULL, 5, 0));
    assert_null(sotto_realloc(NULL, NULL, 0, 0, 4));
    assert_int_equal(sotto_last_error(), SOTTO_OK);
}

static void incomplete_allocators_are_refused(void ** state) {
    (void)state;
    const struct sotto_allocator * before = sotto_default_allocator();
    struct sotto_allocator half = *before;
    half.size = 4;
    assert_int_equal(sotto_set_default_allocator(&half), SOTTO_E_PARAM);
    half = *before;
    half.free = NULL;
    assert_int_equal(sotto_set_default_allocator(&half), SOTTO_E_PARAM);
    assert_ptr_equal(sotto_default_allocator(), before);
}

static void built_in_allocator_aligns(void ** state) {
    (void)state;
    const struct sotto_allocator * a = sotto_default_allocator();
    for (size_t align = 1; align <= 4096; align *= 2) {
        char * p = a->alloc(a->user_data, 1000 + align / 3, align);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        memset(p, 1, 1000 + align / 3);
        a->free(a->user_data, p, 1000 + align / 3, align);
    }
    assert_null(a->alloc(a->user_data, SIZE_MAX - 10, 64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_sentence),
        cmocka_unit_test(message_begins_with_the_spelled_name),
        cmocka_unit_test(message_may_quote_the_last_one),
        cmocka_unit_test(success_leaves_the_last_error),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(each_thread_has_its_own_error),
        cmocka_unit_test(failures_are_logged_once),
        cmocka_unit_test(log_messages_have_any_length),
        cmocka_unit_test(long_messages_are_cut_without_memory),
        cmocka_unit_test(helpers_count_and_zero),
        cmocka_unit_test(overflow_and_refusal_are_memory_errors),
        cmocka_unit_test(nothing_is_no_error),
        cmocka_unit_test(incomplete_allocators_are_refused),
        cmocka_unit_test(built_in_allocator_aligns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
