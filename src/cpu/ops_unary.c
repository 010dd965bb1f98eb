/* SPDX-License-Identifier: MIT */
/* Element functions of one operand: y = f(a), f32, f16 or bf16, calculated in f32 and rounded once. */
#include <string.h>

#include "core/op.h"
#include "cpu/rows.h"

static bool supports(const struct sotto_tensor * node) {
    return sotto_i_none_packed(node) && sotto_i_is_float(node->type) && node->type == node->src[0]->type;
}

/* ---- UNARY ---- */

static bool supports_unary(const struct sotto_tensor * node) {
    OP_PARAMS(unary, node, params);
    return supports(node) && (params.op == SOTTO_UNARY_OP_GELU || params.op == SOTTO_UNARY_OP_GELU_ERF);
}

static void gelu(const struct sotto_i_vec_kernels * k, const float * x, float * y, int64_t n, const void * params) {
    (void)params;
    k->gelu(x, y, n);
}

static void gelu_erf(const struct sotto_i_vec_kernels * k, const float * x, float * y, int64_t n, const void * params) {
    (void)params;
    k->gelu_erf(x, y, n);
}

static enum sotto_status run_unary(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                   int64_t n_chunks) {
    OP_PARAMS(unary, node, params);
    return sotto_i_run_map(task, node, chunk, n_chunks, params.op == SOTTO_UNARY_OP_GELU ? gelu : gelu_erf, NULL);
}

const struct sotto_i_cpu_op sotto_i_cpu_UNARY = { supports_unary, sotto_i_prepare_map, run_unary };

/* ---- SCALE ---- */

static void scale(const struct sotto_i_vec_kernels * k, const float * x, float * y, int64_t n, const void * params) {
    const struct params_scale * p = params;
    if (p->bias == 0.0f)
        k->scale(x, p->scale, y, n);
    else
        k->scale_bias(x, p->scale, p->bias, y, n);
}

static enum sotto_status run_scale(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                   int64_t n_chunks) {
    OP_PARAMS(scale, node, params);
    return sotto_i_run_map(task, node, chunk, n_chunks, scale, &params);
}

const struct sotto_i_cpu_op sotto_i_cpu_SCALE = { supports, sotto_i_prepare_map, run_scale };
