/* SPDX-License-Identifier: MIT */
/* Mapped files: the same tensors as read ones, and reading wherever mapping is not possible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "gguf_example.h"
#include "gguf_ways.h"

struct opened {
    struct sotto_gguf_context * gguf;
    struct sotto_context * tensors;
};

static struct opened open_with(const char * path, uint32_t flags, uint64_t start) {
    struct opened o = { NULL, NULL };
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = flags;
    params.start = start;
    params.ctx = &o.tensors;
    o.gguf = sotto_gguf_open(path, &params);
    return o;
}

static void close_both(struct opened o) {
    sotto_free(o.tensors);
    sotto_gguf_free(o.gguf);
}

/* Opened by mapping the data is what reading gives, tensor by tensor. Returns whether it was mapped. */
static bool same_as_read(const char * path, uint32_t flags, uint64_t start) {
    struct opened read = open_with(path, flags, start);
    struct opened mapped = open_with(path, flags | SOTTO_GGUF_OPEN_MMAP, start);
    assert_non_null(read.gguf);
    assert_non_null(mapped.gguf);
    assert_false(sotto_gguf_is_mapped(read.gguf));
    for (int64_t i = 0; i < sotto_gguf_get_n_tensors(read.gguf); i++) {
        const char * name = sotto_gguf_get_tensor_name(read.gguf, i);
        const struct sotto_tensor * a = sotto_get_tensor(read.tensors, name);
        const struct sotto_tensor * b = sotto_get_tensor(mapped.tensors, name);
        assert_ptr_equal(b->data,
                         (uint8_t *)sotto_gguf_get_data(mapped.gguf) + sotto_gguf_get_tensor_offset(mapped.gguf, i));
        assert_memory_equal(a->data, b->data, sotto_gguf_get_tensor_size(read.gguf, i));
    }
    bool is_mapped = sotto_gguf_is_mapped(mapped.gguf);
    assert_int_equal(sotto_get_tensor(mapped.tensors, "GGUF tensor data binary blob") == NULL, is_mapped);
    close_both(read);
    close_both(mapped);
    return is_mapped;
}

static const char * example_file(const char * name, uint32_t alignment, size_t ahead) {
    struct sotto_gguf_context * gguf = gguf_example();
    assert_int_equal(sotto_gguf_set_val_u32(gguf, "general.alignment", alignment), SOTTO_OK);
    const char * path = temp_path(name);
    FILE * file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < ahead; i++)
        fputc('x', file);
    assert_true(sotto_gguf_write_to_file_ptr(gguf, file, false));
    assert_int_equal(fclose(file), 0);
    sotto_gguf_free(gguf);
    return path;
}

static void the_example_is_mapped(void ** state) {
    (void)state;
    const char * path = example_file("mapped.gguf", 32, 0);
    assert_true(same_as_read(path, 0, 0));
    struct opened o = open_with(path, SOTTO_GGUF_OPEN_MMAP, 0);
    unlink(path);
    const struct sotto_tensor * first = sotto_get_first_tensor(o.tensors);
    assert_string_equal(first->name, "w");
    assert_true(((const float *)first->data)[5] == 5);
    assert_false(sotto_get_no_alloc(o.tensors));
    float piece[6];
    assert_int_equal(sotto_gguf_read_tensor(o.gguf, 0, piece, 0, sizeof(piece)), SOTTO_OK);
    assert_memory_equal(piece, first->data, sizeof(piece));
    close_both(o);
}

/* Inside a larger file; any start will do that keeps numbers where the machine can read them. */
static void any_start_and_alignment(void ** state) {
    (void)state;
    static const struct {
        uint32_t alignment;
        size_t start;
        bool mapped;
    } rows[] = { { 32, 4096, true },  { 32, 4100, true }, { 32, 4098, false },   { 32, 7, false },
                 { 4096, 12, true },  { 8, 0, true },     { 65536, 8192, true }, { 1, 3, false },
                 { 64, 20004, true }, { 2, 0, false } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char * path = example_file("start.gguf", rows[i].alignment, rows[i].start);
        bool mapped = same_as_read(path, 0, rows[i].start);
        if (rows[i].alignment > 2) /* below, chance decides */
            assert_int_equal(mapped, rows[i].mapped);
        unlink(path);
    }
}

/* What an address has to be a multiple of: 8 for f64 and i64, 4 for f32, i32 and q8_K, 1 for bytes and for blocks of
 * bytes alone, 2 for the rest. */
static size_t natural(enum sotto_type type) {
    switch (type) {
    case SOTTO_TYPE_F64:
    case SOTTO_TYPE_I64: return 8;
    case SOTTO_TYPE_F32:
    case SOTTO_TYPE_I32:
    case SOTTO_TYPE_Q8_K: return 4;
    case SOTTO_TYPE_I8:
    case SOTTO_TYPE_MXFP4:
    case SOTTO_TYPE_NVFP4: return 1;
    default: return 2;
    }
}

static void mapped_where_numbers_lie_right(enum sotto_type type) {
    static const uint8_t data[292] = { 1, 2, 3 };
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 12, .no_alloc = true });
    struct sotto_tensor * t = sotto_new_tensor_1d(ctx, type, sotto_blck_size(type));
    sotto_set_name(t, "t");
    char key[] = "k.......";
    for (size_t n = 1; n <= 8; n++) { /* the key's length moves the data byte by byte */
        key[n] = 0;
        struct sotto_gguf_context * g = sotto_gguf_init_empty();
        assert_int_equal(sotto_gguf_set_val_u32(g, "general.alignment", 1), SOTTO_OK);
        assert_int_equal(sotto_gguf_set_val_u8(g, key, 1), SOTTO_OK);
        assert_int_equal(sotto_gguf_add_tensor(g, t), SOTTO_OK);
        assert_int_equal(sotto_gguf_set_tensor_data(g, "t", data), SOTTO_OK);
        const char * path = temp_path("natural.gguf");
        assert_true(sotto_gguf_write_to_file(g, path, false));
        assert_int_equal(same_as_read(path, 0, 0), sotto_gguf_get_meta_size(g) % natural(type) == 0);
        unlink(path);
        sotto_gguf_free(g);
        key[n] = '.';
    }
    sotto_free(ctx);
}

static void natural_alignment_of_every_type(void ** state) {
    (void)state;
    for (int type = 0; type < SOTTO_TYPE_COUNT; type++) {
        if (sotto_blck_size((enum sotto_type)type) > 0)
            mapped_where_numbers_lie_right((enum sotto_type)type);
    }
}

static void what_is_read_instead(void ** state) {
    (void)state;
    struct sotto_gguf_context * gguf = gguf_example();
    const char * path = temp_path("big.gguf");
    assert_int_equal(sotto_gguf_set_big_endian(gguf, true), SOTTO_OK);
    assert_true(sotto_gguf_write_to_file(gguf, path, false));
    assert_false(same_as_read(path, SOTTO_GGUF_OPEN_SWAP, 0));
    sotto_gguf_free(gguf);

    gguf = sotto_gguf_init_empty();
    assert_true(sotto_gguf_write_to_file(gguf, path, false));
    assert_false(same_as_read(path, 0, 0)); /* there is nothing to map */
    unlink(path);
    sotto_gguf_free(gguf);

    struct bytes b = gguf_example_bytes();
    struct opened o = { NULL, NULL };
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_MMAP;
    params.ctx = &o.tensors;
    o.gguf = sotto_gguf_open_buffer(b.data, b.size, &params);
    assert_non_null(o.gguf);
    assert_false(sotto_gguf_is_mapped(o.gguf));
    close_both(o);
    free(b.data);
}

/* Mapping is for data: without it, nothing is mapped and nothing is wrong. */
static void no_data_no_mapping(void ** state) {
    (void)state;
    const char * path = example_file("meta.gguf", 32, 0);
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_MMAP | SOTTO_GGUF_OPEN_POPULATE;
    struct sotto_context * tensors = NULL;
    for (int i = 0; i < 2; i++) {
        struct sotto_gguf_context * gguf = sotto_gguf_open(path, &params);
        assert_non_null(gguf);
        assert_false(sotto_gguf_is_mapped(gguf));
        assert_null(sotto_gguf_get_data(gguf));
        sotto_gguf_free(gguf);
        params.ctx = &tensors;
        params.no_alloc = true;
    }
    assert_null(sotto_get_first_tensor(tensors)->data);
    sotto_free(tensors);
    unlink(path);
}

/* Padding that is missing at the end reads as zero: in the mapping up to the page's end, else by reading. */
static void missing_padding(void ** state) {
    (void)state;
    static const uint32_t alignments[] = { 32, 1024, 1u << 20 };
    for (int i = 0; i < 3; i++) {
        const char * path = example_file("cut.gguf", alignments[i], 0);
        struct sotto_gguf_context * gguf = sotto_gguf_open(path, NULL);
        size_t end = sotto_gguf_get_data_offset(gguf) + sotto_gguf_get_tensor_offset(gguf, 1) + 34;
        assert_int_equal(truncate(path, (off_t)end), 0);
        sotto_gguf_free(gguf);
        struct opened refused = open_with(path, SOTTO_GGUF_OPEN_MMAP, 0);
        assert_null(refused.gguf);
        assert_null(refused.tensors);
        assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_DATA_EXTENT);
        assert_int_equal(same_as_read(path, SOTTO_GGUF_OPEN_TAIL_PAD, 0), alignments[i] <= 1024);
        struct opened o = open_with(path, SOTTO_GGUF_OPEN_TAIL_PAD | SOTTO_GGUF_OPEN_MMAP, 0);
        const uint8_t * data = sotto_gguf_get_data(o.gguf);
        size_t set = 0;
        for (size_t at = sotto_gguf_get_tensor_offset(o.gguf, 1) + 34; at < sotto_gguf_get_data_size(o.gguf); at++)
            set += data[at] != 0;
        assert_int_equal(set, 0);
        close_both(o);
        unlink(path);
    }
}

/* ---- large files ---- */

enum { LARGE = 16 << 20 };

static const char * large_file(const char * name) {
    uint8_t * bytes = malloc(LARGE);
    assert_non_null(bytes);
    memset(bytes, 7, LARGE);
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 12, .no_alloc = true });
    struct sotto_tensor * t = sotto_new_tensor_1d(ctx, SOTTO_TYPE_I8, LARGE);
    sotto_set_name(t, "large");
    struct sotto_gguf_context * gguf = sotto_gguf_init_empty();
    assert_int_equal(sotto_gguf_add_tensor(gguf, t), SOTTO_OK);
    assert_int_equal(sotto_gguf_set_tensor_data(gguf, "large", bytes), SOTTO_OK);
    const char * path = temp_path(name);
    assert_true(sotto_gguf_write_to_file(gguf, path, false));
    sotto_gguf_free(gguf);
    sotto_free(ctx);
    free(bytes);
    return path;
}

static long faults(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt + usage.ru_majflt;
}

static long faults_while_reading(const char * path, uint32_t flags) {
    struct opened o = open_with(path, flags, 0);
    assert_true(sotto_gguf_is_mapped(o.gguf));
    const volatile uint8_t * data = sotto_gguf_get_data(o.gguf);
    unsigned sum = 0;
    long before = faults();
    for (size_t at = 0; at < LARGE; at += 512)
        sum += data[at];
    long n = faults() - before;
    assert_int_equal(sum, 7 * (LARGE / 512));
    close_both(o);
    return n;
}

/* The thread sanitizer keeps notes on every page that is read, and they have faults of their own. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NOTES_ON_PAGES 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define NOTES_ON_PAGES 1
#endif

static void populated_pages_are_there(void ** state) {
    (void)state;
#if defined(NOTES_ON_PAGES)
    skip();
#endif
    const char * path = large_file("large.gguf");
    long lazy = faults_while_reading(path, SOTTO_GGUF_OPEN_MMAP);
    long populated = faults_while_reading(path, SOTTO_GGUF_OPEN_MMAP | SOTTO_GGUF_OPEN_POPULATE);
    unlink(path);
    print_message("%ld faults, %ld when populated\n", lazy, populated);
    assert_true(populated <= lazy / 8);
}

/* A model is replaced under the program that uses it. */
static void the_old_file_stays(void ** state) {
    (void)state;
    const char * path = example_file("old.gguf", 32, 0);
    struct opened o = open_with(path, SOTTO_GGUF_OPEN_MMAP, 0);
    struct sotto_gguf_context * empty = sotto_gguf_init_empty();
    assert_true(sotto_gguf_write_to_file(empty, path, false));
    sotto_gguf_free(empty);
    assert_true(((const float *)sotto_get_tensor(o.tensors, "w")->data)[4] == 4);
    close_both(o);
    unlink(path);
}

/* An allocator that cuts a file short at its n-th allocation. */
struct cutter {
    struct sotto_allocator base;
    struct counting_allocator inner;
    const char * path;
    int countdown;
};

static void * alloc_and_cut(void * user_data, size_t size, size_t align) {
    struct cutter * c = user_data;
    if (--c->countdown == 0)
        assert_int_equal(truncate(c->path, 20000), 0);
    return c->inner.base.alloc(c->inner.base.user_data, size, align);
}

static void * realloc_inner(void * user_data, void * pointer, size_t old_size, size_t size) {
    struct cutter * c = user_data;
    return c->inner.base.realloc(c->inner.base.user_data, pointer, old_size, size);
}

static void free_inner(void * user_data, void * pointer, size_t size, size_t align) {
    struct cutter * c = user_data;
    c->inner.base.free(c->inner.base.user_data, pointer, size, align);
}

/* Cut short while it is being opened: found out by its size, before anything is touched. */
static void a_file_that_shrinks(void ** state) {
    (void)state;
    struct cutter c = { .base = { sizeof(c.base), &c, alloc_and_cut, realloc_inner, free_inner }, .countdown = 3 };
    counting_allocator_init(&c.inner);
    c.path = large_file("shrinks.gguf");
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_MMAP | SOTTO_GGUF_OPEN_POPULATE;
    params.allocator = &c.base;
    params.ctx = &tensors;
    assert_null(sotto_gguf_open(c.path, &params));
    assert_true(c.countdown <= 0);
    assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_IO_READ);
    assert_null(tensors);
    assert_int_equal(c.inner.held, 0);
    unlink(c.path);
}

/* ---- sources that cannot be read ---- */

static void a_pipe_is_refused(void ** state) {
    (void)state;
    const char * path = temp_path("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    struct opened o = open_with(path, SOTTO_GGUF_OPEN_MMAP, 0);
    assert_null(o.gguf);
    assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_IO_SEEK);
    unlink(path);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FILE * stream = fdopen(ends[0], "rb");
    assert_non_null(stream);
    struct sotto_gguf_init_params init = { 0 };
    assert_null(sotto_gguf_init_from_file_ptr(stream, init));
    assert_int_equal(sotto_last_error(), SOTTO_E_GGUF_IO_SEEK);
    fclose(stream);
    close(ends[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_mapped),
        cmocka_unit_test(any_start_and_alignment),
        cmocka_unit_test(natural_alignment_of_every_type),
        cmocka_unit_test(what_is_read_instead),
        cmocka_unit_test(no_data_no_mapping),
        cmocka_unit_test(missing_padding),
        cmocka_unit_test(populated_pages_are_there),
        cmocka_unit_test(the_old_file_stays),
        cmocka_unit_test(a_file_that_shrinks),
        cmocka_unit_test(a_pipe_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
