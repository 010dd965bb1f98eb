/* SPDX-License-Identifier: MIT */
/* Search in the codebooks of the lattice types: from any tuple of digits to a row.
 *
 * A cell is a tuple of `length` digits 0..levels - 1, the first digit lowest. A cell that is a row of the codebook
 * stands for itself; for each other one the table lists the rows around it: those at the smallest few (`shells`)
 * distances that occur, by distance, then row. Which of them serves is a matter of the values and weights at hand. */
#ifndef SOTTO_QUANT_LATTICE_H
#define SOTTO_QUANT_LATTICE_H

#include <stdint.h>

#include "sotto/alloc.h"

enum sotto_i_book {
    BOOK_IQ2_XXS,
    BOOK_IQ2_XS,
    BOOK_IQ2_S,
    BOOK_IQ3_XXS,
    BOOK_IQ3_S,
    BOOK_IQ1, /* of iq1_s and iq1_m */
    BOOK_COUNT
};

enum { ROW_MAX = 8, LEVEL_MAX = 8 }; /* digits of a row, values of a digit */

struct sotto_i_lattice {
    const struct sotto_allocator * allocator;
    int length, levels, rows, cells;
    uint8_t * digits;      /* of the rows: ROW_MAX each */
    uint8_t * heads;       /* of the rows of 8: the first digits a, b, c, d as a + 4 b + 12 c + 36 d */
    int16_t * row;         /* of a cell; -1 for none */
    uint32_t * first;      /* where the neighbours of a cell begin, cells + 1 numbers */
    uint16_t * neighbours; /* rows; `held` of them, `room` allocated */
    uint32_t held, room;
};

/* What a digit costs at each place of a row: nothing negative. Rows of 8 read a fourth cost, of any value, as well. */
struct sotto_i_costs {
    float of[ROW_MAX][LEVEL_MAX];
};

/* Make the table of a codebook, unless it is there; from any thread. */
enum sotto_status sotto_i_lattice_make(enum sotto_i_book book);
/* Release it; no thread may be using it. */
void sotto_i_lattice_free(enum sotto_i_book book);
/* NULL before it is made. */
const struct sotto_i_lattice * sotto_i_lattice(enum sotto_i_book book);

/* The neighbour of a cell (which is no row) that costs least, summed in order of the digits; the first of several. */
int sotto_i_lattice_nearest(const struct sotto_i_lattice * lattice, int cell, const struct sotto_i_costs * costs);

#endif
