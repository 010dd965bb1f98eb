/* SPDX-License-Identifier: MIT */
/* Tensors: adding them, where their data comes from, reading them piece by piece; files and how they are replaced. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "gguf_example.h"
#include "sotto/sotto.h"

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

static void what_add_tensor_refuses(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16, .no_alloc = true });
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 4, 3);
    sotto_set_name(t, "w");
    FAILS(SOTTO_E_GGUF_TENSOR_DUPLICATE, sotto_gguf_add_tensor(g, t));
    sotto_set_name(t, "new");
    struct sotto_tensor odd = *t;
    memset(odd.name, 'n', sizeof(odd.name));
    FAILS(SOTTO_E_GGUF_TENSOR_NAME_LENGTH, sotto_gguf_add_tensor(g, &odd));
    odd = *t;
    odd.nb[1] *= 2;
    FAILS(SOTTO_E_GGUF_TENSOR_LAYOUT, sotto_gguf_add_tensor(g, &odd));
    odd = *t;
    odd.type = SOTTO_TYPE_Q8_0;
    FAILS(SOTTO_E_GGUF_TENSOR_BLOCK, sotto_gguf_add_tensor(g, &odd));
    odd.type = SOTTO_TYPE_RETIRED_4;
    FAILS(SOTTO_E_GGUF_TENSOR_TYPE_RETIRED, sotto_gguf_add_tensor(g, &odd));
    odd.type = SOTTO_TYPE_COUNT;
    FAILS(SOTTO_E_GGUF_TENSOR_TYPE, sotto_gguf_add_tensor(g, &odd));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_add_tensor(g, NULL));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_tensor_data(g, NULL, t));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_set_tensor_type(NULL, "w", SOTTO_TYPE_F16));
    FAILS(SOTTO_E_GGUF_NOT_FOUND, sotto_gguf_set_tensor_reader(g, "new", NULL, NULL));
    FAILS(SOTTO_E_GGUF_TENSOR_TYPE_RETIRED, sotto_gguf_set_tensor_type(g, "w", SOTTO_TYPE_RETIRED_4));
    assert_non_null(strstr(sotto_last_error_text(), "Q4_2"));
    FAILS(SOTTO_E_GGUF_TENSOR_TYPE, sotto_gguf_set_tensor_type(g, "w", (enum sotto_type)(-1)));
    FAILS(SOTTO_E_GGUF_NOT_FOUND, sotto_gguf_set_tensor_data(g, "new", t));
    FAILS(SOTTO_E_GGUF_NOT_FOUND, sotto_gguf_set_tensor_type(g, "new", SOTTO_TYPE_F16));
    FAILS(SOTTO_E_GGUF_TENSOR_BLOCK, sotto_gguf_set_tensor_type(g, "w", SOTTO_TYPE_Q4_0));
    assert_int_equal(sotto_gguf_get_tensor_type(g, 0), SOTTO_TYPE_F32);
    assert_int_equal(sotto_gguf_set_tensor_type(g, "w", SOTTO_TYPE_F64), SOTTO_OK);
    assert_int_equal(sotto_gguf_get_tensor_size(g, 0), 48);
    assert_int_equal(sotto_gguf_get_tensor_offset(g, 1), 64);
    assert_int_equal(sotto_gguf_get_n_tensors(g), 2);
    assert_int_equal(sotto_gguf_add_tensor(g, t), SOTTO_OK);
    REFUSED(SOTTO_E_GGUF_TENSOR_NODATA, assert_false(sotto_gguf_write_to_file(g, temp_path("never.gguf"), false)));
    sotto_free(ctx);
    sotto_gguf_free(g);
}

/* Tensors of almost 2^62 bytes: the fifth passes 2^64, and so would a wider alignment for four of them. */
static void tensors_that_are_too_large_together(void ** state) {
    (void)state;
    if (sizeof(size_t) < 8)
        skip(); /* no tensor is that large there */
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    const int64_t n = ((int64_t)1 << 62) - 64;
    struct sotto_tensor t = { .type = SOTTO_TYPE_I8, .ne = { n, 1, 1, 1 } };
    t.nb[0] = 1;
    t.nb[1] = t.nb[2] = t.nb[3] = (size_t)n;
    for (int i = 0; i < 4; i++) {
        t.name[0] = (char)('a' + i);
        assert_int_equal(sotto_gguf_add_tensor(g, &t), SOTTO_OK);
    }
    t.name[0] = 'e';
    FAILS(SOTTO_E_GGUF_DATA_TOTAL, sotto_gguf_add_tensor(g, &t));
    assert_int_equal(sotto_gguf_get_n_tensors(g), 4);
    FAILS(SOTTO_E_GGUF_DATA_TOTAL, sotto_gguf_set_val_u32(g, "general.alignment", 1u << 24));
    assert_int_equal(sotto_gguf_get_alignment(g), 32);
    assert_int_equal(sotto_gguf_get_n_kv(g), 0);
    FAILS(SOTTO_E_GGUF_DATA_TOTAL, sotto_gguf_set_tensor_type(g, "a", SOTTO_TYPE_I16));
    assert_int_equal(sotto_gguf_get_tensor_type(g, 0), SOTTO_TYPE_I8);
    assert_int_equal(sotto_gguf_get_tensor_offset(g, 1), n);
    sotto_gguf_free(g);
}

/* Axes that are 1 at the end are not written, but for the first; a tensor without elements has no bytes. */
static void axes_as_they_are_written(void ** state) {
    (void)state;
    static const struct {
        int64_t ne[4];
        int n_dims;
        size_t size;
    } rows[] = { { { 1, 1, 1, 1 }, 1, 4 },  { { 1, 1, 1, 5 }, 4, 20 }, { { 2, 3, 1, 1 }, 2, 24 },
                 { { 2, 1, 3, 1 }, 3, 24 }, { { 0, 1, 1, 1 }, 1, 0 },  { { 5, 0, 1, 1 }, 2, 0 },
                 { { 5, 5, 0, 1 }, 3, 0 },  { { 5, 5, 5, 0 }, 4, 0 },  { { 7, 1, 1, 1 }, 1, 28 },
                 { { 5, 0, 5, 2 }, 4, 0 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const float data[7] = { 0 };
        struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 12, .no_alloc = true });
        struct sotto_gguf_context * g = sotto_gguf_init_empty();
        struct sotto_tensor * t = sotto_new_tensor(ctx, SOTTO_TYPE_F32, 4, rows[i].ne);
        sotto_set_name(t, "t");
        assert_int_equal(sotto_gguf_add_tensor(g, t), SOTTO_OK);
        assert_int_equal(sotto_gguf_set_tensor_data(g, "t", data), SOTTO_OK);
        assert_int_equal(sotto_gguf_get_tensor_size(g, 0), rows[i].size);
        size_t size;
        uint8_t * bytes = gguf_written(g, &size);
        assert_int_equal(bytes[24 + 8 + 1], rows[i].n_dims);
        struct sotto_gguf_context * r = sotto_gguf_open_buffer(bytes, size, NULL);
        assert_non_null(r);
        assert_memory_equal(sotto_gguf_get_tensor_ne(r, 0), rows[i].ne, sizeof(rows[i].ne));
        assert_int_equal(sotto_gguf_get_tensor_size(r, 0), rows[i].size);
        sotto_gguf_free(r);
        free(bytes);
        sotto_gguf_free(g);
        sotto_free(ctx);
    }
}

static int n_pieces;

static enum sotto_status count_up(void * user_data, int64_t id, void * dst, size_t offset, size_t size) {
    if (user_data != NULL && offset > 1000000)
        return *(enum sotto_status *)user_data;
    n_pieces++;
    assert_int_equal(id, 2);
    assert_int_equal(offset % 4000, 0);
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)dst)[i] = (uint8_t)((offset + i) * 7 >> 3);
    return SOTTO_OK;
}

/* A tensor of 4 MB whose data is made while it is written, and one from a backend's buffer. */
static void data_from_elsewhere(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16, .no_alloc = true });
    struct sotto_tensor * made = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 1000, 1001);
    sotto_set_name(made, "made");
    assert_int_equal(sotto_gguf_add_tensor(g, made), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_tensor_reader(g, "made", count_up, NULL), SOTTO_OK);
    const char * path = temp_path("made.gguf");
    n_pieces = 0;
    assert_true(sotto_gguf_write_to_file(g, path, false));
    assert_int_equal(n_pieces, 4); /* of a megabyte at most, whole rows */
    struct sotto_gguf_context * r = sotto_gguf_open(path, NULL);
    assert_non_null(r);
    uint8_t * bytes = malloc(4004000);
    assert_int_equal(sotto_gguf_read_tensor(r, 2, bytes, 0, 4004000), SOTTO_OK);
    int wrong = 0;
    for (size_t i = 0; i < 4004000; i++)
        wrong += bytes[i] != (uint8_t)(i * 7 >> 3);
    assert_int_equal(wrong, 0);
    free(bytes);
    sotto_gguf_free(r);
    enum sotto_status stop = SOTTO_E_ABORTED;
    size_t before;
    uint8_t * old = read_bytes(path, &before);
    sotto_gguf_set_tensor_reader(g, "made", count_up, &stop);
    assert_false(sotto_gguf_write_to_file(g, path, false));
    size_t after;
    uint8_t * kept = read_bytes(path, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, kept, before);
    unlink(path);
    free(old);
    free(kept);
    sotto_free(ctx);
    sotto_gguf_free(g);
}

static void data_from_a_buffer(void ** state) {
    (void)state;
    sotto_backend_t cpu = sotto_backend_cpu_init();
    assert_non_null(cpu);
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 16, .no_alloc = true });
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 3, 2);
    sotto_set_name(t, "w");
    sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors(ctx, cpu);
    assert_non_null(buffer);
    const float values[] = { 0, 1, 2, 3, 4, 5 };
    assert_int_equal(sotto_backend_tensor_set(t, values, 0, sizeof(values)), SOTTO_OK);
    struct sotto_gguf_context * g = sotto_gguf_init_empty();
    assert_int_equal(sotto_gguf_add_tensor(g, t), SOTTO_OK);
    size_t size;
    uint8_t * bytes = gguf_written(g, &size);
    assert_memory_equal(bytes + sotto_gguf_get_meta_size(g), values, sizeof(values));
    free(bytes);
    assert_int_equal(sotto_gguf_set_big_endian(g, true), SOTTO_OK);
    bytes = gguf_written(g, &size);
    assert_memory_equal(bytes + sotto_gguf_get_meta_size(g), "\0\0\0\0\x3f\x80\0\0\x40\0\0\0", 12);
    free(bytes);
    assert_int_equal(sotto_gguf_set_tensor_type(g, "w", SOTTO_TYPE_F16), SOTTO_OK);
    REFUSED(SOTTO_E_GGUF_TENSOR_NODATA, assert_false(sotto_gguf_write_to_file(g, temp_path("never.gguf"), false)));
    sotto_gguf_free(g);
    sotto_backend_buffer_free(buffer);
    sotto_free(ctx);
    sotto_backend_free(cpu);
}

static void tensors_piece_by_piece(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    size_t size;
    uint8_t * bytes = gguf_written(g, &size);
    sotto_gguf_free(g);
    const char * path = temp_path("pieces.gguf");
    FILE * file = fopen(path, "wb");
    fputs("rubbish", file);
    fwrite(bytes, 1, size, file);
    fclose(file);
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.start = 7;
    g = sotto_gguf_open(path, &params);
    assert_non_null(g);
    assert_int_equal(sotto_gguf_get_data_offset(g), 7 + 0x160);
    uint8_t piece[34];
    for (size_t at = 0; at < 34; at += 5) {
        size_t n = 34 - at < 5 ? 34 - at : 5;
        assert_int_equal(sotto_gguf_read_tensor(g, 1, piece + at, at, n), SOTTO_OK);
    }
    assert_memory_equal(piece, bytes + 0x180, 34);
    FAILS(SOTTO_E_BOUNDS, sotto_gguf_read_tensor(g, 1, piece, 30, 5));
    FAILS(SOTTO_E_BOUNDS, sotto_gguf_read_tensor(g, 1, piece, SIZE_MAX, 2));
    FAILS(SOTTO_E_PARAM, sotto_gguf_read_tensor(g, 2, piece, 0, 1));
    FAILS(SOTTO_E_PARAM, sotto_gguf_read_tensor(g, -1, piece, 0, 1));
    FAILS(SOTTO_E_NULLARG, sotto_gguf_read_tensor(g, 0, NULL, 0, 1));
    struct sotto_tensor late = { .type = SOTTO_TYPE_I8, .ne = { 1, 1, 1, 1 }, .nb = { 1, 1, 1, 1 }, .name = "late" };
    assert_int_equal(sotto_gguf_add_tensor(g, &late), SOTTO_OK);
    FAILS(SOTTO_E_STATE, sotto_gguf_read_tensor(g, 2, piece, 0, 1));
    assert_int_equal(truncate(path, 7 + 0x190), 0);
    FAILS(SOTTO_E_GGUF_TRUNCATED, sotto_gguf_read_tensor(g, 1, piece, 0, 34));
    assert_int_equal(sotto_gguf_last_error_pos(), 7 + 0x190);
    sotto_gguf_free(g);
    g = sotto_gguf_open_buffer(bytes, size, NULL);
    FAILS(SOTTO_E_STATE, sotto_gguf_read_tensor(g, 1, piece, 0, 1));
    sotto_gguf_free(g);
    unlink(path);
    free(bytes);
}

static void * look_around(void * gguf) {
    const struct sotto_gguf_context * g = gguf;
    size_t wrong = 0;
    for (int i = 0; i < 500; i++) {
        uint8_t piece[34];
        wrong += sotto_gguf_read_tensor(g, 1, piece, 0, sizeof(piece)) != SOTTO_OK || piece[33] != 0x77;
        wrong += sotto_gguf_find_key(g, "sotto.f") != 5 || sotto_gguf_get_val_f32(g, 5) != 1.5f;
        wrong += sotto_gguf_find_tensor(g, "q") != 1 || strcmp(sotto_gguf_get_arr_str(g, 3, 2), "bc") != 0;
        wrong += sotto_last_error() != SOTTO_OK; /* each thread has its own */
        sotto_gguf_get_key(g, 6);
        wrong += sotto_last_error() != SOTTO_E_PARAM;
        sotto_clear_last_error();
    }
    return wrong == 0 ? gguf : NULL;
}

/* A context that nobody changes may be read by several threads at once. */
static void several_threads(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    const char * path = temp_path("threads.gguf");
    assert_true(sotto_gguf_write_to_file(g, path, false));
    sotto_gguf_free(g);
    g = sotto_gguf_open(path, NULL);
    assert_non_null(g);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_around, g), 0);
    for (int i = 0; i < 4; i++) {
        void * good;
        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_ptr_equal(good, g);
    }
    sotto_gguf_free(g);
    unlink(path);
}

static void flags_and_params(void ** state) {
    (void)state;
    struct sotto_gguf_open_params params = { 0 };
    params.flags = 64;
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_open("/dev/null", &params)));
    params.flags = 0;
    params.size = 4;
    REFUSED(SOTTO_E_PARAM, assert_null(sotto_gguf_open("/dev/null", &params)));
    struct sotto_gguf_write_params write = { .size = sizeof(write), .flags = 8 };
    struct sotto_gguf_context * g = gguf_example();
    REFUSED(SOTTO_E_PARAM, assert_false(sotto_gguf_write(g, temp_path("x"), false, &write)));
    write.size = 4;
    REFUSED(SOTTO_E_PARAM, assert_false(sotto_gguf_write(g, temp_path("x"), false, &write)));
    FILE * reading = fopen("/dev/null", "rb");
    assert_non_null(reading);
    REFUSED(SOTTO_E_GGUF_IO_WRITE, assert_false(sotto_gguf_write_to_file_ptr(g, reading, false)));
    fclose(reading);
    REFUSED(SOTTO_E_NULLARG, assert_false(sotto_gguf_write(g, NULL, false, NULL)));
    REFUSED(SOTTO_E_NULLARG, assert_false(sotto_gguf_write_to_file_ptr(g, NULL, false)));
    REFUSED(SOTTO_E_NULLARG, assert_false(sotto_gguf_write_to_file(NULL, temp_path("x"), false)));
    sotto_gguf_free(g);
    g = sotto_gguf_init_empty();
    assert_int_equal(sotto_gguf_get_version(g), 3);
    assert_int_equal(sotto_gguf_get_data_offset(g), 0);
    assert_int_equal(sotto_gguf_get_meta_size(g), 32);
    sotto_gguf_free(g);
}

static void replacing_files(void ** state) {
    (void)state;
    struct sotto_gguf_context * g = gguf_example();
    const char * path = temp_path("target.gguf");
    const char * link = temp_path("link.gguf");
    write_bytes(path, "old", 3);
    assert_int_equal(chmod(path, 0600), 0);
    unlink(link);
    assert_int_equal(symlink(path, link), 0);
    struct sotto_gguf_write_params params = { sizeof(params), SOTTO_GGUF_WRITE_FSYNC | SOTTO_GGUF_WRITE_KEEP_MODE, 0 };
    assert_true(sotto_gguf_write(g, link, false, &params));
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, GGUF_EXAMPLE_SIZE);
    assert_int_equal(st.st_mode & 0777, 0600);
    params.flags = SOTTO_GGUF_WRITE_NO_ATOMIC;
    assert_true(sotto_gguf_write(g, path, true, &params));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0x160);
    REFUSED(SOTTO_E_GGUF_IO_OPEN, assert_false(sotto_gguf_write_to_file(g, "/nonexistent/x.gguf", false)));
    REFUSED(SOTTO_E_GGUF_IO_OPEN, assert_false(sotto_gguf_write_to_file(g, "/", false)));
    REFUSED(SOTTO_E_GGUF_IO_WRITE, assert_false(sotto_gguf_write_to_file(g, "/dev/full", false)));
    assert_int_equal(sotto_gguf_last_error_pos(), GGUF_EXAMPLE_SIZE);
    FILE * full = fopen("/dev/full", "wb");
    REFUSED(SOTTO_E_GGUF_IO_WRITE, assert_false(sotto_gguf_write_to_file_ptr(g, full, false)));
    fclose(full);
    unlink(link);
    unlink(path);
    sotto_gguf_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_that_are_too_large_together),
        cmocka_unit_test(axes_as_they_are_written),
        cmocka_unit_test(what_add_tensor_refuses),
        cmocka_unit_test(data_from_elsewhere),
        cmocka_unit_test(data_from_a_buffer),
        cmocka_unit_test(tensors_piece_by_piece),
        cmocka_unit_test(several_threads),
        cmocka_unit_test(flags_and_params),
        cmocka_unit_test(replacing_files),
    };
    return cmocka_run_group_tests(tests, counting_allocator_begin, counting_allocator_end);
}
