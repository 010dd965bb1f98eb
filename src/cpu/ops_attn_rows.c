/* SPDX-License-Identifier: MIT */
/* ATTN_ROWS: attention of several sequences over one pool of cache rows, each through a table of its own.
 *
 * A chunk of the node is a block of queries of one head. In it, queries of one sequence walk together (attn.h), so
 * they share the keys and values that are laid out for them. */
#include <string.h>

#include "core/op.h"
#include "cpu/attn.h"
#include "cpu/cpu_impl.h"
#include "cpu/kernels.h"

enum { Q, K, V, TABLE, SEQ, LEN };

static bool dense(const struct sotto_tensor * t) { return t->nb[0] == sotto_type_size(t->type) || t->ne[0] == 1; }

/* Element l of all rows side by side. */
static bool across(const struct sotto_tensor * t) { return !dense(t) && t->nb[2] == sotto_type_size(t->type); }

static bool reads(const struct sotto_tensor * t) {
    return sotto_i_attn_type(t->type) != SOTTO_I_ATTN_TYPES && t->ne[0] <= SOTTO_I_ATTN_MAX_WIDTH;
}

static bool supports(const struct sotto_tensor * node) {
    const struct sotto_tensor * const * src = (const struct sotto_tensor * const *)node->src;
    return node->type == SOTTO_TYPE_F32 && dense(node) && src[Q]->type == SOTTO_TYPE_F32 && dense(src[Q]) &&
           reads(src[K]) && (dense(src[K]) || across(src[K])) && reads(src[V]) && dense(src[V]) &&
           src[TABLE]->type == SOTTO_TYPE_I32 && src[SEQ]->type == SOTTO_TYPE_I32 && src[LEN]->type == SOTTO_TYPE_I32;
}

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const int64_t dk = node->src[K]->ne[0], dv = node->src[V]->ne[0];
    const int64_t n_heads = node->src[Q]->ne[1], n = node->src[Q]->ne[2];
    work->n_chunks = n_heads * n == 0 ? 1 : n_heads * sotto_i_attn_n_blocks(n, n_heads, dk, dv, n_threads);
    work->scratch = sotto_i_attn_scratch(dk, dv);
}

static int32_t entry(const struct sotto_tensor * t, int64_t i0, int64_t i1) {
    int32_t value;
    memcpy(&value, (const char *)t->data + (size_t)i0 * t->nb[0] + (size_t)i1 * t->nb[1], sizeof(value));
    return value;
}

/* Are sequence and length of query i within the table? */
static enum sotto_status check_query(const struct sotto_tensor * node, int64_t i) {
    const struct sotto_tensor * table = node->src[TABLE];
    const int32_t seq = entry(node->src[SEQ], i, 0), len = entry(node->src[LEN], i, 0);
    if (seq < 0 || seq >= table->ne[1]) {
        return sotto_fail(SOTTO_E_RANGE, "attn_rows: seq[%lld] = %d, but the table has %lld sequences", (long long)i,
                          (int)seq, (long long)table->ne[1]);
    }
    if (len < 0 || len > table->ne[0]) {
        return sotto_fail(SOTTO_E_RANGE, "attn_rows: len[%lld] = %d, but the table has %lld positions", (long long)i,
                          (int)len, (long long)table->ne[0]);
    }
    return SOTTO_OK;
}

/* Do the first `len` positions of sequence `seq` lie in the pool? */
static enum sotto_status check_table(const struct sotto_tensor * node, int32_t seq, int64_t len) {
    const struct sotto_tensor * table = node->src[TABLE];
    const int64_t n_rows = node->src[K]->ne[2];
    for (int64_t p = 0; p < len; p++) {
        const int32_t row = entry(table, p, seq);
        if (row < 0 || row >= n_rows) {
            return sotto_fail(SOTTO_E_RANGE, "attn_rows: table[%lld, %d] = %d, but the pool has %lld rows",
                              (long long)p, (int)seq, (int)row, (long long)n_rows);
        }
    }
    return SOTTO_OK;
}

/* Gather the queries of [first, last) that belong to sequence `seq`, and tick them off; returns the longest length. */
static int64_t gather(const struct sotto_tensor * node, int64_t h, int32_t seq, int64_t first, int64_t last,
                      bool * done, struct sotto_i_attn_walk * walk) {
    const struct sotto_tensor * q = node->src[Q];
    int64_t longest = 0;
    walk->n = 0;
    for (int64_t i = first; i < last; i++) {
        if (entry(node->src[SEQ], i, 0) != seq) {
            continue;
        }
        const int64_t len = entry(node->src[LEN], i, 0);
        longest = len > longest ? len : longest;
        done[i - first] = true;
        walk->queries[walk->n++] = (struct sotto_i_attn_query){
            .q = (const float *)(void *)((char *)q->data + (size_t)h * q->nb[1] + (size_t)i * q->nb[2]),
            .out = (float *)(void *)((char *)node->data + (size_t)h * node->nb[1] + (size_t)i * node->nb[2]),
            .len = len,
        };
    }
    return longest;
}

static struct sotto_i_attn_pool pool(const struct sotto_i_cpu_task * task, const struct sotto_tensor * t,
                                     int64_t head) {
    struct sotto_i_attn_pool p = sotto_i_attn_pool(&task->kernels->gemm, t->type,
                                                   (const char *)t->data + (size_t)head * t->nb[1], t->nb[2], t->ne[0]);
    p.along = across(t) ? t->nb[0] : 0;
    return p;
}

/* Queries [first, last) of head h, one sequence after the other. */
static enum sotto_status run_block(const struct sotto_i_cpu_task * task, const struct sotto_tensor * node, int64_t h,
                                   int64_t first, int64_t last) {
    OP_PARAMS(attn_rows, node, params);
    const struct sotto_tensor *k = node->src[K], *v = node->src[V], *table = node->src[TABLE];
    bool done[SOTTO_I_ATTN_MAX_BLOCK] = { false };
    struct sotto_i_attn_walk walk = {
        .dk = k->ne[0],
        .dv = v->ne[0],
        .k = pool(task, k, h),
        .v = pool(task, v, h),
        .table_step = table->nb[0],
        .scale = params.scale,
        .queries = task->scratch,
    };
    for (int64_t i = first; i < last; i++) {
        if (done[i - first]) {
            continue;
        }
        const int32_t seq = entry(node->src[SEQ], i, 0);
        const int64_t longest = gather(node, h, seq, first, last, done, &walk);
        const enum sotto_status status = check_table(node, seq, longest);
        if (status != SOTTO_OK) {
            return status;
        }
        walk.table = (const char *)table->data + (size_t)seq * table->nb[1];
        sotto_i_attn_run(&task->kernels->attn, &walk, task->scratch);
    }
    return SOTTO_OK;
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    const int64_t n_heads = node->src[Q]->ne[1], n = node->src[Q]->ne[2];
    if (n_heads * n == 0) {
        return SOTTO_OK;
    }
    const int64_t n_blocks = n_chunks / n_heads;
    int64_t first, last;
    sotto_i_chunk_range(n, chunk % n_blocks, n_blocks, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const enum sotto_status status = check_query(node, i);
        if (status != SOTTO_OK) {
            return status;
        }
    }
    return run_block(task, node, chunk / n_blocks, first, last);
}

const struct sotto_i_cpu_op sotto_i_cpu_ATTN_ROWS = { supports, prepare, run };
