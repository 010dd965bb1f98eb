/* SPDX-License-Identifier: MIT */
/* DUP, CPY, cast, CONT and REPEAT through the engine: every pair of types, every pair of layouts, copies that change
 * the shape, rounding and saturation. (Copies out of packed weights: test_mul_mat.c.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "support/op_case.h"

static const enum sotto_type all_types[] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16, SOTTO_TYPE_I8,
                                             SOTTO_TYPE_I16, SOTTO_TYPE_I32, SOTTO_TYPE_I64 };
enum { N_TYPES = sizeof(all_types) / sizeof(all_types[0]) };

static bool is_float(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16;
}

static bool is_pair(enum sotto_type from, enum sotto_type to) {
    return from == to || (is_float(from) && is_float(to)) || (from == SOTTO_TYPE_F32 && to == SOTTO_TYPE_I32) ||
           (from == SOTTO_TYPE_I32 && to == SOTTO_TYPE_F32);
}

/* What a value becomes in y's type: conversion of one element by the public functions. */
static double converted(enum sotto_type type, double x) {
    switch (type) {
    case SOTTO_TYPE_F16: return sotto_fp16_to_fp32(sotto_fp32_to_fp16((float)x));
    case SOTTO_TYPE_BF16: return sotto_bf16_to_fp32(sotto_fp32_to_bf16((float)x));
    case SOTTO_TYPE_I32: return isnan(x) ? 0.0 : trunc(fmax(-0x1p31, fmin(0x1p31 - 1.0, x)));
    default: return x;
    }
}

/* Element of the same logical index, whatever the shapes. */
static double same_place(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct sotto_tensor * a = user;
    int64_t n = ((i[3] * y->ne[2] + i[2]) * y->ne[1] + i[1]) * y->ne[0] + i[0], at[4];
    for (int d = 0; d < 4; d++) {
        at[d] = n % a->ne[d];
        n /= a->ne[d];
    }
    return converted(y->type, op_get(a, at[0], at[1], at[2], at[3]));
}

static void type_pairs(void ** state) {
    (void)state;
    for (int s = 0; s < N_TYPES; s++)
        for (int t = 0; t < N_TYPES; t++)
            for (int ls = 0; ls < OP_N_LAYOUTS; ls++)
                for (int lt = 0; lt < OP_N_LAYOUTS; lt++) {
                    struct op_case c;
                    op_case_begin(&c);
                    struct sotto_tensor * a = op_tensor(&c, all_types[s], (enum op_layout)ls, 33, 19, 3, 2);
                    struct sotto_tensor * b = op_tensor(&c, all_types[t], (enum op_layout)lt, 33, 19, 3, 2);
                    struct sotto_tensor * y = sotto_cpy(c.ctx, a, b);
                    if (is_pair(all_types[s], all_types[t])) {
                        op_case_check(&c, y, same_place, a, 0.0);
                    } else {
                        assert_null(y);
                        assert_int_equal(sotto_context_status(c.ctx), SOTTO_E_TYPE);
                    }
                    op_case_end(&c);
                }
}

static void cast(void ** state) {
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++) {
            struct op_case c;
            op_case_begin(&c);
            struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, (enum op_layout)layout, 129, 3, 2, 2);
            op_case_check(&c, sotto_cast(c.ctx, a, all_types[t]), same_place, a, 0.0);
            op_case_end(&c);
        }
}

static void dup_and_cont(void ** state) {
    (void)state;
    static const int64_t shapes[][4] = { { 10, 10, 20, 1 }, { 2, 1, 3, 5 },   { 2, 3, 5, 7 },     { 1, 4, 4, 1 },
                                         { 1, 8, 17, 1 },   { 64, 3, 65, 1 }, { 1000, 33, 3, 1 }, { 1, 1, 1, 1 },
                                         { 16, 16, 1, 1 },  { 17, 31, 2, 1 } };
    for (int t = 0; t < N_TYPES; t++)
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
            for (int layout = 0; layout < OP_N_LAYOUTS; layout += t < 2 ? 1 : 3) {
                const int64_t * n = shapes[s];
                struct op_case c;
                op_case_begin(&c);
                struct sotto_tensor * a = op_tensor(&c, all_types[t], (enum op_layout)layout, n[0], n[1], n[2], n[3]);
                op_case_check(&c, sotto_dup(c.ctx, a), same_place, a, 0.0);
                op_case_check(&c, sotto_cont(c.ctx, a), same_place, a, 0.0);
                op_case_check(&c, sotto_cont_2d(c.ctx, a, n[0] * n[2], n[1] * n[3]), same_place, a, 0.0);
                op_case_check(&c, sotto_dup_inplace(c.ctx, a), same_place, a, 0.0);
                op_case_end(&c);
            }
}

static void all_permutations(void ** state) {
    (void)state;
    for (int p = 0; p < 256; p++) {
        const int axis[4] = { p & 3, p >> 2 & 3, p >> 4 & 3, p >> 6 & 3 };
        if ((1 << axis[0] | 1 << axis[1] | 1 << axis[2] | 1 << axis[3]) != 15)
            continue;
        struct op_case c;
        op_case_begin(&c);
        struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F16, OP_DENSE, 10, 8, 3, 21);
        struct sotto_tensor * b = sotto_permute(c.ctx, a, axis[0], axis[1], axis[2], axis[3]);
        op_case_check(&c, sotto_cont(c.ctx, b), same_place, b, 0.0);
        op_case_check(&c, sotto_cast(c.ctx, b, SOTTO_TYPE_F32), same_place, b, 0.0);
        op_case_end(&c);
    }
}

static void reshaping(void ** state) {
    (void)state;
    static const int64_t n[4] = { 3, 5, 7, 32 };
    static const int order[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 }, { 3, 0, 1, 2 } };
    for (int s = 0; s < 5; s++)
        for (int t = 0; t < 5; t++)
            for (int layout = 0; layout < OP_N_LAYOUTS; layout++)
                for (int narrow = 0; narrow < 2; narrow++) {
                    const int *f = order[s], *g = order[t];
                    struct op_case c;
                    op_case_begin(&c);
                    struct sotto_tensor * a =
                        op_tensor(&c, SOTTO_TYPE_F32, (enum op_layout)layout, n[f[0]], n[f[1]], n[f[2]], n[f[3]]);
                    struct sotto_tensor * b =
                        op_tensor(&c, narrow ? SOTTO_TYPE_BF16 : SOTTO_TYPE_F32, (enum op_layout)(3 - layout), n[g[0]],
                                  n[g[1]], n[g[2]], n[g[3]]);
                    op_case_check(&c, sotto_cpy(c.ctx, a, b), same_place, a, 0.0);
                    op_case_end(&c);
                }
}

static void very_long(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, OP_TRANSPOSED, 2, 209713, 1, 1);
    op_case_check(&c, sotto_cont(c.ctx, a), same_place, a, 0.0);
    struct sotto_tensor * b = op_tensor(&c, SOTTO_TYPE_F32, OP_TRANSPOSED, 1500, 200, 1, 1);
    op_case_check(&c, sotto_cont(c.ctx, b), same_place, b, 0.0);
    op_case_end(&c);
}

static void rounding_and_saturation(void ** state) {
    (void)state;
    static const float x[] = { 65519.0f,       65520.0f,       -1e30f,   INFINITY, NAN,  0x1p-25f,
                               0x1.8p-25f,     1.00048828125f, 2.9f,     -2.9f,    3e9f, -3e9f,
                               0x1.fffffep30f, 0x1p31f,        -0x1p31f, -0.0f };
    enum { N = sizeof(x) / sizeof(x[0]) };
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_values(&c, N, x);
    op_case_check(&c, sotto_cast(c.ctx, a, SOTTO_TYPE_F16), same_place, a, 0.0);
    op_case_check(&c, sotto_cast(c.ctx, a, SOTTO_TYPE_BF16), same_place, a, 0.0);
    op_case_check(&c, sotto_cast(c.ctx, a, SOTTO_TYPE_I32), same_place, a, 0.0);
    struct sotto_tensor * y = sotto_cast(c.ctx, a, SOTTO_TYPE_I32);
    assert_int_equal(op_compute(y, 1), SOTTO_OK);
    const int32_t * v = y->data;
    assert_int_equal(v[2], INT32_MIN);
    assert_int_equal(v[3], INT32_MAX);
    assert_int_equal(v[4], 0);
    assert_int_equal(v[8], 2);
    assert_int_equal(v[9], -2);
    struct sotto_tensor * f16 = sotto_cast(c.ctx, a, SOTTO_TYPE_F16);
    assert_int_equal(op_compute(f16, 1), SOTTO_OK);
    const uint16_t * h = f16->data;
    assert_int_equal(h[0], 0x7BFF);
    assert_int_equal(h[1], 0x7C00);
    assert_int_equal(h[5], 0); /* half of the smallest: to even */
    assert_int_equal(h[6], 1);
    op_case_end(&c);
}

/* Same-type copies do not look at the values: a signalling NaN stays what it is. */
static void bits_stay(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = sotto_new_tensor_2d(c.ctx, SOTTO_TYPE_F16, 7, 3);
    for (int i = 0; i < 21; i++)
        ((uint16_t *)a->data)[i] = (uint16_t)(0x7C01 + i);
    struct sotto_tensor * y = sotto_cont(c.ctx, sotto_transpose(c.ctx, a));
    assert_int_equal(op_compute(y, 1), SOTTO_OK);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 3; j++)
            assert_int_equal(((const uint16_t *)y->data)[i * 3 + j], 0x7C01 + j * 7 + i);
    op_case_end(&c);
}

/* Blocks of a quantised type move whole. */
static void blocks(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = sotto_new_tensor_4d(c.ctx, SOTTO_TYPE_Q8_0, 96, 2, 3, 4);
    for (size_t i = 0; i < sotto_nbytes(a); i++)
        ((uint8_t *)a->data)[i] = (uint8_t)(i * 31);
    struct sotto_tensor * p = sotto_permute(c.ctx, a, 0, 3, 1, 2);
    struct sotto_tensor * y = sotto_cont(c.ctx, p);
    assert_int_equal(op_compute(y, 2), SOTTO_OK);
    for (int64_t k = 0; k < p->ne[3]; k++)
        for (int64_t j = 0; j < p->ne[2]; j++)
            for (int64_t i = 0; i < p->ne[1]; i++)
                assert_memory_equal(
                    (char *)y->data + i * (int64_t)y->nb[1] + j * (int64_t)y->nb[2] + k * (int64_t)y->nb[3],
                    (char *)p->data + i * (int64_t)p->nb[1] + j * (int64_t)p->nb[2] + k * (int64_t)p->nb[3], 3 * 34);
    op_case_end(&c);
}

/* ---- REPEAT ---- */

static double tiled(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    (void)y;
    return op_get_tiled(user, i);
}

static void repeat(void ** state) {
    (void)state;
    static const int64_t shapes[][8] = { { 10, 5, 4, 3, 1, 1, 1, 1 },   { 10, 5, 4, 3, 2, 1, 1, 1 },
                                         { 10, 5, 4, 1, 1, 2, 1, 1 },   { 10, 5, 4, 3, 1, 1, 2, 1 },
                                         { 10, 5, 4, 3, 1, 1, 1, 2 },   { 3, 2, 2, 2, 3, 3, 2, 2 },
                                         { 1, 5, 1, 2, 1500, 1, 3, 1 }, { 512, 1, 1, 1, 3, 40, 1, 1 },
                                         { 1, 1, 1, 1, 7, 5, 3, 2 } };
    for (int t = 0; t < N_TYPES; t++)
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
            for (int layout = 0; layout < OP_N_LAYOUTS; layout += t < 2 ? 1 : 3) {
                const int64_t * n = shapes[s];
                struct op_case c;
                op_case_begin(&c);
                struct sotto_tensor * a = op_tensor(&c, all_types[t], (enum op_layout)layout, n[0], n[1], n[2], n[3]);
                struct sotto_tensor * y = sotto_repeat_4d(c.ctx, a, n[0] * n[4], n[1] * n[5], n[2] * n[6], n[3] * n[7]);
                op_case_check(&c, y, tiled, a, 0.0);
                op_case_check(&c, sotto_repeat(c.ctx, a, y), tiled, a, 0.0);
                op_case_end(&c);
            }
}

static void empty(void ** state) {
    (void)state;
    for (int d = 0; d < 4; d++) {
        int64_t n[4] = { 3, 2, 4, 5 };
        n[d] = 0;
        struct op_case c;
        op_case_begin(&c);
        struct sotto_tensor * a = sotto_new_tensor(c.ctx, SOTTO_TYPE_F32, 4, n);
        op_case_check(&c, sotto_dup(c.ctx, a), op_zero, NULL, 0.0);
        op_case_check(&c, sotto_cast(c.ctx, a, SOTTO_TYPE_F16), op_zero, NULL, 0.0);
        op_case_check(&c, sotto_cont_1d(c.ctx, a, 0), op_zero, NULL, 0.0);
        op_case_check(&c, sotto_repeat_4d(c.ctx, a, 2 * n[0], n[1], n[2], n[3]), op_zero, NULL, 0.0);
        op_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_pairs),
        cmocka_unit_test(cast),
        cmocka_unit_test(dup_and_cont),
        cmocka_unit_test(all_permutations),
        cmocka_unit_test(reshaping),
        cmocka_unit_test(very_long),
        cmocka_unit_test(rounding_and_saturation),
        cmocka_unit_test(bits_stay),
        cmocka_unit_test(blocks),
        cmocka_unit_test(repeat),
        cmocka_unit_test(empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
