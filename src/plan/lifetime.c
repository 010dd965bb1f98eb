/* SPDX-License-Identifier: MIT */
/* Lifetimes of a graph's values: one pass that collects every tensor, one that stretches lives over the nodes. */
#include "plan/lifetime.h"

#include <limits.h>

#include "core/op.h"

/* 1 for a tensor that the graph's own set does not hold (a source of an added node, an owner behind a view). */
static size_t outside(const struct sotto_cgraph * graph, const struct sotto_tensor * tensor) {
    return tensor != NULL && sotto_i_hash_find(&graph->visited, tensor) == SIZE_MAX ? 1 : 0;
}

static size_t most_tensors(const struct sotto_cgraph * graph) {
    size_t n = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    for (int i = 0; i < graph->n_leafs; i++)
        n += outside(graph, graph->leafs[i]->view_src);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct sotto_tensor * node = graph->nodes[i];
        n += outside(graph, node->view_src);
        for (int s = 0; s < SOTTO_MAX_SRC; s++)
            if (node->src[s] != NULL)
                n += outside(graph, node->src[s]) + outside(graph, node->src[s]->view_src);
    }
    return n;
}

/* Slot of a tensor, entered with its storage if it is new. Room was counted before. */
static size_t enter(struct sotto_i_lives * lives, struct sotto_tensor * tensor) {
    struct sotto_tensor * owner = tensor->view_src != NULL ? tensor->view_src : tensor;
    bool found;
    const size_t slot = sotto_i_hash_insert(&lives->set, owner, &found);
    if (!found) {
        lives->links[slot].life = lives->n;
        lives->items[lives->n++] = (struct sotto_i_life){ .owner = owner, .first = INT_MAX, .last = -1, .fixed = true };
    }
    if (owner == tensor)
        return slot;
    const size_t view = sotto_i_hash_insert(&lives->set, tensor, &found);
    lives->links[view].life = lives->links[slot].life;
    return view;
}

/* Storage that node i makes, reads or writes lives at i. */
static void touch(struct sotto_i_lives * lives, size_t slot, int i) {
    struct sotto_i_life * life = &lives->items[lives->links[slot].life];
    if (life->first > i)
        life->first = i;
    if (life->last < i)
        life->last = i;
}

static void walk(struct sotto_i_lives * lives, const struct sotto_cgraph * graph) {
    for (int i = 0; i < graph->n_leafs; i++)
        enter(lives, graph->leafs[i]);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct sotto_tensor * node = graph->nodes[i];
        const size_t slot = enter(lives, node);
        touch(lives, slot, i);
        if (node->op != SOTTO_OP_NONE && node->view_src == NULL)
            lives->items[lives->links[slot].life].fixed = false;
        for (int s = 0; s < SOTTO_MAX_SRC; s++) {
            if (node->src[s] == NULL)
                continue;
            const size_t source = enter(lives, node->src[s]);
            lives->links[source].uses++;
            touch(lives, source, i);
        }
    }
}

/* Flags of any tensor count for its whole storage. A node that nobody uses is a result. */
static void apply_flags(struct sotto_i_lives * lives, const struct sotto_cgraph * graph) {
    for (size_t slot = 0; slot < lives->set.size; slot++) {
        const struct sotto_tensor * tensor = lives->set.keys[slot];
        if (tensor == NULL)
            continue;
        struct sotto_i_life * life = &lives->items[lives->links[slot].life];
        if (tensor->flags & SOTTO_TENSOR_FLAG_INPUT)
            life->fixed = true;
        if ((tensor->flags & SOTTO_TENSOR_FLAG_OUTPUT) || (tensor->op != SOTTO_OP_NONE && lives->links[slot].uses == 0))
            life->kept = true;
    }
    for (int i = 0; i < lives->n; i++) {
        struct sotto_i_life * life = &lives->items[i];
        if (life->fixed)
            life->first = 0;
        if (life->fixed || life->kept)
            life->last = graph->n_nodes;
    }
}

enum sotto_status sotto_i_lives_init(struct sotto_i_lives * lives, const struct sotto_cgraph * graph,
                                     const struct sotto_allocator * allocator) {
    *lives = (struct sotto_i_lives){ .allocator = allocator, .capacity = most_tensors(graph) };
    if (lives->capacity == 0)
        return SOTTO_OK;
    if (lives->capacity > INT_MAX / 4)
        return sotto_fail(SOTTO_E_MEMORY, "graph allocator: %zu tensors are more than can be counted", lives->capacity);
    lives->set.size = sotto_i_hash_size(lives->capacity);
    lives->set.keys = sotto_calloc(allocator, lives->set.size, sizeof(*lives->set.keys));
    lives->links = sotto_calloc(allocator, lives->set.size, sizeof(*lives->links));
    lives->items = sotto_malloc(allocator, lives->capacity, sizeof(*lives->items));
    if (lives->set.keys == NULL || lives->links == NULL || lives->items == NULL)
        return SOTTO_E_MEMORY;
    walk(lives, graph);
    apply_flags(lives, graph);
    return SOTTO_OK;
}

void sotto_i_lives_free(struct sotto_i_lives * lives) {
    sotto_mfree(lives->allocator, lives->set.keys, lives->set.size, sizeof(*lives->set.keys));
    sotto_mfree(lives->allocator, lives->links, lives->set.size, sizeof(*lives->links));
    sotto_mfree(lives->allocator, lives->items, lives->capacity, sizeof(*lives->items));
    *lives = (struct sotto_i_lives){ .allocator = lives->allocator };
}

int sotto_i_life_of(const struct sotto_i_lives * lives, const struct sotto_tensor * tensor) {
    return lives->links[sotto_i_hash_find(&lives->set, tensor)].life;
}

static bool same_layout(const struct sotto_tensor * a, const struct sotto_tensor * b) {
    return a->type == b->type && sotto_are_same_shape(a, b) && sotto_are_same_stride(a, b);
}

/* Elementwise ops of one or two operands read what they overwrite first. Of more operands (a mask beside a row) only
 * the first is read in step with the result. */
static bool op_allows(const struct sotto_tensor * node, int slot) {
    const struct op_row * row = sotto_i_op_row(node->op);
    return row != NULL && (row->flags & OP_INPLACE) != 0 && (slot == 0 || row->max_src <= 2);
}

bool sotto_i_life_inplace(const struct sotto_i_lives * lives, const struct sotto_cgraph * graph, int i, int slot) {
    const struct sotto_tensor * node = graph->nodes[i];
    const struct sotto_tensor * source = node->src[slot];
    if (node->view_src != NULL || source == NULL || source->view_offs != 0 || !op_allows(node, slot) ||
        !same_layout(node, source))
        return false;
    const int index = sotto_i_life_of(lives, source);
    const struct sotto_i_life * life = &lives->items[index];
    if (life->fixed || life->kept || life->last != i)
        return false;
    int readers = 0;
    for (int s = 0; s < SOTTO_MAX_SRC; s++)
        if (node->src[s] != NULL && sotto_i_life_of(lives, node->src[s]) == index)
            readers++;
    return readers == 1;
}

enum sotto_status sotto_i_view_follow(struct sotto_tensor * tensor) {
    const struct sotto_tensor * owner = tensor->view_src;
    if (owner == NULL || owner->data == NULL)
        return SOTTO_OK;
    char * data = (char *)owner->data + tensor->view_offs;
    if (tensor->data == data && tensor->buffer == owner->buffer)
        return SOTTO_OK;
    tensor->data = NULL;
    tensor->buffer = NULL;
    if (owner->buffer != NULL)
        return sotto_backend_view_init(tensor);
    tensor->data = data;
    return SOTTO_OK;
}
