/* SPDX-License-Identifier: MIT */
/* Sizes of tensors and questions about their layout. Records are open, so nothing here trusts their fields: unknown
 * types have empty rows, negative extents no bytes. */
#include "sotto/tensor.h"

#include <string.h>

#include "core/checked.h"
#include "core/tensor_impl.h"

/* False and NULLARG for a missing tensor. */
static bool given(const struct sotto_tensor * tensor, const char * function) {
    if (!tensor) {
        sotto_fail(SOTTO_E_NULLARG, "%s: tensor is NULL", function);
    }
    return tensor;
}

static bool both(const struct sotto_tensor * a, const struct sotto_tensor * b, const char * function) {
    return given(a, function) && given(b, function);
}

/* ---- sizes ---- */

bool sotto_i_dense(enum sotto_type type, const int64_t ne[SOTTO_MAX_DIMS], size_t nb[SOTTO_MAX_DIMS], size_t * bytes) {
    const struct sotto_type_traits * row = sotto_get_type_traits(type);
    int64_t elements = ne[0];
    uint64_t blocks = (uint64_t)(ne[0] / row->blck_size);
    size_t size;
    if (blocks > SIZE_MAX || !sotto_i_mul((size_t)blocks, row->type_size, &size)) {
        return false;
    }
    nb[0] = row->type_size;
    for (int d = 1; d < SOTTO_MAX_DIMS; d++) {
        nb[d] = size;
        if ((uint64_t)ne[d] > SIZE_MAX || !sotto_i_mul(size, (size_t)ne[d], &size) ||
            !sotto_i_mul_i64(elements, ne[d], &elements)) {
            return false;
        }
    }
    *bytes = size;
    return size <= PTRDIFF_MAX;
}

bool sotto_i_span(enum sotto_type type, const int64_t ne[SOTTO_MAX_DIMS], const size_t nb[SOTTO_MAX_DIMS],
                  size_t * bytes) {
    const struct sotto_type_traits * row = sotto_get_type_traits(type);
    *bytes = 0;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (ne[d] <= 0) {
            return true;
        }
    }
    if (row->blck_size == 0) {
        return true;
    }
    size_t span = row->type_size;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        int64_t per_step = d == 0 ? row->blck_size : 1;
        uint64_t steps = (uint64_t)((ne[d] - 1) / per_step);
        size_t reach;
        if (steps > SIZE_MAX || !sotto_i_mul((size_t)steps, nb[d], &reach) || !sotto_i_add(span, reach, &span)) {
            return false;
        }
    }
    *bytes = span;
    return true;
}

size_t sotto_nbytes(const struct sotto_tensor * tensor) {
    size_t bytes = 0;
    if (given(tensor, "sotto_nbytes") && !sotto_i_span(tensor->type, tensor->ne, tensor->nb, &bytes)) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_nbytes: the size of '%s' overflows", tensor->name);
        return 0;
    }
    return bytes;
}

size_t sotto_nbytes_pad(const struct sotto_tensor * tensor) {
    size_t bytes = 0;
    if (given(tensor, "sotto_nbytes_pad") && !sotto_i_align_up(sotto_nbytes(tensor), SOTTO_MEM_ALIGN, &bytes)) {
        sotto_fail(SOTTO_E_MEMORY, "sotto_nbytes_pad: the size of '%s' overflows", tensor->name);
        return 0;
    }
    return bytes;
}

/* Product of the extents from `first`; 0 if one is not positive or it overflows. */
static int64_t product(const struct sotto_tensor * tensor, int first) {
    int64_t n = 1;
    bool fits = true;
    for (int d = first; d < SOTTO_MAX_DIMS; d++) {
        if (tensor->ne[d] <= 0) {
            return 0;
        }
        fits = fits && sotto_i_mul_i64(n, tensor->ne[d], &n);
    }
    if (!fits) {
        sotto_fail(SOTTO_E_MEMORY, "'%s': the number of elements overflows", tensor->name);
    }
    return fits ? n : 0;
}

int64_t sotto_nelements(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_nelements") ? product(tensor, 0) : 0;
}

int64_t sotto_nrows(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_nrows") ? product(tensor, 1) : 0;
}

size_t sotto_element_size(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_element_size") ? sotto_type_size(tensor->type) : 0;
}

int sotto_n_dims(const struct sotto_tensor * tensor) {
    int d = SOTTO_MAX_DIMS;
    if (!given(tensor, "sotto_n_dims")) {
        return 0;
    }
    while (d > 1 && tensor->ne[d - 1] <= 1) {
        d--;
    }
    return d;
}

/* ---- shape ---- */

bool sotto_is_empty(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_is_empty") &&
           (tensor->ne[0] == 0 || tensor->ne[1] == 0 || tensor->ne[2] == 0 || tensor->ne[3] == 0);
}

bool sotto_is_scalar(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_is_scalar") && tensor->ne[0] == 1 && sotto_is_vector(tensor);
}

bool sotto_is_vector(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_is_vector") && tensor->ne[1] == 1 && sotto_is_matrix(tensor);
}

bool sotto_is_matrix(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_is_matrix") && tensor->ne[2] == 1 && tensor->ne[3] == 1;
}

bool sotto_is_3d(const struct sotto_tensor * tensor) { return given(tensor, "sotto_is_3d") && tensor->ne[3] == 1; }

bool sotto_is_view(const struct sotto_tensor * tensor) { return given(tensor, "sotto_is_view") && tensor->view_src; }

bool sotto_are_same_shape(const struct sotto_tensor * a, const struct sotto_tensor * b) {
    return both(a, b, "sotto_are_same_shape") && memcmp(a->ne, b->ne, sizeof(a->ne)) == 0;
}

bool sotto_are_same_stride(const struct sotto_tensor * a, const struct sotto_tensor * b) {
    return both(a, b, "sotto_are_same_stride") && memcmp(a->nb, b->nb, sizeof(a->nb)) == 0;
}

bool sotto_can_repeat(const struct sotto_tensor * a, const struct sotto_tensor * b) {
    if (!both(a, b, "sotto_can_repeat")) {
        return false;
    }
    if (sotto_is_empty(a)) {
        return sotto_is_empty(b);
    }
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (b->ne[d] % a->ne[d] != 0) {
            return false;
        }
    }
    return true;
}

bool sotto_i_same_layout(const struct sotto_tensor * a, const struct sotto_tensor * b) {
    return a->type == b->type && sotto_are_same_shape(a, b) && sotto_are_same_stride(a, b);
}

/* ---- strides ---- */

bool sotto_is_transposed(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_is_transposed") && tensor->nb[0] > tensor->nb[1];
}

bool sotto_is_permuted(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_is_permuted") &&
           (tensor->nb[0] > tensor->nb[1] || tensor->nb[1] > tensor->nb[2] || tensor->nb[2] > tensor->nb[3]);
}

/* Rule C(free, n) of the specification: dimensions 0 to n - 1 are packed, those from 1 to `free` may have any stride.
 * A dimension of extent 1 may carry any stride, too: the answer is whether strides can be found for such dimensions
 * that satisfy the rule, so after a free dimension of extent 1 the next longer one may lie anywhere. */
static bool packed(const struct sotto_tensor * tensor, int free, int n, const char * function) {
    if (!given(tensor, function)) {
        return false;
    }
    const struct sotto_type_traits * row = sotto_get_type_traits(tensor->type);
    if (row->blck_size == 0 || (tensor->ne[0] != row->blck_size && tensor->nb[0] != row->type_size)) {
        return false;
    }
    size_t want = row->type_size * (size_t)(tensor->ne[0] / row->blck_size);
    bool known = true;
    for (int d = 1; d < n; d++) {
        if (tensor->ne[d] == 1) {
            known = known && d > free;
            continue;
        }
        if (known && d > free && tensor->nb[d] != want) {
            return false;
        }
        want = (size_t)tensor->ne[d] * tensor->nb[d];
        known = true;
    }
    return true;
}

bool sotto_is_contiguous(const struct sotto_tensor * tensor) { return packed(tensor, 0, 4, "sotto_is_contiguous"); }

bool sotto_is_contiguous_0(const struct sotto_tensor * tensor) { return packed(tensor, 0, 4, "sotto_is_contiguous_0"); }

bool sotto_is_contiguous_1(const struct sotto_tensor * tensor) { return packed(tensor, 1, 4, "sotto_is_contiguous_1"); }

bool sotto_is_contiguous_2(const struct sotto_tensor * tensor) { return packed(tensor, 2, 4, "sotto_is_contiguous_2"); }

bool sotto_is_contiguous_to_1(const struct sotto_tensor * tensor) {
    return packed(tensor, 0, 1, "sotto_is_contiguous_to_1");
}

bool sotto_is_contiguous_to_2(const struct sotto_tensor * tensor) {
    return packed(tensor, 0, 2, "sotto_is_contiguous_to_2");
}

bool sotto_is_contiguous_to_3(const struct sotto_tensor * tensor) {
    return packed(tensor, 0, 3, "sotto_is_contiguous_to_3");
}

bool sotto_is_contiguous_rows(const struct sotto_tensor * tensor) {
    return packed(tensor, 0, 1, "sotto_is_contiguous_rows");
}

bool sotto_is_contiguously_allocated(const struct sotto_tensor * tensor) {
    size_t nb[SOTTO_MAX_DIMS];
    size_t dense;
    if (!given(tensor, "sotto_is_contiguously_allocated") || sotto_i_type_status(tensor->type) != SOTTO_OK) {
        return false;
    }
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (tensor->ne[d] <= 0) {
            return true; /* no bytes, no elements */
        }
    }
    return sotto_i_dense(tensor->type, tensor->ne, nb, &dense) && sotto_nbytes(tensor) == dense;
}

bool sotto_is_contiguous_channels(const struct sotto_tensor * tensor) {
    return given(tensor, "sotto_is_contiguous_channels") && tensor->nb[0] > tensor->nb[2] &&
           tensor->nb[1] > tensor->nb[0] && tensor->nb[2] == sotto_get_type_traits(tensor->type)->type_size;
}

bool sotto_i_repeats_itself(const struct sotto_tensor * a) {
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        int64_t one = d == 0 ? sotto_get_type_traits(a->type)->blck_size : 1;
        if (a->ne[d] > one && a->nb[d] == 0) {
            return !sotto_is_empty(a); /* dense strides of an empty tensor are 0, too */
        }
    }
    return false;
}
