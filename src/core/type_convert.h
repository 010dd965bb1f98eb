/* SPDX-License-Identifier: MIT */
/* Rows of block-quantised types to f32 and back: what src/quant supplies to the table of types.
 *
 * x and y do not overlap and may have any alignment on the quantised side; n is a multiple of the block. Every result
 * is the one that spec and docs/file-formats.md define, bit for bit; CPU levels have faster twins of their own. */
#ifndef SOTTO_CORE_TYPE_CONVERT_H
#define SOTTO_CORE_TYPE_CONVERT_H

#include <stdint.h>

#define TO_FLOAT(name)   void sotto_i_##name##_to_float(const void * x, float * y, int64_t n);
#define FROM_FLOAT(name) void sotto_i_##name##_from_float(const float * x, void * y, int64_t n);
#define BOTH(name)       TO_FLOAT(name) FROM_FLOAT(name)

BOTH(q1_0)
BOTH(q2_0)
BOTH(q4_0)
BOTH(q4_1)
BOTH(q5_0)
BOTH(q5_1)
BOTH(q8_0)
BOTH(q2_k)
BOTH(q3_k)
BOTH(q4_k)
BOTH(q5_k)
BOTH(q6_k)
BOTH(tq1_0)
BOTH(tq2_0)
BOTH(mxfp4)
BOTH(nvfp4)
BOTH(iq4_nl)
BOTH(iq4_xs)
/* from_float of these three writes zero bytes until sotto_quantize_init() made their tables */
BOTH(iq2_s)
BOTH(iq3_xxs)
BOTH(iq3_s)
/* these need an importance matrix, or the whole row's look, and are only quantised by sotto_quantize_chunk() */
TO_FLOAT(iq1_s)
TO_FLOAT(iq1_m)
TO_FLOAT(iq2_xxs)
TO_FLOAT(iq2_xs)
/* work types: their decoding serves tests and validation, it is not in the table */
BOTH(q8_1)
BOTH(q8_k)

#undef BOTH
#undef FROM_FLOAT
#undef TO_FLOAT

#endif
