/* SPDX-License-Identifier: MIT */
/* Read and write again. Alone it does so with files it made; test_gguf_peer.py uses it as a tool:
 *
 *     test_gguf_roundtrip copy IN OUT ORDER              read with data, mapped or not, attach it, write
 *     test_gguf_roundtrip make OUT ORDER ALIGN TYPE...   every type of value, some tensors, two rows of each type
 *
 * ORDER is "little" or "big". Files are read in either. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "counting_allocator.h"
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

static bool copy(const char * in, const char * out, bool big) {
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.ctx = &tensors;
    params.flags = SOTTO_GGUF_OPEN_SWAP | SOTTO_GGUF_OPEN_MMAP;
    struct sotto_gguf_context * gguf = sotto_gguf_open(in, &params);
    bool good = gguf != NULL && attach(gguf, tensors) && sotto_gguf_set_big_endian(gguf, big) == SOTTO_OK &&
                sotto_gguf_write_to_file(gguf, out, false);
    if (!good)
        fprintf(stderr, "%s\n", sotto_last_error_text());
    sotto_free(tensors);
    sotto_gguf_free(gguf);
    return good;
}

/* The longest key there may be, and a string of a million bytes. */
static void set_long_values(struct sotto_gguf_context * g) {
    enum { KEY = 65535, VALUE = 1000000 };
    char * text = malloc(VALUE + 1);
    assert_non_null(text);
    memset(text, 'k', KEY);
    text[KEY] = 0;
    sotto_gguf_set_val_u16(g, text, 7);
    memset(text, 'v', VALUE);
    text[VALUE] = 0;
    sotto_gguf_set_val_str(g, "c.long", text);
    free(text);
}

static void set_values(struct sotto_gguf_context * g, uint32_t alignment) {
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
    set_long_values(g);
    sotto_gguf_set_val_u32(g, "general.alignment", alignment);
}

static void add(struct sotto_gguf_context * g, struct sotto_tensor * tensor, const char * name, const void * data) {
    sotto_set_name(tensor, name);
    sotto_gguf_add_tensor(g, tensor);
    sotto_gguf_set_tensor_data(g, name, data);
}

/* Two rows of two blocks of a type, filled with bytes that depend on their place and the type; the name is as long as
 * one may be. The file is small enough to keep the data until the end. */
static void add_type(struct sotto_gguf_context * g, struct sotto_context * ctx, int type) {
    static uint8_t bytes[SOTTO_TYPE_COUNT][4 * 292];
    char name[SOTTO_MAX_NAME];
    struct sotto_tensor * t =
        sotto_new_tensor_2d(ctx, (enum sotto_type)type, 2 * sotto_blck_size((enum sotto_type)type), 2);
    if (t == NULL)
        return;
    for (size_t i = 0; i < sotto_nbytes(t); i++)
        bytes[type][i] = (uint8_t)(i * 7 + (size_t)type * 13);
    snprintf(name, sizeof(name), "%063d", type);
    add(g, t, name, bytes[type]);
}

static bool make(const char * out, bool big, uint32_t alignment, int n_types, char ** types) {
    static float f32[2 * 3 * 5];
    static sotto_fp16_t f16[7];
    static int64_t i64[2] = { -1, INT64_MAX };
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16, .no_alloc = true });
    set_values(g, alignment);
    for (int i = 0; i < 30; i++)
        f32[i] = (float)i / 8;
    for (int i = 0; i < 7; i++)
        f16[i] = sotto_fp32_to_fp16((float)i - 3);
    add(g, sotto_new_tensor_3d(ctx, SOTTO_TYPE_F32, 2, 3, 5), "t.0", f32);
    add(g, sotto_new_tensor_1d(ctx, SOTTO_TYPE_F16, 7), "t.1", f16);
    add(g, sotto_new_tensor_1d(ctx, SOTTO_TYPE_I64, 2), "t.2", i64);
    for (int i = 0; i < n_types; i++)
        add_type(g, ctx, atoi(types[i]));
    sotto_gguf_set_big_endian(g, big);
    bool good = sotto_last_error() == SOTTO_OK && sotto_gguf_write_to_file(g, out, false);
    if (!good)
        fprintf(stderr, "%s\n", sotto_last_error_text());
    sotto_free(ctx);
    sotto_gguf_free(g);
    return good;
}

/* From either order to either order. */
static void a_copy_is_the_same(void ** state) {
    (void)state;
    static char * types[] = { "0", "1", "2", "15", "30", "40" };
    char files[4][512];
    uint8_t * bytes[4];
    size_t sizes[4];
    for (int i = 0; i < 4; i++)
        snprintf(files[i], sizeof(files[i]), "%s", temp_path((const char[]){ (char)('a' + i), 0 }));
    assert_true(make(files[0], false, 64, 6, types));
    assert_true(copy(files[0], files[1], false));
    assert_true(copy(files[0], files[2], true));
    assert_true(copy(files[2], files[3], false));
    for (int i = 0; i < 4; i++) {
        bytes[i] = read_bytes(files[i], &sizes[i]);
        assert_int_equal(sizes[i], sizes[0]);
        assert_int_equal(unlink(files[i]), 0);
    }
    assert_int_equal(sizes[0] % 64, 0);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    assert_memory_equal(bytes[0], bytes[3], sizes[0]);
    assert_memory_not_equal(bytes[0], bytes[2], sizes[0]);
    for (int i = 0; i < 4; i++)
        free(bytes[i]);
}

int main(int argc, char ** argv) {
    if (argc == 5 && strcmp(argv[1], "copy") == 0)
        return copy(argv[2], argv[3], strcmp(argv[4], "big") == 0) ? 0 : 1;
    if (argc >= 5 && strcmp(argv[1], "make") == 0)
        return make(argv[2], strcmp(argv[3], "big") == 0, (uint32_t)atoi(argv[4]), argc - 5, argv + 5) ? 0 : 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_copy_is_the_same) };
    return cmocka_run_group_tests(tests, counting_allocator_begin, counting_allocator_end);
}
