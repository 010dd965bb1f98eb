/* SPDX-License-Identifier: MIT */
/* Graphs: order, use counts, flags and names, capacity, copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph_impl.h"
#include "sotto/log.h"

static struct sotto_context * ctx;

static int set_up(void ** state) {
    (void)state;
    ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 20 });
    return 0;
}

static int tear_down(void ** state) {
    (void)state;
    sotto_free(ctx);
    return 0;
}

static struct sotto_tensor * leaf(void) { return sotto_new_tensor_1d(ctx, SOTTO_TYPE_F32, 1); }

static int uses(const struct sotto_cgraph * g, const struct sotto_tensor * t) {
    size_t slot = sotto_i_hash_find(&g->visited, t);
    return slot == SIZE_MAX ? -1 : g->use_counts[slot];
}

static bool computed(const struct sotto_tensor * t) { return t->flags & SOTTO_TENSOR_FLAG_COMPUTE; }

/* Sources before users, each node once. */
static void check_order(struct sotto_cgraph * g) {
    for (int i = 0; i < g->n_nodes; i++) {
        for (int k = i; k < g->n_nodes; k++) {
            assert_true(k == i || g->nodes[k] != g->nodes[i]);
            for (int s = 0; s < SOTTO_MAX_SRC; s++) {
                assert_true(g->nodes[i]->src[s] != g->nodes[k] || k == i);
            }
        }
    }
}

/* ---- order ---- */

/* The forward part of the specification's worked example, with scale in place of sum. */
static void worked_example(void ** state) {
    (void)state;
    struct sotto_tensor * x = leaf();
    struct sotto_tensor * w = leaf();
    sotto_set_param(w);
    struct sotto_tensor * s = sotto_add(ctx, x, w);
    struct sotto_tensor * y = sotto_scale(ctx, s, 2.0f);
    struct sotto_tensor * l = sotto_sum_rows(ctx, y);
    assert_int_equal(sotto_set_loss(l), SOTTO_OK);
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 16, true);
    uint64_t generation = g->generation;
    assert_int_equal(sotto_build_forward_expand(g, l), SOTTO_OK);
    assert_true(g->generation > generation);
    assert_int_equal(g->n_leafs, 1);
    assert_ptr_equal(g->leafs[0], x);
    assert_string_equal(x->name, "leaf_0");
    struct sotto_tensor * want[] = { w, s, y, l };
    assert_int_equal(sotto_graph_n_nodes(g), 4);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "node_%d", i);
        assert_ptr_equal(sotto_graph_node(g, i), want[i]);
        assert_string_equal(want[i]->name, name);
        assert_int_equal(uses(g, want[i]), i < 3);
        assert_int_equal(computed(want[i]), i > 0);
    }
    assert_int_equal(uses(g, x), 1);
    assert_false(computed(x));
    generation = g->generation;
    assert_int_equal(sotto_build_forward_expand(g, l), SOTTO_OK); /* nothing new */
    assert_int_equal(g->generation, generation);
    assert_int_equal(g->n_nodes, 4);
    assert_int_equal(uses(g, y), 1);
}

static void depth_first_left_to_right(void ** state) {
    (void)state;
    struct sotto_tensor * a = leaf();
    struct sotto_tensor * b = leaf();
    struct sotto_tensor * left = sotto_scale(ctx, b, 1.0f);
    struct sotto_tensor * right = sotto_scale(ctx, a, 1.0f);
    struct sotto_tensor * y = sotto_add(ctx, left, sotto_mul(ctx, right, left));
    struct sotto_tensor * z = sotto_add(ctx, y, y);
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 16, false);
    sotto_build_forward_expand(g, z);
    struct sotto_tensor * want[] = { left, right, y->src[1], y, z };
    assert_int_equal(g->n_nodes, 5);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(g->nodes[i], want[i]);
    }
    assert_ptr_equal(g->leafs[0], b);
    assert_ptr_equal(g->leafs[1], a);
    assert_int_equal(uses(g, left), 2);
    assert_int_equal(uses(g, y), 2); /* once a slot */
    assert_int_equal(uses(g, z), 0);
    assert_ptr_equal(sotto_graph_node(g, -1), z);
    assert_ptr_equal(sotto_graph_node(g, -5), left);
    sotto_clear_last_error();
    assert_null(sotto_graph_node(g, 5));
    assert_null(sotto_graph_node(g, -6));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    sotto_graph_clear(g);
    g->right_to_left = true;
    sotto_build_forward_expand(g, z);
    struct sotto_tensor * turned[] = { left, right, y->src[1], y, z };
    assert_ptr_equal(g->nodes[0], turned[0]); /* y's right side first: mul, whose right side is left */
    assert_ptr_equal(g->nodes[4], z);
    check_order(g);
}

static void cast_refers_to_itself(void ** state) {
    (void)state;
    struct sotto_tensor * y = sotto_cast(ctx, leaf(), SOTTO_TYPE_F16);
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 1, false);
    assert_int_equal(sotto_build_forward_expand(g, y), SOTTO_OK);
    assert_int_equal(g->n_nodes, 1);
    assert_int_equal(uses(g, y), 1); /* its own */
}

static void cycles_end(void ** state) {
    (void)state;
    struct sotto_tensor * a = sotto_scale(ctx, leaf(), 1.0f);
    struct sotto_tensor * b = sotto_scale(ctx, a, 1.0f);
    a->src[1] = b; /* by hand */
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 4, false);
    assert_int_equal(sotto_build_forward_expand(g, b), SOTTO_OK);
    assert_int_equal(g->n_nodes, 2);
}

static void long_chains_need_no_stack(void ** state) {
    (void)state;
    enum { N = 100000 };
    struct sotto_context * big =
        sotto_init((struct sotto_init_params){ .mem_size = (size_t)N * 500, .no_alloc = true });
    struct sotto_tensor * x = sotto_new_tensor_1d(big, SOTTO_TYPE_F32, 1);
    struct sotto_tensor * y = x;
    for (int i = 0; i < N; i++) {
        y = sotto_scale(big, y, 1.0f);
    }
    struct sotto_cgraph * g = sotto_new_graph_custom(big, N, false);
    assert_int_equal(sotto_build_forward_order(g, y), SOTTO_OK);
    assert_int_equal(g->n_nodes, N);
    assert_ptr_equal(g->nodes[0]->src[0], x);
    assert_ptr_equal(g->nodes[N - 1], y);
    assert_false(computed(y));
    assert_int_equal(sotto_build_forward_expand(g, y), SOTTO_OK); /* marks all of it */
    assert_true(computed(y));
    assert_true(computed(g->nodes[0]));
    sotto_free(big);
}

/* A random net: order, counts and capacity hold whatever it looks like. */
static void random_graphs_are_ordered(void ** state) {
    (void)state;
    uint32_t seed = 12345;
    for (int round = 0; round < 30; round++) {
        sotto_reset(ctx);
        struct sotto_tensor * all[200];
        int n = 0;
        while (n < 5) {
            all[n++] = leaf();
        }
        while (n < 100) {
            seed = seed * 1664525u + 1013904223u;
            all[n] = sotto_add(ctx, all[(seed >> 8) % (unsigned)n], all[(seed >> 16) % (unsigned)n]);
            n++;
        }
        struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 100, false);
        for (int i = 99; i > 4; i -= 7) {
            assert_int_equal(sotto_build_forward_expand(g, all[i]), SOTTO_OK);
        }
        check_order(g);
        long total = 0;
        for (size_t i = 0; i < g->visited.size; i++) {
            total += g->use_counts[i];
        }
        assert_int_equal(total, 2 * g->n_nodes);
        for (int i = 0; i < g->n_nodes; i++) {
            assert_true(computed(g->nodes[i]));
        }
    }
}

/* ---- what is computed ---- */

static void select_marks_one(void ** state) {
    (void)state;
    struct sotto_tensor * shared = sotto_scale(ctx, leaf(), 1.0f);
    struct sotto_tensor * ts[3];
    for (int i = 0; i < 3; i++) {
        ts[i] = sotto_scale(ctx, i < 2 ? shared : leaf(), (float)i);
    }
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 16, false);
    assert_ptr_equal(sotto_build_forward_select(g, ts, 3, 1), ts[1]);
    assert_int_equal(g->n_nodes, 4);
    assert_true(computed(ts[1]) && computed(shared));
    assert_false(computed(ts[0]) || computed(ts[2]));
    sotto_clear_last_error();
    assert_null(sotto_build_forward_select(g, ts, 3, 3));
    assert_null(sotto_build_forward_select(g, ts, 3, -1));
    assert_null(sotto_build_forward_select(g, ts, 0, 0));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_null(sotto_build_forward_select(g, NULL, 3, 0));
    ts[2] = NULL;
    assert_null(sotto_build_forward_select(g, ts, 3, 0));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

static void flags_reach_old_nodes(void ** state) {
    (void)state;
    struct sotto_tensor * a = sotto_scale(ctx, leaf(), 1.0f);
    struct sotto_tensor * b = sotto_scale(ctx, a, 1.0f);
    struct sotto_tensor * other = sotto_scale(ctx, leaf(), 1.0f);
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 16, false);
    assert_int_equal(sotto_build_forward_order(g, b), SOTTO_OK);
    assert_int_equal(sotto_build_forward_order(g, other), SOTTO_OK);
    assert_false(computed(a) || computed(b) || computed(other));
    struct sotto_tensor * c = sotto_scale(ctx, b, 1.0f);
    assert_int_equal(sotto_build_forward_expand(g, c), SOTTO_OK);
    assert_true(computed(a) && computed(b) && computed(c));
    assert_false(computed(other));
}

/* ---- capacity ---- */

static void full_graph_is_unchanged(void ** state) {
    (void)state;
    for (int size = 0; size < 12; size++) {
        sotto_reset(ctx);
        struct sotto_cgraph * g = sotto_new_graph_custom(ctx, (size_t)size, false);
        struct sotto_tensor * first = leaf();
        if (size >= 3) {
            assert_int_equal(sotto_build_forward_expand(g, sotto_scale(ctx, sotto_scale(ctx, first, 1.0f), 1.0f)),
                             SOTTO_OK);
        }
        struct sotto_tensor * y = sotto_scale(ctx, first, 2.0f);
        for (int i = 0; i < 9; i++) { /* ten nodes, ten leafs with `first` */
            y = sotto_add(ctx, y, leaf());
        }
        struct sotto_cgraph before = *g;
        struct sotto_tensor * keys[67] = { 0 };
        int32_t counts[67] = { 0 };
        memcpy(keys, g->visited.keys, g->visited.size * sizeof(keys[0]));
        memcpy(counts, g->use_counts, g->visited.size * sizeof(counts[0]));
        bool fits = g->n_nodes + 10 <= size;
        assert_int_equal(sotto_build_forward_expand(g, y), fits ? SOTTO_OK : SOTTO_E_FULL);
        if (!fits) {
            assert_memory_equal(&before, g, sizeof(before));
            assert_memory_equal(keys, g->visited.keys, g->visited.size * sizeof(keys[0]));
            assert_memory_equal(counts, g->use_counts, g->visited.size * sizeof(counts[0]));
            assert_string_equal(y->name, "");
            assert_false(computed(y));
            assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
        }
    }
}

static void leafs_fill_up_as_well(void ** state) {
    (void)state;
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 2, false);
    struct sotto_tensor * y = sotto_soft_max_ext(ctx, leaf(), leaf(), 1.0f, 0.0f);
    sotto_soft_max_add_sinks(y, leaf());
    assert_int_equal(sotto_build_forward_expand(g, y), SOTTO_E_FULL); /* one node, three leafs */
    assert_int_equal(g->n_leafs, 0);
    assert_int_equal(uses(g, y), -1);
    sotto_soft_max_add_sinks(y, NULL);
    assert_int_equal(sotto_build_forward_expand(g, y), SOTTO_OK); /* to the last slot */
    struct sotto_tensor * ts[] = { leaf(), y };
    sotto_clear_last_error();
    assert_null(sotto_build_forward_select(g, ts, 2, 0));
    assert_int_equal(sotto_last_error(), SOTTO_E_FULL);
    assert_int_equal(g->n_leafs, 2);
}

static void nodes_are_added_by_hand(void ** state) {
    (void)state;
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 2, false);
    struct sotto_tensor * a = sotto_scale(ctx, leaf(), 1.0f);
    struct sotto_tensor * b = sotto_scale(ctx, a, 1.0f);
    assert_int_equal(sotto_graph_add_node(g, a), SOTTO_OK);
    assert_int_equal(sotto_graph_add_node(g, a), SOTTO_E_STATE);
    assert_int_equal(sotto_graph_add_node(g, b), SOTTO_OK);
    assert_int_equal(sotto_graph_add_node(g, sotto_scale(ctx, b, 1.0f)), SOTTO_E_FULL);
    assert_int_equal(sotto_graph_add_node(g, NULL), SOTTO_E_NULLARG);
    assert_int_equal(g->n_nodes, 2);
    assert_int_equal(g->n_leafs, 0);
    assert_int_equal(uses(g, a), 1);
}

static void overhead_is_exact(void ** state) {
    (void)state;
    static const size_t sizes[] = { 0, 1, 2, 7, 100, 2048 };
    for (size_t i = 0; i < 6; i++) {
        for (int grads = 0; grads < 2; grads++) {
            size_t used = sotto_used_mem(ctx);
            struct sotto_cgraph * g = sotto_new_graph_custom(ctx, sizes[i], grads);
            assert_non_null(g);
            assert_int_equal(sotto_used_mem(ctx) - used, sotto_graph_overhead_custom(sizes[i], grads));
            assert_int_equal(sotto_graph_size(g), sizes[i]);
            assert_true(g->visited.size >= 2 * sizes[i]);
        }
    }
    assert_int_equal(sotto_graph_overhead(), sotto_graph_overhead_custom(SOTTO_DEFAULT_GRAPH_SIZE, false));
    assert_int_equal(sotto_graph_overhead_custom(SIZE_MAX, false), 0);
    assert_int_equal(sotto_i_hash_size(2048), 4099);
    assert_int_equal(sotto_i_hash_size(0), 2);
}

/* ---- copies and looking ---- */

static void copies_are_independent(void ** state) {
    (void)state;
    struct sotto_tensor * y = sotto_add(ctx, sotto_scale(ctx, leaf(), 1.0f), leaf());
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 8, false);
    sotto_build_forward_expand(g, y);
    struct sotto_cgraph * copy = sotto_graph_dup(ctx, g, false);
    assert_non_null(copy);
    assert_int_not_equal(copy->generation, g->generation);
    assert_int_equal(copy->n_nodes, 2);
    assert_int_equal(copy->n_leafs, 2);
    assert_ptr_equal(copy->nodes[1], y);
    assert_int_equal(uses(copy, y->src[0]), 1);
    assert_null(copy->grads);
    sotto_build_forward_expand(copy, sotto_scale(ctx, y, 1.0f));
    assert_int_equal(copy->n_nodes, 3);
    assert_int_equal(g->n_nodes, 2);
    assert_int_equal(uses(g, y), 0);
    assert_int_equal(uses(copy, y), 1);
    struct sotto_cgraph * wide = sotto_new_graph_custom(ctx, 100, true);
    assert_int_equal(sotto_graph_cpy(copy, wide), SOTTO_OK);
    assert_int_equal(uses(wide, y), 1);
    assert_int_equal(sotto_graph_cpy(wide, copy), SOTTO_E_FULL);
    struct sotto_cgraph * plain = sotto_new_graph_custom(ctx, 100, false);
    assert_int_equal(sotto_graph_cpy(wide, plain), SOTTO_E_STATE); /* gradients */
    struct sotto_cgraph * tiny = sotto_new_graph_custom(ctx, 1, false);
    assert_int_equal(sotto_graph_cpy(g, tiny), SOTTO_E_FULL);
    assert_int_equal(tiny->n_nodes, 0);
    assert_int_equal(sotto_graph_cpy(g, g), SOTTO_OK);
    assert_int_equal(sotto_graph_cpy(NULL, g), SOTTO_E_NULLARG);
    assert_int_equal(sotto_graph_cpy(g, NULL), SOTTO_E_NULLARG);
    assert_non_null(sotto_graph_dup(ctx, g, true)->grads);
    assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
    assert_null(sotto_graph_dup(ctx, NULL, false));
    assert_null(sotto_graph_dup(NULL, g, false));
}

static void cleared_graph_is_as_new(void ** state) {
    (void)state;
    struct sotto_tensor * y = sotto_scale(ctx, leaf(), 1.0f);
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 1, true);
    for (int i = 0; i < 3; i++) {
        uint64_t generation = g->generation;
        assert_int_equal(sotto_build_forward_expand(g, y), SOTTO_OK);
        assert_int_equal(uses(g, y->src[0]), 1);
        sotto_graph_clear(g);
        assert_true(g->generation > generation);
        assert_int_equal(g->n_nodes + g->n_leafs, 0);
        assert_int_equal(uses(g, y), -1);
    }
}

static void tensors_are_found_by_name(void ** state) {
    (void)state;
    struct sotto_tensor * x = sotto_set_name(leaf(), "twin");
    struct sotto_tensor * y = sotto_set_name(sotto_scale(ctx, x, 1.0f), "twin");
    struct sotto_tensor * z = sotto_set_name(sotto_scale(ctx, y, 1.0f), "z");
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 8, false);
    sotto_build_forward_expand(g, z);
    assert_ptr_equal(sotto_graph_get_tensor(g, "twin"), x); /* leafs first */
    assert_ptr_equal(sotto_graph_get_tensor(g, "z"), z);
    assert_null(sotto_graph_get_tensor(g, "none"));
    assert_null(sotto_graph_get_tensor(g, NULL));
    assert_null(sotto_graph_get_tensor(NULL, "z"));
    assert_ptr_equal(sotto_graph_nodes(g)[1], z);
}

static void count_line(enum sotto_log_level level, const char * text, void * user_data) {
    int * lines = user_data;
    assert_int_equal(level, SOTTO_LOG_INFO);
    *lines += strchr(text, '\n') != NULL;
}

static void printing_takes_a_line_each(void ** state) {
    (void)state;
    struct sotto_cgraph * g = sotto_new_graph_custom(ctx, 8, true);
    sotto_build_forward_expand(g, sotto_scale(ctx, sotto_scale(ctx, leaf(), 1.0f), 1.0f));
    int lines = 0;
    sotto_log_set(count_line, &lines);
    sotto_graph_print(g);
    sotto_log_set(NULL, NULL);
    assert_int_equal(lines, 2 + 1 + 4);
    sotto_graph_print(NULL);
}

static void null_graphs_are_refused(void ** state) {
    (void)state;
    struct sotto_tensor * t = leaf();
    assert_int_equal(sotto_build_forward_expand(NULL, t), SOTTO_E_NULLARG);
    assert_int_equal(sotto_build_forward_order(NULL, t), SOTTO_E_NULLARG);
    assert_null(sotto_build_forward_select(NULL, &t, 1, 0));
    assert_int_equal(sotto_graph_add_node(NULL, t), SOTTO_E_NULLARG);
    assert_int_equal(sotto_graph_size(NULL), 0);
    assert_int_equal(sotto_graph_n_nodes(NULL), 0);
    assert_null(sotto_graph_nodes(NULL));
    assert_null(sotto_graph_node(NULL, 0));
    sotto_graph_clear(NULL);
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(worked_example),
        TEST(depth_first_left_to_right),
        TEST(cast_refers_to_itself),
        TEST(cycles_end),
        TEST(long_chains_need_no_stack),
        TEST(random_graphs_are_ordered),
        TEST(select_marks_one),
        TEST(flags_reach_old_nodes),
        TEST(full_graph_is_unchanged),
        TEST(leafs_fill_up_as_well),
        TEST(nodes_are_added_by_hand),
        TEST(overhead_is_exact),
        TEST(copies_are_independent),
        TEST(cleared_graph_is_as_new),
        TEST(tensors_are_found_by_name),
        TEST(printing_takes_a_line_each),
        TEST(null_graphs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
