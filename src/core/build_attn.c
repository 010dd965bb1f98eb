/* SPDX-License-Identifier: MIT */
/* Builders of attention: flash_attn_ext, and attn_rows over a pool of cache rows. */
#include "core/op.h"

/* LAYOUT unless rows of the first n operands are contiguous. */
static enum sotto_status want_rows(struct op_args * args, struct sotto_context * ctx, int n) {
    for (int i = 0; i < n; i++) {
        if (args->src[i] && !sotto_is_contiguous_rows(args->src[i])) {
            return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "rows of %s are not contiguous; use sotto_cont first",
                           args->src_name[i]);
        }
    }
    return SOTTO_OK;
}

/* ---- flash_attn_ext ---- */

static enum sotto_status check_flash_mask(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * q = args->src[0];
    const struct sotto_tensor * k = args->src[1];
    const struct sotto_tensor * mask = args->src[3];
    struct params_flash_attn_ext params;
    memcpy(&params, args->params.bytes, sizeof(params));
    if (!mask) {
        if (params.max_bias <= 0.0f) {
            return SOTTO_OK;
        }
        return OP_FAIL(ctx, args, SOTTO_E_PARAM, "max_bias = %g needs a mask", (double)params.max_bias);
    }
    if (mask->type != SOTTO_TYPE_F16) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "mask is %s, must be f16", sotto_type_name(mask->type));
    }
    if (!sotto_is_contiguous(mask)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "mask is not contiguous; use sotto_cont first");
    }
    if (mask->ne[0] < k->ne[1] || mask->ne[1] < q->ne[1] || !sotto_i_divides(mask->ne[2], q->ne[2]) ||
        !sotto_i_divides(mask->ne[3], q->ne[3])) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "mask " NE_FORMAT " does not cover %lld keys and q " NE_FORMAT,
                       NE_OF(mask), (long long)k->ne[1], NE_OF(q));
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_shape_flash_attn_ext(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * q = args->src[0];
    const struct sotto_tensor * k = args->src[1];
    const struct sotto_tensor * v = args->src[2];
    if (q->type != SOTTO_TYPE_F32 || !sotto_i_is_weight_type(k->type) || !sotto_i_is_weight_type(v->type)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE,
                       "q is %s, k %s, v %s; q must be f32, k and v may be f32, f16, bf16 or quantised",
                       sotto_type_name(q->type), sotto_type_name(k->type), sotto_type_name(v->type));
    }
    if (q->ne[0] != k->ne[0] || k->ne[1] != v->ne[1] || !sotto_i_divides(k->ne[2], q->ne[2]) ||
        !sotto_i_divides(v->ne[2], q->ne[2]) || q->ne[3] != k->ne[3] || q->ne[3] != v->ne[3]) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE, "q " NE_FORMAT ", k " NE_FORMAT ", v " NE_FORMAT " do not fit",
                       NE_OF(q), NE_OF(k), NE_OF(v));
    }
    enum sotto_status status = want_rows(args, ctx, 3);
    if (status == SOTTO_OK) {
        status = check_flash_mask(args, ctx);
    }
    args->type = SOTTO_TYPE_F32;
    args->ne[0] = v->ne[0];
    args->ne[1] = q->ne[2];
    args->ne[2] = q->ne[1];
    args->ne[3] = q->ne[3];
    return status;
}

struct sotto_tensor * sotto_flash_attn_ext(struct sotto_context * ctx, struct sotto_tensor * q, struct sotto_tensor * k,
                                           struct sotto_tensor * v, struct sotto_tensor * mask, float scale,
                                           float max_bias, float logit_softcap) {
    struct op_args args = {
        .function = "sotto_flash_attn_ext",
        .op = SOTTO_OP_FLASH_ATTN_EXT,
        .src = { q, k, v, mask },
        .src_name = { "q", "k", "v", "mask", "sinks" },
    };
    struct params_flash_attn_ext params = { scale, max_bias, logit_softcap, SOTTO_PREC_DEFAULT };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

/* NULLARG, or STATE for a tensor that another op makes. */
static enum sotto_status want_flash(const struct sotto_tensor * y, const char * function) {
    if (!y) {
        return sotto_fail(SOTTO_E_NULLARG, "%s: y is NULL", function);
    }
    if (y->op != SOTTO_OP_FLASH_ATTN_EXT) {
        return sotto_fail(SOTTO_E_STATE, "%s: '%s' is no flash_attn_ext", function, y->name);
    }
    return SOTTO_OK;
}

enum sotto_status sotto_flash_attn_ext_set_prec(struct sotto_tensor * y, enum sotto_prec prec) {
    enum sotto_status status = want_flash(y, "sotto_flash_attn_ext_set_prec");
    if (status != SOTTO_OK) {
        return status;
    }
    if (prec != SOTTO_PREC_DEFAULT && prec != SOTTO_PREC_F32) {
        return sotto_fail(SOTTO_E_PARAM, "sotto_flash_attn_ext_set_prec: %d is not in the list", (int)prec);
    }
    OP_PARAMS(flash_attn_ext, y, params);
    params.prec = (int32_t)prec;
    memcpy(y->op_params, &params, sizeof(params));
    return SOTTO_OK;
}

enum sotto_prec sotto_flash_attn_ext_get_prec(const struct sotto_tensor * y) {
    if (want_flash(y, "sotto_flash_attn_ext_get_prec") != SOTTO_OK) {
        return SOTTO_PREC_DEFAULT;
    }
    OP_PARAMS(flash_attn_ext, y, params);
    return (enum sotto_prec)params.prec;
}

enum sotto_status sotto_flash_attn_ext_add_sinks(struct sotto_tensor * y, struct sotto_tensor * sinks) {
    enum sotto_status status = want_flash(y, "sotto_flash_attn_ext_add_sinks");
    if (status != SOTTO_OK) {
        return status;
    }
    return sotto_i_set_sinks(y, sinks, SOTTO_OP_FLASH_ATTN_EXT, 4, y->ne[1], "sotto_flash_attn_ext_add_sinks");
}

/* ---- attn_rows ---- */

enum { Q, K, V, TABLE, SEQ, LEN, N_OPERANDS };

static enum sotto_status check_attn_types(struct op_args * args, struct sotto_context * ctx) {
    struct sotto_tensor ** src = args->src;
    if (src[Q]->type != SOTTO_TYPE_F32 || !sotto_i_is_float_type(src[K]->type) ||
        !sotto_i_is_float_type(src[V]->type)) {
        return OP_FAIL(ctx, args, SOTTO_E_TYPE, "q is %s, k %s, v %s; q must be f32, k and v may be f32, f16 or bf16",
                       sotto_type_name(src[Q]->type), sotto_type_name(src[K]->type), sotto_type_name(src[V]->type));
    }
    for (int i = TABLE; i < N_OPERANDS; i++) {
        if (src[i]->type != SOTTO_TYPE_I32) {
            return OP_FAIL(ctx, args, SOTTO_E_TYPE, "%s is %s, must be i32", args->src_name[i],
                           sotto_type_name(src[i]->type));
        }
    }
    return SOTTO_OK;
}

/* Keys may also lie position by position: element l of all rows side by side, then element l + 1. */
static enum sotto_status check_attn_layout(struct op_args * args, struct sotto_context * ctx) {
    struct sotto_tensor * k = args->src[K];
    const bool across = k->nb[2] == sotto_type_size(k->type);
    args->src[K] = across ? NULL : k;
    const enum sotto_status status = want_rows(args, ctx, N_OPERANDS);
    args->src[K] = k;
    return status;
}

enum sotto_status sotto_i_shape_attn_rows(struct op_args * args, struct sotto_context * ctx) {
    struct sotto_tensor ** src = args->src;
    const int64_t * q = src[Q]->ne;
    const int64_t * k = src[K]->ne;
    const int64_t * v = src[V]->ne;
    enum sotto_status status = check_attn_types(args, ctx);
    if (status != SOTTO_OK) {
        return status;
    }
    if (q[3] != 1 || k[3] != 1 || v[3] != 1 || q[0] != k[0] || q[1] != k[1] || q[1] != v[1] || k[2] != v[2]) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE,
                       "q " NE_FORMAT ", k " NE_FORMAT ", v " NE_FORMAT " must be [D, H, n], [D, H, R], [Dv, H, R]",
                       NE_OF(src[Q]), NE_OF(src[K]), NE_OF(src[V]));
    }
    if (!sotto_is_matrix(src[TABLE]) || !sotto_is_vector(src[SEQ]) || !sotto_is_vector(src[LEN]) ||
        src[SEQ]->ne[0] != q[2] || src[LEN]->ne[0] != q[2]) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE,
                       "table " NE_FORMAT ", seq " NE_FORMAT ", len " NE_FORMAT " must be [L, S], [n], [n] with n = "
                       "%lld",
                       NE_OF(src[TABLE]), NE_OF(src[SEQ]), NE_OF(src[LEN]), (long long)q[2]);
    }
    args->type = SOTTO_TYPE_F32;
    args->ne[0] = v[0];
    args->ne[1] = q[1];
    args->ne[2] = q[2];
    args->ne[3] = 1;
    return check_attn_layout(args, ctx);
}

struct sotto_tensor * sotto_attn_rows(struct sotto_context * ctx, struct sotto_tensor * q, struct sotto_tensor * k,
                                      struct sotto_tensor * v, struct sotto_tensor * table, struct sotto_tensor * seq,
                                      struct sotto_tensor * len, float scale) {
    struct op_args args = {
        .function = "sotto_attn_rows",
        .op = SOTTO_OP_ATTN_ROWS,
        .src = { q, k, v, table, seq, len },
        .src_name = { "q", "k", "v", "table", "seq", "len" },
    };
    struct params_attn_rows params = { scale };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}
