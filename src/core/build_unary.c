/* SPDX-License-Identifier: MIT */
/* Builders of element functions: variants of the op UNARY. */
#include "core/op.h"

enum { N_FIELD_VARIANTS = 22 }; /* numbers 0 to 21 are the field's */

const char * sotto_unary_op_name(enum sotto_unary_op op) {
    switch ((int)op) {
    case SOTTO_UNARY_OP_GELU: return "GELU";
    case SOTTO_UNARY_OP_GELU_ERF: return "GELU_ERF";
    default: return "UNKNOWN";
    }
}

enum sotto_unary_op sotto_get_unary_op(const struct sotto_tensor * tensor) {
    if (!tensor || tensor->op != SOTTO_OP_UNARY) {
        sotto_fail(tensor ? SOTTO_E_STATE : SOTTO_E_NULLARG, "sotto_get_unary_op: %s",
                   tensor ? "the tensor is made by another op" : "tensor is NULL");
        return (enum sotto_unary_op) - 1;
    }
    OP_PARAMS(unary, tensor, params);
    return (enum sotto_unary_op)params.op;
}

enum sotto_status sotto_i_shape_unary(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    int variant = args->params.words[0];
    if (strcmp(sotto_unary_op_name((enum sotto_unary_op)variant), "UNKNOWN") == 0) {
        bool later = variant >= 0 && variant < N_FIELD_VARIANTS;
        return OP_FAIL(ctx, args, later ? SOTTO_E_UNSUPPORTED : SOTTO_E_PARAM, "unary op %d %s", variant,
                       later ? "is not built yet" : "does not exist");
    }
    if (!sotto_i_is_float_type(a->type)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "a is %s, must be f32, f16 or bf16", sotto_type_name(a->type));
    }
    if (!sotto_is_contiguous_rows(a)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "rows of a are not contiguous; use sotto_cont first");
    }
    sotto_i_result(args, a->type, a);
    return SOTTO_OK;
}

static struct sotto_tensor * unary(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                   enum sotto_unary_op op, bool inplace) {
    struct op_args args = { .function = function, .op = SOTTO_OP_UNARY, .src = { a }, .inplace = inplace };
    struct params_unary params = { (int32_t)op };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

struct sotto_tensor * sotto_unary(struct sotto_context * ctx, struct sotto_tensor * a, enum sotto_unary_op op) {
    return unary(ctx, "sotto_unary", a, op, false);
}

struct sotto_tensor * sotto_unary_inplace(struct sotto_context * ctx, struct sotto_tensor * a, enum sotto_unary_op op) {
    return unary(ctx, "sotto_unary_inplace", a, op, true);
}

struct sotto_tensor * sotto_gelu(struct sotto_context * ctx, struct sotto_tensor * a) {
    return unary(ctx, "sotto_gelu", a, SOTTO_UNARY_OP_GELU, false);
}

struct sotto_tensor * sotto_gelu_inplace(struct sotto_context * ctx, struct sotto_tensor * a) {
    return unary(ctx, "sotto_gelu_inplace", a, SOTTO_UNARY_OP_GELU, true);
}

struct sotto_tensor * sotto_gelu_erf(struct sotto_context * ctx, struct sotto_tensor * a) {
    return unary(ctx, "sotto_gelu_erf", a, SOTTO_UNARY_OP_GELU_ERF, false);
}

struct sotto_tensor * sotto_gelu_erf_inplace(struct sotto_context * ctx, struct sotto_tensor * a) {
    return unary(ctx, "sotto_gelu_erf_inplace", a, SOTTO_UNARY_OP_GELU_ERF, true);
}
