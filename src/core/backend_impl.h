/* SPDX-License-Identifier: MIT */
/* What a driver fills in: structs of functions for a buffer type, a buffer and a backend. Functions marked "may be
 * NULL" have a default in core/backend_*.c. */
#ifndef SOTTO_CORE_BACKEND_IMPL_H
#define SOTTO_CORE_BACKEND_IMPL_H

#include "sotto/backend.h"

struct sotto_i_buft_iface {
    const char * (*get_name)(sotto_backend_buffer_type_t buft);
    /* size > 0; the core makes buffers without storage by itself */
    sotto_backend_buffer_t (*alloc_buffer)(sotto_backend_buffer_type_t buft, size_t size,
                                           const struct sotto_allocator * allocator);
    size_t (*get_alignment)(sotto_backend_buffer_type_t buft);
    size_t (*get_max_size)(sotto_backend_buffer_type_t buft);                                       /* may be NULL */
    size_t (*get_alloc_size)(sotto_backend_buffer_type_t buft, const struct sotto_tensor * tensor); /* may be NULL */
    bool (*is_host)(sotto_backend_buffer_type_t buft);                                              /* may be NULL */
};

struct sotto_backend_buffer_type {
    struct sotto_i_buft_iface iface;
    void * context;
};

struct sotto_i_buffer_iface {
    void (*free_buffer)(sotto_backend_buffer_t buffer); /* its context and memory, not the record; may be NULL */
    void * (*get_base)(sotto_backend_buffer_t buffer);
    enum sotto_status (*init_tensor)(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor); /* may be NULL */
    /* bounds were checked by the core */
    enum sotto_status (*memset_tensor)(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor, uint8_t value,
                                       size_t offset, size_t size); /* may be NULL */
    enum sotto_status (*set_tensor)(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor, const void * data,
                                    size_t offset, size_t size);
    enum sotto_status (*get_tensor)(sotto_backend_buffer_t buffer, const struct sotto_tensor * tensor, void * data,
                                    size_t offset, size_t size);
    bool (*copy_tensor)(sotto_backend_buffer_t buffer, const struct sotto_tensor * src,
                        struct sotto_tensor * dst); /* false = cannot; may be NULL */
    void (*clear)(sotto_backend_buffer_t buffer, uint8_t value);
    void (*reset)(sotto_backend_buffer_t buffer); /* may be NULL */
};

struct sotto_backend_buffer {
    struct sotto_i_buffer_iface iface;
    sotto_backend_buffer_type_t buft;
    void * context;
    size_t size;
    enum sotto_backend_buffer_usage usage;
    const struct sotto_allocator * allocator; /* of the record */
};

/* Make a buffer record (takes it from `allocator`); NULL and MEMORY on failure. */
sotto_backend_buffer_t sotto_i_buffer_new(sotto_backend_buffer_type_t buft, const struct sotto_i_buffer_iface * iface,
                                          void * context, size_t size, const struct sotto_allocator * allocator);

struct sotto_i_backend_iface {
    const char * (*get_name)(sotto_backend_t backend);
    void (*free_backend)(sotto_backend_t backend); /* record and all */
    sotto_backend_buffer_type_t (*get_default_buffer_type)(sotto_backend_t backend);
    enum sotto_status (*synchronize)(sotto_backend_t backend); /* may be NULL */
    bool (*supports_op)(sotto_backend_t backend, const struct sotto_tensor * op);
    bool (*supports_buft)(sotto_backend_t backend, sotto_backend_buffer_type_t buft);
    enum sotto_status (*graph_compute)(sotto_backend_t backend,
                                       struct sotto_cgraph * graph); /* may be NULL: plan, compute, free */
    sotto_backend_graph_plan_t (*plan_create)(sotto_backend_t backend, struct sotto_cgraph * graph);
    enum sotto_status (*plan_compute)(sotto_backend_t backend, sotto_backend_graph_plan_t plan);
    void (*plan_free)(sotto_backend_t backend, sotto_backend_graph_plan_t plan);
};

/* First member of every backend's own record. */
struct sotto_backend {
    struct sotto_i_backend_iface iface;
    const struct sotto_allocator * allocator;
    sotto_backend_eval_callback eval_callback;
    void * eval_user_data;
    sotto_abort_callback abort_callback;
    void * abort_user_data;
};

#endif
