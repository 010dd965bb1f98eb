/* SPDX-License-Identifier: MIT */
/* Builders of matrix products. */
#include "core/op.h"

/* Rows of `a` follow one another in memory. Where there is one row, or rows of one block, strides say nothing. */
static bool transposed(const struct sotto_tensor * a) {
    return a->ne[0] > sotto_get_type_traits(a->type)->blck_size && a->ne[1] > 1 && sotto_is_transposed(a);
}

/* Types, lengths of rows and layout of a product a, b. */
static enum sotto_status check_factors(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * b = args->src[1];
    if (!sotto_i_is_weight_type(a->type) || !sotto_i_is_float_type(b->type)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE,
                       "a is %s and b is %s; a may be f32, f16, bf16 or quantised, b f32, f16 or bf16",
                       sotto_type_name(a->type), sotto_type_name(b->type));
    }
    if (a->ne[0] != b->ne[0]) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "a.ne0 = %lld but b.ne0 = %lld", (long long)a->ne[0],
                       (long long)b->ne[0]);
    }
    if (!sotto_is_contiguous_rows(a) || transposed(a)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "a is transposed or its rows are not contiguous; use sotto_cont");
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_shape_mul_mat(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * b = args->src[1];
    const enum sotto_status status = check_factors(args, ctx);
    if (status != SOTTO_OK) {
        return status;
    }
    if (!sotto_i_divides(a->ne[2], b->ne[2]) || !sotto_i_divides(a->ne[3], b->ne[3])) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "batches of a " NE_FORMAT " do not divide those of b " NE_FORMAT,
                       NE_OF(a), NE_OF(b));
    }
    args->type = SOTTO_TYPE_F32;
    args->ne[0] = a->ne[1];
    memcpy(args->ne + 1, b->ne + 1, 3 * sizeof(args->ne[0]));
    return SOTTO_OK;
}

struct sotto_tensor * sotto_mul_mat(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    return sotto_i_build(ctx,
                         &(struct op_args){ .function = "sotto_mul_mat", .op = SOTTO_OP_MUL_MAT, .src = { a, b } });
}

/* Set word `word` of a product's parameters. */
static enum sotto_status set_word(struct sotto_tensor * y, int word, int32_t value, bool known, const char * function) {
    if (!y) {
        return sotto_fail(SOTTO_E_NULLARG, "%s: y is NULL", function);
    }
    if (y->op != SOTTO_OP_MUL_MAT) {
        return sotto_fail(SOTTO_E_STATE, "%s: '%s' is no mul_mat", function, y->name);
    }
    if (!known) {
        return sotto_fail(SOTTO_E_PARAM, "%s: %d is not in the list", function, (int)value);
    }
    y->op_params[word] = value;
    return SOTTO_OK;
}

enum sotto_status sotto_mul_mat_set_prec(struct sotto_tensor * y, enum sotto_prec prec) {
    bool known = prec == SOTTO_PREC_DEFAULT || prec == SOTTO_PREC_F32;
    return set_word(y, 0, (int32_t)prec, known, "sotto_mul_mat_set_prec");
}

enum sotto_status sotto_mul_mat_set_hint(struct sotto_tensor * y, enum sotto_op_hint hint) {
    bool known = hint == SOTTO_OP_HINT_NONE || hint == SOTTO_OP_HINT_SRC0_IS_HADAMARD;
    return set_word(y, 1, (int32_t)hint, known, "sotto_mul_mat_set_hint");
}

/* ---- mul_mat_id ---- */

enum sotto_status sotto_i_shape_mul_mat_id(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * b = args->src[1];
    const struct sotto_tensor * ids = args->src[2];
    if (ids->type != SOTTO_TYPE_I32) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "ids is %s, must be i32", sotto_type_name(ids->type));
    }
    const enum sotto_status status = check_factors(args, ctx);
    if (status != SOTTO_OK) {
        return status;
    }
    if (a->ne[3] != 1 || b->ne[3] != 1 || ids->ne[2] != 1 || ids->ne[3] != 1 || ids->ne[1] != b->ne[2] ||
        !sotto_i_divides(b->ne[1], ids->ne[0])) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE,
                       "as " NE_FORMAT ", b " NE_FORMAT ", ids " NE_FORMAT
                       " must be [k, n, E], [k, U', t], [U, t] with "
                       "U a multiple of U'",
                       NE_OF(a), NE_OF(b), NE_OF(ids));
    }
    args->type = SOTTO_TYPE_F32;
    args->ne[0] = a->ne[1];
    args->ne[1] = ids->ne[0];
    args->ne[2] = ids->ne[1];
    args->ne[3] = 1;
    return SOTTO_OK;
}

struct sotto_tensor * sotto_mul_mat_id(struct sotto_context * ctx, struct sotto_tensor * as, struct sotto_tensor * b,
                                       struct sotto_tensor * ids) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = "sotto_mul_mat_id",
                                  .op = SOTTO_OP_MUL_MAT_ID,
                                  .src = { as, b, ids },
                                  .src_name = { "as", "b", "ids" },
                              });
}
