/* SPDX-License-Identifier: MIT */
/* IM2COL in one and two dimensions, and conv_1d on top of it, against the formula. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/op_case.h"

static const enum sotto_type floats[] = { SOTTO_TYPE_F32, SOTTO_TYPE_F16, SOTTO_TYPE_BF16 };

struct patches {
    const struct sotto_tensor *kernel, *image;
    int64_t s0, s1, p0, p1, d0, d1;
    bool is_2D;
};

static double rounded(enum sotto_type type, double x) {
    switch (type) {
    case SOTTO_TYPE_F16: return sotto_fp16_to_fp32(sotto_fp32_to_fp16((float)x));
    case SOTTO_TYPE_BF16: return sotto_bf16_to_fp32(sotto_fp32_to_bf16((float)x));
    default: return x;
    }
}

static double patch(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct patches * p = user;
    const struct sotto_tensor *k = p->kernel, *b = p->image;
    const int64_t kw = i[0] % k->ne[0], kh = p->is_2D ? i[0] / k->ne[0] % k->ne[1] : 0;
    const int64_t channel = i[0] / k->ne[0] / (p->is_2D ? k->ne[1] : 1);
    const int64_t w = i[1] * p->s0 + kw * p->d0 - p->p0, h = p->is_2D ? i[2] * p->s1 + kh * p->d1 - p->p1 : 0;
    if (w < 0 || w >= b->ne[0] || h < 0 || (p->is_2D && h >= b->ne[1]))
        return 0.0;
    return rounded(y->type, p->is_2D ? op_get(b, w, h, channel, i[3]) : op_get(b, w, channel, i[2], 0));
}

static void check(struct op_case * c, const struct patches * p, enum sotto_type type) {
    struct sotto_tensor * y =
        sotto_im2col(c->ctx, (struct sotto_tensor *)p->kernel, (struct sotto_tensor *)p->image, (int)p->s0, (int)p->s1,
                     (int)p->p0, (int)p->p1, (int)p->d0, (int)p->d1, p->is_2D, type);
    op_case_check(c, y, patch, p, 0.0);
}

static void one_dimension(void ** state) {
    (void)state;
    for (int t = 0; t < 9; t++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++)
            for (int k = 0; k < 8; k++) {
                struct op_case c;
                op_case_begin(&c);
                const struct patches p = { .kernel = op_tensor(&c, SOTTO_TYPE_F16, OP_DENSE, 3, 5, 2, 1),
                                           .image = op_tensor(&c, floats[t / 3], (enum op_layout)layout, 20, 5, 2, 1),
                                           .s0 = k & 1 ? 3 : 1,
                                           .p0 = k & 2 ? 3 : 0,
                                           .d0 = k & 4 ? 3 : 1 };
                check(&c, &p, floats[t % 3]);
                op_case_end(&c);
            }
}

static void two_dimensions(void ** state) {
    (void)state;
    for (int t = 0; t < 9; t++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++)
            for (int k = 0; k < 8; k++) {
                struct op_case c;
                op_case_begin(&c);
                const struct patches p = { .kernel = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 3, 2 + k % 3, 2, 4),
                                           .image = op_tensor(&c, floats[t / 3], (enum op_layout)layout, 13, 11, 2, 2),
                                           .s0 = k & 1 ? 3 : 1,
                                           .s1 = k & 2 ? 2 : 1,
                                           .p0 = k & 2 ? 3 : 0,
                                           .p1 = k & 4 ? 4 : 1,
                                           .d0 = k & 4 ? 3 : 1,
                                           .d1 = k & 1 ? 2 : 1,
                                           .is_2D = true };
                check(&c, &p, floats[t % 3]);
                op_case_end(&c);
            }
}

/* The front of Whisper's encoder; and padding wider than the kernel. */
static void large(void ** state) {
    (void)state;
    struct op_case c;
    op_case_begin(&c);
    struct patches p = { .kernel = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 3, 80, 1, 1),
                         .image = op_tensor(&c, SOTTO_TYPE_F32, OP_TRANSPOSED, 400, 80, 1, 1),
                         .s0 = 2,
                         .p0 = 1,
                         .d0 = 1 };
    check(&c, &p, SOTTO_TYPE_F32);
    check(&c, &p, SOTTO_TYPE_F16);
    p.image = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 1, 80, 1, 1);
    p.p0 = 7;
    check(&c, &p, SOTTO_TYPE_F32);
    op_case_end(&c);
}

/* golden.md */
static void order(void ** state) {
    (void)state;
    static const float want[4][4] = { { 1, 2, 4, 5 }, { 2, 3, 5, 6 }, { 4, 5, 7, 8 }, { 5, 6, 8, 9 } };
    struct op_case c;
    op_case_begin(&c);
    struct sotto_tensor * image = sotto_new_tensor_4d(c.ctx, SOTTO_TYPE_F32, 3, 3, 1, 1);
    for (int i = 0; i < 9; i++)
        ((float *)image->data)[i] = (float)(i + 1);
    struct sotto_tensor * kernel = op_tensor(&c, SOTTO_TYPE_F32, OP_DENSE, 2, 2, 1, 1);
    struct sotto_tensor * y = sotto_im2col(c.ctx, kernel, image, 1, 1, 0, 0, 1, 1, true, SOTTO_TYPE_F32);
    assert_int_equal(op_compute(y, 1), SOTTO_OK);
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 4; i++)
            assert_true(op_get(y, i, r % 2, r / 2, 0) == want[r][i]);
    op_case_end(&c);
}

/* ---- conv_1d ---- */

static double convolved(const struct sotto_tensor * y, const int64_t i[4], const void * user) {
    const struct patches * p = user;
    double s = 0.0;
    (void)y;
    for (int64_t c = 0; c < p->kernel->ne[1]; c++)
        for (int64_t k = 0; k < p->kernel->ne[0]; k++) {
            const int64_t w = i[0] * p->s0 + k * p->d0 - p->p0;
            if (w >= 0 && w < p->image->ne[0])
                s += op_get(p->kernel, k, c, i[1], 0) * op_get(p->image, w, c, i[2], 0);
        }
    return s;
}

static void conv_1d(void ** state) {
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int layout = 0; layout < OP_N_LAYOUTS; layout++)
            for (int k = 0; k < 8; k++) {
                struct op_case c;
                op_case_begin(&c);
                const struct patches p = { .kernel = op_tensor(&c, floats[t], OP_DENSE, 3, 7, 5, 1),
                                           .image = op_tensor(&c, SOTTO_TYPE_F32, (enum op_layout)layout, 21, 7,
                                                              1 + k / 4, 1),
                                           .s0 = k & 1 ? 2 : 1,
                                           .p0 = k & 2 ? 5 : 1,
                                           .d0 = 1 + k % 3 };
                struct sotto_tensor * y =
                    sotto_conv_1d(c.ctx, (struct sotto_tensor *)p.kernel, (struct sotto_tensor *)p.image, (int)p.s0,
                                  (int)p.p0, (int)p.d0);
                op_case_check(&c, y, convolved, &p, 2e-6);
                op_case_end(&c);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_dimension), cmocka_unit_test(two_dimensions), cmocka_unit_test(large),
        cmocka_unit_test(order),         cmocka_unit_test(conv_1d),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
