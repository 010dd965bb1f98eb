/* SPDX-License-Identifier: MIT */
/* Weights of every type through the engine: packed gives the bits of plain in every op that reads packed weights, at
 * every level, for any number of threads and any order of chunks; a product that chooses matrices gives the bits of
 * single products; what goes into a packed buffer comes out unchanged. Values themselves: test_every_type.py.
 *
 *     test_quantised [SEED] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/test_hooks.h"
#include "refuse_each.h"
#include "small_graph.h"
#include "sotto/sotto.h"

typedef struct sotto_tensor T;

static uint64_t seed = 1, state;

static uint32_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float random_float(void) { return (float)((int32_t)next() * 0x1p-31); }

/* ---- weights ---- */

static bool is_weight(int type) {
    return type == SOTTO_TYPE_F32 || sotto_get_type_traits((enum sotto_type)type)->to_float;
}

#define FOR_EACH_WEIGHT_TYPE(type)                                               \
    for (enum sotto_type type = SOTTO_TYPE_F32; type < SOTTO_TYPE_COUNT; type++) \
        if (is_weight((int)type))

/* Rows of at least `least` elements. */
static int64_t width(enum sotto_type type, int64_t least) {
    const int64_t block = sotto_blck_size(type);
    return (least + block - 1) / block * block;
}

/* Random weights: floats, quantised where the type has no values of its own. */
static T * weights(struct sotto_context * ctx, enum sotto_type type, int64_t n0, int64_t n1, int64_t n2) {
    float row[1024], ones[1024];
    T * t = sotto_new_tensor_3d(ctx, type, n0, n1, n2);
    assert_non_null(t);
    assert_true(n0 <= 1024);
    for (int64_t r = 0; r < sotto_nrows(t); r++) {
        for (int64_t i = 0; i < n0; i++) {
            row[i] = random_float();
            ones[i] = 1.0f;
        }
        const size_t size = sotto_row_size(type, n0);
        assert_int_equal(sotto_quantize_chunk(type, row, (char *)t->data + (size_t)r * size, 0, 1, n0, ones), size);
    }
    return t;
}

static T * floats(struct sotto_context * ctx, int64_t n0, int64_t n1, int64_t n2) {
    return weights(ctx, SOTTO_TYPE_F32, n0, n1, n2);
}

static T * ids_below(struct sotto_context * ctx, int64_t n0, int64_t n1, uint32_t n) {
    T * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_I32, n0, n1);
    for (int64_t i = 0; i < n0 * n1; i++) {
        sotto_set_i32_1d(t, i, (int32_t)(next() % n));
    }
    return t;
}

/* A packed copy of a host tensor. */
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

/* ---- running ---- */

static enum sotto_status compute(struct sotto_context * ctx, T * y, int n_threads) {
    sotto_backend_t cpu = sotto_backend_cpu_init();
    assert_non_null(cpu);
    assert_int_equal(sotto_backend_cpu_set_n_threads(cpu, n_threads), SOTTO_OK);
    const enum sotto_status status = sotto_backend_graph_compute(cpu, graph_of(ctx, y));
    sotto_backend_free(cpu);
    return status;
}

/* Compute y at every level with 1 and 3 threads, chunks in orders of their own: the bytes of `want`, or at the first call
 * its bytes to be. */
static void same_bytes(struct sotto_context * ctx, T * y, void * want, bool * known) {
    assert_non_null(y);
    const enum sotto_cpu_level top = sotto_cpu_get_level();
    for (int level = 0; level <= (int)top; level++) {
        assert_int_equal(sotto_cpu_set_level((enum sotto_cpu_level)level), SOTTO_OK);
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            memset(y->data, 0x5A, sotto_nbytes(y));
            sotto_i_test_hooks(true, next());
            assert_int_equal(compute(ctx, y, n_threads), SOTTO_OK);
            sotto_i_test_hooks(false, 0);
            if (!*known) {
                memcpy(want, y->data, sotto_nbytes(y));
                *known = true;
            } else if (memcmp(want, y->data, sotto_nbytes(y)) != 0) {
                fail_msg("seed %llu: %s of %s at level %s, %d threads: other bits", (unsigned long long)seed,
                         sotto_op_desc(y), sotto_type_name(y->src[0]->type),
                         sotto_cpu_level_name((enum sotto_cpu_level)level), n_threads);
            }
        }
    }
    assert_int_equal(sotto_cpu_set_level(top), SOTTO_OK);
}

/* The same operation on plain and on packed weights. */
typedef T * (*operation)(struct sotto_context * ctx, T * a, T * other);

static void compare(struct sotto_context * ctx, operation op, T * plain, T * packed, T * other) {
    static char want[1 << 18];
    bool known = false;
    T * y = op(ctx, plain, other);
    assert_non_null(y);
    assert_true(sotto_nbytes(y) <= sizeof(want));
    same_bytes(ctx, y, want, &known);
    same_bytes(ctx, op(ctx, packed, other), want, &known);
}

static T * product(struct sotto_context * ctx, T * a, T * b) { return sotto_mul_mat(ctx, a, b); }

static T * exact_product(struct sotto_context * ctx, T * a, T * b) {
    T * y = sotto_mul_mat(ctx, a, b);
    assert_int_equal(sotto_mul_mat_set_prec(y, SOTTO_PREC_F32), SOTTO_OK);
    return y;
}

static T * rows(struct sotto_context * ctx, T * a, T * ids) { return sotto_get_rows(ctx, a, ids); }

static T * contiguous(struct sotto_context * ctx, T * a, T * none) {
    (void)none;
    return sotto_cont(ctx, a);
}

static T * as_f32(struct sotto_context * ctx, T * a, T * none) {
    (void)none;
    return sotto_cast(ctx, a, SOTTO_TYPE_F32);
}

static T * in_other_rows(struct sotto_context * ctx, T * a, T * none) {
    (void)none;
    const int64_t n = a->ne[1] * a->ne[2];
    return sotto_cpy(ctx, a, sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, n, a->ne[0]));
}

/* Packed floats into blocks, rows of another length. */
static T * quantised(struct sotto_context * ctx, T * a, T * none) {
    (void)none;
    return sotto_cpy(ctx, a, sotto_new_tensor_2d(ctx, SOTTO_TYPE_Q5_0, 96, sotto_nelements(a) / 96));
}

static void packed_is_plain(void ** test) {
    (void)test;
    FOR_EACH_WEIGHT_TYPE(type) {
        struct sotto_context * ctx = context_of(16u << 20, false);
        T * a = weights(ctx, type, width(type, 288), 35, 2);
        struct packed p = pack(a);
        compare(ctx, product, a, p.t, floats(ctx, a->ne[0], 1, 2));
        compare(ctx, product, a, p.t, floats(ctx, a->ne[0], 7, 4));
        compare(ctx, exact_product, a, p.t, floats(ctx, a->ne[0], 5, 2));
        compare(ctx, rows, a, p.t, ids_below(ctx, 9, 2, 35));
        compare(ctx, contiguous, a, p.t, NULL);
        compare(ctx, as_f32, a, p.t, NULL);
        compare(ctx, in_other_rows, a, p.t, NULL);
        if (!sotto_is_quantized(type)) {
            compare(ctx, quantised, a, p.t, NULL);
        }
        unpack(&p);
        sotto_free(ctx);
    }
}

/* Views by whole panels; and many columns, more than one group of them. */
static void packed_views(void ** test) {
    (void)test;
    static const enum sotto_type types[] = { SOTTO_TYPE_Q8_0, SOTTO_TYPE_Q4_K, SOTTO_TYPE_BF16, SOTTO_TYPE_NVFP4 };
    for (size_t i = 0; i < 4; i++) {
        struct sotto_context * ctx = context_of(16u << 20, false);
        T * a = weights(ctx, types[i], width(types[i], 64), 75, 1);
        struct packed p = pack(a);
        for (int64_t first = 0; first < 75; first += 32) {
            const int64_t n = 75 - first < 21 ? 75 - first : 21;
            const size_t at = (size_t)first * a->nb[1];
            compare(ctx, product, sotto_view_2d(ctx, a, a->ne[0], n, a->nb[1], at),
                    sotto_view_2d(ctx, p.t, a->ne[0], n, p.t->nb[1], at), floats(ctx, a->ne[0], 3, 1));
        }
        compare(ctx, product, a, p.t, floats(ctx, a->ne[0], 205, 1));
        unpack(&p);
        sotto_free(ctx);
    }
}

/* Bytes in, bytes out: all at once, by rows, through a view, from one packed buffer to another. */
static void packed_keeps_bytes(void ** test) {
    (void)test;
    FOR_EACH_WEIGHT_TYPE(type) {
        struct sotto_context * ctx = context_of(4u << 20, false);
        T * a = weights(ctx, type, width(type, 64), 37, 3);
        struct packed p = pack(a), q = pack(a);
        char * back = malloc(sotto_nbytes(a));
        const size_t row = a->nb[1];
        assert_int_equal(sotto_backend_tensor_get(p.t, back, 0, sotto_nbytes(a)), SOTTO_OK);
        assert_memory_equal(back, a->data, sotto_nbytes(a));
        assert_int_equal(sotto_backend_tensor_set(p.t, (char *)a->data + 2 * row, 40 * row, row), SOTTO_OK);
        assert_int_equal(sotto_backend_tensor_get(p.t, back, 39 * row, 3 * row), SOTTO_OK);
        assert_memory_equal(back, (char *)a->data + 39 * row, row);
        assert_memory_equal(back + row, (char *)a->data + 2 * row, row);
        assert_memory_equal(back + 2 * row, (char *)a->data + 41 * row, row);
        assert_int_equal(sotto_backend_tensor_copy(q.t, p.t), SOTTO_OK);
        assert_int_equal(sotto_backend_tensor_get(p.t, back, 0, sotto_nbytes(a)), SOTTO_OK);
        assert_memory_equal(back, a->data, sotto_nbytes(a));
        assert_int_equal(sotto_backend_tensor_set(p.t, a->data, 0, row - 1), SOTTO_E_LAYOUT);
        free(back);
        unpack(&p);
        unpack(&q);
        sotto_free(ctx);
    }
}

/* ---- mul_mat_id ---- */

static T * choose(struct sotto_context * ctx, T * as, T * b, T * ids) {
    T * y = sotto_mul_mat_id(ctx, as, b, ids);
    assert_non_null(y);
    return y;
}

/* Column (e, c) as a product of its own. */
static void check_column(struct sotto_context * ctx, const T * y, T * as, T * b, const T * ids, int64_t e, int64_t c) {
    const int64_t id = sotto_get_i32_nd(ids, e, c, 0, 0);
    T * one = sotto_mul_mat(ctx, sotto_view_2d(ctx, as, as->ne[0], as->ne[1], as->nb[1], (size_t)id * as->nb[2]),
                            sotto_view_1d(ctx, b, b->ne[0], (size_t)(e % b->ne[1]) * b->nb[1] + (size_t)c * b->nb[2]));
    assert_int_equal(compute(ctx, one, 1), SOTTO_OK);
    assert_memory_equal(one->data, (char *)y->data + (size_t)e * y->nb[1] + (size_t)c * y->nb[2], one->nb[1]);
}

static void chosen_is_single(void ** test) {
    (void)test;
    static const int64_t shapes[][4] = { { 1, 1, 1, 3 }, { 4, 2, 5, 6 }, { 2, 2, 130, 2 }, { 3, 1, 2, 40 } };
    FOR_EACH_WEIGHT_TYPE(type) {
        for (size_t s = 0; s < 4; s++) {
            const int64_t used = shapes[s][0], given = shapes[s][1], tokens = shapes[s][2], matrices = shapes[s][3];
            if (s >= 2 && type != SOTTO_TYPE_Q5_0 && type != SOTTO_TYPE_F32) {
                continue;
            }
            struct sotto_context * ctx = context_of(32u << 20, false);
            static char want[1 << 18];
            bool known = false;
            T *as = weights(ctx, type, width(type, 32), 21, matrices), *b = floats(ctx, as->ne[0], given, tokens);
            /* ids as they come from an argsort: a view of longer rows */
            T * ids = sotto_view_2d(ctx, ids_below(ctx, used + 3, tokens, (uint32_t)matrices), used, tokens,
                                    4 * (size_t)(used + 3), 8);
            T * y = choose(ctx, as, b, ids);
            same_bytes(ctx, y, want, &known);
            for (int64_t i = 0; i < used * tokens; i += 1 + used * tokens / 16) {
                check_column(ctx, y, as, b, ids, i % used, i / used);
            }
            struct packed p = pack(as);
            same_bytes(ctx, choose(ctx, p.t, b, ids), want, &known);
            unpack(&p);
            sotto_free(ctx);
        }
    }
}

static void chosen_out_of_range(void ** test) {
    (void)test;
    static const int32_t bad[] = { -1, 4, INT32_MAX, INT32_MIN };
    struct sotto_context * ctx = context_of(4u << 20, false);
    T *as = weights(ctx, SOTTO_TYPE_Q8_0, 32, 5, 4), *b = floats(ctx, 32, 1, 3), *ids = ids_below(ctx, 2, 3, 4);
    for (int i = 0; i < 4; i++) {
        sotto_set_i32_1d(ids, 5, bad[i]);
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            assert_int_equal(compute(ctx, choose(ctx, as, b, ids), n_threads), SOTTO_E_RANGE);
            assert_non_null(strstr(sotto_last_error_text(), "mul_mat_id"));
        }
    }
    T * none = sotto_new_tensor_3d(ctx, SOTTO_TYPE_Q8_0, 32, 5, 0);
    assert_int_equal(compute(ctx, choose(ctx, none, b, ids), 2), SOTTO_E_RANGE);
    sotto_clear_last_error();
    sotto_free(ctx);
}

static void chosen_empty(void ** test) {
    (void)test;
    struct sotto_context * ctx = context_of(4u << 20, false);
    T * no_rows = choose(ctx, weights(ctx, SOTTO_TYPE_F32, 8, 0, 4), floats(ctx, 8, 1, 3), ids_below(ctx, 2, 3, 4));
    assert_int_equal(compute(ctx, no_rows, 2), SOTTO_OK);
    T * no_tokens = choose(ctx, weights(ctx, SOTTO_TYPE_F32, 8, 2, 4), floats(ctx, 8, 1, 0), ids_below(ctx, 2, 0, 4));
    assert_int_equal(compute(ctx, no_tokens, 2), SOTTO_OK);
    T * no_terms = choose(ctx, weights(ctx, SOTTO_TYPE_F32, 0, 18, 4), floats(ctx, 0, 1, 3), ids_below(ctx, 2, 3, 4));
    assert_int_equal(compute(ctx, no_terms, 2), SOTTO_OK);
    for (int64_t i = 0; i < sotto_nelements(no_terms); i++) {
        assert_true(sotto_get_f32_1d(no_terms, i) == 0.0f);
    }
    sotto_free(ctx);
}

/* ---- what the CPU says of types ---- */

/* Rows can be written that need no search tables. */
static bool is_written(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || (sotto_get_type_traits(type)->from_float_ref && type != SOTTO_TYPE_IQ2_S &&
                                      type != SOTTO_TYPE_IQ3_XXS && type != SOTTO_TYPE_IQ3_S);
}

/* What builders accept is computed. */
static void supported_types(void ** test) {
    (void)test;
    sotto_backend_t cpu = sotto_backend_cpu_init();
    FOR_EACH_WEIGHT_TYPE(type) {
        struct sotto_context * ctx = context_of(4u << 20, false);
        T *a = sotto_new_tensor_2d(ctx, type, 256, 3), *b = floats(ctx, 256, 3, 1);
        assert_true(sotto_backend_supports_op(cpu, sotto_mul_mat(ctx, a, b)));
        assert_true(sotto_backend_supports_op(cpu, sotto_get_rows(ctx, a, ids_below(ctx, 2, 1, 3))));
        assert_true(sotto_backend_supports_op(cpu, sotto_cast(ctx, a, SOTTO_TYPE_F32)));
        assert_true(sotto_backend_supports_op(cpu, sotto_flash_attn_ext(ctx, b, a, a, NULL, 1.0f, 0.0f, 0.0f)));
        if (is_written(type)) {
            assert_true(sotto_backend_supports_op(cpu, sotto_cast(ctx, b, type)));
            assert_true(sotto_backend_supports_op(cpu, sotto_set_rows(ctx, a, b, ids_below(ctx, 3, 1, 3))));
            assert_true(sotto_backend_supports_op(cpu, sotto_add(ctx, a, b)));
            assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
        } else {
            assert_null(sotto_cast(ctx, b, type));
            assert_int_equal(sotto_context_status(ctx), SOTTO_E_TYPE);
        }
        sotto_free(ctx);
    }
    struct sotto_context * ctx = context_of(1u << 20, false);
    T * b = floats(ctx, 256, 3, 1);
    assert_true(sotto_backend_supports_op(cpu, sotto_cast(ctx, b, SOTTO_TYPE_Q8_1))); /* written, but never read */
    assert_null(sotto_cast(ctx, sotto_new_tensor_2d(ctx, SOTTO_TYPE_Q8_1, 256, 3), SOTTO_TYPE_F32));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_TYPE);
    sotto_free(ctx);
    sotto_backend_free(cpu);
}

/* ---- out of memory ---- */

/* A packed matrix, a product that chooses, rows put into blocks and read again. */
static enum sotto_status work(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    enum { N = 64 };
    struct sotto_context * data = sotto_init_ext((struct sotto_init_params){ 4096, NULL, true }, allocator);
    struct sotto_context * ctx = sotto_init_ext((struct sotto_init_params){ 65536, NULL, false }, allocator);
    T * as = data ? sotto_new_tensor_3d(data, SOTTO_TYPE_Q4_0, N, 20, 2) : NULL;
    sotto_backend_buffer_t buffer =
        data ? sotto_backend_alloc_ctx_tensors_from_buft_ext(data, sotto_backend_cpu_packed_buffer_type(), allocator)
             : NULL;
    sotto_backend_t cpu = ctx && buffer ? sotto_backend_cpu_init_ext(allocator) : NULL;
    enum sotto_status status = cpu ? SOTTO_OK : sotto_last_error();
    if (cpu) {
        char zeros[18 * N / 32 * 20 * 2] = { 0 };
        assert_int_equal(sotto_backend_tensor_set(as, zeros, 0, sizeof(zeros)), SOTTO_OK);
        T *b = floats(ctx, N, 1, 2), *ids = ids_below(ctx, 1, 2, 2);
        T * table = sotto_new_tensor_2d(ctx, SOTTO_TYPE_Q5_1, N, 3);
        memset(table->data, 0, sotto_nbytes(table));
        T * rows_in = sotto_set_rows(ctx, table, sotto_reshape_2d(ctx, b, N, 2), sotto_reshape_1d(ctx, ids, 2));
        T * y = sotto_mul_mat(ctx, rows_in, sotto_reshape_2d(ctx, b, N, 2));
        struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 32, false);
        assert_non_null(g);
        assert_int_equal(sotto_build_forward_expand(g, sotto_mul_mat_id(ctx, as, b, ids)), SOTTO_OK);
        assert_int_equal(sotto_build_forward_expand(g, y), SOTTO_OK);
        status = sotto_backend_graph_compute(cpu, g);
    }
    sotto_backend_free(cpu);
    sotto_backend_buffer_free(buffer);
    sotto_free(ctx);
    sotto_free(data);
    return status;
}

static void every_allocation_refused(void ** test) {
    (void)test;
    assert_true(refuse_each(work, NULL) >= 4);
}

int main(int argc, char ** argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_is_plain),     cmocka_unit_test(packed_views),
        cmocka_unit_test(packed_keeps_bytes),  cmocka_unit_test(chosen_is_single),
        cmocka_unit_test(chosen_empty),        cmocka_unit_test(supported_types),
        cmocka_unit_test(chosen_out_of_range), cmocka_unit_test(every_allocation_refused),
    };
    if (argc > 1) {
        seed = strtoull(argv[1], NULL, 0);
    }
    state = seed;
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("quantised", tests, NULL, NULL);
}
