/* SPDX-License-Identifier: MIT */
/* Builders: each makes a tensor that a graph can compute later. Nothing is calculated here.
 *
 * Shapes are written [ne0, ne1, ne2, ne3], innermost first, trailing 1s left out. "b tiles a" means
 * a.ne[d] mod b.ne[d] = 0 in every dimension; b is then read at index mod b.ne. Every builder returns NULL
 * and records the error on the context (sotto/tensor.h) when operands do not fit: SHAPE, TYPE, LAYOUT, PARAM,
 * BOUNDS as noted, NULLARG for a missing operand, MEMORY for a full arena. Results belong to the context.
 * `_inplace` builders return a view of their first operand and overwrite it when computed. */
#ifndef SOTTO_OPS_H
#define SOTTO_OPS_H

#include "sotto/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The field's numbers; sotto's own begin at 512. Numbers without an entry are not built yet. */
enum sotto_op {
    SOTTO_OP_NONE = 0,
    SOTTO_OP_DUP = 1,
    SOTTO_OP_ADD = 2,
    SOTTO_OP_MUL = 7,
    SOTTO_OP_SUM_ROWS = 15,
    SOTTO_OP_REPEAT = 20,
    SOTTO_OP_NORM = 24,
    SOTTO_OP_MUL_MAT = 29,
    SOTTO_OP_MUL_MAT_ID = 30,
    SOTTO_OP_SCALE = 32,
    SOTTO_OP_CPY = 34,
    SOTTO_OP_CONT = 35,
    SOTTO_OP_RESHAPE = 36,
    SOTTO_OP_VIEW = 37,
    SOTTO_OP_PERMUTE = 38,
    SOTTO_OP_TRANSPOSE = 39,
    SOTTO_OP_GET_ROWS = 40,
    SOTTO_OP_SET_ROWS = 42,
    SOTTO_OP_SOFT_MAX = 46,
    SOTTO_OP_IM2COL = 52,
    SOTTO_OP_TOP_K = 70,
    SOTTO_OP_FLASH_ATTN_EXT = 74,
    SOTTO_OP_UNARY = 91,
    SOTTO_OP_ATTN_ROWS = 512
};

enum sotto_unary_op { SOTTO_UNARY_OP_GELU = 8, SOTTO_UNARY_OP_GELU_ERF = 16 };

enum sotto_prec { SOTTO_PREC_DEFAULT = 0, SOTTO_PREC_F32 = 10 };
enum sotto_op_hint { SOTTO_OP_HINT_NONE = 0, SOTTO_OP_HINT_SRC0_IS_HADAMARD = 1 };

SOTTO_API const char * sotto_op_name(enum sotto_op op);                   /* "MUL_MAT"; "UNKNOWN" outside the table */
SOTTO_API const char * sotto_op_symbol(enum sotto_op op);                 /* "X*Y" */
SOTTO_API const char * sotto_op_desc(const struct sotto_tensor * tensor); /* variant's name for UNARY */
SOTTO_API const char * sotto_unary_op_name(enum sotto_unary_op op);
SOTTO_API enum sotto_unary_op sotto_get_unary_op(const struct sotto_tensor * tensor); /* STATE on another op */

/* ---- copies ---- */

/* Fresh contiguous copy of `a` (any type, any strides); in place: a view of it. */
SOTTO_API struct sotto_tensor * sotto_dup(struct sotto_context * ctx, struct sotto_tensor * a);
SOTTO_API struct sotto_tensor * sotto_dup_inplace(struct sotto_context * ctx, struct sotto_tensor * a);
/* Copy a's elements in logical order into b, converting; result is a view of b. Shapes may differ, element
 * counts not (SHAPE). Pairs: same type; f32/f16/bf16 to one another, and to a quantised type that has a row quantiser;
 * quantised to f32; f32 <-> i32 (truncating, saturating, NaN -> 0). TYPE otherwise. LAYOUT unless rows are
 * contiguous where one side is quantised, and rows of other lengths go to a contiguous b. */
SOTTO_API struct sotto_tensor * sotto_cpy(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b);
SOTTO_API struct sotto_tensor * sotto_cast(struct sotto_context * ctx, struct sotto_tensor * a, enum sotto_type type);
/* Fresh contiguous copy, optionally with new extents of equal count (SHAPE). */
SOTTO_API struct sotto_tensor * sotto_cont(struct sotto_context * ctx, struct sotto_tensor * a);
SOTTO_API struct sotto_tensor * sotto_cont_1d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0);
SOTTO_API struct sotto_tensor * sotto_cont_2d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                              int64_t ne1);
SOTTO_API struct sotto_tensor * sotto_cont_3d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                              int64_t ne1, int64_t ne2);
SOTTO_API struct sotto_tensor * sotto_cont_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                              int64_t ne1, int64_t ne2, int64_t ne3);

/* ---- views: no copy, share a's storage ---- */

/* New extents of equal count over a contiguous `a` (LAYOUT, SHAPE); b gives only its shape. */
SOTTO_API struct sotto_tensor * sotto_reshape(struct sotto_context * ctx, struct sotto_tensor * a,
                                              struct sotto_tensor * b);
SOTTO_API struct sotto_tensor * sotto_reshape_1d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0);
SOTTO_API struct sotto_tensor * sotto_reshape_2d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                                 int64_t ne1);
SOTTO_API struct sotto_tensor * sotto_reshape_3d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                                 int64_t ne1, int64_t ne2);
SOTTO_API struct sotto_tensor * sotto_reshape_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                                 int64_t ne1, int64_t ne2, int64_t ne3);
/* A window into `a`: extents, byte strides nb1.. and a byte offset. BOUNDS if it leaves the owner's bytes
 * (dense size or strided span), PARAM if a stride or the offset is no multiple of the element size. Stride 0
 * repeats a row; such a view must not be written to. */
SOTTO_API struct sotto_tensor * sotto_view_1d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                              size_t offset);
SOTTO_API struct sotto_tensor * sotto_view_2d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                              int64_t ne1, size_t nb1, size_t offset);
SOTTO_API struct sotto_tensor * sotto_view_3d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                              int64_t ne1, int64_t ne2, size_t nb1, size_t nb2, size_t offset);
SOTTO_API struct sotto_tensor * sotto_view_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                              int64_t ne1, int64_t ne2, int64_t ne3, size_t nb1, size_t nb2, size_t nb3,
                                              size_t offset);
/* Source dimension i goes to dimension axis_i: y.ne[axis_i] = a.ne[i]. PARAM for an axis outside 0..3 or used
 * twice; LAYOUT if dimension 0 of a quantised tensor would move. transpose = permute(1, 0, 2, 3). */
SOTTO_API struct sotto_tensor * sotto_permute(struct sotto_context * ctx, struct sotto_tensor * a, int axis0, int axis1,
                                              int axis2, int axis3);
SOTTO_API struct sotto_tensor * sotto_transpose(struct sotto_context * ctx, struct sotto_tensor * a);

/* Tile a to b's shape (or the given one), a new tensor of a's type: y[i] = a[i mod a.ne]. */
SOTTO_API struct sotto_tensor * sotto_repeat(struct sotto_context * ctx, struct sotto_tensor * a,
                                             struct sotto_tensor * b);
SOTTO_API struct sotto_tensor * sotto_repeat_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0,
                                                int64_t ne1, int64_t ne2, int64_t ne3);

/* ---- arithmetic ---- */

/* y[i] = a[i] + b[i mod b.ne], likewise mul; b tiles a (SHAPE). (a,b): (f32,f32) (f16,f16) (bf16,bf16)
 * (f16,f32) (bf16,f32), result a's type, calculated in f32 and rounded once. Any strides. Of add also (quantised,f32) of
 * one shape and contiguous rows (LAYOUT): the sum is quantised again, by the row reference of the format. */
SOTTO_API struct sotto_tensor * sotto_add(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b);
SOTTO_API struct sotto_tensor * sotto_add_inplace(struct sotto_context * ctx, struct sotto_tensor * a,
                                                  struct sotto_tensor * b);
/* As add, with the result's type given: a f16, bf16 or quantised, b f32, result f32 (TYPE). */
SOTTO_API struct sotto_tensor * sotto_add_cast(struct sotto_context * ctx, struct sotto_tensor * a,
                                               struct sotto_tensor * b, enum sotto_type type);
SOTTO_API struct sotto_tensor * sotto_mul(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b);
SOTTO_API struct sotto_tensor * sotto_mul_inplace(struct sotto_context * ctx, struct sotto_tensor * a,
                                                  struct sotto_tensor * b);
/* y = s*a + b (b = 0 in the first form); f32, f16, bf16; any strides. */
SOTTO_API struct sotto_tensor * sotto_scale(struct sotto_context * ctx, struct sotto_tensor * a, float s);
SOTTO_API struct sotto_tensor * sotto_scale_inplace(struct sotto_context * ctx, struct sotto_tensor * a, float s);
SOTTO_API struct sotto_tensor * sotto_scale_bias(struct sotto_context * ctx, struct sotto_tensor * a, float s, float b);
SOTTO_API struct sotto_tensor * sotto_scale_bias_inplace(struct sotto_context * ctx, struct sotto_tensor * a, float s,
                                                         float b);

/* ---- element functions: f32, f16, bf16; rows contiguous (LAYOUT) ---- */

SOTTO_API struct sotto_tensor * sotto_unary(struct sotto_context * ctx, struct sotto_tensor * a,
                                            enum sotto_unary_op op);
SOTTO_API struct sotto_tensor * sotto_unary_inplace(struct sotto_context * ctx, struct sotto_tensor * a,
                                                    enum sotto_unary_op op);
/* x/2 (1 + tanh(sqrt(2/pi) x (1 + 0.044715 x^2))), and the exact x/2 (1 + erf(x/sqrt 2)). */
SOTTO_API struct sotto_tensor * sotto_gelu(struct sotto_context * ctx, struct sotto_tensor * a);
SOTTO_API struct sotto_tensor * sotto_gelu_inplace(struct sotto_context * ctx, struct sotto_tensor * a);
SOTTO_API struct sotto_tensor * sotto_gelu_erf(struct sotto_context * ctx, struct sotto_tensor * a);
SOTTO_API struct sotto_tensor * sotto_gelu_erf_inplace(struct sotto_context * ctx, struct sotto_tensor * a);

/* ---- rows ---- */

/* Sum over dimension 0: [1, ne1, ne2, ne3], f32. */
SOTTO_API struct sotto_tensor * sotto_sum_rows(struct sotto_context * ctx, struct sotto_tensor * a);
/* (x - mean) / sqrt(variance + eps) per row, f32, eps >= 0 (PARAM); any strides. */
SOTTO_API struct sotto_tensor * sotto_norm(struct sotto_context * ctx, struct sotto_tensor * a, float eps);
SOTTO_API struct sotto_tensor * sotto_norm_inplace(struct sotto_context * ctx, struct sotto_tensor * a, float eps);
/* softmax(scale*a + slope*mask) per row. a f32 [n, r, h, t]; mask f32 or f16 [n, >=r, m2, m3], m2 divides h, m3
 * divides t; slope is ALiBi's when max_bias > 0 (needs a mask, PARAM), else 1. A row that is -inf throughout
 * gives zeros. add_sinks: f32 [h], one more logit per head that only takes part in the denominator; NULL
 * removes them; STATE unless y is a soft_max without sinks. */
SOTTO_API struct sotto_tensor * sotto_soft_max(struct sotto_context * ctx, struct sotto_tensor * a);
SOTTO_API struct sotto_tensor * sotto_soft_max_inplace(struct sotto_context * ctx, struct sotto_tensor * a);
SOTTO_API struct sotto_tensor * sotto_soft_max_ext(struct sotto_context * ctx, struct sotto_tensor * a,
                                                   struct sotto_tensor * mask, float scale, float max_bias);
SOTTO_API struct sotto_tensor * sotto_soft_max_ext_inplace(struct sotto_context * ctx, struct sotto_tensor * a,
                                                           struct sotto_tensor * mask, float scale, float max_bias);
SOTTO_API enum sotto_status sotto_soft_max_add_sinks(struct sotto_tensor * y, struct sotto_tensor * sinks);
/* Indices of the k largest of each row, i32 [k, ne1, ne2, ne3], largest first, equal values by lower index,
 * NaN last. 1 <= k <= ne0 (PARAM). */
SOTTO_API struct sotto_tensor * sotto_top_k(struct sotto_context * ctx, struct sotto_tensor * a, int k);
/* y[i,j,s,t] = a[i, b[j,s,t], s, t]; a f32, f16, bf16, i32 or quantised; b i32 [r, ne2, ne3]; result f32 (i32 for i32). A bad index stops the graph
 * with RANGE. */
SOTTO_API struct sotto_tensor * sotto_get_rows(struct sotto_context * ctx, struct sotto_tensor * a,
                                               struct sotto_tensor * b);
/* a[:, c[j,..], s, t] = b[:, j, s, t]; a any type with a row quantiser, b f32 or f16, c i64 or i32
 * [r, C1, C2], C1 divides ne2, C2 divides ne3. Result is a view of a. */
SOTTO_API struct sotto_tensor * sotto_set_rows(struct sotto_context * ctx, struct sotto_tensor * a,
                                               struct sotto_tensor * b, struct sotto_tensor * c);

/* ---- products ---- */

/* a [k, n, A2, A3] (weights: f32, f16, bf16 or quantised), b [k, m, B2, B3] (f32, f16, bf16) -> f32 [n, m, B2, B3]:
 * y[i,j,s,t] = sum_l a[l, i, s/(B2/A2), t/(B3/A3)] * b[l,j,s,t]. SHAPE if ne0 differ or batches do not divide. */
SOTTO_API struct sotto_tensor * sotto_mul_mat(struct sotto_context * ctx, struct sotto_tensor * a,
                                              struct sotto_tensor * b);
SOTTO_API enum sotto_status sotto_mul_mat_set_prec(struct sotto_tensor * y, enum sotto_prec prec);
SOTTO_API enum sotto_status sotto_mul_mat_set_hint(struct sotto_tensor * y, enum sotto_op_hint hint);
/* One of several matrices for each column: as [k, n, E], b [k, U', t], ids i32 [U, t] of any strides -> f32 [n, U, t]:
 * y[i,e,c] = sum_l as[l, i, ids[e,c]] * b[l, e mod U', c]. Types as for mul_mat. SHAPE unless U' divides U and the rest
 * fits; TYPE, LAYOUT (as transposed). An id outside 0..E-1 stops the graph with RANGE. */
SOTTO_API struct sotto_tensor * sotto_mul_mat_id(struct sotto_context * ctx, struct sotto_tensor * as,
                                                 struct sotto_tensor * b, struct sotto_tensor * ids);

/* Patches of image b under kernel a (only a's shape counts), f32 or f16:
 * 1-D: kernel [K, IC, OC], image [W, IC, N] -> [IC*K, OW, N]; 2-D: kernel [KW, KH, IC, OC], image [W, H, IC, N]
 * -> [IC*KH*KW, OW, OH, N]. s stride, p zero padding, d dilation; PARAM, SHAPE if the result would be empty. */
SOTTO_API struct sotto_tensor * sotto_im2col(struct sotto_context * ctx, struct sotto_tensor * a,
                                             struct sotto_tensor * b, int s0, int s1, int p0, int p1, int d0, int d1,
                                             bool is_2D, enum sotto_type dst_type);
/* kernel [K, IC, OC], data [L, IC, N] -> f32 [OL, OC, N]; _ph pads by half the kernel. */
SOTTO_API struct sotto_tensor * sotto_conv_1d(struct sotto_context * ctx, struct sotto_tensor * a,
                                              struct sotto_tensor * b, int s0, int p0, int d0);
SOTTO_API struct sotto_tensor * sotto_conv_1d_ph(struct sotto_context * ctx, struct sotto_tensor * a,
                                                 struct sotto_tensor * b, int s, int d);

/* ---- attention ---- */

/* q f32 [Dk, nq, Hq, t], k [Dk, nk, Hk, t], v [Dv, nk, Hv, t] (f32, f16, bf16, quantised), mask f16 [>=nk, >=nq, m2, m3] or
 * NULL -> f32 [Dv, Hq, nq, t]: softmax over nk of scale*<q,k> (soft-capped if logit_softcap is not 0) plus
 * slope*mask, times v. Keys whose mask is -inf are not read. No open key: zeros. */
SOTTO_API struct sotto_tensor * sotto_flash_attn_ext(struct sotto_context * ctx, struct sotto_tensor * q,
                                                     struct sotto_tensor * k, struct sotto_tensor * v,
                                                     struct sotto_tensor * mask, float scale, float max_bias,
                                                     float logit_softcap);
SOTTO_API enum sotto_status sotto_flash_attn_ext_set_prec(struct sotto_tensor * y, enum sotto_prec prec);
SOTTO_API enum sotto_prec sotto_flash_attn_ext_get_prec(const struct sotto_tensor * y);
SOTTO_API enum sotto_status sotto_flash_attn_ext_add_sinks(struct sotto_tensor * y, struct sotto_tensor * sinks);

/* Attention of any number of sequences over one pool of cache rows (sotto's own; the recogniser's decoder).
 *   q      f32 [D, H, n]   one query per column, heads side by side as a projection leaves them
 *   k, v   f32, f16 or bf16 [D, H, R]   R rows of the pool; strides of dims 1 and 2 are free. k may also be a view of
 *          [R, D, H], rows side by side, which is quickest where positions follow one another in the table
 *   table  i32 [L, S]      table[p, s] = pool row of position p of sequence s
 *   seq    i32 [n]         sequence of each query, 0..S-1
 *   len    i32 [n]         it sees positions 0..len-1 of its sequence, 0 <= len <= L; 0 gives zeros
 *   result f32 [D, H, n]   softmax(scale * <q, k>) times v, each sequence walked from its position 0
 * Neither the other queries of the batch nor where rows lie in the pool changes a bit of a query's result.
 * RANGE at compute for a sequence, length or (visible) row outside. */
SOTTO_API struct sotto_tensor * sotto_attn_rows(struct sotto_context * ctx, struct sotto_tensor * q,
                                                struct sotto_tensor * k, struct sotto_tensor * v,
                                                struct sotto_tensor * table, struct sotto_tensor * seq,
                                                struct sotto_tensor * len, float scale);

#ifdef __cplusplus
}
#endif
#endif
