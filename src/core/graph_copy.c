/* SPDX-License-Identifier: MIT */
/* Copies of graphs, and a graph in words. */
#include <string.h>

#include "core/graph_impl.h"
#include "core/tensor_impl.h"
#include "sotto/log.h"

static enum sotto_status check_copy(const struct sotto_cgraph * src, const struct sotto_cgraph * dst) {
    if (!src || !dst) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_graph_cpy: %s is NULL", src ? "dst" : "src");
    }
    enum sotto_status status = sotto_context_status(src->ctx);
    if (status == SOTTO_OK) {
        status = sotto_context_status(dst->ctx);
    }
    if (status != SOTTO_OK) {
        return status;
    }
    if (dst->size < src->n_nodes || dst->size < src->n_leafs || dst->visited.size < src->visited.size) {
        return sotto_fail(SOTTO_E_FULL, "sotto_graph_cpy: dst holds %d nodes, src %d nodes and %d leafs of %d",
                          dst->size, src->n_nodes, src->n_leafs, src->size);
    }
    if (src->grads && !dst->grads) {
        return sotto_fail(SOTTO_E_STATE, "sotto_graph_cpy: src has gradients, dst was made without");
    }
    return SOTTO_OK;
}

/* Slot by slot; the sets may be of different sizes. */
static void copy_set(const struct sotto_cgraph * src, struct sotto_cgraph * dst) {
    for (size_t from = 0; from < src->visited.size; from++) {
        struct sotto_tensor * tensor = src->visited.keys[from];
        if (!tensor) {
            continue;
        }
        bool found;
        size_t to = sotto_i_hash_insert(&dst->visited, tensor, &found);
        dst->use_counts[to] = src->use_counts[from];
        if (src->grads) {
            dst->grads[to] = src->grads[from];
            dst->grad_accs[to] = src->grad_accs[from];
        }
    }
}

enum sotto_status sotto_graph_cpy(const struct sotto_cgraph * src, struct sotto_cgraph * dst) {
    enum sotto_status status = check_copy(src, dst);
    if (status != SOTTO_OK || src == dst) {
        return status;
    }
    sotto_graph_clear(dst);
    dst->n_nodes = src->n_nodes;
    dst->n_leafs = src->n_leafs;
    dst->right_to_left = src->right_to_left;
    memcpy(dst->nodes, src->nodes, (size_t)src->n_nodes * sizeof(src->nodes[0]));
    memcpy(dst->leafs, src->leafs, (size_t)src->n_leafs * sizeof(src->leafs[0]));
    copy_set(src, dst);
    return SOTTO_OK;
}

struct sotto_cgraph * sotto_graph_dup(struct sotto_context * ctx, const struct sotto_cgraph * graph, bool force_grads) {
    if (!ctx || !graph) {
        sotto_i_context_fail(ctx, SOTTO_E_NULLARG, "sotto_graph_dup: %s is NULL", ctx ? "graph" : "ctx");
        return NULL;
    }
    struct sotto_i_object * before = sotto_i_arena_last(ctx);
    struct sotto_cgraph * copy = sotto_new_graph_custom(ctx, (size_t)graph->size, graph->grads || force_grads);
    if (copy && sotto_graph_cpy(graph, copy) != SOTTO_OK) {
        sotto_i_arena_rewind(ctx, before);
        return NULL;
    }
    return copy;
}

static const char * mark_of(const struct sotto_cgraph * graph, const struct sotto_tensor * node) {
    if (node->flags & SOTTO_TENSOR_FLAG_PARAM) {
        return "x";
    }
    size_t slot = graph->grads ? sotto_i_hash_find(&graph->visited, node) : SIZE_MAX;
    return slot != SIZE_MAX && graph->grads[slot] ? "g" : " ";
}

void sotto_graph_print(const struct sotto_cgraph * graph) {
    if (!graph) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_graph_print: graph is NULL");
        return;
    }
    sotto_log(SOTTO_LOG_INFO, "=== GRAPH ===\n");
    sotto_log(SOTTO_LOG_INFO, "n_nodes = %d\n", graph->n_nodes);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct sotto_tensor * node = graph->nodes[i];
        sotto_log(SOTTO_LOG_INFO, " - %3d: [ %5lld, %5lld, %5lld] %16s %s\n", i, (long long)node->ne[0],
                  (long long)node->ne[1], (long long)node->ne[2], sotto_op_name((enum sotto_op)node->op),
                  mark_of(graph, node));
    }
    sotto_log(SOTTO_LOG_INFO, "n_leafs = %d\n", graph->n_leafs);
    for (int i = 0; i < graph->n_leafs; i++) {
        const struct sotto_tensor * leaf = graph->leafs[i];
        sotto_log(SOTTO_LOG_INFO, " - %3d: [ %5lld, %5lld] %8s %16s\n", i, (long long)leaf->ne[0],
                  (long long)leaf->ne[1], sotto_op_name((enum sotto_op)leaf->op), leaf->name);
    }
    sotto_log(SOTTO_LOG_INFO, "=============\n");
}
