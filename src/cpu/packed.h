/* SPDX-License-Identifier: MIT */
/* Packed weights: matrices stored the way the product kernels read them, in panels of 16 rows (cpu/panel.h).
 *
 * The last panel is filled up with zeros. Matrices of dimensions 2 and 3 follow one another, each beginning with a
 * panel of its own. The layout depends on no CPU level. ne and nb of the tensor describe the standard layout, that
 * of set and get; ops that read a packed operand ask the functions here where a row or panel lies. */
#ifndef SOTTO_CPU_PACKED_H
#define SOTTO_CPU_PACKED_H

#include "sotto/cpu.h"

/* The tensor, or the owner of its storage, lies in a packed buffer. */
bool sotto_i_is_packed(const struct sotto_tensor * t);

/* A packed tensor whose matrices begin with panels, so that it can be read in place: the whole, or a view of whole
 * rows from row 0, 16, 32, ... of a matrix. */
bool sotto_i_packed_readable(const struct sotto_tensor * t);

/* For readable tensors with data. First panel of matrix (i2, i3); panels are 16 rows' bytes apart. */
const void * sotto_i_packed_matrix(const struct sotto_tensor * t, int64_t i2, int64_t i3);

/* Elements l0 .. l0+n of row (i1, i2, i3), whole blocks, to `dst` in the tensor's own type. */
void sotto_i_packed_get(const struct sotto_tensor * t, int64_t i1, int64_t i2, int64_t i3, int64_t l0, int64_t n,
                        void * dst);

#endif
