/* SPDX-License-Identifier: MIT */
/* Products in bytes (gemm_form.h): strips of rounded activations, panels of codes (igemm_kernels.h).
 *
 *     strip of ld columns, n elements      q [n / 4][ld][4]     d [n / 32][ld]     start, sum [n / sub][ld]
 *     panel                                codes [n / 4][16][4], then scales and minima [n / sub][16] */
#include <string.h>

#include "cpu/gemm_form.h"
#include "cpu/panel.h"

enum {
    PANEL = SOTTO_CPU_PANEL,
    BLOCK = SOTTO_I_K_BLOCK,
    ROUND = SOTTO_I_ROUND_BLOCK,
    MIN_SUB = SOTTO_I_CODES_MIN_SUB,
    CODE_BYTES = BLOCK * PANEL,
    SCALES = BLOCK / MIN_SUB * PANEL,
    PANEL_BYTES = CODE_BYTES + 2 * SCALES * 4
};

/* ---- columns ---- */

/* Where the parts of a strip lie. */
struct strip {
    int8_t * q;
    float * d;
    int32_t * start;
    float * sum;
};

static size_t strip_size(int64_t ld, int64_t n) {
    return (size_t)(ld * n) + (size_t)(ld * (n / ROUND + 2 * (n / MIN_SUB))) * 4;
}

static struct strip strip_at(void * data, int64_t ld, int64_t n) {
    struct strip s = { .q = data };
    s.d = (float *)(void *)(s.q + ld * n);
    s.start = (int32_t *)(void *)(s.d + n / ROUND * ld);
    s.sum = (float *)(void *)(s.start + n / MIN_SUB * ld);
    return s;
}

/* Rounded columns on their way into a strip, where words of four move as floats do. */
struct rounded {
    float values[BLOCK]; /* a column as f32, if it is not */
    union {
        int8_t q[BLOCK];
        float words[BLOCK / 4];
    } columns[SOTTO_I_GEMM_MAX_COLS];
    float d[BLOCK / ROUND];
    int32_t sums[BLOCK / MIN_SUB];
};
_Static_assert(sizeof(struct rounded) <= SOTTO_I_FORM_WORK, "the work area holds what it must");

/* d, start and sum of one column. */
static void put_scales(const struct sotto_i_codes_form * form, const struct rounded * r, int64_t n, int64_t ld,
                       int64_t j, const struct strip * s) {
    for (int64_t b = 0; b < n / ROUND; b++) {
        s->d[b * ld + j] = r->d[b];
    }
    for (int64_t i = 0; i < n / form->sub; i++) {
        const int32_t sum = form->sub == MIN_SUB ? r->sums[i] : r->sums[2 * i] + r->sums[2 * i + 1];
        s->start[i * ld + j] = -form->offset * sum;
        s->sum[i * ld + j] = r->d[i * form->sub / ROUND] * (float)sum;
    }
}

static void strip(const struct sotto_i_gemm * g, int64_t col, int64_t cols, int64_t l0, int64_t n, void * work,
                  void * dst) {
    const struct sotto_i_codes_form * form = sotto_i_codes_form(g->a.type);
    const int64_t ld = sotto_i_strip_ld(cols);
    const struct strip s = strip_at(dst, ld, n);
    struct rounded * r = work;
    const float * words[SOTTO_I_GEMM_MAX_COLS];
    for (int64_t j = 0; j < cols; j++) {
        const float * x = sotto_i_gemm_row(g, &g->b, col + j, l0, n, r->values);
        g->kernels->igemm.round(x, n, r->columns[j].q, r->d, r->sums);
        put_scales(form, r, n, ld, j, &s);
        words[j] = r->columns[j].words;
    }
    g->kernels->gemm.pack(words, (int)cols, n / 4, (float *)(void *)s.q, ld);
}

/* ---- weights ---- */

/* Rows of plain weights as a packed panel, in `dst`; lanes without a row are zero bytes. */
static const char * panel_of_rows(const struct sotto_i_gemm * g, int64_t p, int64_t l0, int64_t n, char * dst) {
    const struct sotto_type_traits * type = sotto_get_type_traits(g->a.type);
    const int64_t blocks = n / type->blck_size;
    const size_t before = (size_t)(l0 / type->blck_size) * type->type_size;
    for (int lane = 0; lane < PANEL; lane++) {
        const int64_t row = p * PANEL + lane;
        if (row < g->n) {
            const char * x = (g->a.rows ? g->a.rows[row] : g->a.data + (size_t)row * g->a.nb[1]) + before;
            sotto_i_panel_set(g->a.type, dst, lane, 0, blocks, x);
        } else {
            sotto_i_panel_clear(g->a.type, dst, lane, blocks);
        }
    }
    return dst;
}

static struct sotto_i_codes codes_at(const char * panel) {
    char * p = (char *)panel;
    return (struct sotto_i_codes){ .code = (uint8_t *)p,
                                   .scale = (float *)(void *)(p + CODE_BYTES),
                                   .min = (float *)(void *)(p + CODE_BYTES) + SCALES };
}

static struct sotto_i_gemm_panels panels(const struct sotto_i_gemm * g, int64_t first, int64_t count, int64_t l0,
                                         int64_t n, bool once, void * work, void * dst) {
    (void)once;
    const struct sotto_type_traits * type = sotto_get_type_traits(g->a.type);
    const size_t row_bytes = (size_t)(g->k / type->blck_size) * type->type_size;
    const size_t before = (size_t)(l0 / type->blck_size) * type->type_size;
    for (int64_t p = 0; p < count; p++) {
        const struct sotto_i_codes out = codes_at((char *)dst + (size_t)p * PANEL_BYTES);
        const char * panel = g->a.packed ? g->a.data + ((size_t)(first + p) * row_bytes + before) * PANEL
                                         : panel_of_rows(g, first + p, l0, n, work);
        g->kernels->codes.unpack[g->a.type](panel, n / type->blck_size, &out);
    }
    return (struct sotto_i_gemm_panels){ dst, PANEL_BYTES, false };
}

/* ---- tiles ---- */

static int max_cols(const struct sotto_i_gemm * g) { return g->kernels->igemm.max_cols; }
static const int * max_panels(const struct sotto_i_gemm * g) { return g->kernels->igemm.panels; }

static void tile(const struct sotto_i_gemm * g, const struct sotto_i_gemm_panels * a, const void * b, int64_t n,
                 const struct sotto_i_gemm_place * at) {
    const int64_t ld = sotto_i_strip_ld(at->cols);
    const struct strip s = strip_at((void *)b, ld, n);
    const struct sotto_i_igemm_tile t = {
        .form = sotto_i_codes_form(g->a.type),
        .w = codes_at(a->data + (size_t)at->first * a->step),
        .code_step = a->step,
        .scale_step = a->step / sizeof(float),
        .q = s.q,
        .d = s.d,
        .start = s.start,
        .sum = s.sum,
        .ld = ld,
        .c = at->c,
        .ldc = at->ldc,
        .k = n,
        .panels = at->panels,
        .cols = at->cols,
        .add = at->add,
    };
    g->kernels->igemm.tile(&t);
}

const struct sotto_i_gemm_form sotto_i_gemm_bytes = { max_cols, max_panels, strip_size, strip, panels, tile };
