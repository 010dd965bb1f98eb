/* SPDX-License-Identifier: MIT */
/* Plans: which steps they have, that they notice a changed graph, follow moved data, and allocate nothing when run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/sotto.h"
#include "support/counting_allocator.h"
#include "support/refuse_each.h"
#include "support/small_graph.h"

enum { N0 = 32, N1 = 6 };

static struct sotto_context * new_context(bool no_alloc) { return context_of(1 << 20, no_alloc); }

static struct sotto_tensor * leaf(struct sotto_context * ctx) {
    return sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, N0, N1);
}

static void assert_all(const struct sotto_tensor * tensor, float value) {
    for (int64_t i = 0; i < sotto_nelements(tensor); i++)
        assert_true(sotto_get_f32_1d(tensor, i) == value);
}

static void steps_leave_out_what_costs_nothing(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * x = sotto_scale(ctx, a, 2.0f);
    struct sotto_tensor * view = sotto_reshape_1d(ctx, x, N0 * N1);
    struct sotto_tensor * empty = sotto_scale(ctx, sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 0), 1.0f);
    struct sotto_tensor * y = sotto_scale(ctx, view, 3.0f);
    struct sotto_tensor * unmarked = sotto_norm(ctx, y, 0.1f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    assert_int_equal(sotto_build_forward_expand(graph, empty), SOTTO_OK);
    assert_int_equal(sotto_build_forward_order(graph, unmarked), SOTTO_OK);
    assert_int_equal(sotto_graph_n_nodes(graph), 5);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    sotto_backend_graph_plan_t plan = sotto_backend_graph_plan_create(cpu, graph);
    assert_non_null(plan);
    assert_int_equal(sotto_graph_plan_n_steps(plan), 2);
    int n = 0;
    assert_ptr_equal(sotto_graph_plan_step(plan, 0, &n), x);
    assert_int_equal(n, 1);
    assert_ptr_equal(sotto_graph_plan_step(plan, 1, NULL), y);
    assert_null(sotto_graph_plan_step(plan, 2, &n));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_true(sotto_graph_plan_buffer_size(plan) > 0);
    assert_non_null(sotto_set_f32(a, 1.0f));
    assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_OK);
    assert_all(y, 6.0f);
    sotto_backend_graph_plan_free(cpu, plan);
    sotto_backend_graph_plan_free(cpu, NULL);
    sotto_backend_free(cpu);
    sotto_free(ctx);
}

static void plan_refuses_a_changed_graph(void ** state) {
    (void)state;
    sotto_backend_t cpu = sotto_backend_cpu_init();
    for (int change = 0; change < 4; change++) {
        struct sotto_context * ctx = new_context(false);
        struct sotto_tensor * a = leaf(ctx);
        struct sotto_tensor * b = leaf(ctx);
        struct sotto_tensor * y = sotto_add(ctx, a, b);
        struct sotto_cgraph * graph = graph_of(ctx, y);
        sotto_set_f32(a, 1.0f);
        sotto_set_f32(b, 2.0f);
        sotto_backend_graph_plan_t plan = sotto_backend_graph_plan_create(cpu, graph);
        assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_OK);
        switch (change) {
        case 0: assert_int_equal(sotto_build_forward_expand(graph, sotto_scale(ctx, y, 2.0f)), SOTTO_OK); break;
        case 1: y->src[1] = a; break;
        case 2: y->ne[1] = a->ne[1] = b->ne[1] = N1 - 1; break;
        case 3: y->op = SOTTO_OP_MUL; break;
        }
        assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_E_STATE);
        assert_non_null(strstr(sotto_last_error_text(), "changed after it was planned"));
        sotto_backend_graph_plan_free(cpu, plan);
        /* a plan that is made anew works, and so does computing without one */
        plan = sotto_backend_graph_plan_create(cpu, graph);
        assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_OK);
        sotto_backend_graph_plan_free(cpu, plan);
        assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
        assert_all(y, change == 1 ? 2.0f : change == 3 ? 2.0f : 3.0f);
        sotto_free(ctx);
    }
    sotto_backend_free(cpu);
}

static void running_again_allocates_nothing(void ** state) {
    (void)state;
    struct counting_allocator own, process;
    counting_allocator_init(&own);
    counting_allocator_init(&process);
    assert_int_equal(sotto_set_default_allocator(&process.base), SOTTO_OK);
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * y = sotto_norm(ctx, sotto_soft_max(ctx, sotto_mul_mat(ctx, a, leaf(ctx))), 0.1f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    sotto_backend_t cpu = sotto_backend_cpu_init_ext(&own.base);
    sotto_backend_graph_plan_t plan = sotto_backend_graph_plan_create(cpu, graph);
    assert_non_null(plan);
    assert_non_null(sotto_set_f32(a, 1.0f));
    assert_non_null(sotto_set_f32(y->src[0]->src[0]->src[1], 1.0f));
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK); /* plans once for itself */
    const long before = atomic_load(&own.requests) + atomic_load(&process.requests);
    assert_true(before > 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_OK);
        assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
    }
    assert_int_equal(atomic_load(&own.requests) + atomic_load(&process.requests), before);
    sotto_backend_graph_plan_free(cpu, plan);
    sotto_backend_free(cpu);
    sotto_free(ctx);
    assert_int_equal(atomic_load(&own.held), 0);
    assert_int_equal(atomic_load(&process.held), 0);
    assert_int_equal(sotto_set_default_allocator(NULL), SOTTO_OK);
}

static void moved_data_is_followed(void ** state) {
    (void)state;
    static float places[3][N0 * N1];
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    a->data = places[0];
    struct sotto_tensor * view = sotto_view_2d(ctx, a, N0, N1 - 1, a->nb[1], a->nb[1]);
    struct sotto_tensor * y = sotto_scale(ctx, view, 10.0f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    sotto_backend_graph_plan_t plan = sotto_backend_graph_plan_create(cpu, graph);
    assert_non_null(plan);
    for (int i = 0; i < 3; i++) {
        a->data = places[i];
        sotto_set_f32(a, (float)(i + 1));
        assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_OK);
        assert_all(y, 10.0f * (float)(i + 1));
    }
    a->data = NULL;
    view->data = NULL;
    assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_E_STATE);
    sotto_backend_graph_plan_free(cpu, plan);
    sotto_backend_free(cpu);
    sotto_free(ctx);
}

static void tensors_without_data(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = sotto_set_name(leaf(ctx), "lonely");
    struct sotto_tensor * y = sotto_scale(ctx, a, 2.0f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_E_STATE);
    sotto_backend_buffer_t buffer = sotto_backend_alloc_ctx_tensors(ctx, cpu);
    assert_non_null(buffer);
    sotto_set_f32(a, 1.0f);
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
    assert_all(y, 2.0f);
    a->data = NULL;
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_E_STATE);
    assert_non_null(strstr(sotto_last_error_text(), "'lonely'"));
    sotto_backend_free(cpu);
    sotto_backend_buffer_free(buffer);
    sotto_free(ctx);
}

/* What a plan placed is given up with it: a later plan places it again, computing without one says STATE. */
static void freed_plan_leaves_nothing_dangling(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * y = sotto_scale(ctx, sotto_reshape_1d(ctx, sotto_scale(ctx, a, 2.0f), N0 * N1), 2.0f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    for (int i = 0; i < 3; i++) {
        sotto_backend_graph_plan_t plan = sotto_backend_graph_plan_create(cpu, graph);
        assert_non_null(plan);
        assert_non_null(sotto_set_f32(a, 1.0f));
        assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_OK);
        assert_all(y, 4.0f);
        sotto_backend_graph_plan_free(cpu, plan);
        assert_null(a->data);
        assert_null(y->data);
        assert_null(y->src[0]->data);
        assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_E_STATE);
    }
    sotto_backend_free(cpu);
    sotto_free(ctx);
}

static void packed_weights_are_for_few_ops(void ** state) {
    (void)state;
    struct sotto_context * weights = new_context(true);
    struct sotto_tensor * w = sotto_set_name(leaf(weights), "weight");
    sotto_backend_buffer_t buffer =
        sotto_backend_alloc_ctx_tensors_from_buft(weights, sotto_backend_cpu_packed_buffer_type());
    assert_non_null(buffer);
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    struct sotto_tensor * good[] = { sotto_mul_mat(ctx, w, a), sotto_cont(ctx, w), sotto_dup(ctx, w) };
    struct sotto_tensor * bad[] = { sotto_add(ctx, a, w), sotto_scale(ctx, w, 1.0f), sotto_mul_mat(ctx, a, w),
                                    sotto_cpy(ctx, a, w) };
    for (int i = 0; i < 3; i++)
        assert_true(sotto_backend_supports_op(cpu, good[i]));
    for (int i = 0; i < 4; i++) {
        assert_false(sotto_backend_supports_op(cpu, bad[i]));
        assert_null(sotto_backend_graph_plan_create(cpu, graph_of(ctx, bad[i])));
        assert_int_equal(sotto_last_error(), SOTTO_E_UNSUPPORTED);
        assert_non_null(strstr(sotto_last_error_text(), "'weight'"));
    }
    assert_true(sotto_backend_supports_buft(cpu, sotto_backend_cpu_packed_buffer_type()));
    assert_true(sotto_backend_supports_buft(cpu, sotto_backend_cpu_buffer_type()));
    sotto_backend_free(cpu);
    sotto_backend_buffer_free(buffer);
    sotto_free(ctx);
    sotto_free(weights);
}

static void context_in_error(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(false);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_cgraph * graph = graph_of(ctx, sotto_scale(ctx, a, 2.0f));
    assert_null(sotto_mul_mat(ctx, a, sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, N0 + 1)));
    sotto_backend_t cpu = sotto_backend_cpu_init();
    assert_null(sotto_backend_graph_plan_create(cpu, graph));
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_E_SHAPE);
    sotto_clear_error(ctx);
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
    sotto_backend_free(cpu);
    sotto_free(ctx);
}

static void empty_graph(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_cgraph * graph = sotto_new_graph(ctx);
    sotto_backend_t cpu = sotto_backend_cpu_init();
    assert_int_equal(sotto_backend_graph_compute(cpu, graph), SOTTO_OK);
    sotto_backend_graph_plan_t plan = sotto_backend_graph_plan_create(cpu, graph);
    assert_non_null(plan);
    assert_int_equal(sotto_graph_plan_n_steps(plan), 0);
    assert_int_equal(sotto_graph_plan_work_size(plan), 0);
    assert_int_equal(sotto_backend_graph_plan_compute(cpu, plan), SOTTO_OK);
    sotto_backend_graph_plan_free(cpu, plan);
    assert_int_equal(sotto_graph_plan_n_steps(NULL), 0);
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    sotto_backend_free(cpu);
    sotto_free(ctx);
}

/* Backend, plan and run. */
static enum sotto_status plan_and_run(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * y = sotto_norm(ctx, sotto_mul_mat(ctx, a, leaf(ctx)), 0.1f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    enum sotto_status status = SOTTO_E_MEMORY;
    sotto_backend_t cpu = sotto_backend_cpu_init_ext(allocator);
    sotto_backend_graph_plan_t plan = cpu != NULL ? sotto_backend_graph_plan_create(cpu, graph) : NULL;
    if (plan != NULL) {
        assert_non_null(sotto_set_f32(a, 1.0f));
        assert_non_null(sotto_set_f32(y->src[0]->src[1], 1.0f));
        status = sotto_backend_graph_plan_compute(cpu, plan);
        if (status == SOTTO_OK)
            status = sotto_backend_graph_compute(cpu, graph);
        sotto_backend_graph_plan_free(cpu, plan);
    }
    sotto_backend_free(cpu);
    sotto_free(ctx);
    return status;
}

static void every_allocation_fails_once(void ** state) {
    (void)state;
    assert_true(refuse_each(plan_and_run, NULL) > 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_leave_out_what_costs_nothing),
        cmocka_unit_test(plan_refuses_a_changed_graph),
        cmocka_unit_test(running_again_allocates_nothing),
        cmocka_unit_test(moved_data_is_followed),
        cmocka_unit_test(tensors_without_data),
        cmocka_unit_test(freed_plan_leaves_nothing_dangling),
        cmocka_unit_test(packed_weights_are_for_few_ops),
        cmocka_unit_test(context_in_error),
        cmocka_unit_test(empty_graph),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
