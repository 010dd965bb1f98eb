/* SPDX-License-Identifier: MIT */
/* For tests only: draw chunks in another order, and see which threads ran some. Always compiled; costs one branch a
 * chunk while off. Not to be changed while anything computes. */
#ifndef SOTTO_CPU_TEST_HOOKS_H
#define SOTTO_CPU_TEST_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

/* On: chunks of a node come in an order that follows from `seed`, of each node the computing thread runs
 * at least one and some worker at least one, and chunks are counted (from zero). */
void sotto_i_test_hooks(bool on, uint64_t seed);

/* Chunks that ran on thread `thread` of a graph since the hooks were turned on; those of nodes with one chunk are not
 * counted. */
uint64_t sotto_i_test_chunks(int thread);

#endif
