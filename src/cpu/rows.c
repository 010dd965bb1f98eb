/* SPDX-License-Identifier: MIT */
/* Walking tensors in pieces of rows, and pieces of any type as floats: see rows.h. */
#include <math.h>
#include <string.h>

#include "core/tensor_impl.h"
#include "cpu/packed.h"
#include "cpu/rows.h"

struct sotto_i_operand sotto_i_as_operand(const struct sotto_tensor * tensor) {
    struct sotto_i_operand op = { .data = tensor->data, .type = tensor->type };
    memcpy(op.ne, tensor->ne, sizeof(op.ne));
    memcpy(op.nb, tensor->nb, sizeof(op.nb));
    op.size = sotto_type_size(tensor->type);
    const int64_t block = sotto_blck_size(tensor->type);
    if (block > 1)
        op.ne[0] /= block;
    return op;
}

char * sotto_i_operand_row(const struct sotto_i_operand * op, int64_t i1, int64_t i2, int64_t i3) {
    const int64_t i[SOTTO_MAX_DIMS] = { 0, i1, i2, i3 };
    char * row = op->data;
    for (int d = 1; d < SOTTO_MAX_DIMS; d++) {
        const int64_t at = i[d] < op->ne[d] ? i[d] : i[d] % op->ne[d];
        row += (size_t)at * op->nb[d];
    }
    return row;
}

/* ---- elements as floats ---- */

static int32_t to_i32(float x) {
    if (isnan(x))
        return 0;
    if (x >= 0x1p31f)
        return INT32_MAX;
    return x < -0x1p31f ? INT32_MIN : (int32_t)x;
}

static float load_one(enum sotto_type type, const char * p) {
    switch (type) {
    case SOTTO_TYPE_F16: return sotto_fp16_to_fp32(*(const uint16_t *)p);
    case SOTTO_TYPE_BF16: return sotto_bf16_to_fp32(*(const sotto_bf16_t *)p);
    case SOTTO_TYPE_I32: return (float)*(const int32_t *)p;
    default: return *(const float *)p;
    }
}

static void store_one(enum sotto_type type, char * p, float x) {
    switch (type) {
    case SOTTO_TYPE_F16: *(uint16_t *)p = sotto_fp32_to_fp16(x); break;
    case SOTTO_TYPE_BF16: *(sotto_bf16_t *)p = sotto_fp32_to_bf16(x); break;
    case SOTTO_TYPE_I32: *(int32_t *)p = to_i32(x); break;
    default: *(float *)p = x; break;
    }
}

/* n elements from p on, no wrapping; `buffer` or p itself */
static const float * load_run(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * op, const char * p,
                              int64_t n, float * buffer) {
    const bool dense = op->nb[0] == op->size || n == 1;
    if (dense && op->type == SOTTO_TYPE_F32)
        return (const float *)p;
    if (op->type == SOTTO_TYPE_F32)
        sotto_i_copy_strided(p, op->nb[0], (char *)buffer, sizeof(float), sizeof(float), n);
    else if (dense && op->type == SOTTO_TYPE_F16)
        k->f16_to_f32((const uint16_t *)p, buffer, n);
    else if (dense && op->type == SOTTO_TYPE_BF16)
        k->bf16_to_f32((const uint16_t *)p, buffer, n);
    else
        for (int64_t i = 0; i < n; i++)
            buffer[i] = load_one(op->type, p + (size_t)i * op->nb[0]);
    return buffer;
}

const float * sotto_i_load(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * op, const char * row,
                           int64_t first, int64_t n, float * buffer) {
    if (n == 0)
        return buffer;
    const int64_t width = op->ne[0];
    int64_t at = first < width ? first : first % width;
    if (at + n <= width)
        return load_run(k, op, row + (size_t)at * op->nb[0], n, buffer);
    if (width == 1) {
        const float x = load_one(op->type, row);
        for (int64_t i = 0; i < n; i++)
            buffer[i] = x;
        return buffer;
    }
    for (int64_t done = 0; done < n;) {
        const int64_t run = width - at < n - done ? width - at : n - done;
        const float * x = load_run(k, op, row + (size_t)at * op->nb[0], run, buffer + done);
        if (x != buffer + done)
            memcpy(buffer + done, x, (size_t)run * sizeof(*x));
        done += run;
        at = 0;
    }
    return buffer;
}

float * sotto_i_target(const struct sotto_i_operand * op, char * row, int64_t first, float * buffer) {
    if (op->type != SOTTO_TYPE_F32 || op->nb[0] != sizeof(float))
        return buffer;
    return (float *)row + first;
}

void sotto_i_store(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * op, char * row, int64_t first,
                   int64_t n, const float * values) {
    char * p = row + (size_t)first * op->nb[0];
    const bool dense = op->nb[0] == op->size || n == 1;
    if (dense && op->type == SOTTO_TYPE_F32) {
        if ((const char *)values != p)
            memcpy(p, values, (size_t)n * sizeof(*values));
    } else if (dense && op->type == SOTTO_TYPE_F16) {
        k->f32_to_f16(values, (uint16_t *)p, n);
    } else if (dense && op->type == SOTTO_TYPE_BF16) {
        k->f32_to_bf16(values, (uint16_t *)p, n);
    } else {
        for (int64_t i = 0; i < n; i++)
            store_one(op->type, p + (size_t)i * op->nb[0], values[i]);
    }
}

#define COPY_SIZE(size)             \
    for (int64_t i = 0; i < n; i++) \
    memcpy(to + (size_t)i * to_stride, from + (size_t)i * from_stride, size)

void sotto_i_copy_strided(const char * from, size_t from_stride, char * to, size_t to_stride, size_t size, int64_t n) {
    if (from_stride == size && to_stride == size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: COPY_SIZE(1); break;
    case 2: COPY_SIZE(2); break;
    case 4: COPY_SIZE(4); break;
    case 8: COPY_SIZE(8); break;
    default: COPY_SIZE(size); break;
    }
}

/* ---- rows of any type ---- */

bool sotto_i_is_quantised(enum sotto_type type) { return sotto_get_type_traits(type)->is_quantized; }

bool sotto_i_is_decodable(enum sotto_type type) {
    return sotto_i_is_weight_type(type) && sotto_i_gives_float_rows(type);
}

bool sotto_i_is_encodable(enum sotto_type type) { return sotto_i_takes_float_rows(type); }

sotto_i_encode_fn sotto_i_encoder(enum sotto_type type) {
    const struct sotto_type_traits * traits = sotto_get_type_traits(type);
    return traits->is_quantized ? traits->from_float_ref : NULL;
}

size_t sotto_i_row_bytes(enum sotto_type type, int64_t at) {
    const struct sotto_type_traits * traits = sotto_get_type_traits(type);
    return (size_t)(at / traits->blck_size) * traits->type_size;
}

/* ---- walking ---- */

/* Whether dimensions d and d + 1 are one for this operand: no gap between them and no tiling in either, or both
 * standing still. */
static bool is_one(const struct sotto_i_walk * walk, const struct sotto_i_operand * op, int d) {
    if (op->ne[d] == 1 && op->ne[d + 1] == 1)
        return true;
    if (op->ne[d] != walk->ne[d] || op->ne[d + 1] != walk->ne[d + 1])
        return false;
    return walk->ne[d] == 1 || walk->ne[d + 1] == 1 || op->nb[d + 1] == (size_t)op->ne[d] * op->nb[d];
}

static void merge(struct sotto_i_walk * walk, int d) {
    for (int k = 0; k < walk->n; k++) {
        struct sotto_i_operand * op = &walk->op[k];
        if (op->ne[d] == 1)
            op->nb[d] = op->nb[d + 1];
        op->ne[d] *= op->ne[d + 1];
        for (int e = d + 1; e < SOTTO_MAX_DIMS - 1; e++) {
            op->ne[e] = op->ne[e + 1];
            op->nb[e] = op->nb[e + 1];
        }
        op->ne[SOTTO_MAX_DIMS - 1] = 1;
    }
    walk->ne[d] *= walk->ne[d + 1];
    for (int e = d + 1; e < SOTTO_MAX_DIMS - 1; e++)
        walk->ne[e] = walk->ne[e + 1];
    walk->ne[SOTTO_MAX_DIMS - 1] = 1;
}

static void swap_01(int64_t ne[SOTTO_MAX_DIMS]) {
    const int64_t n = ne[0];
    ne[0] = ne[1];
    ne[1] = n;
}

static void swap_short_row(struct sotto_i_walk * walk) {
    if (walk->ne[0] >= 8 || walk->ne[1] < 4 * walk->ne[0])
        return;
    swap_01(walk->ne);
    for (int k = 0; k < walk->n; k++) {
        struct sotto_i_operand * op = &walk->op[k];
        swap_01(op->ne);
        const size_t nb = op->nb[0];
        op->nb[0] = op->nb[1];
        op->nb[1] = nb;
    }
}

static bool all_one(const struct sotto_i_walk * walk, int d) {
    for (int k = 0; k < walk->n; k++)
        if (!is_one(walk, &walk->op[k], d))
            return false;
    return true;
}

void sotto_i_walk_init(struct sotto_i_walk * walk, const struct sotto_tensor * y, const struct sotto_tensor * a,
                       const struct sotto_tensor * b) {
    memset(walk, 0, sizeof(*walk));
    walk->op[0] = sotto_i_as_operand(y);
    walk->op[1] = sotto_i_as_operand(a);
    walk->n = 2;
    if (b)
        walk->op[walk->n++] = sotto_i_as_operand(b);
    memcpy(walk->ne, walk->op[0].ne, sizeof(walk->ne));
    for (int d = SOTTO_MAX_DIMS - 2; d >= 0; d--)
        if (all_one(walk, d))
            merge(walk, d);
    swap_short_row(walk);
    walk->units = (walk->ne[0] + SOTTO_I_PIECE - 1) / SOTTO_I_PIECE * walk->ne[1] * walk->ne[2] * walk->ne[3];
}

static void set_rows(struct sotto_i_walk * walk) {
    for (int k = 0; k < walk->n; k++)
        walk->row[k] = sotto_i_operand_row(&walk->op[k], walk->at[1], walk->at[2], walk->at[3]);
}

static void set_len(struct sotto_i_walk * walk) {
    const int64_t left = walk->ne[0] - walk->at[0];
    walk->len = left < SOTTO_I_PIECE ? left : SOTTO_I_PIECE;
}

void sotto_i_walk_seek(struct sotto_i_walk * walk, int64_t unit) {
    const int64_t pieces = (walk->ne[0] + SOTTO_I_PIECE - 1) / SOTTO_I_PIECE;
    int64_t rest = unit / pieces;
    walk->at[0] = unit % pieces * SOTTO_I_PIECE;
    for (int d = 1; d < SOTTO_MAX_DIMS; d++) {
        walk->at[d] = rest % walk->ne[d];
        rest /= walk->ne[d];
    }
    set_rows(walk);
    set_len(walk);
}

void sotto_i_walk_next(struct sotto_i_walk * walk) {
    walk->at[0] += SOTTO_I_PIECE;
    if (walk->at[0] >= walk->ne[0]) {
        walk->at[0] = 0;
        for (int d = 1; d < SOTTO_MAX_DIMS && ++walk->at[d] == walk->ne[d]; d++)
            walk->at[d] = 0;
        set_rows(walk);
    }
    set_len(walk);
}

/* ---- element-wise ops ---- */

bool sotto_i_none_packed(const struct sotto_tensor * node) {
    for (int i = 0; i < SOTTO_MAX_SRC; i++)
        if (node->src[i] && sotto_i_is_packed(node->src[i]))
            return false;
    return !sotto_i_is_packed(node);
}

void sotto_i_prepare_units(int64_t n, int64_t elements, int n_threads, struct sotto_i_cpu_work * work) {
    int64_t chunks = elements / 16384;
    if (chunks > 4 * (int64_t)n_threads)
        chunks = 4 * (int64_t)n_threads;
    if (n_threads == 1 || chunks < 1)
        chunks = 1;
    work->n_chunks = chunks < n ? chunks : n > 0 ? n : 1;
    work->scratch = 0;
}

void sotto_i_prepare_map(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work) {
    struct sotto_i_walk walk;
    sotto_i_walk_init(&walk, node, node->src[0], node->src[1]);
    sotto_i_prepare_units(walk.units, sotto_nelements(node), n_threads, work);
}

enum sotto_status sotto_i_run_map(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                  int64_t n_chunks, sotto_i_map_fn f, const void * params) {
    const struct sotto_i_vec_kernels * k = &task->kernels->vec;
    struct sotto_i_walk w;
    int64_t unit, last;
    sotto_i_walk_init(&w, node, node->src[0], NULL);
    sotto_i_chunk_range(w.units, chunk, n_chunks, &unit, &last);
    if (unit == last)
        return SOTTO_OK;
    float buffer[SOTTO_I_PIECE];
    for (sotto_i_walk_seek(&w, unit); unit < last; unit++, sotto_i_walk_next(&w)) {
        const float * x = sotto_i_load(k, &w.op[1], w.row[1], w.at[0], w.len, buffer);
        float * y = sotto_i_target(&w.op[0], w.row[0], w.at[0], buffer);
        f(k, x, y, w.len, params);
        sotto_i_store(k, &w.op[0], w.row[0], w.at[0], w.len, y);
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_run_map2(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                   int64_t n_chunks, sotto_i_map2_fn f) {
    const struct sotto_i_vec_kernels * k = &task->kernels->vec;
    struct sotto_i_walk w;
    int64_t unit, last;
    sotto_i_walk_init(&w, node, node->src[0], node->src[1]);
    sotto_i_chunk_range(w.units, chunk, n_chunks, &unit, &last);
    if (unit == last)
        return SOTTO_OK;
    float a_buffer[SOTTO_I_PIECE], b_buffer[SOTTO_I_PIECE];
    for (sotto_i_walk_seek(&w, unit); unit < last; unit++, sotto_i_walk_next(&w)) {
        const float * a = sotto_i_load(k, &w.op[1], w.row[1], w.at[0], w.len, a_buffer);
        const float * b = sotto_i_load(k, &w.op[2], w.row[2], w.at[0], w.len, b_buffer);
        float * y = sotto_i_target(&w.op[0], w.row[0], w.at[0], a_buffer);
        f(k, a, b, y, w.len);
        sotto_i_store(k, &w.op[0], w.row[0], w.at[0], w.len, y);
    }
    return SOTTO_OK;
}
