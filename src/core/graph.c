/* SPDX-License-Identifier: MIT */
/* Building graphs: a depth-first walk without recursion, all or nothing.
 *
 * The stack of the walk lies in the free end of `nodes`. Everything on it becomes a node when its sources are done,
 * so nodes and stack together never need more than the graph holds, and if they would, it is full:
 *
 *     nodes: | n_nodes done ones ...  |  free  | ... the walk's stack, top first |
 *
 * A tensor enters the set when it is pushed, so the top's next source is simply the first that is not in the set.
 * Names and COMPUTE flags are given when the walk has ended; when it fails, what it added is taken out again. */
#include "core/graph_impl.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "core/checked.h"
#include "core/tensor_impl.h"

/* ---- making ---- */

/* Where the arrays lie behind the struct. */
struct layout {
    size_t slots, nodes, leafs, keys, grads, grad_accs, use_counts, total;
};

/* Give `count` items of `size` bytes the next place. */
static bool place(struct layout * l, size_t * at, size_t count, size_t size) {
    size_t bytes;
    *at = l->total;
    return sotto_i_mul(count, size, &bytes) && sotto_i_add(l->total, bytes, &l->total);
}

static bool lay_out(size_t size, bool grads, struct layout * l) {
    size_t pointer = sizeof(struct sotto_tensor *);
    *l = (struct layout){ .slots = sotto_i_hash_size(size), .total = sizeof(struct sotto_cgraph) };
    return size <= INT_MAX && place(l, &l->nodes, size, pointer) && place(l, &l->leafs, size, pointer) &&
           place(l, &l->keys, l->slots, pointer) && place(l, &l->grads, grads ? l->slots : 0, pointer) &&
           place(l, &l->grad_accs, grads ? l->slots : 0, pointer) &&
           place(l, &l->use_counts, l->slots, sizeof(int32_t));
}

void sotto_i_graph_touch(struct sotto_cgraph * graph) {
    static atomic_uint_fast64_t newest;
    graph->generation = (uint64_t)atomic_fetch_add_explicit(&newest, 1, memory_order_relaxed) + 1;
}

static struct sotto_tensor ** array_at(struct sotto_cgraph * graph, size_t offset) {
    return (struct sotto_tensor **)(void *)((char *)graph + offset);
}

struct sotto_cgraph * sotto_new_graph_custom(struct sotto_context * ctx, size_t size, bool grads) {
    struct layout l;
    if (!ctx) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_new_graph_custom: ctx is NULL");
        return NULL;
    }
    if (!lay_out(size, grads, &l)) {
        sotto_i_context_fail(ctx, SOTTO_E_MEMORY, "sotto_new_graph_custom: a graph of %zu nodes is too large", size);
        return NULL;
    }
    struct sotto_cgraph * graph = sotto_i_arena_new(ctx, "sotto_new_graph_custom", SOTTO_I_OBJECT_GRAPH, l.total);
    if (!graph) {
        return NULL;
    }
    memset(graph, 0, l.total);
    graph->ctx = ctx;
    graph->size = (int)size;
    graph->nodes = array_at(graph, l.nodes);
    graph->leafs = array_at(graph, l.leafs);
    graph->visited = (struct sotto_i_hash_set){ .size = l.slots, .keys = array_at(graph, l.keys) };
    graph->use_counts = (int32_t *)(void *)((char *)graph + l.use_counts);
    if (grads) {
        graph->grads = array_at(graph, l.grads);
        graph->grad_accs = array_at(graph, l.grad_accs);
    }
    sotto_i_graph_touch(graph);
    return graph;
}

struct sotto_cgraph * sotto_new_graph(struct sotto_context * ctx) {
    return sotto_new_graph_custom(ctx, SOTTO_DEFAULT_GRAPH_SIZE, false);
}

size_t sotto_graph_overhead_custom(size_t size, bool grads) {
    struct layout l;
    size_t bytes;
    if (!lay_out(size, grads, &l) || !sotto_i_arena_size(l.total, &bytes)) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_graph_overhead_custom: a graph of %zu nodes is too large", size);
        return 0;
    }
    return bytes;
}

size_t sotto_graph_overhead(void) { return sotto_graph_overhead_custom(SOTTO_DEFAULT_GRAPH_SIZE, false); }

/* ---- the walk ---- */

/* What the graph held before a walk. */
struct before {
    int n_nodes, n_leafs;
};

static enum sotto_status full(const struct sotto_cgraph * graph) {
    return sotto_fail(SOTTO_E_FULL,
                      "sotto_build_forward: the graph holds at most %d nodes and leafs; make it larger with "
                      "sotto_new_graph_custom",
                      graph->size);
}

static bool is_leaf(const struct sotto_tensor * t) {
    return t->op == SOTTO_OP_NONE && !(t->flags & SOTTO_TENSOR_FLAG_PARAM);
}

/* Add 1 or -1 to the use counts of a node's sources. */
static void count_uses(struct sotto_cgraph * graph, const struct sotto_tensor * node, int32_t by) {
    for (int i = 0; i < SOTTO_MAX_SRC; i++) {
        size_t slot = node->src[i] ? sotto_i_hash_find(&graph->visited, node->src[i]) : SIZE_MAX;
        if (slot != SIZE_MAX) {
            graph->use_counts[slot] += by;
        }
    }
}

/* The next source of a node that the walk has not met; NULL if it has met all. */
static struct sotto_tensor * next_source(const struct sotto_cgraph * graph, const struct sotto_tensor * node) {
    for (int i = 0; i < SOTTO_MAX_SRC; i++) {
        struct sotto_tensor * src = node->src[graph->right_to_left ? SOTTO_MAX_SRC - 1 - i : i];
        if (src && sotto_i_hash_find(&graph->visited, src) == SIZE_MAX) {
            return src;
        }
    }
    return NULL;
}

/* Put a tensor that the set does not hold into it, and among the leafs or on the stack. */
static bool enter(struct sotto_cgraph * graph, struct sotto_tensor * t, int * top) {
    bool leaf = is_leaf(t);
    bool found;
    if (leaf ? graph->n_leafs == graph->size : *top == graph->n_nodes) {
        return false;
    }
    size_t slot = sotto_i_hash_insert(&graph->visited, t, &found);
    if (slot == SIZE_MAX) {
        return false;
    }
    graph->use_counts[slot] = 0;
    if (leaf) {
        graph->leafs[graph->n_leafs++] = t;
    } else {
        graph->nodes[--*top] = t;
    }
    return true;
}

/* Take out what was added since `before`, with `top` the walk's stack. Old keys never moved, so clearing the new ones
 * restores the set; a use count of -1 marks them first, as probing for one must not meet the hole of another. */
static void undo(struct sotto_cgraph * graph, struct before before, int top) {
    for (int i = before.n_nodes; i < graph->n_nodes; i++) {
        count_uses(graph, graph->nodes[i], -1);
    }
    for (int i = before.n_nodes; i < graph->n_nodes; i++) {
        graph->use_counts[sotto_i_hash_find(&graph->visited, graph->nodes[i])] = -1;
    }
    for (int i = before.n_leafs; i < graph->n_leafs; i++) {
        graph->use_counts[sotto_i_hash_find(&graph->visited, graph->leafs[i])] = -1;
    }
    for (int i = top; i < graph->size; i++) {
        graph->use_counts[sotto_i_hash_find(&graph->visited, graph->nodes[i])] = -1;
    }
    for (size_t slot = 0; slot < graph->visited.size; slot++) {
        if (graph->use_counts[slot] == -1) {
            graph->visited.keys[slot] = NULL;
            graph->use_counts[slot] = 0;
        }
    }
    graph->n_nodes = before.n_nodes;
    graph->n_leafs = before.n_leafs;
}

/* Append what t needs and the graph lacks. FULL: everything since `before` is taken back. */
static enum sotto_status walk(struct sotto_cgraph * graph, struct sotto_tensor * t, struct before before) {
    int top = graph->size;
    bool fits = sotto_i_hash_find(&graph->visited, t) != SIZE_MAX || enter(graph, t, &top);
    while (fits && top < graph->size) {
        struct sotto_tensor * node = graph->nodes[top];
        struct sotto_tensor * src = next_source(graph, node);
        if (src) {
            fits = enter(graph, src, &top);
            continue;
        }
        top++;
        graph->nodes[graph->n_nodes++] = node;
        count_uses(graph, node, 1);
    }
    if (!fits) {
        undo(graph, before, top);
        return full(graph);
    }
    return SOTTO_OK;
}

/* ---- after the walk ---- */

static void name_new(struct sotto_cgraph * graph, struct before before) {
    for (int i = before.n_leafs; i < graph->n_leafs; i++) {
        if (!graph->leafs[i]->name[0]) {
            sotto_format_name(graph->leafs[i], "leaf_%d", i);
        }
    }
    for (int i = before.n_nodes; i < graph->n_nodes; i++) {
        if (!graph->nodes[i]->name[0]) {
            sotto_format_name(graph->nodes[i], "node_%d", i);
        }
    }
    if (graph->n_nodes != before.n_nodes || graph->n_leafs != before.n_leafs) {
        sotto_i_graph_touch(graph);
    }
}

/* Set COMPUTE on a tensor; true if it was not set. Data never carries it. */
static bool mark(struct sotto_cgraph * graph, struct sotto_tensor * t) {
    if (!t || t->op == SOTTO_OP_NONE || (t->flags & SOTTO_TENSOR_FLAG_COMPUTE)) {
        return false;
    }
    t->flags |= SOTTO_TENSOR_FLAG_COMPUTE;
    sotto_i_graph_touch(graph);
    return true;
}

/* Mark t and all it needs. Sources come before users, so one pass from the end suffices; below the `n_old` nodes that
 * were there before it goes on only if one of them lacks the flag. */
static void mark_needed(struct sotto_cgraph * graph, struct sotto_tensor * t, int n_old) {
    bool older = mark(graph, t);
    for (int i = graph->n_nodes - 1; i >= 0 && (i >= n_old || older); i--) {
        struct sotto_tensor * node = graph->nodes[i];
        for (int k = 0; k < SOTTO_MAX_SRC && (node->flags & SOTTO_TENSOR_FLAG_COMPUTE); k++) {
            older = mark(graph, node->src[k]) || older;
        }
    }
}

/* ---- public ---- */

enum sotto_status sotto_i_graph_status(const struct sotto_cgraph * graph) { return sotto_context_status(graph->ctx); }

/* OK to change the graph: NULLARG, or its context's error. */
static enum sotto_status ready(const struct sotto_cgraph * graph, const char * function) {
    if (!graph) {
        return sotto_fail(SOTTO_E_NULLARG, "%s: graph is NULL", function);
    }
    return sotto_context_status(graph->ctx);
}

static struct before now(const struct sotto_cgraph * graph) {
    return (struct before){ graph->n_nodes, graph->n_leafs };
}

static enum sotto_status expand(struct sotto_cgraph * graph, struct sotto_tensor * tensor, bool compute,
                                const char * function) {
    enum sotto_status status = ready(graph, function);
    if (status != SOTTO_OK) {
        return status;
    }
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "%s: tensor is NULL", function);
    }
    struct before before = now(graph);
    status = walk(graph, tensor, before);
    if (status != SOTTO_OK) {
        return status;
    }
    name_new(graph, before);
    if (compute) {
        for (int i = before.n_nodes; i < graph->n_nodes; i++) {
            mark(graph, graph->nodes[i]);
        }
        mark_needed(graph, tensor, before.n_nodes);
    }
    return SOTTO_OK;
}

enum sotto_status sotto_build_forward_expand(struct sotto_cgraph * graph, struct sotto_tensor * tensor) {
    return expand(graph, tensor, true, "sotto_build_forward_expand");
}

enum sotto_status sotto_build_forward_order(struct sotto_cgraph * graph, struct sotto_tensor * tensor) {
    return expand(graph, tensor, false, "sotto_build_forward_order");
}

struct sotto_tensor * sotto_build_forward_select(struct sotto_cgraph * graph, struct sotto_tensor ** ts, int n,
                                                 int idx) {
    if (ready(graph, "sotto_build_forward_select") != SOTTO_OK) {
        return NULL;
    }
    if (!ts || idx < 0 || idx >= n) {
        sotto_fail(ts ? SOTTO_E_PARAM : SOTTO_E_NULLARG, "sotto_build_forward_select: idx = %d of %d tensors%s", idx, n,
                   ts ? "" : ", which are NULL");
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        if (!ts[i]) {
            sotto_fail(SOTTO_E_NULLARG, "sotto_build_forward_select: tensor %d is NULL", i);
            return NULL;
        }
    }
    struct before before = now(graph);
    for (int i = 0; i < n; i++) {
        if (walk(graph, ts[i], before) != SOTTO_OK) {
            return NULL;
        }
    }
    name_new(graph, before);
    mark_needed(graph, ts[idx], before.n_nodes);
    return ts[idx];
}

enum sotto_status sotto_graph_add_node(struct sotto_cgraph * graph, struct sotto_tensor * tensor) {
    enum sotto_status status = ready(graph, "sotto_graph_add_node");
    bool found;
    if (status != SOTTO_OK) {
        return status;
    }
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_graph_add_node: tensor is NULL");
    }
    if (sotto_i_hash_find(&graph->visited, tensor) != SIZE_MAX) {
        return sotto_fail(SOTTO_E_STATE, "sotto_graph_add_node: '%s' is in the graph already", tensor->name);
    }
    if (graph->n_nodes == graph->size || sotto_i_hash_insert(&graph->visited, tensor, &found) == SIZE_MAX) {
        return full(graph);
    }
    graph->nodes[graph->n_nodes++] = tensor;
    count_uses(graph, tensor, 1);
    sotto_i_graph_touch(graph);
    return SOTTO_OK;
}

void sotto_graph_clear(struct sotto_cgraph * graph) {
    if (!graph) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_clear: graph is NULL");
        return;
    }
    graph->n_nodes = 0;
    graph->n_leafs = 0;
    memset(graph->visited.keys, 0, graph->visited.size * sizeof(graph->visited.keys[0]));
    memset(graph->use_counts, 0, graph->visited.size * sizeof(graph->use_counts[0]));
    if (graph->grads) {
        memset(graph->grads, 0, graph->visited.size * sizeof(graph->grads[0]));
        memset(graph->grad_accs, 0, graph->visited.size * sizeof(graph->grad_accs[0]));
    }
    sotto_i_graph_touch(graph);
}

/* ---- looking ---- */

int sotto_graph_size(const struct sotto_cgraph * graph) {
    if (!graph) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_size: graph is NULL");
        return 0;
    }
    return graph->size;
}

int sotto_graph_n_nodes(const struct sotto_cgraph * graph) {
    if (!graph) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_n_nodes: graph is NULL");
        return 0;
    }
    return graph->n_nodes;
}

struct sotto_tensor ** sotto_graph_nodes(struct sotto_cgraph * graph) {
    if (!graph) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_nodes: graph is NULL");
        return NULL;
    }
    return graph->nodes;
}

struct sotto_tensor * sotto_graph_node(struct sotto_cgraph * graph, int i) {
    if (!graph) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_node: graph is NULL");
        return NULL;
    }
    int at = i < 0 ? graph->n_nodes + i : i;
    if (at < 0 || at >= graph->n_nodes) {
        sotto_fail(SOTTO_E_PARAM, "sotto_graph_node: there is no node %d among %d", i, graph->n_nodes);
        return NULL;
    }
    return graph->nodes[at];
}

static struct sotto_tensor * find_name(struct sotto_tensor ** list, int n, const char * name) {
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i]->name, name) == 0) {
            return list[i];
        }
    }
    return NULL;
}

struct sotto_tensor * sotto_graph_get_tensor(struct sotto_cgraph * graph, const char * name) {
    if (!graph || !name) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_get_tensor: %s is NULL", graph ? "name" : "graph");
        return NULL;
    }
    struct sotto_tensor * leaf = find_name(graph->leafs, graph->n_leafs, name);
    return leaf ? leaf : find_name(graph->nodes, graph->n_nodes, name);
}
