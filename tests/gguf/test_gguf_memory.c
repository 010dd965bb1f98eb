/* SPDX-License-Identifier: MIT */
/* The n-th allocation fails, for every n: opening in every way, changing, writing. What failed left everything usable, and
 * nothing behind. */
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
#include "counting_allocator.h"
#include "refuse_each.h"
#include "sotto/sotto.h"

/* Build, write, open both ways, copy. */
static enum sotto_status whole_life(const struct sotto_allocator * allocator, void * path) {
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    struct sotto_context * tensors = NULL;
    params.allocator = allocator;
    params.ctx = &tensors;
    struct sotto_gguf_context * made = gguf_example_from(allocator);
    bool good = made != NULL && sotto_gguf_write_to_file(made, path, false);
    struct sotto_gguf_context * read = good ? sotto_gguf_open(path, &params) : NULL;
    good = good && read != NULL && sotto_gguf_set_kv(made, read) == SOTTO_OK &&
           sotto_gguf_set_val_u32(read, "general.alignment", 64) == SOTTO_OK;
    if (made != NULL && !good) { /* what failed left it usable */
        assert_int_equal(sotto_gguf_get_n_kv(made), 6);
        assert_int_equal(sotto_gguf_find_tensor(made, "q"), 1);
    }
    sotto_gguf_free(made);
    sotto_gguf_free(read);
    sotto_free(tensors);
    return good ? SOTTO_OK : sotto_last_error();
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof(path), "%s", temp_path("oom.gguf"));
    assert_true(refuse_each(whole_life, path) > 29);
    unlink(path);
}

/* ---- opening ---- */

struct way {
    enum gguf_way way;
    struct bytes * bytes;
    uint32_t flags;
};

/* The ways of the field take no allocator: the default one is set for them. */
static struct sotto_gguf_context * open_in(const struct way * w, const struct sotto_allocator * allocator,
                                           struct sotto_context ** tensors) {
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    struct sotto_gguf_init_params init = { .ctx = tensors };
    params.allocator = allocator;
    params.flags = w->flags;
    params.ctx = tensors;
    if (w->way == GGUF_BUFFER)
        return sotto_gguf_open_buffer(w->bytes->data, w->bytes->size, &params);
    assert_int_equal(sotto_set_default_allocator(allocator), SOTTO_OK);
    struct sotto_gguf_context * gguf = NULL;
    if (w->way == GGUF_STREAM) {
        FILE * file = tmpfile();
        assert_non_null(file);
        assert_int_equal(fwrite(w->bytes->data, 1, w->bytes->size, file), w->bytes->size);
        rewind(file);
        gguf = sotto_gguf_init_from_file_ptr(file, init);
        fclose(file);
    } else {
        gguf = sotto_gguf_init_from_callback(bytes_deliver, w->bytes, 5, w->bytes->size, init);
    }
    assert_int_equal(sotto_set_default_allocator(NULL), SOTTO_OK);
    return gguf;
}

static enum sotto_status open_and_close(const struct sotto_allocator * allocator, void * way) {
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_context * gguf = open_in(way, allocator, &tensors);
    assert_int_equal(tensors != NULL, gguf != NULL);
    sotto_gguf_free(gguf);
    sotto_free(tensors);
    return gguf != NULL ? SOTTO_OK : sotto_last_error();
}

static void opening_in_every_way(void ** state) {
    (void)state;
    struct bytes b = gguf_example_bytes();
    for (enum gguf_way way = GGUF_BUFFER; way < GGUF_N_WAYS; way++) {
        if (way == GGUF_PATH || way == GGUF_MAPPED || way == GGUF_INIT)
            continue; /* below */
        struct way w = { way, &b, 0 };
        assert_true(refuse_each(open_and_close, &w) > 15);
    }
    free(b.data);
}

struct path {
    char path[512];
    uint32_t flags;
};

static enum sotto_status open_path(const struct sotto_allocator * allocator, void * user_data) {
    const struct path * p = user_data;
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.allocator = allocator;
    params.flags = p->flags;
    params.ctx = &tensors;
    struct sotto_gguf_context * gguf = sotto_gguf_open(p->path, &params);
    assert_int_equal(tensors != NULL, gguf != NULL);
    sotto_free(tensors);
    sotto_gguf_free(gguf);
    return gguf != NULL ? SOTTO_OK : sotto_last_error();
}

static void opening_paths(void ** state) {
    (void)state;
    struct path p = { .flags = SOTTO_GGUF_OPEN_MMAP | SOTTO_GGUF_OPEN_POPULATE };
    snprintf(p.path, sizeof(p.path), "%s", temp_path("paths.gguf"));
    struct sotto_gguf_context * gguf = gguf_example();
    assert_true(sotto_gguf_write_to_file(gguf, p.path, false));
    assert_true(refuse_each(open_path, &p) > 15);
    assert_int_equal(sotto_gguf_set_big_endian(gguf, true), SOTTO_OK);
    assert_true(sotto_gguf_write_to_file(gguf, p.path, false));
    p.flags = SOTTO_GGUF_OPEN_SWAP;
    assert_true(refuse_each(open_path, &p) > 15);
    sotto_gguf_free(gguf);
    unlink(p.path);
}

/* ---- changing and writing ---- */

static enum sotto_status set_string(struct sotto_gguf_context * g) { return sotto_gguf_set_val_str(g, "new", "text"); }

static enum sotto_status set_number(struct sotto_gguf_context * g) { return sotto_gguf_set_val_u16(g, "sotto.u32", 4); }

static enum sotto_status set_numbers(struct sotto_gguf_context * g) {
    static const int16_t values[] = { 1, 2, 3 };
    return sotto_gguf_set_arr_data(g, "sotto.names", SOTTO_GGUF_TYPE_INT16, values, 3);
}

static enum sotto_status set_strings(struct sotto_gguf_context * g) {
    static const char * strings[] = { "x", "yz" };
    return sotto_gguf_set_arr_str(g, "new", strings, 2);
}

static enum sotto_status set_forty(struct sotto_gguf_context * g) {
    char key[] = "key.aa";
    enum sotto_status status = SOTTO_OK;
    for (int i = 0; i < 40 && status == SOTTO_OK; i++) {
        key[4] = (char)('a' + i);
        status = sotto_gguf_set_val_bool(g, key, true);
    }
    while (status != SOTTO_OK && sotto_gguf_get_n_kv(g) > 6) /* those before are no part of the failure */
        sotto_gguf_remove_key(g, sotto_gguf_get_key(g, 6));
    return status;
}

static enum sotto_status set_all(struct sotto_gguf_context * g) {
    struct sotto_gguf_context * other = gguf_example();
    assert_int_equal(sotto_gguf_set_val_u32(other, "general.alignment", 128), SOTTO_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(sotto_gguf_set_val_bool(other, (const char[]){ (char)('A' + i), 0 }, true), SOTTO_OK);
    assert_int_equal(set_strings(other), SOTTO_OK);
    enum sotto_status status = sotto_gguf_set_kv(g, other);
    sotto_gguf_free(other);
    return status;
}

static enum sotto_status add_forty(struct sotto_gguf_context * g) {
    struct sotto_tensor tensor = { .type = SOTTO_TYPE_F32, .ne = { 4, 1, 1, 1 }, .nb = { 4, 16, 16, 16 } };
    enum sotto_status status = SOTTO_OK;
    for (int i = 0; i < 40 && status == SOTTO_OK; i++) {
        tensor.name[0] = (char)('A' + i);
        status = sotto_gguf_add_tensor(g, &tensor);
    }
    return status;
}

static enum sotto_status write_big(struct sotto_gguf_context * g) {
    const char * path = temp_path("never.gguf");
    sotto_gguf_set_big_endian(g, true);
    bool good = sotto_gguf_write_to_file(g, path, false);
    assert_int_equal(access(path, F_OK), good ? 0 : -1);
    sotto_gguf_set_big_endian(g, false);
    unlink(path);
    return good ? SOTTO_OK : sotto_last_error();
}

struct change {
    enum sotto_status (*run)(struct sotto_gguf_context * gguf);
    bool in_steps; /* what succeeded before stays */
};

static uint8_t * meta_of(const struct sotto_gguf_context * gguf, size_t * size) {
    *size = sotto_gguf_get_meta_size(gguf);
    uint8_t * meta = malloc(*size);
    assert_non_null(meta);
    assert_int_equal(sotto_gguf_get_meta_data(gguf, meta), SOTTO_OK);
    return meta;
}

/* A change that failed has changed nothing. */
static enum sotto_status change_one(const struct sotto_allocator * allocator, void * user_data) {
    const struct change * change = user_data;
    struct sotto_gguf_context * gguf = gguf_example_from(allocator);
    if (gguf == NULL)
        return sotto_last_error();
    size_t size;
    size_t size_after;
    uint8_t * before = meta_of(gguf, &size);
    enum sotto_status status = change->run(gguf);
    uint8_t * after = meta_of(gguf, &size_after);
    if (status != SOTTO_OK && !change->in_steps) {
        assert_int_equal(size, size_after);
        assert_memory_equal(before, after, size);
    }
    free(before);
    free(after);
    sotto_gguf_free(gguf);
    return status;
}

static void every_change(void ** state) {
    (void)state;
    static struct change changes[] = { { set_string, false },  { set_number, false }, { set_numbers, false },
                                       { set_strings, false }, { set_forty, false },  { set_all, false },
                                       { add_forty, true },    { write_big, false } };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        assert_true(refuse_each(change_one, &changes[i]) > 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nth_allocation_fails),
        cmocka_unit_test(opening_in_every_way),
        cmocka_unit_test(opening_paths),
        cmocka_unit_test(every_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
