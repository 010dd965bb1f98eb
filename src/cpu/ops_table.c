/* SPDX-License-Identifier: MIT */
/* The CPU's ops in the order of ops.def. */
#include "cpu/ops_table.h"

#include "core/backend_impl.h"
#include "core/op.h"

/* Views: nothing to compute. */
const struct sotto_i_cpu_op sotto_i_cpu_NONE = { .run = NULL };
const struct sotto_i_cpu_op sotto_i_cpu_RESHAPE = { .run = NULL };
const struct sotto_i_cpu_op sotto_i_cpu_VIEW = { .run = NULL };
const struct sotto_i_cpu_op sotto_i_cpu_PERMUTE = { .run = NULL };
const struct sotto_i_cpu_op sotto_i_cpu_TRANSPOSE = { .run = NULL };

static const struct sotto_i_cpu_op * const table[] = {
#define OP(id, NAME, symbol, min_src, max_src, shape, params, flags) &sotto_i_cpu_##NAME,
#include "core/ops.def"
#undef OP
};

const struct sotto_i_cpu_op * sotto_i_cpu_op_of(const struct sotto_tensor * node) {
    const int index = sotto_i_op_index(node->op);
    return index >= 0 ? table[index] : NULL;
}

/* Packed weights are read by few ops, and only as their first operand. */
static bool may_be_packed(const struct sotto_tensor * node, int slot) {
    switch (node->op) {
    case SOTTO_OP_MUL_MAT:
    case SOTTO_OP_MUL_MAT_ID:
    case SOTTO_OP_GET_ROWS:
    case SOTTO_OP_CPY:
    case SOTTO_OP_CONT:
    case SOTTO_OP_DUP: return slot == 0;
    default: return false;
    }
}

static sotto_backend_buffer_type_t type_of(const struct sotto_tensor * tensor) {
    const struct sotto_tensor * owner = tensor->view_src != NULL ? tensor->view_src : tensor;
    return owner->buffer != NULL ? owner->buffer->buft : NULL;
}

/* No buffer yet, or none at all, is host memory. */
static bool is_host(const struct sotto_tensor * tensor) {
    sotto_backend_buffer_type_t buft = type_of(tensor);
    return buft == NULL || sotto_backend_buft_is_host(buft);
}

/* First operand that lies where this op cannot use it, -1 if none. */
static int unusable_operand(const struct sotto_tensor * node) {
    for (int slot = 0; slot < SOTTO_MAX_SRC; slot++) {
        const struct sotto_tensor * source = node->src[slot];
        if (source == NULL || is_host(source))
            continue;
        if (type_of(source) != sotto_backend_cpu_packed_buffer_type() || !may_be_packed(node, slot))
            return slot;
    }
    return -1;
}

bool sotto_i_cpu_can(const struct sotto_tensor * node) {
    const struct sotto_i_cpu_op * op = sotto_i_cpu_op_of(node);
    if (op == NULL)
        return false;
    return op->run == NULL || (unusable_operand(node) < 0 && is_host(node) && op->supports(node));
}

enum sotto_status sotto_i_cpu_check_op(const struct sotto_tensor * node, const char * function) {
    if (sotto_i_cpu_can(node))
        return SOTTO_OK;
    if (sotto_i_cpu_op_of(node) == NULL)
        return sotto_fail(SOTTO_E_UNSUPPORTED, "%s: node '%s': the CPU backend has no op %d", function, node->name,
                          node->op);
    const int slot = unusable_operand(node);
    if (slot >= 0)
        return sotto_fail(SOTTO_E_UNSUPPORTED,
                          "%s: node '%s' (%s): operand %d, '%s', lies in a buffer of %s, which this op cannot read; "
                          "copy it to a host buffer first",
                          function, node->name, sotto_op_desc(node), slot, node->src[slot]->name,
                          sotto_backend_buft_name(type_of(node->src[slot])));
    if (!is_host(node))
        return sotto_fail(SOTTO_E_UNSUPPORTED,
                          "%s: node '%s' (%s): its result lies in a buffer of %s, which the CPU cannot write to",
                          function, node->name, sotto_op_desc(node), sotto_backend_buft_name(type_of(node)));
    return sotto_fail(SOTTO_E_UNSUPPORTED,
                      "%s: node '%s' (%s): the CPU backend does not compute it for these types or strides "
                      "(result %s, operands %s and %s)",
                      function, node->name, sotto_op_desc(node), sotto_type_name(node->type),
                      node->src[0] != NULL ? sotto_type_name(node->src[0]->type) : "none",
                      node->src[1] != NULL ? sotto_type_name(node->src[1]->type) : "none");
}

/* ---- for ops that work row by row ---- */

#define ROW_CHUNK_ELEMENTS 16384
#define CHUNKS_PER_THREAD  4

void sotto_i_cpu_prepare_rows(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    const int64_t rows = sotto_nrows(node);
    int64_t n = sotto_nelements(node) / ROW_CHUNK_ELEMENTS;
    if (n > (int64_t)n_threads * CHUNKS_PER_THREAD)
        n = (int64_t)n_threads * CHUNKS_PER_THREAD;
    if (n > rows)
        n = rows;
    work->n_chunks = n > 1 ? n : 1;
    work->scratch = 0;
}
