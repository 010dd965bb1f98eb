/* SPDX-License-Identifier: MIT */
/* What all ops on elements and rows share: types, strides, broadcasting, pieces.
 *
 * An element-wise op walks its result and operands together in pieces of at most SOTTO_I_PIECE elements of a row. A
 * piece is handed to the op as floats: where they lie if they are dense f32, else converted in a small buffer. So an
 * op is a loop over floats and knows nothing else:
 *
 *     static void square(const struct sotto_i_vec_kernels * k, const float * x, float * y, int64_t n, const void * p)
 *     { k->mul(x, x, y, n); }
 *     ... return sotto_i_run_map(task, node, chunk, n_chunks, square, NULL);
 *
 * Where the operands allow it, dimensions are merged first, and a very short dimension 0 changes places with a longer
 * dimension 1, so that pieces are long. */
#ifndef SOTTO_CPU_ROWS_H
#define SOTTO_CPU_ROWS_H

#include "cpu/cpu_impl.h"
#include "cpu/kernels.h"

enum { SOTTO_I_PIECE = 1024, SOTTO_I_WALK_OPERANDS = 3 };

/* A tensor's type, extents and strides; those of blocks if the type has blocks and nobody looks inside. */
struct sotto_i_operand {
    char * data;
    enum sotto_type type;
    size_t size; /* bytes of an element */
    int64_t ne[SOTTO_MAX_DIMS];
    size_t nb[SOTTO_MAX_DIMS];
};
struct sotto_i_operand sotto_i_as_operand(const struct sotto_tensor * tensor);

/* First byte of row (i1, i2, i3), each index taken modulo the operand's extent. */
char * sotto_i_operand_row(const struct sotto_i_operand * op, int64_t i1, int64_t i2, int64_t i3);

/* Elements [first, first + n) of a row as floats, indices taken modulo its length: the row's own memory if it can be,
 * else `buffer` of n floats. Types f32, f16, bf16, i32. */
const float * sotto_i_load(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * op, const char * row,
                           int64_t first, int64_t n, float * buffer);
/* Where an op may write these elements: the row's own memory or `buffer`; and putting them in their place. */
float * sotto_i_target(const struct sotto_i_operand * op, char * row, int64_t first, float * buffer);
void sotto_i_store(const struct sotto_i_vec_kernels * k, const struct sotto_i_operand * op, char * row, int64_t first,
                   int64_t n, const float * values);

/* Copy n elements of `size` bytes, strides in bytes; rows do not overlap. */
void sotto_i_copy_strided(const char * from, size_t from_stride, char * to, size_t to_stride, size_t size, int64_t n);

/* Up to three operands; number 0 is the result, and the others tile it. */
struct sotto_i_walk {
    int n;
    int64_t ne[SOTTO_MAX_DIMS];
    struct sotto_i_operand op[SOTTO_I_WALK_OPERANDS];
    int64_t units; /* pieces in all */
    /* the piece at hand: elements [at[0], at[0] + len) of the row at[1..3] */
    int64_t at[SOTTO_MAX_DIMS], len;
    char * row[SOTTO_I_WALK_OPERANDS];
};
void sotto_i_walk_init(struct sotto_i_walk * walk, const struct sotto_tensor * y, const struct sotto_tensor * a,
                       const struct sotto_tensor * b);            /* b may be NULL */
void sotto_i_walk_seek(struct sotto_i_walk * walk, int64_t unit); /* unit < units */
void sotto_i_walk_next(struct sotto_i_walk * walk);               /* to the unit that follows, if there is one */

/* Chunks for n independent units of `elements` in all: a few per thread, none tiny; no scratch. */
void sotto_i_prepare_units(int64_t n, int64_t elements, int n_threads, struct sotto_i_cpu_work * work);

/* y = f(src 0), y = f(src 0, src 1), element by element. */
typedef void (*sotto_i_map_fn)(const struct sotto_i_vec_kernels * k, const float * x, float * y, int64_t n,
                               const void * params);
typedef void (*sotto_i_map2_fn)(const struct sotto_i_vec_kernels * k, const float * a, const float * b, float * y,
                                int64_t n);
void sotto_i_prepare_map(const struct sotto_tensor * node, int n_threads, struct sotto_i_cpu_work * work);
enum sotto_status sotto_i_run_map(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                  int64_t n_chunks, sotto_i_map_fn f, const void * params);
enum sotto_status sotto_i_run_map2(const struct sotto_i_cpu_task * task, struct sotto_tensor * node, int64_t chunk,
                                   int64_t n_chunks, sotto_i_map2_fn f);

/* Whether neither the node nor a source lies in packed form, which only products and copies can read. */
bool sotto_i_none_packed(const struct sotto_tensor * node);

/* ---- rows of any type ---- */

bool sotto_i_is_quantised(enum sotto_type type);
/* Rows can be decoded, by the slot gemm.unpack: floats and quantised weights. */
bool sotto_i_is_decodable(enum sotto_type type);
/* Rows can be made of floats: floats, and quantised types whose row quantiser needs no tables. */
bool sotto_i_is_encodable(enum sotto_type type);

/* Whole blocks of floats to a quantised type by the row reference of its format, the same at all levels. NULL for types
 * without blocks. */
typedef void (*sotto_i_encode_fn)(const float * x, void * y, int64_t n);
sotto_i_encode_fn sotto_i_encoder(enum sotto_type type);

/* Bytes from a row's begin to element `at`, which begins a block. */
size_t sotto_i_row_bytes(enum sotto_type type, int64_t at);

/* f32, f16 or bf16 */
static inline bool sotto_i_is_float(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16;
}

#endif
