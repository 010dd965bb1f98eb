/* SPDX-License-Identifier: MIT */
/* MUL_MAT_ID: y[:,e,c] = as[:,:,ids[e,c]]^T b[:, e mod U', c], a product in which each column chooses its matrix.
 *
 * A chunk is a part of the rows of one matrix. It looks through ids for the columns that chose this matrix, gathers as
 * many as one product takes (gemm.h: columns that lie anywhere), and goes on until all have been seen: so each matrix is
 * read once for every SOTTO_I_GEMM_GROUP of its columns, and matrices that nobody chose are not touched. */
#include <string.h>

#include "cpu/gemm.h"
#include "cpu/packed.h"
#include "cpu/rows.h"

enum { GROUP = SOTTO_I_GEMM_GROUP };

static bool supports(const struct sotto_tensor * node) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1], *ids = node->src[2];
    return sotto_i_is_decodable(a->type) && sotto_i_is_float(b->type) && ids->type == SOTTO_TYPE_I32 &&
           node->type == SOTTO_TYPE_F32 && sotto_is_contiguous(node) && !sotto_i_is_packed(b) &&
           !sotto_i_is_packed(ids) && !sotto_i_is_packed(node) && (!sotto_i_is_packed(a) || sotto_i_packed_readable(a));
}

static int64_t n_panels(const struct sotto_tensor * a) {
    return a->ne[1] / SOTTO_CPU_PANEL + (a->ne[1] % SOTTO_CPU_PANEL != 0);
}

/* Parts of rows: enough to keep all threads busy when each column chose another matrix, or all chose the same few. */
static int64_t parts_of(const struct sotto_tensor * node, int n_threads) {
    const int64_t columns = node->ne[1] * node->ne[2], matrices = node->src[0]->ne[2];
    const int64_t busy = columns < matrices ? columns : matrices;
    const int64_t parts = n_threads > 1 ? (4 * (int64_t)n_threads + busy - 1) / busy : 1, most = n_panels(node->src[0]);
    return parts < most ? parts : most;
}

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    work->n_chunks = 1;
    work->scratch = 0;
    if (!sotto_is_empty(node) && node->src[0]->ne[2] > 0) {
        work->n_chunks = node->src[0]->ne[2] * parts_of(node, n_threads);
        work->scratch = sotto_i_gemm_scratch();
    }
}

/* The columns of one product. */
struct columns {
    const char * b[GROUP];
    float * y[GROUP];
    int64_t n;
};

/* Matrix that column (e, c) chose; RANGE if there is none. */
static enum sotto_status choice(const struct sotto_tensor * node, int64_t e, int64_t c, int64_t * matrix) {
    const struct sotto_tensor *a = node->src[0], *ids = node->src[2];
    int32_t id;
    memcpy(&id, (const char *)ids->data + (size_t)e * ids->nb[0] + (size_t)c * ids->nb[1], sizeof(id));
    if (id < 0 || id >= a->ne[2]) {
        return sotto_fail(SOTTO_E_RANGE, "mul_mat_id: '%s' asks for matrix %d at (%lld, %lld), '%s' has %lld",
                          ids->name, (int)id, (long long)e, (long long)c, a->name, (long long)a->ne[2]);
    }
    *matrix = id;
    return SOTTO_OK;
}

/* From column `*at` on, those that chose `matrix`, until there is no room or no more; moves *at on. */
static enum sotto_status gather(const struct sotto_tensor * node, int64_t matrix, int64_t * at, struct columns * out) {
    const struct sotto_tensor * b = node->src[1];
    const int64_t used = node->ne[1], all = used * node->ne[2];
    out->n = 0;
    for (; *at < all && out->n < GROUP; ++*at) {
        const int64_t e = *at % used, c = *at / used;
        int64_t chosen = -1;
        const enum sotto_status status = choice(node, e, c, &chosen);
        if (status != SOTTO_OK) {
            return status;
        }
        if (chosen == matrix) {
            out->b[out->n] = (const char *)b->data + (size_t)(e % b->ne[1]) * b->nb[1] + (size_t)c * b->nb[2];
            out->y[out->n++] = (float *)node->data + *at * node->ne[0];
        }
    }
    return SOTTO_OK;
}

static struct sotto_i_gemm product(const struct sotto_i_cpu_task * task, const struct sotto_tensor * node,
                                   int64_t matrix) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    struct sotto_i_gemm g = { .kernels = task->kernels, .bytes = sotto_i_gemm_in_bytes(task, node), .n = a->ne[1] };
    g.k = a->ne[0];
    g.scratch = task->scratch;
    g.a.type = a->type;
    g.b.type = b->type;
    if (g.k > 0) {
        g.a.packed = sotto_i_is_packed(a);
        g.a.data = g.a.packed ? sotto_i_packed_matrix(a, matrix, 0) : (const char *)a->data + (size_t)matrix * a->nb[2];
    }
    memcpy(g.a.nb, a->nb, sizeof(g.a.nb));
    memcpy(g.b.nb, b->nb, sizeof(g.b.nb));
    return g;
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    const struct sotto_tensor * a = node->src[0];
    if (sotto_is_empty(node)) {
        return SOTTO_OK;
    }
    const int64_t parts = a->ne[2] > 0 ? n_chunks / a->ne[2] : 1, matrix = chunk / parts;
    struct sotto_i_gemm g = product(task, node, matrix);
    struct sotto_i_gemm_rect rect = { .col0 = 0 };
    sotto_i_chunk_range(n_panels(a), chunk % parts, parts, &rect.row0, &rect.row1);
    rect.row0 *= SOTTO_CPU_PANEL;
    rect.row1 = rect.row1 * SOTTO_CPU_PANEL < g.n ? rect.row1 * SOTTO_CPU_PANEL : g.n;
    for (int64_t at = 0; at < node->ne[1] * node->ne[2];) {
        struct columns columns;
        const enum sotto_status status = gather(node, matrix, &at, &columns);
        if (status != SOTTO_OK) {
            return status;
        }
        g.b.rows = columns.b;
        g.columns = columns.y;
        rect.col1 = columns.n;
        sotto_i_gemm_run(&g, &rect);
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_MUL_MAT_ID = { supports, prepare, run };
