/* SPDX-License-Identifier: MIT */
/* Moving tensor data in and out of buffers, and between them. A tensor without a buffer lies in host memory: in an
 * arena, or in memory of the caller. */
#include <string.h>

#include "core/backend_impl.h"
#include "core/checked.h"
#include "core/tensor_impl.h"

/* ---- checks ---- */

/* The range lies in the tensor and it has data. *nothing: there is nothing to do. */
static enum sotto_status check_range(const struct sotto_tensor * tensor, size_t offset, size_t size,
                                     const char * function, bool * nothing) {
    *nothing = size == 0;
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "%s: tensor is NULL", function);
    }
    if (!tensor->data && !sotto_i_tensor_buffer(tensor)) {
        return sotto_fail(SOTTO_E_STATE, "%s: '%s' is not allocated; place it in a buffer first", function,
                          tensor->name);
    }
    size_t end;
    size_t held = sotto_nbytes(tensor);
    if (size > 0 && (!sotto_i_add(offset, size, &end) || end > held)) {
        return sotto_fail(SOTTO_E_BOUNDS, "%s: %zu bytes at %zu, but '%s' has %zu", function, size, offset,
                          tensor->name, held);
    }
    if (size > 0 && !tensor->data) {
        return sotto_fail(SOTTO_E_STATE, "%s: '%s' has a buffer but no data; see sotto_backend_view_init", function,
                          tensor->name);
    }
    return SOTTO_OK;
}

static enum sotto_status check_pointer(const void * data, const char * function) {
    return data ? SOTTO_OK : sotto_fail(SOTTO_E_NULLARG, "%s: data is NULL", function);
}

/* ---- one piece; everything is checked ---- */

static enum sotto_status put(struct sotto_tensor * tensor, const void * data, size_t offset, size_t size) {
    sotto_backend_buffer_t buffer = sotto_i_tensor_buffer(tensor);
    if (buffer) {
        return buffer->iface.set_tensor(buffer, tensor, data, offset, size);
    }
    memcpy((char *)tensor->data + offset, data, size);
    return SOTTO_OK;
}

static enum sotto_status fetch(const struct sotto_tensor * tensor, void * data, size_t offset, size_t size) {
    sotto_backend_buffer_t buffer = sotto_i_tensor_buffer(tensor);
    if (buffer) {
        return buffer->iface.get_tensor(buffer, tensor, data, offset, size);
    }
    memcpy(data, (const char *)tensor->data + offset, size);
    return SOTTO_OK;
}

/* ---- set, get, memset ---- */

enum sotto_status sotto_backend_tensor_set(struct sotto_tensor * tensor, const void * data, size_t offset,
                                           size_t size) {
    return sotto_backend_tensor_set_2d(tensor, data, offset, size, 1, 0, 0);
}

enum sotto_status sotto_backend_tensor_get(const struct sotto_tensor * tensor, void * data, size_t offset,
                                           size_t size) {
    return sotto_backend_tensor_get_2d(tensor, data, offset, size, 1, 0, 0);
}

enum sotto_status sotto_backend_tensor_memset(struct sotto_tensor * tensor, uint8_t value, size_t offset, size_t size) {
    bool nothing;
    enum sotto_status status = check_range(tensor, offset, size, "sotto_backend_tensor_memset", &nothing);
    if (status != SOTTO_OK || nothing) {
        return status;
    }
    sotto_backend_buffer_t buffer = sotto_i_tensor_buffer(tensor);
    if (!buffer) {
        memset((char *)tensor->data + offset, value, size);
        return SOTTO_OK;
    }
    if (!buffer->iface.memset_tensor) {
        return sotto_fail(SOTTO_E_UNSUPPORTED, "sotto_backend_tensor_memset: a buffer of %s cannot; set the data",
                          sotto_backend_buffer_name(buffer));
    }
    return buffer->iface.memset_tensor(buffer, tensor, value, offset, size);
}

/* Bytes from the first to the last of n pieces; SIZE_MAX on overflow. */
static size_t reach(size_t size, size_t n, size_t stride) {
    size_t bytes;
    if (size == 0 || n == 0) {
        return 0;
    }
    return sotto_i_mul(n - 1, stride, &bytes) && sotto_i_add(bytes, size, &bytes) ? bytes : SIZE_MAX;
}

enum sotto_status sotto_backend_tensor_set_2d(struct sotto_tensor * tensor, const void * data, size_t offset,
                                              size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data) {
    const char * function = "sotto_backend_tensor_set";
    bool nothing;
    enum sotto_status status = check_range(tensor, offset, reach(size, n_copies, stride_tensor), function, &nothing);
    if (status != SOTTO_OK || nothing) {
        return status;
    }
    status = check_pointer(data, function);
    for (size_t i = 0; i < n_copies && status == SOTTO_OK; i++) {
        status = put(tensor, (const char *)data + i * stride_data, offset + i * stride_tensor, size);
    }
    return status;
}

enum sotto_status sotto_backend_tensor_get_2d(const struct sotto_tensor * tensor, void * data, size_t offset,
                                              size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data) {
    const char * function = "sotto_backend_tensor_get";
    bool nothing;
    enum sotto_status status = check_range(tensor, offset, reach(size, n_copies, stride_tensor), function, &nothing);
    if (status != SOTTO_OK || nothing) {
        return status;
    }
    status = check_pointer(data, function);
    for (size_t i = 0; i < n_copies && status == SOTTO_OK; i++) {
        status = fetch(tensor, (char *)data + i * stride_data, offset + i * stride_tensor, size);
    }
    return status;
}

/* ---- tensor to tensor ---- */

static bool in_host(const struct sotto_tensor * tensor) {
    sotto_backend_buffer_t buffer = sotto_i_tensor_buffer(tensor);
    return !buffer || sotto_backend_buffer_is_host(buffer);
}

/* Move a range; `staging` has `size` bytes where neither side is host memory. */
static enum sotto_status move(const struct sotto_tensor * src, struct sotto_tensor * dst, size_t offset, size_t size,
                              void * staging) {
    if (in_host(src) && in_host(dst)) {
        memmove((char *)dst->data + offset, (const char *)src->data + offset, size);
        return SOTTO_OK;
    }
    if (in_host(src)) {
        return put(dst, (const char *)src->data + offset, offset, size);
    }
    if (in_host(dst)) {
        return fetch(src, (char *)dst->data + offset, offset, size);
    }
    enum sotto_status status = fetch(src, staging, offset, size);
    return status == SOTTO_OK ? put(dst, staging, offset, size) : status;
}

/* Piece by piece, so that what lies in the gaps of dst stays. A piece is a row, or a block of one with gaps. */
static enum sotto_status move_pieces(const struct sotto_tensor * src, struct sotto_tensor * dst, size_t piece,
                                     int64_t n_pieces, void * staging) {
    enum sotto_status status = SOTTO_OK;
    for (int64_t i3 = 0; i3 < src->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < src->ne[2]; i2++) {
            for (int64_t i1 = 0; i1 < src->ne[1]; i1++) {
                size_t row = (size_t)i1 * src->nb[1] + (size_t)i2 * src->nb[2] + (size_t)i3 * src->nb[3];
                for (int64_t i0 = 0; i0 < n_pieces && status == SOTTO_OK; i0++) {
                    status = move(src, dst, row + (size_t)i0 * src->nb[0], piece, staging);
                }
            }
        }
    }
    return status;
}

static enum sotto_status copy(const struct sotto_tensor * src, struct sotto_tensor * dst) {
    bool whole = sotto_is_contiguously_allocated(src);
    sotto_backend_buffer_t buffer = sotto_i_tensor_buffer(dst);
    if (whole && buffer && buffer->iface.copy_tensor && buffer->iface.copy_tensor(buffer, src, dst)) {
        return SOTTO_OK;
    }
    const struct sotto_type_traits * row = sotto_get_type_traits(src->type);
    bool rows = sotto_is_contiguous_rows(src);
    size_t piece = whole ? sotto_nbytes(src) : rows ? sotto_row_size(src->type, src->ne[0]) : row->type_size;
    const struct sotto_allocator * allocator = buffer ? buffer->allocator : NULL;
    bool staged = !in_host(src) && !in_host(dst);
    void * staging = staged ? sotto_malloc(allocator, piece, 1) : NULL;
    if (staged && !staging) {
        return SOTTO_E_MEMORY;
    }
    enum sotto_status status = whole ? move(src, dst, 0, piece, staging)
                                     : move_pieces(src, dst, piece, rows ? 1 : src->ne[0] / row->blck_size, staging);
    sotto_mfree(allocator, staging, piece, 1);
    return status;
}

enum sotto_status sotto_backend_tensor_copy(const struct sotto_tensor * src, struct sotto_tensor * dst) {
    if (!src || !dst) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_backend_tensor_copy: %s is NULL", src ? "dst" : "src");
    }
    if (src == dst) {
        return SOTTO_OK;
    }
    if (!sotto_i_same_layout(src, dst)) {
        return sotto_fail(SOTTO_E_LAYOUT, "sotto_backend_tensor_copy: '%s' and '%s' differ in type, extents or strides",
                          src->name, dst->name);
    }
    bool nothing;
    size_t bytes = sotto_nbytes(src);
    enum sotto_status status = check_range(src, 0, bytes, "sotto_backend_tensor_copy", &nothing);
    if (status == SOTTO_OK) {
        status = check_range(dst, 0, bytes, "sotto_backend_tensor_copy", &nothing);
    }
    return status != SOTTO_OK || nothing ? status : copy(src, dst);
}
