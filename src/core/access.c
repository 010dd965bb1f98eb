/* SPDX-License-Identifier: MIT */
/* Elements of tensors in host memory, one at a time or all at once. */
#include <math.h>
#include <string.h>

#include "core/tensor_impl.h"
#include "sotto/backend.h"

/* ---- scalars of the six types ---- */

union scalar {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    sotto_fp16_t f16;
    sotto_bf16_t bf16;
    float f32;
};

static bool accessible(enum sotto_type type) {
    return sotto_i_is_float_type(type) || type == SOTTO_TYPE_I8 || type == SOTTO_TYPE_I16 || type == SOTTO_TYPE_I32;
}

/* Towards zero; outside the range its nearer end, NaN 0. */
static int32_t to_i32(double x, int32_t low, int32_t high) {
    if (isnan(x)) {
        return 0;
    }
    return x <= low ? low : x >= high ? high : (int32_t)x;
}

/* Every value of the six types is exact in double. */
static double load(enum sotto_type type, const void * at) {
    union scalar u;
    memcpy(&u, at, sotto_get_type_traits(type)->type_size);
    switch ((int)type) {
    case SOTTO_TYPE_I8: return u.i8;
    case SOTTO_TYPE_I16: return u.i16;
    case SOTTO_TYPE_I32: return u.i32;
    case SOTTO_TYPE_F16: return (double)sotto_fp16_to_fp32(u.f16);
    case SOTTO_TYPE_BF16: return (double)sotto_bf16_to_fp32(u.bf16);
    default: return (double)u.f32;
    }
}

static void store(enum sotto_type type, void * at, double value) {
    union scalar u;
    switch ((int)type) {
    case SOTTO_TYPE_I8: u.i8 = (int8_t)to_i32(value, INT8_MIN, INT8_MAX); break;
    case SOTTO_TYPE_I16: u.i16 = (int16_t)to_i32(value, INT16_MIN, INT16_MAX); break;
    case SOTTO_TYPE_I32: u.i32 = to_i32(value, INT32_MIN, INT32_MAX); break;
    case SOTTO_TYPE_F16: u.f16 = sotto_fp32_to_fp16((float)value); break;
    case SOTTO_TYPE_BF16: u.bf16 = sotto_fp32_to_bf16((float)value); break;
    default: u.f32 = (float)value; break;
    }
    memcpy(at, &u, sotto_get_type_traits(type)->type_size);
}

/* ---- checks ---- */

/* There is data in host memory: NULLARG, STATE, UNSUPPORTED otherwise. */
static enum sotto_status check_data(const struct sotto_tensor * tensor, const char * function) {
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "%s: tensor is NULL", function);
    }
    if (!tensor->data) {
        return sotto_fail(SOTTO_E_STATE, "%s: '%s' has no data; allocate it first", function, tensor->name);
    }
    struct sotto_backend_buffer * buffer = sotto_i_tensor_buffer(tensor);
    if (buffer && !sotto_backend_buffer_is_host(buffer)) {
        return sotto_fail(SOTTO_E_UNSUPPORTED,
                          "%s: '%s' is not in plain host memory; use sotto_backend_tensor_set and _get", function,
                          tensor->name);
    }
    return SOTTO_OK;
}

static enum sotto_status check_elements(const struct sotto_tensor * tensor, const char * function) {
    if (!tensor) {
        return sotto_fail(SOTTO_E_NULLARG, "%s: tensor is NULL", function);
    }
    if (!accessible(tensor->type)) {
        return sotto_fail(SOTTO_E_TYPE, "%s: '%s' is %s; elements of i8, i16, i32, f16, bf16 and f32 can be accessed",
                          function, tensor->name, sotto_type_name(tensor->type));
    }
    return check_data(tensor, function);
}

/* Address of an element, NULL and an error if there is none. */
static char * element(const struct sotto_tensor * tensor, const int64_t i[SOTTO_MAX_DIMS], const char * function) {
    if (check_elements(tensor, function) != SOTTO_OK) {
        return NULL;
    }
    char * at = tensor->data;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (i[d] < 0 || i[d] >= tensor->ne[d]) {
            sotto_fail(SOTTO_E_PARAM, "%s: '%s': index i%d = %lld, but ne%d = %lld", function, tensor->name, d,
                       (long long)i[d], d, (long long)tensor->ne[d]);
            return NULL;
        }
        at += (size_t)i[d] * tensor->nb[d];
    }
    return at;
}

/* Likewise for a logical index. */
static char * element_1d(const struct sotto_tensor * tensor, int64_t i, const char * function) {
    if (check_elements(tensor, function) != SOTTO_OK) {
        return NULL;
    }
    if (i < 0 || i >= sotto_nelements(tensor)) {
        sotto_fail(SOTTO_E_PARAM, "%s: '%s': index %lld, but there are %lld elements", function, tensor->name,
                   (long long)i, (long long)sotto_nelements(tensor));
        return NULL;
    }
    int64_t at[SOTTO_MAX_DIMS];
    sotto_unravel_index(tensor, i, &at[0], &at[1], &at[2], &at[3]);
    return element(tensor, at, function);
}

/* ---- public ---- */

void * sotto_get_data(const struct sotto_tensor * tensor) {
    if (!tensor) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_get_data: tensor is NULL");
        return NULL;
    }
    return tensor->data;
}

float * sotto_get_data_f32(const struct sotto_tensor * tensor) {
    if (!tensor) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_get_data_f32: tensor is NULL");
        return NULL;
    }
    if (tensor->type != SOTTO_TYPE_F32) {
        sotto_fail(SOTTO_E_TYPE, "sotto_get_data_f32: '%s' is %s", tensor->name, sotto_type_name(tensor->type));
        return NULL;
    }
    return tensor->data;
}

void sotto_unravel_index(const struct sotto_tensor * tensor, int64_t i, int64_t * i0, int64_t * i1, int64_t * i2,
                         int64_t * i3) {
    int64_t * out[SOTTO_MAX_DIMS] = { i0, i1, i2, i3 };
    bool inside = tensor && i >= 0 && i < sotto_nelements(tensor);
    if (!inside) {
        sotto_fail(tensor ? SOTTO_E_PARAM : SOTTO_E_NULLARG, "sotto_unravel_index: %s",
                   tensor ? "the index is outside the tensor" : "tensor is NULL");
    }
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        int64_t extent = inside ? tensor->ne[d] : 1;
        int64_t at = inside ? i % extent : 0;
        i /= extent;
        if (out[d]) {
            *out[d] = at;
        }
    }
}

int32_t sotto_get_i32_1d(const struct sotto_tensor * tensor, int64_t i) {
    const char * at = element_1d(tensor, i, "sotto_get_i32_1d");
    return at ? to_i32(load(tensor->type, at), INT32_MIN, INT32_MAX) : 0;
}

enum sotto_status sotto_set_i32_1d(struct sotto_tensor * tensor, int64_t i, int32_t value) {
    char * at = element_1d(tensor, i, "sotto_set_i32_1d");
    if (!at) {
        return sotto_last_error();
    }
    store(tensor->type, at, value);
    return SOTTO_OK;
}

float sotto_get_f32_1d(const struct sotto_tensor * tensor, int64_t i) {
    const char * at = element_1d(tensor, i, "sotto_get_f32_1d");
    return at ? (float)load(tensor->type, at) : 0.0f;
}

enum sotto_status sotto_set_f32_1d(struct sotto_tensor * tensor, int64_t i, float value) {
    char * at = element_1d(tensor, i, "sotto_set_f32_1d");
    if (!at) {
        return sotto_last_error();
    }
    store(tensor->type, at, (double)value);
    return SOTTO_OK;
}

int32_t sotto_get_i32_nd(const struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const char * at = element(tensor, (int64_t[]){ i0, i1, i2, i3 }, "sotto_get_i32_nd");
    return at ? to_i32(load(tensor->type, at), INT32_MIN, INT32_MAX) : 0;
}

enum sotto_status sotto_set_i32_nd(struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3,
                                   int32_t value) {
    char * at = element(tensor, (int64_t[]){ i0, i1, i2, i3 }, "sotto_set_i32_nd");
    if (!at) {
        return sotto_last_error();
    }
    store(tensor->type, at, value);
    return SOTTO_OK;
}

float sotto_get_f32_nd(const struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const char * at = element(tensor, (int64_t[]){ i0, i1, i2, i3 }, "sotto_get_f32_nd");
    return at ? (float)load(tensor->type, at) : 0.0f;
}

enum sotto_status sotto_set_f32_nd(struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3,
                                   float value) {
    char * at = element(tensor, (int64_t[]){ i0, i1, i2, i3 }, "sotto_set_f32_nd");
    if (!at) {
        return sotto_last_error();
    }
    store(tensor->type, at, (double)value);
    return SOTTO_OK;
}

/* ---- filling ---- */

/* Copy `size` bytes of a pattern to every block of the tensor, leaving gaps alone. */
static void fill(struct sotto_tensor * tensor, const void * pattern, size_t size) {
    int64_t blocks = tensor->ne[0] / sotto_get_type_traits(tensor->type)->blck_size;
    for (int64_t i3 = 0; i3 < tensor->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < tensor->ne[2]; i2++) {
            for (int64_t i1 = 0; i1 < tensor->ne[1]; i1++) {
                char * at = (char *)tensor->data + (size_t)i1 * tensor->nb[1] + (size_t)i2 * tensor->nb[2] +
                            (size_t)i3 * tensor->nb[3];
                for (int64_t i0 = 0; i0 < blocks; i0++) {
                    memcpy(at + (size_t)i0 * tensor->nb[0], pattern, size);
                }
            }
        }
    }
}

static struct sotto_tensor * fill_value(struct sotto_tensor * tensor, double value, const char * function) {
    if (tensor && accessible(tensor->type) && sotto_is_empty(tensor)) {
        return tensor;
    }
    if (check_elements(tensor, function) != SOTTO_OK) {
        return NULL;
    }
    char pattern[sizeof(float)];
    store(tensor->type, pattern, value);
    fill(tensor, pattern, sotto_get_type_traits(tensor->type)->type_size);
    return tensor;
}

struct sotto_tensor * sotto_set_i32(struct sotto_tensor * tensor, int32_t value) {
    return fill_value(tensor, value, "sotto_set_i32");
}

struct sotto_tensor * sotto_set_f32(struct sotto_tensor * tensor, float value) {
    return fill_value(tensor, (double)value, "sotto_set_f32");
}

struct sotto_tensor * sotto_set_zero(struct sotto_tensor * tensor) {
    static const char zeros[512]; /* the longest block has 292 bytes */
    if (tensor && sotto_is_empty(tensor)) {
        return tensor;
    }
    struct sotto_backend_buffer * buffer = tensor ? sotto_i_tensor_buffer(tensor) : NULL;
    if (buffer && !sotto_backend_buffer_is_host(buffer)) {
        return sotto_backend_tensor_memset(tensor, 0, 0, sotto_nbytes(tensor)) == SOTTO_OK ? tensor : NULL;
    }
    if (check_data(tensor, "sotto_set_zero") != SOTTO_OK) {
        return NULL;
    }
    enum sotto_status status = sotto_i_type_status(tensor->type);
    if (status != SOTTO_OK) {
        sotto_fail(status, "sotto_set_zero: type %d: %s", (int)tensor->type, sotto_type_name(tensor->type));
        return NULL;
    }
    fill(tensor, zeros, sotto_get_type_traits(tensor->type)->type_size);
    return tensor;
}
