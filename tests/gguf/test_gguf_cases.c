/* SPDX-License-Identifier: MIT */
/* Malformed and odd files: every case of gguf-cases.json, read through every kind of source, and what a few thousand
 * mutations of the example do. Each refused file leaves nothing behind and costs little memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "counting_allocator.h"
#include "gguf_example.h"
#include "sha256.h"

struct bytes {
    uint8_t * data;
    size_t size;
};

static json_t * cases;
static struct bytes example;

/* ---- making bytes ---- */

static void set_size(struct bytes * b, size_t size) {
    b->data = realloc(b->data, size + 1);
    assert_non_null(b->data);
    b->size = size;
}

static struct bytes from_hex(const char * hex) {
    struct bytes b = { NULL, 0 };
    set_size(&b, strlen(hex) / 2);
    for (size_t i = 0; i < b.size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        b.data[i] = (uint8_t)byte;
    }
    return b;
}

static size_t integer(const json_t * op, const char * key) {
    assert_true(json_is_integer(json_object_get(op, key)));
    return (size_t)json_integer_value(json_object_get(op, key));
}

static void apply(struct bytes * b, const json_t * op) {
    const char * name = json_string_value(json_object_get(op, "op"));
    const char * hex = json_string_value(json_object_get(op, "hex"));
    struct bytes given = from_hex(hex != NULL ? hex : "");
    if (strcmp(name, "put") == 0) {
        size_t at = integer(op, "at");
        assert_true(at + given.size <= b->size);
        memcpy(b->data + at, given.data, given.size);
    } else if (strcmp(name, "cut") == 0) {
        b->size = integer(op, "len");
    } else if (strcmp(name, "delete") == 0) {
        size_t at = integer(op, "at");
        size_t n = integer(op, "len");
        memmove(b->data + at, b->data + at + n, b->size - at - n);
        b->size -= n;
    } else if (strcmp(name, "append") == 0) {
        size_t old = b->size;
        set_size(b, old + given.size);
        memcpy(b->data + old, given.data, given.size);
    } else if (strcmp(name, "fill") == 0) {
        size_t old = b->size;
        set_size(b, old + integer(op, "count"));
        memset(b->data + old, (int)integer(op, "byte"), b->size - old);
    } else {
        fail_msg("unknown operation %s", name);
    }
    free(given.data);
}

static struct bytes bytes_of(const json_t * description) {
    const char * base = json_string_value(json_object_get(description, "base"));
    struct bytes b = { NULL, 0 };
    set_size(&b, strcmp(base, "example") == 0 ? example.size : 0);
    memcpy(b.data, example.data, b.size);
    size_t i;
    json_t * op;
    json_array_foreach(json_object_get(description, "ops"), i, op) apply(&b, op);
    return b;
}

/* ---- opening the same bytes in every way ---- */

enum source { BUFFER, PATH, STREAM, CALLBACK_1, CALLBACK_3, CALLBACK_4096, N_SOURCES };

static size_t deliver(void * user_data, void * output, uint64_t offset, size_t len) {
    const struct bytes * b = user_data;
    if (offset >= b->size)
        return 0;
    size_t n = len < b->size - offset ? len : b->size - (size_t)offset;
    memcpy(output, b->data + offset, n);
    return n;
}

static struct sotto_gguf_context * open_stream(struct bytes * b, struct sotto_gguf_init_params init) {
    FILE * file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite("ahead", 1, 5, file), 5);
    assert_int_equal(fwrite(b->data, 1, b->size, file), b->size);
    assert_int_equal(fseek(file, 5, SEEK_SET), 0);
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_file_ptr(file, init);
    fclose(file);
    return gguf;
}

static struct sotto_gguf_context * open_path(const struct bytes * b, const struct sotto_gguf_open_params * params) {
    const char * path = temp_path("case.gguf");
    write_bytes(path, b->data, b->size);
    struct sotto_gguf_context * gguf = sotto_gguf_open(path, params);
    unlink(path);
    return gguf;
}

/* Open; the allocator is the default one meanwhile, for the ways that take none. */
static struct sotto_gguf_context * open_as(enum source source, struct bytes * b,
                                           const struct sotto_gguf_open_params * params,
                                           struct counting_allocator * allocator) {
    static const size_t chunk[N_SOURCES] = { [CALLBACK_1] = 1, [CALLBACK_3] = 3, [CALLBACK_4096] = 4096 };
    struct sotto_gguf_init_params init = { .no_alloc = params->no_alloc, .ctx = params->ctx };
    sotto_clear_last_error();
    counting_allocator_init(allocator);
    assert_int_equal(sotto_set_default_allocator(&allocator->base), SOTTO_OK);
    struct sotto_gguf_context * gguf = NULL;
    switch (source) {
    case BUFFER: gguf = sotto_gguf_open_buffer(b->data, b->size, params); break;
    case PATH: gguf = open_path(b, params); break;
    case STREAM: gguf = open_stream(b, init); break;
    case CALLBACK_1:
    case CALLBACK_3:
    case CALLBACK_4096:
    case N_SOURCES: gguf = sotto_gguf_init_from_callback(deliver, b, chunk[source], b->size, init); break;
    }
    assert_int_equal(sotto_set_default_allocator(NULL), SOTTO_OK);
    return gguf;
}

struct outcome {
    bool accepted;
    enum sotto_status status;
    uint64_t pos;
};

/* Open and close again; nothing may stay and little may have been held. */
static struct outcome try_open(enum source source, struct bytes * b, bool data, uint32_t flags) {
    struct counting_allocator allocator;
    struct sotto_context * tensors = (struct sotto_context *)&allocator; /* has to be replaced or set to NULL */
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = flags;
    params.ctx = data ? &tensors : NULL;
    struct sotto_gguf_context * gguf = open_as(source, b, &params, &allocator);
    struct outcome outcome = { gguf != NULL, sotto_last_error(), sotto_gguf_last_error_pos() };
    assert_true((gguf != NULL) == (outcome.status == SOTTO_OK));
    if (data)
        assert_true((tensors != NULL) == (gguf != NULL));
    assert_true(allocator.peak <= (long long)(64 * 1024 + 17 * b->size));
    sotto_gguf_free(gguf);
    if (data)
        sotto_free(tensors);
    assert_int_equal(allocator.held, 0);
    return outcome;
}

static void same_everywhere(struct bytes * b, bool data, struct outcome expected) {
    for (int source = 0; source < N_SOURCES; source++) {
        if (source == BUFFER && b->size == 0)
            continue; /* refused before anything is read */
        struct outcome found = try_open((enum source)source, b, data, 0);
        assert_int_equal(found.status, expected.status);
        if (expected.status != SOTTO_OK)
            assert_true(found.pos == expected.pos);
    }
}

/* ---- refused ---- */

static enum sotto_status status_of(const char * spelled) {
#define STATUS(value, NAME, text, sentence)                                           \
    if (strcmp(spelled, text) == 0 && (value == SOTTO_E_NULLARG || value / 100 == 3)) \
        return SOTTO_E_##NAME;
#include "sotto/status.def"
#undef STATUS
    fail_msg("unknown error %s", spelled);
    return SOTTO_OK;
}

static void refuse_bytes(const json_t * c, enum sotto_status expected) {
    struct bytes b = bytes_of(json_object_get(c, "bytes"));
    const char * mode = json_string_value(json_object_get(c, "mode"));
    if (strcmp(mode, "strict") == 0) {
        assert_int_equal(try_open(BUFFER, &b, false, SOTTO_GGUF_OPEN_STRICT).status, expected);
        assert_int_equal(try_open(PATH, &b, false, SOTTO_GGUF_OPEN_STRICT).status, expected);
        assert_int_equal(try_open(BUFFER, &b, false, 0).status, SOTTO_OK);
    } else {
        struct outcome found = try_open(CALLBACK_4096, &b, strcmp(mode, "data") == 0, 0);
        assert_int_equal(found.status, expected);
        same_everywhere(&b, strcmp(mode, "data") == 0, found);
    }
    free(b.data);
}

/* A source that says it is far larger than what it delivers. */
static enum sotto_status boast(const char * hex) {
    struct bytes b = from_hex(hex);
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    sotto_set_default_allocator(&allocator.base);
    struct sotto_gguf_init_params init = { 0 };
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_callback(deliver, &b, 0, (uint64_t)1 << 40, init);
    sotto_set_default_allocator(NULL);
    assert_null(gguf);
    assert_true(allocator.peak < 1 << 20);
    assert_int_equal(allocator.held, 0);
    free(b.data);
    return sotto_last_error();
}

static enum sotto_status long_string(void) { /* key "a" of type str, length 2^30 + 1 */
    return boast("47475546030000000000000000000000010000000000000001000000000000006108000000"
                 "0100004000000000");
}

static enum sotto_status long_array(void) { /* key "a", array of u8, length 2^30 + 1 */
    return boast("4747554603000000000000000000000001000000000000000100000000000000610900000000000000"
                 "0100004000000000");
}

static const char * shrinking; /* path of the file that the next allocation cuts short */

static void * alloc_and_shrink(void * user_data, size_t size, size_t align) {
    struct counting_allocator * inner = user_data;
    if (shrinking != NULL)
        assert_int_equal(truncate(shrinking, 100), 0);
    shrinking = NULL;
    return inner->base.alloc(inner->base.user_data, size, align);
}

static enum sotto_status shrinking_file(void) {
    struct counting_allocator inner;
    counting_allocator_init(&inner);
    struct sotto_allocator allocator = inner.base;
    allocator.alloc = alloc_and_shrink;
    allocator.user_data = &inner;
    allocator.realloc = inner.base.realloc;
    const char * path = temp_path("shrinking.gguf");
    write_bytes(path, example.data, example.size);
    shrinking = path;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.allocator = &allocator;
    assert_null(sotto_gguf_open(path, &params));
    unlink(path);
    assert_int_equal(inner.held, 0);
    return sotto_last_error();
}

static size_t deliver_half(void * user_data, void * output, uint64_t offset, size_t len) {
    if (offset >= 200)
        return 0;
    return deliver(user_data, output, offset, len < 200 - offset ? len : 200 - (size_t)offset);
}

static size_t deliver_more(void * user_data, void * output, uint64_t offset, size_t len) {
    return deliver(user_data, output, offset, len) + 1;
}

static enum sotto_status from_callback(sotto_gguf_reader_callback_t callback) {
    struct sotto_gguf_init_params init = { 0 };
    assert_null(sotto_gguf_init_from_callback(callback, &example, 64, example.size, init));
    return sotto_last_error();
}

static enum sotto_status half_callback(void) { return from_callback(deliver_half); }

static enum sotto_status boasting_callback(void) { return from_callback(deliver_more); }

static enum sotto_status from_path(const char * path) {
    assert_null(sotto_gguf_open(path, NULL));
    enum sotto_status status = sotto_last_error();
    sotto_clear_last_error();
    struct sotto_gguf_init_params init = { 0 };
    assert_null(sotto_gguf_init_from_file(path, init));
    assert_int_equal(sotto_last_error(), status);
    return status;
}

static enum sotto_status folder(void) { return from_path("/"); }

static enum sotto_status absent(void) { return from_path("/nonexistent/file.gguf"); }

static enum sotto_status null_path(void) { return from_path(NULL); }

static enum sotto_status null_buffer(void) {
    struct sotto_gguf_init_params init = { 0 };
    assert_null(sotto_gguf_init_from_buffer(NULL, 10, init));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    sotto_clear_last_error();
    assert_null(sotto_gguf_init_from_buffer(example.data, 0, init));
    return sotto_last_error();
}

static const struct {
    const char * id;
    enum sotto_status (*run)(void);
} BUILT[] = {
    { "M044", long_string },   { "M058", long_array },        { "M115", shrinking_file },
    { "M116", half_callback }, { "M117", boasting_callback }, { "M118", folder },
    { "M119", absent },        { "M120", null_path },         { "M121", null_buffer },
};

static void every_refused_case(void ** state) {
    (void)state;
    int n = 0;
    size_t i;
    json_t * c;
    json_array_foreach(json_object_get(cases, "refused"), i, c) {
        const char * id = json_string_value(json_object_get(c, "id"));
        enum sotto_status expected = status_of(json_string_value(json_object_get(c, "error")));
        sotto_clear_last_error();
        if (json_object_get(c, "bytes") != NULL) {
            refuse_bytes(c, expected);
            n++;
        }
        for (size_t k = 0; k < sizeof(BUILT) / sizeof(BUILT[0]); k++) {
            if (strcmp(BUILT[k].id, id) == 0) {
                assert_int_equal(BUILT[k].run(), expected);
                n++;
            }
        }
        if (n != (int)i + 1)
            fail_msg("%s: nothing runs this case", id);
    }
    assert_int_equal(n, 121);
}

/* ---- accepted ---- */

static void attach(struct sotto_gguf_context * gguf, struct sotto_context * tensors) {
    for (int64_t i = 0; i < sotto_gguf_get_n_tensors(gguf); i++) {
        const char * name = sotto_gguf_get_tensor_name(gguf, i);
        const uint8_t * data = (const uint8_t *)sotto_gguf_get_data(gguf) + sotto_gguf_get_tensor_offset(gguf, i);
        const struct sotto_tensor * t = sotto_get_tensor(tensors, name);
        assert_non_null(t);
        assert_ptr_equal(t->data, data);
        assert_int_equal((uintptr_t)sotto_gguf_get_data(gguf) % 64, 0);
        assert_int_equal(sotto_gguf_set_tensor_data(gguf, name, data), SOTTO_OK);
    }
}

/* What a file becomes when it is read and written; data of absent tensors as well. */
static struct bytes rewritten(struct bytes * b, bool data) {
    struct sotto_context * tensors = NULL;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.ctx = data ? &tensors : NULL;
    struct sotto_gguf_context * gguf = sotto_gguf_open_buffer(b->data, b->size, &params);
    assert_non_null(gguf);
    struct bytes out = { NULL, 0 };
    if (data) {
        attach(gguf, tensors);
        out.data = gguf_written(gguf, &out.size);
    } else {
        out.size = sotto_gguf_get_meta_size(gguf);
        set_size(&out, out.size);
        assert_int_equal(sotto_gguf_get_meta_data(gguf, out.data), SOTTO_OK);
    }
    sotto_gguf_free(gguf);
    sotto_free(tensors);
    return out;
}

static void every_accepted_case(void ** state) {
    (void)state;
    size_t i;
    json_t * c;
    json_array_foreach(json_object_get(cases, "accepted"), i, c) {
        struct bytes b = bytes_of(json_object_get(c, "bytes"));
        bool data = strcmp(json_string_value(json_object_get(c, "mode")), "data") == 0;
        same_everywhere(&b, data, (struct outcome){ true, SOTTO_OK, 0 });
        struct bytes once = rewritten(&b, data);
        struct bytes twice = rewritten(&once, data);
        assert_int_equal(once.size, twice.size);
        assert_memory_equal(once.data, twice.data, once.size);
        if (strcmp(json_string_value(json_object_get(c, "id")), "A01") == 0)
            assert_memory_equal(once.data, b.data, b.size);
        if (strcmp(json_string_value(json_object_get(c, "id")), "A02") == 0)
            assert_memory_equal(once.data, example.data, example.size);
        free(b.data);
        free(once.data);
        free(twice.data);
    }
    assert_int_equal(i, 17);
}

/* ---- mutations ---- */

static void every_prefix_is_refused(void ** state) {
    (void)state;
    for (size_t n = 0; n < example.size; n++) {
        struct bytes b = { example.data, n };
        struct outcome found = try_open(CALLBACK_4096, &b, true, 0);
        assert_false(found.accepted);
        same_everywhere(&b, true, found);
    }
}

static void tail_padding_may_be_missing(void ** state) {
    (void)state;
    for (size_t n = 417; n <= example.size; n++) {
        struct bytes b = { example.data, n };
        assert_int_equal(try_open(BUFFER, &b, true, SOTTO_GGUF_OPEN_TAIL_PAD).accepted, n >= 0x1A2);
        uint32_t flags = SOTTO_GGUF_OPEN_TAIL_PAD | SOTTO_GGUF_OPEN_CHECK_EXTENT;
        assert_int_equal(try_open(PATH, &b, false, flags).accepted, n >= 0x1A2);
        assert_int_equal(try_open(PATH, &b, false, SOTTO_GGUF_OPEN_CHECK_EXTENT).accepted, n == example.size);
    }
}

static void every_byte_changed(void ** state) {
    (void)state;
    static const uint8_t values[] = { 0x00, 0x01, 0x7F, 0x80, 0xFF };
    int accepted = 0;
    struct bytes b = from_hex(json_string_value(json_object_get(cases, "example_hex")));
    for (size_t at = 0; at < 0x160; at++) {
        for (size_t v = 0; v < sizeof(values); v++) {
            b.data[at] = values[v];
            struct outcome found = try_open(BUFFER, &b, true, 0);
            same_everywhere(&b, true, found);
            accepted += found.accepted;
        }
        b.data[at] = example.data[at];
    }
    free(b.data);
    assert_true(accepted > 100 && accepted < 5 * 0x160);
}

static void every_word_changed(void ** state) {
    (void)state;
    static const uint64_t values[] = { INT32_MAX,         (uint64_t)1 << 31, UINT32_MAX,        (uint64_t)1 << 32,
                                       (uint64_t)1 << 53, (uint64_t)1 << 61, (uint64_t)1 << 62, INT64_MAX,
                                       (uint64_t)1 << 63, UINT64_MAX - 31,   UINT64_MAX };
    int refused = 0;
    struct bytes b = from_hex(json_string_value(json_object_get(cases, "example_hex")));
    for (size_t at = 0; at + 8 <= 0x160; at++) {
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
            memcpy(b.data + at, &values[v], 8);
            refused += !try_open(BUFFER, &b, true, 0).accepted;
            try_open(BUFFER, &b, false, SOTTO_GGUF_OPEN_STRICT);
            memcpy(b.data + at, example.data + at, 8);
        }
    }
    free(b.data);
    assert_true(refused > 1000);
}

/* ---- faults of other programs (cases.md F02 to F12) ---- */

static void put(struct bytes * b, uint64_t x, size_t width) {
    set_size(b, b->size + width);
    memcpy(b->data + b->size - width, &x, width); /* the low bytes: all machines we test on are little-endian */
}

static void put_text(struct bytes * b, const char * text) {
    put(b, strlen(text), 8);
    for (; *text != 0; text++)
        put(b, (uint8_t)*text, 1);
}

static struct bytes header(uint64_t n_tensors, uint64_t n_kv) {
    struct bytes b = { NULL, 0 };
    put(&b, 0x46554747, 4);
    put(&b, 3, 4);
    put(&b, n_tensors, 8);
    put(&b, n_kv, 8);
    return b;
}

static void put_info(struct bytes * b, const char * name, int n_dims, uint64_t ne, uint32_t type, uint64_t offset) {
    put_text(b, name);
    put(b, (uint64_t)n_dims, 4);
    for (int i = 0; i < n_dims; i++)
        put(b, ne, 8);
    put(b, type, 4);
    put(b, offset, 8);
}

static void opens_as(struct bytes * b, bool data, enum sotto_status status) {
    for (int source = 0; source < N_SOURCES; source++)
        assert_int_equal(try_open((enum source)source, b, data, 0).status, status);
    free(b->data);
}

static void strings_and_arrays_that_cannot_be(void ** state) {
    (void)state;
    static const uint64_t lengths[] = { UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 30, 137 };
    for (int i = 0; i < 4; i++) { /* the last runs one byte past the end */
        struct bytes b = header(0, 1);
        put(&b, lengths[i], 8);
        while (b.size < 168)
            put(&b, 'k', 1);
        opens_as(&b, false, SOTTO_E_GGUF_STRING_LENGTH);
    }
    struct bytes b = header(0, 1); /* arrays 10,000 deep */
    put_text(&b, "deep");
    put(&b, SOTTO_GGUF_TYPE_ARRAY, 4);
    for (int i = 0; i < 10000; i++) {
        put(&b, SOTTO_GGUF_TYPE_ARRAY, 4);
        put(&b, 1, 8);
    }
    opens_as(&b, false, SOTTO_E_GGUF_ARRAY_NESTED);
    b = header(0, 1);
    put_text(&b, "many");
    put(&b, SOTTO_GGUF_TYPE_ARRAY, 4);
    put(&b, SOTTO_GGUF_TYPE_UINT8, 4);
    put(&b, UINT64_MAX, 8);
    opens_as(&b, false, SOTTO_E_GGUF_ARRAY_LENGTH);
}

static void tensors_that_cannot_be(void ** state) {
    (void)state;
    static const struct {
        int n_dims;
        uint64_t ne;
        uint32_t type;
        enum sotto_status status;
    } rows[] = {
        { 5, 1, 0, SOTTO_E_GGUF_TENSOR_DIMS },
        { 1, 4, 255, SOTTO_E_GGUF_TENSOR_TYPE },
        { 1, 4, UINT32_MAX, SOTTO_E_GGUF_TENSOR_TYPE },
        { 2, (uint64_t)1 << 31, SOTTO_TYPE_F32, SOTTO_E_GGUF_TENSOR_BYTES },
        { 1, INT64_MAX - 31, SOTTO_TYPE_Q8_0, SOTTO_E_GGUF_TENSOR_BYTES },
        { 1, 31, SOTTO_TYPE_Q8_0, SOTTO_E_GGUF_TENSOR_BLOCK },
        { 1, 255, SOTTO_TYPE_Q6_K, SOTTO_E_GGUF_TENSOR_BLOCK },
        { 1, 0, SOTTO_TYPE_F32, SOTTO_OK },
        { 0, 0, SOTTO_TYPE_F32, SOTTO_OK },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bytes b = header(1, 0);
        put_info(&b, "t", rows[i].n_dims, rows[i].ne, rows[i].type, 0);
        while (b.size < 256)
            put(&b, 0, 1);
        opens_as(&b, true, rows[i].status);
    }
}

/* Each tensor fits; their padded sum passes 2^64 by a little. */
static void totals_that_wrap(void ** state) {
    (void)state;
    const uint64_t ne = ((uint64_t)1 << 62) - 1;
    struct bytes b = header(5, 0);
    for (uint64_t i = 0; i < 5; i++)
        put_info(&b, (const char[]){ (char)('a' + i), 0 }, 1, ne, SOTTO_TYPE_I8, i << 62);
    opens_as(&b, false, SOTTO_E_GGUF_DATA_TOTAL);
    b = header(3, 0);
    for (uint64_t i = 0; i < 3; i++)
        put_info(&b, (const char[]){ (char)('a' + i), 0 }, 1, ne, SOTTO_TYPE_I8, i << 62);
    while (b.size < 256)
        put(&b, 0, 1);
    opens_as(&b, true, SOTTO_E_GGUF_DATA_EXTENT);
}

static void limits_are_the_callers(void ** state) {
    (void)state;
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    uint64_t * limits[] = { &params.max_kv, &params.max_tensors, &params.max_meta_bytes, &params.max_string,
                            &params.max_array };
    const uint64_t least[] = { 6, 2, 323, 20, 3 };
    for (int i = 0; i < 5; i++) {
        *limits[i] = least[i];
        struct sotto_gguf_context * gguf = sotto_gguf_open_buffer(example.data, example.size, &params);
        assert_non_null(gguf);
        sotto_gguf_free(gguf);
        *limits[i] = least[i] - 1;
        assert_null(sotto_gguf_open_buffer(example.data, example.size, &params));
        enum sotto_status last = sotto_last_error();
        assert_true(last == (i < 3 ? SOTTO_E_LIMIT : i == 3 ? SOTTO_E_GGUF_STRING_LENGTH : SOTTO_E_GGUF_ARRAY_LENGTH));
        *limits[i] = 0;
    }
}

static int load_cases(void ** state) {
    (void)state;
    char path[1024];
    const char * source = getenv("SOTTO_SOURCE");
    snprintf(path, sizeof(path), "%s/tests/data/gguf-cases.json", source != NULL ? source : ".");
    cases = json_load_file(path, 0, NULL);
    if (cases == NULL)
        return -1;
    example = from_hex(json_string_value(json_object_get(cases, "example_hex")));
    char hash[65];
    sha256_hex(example.data, example.size, hash);
    return strcmp(hash, GGUF_EXAMPLE_HASH);
}

static int free_cases(void ** state) {
    (void)state;
    json_decref(cases);
    free(example.data);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refused_case),
        cmocka_unit_test(every_accepted_case),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(tail_padding_may_be_missing),
        cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(every_word_changed),
        cmocka_unit_test(strings_and_arrays_that_cannot_be),
        cmocka_unit_test(tensors_that_cannot_be),
        cmocka_unit_test(totals_that_wrap),
        cmocka_unit_test(limits_are_the_callers),
    };
    return cmocka_run_group_tests(tests, load_cases, free_cases);
}
