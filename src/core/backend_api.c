/* SPDX-License-Identifier: MIT */
/* Buffer types, buffers and backends as people call them: handles are checked here, drivers need not. */
#include <stdint.h>

#include "core/backend_impl.h"
#include "core/graph_impl.h"

/* False and NULLARG for a missing handle. */
static bool given(const void * handle, const char * function) {
    if (!handle) {
        sotto_fail(SOTTO_E_NULLARG, "%s: the handle is NULL", function);
    }
    return handle;
}

/* ---- buffer types ---- */

const char * sotto_backend_buft_name(sotto_backend_buffer_type_t buft) {
    return given(buft, "sotto_backend_buft_name") ? buft->iface.get_name(buft) : NULL;
}

sotto_backend_buffer_t sotto_backend_buft_alloc_buffer_ext(sotto_backend_buffer_type_t buft, size_t size,
                                                           const struct sotto_allocator * allocator) {
    static const struct sotto_i_buffer_iface empty;
    if (!given(buft, "sotto_backend_buft_alloc_buffer")) {
        return NULL;
    }
    if (size == 0) {
        return sotto_i_buffer_new(buft, &empty, NULL, 0, allocator);
    }
    size_t most = sotto_backend_buft_get_max_size(buft);
    if (size > most) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_backend_buft_alloc_buffer: %zu bytes, but a buffer of %s has at most %zu",
                   size, buft->iface.get_name(buft), most);
        return NULL;
    }
    return buft->iface.alloc_buffer(buft, size, allocator ? allocator : sotto_default_allocator());
}

sotto_backend_buffer_t sotto_backend_buft_alloc_buffer(sotto_backend_buffer_type_t buft, size_t size) {
    return sotto_backend_buft_alloc_buffer_ext(buft, size, NULL);
}

size_t sotto_backend_buft_get_alignment(sotto_backend_buffer_type_t buft) {
    return given(buft, "sotto_backend_buft_get_alignment") ? buft->iface.get_alignment(buft) : 0;
}

size_t sotto_backend_buft_get_max_size(sotto_backend_buffer_type_t buft) {
    if (!given(buft, "sotto_backend_buft_get_max_size")) {
        return 0;
    }
    return buft->iface.get_max_size ? buft->iface.get_max_size(buft) : SIZE_MAX;
}

size_t sotto_backend_buft_get_alloc_size(sotto_backend_buffer_type_t buft, const struct sotto_tensor * tensor) {
    if (!given(buft, "sotto_backend_buft_get_alloc_size") || !given(tensor, "sotto_backend_buft_get_alloc_size")) {
        return 0;
    }
    return buft->iface.get_alloc_size ? buft->iface.get_alloc_size(buft, tensor) : sotto_nbytes(tensor);
}

bool sotto_backend_buft_is_host(sotto_backend_buffer_type_t buft) {
    return given(buft, "sotto_backend_buft_is_host") && buft->iface.is_host && buft->iface.is_host(buft);
}

/* ---- buffers ---- */

sotto_backend_buffer_t sotto_i_buffer_new(sotto_backend_buffer_type_t buft, const struct sotto_i_buffer_iface * iface,
                                          void * context, size_t size, const struct sotto_allocator * allocator) {
    if (!allocator) {
        allocator = sotto_default_allocator();
    }
    sotto_backend_buffer_t buffer = sotto_malloc(allocator, 1, sizeof(*buffer));
    if (buffer) {
        *buffer = (struct sotto_backend_buffer){
            .iface = *iface,
            .buft = buft,
            .context = context,
            .size = size,
            .allocator = allocator,
        };
    }
    return buffer;
}

const char * sotto_backend_buffer_name(sotto_backend_buffer_t buffer) {
    return given(buffer, "sotto_backend_buffer_name") ? sotto_backend_buft_name(buffer->buft) : NULL;
}

void sotto_backend_buffer_free(sotto_backend_buffer_t buffer) {
    if (!buffer) {
        return;
    }
    if (buffer->iface.free_buffer) {
        buffer->iface.free_buffer(buffer);
    }
    sotto_mfree(buffer->allocator, buffer, 1, sizeof(*buffer));
}

void * sotto_backend_buffer_get_base(sotto_backend_buffer_t buffer) {
    if (!given(buffer, "sotto_backend_buffer_get_base") || buffer->size == 0) {
        return NULL;
    }
    return buffer->iface.get_base(buffer);
}

size_t sotto_backend_buffer_get_size(sotto_backend_buffer_t buffer) {
    return given(buffer, "sotto_backend_buffer_get_size") ? buffer->size : 0;
}

sotto_backend_buffer_type_t sotto_backend_buffer_get_type(sotto_backend_buffer_t buffer) {
    return given(buffer, "sotto_backend_buffer_get_type") ? buffer->buft : NULL;
}

enum sotto_status sotto_backend_buffer_init_tensor(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor) {
    if (!given(buffer, "sotto_backend_buffer_init_tensor") || !given(tensor, "sotto_backend_buffer_init_tensor")) {
        return SOTTO_E_NULLARG;
    }
    return buffer->iface.init_tensor ? buffer->iface.init_tensor(buffer, tensor) : SOTTO_OK;
}

size_t sotto_backend_buffer_get_alignment(sotto_backend_buffer_t buffer) {
    return given(buffer, "sotto_backend_buffer_get_alignment") ? sotto_backend_buft_get_alignment(buffer->buft) : 0;
}

size_t sotto_backend_buffer_get_max_size(sotto_backend_buffer_t buffer) {
    return given(buffer, "sotto_backend_buffer_get_max_size") ? sotto_backend_buft_get_max_size(buffer->buft) : 0;
}

size_t sotto_backend_buffer_get_alloc_size(sotto_backend_buffer_t buffer, const struct sotto_tensor * tensor) {
    if (!given(buffer, "sotto_backend_buffer_get_alloc_size")) {
        return 0;
    }
    return sotto_backend_buft_get_alloc_size(buffer->buft, tensor);
}

bool sotto_backend_buffer_is_host(sotto_backend_buffer_t buffer) {
    return given(buffer, "sotto_backend_buffer_is_host") && sotto_backend_buft_is_host(buffer->buft);
}

void sotto_backend_buffer_clear(sotto_backend_buffer_t buffer, uint8_t value) {
    if (given(buffer, "sotto_backend_buffer_clear") && buffer->size > 0) {
        buffer->iface.clear(buffer, value);
    }
}

void sotto_backend_buffer_set_usage(sotto_backend_buffer_t buffer, enum sotto_backend_buffer_usage usage) {
    if (given(buffer, "sotto_backend_buffer_set_usage")) {
        buffer->usage = usage;
    }
}

enum sotto_backend_buffer_usage sotto_backend_buffer_get_usage(sotto_backend_buffer_t buffer) {
    return given(buffer, "sotto_backend_buffer_get_usage") ? buffer->usage : SOTTO_BACKEND_BUFFER_USAGE_ANY;
}

void sotto_backend_buffer_reset(sotto_backend_buffer_t buffer) {
    if (given(buffer, "sotto_backend_buffer_reset") && buffer->iface.reset) {
        buffer->iface.reset(buffer);
    }
}

/* ---- backends ---- */

const char * sotto_backend_name(sotto_backend_t backend) {
    return given(backend, "sotto_backend_name") ? backend->iface.get_name(backend) : NULL;
}

void sotto_backend_free(sotto_backend_t backend) {
    if (backend) {
        sotto_backend_synchronize(backend);
        backend->iface.free_backend(backend);
    }
}

sotto_backend_buffer_type_t sotto_backend_get_default_buffer_type(sotto_backend_t backend) {
    return given(backend, "sotto_backend_get_default_buffer_type") ? backend->iface.get_default_buffer_type(backend)
                                                                   : NULL;
}

sotto_backend_buffer_t sotto_backend_alloc_buffer(sotto_backend_t backend, size_t size) {
    if (!given(backend, "sotto_backend_alloc_buffer")) {
        return NULL;
    }
    return sotto_backend_buft_alloc_buffer_ext(backend->iface.get_default_buffer_type(backend), size,
                                               backend->allocator);
}

size_t sotto_backend_get_alignment(sotto_backend_t backend) {
    return given(backend, "sotto_backend_get_alignment")
               ? sotto_backend_buft_get_alignment(backend->iface.get_default_buffer_type(backend))
               : 0;
}

size_t sotto_backend_get_max_size(sotto_backend_t backend) {
    return given(backend, "sotto_backend_get_max_size")
               ? sotto_backend_buft_get_max_size(backend->iface.get_default_buffer_type(backend))
               : 0;
}

enum sotto_status sotto_backend_synchronize(sotto_backend_t backend) {
    if (!given(backend, "sotto_backend_synchronize")) {
        return SOTTO_E_NULLARG;
    }
    return backend->iface.synchronize ? backend->iface.synchronize(backend) : SOTTO_OK;
}

bool sotto_backend_supports_op(sotto_backend_t backend, const struct sotto_tensor * op) {
    return given(backend, "sotto_backend_supports_op") && given(op, "sotto_backend_supports_op") &&
           backend->iface.supports_op(backend, op);
}

bool sotto_backend_supports_buft(sotto_backend_t backend, sotto_backend_buffer_type_t buft) {
    return given(backend, "sotto_backend_supports_buft") && given(buft, "sotto_backend_supports_buft") &&
           backend->iface.supports_buft(backend, buft);
}

/* NULLARG, or the error of the graph's context. */
static enum sotto_status check_graph(sotto_backend_t backend, const struct sotto_cgraph * graph,
                                     const char * function) {
    if (!given(backend, function) || !given(graph, function)) {
        return SOTTO_E_NULLARG;
    }
    return sotto_i_graph_status(graph);
}

enum sotto_status sotto_backend_graph_compute(sotto_backend_t backend, struct sotto_cgraph * graph) {
    enum sotto_status status = check_graph(backend, graph, "sotto_backend_graph_compute");
    if (status != SOTTO_OK) {
        return status;
    }
    if (backend->iface.graph_compute) {
        return backend->iface.graph_compute(backend, graph);
    }
    sotto_backend_graph_plan_t plan = backend->iface.plan_create(backend, graph);
    if (!plan) {
        return sotto_last_error();
    }
    status = backend->iface.plan_compute(backend, plan);
    backend->iface.plan_free(backend, plan);
    return status;
}

sotto_backend_graph_plan_t sotto_backend_graph_plan_create(sotto_backend_t backend, struct sotto_cgraph * graph) {
    if (check_graph(backend, graph, "sotto_backend_graph_plan_create") != SOTTO_OK) {
        return NULL;
    }
    return backend->iface.plan_create(backend, graph);
}

enum sotto_status sotto_backend_graph_plan_compute(sotto_backend_t backend, sotto_backend_graph_plan_t plan) {
    if (!given(backend, "sotto_backend_graph_plan_compute") || !given(plan, "sotto_backend_graph_plan_compute")) {
        return SOTTO_E_NULLARG;
    }
    return backend->iface.plan_compute(backend, plan);
}

void sotto_backend_graph_plan_free(sotto_backend_t backend, sotto_backend_graph_plan_t plan) {
    if (plan && given(backend, "sotto_backend_graph_plan_free")) {
        backend->iface.plan_free(backend, plan);
    }
}

void sotto_backend_set_eval_callback(sotto_backend_t backend, sotto_backend_eval_callback callback, void * user_data) {
    if (given(backend, "sotto_backend_set_eval_callback")) {
        backend->eval_callback = callback;
        backend->eval_user_data = user_data;
    }
}

void sotto_backend_set_abort_callback(sotto_backend_t backend, sotto_abort_callback callback, void * data) {
    if (given(backend, "sotto_backend_set_abort_callback")) {
        backend->abort_callback = callback;
        backend->abort_user_data = data;
    }
}
