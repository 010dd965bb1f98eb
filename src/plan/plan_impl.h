/* SPDX-License-Identifier: MIT */
/* The part of a plan that no backend need write for itself: which nodes to compute, where they lie, and whether the
 * graph is still the one that was planned. A backend's own plan begins with this struct. */
#ifndef SOTTO_PLAN_PLAN_IMPL_H
#define SOTTO_PLAN_PLAN_IMPL_H

#include "core/graph_impl.h"
#include "sotto/plan.h"

/* Nodes that one kernel computes together; the last one holds the result. */
struct sotto_i_step {
    struct sotto_tensor * node;
    int first, n_nodes; /* positions first ... first + n_nodes - 1 of the graph, dropped nodes between them counted */
};

struct sotto_graph_plan {
    const struct sotto_allocator * allocator;
    struct sotto_cgraph * graph;
    uint64_t generation, hash;
    struct sotto_i_step * steps;
    int n_steps;
    size_t capacity;
    sotto_gallocr_t galloc; /* NULL if the tensors had data */
    size_t work_size;       /* set by the backend */
};

/* Plan a graph: the context's error, MEMORY. Tensors without data are placed in buffers of type `buft`; with buft NULL
 * they are left alone. The plan is zeroed first; clear it in either case.
 * Clearing takes back what was placed; a plan that placed nothing does not look at its graph then. */
enum sotto_status sotto_i_plan_init(struct sotto_graph_plan * plan, struct sotto_cgraph * graph,
                                    sotto_backend_buffer_type_t buft, const struct sotto_allocator * allocator);
void sotto_i_plan_clear(struct sotto_graph_plan * plan);

/* Was the plan made for this graph as it is now? */
bool sotto_i_plan_fits(const struct sotto_graph_plan * plan, const struct sotto_cgraph * graph);

/* Before each run: views follow their owners' data; STATE if the graph was changed or a tensor has no data. */
enum sotto_status sotto_i_plan_check(const struct sotto_graph_plan * plan, const char * function);

/* Take the data from all tensors of a graph that lie in the allocator's buffers, before those are freed. */
void sotto_i_gallocr_withdraw(sotto_gallocr_t galloc, struct sotto_cgraph * graph);

#endif
