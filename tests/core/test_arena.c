/* SPDX-License-Identifier: MIT */
/* Contexts: the arena and its limits, walking it, the sticky error and its hook. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "refuse_each.h"
#include "small_graph.h"
#include "sotto/graph.h"
#include "sotto/log.h"

/* ---- life ---- */

static enum sotto_status make_and_free(const struct sotto_allocator * allocator, void * user_data) {
    struct sotto_context * ctx = sotto_init_ext(*(const struct sotto_init_params *)user_data, allocator);
    sotto_free(ctx);
    return sotto_last_error();
}

static void memory_comes_from_the_allocator(void ** state) {
    (void)state;
    struct counting_allocator allocator;
    counting_allocator_init(&allocator);
    struct sotto_init_params params = { .mem_size = 1001 };
    struct sotto_context * ctx = sotto_init_ext(params, &allocator.base);
    assert_non_null(ctx);
    assert_int_equal(sotto_get_mem_size(ctx), 1008);
    assert_int_equal((uintptr_t)sotto_get_mem_buffer(ctx) % SOTTO_DATA_ALIGN, 0);
    sotto_free(ctx);
    assert_int_equal(allocator.held, 0);
    assert_true(refuse_each(make_and_free, &params) > 0);
    sotto_free(NULL);
}

static void sizes_at_the_edge(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(0, false);
    assert_int_equal(sotto_get_mem_size(ctx), SOTTO_MEM_ALIGN);
    assert_int_equal(sotto_used_mem(ctx), 0);
    sotto_free(ctx);
    sotto_clear_last_error();
    assert_null(sotto_init((struct sotto_init_params){ .mem_size = SIZE_MAX - 3 }));
    assert_int_equal(sotto_last_error(), SOTTO_E_MEMORY);
}

static void caller_memory_is_used_as_it_is(void ** state) {
    (void)state;
    _Alignas(64) static char memory[4096];
    struct sotto_init_params params = { .mem_size = sizeof(memory), .mem_buffer = memory };
    struct sotto_context * ctx = sotto_init(params);
    assert_ptr_equal(sotto_get_mem_buffer(ctx), memory);
    struct sotto_tensor * t = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 10);
    assert_true((char *)t > memory && (char *)t < memory + sizeof(memory));
    sotto_free(ctx);
    params.mem_buffer = memory + 4;
    sotto_clear_last_error();
    assert_null(sotto_init(params));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
}

/* ---- room ---- */

static void tensors_take_what_they_are_said_to(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(10000, false);
    size_t overhead = sotto_tensor_overhead();
    assert_int_equal(overhead % SOTTO_MEM_ALIGN, 0);
    assert_int_equal(sizeof(struct sotto_tensor) % SOTTO_MEM_ALIGN, 0);
    struct sotto_tensor * t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 3, 3);
    assert_int_equal(sotto_used_mem(ctx), overhead + 48);
    assert_ptr_equal(t->data, t + 1);
    sotto_set_no_alloc(ctx, true);
    assert_true(sotto_get_no_alloc(ctx));
    t = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 3000, 3000);
    assert_null(t->data);
    assert_int_equal(sotto_used_mem(ctx), 2 * overhead + 48);
    assert_int_equal(sotto_get_max_tensor_size(ctx), 36000000);
    sotto_reset(ctx);
    assert_int_equal(sotto_used_mem(ctx), 0);
    assert_true(sotto_get_no_alloc(ctx));
    assert_null(sotto_get_first_tensor(ctx));
    sotto_free(ctx);
}

static void full_arena_stays_as_it_was(void ** state) {
    (void)state;
    size_t overhead = sotto_tensor_overhead();
    struct sotto_context * ctx = context_of(2 * overhead + 64 + 32, false);
    assert_non_null(sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 16));
    size_t used = sotto_used_mem(ctx);
    assert_null(sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 9));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_MEMORY);
    assert_non_null(strstr(sotto_context_error(ctx), "sotto_new_tensor"));
    assert_int_equal(sotto_used_mem(ctx), used);
    assert_null(sotto_new_buffer(ctx, 10000));
    assert_null(sotto_new_graph(ctx));
    assert_int_equal(sotto_used_mem(ctx), used);
    sotto_clear_error(ctx);
    assert_non_null(sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 8)); /* to the last byte */
    assert_int_equal(sotto_used_mem(ctx), sotto_get_mem_size(ctx));
    assert_null(sotto_new_buffer(ctx, 0));
    sotto_free(ctx);
}

static void impossible_sizes_are_refused(void ** state) {
    (void)state;
    static const struct {
        int type;
        int64_t ne[4];
        enum sotto_status status;
    } cases[] = {
        { SOTTO_TYPE_F32, { -1, 1, 1, 1 }, SOTTO_E_SHAPE },
        { SOTTO_TYPE_F32, { 1, 1, 1, INT64_MIN }, SOTTO_E_SHAPE },
        { SOTTO_TYPE_F32, { INT64_MAX, 1, 1, 1 }, SOTTO_E_MEMORY },
        { SOTTO_TYPE_F32, { (int64_t)1 << 31, (int64_t)1 << 31, 1, 1 }, SOTTO_E_MEMORY },
        { SOTTO_TYPE_F32, { (int64_t)1 << 32, (int64_t)1 << 32, (int64_t)1 << 32, 1 }, SOTTO_E_MEMORY },
        { SOTTO_TYPE_I8, { INT64_MAX, 2, 1, 1 }, SOTTO_E_MEMORY },
        { SOTTO_TYPE_Q1_0, { (int64_t)1 << 62, 2, 1, 1 }, SOTTO_E_MEMORY },
        { SOTTO_TYPE_F32, { 4, (int64_t)1 << 62, 0, 1 }, SOTTO_E_MEMORY },
        { SOTTO_TYPE_Q4_0, { 1, 1, 1, 1 }, SOTTO_E_SHAPE },
        { SOTTO_TYPE_Q4_0, { 31, 1, 1, 1 }, SOTTO_E_SHAPE },
        { SOTTO_TYPE_Q4_K, { 255, 1, 1, 1 }, SOTTO_E_SHAPE },
        { 4, { 32, 1, 1, 1 }, SOTTO_E_RETIRED },
        { 38, { 32, 1, 1, 1 }, SOTTO_E_RETIRED },
        { -1, { 32, 1, 1, 1 }, SOTTO_E_TYPE },
        { SOTTO_TYPE_COUNT, { 32, 1, 1, 1 }, SOTTO_E_TYPE },
    };
    struct sotto_context * ctx = context_of(1 << 16, true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_null(sotto_new_tensor(ctx, (enum sotto_type)cases[i].type, 4, cases[i].ne));
        assert_int_equal(sotto_context_status(ctx), cases[i].status);
        assert_int_equal(sotto_used_mem(ctx), 0);
        sotto_clear_error(ctx);
    }
    int64_t one = 1;
    assert_null(sotto_new_tensor(ctx, SOTTO_TYPE_F32, 0, &one));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_PARAM);
    sotto_clear_error(ctx);
    assert_null(sotto_new_tensor(ctx, SOTTO_TYPE_F32, 5, &one));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_PARAM);
    sotto_clear_error(ctx);
    assert_null(sotto_new_tensor(ctx, SOTTO_TYPE_F32, 1, NULL));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_NULLARG);
    sotto_clear_error(ctx);
    assert_null(sotto_new_graph_custom(ctx, SIZE_MAX / 4, true));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_MEMORY);
    sotto_clear_error(ctx);
    assert_null(sotto_new_buffer(ctx, SIZE_MAX - 8));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_MEMORY);
    assert_int_equal(sotto_used_mem(ctx), 0);
    sotto_free(ctx);
}

static void objects_are_walked_in_order(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(1 << 16, false);
    struct sotto_tensor * a = sotto_set_name(sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 4), "a");
    unsigned char * work = sotto_new_buffer(ctx, 100);
    struct sotto_tensor * b = sotto_set_name(sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 4), "b");
    assert_non_null(sotto_new_graph_custom(ctx, 4, false));
    struct sotto_tensor * c = sotto_set_name(sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 4), "b");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(work[i], 0);
    }
    assert_ptr_equal(sotto_get_first_tensor(ctx), a);
    assert_ptr_equal(sotto_get_next_tensor(ctx, a), b);
    assert_ptr_equal(sotto_get_next_tensor(ctx, b), c);
    assert_null(sotto_get_next_tensor(ctx, c));
    assert_ptr_equal(sotto_get_tensor(ctx, "b"), b);
    assert_null(sotto_get_tensor(ctx, "d"));
    struct sotto_tensor strange = { .type = SOTTO_TYPE_F32 };
    sotto_clear_last_error();
    assert_null(sotto_get_next_tensor(ctx, &strange));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_null(sotto_get_next_tensor(ctx, NULL));
    sotto_free(ctx);
}

static void scalars_need_data(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(1 << 12, false);
    assert_int_equal(sotto_get_i32_1d(sotto_new_i32(ctx, -7), 0), -7);
    assert_true(sotto_get_f32_1d(sotto_new_f32(ctx, 2.5f), 0) == 2.5f);
    sotto_set_no_alloc(ctx, true);
    size_t used = sotto_used_mem(ctx);
    assert_null(sotto_new_f32(ctx, 1.0f));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_STATE);
    assert_int_equal(sotto_used_mem(ctx), used);
    sotto_free(ctx);
}

/* ---- the error ---- */

struct told {
    int count;
    enum sotto_status status;
    char text[256];
};

static void tell(enum sotto_status status, const char * text, void * user_data) {
    struct told * told = user_data;
    told->count++;
    told->status = status;
    strncpy(told->text, text, sizeof(told->text) - 1);
}

static void first_error_sticks_and_nulls_pass(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(1 << 14, false);
    struct told told = { 0 };
    sotto_set_error_hook(ctx, tell, &told);
    struct sotto_tensor * a = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 4, 3);
    struct sotto_tensor * b = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 5, 3);
    struct sotto_tensor * c = sotto_scale(ctx, sotto_gelu(ctx, sotto_add(ctx, a, b)), 2.0f);
    assert_null(c);
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_SHAPE);
    assert_non_null(strstr(sotto_context_error(ctx), "SHAPE: sotto_add: "));
    assert_int_equal(sotto_last_error(), SOTTO_E_SHAPE);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.status, SOTTO_E_SHAPE);
    assert_string_equal(told.text, sotto_context_error(ctx));
    assert_non_null(sotto_add(ctx, a, a));  /* good operands still build */
    assert_null(sotto_norm(ctx, a, -1.0f)); /* a later fault is the thread's, not the context's */
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_SHAPE);
    assert_int_equal(told.count, 1);
    sotto_clear_error(ctx);
    assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
    assert_string_equal(sotto_context_error(ctx), "");
    assert_null(sotto_gelu(ctx, NULL));
    assert_int_equal(sotto_context_status(ctx), SOTTO_E_NULLARG);
    assert_int_equal(told.count, 2);
    sotto_set_error_hook(ctx, NULL, NULL);
    sotto_reset(ctx);
    assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
    assert_null(sotto_gelu(ctx, NULL));
    assert_int_equal(told.count, 2);
    sotto_free(ctx);
}

static void graph_of_a_context_in_error_says_so(void ** state) {
    (void)state;
    struct sotto_context * ctx = context_of(1 << 16, false);
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 8, false);
    struct sotto_tensor * a = sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 4);
    struct sotto_tensor * bad = sotto_norm(ctx, a, -1.0f);
    assert_int_equal(sotto_build_forward_expand(g, bad), SOTTO_E_PARAM);
    assert_int_equal(sotto_build_forward_expand(g, a), SOTTO_E_PARAM);
    assert_int_equal(sotto_graph_n_nodes(g), 0);
    sotto_clear_error(ctx);
    assert_int_equal(sotto_build_forward_expand(g, NULL), SOTTO_E_NULLARG);
    assert_int_equal(sotto_build_forward_expand(g, sotto_norm(ctx, a, 0.0f)), SOTTO_OK);
    assert_int_equal(sotto_graph_n_nodes(g), 1);
    sotto_free(ctx);
}

static void null_contexts_are_refused(void ** state) {
    (void)state;
    sotto_clear_last_error();
    assert_int_equal(sotto_used_mem(NULL), 0);
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_false(sotto_get_no_alloc(NULL));
    sotto_set_no_alloc(NULL, true);
    assert_null(sotto_get_mem_buffer(NULL));
    assert_int_equal(sotto_get_mem_size(NULL), 0);
    assert_int_equal(sotto_get_max_tensor_size(NULL), 0);
    assert_null(sotto_new_buffer(NULL, 1));
    assert_int_equal(sotto_context_status(NULL), SOTTO_E_NULLARG);
    assert_string_equal(sotto_context_error(NULL), "");
    sotto_clear_error(NULL);
    sotto_reset(NULL);
    sotto_set_error_hook(NULL, NULL, NULL);
    assert_null(sotto_new_tensor_1d(NULL, SOTTO_TYPE_F32, 1));
    assert_null(sotto_new_f32(NULL, 1.0f));
    assert_null(sotto_get_first_tensor(NULL));
    assert_null(sotto_get_next_tensor(NULL, NULL));
    assert_null(sotto_get_tensor(NULL, "x"));
    assert_null(sotto_dup_tensor(NULL, NULL));
    assert_null(sotto_view_tensor(NULL, NULL));
    assert_null(sotto_new_graph(NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_from_the_allocator),   cmocka_unit_test(sizes_at_the_edge),
        cmocka_unit_test(caller_memory_is_used_as_it_is),    cmocka_unit_test(tensors_take_what_they_are_said_to),
        cmocka_unit_test(full_arena_stays_as_it_was),        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(objects_are_walked_in_order),       cmocka_unit_test(scalars_need_data),
        cmocka_unit_test(first_error_sticks_and_nulls_pass), cmocka_unit_test(graph_of_a_context_in_error_says_so),
        cmocka_unit_test(null_contexts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
