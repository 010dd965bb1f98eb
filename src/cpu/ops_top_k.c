/* SPDX-License-Identifier: MIT */
/* TOP_K: indices of the k largest of each row, largest first, equal values by lower index, NaN last.
 *
 * The result's row is a heap of the k best so far with the worst of them on top; most elements fail one comparison
 * with it. Then the heap is taken apart from the worst to the best. k = 1 is a search by vectors. */
#include <math.h>

#include "core/op.h"
#include "cpu/rows.h"

/* Whether element i comes before element j in the result. */
static bool before(const float * x, int32_t i, int32_t j) {
    if (isnan(x[i]) || isnan(x[j]))
        return isnan(x[i]) == isnan(x[j]) ? i < j : !isnan(x[i]);
    return x[i] > x[j] || (x[i] == x[j] && i < j);
}

/* Let element 0 of the heap of n sink to its place. */
static void sink(const float * x, int32_t * heap, int64_t n) {
    const int32_t moving = heap[0];
    int64_t hole = 0;
    for (int64_t child = 1; child < n; child = 2 * hole + 1) {
        if (child + 1 < n && before(x, heap[child], heap[child + 1]))
            child++;
        if (!before(x, moving, heap[child]))
            break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = moving;
}

static void rise(const float * x, int32_t * heap, int64_t at) {
    const int32_t moving = heap[at];
    while (at > 0 && before(x, heap[(at - 1) / 2], moving)) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = moving;
}

static void top_k_row(const float * x, int64_t n, int32_t * y, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        y[i] = (int32_t)i;
        rise(x, y, i);
    }
    for (int64_t i = k; i < n; i++)
        if (before(x, (int32_t)i, y[0])) {
            y[0] = (int32_t)i;
            sink(x, y, k);
        }
    for (int64_t left = k - 1; left > 0; left--) {
        const int32_t worst = y[0];
        y[0] = y[left];
        y[left] = worst;
        sink(x, y, left);
    }
}

static bool supports(const struct sotto_tensor * node) {
    return sotto_i_none_packed(node) && node->src[0]->type == SOTTO_TYPE_F32 && node->type == SOTTO_TYPE_I32;
}

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const struct sotto_tensor * a = node->src[0];
    sotto_i_prepare_units(sotto_nrows(a), sotto_nelements(a), n_threads, work);
    if (a->nb[0] != sizeof(float))
        work->scratch = (size_t)a->ne[0] * sizeof(float);
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    const struct sotto_i_vec_kernels * kernels = &task->kernels->vec;
    const struct sotto_i_operand a = sotto_i_as_operand(node->src[0]), y = sotto_i_as_operand(node);
    int64_t r, last;
    sotto_i_chunk_range(sotto_nrows(node), chunk, n_chunks, &r, &last);
    for (; r < last; r++) {
        const int64_t i1 = r % y.ne[1], i2 = r / y.ne[1] % y.ne[2], i3 = r / y.ne[1] / y.ne[2];
        const float * x = sotto_i_load(kernels, &a, sotto_i_operand_row(&a, i1, i2, i3), 0, a.ne[0], task->scratch);
        int32_t * out = (int32_t *)sotto_i_operand_row(&y, i1, i2, i3);
        if (y.ne[0] == 1)
            out[0] = (int32_t)kernels->argmax(x, a.ne[0]);
        else
            top_k_row(x, a.ne[0], out, y.ne[0]);
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_TOP_K = { supports, prepare, run };
