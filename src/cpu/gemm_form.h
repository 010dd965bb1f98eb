/* SPDX-License-Identifier: MIT */
/* In what numbers a product is computed: how its columns become strips, its weights the panels that tiles read. The
 * driver (gemm.c) knows the order of things, a form what they are made of: gemm_f32.c, gemm_bytes.c. */
#ifndef SOTTO_CPU_GEMM_FORM_H
#define SOTTO_CPU_GEMM_FORM_H

#include "cpu/gemm.h"

enum {
    /* Most that any form makes of one block of k: bytes of a strip per column, and of a panel. */
    SOTTO_I_STRIP_BYTES = SOTTO_I_K_BLOCK * 4,
    SOTTO_I_PANEL_BYTES = SOTTO_I_K_BLOCK * SOTTO_CPU_PANEL * 4,
    /* What making them may use besides: rows of 16 columns or rows as f32 and as bytes. */
    SOTTO_I_FORM_WORK = SOTTO_CPU_PANEL * SOTTO_I_K_BLOCK * 8
};

/* A batch of panels, elements [l0, l0 + n) of k. */
struct sotto_i_gemm_panels {
    const char * data;
    size_t step; /* bytes from one panel to the next */
    bool stored; /* as the packed weights have them, in their own type */
};

/* A tile: `panels` panels of the batch from panel `first`, `cols` columns of a strip, to c or added to it. */
struct sotto_i_gemm_place {
    int64_t first;
    int panels, cols;
    float * c;
    int64_t ldc;
    bool add;
};

struct sotto_i_gemm_form {
    /* Columns of a full strip; panels of a full tile by number of columns. */
    int (*max_cols)(const struct sotto_i_gemm * g);
    const int * (*max_panels)(const struct sotto_i_gemm * g);

    /* Bytes of a strip of ld = sotto_i_strip_ld(cols) and n elements of k. */
    size_t (*strip_size)(int64_t ld, int64_t n);
    void (*strip)(const struct sotto_i_gemm * g, int64_t col, int64_t cols, int64_t l0, int64_t n, void * work,
                  void * dst);

    /* Panels first .. first + count, made in `dst` (SOTTO_I_PANEL_BYTES each) unless they can be read as they are.
     * `once`: each will meet one strip only. */
    struct sotto_i_gemm_panels (*panels)(const struct sotto_i_gemm * g, int64_t first, int64_t count, int64_t l0,
                                         int64_t n, bool once, void * work, void * dst);

    void (*tile)(const struct sotto_i_gemm * g, const struct sotto_i_gemm_panels * panels, const void * strip,
                 int64_t n, const struct sotto_i_gemm_place * at);
};

extern const struct sotto_i_gemm_form sotto_i_gemm_f32, sotto_i_gemm_bytes;

/* Elements l0 .. l0+n of row `row` as dense floats: the operand itself, or a copy in `buffer`. */
const float * sotto_i_gemm_row(const struct sotto_i_gemm * g, const struct sotto_i_gemm_operand * x, int64_t row,
                               int64_t l0, int64_t n, float * buffer);

#endif
