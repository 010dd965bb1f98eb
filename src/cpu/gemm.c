/* SPDX-License-Identifier: MIT */
/* The product driver: in what order tiles are computed, and what is packed when.
 *
 *     for each group of columns (SOTTO_I_GEMM_GROUP)
 *         for each run of blocks of k whose strips fit
 *             make strips of b                                 in L2, read once per tile of rows
 *             for each batch of panels (BATCH)
 *                 for each block of k in the run
 *                     make panels of a                         as stored, or unpacked to L2
 *                     for each strip, for each tile of panels: y (+)= tile
 *
 * What strips and panels are made of is the form's (gemm_form.h). With many columns a run is one block, y goes through
 * the cache once per block, and unpacking is spread over the group. With few columns a run is all of k and weights are
 * read front to back, once, at the speed of memory. */
#include "cpu/gemm.h"

#include <string.h>

#include "core/op.h"
#include "cpu/gemm_form.h"

enum {
    PANEL = SOTTO_CPU_PANEL,
    BLOCK = SOTTO_I_K_BLOCK,
    BATCH = SOTTO_I_GEMM_MAX_PANELS, /* panels unpacked at once: 128 KiB */
    RUN_BYTES = 256 * 1024,          /* strips of a run of several blocks */
    /* strips of one block: strips of 1 or 5 columns are padded by 3, and only lone ones have fewer than 3 */
    STRIPS_BYTES = (2 * SOTTO_I_GEMM_GROUP + 4) * SOTTO_I_STRIP_BYTES,
    PANELS_BYTES = BATCH * SOTTO_I_PANEL_BYTES,
    EDGE_BYTES = SOTTO_I_GEMM_MAX_COLS * BATCH * PANEL * 4
};

/* What a thread packs into. */
struct space {
    char * strips; /* STRIPS_BYTES */
    char * panels; /* PANELS_BYTES */
    void * work;   /* SOTTO_I_FORM_WORK */
    float * edge;  /* [columns][16 * panels], a tile that ends outside the matrix */
};

/* One group of columns of a product, cut into strips of almost equal width. */
struct pass {
    const struct sotto_i_gemm * g;
    const struct sotto_i_gemm_form * form;
    struct space space;
    int64_t col0, cols, n_strips;
};

bool sotto_i_gemm_in_bytes(const struct sotto_i_cpu_task * task, const struct sotto_tensor * node) {
    struct params_mul_mat p;
    memcpy(&p, node->op_params, sizeof(p));
    return task->compute != SOTTO_COMPUTE_F32 && p.prec != SOTTO_PREC_F32 &&
           sotto_i_codes_form(node->src[0]->type)->sub != 0;
}

size_t sotto_i_gemm_scratch(void) { return STRIPS_BYTES + PANELS_BYTES + SOTTO_I_FORM_WORK + EDGE_BYTES; }

static struct space space_of(const struct sotto_i_gemm * g) {
    struct space s;
    s.strips = g->scratch;
    s.panels = s.strips + STRIPS_BYTES;
    s.work = s.panels + PANELS_BYTES;
    s.edge = (float *)(void *)(s.panels + PANELS_BYTES + SOTTO_I_FORM_WORK);
    return s;
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

static void strip_range(const struct pass * s, int64_t i, int64_t * first, int64_t * cols) {
    const int64_t each = s->cols / s->n_strips, rest = s->cols % s->n_strips;
    *first = s->col0 + i * each + min(i, rest);
    *cols = each + (i < rest ? 1 : 0);
}

/* Bytes of all strips, n elements of k. */
static size_t strips_size(const struct pass * s, int64_t n) {
    size_t size = 0;
    for (int64_t i = 0; i < s->n_strips; i++) {
        int64_t first, cols;
        strip_range(s, i, &first, &cols);
        size += s->form->strip_size(sotto_i_strip_ld(cols), n);
    }
    return size;
}

/* Strips of block [l0, l0+n) of all columns of the group. */
static void make_strips(const struct pass * s, int64_t l0, int64_t n, char * dst) {
    for (int64_t i = 0; i < s->n_strips; i++) {
        int64_t first, cols;
        strip_range(s, i, &first, &cols);
        s->form->strip(s->g, first, cols, l0, n, s->space.work, dst);
        dst += s->form->strip_size(sotto_i_strip_ld(cols), n);
    }
}

/* A tile whose last panel is not full, or whose columns are not evenly spaced: into `edge`, and from there what exists
 * of it to where it belongs. `row` and `col` are those of the tile. */
static void edge_tile(const struct pass * s, const struct sotto_i_gemm_panels * a, const char * strip, int64_t n,
                      const struct sotto_i_gemm_place * at, int64_t row, int64_t col) {
    const struct sotto_i_gemm * g = s->g;
    struct sotto_i_gemm_place place = *at;
    const int64_t rows = min(at->panels * PANEL, g->n - row);
    place.c = s->space.edge;
    place.ldc = at->panels * PANEL;
    place.add = false;
    s->form->tile(g, a, strip, n, &place);
    for (int64_t j = 0; j < at->cols; j++) {
        float * y = (g->columns ? g->columns[col + j] : g->y + (col + j) * g->ldy) + row;
        const float * sum = place.c + j * place.ldc;
        for (int64_t r = 0; r < rows; r++) {
            y[r] = at->add ? y[r] + sum[r] : sum[r];
        }
    }
}

/* One strip, columns col .. col+cols, against `count` panels, the first of which is panel `panel` of the matrix. */
static void strip_tiles(const struct pass * s, const struct sotto_i_gemm_panels * a, const char * strip, int64_t n,
                        int64_t panel, int64_t count, int64_t col, int64_t cols, bool add) {
    const struct sotto_i_gemm * g = s->g;
    int tile = s->form->max_panels(g)[cols];
    for (int64_t p = 0; p < count; p += tile) {
        while (tile > count - p) {
            tile /= 2;
        }
        const int64_t row = (panel + p) * PANEL;
        struct sotto_i_gemm_place at = { .first = p, .panels = tile, .cols = (int)cols, .ldc = g->ldy, .add = add };
        if (g->columns || row + tile * PANEL > g->n) {
            edge_tile(s, a, strip, n, &at, row, col);
        } else {
            at.c = g->y + col * g->ldy + row;
            s->form->tile(g, a, strip, n, &at);
        }
    }
}

/* All strips of the group against a batch of panels, block [l0, l0+n) of k. */
static void batch_block(const struct pass * s, int64_t panel, int64_t count, int64_t l0, int64_t n,
                        const char * strip) {
    const struct sotto_i_gemm_panels a =
        s->form->panels(s->g, panel, count, l0, n, s->n_strips == 1, s->space.work, s->space.panels);
    for (int64_t i = 0; i < s->n_strips; i++) {
        int64_t col, cols;
        strip_range(s, i, &col, &cols);
        strip_tiles(s, &a, strip, n, panel, count, col, cols, l0 > 0);
        strip += s->form->strip_size(sotto_i_strip_ld(cols), n);
    }
}

/* The group against the rows of the rectangle. */
static void group(const struct pass * s, const struct sotto_i_gemm_rect * rect) {
    const int64_t panel0 = rect->row0 / PANEL, panel1 = (rect->row1 + PANEL - 1) / PANEL;
    const size_t block = strips_size(s, BLOCK);
    const int64_t k = s->g->k;
    const int64_t run = RUN_BYTES / block > 1 ? (int64_t)(RUN_BYTES / block) * BLOCK : BLOCK;
    for (int64_t l0 = 0; l0 < k; l0 += run) {
        const int64_t l1 = min(l0 + run, k);
        for (int64_t l = l0; l < l1; l += BLOCK) {
            make_strips(s, l, min(BLOCK, l1 - l), s->space.strips + (size_t)((l - l0) / BLOCK) * block);
        }
        for (int64_t p = panel0; p < panel1; p += BATCH) {
            for (int64_t l = l0; l < l1; l += BLOCK) {
                batch_block(s, p, min(BATCH, panel1 - p), l, min(BLOCK, l1 - l),
                            s->space.strips + (size_t)((l - l0) / BLOCK) * block);
            }
        }
    }
}

void sotto_i_gemm_run(const struct sotto_i_gemm * g, const struct sotto_i_gemm_rect * rect) {
    if (rect->row0 >= rect->row1) {
        return;
    }
    if (g->k == 0) {
        for (int64_t j = rect->col0; j < rect->col1; j++) {
            float * y = g->columns ? g->columns[j] : g->y + j * g->ldy;
            memset(y + rect->row0, 0, (size_t)(rect->row1 - rect->row0) * sizeof(float));
        }
        return;
    }
    struct pass s = { .g = g, .form = g->bytes ? &sotto_i_gemm_bytes : &sotto_i_gemm_f32, .space = space_of(g) };
    for (s.col0 = rect->col0; s.col0 < rect->col1; s.col0 += SOTTO_I_GEMM_GROUP) {
        const int64_t max = s.form->max_cols(g);
        s.cols = min(SOTTO_I_GEMM_GROUP, rect->col1 - s.col0);
        s.n_strips = (s.cols + max - 1) / max;
        group(&s, rect);
    }
}
