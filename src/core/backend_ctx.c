/* SPDX-License-Identifier: MIT */
/* Placing tensors in buffers: one at an address, one after another, or all of a context. */
#include <stdint.h>

#include "core/backend_impl.h"
#include "core/checked.h"
#include "core/tensor_impl.h"

/* ---- one tensor ---- */

static enum sotto_status attach(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor, void * data) {
    tensor->buffer = buffer;
    tensor->data = data;
    enum sotto_status status = sotto_backend_buffer_init_tensor(buffer, tensor);
    if (status != SOTTO_OK) {
        tensor->buffer = NULL;
        tensor->data = NULL;
        tensor->extra = NULL;
    }
    return status;
}

enum sotto_status sotto_backend_tensor_alloc(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor, void * addr) {
    if (!buffer || !tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_backend_tensor_alloc: %s is NULL", buffer ? "tensor" : "buffer");
    }
    if (tensor->buffer || tensor->data || tensor->view_src) {
        return sotto_fail(SOTTO_E_STATE, "sotto_backend_tensor_alloc: '%s' %s", tensor->name,
                          tensor->view_src ? "is a view; use sotto_backend_view_init" : "has data already");
    }
    size_t size = sotto_backend_buffer_get_alloc_size(buffer, tensor);
    uintptr_t base = (uintptr_t)sotto_backend_buffer_get_base(buffer);
    uintptr_t at = (uintptr_t)addr;
    if (at < base || at - base > buffer->size || size > buffer->size - (at - base)) {
        return sotto_fail(SOTTO_E_BOUNDS,
                          "sotto_backend_tensor_alloc: %zu bytes of '%s' do not lie inside the buffer of %zu", size,
                          tensor->name, buffer->size);
    }
    return attach(buffer, tensor, addr);
}

enum sotto_status sotto_backend_view_init(struct sotto_tensor * tensor) {
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_backend_view_init: tensor is NULL");
    }
    struct sotto_tensor * owner = tensor->view_src;
    if (!owner || (!owner->data && !owner->buffer)) {
        return sotto_fail(SOTTO_E_STATE, "sotto_backend_view_init: '%s' %s", tensor->name,
                          owner ? "views a tensor that is not allocated" : "is no view");
    }
    char * data = owner->data ? (char *)owner->data + tensor->view_offs : NULL;
    if (owner->buffer) {
        return attach(owner->buffer, tensor, data);
    }
    tensor->data = data;
    return SOTTO_OK;
}

/* ---- one after another ---- */

struct sotto_tallocr sotto_tallocr_new(sotto_backend_buffer_t buffer) {
    struct sotto_tallocr allocr = { .buffer = buffer };
    if (!buffer) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_tallocr_new: buffer is NULL");
        return allocr;
    }
    size_t aligned;
    allocr.base = sotto_backend_buffer_get_base(buffer);
    allocr.alignment = sotto_backend_buffer_get_alignment(buffer);
    uintptr_t base = (uintptr_t)allocr.base;
    allocr.offset = sotto_i_align_up(base, allocr.alignment, &aligned) ? aligned - base : buffer->size;
    return allocr;
}

enum sotto_status sotto_tallocr_alloc(struct sotto_tallocr * allocr, struct sotto_tensor * tensor) {
    if (!allocr || !allocr->buffer || !tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_tallocr_alloc: %s is NULL",
                          !allocr  ? "allocr"
                          : tensor ? "its buffer"
                                   : "tensor");
    }
    size_t size = sotto_backend_buffer_get_alloc_size(allocr->buffer, tensor);
    size_t held = allocr->buffer->size;
    size_t next;
    if (allocr->offset > held || size > held - allocr->offset) {
        if (size > 0) {
            return sotto_fail(SOTTO_E_MEMORY,
                              "sotto_tallocr_alloc: '%s' needs %zu bytes, but %zu of %zu are left in the buffer",
                              tensor->name, size, allocr->offset > held ? 0 : held - allocr->offset, held);
        }
        return sotto_backend_tensor_alloc(allocr->buffer, tensor, allocr->base);
    }
    void * at = allocr->base ? (char *)allocr->base + allocr->offset : NULL;
    enum sotto_status status = sotto_backend_tensor_alloc(allocr->buffer, tensor, at);
    if (status == SOTTO_OK) {
        allocr->offset = sotto_i_align_up(allocr->offset + size, allocr->alignment, &next) ? next : held;
    }
    return status;
}

/* ---- whole contexts ---- */

static bool waits(const struct sotto_tensor * tensor) { return !tensor->data && !tensor->view_src && !tensor->buffer; }

/* Bytes for all tensors that wait for data, and how many there are. */
static enum sotto_status total(struct sotto_context * ctx, sotto_backend_buffer_type_t buft, size_t * bytes,
                               size_t * count) {
    size_t alignment = sotto_backend_buft_get_alignment(buft);
    *bytes = 0;
    *count = 0;
    for (struct sotto_tensor * t = sotto_get_first_tensor(ctx); t; t = sotto_get_next_tensor(ctx, t)) {
        if (!waits(t)) {
            continue;
        }
        size_t size = sotto_backend_buft_get_alloc_size(buft, t);
        if (!sotto_i_align_up(size, alignment, &size) || !sotto_i_add(*bytes, size, bytes)) {
            return sotto_fail(SOTTO_E_MEMORY, "sotto_backend_alloc_ctx_tensors: the size of all tensors overflows");
        }
        ++*count;
    }
    return SOTTO_OK;
}

/* Take the buffer away from everything that has it. */
static void detach_all(struct sotto_context * ctx, sotto_backend_buffer_t buffer) {
    for (struct sotto_tensor * t = sotto_get_first_tensor(ctx); t; t = sotto_get_next_tensor(ctx, t)) {
        if (t->buffer == buffer) {
            t->buffer = NULL;
            t->data = NULL;
            t->extra = NULL;
        }
    }
}

static enum sotto_status place_all(struct sotto_context * ctx, sotto_backend_buffer_t buffer) {
    struct sotto_tallocr allocr = sotto_tallocr_new(buffer);
    for (struct sotto_tensor * t = sotto_get_first_tensor(ctx); t; t = sotto_get_next_tensor(ctx, t)) {
        enum sotto_status status = waits(t) ? sotto_tallocr_alloc(&allocr, t) : SOTTO_OK;
        if (status != SOTTO_OK) {
            return status;
        }
    }
    return SOTTO_OK;
}

/* Views whose owner has got a buffer. */
static enum sotto_status init_views(struct sotto_context * ctx) {
    for (struct sotto_tensor * t = sotto_get_first_tensor(ctx); t; t = sotto_get_next_tensor(ctx, t)) {
        bool wanted = t->view_src && !t->buffer && t->view_src->buffer;
        enum sotto_status status = wanted ? sotto_backend_view_init(t) : SOTTO_OK;
        if (status != SOTTO_OK) {
            return status;
        }
    }
    return SOTTO_OK;
}

static bool check_ctx(struct sotto_context * ctx, sotto_backend_buffer_type_t buft) {
    if (!ctx || !buft) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_backend_alloc_ctx_tensors: %s is NULL", ctx ? "buft" : "ctx");
        return false;
    }
    if (!sotto_get_no_alloc(ctx)) {
        sotto_fail(SOTTO_E_STATE, "sotto_backend_alloc_ctx_tensors: the context was not made with no_alloc");
        return false;
    }
    return true;
}

sotto_backend_buffer_t sotto_backend_alloc_ctx_tensors_from_buft_ext(struct sotto_context * ctx,
                                                                     sotto_backend_buffer_type_t buft,
                                                                     const struct sotto_allocator * allocator) {
    size_t bytes;
    size_t count;
    if (!check_ctx(ctx, buft) || total(ctx, buft, &bytes, &count) != SOTTO_OK) {
        return NULL;
    }
    if (count == 0) {
        init_views(ctx);
        return NULL;
    }
    sotto_backend_buffer_t buffer = sotto_backend_buft_alloc_buffer_ext(buft, bytes, allocator);
    if (!buffer) {
        return NULL;
    }
    enum sotto_status status = place_all(ctx, buffer);
    if (status == SOTTO_OK) {
        status = init_views(ctx);
    }
    if (status != SOTTO_OK) {
        detach_all(ctx, buffer);
        sotto_backend_buffer_free(buffer);
        return NULL;
    }
    return buffer;
}

sotto_backend_buffer_t sotto_backend_alloc_ctx_tensors_from_buft(struct sotto_context * ctx,
                                                                 sotto_backend_buffer_type_t buft) {
    return sotto_backend_alloc_ctx_tensors_from_buft_ext(ctx, buft, NULL);
}

sotto_backend_buffer_t sotto_backend_alloc_ctx_tensors(struct sotto_context * ctx, sotto_backend_t backend) {
    if (!backend) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_backend_alloc_ctx_tensors: backend is NULL");
        return NULL;
    }
    return sotto_backend_alloc_ctx_tensors_from_buft_ext(ctx, backend->iface.get_default_buffer_type(backend),
                                                         backend->allocator);
}

size_t sotto_backend_alloc_ctx_tensors_from_buft_size(struct sotto_context * ctx, sotto_backend_buffer_type_t buft) {
    size_t bytes;
    size_t count;
    return check_ctx(ctx, buft) && total(ctx, buft, &bytes, &count) == SOTTO_OK ? bytes : 0;
}
