/* SPDX-License-Identifier: MIT */
/* Modes of computing: what a backend asks for decides about nodes that ask for nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guarded.h"
#include "sotto/sotto.h"

enum { K = 96, N = 20, M = 3 };

static struct sotto_context * ctx;
static struct sotto_tensor *a, *b;

static int set_up(void ** state) {
    (void)state;
    struct dice dice = { 1 };
    static float weights[K * N];
    ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 20 });
    a = sotto_new_tensor_2d(ctx, SOTTO_TYPE_Q8_0, K, N);
    b = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, K, M);
    for (int i = 0; i < K * N; i++) {
        weights[i] = dice_float(&dice);
    }
    for (int i = 0; i < K * M; i++) {
        ((float *)b->data)[i] = dice_float(&dice);
    }
    return sotto_quantize_chunk(SOTTO_TYPE_Q8_0, weights, a->data, 0, N, K, NULL) == sotto_nbytes(a) ? 0 : -1;
}

static int tear_down(void ** state) {
    (void)state;
    sotto_free(ctx);
    return 0;
}

static struct sotto_tensor * product(enum sotto_compute compute, enum sotto_prec prec) {
    sotto_backend_t cpu = sotto_backend_cpu_init();
    struct sotto_tensor * y = sotto_mul_mat(ctx, a, b);
    struct sotto_cgraph * graph = sotto_new_graph(ctx);
    assert_int_equal(sotto_mul_mat_set_prec(y, prec), SOTTO_OK);
    assert_int_equal(sotto_build_forward_expand(graph, y), SOTTO_OK);
    assert_int_equal(sotto_backend_cpu_set_compute(cpu, compute), SOTTO_OK);
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
    sotto_backend_free(cpu);
    return y;
}

static bool equal(const struct sotto_tensor * x, const struct sotto_tensor * y) {
    return memcmp(x->data, y->data, sotto_nbytes(x)) == 0;
}

static void node_or_backend(void ** state) {
    (void)state;
    const struct sotto_tensor * bytes = product(SOTTO_COMPUTE_DEFAULT, SOTTO_PREC_DEFAULT);
    const struct sotto_tensor * exact = product(SOTTO_COMPUTE_DEFAULT, SOTTO_PREC_F32);
    assert_false(equal(bytes, exact));
    assert_true(equal(exact, product(SOTTO_COMPUTE_F32, SOTTO_PREC_DEFAULT)));
    assert_true(equal(exact, product(SOTTO_COMPUTE_F32, SOTTO_PREC_F32)));
    for (int i = 0; i < N * M; i++) { /* half a step of activations of at most 1: 1/254 of each of 96 weights */
        const float difference = ((float *)bytes->data)[i] - ((float *)exact->data)[i];
        assert_true(difference < 0.4f && difference > -0.4f);
    }
}

static void refused(void ** state) {
    (void)state;
    sotto_backend_t cpu = sotto_backend_cpu_init();
    assert_int_equal(sotto_backend_cpu_set_compute(cpu, (enum sotto_compute)2), SOTTO_E_PARAM);
    assert_int_equal(sotto_backend_cpu_set_compute(NULL, SOTTO_COMPUTE_F32), SOTTO_E_NULLARG);
    sotto_backend_free(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(node_or_backend, set_up, tear_down),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
