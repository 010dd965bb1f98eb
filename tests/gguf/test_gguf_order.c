/* SPDX-License-Identifier: MIT */
/* Files in the other byte order: the known answer of the specification, reading in pieces, what has no form in that
 * order, and malformed files. */
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
#include "sha256.h"

/* gguf.md section 8 */
static const char known[] =
    "474755460000000300000000000000010000000000000002000000000000001467656e6572616c2e617263686974656374757265"
    "000000080000000000000007776869737065720000000000000009736f74746f2e7533320000000401020304"
    "00000000000000017700000002000000000000000300000000000000020000000000000000000000000000000000000000000000"
    "000000000000000000000000000000003f80000040000000404000004080000040a000000000000000000000";
#define KNOWN_HASH "5e3f06cbc5ae398f03c67992e9f33817a4cea15fe02b172f45ad22beadfd5d91"

static struct bytes big; /* the known answer */

static int make_big(void ** state) {
    (void)state;
    big = bytes_from_hex(known);
    char hash[65];
    sha256_hex(big.data, big.size, hash);
    return strcmp(hash, KNOWN_HASH);
}

static int free_big(void ** state) {
    (void)state;
    free(big.data);
    return 0;
}

static struct sotto_gguf_context * open_swapped(const struct bytes * b, struct sotto_context ** tensors) {
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_SWAP;
    params.ctx = tensors;
    return sotto_gguf_open_buffer(b->data, b->size, &params);
}

static void refused_unless_allowed(void ** state) {
    (void)state;
    struct gguf_outcome found = gguf_try_open(GGUF_BUFFER, &big, true, 0);
    assert_int_equal(found.status, SOTTO_E_GGUF_ENDIAN);
    assert_int_equal(found.pos, 4);
    gguf_same_everywhere(&big, true, found);
    assert_non_null(strstr(sotto_last_error_text(), "0x03000000, swapped 3"));
}

static void the_known_answer(void ** state) {
    (void)state;
    struct sotto_context * tensors;
    struct sotto_gguf_context * g = open_swapped(&big, &tensors);
    assert_non_null(g);
    assert_true(sotto_gguf_is_swapped(g));
    assert_int_equal(sotto_gguf_get_version(g), 3);
    assert_string_equal(sotto_gguf_get_val_str(g, sotto_gguf_find_key(g, "general.architecture")), "whisper");
    assert_int_equal(sotto_gguf_get_val_u32(g, sotto_gguf_find_key(g, "sotto.u32")), 0x01020304);
    const struct sotto_tensor * w = sotto_get_tensor(tensors, "w");
    assert_true(w->ne[0] == 3 && w->ne[1] == 2);
    for (int i = 0; i < 6; i++)
        assert_true(((const float *)w->data)[i] == (float)i);
    size_t size;
    assert_int_equal(sotto_gguf_set_tensor_data(g, "w", w->data), SOTTO_OK);
    uint8_t * little = gguf_written(g, &size);
    assert_int_equal(size, big.size);
    assert_memory_equal(little + 4, "\3\0\0\0\1\0\0\0", 8);
    assert_int_equal(sotto_gguf_set_big_endian(g, true), SOTTO_OK);
    uint8_t * again = gguf_written(g, &size);
    assert_int_equal(size, big.size);
    assert_memory_equal(again, big.data, size);
    uint8_t meta[160];
    assert_int_equal(sotto_gguf_get_meta_size(g), sizeof(meta));
    assert_int_equal(sotto_gguf_get_meta_data(g, meta), SOTTO_OK);
    assert_memory_equal(meta, big.data, sizeof(meta));
    assert_int_equal(sotto_gguf_set_big_endian(g, false), SOTTO_OK);
    free(again);
    again = gguf_written(g, &size);
    assert_memory_equal(again, little, size);
    free(again);
    free(little);
    sotto_gguf_free(g);
    sotto_free(tensors);
}

/* A file in this order is not touched by the flag. */
static void this_order_is_left_alone(void ** state) {
    (void)state;
    struct bytes b = gguf_example_bytes();
    struct sotto_gguf_context * g = open_swapped(&b, NULL);
    assert_non_null(g);
    assert_false(sotto_gguf_is_swapped(g));
    sotto_gguf_free(g);
    free(b.data);
    assert_int_equal(sotto_gguf_set_big_endian(NULL, true), SOTTO_E_NULLARG);
    assert_false(sotto_gguf_is_swapped(NULL));
    assert_false(sotto_gguf_is_mapped(NULL));
}

static void versions_of_the_other_order(void ** state) {
    (void)state;
    static const struct {
        const char * bytes;
        enum sotto_status status;
    } rows[] = { { "\0\0\0\1", SOTTO_E_GGUF_VERSION_OLD },
                 { "\0\0\0\2", SOTTO_E_GGUF_VERSION_OLD },
                 { "\0\0\0\4", SOTTO_E_GGUF_VERSION_NEW },
                 { "\0\0\1\0", SOTTO_E_GGUF_VERSION_NEW },
                 { "\0\0\0\0", SOTTO_E_GGUF_VERSION_ZERO } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memcpy(big.data + 4, rows[i].bytes, 4);
        struct gguf_outcome found = gguf_try_open(GGUF_PATH, &big, false, SOTTO_GGUF_OPEN_SWAP);
        assert_int_equal(found.status, rows[i].status);
        assert_int_equal(found.pos, 4);
    }
    memcpy(big.data + 4, "\0\0\0\3", 4);
}

/* ---- tensors ---- */

/* A file of one tensor of each type with two blocks of it, in either order. */
static const char * file_of_types(const int * types, int n, bool big_endian, const char * name) {
    static uint8_t data[2 * 292];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 31 + 5);
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 15, .no_alloc = true });
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    for (int i = 0; i < n; i++) {
        enum sotto_type type = (enum sotto_type)types[i];
        struct sotto_tensor * t = sotto_new_tensor_1d(ctx, type, 2 * sotto_blck_size(type));
        sotto_set_name(t, sotto_type_name(type));
        assert_int_equal(sotto_gguf_add_tensor(g, t), SOTTO_OK);
        assert_int_equal(sotto_gguf_set_tensor_data(g, t->name, data), SOTTO_OK);
    }
    assert_int_equal(sotto_gguf_set_big_endian(g, big_endian), SOTTO_OK);
    const char * path = temp_path(name);
    assert_true(sotto_gguf_write_to_file(g, path, false));
    sotto_gguf_free(g);
    sotto_free(ctx);
    return path;
}

static const int WITH_FORM[] = { 0,  1,  2,  3,  8,  9,  10, 11, 12, 13, 14, 15, 20,
                                 24, 25, 26, 27, 28, 30, 34, 35, 39, 40, 41, 42 };
enum { N_WITH_FORM = sizeof(WITH_FORM) / sizeof(WITH_FORM[0]) };

/* Every piece of every tensor, wherever it begins and ends, is the same from a file of either order. */
static void pieces_of_any_size(void ** state) {
    (void)state;
    struct sotto_gguf_context * g[2];
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_SWAP;
    for (int i = 0; i < 2; i++) {
        const char * path = file_of_types(WITH_FORM, N_WITH_FORM, i == 1, "types.gguf");
        g[i] = sotto_gguf_open(path, &params);
        assert_non_null(g[i]);
        assert_int_equal(sotto_gguf_is_swapped(g[i]), i == 1);
        unlink(path);
    }
    for (int64_t id = 0; id < N_WITH_FORM; id++) {
        size_t size = sotto_gguf_get_tensor_size(g[0], id);
        for (size_t at = 0; at < size; at += 1 + size / 40) {
            for (size_t n = 0; n <= size - at; n += 1 + size / 25) {
                uint8_t a[2 * 292];
                uint8_t b[2 * 292];
                assert_int_equal(sotto_gguf_read_tensor(g[0], id, a, at, n), SOTTO_OK);
                assert_int_equal(sotto_gguf_read_tensor(g[1], id, b, at, n), SOTTO_OK);
                assert_memory_equal(a, b, n);
            }
        }
    }
    sotto_gguf_free(g[0]);
    sotto_gguf_free(g[1]);
}

static void a_swapped_file_that_is_cut(void ** state) {
    (void)state;
    const int type = SOTTO_TYPE_Q8_K;
    const char * path = file_of_types(&type, 1, true, "cut.gguf");
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_SWAP;
    struct sotto_gguf_context * g = sotto_gguf_open(path, &params);
    assert_non_null(g);
    assert_int_equal(truncate(path, (off_t)(sotto_gguf_get_data_offset(g) + 300)), 0);
    uint8_t bytes[584];
    assert_int_equal(sotto_gguf_read_tensor(g, 0, bytes, 0, 292), SOTTO_OK);
    assert_int_equal(sotto_gguf_read_tensor(g, 0, bytes, 0, 584), SOTTO_E_GGUF_TRUNCATED);
    assert_int_equal(sotto_gguf_read_tensor(g, 0, bytes, 293, 2), SOTTO_E_GGUF_TRUNCATED);
    assert_int_equal(sotto_gguf_last_error_pos(), sotto_gguf_get_data_offset(g) + 300);
    sotto_gguf_free(g);
    unlink(path);
}

/* Some types have no form in the other order: their data is refused, by name and place, and their metadata is not. */
static void types_without_a_form(void ** state) {
    (void)state;
    static const int types[] = { 6, 7, 16, 17, 18, 19, 21, 22, 23, 29 };
    for (int i = 0; i < 10; i++) {
        const int i8[] = { SOTTO_TYPE_I8, types[i] };
        const char * path = file_of_types(i8, 2, false, "never.gguf");
        struct sotto_gguf_context * g = sotto_gguf_open(path, NULL);
        unlink(path);
        assert_int_equal(sotto_gguf_set_big_endian(g, true), SOTTO_OK);
        assert_false(sotto_gguf_write_to_file(g, path, true));
        assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_ENDIAN);
        assert_non_null(strstr(sotto_last_error_text(), sotto_type_name((enum sotto_type)types[i])));
        assert_int_equal(access(path, F_OK), -1);
        sotto_gguf_free(g);
    }
}

/* The type of a tensor of 32 bytes is changed behind the writer's back: q5_0 has 22, padded to as many. */
static void such_types_in_a_file(void ** state) {
    (void)state;
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 12, .no_alloc = true });
    struct sotto_tensor * t = sotto_new_tensor_1d(ctx, SOTTO_TYPE_I8, 32);
    static const uint8_t data[32] = { 1, 2, 3 };
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    sotto_set_name(t, "good");
    assert_int_equal(sotto_gguf_add_tensor(g, t), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_tensor_data(g, "good", data), SOTTO_OK);
    sotto_set_name(t, "odd one");
    assert_int_equal(sotto_gguf_add_tensor(g, t), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_tensor_data(g, "odd one", data), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_big_endian(g, true), SOTTO_OK);
    struct bytes b;
    b.data = gguf_written(g, &b.size);
    sotto_gguf_free(g);
    sotto_free(ctx);
    const size_t type_at = 24 + (8 + 4 + 4 + 8 + 4 + 8) + 8 + 7 + 4 + 8;
    const uint64_t at = 128 + 32; /* its data */
    assert_memory_equal(b.data + type_at, "\0\0\0\x18", 4);
    b.data[type_at + 3] = SOTTO_TYPE_Q5_0;
    assert_int_equal(gguf_try_open(GGUF_PATH, &b, false, SOTTO_GGUF_OPEN_SWAP).status, SOTTO_OK);
    struct gguf_outcome found = gguf_try_open(GGUF_PATH, &b, true, SOTTO_GGUF_OPEN_SWAP);
    assert_int_equal(found.status, SOTTO_E_GGUF_ENDIAN);
    assert_int_equal(found.pos, at);
    assert_non_null(strstr(sotto_last_error_text(), "'odd one'"));
    const char * path = temp_path("odd.gguf");
    write_bytes(path, b.data, b.size);
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_SWAP;
    g = sotto_gguf_open(path, &params);
    uint8_t piece[22];
    assert_int_equal(sotto_gguf_read_tensor(g, 1, piece, 0, 22), SOTTO_E_GGUF_ENDIAN);
    assert_int_equal(sotto_gguf_last_error_pos(), at);
    sotto_gguf_free(g);
    unlink(path);
    free(b.data);
}

/* ---- malformed ---- */

static void every_prefix_and_every_byte(void ** state) {
    (void)state;
    static const uint8_t values[] = { 0x00, 0x01, 0x7F, 0x80, 0xFF };
    struct bytes b = bytes_from_hex(known);
    for (b.size = 0; b.size < big.size; b.size++)
        assert_false(gguf_try_open(GGUF_PATH, &b, true, SOTTO_GGUF_OPEN_SWAP | SOTTO_GGUF_OPEN_MMAP).accepted);
    int accepted = 0;
    for (size_t at = 0; at < 160; at++) {
        for (size_t v = 0; v < sizeof(values); v++) {
            b.data[at] = values[v];
            struct gguf_outcome found = gguf_try_open(GGUF_BUFFER, &b, true, SOTTO_GGUF_OPEN_SWAP);
            struct gguf_outcome same = gguf_try_open(GGUF_PATH, &b, true, SOTTO_GGUF_OPEN_SWAP);
            assert_int_equal(found.status, same.status);
            assert_true(found.pos == same.pos || found.accepted);
            assert_true(found.digest == same.digest);
            accepted += found.accepted;
        }
        b.data[at] = big.data[at];
    }
    free(b.data);
    assert_in_range(accepted, 50, 4 * 160);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_unless_allowed),      cmocka_unit_test(the_known_answer),
        cmocka_unit_test(this_order_is_left_alone),    cmocka_unit_test(versions_of_the_other_order),
        cmocka_unit_test(pieces_of_any_size),          cmocka_unit_test(a_swapped_file_that_is_cut),
        cmocka_unit_test(types_without_a_form),        cmocka_unit_test(such_types_in_a_file),
        cmocka_unit_test(every_prefix_and_every_byte),
    };
    return cmocka_run_group_tests(tests, make_big, free_big);
}
