/* SPDX-License-Identifier: MIT */
/* Edges that only mutations of the source led to (tools/mutate): the last size that fits, the error flag that a stream has
 * already, setters without a context, more names than an index can hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gguf/gguf_impl.h"
#include "gguf_example.h"
#include "gguf_ways.h"

static size_t put(uint8_t * out, size_t at, uint64_t x, size_t width) {
    for (size_t i = 0; i < width; i++)
        out[at + i] = (uint8_t)(x >> (8 * i));
    return at + width;
}

/* A file without data: alignment 1, tensors a, b, ... of bytes. */
static size_t tensors_of(const uint64_t * sizes, size_t n, uint8_t * out) {
    const char key[] = "general.alignment";
    size_t at = put(out, put(out, 0, 0x46554747, 4), 3, 4);
    at = put(out, put(out, put(out, at, n, 8), 1, 8), strlen(key), 8);
    memcpy(out + at, key, strlen(key));
    at = put(out, put(out, at + strlen(key), SOTTO_GGUF_TYPE_UINT32, 4), 1, 4);
    uint64_t offset = 0;
    for (size_t i = 0; i < n; i++) {
        at = put(out, put(out, put(out, at, 1, 8), 'a' + i, 1), 1, 4);
        at = put(out, put(out, put(out, at, sizes[i], 8), SOTTO_TYPE_I8, 4), offset, 8);
        offset += sizes[i];
    }
    return at;
}

static void the_largest_total(void ** state) {
    (void)state;
    const uint64_t sizes[] = { INT64_MAX, INT64_MAX, 1, 1 };
    uint8_t file[512];
    struct sotto_gguf_init_params init = { 0 };
    size_t n = tensors_of(sizes, 3, file);
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_buffer(file, n, init);
    if (sizeof(size_t) == 8) {
        assert_non_null(gguf);
        assert_true(sotto_gguf_get_data_size(gguf) == SIZE_MAX);
    } else {
        assert_int_equal(sotto_last_error(), SOTTO_E_LIMIT);
    }
    sotto_gguf_free(gguf);
    n = tensors_of(sizes, 4, file);
    assert_null(sotto_gguf_init_from_buffer(file, n, init));
    assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_DATA_TOTAL);
}

/* A write to a stream for reading sets its flag; reading is none the worse for it. */
static void a_stream_with_an_old_error(void ** state) {
    (void)state;
    struct bytes b = gguf_example_bytes();
    const char * path = temp_path("stream.gguf");
    write_bytes(path, b.data, b.size);
    free(b.data);
    FILE * file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fputc('x', file), EOF);
    assert_true(ferror(file) != 0);
    struct sotto_gguf_init_params init = { 0 };
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_file_ptr(file, init);
    assert_non_null(gguf);
    assert_int_equal(sotto_gguf_get_n_kv(gguf), 6);
    sotto_gguf_free(gguf);
    fclose(file);
    unlink(path);
}

static void setters_without_a_context(void ** state) {
    (void)state;
    const char * strings[] = { "a" };
    const int8_t number = 1;
    assert_int_equal(sotto_gguf_set_val_u8(NULL, "k", 1), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_val_f64(NULL, "k", 1), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_val_str(NULL, "k", "v"), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_val_str_n(NULL, "k", "v", 1), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_arr_data(NULL, "k", SOTTO_GGUF_TYPE_INT8, &number, 1), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_arr_data(NULL, "k", SOTTO_GGUF_TYPE_INT8, NULL, 0), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_arr_str(NULL, "k", strings, 1), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_arr_str(NULL, "k", NULL, 0), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_set_kv(NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gguf_remove_key(NULL, "k"), -1);
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

static void more_names_than_an_index_holds(void ** state) {
    (void)state;
    struct gguf_index index = { .n_slots = 0 };
    assert_int_equal(sotto_i_gguf_index_reserve(&index, NULL, (size_t)INT32_MAX + 1), SOTTO_E_LIMIT);
    assert_null(index.slots);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_total),
        cmocka_unit_test(a_stream_with_an_old_error),
        cmocka_unit_test(setters_without_a_context),
        cmocka_unit_test(more_names_than_an_index_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
