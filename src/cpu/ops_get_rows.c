/* SPDX-License-Identifier: MIT */
/* GET_ROWS: y[:,j,s,t] = a[:, b[j,s,t], s, t], converted to f32 (i32 stays i32); a plain or packed.
 * Every index is checked before its row is read. Chunks are runs of rows of y. */
#include <string.h>

#include "cpu/packed.h"
#include "cpu/rows.h"

enum { PIECE = 256 }; /* elements of a packed row that are gathered at a time: whole blocks of any type */

static bool supports(const struct sotto_tensor * node) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    const bool type = sotto_i_is_decodable(a->type) || a->type == SOTTO_TYPE_I32;
    const enum sotto_type result = a->type == SOTTO_TYPE_I32 ? SOTTO_TYPE_I32 : SOTTO_TYPE_F32;
    return type && node->type == result && b->type == SOTTO_TYPE_I32 && sotto_is_contiguous(node) &&
           !sotto_i_is_packed(b) && !sotto_i_is_packed(node) &&
           (sotto_i_is_packed(a) ? sotto_i_packed_readable(a) : a->nb[0] == sotto_type_size(a->type));
}

/* n elements of dense memory to the result's type. */
static void convert(const struct sotto_i_kernels * kernels, enum sotto_type type, const void * x, void * y, int64_t n) {
    if (type == SOTTO_TYPE_I32) {
        memcpy(y, x, (size_t)n * sizeof(int32_t));
    } else {
        kernels->gemm.unpack[type](x, y, n);
    }
}

static void packed_row(const struct sotto_i_kernels * kernels, const struct sotto_tensor * a, int64_t i1, int64_t i2,
                       int64_t i3, char * y) {
    float piece[PIECE];
    for (int64_t l = 0; l < a->ne[0]; l += PIECE) {
        const int64_t n = a->ne[0] - l < PIECE ? a->ne[0] - l : PIECE;
        sotto_i_packed_get(a, i1, i2, i3, l, n, piece);
        convert(kernels, a->type, piece, y + (size_t)l * sizeof(float), n);
    }
}

static enum sotto_status run_row(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t row) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    const int64_t i1 = row % node->ne[1], i2 = row / node->ne[1] % node->ne[2], i3 = row / node->ne[1] / node->ne[2];
    int32_t index;
    memcpy(&index, (const char *)b->data + (size_t)i1 * b->nb[0] + (size_t)i2 * b->nb[1] + (size_t)i3 * b->nb[2],
           sizeof(index));
    if (index < 0 || index >= a->ne[1]) {
        return sotto_fail(SOTTO_E_RANGE, "get_rows: '%s' asks for row %d at (%lld, %lld, %lld), '%s' has %lld rows",
                          b->name, (int)index, (long long)i1, (long long)i2, (long long)i3, a->name,
                          (long long)a->ne[1]);
    }
    char * y = (char *)node->data + (size_t)i1 * node->nb[1] + (size_t)i2 * node->nb[2] + (size_t)i3 * node->nb[3];
    if (sotto_i_is_packed(a)) {
        packed_row(task->kernels, a, index, i2, i3, y);
    } else {
        const char * x =
            (const char *)a->data + (size_t)index * a->nb[1] + (size_t)i2 * a->nb[2] + (size_t)i3 * a->nb[3];
        convert(task->kernels, a->type, x, y, a->ne[0]);
    }
    return SOTTO_OK;
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    int64_t row, last;
    enum sotto_status status = SOTTO_OK;
    if (sotto_is_empty(node)) {
        return SOTTO_OK;
    }
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &row, &last);
    for (; row < last && status == SOTTO_OK; row++) {
        status = run_row(task, node, row);
    }
    return status;
}

const struct sotto_i_cpu_op sotto_i_cpu_GET_ROWS = { supports, sotto_i_cpu_prepare_rows, run };
