/* SPDX-License-Identifier: MIT */
/* Tensors and the contexts that hold them.
 *
 * A tensor has a type, four extents `ne` (innermost first, unused ones 1) and four byte strides `nb`. The
 * element at (i0, i1, i2, i3) lies at data + i0*nb[0] + i1*nb[1] + i2*nb[2] + i3*nb[3]; for a quantised
 * type nb[0] is the distance between blocks. A view shares the storage of `view_src`, which is never a view.
 *
 * A context is an arena: it holds tensor records, graphs, and (unless `no_alloc`) their data, and frees all
 * at once. The smallest program:
 *
 *     struct sotto_context * ctx = sotto_init((struct sotto_init_params){.mem_size = 1 << 20});
 *     struct sotto_tensor * a = sotto_new_tensor_2d(ctx, SOTTO_TYPE_F32, 4, 3);   // 3 rows of 4
 *     sotto_set_f32(a, 1.0f);
 *     struct sotto_tensor * y = sotto_scale(ctx, a, 2.0f);                        // sotto/ops.h
 *     struct sotto_cgraph * g = sotto_new_graph(ctx);                             // sotto/graph.h
 *     sotto_build_forward_expand(g, y);
 *     enum sotto_status s = sotto_graph_compute_with_ctx(ctx, g, 2);              // sotto/cpu.h
 *     sotto_free(ctx);
 *
 * Errors. A function that makes a tensor and cannot records the context's first error and this thread's
 * last error, allocates nothing and returns NULL; a NULL operand in a context that already has an error
 * passes through quietly, so that a chain of calls reports its first fault. See sotto_context_status.
 *
 * Threads. A context and its tensors are used by one thread at a time; different contexts are independent. */
#ifndef SOTTO_TENSOR_H
#define SOTTO_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/alloc.h"
#include "sotto/export.h"
#include "sotto/status.h"
#include "sotto/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOTTO_MAX_DIMS      4
#define SOTTO_MAX_SRC       10
#define SOTTO_MAX_OP_PARAMS 64 /* bytes */
#define SOTTO_MAX_NAME      64 /* bytes, the final 0 included */
#define SOTTO_MAX_PARAMS    2048
#if UINTPTR_MAX == 0xFFFFFFFF
#define SOTTO_MEM_ALIGN 4
#else
#define SOTTO_MEM_ALIGN 16
#endif
#define SOTTO_DATA_ALIGN 64 /* tensor data in buffers and aligned allocations */

struct sotto_context;
struct sotto_backend_buffer;

enum sotto_tensor_flag {
    SOTTO_TENSOR_FLAG_INPUT = 1,
    SOTTO_TENSOR_FLAG_OUTPUT = 2,
    SOTTO_TENSOR_FLAG_PARAM = 4,
    SOTTO_TENSOR_FLAG_LOSS = 8,
    SOTTO_TENSOR_FLAG_COMPUTE = 16
};

struct sotto_tensor {
    enum sotto_type type;
    struct sotto_backend_buffer * buffer; /* buffer that holds the data; NULL for arena or external data */
    int64_t ne[SOTTO_MAX_DIMS];           /* number of elements */
    size_t nb[SOTTO_MAX_DIMS];            /* byte strides */
    int op;                               /* enum sotto_op: what makes it, SOTTO_OP_NONE for data */
    int32_t op_params[SOTTO_MAX_OP_PARAMS / sizeof(int32_t)];
    int32_t flags;                            /* enum sotto_tensor_flag */
    struct sotto_tensor * src[SOTTO_MAX_SRC]; /* operands; a NULL may precede a used slot */
    struct sotto_tensor * view_src;           /* owner of the storage, never itself a view */
    size_t view_offs;                         /* bytes from the owner's data */
    void * data;                              /* element 0, NULL if not allocated */
    char name[SOTTO_MAX_NAME];
    void * extra; /* owned by a backend */
    char padding[8];
};

/* ---- contexts ---- */

struct sotto_init_params {
    size_t mem_size;   /* bytes of the arena; 0 means SOTTO_MEM_ALIGN */
    void * mem_buffer; /* the caller's memory (aligned to SOTTO_MEM_ALIGN, not freed), NULL to allocate */
    bool no_alloc;     /* tensors get a record but no data: a backend buffer is attached later */
};

/* Make a context; sotto_init takes its memory from the default allocator, sotto_init_ext from `allocator`.
 * NULL on failure: SOTTO_E_MEMORY, SOTTO_E_PARAM for a misaligned mem_buffer. Any thread. */
SOTTO_API struct sotto_context * sotto_init(struct sotto_init_params params);
SOTTO_API struct sotto_context * sotto_init_ext(struct sotto_init_params params,
                                                const struct sotto_allocator * allocator);
SOTTO_API void sotto_reset(struct sotto_context * ctx); /* forget all objects and the error; memory stays */
SOTTO_API void sotto_free(struct sotto_context * ctx);  /* NULL is allowed */

SOTTO_API size_t sotto_used_mem(const struct sotto_context * ctx); /* end of the last object, 0 if none */
SOTTO_API bool sotto_get_no_alloc(const struct sotto_context * ctx);
SOTTO_API void sotto_set_no_alloc(struct sotto_context * ctx, bool no_alloc);
SOTTO_API void * sotto_get_mem_buffer(const struct sotto_context * ctx);
SOTTO_API size_t sotto_get_mem_size(const struct sotto_context * ctx);
SOTTO_API size_t sotto_get_max_tensor_size(const struct sotto_context * ctx); /* largest nbytes */
SOTTO_API size_t sotto_tensor_overhead(void); /* arena bytes of one tensor without data */
SOTTO_API void * sotto_new_buffer(struct sotto_context * ctx, size_t nbytes); /* raw arena memory, zeroed */

/* The context's first error since it was made, reset or cleared; SOTTO_OK if none. The text is never NULL. */
SOTTO_API enum sotto_status sotto_context_status(const struct sotto_context * ctx);
SOTTO_API const char * sotto_context_error(const struct sotto_context * ctx);
SOTTO_API void sotto_clear_error(struct sotto_context * ctx);

/* Called, in the thread that made the mistake, when an error is recorded on the context. The compatibility
 * headers install one that prints and aborts, as their clients expect. NULL removes it. */
typedef void (*sotto_error_hook)(enum sotto_status status, const char * text, void * user_data);
SOTTO_API void sotto_set_error_hook(struct sotto_context * ctx, sotto_error_hook hook, void * user_data);

/* ---- making tensors ---- */

/* A fresh tensor. Data is not initialised. SOTTO_E_TYPE / RETIRED (type), SOTTO_E_PARAM (n_dims not 1..4),
 * SOTTO_E_SHAPE (negative extent, ne[0] no multiple of the block), SOTTO_E_MEMORY (arena full, overflow). */
SOTTO_API struct sotto_tensor * sotto_new_tensor(struct sotto_context * ctx, enum sotto_type type, int n_dims,
                                                 const int64_t * ne);
SOTTO_API struct sotto_tensor * sotto_new_tensor_1d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0);
SOTTO_API struct sotto_tensor * sotto_new_tensor_2d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0,
                                                    int64_t ne1);
SOTTO_API struct sotto_tensor * sotto_new_tensor_3d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0,
                                                    int64_t ne1, int64_t ne2);
SOTTO_API struct sotto_tensor * sotto_new_tensor_4d(struct sotto_context * ctx, enum sotto_type type, int64_t ne0,
                                                    int64_t ne1, int64_t ne2, int64_t ne3);
SOTTO_API struct sotto_tensor * sotto_new_i32(struct sotto_context * ctx, int32_t value); /* STATE if no_alloc */
SOTTO_API struct sotto_tensor * sotto_new_f32(struct sotto_context * ctx, float value);

/* Same type and extents, fresh and contiguous; and a view with the same strides ("<name> (view)"). */
SOTTO_API struct sotto_tensor * sotto_dup_tensor(struct sotto_context * ctx, const struct sotto_tensor * src);
SOTTO_API struct sotto_tensor * sotto_view_tensor(struct sotto_context * ctx, struct sotto_tensor * src);

/* Walk a context's tensors in the order of creation; find the first of a name. NULL at the end. */
SOTTO_API struct sotto_tensor * sotto_get_first_tensor(const struct sotto_context * ctx);
SOTTO_API struct sotto_tensor * sotto_get_next_tensor(const struct sotto_context * ctx, struct sotto_tensor * tensor);
SOTTO_API struct sotto_tensor * sotto_get_tensor(struct sotto_context * ctx, const char * name);

/* ---- names and flags ---- */

SOTTO_API const char * sotto_get_name(const struct sotto_tensor * tensor);
/* Both cut at 63 bytes, at a character boundary, and return the tensor. */
SOTTO_API struct sotto_tensor * sotto_set_name(struct sotto_tensor * tensor, const char * name);
SOTTO_API struct sotto_tensor * sotto_format_name(struct sotto_tensor * tensor, const char * format, ...)
    SOTTO_PRINTF(2, 3);

SOTTO_API void sotto_set_input(struct sotto_tensor * tensor);  /* the graph allocator keeps it apart */
SOTTO_API void sotto_set_output(struct sotto_tensor * tensor); /* its memory (its owner's) is never reused */
SOTTO_API enum sotto_status sotto_set_param(struct sotto_tensor * tensor); /* STATE unless op is NONE */
SOTTO_API enum sotto_status sotto_set_loss(struct sotto_tensor * tensor);  /* SHAPE unless scalar, TYPE unless f32 */

/* ---- sizes ---- */

SOTTO_API int64_t sotto_nelements(const struct sotto_tensor * tensor);
SOTTO_API int64_t sotto_nrows(const struct sotto_tensor * tensor);     /* ne1*ne2*ne3 */
SOTTO_API size_t sotto_nbytes(const struct sotto_tensor * tensor);     /* span from first to last byte, gaps counted */
SOTTO_API size_t sotto_nbytes_pad(const struct sotto_tensor * tensor); /* rounded up to SOTTO_MEM_ALIGN */
SOTTO_API size_t sotto_element_size(const struct sotto_tensor * tensor); /* bytes per block */
SOTTO_API int sotto_n_dims(const struct sotto_tensor * tensor);          /* highest d with ne[d-1] > 1, at least 1 */

/* ---- predicates (spec: core 0.5) ---- */

SOTTO_API bool sotto_is_empty(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_scalar(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_vector(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_matrix(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_3d(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_view(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_transposed(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_permuted(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_contiguous(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_contiguous_0(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_contiguous_1(const struct sotto_tensor * tensor); /* gaps only between rows */
SOTTO_API bool sotto_is_contiguous_2(const struct sotto_tensor * tensor); /* dims 1 and 2 of any stride */
SOTTO_API bool sotto_is_contiguous_to_1(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_contiguous_to_2(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_contiguous_to_3(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_contiguously_allocated(const struct sotto_tensor * tensor); /* a permuted dense one, too */
SOTTO_API bool sotto_is_contiguous_rows(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_is_contiguous_channels(const struct sotto_tensor * tensor);
SOTTO_API bool sotto_are_same_shape(const struct sotto_tensor * a, const struct sotto_tensor * b);
SOTTO_API bool sotto_are_same_stride(const struct sotto_tensor * a, const struct sotto_tensor * b);
SOTTO_API bool sotto_can_repeat(const struct sotto_tensor * a, const struct sotto_tensor * b); /* a tiles b */

/* ---- elements in host memory: i8 i16 i32 f16 bf16 f32, else SOTTO_E_TYPE; SOTTO_E_STATE without data ---- */

SOTTO_API void * sotto_get_data(const struct sotto_tensor * tensor);
SOTTO_API float * sotto_get_data_f32(const struct sotto_tensor * tensor); /* NULL and TYPE unless f32 */
SOTTO_API void sotto_unravel_index(const struct sotto_tensor * tensor, int64_t i, int64_t * i0, int64_t * i1,
                                   int64_t * i2, int64_t * i3); /* NULL outputs are allowed */
/* _1d takes the logical index (dim 0 fastest). Reading as i32 truncates towards zero. PARAM if outside. */
SOTTO_API int32_t sotto_get_i32_1d(const struct sotto_tensor * tensor, int64_t i);
SOTTO_API enum sotto_status sotto_set_i32_1d(struct sotto_tensor * tensor, int64_t i, int32_t value);
SOTTO_API float sotto_get_f32_1d(const struct sotto_tensor * tensor, int64_t i);
SOTTO_API enum sotto_status sotto_set_f32_1d(struct sotto_tensor * tensor, int64_t i, float value);
SOTTO_API int32_t sotto_get_i32_nd(const struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
SOTTO_API enum sotto_status sotto_set_i32_nd(struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2,
                                             int64_t i3, int32_t value);
SOTTO_API float sotto_get_f32_nd(const struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
SOTTO_API enum sotto_status sotto_set_f32_nd(struct sotto_tensor * tensor, int64_t i0, int64_t i1, int64_t i2,
                                             int64_t i3, float value);
/* Fill every element; return the tensor, NULL on failure. */
SOTTO_API struct sotto_tensor * sotto_set_i32(struct sotto_tensor * tensor, int32_t value);
SOTTO_API struct sotto_tensor * sotto_set_f32(struct sotto_tensor * tensor, float value);
SOTTO_API struct sotto_tensor * sotto_set_zero(struct sotto_tensor * tensor); /* all types, gaps untouched */

#ifdef __cplusplus
}
#endif
#endif
