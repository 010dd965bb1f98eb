/* SPDX-License-Identifier: MIT */
/* Products in f32 (gemm_form.h): strips and panels of floats, [l][columns] and [l][16]. Packed f32 panels are read as
 * they are; other types are decoded, 16 bits on the way if a panel is read only once. */
#include <string.h>

#include "cpu/gemm_form.h"
#include "cpu/panel.h"

enum {
    PANEL = SOTTO_CPU_PANEL,
    BLOCK = SOTTO_I_K_BLOCK,
    MAX_ROW_BYTES = 4 * BLOCK, /* of a block of k, any type */
    MAX_SCALES = BLOCK / SOTTO_I_CODES_MIN_SUB * PANEL
};

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- columns ---- */

/* Blocks of elements that lie before element l, and their bytes. */
static int64_t blocks_of(enum sotto_type type, int64_t l) { return l / sotto_get_type_traits(type)->blck_size; }
static size_t bytes_of(enum sotto_type type, int64_t l) {
    return (size_t)blocks_of(type, l) * sotto_get_type_traits(type)->type_size;
}

const float * sotto_i_gemm_row(const struct sotto_i_gemm * g, const struct sotto_i_gemm_operand * x, int64_t row,
                               int64_t l0, int64_t n, float * buffer) {
    const size_t size = sotto_get_type_traits(x->type)->type_size;
    const char * src = x->rows ? x->rows[row] : x->data + (size_t)row * x->nb[1];
    src += (size_t)blocks_of(x->type, l0) * x->nb[0];
    if (x->nb[0] == size) {
        if (x->type == SOTTO_TYPE_F32) {
            return (const float *)(const void *)src;
        }
        g->kernels->gemm.unpack[x->type](src, buffer, n);
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
    g->kernels->gemm.unpack[x->type](dense, buffer, n);
    return buffer;
}

/* Interleave `count` rows from `row`, elements l0 .. l0+n. */
static void pack_rows(const struct sotto_i_gemm * g, const struct sotto_i_gemm_operand * x, int64_t row, int64_t count,
                      int64_t l0, int64_t n, float * rows, float * dst, int64_t ld) {
    const float * source[PANEL];
    for (int64_t r = 0; r < count; r++) {
        source[r] = sotto_i_gemm_row(g, x, row + r, l0, n, rows + r * BLOCK);
    }
    g->kernels->gemm.pack(source, (int)count, n, dst, ld);
}

static size_t strip_size(int64_t ld, int64_t n) { return (size_t)(ld * n) * sizeof(float); }

static void strip(const struct sotto_i_gemm * g, int64_t col, int64_t cols, int64_t l0, int64_t n, void * work,
                  void * dst) {
    pack_rows(g, &g->b, col, cols, l0, n, work, dst, sotto_i_strip_ld(cols));
}

/* ---- weights ---- */

/* Elements l0 .. l0+n of a packed panel, row by row. */
static void decode_rows(const struct sotto_i_gemm * g, const char * panel, int64_t l0, int64_t n, float * rows,
                        float * dst) {
    unsigned char blocks[MAX_ROW_BYTES];
    const float * source[PANEL];
    for (int r = 0; r < PANEL; r++) {
        sotto_i_panel_get(g->a.type, panel, r, blocks_of(g->a.type, l0), blocks_of(g->a.type, n), blocks);
        g->kernels->gemm.unpack[g->a.type](blocks, rows + r * BLOCK, n);
        source[r] = rows + r * BLOCK;
    }
    g->kernels->gemm.pack(source, PANEL, n, dst, PANEL);
}

/* The same by way of codes, whose place is `rows`. */
static void decode_codes(const struct sotto_i_gemm * g, const char * panel, int64_t l0, int64_t n, float * rows,
                         float * dst) {
    const struct sotto_i_codes codes = { .scale = rows,
                                         .min = rows + MAX_SCALES,
                                         .code = (uint8_t *)(rows + 2 * MAX_SCALES) };
    g->kernels->codes.unpack[g->a.type](panel + bytes_of(g->a.type, l0) * PANEL, blocks_of(g->a.type, n), &codes);
    g->kernels->codes.to_float(sotto_i_codes_form(g->a.type), &codes, n, dst);
}

/* Elements l0 .. l0+n of packed panel `p` as f32. */
static void decode_panel(const struct sotto_i_gemm * g, int64_t p, int64_t l0, int64_t n, float * rows, float * dst) {
    const char * panel = g->a.data + (size_t)p * PANEL * bytes_of(g->a.type, g->k);
    if (sotto_get_type_traits(g->a.type)->blck_size == 1) {
        g->kernels->gemm.unpack[g->a.type](panel + bytes_of(g->a.type, l0) * PANEL, dst, n * PANEL);
    } else if (g->kernels->codes.unpack[g->a.type]) {
        decode_codes(g, panel, l0, n, rows, dst);
    } else {
        decode_rows(g, panel, l0, n, rows, dst);
    }
}

/* Rows of plain weights as a panel; a last panel is filled up with zeros. */
static void panel_of_rows(const struct sotto_i_gemm * g, int64_t p, int64_t l0, int64_t n, float * rows, float * dst) {
    const int64_t count = min(PANEL, g->n - p * PANEL);
    if (count < PANEL) {
        memset(dst, 0, (size_t)n * PANEL * sizeof(float));
    }
    pack_rows(g, &g->a, p * PANEL, count, l0, n, rows, dst, PANEL);
}

static struct sotto_i_gemm_panels panels(const struct sotto_i_gemm * g, int64_t first, int64_t count, int64_t l0,
                                         int64_t n, bool once, void * work, void * dst) {
    const enum sotto_type type = g->a.type;
    if (g->a.packed && (type == SOTTO_TYPE_F32 || (once && g->kernels->gemm.tile_direct[type]))) {
        const size_t element = sotto_get_type_traits(type)->type_size;
        const char * data = g->a.data + ((size_t)first * (size_t)g->k + (size_t)l0) * PANEL * element;
        return (struct sotto_i_gemm_panels){ data, (size_t)g->k * PANEL * element, true };
    }
    const size_t step = (size_t)n * PANEL;
    for (int64_t p = 0; p < count; p++) {
        float * to = (float *)dst + (size_t)p * step;
        if (g->a.packed) {
            decode_panel(g, first + p, l0, n, work, to);
        } else {
            panel_of_rows(g, first + p, l0, n, work, to);
        }
    }
    return (struct sotto_i_gemm_panels){ dst, step * sizeof(float), false };
}

/* ---- tiles ---- */

static int max_cols(const struct sotto_i_gemm * g) { return g->kernels->gemm.max_cols; }
static const int * max_panels(const struct sotto_i_gemm * g) { return g->kernels->gemm.panels; }

static void tile(const struct sotto_i_gemm * g, const struct sotto_i_gemm_panels * a, const void * b, int64_t n,
                 const struct sotto_i_gemm_place * at) {
    const bool direct = a->stored && g->a.type != SOTTO_TYPE_F32;
    const size_t element = direct ? sizeof(uint16_t) : sizeof(float);
    const struct sotto_i_gemm_tile t = {
        .a = a->data + (size_t)at->first * a->step,
        .a_step = a->step / element,
        .b = b,
        .ldb = sotto_i_strip_ld(at->cols),
        .c = at->c,
        .ldc = at->ldc,
        .k = n,
        .panels = at->panels,
        .cols = at->cols,
        .add = at->add,
    };
    if (direct) {
        g->kernels->gemm.tile_direct[g->a.type](&t);
    } else {
        g->kernels->gemm.tile(&t);
    }
}

const struct sotto_i_gemm_form sotto_i_gemm_f32 = { max_cols, max_panels, strip_size, strip, panels, tile };
