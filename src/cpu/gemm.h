/* SPDX-License-Identifier: MIT */
/* One matrix product, or a rectangle of it: y[j][i] = sum over l of a[i][l] * b[j][l]. The driver above the kernels of
 * gemm_kernels.h; the op MUL_MAT cuts its batches and rectangles and calls this for each.
 *
 * The k loop is cut where docs/numerics.md says and nowhere else, so neither the rectangle nor any constant below can
 * change a bit. */
#ifndef SOTTO_CPU_GEMM_H
#define SOTTO_CPU_GEMM_H

#include "cpu/cpu_impl.h"
#include "cpu/kernels.h"

/* Columns of b that are packed at once: 192 columns x one block of k as f32 are 192 KiB, which leaves most of an L2
 * cache of 512 KiB or more to the weights that pass by. A multiple of every level's strip. */
#define SOTTO_I_GEMM_GROUP 192

/* An operand: rows of k elements. nb[0], nb[1] = bytes from block to block and from row to row. */
struct sotto_i_gemm_operand {
    const char * data;
    enum sotto_type type;      /* one with an unpack slot */
    bool packed;               /* panels of 16 rows (cpu/panel.h); nb is not used */
    size_t nb[2];              /* a type of more than one element per block: blocks of a row follow one another */
    const char * const * rows; /* where each row begins, instead of data and nb[1]; NULL: evenly spaced */
};

struct sotto_i_gemm {
    const struct sotto_i_kernels * kernels;
    bool bytes;                       /* round b to 8 bits (igemm_kernels.h); a's type has a form of codes */
    struct sotto_i_gemm_operand a, b; /* b is never packed */
    int64_t n, k;                     /* rows of a, length of the sums */
    float * const * columns;          /* where each column of y begins, instead of y and ldy; NULL: evenly spaced */
    float * y;                        /* y[j * ldy + i] */
    int64_t ldy;
    void * scratch; /* sotto_i_gemm_scratch() bytes, aligned to SOTTO_DATA_ALIGN */
};

/* A rectangle of results. row0 is a multiple of SOTTO_CPU_PANEL; row1 as well, or it is n. */
struct sotto_i_gemm_rect {
    int64_t row0, row1, col0, col1;
};

/* MUL_MAT and MUL_MAT_ID round b to bytes where a is quantised, unless the node or the backend asks for f32. */
bool sotto_i_gemm_in_bytes(const struct sotto_i_cpu_task * task, const struct sotto_tensor * node);

size_t sotto_i_gemm_scratch(void);
void sotto_i_gemm_run(const struct sotto_i_gemm * g, const struct sotto_i_gemm_rect * rect);

#endif
