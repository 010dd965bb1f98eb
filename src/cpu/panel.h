/* SPDX-License-Identifier: MIT */
/* What a panel of packed weights looks like, type by type.
 *
 * A panel holds 16 rows. It is a sequence of panel blocks, one for each block of the type along the row, and a panel
 * block is the 16 rows' blocks laid field by field: a field of c words of w bytes becomes [c][16] such words, word i of
 * rows 0..15 side by side. So a q4_0 block, one scale of 2 bytes and 16 bytes of nibbles read as 4 words of 4, becomes
 *
 *     scales   [16]     2 bytes each
 *     nibbles  [4][16]  4 bytes each: four codes of row 0, of row 1, ...
 *
 * and vectors run over rows. f32 and f16 are blocks of one word: element 0 of 16 rows, element 1 of 16 rows, ...
 * Nothing is lost or added: a panel block has 16 times the bytes of a block. The layout depends on no CPU level. */
#ifndef SOTTO_CPU_PANEL_H
#define SOTTO_CPU_PANEL_H

#include <stddef.h>
#include <stdint.h>

#include "sotto/types.h"

/* Blocks [b0, b0 + n) of row `lane` of a panel from a row in standard layout, and back. */
void sotto_i_panel_set(enum sotto_type type, void * panel, int lane, int64_t b0, int64_t n, const void * row);
void sotto_i_panel_get(enum sotto_type type, const void * panel, int lane, int64_t b0, int64_t n, void * row);
/* Zero bytes in the first n blocks of a row. */
void sotto_i_panel_clear(enum sotto_type type, void * panel, int lane, int64_t n);

#endif
