/* SPDX-License-Identifier: MIT */
/* The op table, and the one way in which builders make nodes. */
#include "core/op.h"

#include <stdarg.h>
#include <stdio.h>

#define OP(id, NAME, symbol, min_src, max_src, shape, params, flags)                                    \
    _Static_assert((id) == SOTTO_OP_##NAME, "ops.def and enum sotto_op disagree on " #NAME);            \
    _Static_assert(sizeof(struct params) <= SOTTO_MAX_OP_PARAMS, "parameters of " #NAME " do not fit"); \
    _Static_assert((min_src) <= (max_src) && (max_src) <= SOTTO_MAX_SRC, "impossible sources of " #NAME);
#include "core/ops.def"
#undef OP

static const struct op_row rows[] = {
#define OP(id, NAME, symbol, min_src, max_src, shape, params, flags) \
    { id, #NAME, symbol, min_src, max_src, sotto_i_##shape, flags },
#include "core/ops.def"
#undef OP
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

const int sotto_i_op_count = N_ROWS;

int sotto_i_op_index(int op) {
    for (int i = 0; i < N_ROWS; i++) {
        if (rows[i].id == op) {
            return i;
        }
    }
    return -1;
}

const struct op_row * sotto_i_op_row(int op) {
    int i = sotto_i_op_index(op);
    return i < 0 ? NULL : &rows[i];
}

/* ---- names ---- */

const char * sotto_op_name(enum sotto_op op) {
    const struct op_row * row = sotto_i_op_row((int)op);
    return row ? row->name : "UNKNOWN";
}

const char * sotto_op_symbol(enum sotto_op op) {
    const struct op_row * row = sotto_i_op_row((int)op);
    return row ? row->symbol : "UNKNOWN";
}

const char * sotto_op_desc(const struct sotto_tensor * tensor) {
    if (!tensor) {
        sotto_fail(SOTTO_E_NULLARG, "sotto_op_desc: tensor is NULL");
        return "UNKNOWN";
    }
    if (tensor->op == SOTTO_OP_UNARY) {
        return sotto_unary_op_name(sotto_get_unary_op(tensor));
    }
    return sotto_op_name((enum sotto_op)tensor->op);
}

/* ---- making nodes ---- */

enum sotto_status sotto_i_op_fail(struct sotto_context * ctx, const struct op_args * args, enum sotto_status status,
                                  const char * format, ...) {
    char text[768];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    return sotto_i_context_fail(ctx, status, "%s: %s", args->function, text);
}

bool sotto_i_operand(struct sotto_context * ctx, const char * function, const char * name,
                     const struct sotto_tensor * operand) {
    if (operand) {
        return true;
    }
    if (!ctx || sotto_context_status(ctx) == SOTTO_OK) {
        sotto_i_context_fail(ctx, SOTTO_E_NULLARG, "%s: operand %s is NULL", function, name);
    }
    return false;
}

/* All operands that the row demands are there. */
static bool complete(struct sotto_context * ctx, const struct op_row * row, const struct op_args * args) {
    static const char * const letters[SOTTO_MAX_SRC] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };
    int needed = args->cast && row->id == SOTTO_OP_CPY ? 1 : row->min_src;
    for (int i = 0; i < needed; i++) {
        const char * name = args->src_name[i] ? args->src_name[i] : letters[i];
        if (!sotto_i_operand(ctx, args->function, name, args->src[i])) {
            return false;
        }
    }
    return true;
}

static void name_result(struct sotto_tensor * y, const struct op_args * args) {
    const struct sotto_tensor * named = args->view_of ? args->view_of : args->src[0];
    if (args->name_format && named) {
        sotto_format_name(y, args->name_format, named->name);
    }
}

struct sotto_tensor * sotto_i_build(struct sotto_context * ctx, struct op_args * args) {
    const struct op_row * row = sotto_i_op_row((int)args->op);
    if (!ctx || !row) {
        sotto_i_context_fail(ctx, ctx ? SOTTO_E_INTERNAL : SOTTO_E_NULLARG, "%s: %s", args->function,
                             ctx ? "the op has no row" : "ctx is NULL");
        return NULL;
    }
    if (!complete(ctx, row, args) || row->shape(args, ctx) != SOTTO_OK) {
        return NULL;
    }
    if (args->inplace) {
        args->view_of = args->src[0];
        args->name_format = "%s (view)";
        memcpy(args->nb, args->src[0]->nb, sizeof(args->nb));
        if (sotto_i_repeats_itself(args->src[0])) {
            OP_FAIL(ctx, args, SOTTO_E_LAYOUT, "'%s' has a stride of 0 and cannot be written to", args->src[0]->name);
            return NULL;
        }
    }
    struct sotto_i_shape shape = { .type = args->type, .view_of = args->view_of, .view_offs = args->view_offs };
    memcpy(shape.ne, args->ne, sizeof(shape.ne));
    memcpy(shape.nb, args->nb, sizeof(shape.nb));
    struct sotto_tensor * y = sotto_i_tensor_make(ctx, args->function, &shape);
    if (!y) {
        return NULL;
    }
    y->op = row->id;
    memcpy(y->op_params, args->params.bytes, sizeof(y->op_params));
    memcpy(y->src, args->src, sizeof(y->src));
    if (args->cast && row->id == SOTTO_OP_CPY) {
        y->src[1] = y;
    }
    name_result(y, args);
    return y;
}

/* ---- what shape functions share ---- */

enum sotto_status sotto_i_shape_none(struct op_args * args, struct sotto_context * ctx) {
    return OP_FAIL(ctx, args, SOTTO_E_INTERNAL, "data is not built; it is made with sotto_new_tensor");
}

void sotto_i_result(struct op_args * args, enum sotto_type type, const struct sotto_tensor * t) {
    args->type = type;
    memcpy(args->ne, t->ne, sizeof(args->ne));
}

/* Product of extents; -1 if one is negative or it overflows. */
static int64_t count(const int64_t ne[SOTTO_MAX_DIMS]) {
    int64_t n = 1;
    bool empty = false;
    for (int d = 0; d < SOTTO_MAX_DIMS; d++) {
        if (ne[d] < 0) {
            return -1;
        }
        empty = empty || ne[d] == 0;
    }
    for (int d = 0; d < SOTTO_MAX_DIMS && !empty; d++) {
        if (ne[d] > INT64_MAX / n) {
            return -1;
        }
        n *= ne[d];
    }
    return empty ? 0 : n;
}

enum sotto_status sotto_i_result_recount(struct op_args * args, struct sotto_context * ctx,
                                         const struct sotto_tensor * a) {
    if (count(args->want_ne) != sotto_nelements(a)) {
        return OP_FAIL(ctx, args, SOTTO_E_SHAPE,
                       "[%lld, %lld, %lld, %lld] asked for, but a is " NE_FORMAT
                       ": the number of elements must not change",
                       (long long)args->want_ne[0], (long long)args->want_ne[1], (long long)args->want_ne[2],
                       (long long)args->want_ne[3], NE_OF(a));
    }
    args->type = a->type;
    memcpy(args->ne, args->want_ne, sizeof(args->ne));
    return SOTTO_OK;
}

bool sotto_i_divides(int64_t part, int64_t n) { return part == 0 ? n == 0 : n % part == 0; }

enum sotto_status sotto_i_set_sinks(struct sotto_tensor * y, struct sotto_tensor * sinks, enum sotto_op op, int slot,
                                    int64_t n, const char * function) {
    if (!sinks) {
        y->src[slot] = NULL;
        return SOTTO_OK;
    }
    if (y->src[slot]) {
        return sotto_fail(SOTTO_E_STATE, "%s: '%s' has sinks already; remove them with NULL first", function, y->name);
    }
    if (sinks->type != SOTTO_TYPE_F32) {
        return sotto_fail(SOTTO_E_TYPE, "%s: sinks are %s, must be f32", function, sotto_type_name(sinks->type));
    }
    if (!sotto_is_vector(sinks) || sinks->ne[0] != n) {
        return sotto_fail(SOTTO_E_SHAPE, "%s: sinks are " NE_FORMAT ", but %s has %lld heads", function, NE_OF(sinks),
                          sotto_op_name(op), (long long)n);
    }
    if (!sotto_is_contiguous(sinks)) {
        return sotto_fail(SOTTO_E_LAYOUT, "%s: sinks are not contiguous; use sotto_cont", function);
    }
    y->src[slot] = sinks;
    return SOTTO_OK;
}
