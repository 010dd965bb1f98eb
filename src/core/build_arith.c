/* SPDX-License-Identifier: MIT */
/* Builders of element-wise arithmetic: add, mul, scale, and repeat. */
#include "core/op.h"

/* ---- add and mul ---- */

/* (f32,f32) (f16,f16) (bf16,bf16) (f16,f32) (bf16,f32) -> a's type; with a cast the last two -> f32. Of ADD also
 * (quantised,f32) -> a's type, with a cast -> f32. */
static bool accepted(const struct op_args * args) {
    enum sotto_type a = args->src[0]->type;
    enum sotto_type b = args->src[1]->type;
    if (args->op == SOTTO_OP_ADD && b == SOTTO_TYPE_F32 && sotto_get_type_traits(a)->is_quantized) {
        return args->cast ? args->want_type == SOTTO_TYPE_F32 && sotto_i_gives_float_rows(a)
                          : sotto_i_takes_float_rows(a) && sotto_i_gives_float_rows(a);
    }
    if (!sotto_i_is_float_type(a)) {
        return false;
    }
    if (args->cast) {
        return a != SOTTO_TYPE_F32 && b == SOTTO_TYPE_F32 && args->want_type == SOTTO_TYPE_F32;
    }
    return a == b || b == SOTTO_TYPE_F32;
}

/* A quantised a is taken row by row. */
static enum sotto_status check_blocks(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * b = args->src[1];
    if (b->ne[0] != a->ne[0] || (!args->cast && !sotto_are_same_shape(a, b))) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "a is %s and " NE_FORMAT ", so b " NE_FORMAT " must %s",
                       sotto_type_name(a->type), NE_OF(a), NE_OF(b), args->cast ? "have rows as long" : "be alike");
    }
    if (!sotto_is_contiguous_rows(a) || !sotto_is_contiguous_rows(b)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "rows must be contiguous where a is quantised; use sotto_cont");
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_shape_binary(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * b = args->src[1];
    enum sotto_type type = args->cast ? args->want_type : a->type;
    if (!accepted(args)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE,
                       "a is %s and b is %s, the result would be %s: not among the pairs of "
                       "sotto/ops.h",
                       sotto_type_name(a->type), sotto_type_name(b->type), sotto_type_name(type));
    }
    if (!sotto_can_repeat(b, a)) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "b " NE_FORMAT " does not tile a " NE_FORMAT, NE_OF(b), NE_OF(a));
    }
    sotto_i_result(args, type, a);
    return sotto_get_type_traits(a->type)->is_quantized ? check_blocks(args, ctx) : SOTTO_OK;
}

static struct sotto_tensor * binary(struct sotto_context * ctx, const char * function, enum sotto_op op,
                                    struct sotto_tensor * a, struct sotto_tensor * b, bool inplace) {
    return sotto_i_build(ctx, &(struct op_args){ .function = function, .op = op, .src = { a, b }, .inplace = inplace });
}

struct sotto_tensor * sotto_add(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    return binary(ctx, "sotto_add", SOTTO_OP_ADD, a, b, false);
}

struct sotto_tensor * sotto_add_inplace(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    return binary(ctx, "sotto_add_inplace", SOTTO_OP_ADD, a, b, true);
}

struct sotto_tensor * sotto_add_cast(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b,
                                     enum sotto_type type) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = "sotto_add_cast",
                                  .op = SOTTO_OP_ADD,
                                  .src = { a, b },
                                  .cast = true,
                                  .want_type = type,
                              });
}

struct sotto_tensor * sotto_mul(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    return binary(ctx, "sotto_mul", SOTTO_OP_MUL, a, b, false);
}

struct sotto_tensor * sotto_mul_inplace(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    return binary(ctx, "sotto_mul_inplace", SOTTO_OP_MUL, a, b, true);
}

/* ---- scale ---- */

enum sotto_status sotto_i_shape_scale(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    if (!sotto_i_is_float_type(a->type)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "a is %s, must be f32, f16 or bf16", sotto_type_name(a->type));
    }
    sotto_i_result(args, a->type, a);
    return SOTTO_OK;
}

static struct sotto_tensor * scale(struct sotto_context * ctx, const char * function, struct sotto_tensor * a, float s,
                                   float b, bool inplace) {
    struct op_args args = { .function = function, .op = SOTTO_OP_SCALE, .src = { a }, .inplace = inplace };
    struct params_scale params = { s, b };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

struct sotto_tensor * sotto_scale(struct sotto_context * ctx, struct sotto_tensor * a, float s) {
    return scale(ctx, "sotto_scale", a, s, 0.0f, false);
}

struct sotto_tensor * sotto_scale_inplace(struct sotto_context * ctx, struct sotto_tensor * a, float s) {
    return scale(ctx, "sotto_scale_inplace", a, s, 0.0f, true);
}

struct sotto_tensor * sotto_scale_bias(struct sotto_context * ctx, struct sotto_tensor * a, float s, float b) {
    return scale(ctx, "sotto_scale_bias", a, s, b, false);
}

struct sotto_tensor * sotto_scale_bias_inplace(struct sotto_context * ctx, struct sotto_tensor * a, float s, float b) {
    return scale(ctx, "sotto_scale_bias_inplace", a, s, b, true);
}

/* ---- repeat ---- */

static bool repeatable(enum sotto_type type) {
    return sotto_i_is_float_type(type) || type == SOTTO_TYPE_I8 || type == SOTTO_TYPE_I16 || type == SOTTO_TYPE_I32 ||
           type == SOTTO_TYPE_I64;
}

enum sotto_status sotto_i_shape_repeat(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    struct sotto_tensor wanted = { .type = a->type };
    memcpy(wanted.ne, args->want_ne, sizeof(wanted.ne));
    if (!repeatable(a->type)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "a is %s, must be f32, f16, bf16 or an integer",
                       sotto_type_name(a->type));
    }
    if (!sotto_can_repeat(a, &wanted)) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "a " NE_FORMAT " does not tile " NE_FORMAT, NE_OF(a), NE_OF(&wanted));
    }
    sotto_i_result(args, a->type, &wanted);
    return SOTTO_OK;
}

static struct sotto_tensor * repeat(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                    int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = function,
                                  .op = SOTTO_OP_REPEAT,
                                  .src = { a },
                                  .want_ne = { ne0, ne1, ne2, ne3 },
                              });
}

struct sotto_tensor * sotto_repeat(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    if (!sotto_i_operand(ctx, "sotto_repeat", "b", b)) {
        return NULL;
    }
    return repeat(ctx, "sotto_repeat", a, b->ne[0], b->ne[1], b->ne[2], b->ne[3]);
}

struct sotto_tensor * sotto_repeat_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                      int64_t ne2, int64_t ne3) {
    return repeat(ctx, "sotto_repeat_4d", a, ne0, ne1, ne2, ne3);
}
