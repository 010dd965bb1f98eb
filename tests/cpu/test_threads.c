/* SPDX-License-Identifier: MIT */
/* Threads: the same bits for any number of them and any order of chunks, pools shared and reused, callbacks, errors
 * found by a worker, and nothing touched after a graph is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/test_hooks.h"
#include "sotto/sotto.h"
#include "support/counting_allocator.h"
#include "support/refuse_each.h"
#include "support/small_graph.h"

enum { WIDTH = 256, ROWS = 300 };

static const int thread_counts[] = { 1, 2, 3, 7, 8 };
#define N_COUNTS ((int)(sizeof(thread_counts) / sizeof(*thread_counts)))

static struct sotto_tensor * filled(struct sotto_context * ctx, int64_t ne0, int64_t ne1, uint32_t seed) {
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, ne0, ne1);
    assert_non_null(t);
    float * data = t->data;
    for (int64_t i = 0; i < ne0 * ne1; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(int32_t)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return t;
}

/* A little network whose nodes all have several chunks. */
static struct sotto_tensor * network(struct sotto_context * ctx) {
    struct sotto_tensor * x = filled(ctx, WIDTH, ROWS, 1);
    struct sotto_tensor * w = filled(ctx, WIDTH, WIDTH, 2);
    struct sotto_tensor * y = sotto_gelu(ctx, sotto_mul_mat(ctx, w, sotto_norm(ctx, x, 1e-5f)));
    y = sotto_soft_max(ctx, sotto_add(ctx, sotto_mul_mat(ctx, w, y), x));
    return sotto_cont(ctx, sotto_transpose(ctx, sotto_scale(ctx, y, 3.0f)));
}

struct whole {
    struct sotto_context * ctx;
    struct sotto_cgraph * graph;
    struct sotto_tensor * y;
};

static struct whole new_network(void) {
    struct whole net = { .ctx = context_of(8 << 20, false) };
    net.y = network(net.ctx);
    assert_non_null(net.y);
    net.graph = graph_of(net.ctx, net.y);
    return net;
}

/* What one thread computes, once for all tests. */
static float expected[WIDTH * ROWS];

static int compute_expected(void ** state) {
    (void)state;
    struct whole net = new_network();
    sotto_backend_t cpu = sotto_backend_cpu_init();
    if (sotto_backend_cpu_set_n_threads(cpu, 1) != SOTTO_OK || sotto_backend_graph_compute(cpu, net.graph) != SOTTO_OK)
        return -1;
    memcpy(expected, net.y->data, sizeof(expected));
    sotto_backend_free(cpu);
    sotto_free(net.ctx);
    return 0;
}

static bool as_expected(const struct sotto_tensor * y) { return memcmp(y->data, expected, sizeof(expected)) == 0; }

/* ---- bits ---- */

static int threads_that_ran(void) {
    int n = 0;
    for (int i = 0; i < SOTTO_MAX_N_THREADS; i++)
        n += sotto_i_test_chunks(i) > 0 ? 1 : 0;
    return n;
}

static void same_bits_for_all_thread_counts_and_orders(void ** state) {
    (void)state;
    struct whole net = new_network();
    sotto_backend_t cpu = sotto_backend_cpu_init();
    for (int k = 0; k < N_COUNTS; k++) {
        assert_int_equal(sotto_backend_cpu_set_n_threads(cpu, thread_counts[k]), SOTTO_OK);
        for (uint64_t seed = 0; seed < 4; seed++) {
            memset(net.y->data, 0xFF, sizeof(expected));
            sotto_i_test_hooks(true, seed);
            assert_int_equal(sotto_backend_graph_compute(cpu, net.graph), SOTTO_OK);
            sotto_i_test_hooks(false, 0);
            assert_true(as_expected(net.y));
            if (thread_counts[k] > 1)
                assert_true(threads_that_ran() >= 2);
        }
        memset(net.y->data, 0xFF, sizeof(expected));
        assert_int_equal(sotto_backend_graph_compute(cpu, net.graph), SOTTO_OK);
        assert_true(as_expected(net.y));
    }
    sotto_backend_free(cpu);
    sotto_free(net.ctx);
}

static void rounding_of_the_caller_does_not_matter(void ** state) {
    (void)state;
    struct whole net = new_network();
    sotto_backend_t cpu = sotto_backend_cpu_init();
    const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        const enum sotto_status s = sotto_backend_graph_compute(cpu, net.graph);
        const int mode = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(s, SOTTO_OK);
        assert_int_equal(mode, modes[i]);
        assert_true(as_expected(net.y));
    }
    sotto_backend_free(cpu);
    sotto_free(net.ctx);
}

/* ---- pools ---- */

static void one_pool_for_1000_graphs(void ** state) {
    (void)state;
    struct sotto_threadpool_params params = sotto_threadpool_params_default(3);
    assert_int_equal(params.poll, 50);
    for (int sleepy = 0; sleepy < 2; sleepy++) {
        params.poll = sleepy ? 0 : 50;
        struct sotto_threadpool * pool = sotto_threadpool_new(&params);
        assert_non_null(pool);
        assert_int_equal(sotto_threadpool_get_n_threads(pool), 3);
        sotto_backend_t cpu = sotto_backend_cpu_init();
        assert_int_equal(sotto_backend_cpu_set_threadpool(cpu, pool), SOTTO_OK);
        for (int i = 0; i < 1000; i++) {
            struct sotto_context * ctx = context_of(1 << 19, false);
            struct sotto_tensor * x = sotto_set_f32(sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 256, 140), (float)i);
            struct sotto_tensor * y = sotto_scale(ctx, x, 2.0f);
            struct sotto_cgraph * graph = graph_of(ctx, y);
            assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
            assert_true(sotto_get_f32_1d(y, 0) == 2.0f * (float)i);
            assert_true(sotto_get_f32_1d(y, 256 * 140 - 1) == 2.0f * (float)i);
            sotto_free(ctx); /* at once: no worker may still look at it */
        }
        sotto_backend_free(cpu);
        sotto_threadpool_free(pool);
    }
}

static void changing_thread_counts(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(1 << 20, false);
    struct sotto_tensor * x = filled(ctx, 256, 140, 3);
    struct sotto_tensor * y = sotto_scale(ctx, x, 2.0f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    struct sotto_cgraph * nothing = sotto_new_graph(ctx);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(sotto_backend_cpu_set_n_threads(cpu, i % 2 == 0 ? 6 : 1), SOTTO_OK);
        assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
        assert_int_equal(sotto_backend_graph_compute(cpu, nothing), SOTTO_OK);
    }
    assert_true(sotto_get_f32_1d(y, 777) == 2.0f * sotto_get_f32_1d(x, 777));
    sotto_backend_free(cpu);
    sotto_free(ctx);
}

static void * compute_many(void * argument) {
    bool * good = argument;
    struct whole net = new_network();
    sotto_backend_t cpu = sotto_backend_cpu_init();
    *good = cpu != NULL;
    for (int i = 0; i < 20 && *good; i++) {
        memset(net.y->data, 0xFF, sizeof(expected));
        *good = sotto_backend_graph_compute(cpu, net.graph) == SOTTO_OK && as_expected(net.y);
    }
    sotto_backend_free(cpu);
    sotto_free(net.ctx);
    return NULL;
}

static void several_threads_share_the_pool(void ** state) {
    (void)state;
    enum { N = 3 };
    pthread_t threads[N];
    bool good[N] = { false };
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compute_many, &good[i]), 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < N; i++)
        assert_true(good[i]);
}

static void wrong_pools(void ** state) {
    (void)state;
    struct sotto_threadpool_params params = sotto_threadpool_params_default(0);
    assert_null(sotto_threadpool_new(&params));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    params = sotto_threadpool_params_default(SOTTO_MAX_N_THREADS + 1);
    assert_null(sotto_threadpool_new(&params));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    params = sotto_threadpool_params_default(1);
    params.size = 3;
    assert_null(sotto_threadpool_new(&params));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_null(sotto_threadpool_new(NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_int_equal(sotto_threadpool_get_n_threads(NULL), 0);
    sotto_threadpool_free(NULL);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    assert_int_equal(sotto_backend_cpu_set_n_threads(cpu, 0), SOTTO_E_PARAM);
    assert_int_equal(sotto_backend_cpu_set_n_threads(cpu, SOTTO_MAX_N_THREADS + 1), SOTTO_E_PARAM);
    assert_int_equal(sotto_backend_cpu_set_n_threads(NULL, 1), SOTTO_E_NULLARG);
    assert_true(sotto_backend_is_cpu(cpu));
    assert_false(sotto_backend_is_cpu(NULL));
    sotto_backend_free(cpu);
}

/* ---- callbacks ---- */

enum { CHAIN = 6 };

/* CHAIN scales by 2 over ones, several chunks each; results are filled with -1 before a run. */
struct chain {
    struct sotto_context * ctx;
    struct sotto_cgraph * graph;
    struct sotto_tensor * nodes[CHAIN];
};

static struct chain new_chain(void) {
    struct chain chain = { .ctx = context_of(4 << 20, false) };
    struct sotto_tensor * y = sotto_set_f32(sotto_new_tensor_2d(chain.ctx, SOTTO_TYPE_F32, 256, 300), 1.0f);
    for (int i = 0; i < CHAIN; i++)
        y = chain.nodes[i] = sotto_scale(chain.ctx, y, 2.0f);
    chain.graph = graph_of(chain.ctx, y);
    return chain;
}

static void reset_chain(struct chain * chain) {
    for (int i = 0; i < CHAIN; i++)
        assert_non_null(sotto_set_f32(chain->nodes[i], -1.0f));
}

static void assert_computed(const struct chain * chain, int n) {
    for (int i = 0; i < CHAIN; i++) {
        const float value = i < n ? (float)(2 << i) : -1.0f;
        for (int64_t k = 0; k < sotto_nelements(chain->nodes[i]); k += 255)
            assert_true(sotto_get_f32_1d(chain->nodes[i], k) == value);
    }
}

static bool count_down(void * data) { return --*(int *)data == 0; }

static void abort_leaves_what_was_computed(void ** state) {
    (void)state;
    struct chain chain = new_chain();
    sotto_backend_t cpu = sotto_backend_cpu_init();
    for (int k = 1; k <= CHAIN; k++) {
        int left = k;
        reset_chain(&chain);
        sotto_backend_set_abort_callback(cpu, count_down, &left);
        assert_int_equal(sotto_backend_graph_compute(cpu, chain.graph), SOTTO_E_ABORTED);
        assert_computed(&chain, k);
        sotto_backend_set_abort_callback(cpu, NULL, NULL);
        assert_int_equal(sotto_backend_graph_compute(cpu, chain.graph), SOTTO_OK);
        assert_computed(&chain, CHAIN);
    }
    sotto_backend_free(cpu);
    sotto_free(chain.ctx);
}

struct watcher {
    const struct chain * chain;
    int want, stop; /* index of the node to see, -1: every second; index at which to stop, -1: none */
    int asked, seen;
};

static bool look(struct sotto_tensor * tensor, bool ask, void * user_data) {
    struct watcher * watcher = user_data;
    int index = 0;
    while (watcher->chain->nodes[index] != tensor)
        index++;
    if (ask) {
        assert_int_equal(watcher->asked++, index);
        assert_true(sotto_get_f32_1d(tensor, 0) == -1.0f);
        return watcher->want < 0 ? index % 2 == 0 : index == watcher->want;
    }
    assert_true(watcher->want < 0 ? index % 2 == 0 : index == watcher->want);
    assert_true(sotto_get_f32_1d(tensor, 76799) == (float)(2 << index));
    watcher->seen++;
    return index != watcher->stop;
}

static void eval_callback_sees_wanted_nodes(void ** state) {
    (void)state;
    struct chain chain = new_chain();
    sotto_backend_t cpu = sotto_backend_cpu_init();
    struct watcher all = { .chain = &chain, .want = -1, .stop = -1 };
    sotto_backend_set_eval_callback(cpu, look, &all);
    reset_chain(&chain);
    assert_int_equal(sotto_backend_graph_compute(cpu, chain.graph), SOTTO_OK);
    assert_int_equal(all.asked, CHAIN);
    assert_int_equal(all.seen, CHAIN / 2);
    struct watcher third = { .chain = &chain, .want = 2, .stop = 2 };
    sotto_backend_set_eval_callback(cpu, look, &third);
    reset_chain(&chain);
    assert_int_equal(sotto_backend_graph_compute(cpu, chain.graph), SOTTO_E_ABORTED);
    assert_int_equal(third.seen, 1);
    assert_computed(&chain, 3);
    sotto_backend_set_eval_callback(cpu, NULL, NULL);
    assert_int_equal(sotto_backend_graph_compute(cpu, chain.graph), SOTTO_OK);
    assert_computed(&chain, CHAIN);
    sotto_backend_free(cpu);
    sotto_free(chain.ctx);
}

/* ---- errors ---- */

static char said[8][1100];
static int n_said;

static void keep_line(enum sotto_log_level level, const char * text, void * user_data) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)level;
    (void)user_data;
    pthread_mutex_lock(&lock);
    if (n_said < 8)
        snprintf(said[n_said++], sizeof(said[0]), "%s", text);
    pthread_mutex_unlock(&lock);
}

/* How often the last error was logged since n_said was 0. */
static int n_logged(void) {
    int n = 0;
    for (int i = 0; i < n_said; i++)
        n += strncmp(said[i], sotto_last_error_text(), strlen(sotto_last_error_text())) == 0;
    return n;
}

static void error_of_a_worker_reaches_the_caller(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(16 << 20, false);
    struct sotto_tensor * x = filled(ctx, 256, 50, 4);
    struct sotto_tensor * rows = sotto_new_tensor_1d(ctx, SOTTO_TYPE_I32, 1000);
    struct sotto_tensor * y = sotto_get_rows(ctx, x, rows);
    struct sotto_tensor * z = sotto_scale(ctx, y, 1.0f);
    struct sotto_cgraph * graph = graph_of(ctx, z);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    char first[1024] = "";
    for (int round = 0; round < 24; round++) {
        sotto_set_i32(rows, 7);
        sotto_set_i32_1d(rows, 400, 50 + 1); /* the lowest bad index is the one reported, in all rounds */
        sotto_set_i32_1d(rows, 900, -3);
        sotto_set_f32(z, -1.0f);
        assert_int_equal(sotto_backend_cpu_set_n_threads(cpu, 1 + round % 4), SOTTO_OK);
        sotto_clear_last_error();
        n_said = 0;
        sotto_log_set(keep_line, NULL);
        sotto_i_test_hooks(round >= 4, (uint64_t)round);
        assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_E_RANGE);
        sotto_i_test_hooks(false, 0);
        sotto_log_set(NULL, NULL);
        assert_int_equal(n_logged(), 1);
        assert_int_equal(sotto_last_error(), SOTTO_E_RANGE);
        assert_int_equal(strncmp(sotto_last_error_text(), "RANGE: ", 7), 0);
        if (round == 0)
            snprintf(first, sizeof(first), "%s", sotto_last_error_text());
        assert_string_equal(sotto_last_error_text(), first);
        assert_true(sotto_get_f32_1d(z, 0) == -1.0f); /* the graph stopped there */
        sotto_set_i32(rows, 49);
        assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
        assert_true(sotto_get_f32_1d(z, 255999) == sotto_get_f32_1d(x, 256 * 50 - 1));
    }
    sotto_backend_free(cpu);
    sotto_free(ctx);
}

/* ---- one graph, at once ---- */

static void plan_of_one_call(void ** state) {
    (void)state;
    struct whole net = new_network();
    for (int k = 0; k < N_COUNTS; k++) {
        struct sotto_cplan cplan = sotto_graph_plan(net.graph, thread_counts[k], NULL);
        assert_true(cplan.n_threads >= 1 && cplan.n_threads <= thread_counts[k]);
        assert_true(cplan.work_size > 0);
        assert_int_equal(sotto_graph_compute(net.graph, &cplan), SOTTO_E_STATE); /* no work area */
        memset(net.y->data, 0xFF, sizeof(expected));
        cplan.work_data = malloc(cplan.work_size);
        assert_int_equal(sotto_graph_compute(net.graph, &cplan), SOTTO_OK);
        assert_true(as_expected(net.y));
        int left = 2;
        cplan.abort_callback = count_down;
        cplan.abort_callback_data = &left;
        assert_int_equal(sotto_graph_compute(net.graph, &cplan), SOTTO_E_ABORTED);
        free(cplan.work_data);
        cplan.n_threads = 0;
        assert_int_equal(sotto_graph_compute(net.graph, &cplan), SOTTO_E_STATE);
    }
    assert_int_equal(sotto_graph_compute(net.graph, NULL), SOTTO_E_STATE);
    assert_int_equal(sotto_graph_compute(NULL, NULL), SOTTO_E_NULLARG);
    memset(net.y->data, 0xFF, sizeof(expected));
    assert_int_equal(sotto_graph_compute_with_ctx(net.ctx, net.graph, 2), SOTTO_OK);
    assert_true(as_expected(net.y));
    sotto_free(net.ctx);
}

static void more_threads_than_tasks(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(1 << 20, false);
    struct sotto_tensor * x = sotto_set_f32(sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 3), 1.0f);
    struct sotto_tensor * y = sotto_scale(ctx, x, 2.0f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    struct sotto_cplan cplan = sotto_graph_plan(graph, 8, NULL);
    assert_int_equal(cplan.n_threads, 1);
    assert_int_equal(cplan.work_size, 0);
    assert_int_equal(sotto_graph_compute(graph, &cplan), SOTTO_OK);
    assert_true(sotto_get_f32_1d(y, 2) == 2.0f);
    sotto_free(ctx);
}

static void full_arena(void ** state) {
    (void)state;
    struct whole net = new_network();
    while (sotto_context_status(net.ctx) == SOTTO_OK)
        sotto_new_buffer(net.ctx, 1024);
    sotto_clear_error(net.ctx);
    assert_int_equal(sotto_graph_compute_with_ctx(net.ctx, net.graph, 2), SOTTO_E_MEMORY);
    sotto_free(net.ctx);
}

/* ---- memory ---- */

/* The allocator is that of the process, so that the shared pool's memory comes from it too. */
static enum sotto_status backend_and_pool(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    assert_int_equal(sotto_set_default_allocator(allocator), SOTTO_OK);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    enum sotto_status status = cpu != NULL ? sotto_backend_cpu_set_n_threads(cpu, 7) : SOTTO_E_MEMORY;
    sotto_backend_free(cpu);
    struct sotto_threadpool_params params = sotto_threadpool_params_default(3);
    struct sotto_threadpool * pool = sotto_threadpool_new(&params);
    if (pool == NULL)
        status = sotto_last_error();
    sotto_threadpool_free(pool);
    assert_int_equal(sotto_set_default_allocator(NULL), SOTTO_OK);
    return status;
}

static void every_allocation_of_a_backend_fails_once(void ** state) {
    (void)state;
    assert_true(refuse_each(backend_and_pool, NULL) >= 8);
}

static void a_thousand_backends(void ** state) {
    (void)state;
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    assert_int_equal(sotto_set_default_allocator(&allocator.base), SOTTO_OK);
    for (int i = 0; i < 1000; i++) {
        sotto_backend_t cpu = sotto_backend_cpu_init();
        assert_non_null(cpu);
        sotto_backend_free(cpu);
        assert_int_equal(atomic_load(&allocator.held), 0);
    }
    assert_int_equal(sotto_set_default_allocator(NULL), SOTTO_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_all_thread_counts_and_orders),
        cmocka_unit_test(rounding_of_the_caller_does_not_matter),
        cmocka_unit_test(one_pool_for_1000_graphs),
        cmocka_unit_test(changing_thread_counts),
        cmocka_unit_test(several_threads_share_the_pool),
        cmocka_unit_test(wrong_pools),
        cmocka_unit_test(abort_leaves_what_was_computed),
        cmocka_unit_test(eval_callback_sees_wanted_nodes),
        cmocka_unit_test(error_of_a_worker_reaches_the_caller),
        cmocka_unit_test(plan_of_one_call),
        cmocka_unit_test(more_threads_than_tasks),
        cmocka_unit_test(full_arena),
        cmocka_unit_test(every_allocation_of_a_backend_fails_once),
        cmocka_unit_test(a_thousand_backends),
    };
    return cmocka_run_group_tests(tests, compute_expected, NULL);
}
