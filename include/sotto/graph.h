/* SPDX-License-Identifier: MIT */
/* Graphs: the tensors needed for a result, in an order in which they can be computed.
 *
 * A graph lives in a context's arena and holds pointers to tensors, never data. Nodes come in topological
 * order, sources before users, each once; leafs are data. Functions on a graph whose context is in error
 * return that error. One thread at a time per graph. */
#ifndef SOTTO_GRAPH_H
#define SOTTO_GRAPH_H

#include "sotto/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOTTO_DEFAULT_GRAPH_SIZE 2048

struct sotto_cgraph;

/* A graph for at most `size` nodes and `size` leafs; `grads` reserves the gradient arrays. MEMORY. */
SOTTO_API struct sotto_cgraph * sotto_new_graph(struct sotto_context * ctx);
SOTTO_API struct sotto_cgraph * sotto_new_graph_custom(struct sotto_context * ctx, size_t size, bool grads);
SOTTO_API size_t sotto_graph_overhead(void); /* arena bytes of a graph, header included */
SOTTO_API size_t sotto_graph_overhead_custom(size_t size, bool grads);

/* Append what `tensor` needs and is not in the graph yet. NULLARG, FULL (graph unchanged), or the context's
 * error. `_order` visits without marking for computation; `_select` visits all of ts, marks only ts[idx] and
 * returns it (PARAM). Chains of any length: the walk does not recurse. */
SOTTO_API enum sotto_status sotto_build_forward_expand(struct sotto_cgraph * graph, struct sotto_tensor * tensor);
SOTTO_API enum sotto_status sotto_build_forward_order(struct sotto_cgraph * graph, struct sotto_tensor * tensor);
SOTTO_API struct sotto_tensor * sotto_build_forward_select(struct sotto_cgraph * graph, struct sotto_tensor ** ts,
                                                           int n, int idx);

SOTTO_API int sotto_graph_size(const struct sotto_cgraph * graph);
SOTTO_API int sotto_graph_n_nodes(const struct sotto_cgraph * graph);
SOTTO_API struct sotto_tensor ** sotto_graph_nodes(struct sotto_cgraph * graph);
SOTTO_API struct sotto_tensor * sotto_graph_node(struct sotto_cgraph * graph, int i); /* i < 0 from the end; PARAM */
SOTTO_API enum sotto_status sotto_graph_add_node(struct sotto_cgraph * graph, struct sotto_tensor * tensor);
SOTTO_API struct sotto_tensor * sotto_graph_get_tensor(struct sotto_cgraph * graph, const char * name);
SOTTO_API void sotto_graph_clear(struct sotto_cgraph * graph);

/* Copy order, counts and pointers to a graph at least as large (FULL); or to a new one of the same size. */
SOTTO_API enum sotto_status sotto_graph_cpy(const struct sotto_cgraph * src, struct sotto_cgraph * dst);
SOTTO_API struct sotto_cgraph * sotto_graph_dup(struct sotto_context * ctx, const struct sotto_cgraph * graph,
                                                bool force_grads);
/* One line per node and leaf to the log, at INFO. */
SOTTO_API void sotto_graph_print(const struct sotto_cgraph * graph);

#ifdef __cplusplus
}
#endif
#endif
