/* SPDX-License-Identifier: MIT */
/* Making tensors: fresh ones and views, their names and flags. */
#include "sotto/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/checked.h"
#include "core/tensor_impl.h"

/* ---- records ---- */

static enum sotto_status check_type(struct sotto_context * ctx, const char * function, enum sotto_type type) {
    enum sotto_status status = sotto_i_type_status(type);
    if (status != SOTTO_OK) {
        sotto_i_context_fail(ctx, status, "%s: type %d: %s", function, (int)type, sotto_type_name(type));
    }
    return status;
}

static enum sotto_status check_extents(struct sotto_context * ctx, const char * function, enum sotto_type type,
                                       const int64_t ne[SOTTO_MAX_DIMS]) {
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (ne[d] < 0) {
            return sotto_i_context_fail(ctx, SOTTO_E_SHAPE, "%s: extent ne%d = %lld is negative", function, d,
                                        (long long)ne[d]);
        }
    }
    const struct sotto_type_traits * row = sotto_get_type_traits(type);
    if (ne[0] % row->blck_size != 0) {
        return sotto_i_context_fail(ctx, SOTTO_E_SHAPE, "%s: ne0 = %lld: a row of %s is a multiple of %lld elements",
                                    function, (long long)ne[0], row->type_name, (long long)row->blck_size);
    }
    return SOTTO_OK;
}

/* Find the owner of a view's storage and check that the view stays inside. */
static enum sotto_status check_view(struct sotto_context * ctx, const char * function,
                                    const struct sotto_i_shape * shape, size_t dense, struct sotto_tensor ** owner,
                                    size_t * offset) {
    struct sotto_tensor * from = shape->view_of;
    *owner = from->view_src ? from->view_src : from;
    size_t held = sotto_nbytes(*owner);
    size_t span;
    size_t end = 0;
    size_t strided_end = 0;
    bool fits = sotto_i_add(from->view_src ? from->view_offs : 0, shape->view_offs, offset) &&
                sotto_i_span(shape->type, shape->ne, shape->nb, &span) && sotto_i_add(*offset, dense, &end) &&
                sotto_i_add(*offset, span, &strided_end);
    if (fits && (dense == 0 || (end <= held && strided_end <= held))) {
        return SOTTO_OK;
    }
    return sotto_i_context_fail(ctx, SOTTO_E_BOUNDS,
                                "%s: the view of [%lld, %lld, %lld, %lld] %s, dense or with its strides, at byte %zu "
                                "does not fit in the %zu bytes of '%s'",
                                function, (long long)shape->ne[0], (long long)shape->ne[1], (long long)shape->ne[2],
                                (long long)shape->ne[3], sotto_type_name(shape->type), shape->view_offs, held,
                                (*owner)->name);
}

struct sotto_tensor * sotto_i_tensor_make(struct sotto_context * ctx, const char * function,
                                          const struct sotto_i_shape * wanted) {
    struct sotto_i_shape shape = *wanted;
    size_t nb[SOTTO_MAX_DIMS];
    size_t bytes;
    if (check_type(ctx, function, shape.type) != SOTTO_OK ||
        check_extents(ctx, function, shape.type, shape.ne) != SOTTO_OK) {
        return NULL;
    }
    bool fits = sotto_i_dense(shape.type, shape.ne, nb, &bytes);
    if (!fits) {
        sotto_i_context_fail(ctx, shape.view_of ? SOTTO_E_BOUNDS : SOTTO_E_MEMORY,
                             "%s: the size of [%lld, %lld, %lld, %lld] %s overflows", function, (long long)shape.ne[0],
                             (long long)shape.ne[1], (long long)shape.ne[2], (long long)shape.ne[3],
                             sotto_type_name(shape.type));
        return NULL;
    }
    if (!shape.nb[0] && !shape.nb[1] && !shape.nb[2] && !shape.nb[3]) {
        memcpy(shape.nb, nb, sizeof(nb));
    }
    struct sotto_tensor * owner = NULL;
    size_t offset = 0;
    if (shape.view_of && check_view(ctx, function, &shape, bytes, &owner, &offset) != SOTTO_OK) {
        return NULL;
    }
    bool with_data = !owner && !sotto_get_no_alloc(ctx);
    size_t size = sizeof(struct sotto_tensor);
    if (with_data && !sotto_i_add(size, bytes, &size)) {
        sotto_i_context_fail(ctx, SOTTO_E_MEMORY, "%s: a tensor of %zu bytes overflows", function, bytes);
        return NULL;
    }
    struct sotto_tensor * tensor = sotto_i_arena_new(ctx, function, SOTTO_I_OBJECT_TENSOR, size);
    if (!tensor) {
        return NULL;
    }
    memset(tensor, 0, sizeof(*tensor));
    tensor->type = shape.type;
    memcpy(tensor->ne, shape.ne, sizeof(tensor->ne));
    memcpy(tensor->nb, shape.nb, sizeof(tensor->nb));
    if (owner) {
        tensor->view_src = owner;
        tensor->view_offs = offset;
        tensor->data = owner->data ? (char *)owner->data + offset : NULL;
    } else if (with_data) {
        tensor->data = tensor + 1;
    }
    return tensor;
}

size_t sotto_tensor_overhead(void) {
    size_t bytes = 0;
    sotto_i_arena_size(sizeof(struct sotto_tensor), &bytes);
    return bytes;
}

struct sotto_backend_buffer * sotto_i_tensor_buffer(const struct sotto_tensor * a) {
    return a->view_src ? a->view_src->buffer : a->buffer;
}

/* ---- fresh tensors and views ---- */

struct sotto_tensor * sotto_new_tensor(struct sotto_context * ctx, enum sotto_type type, int n_dims,
                                       const int64_t * ne) {
    if (!ctx || !ne) {
        sotto_i_context_fail(ctx, SOTTO_E_NULLARG, "sotto_new_tensor: %s is NULL", ctx ? "ne" : "ctx");
        return NULL;
    }
    if (check_type(ctx, "sotto_new_tensor", type) != SOTTO_OK) {
        return NULL;
    }
    if (n_dims < 1 || n_dims > SOTTO_MAX_DIMS) {
        sotto_i_context_fail(ctx, SOTTO_E_PARAM, "sotto_new_tensor: n_dims = %d, must be 1 to %d", n_dims,
                             SOTTO_MAX_DIMS);
        return NULL;
    }
    struct sotto_i_shape shape = { .type = type };
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        shape.ne[d] = d < n_dims ? ne[d] : 1;
    }
    return sotto_i_tensor_make(ctx, "sotto_new_tensor", &shape);
}

struct sotto_tensor * sotto_new_tensor_1d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0) {
    return sotto_new_tensor(ctx, type, 1, &ne0);
}

struct sotto_tensor * sotto_new_tensor_2d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0, int64_t ne1) {
    int64_t ne[] = { ne0, ne1 };
    return sotto_new_tensor(ctx, type, 2, ne);
}

struct sotto_tensor * sotto_new_tensor_3d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0, int64_t ne1,
                                          int64_t ne2) {
    int64_t ne[] = { ne0, ne1, ne2 };
    return sotto_new_tensor(ctx, type, 3, ne);
}

struct sotto_tensor * sotto_new_tensor_4d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0, int64_t ne1,
                                          int64_t ne2, int64_t ne3) {
    int64_t ne[] = { ne0, ne1, ne2, ne3 };
    return sotto_new_tensor(ctx, type, 4, ne);
}

/* A one-element tensor that has data; NULL and STATE in a context without. */
static struct sotto_tensor * new_scalar(struct sotto_context * ctx, const char * function, enum sotto_type type) {
    if (ctx && sotto_get_no_alloc(ctx)) {
        sotto_i_context_fail(ctx, SOTTO_E_STATE, "%s: the context was made with no_alloc, so there is no data to set",
                             function);
        return NULL;
    }
    return sotto_new_tensor_1d(ctx, type, 1);
}

struct sotto_tensor * sotto_new_i32(struct sotto_context * ctx, int32_t value) {
    struct sotto_tensor * tensor = new_scalar(ctx, "sotto_new_i32", SOTTO_TYPE_I32);
    return tensor ? sotto_set_i32(tensor, value) : NULL;
}

struct sotto_tensor * sotto_new_f32(struct sotto_context * ctx, float value) {
    struct sotto_tensor * tensor = new_scalar(ctx, "sotto_new_f32", SOTTO_TYPE_F32);
    return tensor ? sotto_set_f32(tensor, value) : NULL;
}

/* True if ctx and src are there. A missing src in a context that is in error already passes quietly. */
static bool given(struct sotto_context * ctx, const struct sotto_tensor * src, const char * function) {
    if (ctx && src) {
        return true;
    }
    if (!ctx || sotto_context_status(ctx) == SOTTO_OK) {
        sotto_i_context_fail(ctx, SOTTO_E_NULLARG, "%s: %s is NULL", function, ctx ? "src" : "ctx");
    }
    return false;
}

struct sotto_tensor * sotto_dup_tensor(struct sotto_context * ctx, const struct sotto_tensor * src) {
    if (!given(ctx, src, "sotto_dup_tensor")) {
        return NULL;
    }
    struct sotto_i_shape shape = { .type = src->type };
    memcpy(shape.ne, src->ne, sizeof(shape.ne));
    return sotto_i_tensor_make(ctx, "sotto_dup_tensor", &shape);
}

struct sotto_tensor * sotto_view_tensor(struct sotto_context * ctx, struct sotto_tensor * src) {
    if (!given(ctx, src, "sotto_view_tensor")) {
        return NULL;
    }
    struct sotto_i_shape shape = { .type = src->type, .view_of = src };
    memcpy(shape.ne, src->ne, sizeof(shape.ne));
    memcpy(shape.nb, src->nb, sizeof(shape.nb));
    struct sotto_tensor * view = sotto_i_tensor_make(ctx, "sotto_view_tensor", &shape);
    return view ? sotto_format_name(view, "%s (view)", src->name) : NULL;
}

/* ---- names ---- */

const char * sotto_get_name(const struct sotto_tensor * tensor) {
    if (!tensor) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_get_name: tensor is NULL");
        return "";
    }
    return tensor->name;
}

/* Bytes of `text` to keep when only SOTTO_MAX_NAME - 1 fit: no half of a UTF-8 character, unless it is not UTF-8. */
static size_t cut(const char * text, size_t length) {
    size_t most = SOTTO_MAX_NAME - 1;
    if (length <= most) {
        return length;
    }
    for (size_t n = most; n > most - 4; n--) {
        if (((unsigned char)text[n] & 0xC0) != 0x80) {
            return n;
        }
    }
    return most;
}

static struct sotto_tensor * put_name(struct sotto_tensor * tensor, const char * text, size_t length) {
    size_t n = cut(text, length);
    memmove(tensor->name, text, n);
    memset(tensor->name + n, 0, SOTTO_MAX_NAME - n);
    return tensor;
}

struct sotto_tensor * sotto_set_name(struct sotto_tensor * tensor, const char * name) {
    if (!tensor || !name) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_set_name: %s is NULL", tensor ? "name" : "tensor");
        return NULL;
    }
    size_t length = 0;
    while (length < SOTTO_MAX_NAME && name[length]) {
        length++;
    }
    return put_name(tensor, name, length);
}

struct sotto_tensor * sotto_format_name(struct sotto_tensor * tensor, const char * format, ...) {
    if (!tensor || !format) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_format_name: %s is NULL", tensor ? "format" : "tensor");
        return NULL;
    }
    char text[SOTTO_MAX_NAME + 1]; /* the arguments may be the name itself; one more byte shows where to cut */
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (length < 0) {
        sotto_fail(SOTTO_E_PARAM, "sotto_format_name: the format cannot be printed");
        return NULL;
    }
    return put_name(tensor, text, length > SOTTO_MAX_NAME ? SOTTO_MAX_NAME : (size_t)length);
}

/* ---- flags ---- */

void sotto_set_input(struct sotto_tensor * tensor) {
    if (!tensor) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_set_input: tensor is NULL");
        return;
    }
    tensor->flags |= SOTTO_TENSOR_FLAG_INPUT;
}

void sotto_set_output(struct sotto_tensor * tensor) {
    if (!tensor) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_set_output: tensor is NULL");
        return;
    }
    tensor->flags |= SOTTO_TENSOR_FLAG_OUTPUT;
    if (tensor->view_src) {
        tensor->view_src->flags |= SOTTO_TENSOR_FLAG_OUTPUT;
    }
}

enum sotto_status sotto_set_param(struct sotto_tensor * tensor) {
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_set_param: tensor is NULL");
    }
    if (tensor->op != 0) {
        return sotto_fail(SOTTO_E_STATE, "sotto_set_param: '%s' is computed; only data can be a parameter",
                          tensor->name);
    }
    tensor->flags |= SOTTO_TENSOR_FLAG_PARAM;
    return SOTTO_OK;
}

enum sotto_status sotto_set_loss(struct sotto_tensor * tensor) {
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_set_loss: tensor is NULL");
    }
    if (!sotto_is_scalar(tensor)) {
        return sotto_fail(SOTTO_E_SHAPE, "sotto_set_loss: '%s' has %lld elements, must have one", tensor->name,
                          (long long)sotto_nelements(tensor));
    }
    if (tensor->type != SOTTO_TYPE_F32) {
        return sotto_fail(SOTTO_E_TYPE, "sotto_set_loss: '%s' is %s, must be f32", tensor->name,
                          sotto_type_name(tensor->type));
    }
    tensor->flags |= SOTTO_TENSOR_FLAG_LOSS;
    return SOTTO_OK;
}
