/* SPDX-License-Identifier: MIT */
/* The op table, and how a builder makes a node.
 *
 * A builder fills `struct op_args` and calls sotto_i_build: that checks NULL operands and the sticky error, lets
 * the row's shape function check everything else and describe the result, and only then takes arena memory. So a
 * refused builder leaves the context as it was. */
#ifndef SOTTO_CORE_OP_H
#define SOTTO_CORE_OP_H

#include <string.h>

#include "core/tensor_impl.h"
#include "sotto/ops.h"

/* What a shape function reads and writes. */
struct op_args {
    const char * function; /* the builder's name, for messages */
    enum sotto_op op;      /* row */
    struct sotto_tensor * src[SOTTO_MAX_SRC];
    const char * src_name[SOTTO_MAX_SRC]; /* operand names for messages, "a", "b", ... */
    bool inplace;                         /* result is a view of src[0] */
    bool cast;                            /* result of want_type; with CPY a fresh tensor, which is its own src[1] */
    int64_t want_ne[SOTTO_MAX_DIMS];      /* shape asked for by the caller, where the op takes one */
    size_t want_nb[SOTTO_MAX_DIMS];       /* strides asked for (views) */
    size_t want_offs;                     /* byte offset asked for (views) */
    enum sotto_type want_type;            /* result type asked for (cast, im2col) */
    union {
        int32_t words[SOTTO_MAX_OP_PARAMS / sizeof(int32_t)];
        char bytes[SOTTO_MAX_OP_PARAMS];
    } params; /* copied into op_params */

    /* set by the shape function */
    enum sotto_type type;
    int64_t ne[SOTTO_MAX_DIMS];
    size_t nb[SOTTO_MAX_DIMS];     /* all 0: dense; in place: src[0]'s */
    struct sotto_tensor * view_of; /* NULL: a fresh tensor */
    size_t view_offs;              /* relative to view_of's data */
    const char * name_format;      /* NULL, or a format with one %s for a name, view_of's or else src[0]'s */
};

/* Parameter structs, copied into op_params as they are (sizes asserted in op.c). */
struct params_none {
    char unused;
};
struct params_eps {
    float eps;
};
struct params_mul_mat {
    int32_t prec, hint;
};
struct params_scale {
    float scale, bias;
};
struct params_view {
    size_t offset;
};
struct params_permute {
    int32_t axis[4];
};
struct params_soft_max {
    float scale, max_bias;
};
struct params_im2col {
    int32_t s0, s1, p0, p1, d0, d1, is_2D;
};
struct params_flash_attn_ext {
    float scale, max_bias, logit_softcap;
    int32_t prec;
};
struct params_unary {
    int32_t op;
};
struct params_attn_rows {
    float scale;
};

/* Copy a node's parameters out of op_params. */
#define OP_PARAMS(name, tensor, variable) \
    struct params_##name variable;        \
    memcpy(&variable, (tensor)->op_params, sizeof(variable))

enum op_flags { OP_VIEW = 1, OP_INPLACE = 2 };

struct op_row {
    int id;
    const char * name;
    const char * symbol;
    int min_src, max_src;
    enum sotto_status (*shape)(struct op_args * args, struct sotto_context * ctx);
    unsigned flags;
};

/* The row of an op, NULL if there is none. Index of a row in [0, sotto_i_op_count), -1 if none: other modules keep
 * tables of the same length, made from ops.def. */
const struct op_row * sotto_i_op_row(int op);
int sotto_i_op_index(int op);
extern const int sotto_i_op_count;

/* Make the node, or record the first fault and return NULL. */
struct sotto_tensor * sotto_i_build(struct sotto_context * ctx, struct op_args * args);

/* For shape functions: fail with "<function>: <message>". */
#define OP_FAIL(ctx, args, code, ...) sotto_i_op_fail(ctx, args, code, __VA_ARGS__)
enum sotto_status sotto_i_op_fail(struct sotto_context * ctx, const struct op_args * args, enum sotto_status status,
                                  const char * format, ...) SOTTO_PRINTF(4, 5);

/* Shapes in messages: OP_FAIL(..., "a is " NE_FORMAT, NE_OF(a)). */
#define NE_FORMAT "[%lld, %lld, %lld, %lld]"
#define NE_OF(t)  (long long)(t)->ne[0], (long long)(t)->ne[1], (long long)(t)->ne[2], (long long)(t)->ne[3]

/* For builders: an operand that no row sees is there; NULLARG otherwise, quietly if the context is in error. */
bool sotto_i_operand(struct sotto_context * ctx, const char * function, const char * name,
                     const struct sotto_tensor * operand);
/* The result has t's extents and the given type. */
void sotto_i_result(struct op_args * args, enum sotto_type type, const struct sotto_tensor * t);
/* The result has want_ne, which must hold as many elements as `a`: SHAPE. */
enum sotto_status sotto_i_result_recount(struct op_args * args, struct sotto_context * ctx,
                                         const struct sotto_tensor * a);
/* n is a multiple of part; 0 only of anything if n is 0, too. */
bool sotto_i_divides(int64_t part, int64_t n);
/* Fill an extra source slot of a finished node, or empty it: STATE for another op or a filled slot, SHAPE unless f32
 * of `count` elements. */
enum sotto_status sotto_i_set_sinks(struct sotto_tensor * y, struct sotto_tensor * sinks, enum sotto_op op, int slot,
                                    int64_t count, const char * function);

/* Shape functions, one per distinct name in ops.def. */
#define OP(id, NAME, symbol, min_src, max_src, shape, params, flags) \
    enum sotto_status sotto_i_##shape(struct op_args * args, struct sotto_context * ctx);
#include "core/ops.def"
#undef OP

#endif
