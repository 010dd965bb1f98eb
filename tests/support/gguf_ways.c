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

#include "counting_allocator.h"
#include "gguf_example.h"
#include "gguf_ways.h"
#include "sha256.h"

void bytes_set_size(struct bytes * b, size_t size) {
    b->data = realloc(b->data, size + 1);
    assert_non_null(b->data);
    b->size = size;
}

struct bytes bytes_from_hex(const char * hex) {
    struct bytes b = { NULL, 0 };
    bytes_set_size(&b, strlen(hex) / 2);
    for (size_t i = 0; i < b.size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        b.data[i] = (uint8_t)byte;
    }
    return b;
}

size_t bytes_deliver(void * user_data, void * output, uint64_t offset, size_t len) {
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

static struct sotto_gguf_context * open_mapped(const struct bytes * b, struct sotto_gguf_open_params params) {
    params.flags |= SOTTO_GGUF_OPEN_MMAP;
    return open_path(b, &params);
}

static struct sotto_gguf_context * open_init(const struct bytes * b, struct sotto_gguf_init_params init) {
    const char * path = temp_path("case.gguf");
    write_bytes(path, b->data, b->size);
    struct sotto_gguf_context * gguf = sotto_gguf_init_from_file(path, init);
    unlink(path);
    return gguf;
}

/* Open; the allocator is the default one meanwhile, for the ways that take none. */
static struct sotto_gguf_context * open_as(enum gguf_way way, struct bytes * b,
                                           const struct sotto_gguf_open_params * params,
                                           struct counting_allocator * allocator) {
    static const size_t chunk[GGUF_N_WAYS] = {
        [GGUF_CALLBACK_1] = 1, [GGUF_CALLBACK_3] = 3, [GGUF_CALLBACK_4096] = 4096
    };
    struct sotto_gguf_init_params init = { .no_alloc = params->no_alloc, .ctx = params->ctx };
    sotto_clear_last_error();
    counting_allocator_init(allocator);
    assert_int_equal(sotto_set_default_allocator(&allocator->base), SOTTO_OK);
    struct sotto_gguf_context * gguf = NULL;
    switch (way) {
    case GGUF_BUFFER: gguf = sotto_gguf_open_buffer(b->data, b->size, params); break;
    case GGUF_PATH: gguf = open_path(b, params); break;
    case GGUF_MAPPED: gguf = open_mapped(b, *params); break;
    case GGUF_INIT: gguf = open_init(b, init); break;
    case GGUF_STREAM: gguf = open_stream(b, init); break;
    case GGUF_CALLBACK_1:
    case GGUF_CALLBACK_3:
    case GGUF_CALLBACK_4096:
    case GGUF_N_WAYS: gguf = sotto_gguf_init_from_callback(bytes_deliver, b, chunk[way], b->size, init); break;
    }
    assert_int_equal(sotto_set_default_allocator(NULL), SOTTO_OK);
    return gguf;
}

/* The lowest descriptor that is free. */
static int next_descriptor(void) {
    int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
}

static uint64_t mix(uint64_t digest, const uint8_t * bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        digest = (digest ^ bytes[i]) * 0x100000001b3u;
    return digest;
}

/* All that was read. */
static uint64_t digest_of(const struct sotto_gguf_context * gguf) {
    if (gguf == NULL)
        return 0;
    const size_t size = sotto_gguf_get_meta_size(gguf);
    uint8_t * meta = malloc(size);
    assert_non_null(meta);
    assert_int_equal(sotto_gguf_get_meta_data(gguf, meta), SOTTO_OK);
    uint64_t digest = mix(1, meta, size);
    free(meta);
    const uint8_t * data = sotto_gguf_get_data(gguf);
    return data != NULL ? mix(digest, data, sotto_gguf_get_data_size(gguf)) : digest;
}

struct gguf_outcome gguf_try_open(enum gguf_way way, struct bytes * b, bool data, uint32_t flags) {
    struct counting_allocator allocator;
    struct sotto_context * tensors = (struct sotto_context *)&allocator; /* has to be replaced or set to NULL */
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = flags;
    params.ctx = data ? &tensors : NULL;
    const int descriptor = next_descriptor();
    struct sotto_gguf_context * gguf = open_as(way, b, &params, &allocator);
    struct gguf_outcome outcome = { gguf != NULL, sotto_last_error(), sotto_gguf_last_error_pos(), digest_of(gguf) };
    assert_true((gguf != NULL) == (outcome.status == SOTTO_OK));
    if (data)
        assert_true((tensors != NULL) == (gguf != NULL));
    assert_true(allocator.peak <= (long long)(64 * 1024 + 17 * b->size));
    if (data)
        sotto_free(tensors);
    sotto_gguf_free(gguf);
    assert_int_equal(allocator.held, 0);
    assert_int_equal(next_descriptor(), descriptor);
    return outcome;
}

void gguf_same_everywhere(struct bytes * b, bool data, struct gguf_outcome expected) {
    uint64_t digest = 0;
    for (int way = 0; way < GGUF_N_WAYS; way++) {
        if (way == GGUF_BUFFER && b->size == 0)
            continue; /* refused before anything is read */
        struct gguf_outcome found = gguf_try_open((enum gguf_way)way, b, data, 0);
        assert_int_equal(found.status, expected.status);
        if (expected.status != SOTTO_OK)
            assert_true(found.pos == expected.pos);
        assert_true(digest == 0 || digest == found.digest);
        digest = found.digest;
    }
}

struct bytes gguf_example_bytes(void) {
    struct sotto_gguf_context * gguf = gguf_example();
    struct bytes b;
    b.data = gguf_written(gguf, &b.size);
    sotto_gguf_free(gguf);
    char hash[65];
    sha256_hex(b.data, b.size, hash);
    assert_string_equal(hash, GGUF_EXAMPLE_HASH);
    return b;
}
