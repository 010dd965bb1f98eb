/* SPDX-License-Identifier: MIT */
/* Builders of copies: dup, cpy, cast, cont. */
#include "core/op.h"

/* ---- dup ---- */

enum sotto_status sotto_i_shape_dup(struct op_args * args, struct sotto_context * ctx) {
    (void)ctx;
    sotto_i_result(args, args->src[0]->type, args->src[0]);
    return SOTTO_OK;
}

struct sotto_tensor * sotto_dup(struct sotto_context * ctx, struct sotto_tensor * a) {
    return sotto_i_build(ctx, &(struct op_args){ .function = "sotto_dup", .op = SOTTO_OP_DUP, .src = { a } });
}

struct sotto_tensor * sotto_dup_inplace(struct sotto_context * ctx, struct sotto_tensor * a) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = "sotto_dup_inplace",
                                  .op = SOTTO_OP_DUP,
                                  .src = { a },
                                  .inplace = true,
                              });
}

/* ---- cpy and cast ---- */

static bool quantised(enum sotto_type type) { return sotto_get_type_traits(type)->is_quantized; }

static bool convertible(enum sotto_type from, enum sotto_type to) {
    if (from == to) {
        return true;
    }
    if (sotto_i_is_float_type(from)) {
        return sotto_i_is_float_type(to) || (quantised(to) && sotto_i_takes_float_rows(to)) ||
               (from == SOTTO_TYPE_F32 && to == SOTTO_TYPE_I32);
    }
    return to == SOTTO_TYPE_F32 && (from == SOTTO_TYPE_I32 || (quantised(from) && sotto_i_gives_float_rows(from)));
}

static enum sotto_status check_types(struct op_args * args, struct sotto_context * ctx, enum sotto_type to) {
    enum sotto_type from = args->src[0]->type;
    enum sotto_status status = sotto_i_type_status(to);
    if (status == SOTTO_OK) {
        status = sotto_i_type_status(from);
    }
    if (status == SOTTO_OK && !convertible(from, to)) {
        status = SOTTO_E_TYPE;
    }
    if (status != SOTTO_OK) {
        return OP_FAIL(ctx, args, status, "there is no copy from %s to %s (type %d)", sotto_type_name(from),
                       sotto_type_name(to), (int)to);
    }
    return SOTTO_OK;
}

/* Blocks can only be copied or made where they lie together. */
static enum sotto_status check_blocks(struct op_args * args, struct sotto_context * ctx) {
    const struct sotto_tensor * a = args->src[0];
    const struct sotto_tensor * b = args->src[1];
    if (!quantised(a->type) && !quantised(b->type)) {
        return SOTTO_OK;
    }
    if (a->ne[0] != b->ne[0] && !sotto_is_contiguous(b)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT,
                       "quantised rows of %lld cannot become rows of %lld in a destination with gaps",
                       (long long)a->ne[0], (long long)b->ne[0]);
    }
    if (!sotto_is_contiguous_rows(a) || !sotto_is_contiguous_rows(b)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "rows must be contiguous where one side is quantised");
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_shape_cpy(struct op_args * args, struct sotto_context * ctx) {
    struct sotto_tensor * a = args->src[0];
    struct sotto_tensor * b = args->src[1];
    enum sotto_status status = check_types(args, ctx, args->cast ? args->want_type : b->type);
    if (status != SOTTO_OK) {
        return status;
    }
    if (args->cast) {
        sotto_i_result(args, args->want_type, a);
        args->name_format = "%s (copy)";
        if (quantised(args->want_type) && !sotto_is_contiguous_rows(a)) {
            return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "rows of a must be contiguous to be quantised");
        }
        return SOTTO_OK;
    }
    if (sotto_nelements(a) != sotto_nelements(b)) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE,
                       "a is " NE_FORMAT " and b is " NE_FORMAT ": they must have as many elements", NE_OF(a),
                       NE_OF(b));
    }
    status = check_blocks(args, ctx);
    if (status != SOTTO_OK) {
        return status;
    }
    if (sotto_i_repeats_itself(b)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "b has a stride of 0 and cannot be written to");
    }
    sotto_i_result(args, b->type, b);
    memcpy(args->nb, b->nb, sizeof(args->nb));
    args->view_of = b;
    return SOTTO_OK;
}

struct sotto_tensor * sotto_cpy(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    struct sotto_tensor * y =
        sotto_i_build(ctx, &(struct op_args){ .function = "sotto_cpy", .op = SOTTO_OP_CPY, .src = { a, b } });
    if (!y) {
        return NULL;
    }
    return b->name[0] ? sotto_format_name(y, "%s (copy of %s)", b->name, a->name)
                      : sotto_format_name(y, "%s (copy)", a->name);
}

struct sotto_tensor * sotto_cast(struct sotto_context * ctx, struct sotto_tensor * a, enum sotto_type type) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = "sotto_cast",
                                  .op = SOTTO_OP_CPY,
                                  .src = { a },
                                  .cast = true,
                                  .want_type = type,
                              });
}

/* ---- cont ---- */

enum sotto_status sotto_i_shape_cont(struct op_args * args, struct sotto_context * ctx) {
    args->name_format = "%s (cont)";
    return sotto_i_result_recount(args, ctx, args->src[0]);
}

static struct sotto_tensor * cont(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                  int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = function,
                                  .op = SOTTO_OP_CONT,
                                  .src = { a },
                                  .want_ne = { ne0, ne1, ne2, ne3 },
                              });
}

struct sotto_tensor * sotto_cont(struct sotto_context * ctx, struct sotto_tensor * a) {
    static const int64_t none[SOTTO_MAX_DIMS];
    const int64_t * ne = a ? a->ne : none;
    return cont(ctx, "sotto_cont", a, ne[0], ne[1], ne[2], ne[3]);
}

struct sotto_tensor * sotto_cont_1d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0) {
    return cont(ctx, "sotto_cont_1d", a, ne0, 1, 1, 1);
}

struct sotto_tensor * sotto_cont_2d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1) {
    return cont(ctx, "sotto_cont_2d", a, ne0, ne1, 1, 1);
}

struct sotto_tensor * sotto_cont_3d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                    int64_t ne2) {
    return cont(ctx, "sotto_cont_3d", a, ne0, ne1, ne2, 1);
}

struct sotto_tensor * sotto_cont_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                    int64_t ne2, int64_t ne3) {
    return cont(ctx, "sotto_cont_4d", a, ne0, ne1, ne2, ne3);
}
