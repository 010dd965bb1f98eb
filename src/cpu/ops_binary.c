/* SPDX-License-Identifier: MIT */
/* y = a + b and y = a * b: b tiles a, any strides, calculated in f32 and rounded once. */
#include "cpu/rows.h"

/* Types of (a, b, y): all alike, or b in f32 with y like a or, as add_cast makes it, f32. */
static bool supports(const struct sotto_tensor * node) {
    const enum sotto_type a = node->src[0]->type, b = node->src[1]->type, y = node->type;
    if (!sotto_i_none_packed(node) || !sotto_i_is_float(a))
        return false;
    return (a == b && a == y) || (b == SOTTO_TYPE_F32 && (y == a || y == SOTTO_TYPE_F32));
}

static void add(const struct sotto_i_vec_kernels * k, const float * a, const float * b, float * y, int64_t n) {
    k->add(a, b, y, n);
}

static enum sotto_status run_add(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                 int64_t n_chunks) {
    return sotto_i_run_map2(task, node, chunk, n_chunks, add);
}

const struct sotto_i_cpu_op sotto_i_cpu_ADD = { supports, sotto_i_prepare_map, run_add };

static void mul(const struct sotto_i_vec_kernels * k, const float * a, const float * b, float * y, int64_t n) {
    k->mul(a, b, y, n);
}

static enum sotto_status run_mul(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                 int64_t n_chunks) {
    return sotto_i_run_map2(task, node, chunk, n_chunks, mul);
}

const struct sotto_i_cpu_op sotto_i_cpu_MUL = { supports, sotto_i_prepare_map, run_mul };
