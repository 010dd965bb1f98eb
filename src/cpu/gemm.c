/* SPDX-License-Identifier: MIT */
/* The product driver: in what order tiles are computed, and what is packed when.
 *
 *     for each group of columns (SOTTO_I_GEMM_GROUP)
 *         for each run of blocks of k whose strips fit
 *             pack b: strips [l][columns]                      in L2, read once per tile of rows
 *             for each batch of panels (BATCH)
 *                 for each block of k in the run
 *                     a as f32 panels [l][16]                  as stored, or unpacked to L2
 *                     for each strip, for each tile of panels: y (+)= tile
 *
 * With many columns a run is one block, y goes through the cache once per block, and unpacking is spread over the
 * group. With few columns a run is all of k and weights are read front to back, once, at the speed of memory. */
#include "cpu/gemm.h"

#include <string.h>

#include "cpu/panel.h"

enum {
    PANEL = SOTTO_CPU_PANEL,
    BLOCK = SOTTO_I_K_BLOCK,
    BATCH = SOTTO_I_GEMM_MAX_PANELS, /* panels unpacked at once: 128 KiB */
    RUN_FLOATS = 64 * 1024,          /* strips of a run of several blocks: 256 KiB */
    /* strips of one block: strips of 1 or 5 columns are padded by 3, and only lone ones have fewer than 3 */
    STRIP_FLOATS = (2 * SOTTO_I_GEMM_GROUP + 4) * BLOCK,
    PANEL_FLOATS = BATCH * PANEL * BLOCK,
    ROW_FLOATS = PANEL * BLOCK,
    MAX_ROW_BYTES = 4 * BLOCK, /* of a block of k, any type */
    MAX_SCALES = BLOCK / SOTTO_I_CODES_MIN_SUB * PANEL,
    EDGE_FLOATS = SOTTO_I_GEMM_MAX_COLS * BATCH * PANEL
};

/* What a thread packs into. */
struct space {
    float * strips; /* STRIP_FLOATS */
    float * panels; /* [BATCH][k of block][16] */
    float * rows;   /* [16][BLOCK], operands on their way to f32 */
    float * edge;   /* [columns][16 * panels], a tile that ends outside the matrix */
};

/* How the columns of a group are cut into strips of almost equal width. */
struct strips {
    int64_t col0, cols, count;
    int64_t floats; /* for one l, all strips */
};

size_t sotto_i_gemm_scratch(void) { return sizeof(float) * (STRIP_FLOATS + PANEL_FLOATS + ROW_FLOATS + EDGE_FLOATS); }

static struct space space_of(const struct sotto_i_gemm * g) {
    struct space s;
    s.strips = g->scratch;
    s.panels = s.strips + STRIP_FLOATS;
    s.rows = s.panels + PANEL_FLOATS;
    s.edge = s.rows + ROW_FLOATS;
    return s;
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

static void strip_range(const struct strips * s, int64_t i, int64_t * first, int64_t * cols) {
    const int64_t each = s->cols / s->count, rest = s->cols % s->count;
    *first = s->col0 + i * each + min(i, rest);
    *cols = each + (i < rest ? 1 : 0);
}

static struct strips strips_of(const struct sotto_i_gemm * g, int64_t col0, int64_t col1) {
    const int64_t max = g->kernels->max_cols;
    struct strips s = { .col0 = col0, .cols = col1 - col0, .count = (col1 - col0 + max - 1) / max };
    for (int64_t i = 0; i < s.count; i++) {
        int64_t first, cols;
        strip_range(&s, i, &first, &cols);
        s.floats += sotto_i_strip_ld(cols);
    }
    return s;
}

/* Blocks of elements that lie before element l, and their bytes. */
static int64_t blocks_of(enum sotto_type type, int64_t l) { return l / sotto_get_type_traits(type)->blck_size; }
static size_t bytes_of(enum sotto_type type, int64_t l) {
    return (size_t)blocks_of(type, l) * sotto_get_type_traits(type)->type_size;
}

/* Elements l0 .. l0+n of a row as dense floats: the operand itself, or a copy in `buffer`. */
static const float * row_floats(const struct sotto_i_gemm * g, const struct sotto_i_gemm_operand * x, int64_t row,
                                int64_t l0, int64_t n, float * buffer) {
    const size_t size = sotto_get_type_traits(x->type)->type_size;
    const char * src = x->rows ? x->rows[row] : x->data + (size_t)row * x->nb[1];
    src += (size_t)blocks_of(x->type, l0) * x->nb[0];
    if (x->nb[0] == size) {
        if (x->type == SOTTO_TYPE_F32) {
            return (const float *)(const void *)src;
        }
        g->kernels->unpack[x->type](src, buffer, n);
        return buffer;
    }
    if (x->type == SOTTO_TYPE_F32) {
        for (int64_t l = 0; l < n; l++) {
            memcpy(buffer + l, src + (size_t)l * x->nb[0], sizeof(float));
        }
        return buffer;
    }
    uint16_t dense[BLOCK];
    for (int64_t l = 0; l < n; l++) {
        memcpy(dense + l, src + (size_t)l * x->nb[0], sizeof(uint16_t));
    }
    g->kernels->unpack[x->type](dense, buffer, n);
    return buffer;
}

/* Interleave `count` rows from `row`, elements l0 .. l0+n. */
static void pack_rows(const struct sotto_i_gemm * g, const struct sotto_i_gemm_operand * x, int64_t row, int64_t count,
                      int64_t l0, int64_t n, float * rows, float * dst, int64_t ld) {
    const float * source[PANEL];
    for (int64_t r = 0; r < count; r++) {
        source[r] = row_floats(g, x, row + r, l0, n, rows + r * BLOCK);
    }
    g->kernels->pack(source, (int)count, n, dst, ld);
}

/* Strips of block [l0, l0+n) of all columns of the group. */
static void pack_strips(const struct sotto_i_gemm * g, const struct strips * s, int64_t l0, int64_t n, float * rows,
                        float * dst) {
    for (int64_t i = 0; i < s->count; i++) {
        int64_t first, cols;
        strip_range(s, i, &first, &cols);
        const int64_t ld = sotto_i_strip_ld(cols);
        pack_rows(g, &g->b, first, cols, l0, n, rows, dst, ld);
        dst += ld * n;
    }
}

/* Elements l0 .. l0+n of a packed panel, row by row. */
static void decode_rows(const struct sotto_i_gemm * g, const char * panel, int64_t l0, int64_t n, float * rows,
                        float * dst) {
    unsigned char blocks[MAX_ROW_BYTES];
    const float * source[PANEL];
    for (int r = 0; r < PANEL; r++) {
        sotto_i_panel_get(g->a.type, panel, r, blocks_of(g->a.type, l0), blocks_of(g->a.type, n), blocks);
        g->kernels->unpack[g->a.type](blocks, rows + r * BLOCK, n);
        source[r] = rows + r * BLOCK;
    }
    g->kernels->pack(source, PANEL, n, dst, PANEL);
}

/* The same by way of codes, whose place is `rows`. */
static void decode_codes(const struct sotto_i_gemm * g, const char * panel, int64_t l0, int64_t n, float * rows,
                         float * dst) {
    const struct sotto_i_codes codes = { .scale = rows,
                                         .min = rows + MAX_SCALES,
                                         .code = (uint8_t *)(rows + 2 * MAX_SCALES) };
    g->codes->unpack[g->a.type](panel + bytes_of(g->a.type, l0) * PANEL, blocks_of(g->a.type, n), &codes);
    g->codes->to_float(sotto_i_codes_form(g->a.type), &codes, n, dst);
}

/* Elements l0 .. l0+n of packed panel `p` as f32. */
static void decode_panel(const struct sotto_i_gemm * g, int64_t p, int64_t l0, int64_t n, float * rows, float * dst) {
    const char * panel = g->a.data + (size_t)p * PANEL * bytes_of(g->a.type, g->k);
    if (sotto_get_type_traits(g->a.type)->blck_size == 1) {
        g->kernels->unpack[g->a.type](panel + bytes_of(g->a.type, l0) * PANEL, dst, n * PANEL);
    } else if (g->codes->unpack[g->a.type]) {
        decode_codes(g, panel, l0, n, rows, dst);
    } else {
        decode_rows(g, panel, l0, n, rows, dst);
    }
}

/* Where panels first .. first+count of block [l0, l0+n) are found as f32: in the packed weights or in `dst`. */
static const float * f32_panels(const struct sotto_i_gemm * g, int64_t first, int64_t count, int64_t l0, int64_t n,
                                const struct space * s, size_t * step) {
    if (g->a.packed && g->a.type == SOTTO_TYPE_F32) {
        *step = (size_t)g->k * PANEL;
        return (const float *)(const void *)g->a.data + ((size_t)first * (size_t)g->k + (size_t)l0) * PANEL;
    }
    *step = (size_t)n * PANEL;
    for (int64_t p = 0; p < count; p++) {
        float * dst = s->panels + p * n * PANEL;
        if (g->a.packed) {
            decode_panel(g, first + p, l0, n, s->rows, dst);
        } else {
            const int64_t row = (first + p) * PANEL;
            const int64_t rows = min(PANEL, g->n - row);
            if (rows < PANEL) {
                memset(dst, 0, (size_t)n * PANEL * sizeof(float));
            }
            pack_rows(g, &g->a, row, rows, l0, n, s->rows, dst, PANEL);
        }
    }
    return s->panels;
}

typedef void (*tile_fn)(const struct sotto_i_gemm_tile * t);

/* A tile whose last panel is not full, or whose columns are not evenly spaced: into `edge`, and from there what exists
 * of it to where it belongs. `row` and `col` are those of the tile. */
static void edge_tile(const struct sotto_i_gemm * g, tile_fn run, const struct sotto_i_gemm_tile * tile, int64_t row,
                      int64_t col, float * edge) {
    struct sotto_i_gemm_tile t = *tile;
    const int64_t rows = min(t.panels * PANEL, g->n - row);
    t.c = edge;
    t.ldc = t.panels * PANEL;
    t.add = false;
    run(&t);
    for (int64_t j = 0; j < t.cols; j++) {
        float * y = (g->columns ? g->columns[col + j] : g->y + (col + j) * g->ldy) + row;
        const float * sum = edge + j * t.ldc;
        for (int64_t r = 0; r < rows; r++) {
            y[r] = tile->add ? y[r] + sum[r] : sum[r];
        }
    }
}

/* One strip against `count` panels, the first of which is panel `panel` of the matrix. `t` lacks panels and c. */
static void strip_tiles(const struct sotto_i_gemm * g, tile_fn run, struct sotto_i_gemm_tile t, size_t es,
                        int64_t panel, int64_t count, int64_t col, float * edge) {
    int tile = g->kernels->panels[t.cols];
    for (int64_t p = 0; p < count; p += tile) {
        while (tile > count - p) {
            tile /= 2;
        }
        struct sotto_i_gemm_tile part = t;
        const int64_t row = (panel + p) * PANEL;
        part.panels = tile;
        part.a = (const char *)t.a + (size_t)p * t.a_step * es;
        if (g->columns || row + tile * PANEL > g->n) {
            edge_tile(g, run, &part, row, col, edge);
        } else {
            part.c = g->y + col * g->ldy + row;
            run(&part);
        }
    }
}

/* All strips of the group against a batch of panels, block [l0, l0+n) of k. */
static void batch_block(const struct sotto_i_gemm * g, const struct strips * s, int64_t panel, int64_t count,
                        int64_t l0, int64_t n, const float * strip, const struct space * space) {
    const struct sotto_i_gemm_kernels * k = g->kernels;
    struct sotto_i_gemm_tile t = { .k = n, .ldc = g->ldy, .add = l0 > 0 };
    tile_fn run = k->tile;
    size_t es = sizeof(float);
    if (g->a.packed && k->tile_direct[g->a.type] && s->count == 1) {
        run = k->tile_direct[g->a.type];
        es = sizeof(uint16_t);
        t.a_step = (size_t)g->k * PANEL;
        t.a = g->a.data + ((size_t)panel * (size_t)g->k + (size_t)l0) * PANEL * es;
    } else {
        t.a = f32_panels(g, panel, count, l0, n, space, &t.a_step);
    }
    for (int64_t i = 0; i < s->count; i++) {
        int64_t col, cols;
        strip_range(s, i, &col, &cols);
        t.cols = (int)cols;
        t.ldb = sotto_i_strip_ld(cols);
        t.b = strip;
        strip_tiles(g, run, t, es, panel, count, col, space->edge);
        strip += t.ldb * n;
    }
}

/* One group of columns. */
static void group(const struct sotto_i_gemm * g, const struct sotto_i_gemm_rect * rect, int64_t col0, int64_t col1) {
    const struct space space = space_of(g);
    const struct strips s = strips_of(g, col0, col1);
    const int64_t panel0 = rect->row0 / PANEL, panel1 = (rect->row1 + PANEL - 1) / PANEL;
    int64_t run = RUN_FLOATS / (s.floats * BLOCK) * BLOCK;
    run = run < BLOCK ? BLOCK : run;
    for (int64_t l0 = 0; l0 < g->k; l0 += run) {
        const int64_t l1 = min(l0 + run, g->k);
        for (int64_t l = l0; l < l1; l += BLOCK) {
            pack_strips(g, &s, l, min(BLOCK, l1 - l), space.rows, space.strips + s.floats * (l - l0));
        }
        for (int64_t p = panel0; p < panel1; p += BATCH) {
            for (int64_t l = l0; l < l1; l += BLOCK) {
                batch_block(g, &s, p, min(BATCH, panel1 - p), l, min(BLOCK, l1 - l), space.strips + s.floats * (l - l0),
                            &space);
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
    for (int64_t col = rect->col0; col < rect->col1; col += SOTTO_I_GEMM_GROUP) {
        group(g, rect, col, min(col + SOTTO_I_GEMM_GROUP, rect->col1));
    }
}
