/* SPDX-License-Identifier: MIT */
/* What a few thousand mutations of the example do: refused or accepted, the same in every way of opening, and never
 * costly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gguf_example.h"
#include "gguf_ways.h"

static struct bytes example;

static void every_prefix_is_refused(void ** state) {
    (void)state;
    for (size_t n = 0; n < example.size; n++) {
        struct bytes b = { example.data, n };
        struct gguf_outcome found = gguf_try_open(GGUF_CALLBACK_4096, &b, true, 0);
        assert_false(found.accepted);
        gguf_same_everywhere(&b, true, found);
    }
}

static void tail_padding_may_be_missing(void ** state) {
    (void)state;
    for (size_t n = 417; n <= example.size; n++) {
        struct bytes b = { example.data, n };
        assert_int_equal(gguf_try_open(GGUF_BUFFER, &b, true, SOTTO_GGUF_OPEN_TAIL_PAD).accepted, n >= 0x1A2);
        uint32_t flags = SOTTO_GGUF_OPEN_TAIL_PAD | SOTTO_GGUF_OPEN_CHECK_EXTENT;
        assert_int_equal(gguf_try_open(GGUF_PATH, &b, false, flags).accepted, n >= 0x1A2);
        assert_int_equal(gguf_try_open(GGUF_PATH, &b, false, SOTTO_GGUF_OPEN_CHECK_EXTENT).accepted, n == example.size);
    }
}

static void every_byte_changed(void ** state) {
    (void)state;
    static const uint8_t values[] = { 0x00, 0x01, 0x7F, 0x80, 0xFF };
    int accepted = 0;
    struct bytes b = gguf_example_bytes();
    for (size_t at = 0; at < 0x160; at++) {
        for (size_t v = 0; v < sizeof(values); v++) {
            b.data[at] = values[v];
            struct gguf_outcome found = gguf_try_open(GGUF_BUFFER, &b, true, 0);
            gguf_same_everywhere(&b, true, found);
            accepted += found.accepted;
        }
        b.data[at] = example.data[at];
    }
    free(b.data);
    assert_true(accepted > 100 && accepted < 5 * 0x160);
}

static void every_word_changed(void ** state) {
    (void)state;
    static const uint64_t values[] = { INT32_MAX,         (uint64_t)1 << 31, UINT32_MAX,        (uint64_t)1 << 32,
                                       (uint64_t)1 << 53, (uint64_t)1 << 61, (uint64_t)1 << 62, INT64_MAX,
                                       (uint64_t)1 << 63, UINT64_MAX - 31,   UINT64_MAX };
    int refused = 0;
    struct bytes b = gguf_example_bytes();
    for (size_t at = 0; at + 8 <= 0x160; at++) {
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
            memcpy(b.data + at, &values[v], 8);
            refused += !gguf_try_open(GGUF_BUFFER, &b, true, 0).accepted;
            gguf_try_open(GGUF_BUFFER, &b, false, SOTTO_GGUF_OPEN_STRICT);
            memcpy(b.data + at, example.data + at, 8);
        }
    }
    free(b.data);
    assert_true(refused > 1000);
}

static size_t fault_at; /* where the sources below go wrong */

static size_t deliver_until(void * user_data, void * output, uint64_t offset, size_t len) {
    (void)user_data;
    struct bytes b = { example.data, fault_at };
    return bytes_deliver(&b, output, offset, len);
}

static size_t deliver_too_much(void * user_data, void * output, uint64_t offset, size_t len) {
    (void)user_data;
    return bytes_deliver(&example, output, offset, len) + (offset + len > fault_at);
}

/* A source that ends, or lies, at any byte. */
static void every_place_where_a_source_fails(void ** state) {
    (void)state;
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_init_params init = { .ctx = &tensors };
    for (fault_at = 0; fault_at < example.size; fault_at++) {
        if (fault_at >= 0x143 && fault_at < 0x160)
            continue; /* padding is skipped */
        assert_null(sotto_gguf_init_from_callback(deliver_until, NULL, 1, example.size, init));
        assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_TRUNCATED);
        assert_int_equal(sotto_gguf_last_error_pos(), fault_at);
        assert_null(sotto_gguf_init_from_callback(deliver_too_much, NULL, 1, example.size, init));
        assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_IO_READ);
        assert_int_equal(sotto_gguf_last_error_pos(), fault_at);
        assert_null(tensors);
    }
}

/* Metadata may have only so many bytes, wherever that many end. */
static void every_limit_of_metadata(void ** state) {
    (void)state;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    for (params.max_meta_bytes = 1; params.max_meta_bytes < 0x143; params.max_meta_bytes++) {
        assert_null(sotto_gguf_open_buffer(example.data, example.size, &params));
        assert_int_equal(sotto_last_error(), SOTTO_E_LIMIT);
        assert_true(sotto_gguf_last_error_pos() <= params.max_meta_bytes);
        assert_true(sotto_gguf_last_error_pos() + 32 > params.max_meta_bytes);
    }
}

static int make_example(void ** state) {
    (void)state;
    example = gguf_example_bytes();
    return 0;
}

static int free_example(void ** state) {
    (void)state;
    free(example.data);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(tail_padding_may_be_missing),
        cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(every_word_changed),
        cmocka_unit_test(every_place_where_a_source_fails),
        cmocka_unit_test(every_limit_of_metadata),
    };
    return cmocka_run_group_tests(tests, make_example, free_example);
}
