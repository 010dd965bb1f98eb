/* SPDX-License-Identifier: MIT */
/* The graph allocator. Beside cases with a known answer there are two judges of any placement: a walk over the nodes
 * that writes the name of each storage into the memory it was given and looks whether every reader still finds what it
 * needs (`audit`), and computing the graph in shared and in private memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_impl.h"
#include "core/op.h"
#include "sotto/sotto.h"
#include "support/refuse_each.h"
#include "support/small_graph.h"

enum { N0 = 16, N1 = 4, MAX_TENSORS = 256 };
#define BYTES ((size_t)N0 * N1 * sizeof(float))

static struct sotto_context * new_context(bool no_alloc) { return context_of(1 << 21, no_alloc); }

static struct sotto_tensor * leaf(struct sotto_context * ctx) {
    return sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, N0, N1);
}

/* Buffer bytes for a graph; it is given addresses as well. */
static size_t bytes_for(struct sotto_cgraph * graph) {
    sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
    assert_non_null(galloc);
    assert_true(sotto_gallocr_alloc_graph(galloc, graph));
    const size_t n = sotto_gallocr_get_buffer_size(galloc, 0);
    sotto_gallocr_free(galloc);
    return n;
}

/* ---- the judges ---- */

static const struct sotto_tensor * owner_of(const struct sotto_tensor * t) { return t->view_src ? t->view_src : t; }

/* Is the memory of this storage still marked as its own? Marks are the owner's address, one a word of 8 bytes. */
static bool marked(const struct sotto_tensor * owner) {
    const uint64_t mark = (uint64_t)(uintptr_t)owner;
    for (size_t at = 0; at + 8 <= sotto_nbytes(owner); at += 8)
        if (memcmp((const char *)owner->data + at, &mark, 8) != 0)
            return false;
    return true;
}

static void mark(const struct sotto_tensor * owner) {
    const uint64_t value = (uint64_t)(uintptr_t)owner;
    for (size_t at = 0; at + 8 <= sotto_nbytes(owner); at += 8)
        memcpy((char *)owner->data + at, &value, 8);
}

static bool overlap(const struct sotto_tensor * a, const struct sotto_tensor * b) {
    const char * p = a->data;
    const char * q = b->data;
    return p < q + sotto_nbytes(b) && q < p + sotto_nbytes(a);
}

/* Node i before it runs: sources are whole, and it lies on a source only where it may. */
static void audit_node(struct sotto_cgraph * graph, int i) {
    const struct sotto_tensor * node = graph->nodes[i];
    for (int s = 0; s < SOTTO_MAX_SRC; s++) {
        const struct sotto_tensor * source = node->src[s];
        if (source == NULL)
            continue;
        const struct sotto_tensor * owner = owner_of(source);
        assert_non_null(source->data);
        assert_ptr_equal(source->data, (char *)owner->data + source->view_offs);
        if (!marked(owner))
            fail_msg("node %d (%s): source %d '%s' was overwritten", i, sotto_op_desc(node), s, source->name);
        if (node->view_src == NULL && overlap(node, owner)) {
            assert_true(sotto_i_op_row(node->op)->flags & OP_INPLACE);
            assert_ptr_equal(node->data, source->data);
            assert_true(sotto_are_same_shape(node, source) && sotto_are_same_stride(node, source));
        }
    }
}

static bool is_used(struct sotto_cgraph * graph, const struct sotto_tensor * tensor) {
    for (int i = 0; i < graph->n_nodes; i++)
        for (int s = 0; s < SOTTO_MAX_SRC; s++)
            if (graph->nodes[i]->src[s] == tensor)
                return true;
    return false;
}

/* Play the graph twice: leafs and inputs must survive the first time. */
static void audit(struct sotto_cgraph * graph) {
    for (int i = 0; i < graph->n_leafs; i++)
        mark(owner_of(graph->leafs[i]));
    for (int time = 0; time < 2; time++) {
        for (int i = 0; i < graph->n_nodes; i++) {
            audit_node(graph, i);
            mark(owner_of(graph->nodes[i]));
        }
        for (int i = 0; i < graph->n_leafs; i++)
            assert_true(marked(owner_of(graph->leafs[i])));
        for (int i = 0; i < graph->n_nodes; i++) {
            const struct sotto_tensor * node = graph->nodes[i];
            if ((node->flags & (SOTTO_TENSOR_FLAG_INPUT | SOTTO_TENSOR_FLAG_OUTPUT)) || !is_used(graph, node))
                assert_true(marked(owner_of(node)));
        }
    }
}

static size_t audited_bytes(struct sotto_cgraph * graph) {
    sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
    assert_true(sotto_gallocr_alloc_graph(galloc, graph));
    audit(graph);
    const size_t n = sotto_gallocr_get_buffer_size(galloc, 0);
    sotto_gallocr_free(galloc);
    return n;
}

/* ---- known answers ---- */

static void chain_of_adds_needs_one_tensor_beside_leafs(void ** state) {
    (void)state;
    for (int n = 1; n <= 40; n += 13) {
        struct sotto_context * ctx = new_context(true);
        struct sotto_tensor * a = leaf(ctx);
        struct sotto_tensor * y = leaf(ctx);
        for (int i = 0; i < n; i++)
            y = sotto_add(ctx, y, a);
        assert_int_equal(audited_bytes(graph_of(ctx, y)), 3 * BYTES);
        sotto_free(ctx);
    }
}

static void chain_without_inplace_needs_two(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * y = leaf(ctx);
    for (int i = 0; i < 20; i++)
        y = sotto_norm(ctx, y, 1e-5f);
    assert_int_equal(audited_bytes(graph_of(ctx, y)), 3 * BYTES);
    sotto_free(ctx);
}

static void same_operand_twice_is_not_taken_over(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * x = sotto_norm(ctx, leaf(ctx), 1e-5f);
    struct sotto_tensor * y = sotto_mul(ctx, x, x);
    assert_int_equal(audited_bytes(graph_of(ctx, y)), 3 * BYTES);
    assert_ptr_not_equal(x->data, y->data);
    sotto_free(ctx);
}

static void second_operand_is_taken_over(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * x = sotto_norm(ctx, a, 1e-5f);
    struct sotto_tensor * y = sotto_add(ctx, a, x);
    assert_int_equal(audited_bytes(graph_of(ctx, y)), 2 * BYTES);
    assert_ptr_equal(x->data, y->data);
    sotto_free(ctx);
}

static void broadcast_operand_is_not_taken_over(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * row = sotto_norm(ctx, sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, N0, 1), 1e-5f);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * y = sotto_add(ctx, a, row);
    audited_bytes(graph_of(ctx, y));
    assert_ptr_not_equal(row->data, y->data);
    sotto_free(ctx);
}

static void other_strides_are_not_taken_over(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, N0, N0);
    struct sotto_tensor * x = sotto_norm(ctx, a, 1e-5f);
    struct sotto_tensor * y = sotto_add(ctx, a, sotto_transpose(ctx, x));
    audited_bytes(graph_of(ctx, y));
    assert_ptr_not_equal(x->data, y->data);
    sotto_free(ctx);
}

static void output_is_kept(void ** state) {
    (void)state;
    for (int through_view = 0; through_view < 2; through_view++) {
        struct sotto_context * ctx = new_context(true);
        struct sotto_tensor * a = leaf(ctx);
        struct sotto_tensor * middle = sotto_add(ctx, a, a);
        struct sotto_tensor * y = through_view ? sotto_reshape_1d(ctx, middle, N0 * N1) : middle;
        sotto_set_output(y);
        for (int i = 0; i < 5; i++)
            y = sotto_scale(ctx, y, 2.0f);
        assert_int_equal(audited_bytes(graph_of(ctx, y)), 3 * BYTES);
        assert_ptr_not_equal(middle->data, y->data);
        sotto_free(ctx);
    }
}

static void input_is_kept(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * middle = sotto_scale(ctx, leaf(ctx), 1.0f);
    sotto_set_input(middle);
    struct sotto_tensor * y = sotto_scale(ctx, sotto_scale(ctx, middle, 2.0f), 3.0f);
    assert_int_equal(audited_bytes(graph_of(ctx, y)), 3 * BYTES);
    sotto_free(ctx);
}

static void unread_results_are_kept(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * first = sotto_scale(ctx, a, 2.0f);
    struct sotto_tensor * view = sotto_reshape_1d(ctx, sotto_scale(ctx, a, 3.0f), N0 * N1);
    struct sotto_cgraph * graph = graph_of(ctx, first);
    assert_int_equal(sotto_build_forward_expand(graph, view), SOTTO_OK);
    assert_int_equal(sotto_build_forward_expand(graph, sotto_norm(ctx, sotto_norm(ctx, a, 0.1f), 0.1f)), SOTTO_OK);
    assert_int_equal(audited_bytes(graph), 5 * BYTES);
    sotto_free(ctx);
}

static void view_keeps_its_owner(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * owner = sotto_scale(ctx, a, 2.0f);
    struct sotto_tensor * view = sotto_view_2d(ctx, owner, N0, 2, owner->nb[1], owner->nb[1]);
    struct sotto_tensor * other = sotto_norm(ctx, sotto_norm(ctx, sotto_norm(ctx, owner, 0.1f), 0.1f), 0.1f);
    struct sotto_tensor * top = sotto_view_2d(ctx, other, N0, 2, other->nb[1], 0);
    struct sotto_cgraph * graph = graph_of(ctx, sotto_add(ctx, top, sotto_norm(ctx, view, 0.1f)));
    audited_bytes(graph);
    assert_ptr_equal(view->data, (char *)owner->data + owner->nb[1]);
    sotto_free(ctx);
}

static void diamond(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * x = sotto_norm(ctx, leaf(ctx), 0.1f);
    struct sotto_tensor * left = sotto_scale(ctx, x, 2.0f);
    struct sotto_tensor * right = sotto_scale(ctx, x, 3.0f);
    struct sotto_tensor * y = sotto_add(ctx, left, right);
    assert_int_equal(audited_bytes(graph_of(ctx, y)), 3 * BYTES); /* leaf, left, and right on top of x */
    assert_ptr_equal(right->data, x->data);
    sotto_free(ctx);
}

static void tensors_with_data_are_left_alone(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    static float values[N0 * N1];
    struct sotto_tensor * a = leaf(ctx);
    a->data = values;
    struct sotto_tensor * y = sotto_scale(ctx, sotto_reshape_1d(ctx, a, N0 * N1), 2.0f);
    assert_int_equal(audited_bytes(graph_of(ctx, y)), BYTES);
    assert_ptr_equal(a->data, values);
    assert_ptr_not_equal(y->data, values);
    sotto_free(ctx);
}

static void reserve_does_not_touch_and_only_grows(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * small = sotto_norm(ctx, leaf(ctx), 0.1f);
    struct sotto_tensor * large = sotto_norm(ctx, sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, N0, 10 * N1), 0.1f);
    struct sotto_cgraph * graphs[] = { graph_of(ctx, small), graph_of(ctx, large) };
    sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
    size_t size = 0;
    assert_int_equal(sotto_gallocr_reserve_n_size(galloc, graphs[0], NULL, NULL, &size), SOTTO_OK);
    assert_int_equal(size, 2 * BYTES);
    assert_int_equal(sotto_gallocr_get_buffer_size(galloc, 0), 0);
    assert_true(sotto_gallocr_reserve(galloc, graphs[0]));
    assert_int_equal(sotto_gallocr_get_buffer_size(galloc, 0), 2 * BYTES);
    assert_null(small->data);
    assert_true(sotto_gallocr_reserve(galloc, graphs[1]));
    assert_int_equal(sotto_gallocr_get_buffer_size(galloc, 0), 20 * BYTES);
    assert_true(sotto_gallocr_reserve(galloc, graphs[0]));
    assert_int_equal(sotto_gallocr_get_buffer_size(galloc, 0), 20 * BYTES);
    for (int i = 0; i < 6; i++) {
        assert_true(sotto_gallocr_alloc_graph(galloc, graphs[i % 2]));
        audit(graphs[i % 2]);
    }
    sotto_gallocr_free(galloc);
    sotto_free(ctx);
}

/* A tensor placed before the buffer was replaced is placed again, not taken for data of others. */
static void growing_moves_tensors_of_earlier_graphs(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_cgraph * first = graph_of(ctx, sotto_norm(ctx, a, 0.1f));
    assert_true(sotto_gallocr_alloc_graph(galloc, first));
    for (int64_t n = 2; n < 40; n += 3) {
        struct sotto_tensor * large = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, N0, n * N1);
        struct sotto_cgraph * graph = graph_of(ctx, sotto_add(ctx, sotto_norm(ctx, large, 0.1f), a));
        assert_true(sotto_gallocr_alloc_graph(galloc, graph));
        audit(graph);
        assert_true(sotto_gallocr_alloc_graph(galloc, first));
        audit(first);
    }
    sotto_gallocr_free(galloc);
    sotto_free(ctx);
}

static void unchanged_graph_keeps_addresses_and_data(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * y = sotto_norm(ctx, a, 0.1f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
    assert_true(sotto_gallocr_alloc_graph(galloc, graph));
    void * at[] = { a->data, y->data };
    assert_non_null(sotto_set_f32(a, 3.5f));
    assert_true(sotto_gallocr_alloc_graph(galloc, graph));
    assert_ptr_equal(a->data, at[0]);
    assert_ptr_equal(y->data, at[1]);
    assert_true(sotto_get_f32_1d(a, N0 * N1 - 1) == 3.5f);
    sotto_gallocr_free(galloc);
    sotto_free(ctx);
}

static void several_buffers(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * x = sotto_scale(ctx, a, 2.0f);
    struct sotto_tensor * y = sotto_scale(ctx, x, 3.0f);
    struct sotto_cgraph * graph = graph_of(ctx, y);
    sotto_backend_buffer_type_t bufts[] = { sotto_backend_cpu_buffer_type(), sotto_backend_cpu_buffer_type() };
    sotto_gallocr_t galloc = sotto_gallocr_new_n(bufts, 2);
    const int node_ids[] = { 0, 1 }, leaf_ids[] = { 1 }, wrong[] = { 0, 2 };
    assert_false(sotto_gallocr_alloc_graph(galloc, graph)); /* nothing was reserved */
    assert_int_equal(sotto_last_error(), SOTTO_E_STATE);
    assert_false(sotto_gallocr_reserve_n(galloc, graph, wrong, leaf_ids));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_true(sotto_gallocr_reserve_n(galloc, graph, node_ids, leaf_ids));
    assert_int_equal(sotto_gallocr_get_buffer_size(galloc, 0), BYTES);
    assert_int_equal(sotto_gallocr_get_buffer_size(galloc, 1), 2 * BYTES); /* y does not take over x elsewhere */
    assert_true(sotto_gallocr_alloc_graph(galloc, graph));
    assert_ptr_equal(a->buffer, y->buffer);
    assert_ptr_not_equal(x->buffer, y->buffer);
    audit(graph);
    struct sotto_cgraph * other = graph_of(ctx, sotto_add(ctx, sotto_scale(ctx, leaf(ctx), 2.0f), a));
    assert_false(sotto_gallocr_alloc_graph(galloc, other));
    assert_int_equal(sotto_last_error(), SOTTO_E_STATE);
    sotto_gallocr_free(galloc);
    sotto_free(ctx);
}

static void empty_tensors_and_empty_graph(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, N0, 0);
    assert_int_equal(bytes_for(graph_of(ctx, sotto_scale(ctx, a, 2.0f))), 0);
    assert_int_equal(bytes_for(sotto_new_graph(ctx)), 0);
    sotto_free(ctx);
}

static void wrong_arguments(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_cgraph * graph = graph_of(ctx, sotto_scale(ctx, leaf(ctx), 2.0f));
    sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
    sotto_backend_buffer_type_t none[] = { NULL };
    assert_null(sotto_gallocr_new(NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_null(sotto_gallocr_new_n(none, 0));
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    assert_false(sotto_gallocr_reserve(NULL, graph));
    assert_false(sotto_gallocr_alloc_graph(galloc, NULL));
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_int_equal(sotto_gallocr_get_buffer_size(galloc, 1), 0);
    assert_int_equal(sotto_last_error(), SOTTO_E_PARAM);
    sotto_gallocr_free(NULL);
    sotto_gallocr_free(galloc);
    sotto_free(ctx);
}

/* ---- X12: a plan must not outlive its graph ---- */

static void fill(struct sotto_tensor * tensor, int seed) {
    for (int64_t i = 0; i < sotto_nelements(tensor); i++)
        assert_int_equal(sotto_set_f32_1d(tensor, i, (float)((i * 7 + seed * 13) % 11) - 4.0f), SOTTO_OK);
}

static void another_graph_of_the_same_sizes(void ** state) {
    (void)state;
    struct sotto_context * ctx = new_context(true);
    struct sotto_tensor * a = leaf(ctx);
    struct sotto_tensor * b = leaf(ctx);
    struct sotto_tensor * y[2];
    struct sotto_tensor * kept[2];
    struct sotto_cgraph * graphs[2];
    for (int k = 0; k < 2; k++) {
        struct sotto_tensor * c = sotto_add(ctx, a, b);
        struct sotto_tensor * d = sotto_mul(ctx, c, a);
        kept[k] = d;
        sotto_set_output(d);
        y[k] = sotto_add(ctx, d, k == 0 ? b : c);
        graphs[k] = graph_of(ctx, y[k]);
    }
    sotto_backend_t cpu = sotto_backend_cpu_init();
    sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
    for (int run = 0; run < 6; run++) {
        const int k = run % 2;
        assert_true(sotto_gallocr_alloc_graph(galloc, graphs[k]));
        audit(graphs[k]);
        fill(a, run);
        fill(b, run + 1);
        assert_int_equal(sotto_backend_graph_compute(cpu, graphs[k]), SOTTO_OK);
        for (int64_t i = 0; i < N0 * N1; i++) {
            const float va = sotto_get_f32_1d(a, i), vb = sotto_get_f32_1d(b, i);
            const float c = va + vb, d = c * va;
            assert_true(sotto_get_f32_1d(kept[k], i) == d);
            assert_true(sotto_get_f32_1d(y[k], i) == d + (k == 0 ? vb : c));
        }
    }
    sotto_backend_free(cpu);
    sotto_gallocr_free(galloc);
    sotto_free(ctx);
}

/* ---- random graphs ---- */

static uint32_t random_state;

static int pick(int n) {
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (uint32_t)n);
}

struct pool {
    struct sotto_tensor * tensors[MAX_TENSORS];
    int n, n_leafs;
};

static struct sotto_tensor * any(struct pool * pool) { return pool->tensors[pick(pool->n)]; }

/* Another tensor of the same shape, or the same one. */
static struct sotto_tensor * alike(struct pool * pool, struct sotto_tensor * a) {
    for (int tries = 0; tries < 8; tries++) {
        struct sotto_tensor * b = any(pool);
        if (sotto_are_same_shape(a, b))
            return b;
    }
    return a;
}

static struct sotto_tensor * random_view(struct sotto_context * ctx, struct sotto_tensor * a) {
    if (pick(2) && sotto_is_contiguous(a))
        return sotto_reshape_2d(ctx, a, a->ne[1], a->ne[0]);
    const int64_t rows = a->ne[1] > 1 ? a->ne[1] - 1 : 1;
    return sotto_view_2d(ctx, a, a->ne[0], rows, a->nb[1], pick(2) && a->ne[1] > 1 ? a->nb[1] : 0);
}

static struct sotto_tensor * random_node(struct sotto_context * ctx, struct pool * pool) {
    struct sotto_tensor * a = any(pool);
    switch (pick(11)) {
    case 0:
    case 1: return sotto_add(ctx, a, alike(pool, a));
    case 2: return sotto_mul(ctx, a, alike(pool, a));
    case 3: return sotto_scale(ctx, a, 0.5f);
    case 4: return sotto_gelu(ctx, sotto_cont(ctx, a));
    case 5: return sotto_norm(ctx, a, 0.1f);
    case 6: return random_view(ctx, a);
    case 7: return sotto_cont(ctx, a);
    case 8: return sotto_soft_max(ctx, sotto_cont(ctx, a));
    case 9: return a->op != SOTTO_OP_NONE ? sotto_scale_inplace(ctx, a, 0.25f) : sotto_scale(ctx, a, 2.0f);
    default: {
        struct sotto_tensor * b = alike(pool, a);
        return b->op != SOTTO_OP_NONE && owner_of(a) != owner_of(b) ? sotto_cpy(ctx, a, b) : sotto_sum_rows(ctx, a);
    }
    }
}

/* The same seed makes the same graph in any context. */
static struct sotto_cgraph * random_graph(struct sotto_context * ctx, struct pool * pool, uint32_t seed) {
    random_state = seed * 2654435761u + 1;
    *pool = (struct pool){ .n_leafs = 2 + pick(3) };
    for (int i = 0; i < pool->n_leafs; i++)
        pool->tensors[pool->n++] = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 4 << pick(3), 1 + pick(5));
    const int n = pool->n_leafs + 3 + pick(60);
    while (pool->n < n) {
        struct sotto_tensor * node = random_node(ctx, pool);
        assert_non_null(node);
        if (pick(12) == 0)
            sotto_set_output(node);
        pool->tensors[pool->n++] = node;
    }
    struct sotto_cgraph * graph = sotto_new_graph(ctx);
    for (int i = 0; i < 1 + (int)(seed % 4); i++)
        assert_int_equal(sotto_build_forward_expand(graph, pool->tensors[pool->n - 1 - i]), SOTTO_OK);
    return graph;
}

static bool is_leaf_of(struct sotto_cgraph * graph, const struct sotto_tensor * tensor) {
    for (int i = 0; i < graph->n_leafs; i++)
        if (graph->leafs[i] == tensor)
            return true;
    return false;
}

static void compare(struct sotto_cgraph * shared, struct sotto_cgraph * private_, uint32_t seed) {
    assert_int_equal(shared->n_nodes, private_->n_nodes);
    for (int i = 0; i < shared->n_nodes; i++) {
        const struct sotto_tensor * a = shared->nodes[i];
        const struct sotto_tensor * b = private_->nodes[i];
        assert_int_equal(a->op, b->op);
        if (!(a->flags & SOTTO_TENSOR_FLAG_OUTPUT) && is_used(shared, a))
            continue;
        for (int64_t k = 0; k < sotto_nelements(a); k++) {
            const float x = sotto_get_f32_1d(a, k), y = sotto_get_f32_1d(b, k);
            if (memcmp(&x, &y, sizeof(x)) != 0)
                fail_msg("seed %u: node %d (%s) differs at %d: %g, %g", seed, i, sotto_op_desc(a), (int)k, x, y);
        }
    }
}

static void random_graphs_equal_private_memory(void ** state) {
    (void)state;
    sotto_backend_t cpu = sotto_backend_cpu_init();
    size_t shared_bytes = 0, private_bytes = 0;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        struct sotto_context * ctx[2] = { new_context(true), new_context(false) };
        struct pool pools[2];
        struct sotto_cgraph * graphs[2];
        for (int k = 0; k < 2; k++)
            graphs[k] = random_graph(ctx[k], &pools[k], seed);
        sotto_gallocr_t galloc = sotto_gallocr_new(sotto_backend_cpu_buffer_type());
        assert_true(sotto_gallocr_alloc_graph(galloc, graphs[0]));
        audit(graphs[0]);
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < pools[k].n_leafs; i++)
                if (k == 1 || is_leaf_of(graphs[0], pools[0].tensors[i]))
                    fill(pools[k].tensors[i], i);
            assert_int_equal(sotto_backend_graph_compute(cpu, graphs[k]), SOTTO_OK);
        }
        compare(graphs[0], graphs[1], seed);
        shared_bytes += sotto_gallocr_get_buffer_size(galloc, 0);
        for (int i = 0; i < pools[0].n; i++)
            private_bytes += pools[0].tensors[i]->view_src == NULL ? sotto_nbytes(pools[0].tensors[i]) : 0;
        sotto_gallocr_free(galloc);
        sotto_free(ctx[0]);
        sotto_free(ctx[1]);
    }
    print_message("200 graphs: %zu bytes shared, %zu private\n", shared_bytes, private_bytes);
    assert_true(shared_bytes < private_bytes);
    sotto_backend_free(cpu);
}

/* ---- memory runs out ---- */

static enum sotto_status plan_memory(const struct sotto_allocator * allocator, void * user_data) {
    (void)user_data;
    struct sotto_context * ctx = new_context(true);
    struct pool pool;
    struct sotto_cgraph * graph = random_graph(ctx, &pool, 77);
    sotto_backend_buffer_type_t buft = sotto_backend_cpu_buffer_type();
    sotto_gallocr_t galloc = sotto_gallocr_new_ext(&buft, 1, allocator);
    const bool done =
        galloc != NULL && sotto_gallocr_reserve(galloc, graph) && sotto_gallocr_alloc_graph(galloc, graph);
    sotto_gallocr_free(galloc);
    sotto_free(ctx);
    return done ? SOTTO_OK : sotto_last_error();
}

static void every_allocation_fails_once(void ** state) {
    (void)state;
    assert_true(refuse_each(plan_memory, NULL) > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_of_adds_needs_one_tensor_beside_leafs),
        cmocka_unit_test(chain_without_inplace_needs_two),
        cmocka_unit_test(same_operand_twice_is_not_taken_over),
        cmocka_unit_test(second_operand_is_taken_over),
        cmocka_unit_test(broadcast_operand_is_not_taken_over),
        cmocka_unit_test(other_strides_are_not_taken_over),
        cmocka_unit_test(output_is_kept),
        cmocka_unit_test(input_is_kept),
        cmocka_unit_test(unread_results_are_kept),
        cmocka_unit_test(view_keeps_its_owner),
        cmocka_unit_test(diamond),
        cmocka_unit_test(tensors_with_data_are_left_alone),
        cmocka_unit_test(reserve_does_not_touch_and_only_grows),
        cmocka_unit_test(growing_moves_tensors_of_earlier_graphs),
        cmocka_unit_test(unchanged_graph_keeps_addresses_and_data),
        cmocka_unit_test(several_buffers),
        cmocka_unit_test(empty_tensors_and_empty_graph),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(another_graph_of_the_same_sizes),
        cmocka_unit_test(random_graphs_equal_private_memory),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
