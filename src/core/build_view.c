/* SPDX-License-Identifier: MIT */
/* Builders of views: reshape, view, permute, transpose. Bounds are checked where records are made (tensor.c). */
#include "core/checked.h"
#include "core/op.h"

/* ---- reshape ---- */

enum sotto_status sotto_i_shape_reshape(struct op_args * args, struct sotto_context * ctx) {
    struct sotto_tensor * a = args->src[0];
    if (!sotto_is_contiguous(a)) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "'%s' is not contiguous; use sotto_cont first", a->name);
    }
    args->view_of = a;
    args->name_format = "%s (reshaped)";
    return sotto_i_result_recount(args, ctx, a);
}

static struct sotto_tensor * reshape(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                     int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return sotto_i_build(ctx, &(struct op_args){
                                  .function = function,
                                  .op = SOTTO_OP_RESHAPE,
                                  .src = { a },
                                  .want_ne = { ne0, ne1, ne2, ne3 },
                              });
}

struct sotto_tensor * sotto_reshape(struct sotto_context * ctx, struct sotto_tensor * a, struct sotto_tensor * b) {
    if (!sotto_i_operand(ctx, "sotto_reshape", "b", b)) {
        return NULL;
    }
    return reshape(ctx, "sotto_reshape", a, b->ne[0], b->ne[1], b->ne[2], b->ne[3]);
}

struct sotto_tensor * sotto_reshape_1d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0) {
    return reshape(ctx, "sotto_reshape_1d", a, ne0, 1, 1, 1);
}

struct sotto_tensor * sotto_reshape_2d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1) {
    return reshape(ctx, "sotto_reshape_2d", a, ne0, ne1, 1, 1);
}

struct sotto_tensor * sotto_reshape_3d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                       int64_t ne2) {
    return reshape(ctx, "sotto_reshape_3d", a, ne0, ne1, ne2, 1);
}

struct sotto_tensor * sotto_reshape_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                       int64_t ne2, int64_t ne3) {
    return reshape(ctx, "sotto_reshape_4d", a, ne0, ne1, ne2, ne3);
}

/* ---- view ---- */

enum sotto_status sotto_i_shape_view(struct op_args * args, struct sotto_context * ctx) {
    struct sotto_tensor * a = args->src[0];
    size_t step = sotto_get_type_traits(a->type)->type_size;
    memcpy(args->ne, args->want_ne, sizeof(args->ne));
    memcpy(args->nb, args->want_nb, sizeof(args->nb));
    args->type = a->type;
    args->nb[0] = step;
    args->view_of = a;
    args->view_offs = args->want_offs;
    args->name_format = "%s (view)";
    for (int d = 1; d < SOTTO_MAX_DIMS && step; d++) {
        if (args->nb[d] % step != 0) {
            return OP_FAIL(ctx, args, SOTTO_E_PARAM, "stride nb%d = %zu is no multiple of the %zu bytes of %s", d,
                           args->nb[d], step, sotto_type_name(a->type));
        }
    }
    if (step && args->view_offs % step != 0) {
        return OP_FAIL(ctx, args, SOTTO_E_PARAM, "offset = %zu is no multiple of the %zu bytes of %s", args->view_offs,
                       step, sotto_type_name(a->type));
    }
    return SOTTO_OK;
}

static struct sotto_tensor * view(struct sotto_context * ctx, const char * function, struct sotto_tensor * a,
                                  const int64_t ne[SOTTO_MAX_DIMS], const size_t nb[SOTTO_MAX_DIMS], size_t offset) {
    struct op_args args = { .function = function, .op = SOTTO_OP_VIEW, .src = { a }, .want_offs = offset };
    memcpy(args.want_ne, ne, sizeof(args.want_ne));
    memcpy(args.want_nb, nb, sizeof(args.want_nb));
    struct params_view params = { offset };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

/* Stride of the dimension after one with n steps of nb. Where that overflows, the view is out of bounds anyhow. */
static size_t next_stride(size_t nb, int64_t n) {
    size_t next;
    return n >= 0 && (uint64_t)n <= SIZE_MAX && sotto_i_mul(nb, (size_t)n, &next) ? next : 0;
}

struct sotto_tensor * sotto_view_1d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, size_t offset) {
    const struct sotto_type_traits * row = a ? sotto_get_type_traits(a->type) : NULL;
    size_t nb = row && row->blck_size ? next_stride(row->type_size, ne0 / row->blck_size) : 0;
    return view(ctx, "sotto_view_1d", a, (int64_t[]){ ne0, 1, 1, 1 }, (size_t[]){ 0, nb, nb, nb }, offset);
}

struct sotto_tensor * sotto_view_2d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                    size_t nb1, size_t offset) {
    size_t nb2 = next_stride(nb1, ne1);
    return view(ctx, "sotto_view_2d", a, (int64_t[]){ ne0, ne1, 1, 1 }, (size_t[]){ 0, nb1, nb2, nb2 }, offset);
}

struct sotto_tensor * sotto_view_3d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                    int64_t ne2, size_t nb1, size_t nb2, size_t offset) {
    size_t nb3 = next_stride(nb2, ne2);
    return view(ctx, "sotto_view_3d", a, (int64_t[]){ ne0, ne1, ne2, 1 }, (size_t[]){ 0, nb1, nb2, nb3 }, offset);
}

struct sotto_tensor * sotto_view_4d(struct sotto_context * ctx, struct sotto_tensor * a, int64_t ne0, int64_t ne1,
                                    int64_t ne2, int64_t ne3, size_t nb1, size_t nb2, size_t nb3, size_t offset) {
    return view(ctx, "sotto_view_4d", a, (int64_t[]){ ne0, ne1, ne2, ne3 }, (size_t[]){ 0, nb1, nb2, nb3 }, offset);
}

/* ---- permute ---- */

/* Move dimension d of a to axis[d], a permutation of 0..3. */
static enum sotto_status permuted(struct op_args * args, struct sotto_context * ctx,
                                  const int32_t axis[SOTTO_MAX_DIMS]) {
    struct sotto_tensor * a = args->src[0];
    if (sotto_get_type_traits(a->type)->is_quantized && axis[0] != 0) {
        return OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "dimension 0 of %s holds blocks and must stay in place",
                       sotto_type_name(a->type));
    }
    args->type = a->type;
    args->view_of = a;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        args->ne[axis[d]] = a->ne[d];
        args->nb[axis[d]] = a->nb[d];
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_shape_permute(struct op_args * args, struct sotto_context * ctx) {
    const int32_t * axis = args->params.words;
    unsigned seen = 0;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (axis[d] < 0 || axis[d] >= SOTTO_MAX_DIMS || (seen & (1u << axis[d]))) {
            return OP_FAIL(ctx, args, SOTTO_E_PARAM, "axes (%d, %d, %d, %d) are no permutation of 0, 1, 2, 3",
                           (int)axis[0], (int)axis[1], (int)axis[2], (int)axis[3]);
        }
        seen |= 1u << axis[d];
    }
    args->name_format = "%s (permuted)";
    return permuted(args, ctx, axis);
}

struct sotto_tensor * sotto_permute(struct sotto_context * ctx, struct sotto_tensor * a, int axis0, int axis1,
                                    int axis2, int axis3) {
    struct op_args args = { .function = "sotto_permute", .op = SOTTO_OP_PERMUTE, .src = { a } };
    struct params_permute params = { { axis0, axis1, axis2, axis3 } };
    memcpy(args.params.bytes, &params, sizeof(params));
    return sotto_i_build(ctx, &args);
}

enum sotto_status sotto_i_shape_transpose(struct op_args * args, struct sotto_context * ctx) {
    args->name_format = "%s (transposed)";
    return permuted(args, ctx, (const int32_t[]){ 1, 0, 2, 3 });
}

struct sotto_tensor * sotto_transpose(struct sotto_context * ctx, struct sotto_tensor * a) {
    return sotto_i_build(ctx,
                         &(struct op_args){ .function = "sotto_transpose", .op = SOTTO_OP_TRANSPOSE, .src = { a } });
}
