/* SPDX-License-Identifier: MIT */
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

/* -16, -15, ... 15 in q8_0: scale 16/127 as f16, then the values */
static const uint8_t q_data[34] = { 0x08, 0x30, 0x81, 0x89, 0x91, 0x99, 0xa1, 0xa9, 0xb1, 0xb9, 0xc0, 0xc8,
                                    0xd0, 0xd8, 0xe0, 0xe8, 0xf0, 0xf8, 0x00, 0x08, 0x10, 0x18, 0x20, 0x28,
                                    0x30, 0x38, 0x40, 0x47, 0x4f, 0x57, 0x5f, 0x67, 0x6f, 0x77 };
static const float w_data[6] = { 0, 1, 2, 3, 4, 5 };

static bool add(struct sotto_gguf_context * gguf, struct sotto_context * ctx, const char * name, enum sotto_type type,
                int64_t ne0, int64_t ne1, const void * data) {
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, type, ne0, ne1);
    if (t == NULL)
        return false;
    sotto_set_name(t, name);
    return sotto_gguf_add_tensor(gguf, t) == SOTTO_OK && sotto_gguf_set_tensor_data(gguf, name, data) == SOTTO_OK;
}

static bool fill(struct sotto_gguf_context * gguf, struct sotto_context * ctx) {
    const char * names[] = { "a", "", "bc" };
    const int32_t ids[] = { 1, -2, 3 };
    return sotto_gguf_set_val_str(gguf, "general.architecture", "whisper") == SOTTO_OK &&
           sotto_gguf_set_val_u32(gguf, "sotto.u32", 0x01020304) == SOTTO_OK &&
           sotto_gguf_set_val_bool(gguf, "sotto.flag", true) == SOTTO_OK &&
           sotto_gguf_set_arr_str(gguf, "sotto.names", names, 3) == SOTTO_OK &&
           sotto_gguf_set_arr_data(gguf, "sotto.ids", SOTTO_GGUF_TYPE_INT32, ids, 3) == SOTTO_OK &&
           sotto_gguf_set_val_f32(gguf, "sotto.f", 1.5f) == SOTTO_OK &&
           add(gguf, ctx, "w", SOTTO_TYPE_F32, 3, 2, w_data) && add(gguf, ctx, "q", SOTTO_TYPE_Q8_0, 32, 1, q_data);
}

struct sotto_gguf_context * gguf_example_from(const struct sotto_allocator * allocator) {
    struct sotto_init_params params = { .mem_size = 2 * sotto_tensor_overhead(), .no_alloc = true };
    struct sotto_context * ctx = sotto_init_ext(params, allocator);
    struct sotto_gguf_context * gguf = sotto_gguf_init_empty_ext(allocator);
    if (ctx == NULL || gguf == NULL || !fill(gguf, ctx)) {
        sotto_gguf_free(gguf);
        gguf = NULL;
    }
    sotto_free(ctx);
    return gguf;
}

struct sotto_gguf_context * gguf_example(void) {
    struct sotto_gguf_context * gguf = gguf_example_from(NULL);
    assert_non_null(gguf);
    return gguf;
}

uint8_t * gguf_written(const struct sotto_gguf_context * ctx, size_t * size) {
    const char * path = temp_path("written.gguf");
    assert_true(sotto_gguf_write_to_file(ctx, path, false));
    uint8_t * bytes = read_bytes(path, size);
    assert_non_null(bytes);
    unlink(path);
    return bytes;
}

const char * temp_path(const char * name) {
    static char paths[8][512];
    static int next;
    const char * folder = getenv("TMPDIR");
    char * path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/sotto-test-%ld-%s", folder != NULL && folder[0] != 0 ? folder : "/tmp",
             (long)getpid(), name);
    return path;
}

void write_bytes(const char * path, const void * bytes, size_t size) {
    FILE * file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

uint8_t * read_bytes(const char * path, size_t * size) {
    FILE * file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t * bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}
