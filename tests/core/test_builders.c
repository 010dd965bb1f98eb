/* SPDX-License-Identifier: MIT */
/* Every builder with operands that do not fit: the right code, a message that names the function, no arena memory
 * taken, and a context that goes on working. And what nodes look like. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/op.h"

static struct sotto_context * ctx;

static int set_up(void ** state) {
    (void)state;
    ctx = sotto_init((struct sotto_init_params){ .mem_size = 1 << 20, .no_alloc = true });
    return 0;
}

static int tear_down(void ** state) {
    (void)state;
    sotto_free(ctx);
    return 0;
}

static struct sotto_tensor * f32(int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    return sotto_new_tensor_4d(ctx, SOTTO_TYPE_F32, n0, n1, n2, n3);
}

static struct sotto_tensor * of(enum sotto_type type, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    return sotto_new_tensor_4d(ctx, type, n0, n1, n2, n3);
}

/* [n0, n1] of every other element: rows with gaps inside */
static struct sotto_tensor * gappy(int64_t n0, int64_t n1) {
    return sotto_permute(ctx, sotto_view_4d(ctx, f32(2, n0, n1, 1), 1, n0, n1, 1, 8, 8 * (size_t)n0, 8, 0), 3, 0, 1, 2);
}

static void check_refused(const struct sotto_tensor * got, size_t used, enum sotto_status status, const char * call,
                          int line) {
    if (got || sotto_context_status(ctx) != status || sotto_used_mem(ctx) != used || sotto_last_error() != status) {
        fail_msg("line %d: %s: %s instead of %s, %zu bytes taken: %s", line, call,
                 got ? "a tensor" : sotto_status_name(sotto_context_status(ctx)), sotto_status_name(status),
                 sotto_used_mem(ctx) - used, sotto_context_error(ctx));
    }
    size_t length = strcspn(call, "(");
    const char * name = strstr(sotto_context_error(ctx), "sotto_");
    if (!name || strncmp(name, call, length) != 0 || name[length] != ':') {
        fail_msg("line %d: %s: the message does not name it: %s", line, call, sotto_context_error(ctx));
    }
    sotto_clear_error(ctx);
    used = sotto_used_mem(ctx);
    assert_non_null(sotto_scale(ctx, f32(2, 2, 1, 1), 2.0f));
    assert_true(sotto_used_mem(ctx) > used);
    assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
}

/* The call's operands are made before memory is looked at, so they come as variables. */
#define REFUSED(status, call)                                                \
    do {                                                                     \
        size_t used_before = sotto_used_mem(ctx);                            \
        check_refused(call, used_before, SOTTO_E_##status, #call, __LINE__); \
    } while (0)

static void copies(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 1, 1);
    struct sotto_tensor * b = f32(5, 3, 1, 1);
    struct sotto_tensor * i = of(SOTTO_TYPE_I32, 4, 3, 1, 1);
    struct sotto_tensor * h = of(SOTTO_TYPE_F16, 4, 3, 1, 1);
    struct sotto_tensor * i8 = of(SOTTO_TYPE_I8, 4, 3, 1, 1);
    struct sotto_tensor * q = of(SOTTO_TYPE_Q4_0, 32, 2, 1, 1);
    struct sotto_tensor * q64 = of(SOTTO_TYPE_Q4_0, 64, 2, 1, 1);
    struct sotto_tensor * q_gap = sotto_view_2d(ctx, q64, 32, 2, 36, 0);
    struct sotto_tensor * q_long = of(SOTTO_TYPE_Q4_0, 64, 1, 1, 1);
    struct sotto_tensor * empty = f32(0, 3, 1, 1);
    REFUSED(NULLARG, sotto_dup(ctx, NULL));
    REFUSED(NULLARG, sotto_dup_inplace(ctx, NULL));
    REFUSED(NULLARG, sotto_cpy(ctx, NULL, a));
    REFUSED(NULLARG, sotto_cpy(ctx, a, NULL));
    REFUSED(SHAPE, sotto_cpy(ctx, a, b));
    REFUSED(TYPE, sotto_cpy(ctx, i, h));
    REFUSED(TYPE, sotto_cpy(ctx, i8, i));
    REFUSED(TYPE, sotto_cpy(ctx, q, h));
    REFUSED(LAYOUT, sotto_cpy(ctx, q_long, q_gap));
    REFUSED(NULLARG, sotto_cast(ctx, NULL, SOTTO_TYPE_F16));
    REFUSED(TYPE, sotto_cast(ctx, a, SOTTO_TYPE_COUNT));
    REFUSED(TYPE, sotto_cast(ctx, a, (enum sotto_type) - 1));
    REFUSED(RETIRED, sotto_cast(ctx, a, (enum sotto_type)31));
    REFUSED(TYPE, sotto_cast(ctx, a, SOTTO_TYPE_F64));
    REFUSED(TYPE, sotto_cast(ctx, h, SOTTO_TYPE_I32));
    REFUSED(NULLARG, sotto_cont(ctx, NULL));
    REFUSED(SHAPE, sotto_cont_1d(ctx, a, 11));
    REFUSED(SHAPE, sotto_cont_2d(ctx, a, -4, -3));
    REFUSED(SHAPE, sotto_cont_3d(ctx, a, 4, 3, 0));
    REFUSED(SHAPE, sotto_cont_4d(ctx, a, 0, 0, 0, 0));
    REFUSED(SHAPE, sotto_cont_4d(ctx, a, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX));
    REFUSED(SHAPE, sotto_cont_2d(ctx, q, 16, 4));
    assert_non_null(sotto_cont_4d(ctx, empty, 0, 0, 0, 0));
    assert_non_null(sotto_cpy(ctx, q, q_gap));
    assert_non_null(sotto_cpy(ctx, a, i));
    assert_non_null(sotto_cpy(ctx, i, a));
    assert_non_null(sotto_dup(ctx, q));
}

static void views(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 1, 1);
    struct sotto_tensor * t = sotto_transpose(ctx, a);
    struct sotto_tensor * b = f32(5, 3, 1, 1);
    REFUSED(NULLARG, sotto_reshape(ctx, NULL, a));
    REFUSED(NULLARG, sotto_reshape(ctx, a, NULL));
    REFUSED(SHAPE, sotto_reshape(ctx, a, b));
    REFUSED(LAYOUT, sotto_reshape_1d(ctx, t, 12));
    REFUSED(SHAPE, sotto_reshape_2d(ctx, a, 3, 5));
    REFUSED(SHAPE, sotto_reshape_3d(ctx, a, -3, -4, 1));
    REFUSED(SHAPE, sotto_reshape_4d(ctx, a, 12, 1, 1, 0));
    REFUSED(NULLARG, sotto_view_1d(ctx, NULL, 1, 0));
    REFUSED(NULLARG, sotto_view_4d(ctx, NULL, 1, 1, 1, 1, 4, 4, 4, 0));
    REFUSED(BOUNDS, sotto_view_1d(ctx, a, 13, 0));
    REFUSED(BOUNDS, sotto_view_2d(ctx, a, 4, 4, 16, 0));
    REFUSED(PARAM, sotto_view_3d(ctx, a, 1, 1, 1, 4, 3, 0));
    REFUSED(NULLARG, sotto_permute(ctx, NULL, 0, 1, 2, 3));
    REFUSED(PARAM, sotto_permute(ctx, a, 0, 1, 2, 4));
    REFUSED(PARAM, sotto_permute(ctx, a, 0, 1, 2, -1));
    REFUSED(PARAM, sotto_permute(ctx, a, 0, 1, 1, 3));
    REFUSED(PARAM, sotto_permute(ctx, a, INT32_MAX, INT32_MIN, 2, 3));
    REFUSED(NULLARG, sotto_transpose(ctx, NULL));
}

static void arithmetic(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 1, 1);
    struct sotto_tensor * b = f32(4, 2, 1, 1);
    struct sotto_tensor * c = f32(8, 3, 1, 1);
    struct sotto_tensor * h = of(SOTTO_TYPE_F16, 4, 3, 1, 1);
    struct sotto_tensor * g = of(SOTTO_TYPE_BF16, 4, 3, 1, 1);
    struct sotto_tensor * i = of(SOTTO_TYPE_I32, 4, 3, 1, 1);
    struct sotto_tensor * q = of(SOTTO_TYPE_Q4_0, 32, 3, 1, 1);
    struct sotto_tensor * empty = f32(4, 0, 1, 1);
    REFUSED(NULLARG, sotto_add(ctx, NULL, b));
    REFUSED(NULLARG, sotto_add(ctx, a, NULL));
    REFUSED(SHAPE, sotto_add(ctx, a, b));
    REFUSED(SHAPE, sotto_mul(ctx, a, c));
    REFUSED(SHAPE, sotto_mul(ctx, a, empty));
    REFUSED(SHAPE, sotto_add_inplace(ctx, a, c));
    REFUSED(SHAPE, sotto_mul_inplace(ctx, a, b));
    REFUSED(TYPE, sotto_add(ctx, a, h));
    REFUSED(TYPE, sotto_add(ctx, h, g));
    REFUSED(TYPE, sotto_mul(ctx, i, i));
    REFUSED(TYPE, sotto_add(ctx, q, q));
    REFUSED(TYPE, sotto_add_cast(ctx, a, a, SOTTO_TYPE_F32));
    REFUSED(TYPE, sotto_add_cast(ctx, h, h, SOTTO_TYPE_F32));
    REFUSED(TYPE, sotto_add_cast(ctx, h, a, SOTTO_TYPE_F16));
    REFUSED(TYPE, sotto_add_cast(ctx, h, a, (enum sotto_type)77));
    REFUSED(SHAPE, sotto_add_cast(ctx, h, b, SOTTO_TYPE_F32));
    REFUSED(NULLARG, sotto_scale(ctx, NULL, 1.0f));
    REFUSED(TYPE, sotto_scale(ctx, i, 1.0f));
    REFUSED(TYPE, sotto_scale_inplace(ctx, q, 1.0f));
    REFUSED(TYPE, sotto_scale_bias(ctx, i, 1.0f, 1.0f));
    REFUSED(TYPE, sotto_scale_bias_inplace(ctx, i, 1.0f, 1.0f));
    REFUSED(NULLARG, sotto_repeat(ctx, NULL, a));
    REFUSED(NULLARG, sotto_repeat(ctx, a, NULL));
    REFUSED(SHAPE, sotto_repeat(ctx, c, a));
    REFUSED(SHAPE, sotto_repeat_4d(ctx, a, 4, 4, 1, 1));
    REFUSED(SHAPE, sotto_repeat_4d(ctx, a, -4, 3, 1, 1));
    REFUSED(SHAPE, sotto_repeat_4d(ctx, empty, 4, 4, 1, 1));
    REFUSED(MEMORY, sotto_repeat_4d(ctx, a, (int64_t)1 << 40, 3, (int64_t)1 << 40, 1));
    REFUSED(TYPE, sotto_repeat(ctx, q, q));
    assert_non_null(sotto_add(ctx, empty, a->ne[1] == 3 ? f32(4, 1, 1, 1) : NULL));
    assert_non_null(sotto_add(ctx, sotto_transpose(ctx, a), f32(3, 1, 1, 1)));
    assert_non_null(sotto_add(ctx, g, a));
}

static void rows(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 2, 1);
    struct sotto_tensor * h = of(SOTTO_TYPE_F16, 4, 3, 2, 1);
    struct sotto_tensor * gaps = gappy(4, 3);
    struct sotto_tensor * mask = f32(4, 2, 1, 1);
    struct sotto_tensor * mask3 = f32(4, 3, 3, 1);
    struct sotto_tensor * mask_i = of(SOTTO_TYPE_I32, 4, 3, 1, 1);
    struct sotto_tensor * wide = f32(5, 3, 1, 1);
    struct sotto_tensor * deep = f32(4, 3, 1, 2);
    REFUSED(NULLARG, sotto_sum_rows(ctx, NULL));
    REFUSED(TYPE, sotto_sum_rows(ctx, h));
    REFUSED(NULLARG, sotto_norm(ctx, NULL, 0.0f));
    REFUSED(PARAM, sotto_norm(ctx, a, -1e-6f));
    REFUSED(PARAM, sotto_norm_inplace(ctx, a, NAN));
    REFUSED(TYPE, sotto_norm(ctx, h, 0.0f));
    REFUSED(NULLARG, sotto_unary(ctx, NULL, SOTTO_UNARY_OP_GELU));
    REFUSED(PARAM, sotto_unary(ctx, a, (enum sotto_unary_op)22));
    REFUSED(PARAM, sotto_unary_inplace(ctx, a, (enum sotto_unary_op) - 1));
    REFUSED(UNSUPPORTED, sotto_unary(ctx, a, (enum sotto_unary_op)0));
    REFUSED(TYPE, sotto_gelu(ctx, mask_i));
    REFUSED(LAYOUT, sotto_gelu_erf(ctx, gaps));
    REFUSED(LAYOUT, sotto_gelu_inplace(ctx, gaps));
    REFUSED(NULLARG, sotto_gelu_erf_inplace(ctx, NULL));
    REFUSED(NULLARG, sotto_soft_max(ctx, NULL));
    REFUSED(TYPE, sotto_soft_max(ctx, h));
    REFUSED(LAYOUT, sotto_soft_max_inplace(ctx, gaps));
    REFUSED(SHAPE, sotto_soft_max_ext(ctx, a, mask, 1.0f, 0.0f));
    REFUSED(SHAPE, sotto_soft_max_ext(ctx, a, mask3, 1.0f, 0.0f));
    REFUSED(SHAPE, sotto_soft_max_ext(ctx, a, wide, 1.0f, 0.0f));
    REFUSED(SHAPE, sotto_soft_max_ext_inplace(ctx, a, deep, 1.0f, 0.0f));
    REFUSED(TYPE, sotto_soft_max_ext(ctx, a, mask_i, 1.0f, 0.0f));
    REFUSED(PARAM, sotto_soft_max_ext(ctx, a, NULL, 1.0f, 8.0f));
    REFUSED(LAYOUT, sotto_soft_max_ext(ctx, a, gaps, 1.0f, 8.0f));
    REFUSED(NULLARG, sotto_top_k(ctx, NULL, 1));
    REFUSED(PARAM, sotto_top_k(ctx, a, 0));
    REFUSED(PARAM, sotto_top_k(ctx, a, 5));
    REFUSED(TYPE, sotto_top_k(ctx, h, 1));
    REFUSED(LAYOUT, sotto_top_k(ctx, gaps, 1));
    struct sotto_tensor * vast = f32((int64_t)INT32_MAX + 1, 1, 1, 1);
    REFUSED(SHAPE, sotto_top_k(ctx, vast, 1));
}

static void gather_and_scatter(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 2, 1);
    struct sotto_tensor * idx = of(SOTTO_TYPE_I32, 5, 2, 1, 1);
    struct sotto_tensor * idx_flat = of(SOTTO_TYPE_I32, 5, 1, 1, 1);
    struct sotto_tensor * idx_deep = of(SOTTO_TYPE_I32, 5, 2, 1, 2);
    struct sotto_tensor * idx64 = of(SOTTO_TYPE_I64, 5, 2, 1, 1);
    struct sotto_tensor * i8 = of(SOTTO_TYPE_I8, 4, 3, 2, 1);
    struct sotto_tensor * work = of(SOTTO_TYPE_Q8_1, 32, 3, 2, 1);
    struct sotto_tensor * gaps = sotto_reshape_4d(ctx, f32(4, 3, 2, 1), 4, 3, 2, 1);
    gaps = sotto_permute(ctx, gaps, 1, 0, 2, 3);
    struct sotto_tensor * b = f32(4, 5, 2, 1);
    struct sotto_tensor * b_bf16 = of(SOTTO_TYPE_BF16, 4, 5, 2, 1);
    struct sotto_tensor * idx3 = of(SOTTO_TYPE_I32, 5, 3, 1, 1);
    struct sotto_tensor * idx4 = of(SOTTO_TYPE_I32, 4, 2, 1, 1);
    struct sotto_tensor * once = sotto_view_4d(ctx, f32(4, 12, 1, 1), 4, 3, 2, 1, 0, 0, 0, 0);
    REFUSED(NULLARG, sotto_get_rows(ctx, NULL, idx));
    REFUSED(NULLARG, sotto_get_rows(ctx, a, NULL));
    REFUSED(SHAPE, sotto_get_rows(ctx, a, idx_flat)); /* case X06 */
    REFUSED(SHAPE, sotto_get_rows(ctx, a, idx_deep));
    REFUSED(TYPE, sotto_get_rows(ctx, a, idx64));
    REFUSED(TYPE, sotto_get_rows(ctx, i8, idx));
    REFUSED(TYPE, sotto_get_rows(ctx, work, idx));
    REFUSED(LAYOUT, sotto_get_rows(ctx, gaps, idx));
    REFUSED(NULLARG, sotto_set_rows(ctx, NULL, b, idx));
    REFUSED(NULLARG, sotto_set_rows(ctx, a, NULL, idx));
    REFUSED(NULLARG, sotto_set_rows(ctx, a, b, NULL));
    REFUSED(TYPE, sotto_set_rows(ctx, i8, b, idx));
    REFUSED(TYPE, sotto_set_rows(ctx, a, b_bf16, idx));
    REFUSED(TYPE, sotto_set_rows(ctx, a, b, b));
    REFUSED(SHAPE, sotto_set_rows(ctx, a, b, idx3));
    REFUSED(SHAPE, sotto_set_rows(ctx, a, b, idx4));
    REFUSED(SHAPE, sotto_set_rows(ctx, a, b, idx_deep));
    REFUSED(SHAPE, sotto_set_rows(ctx, gaps, b, idx));
    REFUSED(LAYOUT, sotto_set_rows(ctx, once, b, idx));
    struct sotto_tensor * y = sotto_set_rows(ctx, a, b, idx64);
    assert_ptr_equal(y->src[0], b);
    assert_ptr_equal(y->src[1], idx64);
    assert_ptr_equal(y->src[2], a);
    assert_ptr_equal(y->view_src, a);
    assert_non_null(sotto_get_rows(ctx, of(SOTTO_TYPE_Q4_K, 256, 3, 2, 1), idx));
}

static void products(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 2, 1);
    struct sotto_tensor * b = f32(4, 5, 4, 1);
    struct sotto_tensor * b3 = f32(4, 5, 3, 1);
    struct sotto_tensor * b5 = f32(5, 5, 4, 1);
    struct sotto_tensor * i = of(SOTTO_TYPE_I32, 4, 3, 2, 1);
    struct sotto_tensor * none = f32(4, 3, 0, 1);
    struct sotto_tensor * at = sotto_permute(ctx, f32(3, 4, 2, 1), 1, 0, 2, 3);
    struct sotto_tensor * k0 = f32(0, 3, 1, 1);
    struct sotto_tensor * gaps = sotto_permute(ctx, f32(2, 4, 3, 1), 2, 0, 1, 3);
    REFUSED(NULLARG, sotto_mul_mat(ctx, NULL, b));
    REFUSED(NULLARG, sotto_mul_mat(ctx, a, NULL));
    REFUSED(SHAPE, sotto_mul_mat(ctx, a, b5));
    REFUSED(SHAPE, sotto_mul_mat(ctx, a, b3));
    REFUSED(SHAPE, sotto_mul_mat(ctx, none, b));
    REFUSED(TYPE, sotto_mul_mat(ctx, i, b));
    REFUSED(TYPE, sotto_mul_mat(ctx, a, i));
    REFUSED(LAYOUT, sotto_mul_mat(ctx, at, b));
    REFUSED(LAYOUT, sotto_mul_mat(ctx, gaps, b));
    struct sotto_tensor * y = sotto_mul_mat(ctx, k0, f32(0, 2, 1, 1)); /* all zeros */
    assert_non_null(y);
    assert_int_equal(y->ne[0] * 10 + y->ne[1], 32);
    y = sotto_mul_mat(ctx, a, b);
    assert_int_equal(sotto_mul_mat_set_prec(y, SOTTO_PREC_F32), SOTTO_OK);
    assert_int_equal(sotto_mul_mat_set_hint(y, SOTTO_OP_HINT_SRC0_IS_HADAMARD), SOTTO_OK);
    assert_int_equal(y->op_params[0], 10);
    assert_int_equal(y->op_params[1], 1);
    assert_int_equal(sotto_mul_mat_set_prec(y, (enum sotto_prec)3), SOTTO_E_PARAM);
    assert_int_equal(sotto_mul_mat_set_hint(y, (enum sotto_op_hint)2), SOTTO_E_PARAM);
    assert_int_equal(sotto_mul_mat_set_prec(a, SOTTO_PREC_F32), SOTTO_E_STATE);
    assert_int_equal(sotto_mul_mat_set_hint(NULL, SOTTO_OP_HINT_NONE), SOTTO_E_NULLARG);
    assert_non_null(sotto_mul_mat(ctx, of(SOTTO_TYPE_Q4_0, 32, 3, 1, 1), f32(32, 2, 1, 1)));
    assert_non_null(sotto_mul_mat(ctx, a, sotto_permute(ctx, f32(5, 4, 4, 1), 1, 0, 2, 3)));
    assert_non_null(sotto_mul_mat(ctx, sotto_transpose(ctx, f32(1, 4, 1, 1)), f32(4, 2, 1, 1)));
}

static void chosen_products(void ** state) {
    (void)state;
    struct sotto_tensor * as = f32(4, 3, 6, 1);
    struct sotto_tensor * b = f32(4, 2, 5, 1);
    struct sotto_tensor * ids = of(SOTTO_TYPE_I32, 4, 5, 1, 1);
    struct sotto_tensor * odd = of(SOTTO_TYPE_I32, 3, 5, 1, 1);
    struct sotto_tensor * short_ids = of(SOTTO_TYPE_I32, 4, 4, 1, 1);
    struct sotto_tensor * thick_ids = of(SOTTO_TYPE_I32, 4, 5, 2, 1);
    struct sotto_tensor * wide = of(SOTTO_TYPE_I64, 4, 5, 1, 1);
    struct sotto_tensor * as4 = f32(4, 3, 6, 2);
    struct sotto_tensor * b4 = f32(4, 2, 5, 2);
    struct sotto_tensor * b5 = f32(5, 2, 5, 1);
    struct sotto_tensor * b0 = f32(4, 0, 5, 1);
    struct sotto_tensor * turned = sotto_permute(ctx, f32(3, 4, 6, 1), 1, 0, 2, 3);
    struct sotto_tensor * work = of(SOTTO_TYPE_Q8_1, 32, 3, 6, 1);
    struct sotto_tensor * b32 = f32(32, 2, 5, 1);
    REFUSED(NULLARG, sotto_mul_mat_id(ctx, NULL, b, ids));
    REFUSED(NULLARG, sotto_mul_mat_id(ctx, as, NULL, ids));
    REFUSED(NULLARG, sotto_mul_mat_id(ctx, as, b, NULL));
    REFUSED(SHAPE, sotto_mul_mat_id(ctx, as, b, odd));
    REFUSED(SHAPE, sotto_mul_mat_id(ctx, as, b, short_ids));
    REFUSED(SHAPE, sotto_mul_mat_id(ctx, as, b, thick_ids));
    REFUSED(SHAPE, sotto_mul_mat_id(ctx, as4, b, ids));
    REFUSED(SHAPE, sotto_mul_mat_id(ctx, as, b4, ids));
    REFUSED(SHAPE, sotto_mul_mat_id(ctx, as, b5, ids));
    REFUSED(SHAPE, sotto_mul_mat_id(ctx, as, b0, ids));
    REFUSED(TYPE, sotto_mul_mat_id(ctx, as, b, wide));
    REFUSED(TYPE, sotto_mul_mat_id(ctx, as, ids, ids));
    REFUSED(TYPE, sotto_mul_mat_id(ctx, work, b32, ids));
    REFUSED(LAYOUT, sotto_mul_mat_id(ctx, turned, b, ids));
    struct sotto_tensor * y = sotto_mul_mat_id(ctx, as, b, ids);
    assert_non_null(y);
    assert_int_equal(y->type, SOTTO_TYPE_F32);
    assert_int_equal(y->ne[0] * 100 + y->ne[1] * 10 + y->ne[2], 345);
    assert_ptr_equal(y->src[0], as);
    assert_ptr_equal(y->src[1], b);
    assert_ptr_equal(y->src[2], ids);
}

/* ADD takes blocks row by row; nothing else does arithmetic on them. */
static void sums_of_blocks(void ** state) {
    (void)state;
    struct sotto_tensor * q = of(SOTTO_TYPE_Q4_0, 64, 3, 2, 1);
    struct sotto_tensor * b = f32(64, 3, 2, 1);
    struct sotto_tensor * row = f32(64, 1, 1, 1);
    struct sotto_tensor * half_row = f32(32, 3, 2, 1);
    struct sotto_tensor * turned = sotto_transpose(ctx, f32(3, 64, 2, 1));
    struct sotto_tensor * h = of(SOTTO_TYPE_F16, 64, 3, 2, 1);
    struct sotto_tensor * no_encoder = of(SOTTO_TYPE_IQ2_XXS, 256, 1, 1, 1);
    struct sotto_tensor * long_row = f32(256, 1, 1, 1);
    REFUSED(TYPE, sotto_add(ctx, q, h));
    REFUSED(TYPE, sotto_mul(ctx, q, b));
    REFUSED(TYPE, sotto_add(ctx, no_encoder, long_row));
    REFUSED(TYPE, sotto_add_cast(ctx, q, b, SOTTO_TYPE_F16));
    REFUSED(SHAPE, sotto_add(ctx, q, row));
    REFUSED(SHAPE, sotto_add_cast(ctx, q, half_row, SOTTO_TYPE_F32));
    REFUSED(LAYOUT, sotto_add(ctx, q, turned));
    assert_int_equal(sotto_add(ctx, q, b)->type, SOTTO_TYPE_Q4_0);
    assert_ptr_equal(sotto_add_inplace(ctx, q, b)->view_src, q);
    assert_int_equal(sotto_add_cast(ctx, q, row, SOTTO_TYPE_F32)->type, SOTTO_TYPE_F32);
}

static void convolutions(void ** state) {
    (void)state;
    struct sotto_tensor * k = f32(3, 2, 4, 1);
    struct sotto_tensor * x = f32(8, 2, 5, 1);
    struct sotto_tensor * k2 = f32(3, 3, 2, 4);
    struct sotto_tensor * x2 = f32(8, 7, 2, 5);
    struct sotto_tensor * tiny = f32(1, 2, 1, 1);
    struct sotto_tensor * k14 = f32(14, 2, 4, 1);
    struct sotto_tensor * ki = of(SOTTO_TYPE_I32, 3, 2, 4, 1);
    struct sotto_tensor * xi = of(SOTTO_TYPE_I32, 8, 2, 5, 1);
    struct sotto_tensor * x3 = f32(8, 3, 1, 1);
    struct sotto_tensor * k0 = f32(0, 2, 4, 1);
    struct sotto_tensor * kd = f32(3, 2, 4, 2);
    REFUSED(NULLARG, sotto_im2col(ctx, NULL, x, 1, 0, 0, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(NULLARG, sotto_im2col(ctx, k, NULL, 1, 0, 0, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(SHAPE, sotto_im2col(ctx, k, x3, 1, 0, 0, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(SHAPE, sotto_im2col(ctx, k, x2, 1, 0, 0, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(SHAPE, sotto_im2col(ctx, k2, x, 1, 1, 0, 0, 1, 1, true, SOTTO_TYPE_F32));
    REFUSED(TYPE, sotto_im2col(ctx, k, xi, 1, 0, 0, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(TYPE, sotto_im2col(ctx, k, x, 1, 0, 0, 0, 1, 0, false, SOTTO_TYPE_I32));
    REFUSED(TYPE, sotto_im2col(ctx, k, x, 1, 0, 0, 0, 1, 0, false, (enum sotto_type) - 9));
    REFUSED(PARAM, sotto_im2col(ctx, k, x, 0, 0, 0, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(PARAM, sotto_im2col(ctx, k, x, 1, 0, -1, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(PARAM, sotto_im2col(ctx, k, x, 1, 0, 0, 0, 0, 0, false, SOTTO_TYPE_F32));
    REFUSED(PARAM, sotto_im2col(ctx, k2, x2, 1, 0, 0, 0, 1, 1, true, SOTTO_TYPE_F32));
    REFUSED(PARAM, sotto_im2col(ctx, k0, x, 1, 0, 0, 0, 1, 0, false, SOTTO_TYPE_F32));
    REFUSED(SHAPE, sotto_conv_1d(ctx, k14, tiny, 1, 0, 1)); /* case X05 */
    REFUSED(SHAPE, sotto_conv_1d(ctx, k14, tiny, 3, 0, 1));
    REFUSED(SHAPE, sotto_conv_1d(ctx, k, x, 1, 0, INT32_MAX));
    REFUSED(PARAM, sotto_conv_1d(ctx, k, x, 0, 0, 1));
    REFUSED(TYPE, sotto_conv_1d(ctx, ki, x, 1, 0, 1));
    REFUSED(SHAPE, sotto_conv_1d(ctx, kd, x, 1, 0, 1));
    REFUSED(NULLARG, sotto_conv_1d(ctx, NULL, x, 1, 0, 1));
    REFUSED(NULLARG, sotto_conv_1d(ctx, k, NULL, 1, 0, 1));
    REFUSED(PARAM, sotto_conv_1d_ph(ctx, k, x, -1, 1));
    REFUSED(NULLARG, sotto_conv_1d_ph(ctx, NULL, x, 1, 1));
    struct sotto_tensor * k8 = f32(8, 2, 4, 1);
    struct sotto_tensor * k9 = f32(9, 2, 4, 1);
    assert_int_equal(sotto_conv_1d(ctx, k8, x, 1, 0, 1)->ne[0], 1);
    REFUSED(SHAPE, sotto_conv_1d(ctx, k9, x, 1, 0, 1)); /* exactly 0 */
    struct sotto_tensor * y = sotto_conv_1d_ph(ctx, k, x, 1, 1);
    assert_int_equal(y->ne[0], 8);
    assert_int_equal(y->ne[1], 4);
    assert_int_equal(y->ne[2], 5);
    assert_non_null(sotto_conv_1d(ctx, sotto_permute(ctx, f32(2, 3, 4, 1), 1, 0, 2, 3), x, 1, 1, 1));
}

/* A composite that runs out of room half way gives back what it took. */
static void composites_take_all_or_nothing(void ** state) {
    (void)state;
    bool built = false;
    for (size_t room = 0; room < 8 * sotto_tensor_overhead() && !built; room += 64) {
        size_t size = 2 * sotto_tensor_overhead() + room;
        struct sotto_context * small = sotto_init((struct sotto_init_params){ .mem_size = size, .no_alloc = true });
        struct sotto_tensor * k = sotto_new_tensor_3d(small, SOTTO_TYPE_F32, 3, 2, 4);
        struct sotto_tensor * x = sotto_new_tensor_3d(small, SOTTO_TYPE_F32, 8, 2, 5);
        size_t used = sotto_used_mem(small);
        built = sotto_conv_1d(small, k, x, 1, 1, 1);
        if (!built) {
            assert_int_equal(sotto_context_status(small), SOTTO_E_MEMORY);
            assert_int_equal(sotto_used_mem(small), used);
            assert_null(sotto_get_next_tensor(small, x));
        }
        sotto_free(small);
    }
    assert_true(built);
}

static void attention(void ** state) {
    (void)state;
    struct sotto_tensor * q = f32(8, 3, 4, 2);
    struct sotto_tensor * k = f32(8, 6, 2, 2);
    struct sotto_tensor * v = f32(5, 6, 2, 2);
    struct sotto_tensor * k7 = f32(7, 6, 2, 2);
    struct sotto_tensor * v7 = f32(8, 7, 2, 2);
    struct sotto_tensor * k_heads = f32(8, 6, 3, 2);
    struct sotto_tensor * k_batch = f32(8, 6, 2, 1);
    struct sotto_tensor * i = of(SOTTO_TYPE_I32, 8, 6, 2, 2);
    struct sotto_tensor * gaps = sotto_permute(ctx, f32(6, 8, 2, 2), 1, 0, 2, 3);
    struct sotto_tensor * mask = of(SOTTO_TYPE_F16, 6, 3, 1, 1);
    struct sotto_tensor * mask_f32 = f32(6, 3, 1, 1);
    struct sotto_tensor * mask_small = of(SOTTO_TYPE_F16, 5, 3, 1, 1);
    struct sotto_tensor * mask_heads = of(SOTTO_TYPE_F16, 6, 3, 3, 1);
    struct sotto_tensor * mask_gaps = sotto_view_2d(ctx, of(SOTTO_TYPE_F16, 8, 3, 1, 1), 6, 3, 16, 0);
    REFUSED(NULLARG, sotto_flash_attn_ext(ctx, NULL, k, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(NULLARG, sotto_flash_attn_ext(ctx, q, NULL, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(NULLARG, sotto_flash_attn_ext(ctx, q, k, NULL, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(SHAPE, sotto_flash_attn_ext(ctx, q, k7, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(SHAPE, sotto_flash_attn_ext(ctx, q, k, v7, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(SHAPE, sotto_flash_attn_ext(ctx, q, k_heads, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(SHAPE, sotto_flash_attn_ext(ctx, q, k, k_heads, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(SHAPE, sotto_flash_attn_ext(ctx, q, k_batch, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(TYPE, sotto_flash_attn_ext(ctx, q, i, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(TYPE, sotto_flash_attn_ext(ctx, i, k, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(LAYOUT, sotto_flash_attn_ext(ctx, q, gaps, v, NULL, 1.0f, 0.0f, 0.0f));
    REFUSED(TYPE, sotto_flash_attn_ext(ctx, q, k, v, mask_f32, 1.0f, 0.0f, 0.0f));
    REFUSED(SHAPE, sotto_flash_attn_ext(ctx, q, k, v, mask_small, 1.0f, 0.0f, 0.0f));
    REFUSED(SHAPE, sotto_flash_attn_ext(ctx, q, k, v, mask_heads, 1.0f, 0.0f, 0.0f));
    REFUSED(LAYOUT, sotto_flash_attn_ext(ctx, q, k, v, mask_gaps, 1.0f, 0.0f, 0.0f));
    REFUSED(PARAM, sotto_flash_attn_ext(ctx, q, k, v, NULL, 1.0f, 8.0f, 0.0f));
    struct sotto_tensor * y = sotto_flash_attn_ext(ctx, q, k, v, mask, 1.0f, 8.0f, 0.0f);
    static const int64_t want[] = { 5, 4, 3, 2 };
    assert_memory_equal(y->ne, want, sizeof(want));
    assert_int_equal(sotto_flash_attn_ext_set_prec(y, SOTTO_PREC_F32), SOTTO_OK);
    assert_int_equal(sotto_flash_attn_ext_get_prec(y), SOTTO_PREC_F32);
    assert_int_equal(sotto_flash_attn_ext_set_prec(y, (enum sotto_prec)1), SOTTO_E_PARAM);
    assert_int_equal(sotto_flash_attn_ext_set_prec(q, SOTTO_PREC_F32), SOTTO_E_STATE);
    assert_int_equal(sotto_flash_attn_ext_set_prec(NULL, SOTTO_PREC_F32), SOTTO_E_NULLARG);
    sotto_clear_last_error();
    sotto_flash_attn_ext_get_prec(q);
    assert_int_equal(sotto_last_error(), SOTTO_E_STATE);
}

static void attention_over_rows(void ** state) {
    (void)state;
    struct sotto_tensor * q = f32(8, 2, 3, 1);
    struct sotto_tensor * k = of(SOTTO_TYPE_F16, 8, 2, 10, 1);
    struct sotto_tensor * v = of(SOTTO_TYPE_F16, 5, 2, 10, 1);
    struct sotto_tensor * table = of(SOTTO_TYPE_I32, 6, 4, 1, 1);
    struct sotto_tensor * seq = of(SOTTO_TYPE_I32, 3, 1, 1, 1);
    struct sotto_tensor * len = of(SOTTO_TYPE_I32, 3, 1, 1, 1);
    struct sotto_tensor * two = of(SOTTO_TYPE_I32, 2, 1, 1, 1);
    struct sotto_tensor * cube = of(SOTTO_TYPE_I32, 6, 4, 2, 1);
    struct sotto_tensor * four = f32(8, 2, 3, 2);
    struct sotto_tensor * k7 = f32(7, 2, 10, 1);
    struct sotto_tensor * k_heads = f32(8, 1, 10, 1);
    struct sotto_tensor * v_rows = f32(8, 2, 9, 1);
    struct sotto_tensor * quant = of(SOTTO_TYPE_Q8_0, 32, 2, 10, 1);
    struct sotto_tensor * floats = f32(3, 1, 1, 1);
    struct sotto_tensor * gaps = sotto_permute(ctx, f32(2, 8, 10, 1), 1, 0, 2, 3);
    struct sotto_tensor * table_t = sotto_transpose(ctx, table);
    REFUSED(NULLARG, sotto_attn_rows(ctx, NULL, k, v, table, seq, len, 1.0f));
    REFUSED(NULLARG, sotto_attn_rows(ctx, q, k, v, table, seq, NULL, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, four, k, v, table, seq, len, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, q, k7, v, table, seq, len, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, q, k_heads, v, table, seq, len, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, q, k, v_rows, table, seq, len, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, q, k, v, cube, seq, len, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, q, k, v, table, two, len, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, q, k, v, table, seq, two, 1.0f));
    REFUSED(SHAPE, sotto_attn_rows(ctx, q, k, v, table, table, len, 1.0f));
    REFUSED(TYPE, sotto_attn_rows(ctx, k, k, v, table, seq, len, 1.0f));
    REFUSED(TYPE, sotto_attn_rows(ctx, q, quant, v, table, seq, len, 1.0f));
    REFUSED(TYPE, sotto_attn_rows(ctx, q, k, v, table, floats, len, 1.0f));
    REFUSED(TYPE, sotto_attn_rows(ctx, q, k, v, q, seq, len, 1.0f));
    REFUSED(LAYOUT, sotto_attn_rows(ctx, q, gaps, v, table, seq, len, 1.0f));
    REFUSED(LAYOUT, sotto_attn_rows(ctx, q, k, v, table_t, seq, len, 1.0f));
    struct sotto_tensor * y = sotto_attn_rows(ctx, q, k, v, table, seq, len, 0.25f);
    static const int64_t want[] = { 5, 2, 3, 1 };
    assert_memory_equal(y->ne, want, sizeof(want));
    assert_ptr_equal(y->src[5], len);
}

static void sinks(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(5, 3, 4, 1);
    struct sotto_tensor * y = sotto_soft_max(ctx, a);
    struct sotto_tensor * s = f32(4, 1, 1, 1);
    struct sotto_tensor * s3 = f32(3, 1, 1, 1);
    struct sotto_tensor * s16 = of(SOTTO_TYPE_F16, 4, 1, 1, 1);
    assert_int_equal(sotto_soft_max_add_sinks(NULL, s), SOTTO_E_NULLARG);
    assert_int_equal(sotto_soft_max_add_sinks(a, s), SOTTO_E_STATE);
    assert_int_equal(sotto_soft_max_add_sinks(y, s3), SOTTO_E_SHAPE);
    assert_int_equal(sotto_soft_max_add_sinks(y, s16), SOTTO_E_TYPE);
    assert_int_equal(sotto_soft_max_add_sinks(y, s), SOTTO_OK);
    assert_null(y->src[1]); /* an empty slot before a used one */
    assert_ptr_equal(y->src[2], s);
    assert_int_equal(sotto_soft_max_add_sinks(y, s), SOTTO_E_STATE);
    assert_int_equal(sotto_soft_max_add_sinks(y, NULL), SOTTO_OK);
    assert_null(y->src[2]);
    struct sotto_tensor * f =
        sotto_flash_attn_ext(ctx, f32(8, 3, 4, 1), f32(8, 6, 2, 1), f32(8, 6, 2, 1), NULL, 1.0f, 0.0f, 0.0f);
    assert_int_equal(sotto_flash_attn_ext_add_sinks(f, s3), SOTTO_E_SHAPE);
    assert_int_equal(sotto_flash_attn_ext_add_sinks(f, s), SOTTO_OK);
    assert_ptr_equal(f->src[4], s);
    assert_int_equal(sotto_flash_attn_ext_add_sinks(y, s), SOTTO_E_STATE);
    assert_int_equal(sotto_flash_attn_ext_add_sinks(NULL, s), SOTTO_E_NULLARG);
    assert_int_equal(sotto_context_status(ctx), SOTTO_OK);
}

/* ---- without a context; with broken records ---- */

#define NO_CONTEXT(call)                                       \
    do {                                                       \
        sotto_clear_last_error();                              \
        assert_null(call);                                     \
        assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG); \
    } while (0)

static void no_context(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 1, 1);
    NO_CONTEXT(sotto_dup(NULL, a));
    NO_CONTEXT(sotto_dup_inplace(NULL, a));
    NO_CONTEXT(sotto_cpy(NULL, a, a));
    NO_CONTEXT(sotto_cast(NULL, a, SOTTO_TYPE_F16));
    NO_CONTEXT(sotto_cont(NULL, a));
    NO_CONTEXT(sotto_reshape(NULL, a, a));
    NO_CONTEXT(sotto_reshape(NULL, a, NULL));
    NO_CONTEXT(sotto_view_1d(NULL, a, 1, 0));
    NO_CONTEXT(sotto_permute(NULL, a, 0, 1, 2, 3));
    NO_CONTEXT(sotto_transpose(NULL, a));
    NO_CONTEXT(sotto_repeat(NULL, a, a));
    NO_CONTEXT(sotto_add(NULL, a, a));
    NO_CONTEXT(sotto_add_cast(NULL, a, a, SOTTO_TYPE_F32));
    NO_CONTEXT(sotto_scale(NULL, a, 1.0f));
    NO_CONTEXT(sotto_gelu(NULL, a));
    NO_CONTEXT(sotto_sum_rows(NULL, a));
    NO_CONTEXT(sotto_norm(NULL, a, 0.0f));
    NO_CONTEXT(sotto_soft_max(NULL, a));
    NO_CONTEXT(sotto_top_k(NULL, a, 1));
    NO_CONTEXT(sotto_get_rows(NULL, a, a));
    NO_CONTEXT(sotto_set_rows(NULL, a, a, a));
    NO_CONTEXT(sotto_mul_mat(NULL, a, a));
    NO_CONTEXT(sotto_im2col(NULL, a, a, 1, 1, 0, 0, 1, 1, true, SOTTO_TYPE_F32));
    NO_CONTEXT(sotto_conv_1d(NULL, a, a, 1, 1, 1));
    NO_CONTEXT(sotto_conv_1d_ph(NULL, a, a, 1, 1));
    NO_CONTEXT(sotto_flash_attn_ext(NULL, a, a, a, a, 1.0f, 0.0f, 0.0f));
    NO_CONTEXT(sotto_attn_rows(NULL, a, a, a, a, a, a, 1.0f));
    NO_CONTEXT(sotto_add(NULL, NULL, NULL));
}

/* Records are open: whatever stands in them, a builder makes a node or refuses. */
static void broken_records(void ** state) {
    (void)state;
    static const int types[] = { -1, 4, 31, SOTTO_TYPE_COUNT, SOTTO_TYPE_F32, SOTTO_TYPE_Q4_0 };
    static const int64_t extents[] = { INT64_MIN, -1, 0, 1, 33, INT64_MAX };
    int refused = 0;
    for (size_t k = 0; k < 36; k++) {
        struct sotto_tensor t = { .type = (enum sotto_type)types[k % 6],
                                  .ne = { extents[k / 6], 1, extents[k / 6], 1 } };
        t.nb[1] = SIZE_MAX;
        struct sotto_tensor * got[] = {
            sotto_dup(ctx, &t),
            sotto_dup_inplace(ctx, &t),
            sotto_cpy(ctx, &t, &t),
            sotto_cast(ctx, &t, SOTTO_TYPE_F32),
            sotto_cont(ctx, &t),
            sotto_reshape(ctx, &t, &t),
            sotto_view_1d(ctx, &t, 1, 0),
            sotto_transpose(ctx, &t),
            sotto_repeat(ctx, &t, &t),
            sotto_add(ctx, &t, &t),
            sotto_scale(ctx, &t, 1.0f),
            sotto_gelu(ctx, &t),
            sotto_sum_rows(ctx, &t),
            sotto_norm(ctx, &t, 0.0f),
            sotto_soft_max_ext(ctx, &t, &t, 1.0f, 1.0f),
            sotto_top_k(ctx, &t, 1),
            sotto_get_rows(ctx, &t, &t),
            sotto_set_rows(ctx, &t, &t, &t),
            sotto_mul_mat(ctx, &t, &t),
            sotto_im2col(ctx, &t, &t, 1, 1, 0, 0, 1, 1, true, SOTTO_TYPE_F32),
            sotto_conv_1d_ph(ctx, &t, &t, 1, 1),
            sotto_flash_attn_ext(ctx, &t, &t, &t, NULL, 1.0f, 0.0f, 0.0f),
            sotto_attn_rows(ctx, &t, &t, &t, &t, &t, &t, 1.0f),
            sotto_dup_tensor(ctx, &t),
            sotto_view_tensor(ctx, &t),
        };
        for (size_t i = 0; i < sizeof(got) / sizeof(got[0]); i++) {
            refused += !got[i];
            assert_true(!got[i] || extents[k / 6] >= 0);
            assert_true(!got[i] || types[k % 6] == SOTTO_TYPE_F32 || types[k % 6] == SOTTO_TYPE_Q4_0);
        }
        sotto_reset(ctx);
    }
    assert_true(refused > 500);
}

/* ---- the table ---- */

static void table_is_consistent(void ** state) {
    (void)state;
    int n = 0;
#define OP(number, NAME, text, min_sources, max_sources, shape_function, params, row_flags) \
    assert_string_equal(sotto_op_name(SOTTO_OP_##NAME), #NAME);                             \
    assert_string_equal(sotto_op_symbol(SOTTO_OP_##NAME), text);                            \
    assert_int_equal(sotto_i_op_index(number), n);                                          \
    assert_int_equal(sotto_i_op_row(number)->id, number);                                   \
    n++;
#include "core/ops.def"
#undef OP
    assert_int_equal(n, sotto_i_op_count);
    assert_string_equal(sotto_op_name((enum sotto_op) - 1), "UNKNOWN");
    assert_string_equal(sotto_op_symbol((enum sotto_op)300), "UNKNOWN");
    assert_null(sotto_i_op_row(511));
}

static void descriptions_name_the_variant(void ** state) {
    (void)state;
    struct sotto_tensor * a = f32(4, 3, 1, 1);
    assert_string_equal(sotto_op_desc(sotto_gelu_erf(ctx, a)), "GELU_ERF");
    assert_string_equal(sotto_op_desc(sotto_norm(ctx, a, 0.0f)), "NORM");
    assert_string_equal(sotto_op_desc(NULL), "UNKNOWN");
    assert_int_equal(sotto_get_unary_op(sotto_unary(ctx, a, SOTTO_UNARY_OP_GELU)), SOTTO_UNARY_OP_GELU);
    sotto_clear_last_error();
    sotto_get_unary_op(a);
    assert_int_equal(sotto_last_error(), SOTTO_E_STATE);
    sotto_get_unary_op(NULL);
    assert_int_equal(sotto_last_error(), SOTTO_E_NULLARG);
    assert_string_equal(sotto_unary_op_name((enum sotto_unary_op)99), "UNKNOWN");
}

static void cast_is_its_own_source(void ** state) {
    (void)state;
    struct sotto_tensor * y = sotto_cast(ctx, f32(4, 3, 1, 1), SOTTO_TYPE_BF16);
    assert_int_equal(y->op, SOTTO_OP_CPY);
    assert_ptr_equal(y->src[1], y);
    assert_null(y->view_src);
    assert_int_equal(y->type, SOTTO_TYPE_BF16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(copies),
        TEST(views),
        TEST(arithmetic),
        TEST(rows),
        TEST(gather_and_scatter),
        TEST(products),
        TEST(chosen_products),
        TEST(sums_of_blocks),
        TEST(convolutions),
        TEST(composites_take_all_or_nothing),
        TEST(attention),
        TEST(attention_over_rows),
        TEST(sinks),
        TEST(no_context),
        TEST(broken_records),
        TEST(table_is_consistent),
        TEST(descriptions_name_the_variant),
        TEST(cast_is_its_own_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
