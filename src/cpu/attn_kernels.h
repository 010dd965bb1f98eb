/* SPDX-License-Identifier: MIT */
/* Kernels of attention: what a level supplies, and the contract of each slot.
 *
 * Attention walks a sequence in chunks of 64 positions (docs/numerics.md). A chunk's keys are laid out once with
 * positions side by side and serve all queries that see them; queries go through in tiles of up to 12:
 *
 *     packed [l][64]   element l of 64 keys          x, w [query][64]   scores, then weights of the chunk
 *     v      [j]       pointer to value row j        o    [query][ldo]  running outputs
 *
 * dots:   x = q * packed, lanes over positions, one chain over ascending l in blocks of 256
 * weigh:  scores to weights, running maximum and sum moved on
 * values: o = o * factor + w * v, lanes over the head's width, one chain over ascending open positions
 *
 * Which positions take part is a set of 64 bits per query, `open`: bit j for position j of the chunk. Others are worth
 * nothing whatever k and v hold there, NaN included. No slot allocates or fails; memory overlaps nowhere unless said;
 * floats may have any alignment of float. Results of all levels are equal bit for bit (a NaN is any NaN). */
#ifndef SOTTO_CPU_ATTN_KERNELS_H
#define SOTTO_CPU_ATTN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "sotto/cpu.h"

#define SOTTO_I_ATTN_KEYS 64 /* positions of a chunk, of docs/numerics.md */
#define SOTTO_I_ATTN_TILE 12 /* queries of a tile, at most */

/* Types that keys and values may have, as index of slots. */
enum sotto_i_attn_type { SOTTO_I_ATTN_F32, SOTTO_I_ATTN_F16, SOTTO_I_ATTN_BF16, SOTTO_I_ATTN_TYPES };

/* Scores of a tile to weights. */
struct sotto_i_attn_weigh {
    int n;                         /* queries, 1 .. 12 */
    int n_keys;                    /* positions of the chunk, 1 .. 64 */
    float scale, softcap;          /* x = scale * x, or with softcap: softcap * tanh((scale / softcap) * x) */
    float * x;                     /* [n][64]: products in, weights out, +0 where not open; void if `open` is emptied */
    const uint16_t * const * mask; /* NULL, or per query n_keys values of f16 (not read beyond) */
    const float * slope;           /* per query, used with a mask */
    float *max, *sum;              /* per query, running */
    float * factor;                /* out, per query: what its output so far is to be multiplied with */
    uint64_t * open;               /* in and out: emptied where the chunk leaves a query as it was */
};

struct sotto_i_attn_kernels {
    /* packed[l * 64 + j] = rows[j][l] as f32, l < d, j < 64. All 64 rows can be read; no over-read. */
    void (*pack_keys[SOTTO_I_ATTN_TYPES])(float * packed, const void * const * rows, int64_t d);

    /* out[j * ld + l] = rows[j][l] as f32, j < n, l < d; ld >= d. What lies between d and ld is left alone. */
    void (*widen[SOTTO_I_ATTN_TYPES])(float * out, int64_t ld, const void * const * rows, int n, int64_t d);

    /* A hint that the first `bytes` of n rows will be read soon. Any addresses. */
    void (*prefetch)(const void * const * rows, int n, size_t bytes);

    /* x[i * 64 + j] = sum over l of q[i * ldq + l] * packed[l * 64 + j], i < n <= 12, j < 64; d >= 0. */
    void (*dots)(float * x, const float * q, int64_t ldq, int n, const float * packed, int64_t d);

    /* Bits j < n of the positions whose mask is not -inf; n <= 64. */
    uint64_t (*unmasked)(const uint16_t * mask, int n);

    void (*weigh)(const struct sotto_i_attn_weigh * t);

    /* For i < n <= 12: o[i * ldo + l] = o * factor[i], then fma(w[i * 64 + j], v[j][l], o) over ascending j of open[i];
     * l < d <= ldo. Queries with empty open[i] are left alone. v[j] of positions open to no query is not read. */
    void (*values)(float * o, int64_t ldo, int n, const float * w, const float * factor, const uint64_t * open,
                   const float * const * v, int64_t d);
};

/* Bits 0 .. n-1, n in 0 .. 64. */
static inline uint64_t sotto_i_first_bits(int64_t n) { return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1; }

/* Raise the slots of a level over those of the level below. */
void sotto_i_attn_init_avx2(struct sotto_i_attn_kernels * kernels);
void sotto_i_attn_init_avx512(struct sotto_i_attn_kernels * kernels);

#endif
