/* SPDX-License-Identifier: MIT */
/* MUL_MAT, GET_ROWS and packed weights through the engine: strides, batches, types, threads, levels, and refusals.
 * Every result is compared bit for bit with the order of roundings that docs/numerics.md states.
 *
 *     test_mul_mat [SEED] */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/test_hooks.h"
#include "sotto/sotto.h"

typedef struct sotto_tensor T;

static uint64_t seed = 1, state;

static uint32_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float random_float(void) { return (float)((int32_t)next() * 0x1p-31); }

/* ---- a place to work ---- */

struct bench {
    struct sotto_context * ctx;
    sotto_backend_t cpu;
};

static void set_up(struct bench * b, int n_threads) {
    b->ctx = sotto_init((struct sotto_init_params){ .mem_size = 64u << 20 });
    b->cpu = sotto_backend_cpu_init();
    assert_non_null(b->ctx);
    assert_non_null(b->cpu);
    assert_int_equal(sotto_backend_cpu_set_n_threads(b->cpu, n_threads), SOTTO_OK);
}

static void tear_down(struct bench * b) {
    sotto_backend_free(b->cpu);
    sotto_free(b->ctx);
}

static enum sotto_status compute(struct bench * b, T * y) {
    struct sotto_cgraph * g = sotto_new_graph_custom(b->ctx, 64, false);
    assert_int_equal(sotto_build_forward_expand(g, y), SOTTO_OK);
    return sotto_backend_graph_compute(b->cpu, g);
}

/* A fresh dense tensor of random values. */
static T * random_tensor(struct sotto_context * ctx, enum sotto_type type, int64_t n0, int64_t n1, int64_t n2,
                         int64_t n3) {
    T * t = sotto_new_tensor_4d(ctx, type, n0, n1, n2, n3);
    assert_non_null(t);
    for (int64_t i = 0; i < sotto_nelements(t); i++) {
        const float x = random_float();
        assert_int_equal(type == SOTTO_TYPE_I32 ? sotto_set_i32_1d(t, i, (int32_t)next()) : sotto_set_f32_1d(t, i, x),
                         SOTTO_OK);
    }
    return t;
}

/* ---- the definition ---- */

static float definition(const T * a, const T * b, int64_t i, int64_t j, int64_t s, int64_t t) {
    const int64_t s2 = s / (b->ne[2] / a->ne[2]), t2 = t / (b->ne[3] / a->ne[3]);
    float y = 0.0f;
    for (int64_t l0 = 0; l0 < a->ne[0]; l0 += 256) {
        float sum = 0.0f;
        for (int64_t l = l0; l < a->ne[0] && l < l0 + 256; l++) {
            sum = fmaf(sotto_get_f32_nd(a, l, i, s2, t2), sotto_get_f32_nd(b, l, j, s, t), sum);
        }
        y = l0 == 0 ? sum : y + sum;
    }
    return y;
}

static void check_product(const T * y, const T * a, const T * b) {
    assert_int_equal(sotto_last_error(), SOTTO_OK);
    for (int64_t t = 0; t < y->ne[3]; t++) {
        for (int64_t s = 0; s < y->ne[2]; s++) {
            for (int64_t j = 0; j < y->ne[1]; j++) {
                for (int64_t i = 0; i < y->ne[0]; i++) {
                    const float want = definition(a, b, i, j, s, t), got = sotto_get_f32_nd(y, i, j, s, t);
                    if (memcmp(&want, &got, sizeof(want)) != 0 && !(isnan(want) && isnan(got))) {
                        fail_msg("seed %llu: y[%d,%d,%d,%d] of %d x %d x %d is %a, not %a", (unsigned long long)seed,
                                 (int)i, (int)j, (int)s, (int)t, (int)y->ne[0], (int)y->ne[1], (int)a->ne[0],
                                 (double)got, (double)want);
                    }
                }
            }
        }
    }
}

static void multiply_and_check(struct bench * w, T * a, T * b) {
    T * y = sotto_mul_mat(w->ctx, a, b);
    assert_non_null(y);
    assert_int_equal(compute(w, y), SOTTO_OK);
    check_product(y, a, b);
}

/* A packed copy of a host tensor; the caller frees buffer and context. */
struct packed {
    struct sotto_context * ctx;
    sotto_backend_buffer_t buffer;
    T * t;
};

static struct packed pack(const T * host) {
    struct packed p;
    p.ctx = sotto_init((struct sotto_init_params){ .mem_size = 16 * sotto_tensor_overhead(), .no_alloc = true });
    p.t = sotto_new_tensor(p.ctx, host->type, 4, host->ne);
    p.buffer = sotto_backend_alloc_ctx_tensors_from_buft(p.ctx, sotto_backend_cpu_packed_buffer_type());
    assert_non_null(p.buffer);
    assert_int_equal(sotto_backend_tensor_set(p.t, host->data, 0, sotto_nbytes(host)), SOTTO_OK);
    return p;
}

static void unpack(struct packed * p) {
    sotto_backend_buffer_free(p->buffer);
    sotto_free(p->ctx);
}

/* The product with a packed a, which no accessor can read, beside its plain twin. */
static void multiply_packed_and_check(struct bench * w, T * packed, const T * plain, T * b) {
    T * y = sotto_mul_mat(w->ctx, packed, b);
    assert_non_null(y);
    assert_int_equal(compute(w, y), SOTTO_OK);
    check_product(y, plain, b);
}

/* ---- products ---- */

static const enum sotto_type types[] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16 };

static void test_types(void ** arg) {
    (void)arg;
    struct bench w;
    set_up(&w, 2);
    for (int i = 0; i < 9; i++) {
        T * a = random_tensor(w.ctx, types[i / 3], 300, 35, 1, 1);
        for (int m = 1; m <= 13; m += 4) {
            T * b = random_tensor(w.ctx, types[i % 3], 300, m, 1, 1);
            multiply_and_check(&w, a, b);
            if (a->type != SOTTO_TYPE_BF16) {
                struct packed p = pack(a);
                multiply_packed_and_check(&w, p.t, a, b);
                unpack(&p);
            }
        }
    }
    tear_down(&w);
}

static void test_batches(void ** arg) {
    (void)arg;
    static const int batch[][2] = { { 1, 1 }, { 3, 1 }, { 3, 2 }, { 1, 2 } };
    static const int repeat[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 } };
    struct bench w;
    set_up(&w, 3);
    for (int i = 0; i < 16; i++) {
        const int *n = batch[i / 4], *r = repeat[i % 4];
        T * a = random_tensor(w.ctx, types[next() % 2], 65, 19, n[0], n[1]);
        T * b = random_tensor(w.ctx, SOTTO_TYPE_F32, 65, 7, n[0] * r[0], n[1] * r[1]);
        multiply_and_check(&w, a, b);
        struct packed p = pack(a);
        multiply_packed_and_check(&w, p.t, a, b);
        unpack(&p);
    }
    tear_down(&w);
}

static void test_strides(void ** arg) {
    (void)arg;
    static const int axes[][4] = { { 0, 2, 1, 3 }, { 0, 1, 3, 2 }, { 0, 3, 2, 1 } };
    struct bench w;
    set_up(&w, 2);
    for (int i = 0; i < 3; i++) {
        const int * x = axes[i];
        int64_t na[4] = { 40, 18, 2, 3 }, nb[4] = { 40, 5, 4, 3 }, ma[4], mb[4];
        for (int d = 0; d < 4; d++) {
            ma[d] = na[x[d]]; /* these permutations are their own inverses */
            mb[d] = nb[x[d]];
        }
        T * a =
            sotto_permute(w.ctx, random_tensor(w.ctx, types[i], ma[0], ma[1], ma[2], ma[3]), x[0], x[1], x[2], x[3]);
        T * b =
            sotto_permute(w.ctx, random_tensor(w.ctx, types[i], mb[0], mb[1], mb[2], mb[3]), x[0], x[1], x[2], x[3]);
        multiply_and_check(&w, a, b);
    }
    for (int i = 0; i < 3; i++) { /* b transposed, a with padded rows, both at odd offsets */
        T *a = random_tensor(w.ctx, types[i], 300, 40, 1, 1), *b = random_tensor(w.ctx, types[2 - i], 20, 290, 1, 1);
        const size_t es = sotto_element_size(a);
        T * window = sotto_view_2d(w.ctx, a, 290, 33, a->nb[1], a->nb[1] + 3 * es);
        T * columns = sotto_view_2d(w.ctx, b, 17, 290, b->nb[1], 3 * sotto_element_size(b));
        multiply_and_check(&w, window, sotto_transpose(w.ctx, columns));
    }
    T * same = random_tensor(w.ctx, SOTTO_TYPE_F32, 33, 30, 1, 1); /* a and b views of one tensor */
    multiply_and_check(&w, sotto_view_2d(w.ctx, same, 33, 17, same->nb[1], 0),
                       sotto_view_2d(w.ctx, same, 33, 20, same->nb[1], 10 * same->nb[1]));
    tear_down(&w);
}

static void test_empty(void ** arg) {
    (void)arg;
    struct bench w;
    set_up(&w, 2);
    T * y = sotto_mul_mat(w.ctx, random_tensor(w.ctx, SOTTO_TYPE_F32, 0, 20, 1, 1),
                          random_tensor(w.ctx, SOTTO_TYPE_F32, 0, 3, 1, 1));
    memset(y->data, 0xff, sotto_nbytes(y));
    assert_int_equal(compute(&w, y), SOTTO_OK);
    for (int64_t i = 0; i < 60; i++) {
        assert_true(sotto_get_f32_1d(y, i) == 0.0f);
    }
    y = sotto_mul_mat(w.ctx, random_tensor(w.ctx, SOTTO_TYPE_F32, 8, 20, 1, 1),
                      random_tensor(w.ctx, SOTTO_TYPE_F32, 8, 0, 1, 1));
    assert_int_equal(compute(&w, y), SOTTO_OK);
    y = sotto_mul_mat(w.ctx, random_tensor(w.ctx, SOTTO_TYPE_F32, 8, 0, 1, 1),
                      random_tensor(w.ctx, SOTTO_TYPE_F32, 8, 3, 1, 1));
    assert_int_equal(compute(&w, y), SOTTO_OK);
    tear_down(&w);
}

static void test_not_finite(void ** arg) {
    (void)arg;
    struct bench w;
    set_up(&w, 2);
    T *a = random_tensor(w.ctx, SOTTO_TYPE_F16, 300, 20, 1, 1), *b = random_tensor(w.ctx, SOTTO_TYPE_F32, 300, 6, 1, 1);
    sotto_set_f32_nd(a, 7, 3, 0, 0, INFINITY);
    sotto_set_f32_nd(a, 299, 4, 0, 0, NAN);
    sotto_set_f32_nd(b, 7, 2, 0, 0, 0.0f);
    T * y = sotto_mul_mat(w.ctx, a, b);
    assert_int_equal(compute(&w, y), SOTTO_OK);
    check_product(y, a, b);
    assert_true(isinf(sotto_get_f32_nd(y, 3, 0, 0, 0)));
    assert_true(isnan(sotto_get_f32_nd(y, 3, 2, 0, 0))); /* infinity times zero */
    assert_true(isnan(sotto_get_f32_nd(y, 4, 5, 0, 0)));
    tear_down(&w);
}

/* One product of a few hundred chunks, the same for any threads, order of chunks and level. */
static void test_same_bits(void ** arg) {
    (void)arg;
    static const int threads[] = { 1, 2, 3, 8 };
    const enum sotto_cpu_level best = sotto_cpu_get_level();
    struct bench w;
    set_up(&w, 1);
    T *a = random_tensor(w.ctx, SOTTO_TYPE_F16, 260, 300, 1, 1),
      *b = random_tensor(w.ctx, SOTTO_TYPE_F32, 260, 210, 1, 1);
    T * first = sotto_mul_mat(w.ctx, a, b);
    assert_int_equal(compute(&w, first), SOTTO_OK);
    check_product(first, a, b);
    for (int level = 0; level <= (int)best; level++) {
        assert_int_equal(sotto_cpu_set_level((enum sotto_cpu_level)level), SOTTO_OK);
        for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
            assert_int_equal(sotto_backend_cpu_set_n_threads(w.cpu, threads[i]), SOTTO_OK);
            sotto_i_test_hooks(true, next());
            T * y = sotto_mul_mat(w.ctx, a, b);
            assert_int_equal(compute(&w, y), SOTTO_OK);
            sotto_i_test_hooks(false, 0);
            assert_memory_equal(y->data, first->data, sotto_nbytes(first));
            for (int64_t j = 0; j < 210; j += 70) { /* one column at a time, too */
                T * one = sotto_mul_mat(w.ctx, a, sotto_view_2d(w.ctx, b, 260, 1, b->nb[1], (size_t)j * b->nb[1]));
                assert_int_equal(compute(&w, one), SOTTO_OK);
                assert_memory_equal(one->data, (char *)first->data + (size_t)j * first->nb[1], sotto_nbytes(one));
            }
        }
    }
    assert_int_equal(sotto_cpu_set_level(best), SOTTO_OK);
    tear_down(&w);
}

/* ---- packed weights ---- */

static void test_round_trip(void ** arg) {
    (void)arg;
    static const int64_t shapes[][4] = { { 1, 1, 1, 1 },  { 7, 15, 1, 1 },  { 33, 16, 1, 1 },
                                         { 5, 17, 2, 3 }, { 64, 48, 2, 1 }, { 300, 1, 1, 1 } };
    struct bench w;
    set_up(&w, 1);
    for (int i = 0; i < 12; i++) {
        const int64_t * n = shapes[i / 2];
        T * host = random_tensor(w.ctx, types[i % 2], n[0], n[1], n[2], n[3]);
        struct packed p = pack(host);
        assert_false(sotto_backend_buffer_is_host(p.buffer));
        assert_true(sotto_backend_buffer_get_alloc_size(p.buffer, p.t) >= sotto_nbytes(p.t));
        const size_t size = sotto_nbytes(host), row = host->nb[1];
        char * back = malloc(size);
        assert_int_equal(sotto_backend_tensor_get(p.t, back, 0, size), SOTTO_OK);
        assert_memory_equal(back, host->data, size);
        memset(host->data, 0x5a, row); /* one row alone */
        assert_int_equal(sotto_backend_tensor_set(p.t, host->data, size - row, row), SOTTO_OK);
        assert_int_equal(sotto_backend_tensor_get(p.t, back, size - row, row), SOTTO_OK);
        assert_memory_equal(back, host->data, row);
        free(back);
        unpack(&p);
    }
    tear_down(&w);
}

static void test_packed_refuses(void ** arg) {
    (void)arg;
    struct bench w;
    set_up(&w, 1);
    T * host = random_tensor(w.ctx, SOTTO_TYPE_F16, 20, 40, 1, 1);
    struct packed p = pack(host);
    char data[80] = { 0 };
    assert_int_equal(sotto_backend_tensor_set(p.t, data, 0, 38), SOTTO_E_LAYOUT);
    assert_int_equal(sotto_backend_tensor_set(p.t, data, 2, 40), SOTTO_E_LAYOUT);
    assert_int_equal(sotto_backend_tensor_get(p.t, data, 20, 40), SOTTO_E_LAYOUT);
    assert_int_equal(sotto_backend_tensor_get(p.t, data, 39 * 40, 80), SOTTO_E_BOUNDS);
    T * b = random_tensor(w.ctx, SOTTO_TYPE_F32, 20, 2, 1, 1);
    T * odd = sotto_view_2d(p.ctx, p.t, 20, 16, p.t->nb[1], 8 * p.t->nb[1]); /* begins inside a panel */
    assert_false(sotto_backend_supports_op(w.cpu, sotto_mul_mat(w.ctx, odd, b)));
    T * narrow = sotto_view_2d(p.ctx, p.t, 10, 16, p.t->nb[1], 0);
    T * b10 = random_tensor(w.ctx, SOTTO_TYPE_F32, 10, 2, 1, 1);
    assert_false(sotto_backend_supports_op(w.cpu, sotto_mul_mat(w.ctx, narrow, b10)));
    assert_false(sotto_backend_supports_op(w.cpu, sotto_mul_mat(w.ctx, b, p.t))); /* as the second operand */
    assert_true(sotto_backend_supports_op(w.cpu, sotto_mul_mat(w.ctx, p.t, b)));
    unpack(&p);

    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 4096, .no_alloc = true });
    sotto_new_tensor_2d(ctx, SOTTO_TYPE_I32, 16, 16);
    assert_null(sotto_backend_alloc_ctx_tensors_from_buft(ctx, sotto_backend_cpu_packed_buffer_type()));
    assert_int_equal(sotto_last_error(), SOTTO_E_TYPE);
    sotto_clear_last_error();
    sotto_free(ctx);
    tear_down(&w);
}

static void test_packed_views(void ** arg) {
    (void)arg;
    struct bench w;
    set_up(&w, 2);
    T *host = random_tensor(w.ctx, SOTTO_TYPE_F16, 50, 75, 1, 1),
      *b = random_tensor(w.ctx, SOTTO_TYPE_F32, 50, 3, 1, 1);
    struct packed p = pack(host);
    for (int64_t first = 0; first < 75; first += 16) {
        for (int64_t n = 1; first + n <= 75; n += 13) {
            const size_t at = (size_t)first * host->nb[1];
            T * a = sotto_view_2d(w.ctx, p.t, 50, n, p.t->nb[1], at);
            multiply_packed_and_check(&w, a, sotto_view_2d(w.ctx, host, 50, n, host->nb[1], at), b);
        }
    }
    unpack(&p);
    tear_down(&w);
}

/* ---- rows ---- */

static T * indices(struct sotto_context * ctx, int64_t n, int64_t c, int64_t d, int64_t rows) {
    T * t = sotto_new_tensor_3d(ctx, SOTTO_TYPE_I32, n, c, d);
    for (int64_t i = 0; i < sotto_nelements(t); i++) {
        sotto_set_i32_1d(t, i, (int32_t)(next() % (uint32_t)rows));
    }
    return t;
}

static void check_rows(struct bench * w, T * a, const T * plain, T * b) {
    T * y = sotto_get_rows(w->ctx, a, b);
    assert_non_null(y);
    assert_int_equal(compute(w, y), SOTTO_OK);
    for (int64_t i = 0; i < sotto_nelements(y); i++) {
        int64_t i0, i1, i2, i3;
        sotto_unravel_index(y, i, &i0, &i1, &i2, &i3);
        const int64_t row = sotto_get_i32_nd(b, i1, i2, i3, 0);
        if (a->type == SOTTO_TYPE_I32) {
            assert_int_equal(sotto_get_i32_1d(y, i), sotto_get_i32_nd(plain, i0, row, i2, i3));
        } else {
            assert_true(sotto_get_f32_1d(y, i) == sotto_get_f32_nd(plain, i0, row, i2, i3));
        }
    }
}

static void test_get_rows(void ** arg) {
    (void)arg;
    static const enum sotto_type all[] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16, SOTTO_TYPE_I32 };
    struct bench w;
    set_up(&w, 3);
    for (int i = 0; i < 4; i++) {
        T * a = random_tensor(w.ctx, all[i], 256, 5, 7, 2);
        check_rows(&w, a, a, indices(w.ctx, 4, 7, 2, 5));
        T * inner = sotto_view_4d(w.ctx, a, 31, 3, 7, 2, a->nb[1], a->nb[2], a->nb[3], 33 * sotto_element_size(a));
        T * wide = indices(w.ctx, 9, 7, 2, 3);
        check_rows(&w, inner, inner, sotto_view_3d(w.ctx, wide, 6, 7, 2, wide->nb[1], wide->nb[2], 4));
        check_rows(&w, sotto_permute(w.ctx, a, 0, 2, 1, 3), sotto_permute(w.ctx, a, 0, 2, 1, 3),
                   indices(w.ctx, 4, 5, 2, 7));
        T * narrow = random_tensor(w.ctx, all[i], 1, 300, 1, 1);
        check_rows(&w, narrow, narrow, indices(w.ctx, 1000, 1, 1, 300));
        if (i < 2) {
            T * gaps = random_tensor(w.ctx, all[i], 300, 37, 2, 1);
            struct packed p = pack(gaps);
            check_rows(&w, p.t, gaps, indices(w.ctx, 50, 2, 1, 37));
            unpack(&p);
        }
    }
    tear_down(&w);
}

static void test_range(void ** arg) {
    (void)arg;
    struct bench w;
    set_up(&w, 2);
    T *a = random_tensor(w.ctx, SOTTO_TYPE_F32, 8, 5, 1, 1), *b = indices(w.ctx, 3, 1, 1, 5);
    static const int32_t bad[] = { -1, 5, INT32_MAX, INT32_MIN };
    for (int i = 0; i < 4; i++) {
        sotto_set_i32_1d(b, 1, bad[i]);
        assert_int_equal(compute(&w, sotto_get_rows(w.ctx, a, b)), SOTTO_E_RANGE);
        assert_non_null(strstr(sotto_last_error_text(), "get_rows"));
    }
    sotto_set_i32_1d(b, 1, 4);
    sotto_clear_last_error();
    check_rows(&w, a, a, b); /* all is still usable */
    tear_down(&w);
}

/* Out of packed weights: the same elements in a plain tensor, converted if asked. */
static void test_copy_out(void ** arg) {
    (void)arg;
    struct bench w;
    set_up(&w, 3);
    for (int i = 0; i < 2; i++) {
        T * host = random_tensor(w.ctx, types[i], 300, 37, 2, 1);
        struct packed p = pack(host);
        T * y = sotto_cont(w.ctx, p.t);
        assert_int_equal(compute(&w, y), SOTTO_OK);
        assert_memory_equal(y->data, host->data, sotto_nbytes(host));
        y = sotto_cpy(w.ctx, p.t, sotto_new_tensor_2d(w.ctx, types[1 - i], 100, 222)); /* other rows, other type */
        assert_int_equal(compute(&w, y), SOTTO_OK);
        T * want = sotto_cpy(w.ctx, host, sotto_new_tensor_2d(w.ctx, types[1 - i], 100, 222));
        assert_int_equal(compute(&w, want), SOTTO_OK);
        assert_memory_equal(y->data, want->data, sotto_nbytes(want));
        unpack(&p);
    }
    tear_down(&w);
}

int main(int argc, char ** argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),      cmocka_unit_test(test_batches),        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_empty),      cmocka_unit_test(test_not_finite),     cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_packed_refuses), cmocka_unit_test(test_packed_views),
        cmocka_unit_test(test_get_rows),   cmocka_unit_test(test_range),          cmocka_unit_test(test_copy_out),
    };
    if (argc > 1) {
        seed = strtoull(argv[1], NULL, 0);
    }
    state = seed;
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("mul_mat", tests, NULL, NULL);
}
