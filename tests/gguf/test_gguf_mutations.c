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
    };
    return cmocka_run_group_tests(tests, make_example, free_example);
}
