/* SPDX-License-Identifier: MIT */
/* For tests of ops: tensors of any type and layout with random values, their elements as doubles, and running a node
 * at every CPU level with 1 and 3 threads between guards.
 *
 *     struct op_case c;
 *     op_case_begin(&c);
 *     struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F16, OP_PERMUTED, 5, 7, 3, 2);
 *     op_case_check(&c, sotto_gelu(c.ctx, a), truth, &c, 1e-3);    truth(node, i, user) gives element i as a double
 *     op_case_end(&c); */
#ifndef SOTTO_TESTS_OP_CASE_H
#define SOTTO_TESTS_OP_CASE_H

#include <stdint.h>

#include "sotto/sotto.h"

enum op_layout {
    OP_DENSE,
    OP_PADDED,     /* rows, planes and volumes cut out of larger ones */
    OP_PERMUTED,   /* dimensions 1 and 2 stored in exchanged order */
    OP_TRANSPOSED, /* dimensions 0 and 1 stored in exchanged order */
    OP_N_LAYOUTS
};

struct op_case {
    struct sotto_context * ctx;
    struct sotto_tensor * guard[2]; /* storage before and behind the node's */
    uint64_t state;                 /* of the random numbers */
};

void op_case_begin(struct op_case * c);
void op_case_end(struct op_case * c);

uint32_t op_random(struct op_case * c);
double op_random_unit(struct op_case * c); /* in [-1, 1) */

/* A tensor with random values: floats in [-1, 1), integers in [-100, 100] (i8 too). */
struct sotto_tensor * op_tensor(struct op_case * c, enum sotto_type type, enum op_layout layout, int64_t ne0,
                                int64_t ne1, int64_t ne2, int64_t ne3);
/* A dense f32 tensor of one dimension with these values. */
struct sotto_tensor * op_values(struct op_case * c, int64_t n, const float * values);

/* Element (i0, i1, i2, i3) of types f32 f16 bf16 i8 i16 i32 i64. */
double op_get(const struct sotto_tensor * t, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
void op_set(struct sotto_tensor * t, int64_t i0, int64_t i1, int64_t i2, int64_t i3, double value);
/* The same with each index taken modulo the extent. */
double op_get_tiled(const struct sotto_tensor * t, const int64_t i[4]);

/* The value that y should have at i. */
typedef double (*op_truth)(const struct sotto_tensor * y, const int64_t i[4], const void * user);
/* 0 everywhere, for tensors without elements. */
double op_zero(const struct sotto_tensor * y, const int64_t i[4], const void * user);

/* Compute y (not NULL) with the CPU backend, at each level and with 1 and 3 threads; every element has to be within
 * bound * (1 + |truth|) of the truth, NaN where it is NaN, and the same bits each time. y may be in place: what it
 * writes is brought back before each run. Guards live. Fails by cmocka's fail_msg. */
void op_case_check(struct op_case * c, struct sotto_tensor * y, op_truth truth, const void * user, double bound);

/* Compute and return the status; nothing is checked. */
enum sotto_status op_compute(struct sotto_tensor * y, int n_threads);

/* Relative size of half a unit in the last place of a type. */
double op_rounding(enum sotto_type type);

#endif
