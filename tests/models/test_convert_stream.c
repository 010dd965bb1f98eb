/* SPDX-License-Identifier: MIT */
/* Models through callbacks: the same bytes as from a file, read strictly forwards; and what can go wrong on the way. */
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

#include "conversion.h"
#include "gguf_example.h"
#include "refuse_each.h"
#include "tiny_model.h"

struct source {
    const uint8_t * bytes;
    size_t n, at, fails_at; /* 0: never */
    int closed;
};

static char folder[512], input[600], direct[600], output[600];
static uint8_t * bytes;
static size_t size;

static size_t read_source(void * user_data, void * dst, size_t n) {
    struct source * s = user_data;
    size_t end = s->fails_at > 0 ? s->fails_at : s->n;
    n = n < end - s->at ? n : end - s->at;
    memcpy(dst, s->bytes + s->at, n);
    s->at += n;
    return n;
}

static bool at_end(void * user_data) {
    const struct source * s = user_data;
    return s->at == s->n;
}

static void close_source(void * user_data) { ((struct source *)user_data)->closed++; }

static struct sotto_model_stream stream_of(struct source * source) {
    return (struct sotto_model_stream){ sizeof(struct sotto_model_stream), read_source, at_end, close_source, source };
}

static int setup(void ** state) {
    (void)state;
    snprintf(folder, sizeof(folder), "%s", temp_path("stream"));
    mkdir(folder, 0777);
    snprintf(input, sizeof(input), "%s/in.bin", folder);
    snprintf(direct, sizeof(direct), "%s/direct.gguf", folder);
    snprintf(output, sizeof(output), "%s/out.gguf", folder);
    if (!tiny_model_write(direct, SOTTO_TYPE_F16, 3))
        return -1;
    assert_int_equal(conversion(direct, input, SOTTO_TYPE_COUNT, NULL), SOTTO_OK);
    assert_int_equal(conversion(input, direct, SOTTO_TYPE_COUNT, NULL), SOTTO_OK);
    bytes = read_bytes(input, &size);
    return bytes != NULL ? 0 : -1;
}

static int teardown(void ** state) {
    (void)state;
    free(bytes);
    unlink(input);
    unlink(direct);
    unlink(output);
    return rmdir(folder); /* fails if a temporary file was left */
}

static void same_as_direct(void) {
    size_t n, m;
    uint8_t * a = read_bytes(direct, &n);
    uint8_t * b = read_bytes(output, &m);
    assert_true(a != NULL && b != NULL && n == m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
    unlink(output);
}

static void a_model(void ** state) {
    (void)state;
    struct source source = { bytes, size, 0, 0, 0 };
    struct sotto_model_stream in = stream_of(&source);
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_OK);
    assert_true(source.at == size && source.closed == 1);
    same_as_direct();
    source = (struct source){ bytes, size, 0, 0, 0 };
    in.close = NULL;
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_OK);
    same_as_direct();
}

static void faults(void ** state) {
    (void)state;
    struct source source = { bytes, size, 0, 100000, 0 };
    struct sotto_model_stream in = stream_of(&source);
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_E_IO);
    source = (struct source){ bytes, 100000, 0, 0, 0 };
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_E_MODEL_TRUNCATED);
    source = (struct source){ bytes, 0, 0, 0, 0 };
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_E_MODEL_FORMAT);
    assert_int_equal(source.closed, 1);
    assert_int_equal(sotto_convert_stream(&in, NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_convert_stream(&in, "/nonexistent/x.gguf", NULL), SOTTO_E_GGUF_IO_OPEN);
    assert_int_equal(source.closed, 3);
    assert_int_equal(sotto_convert_stream(NULL, output, NULL), SOTTO_E_NULLARG);
    in.read = NULL;
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_E_NULLARG);
    in = stream_of(&source);
    in.eof = NULL;
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_E_NULLARG);
    in.size = 8;
    assert_int_equal(sotto_convert_stream(&in, output, NULL), SOTTO_E_PARAM);
    assert_int_equal(access(output, F_OK), -1);
}

static enum sotto_status convert_stream(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct source source = { bytes, size, 0, 0, 0 };
    struct sotto_model_stream in = stream_of(&source);
    struct sotto_convert_params params = sotto_convert_default_params();
    params.allocator = allocator;
    enum sotto_status status = sotto_convert_stream(&in, output, &params);
    assert_int_equal(source.closed, 1);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    assert_true(refuse_many(convert_stream, NULL) > 20);
    same_as_direct();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model),
        cmocka_unit_test(faults),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
