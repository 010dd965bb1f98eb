/* SPDX-License-Identifier: MIT */
#include "support/small_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct sotto_context * context_of(size_t mem_size, bool no_alloc) {
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = mem_size, .no_alloc = no_alloc });
    assert_non_null(ctx);
    return ctx;
}

struct sotto_cgraph * graph_of(struct sotto_context * ctx, struct sotto_tensor * y) {
    struct sotto_cgraph * graph = sotto_new_graph(ctx);
    assert_int_equal(sotto_build_forward_expand(graph, y), SOTTO_OK);
    return graph;
}
