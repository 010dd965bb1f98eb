/* SPDX-License-Identifier: MIT */
/* Importance matrices: sums against plain loops, on a small graph and on the tiny Whisper's encoder, whose output is the
 * input of the cross-attention's projections; files there and back, and files that are none. */
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
#include "sotto/imatrix.h"
#include "sotto/speech.h"
#include "tiny_model.h"

enum { COLUMNS = 5, ROWS = 3 };

static char path[512], other[512];

/* ---- a graph of one product ---- */

struct product {
    struct sotto_context * ctx;
    sotto_backend_buffer_t buffer;
    sotto_backend_t backend;
    struct sotto_tensor *w, *x;
    struct sotto_cgraph * graph;
};

/* x [COLUMNS, n1, n2], values that depend on `seed` */
static struct product product_of(const char * name, int64_t n1, int64_t n2, unsigned seed) {
    struct product p = { .ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 20, .no_alloc = true }) };
    p.w = sotto_new_tensor_2d(p.ctx, SOTTO_TYPE_F32, COLUMNS, ROWS);
    sotto_set_name(p.w, name);
    p.x = sotto_new_tensor_3d(p.ctx, SOTTO_TYPE_F32, COLUMNS, n1, n2);
    struct sotto_tensor * y = sotto_mul_mat(p.ctx, p.w, p.x);
    p.graph = sotto_new_graph(p.ctx);
    assert_int_equal(sotto_build_forward_expand(p.graph, y), SOTTO_OK);
    p.buffer = sotto_backend_alloc_ctx_tensors_from_buft(p.ctx, sotto_backend_cpu_buffer_type());
    assert_non_null(p.buffer);
    sotto_backend_buffer_set_usage(p.buffer, SOTTO_BACKEND_BUFFER_USAGE_WEIGHTS);
    sotto_backend_buffer_clear(p.buffer, 0);
    float * x = sotto_get_data_f32(p.x);
    for (int64_t i = 0; i < sotto_nelements(p.x); i++)
        x[i] = (float)((i * 37 + seed * 11) % 19) - 9;
    p.backend = sotto_backend_cpu_init();
    return p;
}

static void product_free(struct product * p) {
    sotto_backend_free(p->backend);
    sotto_backend_buffer_free(p->buffer);
    sotto_free(p->ctx);
}

static void compute(struct product * p, struct sotto_imatrix * imatrix) {
    sotto_backend_set_eval_callback(p->backend, sotto_imatrix_collect, imatrix);
    assert_int_equal(sotto_backend_graph_compute(p->backend, p->graph), SOTTO_OK);
}

static void add_squares(const struct product * p, double sums[COLUMNS]) {
    const float * x = sotto_get_data_f32(p->x);
    for (int64_t i = 0; i < sotto_nelements(p->x); i++)
        sums[i % COLUMNS] += (double)(x[i] * x[i]);
}

static void check_means(const struct sotto_imatrix * imatrix, const char * name, const double * sums, double count) {
    int64_t n;
    const float * means = sotto_imatrix_find(imatrix, name, &n);
    assert_non_null(means);
    assert_int_equal(n, COLUMNS);
    for (int i = 0; i < COLUMNS; i++)
        assert_true(means[i] == (float)(sums[i] / count)); /* small integers: exact */
}

static void gathers(void ** state) {
    (void)state;
    struct sotto_imatrix * imatrix = sotto_imatrix_new(NULL);
    struct product a = product_of("w", 4, 2, 1), b = product_of("w", 7, 1, 2), c = product_of("v", 1, 1, 3);
    double sums[COLUMNS] = { 0 }, sums_c[COLUMNS] = { 0 };
    compute(&a, imatrix);
    compute(&c, imatrix);
    compute(&b, imatrix);
    add_squares(&a, sums);
    add_squares(&b, sums);
    add_squares(&c, sums_c);
    check_means(imatrix, "w", sums, 15);
    check_means(imatrix, "v", sums_c, 1);
    assert_int_equal(sotto_imatrix_n_entries(imatrix), 2);
    assert_string_equal(sotto_imatrix_name(imatrix, 0), "v");
    assert_string_equal(sotto_imatrix_name(imatrix, 1), "w");
    assert_null(sotto_imatrix_name(imatrix, 2));

    /* what is no weight is left out */
    struct product plain = product_of("u", 2, 1, 4);
    sotto_backend_buffer_set_usage(plain.buffer, SOTTO_BACKEND_BUFFER_USAGE_ANY);
    compute(&plain, imatrix);
    int64_t n = 1;
    assert_int_equal(sotto_imatrix_n_entries(imatrix), 2);
    assert_null(sotto_imatrix_find(imatrix, "u", &n));
    assert_int_equal(n, 0);
    assert_null(sotto_imatrix_find(NULL, "w", NULL));
    assert_int_equal(sotto_imatrix_n_entries(NULL), 0);
    product_free(&a);
    product_free(&b);
    product_free(&c);
    product_free(&plain);
    sotto_imatrix_free(imatrix);
    sotto_imatrix_free(NULL);
}

/* Rows that are not neighbours, and of another type. */
static void strided(void ** state) {
    (void)state;
    struct sotto_imatrix * imatrix = sotto_imatrix_new(NULL);
    struct product p = product_of("w", 6, 2, 5);
    double sums[COLUMNS] = { 0 };
    struct sotto_tensor * half = sotto_view_3d(p.ctx, p.x, COLUMNS, 2, 2, p.x->nb[1] * 3, p.x->nb[2], 0);
    half->data = p.x->data; /* rows 0 and 3 of both */
    const float * x = sotto_get_data_f32(p.x);
    for (int64_t r = 0; r < 12; r += 3)
        for (int i = 0; i < COLUMNS; i++)
            sums[i] += (double)(x[r * COLUMNS + i] * x[r * COLUMNS + i]);
    struct sotto_tensor * node = sotto_mul_mat(p.ctx, p.w, half);
    assert_true(sotto_imatrix_collect(node, true, imatrix));
    assert_true(sotto_imatrix_collect(node, false, imatrix));
    check_means(imatrix, "w", sums, 4);

    sotto_fp16_t halves[COLUMNS] = { 0x3C00, 0x4000, 0xC200, 0, 0x3800 }; /* 1 2 -3 0 0.5 */
    const double squares[COLUMNS] = { 1, 4, 9, 0, 0.25 };
    struct sotto_tensor f16 = *half;
    f16.type = SOTTO_TYPE_F16;
    f16.data = halves;
    f16.nb[0] = 2;
    f16.ne[1] = f16.ne[2] = 1;
    node->src[1] = &f16;
    assert_true(sotto_imatrix_collect(node, false, imatrix));
    for (int i = 0; i < COLUMNS; i++)
        sums[i] += squares[i];
    check_means(imatrix, "w", sums, 5);

    f16.ne[0] = COLUMNS - 1; /* an entry keeps its length */
    assert_false(sotto_imatrix_collect(node, false, imatrix));
    assert_int_equal(sotto_last_error(), SOTTO_E_SHAPE);
    check_means(imatrix, "w", sums, 5);
    product_free(&p);
    sotto_imatrix_free(imatrix);
}

/* ---- the recogniser ---- */

static struct sotto_imatrix * encoded(const struct sotto_model * model, int n_threads, double * squares,
                                      int64_t * n_rows) {
    enum { N = 16000 };
    static float sound[N];
    struct sotto_imatrix * imatrix = sotto_imatrix_new(NULL);
    struct sotto_state_params params = sotto_state_default_params();
    params.n_threads = n_threads;
    params.eval_callback = sotto_imatrix_collect;
    params.eval_user_data = imatrix;
    struct sotto_state * s;
    for (int i = 0; i < N; i++)
        sound[i] = (float)(i * i % 97) / 97 - 0.5f;
    assert_int_equal(sotto_state_new(model, &params, &s), SOTTO_OK);
    assert_int_equal(sotto_pcm_to_mel(s, sound, N, 0, SOTTO_PAD_ZERO), SOTTO_OK);
    assert_int_equal(sotto_encode(s), SOTTO_OK);
    int width = sotto_model_width(model);
    const float * out = sotto_get_encoder_output(s);
    *n_rows = sotto_model_n_audio_ctx(model);
    for (int64_t i = 0; i < *n_rows * width; i++)
        squares[i % width] += (double)out[i] * (double)out[i];
    sotto_state_free(s);
    return imatrix;
}

static void encoder(void ** state) {
    (void)state;
    static const char * const names[] = { "dec.blk.0.cross_attn_k.weight", "dec.blk.0.cross_attn_v.weight" };
    tiny_model_not_plain_c();
    struct sotto_model * model;
    assert_int_equal(sotto_model_open(tiny_model(), NULL, &model), SOTTO_OK);
    double squares[64] = { 0 }, again[64] = { 0 };
    int64_t n_rows, n;
    struct sotto_imatrix * imatrix = encoded(model, 1, squares, &n_rows);
    for (size_t k = 0; k < 2; k++) {
        const float * means = sotto_imatrix_find(imatrix, names[k], &n);
        assert_int_equal(n, 64);
        for (int i = 0; i < 64; i++)
            assert_true(fabs((double)means[i] - squares[i] / (double)n_rows) <= 2e-7 * squares[i] / (double)n_rows);
    }
    assert_non_null(sotto_imatrix_find(imatrix, "enc.blk.0.ffn_down.weight", &n));
    assert_int_equal(n, 256);
    assert_int_equal(sotto_imatrix_write(imatrix, path, names, 2), SOTTO_OK);
    sotto_imatrix_free(imatrix);
    imatrix = encoded(model, 3, again, &n_rows);
    assert_int_equal(sotto_imatrix_write(imatrix, other, names, 2), SOTTO_OK);
    sotto_imatrix_free(imatrix);
    size_t a_size, b_size;
    uint8_t *a = read_bytes(path, &a_size), *b = read_bytes(other, &b_size);
    assert_int_equal(a_size, b_size);
    assert_memory_equal(a, b, a_size);
    free(a);
    free(b);
    sotto_model_free(model);
}

/* ---- files ---- */

static struct sotto_imatrix * example(const struct sotto_allocator * allocator) {
    struct sotto_imatrix * imatrix = sotto_imatrix_new(allocator);
    struct product a = product_of("w", 4, 2, 1), b = product_of("b", 7, 3, 2);
    bool well = imatrix != NULL && sotto_imatrix_collect(sotto_graph_node(a.graph, 0), false, imatrix) &&
                sotto_imatrix_collect(sotto_graph_node(b.graph, 0), false, imatrix);
    product_free(&a);
    product_free(&b);
    if (well)
        return imatrix;
    sotto_imatrix_free(imatrix);
    return NULL;
}

static void there_and_back(void ** state) {
    (void)state;
    static const char * const names[] = { "a.wav", "b.wav" };
    struct sotto_imatrix *imatrix = example(NULL), *back = NULL;
    assert_int_equal(sotto_imatrix_write(imatrix, path, names, 2), SOTTO_OK);
    assert_int_equal(sotto_imatrix_open(path, NULL, &back), SOTTO_OK);
    assert_int_equal(sotto_imatrix_n_entries(back), 2);
    for (size_t k = 0; k < 2; k++) {
        int64_t n, m;
        const char * name = sotto_imatrix_name(imatrix, k);
        const float *x = sotto_imatrix_find(imatrix, name, &n), *y = sotto_imatrix_find(back, name, &m);
        assert_int_equal(n, m);
        assert_memory_equal(x, y, (size_t)n * sizeof(*x));
    }
    struct sotto_gguf_context * gguf = sotto_gguf_open(path, NULL);
    const char * text;
    uint64_t number;
    assert_true(sotto_gguf_get_str(gguf, "general.type", &text));
    assert_string_equal(text, "imatrix");
    assert_string_equal(sotto_gguf_get_arr_str(gguf, sotto_gguf_find_key(gguf, "imatrix.datasets"), 1), "b.wav");
    assert_true(sotto_gguf_get_uint(gguf, "imatrix.chunk_size", &number));
    assert_int_equal(number, 21);
    assert_true(sotto_gguf_get_uint(gguf, "imatrix.chunk_count", &number));
    assert_int_equal(number, 1);
    float counts[1];
    int64_t id = sotto_gguf_find_tensor(gguf, "b.counts");
    assert_int_equal(sotto_gguf_read_tensor(gguf, id, counts, 0, sizeof(counts)), SOTTO_OK);
    assert_true(counts[0] == 21);
    sotto_gguf_free(gguf);
    sotto_imatrix_free(back);

    assert_int_equal(sotto_imatrix_write(imatrix, "/nonexistent/x", NULL, 0), SOTTO_E_GGUF_IO_OPEN);
    assert_int_equal(sotto_imatrix_write(NULL, path, NULL, 0), SOTTO_E_NULLARG);
    assert_int_equal(sotto_imatrix_write(imatrix, NULL, NULL, 0), SOTTO_E_NULLARG);
    assert_int_equal(sotto_imatrix_write(imatrix, path, NULL, 1), SOTTO_E_NULLARG);
    assert_int_equal(sotto_imatrix_open(NULL, NULL, &back), SOTTO_E_NULLARG);
    assert_int_equal(sotto_imatrix_open(path, NULL, NULL), SOTTO_E_NULLARG);
    sotto_imatrix_free(imatrix);
    struct sotto_imatrix * empty = sotto_imatrix_new(NULL);
    assert_int_equal(sotto_imatrix_write(empty, path, NULL, 0), SOTTO_E_STATE);
    sotto_imatrix_free(empty);
}

/* A file of one entry "w". */
static void write_entry(const char * type, enum sotto_type sums_type, int64_t n, int64_t n_matrices, const float * sums,
                        int64_t n_counts, const float * counts) {
    struct sotto_gguf_context * gguf = sotto_gguf_init_empty();
    struct sotto_context * ctx =
        sotto_init((struct sotto_init_params){ .mem_size = 4 * sotto_tensor_overhead(), .no_alloc = true });
    assert_int_equal(sotto_gguf_set_val_str(gguf, "general.type", type), SOTTO_OK);
    if (sums != NULL) {
        struct sotto_tensor * t = sotto_new_tensor_2d(ctx, sums_type, n, n_matrices);
        assert_int_equal(sotto_gguf_add_tensor(gguf, sotto_set_name(t, "w.in_sum2")), SOTTO_OK);
        assert_int_equal(sotto_gguf_set_tensor_data(gguf, "w.in_sum2", sums), SOTTO_OK);
    }
    if (counts != NULL) {
        struct sotto_tensor * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 1, n_counts);
        assert_int_equal(sotto_gguf_add_tensor(gguf, sotto_set_name(t, "w.counts")), SOTTO_OK);
        assert_int_equal(sotto_gguf_set_tensor_data(gguf, "w.counts", counts), SOTTO_OK);
    }
    assert_true(sotto_gguf_write_to_file(gguf, path, false));
    sotto_gguf_free(gguf);
    sotto_free(ctx);
}

static void refused(enum sotto_status status) {
    struct sotto_imatrix * imatrix = (void *)path;
    assert_int_equal(sotto_imatrix_open(path, NULL, &imatrix), status);
    assert_int_equal(sotto_last_error(), status);
    assert_null(imatrix);
}

static void files(void ** state) {
    (void)state;
    static const float sums[] = { 8, 2, 0, 6, 6, 6 }, counts[] = { 2, 3 }, none[] = { 0, 3 };
    static const float negative[] = { 8, -2, 0, 6, 6, 6 }, infinite[] = { 8, 2, 0, 6, INFINITY, 6 };
    static const float nan[] = { NAN, 3 }, below[] = { -1, 3 };
    struct sotto_imatrix * imatrix;
    int64_t n;
    write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, sums, 2, counts); /* two experts */
    assert_int_equal(sotto_imatrix_open(path, NULL, &imatrix), SOTTO_OK);
    assert_memory_equal(sotto_imatrix_find(imatrix, "w", &n), ((float[]){ 4, 1, 0, 2, 2, 2 }), 6 * sizeof(float));
    assert_int_equal(n, 6);
    sotto_imatrix_free(imatrix);
    write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, sums, 2, none); /* one was never used */
    assert_int_equal(sotto_imatrix_open(path, NULL, &imatrix), SOTTO_OK);
    assert_memory_equal(sotto_imatrix_find(imatrix, "w", &n), ((float[]){ 1, 1, 1, 2, 2, 2 }), 6 * sizeof(float));
    sotto_imatrix_free(imatrix);

    write_entry("model", SOTTO_TYPE_F32, 3, 2, sums, 2, counts);
    refused(SOTTO_E_MODEL_FORMAT);
    write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, NULL, 2, counts);
    refused(SOTTO_E_MODEL_CORRUPT);
    write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, sums, 0, NULL);
    refused(SOTTO_E_MODEL_CORRUPT);
    write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, sums, 1, counts);
    refused(SOTTO_E_MODEL_CORRUPT);
    write_entry("imatrix", SOTTO_TYPE_F32, 6, 1, sums, 2, counts);
    refused(SOTTO_E_MODEL_CORRUPT);
    write_entry("imatrix", SOTTO_TYPE_F16, 3, 2, sums, 2, counts);
    refused(SOTTO_E_MODEL_CORRUPT);
    write_entry("imatrix", SOTTO_TYPE_F32, 0, 1, sums, 1, counts);
    refused(SOTTO_E_MODEL_CORRUPT);
    const float * const bad_sums[] = { negative, infinite };
    const float * const bad_counts[] = { nan, below };
    for (int i = 0; i < 2; i++) {
        write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, bad_sums[i], 2, counts);
        refused(SOTTO_E_MODEL_CORRUPT);
        write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, sums, 2, bad_counts[i]);
        refused(SOTTO_E_MODEL_CORRUPT);
    }
    size_t size;
    write_entry("imatrix", SOTTO_TYPE_F32, 3, 2, sums, 2, counts);
    uint8_t * bytes = read_bytes(path, &size);
    write_bytes(path, bytes, size - 64);
    refused(SOTTO_E_MODEL_TRUNCATED);
    write_bytes(path, "nothing of the kind", 19);
    refused(SOTTO_E_MODEL_FORMAT);
    free(bytes);
    unlink(path);
    refused(SOTTO_E_IO);
}

static enum sotto_status gather_and_write(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct sotto_imatrix * imatrix = example(allocator);
    if (imatrix == NULL)
        return sotto_last_error();
    static const char * const names[] = { "a.wav" };
    enum sotto_status status = sotto_imatrix_write(imatrix, path, names, 1);
    sotto_imatrix_free(imatrix);
    return status;
}

static enum sotto_status open_it(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct sotto_imatrix * imatrix;
    enum sotto_status status = sotto_imatrix_open(path, allocator, &imatrix);
    sotto_imatrix_free(imatrix);
    return status;
}

static void nth_allocation_fails(void ** state) {
    (void)state;
    assert_true(refuse_each(gather_and_write, NULL) > 10);
    assert_true(refuse_each(open_it, NULL) > 10);
}

static int setup(void ** state) {
    (void)state;
    snprintf(path, sizeof(path), "%s", temp_path("imatrix"));
    snprintf(other, sizeof(other), "%s", temp_path("imatrix-other"));
    return 0;
}

static int teardown(void ** state) {
    (void)state;
    unlink(path);
    unlink(other);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers),        cmocka_unit_test(strided), cmocka_unit_test(encoder),
        cmocka_unit_test(there_and_back), cmocka_unit_test(files),   cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
