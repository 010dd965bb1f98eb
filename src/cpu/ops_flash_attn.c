/* SPDX-License-Identifier: MIT */
/* FLASH_ATTN_EXT: attention over dense keys and values, each query against all positions but the masked ones.
 *
 * Heads that share keys and values form a group, whose queries (head by head) walk together: attn.h. A chunk of the node
 * is one block of the queries of one group of one batch. */
#include "core/op.h"
#include "cpu/alibi.h"
#include "cpu/attn.h"
#include "cpu/rows.h"

enum { Q, K, V, MASK, SINKS };

static int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Heads of a group: consecutive ones with the same head of k and the same of v. */
static int64_t group_size(const struct sotto_tensor * node) {
    const int64_t n_heads = node->src[Q]->ne[2];
    return n_heads == 0 ? 1 : gcd(n_heads / node->src[K]->ne[2], n_heads / node->src[V]->ne[2]);
}

static int64_t n_units(const struct sotto_tensor * node) {
    return node->src[Q]->ne[2] / group_size(node) * node->src[Q]->ne[3];
}

static bool dense(const struct sotto_tensor * t) { return t->nb[0] == sotto_type_size(t->type) || t->ne[0] == 1; }

static bool reads(const struct sotto_tensor * t) {
    return sotto_i_is_decodable(t->type) && dense(t) && t->ne[0] <= SOTTO_I_ATTN_MAX_WIDTH;
}

static bool supports(const struct sotto_tensor * node) {
    const struct sotto_tensor *q = node->src[Q], *k = node->src[K], *v = node->src[V];
    const struct sotto_tensor *mask = node->src[MASK], *sinks = node->src[SINKS];
    return node->type == SOTTO_TYPE_F32 && dense(node) && q->type == SOTTO_TYPE_F32 && dense(q) && reads(k) &&
           reads(v) && (mask == NULL || (mask->type == SOTTO_TYPE_F16 && dense(mask))) &&
           (sinks == NULL || sinks->type == SOTTO_TYPE_F32);
}

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const int64_t dk = node->src[K]->ne[0], dv = node->src[V]->ne[0], units = n_units(node);
    const int64_t n = group_size(node) * node->src[Q]->ne[1];
    work->n_chunks = units * n == 0 ? 1 : units * sotto_i_attn_n_blocks(n, units, dk, dv, n_threads);
    work->scratch = sotto_i_attn_scratch(dk, dv);
}

static char * at(const struct sotto_tensor * t, int64_t i1, int64_t i2, int64_t i3) {
    return (char *)t->data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
}

/* Query i of head h of batch u. */
static struct sotto_i_attn_query query(const struct sotto_tensor * node, float max_bias, int64_t i, int64_t h,
                                       int64_t u) {
    const struct sotto_tensor *q = node->src[Q], *mask = node->src[MASK], *sinks = node->src[SINKS];
    struct sotto_i_attn_query r = {
        .q = (const float *)(void *)at(q, i, h, u),
        .out = (float *)(void *)at(node, h, i, u),
        .slope = sotto_i_alibi_slope(max_bias, q->ne[2], h),
        .len = node->src[K]->ne[1],
    };
    if (mask != NULL) {
        r.mask = (const uint16_t *)(void *)at(mask, i, h % mask->ne[2], u % mask->ne[3]);
    }
    if (sinks != NULL) {
        r.sink = (const float *)(void *)((char *)sinks->data + (size_t)h * sinks->nb[0]);
    }
    return r;
}

static struct sotto_i_attn_pool pool(const struct sotto_i_cpu_task * task, const struct sotto_tensor * t, int64_t head,
                                     int64_t u) {
    return sotto_i_attn_pool(&task->kernels->gemm, t->type, at(t, 0, head, u), t->nb[1], t->ne[0]);
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    OP_PARAMS(flash_attn_ext, node, params);
    const struct sotto_tensor *q = node->src[Q], *k = node->src[K], *v = node->src[V];
    const int64_t units = n_units(node), group = group_size(node), nq = q->ne[1], n_heads = q->ne[2];
    if (units * nq == 0) {
        return SOTTO_OK;
    }
    const int64_t n_blocks = n_chunks / units, unit = chunk / n_blocks, groups = n_heads / group;
    const int64_t first_head = unit % groups * group, u = unit / groups;
    int64_t first, last;
    sotto_i_chunk_range(group * nq, chunk % n_blocks, n_blocks, &first, &last);
    const struct sotto_i_attn_walk walk = {
        .dk = k->ne[0],
        .dv = v->ne[0],
        .k = pool(task, k, first_head / (n_heads / k->ne[2]), u),
        .v = pool(task, v, first_head / (n_heads / v->ne[2]), u),
        .scale = params.scale,
        .softcap = params.logit_softcap,
        .queries = task->scratch,
        .n = last - first,
    };
    for (int64_t j = first; j < last; j++) {
        walk.queries[j - first] = query(node, params.max_bias, j % nq, first_head + j / nq, u);
    }
    sotto_i_attn_run(&task->kernels->attn, &walk, task->scratch);
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_FLASH_ATTN_EXT = { supports, prepare, run };
