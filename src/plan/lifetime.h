/* SPDX-License-Identifier: MIT */
/* How long the values of a graph live.
 *
 * A life belongs to a storage: one tensor that owns memory, together with all views of it. It reaches from the node
 * that makes the value to the last node that touches it or any view of it. Time is the index of a node.
 *
 *     fixed   leafs, inputs, and whatever this graph does not compute: there before node 0, for good
 *     kept    outputs, and what no node reads (results): from `first` on, for good */
#ifndef SOTTO_PLAN_LIFETIME_H
#define SOTTO_PLAN_LIFETIME_H

#include "core/graph_impl.h"
#include "sotto/backend.h"

struct sotto_i_life {
    struct sotto_tensor * owner;
    int first, last; /* last = n_nodes: for good */
    bool fixed, kept;
};

/* What is known about one tensor, owner or view. */
struct sotto_i_life_link {
    int life; /* index of its storage's life */
    int uses; /* source slots of nodes that name this very tensor */
};

struct sotto_i_lives {
    const struct sotto_allocator * allocator;
    struct sotto_i_hash_set set;      /* all tensors: nodes, leafs, sources, owners */
    struct sotto_i_life_link * links; /* by slot of the set */
    struct sotto_i_life * items;
    int n;
    size_t capacity;
};

/* Look at a graph without changing it. MEMORY. Free it in either case. */
enum sotto_status sotto_i_lives_init(struct sotto_i_lives * lives, const struct sotto_cgraph * graph,
                                     const struct sotto_allocator * allocator);
void sotto_i_lives_free(struct sotto_i_lives * lives);

/* Index of the life that a tensor's storage has; the tensor must be in the graph, a source of it or an owner. */
int sotto_i_life_of(const struct sotto_i_lives * lives, const struct sotto_tensor * tensor);

/* May node i of the graph write its result over source `slot`? True if its op allows that, the layouts agree, and
 * this slot is the last thing in the graph that touches the source's storage. Where the storage lies is not asked. */
bool sotto_i_life_inplace(const struct sotto_i_lives * lives, const struct sotto_cgraph * graph, int i, int slot);

/* Give a view the data of its owner, if the owner has any and has moved since. */
enum sotto_status sotto_i_view_follow(struct sotto_tensor * tensor);

#endif
