/* SPDX-License-Identifier: MIT */
/* y = a + b and y = a * b: b tiles a, any strides, calculated in f32 and rounded once. A quantised a of ADD is decoded,
 * added to and, unless the result is a float, quantised again, row by row. */
#include "cpu/rows.h"

/* Types of (a, b, y): all alike, or b in f32 with y like a or, as add_cast makes it, f32. */
static bool supports(const struct sotto_tensor * node) {
    const enum sotto_type a = node->src[0]->type, b = node->src[1]->type, y = node->type;
    if (!sotto_i_none_packed(node) || !sotto_i_is_float(a))
        return false;
    return (a == b && a == y) || (b == SOTTO_TYPE_F32 && (y == a || y == SOTTO_TYPE_F32));
}

/* ---- ADD ---- */

static bool dense(const struct sotto_tensor * t) { return t->nb[0] == sotto_type_size(t->type); }

static bool supports_add(const struct sotto_tensor * node) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    if (!sotto_i_is_quantised(a->type))
        return supports(node);
    return sotto_i_none_packed(node) && sotto_i_is_decodable(a->type) && b->type == SOTTO_TYPE_F32 &&
           b->ne[0] == a->ne[0] && dense(a) && dense(b) && dense(node) &&
           (node->type == SOTTO_TYPE_F32 || (node->type == a->type && sotto_i_is_encodable(a->type)));
}

static void add(const struct sotto_i_vec_kernels * k, const float * a, const float * b, float * y, int64_t n) {
    k->add(a, b, y, n);
}

/* One row of a quantised a; encode is NULL for a result in f32. */
static void add_row(const struct sotto_i_kernels * kernels, enum sotto_type type, sotto_i_encode_fn encode,
                    const char * a, const float * b, char * y, int64_t width) {
    float buffer[SOTTO_I_PIECE];
    for (int64_t at = 0; at < width; at += SOTTO_I_PIECE) {
        const int64_t n = width - at < SOTTO_I_PIECE ? width - at : SOTTO_I_PIECE;
        const size_t offset = sotto_i_row_bytes(type, at);
        float * sum = encode ? buffer : (float *)(void *)y + at;
        kernels->gemm.unpack[type](a + offset, buffer, n);
        kernels->vec.add(buffer, b + at, sum, n);
        if (encode)
            encode(sum, y + offset, n);
    }
}

static enum sotto_status add_quantised(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                       int64_t n_chunks) {
    const struct sotto_i_operand a = sotto_i_as_operand(node->src[0]), b = sotto_i_as_operand(node->src[1]),
                                 y = sotto_i_as_operand(node);
    const sotto_i_encode_fn encode = sotto_i_encoder(node->type);
    int64_t row, last;
    if (sotto_is_empty(node))
        return SOTTO_OK;
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &row, &last);
    for (; row < last; row++) {
        const int64_t i1 = row % y.ne[1], i2 = row / y.ne[1] % y.ne[2], i3 = row / y.ne[1] / y.ne[2];
        add_row(task->kernels, a.type, encode, sotto_i_operand_row(&a, i1, i2, i3),
                (const float *)(void *)sotto_i_operand_row(&b, i1, i2, i3), sotto_i_operand_row(&y, i1, i2, i3),
                node->ne[0]);
    }
    return SOTTO_OK;
}

static void prepare_add(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    if (sotto_i_is_quantised(node->src[0]->type))
        sotto_i_cpu_prepare_rows(node, n_threads, work);
    else
        sotto_i_prepare_map(node, n_threads, work);
}

static enum sotto_status run_add(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                 int64_t n_chunks) {
    if (sotto_i_is_quantised(node->src[0]->type))
        return add_quantised(task, node, chunk, n_chunks);
    return sotto_i_run_map2(task, node, chunk, n_chunks, add);
}

const struct sotto_i_cpu_op sotto_i_cpu_ADD = { supports_add, prepare_add, run_add };

/* ---- MUL ---- */

static void mul(const struct sotto_i_vec_kernels * k, const float * a, const float * b, float * y, int64_t n) {
    k->mul(a, b, y, n);
}

static enum sotto_status run_mul(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                 int64_t n_chunks) {
    return sotto_i_run_map2(task, node, chunk, n_chunks, mul);
}

const struct sotto_i_cpu_op sotto_i_cpu_MUL = { supports, sotto_i_prepare_map, run_mul };
