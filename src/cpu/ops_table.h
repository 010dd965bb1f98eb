/* SPDX-License-Identifier: MIT */
/* From a node to the CPU's op, and whether the CPU can compute it. */
#ifndef SOTTO_CPU_OPS_TABLE_H
#define SOTTO_CPU_OPS_TABLE_H

#include "cpu/cpu_impl.h"

/* The op of a node; views have one with nothing in it. NULL for a number outside ops.def. */
const struct sotto_i_cpu_op * sotto_i_cpu_op_of(const struct sotto_tensor * node);

/* SOTTO_OK if the CPU computes this node without refusing; else UNSUPPORTED, and why. Views always pass.
 * sotto_i_cpu_can asks the same and records nothing. */
enum sotto_status sotto_i_cpu_check_op(const struct sotto_tensor * node, const char * function);
bool sotto_i_cpu_can(const struct sotto_tensor * node);

#endif
