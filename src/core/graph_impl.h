/* SPDX-License-Identifier: MIT */
/* Inside of a graph: node and leaf lists, and a hash set of all its tensors by address.
 *
 * The set uses linear probing over a prime number of slots; `use_counts[slot]` says how many source slots of the
 * graph's nodes point at that tensor. Everything lies behind the struct in the context's arena. */
#ifndef SOTTO_CORE_GRAPH_IMPL_H
#define SOTTO_CORE_GRAPH_IMPL_H

#include "sotto/graph.h"

struct sotto_i_hash_set {
    size_t size;                 /* slots, a prime */
    struct sotto_tensor ** keys; /* NULL = free */
};

struct sotto_cgraph {
    struct sotto_context * ctx; /* whose arena holds it; its error is the graph's error */
    int size, n_nodes, n_leafs;
    struct sotto_tensor ** nodes;
    struct sotto_tensor ** leafs;
    struct sotto_tensor ** grads; /* by slot, NULL unless asked for */
    struct sotto_tensor ** grad_accs;
    struct sotto_i_hash_set visited;
    int32_t * use_counts;
    bool right_to_left;
    uint64_t generation; /* process-wide unique, renewed by every change: what a plan was made for */
};

/* Slot of a tensor, or SIZE_MAX if it is not in the set. */
size_t sotto_i_hash_find(const struct sotto_i_hash_set * set, const struct sotto_tensor * tensor);
/* Insert; slot, with *found set; SIZE_MAX if the set is full. */
size_t sotto_i_hash_insert(struct sotto_i_hash_set * set, struct sotto_tensor * tensor, bool * found);
size_t sotto_i_hash_size(size_t capacity); /* number of slots for so many tensors: a prime, at least twice as large */

/* The error of the graph's context, SOTTO_OK if there is none. */
enum sotto_status sotto_i_graph_status(const struct sotto_cgraph * graph);
/* Give the graph a new generation: it was changed. */
void sotto_i_graph_touch(struct sotto_cgraph * graph);

#endif
