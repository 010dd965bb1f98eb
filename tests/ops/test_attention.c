/* SPDX-License-Identifier: MIT */
/* FLASH_ATTN_EXT and ATTN_ROWS through the engine: against a softmax in double precision, the same bits at every level
 * and number of threads, and both ops against one another. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cpu/test_hooks.h"
#include "support/op_case.h"

enum { F32 = SOTTO_TYPE_F32, F16 = SOTTO_TYPE_F16, BF16 = SOTTO_TYPE_BF16 };

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- running ---- */

/* As op_compute, with room for the scratch of wide heads. */
static enum sotto_status compute(struct sotto_tensor * y, int n_threads) {
    struct sotto_context * ctx = sotto_init((struct sotto_init_params){ .mem_size = 8 << 20 });
    struct sotto_cgraph * graph = sotto_new_graph_custom(ctx, 64, false);
    assert_int_equal(sotto_build_forward_expand(graph, y), SOTTO_OK);
    const enum sotto_status status = sotto_graph_compute_with_ctx(ctx, graph, n_threads);
    sotto_free(ctx);
    return status;
}

static float * data_of(const struct sotto_tensor * y) { return y->data; }

/* Computes y (contiguous f32) at every level and with 1, 2, 3 and 8 threads, chunks in changing order; it has the same
 * bits each time. */
static void compute_everywhere(struct sotto_tensor * y) {
    static const int threads[] = { 1, 2, 3, 8 };
    const enum sotto_cpu_level used = sotto_cpu_get_level();
    const size_t bytes = sotto_nbytes(y);
    void * first = malloc(bytes + 1);
    assert_non_null(first);
    for (int level = 0; level <= (int)sotto_cpu_best_level(); level++) {
        assert_int_equal(sotto_cpu_set_level((enum sotto_cpu_level)level), SOTTO_OK);
        for (size_t i = 0; i < COUNT(threads); i++) {
            memset(y->data, 0x77, bytes);
            sotto_i_test_hooks(true, (uint64_t)level * 10 + i);
            if (compute(y, threads[i]) != SOTTO_OK) {
                fail_msg("%s: %s", sotto_op_desc(y), sotto_last_error_text());
            }
            sotto_i_test_hooks(false, 0);
            if (level == 0 && i == 0) {
                memcpy(first, y->data, bytes);
            } else if (memcmp(first, y->data, bytes) != 0) {
                fail_msg("%s: other bits at level %s with %d threads", sotto_op_desc(y),
                         sotto_cpu_level_name((enum sotto_cpu_level)level), threads[i]);
            }
        }
    }
    assert_int_equal(sotto_cpu_set_level(used), SOTTO_OK);
    free(first);
}

/* Squared error over squared size. */
static void check_close(const struct sotto_tensor * y, const double * want, double limit, const char * what) {
    double error = 0.0, size = 0.0;
    for (int64_t i = 0; i < sotto_nelements(y); i++) {
        const double d = data_of(y)[i] - want[i];
        error += d * d;
        size += want[i] * want[i];
    }
    if (!(error <= limit * size)) {
        fail_msg("%s: normalised squared error %g, allowed %g", what, size > 0.0 ? error / size : error, limit);
    }
}

/* ---- softmax in double precision ---- */

/* One head of one query: score(p) for n positions (-inf: closed), value(p, d), an extra logit or -inf. */
struct head {
    double *score, sink;
    int64_t n, dv;
};

static double largest(const struct head * h) {
    double m = h->sink;
    for (int64_t p = 0; p < h->n; p++) {
        m = h->score[p] > m ? h->score[p] : m;
    }
    return m;
}

/* Turns scores into probabilities; false if no position is open. */
static bool soften(const struct head * h) {
    const double m = largest(h);
    double sum = exp(h->sink - m);
    bool open = false;
    for (int64_t p = 0; p < h->n; p++) {
        open = open || h->score[p] != -INFINITY;
        h->score[p] = exp(h->score[p] - m);
        sum += h->score[p];
    }
    for (int64_t p = 0; p < h->n && open; p++) {
        h->score[p] /= sum;
    }
    return open;
}

/* ---- FLASH_ATTN_EXT ---- */

struct flash {
    int dk, dv, hq, hk, hv, nq, nk, t;
    int k_type, v_type;
    int m2, m3; /* 0: no mask */
    float max_bias, softcap;
    bool sinks, permuted;
};

struct operands {
    struct sotto_tensor *q, *k, *v, *mask, *sinks;
};

/* Masks: about a third -inf; row 0 sees nothing; the last key is seen by nobody. */
static struct sotto_tensor * new_mask(struct op_case * c, const struct flash * f) {
    struct sotto_tensor * m = op_tensor(c, SOTTO_TYPE_F16, OP_DENSE, f->nk + 2, f->nq + 1, f->m2, f->m3);
    for (int64_t i = 0; i < sotto_nelements(m); i++) {
        const int64_t key = i % m->ne[0], row = i / m->ne[0] % m->ne[1];
        if (row == 0 || key == f->nk - 1 || op_random(c) % 3 == 0) {
            ((uint16_t *)m->data)[i] = 0xFC00;
        }
    }
    return m;
}

static void poison(struct sotto_tensor * t, int64_t row) {
    for (int64_t u = 0; u < t->ne[3]; u++) {
        for (int64_t h = 0; h < t->ne[2]; h++) {
            for (int64_t l = 0; l < t->ne[0]; l++) {
                op_set(t, l, row, h, u, NAN);
            }
        }
    }
}

static struct operands new_operands(struct op_case * c, const struct flash * f) {
    const enum op_layout layout = f->permuted ? OP_PERMUTED : OP_DENSE;
    struct operands o = { 0 };
    o.q = op_tensor(c, SOTTO_TYPE_F32, layout, f->dk, f->nq, f->hq, f->t);
    o.k = op_tensor(c, (enum sotto_type)f->k_type, layout, f->dk, f->nk, f->hk, f->t);
    o.v = op_tensor(c, (enum sotto_type)f->v_type, f->permuted ? OP_PADDED : OP_DENSE, f->dv, f->nk, f->hv, f->t);
    if (f->m2 > 0) {
        o.mask = new_mask(c, f);
        poison(o.k, f->nk - 1);
        poison(o.v, f->nk - 1);
    }
    if (f->sinks) {
        o.sinks = op_tensor(c, SOTTO_TYPE_F32, OP_DENSE, f->hq, 1, 1, 1);
    }
    return o;
}

static double slope_of(const struct flash * f, int64_t h) {
    if (f->max_bias <= 0.0f) {
        return 1.0;
    }
    const int64_t n = (int64_t)exp2(floor(log2(f->hq)));
    return h < n ? pow(exp2(-(double)f->max_bias / (double)n), (double)h + 1.0)
                 : pow(exp2(-(double)f->max_bias / 2.0 / (double)n), 2.0 * (double)(h - n) + 1.0);
}

static double scale_of(const struct flash * f) { return (double)(float)(1.0 / sqrt(f->dk)); }

static double flash_score(const struct flash * f, const struct operands * o, int64_t j, int64_t i, int64_t h,
                          int64_t u) {
    const double bias = o->mask ? op_get(o->mask, j, i, h % f->m2, u % f->m3) : 0.0;
    double s = 0.0;
    if (bias == -INFINITY) {
        return bias;
    }
    for (int64_t l = 0; l < f->dk; l++) {
        s += op_get(o->q, l, i, h, u) * op_get(o->k, l, j, h / (f->hq / f->hk), u);
    }
    s *= scale_of(f);
    s = f->softcap != 0.0f ? (double)f->softcap * tanh(s / (double)f->softcap) : s;
    return s + slope_of(f, h) * bias;
}

static void flash_truth(const struct flash * f, const struct operands * o, int64_t i, int64_t h, int64_t u,
                        double * score, double * y) {
    const struct head head = { score, o->sinks ? op_get(o->sinks, h, 0, 0, 0) : -INFINITY, f->nk, f->dv };
    for (int64_t j = 0; j < f->nk; j++) {
        score[j] = flash_score(f, o, j, i, h, u);
    }
    memset(y, 0, (size_t)f->dv * sizeof(*y));
    if (!soften(&head)) {
        return;
    }
    for (int64_t j = 0; j < f->nk; j++) {
        for (int64_t d = 0; d < f->dv && score[j] != 0.0; d++) {
            y[d] += score[j] * op_get(o->v, d, j, h / (f->hq / f->hv), u);
        }
    }
}

static struct sotto_tensor * build_flash(struct op_case * c, const struct flash * f, const struct operands * o) {
    struct sotto_tensor * y =
        sotto_flash_attn_ext(c->ctx, o->q, o->k, o->v, o->mask, (float)scale_of(f), f->max_bias, f->softcap);
    if (!y) {
        fail_msg("%s", sotto_context_error(c->ctx));
    }
    if (o->sinks) {
        assert_int_equal(sotto_flash_attn_ext_add_sinks(y, o->sinks), SOTTO_OK);
    }
    return y;
}

static void check_flash(const struct flash * f, const char * what) {
    struct op_case c;
    op_case_begin(&c);
    const struct operands o = new_operands(&c, f);
    struct sotto_tensor * y = build_flash(&c, f, &o);
    double * want = malloc((size_t)sotto_nelements(y) * sizeof(double));
    double * score = malloc((size_t)f->nk * sizeof(double));
    double * at = want;
    for (int64_t u = 0; u < f->t; u++) {
        for (int64_t i = 0; i < f->nq; i++) {
            for (int64_t h = 0; h < f->hq; h++, at += f->dv) {
                flash_truth(f, &o, i, h, u, score, at);
            }
        }
    }
    compute_everywhere(y);
    check_close(y, want, 1e-11, what);
    if (o.mask) { /* row 0 sees nothing */
        for (int64_t n = 0; n < (int64_t)f->dv * f->hq; n++) {
            assert_true(data_of(y)[n] == 0.0f);
        }
    }
    free(want);
    free(score);
    op_case_end(&c);
}

static void widths(void ** state) {
    static const int dk[] = { 40, 64, 72, 80, 96, 128, 192, 256, 192, 320, 576 };
    static const int dv[] = { 40, 64, 72, 80, 96, 128, 192, 256, 128, 256, 512 };
    static const int nk[] = { 113, 65, 64, 63, 1, 200, 113 };
    static const int types[] = { F32, F16, BF16 };
    (void)state;
    for (size_t i = 0; i < COUNT(dk); i++) {
        const struct flash f = { dk[i], dv[i], 2, 1, 1, 3,    nk[i % COUNT(nk)], 1, types[i % 3], types[i / 3 % 3],
                                 0,     0,     0, 0, 0, i % 2 };
        check_flash(&f, "widths");
    }
}

static void groups(void ** state) {
    static const int group[] = { 1, 4, 8, 12, 16, 20, 32 };
    (void)state;
    for (size_t i = 0; i < COUNT(group); i++) {
        for (int hk = 1; hk <= 4; hk += 3) {
            const struct flash f = { 24, 24, hk * group[i], hk, hk, 3, 70, 1, F32, F32, 0, 0, 0, 0, 0, i % 2 };
            check_flash(&f, "groups");
        }
    }
    const struct flash mixed = { 24, 40, 24, 4, 6, 5, 70, 2, F16, F32, 0, 0, 0, 0, 0, true };
    check_flash(&mixed, "k and v grouped in different ways");
}

static void masks(void ** state) {
    static const struct flash cases[] = {
        { 64, 64, 4, 4, 4, 3, 113, 1, F32, F32, 1, 1, 0, 0, 0, 0 },
        { 64, 64, 4, 4, 4, 32, 65, 1, F16, F16, 1, 1, 8, 0, 0, 1 },
        { 64, 64, 4, 2, 1, 5, 140, 3, F32, F16, 1, 3, 8, 10, 1, 1 },
        { 40, 72, 6, 3, 3, 4, 70, 6, BF16, F32, 3, 2, 8, 30, 1, 0 },
        { 40, 40, 12, 4, 4, 2, 64, 2, F32, BF16, 12, 1, 8, 0, 1, 1 },
        { 16, 16, 2, 1, 1, 75, 129, 1, F32, F32, 2, 1, 0, 30, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_flash(&cases[i], "masks");
    }
}

static void caps_and_sinks(void ** state) {
    static const struct flash cases[] = {
        { 64, 64, 2, 2, 2, 3, 113, 1, F32, F32, 0, 0, 0, 10, 0, 0 },
        { 64, 64, 2, 2, 2, 3, 113, 1, F16, F16, 0, 0, 0, 30, 1, 1 },
        { 64, 64, 2, 2, 2, 3, 1, 3, F32, F32, 0, 0, 0, 0, 1, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_flash(&cases[i], "caps and sinks");
    }
}

/* More queries than one walk takes; more keys than chunks of a prefetch. */
static void many(void ** state) {
    static const struct flash cases[] = {
        { 64, 64, 2, 2, 2, 300, 65, 1, F32, F32, 0, 0, 0, 0, 0, 1 },
        { 64, 64, 1, 1, 1, 1, 1025, 1, F32, F32, 0, 0, 0, 0, 0, 1 },
        { 64, 64, 2, 1, 1, 3, 1024, 1, F16, F16, 1, 1, 0, 0, 0, 1 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_flash(&cases[i], "many");
    }
}

static void nothing_to_do(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * q = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 8, 3, 2, 1);
    struct sotto_tensor * none = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 8, 0, 2, 1);
    struct sotto_tensor * k = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 8, 5, 2, 1);
    struct sotto_tensor * y = sotto_flash_attn_ext(c.ctx, q, none, none, NULL, 1.0f, 0.0f, 0.0f);
    assert_non_null(y);
    compute_everywhere(y); /* no keys: zeros */
    for (int64_t i = 0; i < sotto_nelements(y); i++) {
        assert_true(data_of(y)[i] == 0.0f);
    }
    assert_int_equal(compute(sotto_flash_attn_ext(c.ctx, none, k, k, NULL, 1.0f, 0.0f, 0.0f), 2), SOTTO_OK);
    op_case_end(&c);
}

/* A NaN or an infinity that is seen reaches the result of those who see it, and only theirs. */
static void nan_is_seen(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    const struct flash f = { 16, 16, 2, 2, 2, 3, 70, 1, F32, F32, 0, 0, 0, 0, 0, 0 };
    const struct operands o = new_operands(&c, &f);
    op_set(o.q, 3, 1, 0, 0, NAN);
    struct sotto_tensor * y = build_flash(&c, &f, &o);
    assert_int_equal(compute(y, 2), SOTTO_OK);
    for (int64_t i = 0; i < sotto_nelements(y); i++) {
        const bool touched = i / 16 % 2 == 0 && i / 32 == 1; /* head 0 of query 1 */
        assert_true(isnan(data_of(y)[i]) == touched);
    }
    op_case_end(&c);
}

/* ---- ATTN_ROWS ---- */

enum { D = 64, H = 3, SEQS = 3, LONGEST = 150, ROWS = 400, QUERIES = 11 };

struct rows {
    struct sotto_tensor *q, *k, *v, *table, *seq, *len;
};

/* Sequence s has its positions in rows of its own, in random order; all other rows hold NaN. Queries of the sequences
 * are mixed, with lengths from 0 to LONGEST. */
static struct sotto_tensor * new_keys(struct op_case * c, enum sotto_type type, bool across) {
    const int64_t n = ROWS + SEQS * LONGEST;
    return across ? sotto_permute(c->ctx, op_tensor(c, type, OP_DENSE, n, D, H, 1), 2, 0, 1, 3)
                  : op_tensor(c, type, OP_PERMUTED, D, H, n, 1);
}

static struct rows new_rows(struct op_case * c, enum sotto_type type, bool across, int64_t n) {
    static const int32_t some_len[] = { 1, 0, LONGEST, 64, 65, 63, 128, 2, 149 };
    struct rows r = { .q = op_tensor(c, SOTTO_TYPE_F32, OP_DENSE, D, H, n, 1),
                      .k = new_keys(c, type, across),
                      .v = op_tensor(c, type, OP_DENSE, D, H, ROWS + SEQS * LONGEST, 1),
                      .table = sotto_new_tensor_2d(c->ctx, SOTTO_TYPE_I32, LONGEST, SEQS),
                      .seq = sotto_new_tensor_1d(c->ctx, SOTTO_TYPE_I32, n),
                      .len = sotto_new_tensor_1d(c->ctx, SOTTO_TYPE_I32, n) };
    const int64_t n_rows = r.k->ne[2];
    bool * taken = calloc((size_t)n_rows, sizeof(bool));
    for (int64_t i = 0; i < sotto_nelements(r.table); i++) {
        int32_t row;
        do {
            row = (int32_t)(op_random(c) % n_rows);
        } while (taken[row]);
        taken[row] = true;
        ((int32_t *)r.table->data)[i] = row;
    }
    for (int64_t row = 0; row < n_rows; row++) {
        for (int64_t i = 0; i < (taken[row] ? 0 : D * H); i++) {
            op_set(r.k, i % D, i / D, row, 0, NAN);
            op_set(r.v, i % D, i / D, row, 0, NAN);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        ((int32_t *)r.seq->data)[i] = (int32_t)(op_random(c) % SEQS);
        ((int32_t *)r.len->data)[i] = some_len[i % (int64_t)COUNT(some_len)];
    }
    free(taken);
    return r;
}

static struct sotto_tensor * build_rows(struct op_case * c, const struct rows * r) {
    struct sotto_tensor * y = sotto_attn_rows(c->ctx, r->q, r->k, r->v, r->table, r->seq, r->len, 0.125f);
    if (!y) {
        fail_msg("%s", sotto_context_error(c->ctx));
    }
    return y;
}

static int32_t get(const struct sotto_tensor * t, int64_t i) { return ((const int32_t *)t->data)[i]; }

/* The first n positions of sequence s, gathered: [D, n, H], head by head. */
static struct sotto_tensor * gathered(struct op_case * c, const struct rows * r, const struct sotto_tensor * pool,
                                      int32_t s, int64_t n) {
    struct sotto_tensor * t = sotto_new_tensor_3d(c->ctx, pool->type, D, n, H);
    for (int64_t p = 0; p < n; p++) {
        const int64_t row = get(r->table, s * LONGEST + p);
        for (int64_t i = 0; i < D * H; i++) {
            op_set(t, i % D, p, i / D, 0, op_get(pool, i % D, i / D, row, 0));
        }
    }
    return t;
}

/* Keys [D, n, H] as a view [D, H, n] of [n, D, H]. */
static struct sotto_tensor * side_by_side(struct op_case * c, const struct sotto_tensor * k) {
    struct sotto_tensor * t = sotto_new_tensor_3d(c->ctx, k->type, k->ne[1], D, H);
    for (int64_t i = 0; i < sotto_nelements(t); i++) {
        const int64_t p = i % t->ne[0], l = i / t->ne[0] % D, h = i / t->ne[0] / D;
        op_set(t, p, l, h, 0, op_get(k, l, p, h, 0));
    }
    return sotto_permute(c->ctx, t, 2, 0, 1, 3);
}

/* Query i alone: flash_attn_ext over its gathered positions, and attn_rows with the identity table over them. */
static void check_alone(struct op_case * c, const struct rows * r, const struct sotto_tensor * y, int64_t i) {
    const int64_t n = get(r->len, i);
    const float * got = data_of(y) + i * D * H;
    if (n == 0) {
        for (int64_t d = 0; d < D * H; d++) {
            assert_true(got[d] == 0.0f);
        }
        return;
    }
    struct sotto_tensor * k = gathered(c, r, r->k, get(r->seq, i), n);
    struct sotto_tensor * v = gathered(c, r, r->v, get(r->seq, i), n);
    struct sotto_tensor * q = sotto_view_3d(c->ctx, r->q, D, H, 1, r->q->nb[1], r->q->nb[2], (size_t)i * r->q->nb[2]);
    struct sotto_tensor * flash =
        sotto_flash_attn_ext(c->ctx, sotto_permute(c->ctx, q, 0, 2, 1, 3), k, v, NULL, 0.125f, 0.0f, 0.0f);
    assert_int_equal(compute(flash, 1), SOTTO_OK);
    assert_memory_equal(got, flash->data, D * H * sizeof(float));

    struct rows alone = { .q = q,
                          .k = sotto_permute(c->ctx, k, 0, 2, 1, 3),
                          .v = sotto_permute(c->ctx, v, 0, 2, 1, 3),
                          .table = sotto_new_tensor_1d(c->ctx, SOTTO_TYPE_I32, n),
                          .seq = sotto_new_i32(c->ctx, 0),
                          .len = sotto_new_i32(c->ctx, (int32_t)n) };
    for (int64_t p = 0; p < n; p++) {
        ((int32_t *)alone.table->data)[p] = (int32_t)p;
    }
    struct sotto_tensor * one = build_rows(c, &alone);
    assert_int_equal(compute(one, 1), SOTTO_OK);
    assert_memory_equal(got, one->data, D * H * sizeof(float));

    alone.k = side_by_side(c, k);
    one = build_rows(c, &alone);
    assert_int_equal(compute(one, 1), SOTTO_OK);
    assert_memory_equal(got, one->data, D * H * sizeof(float));
}

static void sequences(void ** state) {
    static const int types[] = { F32, F16, BF16 };
    (void)state;
    for (size_t t = 0; t < 2 * COUNT(types); t++) {
        struct op_case c;
        op_case_begin(&c);
        const struct rows r = new_rows(&c, (enum sotto_type)types[t / 2], t % 2 == 1, QUERIES);
        struct sotto_tensor * y = build_rows(&c, &r);
        compute_everywhere(y);
        for (int64_t i = 0; i < QUERIES; i++) {
            check_alone(&c, &r, y, i);
        }
        op_case_end(&c);
    }
}

/* Query i of head h in double precision. */
static void rows_truth_of(const struct rows * r, int64_t i, int64_t h, double * y) {
    double score[LONGEST];
    const int32_t * table = (const int32_t *)r->table->data + get(r->seq, i) * LONGEST;
    const struct head head = { score, -INFINITY, get(r->len, i), D };
    for (int64_t p = 0; p < head.n; p++) {
        score[p] = 0.0;
        for (int64_t l = 0; l < D; l++) {
            score[p] += 0.125 * op_get(r->q, l, h, i, 0) * op_get(r->k, l, h, table[p], 0);
        }
    }
    memset(y, 0, D * sizeof(*y));
    if (!soften(&head)) {
        return;
    }
    for (int64_t p = 0; p < head.n; p++) {
        for (int64_t d = 0; d < D; d++) {
            y[d] += score[p] * op_get(r->v, d, h, table[p], 0);
        }
    }
}

/* Against double precision, more queries than one walk takes. */
static void rows_truth(void ** state) {
    enum { N = 300 };
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    const struct rows r = new_rows(&c, SOTTO_TYPE_F32, false, N);
    struct sotto_tensor * y = build_rows(&c, &r);
    double * want = calloc((size_t)sotto_nelements(y), sizeof(double));
    for (int64_t i = 0; i < N * H; i++) {
        rows_truth_of(&r, i / H, i % H, want + i * D);
    }
    compute_everywhere(y);
    check_close(y, want, 1e-11, "attn_rows");
    free(want);
    op_case_end(&c);
}

/* A causal mask over dense keys is the same as growing lengths over a table. */
static void causal(void ** state) {
    enum { N = 70 };
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct rows r = new_rows(&c, SOTTO_TYPE_F32, false, N);
    struct sotto_tensor * mask = sotto_new_tensor_2d(c.ctx, SOTTO_TYPE_F16, N, N);
    for (int64_t i = 0; i < N * N; i++) {
        ((uint16_t *)mask->data)[i] = i % N > i / N ? 0xFC00 : 0;
    }
    for (int64_t i = 0; i < N; i++) {
        ((int32_t *)r.seq->data)[i] = 1;
        ((int32_t *)r.len->data)[i] = (int32_t)i + 1;
    }
    struct sotto_tensor * k = gathered(&c, &r, r.k, 1, N);
    struct sotto_tensor * v = gathered(&c, &r, r.v, 1, N);
    struct sotto_tensor * flash =
        sotto_flash_attn_ext(c.ctx, sotto_permute(c.ctx, r.q, 0, 2, 1, 3), k, v, mask, 0.125f, 0.0f, 0.0f);
    struct sotto_tensor * y = build_rows(&c, &r);
    assert_int_equal(compute(flash, 2), SOTTO_OK);
    assert_int_equal(compute(y, 2), SOTTO_OK);
    assert_memory_equal(y->data, flash->data, sotto_nbytes(y));
    op_case_end(&c);
}

static void check_refused(struct op_case * c, struct sotto_tensor * y, int32_t * place, int32_t bad) {
    static const int threads[] = { 1, 3 };
    const int32_t good = *place;
    for (size_t i = 0; i < COUNT(threads); i++) {
        *place = bad;
        assert_int_equal(compute(y, threads[i]), SOTTO_E_RANGE);
        assert_non_null(strstr(sotto_last_error_text(), "attn_rows"));
        *place = good;
        assert_int_equal(compute(y, threads[i]), SOTTO_OK);
    }
    for (int k = 0; k < 2; k++) {
        for (int64_t b = 0; b < sotto_nelements(c->guard[k]); b++) {
            assert_int_equal(((const char *)c->guard[k]->data)[b], ((const char *)c->guard[k]->data)[0]);
        }
    }
}

static void bad_indices(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    const struct rows r = new_rows(&c, SOTTO_TYPE_F32, false, QUERIES);
    struct sotto_tensor * y = build_rows(&c, &r);
    c.guard[1] = sotto_dup_tensor(c.ctx, c.guard[0]);
    memset(c.guard[1]->data, 1, sotto_nbytes(c.guard[1]));
    int32_t *seq = r.seq->data, *len = r.len->data, *table = r.table->data;
    check_refused(&c, y, &seq[4], -1);
    check_refused(&c, y, &seq[4], SEQS);
    check_refused(&c, y, &len[4], -1);
    check_refused(&c, y, &len[4], LONGEST + 1);
    check_refused(&c, y, &len[QUERIES - 1], INT32_MAX);
    const int64_t seen = (int64_t)seq[2] * LONGEST; /* query 2 sees all of its sequence */
    check_refused(&c, y, &table[seen], -1);
    check_refused(&c, y, &table[seen + LONGEST - 1], (int32_t)r.k->ne[2]);
    check_refused(&c, y, &table[seen + 70], INT32_MIN);

    for (int64_t i = 0; i < QUERIES; i++) { /* what nobody sees may be anything */
        len[i] = 5;
    }
    table[seen + 5] = -7;
    assert_int_equal(compute(y, 2), SOTTO_OK);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths),         cmocka_unit_test(groups),      cmocka_unit_test(masks),
        cmocka_unit_test(caps_and_sinks), cmocka_unit_test(many),        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(nan_is_seen),    cmocka_unit_test(sequences),   cmocka_unit_test(rows_truth),
        cmocka_unit_test(causal),         cmocka_unit_test(bad_indices),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
