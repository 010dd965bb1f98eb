/* SPDX-License-Identifier: MIT */
/* Row by row: sums, normalisation, softmax. A row that is not dense f32 is brought into the thread's scratch first. */
#include <math.h>
#include <string.h>

#include "core/op.h"
#include "cpu/alibi.h"
#include "cpu/rows.h"

static bool supports(const struct sotto_tensor * node) {
    return sotto_i_none_packed(node) && node->src[0]->type == SOTTO_TYPE_F32 && node->type == SOTTO_TYPE_F32;
}

static bool is_dense(const struct sotto_tensor * tensor) { return tensor->nb[0] == sizeof(float); }

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const struct sotto_tensor * a = node->src[0];
    sotto_i_prepare_units(sotto_nrows(a), sotto_nelements(a), n_threads, work);
    if (!is_dense(a) || !is_dense(node))
        work->scratch = (size_t)a->ne[0] * sizeof(float);
}

/* Indices of row r of t. */
static void row_index(const struct sotto_tensor * t, int64_t r, int64_t at[SOTTO_MAX_DIMS]) {
    at[0] = 0;
    at[1] = r % t->ne[1];
    at[2] = r / t->ne[1] % t->ne[2];
    at[3] = r / t->ne[1] / t->ne[2];
}

/* ---- SUM_ROWS ---- */

static enum sotto_status run_sum_rows(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                      int64_t n_chunks) {
    const struct sotto_i_vec_kernels * k = &task->kernels->vec;
    const struct sotto_i_operand a = sotto_i_as_operand(node->src[0]), y = sotto_i_as_operand(node);
    int64_t r, last, at[SOTTO_MAX_DIMS];
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &r, &last);
    for (; r < last; r++) {
        row_index(node, r, at);
        const char * row = sotto_i_operand_row(&a, at[1], at[2], at[3]);
        const float * x = sotto_i_load(k, &a, row, 0, a.ne[0], task->scratch);
        *(float *)sotto_i_operand_row(&y, at[1], at[2], at[3]) = k->sum(x, a.ne[0]);
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_SUM_ROWS = { supports, prepare, run_sum_rows };

/* ---- NORM ---- */

static void norm_row(const struct sotto_i_vec_kernels * k, const float * x, float * y, int64_t n, float eps) {
    const float mean = k->sum(x, n) / (float)n;
    const float variance = k->sum_sq_diff(x, mean, n) / (float)n;
    k->shift_scale(x, mean, 1.0f / sqrtf(variance + eps), y, n);
}

static enum sotto_status run_norm(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                  int64_t n_chunks) {
    OP_PARAMS(eps, node, params);
    const struct sotto_i_vec_kernels * k = &task->kernels->vec;
    const struct sotto_i_operand a = sotto_i_as_operand(node->src[0]), y = sotto_i_as_operand(node);
    const int64_t n = a.ne[0];
    int64_t r, last, at[SOTTO_MAX_DIMS];
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &r, &last);
    for (; r < last; r++) {
        row_index(node, r, at);
        char * y_row = sotto_i_operand_row(&y, at[1], at[2], at[3]);
        const float * x = sotto_i_load(k, &a, sotto_i_operand_row(&a, at[1], at[2], at[3]), 0, n, task->scratch);
        float * out = sotto_i_target(&y, y_row, 0, task->scratch);
        norm_row(k, x, out, n, params.eps);
        sotto_i_store(k, &y, y_row, 0, n, out);
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_NORM = { supports, prepare, run_norm };

/* ---- SOFT_MAX ---- */

static bool supports_soft_max(const struct sotto_tensor * node) {
    const struct sotto_tensor *mask = node->src[1], *sinks = node->src[2];
    if (mask && mask->type != SOTTO_TYPE_F32 && mask->type != SOTTO_TYPE_F16)
        return false;
    return supports(node) && (!sinks || sinks->type == SOTTO_TYPE_F32);
}

/* z = fma(slope, mask, z) */
static void add_mask(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * mask, const char * row,
                     float slope, float * z, int64_t n) {
    float buffer[SOTTO_I_PIECE];
    for (int64_t i = 0; i < n; i += SOTTO_I_PIECE) {
        const int64_t len = n - i < SOTTO_I_PIECE ? n - i : SOTTO_I_PIECE;
        k->add_scaled(sotto_i_load(k, mask, row, i, len, buffer), slope, z + i, len);
    }
}

/* In place. A sink is one more logit that only takes part in the denominator. Nothing but -inf gives zeros. */
static void soft_max_row(const struct sotto_i_vec_kernels * k, float * z, int64_t n, const float * sink) {
    float m = k->max(z, n);
    if (sink && !isnan(m) && !(m > *sink))
        m = *sink;
    if (m == -INFINITY) {
        memset(z, 0, (size_t)n * sizeof(*z));
        return;
    }
    float s = k->exp_sum(z, m, z, n);
    if (sink) {
        float e = *sink;
        s += k->exp_sum(&e, m, &e, 1);
    }
    k->scale(z, 1.0f / s, z, n);
}

static enum sotto_status run_soft_max(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                      int64_t n_chunks) {
    OP_PARAMS(soft_max, node, params);
    const struct sotto_i_vec_kernels * k = &task->kernels->vec;
    const struct sotto_tensor *mask = node->src[1], *sinks = node->src[2];
    const struct sotto_i_operand a = sotto_i_as_operand(node->src[0]), y = sotto_i_as_operand(node);
    const struct sotto_i_operand m = mask ? sotto_i_as_operand(mask) : a;
    const int64_t n = a.ne[0];
    int64_t r, last, at[SOTTO_MAX_DIMS];
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &r, &last);
    for (; r < last; r++) {
        row_index(node, r, at);
        char * y_row = sotto_i_operand_row(&y, at[1], at[2], at[3]);
        const float * x = sotto_i_load(k, &a, sotto_i_operand_row(&a, at[1], at[2], at[3]), 0, n, task->scratch);
        float * z = sotto_i_target(&y, y_row, 0, task->scratch);
        k->scale(x, params.scale, z, n);
        if (mask) {
            const float slope = sotto_i_alibi_slope(params.max_bias, a.ne[2], at[2]);
            add_mask(k, &m, sotto_i_operand_row(&m, at[1], at[2], at[3]), slope, z, n);
        }
        soft_max_row(k, z, n, sinks ? (const float *)((char *)sinks->data + (size_t)at[2] * sinks->nb[0]) : NULL);
        sotto_i_store(k, &y, y_row, 0, n, z);
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_SOFT_MAX = { supports_soft_max, prepare, run_soft_max };
