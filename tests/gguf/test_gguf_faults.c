/* SPDX-License-Identifier: MIT */
/* Files that other programs fall over (cases.md, F02 to F12), and limits. */
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

static void put(struct bytes * b, uint64_t x, size_t width) {
    bytes_set_size(b, b->size + width);
    memcpy(b->data + b->size - width, &x, width); /* the low bytes: all machines we test on are little-endian */
}

static void put_text(struct bytes * b, const char * text) {
    put(b, strlen(text), 8);
    for (; *text != 0; text++)
        put(b, (uint8_t)*text, 1);
}

static struct bytes header(uint64_t n_tensors, uint64_t n_kv) {
    struct bytes b = { NULL, 0 };
    put(&b, 0x46554747, 4);
    put(&b, 3, 4);
    put(&b, n_tensors, 8);
    put(&b, n_kv, 8);
    return b;
}

static void put_info(struct bytes * b, const char * name, int n_dims, uint64_t ne, uint32_t type, uint64_t offset) {
    put_text(b, name);
    put(b, (uint64_t)n_dims, 4);
    for (int i = 0; i < n_dims; i++)
        put(b, ne, 8);
    put(b, type, 4);
    put(b, offset, 8);
}

static void opens_as(struct bytes * b, bool data, enum sotto_status status) {
    for (int way = 0; way < GGUF_N_WAYS; way++)
        assert_int_equal(gguf_try_open((enum gguf_way)way, b, data, 0).status, status);
    free(b->data);
}

static void strings_and_arrays_that_cannot_be(void ** state) {
    (void)state;
    static const uint64_t lengths[] = { UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 30, 137 };
    for (int i = 0; i < 4; i++) { /* the last runs one byte past the end */
        struct bytes b = header(0, 1);
        put(&b, lengths[i], 8);
        while (b.size < 168)
            put(&b, 'k', 1);
        opens_as(&b, false, SOTTO_E_GGUF_STRING_LENGTH);
    }
    struct bytes b = header(0, 1); /* arrays 10,000 deep */
    put_text(&b, "deep");
    put(&b, SOTTO_GGUF_TYPE_ARRAY, 4);
    for (int i = 0; i < 10000; i++) {
        put(&b, SOTTO_GGUF_TYPE_ARRAY, 4);
        put(&b, 1, 8);
    }
    opens_as(&b, false, SOTTO_E_GGUF_ARRAY_NESTED);
    b = header(0, 1);
    put_text(&b, "many");
    put(&b, SOTTO_GGUF_TYPE_ARRAY, 4);
    put(&b, SOTTO_GGUF_TYPE_UINT8, 4);
    put(&b, UINT64_MAX, 8);
    opens_as(&b, false, SOTTO_E_GGUF_ARRAY_LENGTH);
}

static void tensors_that_cannot_be(void ** state) {
    (void)state;
    static const struct {
        int n_dims;
        uint64_t ne;
        uint32_t type;
        enum sotto_status status;
    } rows[] = {
        { 5, 1, 0, SOTTO_E_GGUF_TENSOR_DIMS },
        { 1, 4, 255, SOTTO_E_GGUF_TENSOR_TYPE },
        { 1, 4, UINT32_MAX, SOTTO_E_GGUF_TENSOR_TYPE },
        { 2, (uint64_t)1 << 31, SOTTO_TYPE_F32, SOTTO_E_GGUF_TENSOR_BYTES },
        { 1, INT64_MAX - 31, SOTTO_TYPE_Q8_0, SOTTO_E_GGUF_TENSOR_BYTES },
        { 1, INT64_MAX / 8, SOTTO_TYPE_I64, SOTTO_E_GGUF_DATA_EXTENT }, /* just possible */
        { 1, INT64_MAX / 8 + 1, SOTTO_TYPE_I64, SOTTO_E_GGUF_TENSOR_BYTES },
        { 1, INT64_MAX, SOTTO_TYPE_I8, SOTTO_E_GGUF_DATA_EXTENT },
        { 1, (uint64_t)INT64_MAX + 1, SOTTO_TYPE_I8, SOTTO_E_GGUF_TENSOR_SHAPE },
        { 1, 31, SOTTO_TYPE_Q8_0, SOTTO_E_GGUF_TENSOR_BLOCK },
        { 1, 255, SOTTO_TYPE_Q6_K, SOTTO_E_GGUF_TENSOR_BLOCK },
        { 1, 0, SOTTO_TYPE_F32, SOTTO_OK },
        { 0, 0, SOTTO_TYPE_F32, SOTTO_OK },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bytes b = header(1, 0);
        put_info(&b, "t", rows[i].n_dims, rows[i].ne, rows[i].type, 0);
        while (b.size < 256)
            put(&b, 0, 1);
        opens_as(&b, true, rows[i].status);
    }
}

/* An axis of no elements hides no other fault: 2^62 numbers of 8 bytes are too many, and so are strides of them. */
static void zeros_hide_nothing(void ** state) {
    (void)state;
    for (int zero = 0; zero < 3; zero++) {
        struct bytes b = header(1, 0);
        put_text(&b, "t");
        put(&b, 3, 4);
        for (int i = 0; i < 3; i++)
            put(&b, i == zero ? 0 : (uint64_t)1 << 31, 8);
        put(&b, SOTTO_TYPE_I64, 4);
        put(&b, 0, 8);
        opens_as(&b, false, SOTTO_E_GGUF_TENSOR_BYTES);
    }
}

/* Each tensor fits; their padded sum passes 2^64 by a little. */
static void totals_that_wrap(void ** state) {
    (void)state;
    const uint64_t ne = ((uint64_t)1 << 62) - 1;
    struct bytes b = header(5, 0);
    for (uint64_t i = 0; i < 5; i++)
        put_info(&b, (const char[]){ (char)('a' + i), 0 }, 1, ne, SOTTO_TYPE_I8, i << 62);
    opens_as(&b, false, SOTTO_E_GGUF_DATA_TOTAL);
    b = header(3, 0);
    for (uint64_t i = 0; i < 3; i++)
        put_info(&b, (const char[]){ (char)('a' + i), 0 }, 1, ne, SOTTO_TYPE_I8, i << 62);
    while (b.size < 256)
        put(&b, 0, 1);
    opens_as(&b, true, SOTTO_E_GGUF_DATA_EXTENT);
}

/* What looks odd and is right: tensors without axes and without elements, the first at offset 0, keys that nobody knows in
 * an order that nobody expects, and no padding behind the last tensor. */
static void oddities_that_load(void ** state) {
    (void)state;
    struct bytes b = header(3, 3);
    put_text(&b, "zzz.unknown");
    put(&b, SOTTO_GGUF_TYPE_UINT8, 4);
    put(&b, 200, 1);
    put_text(&b, SOTTO_GGUF_KEY_GENERAL_ALIGNMENT);
    put(&b, SOTTO_GGUF_TYPE_UINT32, 4);
    put(&b, 8, 4);
    put_text(&b, "general.architecture");
    put(&b, SOTTO_GGUF_TYPE_STRING, 4);
    put_text(&b, "last");
    put_info(&b, "scalar", 0, 0, SOTTO_TYPE_F32, 0);
    put_info(&b, "empty", 2, 0, SOTTO_TYPE_F16, 8);
    put_info(&b, "byte", 1, 1, SOTTO_TYPE_I8, 8);
    while (b.size % 8 != 0)
        put(&b, 0, 1);
    put(&b, 0x40490fdb, 8);
    put(&b, 9, 1);
    assert_int_equal(gguf_try_open(GGUF_PATH, &b, true, 0).status, SOTTO_E_GGUF_DATA_EXTENT);
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_TAIL_PAD;
    params.ctx = &tensors;
    struct sotto_gguf_context * gguf = sotto_gguf_open_buffer(b.data, b.size, &params);
    assert_non_null(gguf);
    assert_int_equal(sotto_gguf_get_alignment(gguf), 8);
    assert_int_equal(sotto_gguf_get_val_u8(gguf, sotto_gguf_find_key(gguf, "zzz.unknown")), 200);
    assert_int_equal(sotto_gguf_get_tensor_size(gguf, 1), 0);
    assert_memory_equal(sotto_get_tensor(tensors, "scalar")->data, &(float){ 3.14159274f }, 4);
    assert_int_equal(*(const uint8_t *)sotto_get_tensor(tensors, "byte")->data, 9);
    sotto_free(tensors);
    sotto_gguf_free(gguf);
    free(b.data);
}

/* An empty tensor may stand last, behind padding that is missing. */
static void an_empty_tensor_at_the_end(void ** state) {
    (void)state;
    struct bytes b = header(2, 0);
    put_info(&b, "byte", 1, 1, SOTTO_TYPE_I8, 0);
    put_info(&b, "empty", 1, 0, SOTTO_TYPE_F32, 32);
    while (b.size % 32 != 0)
        put(&b, 0, 1);
    put(&b, 9, 1);
    assert_int_equal(gguf_try_open(GGUF_BUFFER, &b, true, SOTTO_GGUF_OPEN_TAIL_PAD).status, SOTTO_OK);
    assert_int_equal(gguf_try_open(GGUF_BUFFER, &b, true, 0).status, SOTTO_E_GGUF_DATA_EXTENT);
    free(b.data);
}

/* Strict opening takes well-formed UTF-8 alone. */
static void text_that_is_none(void ** state) {
    (void)state;
    static const struct {
        const char * text;
        bool good;
    } rows[] = {
        { "", true },
        { "plain", true },
        { "\xC2\xA0", true },
        { "\xDF\xBF", true },
        { "\xE0\xA0\x80", true },
        { "\xED\x9F\xBF", true },
        { "\xEF\xBF\xBD", true },
        { "\xF0\x90\x80\x80", true },
        { "\xF4\x8F\xBF\xBF", true },
        { "\x80", false }, /* a later byte alone */
        { "\xC2", false }, /* cut short */
        { "\xE2\x82", false },
        { "\xF0\x9F\x98", false },
        { "\xC0\xAF", false }, /* longer than it need be */
        { "\xC1\xBF", false },
        { "\xE0\x9F\xBF", false },
        { "\xF0\x8F\xBF\xBF", false },
        { "\xED\xA0\x80", false },     /* a surrogate */
        { "\xF4\x90\x80\x80", false }, /* past the last character */
        { "\xF5\x80\x80\x80", false },
        { "\xE2\x28\xA1", false }, /* a wrong second, third, fourth byte */
        { "\xE2\x82\x28", false },
        { "\xF0\x9F\x98\x28", false },
        { "good \xC3\xA9 then \xFF", false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bytes b = header(0, 1);
        put_text(&b, "text");
        put(&b, SOTTO_GGUF_TYPE_STRING, 4);
        put_text(&b, rows[i].text);
        assert_int_equal(gguf_try_open(GGUF_BUFFER, &b, false, 0).status, SOTTO_OK);
        struct gguf_outcome found = gguf_try_open(GGUF_BUFFER, &b, false, SOTTO_GGUF_OPEN_STRICT);
        assert_int_equal(found.status, rows[i].good ? SOTTO_OK : SOTTO_E_GGUF_UTF8);
        free(b.data);
    }
}

/* A source that is said to be as long as can be: what does not fit into memory is refused before it is asked for. */
static void a_source_without_end(void ** state) {
    (void)state;
    const uint64_t ne = ((uint64_t)1 << 63) - 64;
    struct bytes b = header(2, 0);
    put_info(&b, "a", 1, ne, SOTTO_TYPE_I8, 0);
    put_info(&b, "b", 1, ne, SOTTO_TYPE_I8, ne);
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_init_params init = { .ctx = &tensors };
    assert_null(sotto_gguf_init_from_callback(bytes_deliver, &b, 0, UINT64_MAX, init));
    assert_int_equal(sotto_last_error(), sizeof(size_t) < 8 ? SOTTO_E_LIMIT : SOTTO_E_MEMORY);
    assert_null(tensors);
    free(b.data);
}

/* A stream that can be positioned and not be read. */
static void a_stream_for_writing(void ** state) {
    (void)state;
    const char * path = temp_path("written.gguf");
    write_bytes(path, example.data, example.size);
    FILE * file = fopen(path, "ab");
    assert_non_null(file);
    rewind(file);
    struct sotto_gguf_init_params init = { 0 };
    assert_null(sotto_gguf_init_from_file_ptr(file, init));
    assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_IO_READ);
    fclose(file);
    unlink(path);
    assert_null(sotto_gguf_init_from_file_ptr(NULL, init));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_null(sotto_gguf_init_from_callback(NULL, NULL, 0, 100, init));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

/* The place of a bad alignment is that of its type or value. */
static void where_an_alignment_is_wrong(void ** state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bytes b = header(0, 2);
        put_text(&b, SOTTO_GGUF_KEY_GENERAL_ALIGNMENT);
        put(&b, i == 0 ? SOTTO_GGUF_TYPE_UINT32 : SOTTO_GGUF_TYPE_INT32, 4);
        put(&b, 3, 4);
        put_text(&b, "after");
        put(&b, SOTTO_GGUF_TYPE_UINT8, 4);
        put(&b, 1, 1);
        struct gguf_outcome found = gguf_try_open(GGUF_BUFFER, &b, false, 0);
        assert_int_equal(found.status, i == 0 ? SOTTO_E_GGUF_ALIGN_VALUE : SOTTO_E_GGUF_ALIGN_TYPE);
        assert_int_equal(found.pos, i == 0 ? 24 + 8 + 17 + 4 : 24 + 8 + 17);
        free(b.data);
    }
}

static void limits_are_the_callers(void ** state) {
    (void)state;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    uint64_t * limits[] = { &params.max_kv, &params.max_tensors, &params.max_meta_bytes, &params.max_string,
                            &params.max_array };
    const uint64_t least[] = { 6, 2, 323, 20, 3 };
    for (int i = 0; i < 5; i++) {
        *limits[i] = least[i];
        struct sotto_gguf_context * gguf = sotto_gguf_open_buffer(example.data, example.size, &params);
        assert_non_null(gguf);
        sotto_gguf_free(gguf);
        *limits[i] = least[i] - 1;
        assert_null(sotto_gguf_open_buffer(example.data, example.size, &params));
        enum sotto_status last = sotto_last_error();
        assert_true(last == (i < 3 ? SOTTO_E_LIMIT : i == 3 ? SOTTO_E_GGUF_STRING_LENGTH : SOTTO_E_GGUF_ARRAY_LENGTH));
        *limits[i] = 0;
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
        cmocka_unit_test(strings_and_arrays_that_cannot_be),
        cmocka_unit_test(tensors_that_cannot_be),
        cmocka_unit_test(zeros_hide_nothing),
        cmocka_unit_test(totals_that_wrap),
        cmocka_unit_test(oddities_that_load),
        cmocka_unit_test(an_empty_tensor_at_the_end),
        cmocka_unit_test(where_an_alignment_is_wrong),
        cmocka_unit_test(text_that_is_none),
        cmocka_unit_test(a_source_without_end),
        cmocka_unit_test(a_stream_for_writing),
        cmocka_unit_test(limits_are_the_callers),
    };
    return cmocka_run_group_tests(tests, make_example, free_example);
}
