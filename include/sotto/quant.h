/* SPDX-License-Identifier: MIT */
/* Quantising rows, and checking rows of any type.
 *
 * A block-quantised type keeps a row as blocks of 32 to 256 elements, each a few bytes of scales and small codes;
 * sotto_get_type_traits() knows the sizes and converts single rows. The functions here quantise matrices with the care
 * that files deserve, and with the help of an importance matrix where a type can use one:
 *
 *     size_t bytes = sotto_row_size(SOTTO_TYPE_Q4_K, n_per_row) * n_rows;
 *     sotto_quantize_chunk(SOTTO_TYPE_Q4_K, weights, out, 0, n_rows, n_per_row, NULL);
 *
 * The bytes follow from the input alone: not from the split into chunks, the threads or the CPU level.
 * All functions may be called from any thread. */
#ifndef SOTTO_QUANT_H
#define SOTTO_QUANT_H

#include "sotto/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Build the search tables of iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs and iq3_s; nothing for other types, nothing
 * the second time. Failure records MEMORY, TYPE or RETIRED. sotto_quantize_chunk() calls it; from_float_ref of iq2_s,
 * iq3_xxs and iq3_s works only after it (before: rows of zero bytes). */
SOTTO_API void sotto_quantize_init(enum sotto_type type);
/* Release all such tables; no other thread may be quantising to these types. init may follow again. */
SOTTO_API void sotto_quantize_free(void);

/* True for iq2_xxs, iq2_xs and iq1_s. */
SOTTO_API bool sotto_quantize_requires_imatrix(enum sotto_type type);

/* Convert rows of floats to `type`: any quantised type but the work types q8_1 and q8_K; f32, f16 and bf16 too.
 *   src, dst    the whole matrix, rows of n_per_row elements; any alignment of dst
 *   start       first element, a multiple of n_per_row; the first row written is start / n_per_row
 *   nrows       rows to convert; disjoint ranges may be converted by several threads at once
 *   imatrix     one weight >= 0 per column, the same for all rows; NULL for none; types that cannot use it ignore it
 * Returns the bytes written, nrows * sotto_row_size(type, n_per_row). 0 and an error, nothing written: NULLARG (src, dst,
 * a required imatrix), PARAM (start, negative counts, a weight that is negative or not finite), SHAPE (n_per_row no
 * multiple of the block), TYPE, RETIRED, MEMORY. Input that is not finite gives unspecified values in its block. */
SOTTO_API size_t sotto_quantize_chunk(enum sotto_type type, const float * src, void * dst, int64_t start, int64_t nrows,
                                      int64_t n_per_row, const float * imatrix);

/* True if `nbytes` of `data` are whole blocks of `type` in which every float and every scale is finite; integers always
 * are. False with TYPE, RETIRED, SHAPE (no whole number of blocks), NULLARG, or PARAM whose message names the first bad
 * block and field; the message goes to the log as well. q8_1 is no type of files: TYPE. */
SOTTO_API bool sotto_validate_row_data(enum sotto_type type, const void * data, size_t nbytes);

/* The tensor type of a model file's type number ("ftype" of .bin and GGUF); SOTTO_TYPE_COUNT and TYPE for numbers that
 * stand for no single type (-1, 4) or for nothing. */
SOTTO_API enum sotto_type sotto_ftype_to_sotto_type(int ftype);

#ifdef __cplusplus
}
#endif
#endif
