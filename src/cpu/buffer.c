/* SPDX-License-Identifier: MIT */
/* Plain host memory as a buffer type. */
#include <string.h>

#include "cpu/buffer.h"
#include "cpu/cpu_impl.h"

static const struct sotto_allocator * or_default(const struct sotto_allocator * allocator) {
    return allocator != NULL ? allocator : sotto_default_allocator();
}

/* ---- shared with packed buffers ---- */

sotto_backend_buffer_t sotto_i_cpu_buffer_new(sotto_backend_buffer_type_t buft,
                                              const struct sotto_i_buffer_iface * iface, size_t size,
                                              const struct sotto_allocator * allocator) {
    const struct sotto_allocator * from = or_default(allocator);
    void * memory = from->alloc(from->user_data, size, SOTTO_DATA_ALIGN);
    if (memory == NULL) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_backend_buft_alloc_buffer: %zu bytes could not be had", size);
        return NULL;
    }
    sotto_backend_buffer_t buffer = sotto_i_buffer_new(buft, iface, memory, size, from);
    if (buffer == NULL)
        from->free(from->user_data, memory, size, SOTTO_DATA_ALIGN);
    return buffer;
}

void sotto_i_cpu_buffer_free(sotto_backend_buffer_t buffer) {
    const struct sotto_allocator * allocator = or_default(buffer->allocator);
    allocator->free(allocator->user_data, buffer->context, buffer->size, SOTTO_DATA_ALIGN);
}

void * sotto_i_cpu_buffer_base(sotto_backend_buffer_t buffer) { return buffer->context; }

void sotto_i_cpu_buffer_clear(sotto_backend_buffer_t buffer, uint8_t value) {
    memset(buffer->context, value, buffer->size);
}

size_t sotto_i_cpu_buffer_alignment(sotto_backend_buffer_type_t buft) {
    (void)buft;
    return SOTTO_DATA_ALIGN;
}

/* ---- buffer ---- */

static enum sotto_status memset_tensor(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor, uint8_t value,
                                       size_t offset, size_t size) {
    (void)buffer;
    memset((char *)tensor->data + offset, value, size);
    return SOTTO_OK;
}

static enum sotto_status set_tensor(sotto_backend_buffer_t buffer, struct sotto_tensor * tensor, const void * data,
                                    size_t offset, size_t size) {
    (void)buffer;
    memcpy((char *)tensor->data + offset, data, size);
    return SOTTO_OK;
}

static enum sotto_status get_tensor(sotto_backend_buffer_t buffer, const struct sotto_tensor * tensor, void * data,
                                    size_t offset, size_t size) {
    (void)buffer;
    memcpy(data, (const char *)tensor->data + offset, size);
    return SOTTO_OK;
}

static bool copy_tensor(sotto_backend_buffer_t buffer, const struct sotto_tensor * src, struct sotto_tensor * dst) {
    (void)buffer;
    if (src->buffer != NULL && !sotto_backend_buffer_is_host(src->buffer))
        return false;
    memmove(dst->data, src->data, sotto_nbytes(src));
    return true;
}

static const struct sotto_i_buffer_iface owned = {
    .free_buffer = sotto_i_cpu_buffer_free,
    .get_base = sotto_i_cpu_buffer_base,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .copy_tensor = copy_tensor,
    .clear = sotto_i_cpu_buffer_clear,
};

static const struct sotto_i_buffer_iface borrowed = {
    .get_base = sotto_i_cpu_buffer_base,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .copy_tensor = copy_tensor,
    .clear = sotto_i_cpu_buffer_clear,
};

/* ---- buffer type ---- */

static const char * get_name(sotto_backend_buffer_type_t buft) {
    (void)buft;
    return "CPU";
}

static sotto_backend_buffer_t alloc_buffer(sotto_backend_buffer_type_t buft, size_t size,
                                           const struct sotto_allocator * allocator) {
    return sotto_i_cpu_buffer_new(buft, &owned, size, allocator);
}

static bool is_host(sotto_backend_buffer_type_t buft) {
    (void)buft;
    return true;
}

static struct sotto_backend_buffer_type host_type = {
    .iface = { .get_name = get_name,
               .alloc_buffer = alloc_buffer,
               .get_alignment = sotto_i_cpu_buffer_alignment,
               .is_host = is_host },
};

sotto_backend_buffer_type_t sotto_backend_cpu_buffer_type(void) { return &host_type; }

sotto_backend_buffer_t sotto_backend_cpu_buffer_from_ptr(void * ptr, size_t size) {
    if (ptr == NULL) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_backend_cpu_buffer_from_ptr: ptr is NULL");
        return NULL;
    }
    if ((uintptr_t)ptr % SOTTO_MEM_ALIGN != 0) {
        sotto_fail(SOTTO_E_PARAM, "sotto_backend_cpu_buffer_from_ptr: the address is no multiple of %d",
                   SOTTO_MEM_ALIGN);
        return NULL;
    }
    return sotto_i_buffer_new(&host_type, &borrowed, ptr, size, NULL);
}
