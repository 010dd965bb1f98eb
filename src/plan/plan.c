/* SPDX-License-Identifier: MIT */
/* Planning once: the nodes that need computing, in order; the compute buffer; and the marks by which a plan knows its
 * graph again. */
#include "plan/plan_impl.h"

#include "core/backend_impl.h"
#include "core/op.h"
#include "plan/lifetime.h"

/* ---- is it still the same graph ---- */

/* Sum of words times odd numbers: the products do not wait for one another. */
static uint64_t hash_tensor(const struct sotto_tensor * tensor) {
    const struct sotto_backend_buffer_type * buft = tensor->buffer != NULL ? tensor->buffer->buft : NULL;
    const uint64_t kind = (uint64_t)(uint32_t)tensor->op << 32 | (uint64_t)(uint32_t)tensor->type << 8 |
                          (uint64_t)(tensor->flags & SOTTO_TENSOR_FLAG_COMPUTE);
    uint64_t factor = 0x9E3779B97F4A7C15u;
    uint64_t h = kind * factor + (uint64_t)(uintptr_t)tensor * 0xBF58476D1CE4E5B9u +
                 (uint64_t)(uintptr_t)buft * 0x94D049BB133111EBu +
                 (uint64_t)(uintptr_t)tensor->view_src * 0xD6E8FEB86659FD93u +
                 (uint64_t)tensor->view_offs * 0xA0761D6478BD642Fu;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        factor += 0xE7037ED1A0B428DAu;
        h += (uint64_t)tensor->ne[d] * factor + (uint64_t)tensor->nb[d] * (factor ^ 0x8EBC6AF09C88C6E2u);
    }
    for (int s = 0; s < SOTTO_MAX_SRC; s++) {
        factor += 0x589965CC75374CC2u;
        h += (uint64_t)(uintptr_t)tensor->src[s] * factor;
    }
    return h;
}

static uint64_t hash_list(uint64_t h, struct sotto_tensor * const * tensors, int n) {
    for (int i = 0; i < n; i++) {
        h = (h ^ hash_tensor(tensors[i])) * 0x94D049BB133111EBu;
        h ^= h >> 32;
    }
    return h;
}

static uint64_t hash_graph(const struct sotto_cgraph * graph) {
    const uint64_t h = hash_list((uint64_t)graph->n_nodes, graph->nodes, graph->n_nodes);
    return hash_list(h, graph->leafs, graph->n_leafs);
}

bool sotto_i_plan_fits(const struct sotto_graph_plan * plan, const struct sotto_cgraph * graph) {
    return plan->graph == graph && plan->generation == graph->generation && plan->hash == hash_graph(graph);
}

/* ---- making ---- */

static bool needs_computing(const struct sotto_tensor * node) {
    const struct op_row * row = sotto_i_op_row(node->op);
    const bool is_view_op = row != NULL && (row->flags & OP_VIEW) != 0;
    return (node->flags & SOTTO_TENSOR_FLAG_COMPUTE) != 0 && !is_view_op && !sotto_is_empty(node);
}

static enum sotto_status list_steps(struct sotto_graph_plan * plan) {
    const struct sotto_cgraph * graph = plan->graph;
    for (int i = 0; i < graph->n_nodes; i++)
        plan->capacity += needs_computing(graph->nodes[i]) ? 1 : 0;
    if (plan->capacity == 0)
        return SOTTO_OK;
    plan->steps = sotto_malloc(plan->allocator, plan->capacity, sizeof(*plan->steps));
    if (plan->steps == NULL)
        return SOTTO_E_MEMORY;
    for (int i = 0; i < graph->n_nodes; i++)
        if (needs_computing(graph->nodes[i]))
            plan->steps[plan->n_steps++] = (struct sotto_i_step){ .node = graph->nodes[i], .first = i, .n_nodes = 1 };
    return SOTTO_OK;
}

static bool lacks_data(const struct sotto_tensor * tensor) {
    const struct sotto_tensor * owner = tensor->view_src != NULL ? tensor->view_src : tensor;
    return owner->data == NULL && !sotto_is_empty(owner);
}

static bool graph_lacks_data(const struct sotto_cgraph * graph) {
    for (int i = 0; i < graph->n_leafs; i++)
        if (lacks_data(graph->leafs[i]))
            return true;
    for (int i = 0; i < graph->n_nodes; i++)
        if (lacks_data(graph->nodes[i]))
            return true;
    return false;
}

static enum sotto_status place(struct sotto_graph_plan * plan, sotto_backend_buffer_type_t buft) {
    plan->galloc = sotto_gallocr_new_ext(&buft, 1, plan->allocator);
    return plan->galloc != NULL && sotto_gallocr_alloc_graph(plan->galloc, plan->graph) ? SOTTO_OK : sotto_last_error();
}

static enum sotto_status views_follow(const struct sotto_cgraph * graph) {
    enum sotto_status s = SOTTO_OK;
    for (int i = 0; i < graph->n_leafs && s == SOTTO_OK; i++)
        s = sotto_i_view_follow(graph->leafs[i]);
    for (int i = 0; i < graph->n_nodes && s == SOTTO_OK; i++)
        s = sotto_i_view_follow(graph->nodes[i]);
    return s;
}

enum sotto_status sotto_i_plan_init(struct sotto_graph_plan * plan, struct sotto_cgraph * graph,
                                    sotto_backend_buffer_type_t buft, const struct sotto_allocator * allocator) {
    *plan = (struct sotto_graph_plan){ .allocator = allocator, .graph = graph };
    enum sotto_status s = graph->ctx != NULL ? sotto_context_status(graph->ctx) : SOTTO_OK;
    if (s != SOTTO_OK)
        return s;
    s = list_steps(plan);
    if (s == SOTTO_OK && buft != NULL && graph_lacks_data(graph))
        s = place(plan, buft);
    if (s == SOTTO_OK)
        s = views_follow(graph);
    plan->generation = graph->generation;
    plan->hash = hash_graph(graph);
    return s;
}

void sotto_i_plan_clear(struct sotto_graph_plan * plan) {
    if (plan->galloc != NULL)
        sotto_i_gallocr_withdraw(plan->galloc, plan->graph);
    sotto_gallocr_free(plan->galloc);
    sotto_mfree(plan->allocator, plan->steps, plan->capacity, sizeof(*plan->steps));
    *plan = (struct sotto_graph_plan){ .allocator = plan->allocator };
}

/* ---- running ---- */

static enum sotto_status no_data(const char * function, const struct sotto_tensor * tensor,
                                 const struct sotto_tensor * node) {
    return sotto_fail(SOTTO_E_STATE,
                      "%s: tensor '%s' of node '%s' (%s) has no data; place it in a buffer, or make a plan "
                      "(sotto_backend_graph_plan_create), which places what has none",
                      function, tensor->name, node->name, sotto_op_desc(node));
}

enum sotto_status sotto_i_plan_check(const struct sotto_graph_plan * plan, const char * function) {
    if (!sotto_i_plan_fits(plan, plan->graph))
        return sotto_fail(SOTTO_E_STATE, "%s: the graph was changed after it was planned; make a new plan", function);
    const enum sotto_status s = views_follow(plan->graph);
    if (s != SOTTO_OK)
        return s;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct sotto_tensor * node = plan->steps[i].node;
        if (node->data == NULL)
            return no_data(function, node, node);
        for (int k = 0; k < SOTTO_MAX_SRC; k++)
            if (node->src[k] != NULL && node->src[k]->data == NULL && !sotto_is_empty(node->src[k]))
                return no_data(function, node->src[k], node);
    }
    return SOTTO_OK;
}

/* ---- looking at a plan ---- */

static bool given(const char * function, const struct sotto_graph_plan * plan) {
    if (plan == NULL)
        sotto_fail(SOTTO_E_NULLARG, "%s: plan is NULL", function);
    return plan != NULL;
}

int sotto_graph_plan_n_steps(const struct sotto_graph_plan * plan) {
    return given("sotto_graph_plan_n_steps", plan) ? plan->n_steps : 0;
}

size_t sotto_graph_plan_work_size(const struct sotto_graph_plan * plan) {
    return given("sotto_graph_plan_work_size", plan) ? plan->work_size : 0;
}

size_t sotto_graph_plan_buffer_size(const struct sotto_graph_plan * plan) {
    if (!given("sotto_graph_plan_buffer_size", plan) || plan->galloc == NULL)
        return 0;
    return sotto_gallocr_get_buffer_size(plan->galloc, 0);
}

struct sotto_tensor * sotto_graph_plan_step(const struct sotto_graph_plan * plan, int i, int * n_nodes) {
    if (!given("sotto_graph_plan_step", plan))
        return NULL;
    if (i < 0 || i >= plan->n_steps) {
        sotto_fail(SOTTO_E_PARAM, "sotto_graph_plan_step: there is no step %d, the plan has %d", i, plan->n_steps);
        return NULL;
    }
    if (n_nodes != NULL)
        *n_nodes = plan->steps[i].n_nodes;
    return plan->steps[i].node;
}
