/* SPDX-License-Identifier: MIT */
/* Graph allocator: memory for all tensors of a graph that have none.
 *
 * Each call looks at the graph afresh (lifetimes, then a walk over the nodes that takes and gives back blocks of a
 * free list per buffer), so there is no remembered plan that could be wrong for the graph at hand. The walk depends
 * on nothing but the graph: an unchanged graph gets the same addresses again and keeps its data.
 *
 * A buffer that has to grow is replaced. Its record is retired rather than freed, without its memory: tensors of
 * earlier graphs may still point at it, and that is how they are known to be ours to place again. */
#include "sotto/plan.h"

#include <string.h>

#include "core/backend_impl.h"
#include "plan/freelist.h"
#include "plan/lifetime.h"
#include "plan/plan_impl.h"

struct own_buffer {
    sotto_backend_buffer_type_t buft;
    sotto_backend_buffer_t buffer; /* NULL: nothing needed so far */
};

struct sotto_gallocr {
    const struct sotto_allocator * allocator;
    struct own_buffer * own;
    int n_own;
    sotto_backend_buffer_t * retired;
    size_t n_retired, retired_room;
    /* with several buffers: what was reserved, by index of node and leaf, and for a graph of which form */
    int * ids;
    size_t n_ids;
    uint64_t form;
};

/* Where a life lies. */
struct place {
    size_t offset, size;
    int buffer;
    bool wanted;               /* the owner has no data of others */
    bool moved;                /* a node took it over */
    int next_first, next_last; /* lists of lives by node */
};

/* All of one look at a graph. */
struct layout {
    struct sotto_gallocr * galloc;
    struct sotto_cgraph * graph;
    const int * node_ids;
    const int * leaf_ids;
    struct sotto_i_lives lives;
    struct place * places; /* by life */
    int * starts;          /* by node: first life that starts there, -1: none */
    int * ends;
    struct sotto_i_freelist * space; /* by buffer */
};

/* ---- making and freeing ---- */

sotto_gallocr_t sotto_gallocr_new(sotto_backend_buffer_type_t buft) { return sotto_gallocr_new_ext(&buft, 1, NULL); }

sotto_gallocr_t sotto_gallocr_new_n(sotto_backend_buffer_type_t * bufts, int n) {
    return sotto_gallocr_new_ext(bufts, n, NULL);
}

sotto_gallocr_t sotto_gallocr_new_ext(sotto_backend_buffer_type_t * bufts, int n,
                                      const struct sotto_allocator * allocator) {
    if (bufts == NULL) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_gallocr_new: bufts is NULL");
        return NULL;
    }
    if (n < 1) {
        sotto_fail(SOTTO_E_PARAM, "sotto_gallocr_new: %d buffer types, give at least one", n);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (bufts[i] == NULL) {
            sotto_fail(SOTTO_E_NULLARG, "sotto_gallocr_new: buffer type %d is NULL", i);
            return NULL;
        }
    struct sotto_gallocr * galloc = sotto_calloc(allocator, 1, sizeof(*galloc));
    if (galloc == NULL)
        return NULL;
    galloc->allocator = allocator;
    galloc->own = sotto_calloc(allocator, (size_t)n, sizeof(*galloc->own));
    if (galloc->own == NULL) {
        sotto_mfree(allocator, galloc, 1, sizeof(*galloc));
        return NULL;
    }
    galloc->n_own = n;
    for (int i = 0; i < n; i++)
        galloc->own[i].buft = bufts[i];
    return galloc;
}

void sotto_gallocr_free(sotto_gallocr_t galloc) {
    if (galloc == NULL)
        return;
    for (int i = 0; i < galloc->n_own; i++)
        sotto_backend_buffer_free(galloc->own[i].buffer);
    for (size_t i = 0; i < galloc->n_retired; i++)
        sotto_backend_buffer_free(galloc->retired[i]);
    sotto_mfree(galloc->allocator, galloc->retired, galloc->retired_room, sizeof(*galloc->retired));
    sotto_mfree(galloc->allocator, galloc->ids, galloc->n_ids, sizeof(*galloc->ids));
    sotto_mfree(galloc->allocator, galloc->own, (size_t)galloc->n_own, sizeof(*galloc->own));
    sotto_mfree(galloc->allocator, galloc, 1, sizeof(*galloc));
}

size_t sotto_gallocr_get_buffer_size(sotto_gallocr_t galloc, int buffer_id) {
    if (galloc == NULL || buffer_id < 0 || buffer_id >= galloc->n_own) {
        sotto_fail(galloc == NULL ? SOTTO_E_NULLARG : SOTTO_E_PARAM, "sotto_gallocr_get_buffer_size: no buffer %d",
                   buffer_id);
        return 0;
    }
    return galloc->own[buffer_id].buffer != NULL ? sotto_backend_buffer_get_size(galloc->own[buffer_id].buffer) : 0;
}

static bool is_own(const struct sotto_gallocr * galloc, const struct sotto_backend_buffer * buffer) {
    for (int i = 0; i < galloc->n_own; i++)
        if (galloc->own[i].buffer == buffer)
            return true;
    for (size_t i = 0; i < galloc->n_retired; i++)
        if (galloc->retired[i] == buffer)
            return true;
    return false;
}

/* ---- layout: what lies where ---- */

static void layout_free(struct layout * layout) {
    const struct sotto_gallocr * galloc = layout->galloc;
    const size_t n_lives = (size_t)layout->lives.n, n_nodes = (size_t)layout->graph->n_nodes;
    if (layout->space != NULL)
        for (int i = 0; i < galloc->n_own; i++)
            sotto_i_freelist_free(&layout->space[i]);
    sotto_mfree(galloc->allocator, layout->space, (size_t)galloc->n_own, sizeof(*layout->space));
    sotto_mfree(galloc->allocator, layout->ends, n_nodes, sizeof(*layout->ends));
    sotto_mfree(galloc->allocator, layout->starts, n_nodes, sizeof(*layout->starts));
    sotto_mfree(galloc->allocator, layout->places, n_lives, sizeof(*layout->places));
    sotto_i_lives_free(&layout->lives);
}

static enum sotto_status layout_memory(struct layout * layout) {
    const struct sotto_gallocr * galloc = layout->galloc;
    const size_t n_lives = (size_t)layout->lives.n, n_nodes = (size_t)layout->graph->n_nodes;
    layout->places = sotto_calloc(galloc->allocator, n_lives, sizeof(*layout->places));
    layout->starts = sotto_malloc(galloc->allocator, n_nodes, sizeof(*layout->starts));
    layout->ends = sotto_malloc(galloc->allocator, n_nodes, sizeof(*layout->ends));
    layout->space = sotto_calloc(galloc->allocator, (size_t)galloc->n_own, sizeof(*layout->space));
    if ((n_lives > 0 && layout->places == NULL) || layout->space == NULL ||
        (n_nodes > 0 && (layout->starts == NULL || layout->ends == NULL)))
        return SOTTO_E_MEMORY;
    for (int i = 0; i < galloc->n_own; i++) {
        const size_t alignment = sotto_backend_buft_get_alignment(galloc->own[i].buft);
        const enum sotto_status s =
            sotto_i_freelist_init(&layout->space[i], alignment > 0 ? alignment : 1, n_lives, galloc->allocator);
        if (s != SOTTO_OK)
            return s;
    }
    return SOTTO_OK;
}

static enum sotto_status choose_buffer(struct layout * layout, const struct sotto_tensor * tensor, const int * ids,
                                       int index, bool owners) {
    const int id = ids != NULL ? ids[index] : 0;
    if (id < 0 || id >= layout->galloc->n_own)
        return sotto_fail(SOTTO_E_PARAM, "graph allocator: '%s' asks for buffer %d, there are %d", tensor->name, id,
                          layout->galloc->n_own);
    if (owners == (tensor->view_src == NULL))
        layout->places[sotto_i_life_of(&layout->lives, tensor)].buffer = id;
    return SOTTO_OK;
}

/* The buffer asked for by node or leaf; where the owner itself is neither, one of its views speaks for it. */
static enum sotto_status choose_buffers(struct layout * layout) {
    const struct sotto_cgraph * graph = layout->graph;
    enum sotto_status s = SOTTO_OK;
    for (int owners = 0; owners <= 1; owners++) {
        for (int i = 0; i < graph->n_nodes && s == SOTTO_OK; i++)
            s = choose_buffer(layout, graph->nodes[i], layout->node_ids, i, owners);
        for (int i = 0; i < graph->n_leafs && s == SOTTO_OK; i++)
            s = choose_buffer(layout, graph->leafs[i], layout->leaf_ids, i, owners);
    }
    return s;
}

static enum sotto_status want_places(struct layout * layout) {
    for (int i = 0; i < layout->lives.n; i++) {
        const struct sotto_tensor * owner = layout->lives.items[i].owner;
        struct place * place = &layout->places[i];
        place->wanted = owner->data == NULL || (owner->buffer != NULL && is_own(layout->galloc, owner->buffer));
        if (!place->wanted || sotto_is_empty(owner))
            continue;
        place->size = sotto_backend_buft_get_alloc_size(layout->galloc->own[place->buffer].buft, owner);
        if (place->size == 0)
            return sotto_fail(SOTTO_E_MEMORY, "graph allocator: the size of '%s' overflows", owner->name);
    }
    return SOTTO_OK;
}

/* Lists of the lives that start and end at each node. */
static void sort_by_node(struct layout * layout) {
    const int n_nodes = layout->graph->n_nodes;
    for (int i = 0; i < n_nodes; i++)
        layout->starts[i] = layout->ends[i] = -1;
    for (int i = layout->lives.n - 1; i >= 0; i--) {
        const struct sotto_i_life * life = &layout->lives.items[i];
        struct place * place = &layout->places[i];
        if (!place->wanted || life->fixed)
            continue;
        place->next_first = layout->starts[life->first];
        layout->starts[life->first] = i;
        if (life->last < n_nodes) {
            place->next_last = layout->ends[life->last];
            layout->ends[life->last] = i;
        }
    }
}

static enum sotto_status take(struct layout * layout, int i) {
    struct place * place = &layout->places[i];
    place->offset = sotto_i_freelist_take(&layout->space[place->buffer], place->size);
    if (place->offset == SIZE_MAX)
        return sotto_fail(SOTTO_E_MEMORY, "graph allocator: no room for '%s', sizes overflow",
                          layout->lives.items[i].owner->name);
    return SOTTO_OK;
}

/* Let node `at` have the memory of a source that ends with it. */
static bool take_over(struct layout * layout, int i, int at) {
    struct place * place = &layout->places[i];
    const struct sotto_tensor * node = layout->graph->nodes[at];
    if (node != layout->lives.items[i].owner)
        return false;
    for (int slot = 0; slot < SOTTO_MAX_SRC; slot++) {
        if (!sotto_i_life_inplace(&layout->lives, layout->graph, at, slot))
            continue;
        struct place * source = &layout->places[sotto_i_life_of(&layout->lives, node->src[slot])];
        if (!source->wanted || source->moved || source->buffer != place->buffer || source->size < place->size)
            continue;
        place->offset = source->offset;
        place->size = source->size;
        source->moved = true;
        return true;
    }
    return false;
}

static enum sotto_status lay_out(struct layout * layout) {
    for (int i = 0; i < layout->lives.n; i++)
        if (layout->places[i].wanted && layout->lives.items[i].fixed && take(layout, i) != SOTTO_OK)
            return SOTTO_E_MEMORY;
    for (int at = 0; at < layout->graph->n_nodes; at++) {
        for (int i = layout->starts[at]; i >= 0; i = layout->places[i].next_first)
            if (!take_over(layout, i, at) && take(layout, i) != SOTTO_OK)
                return SOTTO_E_MEMORY;
        for (int i = layout->ends[at]; i >= 0; i = layout->places[i].next_last) {
            const struct place * place = &layout->places[i];
            if (!place->moved)
                sotto_i_freelist_give(&layout->space[place->buffer], place->offset, place->size);
        }
    }
    return SOTTO_OK;
}

/* Free it in either case. */
static enum sotto_status layout_init(struct layout * layout, struct sotto_gallocr * galloc, struct sotto_cgraph * graph,
                                     const int * node_ids, const int * leaf_ids) {
    *layout = (struct layout){ .galloc = galloc, .graph = graph, .node_ids = node_ids, .leaf_ids = leaf_ids };
    enum sotto_status s = graph->ctx != NULL ? sotto_context_status(graph->ctx) : SOTTO_OK;
    if (s == SOTTO_OK)
        s = sotto_i_lives_init(&layout->lives, graph, galloc->allocator);
    if (s == SOTTO_OK)
        s = layout_memory(layout);
    if (s == SOTTO_OK)
        s = choose_buffers(layout);
    if (s == SOTTO_OK)
        s = want_places(layout);
    if (s != SOTTO_OK)
        return s;
    sort_by_node(layout);
    return lay_out(layout);
}

/* ---- buffers ---- */

static enum sotto_status room_to_retire(struct sotto_gallocr * galloc) {
    if (galloc->n_retired < galloc->retired_room)
        return SOTTO_OK;
    const size_t room = galloc->retired_room + 8;
    sotto_backend_buffer_t * grown =
        sotto_realloc(galloc->allocator, galloc->retired, galloc->retired_room, room, sizeof(*grown));
    if (grown == NULL)
        return SOTTO_E_MEMORY;
    galloc->retired = grown;
    galloc->retired_room = room;
    return SOTTO_OK;
}

/* Give its memory back and keep the record. */
static void retire(struct sotto_gallocr * galloc, sotto_backend_buffer_t buffer) {
    if (buffer->iface.free_buffer != NULL)
        buffer->iface.free_buffer(buffer);
    buffer->iface.free_buffer = NULL;
    buffer->context = NULL;
    buffer->size = 0;
    galloc->retired[galloc->n_retired++] = buffer;
}

static enum sotto_status grow(struct sotto_gallocr * galloc, int id, size_t size) {
    struct own_buffer * own = &galloc->own[id];
    if (sotto_gallocr_get_buffer_size(galloc, id) >= size)
        return SOTTO_OK;
    if (size > sotto_backend_buft_get_max_size(own->buft))
        return sotto_fail(SOTTO_E_MEMORY, "graph allocator: %zu bytes are more than one buffer of %s may have (%zu)",
                          size, sotto_backend_buft_name(own->buft), sotto_backend_buft_get_max_size(own->buft));
    if (room_to_retire(galloc) != SOTTO_OK)
        return SOTTO_E_MEMORY;
    sotto_backend_buffer_t buffer = sotto_backend_buft_alloc_buffer_ext(own->buft, size, galloc->allocator);
    if (buffer == NULL)
        return SOTTO_E_MEMORY;
    sotto_backend_buffer_set_usage(buffer, SOTTO_BACKEND_BUFFER_USAGE_COMPUTE);
    if (own->buffer != NULL)
        retire(galloc, own->buffer);
    own->buffer = buffer;
    return SOTTO_OK;
}

static enum sotto_status grow_all(const struct layout * layout) {
    enum sotto_status s = SOTTO_OK;
    for (int i = 0; i < layout->galloc->n_own && s == SOTTO_OK; i++)
        s = grow(layout->galloc, i, layout->space[i].top);
    return s;
}

static bool fits(const struct layout * layout) {
    for (int i = 0; i < layout->galloc->n_own; i++)
        if (layout->space[i].top > sotto_gallocr_get_buffer_size(layout->galloc, i))
            return false;
    return true;
}

/* ---- giving addresses ---- */

static enum sotto_status assign(const struct layout * layout) {
    for (int i = 0; i < layout->lives.n; i++) {
        const struct place * place = &layout->places[i];
        sotto_backend_buffer_t buffer = layout->galloc->own[place->buffer].buffer;
        char * base = buffer != NULL ? sotto_backend_buffer_get_base(buffer) : NULL;
        if (!place->wanted || base == NULL)
            continue; /* no buffer: nothing but empty tensors */
        struct sotto_tensor * owner = layout->lives.items[i].owner;
        if (owner->buffer == buffer && owner->data == base + place->offset)
            continue;
        owner->buffer = NULL;
        owner->data = NULL;
        const enum sotto_status s = sotto_backend_tensor_alloc(buffer, owner, base + place->offset);
        if (s != SOTTO_OK)
            return s;
    }
    for (size_t slot = 0; slot < layout->lives.set.size; slot++) {
        struct sotto_tensor * tensor = layout->lives.set.keys[slot];
        const enum sotto_status s = tensor != NULL ? sotto_i_view_follow(tensor) : SOTTO_OK;
        if (s != SOTTO_OK)
            return s;
    }
    return SOTTO_OK;
}

static void withdraw(const struct sotto_gallocr * galloc, struct sotto_tensor * tensor) {
    if (tensor == NULL || tensor->buffer == NULL || !is_own(galloc, tensor->buffer))
        return;
    tensor->buffer = NULL;
    tensor->data = NULL;
}

void sotto_i_gallocr_withdraw(sotto_gallocr_t galloc, struct sotto_cgraph * graph) {
    for (int i = 0; i < graph->n_nodes + graph->n_leafs; i++) {
        struct sotto_tensor * tensor = i < graph->n_nodes ? graph->nodes[i] : graph->leafs[i - graph->n_nodes];
        withdraw(galloc, tensor);
        withdraw(galloc, tensor->view_src);
        for (int s = 0; s < SOTTO_MAX_SRC; s++) {
            withdraw(galloc, tensor->src[s]);
            withdraw(galloc, tensor->src[s] != NULL ? tensor->src[s]->view_src : NULL);
        }
    }
}

/* ---- with several buffers ---- */

/* Number that tells graphs of different form apart: ops and who reads what, not addresses or sizes. Ids given by
 * index make sense only for a graph of the form they were given for. */
static uint64_t form_of(const struct layout * layout) {
    const struct sotto_cgraph * graph = layout->graph;
    uint64_t h = (uint64_t)graph->n_nodes << 32 | (uint64_t)graph->n_leafs;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct sotto_tensor * node = graph->nodes[i];
        h = (h ^ (uint64_t)(uint32_t)node->op) * 0x9E3779B97F4A7C15u;
        h = (h ^ (uint64_t)sotto_i_life_of(&layout->lives, node) ^ h >> 29) * 0xBF58476D1CE4E5B9u;
        for (int s = 0; s < SOTTO_MAX_SRC; s++)
            if (node->src[s] != NULL)
                h = (h ^ (uint64_t)(sotto_i_life_of(&layout->lives, node->src[s]) + 1) ^ h >> 31) * 0x94D049BB133111EBu;
    }
    return h;
}

static enum sotto_status remember_ids(const struct layout * layout) {
    struct sotto_gallocr * galloc = layout->galloc;
    const size_t n_nodes = (size_t)layout->graph->n_nodes, n = n_nodes + (size_t)layout->graph->n_leafs;
    if (galloc->n_own == 1 || n == 0)
        return SOTTO_OK;
    int * ids = sotto_calloc(galloc->allocator, n, sizeof(*ids));
    if (ids == NULL)
        return SOTTO_E_MEMORY;
    for (size_t i = 0; layout->node_ids != NULL && i < n_nodes; i++)
        ids[i] = layout->node_ids[i];
    for (size_t i = n_nodes; layout->leaf_ids != NULL && i < n; i++)
        ids[i] = layout->leaf_ids[i - n_nodes];
    sotto_mfree(galloc->allocator, galloc->ids, galloc->n_ids, sizeof(*galloc->ids));
    galloc->ids = ids;
    galloc->n_ids = n;
    galloc->form = form_of(layout);
    return SOTTO_OK;
}

/* ---- public ---- */

static bool given(const char * function, sotto_gallocr_t galloc, const struct sotto_cgraph * graph) {
    if (galloc != NULL && graph != NULL)
        return true;
    sotto_fail(SOTTO_E_NULLARG, "%s: %s is NULL", function, galloc == NULL ? "galloc" : "graph");
    return false;
}

bool sotto_gallocr_reserve(sotto_gallocr_t galloc, struct sotto_cgraph * graph) {
    return sotto_gallocr_reserve_n(galloc, graph, NULL, NULL);
}

bool sotto_gallocr_reserve_n(sotto_gallocr_t galloc, struct sotto_cgraph * graph, const int * node_ids,
                             const int * leaf_ids) {
    if (!given("sotto_gallocr_reserve_n", galloc, graph))
        return false;
    struct layout layout;
    enum sotto_status s = layout_init(&layout, galloc, graph, node_ids, leaf_ids);
    if (s == SOTTO_OK)
        s = remember_ids(&layout);
    if (s == SOTTO_OK)
        s = grow_all(&layout);
    layout_free(&layout);
    return s == SOTTO_OK;
}

enum sotto_status sotto_gallocr_reserve_n_size(sotto_gallocr_t galloc, struct sotto_cgraph * graph,
                                               const int * node_ids, const int * leaf_ids, size_t * sizes) {
    if (!given("sotto_gallocr_reserve_n_size", galloc, graph))
        return SOTTO_E_NULLARG;
    if (sizes == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_gallocr_reserve_n_size: sizes is NULL");
    struct layout layout;
    const enum sotto_status s = layout_init(&layout, galloc, graph, node_ids, leaf_ids);
    for (int i = 0; i < galloc->n_own; i++)
        sizes[i] = s == SOTTO_OK ? layout.space[i].top : 0;
    layout_free(&layout);
    return s;
}

static enum sotto_status alloc_with_ids(struct layout * layout, sotto_gallocr_t galloc, struct sotto_cgraph * graph) {
    const size_t n = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    const int * ids = n == galloc->n_ids ? galloc->ids : NULL;
    enum sotto_status s = layout_init(layout, galloc, graph, ids, ids != NULL ? ids + graph->n_nodes : NULL);
    if (s == SOTTO_OK && (n != galloc->n_ids || (n > 0 && form_of(layout) != galloc->form) || !fits(layout)))
        s = sotto_fail(SOTTO_E_STATE,
                       "sotto_gallocr_alloc_graph: this is not the graph that the %d buffers were "
                       "reserved for; call sotto_gallocr_reserve_n first",
                       galloc->n_own);
    return s;
}

bool sotto_gallocr_alloc_graph(sotto_gallocr_t galloc, struct sotto_cgraph * graph) {
    if (!given("sotto_gallocr_alloc_graph", galloc, graph))
        return false;
    struct layout layout;
    enum sotto_status s;
    if (galloc->n_own == 1) {
        s = layout_init(&layout, galloc, graph, NULL, NULL);
        if (s == SOTTO_OK)
            s = grow_all(&layout);
    } else {
        s = alloc_with_ids(&layout, galloc, graph);
    }
    if (s == SOTTO_OK)
        s = assign(&layout);
    layout_free(&layout);
    return s == SOTTO_OK;
}
