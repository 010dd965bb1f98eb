/* SPDX-License-Identifier: MIT */
/* Attention kernels and the walk over them: every level of this machine, bit for bit against the scalar twin and
 * against docs/numerics.md written down once more.
 *
 *     test_attn [SEED] [--bench]
 *
 * Operands end at a page that cannot be read, outputs are surrounded by canaries. --bench times an encoder layer and the
 * decoder's steps instead, on one thread. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cpu/attn.h"
#include "cpu/kernels.h"
#include "cpu/vmath_c.h"
#include "guarded.h"

enum { KEYS = SOTTO_I_ATTN_KEYS, TILE = SOTTO_I_ATTN_TILE, TYPES = SOTTO_I_ATTN_TYPES, MASKED = 0xFC00 };

static uint64_t seed = 1;
static struct dice dice;

static const enum sotto_type types[TYPES] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16 };

static size_t size_of(enum sotto_i_attn_type type) { return sotto_type_size(types[type]); }

static void put(enum sotto_i_attn_type type, void * row, int64_t i, float x) {
    switch (type) {
    case SOTTO_I_ATTN_F16: ((sotto_fp16_t *)row)[i] = sotto_fp32_to_fp16(x); break;
    case SOTTO_I_ATTN_BF16: ((sotto_bf16_t *)row)[i] = sotto_fp32_to_bf16(x); break;
    default: ((float *)row)[i] = x; break;
    }
}

static float take(enum sotto_i_attn_type type, const void * row, int64_t i) {
    switch (type) {
    case SOTTO_I_ATTN_F16: return sotto_fp16_to_fp32(((const sotto_fp16_t *)row)[i]);
    case SOTTO_I_ATTN_BF16: return sotto_bf16_to_fp32(((const sotto_bf16_t *)row)[i]);
    default: return ((const float *)row)[i];
    }
}

/* What the values are like: ordinary, or so large that scores overflow, or sprinkled with infinities and NaN. */
enum kind { ORDINARY, LARGE, SPECIAL, KINDS };

static float value(enum kind kind) {
    const float x = dice_float(&dice);
    if (kind == LARGE) {
        return x * 1e25f;
    }
    if (kind == SPECIAL && dice_below(&dice, 500) == 0) {
        const float special[] = { INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e-42f };
        return special[dice_below(&dice, 6)];
    }
    return x;
}

static bool same(float a, float b) { return sotto_i_to_bits(a) == sotto_i_to_bits(b) || (isnan(a) && isnan(b)); }

static void check_same(const float * want, const float * got, size_t n, const char * what, ...) {
    for (size_t i = 0; i < n; i++) {
        if (!same(want[i], got[i])) {
            char text[200];
            va_list args;
            va_start(args, what);
            vsnprintf(text, sizeof(text), what, args);
            va_end(args);
            fail_msg("seed %llu, %s: element %zu is %a, should be %a", (unsigned long long)seed, text, i,
                     (double)got[i], (double)want[i]);
        }
    }
}

static const int widths[] = { 1, 3, 7, 8, 9, 15, 16, 17, 31, 40, 64, 72, 80, 255, 256, 257, 513, 576 };
enum { N_WIDTHS = sizeof(widths) / sizeof(widths[0]) };

/* ---- slots against their twins ---- */

struct level {
    struct sotto_i_attn_kernels c, k;
    enum sotto_cpu_level level;
};

static void fill(float * x, size_t n, enum kind kind) {
    for (size_t i = 0; i < n; i++) {
        x[i] = value(kind);
    }
}

static void check_rows(const struct level * l, enum sotto_i_attn_type type, int64_t d, int n) {
    struct guarded rows[KEYS];
    const void * source[KEYS];
    for (int j = 0; j < KEYS; j++) {
        rows[j] = guarded_new((size_t)d * size_of(type));
        source[j] = rows[j].data;
        for (int64_t i = 0; i < d; i++) {
            put(type, rows[j].data, i, value(SPECIAL));
        }
    }
    const size_t size = (size_t)d * KEYS;
    struct guarded want = guarded_new(size * sizeof(float)), got = guarded_new(size * sizeof(float));
    l->c.pack_keys[type](want.data, source, d);
    l->k.pack_keys[type](got.data, source, d);
    check_same(want.data, got.data, size, "level %d, pack_keys of type %d, d %d", l->level, type, (int)d);
    memset(want.data, 0, size * sizeof(float));
    memset(got.data, 0, size * sizeof(float));
    l->c.widen[type](want.data, d, source, n, d);
    l->k.widen[type](got.data, d, source, n, d);
    check_same(want.data, got.data, size, "level %d, widen of type %d, d %d, n %d", l->level, type, (int)d, n);
    l->k.prefetch(source, n, (size_t)d * size_of(type));
    for (int j = 0; j < KEYS; j++) {
        guarded_free(&rows[j]);
    }
    guarded_free(&want);
    guarded_free(&got);
}

static void test_rows(void ** state) {
    for (int type = 0; type < TYPES; type++) {
        for (int w = 0; w < N_WIDTHS; w++) {
            check_rows(*state, (enum sotto_i_attn_type)type, widths[w], 1 + (int)dice_below(&dice, KEYS));
        }
    }
}

static void check_dots(const struct level * l, int64_t d, int n, enum kind kind) {
    const int64_t ldq = d + 3;
    const size_t size = (size_t)n * KEYS;
    struct guarded q = guarded_new((size_t)((n - 1) * ldq + d) * sizeof(float));
    struct guarded keys = guarded_new((size_t)d * KEYS * sizeof(float));
    struct guarded want = guarded_new(size * sizeof(float)), got = guarded_new(size * sizeof(float));
    fill(q.data, (size_t)((n - 1) * ldq + d), kind);
    fill(keys.data, (size_t)d * KEYS, kind);
    l->c.dots(want.data, q.data, ldq, n, keys.data, d);
    l->k.dots(got.data, q.data, ldq, n, keys.data, d);
    check_same(want.data, got.data, size, "level %d, dots of %d queries, d %d, values %d", l->level, n, (int)d, kind);
    guarded_free(&q);
    guarded_free(&keys);
    guarded_free(&want);
    guarded_free(&got);
}

static void test_dots(void ** state) {
    check_dots(*state, 0, 1, ORDINARY);
    for (int w = 0; w < N_WIDTHS; w++) {
        for (int n = 1; n <= TILE; n += widths[w] > 100 ? 5 : 1) {
            check_dots(*state, widths[w], n, (enum kind)dice_below(&dice, KINDS));
        }
    }
}

/* Open positions of a query: all, a first part, none, or some. */
static uint64_t some_open(int n_keys) {
    switch (dice_below(&dice, 4)) {
    case 0: return sotto_i_first_bits(n_keys);
    case 1: return sotto_i_first_bits((int64_t)dice_below(&dice, (uint32_t)n_keys + 1));
    case 2: return 0;
    default: return (uint64_t)dice_next(&dice) << 32 ^ dice_next(&dice);
    }
}

static void check_values(const struct level * l, int64_t d, int n, enum kind kind) {
    struct guarded rows[KEYS];
    const float * v[KEYS];
    float w[TILE * KEYS], factor[TILE];
    uint64_t open[TILE], any = 0;
    fill(w, TILE * KEYS, kind);
    fill(factor, TILE, kind);
    for (int i = 0; i < n; i++) {
        open[i] = i > 0 && dice_below(&dice, 2) ? open[i - 1] : some_open(KEYS);
        any |= open[i];
    }
    for (int j = 0; j < KEYS; j++) {
        rows[j] = guarded_new((size_t)d * sizeof(float));
        fill(rows[j].data, (size_t)d, kind);
        v[j] = (any >> j & 1) != 0 ? rows[j].data : NULL;
    }
    const size_t size = (size_t)n * (size_t)(d + 2);
    float *want = malloc(size * sizeof(float)), *got = malloc(size * sizeof(float));
    fill(want, size, kind);
    memcpy(got, want, size * sizeof(float));
    l->c.values(want, d + 2, n, w, factor, open, v, d);
    l->k.values(got, d + 2, n, w, factor, open, v, d);
    check_same(want, got, size, "level %d, values of %d queries, d %d, values %d", l->level, n, (int)d, kind);
    for (int j = 0; j < KEYS; j++) {
        guarded_free(&rows[j]);
    }
    free(want);
    free(got);
}

static void test_values(void ** state) {
    for (int w = 0; w < N_WIDTHS; w++) {
        for (int n = 1; n <= TILE; n += widths[w] > 100 ? 5 : 1) {
            check_values(*state, widths[w], n, (enum kind)dice_below(&dice, KINDS));
        }
    }
}

/* Half the masks hold some -inf, some are 0, some small numbers, few are infinite or NaN. */
static uint16_t some_mask(enum kind kind) {
    switch (dice_below(&dice, kind == SPECIAL ? 60 : 4)) {
    case 0: return MASKED;
    case 1: return 0;
    case 4: return 0x7C00;
    case 5: return 0x7E01;
    default: return sotto_fp32_to_fp16(dice_float(&dice) * 3.0f);
    }
}

static void check_weigh(const struct level * l, int n, int n_keys, bool masked, float softcap, enum kind kind) {
    float x[2][TILE * KEYS], max[2][TILE], sum[2][TILE], factor[2][TILE], slope[TILE];
    uint64_t open[2][TILE];
    struct guarded mask_rows[TILE];
    const uint16_t * mask[TILE];
    fill(x[0], TILE * KEYS, kind == LARGE ? LARGE : kind);
    for (int i = 0; i < n; i++) {
        mask_rows[i] = guarded_new((size_t)n_keys * sizeof(uint16_t));
        mask[i] = mask_rows[i].data;
        for (int j = 0; j < n_keys; j++) {
            ((uint16_t *)mask_rows[i].data)[j] = some_mask(kind);
        }
        slope[i] = dice_below(&dice, 2) ? 1.0f : 0.25f;
        max[0][i] = dice_below(&dice, 3) ? value(kind) : -INFINITY;
        sum[0][i] = max[0][i] == -INFINITY ? 0.0f : 1.0f + fabsf(value(kind));
        factor[0][i] = 0.0f;
        open[0][i] = some_open(n_keys) & sotto_i_first_bits(n_keys);
        if (masked) {
            const uint64_t unmasked = l->c.unmasked(mask[i], n_keys);
            assert_true(unmasked == l->k.unmasked(mask[i], n_keys));
            open[0][i] &= unmasked;
        }
        if (dice_below(&dice, 8) == 0) { /* nothing but -inf, and sometimes a NaN */
            for (int j = 0; j < KEYS; j++) {
                x[0][i * KEYS + j] = -INFINITY;
            }
            x[0][i * KEYS] = dice_below(&dice, 2) ? NAN : -INFINITY;
        }
    }
    memcpy(x[1], x[0], sizeof(x[0]));
    memcpy(max[1], max[0], sizeof(max[0]));
    memcpy(sum[1], sum[0], sizeof(sum[0]));
    memcpy(factor[1], factor[0], sizeof(factor[0]));
    memcpy(open[1], open[0], sizeof(open[0]));
    for (int k = 0; k < 2; k++) {
        const struct sotto_i_attn_weigh t = { n,     n_keys, 0.125f, softcap,   x[k],   masked ? mask : NULL,
                                              slope, max[k], sum[k], factor[k], open[k] };
        (k ? l->k : l->c).weigh(&t);
    }
    for (int i = 0; i < n; i++) {
        const char * what = "level %d, weigh, query %d of %d, %d keys, mask %d, cap %g, values %d";
        assert_true(open[0][i] == open[1][i]);
        check_same(&max[0][i], &max[1][i], 1, what, l->level, i, n, n_keys, masked, (double)softcap, kind);
        check_same(&sum[0][i], &sum[1][i], 1, what, l->level, i, n, n_keys, masked, (double)softcap, kind);
        check_same(&factor[0][i], &factor[1][i], 1, what, l->level, i, n, n_keys, masked, (double)softcap, kind);
        if (open[0][i] != 0) {
            check_same(x[0] + i * KEYS, x[1] + i * KEYS, KEYS, what, l->level, i, n, n_keys, masked, (double)softcap,
                       kind);
        }
        guarded_free(&mask_rows[i]);
    }
}

static void test_weigh(void ** state) {
    for (int round = 0; round < 600; round++) {
        const int n_keys = round % 3 == 0 ? KEYS : 1 + (int)dice_below(&dice, KEYS);
        check_weigh(*state, 1 + (int)dice_below(&dice, TILE), n_keys, dice_below(&dice, 2),
                    round % 4 == 0 ? 30.0f : 0.0f, (enum kind)dice_below(&dice, KINDS));
    }
}

/* ---- the walk against the definition ---- */

struct setup {
    int64_t dk, dv, nk, nq;
    enum sotto_i_attn_type k_type, v_type;
    bool masked, table, sinks, lengths;
    float scale, softcap;
    enum kind kind;
};

/* A setup with its operands. */
struct walk {
    struct setup s;
    struct guarded k, v, q, mask, table;
    size_t k_step, v_step;
    float sink;
    int64_t * len;
};

static void describe(const struct setup * s, char * text, size_t size) {
    snprintf(text, size, "dk %d dv %d nk %d nq %d types %d %d mask %d table %d sinks %d lengths %d cap %g values %d",
             (int)s->dk, (int)s->dv, (int)s->nk, (int)s->nq, s->k_type, s->v_type, s->masked, s->table, s->sinks,
             s->lengths, (double)s->softcap, s->kind);
}

static int64_t row_of(const struct walk * w, int64_t p) { return w->s.table ? ((const int32_t *)w->table.data)[p] : p; }

static const uint16_t * mask_of(const struct walk * w, int64_t i) {
    return (const uint16_t *)w->mask.data + i * w->s.nk;
}

static bool takes_part(const struct walk * w, int64_t i, int64_t p) {
    return p < w->len[i] && !(w->s.masked && mask_of(w, i)[p] == MASKED);
}

static void fill_pool(const struct walk * w, struct guarded * pool, size_t step, enum sotto_i_attn_type type, int64_t d,
                      int64_t n_rows) {
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t l = 0; l < d; l++) {
            put(type, (char *)pool->data + (size_t)r * step, l, (float)NAN);
        }
    }
    for (int64_t p = 0; p < w->s.nk; p++) {
        bool read = false;
        for (int64_t i = 0; i < w->s.nq && !read; i++) {
            read = takes_part(w, i, p);
        }
        for (int64_t l = 0; l < d && read; l++) {
            put(type, (char *)pool->data + (size_t)row_of(w, p) * step, l, value(w->s.kind));
        }
    }
}

/* Masks: random, with blocks of -inf, the first query sees nothing, the last position is seen by nobody. */
static void fill_mask(struct walk * w) {
    for (int64_t i = 0; i < w->s.nq; i++) {
        uint16_t * row = (uint16_t *)w->mask.data + i * w->s.nk;
        const bool causal = dice_below(&dice, 3) == 0;
        for (int64_t p = 0; p < w->s.nk; p++) {
            const bool closed = i == 0 || p + 1 == w->s.nk || p / 80 == 1 || (causal && p > i + w->s.nk - w->s.nq);
            row[p] = closed ? MASKED : some_mask(w->s.kind);
        }
    }
}

/* A random order of rows, without the first and the last ones of the pool. */
static void fill_table(struct walk * w) {
    int32_t * t = w->table.data;
    for (int64_t p = 0; p < w->s.nk; p++) {
        t[p] = (int32_t)p + 3;
    }
    for (int64_t p = w->s.nk - 1; p > 0; p--) {
        const int64_t other = dice_below(&dice, (uint32_t)p + 1);
        const int32_t row = t[p];
        t[p] = t[other];
        t[other] = row;
    }
}

static struct walk walk_new(const struct setup * s) {
    struct walk w = { .s = *s, .sink = dice_float(&dice) * 2.0f };
    const int64_t n_rows = s->table ? s->nk + 5 : s->nk;
    w.k_step = ((size_t)s->dk + 2) * size_of(s->k_type);
    w.v_step = ((size_t)s->dv + 1) * size_of(s->v_type);
    w.k = guarded_new((size_t)(n_rows - 1) * w.k_step + (size_t)s->dk * size_of(s->k_type));
    w.v = guarded_new((size_t)(n_rows - 1) * w.v_step + (size_t)s->dv * size_of(s->v_type));
    w.q = guarded_new((size_t)(s->nq * s->dk) * sizeof(float));
    w.mask = guarded_new((size_t)(s->nq * s->nk) * sizeof(uint16_t));
    w.table = guarded_new((size_t)s->nk * sizeof(int32_t));
    w.len = malloc((size_t)s->nq * sizeof(*w.len));
    for (int64_t i = 0; i < s->nq; i++) {
        w.len[i] = s->lengths ? dice_below(&dice, (uint32_t)s->nk + 1) : s->nk;
    }
    fill_mask(&w);
    fill_table(&w);
    fill(w.q.data, (size_t)(s->nq * s->dk), s->kind);
    fill_pool(&w, &w.k, w.k_step, s->k_type, s->dk, n_rows);
    fill_pool(&w, &w.v, w.v_step, s->v_type, s->dv, n_rows);
    return w;
}

static void walk_free(struct walk * w) {
    guarded_free(&w->k);
    guarded_free(&w->v);
    guarded_free(&w->q);
    guarded_free(&w->mask);
    guarded_free(&w->table);
    free(w->len);
}

/* docs/numerics.md, "Attention", step 1. */
static float score(const struct walk * w, int64_t i, int64_t p) {
    const float * q = (const float *)w->q.data + i * w->s.dk;
    const char * k = (const char *)w->k.data + (size_t)row_of(w, p) * w->k_step;
    float y = 0.0f;
    for (int64_t l0 = 0; l0 < w->s.dk; l0 += 256) {
        float s = 0.0f;
        for (int64_t l = l0; l < w->s.dk && l < l0 + 256; l++) {
            s = fmaf(q[l], take(w->s.k_type, k, l), s);
        }
        y = l0 == 0 ? s : y + s;
    }
    y = w->s.softcap != 0.0f ? w->s.softcap * sotto_i_tanhf(w->s.scale / w->s.softcap * y) : w->s.scale * y;
    return w->s.masked ? fmaf(0.5f, sotto_fp16_to_fp32(mask_of(w, i)[p]), y) : y;
}

/* Steps 2 to 5 for the positions [p0, p1) of query i. */
static void define_chunk(const struct walk * w, int64_t i, int64_t p0, int64_t p1, float * m, float * s, float * o) {
    float x[KEYS], above = *m, part[16] = { 0.0f };
    bool nan = false;
    for (int64_t p = p0; p < p1; p++) {
        x[p - p0] = takes_part(w, i, p) ? score(w, i, p) : -INFINITY;
        above = x[p - p0] > above ? x[p - p0] : above;
        nan = nan || isnan(x[p - p0]);
    }
    if (above == -INFINITY && !nan) {
        return;
    }
    above = above == -INFINITY ? NAN : above;
    const float f = *m == -INFINITY ? 0.0f : sotto_i_expf(*m - above);
    for (int64_t p = p0; p < p1; p++) {
        x[p - p0] = takes_part(w, i, p) ? sotto_i_expf(x[p - p0] - above) : 0.0f;
        part[(p - p0) % 16] += x[p - p0];
    }
    for (int half = 8; half > 0; half /= 2) {
        for (int q = 0; q < half; q++) {
            part[q] += part[q + half];
        }
    }
    *m = above;
    *s = fmaf(*s, f, part[0]);
    for (int64_t d = 0; d < w->s.dv; d++) {
        o[d] *= f;
        for (int64_t p = p0; p < p1; p++) {
            if (takes_part(w, i, p)) {
                const char * v = (const char *)w->v.data + (size_t)row_of(w, p) * w->v_step;
                o[d] = fmaf(x[p - p0], take(w->s.v_type, v, d), o[d]);
            }
        }
    }
}

static void define(const struct walk * w, int64_t i, float * o) {
    float m = -INFINITY, s = 0.0f, f = 1.0f;
    for (int64_t d = 0; d < w->s.dv; d++) {
        o[d] = 0.0f;
    }
    for (int64_t p = 0; p < w->s.nk; p += KEYS) {
        define_chunk(w, i, p, p + KEYS < w->s.nk ? p + KEYS : w->s.nk, &m, &s, o);
    }
    if (s == 0.0f) {
        return;
    }
    if (w->s.sinks) {
        const float above = w->sink > m ? w->sink : m;
        f = sotto_i_expf(m - above);
        s = fmaf(s, f, sotto_i_expf(w->sink - above));
    }
    for (int64_t d = 0; d < w->s.dv; d++) {
        o[d] = o[d] * f * (1.0f / s);
    }
}

/* Queries [first, last) in one walk. */
static void run_walk(const struct sotto_i_attn_kernels * kernels, const struct walk * w, int64_t first, int64_t last,
                     float * out, void * scratch) {
    struct sotto_i_attn_walk a = {
        .dk = w->s.dk,
        .dv = w->s.dv,
        .k = { w->k.data, w->k_step, w->s.k_type },
        .v = { w->v.data, w->v_step, w->s.v_type },
        .table = w->s.table ? w->table.data : NULL,
        .table_step = sizeof(int32_t),
        .scale = w->s.scale,
        .softcap = w->s.softcap,
        .queries = scratch,
        .n = last - first,
    };
    for (int64_t i = first; i < last; i++) {
        a.queries[i - first] = (struct sotto_i_attn_query){
            .q = (const float *)w->q.data + i * w->s.dk,
            .out = out + i * w->s.dv,
            .mask = w->s.masked ? mask_of(w, i) : NULL,
            .sink = w->s.sinks ? &w->sink : NULL,
            .slope = 0.5f,
            .len = w->len[i],
        };
    }
    sotto_i_attn_run(kernels, &a, scratch);
}

/* All queries, in walks of at most `block`. */
static void check_walk(const struct level * l, const struct walk * w, int64_t block, const float * want) {
    const size_t n = (size_t)(w->s.nq * w->s.dv);
    float * got = malloc((n + 2) * sizeof(float));
    void * scratch = NULL;
    char text[160];
    assert_int_equal(posix_memalign(&scratch, SOTTO_DATA_ALIGN, sotto_i_attn_scratch(w->s.dk, w->s.dv)), 0);
    got[0] = got[n + 1] = 12345.0f;
    for (int64_t i = 0; i < w->s.nq; i += block) {
        run_walk(&l->k, w, i, i + block < w->s.nq ? i + block : w->s.nq, got + 1, scratch);
    }
    describe(&w->s, text, sizeof(text));
    check_same(want, got + 1, n, "level %d, %s, walks of %d", l->level, text, (int)block);
    assert_true(got[0] == 12345.0f && got[n + 1] == 12345.0f);
    free(got);
    free(scratch);
}

static void check_setup(const struct level * l, const struct setup * s) {
    struct walk w = walk_new(s);
    float * want = malloc((size_t)(s->nq * s->dv) * sizeof(float));
    for (int64_t i = 0; i < s->nq; i++) {
        define(&w, i, want + i * s->dv);
    }
    check_walk(l, &w, sotto_i_attn_block(s->dk, s->dv), want);
    check_walk(l, &w, 5, want);
    check_walk(l, &w, 1, want);
    free(want);
    walk_free(&w);
}

static struct setup some_setup(int64_t dk, int64_t dv, int64_t nk, int64_t nq) {
    const float caps[] = { 0.0f, 0.0f, 10.0f, 30.0f };
    return (struct setup){
        .dk = dk,
        .dv = dv,
        .nk = nk,
        .nq = nq,
        .k_type = (enum sotto_i_attn_type)dice_below(&dice, TYPES),
        .v_type = (enum sotto_i_attn_type)dice_below(&dice, TYPES),
        .masked = dice_below(&dice, 2),
        .table = dice_below(&dice, 2),
        .sinks = dice_below(&dice, 2),
        .lengths = dice_below(&dice, 3) == 0,
        .scale = 1.0f / sqrtf((float)dk),
        .softcap = caps[dice_below(&dice, 4)],
        .kind = dice_below(&dice, 3) ? ORDINARY : (enum kind)dice_below(&dice, KINDS),
    };
}

static void test_walk(void ** state) {
    static const int dks[] = { 1, 40, 64, 64, 72, 80, 96, 128, 192, 256, 192, 320, 576, 64, 30 };
    static const int dvs[] = { 1, 40, 64, 64, 72, 80, 96, 128, 192, 256, 128, 256, 512, 3, 7 };
    static const int nks[] = { 1, 63, 64, 65, 113, 200, 512, 1024, 1025 };
    static const int nqs[] = { 1, 3, 12, 13, 32, 75 };
    for (size_t i = 0; i < sizeof(dks) / sizeof(dks[0]); i++) {
        for (size_t j = 0; j < sizeof(nks) / sizeof(nks[0]); j++) {
            int64_t nq = nqs[dice_below(&dice, 6)];
            while (nq > 1 && nq * nks[j] * (dks[i] + dvs[i]) > 3000000) {
                nq = nq / 2;
            }
            const struct setup s = some_setup(dks[i], dvs[i], nks[j], nq);
            check_setup(*state, &s);
        }
    }
}

/* The encoder's and the decoder's form, whole. */
static void test_width_64(void ** state) {
    const struct setup many = { .dk = 64, .dv = 64, .nk = 150, .nq = 300, .scale = 0.125f };
    const struct setup few = { .dk = 64,
                               .dv = 64,
                               .nk = 448,
                               .nq = 9,
                               .scale = 0.125f,
                               .table = true,
                               .k_type = SOTTO_I_ATTN_F16,
                               .v_type = SOTTO_I_ATTN_F16 };
    check_setup(*state, &many);
    check_setup(*state, &few);
}

/* ---- plan-time figures ---- */

static void test_blocks(void ** state) {
    (void)state;
    for (int64_t d = 1; d <= SOTTO_I_ATTN_MAX_WIDTH; d *= 2) {
        const int64_t block = sotto_i_attn_block(d, d);
        assert_true(block >= 1 && block <= SOTTO_I_ATTN_MAX_BLOCK);
        for (int64_t n = 1; n < 5000; n = n * 3 + 1) {
            for (int threads = 1; threads < 100; threads = threads * 2 + 1) {
                const int64_t blocks = sotto_i_attn_n_blocks(n, 8, d, d, threads);
                assert_true(blocks >= 1 && blocks <= n && (n + blocks - 1) / blocks <= block);
            }
        }
    }
}

/* ---- bench ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* `nq` queries of 8 heads of width 64 over nk keys, rows of all heads interleaved or each head's side by side. */
static void bench_form(const struct level * l, const char * name, int64_t nq, int64_t nk, enum sotto_i_attn_type type,
                       bool head_major) {
    enum { D = 64, H = 8, RUNS = 9, MAX_NQ = 250 };
    const struct setup s = { .dk = D * H, .dv = D * H, .nk = nk, .nq = nq, .k_type = type, .v_type = type };
    struct walk w = walk_new(&s);
    float * out = malloc((size_t)(nq * D * H) * sizeof(float));
    void * scratch = NULL;
    double best = 1e9;
    assert_int_equal(posix_memalign(&scratch, SOTTO_DATA_ALIGN, sotto_i_attn_scratch(D, D)), 0);
    const size_t head = size_of(type) * D * (head_major ? (size_t)nk : 1);
    struct sotto_i_attn_walk a = { .dk = D, .dv = D, .scale = 0.125f, .queries = scratch };
    for (int run = 0; run < RUNS; run++) {
        const double start = now();
        for (int64_t h = 0; h < H; h++) {
            const size_t step = head_major ? size_of(type) * D : w.k_step, v_step = head_major ? step : w.v_step;
            a.k = (struct sotto_i_attn_pool){
                .data = (char *)w.k.data + (size_t)h * head, .step = step, .type = type, .size = D * size_of(type)
            };
            a.v = (struct sotto_i_attn_pool){
                .data = (char *)w.v.data + (size_t)h * head, .step = v_step, .type = type, .size = D * size_of(type)
            };
            for (int64_t first = 0; first < nq; first += MAX_NQ) {
                a.n = nq - first < MAX_NQ ? nq - first : MAX_NQ;
                for (int64_t i = 0; i < a.n; i++) {
                    const int64_t at = (first + i) * D * H + h * D;
                    a.queries[i] =
                        (struct sotto_i_attn_query){ (float *)w.q.data + at, out + at, NULL, NULL, 1.0f, nk };
                }
                sotto_i_attn_run(&l->k, &a, scratch);
            }
        }
        const double t = now() - start;
        best = t < best ? t : best;
    }
    printf("%-7s %-28s %s%s %9.3f ms %7.1f GFLOP/s\n", sotto_cpu_level_name(l->level), name,
           sotto_type_name(types[type]), head_major ? ", head by head" : "", best * 1e3,
           4.0 * (double)(nq * nk * D * H) / best * 1e-9);
    free(out);
    free(scratch);
    walk_free(&w);
}

static void bench(const struct level * l) {
    if (l->level != SOTTO_CPU_LEVEL_C) {
        bench_form(l, "encoder, 1500 queries", 1500, 1500, SOTTO_I_ATTN_F32, false);
    }
    for (int type = 0; type < 2; type++) {
        bench_form(l, "cross, 1 query", 1, 1500, (enum sotto_i_attn_type)type, false);
        bench_form(l, "cross, 1 query", 1, 1500, (enum sotto_i_attn_type)type, true);
        bench_form(l, "cross, 5 queries", 5, 1500, (enum sotto_i_attn_type)type, false);
        bench_form(l, "cross, 16 queries", 16, 1500, (enum sotto_i_attn_type)type, false);
        bench_form(l, "self, 1 query of 448", 1, 448, (enum sotto_i_attn_type)type, false);
    }
}

int main(int argc, char ** argv) {
    bool timed = false;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0) {
            timed = true;
        } else {
            seed = strtoull(argv[i], NULL, 10);
        }
    }
    for (int level = 0; level <= (int)sotto_cpu_best_level(); level++) {
        struct level l = { .level = (enum sotto_cpu_level)level };
        sotto_i_attn_init(&l.c, SOTTO_CPU_LEVEL_C);
        sotto_i_attn_init(&l.k, l.level);
        dice.state = seed;
        if (timed) {
            bench(&l);
            continue;
        }
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(test_rows, &l),
            cmocka_unit_test_prestate(test_dots, &l),
            cmocka_unit_test_prestate(test_values, &l),
            cmocka_unit_test_prestate(test_weigh, &l),
            cmocka_unit_test_prestate(test_walk, &l),
            cmocka_unit_test_prestate(test_width_64, &l),
            cmocka_unit_test(test_blocks),
        };
        printf("seed %llu, level %s\n", (unsigned long long)seed, sotto_cpu_level_name(l.level));
        failed += cmocka_run_group_tests_name("attention kernels", tests, NULL, NULL);
    }
    return failed;
}
