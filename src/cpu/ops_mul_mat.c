/* SPDX-License-Identifier: MIT */
/* MUL_MAT: y[i,j,s,t] = sum over l of a[l, i, s/r2, t/r3] * b[l,j,s,t], on the driver of gemm.h.
 *
 * The work is a grid of units, matrices of b x groups of columns x parts of rows; a chunk is a run of units. Groups
 * follow from the shape alone and have at most SOTTO_I_GEMM_GROUP columns, so that each packs its columns once; rows are
 * parted only as far as it takes to keep all threads busy, for each part packs the columns again. */
#include "cpu/cpu_impl.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "cpu/packed.h"
#include "cpu/rows.h"

enum {
    STRIP = SOTTO_I_GEMM_MAX_COLS,
    FEW_COLS = STRIP,      /* so few that packing them costs nothing, and rows can be parted at will */
    MIN_MADDS = 32 * 1024, /* a part below this is not worth a thread's attention */
    MIN_PANELS = 8         /* of a part when there are many columns */
};

/* The product as matrices: batches of b folded into columns where a does not change and rows are evenly spaced. */
struct shape {
    int64_t n, m, k;           /* rows of a, columns, length of the sums */
    int64_t batches2, batches; /* of b: dimension 2, and all */
    int64_t groups;            /* of columns */
};

static struct shape shape_of(const struct sotto_tensor * node) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    struct shape s = { .n = a->ne[1], .m = b->ne[1], .k = a->ne[0], .batches2 = b->ne[2] };
    s.batches = b->ne[2] * b->ne[3];
    if (a->ne[2] == 1 && a->ne[3] == 1 && (b->ne[2] == 1 || b->nb[2] == b->nb[1] * (size_t)b->ne[1]) &&
        (b->ne[3] == 1 || b->nb[3] == b->nb[1] * (size_t)b->ne[1] * (size_t)b->ne[2])) {
        s.m *= s.batches;
        s.batches2 = s.batches = 1;
    }
    s.groups = (s.m + SOTTO_I_GEMM_GROUP - 1) / SOTTO_I_GEMM_GROUP;
    return s;
}

static bool supports(const struct sotto_tensor * node) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    return sotto_i_is_decodable(a->type) && sotto_i_is_float(b->type) && node->type == SOTTO_TYPE_F32 &&
           sotto_is_contiguous(node) && !sotto_i_is_packed(b) && !sotto_i_is_packed(node) &&
           (!sotto_i_is_packed(a) || sotto_i_packed_readable(a));
}

static void prepare(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    work->n_chunks = 1;
    work->scratch = 0;
    if (sotto_is_empty(node)) {
        return;
    }
    const struct shape s = shape_of(node);
    const bool few = s.m <= FEW_COLS;
    const int64_t panels = (s.n + SOTTO_CPU_PANEL - 1) / SOTTO_CPU_PANEL;
    const double madds = (double)s.n * (double)s.m * (double)s.k;
    const int64_t base = s.batches * s.groups;
    int64_t max_parts = few ? panels : panels / MIN_PANELS;
    if ((double)max_parts * (double)base * MIN_MADDS > madds) {
        max_parts = (int64_t)(madds / MIN_MADDS / (double)base);
    }
    int64_t parts = 1;
    while (parts < max_parts && base * parts < 8 * n_threads &&
           (base * parts % n_threads != 0 || (few && base * parts < 4 * n_threads))) {
        parts++;
    }
    work->n_chunks = base * parts;
    work->scratch = sotto_i_gemm_scratch();
}

static struct sotto_i_gemm_operand operand(const struct sotto_tensor * t, int64_t i2, int64_t i3) {
    struct sotto_i_gemm_operand x = { .type = t->type, .packed = sotto_i_is_packed(t), .nb = { t->nb[0], t->nb[1] } };
    x.data = x.packed ? sotto_i_packed_matrix(t, i2, i3)
                      : (const char *)t->data + (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
    return x;
}

/* Columns of a group in whole strips, groups of almost equal size. */
static void group_range(const struct shape * s, int64_t group, int64_t * first, int64_t * last) {
    sotto_i_chunk_range((s->m + STRIP - 1) / STRIP, group, s->groups, first, last);
    *first *= STRIP;
    *last = *last * STRIP < s->m ? *last * STRIP : s->m;
}

/* Panels of a part, as rows. */
static void part_range(const struct shape * s, int64_t part, int64_t parts, int64_t * first, int64_t * last) {
    sotto_i_chunk_range((s->n + SOTTO_CPU_PANEL - 1) / SOTTO_CPU_PANEL, part, parts, first, last);
    *first *= SOTTO_CPU_PANEL;
    *last = *last * SOTTO_CPU_PANEL < s->n ? *last * SOTTO_CPU_PANEL : s->n;
}

static void run_unit(const struct sotto_i_cpu_task * task, const struct sotto_tensor * node, const struct shape * s,
                     int64_t batch, int64_t group, int64_t part, int64_t parts) {
    const struct sotto_tensor *a = node->src[0], *b = node->src[1];
    const int64_t i2 = batch % s->batches2, i3 = batch / s->batches2;
    struct sotto_i_gemm g = { .kernels = task->kernels,
                              .bytes = sotto_i_gemm_in_bytes(task, node),
                              .n = s->n,
                              .k = s->k,
                              .scratch = task->scratch };
    struct sotto_i_gemm_rect rect;
    if (s->k > 0) {
        g.a = operand(a, i2 / (b->ne[2] / a->ne[2]), i3 / (b->ne[3] / a->ne[3]));
        g.b = operand(b, i2, i3);
    }
    g.y = (float *)(void *)((char *)node->data + (size_t)i2 * node->nb[2] + (size_t)i3 * node->nb[3]);
    g.ldy = s->n;
    group_range(s, group, &rect.col0, &rect.col1);
    part_range(s, part, parts, &rect.row0, &rect.row1);
    sotto_i_gemm_run(&g, &rect);
}

static enum sotto_status run(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                             int64_t n_chunks) {
    if (sotto_is_empty(node)) {
        return SOTTO_OK;
    }
    const struct shape s = shape_of(node);
    const int64_t base = s.batches * s.groups;
    const int64_t parts = n_chunks > base ? n_chunks / base : 1;
    int64_t unit, last;
    sotto_i_chunk_range(base * parts, chunk, n_chunks, &unit, &last);
    for (; unit < last; unit++) {
        const int64_t matrix = unit / parts;
        run_unit(task, node, &s, matrix / s.groups, matrix % s.groups, unit % parts, parts);
    }
    return SOTTO_OK;
}

const struct sotto_i_cpu_op sotto_i_cpu_MUL_MAT = { supports, prepare, run };
