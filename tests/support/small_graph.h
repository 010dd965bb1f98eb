/* SPDX-License-Identifier: MIT */
/* For tests of graphs: a context and a graph, or the test fails. */
#ifndef SOTTO_TESTS_SMALL_GRAPH_H
#define SOTTO_TESTS_SMALL_GRAPH_H

#include "sotto/graph.h"

struct sotto_context * context_of(size_t mem_size, bool no_alloc);

/* All that y needs. */
struct sotto_cgraph * graph_of(struct sotto_context * ctx, struct sotto_tensor * y);

#endif
