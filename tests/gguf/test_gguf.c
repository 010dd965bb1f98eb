/* SPDX-License-Identifier: MIT */
/* The GGUF functions: the example byte for byte, getters and setters, and what they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "gguf_example.h"
#include "sotto/sotto.h"
#include "sha256.h"

#define REFUSED(status, call)                         \
    do {                                              \
        sotto_clear_last_error();                     \
        (void)(call);                                 \
        assert_int_equal(sotto_last_error(), status); \
    } while (0)

/* A call that returns its status. */
#define FAILS(status, call)                           \
    do {                                              \
        sotto_clear_last_error();                     \
        assert_int_equal(call, status);               \
        assert_int_equal(sotto_last_error(), status); \
    } while (0)

/* ---- the example ---- */

static void the_example_byte_for_byte(void ** state) {
    (void)state;
    struct sotto_gguf_context * gguf = gguf_example();
    size_t size;
    uint8_t * bytes = gguf_written(gguf, &size);
    char hash[65];
    sha256_hex(bytes, size, hash);
    assert_int_equal(size, GGUF_EXAMPLE_SIZE);
    assert_string_equal(hash, GGUF_EXAMPLE_HASH);
    assert_int_equal(sotto_gguf_get_meta_size(gguf), 0x160);
    uint8_t meta[0x160];
    assert_int_equal(sotto_gguf_get_meta_data(gguf, meta), SOTTO_OK);
    assert_memory_equal(meta, bytes, sizeof(meta));
    free(bytes);
    sotto_gguf_free(gguf);
}

/* The three ways in which programs write: at once, metadata then tensors, tensors then metadata. */
static void three_ways_of_writing(void ** state) {
    (void)state;
    struct sotto_gguf_context * gguf = gguf_example();
    size_t size;
    uint8_t * bytes = gguf_written(gguf, &size);
    const char * path = temp_path("ways.gguf");
    assert_true(sotto_gguf_write_to_file(gguf, path, true));
    size_t meta_size;
    uint8_t * meta = read_bytes(path, &meta_size);
    assert_int_equal(meta_size, 0x160);
    assert_memory_equal(meta, bytes, meta_size);
    FILE * file = fopen(path, "wb");
    assert_non_null(file);
    fputs("before", file);
    assert_true(sotto_gguf_write_to_file_ptr(gguf, file, false));
    assert_int_equal(ftell(file), 6 + (long)size);
    fclose(file);
    size_t stream_size;
    uint8_t * stream = read_bytes(path, &stream_size);
    assert_int_equal(stream_size, size + 6);
    assert_memory_equal(stream + 6, bytes, size);
    unlink(path);
    free(bytes);
    free(meta);
    free(stream);
    sotto_gguf_free(gguf);
}

static struct sotto_gguf_context * reread(struct sotto_gguf_context * gguf) {
    size_t size;
    uint8_t * bytes = gguf_written(gguf, &size);
    struct sotto_gguf_context * again = sotto_gguf_open_buffer(bytes, size, NULL);
    free(bytes);
    assert_non_null(again);
    return again;
}

static void looking_at_the_example(void ** state) {
    (void)state;
    struct sotto_gguf_context * made = gguf_example();
    struct sotto_gguf_context * g = reread(made);
    sotto_gguf_free(made);
    assert_int_equal(sotto_gguf_get_version(g), 3);
    assert_int_equal(sotto_gguf_get_alignment(g), 32);
    assert_int_equal(sotto_gguf_get_data_offset(g), 0x160);
    assert_int_equal(sotto_gguf_get_data_size(g), 96);
    assert_null(sotto_gguf_get_data(g));
    assert_int_equal(sotto_gguf_get_n_kv(g), 6);
    assert_int_equal(sotto_gguf_find_key(g, "sotto.names"), 3);
    assert_int_equal(sotto_gguf_find_key(g, "sotto"), -1);
    assert_string_equal(sotto_gguf_get_key(g, 5), "sotto.f");
    assert_string_equal(sotto_gguf_get_val_str(g, 0), "whisper");
    assert_int_equal(sotto_gguf_get_val_u32(g, 1), 0x01020304);
    assert_true(sotto_gguf_get_val_bool(g, 2));
    assert_int_equal(sotto_gguf_get_kv_type(g, 3), SOTTO_GGUF_TYPE_ARRAY);
    assert_int_equal(sotto_gguf_get_arr_type(g, 3), SOTTO_GGUF_TYPE_STRING);
    assert_int_equal(sotto_gguf_get_arr_n(g, 3), 3);
    assert_string_equal(sotto_gguf_get_arr_str(g, 3, 1), "");
    size_t len;
    assert_string_equal(sotto_gguf_get_arr_str_n(g, 3, 2, &len), "bc");
    assert_int_equal(len, 2);
    const int32_t * ids = sotto_gguf_get_arr_data(g, 4);
    assert_true(ids[0] == 1 && ids[1] == -2 && ids[2] == 3);
    assert_true(sotto_gguf_get_val_f32(g, 5) == 1.5f);
    assert_memory_equal(sotto_gguf_get_val_data(g, 1), "\x04\x03\x02\x01", 4);
    assert_int_equal(sotto_gguf_get_n_tensors(g), 2);
    assert_int_equal(sotto_gguf_find_tensor(g, "q"), 1);
    assert_string_equal(sotto_gguf_get_tensor_name(g, 0), "w");
    assert_int_equal(sotto_gguf_get_tensor_offset(g, 1), 32);
    assert_int_equal(sotto_gguf_get_tensor_size(g, 1), 34);
    assert_int_equal(sotto_gguf_get_tensor_type(g, 1), SOTTO_TYPE_Q8_0);
    const int64_t * ne = sotto_gguf_get_tensor_ne(g, 0);
    assert_true(ne[0] == 3 && ne[1] == 2 && ne[2] == 1 && ne[3] == 1);
    sotto_gguf_free(g);
}

/* ---- what getters refuse ---- */

static void wrong_ids_and_types(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_key(g, 6)));
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_key(g, -1)));
    REFUSED(SOTTO_E_PARAM, assert_int_equal(sotto_gguf_get_kv_type(g, INT64_MAX), SOTTO_GGUF_TYPE_COUNT));
    REFUSED(SOTTO_E_GGUF_VALUE_TYPE, assert_int_equal(sotto_gguf_get_arr_type(g, 1), SOTTO_GGUF_TYPE_COUNT));
    REFUSED(SOTTO_E_GGUF_VALUE_TYPE, assert_int_equal(sotto_gguf_get_val_i32(g, 1), 0));
    REFUSED(SOTTO_E_GGUF_VALUE_TYPE, assert_int_equal(sotto_gguf_get_val_i32(g, 4), 0));
    REFUSED(SOTTO_E_GGUF_VALUE_TYPE, assert_null(sotto_gguf_get_val_str(g, 1)));
    REFUSED(SOTTO_E_GGUF_VALUE_TYPE, assert_null(sotto_gguf_get_val_data(g, 0)));
    REFUSED(SOTTO_E_GGUF_VALUE_TYPE, assert_null(sotto_gguf_get_arr_data(g, 3)));
    REFUSED(SOTTO_E_GGUF_VALUE_TYPE, assert_null(sotto_gguf_get_arr_str(g, 4, 0)));
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_arr_str(g, 3, 3)));
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_tensor_name(g, 2)));
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_tensor_ne(g, -1)));
    REFUSED(SOTTO_E_PARAM, assert_int_equal(sotto_gguf_get_tensor_type(g, 2), SOTTO_TYPE_COUNT));
    REFUSED(SOTTO_E_NULLARG, assert_int_equal(sotto_gguf_find_key(g, NULL), -1));
    REFUSED(SOTTO_E_NULLARG, assert_int_equal(sotto_gguf_find_tensor(NULL, "w"), -1));
    REFUSED(SOTTO_E_NULLARG, assert_int_equal(sotto_gguf_get_n_kv(NULL), 0));
    REFUSED(SOTTO_E_NULLARG, assert_null(sotto_gguf_get_val_str(NULL, 0)));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_get_meta_data(g, NULL));
    REFUSED(SOTTO_E_NULLARG, assert_int_equal(sotto_gguf_get_meta_size(NULL), 0));
    REFUSED(SOTTO_E_NULLARG, assert_null(sotto_gguf_get_tensor_name(NULL, 0)));
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_val_data(g, 6)));
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_arr_data(g, 6)));
    REFUSED(SOTTO_E_PARAM, assert_int_equal(sotto_gguf_get_arr_n(g, 6), 0));
    REFUSED(SOTTO_E_PARAM, assert_int_equal(sotto_gguf_get_tensor_offset(g, 2), 0));
    REFUSED(SOTTO_E_PARAM, assert_int_equal(sotto_gguf_get_tensor_size(g, 2), 0));
    size_t len = 5;
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_get_arr_str_n(g, 3, 7, &len)));
    assert_int_equal(len, 0);
    sotto_gguf_free(g);
    sotto_gguf_free(NULL);
}

static void types_have_names(void ** state) {
    (void)state;
    static const char * const names[] = { "u8",   "i8",  "u16", "i16", "u32", "i32", "f32",
                                          "bool", "str", "arr", "u64", "i64", "f64" };
    static const size_t sizes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    for (int i = 0; i < SOTTO_GGUF_TYPE_COUNT; i++) {
        assert_string_equal(sotto_gguf_type_name((enum sotto_gguf_type)i), names[i]);
        assert_int_equal(sotto_gguf_type_size((enum sotto_gguf_type)i), sizes[i]);
    }
    assert_null(sotto_gguf_type_name(SOTTO_GGUF_TYPE_COUNT));
    assert_int_equal(sotto_gguf_type_size((enum sotto_gguf_type)99), 0);
}

static void by_key_for_loaders(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    sotto_gguf_set_val_u64(g, "big", UINT64_MAX);
    sotto_gguf_set_val_i8(g, "minus", -3);
    sotto_gguf_set_val_f64(g, "pi", 3.25);
    uint64_t u = 7;
    int64_t i = 7;
    double d = 7;
    bool b = false;
    const char * s = NULL;
    assert_true(sotto_gguf_get_uint(g, "big", &u) && u == UINT64_MAX);
    assert_true(sotto_gguf_get_uint(g, "sotto.u32", &u) && u == 0x01020304);
    assert_false(sotto_gguf_get_uint(g, "minus", &u));
    assert_false(sotto_gguf_get_int(g, "big", &i));
    assert_true(sotto_gguf_get_int(g, "minus", &i) && i == -3);
    assert_true(sotto_gguf_get_float(g, "pi", &d) && d == 3.25);
    assert_true(sotto_gguf_get_float(g, "sotto.f", &d) && d == 1.5);
    assert_false(sotto_gguf_get_float(g, "minus", &d));
    sotto_gguf_set_val_i16(g, "i16", -300);
    sotto_gguf_set_val_i32(g, "i32", -70000);
    sotto_gguf_set_val_i64(g, "i64", INT64_MIN);
    sotto_gguf_set_val_u8(g, "u8", 200);
    sotto_gguf_set_val_u16(g, "u16", 60000);
    assert_true(sotto_gguf_get_int(g, "i16", &i) && i == -300);
    assert_true(sotto_gguf_get_int(g, "i32", &i) && i == -70000);
    assert_true(sotto_gguf_get_int(g, "i64", &i) && i == INT64_MIN);
    assert_true(sotto_gguf_get_int(g, "u8", &i) && i == 200);
    assert_true(sotto_gguf_get_uint(g, "u16", &u) && u == 60000);
    sotto_gguf_set_val_u64(g, "most", INT64_MAX);
    assert_true(sotto_gguf_get_int(g, "most", &i) && i == INT64_MAX);
    sotto_gguf_set_val_u64(g, "more", (uint64_t)INT64_MAX + 1);
    assert_false(sotto_gguf_get_int(g, "more", &i));
    assert_false(sotto_gguf_get_int(g, "pi", &i));
    assert_false(sotto_gguf_get_uint(g, "general.architecture", &u));
    assert_true(sotto_gguf_get_bool(g, "sotto.flag", &b) && b);
    assert_false(sotto_gguf_get_bool(g, "sotto.u32", &b));
    assert_true(sotto_gguf_get_str(g, "general.architecture", &s) && strcmp(s, "whisper") == 0);
    assert_false(sotto_gguf_get_str(g, "sotto.names", &s));
    assert_false(sotto_gguf_get_uint(g, "absent", &u));
    assert_false(sotto_gguf_get_uint(NULL, "big", &u));
    sotto_gguf_free(g);
}

/* ---- setting ---- */

static void every_type_of_value(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    assert_int_equal(sotto_gguf_set_val_u8(g, "u8", 200), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_i8(g, "i8", -100), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_u16(g, "u16", 65000), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_i16(g, "i16", -30000), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_i32(g, "i32", INT32_MIN), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_u64(g, "u64", UINT64_MAX), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_i64(g, "i64", INT64_MIN), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_f64(g, "f64", -0.0), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_val_str_n(g, "str", "a\0b", 3), SOTTO_OK);
    const uint8_t bools[] = { 0, 1, 2, 255 };
    assert_int_equal(sotto_gguf_set_arr_data(g, "bools", SOTTO_GGUF_TYPE_BOOL, bools, 4), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_arr_data(g, "none", SOTTO_GGUF_TYPE_FLOAT64, NULL, 0), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_arr_str(g, "no strings", NULL, 0), SOTTO_OK);
    const uint64_t one = 5;
    assert_int_equal(sotto_gguf_set_arr_data(g, "one", SOTTO_GGUF_TYPE_UINT64, &one, 1), SOTTO_OK);
    struct sotto_gguf_context * r = reread(g);
    assert_int_equal(sotto_gguf_get_val_u8(r, 0), 200);
    assert_int_equal(sotto_gguf_get_val_i8(r, 1), -100);
    assert_int_equal(sotto_gguf_get_val_u16(r, 2), 65000);
    assert_int_equal(sotto_gguf_get_val_i16(r, 3), -30000);
    assert_int_equal(sotto_gguf_get_val_i32(r, 4), INT32_MIN);
    assert_true(sotto_gguf_get_val_u64(r, 5) == UINT64_MAX);
    assert_true(sotto_gguf_get_val_i64(r, 6) == INT64_MIN);
    double zero = sotto_gguf_get_val_f64(r, 7);
    assert_memory_equal(&zero, (const double[]){ -0.0 }, sizeof(zero));
    size_t len;
    assert_memory_equal(sotto_gguf_get_val_str_n(r, 8, &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_memory_equal(sotto_gguf_get_arr_data(r, 9), "\0\1\1\1", 4);
    assert_int_equal(sotto_gguf_get_arr_n(r, 10), 0);
    assert_non_null(sotto_gguf_get_arr_data(r, 10));
    assert_int_equal(sotto_gguf_get_arr_n(r, 11), 0);
    assert_int_equal(sotto_gguf_get_arr_type(r, 11), SOTTO_GGUF_TYPE_STRING);
    assert_int_equal(sotto_gguf_get_val_u64(r, 12), 5);
    assert_int_equal(sotto_gguf_get_n_kv(r), 13);
    sotto_gguf_free(r);
    sotto_gguf_free(g);
}

/* More strings than fit into the first pieces of memory, and more numbers than are read at once. */
static void long_arrays(void ** state) {
    (void)state;
    enum { STRINGS = 3000, NUMBERS = 700001 };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    const char ** strings = calloc(STRINGS, sizeof(*strings));
    int16_t * numbers = calloc(NUMBERS, sizeof(*numbers));
    assert_true(strings != NULL && numbers != NULL);
    for (int i = 0; i < STRINGS; i++)
        strings[i] = letters + i * 7 % 53;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (int16_t)(i * 31);
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    assert_int_equal(sotto_gguf_set_arr_str(g, "strings", strings, STRINGS), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_arr_data(g, "numbers", SOTTO_GGUF_TYPE_INT16, numbers, NUMBERS), SOTTO_OK);
    struct sotto_gguf_context * r = reread(g);
    assert_int_equal(sotto_gguf_get_arr_n(r, 0), STRINGS);
    for (size_t i = 0; i < STRINGS; i++) {
        size_t len;
        assert_string_equal(sotto_gguf_get_arr_str_n(r, 0, i, &len), strings[i]);
        assert_int_equal(len, strlen(strings[i]));
    }
    assert_int_equal(sotto_gguf_get_arr_n(r, 1), NUMBERS);
    assert_memory_equal(sotto_gguf_get_arr_data(r, 1), numbers, NUMBERS * sizeof(*numbers));
    assert_int_equal((uintptr_t)sotto_gguf_get_arr_data(r, 1) % 8, 0);
    sotto_gguf_free(r);
    sotto_gguf_free(g);
    free(strings);
    free(numbers);
}

static void a_set_moves_to_the_end(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    assert_int_equal(sotto_gguf_set_val_i64(g, "sotto.u32", -1), SOTTO_OK);
    assert_int_equal(sotto_gguf_get_n_kv(g), 6);
    assert_int_equal(sotto_gguf_find_key(g, "sotto.u32"), 5);
    assert_int_equal(sotto_gguf_find_key(g, "sotto.flag"), 1);
    assert_int_equal(sotto_gguf_get_val_i64(g, 5), -1);
    assert_int_equal(sotto_gguf_remove_key(g, "sotto.names"), 2);
    assert_int_equal(sotto_gguf_remove_key(g, "sotto.names"), -1);
    assert_int_equal(sotto_gguf_find_key(g, "sotto.u32"), 4);
    struct sotto_gguf_context * other = gguf_example();
    sotto_gguf_set_val_str(other, "new", "x");
    assert_int_equal(sotto_gguf_set_kv(g, other), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_kv(g, g), SOTTO_OK);
    assert_int_equal(sotto_gguf_get_n_kv(g), 7);
    assert_int_equal(sotto_gguf_get_val_u32(g, sotto_gguf_find_key(g, "sotto.u32")), 0x01020304);
    assert_string_equal(sotto_gguf_get_val_str(g, 6), "x");
    sotto_gguf_free(other);
    sotto_gguf_free(g);
}

static void what_setters_refuse(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    char * key = malloc(65537);
    memset(key, 'k', 65536);
    key[65536] = 0;
    const char * strings[] = { "a", NULL };
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_val_u32(NULL, "a", 1));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_val_u32(g, NULL, 1));
    FAILS(SOTTO_E_GGUF_KEY_EMPTY, sotto_gguf_set_val_u32(g, "", 1));
    FAILS(SOTTO_E_GGUF_KEY_LENGTH, sotto_gguf_set_val_u32(g, key, 1));
    assert_int_equal(sotto_gguf_set_val_u32(g, key + 1, 1), SOTTO_OK);
    sotto_gguf_remove_key(g, key + 1);
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_val_str(g, "a", NULL));
    FAILS(SOTTO_E_MEMORY, sotto_gguf_set_val_str_n(g, "a", "x", SIZE_MAX));
    FAILS(SOTTO_E_GGUF_VALUE_TYPE, sotto_gguf_set_arr_data(g, "a", SOTTO_GGUF_TYPE_STRING, strings, 1));
    FAILS(SOTTO_E_GGUF_VALUE_TYPE, sotto_gguf_set_arr_data(g, "a", SOTTO_GGUF_TYPE_ARRAY, strings, 1));
    FAILS(SOTTO_E_GGUF_VALUE_TYPE, sotto_gguf_set_arr_data(g, "a", (enum sotto_gguf_type)13, strings, 1));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_arr_data(g, "a", SOTTO_GGUF_TYPE_INT8, NULL, 1));
    FAILS(SOTTO_E_MEMORY, sotto_gguf_set_arr_data(g, "a", SOTTO_GGUF_TYPE_INT64, strings, SIZE_MAX / 4));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_arr_str(g, "a", strings, 2));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_arr_str(g, "a", NULL, 2));
    FAILS(SOTTO_E_GGUF_ALIGN_TYPE, sotto_gguf_set_val_u64(g, "general.alignment", 32));
    FAILS(SOTTO_E_GGUF_ALIGN_TYPE, sotto_gguf_set_val_str(g, "general.alignment", "32"));
    const uint32_t align = 32;
    FAILS(SOTTO_E_GGUF_ALIGN_TYPE, sotto_gguf_set_arr_data(g, "general.alignment", SOTTO_GGUF_TYPE_UINT32, &align, 1));
    FAILS(SOTTO_E_GGUF_ALIGN_VALUE, sotto_gguf_set_val_u32(g, "general.alignment", 0));
    FAILS(SOTTO_E_GGUF_ALIGN_VALUE, sotto_gguf_set_val_u32(g, "general.alignment", 3));
    FAILS(SOTTO_E_GGUF_ALIGN_VALUE, sotto_gguf_set_val_u32(g, "general.alignment", 1u << 31));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_kv(g, NULL));
    REFUSED(SOTTO_E_GGUF_KEY_EMPTY, assert_int_equal(sotto_gguf_remove_key(g, ""), -1));
    assert_int_equal(sotto_gguf_get_n_kv(g), 6);
    free(key);
    sotto_gguf_free(g);
}

static void alignment_moves_the_tensors(void ** state) {
    (void)state;
    static const uint32_t alignments[] = { 1, 2, 8, 64, 4096, 1u << 24 };
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
        struct sotto_gguf_context * g = gguf_example();
        size_t a = alignments[i];
        assert_int_equal(sotto_gguf_set_val_u32(g, "general.alignment", alignments[i]), SOTTO_OK);
        assert_int_equal(sotto_gguf_get_alignment(g), a);
        assert_int_equal(sotto_gguf_get_tensor_offset(g, 1), (24 + a - 1) / a * a);
        if (a <= 4096) {
            struct sotto_gguf_context * r = reread(g);
            assert_int_equal(sotto_gguf_get_data_offset(r) % a, 0);
            sotto_gguf_free(r);
        }
        assert_int_equal(sotto_gguf_remove_key(g, "general.alignment"), 6);
        assert_int_equal(sotto_gguf_get_alignment(g), 32);
        assert_int_equal(sotto_gguf_get_tensor_offset(g, 1), 32);
        sotto_gguf_free(g);
    }
}

static double seconds_since(clock_t begin) { return (double)(clock() - begin) / CLOCKS_PER_SEC; }

/* Anything quadratic would take minutes. */
static void a_hundred_thousand_names(void ** state) {
    (void)state;
    enum { N = 100000 };
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    char key[32];
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof(key), "key.%d", i);
        assert_int_equal(sotto_gguf_set_val_u32(g, key, (uint32_t)i), SOTTO_OK);
    }
    size_t size;
    uint8_t * bytes = gguf_written(g, &size);
    clock_t begin = clock();
    struct sotto_gguf_context * r = sotto_gguf_open_buffer(bytes, size, NULL);
    double seconds = seconds_since(begin);
    assert_non_null(r);
    free(bytes);
    print_message("%d pairs in %.3f s\n", N, seconds);
    assert_true(seconds < 1);
    assert_int_equal(sotto_gguf_get_n_kv(r), N);
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof(key), "key.%d", i);
        assert_int_equal(sotto_gguf_find_key(r, key), i);
        assert_int_equal(sotto_gguf_get_val_u32(r, i), i);
    }
    begin = clock();
    assert_int_equal(sotto_gguf_set_val_str(g, "first", "kept"), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_kv(g, r), SOTTO_OK); /* each of them replaces one */
    assert_true(seconds_since(begin) < 1);
    assert_int_equal(sotto_gguf_get_n_kv(g), N + 1);
    assert_string_equal(sotto_gguf_get_val_str(g, 0), "kept");
    assert_int_equal(sotto_gguf_find_key(g, "key.7"), 8);
    sotto_gguf_free(g);
    sotto_gguf_free(r);
}

static void what_failures_mean_for_models(void ** state) {
    (void)state;
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_MEMORY), SOTTO_E_MEMORY);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_LIMIT), SOTTO_E_LIMIT);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_GGUF_IO_READ), SOTTO_E_IO);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_GGUF_MAGIC), SOTTO_E_MODEL_FORMAT);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_GGUF_ENDIAN), SOTTO_E_MODEL_VERSION);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_GGUF_COUNT_KV), SOTTO_E_MODEL_TRUNCATED);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_GGUF_TENSOR_TYPE_RETIRED), SOTTO_E_MODEL_TENSOR_TYPE);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_GGUF_TENSOR_DUPLICATE), SOTTO_E_MODEL_TENSOR_DUPLICATE);
    assert_int_equal(sotto_gguf_model_status(SOTTO_E_GGUF_KEY_EMPTY), SOTTO_E_MODEL_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_byte_for_byte),
        cmocka_unit_test(three_ways_of_writing),
        cmocka_unit_test(looking_at_the_example),
        cmocka_unit_test(wrong_ids_and_types),
        cmocka_unit_test(types_have_names),
        cmocka_unit_test(by_key_for_loaders),
        cmocka_unit_test(every_type_of_value),
        cmocka_unit_test(long_arrays),
        cmocka_unit_test(a_set_moves_to_the_end),
        cmocka_unit_test(what_setters_refuse),
        cmocka_unit_test(alignment_moves_the_tensors),
        cmocka_unit_test(a_hundred_thousand_names),
        cmocka_unit_test(what_failures_mean_for_models),
    };
    return cmocka_run_group_tests(tests, counting_allocator_begin, counting_allocator_end);
}
