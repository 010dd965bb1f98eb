/* SPDX-License-Identifier: MIT */
/* ADD, MUL, SCALE, UNARY through the engine: types, strides, broadcasts, in place, empty, worked examples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/op_case.h"

static const enum sotto_type floats[] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16 };

/* One rounding to the result's type of a value calculated in f32. */
static double bound_of(enum sotto_type type) { return 1.01 * op_rounding(type) + 0x1p-24; }

/* ---- ADD and MUL ---- */

struct operands {
    struct sotto_tensor *a, *b;
};

static double sum(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct operands * o = user;
    (void)y;
    return op_get_tiled(o->a, i) + op_get_tiled(o->b, i);
}

static double product(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct operands * o = user;
    (void)y;
    return op_get_tiled(o->a, i) * op_get_tiled(o->b, i);
}

static void check_both(struct op_case * c, struct sotto_tensor * a, struct sotto_tensor * b) {
    const struct operands o = { a, b };
    const double bound = bound_of(a->type);
    op_case_check(c, sotto_add(c->ctx, a, b), sum, &o, bound);
    op_case_check(c, sotto_mul(c->ctx, a, b), product, &o, bound);
    op_case_check(c, sotto_add_inplace(c->ctx, a, b), sum, &o, bound); /* the truth is taken before it runs */
    op_case_check(c, sotto_mul_inplace(c->ctx, a, b), product, &o, bound);
}

static void types_and_layouts(void ** state) {
    (void)state;
    for (int t = 0; t < 5; t++) {
        const enum sotto_type a_type = floats[t % 3], b_type = t < 3 ? a_type : SOTTO_TYPE_F32;
        const enum sotto_type a_of[] = { a_type, a_type, a_type, SOTTO_TYPE_F16, SOTTO_TYPE_BF16 };
        for (int la = 0; la < OP_N_LAYOUTS; la++)
            for (int lb = 0; lb < OP_N_LAYOUTS; lb++) {
                struct op_case c;
                op_case_begin(&c);
                struct sotto_tensor * a = op_tensor(&c, a_of[t], (enum op_layout)la, 33, 5, 4, 3);
                struct sotto_tensor * b = op_tensor(&c, b_type, (enum op_layout)lb, 33, 5, 4, 3);
                check_both(&c, a, b);
                op_case_end(&c);
            }
    }
}

static void broadcasts(void ** state) {
    (void)state;
    static const int64_t shapes[][8] = {
        { 10, 5, 4, 3, 10, 5, 4, 3 },     { 20, 5, 4, 3, 10, 5, 4, 3 },   { 10, 10, 4, 3, 10, 5, 4, 3 },
        { 10, 5, 8, 3, 10, 5, 4, 3 },     { 10, 5, 4, 6, 10, 5, 4, 3 },   { 10, 5, 8, 6, 10, 5, 4, 3 },
        { 20, 10, 8, 6, 10, 5, 4, 3 },    { 10, 5, 4, 3, 1, 1, 1, 1 },    { 32, 1, 1, 1, 1, 1, 1, 1 },
        { 1, 1, 320, 3, 1, 1, 1, 1 },     { 1, 320, 7, 1, 1, 320, 1, 1 }, { 1280, 16, 2, 1, 1280, 1, 1, 1 },
        { 16, 16, 128, 1, 1, 1, 128, 1 }, { 2500, 2, 1, 1, 1, 2, 1, 1 },  { 2500, 2, 1, 1, 500, 1, 1, 1 },
        { 3, 700, 2, 1, 3, 1, 1, 1 },     { 129, 3, 1, 1, 43, 3, 1, 1 },  { 1, 1, 1, 1, 1, 1, 1, 1 },
    };
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++) {
            const int64_t * n = shapes[s];
            struct op_case c;
            op_case_begin(&c);
            struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, n[0], n[1], n[2], n[3]);
            struct sotto_tensor * b = op_tensor(&c, SOTTO_TYPE_F32, (enum op_layout)layout, n[4], n[5], n[6], n[7]);
            check_both(&c, a, b);
            op_case_end(&c);
        }
}

/* Enough elements for several chunks, a row longer than a piece, more rows than 16 bits count. */
static void large(void ** state) {
    (void)state;
    static const int64_t shapes[][4] = {
        { 512, 150, 1, 1 }, { 70001, 1, 1, 1 }, { 2, 70000, 1, 1 }, { 1, 66000, 1, 1 }
    };
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        const int64_t * n = shapes[s];
        struct op_case c;
        op_case_begin(&c);
        struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, OP_PADDED, n[0], n[1], n[2], n[3]);
        struct sotto_tensor * b = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, n[0], 1, 1, 1);
        check_both(&c, a, b);
        op_case_end(&c);
    }
}

static void add_cast(void ** state) {
    (void)state;
    for (int t = 1; t < 3; t++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++) {
            struct op_case c;
            op_case_begin(&c);
            struct operands o = { op_tensor(&c, floats[t], (enum op_layout)layout, 31, 4, 2, 2),
                                  op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 31, 1, 2, 1) };
            struct sotto_tensor * y = sotto_add_cast(c.ctx, o.a, o.b, SOTTO_TYPE_F32);
            op_case_check(&c, y, sum, &o, 0x1p-24);
            assert_int_equal(y->type, SOTTO_TYPE_F32);
            op_case_end(&c);
        }
}

static void one_tensor_twice(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F16, OP_PADDED, 127, 3, 2, 1);
    check_both(&c, a, a);
    op_case_end(&c);
}

static void empty(void ** state) {
    (void)state;
    for (int d = 0; d < 4; d++) {
        int64_t n[4] = { 3, 2, 4, 5 };
        n[d] = 0;
        struct op_case c;
        op_case_begin(&c);
        struct sotto_tensor * a = sotto_new_tensor(c.ctx, SOTTO_TYPE_F32, 4, n);
        op_case_check(&c, sotto_add(c.ctx, a, a), op_zero, NULL, 0.0);
        op_case_check(&c, sotto_mul_inplace(c.ctx, a, a), op_zero, NULL, 0.0);
        op_case_check(&c, sotto_scale(c.ctx, a, 2.0f), op_zero, NULL, 0.0);
        op_case_check(&c, sotto_gelu(c.ctx, a), op_zero, NULL, 0.0);
        op_case_end(&c);
    }
}

static void infinities_and_nan(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    const float a[] = { INFINITY, INFINITY, NAN, -0.0f, 1e38f }, b[] = { -INFINITY, 1.0f, 1.0f, -0.0f, 3e38f };
    struct sotto_tensor * y = sotto_add(c.ctx, op_values(&c, 5, a), op_values(&c, 5, b));
    assert_int_equal(op_compute(y, 1), SOTTO_OK);
    const float * v = y->data;
    assert_true(isnan(v[0]) && v[1] == INFINITY && isnan(v[2]) && signbit(v[3]) && v[4] == INFINITY);
    op_case_end(&c);
}

/* ---- SCALE ---- */

struct affine {
    struct sotto_tensor * a;
    float s, b;
};

static double affine(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct affine * p = user;
    (void)y;
    return (double)p->s * op_get_tiled(p->a, i) + p->b;
}

static void scale(void ** state) {
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++)
            for (int bias = 0; bias < 2; bias++) {
                struct op_case c;
                op_case_begin(&c);
                const struct affine p = { op_tensor(&c, floats[t], (enum op_layout)layout, 129, 5, 3, 2), -1.7f,
                                          bias ? 0.3f : 0.0f };
                const double bound = bound_of(floats[t]);
                op_case_check(&c, sotto_scale_bias(c.ctx, p.a, p.s, p.b), affine, &p, bound);
                op_case_check(&c, sotto_scale_bias_inplace(c.ctx, p.a, p.s, p.b), affine, &p, bound);
                if (!bias)
                    op_case_check(&c, sotto_scale(c.ctx, p.a, p.s), affine, &p, bound);
                op_case_end(&c);
            }
}

/* ---- UNARY ---- */

static double gelu_of(double x) {
    if (isinf(x))
        return x > 0.0 ? x : 0.0;
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * x * (1.0 + 0.044715 * x * x)));
}

static double gelu_erf_of(double x) {
    if (isinf(x))
        return x > 0.0 ? x : 0.0;
    return 0.5 * x * (1.0 + erf(x * sqrt(0.5)));
}

static double gelu(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    (void)y;
    return gelu_of(op_get_tiled(user, i));
}

static double gelu_erf(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    (void)y;
    return gelu_erf_of(op_get_tiled(user, i));
}

static void unary(void ** state) {
    (void)state;
    static const enum op_layout layouts[] = { OP_DENSE, OP_PADDED, OP_PERMUTED }; /* rows are contiguous */
    static const int64_t shapes[][4] = { { 128, 2, 2, 2 }, { 5, 7, 11, 13 }, { 2049, 20, 1, 1 }, { 1, 1, 1, 1 } };
    for (int t = 0; t < 3; t++)
        for (size_t l = 0; l < 3; l++)
            for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
                const int64_t * n = shapes[s];
                struct op_case c;
                op_case_begin(&c);
                struct sotto_tensor * a = op_tensor(&c, floats[t], layouts[l], n[0], n[1], n[2], n[3]);
                int64_t i[4];
                for (i[3] = 0; i[3] < n[3]; i[3]++)
                    for (i[2] = 0; i[2] < n[2]; i[2]++)
                        for (i[1] = 0; i[1] < n[1]; i[1]++)
                            for (i[0] = 0; i[0] < n[0]; i[0]++)
                                op_set(a, i[0], i[1], i[2], i[3], 6.0 * op_random_unit(&c));
                const double bound = bound_of(floats[t]) + 1e-7;
                op_case_check(&c, sotto_gelu(c.ctx, a), gelu, a, bound);
                op_case_check(&c, sotto_gelu_erf(c.ctx, a), gelu_erf, a, bound);
                op_case_check(&c, sotto_gelu_inplace(c.ctx, a), gelu, a, bound);
                op_case_check(&c, sotto_unary_inplace(c.ctx, a, SOTTO_UNARY_OP_GELU_ERF), gelu_erf, a, bound);
                op_case_end(&c);
            }
}

/* cases.md X11 */
static void gelu_far_from_zero(void ** state) {
    (void)state;
    static const float far[] = { -13.24f, -50.0f, -1e4f, 1e4f,  -65504.0f, 65504.0f, -INFINITY, INFINITY,
                                 NAN,     0.0f,   -0.0f, 88.0f, -88.0f,    150.0f,   -150.0f };
    enum { N = sizeof(far) / sizeof(far[0]) };
    for (int t = 0; t < 3; t++) {
        struct op_case c;
        op_case_begin(&c);
        struct sotto_tensor * a = sotto_new_tensor_1d(c.ctx, floats[t], N);
        for (int i = 0; i < N; i++)
            op_set(a, i, 0, 0, 0, far[i]);
        op_case_check(&c, sotto_gelu(c.ctx, a), gelu, a, op_rounding(floats[t]));
        op_case_check(&c, sotto_gelu_erf(c.ctx, a), gelu_erf, a, op_rounding(floats[t]));
        op_case_end(&c);
    }
}

static void worked_examples(void ** state) {
    (void)state;
    static const float x[] = { -3.0f, -0.5f, 0.5f, 3.0f };
    static const double tanh_form[] = { -0.00363739, -0.154286, 0.345714, 2.99636 };
    static const double erf_form[] = { -0.00404969, -0.154269, 0.345731, 2.99595 };
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_values(&c, 4, x);
    struct sotto_tensor *y = sotto_gelu(c.ctx, a), *z = sotto_gelu_erf(c.ctx, a);
    assert_int_equal(op_compute(y, 1), SOTTO_OK);
    assert_int_equal(op_compute(z, 1), SOTTO_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(op_get(y, i, 0, 0, 0) - tanh_form[i]) <= 1e-5 * fabs(tanh_form[i]) + 1e-6);
        assert_true(fabs(op_get(z, i, 0, 0, 0) - erf_form[i]) <= 1e-5 * fabs(erf_form[i]) + 1e-6);
    }
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_layouts),
        cmocka_unit_test(broadcasts),
        cmocka_unit_test(large),
        cmocka_unit_test(add_cast),
        cmocka_unit_test(one_tensor_twice),
        cmocka_unit_test(empty),
        cmocka_unit_test(infinities_and_nan),
        cmocka_unit_test(scale),
        cmocka_unit_test(unary),
        cmocka_unit_test(gelu_far_from_zero),
        cmocka_unit_test(worked_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
