/* SPDX-License-Identifier: MIT */
/* Builders of ops that work on whole rows: sums, norms, soft_max, top_k, and gathering and scattering of rows. */
#include "core/op.h"

/* TYPE unless a is f32. */
static enum sotto_status want_f32(struct op_args * args, struct sotto_context * ctx) {
    enum sotto_type type = args->src[0]->type;
    if (type != SOTTO_TYPE_F32) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "a is %s, must be f32", sotto_type_name(type));
    }
    return SOTTO_OK;
}

/* LAYOUT unless the rows of operand i are contiguous. */
static enum sotto_status want_rows(struct op_args * args, struct sotto_context * ctx, int i, const char * name) {
    if (!sotto_is_contiguous_rows(args->src[i])) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "rows of %s are not contiguous; use sotto_cont first", name);
    }
    return SOTTO_OK;
}

/* ---- sum_rows and norm ---- */

enum sotto_status sotto_i_shape_sum_rows(struct op_args * args, struct sotto_context * ctx) {
    enum sotto_status status = want_f32(args, ctx);
    if (status == SOTTO_OK) {
        sotto_i_result(args, SOTTO_TYPE_F32, args->src[0]);
        args->ne[0] = 1;
    }
    return status;
}

struct sotto_tensor * sotto_sum_rows(struct sotto_context * ctx, struct sotto_tensor * a) {
    return sotto_i_build(ctx, &(struct op_args){ .function = "sotto_sum_rows", .op = SOTTO_OP_SUM_ROWS, .src = { a } });
}

enum sotto_status sotto_i_shape_norm(struct op_args * args, struct sotto_context * ctx) {
    struct params_eps params;
    memcpy(&params, args->params.bytes, sizeof(params));
    if (!(params.eps >= 0.0f)) {
        return OP_FAIL(ctx, args, SOTTO_E_PARAM, "eps = %g, must be 0 or more", (double)params.eps);
    }
    enum sotto_status status = want_f32(args, ctx);
    if (status == SOTTO_OK) {
        sotto_i_result(args, SOTTO_TYPE_F32, args->src[0]);
    }
    return status;
}

static struct sotto_tensor * norm(struct sotto_context * ctx, const char * function, struct sotto_tensor * a, float eps,
                                  bool inplace) {
    struct op_args args = { .function = function, .op = SOTTO_OP_NORM, .src = { a }, .inplace = inplace };
    struct params_eps params = { eps };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

struct sotto_tensor * sotto_norm(struct sotto_context * ctx, struct sotto_tensor * a, float eps) {
    return norm(ctx, "sotto_norm", a, eps, false);
}

struct sotto_tensor * sotto_norm_inplace(struct sotto_context * ctx, struct sotto_tensor * a, float eps) {
    return norm(ctx, "sotto_norm_inplace", a, eps, true);
}

/* ---- soft_max ---- */

static enum sotto_status check_mask(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * mask = args->src[1];
    struct params_soft_max params;
    memcpy(&params, args->params.bytes, sizeof(params));
    if (!mask) {
        if (params.max_bias <= 0.0f) {
            return SOTTO_OK;
        }
        return OP_FAIL(ctx, args, SOTTO_E_PARAM, "max_bias = %g needs a mask", (double)params.max_bias);
    }
    if (mask->type != SOTTO_TYPE_F32 && mask->type != SOTTO_TYPE_F16) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "mask is %s, must be f32 or f16", sotto_type_name(mask->type));
    }
    if (mask->ne[0] != a->ne[0] || mask->ne[1] < a->ne[1] || !sotto_i_divides(mask->ne[2], a->ne[2]) ||
        !sotto_i_divides(mask->ne[3], a->ne[3])) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "mask " NE_FORMAT " does not cover a " NE_FORMAT, NE_OF(mask),
                       NE_OF(a));
    }
    return want_rows(args, ctx, 1, "mask");
}

enum sotto_status sotto_i_shape_soft_max(struct op_args * args, struct sotto_context * ctx) {
    enum sotto_status status = want_f32(args, ctx);
    if (status == SOTTO_OK) {
        status = want_rows(args, ctx, 0, "a");
    }
    if (status == SOTTO_OK) {
        status = check_mask(args, ctx);
    }
    sotto_i_result(args, SOTTO_TYPE_F32, args->src[0]);
    return status;
}

static struct sotto_tensor * soft_max(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                      struct sotto_tensor * mask, float scale, float max_bias, bool inplace) {
    struct op_args args = { .function = function, .op = SOTTO_OP_SOFT_MAX, .src = { a, mask }, .inplace = inplace };
    struct params_soft_max params = { scale, max_bias };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

struct sotto_tensor * sotto_soft_max(struct sotto_context * ctx, struct sotto_tensor * a) {
    return soft_max(ctx, "sotto_soft_max", a, NULL, 1.0f, 0.0f, false);
}

struct sotto_tensor * sotto_soft_max_inplace(struct sotto_context * ctx, struct sotto_tensor * a) {
    return soft_max(ctx, "sotto_soft_max_inplace", a, NULL, 1.0f, 0.0f, true);
}

struct sotto_tensor * sotto_soft_max_ext(struct sotto_context * ctx, struct sotto_tensor * a,
                                         struct sotto_tensor * mask, float scale, float max_bias) {
    return soft_max(ctx, "sotto_soft_max_ext", a, mask, scale, max_bias, false);
}

struct sotto_tensor * sotto_soft_max_ext_inplace(struct sotto_context * ctx, struct sotto_tensor * a,
                                                 struct sotto_tensor * mask, float scale, float max_bias) {
    return soft_max(ctx, "sotto_soft_max_ext_inplace", a, mask, scale, max_bias, true);
}

enum sotto_status sotto_soft_max_add_sinks(struct sotto_tensor * y, struct sotto_tensor * sinks) {
    if (!y) {
        return sotto_fail(SOTTO_E_NULLARG, "sotto_soft_max_add_sinks: y is NULL");
    }
    if (y->op != SOTTO_OP_SOFT_MAX) {
        return sotto_fail(SOTTO_E_STATE, "sotto_soft_max_add_sinks: '%s' is no soft_max", y->name);
    }
    return sotto_i_set_sinks(y, sinks, SOTTO_OP_SOFT_MAX, 2, y->ne[2], "sotto_soft_max_add_sinks");
}

/* ---- top_k ---- */

enum sotto_status sotto_i_shape_top_k(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    enum sotto_status status = want_f32(args, ctx);
    if (status == SOTTO_OK) {
        status = want_rows(args, ctx, 0, "a");
    }
    if (status != SOTTO_OK) {
        return status;
    }
    if (a->ne[0] > INT32_MAX) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "rows of %lld elements: an index must fit in i32",
                       (long long)a->ne[0]);
    }
    if (args->want_ne[0] < 1 || args->want_ne[0] > a->ne[0]) {
        return OP_FAIL(ctx, args, SOTTO_E_PARAM, "k = %lld, must be 1 to %lld", (long long)args->want_ne[0],
                       (long long)a->ne[0]);
    }
    sotto_i_result(args, SOTTO_TYPE_I32, a);
    args->ne[0] = args->want_ne[0];
    return SOTTO_OK;
}

struct sotto_tensor * sotto_top_k(struct sotto_context * ctx, struct sotto_tensor * a, int k) {
    return sotto_i_build(
        ctx, &(struct op_args){ .function = "sotto_top_k", .op = SOTTO_OP_TOP_K, .src = { a }, .want_ne = { k } });
}

/* ---- get_rows and set_rows ---- */

enum sotto_status sotto_i_shape_get_rows(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * b = args->src[1];
    if (!sotto_i_is_weight_type(a->type) && a->type != SOTTO_TYPE_I32) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "a is %s, whose rows cannot be read", sotto_type_name(a->type));
    }
    if (b->type != SOTTO_TYPE_I32) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "b holds indices and is %s, must be i32", sotto_type_name(b->type));
    }
    if (a->ne[2] != b->ne[1] || a->ne[3] != b->ne[2] || b->ne[3] != 1) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "a is " NE_FORMAT ", so b must be [r, %lld, %lld], not " NE_FORMAT,
                       NE_OF(a), (long long)a->ne[2], (long long)a->ne[3], NE_OF(b));
    }
    args->type = a->type == SOTTO_TYPE_I32 ? SOTTO_TYPE_I32 : SOTTO_TYPE_F32;
    args->ne[0] = a->ne[0];
    memcpy(args->ne + 1, b->ne, 3 * sizeof(args->ne[0]));
    return want_rows(args, ctx, 0, "a");
}

struct sotto_tensor * sotto_get_rows(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    return sotto_i_build(ctx,
                         &(struct op_args){ .function = "sotto_get_rows", .op = SOTTO_OP_GET_ROWS, .src = { a, b } });
}

static enum sotto_status check_scatter_types(struct op_args * args, struct sotto_context * ctx) {
    enum sotto_type b = args->src[0]->type;
    enum sotto_type c = args->src[1]->type;
    enum sotto_type a = args->src[2]->type;
    if (!sotto_i_takes_float_rows(a)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "a is %s, to which rows cannot be converted", sotto_type_name(a));
    }
    if (b != SOTTO_TYPE_F32 && b != SOTTO_TYPE_F16) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "b is %s, must be f32 or f16", sotto_type_name(b));
    }
    if (c != SOTTO_TYPE_I64 && c != SOTTO_TYPE_I32) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "c holds indices and is %s, must be i64 or i32", sotto_type_name(c));
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_shape_set_rows(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * b = args->src[0];
    const struct sotto_tensor * c = args->src[1];
    struct sotto_tensor * a = args->src[2];
    enum sotto_status status = check_scatter_types(args, ctx);
    if (status != SOTTO_OK) {
        return status;
    }
    if (a->ne[0] != b->ne[0] || a->ne[2] != b->ne[2] || a->ne[3] != b->ne[3] || c->ne[0] != b->ne[1] ||
        !sotto_i_divides(c->ne[1], a->ne[2]) || !sotto_i_divides(c->ne[2], a->ne[3]) || c->ne[3] != 1) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "a " NE_FORMAT ", b " NE_FORMAT " and c " NE_FORMAT " do not fit",
                       NE_OF(a), NE_OF(b), NE_OF(c));
    }
    if (sotto_i_repeats_itself(a)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "a has a stride of 0 and cannot be written to");
    }
    status = want_rows(args, ctx, 2, "a");
    if (status == SOTTO_OK) {
        status = want_rows(args, ctx, 0, "b");
    }
    sotto_i_result(args, a->type, a);
    memcpy(args->nb, a->nb, sizeof(args->nb));
    args->view_of = a;
    args->name_format = "%s (view)";
    return status;
}

struct sotto_tensor * sotto_set_rows(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b,
                                     struct sotto_tensor * c) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = "sotto_set_rows",
                                  .op = SOTTO_OP_SET_ROWS,
                                  .src = { b, c, a },
                                  .src_name = { "b", "c", "a" },
                              });
}
