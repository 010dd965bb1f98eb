/* SPDX-License-Identifier: MIT */
/* SUM_ROWS, NORM, SOFT_MAX, TOP_K and SET_ROWS through the engine, against double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/op_case.h"

static const enum op_layout row_layouts[] = { OP_DENSE, OP_PADDED, OP_PERMUTED }; /* rows are contiguous */

/* ---- SUM_ROWS ---- */

static double row_sum(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct sotto_tensor * a = user;
    double s = 0.0;
    (void)y;
    for (int64_t k = 0; k < a->ne[0]; k++)
        s += op_get(a, k, i[1], i[2], i[3]);
    return s;
}

static void sum_rows(void ** state) {
    (void)state;
    static const int64_t shapes[][4] = { { 10, 5, 4, 3 }, { 33, 1, 1, 1 },    { 33, 1024, 1, 1 }, { 1, 7, 2, 1 },
                                         { 0, 3, 2, 1 },  { 32769, 1, 1, 1 }, { 4097, 9, 1, 1 } };
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++) {
            const int64_t * n = shapes[s];
            struct op_case c;
            op_case_begin(&c);
            struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, (enum op_layout)layout, n[0], n[1], n[2], n[3]);
            /* depth of the sum: 256 terms in a partial sum, the tree, the chunks; |terms| <= 1 */
            const double bound = 0x1p-24 * (256.0 + 4.0 + (double)n[0] / 4096.0) * sqrt((double)n[0] + 1.0);
            op_case_check(&c, sotto_sum_rows(c.ctx, a), row_sum, a, bound);
            op_case_end(&c);
        }
}

/* ---- NORM ---- */

struct norm {
    const struct sotto_tensor * a;
    double eps;
};

static double normalised(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct norm * p = user;
    const int64_t n = p->a->ne[0];
    double mean = 0.0, variance = 0.0;
    (void)y;
    for (int64_t k = 0; k < n; k++)
        mean += op_get(p->a, k, i[1], i[2], i[3]) / (double)n;
    for (int64_t k = 0; k < n; k++)
        variance += pow(op_get(p->a, k, i[1], i[2], i[3]) - mean, 2.0) / (double)n;
    return (op_get(p->a, i[0], i[1], i[2], i[3]) - mean) / sqrt(variance + p->eps);
}

static void norm(void ** state) {
    (void)state;
    static const int64_t rows[] = { 3, 31, 33, 64, 132, 260 };
    static const float eps[] = { 0.0f, 1e-6f, 1e-4f, 10.0f };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++) {
            struct op_case c;
            op_case_begin(&c);
            struct norm p = { op_tensor(&c, SOTTO_TYPE_F32, (enum op_layout)layout, rows[r], 5, 2, 2), eps[r % 4] };
            op_case_check(&c, sotto_norm(c.ctx, (struct sotto_tensor *)p.a, eps[r % 4]), normalised, &p, 2e-6);
            op_case_check(&c, sotto_norm_inplace(c.ctx, (struct sotto_tensor *)p.a, eps[r % 4]), normalised, &p, 2e-6);
            op_case_end(&c);
        }
}

static void norm_of_long_and_many_rows(void ** state) {
    (void)state;
    static const int64_t shapes[][2] = {
        { 511, 7 }, { 1025, 7 }, { 8192, 3 }, { 16896, 1 }, { 2, 33000 }, { 512, 100 }
    };
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        struct op_case c;
        op_case_begin(&c);
        struct norm p = { op_tensor(&c, SOTTO_TYPE_F32, OP_PADDED, shapes[s][0], shapes[s][1], 1, 1), 1e-5 };
        struct sotto_tensor * y = sotto_norm(c.ctx, (struct sotto_tensor *)p.a, 1e-5f);
        assert_int_equal(op_compute(y, 3), SOTTO_OK);
        for (int k = 0; k < 200; k++) {
            const int64_t i[4] = { op_random(&c) % shapes[s][0], op_random(&c) % shapes[s][1], 0, 0 };
            assert_true(fabs(op_get(y, i[0], i[1], 0, 0) - normalised(y, i, &p)) < 1e-4);
        }
        op_case_end(&c);
    }
}

static void norm_examples(void ** state) {
    (void)state;
    static const float x[] = { 1.0f, 2.0f, 4.0f }, same[] = { 3.0f, 3.0f, 3.0f };
    static const double y[] = { -1.06904, -0.26726, 1.3363 };
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * n = sotto_norm(c.ctx, op_values(&c, 3, x), 1e-5f);
    assert_int_equal(op_compute(n, 1), SOTTO_OK);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(op_get(n, i, 0, 0, 0) - y[i]) < 1e-5);
    n = sotto_norm(c.ctx, op_values(&c, 3, same), 0.0f);
    assert_int_equal(op_compute(n, 1), SOTTO_OK);
    assert_true(isnan(op_get(n, 0, 0, 0, 0)) && isnan(op_get(n, 2, 0, 0, 0)));
    assert_null(sotto_norm(c.ctx, op_values(&c, 3, x), -1.0f));
    assert_int_equal(sotto_context_status(c.ctx), SOTTO_E_PARAM);
    op_case_end(&c);
}

/* ---- SOFT_MAX ---- */

struct soft_max {
    const struct sotto_tensor *a, *mask, *sinks;
    double scale, max_bias;
};

static double slope_of(const struct soft_max * p, int64_t head) {
    if (p->max_bias <= 0.0)
        return 1.0;
    const double n = exp2(floor(log2((double)p->a->ne[2])));
    return (double)head < n ? pow(pow(2.0, -p->max_bias / n), (double)head + 1.0)
                            : pow(pow(2.0, -p->max_bias / 2.0 / n), 2.0 * ((double)head - n) + 1.0);
}

static double logit(const struct soft_max * p, double slope, int64_t k, const int64_t i[4]) {
    const double x = p->scale * op_get(p->a, k, i[1], i[2], i[3]);
    const int64_t at[4] = { k, i[1], i[2], i[3] };
    return p->mask ? x + slope * op_get_tiled(p->mask, at) : x;
}

static double soft(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct soft_max * p = user;
    const double slope = slope_of(p, i[2]);
    double m = -INFINITY, s = 0.0;
    (void)y;
    for (int64_t k = 0; k < p->a->ne[0]; k++)
        m = fmax(m, logit(p, slope, k, i));
    if (m == -INFINITY)
        return 0.0;
    if (p->sinks) {
        m = fmax(m, op_get(p->sinks, i[2], 0, 0, 0));
        s = exp(op_get(p->sinks, i[2], 0, 0, 0) - m);
    }
    for (int64_t k = 0; k < p->a->ne[0]; k++)
        s += exp(logit(p, slope, k, i) - m);
    return exp(logit(p, slope, i[0], i) - m) / s;
}

static void block(struct op_case * c, struct sotto_tensor * mask) {
    for (int64_t r = 0; r < mask->ne[1] * mask->ne[2] * mask->ne[3]; r++) {
        const int64_t i1 = r % mask->ne[1], i2 = r / mask->ne[1] % mask->ne[2], i3 = r / mask->ne[1] / mask->ne[2];
        const uint32_t kind = op_random(c) % 4; /* row untouched, half, all, all but one */
        for (int64_t k = 0; k < mask->ne[0] && kind; k++)
            if (kind == 2 || (kind == 1 && k >= mask->ne[0] / 2) || (kind == 3 && k != mask->ne[0] - 1))
                op_set(mask, k, i1, i2, i3, -INFINITY);
    }
}

static void check_soft_max(int64_t n, int64_t r, enum op_layout layout, int mask_kind, bool sinks, float max_bias,
                           float scale) {
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, layout, n, r, 6, 2);
    struct sotto_tensor * mask = NULL;
    if (mask_kind) {
        mask = op_tensor(&c, mask_kind == 1 ? SOTTO_TYPE_F32 : SOTTO_TYPE_F16, layout, n, r + 2, 3, 1);
        block(&c, mask);
    }
    const struct soft_max p = { a, mask, sinks ? op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 6, 1, 1, 1) : NULL, scale,
                                max_bias };
    struct sotto_tensor * y = sotto_soft_max_ext(c.ctx, a, mask, scale, max_bias);
    struct sotto_tensor * z = sotto_soft_max_ext_inplace(c.ctx, a, mask, scale, max_bias);
    assert_true(y && z);
    if (sinks) {
        assert_int_equal(sotto_soft_max_add_sinks(y, (struct sotto_tensor *)p.sinks), SOTTO_OK);
        assert_int_equal(sotto_soft_max_add_sinks(z, (struct sotto_tensor *)p.sinks), SOTTO_OK);
    }
    op_case_check(&c, y, soft, &p, 5e-7);
    op_case_check(&c, z, soft, &p, 5e-7);
    op_case_end(&c);
}

static void soft_max(void ** state) {
    (void)state;
    static const int64_t rows[] = { 1, 15, 16, 67 };
    for (int r = 0; r < 4; r++)
        for (int layout = 0; layout < 3; layout++)
            for (int mask = 0; mask < 3; mask++)
                for (int k = 0; k < 4; k++)
                    check_soft_max(rows[r], 1 + 2 * k, row_layouts[layout], mask, k & 1, mask && k & 2 ? 8.0f : 0.0f,
                                   k == 3 ? 0.1f : 1.0f);
}

static void long_soft_max(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 200001, 2, 1, 1);
    struct sotto_tensor * y = sotto_soft_max(c.ctx, a);
    assert_int_equal(op_compute(y, 2), SOTTO_OK);
    const struct soft_max p = { a, NULL, NULL, 1.0, 0.0 };
    for (int k = 0; k < 5; k++) {
        const int64_t i[4] = { op_random(&c) % 200001, k & 1, 0, 0 };
        const double want = soft(y, i, &p);
        assert_true(fabs(op_get(y, i[0], i[1], 0, 0) - want) <= 1e-6 * want);
    }
    op_case_end(&c);
}

static void soft_max_examples(void ** state) {
    (void)state;
    static const float x[] = { 0.5f, -1.0f, 2.0f }, m[] = { 0.0f, -INFINITY, 1.0f };
    static const double plain[] = { 0.148047, 0.0, 0.851953 }, with_sink[] = { 0.128956, 0.0, 0.742089 };
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor *a = op_values(&c, 3, x), *mask = op_values(&c, 3, m);
    struct sotto_tensor * y = sotto_soft_max_ext(c.ctx, a, mask, 0.5f, 0.0f);
    struct sotto_tensor * z = sotto_soft_max_ext(c.ctx, a, mask, 0.5f, 0.0f);
    assert_int_equal(sotto_soft_max_add_sinks(z, op_values(&c, 1, (const float[]){ 0.25f })), SOTTO_OK);
    assert_int_equal(op_compute(y, 1), SOTTO_OK);
    assert_int_equal(op_compute(z, 1), SOTTO_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(op_get(y, i, 0, 0, 0) - plain[i]) < 1e-6);
        assert_true(fabs(op_get(z, i, 0, 0, 0) - with_sink[i]) < 1e-6);
    }
    assert_true(op_get(y, 1, 0, 0, 0) == 0.0);
    op_case_end(&c);
}

static void soft_max_of_infinities(void ** state) {
    (void)state;
    static const struct {
        float x[4];
        bool nan;
    } cases[] = { { { -INFINITY, -INFINITY, -INFINITY, -INFINITY }, false },
                  { { 1.0f, INFINITY, 0.0f, -INFINITY }, true },
                  { { -INFINITY, NAN, -INFINITY, -INFINITY }, true } };
    for (int k = 0; k < 3; k++)
        for (int sink = 0; sink < 2; sink++) {
            struct op_case c;
            op_case_begin(&c);
            struct sotto_tensor * y = sotto_soft_max(c.ctx, op_values(&c, 4, cases[k].x));
            if (sink)
                assert_int_equal(sotto_soft_max_add_sinks(y, op_values(&c, 1, (const float[]){ 2.0f })), SOTTO_OK);
            assert_int_equal(op_compute(y, 1), SOTTO_OK);
            bool any_nan = false;
            for (int i = 0; i < 4; i++)
                any_nan |= isnan(op_get(y, i, 0, 0, 0));
            assert_int_equal(any_nan, cases[k].nan);
            if (!cases[k].nan)
                for (int i = 0; i < 4; i++)
                    assert_true(op_get(y, i, 0, 0, 0) == 0.0);
            op_case_end(&c);
        }
}

/* ---- TOP_K ---- */

/* The index that belongs at place i[0]: that of the element with i[0] others before it. */
static double ranked(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct sotto_tensor * a = user;
    (void)y;
    for (int64_t k = 0; k < a->ne[0]; k++) {
        const double x = op_get(a, k, i[1], i[2], i[3]);
        int64_t before = 0;
        for (int64_t j = 0; j < a->ne[0]; j++) {
            const double o = op_get(a, j, i[1], i[2], i[3]);
            if (isnan(x) ? !isnan(o) || j < k : o > x || (o == x && j < k))
                before++;
        }
        if (before == i[0])
            return (double)k;
    }
    return -1.0;
}

static void check_top_k(struct op_case * c, struct sotto_tensor * a) {
    for (int64_t k = 1; k <= a->ne[0]; k = k < 4 ? k + 1 : k < a->ne[0] && 3 * k > a->ne[0] ? a->ne[0] : 3 * k)
        op_case_check(c, sotto_top_k(c->ctx, a, (int)k), ranked, a, 0.0);
}

static void top_k(void ** state) {
    (void)state;
    static const int64_t rows[] = { 1, 2, 3, 4, 15, 16, 17, 64, 75 };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (int layout = 0; layout < 3; layout++)
            for (int ties = 0; ties < 2; ties++) {
                struct op_case c;
                op_case_begin(&c);
                struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, row_layouts[layout], rows[r], 3, 2, 2);
                for (int64_t k = 0; ties && k < rows[r]; k++)
                    op_set(a, k, 1, 1, 1, op_random(&c) % 3 ? 1.0 : -0.0);
                check_top_k(&c, a);
                op_case_end(&c);
            }
}

/* cases.md X09 */
static void top_k_with_nan(void ** state) {
    (void)state;
    float x[64];
    struct op_case c;
    op_case_begin(&c);
    for (int i = 0; i < 58; i++)
        x[i] = NAN;
    check_top_k(&c, op_values(&c, 58, x));
    for (int i = 0; i < 58; i++)
        x[i] = -INFINITY;
    check_top_k(&c, op_values(&c, 58, x));
    x[57] = NAN;
    x[0] = -NAN;
    check_top_k(&c, op_values(&c, 58, x));
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i + 1);
    x[40] = -NAN;
    check_top_k(&c, op_values(&c, 64, x));
    for (int i = 0; i < 64; i++)
        x[i] = 7.0f;
    check_top_k(&c, op_values(&c, 64, x));
    op_case_end(&c);
}

static void top_k_of_a_vocabulary(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 51865, 3, 1, 1);
    op_set(a, 51864, 0, 0, 0, 2.0);
    op_set(a, 0, 1, 0, 0, 2.0);
    op_set(a, 30001, 2, 0, 0, 2.0);
    op_set(a, 30002, 2, 0, 0, 2.0);
    static const int32_t best[] = { 51864, 0, 30001 };
    for (int k = 1; k <= 5; k += 4) {
        struct sotto_tensor * y = sotto_top_k(c.ctx, a, k);
        assert_int_equal(op_compute(y, 3), SOTTO_OK);
        for (int j = 0; j < 3; j++) {
            const int32_t * row = (const int32_t *)y->data + j * k;
            assert_int_equal(row[0], best[j]);
            for (int i = 1; i < k; i++)
                assert_true(op_get(a, row[i - 1], j, 0, 0) >= op_get(a, row[i], j, 0, 0));
        }
        assert_true(k == 1 || ((const int32_t *)y->data)[11] == 30002);
    }
    assert_null(sotto_top_k(c.ctx, a, 0));
    assert_int_equal(sotto_context_status(c.ctx), SOTTO_E_PARAM);
    op_case_end(&c);
}

/* ---- SET_ROWS ---- */

struct scatter {
    const struct sotto_tensor *b, *ids;
    const double * old; /* a before, in logical order */
};

/* The last source with this row's number, else what was there. */
static double scattered(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct scatter * p = user;
    for (int64_t j = p->b->ne[1] - 1; j >= 0; j--)
        if ((int64_t)op_get(p->ids, j, i[2] % p->ids->ne[1], i[3] % p->ids->ne[2], 0) == i[1]) {
            const double x = op_get(p->b, i[0], j, i[2], i[3]);
            return y->type == SOTTO_TYPE_F16    ? sotto_fp16_to_fp32(sotto_fp32_to_fp16((float)x))
                   : y->type == SOTTO_TYPE_BF16 ? sotto_bf16_to_fp32(sotto_fp32_to_bf16((float)x))
                                                : x;
        }
    return p->old[((i[3] * y->ne[2] + i[2]) * y->ne[1] + i[1]) * y->ne[0] + i[0]];
}

static double * elements_of(const struct sotto_tensor * a) {
    double * x = malloc(((size_t)sotto_nelements(a) + 1) * sizeof(*x));
    assert_non_null(x);
    for (int64_t i = 0; i < sotto_nelements(a); i++) {
        int64_t i0, i1, i2, i3;
        sotto_unravel_index(a, i, &i0, &i1, &i2, &i3);
        x[i] = op_get(a, i0, i1, i2, i3);
    }
    return x;
}

static void check_set_rows(enum sotto_type to, enum sotto_type from, enum sotto_type id, int64_t n, int64_t rows,
                           int64_t r, int64_t c1, int64_t c2, enum op_layout layout) {
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * a = op_tensor(&c, to, layout, n, rows, 4, 2);
    struct sotto_tensor * b = op_tensor(&c, from, layout, n, r, 4, 2);
    struct sotto_tensor * ids = op_tensor(&c, id, layout, r, c1, c2, 1);
    for (int64_t k = 0; k < r * c1 * c2; k++)
        op_set(ids, k % r, k / r % c1, k / r / c1, 0, (double)(op_random(&c) % (uint32_t)rows)); /* some twice */
    double * old = elements_of(a);
    const struct scatter p = { b, ids, old };
    op_case_check(&c, sotto_set_rows(c.ctx, a, b, ids), scattered, &p, 0.0);
    free(old);
    op_case_end(&c);
}

static void set_rows(void ** state) {
    (void)state;
    static const enum sotto_type to[] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16 };
    static const int64_t widths[] = { 1, 31, 33, 256, 1100 };
    for (int t = 0; t < 3; t++)
        for (int w = 0; w < 5; w++)
            for (int k = 0; k < 4; k++)
                for (int layout = 0; layout < 3; layout++)
                    check_set_rows(to[t], k & 1 ? SOTTO_TYPE_F16 : SOTTO_TYPE_F32,
                                   k & 2 ? SOTTO_TYPE_I64 : SOTTO_TYPE_I32, widths[w], 7, 1 + k * 2, 1 << (k % 3),
                                   1 + k % 2, row_layouts[layout]);
}

static void set_rows_large(void ** state) {
    (void)state;
    check_set_rows(SOTTO_TYPE_F16, SOTTO_TYPE_F32, SOTTO_TYPE_I32, 512, 40, 30, 1, 1, OP_DENSE);
}

static void set_rows_out_of_range(void ** state) {
    (void)state;
    static const int64_t bad[] = { -1, 5, INT64_MIN, INT64_MAX, INT64_C(1) << 32 };
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        struct op_case c;
        op_case_begin(&c);
        struct sotto_tensor * a = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 8, 5, 1, 1);
        struct sotto_tensor * b = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 8, 3, 1, 1);
        struct sotto_tensor * ids = sotto_new_tensor_1d(c.ctx, SOTTO_TYPE_I64, 3);
        memcpy(ids->data, (const int64_t[]){ 4, bad[k], 0 }, 3 * sizeof(int64_t));
        struct sotto_tensor * after = op_tensor(&c, SOTTO_TYPE_I8, OP_DENSE, 64, 1, 1, 1);
        memset(after->data, 1, 64);
        assert_int_equal(op_compute(sotto_set_rows(c.ctx, a, b, ids), 1 + (int)(k & 1)), SOTTO_E_RANGE);
        for (int i = 0; i < 64; i++)
            assert_int_equal(((const char *)after->data)[i], 1);
        op_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_rows),
        cmocka_unit_test(norm),
        cmocka_unit_test(norm_of_long_and_many_rows),
        cmocka_unit_test(norm_examples),
        cmocka_unit_test(soft_max),
        cmocka_unit_test(long_soft_max),
        cmocka_unit_test(soft_max_examples),
        cmocka_unit_test(soft_max_of_infinities),
        cmocka_unit_test(top_k),
        cmocka_unit_test(top_k_with_nan),
        cmocka_unit_test(top_k_of_a_vocabulary),
        cmocka_unit_test(set_rows),
        cmocka_unit_test(set_rows_large),
        cmocka_unit_test(set_rows_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
