/* SPDX-License-Identifier: MIT */
/* Plan once, run many.
 *
 * Graph allocator: gives memory to all tensors of a graph that have none, reusing what no later node reads.
 *
 * Plan: what a backend knows about a graph after looking at it once. Creating one
 *   1. orders the nodes that must be computed (views and unmarked nodes drop out),
 *   2. works out lifetimes and, if tensors lack data, places them in a compute buffer that the plan owns,
 *   3. chooses a kernel for each node and the way its work is cut into chunks,
 *   4. sizes the work area.
 * Running it again costs nothing but the work: no allocation, no look at shapes. A plan holds tensors, never
 * data pointers, so a tensor may get other data between runs. It notices when the graph was changed after it
 * was made (generation of the graph, and a cheap hash of op, sources, ne and nb) and reports STATE then.
 *
 *     struct sotto_graph_plan * plan = sotto_backend_graph_plan_create(cpu, graph);
 *     for each token:  set inputs;  sotto_backend_graph_plan_compute(cpu, plan);  read outputs
 *     sotto_backend_graph_plan_free(cpu, plan);
 *
 * Free a plan before its graph's context: tensors that it placed are then without data again.
 *
 * One thread at a time per plan and per allocator. */
#ifndef SOTTO_PLAN_H
#define SOTTO_PLAN_H

#include "sotto/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graph allocator ----
 * Leafs and tensors marked as input are placed first and share with nobody; outputs are never reused; tensors that
 * have data are left alone; a view follows its owner and keeps it alive. A node may take over a source's memory
 * when its op allows it and nobody else will read that source. `bufts` with n > 1: node_ids / leaf_ids give
 * the buffer of each node and leaf. Set inputs after the addresses were given: a graph that was changed, or another
 * graph placed by the same allocator in between, moves them. */
SOTTO_API sotto_gallocr_t sotto_gallocr_new(sotto_backend_buffer_type_t buft);
SOTTO_API sotto_gallocr_t sotto_gallocr_new_n(sotto_backend_buffer_type_t * bufts, int n);
SOTTO_API sotto_gallocr_t sotto_gallocr_new_ext(sotto_backend_buffer_type_t * bufts, int n,
                                                const struct sotto_allocator * allocator);
SOTTO_API void sotto_gallocr_free(sotto_gallocr_t galloc); /* its buffers too: tensors placed there dangle */
/* Size the buffers for a graph without touching it; they only ever grow. False and MEMORY on failure. */
SOTTO_API bool sotto_gallocr_reserve(sotto_gallocr_t galloc, struct sotto_cgraph * graph);
SOTTO_API bool sotto_gallocr_reserve_n(sotto_gallocr_t galloc, struct sotto_cgraph * graph, const int * node_ids,
                                       const int * leaf_ids);
/* Only the sizes, n values. */
SOTTO_API enum sotto_status sotto_gallocr_reserve_n_size(sotto_gallocr_t galloc, struct sotto_cgraph * graph,
                                                         const int * node_ids, const int * leaf_ids, size_t * sizes);
/* Give addresses. With one buffer it reserves again by itself if the graph changed; with several, false. */
SOTTO_API bool sotto_gallocr_alloc_graph(sotto_gallocr_t galloc, struct sotto_cgraph * graph);
SOTTO_API size_t sotto_gallocr_get_buffer_size(sotto_gallocr_t galloc, int buffer_id);

/* ---- looking at a plan ---- */

SOTTO_API int sotto_graph_plan_n_steps(const struct sotto_graph_plan * plan);        /* kernels one run takes */
SOTTO_API size_t sotto_graph_plan_work_size(const struct sotto_graph_plan * plan);   /* bytes of work area */
SOTTO_API size_t sotto_graph_plan_buffer_size(const struct sotto_graph_plan * plan); /* bytes of its own buffer */
/* The node that step i computes (the last one of a fused group) and how many nodes it covers; PARAM outside. */
SOTTO_API struct sotto_tensor * sotto_graph_plan_step(const struct sotto_graph_plan * plan, int i, int * n_nodes);

#ifdef __cplusplus
}
#endif
#endif
