/* SPDX-License-Identifier: MIT */
/* The safetensors reader: legitimate files with all their oddities, every way in which a header can be wrong, each byte
 * of a small file set to each value, and the file cut off everywhere. Whatever the bytes are, memory stays small and what
 * is accepted lies within the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "gguf_example.h"
#include "models/safetensors.h"
#include "refuse_each.h"

static char path[512];
static struct safetensors file;
static struct counting_allocator memory;

static int setup(void ** state) {
    (void)state;
    snprintf(path, sizeof(path), "%s", temp_path("x.safetensors"));
    return 0;
}

static int teardown(void ** state) {
    (void)state;
    return unlink(path);
}

/* ---- files ---- */

static void write_file(const char * header, size_t n, size_t n_data) {
    static uint8_t bytes[1 << 16];
    assert_true(8 + n + n_data <= sizeof(bytes));
    memset(bytes, 0, 8);
    bytes[0] = (uint8_t)n;
    bytes[1] = (uint8_t)(n >> 8);
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < n_data; i++)
        bytes[8 + n + i] = (uint8_t)i;
    write_bytes(path, bytes, 8 + n + n_data);
}

static enum sotto_status open_file(void) {
    counting_allocator_init(&memory);
    sotto_clear_last_error();
    enum sotto_status status = sotto_i_safetensors_open(&file, &memory.base, NULL, path);
    assert_int_equal(sotto_last_error(), status);
    return status;
}

static void close_file(void) {
    sotto_i_safetensors_close(&file);
    assert_int_equal(memory.held, 0);
}

static void accepted(const char * header, size_t n_data, size_t n_tensors) {
    write_file(header, strlen(header), n_data);
    if (open_file() != SOTTO_OK)
        fail_msg("%s: %s", header, sotto_last_error_text());
    assert_int_equal(file.n_tensors, n_tensors);
}

static void refused(const char * header, size_t n_data, enum sotto_status status, const char * word) {
    write_file(header, strlen(header), n_data);
    enum sotto_status found = open_file();
    if (found != status || strstr(sotto_last_error_text(), word) == NULL)
        fail_msg("%s: expected %s and '%s', got: %s", header, sotto_status_name(status), word, sotto_last_error_text());
    close_file();
}

#define X(shape, begin, end) "{\"x\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}}"

/* ---- tests ---- */

static const char three[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                            "\"b.weight\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                            "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                            "\"c\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[20,22]}} ";

static void a_file(void ** state) {
    (void)state;
    accepted(three, 22, 3);
    const struct safetensor * t = sotto_i_safetensors_find(&file, "b.weight");
    assert_non_null(t);
    assert_string_equal(sotto_i_safetensors_name(&file, t), "b.weight");
    assert_int_equal(t->type, SOTTO_TYPE_F16);
    assert_int_equal(t->rank, 2);
    assert_true(t->dims[0] == 2 && t->dims[1] == 3);
    uint64_t data = 8 + sizeof(three) - 1;
    assert_true(t->begin == data + 8 && t->end == data + 20);
    t = sotto_i_safetensors_find(&file, "c");
    assert_true(t != NULL && t->type == SOTTO_TYPE_BF16 && t->rank == 0 && t->end - t->begin == 2);
    t = sotto_i_safetensors_find(&file, "a");
    assert_true(t != NULL && t->type == SOTTO_TYPE_F32 && t->begin == data);
    static const char * const absent[] = { "", "b", "b.weight2", "__metadata__", "d" };
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        assert_null(sotto_i_safetensors_find(&file, absent[i]));
    close_file();
}

/* What is odd but right. */
static void oddities(void ** state) {
    (void)state;
    accepted("{}", 0, 0);
    close_file();
    accepted("{ \t\r\n}      ", 0, 0);
    close_file();
    accepted("{\"__metadata__\":{}}", 0, 0);
    close_file();
    accepted(X("[]", "0", "4"), 4, 1); /* one item */
    close_file();
    accepted(X("[0, 5]", "0", "0"), 0, 1); /* none */
    close_file();
    accepted("{\"n\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]},"
             "\"x\":{\"data_offsets\":[0,4],\"shape\":[1],\"dtype\":\"F32\"},"
             "\"m\":{\"dtype\":\"F16\",\"shape\":[9,0],\"data_offsets\":[0,0]}}",
             4, 3);
    close_file();
    accepted(X("[1,1,1,1,1,1,1,1]", "0", "4"), 4, 1);
    close_file();
    /* a later version's field, of any kind */
    accepted("{\"x\":{\"dtype\":\"F32\",\"new\":{\"a\":[1,-2.5e3,true,false,null,\"s\",{},[],[[]],{\"k\":{}}]},"
             "\"shape\":[1],\"data_offsets\":[0,4]}}",
             4, 1);
    close_file();
}

static void escapes(void ** state) {
    (void)state;
    accepted("{\"a\\u00e4\\u20AC\\ud83d\\uDE00\\\"\\\\\\/\\b\\f\\n\\r\\t\":{\"dtype\":\"F\\u00332\",\"shape\":[1],"
             "\"data_offsets\":[0,4]}}",
             4, 1);
    assert_non_null(sotto_i_safetensors_find(&file, "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"\\/\b\f\n\r\t"));
    close_file();
    static const char * const bad[][2] = {
        { "\\u12", "four hexadecimal" },
        { "\\u12G4", "four hexadecimal" },
        { "\\x", "unknown escape" },
        { "\\ud83d", "surrogate" },
        { "\\ud83dxx", "surrogate" },
        { "\\ud83d\\u0041", "surrogate" },
        { "\\udc00", "surrogate" },
        { "\\u0000", "a 0" },
        { "\n", "control" },
        { "\x01", "control" },
        { "\\", "" },
        { "\\ud83d\\", "" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char header[256];
        snprintf(header, sizeof(header), "{\"x%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                 bad[i][0]);
        refused(header, 4, SOTTO_E_MODEL_CORRUPT, bad[i][1]);
        snprintf(header, sizeof(header), "{\"__metadata__\":{\"x%s\":\"\"}}", bad[i][0]);
        refused(header, 0, SOTTO_E_MODEL_CORRUPT, bad[i][1]);
        snprintf(header, sizeof(header), "{\"x%s", bad[i][0]);
        refused(header, 0, SOTTO_E_MODEL_CORRUPT, "at byte");
    }
}

static void headers(void ** state) {
    (void)state;
    static const struct {
        const char * header;
        size_t n_data;
        enum sotto_status status;
        const char * word;
    } rows[] = {
        { "", 0, SOTTO_E_MODEL_CORRUPT, "begin with" },
        { "[]", 0, SOTTO_E_MODEL_CORRUPT, "begin with" },
        { " {}", 0, SOTTO_E_MODEL_CORRUPT, "begin with" },
        { "{", 0, SOTTO_E_MODEL_CORRUPT, "at byte 9" },
        { "{}x", 0, SOTTO_E_MODEL_CORRUPT, "follows" },
        { "{}{}", 0, SOTTO_E_MODEL_CORRUPT, "follows" },
        { "{} ", 1, SOTTO_E_MODEL_CORRUPT, "tensors end at byte 11, the file at 12" },
        { "{\"a\"}", 0, SOTTO_E_MODEL_CORRUPT, "':'" },
        { "{\"a\":1}", 0, SOTTO_E_MODEL_CORRUPT, "'{'" },
        { "{\"a\":{}}", 0, SOTTO_E_MODEL_CORRUPT, "without dtype" },
        { "{\"a\":{},}", 0, SOTTO_E_MODEL_CORRUPT, "at byte" },
        { "{\"__metadata__\":{},}", 0, SOTTO_E_MODEL_CORRUPT, "'\"'" },
        { "{\"__metadata__\":{},\"__metadata__\":{}} x", 0, SOTTO_E_MODEL_CORRUPT, "follows" },
        { "{\"__metadata__\":tru}", 0, SOTTO_E_MODEL_CORRUPT, "no value" },
        { "{\"__metadata__\":nothing}", 0, SOTTO_E_MODEL_CORRUPT, "no value" },
        { "{\"__metadata__\":?}", 0, SOTTO_E_MODEL_CORRUPT, "no value" },
        { "{\"__metadata__\":[1 2]}", 0, SOTTO_E_MODEL_CORRUPT, "']'" },
        { "{\"__metadata__\":{1:2}}", 0, SOTTO_E_MODEL_CORRUPT, "'\"'" },
        { "{\"__metadata__\":{\"a\" 2}}", 0, SOTTO_E_MODEL_CORRUPT, "':'" },
        { X("[1]", "0", "4") "", 0, SOTTO_E_MODEL_TRUNCATED, "needs 4 bytes" },
        { X("[1]", "0", "4"), 3, SOTTO_E_MODEL_TRUNCATED, "needs 4 bytes" },
        { X("[1]", "0", "4"), 5, SOTTO_E_MODEL_CORRUPT, "the file at" },
        { X("[1]", "1", "5"), 5, SOTTO_E_MODEL_CORRUPT, "begins at byte 1 of the data, where 0" },
        { X("[1]", "4", "0"), 4, SOTTO_E_MODEL_CORRUPT, "begin and end" },
        { X("[1]", "0", "8"), 8, SOTTO_E_MODEL_TENSOR_SIZE, "8 bytes for 1 items" },
        { X("[2]", "0", "4"), 4, SOTTO_E_MODEL_TENSOR_SIZE, "4 bytes for 2 items" },
        { X("[0]", "0", "4"), 4, SOTTO_E_MODEL_TENSOR_SIZE, "4 bytes for 0 items" },
        { X("[1]", "0", "9223372036854775807"), 4, SOTTO_E_MODEL_TENSOR_SIZE, "9223372036854775807 bytes" },
        { X("[1]", "0", "9223372036854775808"), 4, SOTTO_E_MODEL_CORRUPT, "too large" },
        { X("[1]", "0", "99999999999999999999999999"), 4, SOTTO_E_MODEL_CORRUPT, "too large" },
        { X("[1]", "-1", "3"), 4, SOTTO_E_MODEL_CORRUPT, "whole number" },
        { X("[1]", "00", "4"), 4, SOTTO_E_MODEL_CORRUPT, "begins with 0" },
        { X("[1]", "0", "4.0"), 4, SOTTO_E_MODEL_CORRUPT, "']'" },
        { X("[1]", "0", "4,5"), 4, SOTTO_E_MODEL_CORRUPT, "begin and end" },
        { X("[1.5]", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "']'" },
        { X("[\"1\"]", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "whole number" },
        { X("[1,]", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "whole number" },
        { X("1", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "'['" },
        { X("[1,1,1,1,1,1,1,1,1]", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "more than 8" },
        { X("[4294967296,4294967296]", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "too many items" },
        { X("[2147483648,2147483648]", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "too many items" },
        { X("[4611686018427387905,4]", "0", "4"), 4, SOTTO_E_MODEL_CORRUPT, "too many items" },
        { "{\"x\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, SOTTO_E_MODEL_TENSOR_TYPE, "F64" },
        { "{\"x\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, SOTTO_E_MODEL_TENSOR_TYPE, "I8" },
        { "{\"x\":{\"dtype\":\"\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, SOTTO_E_MODEL_TENSOR_TYPE, "'x'" },
        { "{\"x\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SOTTO_E_MODEL_TENSOR_TYPE, "f32" },
        { "{\"x\":{\"dtype\":\"F32F32F32F32F32F32F32F32F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          SOTTO_E_MODEL_TENSOR_TYPE, "F32F32F32" },
        { "{\"x\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SOTTO_E_MODEL_CORRUPT, "'\"'" },
        { "{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
          SOTTO_E_MODEL_CORRUPT, "twice" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SOTTO_E_MODEL_CORRUPT,
          "twice" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"data_offsets\":[0,4]}}", 4,
          SOTTO_E_MODEL_CORRUPT, "twice" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, SOTTO_E_MODEL_CORRUPT, "without dtype" },
        { "{\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SOTTO_E_MODEL_CORRUPT, "without dtype" },
        { "{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, SOTTO_E_MODEL_CORRUPT, "without dtype" },
        /* overlap, gap, and one name in two spellings */
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
          "\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
          12, SOTTO_E_MODEL_CORRUPT, "where 8 is due" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          4, SOTTO_E_MODEL_CORRUPT, "where 4 is due" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
          12, SOTTO_E_MODEL_CORRUPT, "where 4 is due" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"\\u0078\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
          8, SOTTO_E_MODEL_TENSOR_DUPLICATE, "'x' occurs twice" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refused(rows[i].header, rows[i].n_data, rows[i].status, rows[i].word);
}

/* Levels: 64 are read, more are not, and none of them is a call of a function in itself. */
static void depth(void ** state) {
    (void)state;
    static char header[1 << 15];
    static const char before[] = "{\"__metadata__\":";
    for (int deep = 62; deep < 10000; deep += deep < 67 ? 1 : 3000) {
        size_t n = 0;
        n += (size_t)sprintf(header + n, "%s", before);
        for (int i = 0; i < deep; i++)
            header[n++] = '[';
        for (int i = 0; i < deep; i++)
            header[n++] = ']';
        header[n++] = '}';
        header[n] = 0;
        if (deep <= 64) {
            accepted(header, 0, 0);
            close_file();
        } else {
            refused(header, 0, SOTTO_E_MODEL_CORRUPT, "too many levels");
        }
    }
    header[sizeof(before) - 1 + 50] = 0;
    refused(header, 0, SOTTO_E_MODEL_CORRUPT, "no value");
}

static void lengths(void ** state) {
    (void)state;
    static const uint64_t rows[] = { 100000000,         100000001,  (uint64_t)1 << 32,
                                     (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bytes[10];
        for (int k = 0; k < 8; k++)
            bytes[k] = (uint8_t)(rows[i] >> (8 * k));
        memcpy(bytes + 8, "{}", 2);
        write_bytes(path, bytes, sizeof(bytes));
        assert_int_equal(open_file(), rows[i] > 100000000 ? SOTTO_E_MODEL_CORRUPT : SOTTO_E_MODEL_TRUNCATED);
        assert_true(memory.peak < 4096);
        close_file();
    }
    for (size_t n = 0; n < 8; n++) {
        write_bytes(path, "\2\0\0\0\0\0\0", n);
        assert_int_equal(open_file(), SOTTO_E_MODEL_TRUNCATED);
        close_file();
    }
    unlink(path);
    assert_int_equal(open_file(), SOTTO_E_IO);
    close_file();
}

/* ---- any bytes ---- */

/* The file as it is gives a status of its own, or tensors within it; little memory is taken and nothing left. */
static void holds(size_t n) {
    enum sotto_status status = open_file();
    assert_true(status == SOTTO_OK || (status >= SOTTO_E_MODEL_FORMAT && status <= SOTTO_E_MODEL_PICKLE));
    assert_true(memory.peak < 1 << 16);
    for (size_t i = 0; i < file.n_tensors && status == SOTTO_OK; i++)
        assert_true(file.tensors[i].begin <= file.tensors[i].end && file.tensors[i].end <= n);
    close_file();
}

static void any_bytes(void ** state) {
    (void)state;
    write_file(three, sizeof(three) - 1, 22);
    size_t n;
    uint8_t * bytes = read_bytes(path, &n);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (size_t i = 0; i < n - 22; i++) {
        for (int value = 0; value < 256; value++) {
            assert_int_equal(pwrite(fd, &(uint8_t){ (uint8_t)value }, 1, (off_t)i), 1);
            holds(n);
        }
        assert_int_equal(pwrite(fd, bytes + i, 1, (off_t)i), 1);
    }
    for (size_t cut = n; cut-- > 0;) {
        assert_int_equal(ftruncate(fd, (off_t)cut), 0);
        holds(cut);
    }
    close(fd);
    free(bytes);
}

static enum sotto_status read_three(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct safetensors own;
    enum sotto_status status = sotto_i_safetensors_open(&own, allocator, NULL, path);
    sotto_i_safetensors_close(&own);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    write_file(three, sizeof(three) - 1, 22);
    assert_true(refuse_each(read_three, NULL) >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file),    cmocka_unit_test(oddities),
        cmocka_unit_test(escapes),   cmocka_unit_test(headers),
        cmocka_unit_test(depth),     cmocka_unit_test(lengths),
        cmocka_unit_test(any_bytes), cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
