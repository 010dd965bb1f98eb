/* SPDX-License-Identifier: MIT */
/* Kernels of matrix products: what a level supplies, and the contract of each slot.
 *
 * Rows of the weights lie in panels of SOTTO_CPU_PANEL = 16, columns of the other operand in strips:
 *
 *     panel  [l][16]   element l of 16 rows side by side        strip  [l][ld]   element l of up to 12 columns
 *
 * A tile is `panels` panels times the columns of one strip: rows are vector lanes, each column is broadcast, each of
 * the 16 * panels * cols results is one chain of fused multiply-adds over ascending l. A tile takes at most one block
 * of 256 (docs/numerics.md), so no slot adds anything but whole block sums. All memory a slot is handed is the
 * caller's; slots neither allocate nor fail. Results of all levels are equal bit for bit (a NaN is any NaN). */
#ifndef SOTTO_CPU_GEMM_KERNELS_H
#define SOTTO_CPU_GEMM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/cpu.h"

#define SOTTO_I_K_BLOCK         256 /* of docs/numerics.md */
#define SOTTO_I_GEMM_MAX_COLS   12  /* columns of a strip, at most */
#define SOTTO_I_GEMM_MAX_PANELS 8

/* One tile: c[j][r] = sum over l of a[l][r] * b[l][j], or c += that sum. */
struct sotto_i_gemm_tile {
    const void * a;  /* first panel, k * 16 elements */
    size_t a_step;   /* elements from one panel to the next */
    const float * b; /* strip, k * ldb floats */
    int64_t ldb;     /* floats from one l to the next */
    float * c;       /* column j begins at c + j * ldc and has 16 * panels rows */
    int64_t ldc;
    int64_t k;        /* 0 .. SOTTO_I_K_BLOCK */
    int panels, cols; /* panels a power of two <= panels[cols] of the kernels */
    bool add;         /* c += sum instead of c = sum */
};

struct sotto_i_gemm_kernels {
    int max_cols;                          /* columns of a full strip at this level */
    int panels[SOTTO_I_GEMM_MAX_COLS + 1]; /* by number of columns: panels of a full tile, a power of two */

    /* Panels of f32. Any alignment of float; c overlaps neither a nor b; reads and writes exactly what the struct
     * describes, c only if `add`. */
    void (*tile)(const struct sotto_i_gemm_tile * t);

    /* By type: the same tile over panels as they are stored, for weights that are read once. NULL: unpack first. */
    void (*tile_direct[SOTTO_TYPE_COUNT])(const struct sotto_i_gemm_tile * t);

    /* By type: n elements in order to f32, as its traits' to_float decodes them; NULL for types that products do not
     * take. n is a multiple of the type's block; x may have any alignment unless its blocks are single elements; x and y
     * do not overlap; no over-read. */
    void (*unpack[SOTTO_TYPE_COUNT])(const void * x, float * y, int64_t n);

    /* Interleave: dst[l * ld + r] = rows[r][l], l < k, r < n; n is 1 .. 16, ld = n rounded up to 4. dst[l * ld + r]
     * of n <= r < ld becomes 0. No over-read, no over-write; dst does not overlap the rows. */
    void (*pack)(const float * const * rows, int n, int64_t k, float * dst, int64_t ld);
};

/* Floats from one l to the next in a strip of n columns. */
static inline int64_t sotto_i_strip_ld(int64_t n) { return (n + 3) & ~(int64_t)3; }

/* Fill all slots with the scalar twins, then raise them up to `level`. */
void sotto_i_gemm_init(struct sotto_i_gemm_kernels * kernels, enum sotto_cpu_level level);
/* Raise the slots of one level over those of the level below. */
void sotto_i_gemm_init_avx2(struct sotto_i_gemm_kernels * kernels);
void sotto_i_gemm_init_avx512(struct sotto_i_gemm_kernels * kernels);
/* Likewise the slots `unpack` of quantised types (unpack_text.h). */
void sotto_i_unpack_init_avx2(struct sotto_i_gemm_kernels * kernels);
void sotto_i_unpack_init_avx512(struct sotto_i_gemm_kernels * kernels);

#endif
