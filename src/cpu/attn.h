/* SPDX-License-Identifier: MIT */
/* The walk that both attention ops share: some queries of one head over one sequence.
 *
 * The sequence's positions 0 .. are rows of a pool, in the order of a table or as they lie. All queries of a walk share
 * the keys and values that are laid out for a chunk of 64 positions, so a walk should have as many as there are, up to
 * sotto_i_attn_block(). Nothing of this touches a bit: docs/numerics.md. */
#ifndef SOTTO_CPU_ATTN_H
#define SOTTO_CPU_ATTN_H

#include "cpu/attn_kernels.h"
#include "cpu/gemm_kernels.h"

#define SOTTO_I_ATTN_MAX_WIDTH 4096 /* largest head width that the ops take */
#define SOTTO_I_ATTN_MAX_BLOCK 252  /* most queries of one walk at any width */

struct sotto_i_attn_query {
    const float * q;       /* dk floats */
    float * out;           /* dv floats */
    const uint16_t * mask; /* f16, for each position that any query sees; or NULL for all queries of the walk */
    const float * sink;    /* or NULL */
    float slope;           /* of the mask */
    int64_t len;           /* it sees positions 0 .. len-1 */
};

/* Rows of one head of a cache. */
struct sotto_i_attn_pool {
    const char * data;
    size_t step; /* bytes from row to row */
    enum sotto_i_attn_type type;
    size_t size;                                          /* bytes of a row */
    void (*decode)(const void * x, float * y, int64_t n); /* of rows in blocks, whose type is f32 then; else NULL */
    size_t along; /* keys only: bytes from element to element where rows lie side by side; 0: a row's are adjacent */
};

struct sotto_i_attn_walk {
    int64_t dk, dv;
    struct sotto_i_attn_pool k, v;
    const char * table; /* i32: position p lies in row table[p]; NULL: in row p. Entries are checked by the caller */
    size_t table_step;  /* bytes from entry to entry */
    float scale, softcap;
    struct sotto_i_attn_query * queries;
    int64_t n; /* 1 .. sotto_i_attn_block() */
};

/* SOTTO_I_ATTN_TYPES if attention does not read this type as it is. */
enum sotto_i_attn_type sotto_i_attn_type(enum sotto_type type);

/* The pool of rows of `width` elements of any type that gemm.unpack decodes, whose slots are given. */
struct sotto_i_attn_pool sotto_i_attn_pool(const struct sotto_i_gemm_kernels * decoders, enum sotto_type type,
                                           const void * data, size_t step, int64_t width);

/* Most queries of one walk, and bytes of scratch that serve so many, queries[] included (at its beginning). */
int64_t sotto_i_attn_block(int64_t dk, int64_t dv);
size_t sotto_i_attn_scratch(int64_t dk, int64_t dv);

/* Into how many blocks the `n` queries of each of `units` independent heads are to be cut for so many threads. */
int64_t sotto_i_attn_n_blocks(int64_t n, int64_t units, int64_t dk, int64_t dv, int n_threads);

/* Compute every query's out. `scratch` as above, aligned to SOTTO_DATA_ALIGN. */
void sotto_i_attn_run(const struct sotto_i_attn_kernels * kernels, const struct sotto_i_attn_walk * walk,
                      void * scratch);

#endif
