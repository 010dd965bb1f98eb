/* SPDX-License-Identifier: MIT */
/* Every case of gguf-cases.json, malformed or odd, opened in every way. Each refused file leaves nothing behind and costs
 * little memory. */
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
#include "gguf_ways.h"
#include "sha256.h"

static json_t * cases;
static struct bytes example;

static size_t integer(const json_t * op, const char * key) {
    assert_true(json_is_integer(json_object_get(op, key)));
    return (size_t)json_integer_value(json_object_get(op, key));
}

static void apply(struct bytes * b, const json_t * op) {
    const char * name = json_string_value(json_object_get(op, "op"));
    const char * hex = json_string_value(json_object_get(op, "hex"));
    struct bytes given = bytes_from_hex(hex != NULL ? hex : "");
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
        bytes_set_size(b, old + given.size);
        memcpy(b->data + old, given.data, given.size);
    } else if (strcmp(name, "fill") == 0) {
        size_t old = b->size;
        bytes_set_size(b, old + integer(op, "count"));
        memset(b->data + old, (int)integer(op, "byte"), b->size - old);
    } else {
        fail_msg("unknown operation %s", name);
    }
    free(given.data);
}

static struct bytes bytes_of(const json_t * description) {
    const char * base = json_string_value(json_object_get(description, "base"));
    struct bytes b = { NULL, 0 };
    bytes_set_size(&b, strcmp(base, "example") == 0 ? example.size : 0);
    memcpy(b.data, example.data, b.size);
    size_t i;
    json_t * op;
    json_array_foreach(json_object_get(description, "ops"), i, op) apply(&b, op);
    return b;
}

static enum sotto_status status_of(const char * spelled) {
#define STATUS(value, NAME, text, sentence)                                           \
    if (strcmp(spelled, text) == 0 && (value == SOTTO_E_NULLARG || value / 100 == 3)) \
        return SOTTO_E_##NAME;
#include "sotto/status.def"
#undef STATUS
    fail_msg("unknown error %s", spelled);
    return SOTTO_OK;
}

/* Where the fault of each case is: the field that is wrong, or that is cut short (gguf.md section 1.8 for the example). */
static const struct {
    const char *first, *last;
    uint64_t pos;
} PLACES[] = {
    { "M001", "M005", 0 },     { "M006", "M013", 4 },     { "M014", "M014", 8 },     { "M015", "M015", 16 },
    { "M016", "M018", 8 },     { "M019", "M021", 16 },    { "M022", "M022", 0x108 }, { "M023", "M023", 0xf1 },
    { "M024", "M024", 0x153 }, { "M025", "M029", 24 },    { "M030", "M030", 0x54 },  { "M031", "M032", 51 },
    { "M033", "M033", 16 },    { "M034", "M034", 24 },    { "M035", "M035", 44 },    { "M036", "M037", 48 },
    { "M038", "M038", 39 },    { "M039", "M041", 0x58 },  { "M042", "M043", 0x38 },  { "M045", "M046", 0x76 },
    { "M047", "M047", 0x40 },  { "M048", "M048", 0x4f },  { "M049", "M051", 0x8e },  { "M052", "M054", 0x92 },
    { "M055", "M057", 0xce },  { "M059", "M059", 0xab },  { "M060", "M060", 0xce },  { "M061", "M061", 0x92 },
    { "M062", "M062", 52 },    { "M063", "M067", 53 },    { "M068", "M071", 49 },    { "M072", "M072", 0xf9 },
    { "M073", "M073", 24 },    { "M074", "M075", 32 },    { "M076", "M076", 0x12a }, { "M077", "M078", 0x102 },
    { "M079", "M079", 0x106 }, { "M080", "M080", 0x10e }, { "M081", "M082", 0x106 }, { "M083", "M084", 37 },
    { "M085", "M085", 53 },    { "M086", "M087", 0x116 }, { "M088", "M097", 0x137 }, { "M098", "M098", 53 },
    { "M099", "M099", 0x137 }, { "M100", "M101", 0x143 }, { "M102", "M102", 0x11a }, { "M103", "M107", 0x13b },
    { "M108", "M108", 115 },   { "M109", "M109", 0x60 },  { "M110", "M110", 115 },   { "M111", "M112", 0x180 },
    { "M113", "M113", 0x160 }, { "M114", "M114", 0x180 },
};

static uint64_t place_of(const char * id) {
    for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
        if (strcmp(PLACES[i].first, id) <= 0 && strcmp(id, PLACES[i].last) <= 0)
            return PLACES[i].pos;
    }
    fail_msg("%s: no place is known", id);
    return 0;
}

/* The message says what is wrong, by the name of the specification, and where. */
static void check_text(const char * name, uint64_t pos) {
    char place[40];
    snprintf(place, sizeof(place), "(at byte %llu)", (unsigned long long)pos);
    const char * text = sotto_last_error_text();
    assert_true(strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == ':');
    assert_true(pos == 0 || strstr(text, place) != NULL);
}

static void refuse_bytes(const json_t * c, enum sotto_status expected) {
    struct bytes b = bytes_of(json_object_get(c, "bytes"));
    const char * mode = json_string_value(json_object_get(c, "mode"));
    const uint64_t pos = place_of(json_string_value(json_object_get(c, "id")));
    if (strcmp(mode, "strict") == 0) {
        struct gguf_outcome found = gguf_try_open(GGUF_BUFFER, &b, false, SOTTO_GGUF_OPEN_STRICT);
        assert_int_equal(found.status, expected);
        assert_true(found.pos == pos);
        check_text(json_string_value(json_object_get(c, "error")), pos);
        assert_int_equal(gguf_try_open(GGUF_PATH, &b, false, SOTTO_GGUF_OPEN_STRICT).status, expected);
        assert_int_equal(gguf_try_open(GGUF_BUFFER, &b, false, 0).status, SOTTO_OK);
    } else {
        struct gguf_outcome found = gguf_try_open(GGUF_CALLBACK_4096, &b, strcmp(mode, "data") == 0, 0);
        assert_int_equal(found.status, expected);
        if (found.pos != pos)
            fail_msg("%s: %s", json_string_value(json_object_get(c, "id")), sotto_last_error_text());
        check_text(json_string_value(json_object_get(c, "error")), pos);
        gguf_same_everywhere(&b, strcmp(mode, "data") == 0, found);
    }
    free(b.data);
}

/* A source that says it is far larger than what it delivers. */
static enum sotto_status boast(const char * hex) {
    struct bytes b = bytes_from_hex(hex);
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    sotto_set_default_allocator(&allocator.base);
    struct sotto_gguf_init_params init = { 0 };
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_callback(bytes_deliver, &b, 0, (uint64_t)1 << 40, init);
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
    return bytes_deliver(user_data, output, offset, len < 200 - offset ? len : 200 - (size_t)offset);
}

static size_t deliver_more(void * user_data, void * output, uint64_t offset, size_t len) {
    return bytes_deliver(user_data, output, offset, len) + 1;
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
        bytes_set_size(&out, out.size);
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
        gguf_same_everywhere(&b, data, (struct gguf_outcome){ true, SOTTO_OK, 0, 0 });
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

static int load_cases(void ** state) {
    (void)state;
    char path[1024];
    const char * source = getenv("SOTTO_SOURCE");
    snprintf(path, sizeof(path), "%s/tests/data/gguf-cases.json", source != NULL ? source : ".");
    cases = json_load_file(path, 0, NULL);
    if (cases == NULL)
        return -1;
    example = bytes_from_hex(json_string_value(json_object_get(cases, "example_hex")));
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
    };
    return cmocka_run_group_tests(tests, load_cases, free_cases);
}
