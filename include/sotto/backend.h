/* SPDX-License-Identifier: MIT */
/* Backends: where tensors live and who computes graphs.
 *
 *   buffer type   a kind of memory: plain host memory, packed weights, a device's memory
 *   buffer        a piece of it; tensors are placed inside
 *   backend       a stream of work on a device; computes graphs whose tensors lie in buffers it supports
 *   plan          a graph prepared once and computed many times
 *
 * Frees accept NULL; queries on NULL handles return 0, NULL or false and record NULLARG. What can fail returns
 * a status. A backend is used by one thread at a time, a buffer type by any; different tensors of one buffer
 * may be set and read from different threads. */
#ifndef SOTTO_BACKEND_H
#define SOTTO_BACKEND_H

#include "sotto/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sotto_backend_buffer_type * sotto_backend_buffer_type_t;
typedef struct sotto_backend_buffer * sotto_backend_buffer_t;
typedef struct sotto_backend * sotto_backend_t;
typedef struct sotto_graph_plan * sotto_backend_graph_plan_t;
typedef struct sotto_gallocr * sotto_gallocr_t;

enum sotto_backend_buffer_usage {
    SOTTO_BACKEND_BUFFER_USAGE_ANY = 0,
    SOTTO_BACKEND_BUFFER_USAGE_WEIGHTS = 1,
    SOTTO_BACKEND_BUFFER_USAGE_COMPUTE = 2
};

/* ---- buffer types ---- */

SOTTO_API const char * sotto_backend_buft_name(sotto_backend_buffer_type_t buft);
/* A new buffer, its memory from `allocator` (NULL = default; the short form uses the default). Size 0 gives a
 * valid buffer without storage. NULL and MEMORY on failure. The caller frees it. */
SOTTO_API sotto_backend_buffer_t sotto_backend_buft_alloc_buffer(sotto_backend_buffer_type_t buft, size_t size);
SOTTO_API sotto_backend_buffer_t sotto_backend_buft_alloc_buffer_ext(sotto_backend_buffer_type_t buft, size_t size,
                                                                     const struct sotto_allocator * allocator);
SOTTO_API size_t sotto_backend_buft_get_alignment(sotto_backend_buffer_type_t buft);
SOTTO_API size_t sotto_backend_buft_get_max_size(sotto_backend_buffer_type_t buft); /* SIZE_MAX: unlimited */
/* Bytes to reserve for a tensor: at least its nbytes, 0 for an empty one. */
SOTTO_API size_t sotto_backend_buft_get_alloc_size(sotto_backend_buffer_type_t buft,
                                                   const struct sotto_tensor * tensor);
/* Data pointers are plain host memory in the standard layout. False for packed weights. */
SOTTO_API bool sotto_backend_buft_is_host(sotto_backend_buffer_type_t buft);

/* ---- buffers ---- */

SOTTO_API const char * sotto_backend_buffer_name(sotto_backend_buffer_t buffer);
SOTTO_API void sotto_backend_buffer_free(sotto_backend_buffer_t buffer);       /* tensors in it dangle */
SOTTO_API void * sotto_backend_buffer_get_base(sotto_backend_buffer_t buffer); /* NULL for size 0 */
SOTTO_API size_t sotto_backend_buffer_get_size(sotto_backend_buffer_t buffer);
SOTTO_API sotto_backend_buffer_type_t sotto_backend_buffer_get_type(sotto_backend_buffer_t buffer);
SOTTO_API enum sotto_status sotto_backend_buffer_init_tensor(sotto_backend_buffer_t buffer,
                                                             struct sotto_tensor * tensor);
SOTTO_API size_t sotto_backend_buffer_get_alignment(sotto_backend_buffer_t buffer);
SOTTO_API size_t sotto_backend_buffer_get_max_size(sotto_backend_buffer_t buffer);
SOTTO_API size_t sotto_backend_buffer_get_alloc_size(sotto_backend_buffer_t buffer, const struct sotto_tensor * tensor);
SOTTO_API bool sotto_backend_buffer_is_host(sotto_backend_buffer_t buffer);
SOTTO_API void sotto_backend_buffer_clear(sotto_backend_buffer_t buffer, uint8_t value);
SOTTO_API void sotto_backend_buffer_set_usage(sotto_backend_buffer_t buffer, enum sotto_backend_buffer_usage usage);
SOTTO_API enum sotto_backend_buffer_usage sotto_backend_buffer_get_usage(sotto_backend_buffer_t buffer);
SOTTO_API void sotto_backend_buffer_reset(sotto_backend_buffer_t buffer); /* drop tensor extras */

/* ---- tensor data ---- */

/* Host -> tensor and back, in the tensor's standard layout: `size` bytes at byte `offset`. STATE if it has no
 * data, BOUNDS outside its nbytes; size 0 does nothing. Packed weights accept whole rows only (LAYOUT) and give
 * back exactly what was set. */
SOTTO_API enum sotto_status sotto_backend_tensor_set(struct sotto_tensor * tensor, const void * data, size_t offset,
                                                     size_t size);
SOTTO_API enum sotto_status sotto_backend_tensor_get(const struct sotto_tensor * tensor, void * data, size_t offset,
                                                     size_t size);
SOTTO_API enum sotto_status sotto_backend_tensor_memset(struct sotto_tensor * tensor, uint8_t value, size_t offset,
                                                        size_t size); /* UNSUPPORTED if the buffer cannot */
/* n_copies pieces of `size` bytes, the i-th at offset + i*stride_tensor and data + i*stride_data. */
SOTTO_API enum sotto_status sotto_backend_tensor_set_2d(struct sotto_tensor * tensor, const void * data, size_t offset,
                                                        size_t size, size_t n_copies, size_t stride_tensor,
                                                        size_t stride_data);
SOTTO_API enum sotto_status sotto_backend_tensor_get_2d(const struct sotto_tensor * tensor, void * data, size_t offset,
                                                        size_t size, size_t n_copies, size_t stride_tensor,
                                                        size_t stride_data);
/* Same layout required (LAYOUT); src = dst does nothing. */
SOTTO_API enum sotto_status sotto_backend_tensor_copy(const struct sotto_tensor * src, struct sotto_tensor * dst);
/* Place a fresh tensor that is no view at `addr` inside the buffer (STATE, BOUNDS). */
SOTTO_API enum sotto_status sotto_backend_tensor_alloc(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor,
                                                       void * addr);
/* Give a view its buffer and data from its allocated owner. */
SOTTO_API enum sotto_status sotto_backend_view_init(struct sotto_tensor * tensor);

/* ---- whole contexts ---- */

/* Place every tensor of a no_alloc context (STATE) that has neither data nor an owner, in the order of creation,
 * in one buffer; then its views. NULL if there is nothing to do (no error) or on failure (nothing stays). */
SOTTO_API sotto_backend_buffer_t sotto_backend_alloc_ctx_tensors_from_buft(struct sotto_context * ctx,
                                                                           sotto_backend_buffer_type_t buft);
SOTTO_API sotto_backend_buffer_t sotto_backend_alloc_ctx_tensors_from_buft_ext(
    struct sotto_context * ctx, sotto_backend_buffer_type_t buft, const struct sotto_allocator * allocator);
SOTTO_API sotto_backend_buffer_t sotto_backend_alloc_ctx_tensors(struct sotto_context * ctx, sotto_backend_t backend);
SOTTO_API size_t sotto_backend_alloc_ctx_tensors_from_buft_size(struct sotto_context * ctx,
                                                                sotto_backend_buffer_type_t buft);

/* Bump allocator over one buffer; MEMORY when full. */
struct sotto_tallocr {
    sotto_backend_buffer_t buffer;
    void * base;
    size_t alignment;
    size_t offset;
};
SOTTO_API struct sotto_tallocr sotto_tallocr_new(sotto_backend_buffer_t buffer);
SOTTO_API enum sotto_status sotto_tallocr_alloc(struct sotto_tallocr * allocr, struct sotto_tensor * tensor);

/* ---- backends ---- */

SOTTO_API const char * sotto_backend_name(sotto_backend_t backend);
SOTTO_API void sotto_backend_free(sotto_backend_t backend); /* waits for queued work */
SOTTO_API sotto_backend_buffer_type_t sotto_backend_get_default_buffer_type(sotto_backend_t backend);
SOTTO_API sotto_backend_buffer_t sotto_backend_alloc_buffer(sotto_backend_t backend, size_t size);
SOTTO_API size_t sotto_backend_get_alignment(sotto_backend_t backend);
SOTTO_API size_t sotto_backend_get_max_size(sotto_backend_t backend);
SOTTO_API enum sotto_status sotto_backend_synchronize(sotto_backend_t backend);
/* Exact: true only for what the backend would compute without refusing. */
SOTTO_API bool sotto_backend_supports_op(sotto_backend_t backend, const struct sotto_tensor * op);
SOTTO_API bool sotto_backend_supports_buft(sotto_backend_t backend, sotto_backend_buffer_type_t buft);

/* Compute a graph whose tensors all have data; returns when done. The context's error, STATE (a tensor without
 * data), UNSUPPORTED (names the node), RANGE, MEMORY, ABORTED. */
SOTTO_API enum sotto_status sotto_backend_graph_compute(sotto_backend_t backend, struct sotto_cgraph * graph);

/* Prepare a graph once, run it many times: sotto/plan.h. */
SOTTO_API sotto_backend_graph_plan_t sotto_backend_graph_plan_create(sotto_backend_t backend,
                                                                     struct sotto_cgraph * graph);
SOTTO_API enum sotto_status sotto_backend_graph_plan_compute(sotto_backend_t backend, sotto_backend_graph_plan_t plan);
SOTTO_API void sotto_backend_graph_plan_free(sotto_backend_t backend, sotto_backend_graph_plan_t plan);

/* Called around nodes: with ask = true before a node ("do you want to see it?"), with ask = false after a wanted
 * node was computed and its data can be read; returning false then stops the graph (ABORTED). NULL removes it. */
typedef bool (*sotto_backend_eval_callback)(struct sotto_tensor * tensor, bool ask, void * user_data);
SOTTO_API void sotto_backend_set_eval_callback(sotto_backend_t backend, sotto_backend_eval_callback callback,
                                               void * user_data);

/* Asked by the computing thread after each node; true stops the graph (ABORTED), tensors computed so far stay
 * valid and the next compute starts afresh. */
typedef bool (*sotto_abort_callback)(void * data);
SOTTO_API void sotto_backend_set_abort_callback(sotto_backend_t backend, sotto_abort_callback callback, void * data);

#ifdef __cplusplus
}
#endif
#endif
