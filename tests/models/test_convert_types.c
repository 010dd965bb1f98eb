/* SPDX-License-Identifier: MIT */
/* Types of weights through the API: what each tensor loses, parameters that make no sense, stopping, and memory that runs
 * out. What is written is looked at through sotto/model_file.h, whose own refusals are here too. (The bytes themselves are
 * compared with a peer's in test_quantize_long.py.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gguf_example.h"
#include "refuse_each.h"
#include "sotto/cpu.h"
#include "sotto/model_file.h"
#include "sotto/models.h"
#include "tiny_model.h"

static char input[512], output[512], other[512];

static struct sotto_convert_params params_of(enum sotto_type type) {
    struct sotto_convert_params params = sotto_convert_default_params();
    params.type = type;
    params.n_threads = 3;
    return params;
}

/* ---- losses ---- */

struct losses {
    struct sotto_tensor_loss rows[128];
    char names[128][64];
    size_t n;
};

static void take(const struct sotto_tensor_loss * loss, void * user_data) {
    struct losses * losses = user_data;
    assert_true(losses->n < 128 && loss->size == sizeof(*loss));
    snprintf(losses->names[losses->n], sizeof(losses->names[0]), "%s", loss->name);
    losses->rows[losses->n++] = *loss;
}

static size_t index_of(const struct sotto_model_file * file, const char * name) {
    for (size_t i = 0; i < sotto_model_file_n_tensors(file); i++)
        if (strcmp(sotto_model_file_tensor(file, i)->name, name) == 0)
            return i;
    fail_msg("no tensor %s", name);
    return 0;
}

/* All values of a tensor; the caller frees them. */
static float * values_of(const struct sotto_model_file * file, const char * name) {
    size_t i = index_of(file, name);
    const struct sotto_file_tensor * t = sotto_model_file_tensor(file, i);
    void * raw = malloc((size_t)t->n_bytes);
    float * floats = malloc((size_t)t->n_elements * sizeof(*floats));
    assert_int_equal(sotto_model_file_read(file, i, 0, raw, (size_t)t->n_bytes), SOTTO_OK);
    if (t->type == SOTTO_TYPE_F32)
        memcpy(floats, raw, (size_t)t->n_bytes);
    else
        sotto_get_type_traits(t->type)->to_float(raw, floats, (int64_t)t->n_elements);
    free(raw);
    return floats;
}

static void check_loss(const struct sotto_tensor_loss * loss, const char * name, const struct sotto_model_file * before,
                       const struct sotto_model_file * after) {
    const struct sotto_file_tensor * t = sotto_model_file_tensor(after, index_of(after, name));
    assert_int_equal(loss->type, t->type);
    assert_int_equal(loss->n_elements, t->n_elements);
    assert_int_equal(loss->n_bytes, t->n_bytes);
    if (loss->type == SOTTO_TYPE_F32) { /* copied */
        assert_true(loss->sum2 == 0 && loss->error2 == 0);
        return;
    }
    float *x = values_of(before, name), *y = values_of(after, name);
    double sum2 = 0, error2 = 0;
    for (uint64_t i = 0; i < t->n_elements; i++) {
        sum2 += (double)x[i] * (double)x[i];
        error2 += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    }
    assert_true(sum2 > 0 && error2 > 0 && fabs(loss->sum2 - sum2) <= 1e-12 * sum2);
    assert_true(fabs(loss->error2 - error2) <= 1e-9 * error2);
    free(x);
    free(y);
}

static void losses(void ** state) {
    (void)state;
    static struct losses one, three;
    struct sotto_convert_params params = params_of(SOTTO_TYPE_Q4_0);
    params.tensor = take;
    params.tensor_user_data = &three;
    assert_int_equal(sotto_convert(input, output, &params), SOTTO_OK);
    params.tensor_user_data = &one;
    params.n_threads = 1;
    assert_int_equal(sotto_convert(input, output, &params), SOTTO_OK);
    struct sotto_model_file *before, *after;
    assert_int_equal(sotto_model_file_open(input, NULL, &before), SOTTO_OK);
    assert_int_equal(sotto_model_file_open(output, NULL, &after), SOTTO_OK);
    assert_int_equal(three.n, sotto_model_file_n_tensors(after));
    assert_int_equal(three.n, one.n);
    for (size_t i = 0; i < three.n; i++) {
        check_loss(&three.rows[i], three.names[i], before, after);
        assert_true(one.rows[i].error2 == three.rows[i].error2); /* threads change nothing */
    }
    sotto_model_file_free(before);
    sotto_model_file_free(after);
}

/* ---- parameters ---- */

static void refused(const struct sotto_convert_params * params, const char * out, enum sotto_status status,
                    const char * word) {
    unlink(out);
    assert_int_equal(sotto_convert(input, out, params), status);
    assert_int_equal(sotto_last_error(), status);
    if (strstr(sotto_last_error_text(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, sotto_last_error_text());
    assert_int_not_equal(access(out, F_OK), 0);
}

static void parameters(void ** state) {
    (void)state;
    static const enum sotto_type no_types[] = { SOTTO_TYPE_I8,        SOTTO_TYPE_F64,       SOTTO_TYPE_Q8_1,
                                                SOTTO_TYPE_Q8_K,      SOTTO_TYPE_RETIRED_4, (enum sotto_type)44,
                                                (enum sotto_type) - 1 };
    for (size_t i = 0; i < sizeof(no_types) / sizeof(no_types[0]); i++) {
        struct sotto_convert_params params = params_of(no_types[i]);
        refused(&params, output, SOTTO_E_PARAM, "not stored as");
    }
    struct sotto_convert_params params = params_of(SOTTO_TYPE_Q4_0);
    params.n_threads = -1;
    refused(&params, output, SOTTO_E_PARAM, "n_threads");
    params.n_threads = SOTTO_MAX_N_THREADS + 1;
    refused(&params, output, SOTTO_E_PARAM, "n_threads");
    params.n_threads = 2;
    params.n_rules = 1;
    refused(&params, output, SOTTO_E_NULLARG, "params.rules");
    struct sotto_type_rule rule = { NULL, SOTTO_TYPE_F16 };
    params.rules = &rule;
    refused(&params, output, SOTTO_E_NULLARG, "pattern");
    rule = (struct sotto_type_rule){ "*.bias", SOTTO_TYPE_F16 };
    refused(&params, output, SOTTO_E_PARAM, "'*.bias'");
    rule = (struct sotto_type_rule){ "dec.*", SOTTO_TYPE_I32 };
    refused(&params, output, SOTTO_E_PARAM, "dec.*");
    rule = (struct sotto_type_rule){ "dec.*", SOTTO_TYPE_NVFP4 };
    refused(&params, other, SOTTO_E_PARAM, ".bin has no nvfp4");
    params.n_rules = 0;
    params.type = SOTTO_TYPE_TQ1_0;
    refused(&params, other, SOTTO_E_PARAM, ".bin has no tq1_0");
    params.type = SOTTO_TYPE_IQ2_XXS;
    refused(&params, output, SOTTO_E_NULLARG, "needs an imatrix");
    params.type = SOTTO_TYPE_Q4_0;
    assert_int_equal(sotto_convert(input, input, &params), SOTTO_E_PARAM);
    assert_int_equal(symlink(input, output), 0);
    assert_int_equal(sotto_convert(input, output, &params), SOTTO_E_PARAM);
    unlink(output);
}

static bool stop(uint64_t done, uint64_t total, void * user_data) {
    assert_true(done > 0 && done <= total);
    return ++*(int *)user_data < 5;
}

static void stopping(void ** state) {
    (void)state;
    int n_calls = 0;
    struct sotto_convert_params params = params_of(SOTTO_TYPE_Q5_1);
    params.progress = stop;
    params.progress_user_data = &n_calls;
    refused(&params, output, SOTTO_E_ABORTED, "stop");
    assert_int_equal(n_calls, 5);
}

/* ---- memory ---- */

static enum sotto_status convert(const struct sotto_allocator * allocator, void * user_data) {
    struct sotto_convert_params params = params_of(SOTTO_TYPE_Q8_0);
    params.allocator = allocator;
    return sotto_convert(input, user_data, &params);
}

static enum sotto_status look(const struct sotto_allocator * allocator, void * user_data) {
    struct sotto_model_file * file;
    enum sotto_status status = sotto_model_file_open(user_data, allocator, &file);
    assert_true((status == SOTTO_OK) == (file != NULL));
    sotto_model_file_free(file);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    assert_true(refuse_many(convert, output) > 50);
    assert_true(refuse_many(convert, other) > 20);
    assert_true(refuse_many(look, output) > 20);
    assert_true(refuse_many(look, other) > 5);
}

/* ---- looking ---- */

static void looking(void ** state) {
    (void)state;
    assert_int_equal(convert(NULL, other), SOTTO_OK);
    struct sotto_model_file *file = (void *)input, *bin;
    assert_int_equal(sotto_model_file_open("/nonexistent", NULL, &file), SOTTO_E_IO);
    assert_null(file);
    assert_int_equal(sotto_model_file_open(NULL, NULL, &file), SOTTO_E_NULLARG);
    assert_int_equal(sotto_model_file_open(input, NULL, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_model_file_open(input, NULL, &file), SOTTO_OK);
    assert_int_equal(sotto_model_file_open(other, NULL, &bin), SOTTO_OK);
    assert_string_equal(sotto_model_file_container(file), "GGUF");
    assert_string_equal(sotto_model_file_container(bin), ".bin");
    assert_int_equal(sotto_model_file_version(file), 3);
    assert_non_null(sotto_model_file_gguf(file));
    assert_null(sotto_model_file_gguf(bin));
    int64_t value = 0;
    assert_null(sotto_model_file_size(file, 0, &value));
    assert_string_equal(sotto_model_file_size(bin, 0, &value), "vocab_size");
    assert_int_equal(value, 51865);
    assert_null(sotto_model_file_size(bin, 100, &value));

    size_t i = index_of(bin, "decoder.blocks.0.mlp.2.weight");
    const struct sotto_file_tensor * t = sotto_model_file_tensor(bin, i);
    uint8_t whole[34 * 8 * 64], part[34 * 3];
    assert_int_equal(t->type, SOTTO_TYPE_Q8_0);
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->shape[0], 64);
    assert_int_equal(t->shape[1], 256);
    assert_int_equal(t->n_bytes, sizeof(whole));
    assert_int_equal(sotto_model_file_read(bin, i, 0, whole, sizeof(whole)), SOTTO_OK);
    assert_int_equal(sotto_model_file_read(bin, i, 34 * 5, part, sizeof(part)), SOTTO_OK);
    assert_memory_equal(part, whole + 34 * 5, sizeof(part));
    assert_int_equal(sotto_model_file_read(bin, i, t->n_bytes, part, 0), SOTTO_OK);
    assert_int_equal(sotto_model_file_read(bin, i, t->n_bytes, part, 34), SOTTO_E_BOUNDS);
    assert_int_equal(sotto_model_file_read(bin, i, UINT64_MAX - 33, part, 34), SOTTO_E_BOUNDS);
    assert_int_equal(sotto_model_file_read(bin, i, 1, part, 34), SOTTO_E_PARAM);
    assert_int_equal(sotto_model_file_read(bin, i, 0, part, 33), SOTTO_E_PARAM);
    assert_int_equal(sotto_model_file_read(bin, 100000, 0, part, 34), SOTTO_E_PARAM);
    assert_int_equal(sotto_model_file_read(bin, i, 0, NULL, 34), SOTTO_E_NULLARG);
    assert_int_equal(sotto_model_file_read(NULL, i, 0, part, 34), SOTTO_E_NULLARG);

    assert_null(sotto_model_file_container(NULL));
    assert_null(sotto_model_file_tensor(NULL, 0));
    assert_null(sotto_model_file_tensor(bin, 100000));
    assert_int_equal(sotto_model_file_n_tensors(NULL), 0);
    assert_int_equal(sotto_model_file_version(NULL), 0);
    sotto_model_file_free(NULL);
    sotto_model_file_free(file);
    sotto_model_file_free(bin);
}

static int setup(void ** state) {
    (void)state;
    snprintf(input, sizeof(input), "%s.gguf", temp_path("types-in"));
    snprintf(output, sizeof(output), "%s.gguf", temp_path("types-out"));
    snprintf(other, sizeof(other), "%s.bin", temp_path("types-out"));
    return tiny_model_write(input, SOTTO_TYPE_F32, 5) ? 0 : -1;
}

static int teardown(void ** state) {
    (void)state;
    unlink(input);
    unlink(output);
    unlink(other);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses),  cmocka_unit_test(parameters),           cmocka_unit_test(stopping),
        cmocka_unit_test(looking), cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
