/* SPDX-License-Identifier: MIT */
/* Builders of convolutions: im2col, and conv_1d made of it and a product. */
#include "core/checked.h"
#include "core/op.h"

/* ---- im2col ---- */

/* One axis: (size + 2 pad - dilation (kernel - 1) - 1) / stride + 1, PARAM and SHAPE as the specification says. */
static enum sotto_status output_size(struct op_args * args, struct sotto_context * ctx, int64_t size, int64_t kernel,
                                     int stride, int pad, int dilation, int64_t * out) {
    if (stride < 1 || dilation < 1 || pad < 0 || kernel < 1) {
        return OP_FAIL(
            ctx, args, SOTTO_E_PARAM,
            "kernel %lld, stride %d, padding %d, dilation %d: padding must be 0 or more, the others 1 or more",
            (long long)kernel, stride, pad, dilation);
    }
    int64_t reach;
    int64_t padded = size <= INT64_MAX / 2 ? size + 2 * (int64_t)pad : INT64_MAX;
    if (!sotto_i_mul_i64(dilation, kernel - 1, &reach) || reach >= padded) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE,
                       "the kernel of %lld with dilation %d is wider than the padded input of %lld", (long long)kernel,
                       dilation, (long long)padded);
    }
    *out = (padded - reach - 1) / stride + 1;
    return SOTTO_OK;
}

static enum sotto_status check_im2col_types(struct op_args * args, struct sotto_context * ctx) {
    enum sotto_type image = args->src[1]->type;
    if (!sotto_i_is_float_type(image) || !sotto_i_is_float_type(args->want_type)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "image is %s and columns would be %s, both must be f32, f16 or bf16",
                       sotto_type_name(image), sotto_type_name(args->want_type));
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_shape_im2col(struct op_args * args, struct sotto_context * ctx) {
    const int64_t * k = args->src[0]->ne;
    const int64_t * x = args->src[1]->ne;
    struct params_im2col p;
    memcpy(&p, args->params.bytes, sizeof(p));
    enum sotto_status status = check_im2col_types(args, ctx);
    if (status != SOTTO_OK) {
        return status;
    }
    if (p.is_2D ? x[2] != k[2] : x[1] != k[1] || x[3] != 1) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE,
                       "kernel " NE_FORMAT " and image " NE_FORMAT " have other channels, or "
                       "a 1-D image has a fourth dimension",
                       NE_OF(args->src[0]), NE_OF(args->src[1]));
    }
    int64_t columns;
    bool fits = sotto_i_mul_i64(k[0], k[1], &columns) && (!p.is_2D || sotto_i_mul_i64(columns, k[2], &columns));
    if (!fits) {
        return OP_FAIL(ctx, args, SOTTO_E_MEMORY, "kernel " NE_FORMAT ": the size of a column overflows",
                       NE_OF(args->src[0]));
    }
    args->type = args->want_type;
    args->ne[0] = columns;
    status = output_size(args, ctx, x[0], k[0], p.s0, p.p0, p.d0, &args->ne[1]);
    args->ne[2] = x[2];
    args->ne[3] = 1;
    if (p.is_2D && status == SOTTO_OK) {
        status = output_size(args, ctx, x[1], k[1], p.s1, p.p1, p.d1, &args->ne[2]);
        args->ne[3] = x[3];
    }
    return status;
}

static struct sotto_tensor * im2col(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                    struct sotto_tensor * b, struct params_im2col params, enum sotto_type type) {
    struct op_args args = {
        .function = function,
        .op = SOTTO_OP_IM2COL,
        .src = { a, b },
        .want_type = type,
    };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

struct sotto_tensor * sotto_im2col(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b, int s0,
                                   int s1, int p0, int p1, int d0, int d1, bool is_2D, enum sotto_type dst_type) {
    struct params_im2col params = { s0, s1, p0, p1, d0, d1, is_2D };
    return im2col(ctx, "sotto_im2col", a, b, params, dst_type);
}

/* ---- conv_1d ---- */

/* The product of columns [IC*K, OL, N] with a kernel [K, IC, OC]. One recording has the kernel as right operand, which
 * gives [OL, OC] at once; several share it as left operand, which gives [OC, OL, N], to be turned. Same bits. */
static struct sotto_tensor * times_kernel(struct sotto_context * ctx, struct sotto_tensor * columns,
                                          struct sotto_tensor * kernel) {
    if (!sotto_is_contiguous(kernel)) {
        kernel = sotto_cont(ctx, kernel);
        if (!kernel) {
            return NULL;
        }
    }
    struct sotto_tensor * rows = sotto_reshape_2d(ctx, kernel, kernel->ne[0] * kernel->ne[1], kernel->ne[2]);
    if (columns->ne[2] == 1 && sotto_i_is_float_type(kernel->type)) {
        return sotto_mul_mat(ctx, columns, rows);
    }
    return sotto_cont(ctx, sotto_permute(ctx, sotto_mul_mat(ctx, rows, columns), 1, 0, 2, 3));
}

static struct sotto_tensor * conv_1d(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                     struct sotto_tensor * b, int s0, int p0, int d0) {
    if (!sotto_i_operand(ctx, function, "a", a)) {
        return NULL;
    }
    if (!sotto_i_is_weight_type(a->type)) {
        sotto_i_context_fail(ctx, SOTTO_E_TYPE, "%s: kernel is %s, must be f32, f16, bf16 or quantised", function,
                             sotto_type_name(a->type));
        return NULL;
    }
    if (a->ne[3] != 1) {
        sotto_i_context_fail(ctx, SOTTO_E_SHAPE, "%s: kernel is " NE_FORMAT ", must be [K, IC, OC]", function,
                             NE_OF(a));
        return NULL;
    }
    struct sotto_i_object * before = sotto_i_arena_last(ctx);
    struct params_im2col params = { s0, 0, p0, 0, d0, 0, 0 };
    struct sotto_tensor * columns = im2col(ctx, function, a, b, params, SOTTO_TYPE_F32);
    struct sotto_tensor * y = columns ? times_kernel(ctx, columns, a) : NULL;
    if (!y) {
        sotto_i_arena_rewind(ctx, before);
    }
    return y;
}

struct sotto_tensor * sotto_conv_1d(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b,
                                    int s0, int p0, int d0) {
    return conv_1d(ctx, "sotto_conv_1d", a, b, s0, p0, d0);
}

struct sotto_tensor * sotto_conv_1d_ph(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b,
                                       int s, int d) {
    if (a && a->ne[0] / 2 > INT32_MAX) {
        sotto_i_context_fail(ctx, SOTTO_E_SHAPE, "sotto_conv_1d_ph: a kernel of %lld is too wide", (long long)a->ne[0]);
        return NULL;
    }
    return conv_1d(ctx, "sotto_conv_1d_ph", a, b, s, a ? (int)(a->ne[0] / 2) : 0, d);
}
