/* SPDX-License-Identifier: MIT */
/* Read and write again. Alone it does so with files it made; test_gguf_peer.py uses it as a tool:
 *
 *     test_gguf_roundtrip copy IN OUT     read with data, attach it, write
 *     test_gguf_roundtrip make OUT        every type of value and some tensors */
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

static bool attach(struct sotto_gguf_context * gguf, struct sotto_context * tensors) {
    for (int64_t i = 0; i < sotto_gguf_get_n_tensors(gguf); i++) {
        const char * name = sotto_gguf_get_tensor_name(gguf, i);
        const struct sotto_tensor * t = sotto_get_tensor(tensors, name);
        if (t == NULL || sotto_gguf_set_tensor_data(gguf, name, t->data) != SOTTO_OK)
            return false;
    }
    return true;
}

static bool copy(const char * in, const char * out) {
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_init_params params = { .ctx = &tensors };
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_file(in, params);
    bool good = gguf != NULL && attach(gguf, tensors) && sotto_gguf_write_to_file(gguf, out, false);
    if (!good)
        fprintf(stderr, "%s\n", sotto_last_error_text());
    sotto_gguf_free(gguf);
    sotto_free(tensors);
    return good;
}

static void set_values(struct sotto_gguf_context * g) {
    static const char * strings[] = { "", "one", "\xC3\xA9\xE4\xBD\xA0" };
    static const int8_t i8[] = { -128, 0, 127 };
    static const uint8_t flags[] = { 1, 0 };
    static const double f64[] = { 0.5, -1e300 };
    static const uint64_t u64[] = { 1, UINT64_MAX };
    sotto_gguf_set_val_str(g, "general.architecture", "test");
    sotto_gguf_set_val_u8(g, "a.u8", 200);
    sotto_gguf_set_val_i8(g, "a.i8", -100);
    sotto_gguf_set_val_u16(g, "a.u16", 65000);
    sotto_gguf_set_val_i16(g, "a.i16", -30000);
    sotto_gguf_set_val_u32(g, "a.u32", 4000000000u);
    sotto_gguf_set_val_i32(g, "a.i32", -2000000000);
    sotto_gguf_set_val_f32(g, "a.f32", 0.25f);
    sotto_gguf_set_val_bool(g, "a.bool", true);
    sotto_gguf_set_val_u64(g, "a.u64", UINT64_MAX);
    sotto_gguf_set_val_i64(g, "a.i64", INT64_MIN);
    sotto_gguf_set_val_f64(g, "a.f64", 1e-300);
    sotto_gguf_set_arr_str(g, "b.str", strings, 3);
    sotto_gguf_set_arr_data(g, "b.i8", SOTTO_GGUF_TYPE_INT8, i8, 3);
    sotto_gguf_set_arr_data(g, "b.bool", SOTTO_GGUF_TYPE_BOOL, flags, 2);
    sotto_gguf_set_arr_data(g, "b.f64", SOTTO_GGUF_TYPE_FLOAT64, f64, 2);
    sotto_gguf_set_arr_data(g, "b.u64", SOTTO_GGUF_TYPE_UINT64, u64, 2);
    sotto_gguf_set_val_u32(g, "general.alignment", 64);
}

static bool make(const char * out) {
    static float f32[2 * 3 * 5];
    static sotto_fp16_t f16[7];
    static int64_t i64[2] = { -1, INT64_MAX };
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16, .no_alloc = true });
    set_values(g);
    for (int i = 0; i < 30; i++)
        f32[i] = (float)i / 8;
    for (int i = 0; i < 7; i++)
        f16[i] = sotto_fp32_to_fp16((float)i - 3);
    struct sotto_tensor * tensors[] = { sotto_new_tensor_3d(ctx, SOTTO_TYPE_F32, 2, 3, 5),
                                        sotto_new_tensor_1d(ctx, SOTTO_TYPE_F16, 7),
                                        sotto_new_tensor_1d(ctx, SOTTO_TYPE_I64, 2) };
    const void * data[] = { f32, f16, i64 };
    for (int i = 0; i < 3; i++) {
        sotto_format_name(tensors[i], "t.%d", i);
        sotto_gguf_add_tensor(g, tensors[i]);
        sotto_gguf_set_tensor_data(g, tensors[i]->name, data[i]);
    }
    bool good = sotto_last_error() == SOTTO_OK && sotto_gguf_write_to_file(g, out, false);
    if (!good)
        fprintf(stderr, "%s\n", sotto_last_error_text());
    sotto_free(ctx);
    sotto_gguf_free(g);
    return good;
}

static void a_copy_is_the_same(void ** state) {
    (void)state;
    const char * in = temp_path("in.gguf");
    const char * out = temp_path("out.gguf");
    assert_true(make(in));
    assert_true(copy(in, out));
    size_t size;
    size_t copied;
    uint8_t * bytes = read_bytes(in, &size);
    uint8_t * again = read_bytes(out, &copied);
    assert_int_equal(size, copied);
    assert_int_equal(size % 64, 0);
    assert_memory_equal(bytes, again, size);
    free(bytes);
    free(again);
    unlink(in);
    unlink(out);
}

int main(int argc, char ** argv) {
    if (argc == 4 && strcmp(argv[1], "copy") == 0)
        return copy(argv[2], argv[3]) ? 0 : 1;
    if (argc == 3 && strcmp(argv[1], "make") == 0)
        return make(argv[2]) ? 0 : 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_copy_is_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
