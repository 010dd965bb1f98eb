/* SPDX-License-Identifier: MIT */
/* Inside of contexts and tensors: the arena, making records, and questions that the public headers do not answer.
 *
 * The arena is one piece of memory with objects end to end, in the order of creation:
 *
 *     | header | tensor record | its data |  header | tensor record |  header | graph, its arrays |  free ... |
 *
 * Headers, records and payloads are multiples of SOTTO_MEM_ALIGN, and are linked to the next one. */
#ifndef SOTTO_CORE_TENSOR_IMPL_H
#define SOTTO_CORE_TENSOR_IMPL_H

#include "sotto/tensor.h"

enum sotto_i_object_kind { SOTTO_I_OBJECT_TENSOR = 0, SOTTO_I_OBJECT_GRAPH = 1, SOTTO_I_OBJECT_WORK = 2 };

struct sotto_i_object; /* a header */

/* Arena memory, not initialised; NULL and MEMORY (on the context) when it is full. */
void * sotto_i_arena_new(struct sotto_context * ctx, const char * function, enum sotto_i_object_kind kind, size_t size);
/* Arena bytes that a payload of `size` takes, header included; false on overflow. */
bool sotto_i_arena_size(size_t size, size_t * bytes);
/* The last object (NULL if none), and forget all objects after it: how a composite takes back what it made. */
struct sotto_i_object * sotto_i_arena_last(const struct sotto_context * ctx);
void sotto_i_arena_rewind(struct sotto_context * ctx, struct sotto_i_object * last);

/* Allocator of a context, for what hangs on it. */
const struct sotto_allocator * sotto_i_context_allocator(const struct sotto_context * ctx);

/* Record an error on a context (sticky) and as this thread's last error; returns `status`. NULL ctx: thread only. */
enum sotto_status sotto_i_context_fail(struct sotto_context * ctx, enum sotto_status status, const char * format, ...)
    SOTTO_PRINTF(3, 4);

/* What a new record looks like. */
struct sotto_i_shape {
    enum sotto_type type;
    int64_t ne[SOTTO_MAX_DIMS];
    size_t nb[SOTTO_MAX_DIMS];     /* all 0: dense */
    struct sotto_tensor * view_of; /* NULL: a fresh tensor */
    size_t view_offs;              /* from view_of's data */
};

/* Check a shape and make the record, and data if the context makes data. NULL and the first fault on the context:
 * TYPE, RETIRED, SHAPE, MEMORY, BOUNDS. `function` is for the message. */
struct sotto_tensor * sotto_i_tensor_make(struct sotto_context * ctx, const char * function,
                                          const struct sotto_i_shape * shape);

/* Strides and bytes of a dense tensor of a usable type; false on overflow. ne >= 0, ne[0] whole blocks. */
bool sotto_i_dense(enum sotto_type type, const int64_t ne[SOTTO_MAX_DIMS], size_t nb[SOTTO_MAX_DIMS], size_t * bytes);
/* Span in bytes from the first to the last byte, 0 for an empty one; false on overflow. */
bool sotto_i_span(enum sotto_type type, const int64_t ne[SOTTO_MAX_DIMS], const size_t nb[SOTTO_MAX_DIMS],
                  size_t * bytes);

bool sotto_i_same_layout(const struct sotto_tensor * a, const struct sotto_tensor * b); /* type, shape, strides */
bool sotto_i_repeats_itself(const struct sotto_tensor * a); /* several indices are one byte: no destination */
struct sotto_backend_buffer * sotto_i_tensor_buffer(const struct sotto_tensor * a); /* its own or its owner's */

/* SOTTO_OK, TYPE outside the list, RETIRED. Records nothing. */
enum sotto_status sotto_i_type_status(enum sotto_type type);
bool sotto_i_is_float_type(enum sotto_type type);    /* f32, f16, bf16 */
bool sotto_i_is_weight_type(enum sotto_type type);   /* those, and quantised ones but work types */
bool sotto_i_takes_float_rows(enum sotto_type type); /* f32 rows can be converted to it */
bool sotto_i_gives_float_rows(enum sotto_type type); /* its rows can be converted to f32 */

#endif
