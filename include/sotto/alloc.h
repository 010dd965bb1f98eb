/* SPDX-License-Identifier: MIT */
/* Where sotto's memory comes from.
 *
 * All memory that the library takes goes through one `struct sotto_allocator`. Objects that allocate
 * (contexts, pools, buffers, files, models) take a pointer to one in their parameters and hand it on to
 * what they make; NULL there means the default of the process, which is malloc/realloc/free unless set.
 *
 * Contract of the three functions. They may be called from any thread at once.
 *   alloc(ud, size, align)          `size` bytes > 0 at a multiple of `align` (a power of two), or NULL
 *   realloc(ud, p, old, size)       as realloc; p came from alloc with align <= 16 or is NULL (old = 0);
 *                                   on failure NULL and p stays valid
 *   free(ud, p, size, align)        p is not NULL; size and align are those p was allocated with */
#ifndef SOTTO_ALLOC_H
#define SOTTO_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "sotto/export.h"
#include "sotto/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sotto_allocator {
    uint32_t size; /* sizeof(struct sotto_allocator) */
    void * user_data;
    void * (*alloc)(void * user_data, size_t size, size_t align);
    void * (*realloc)(void * user_data, void * pointer, size_t old_size, size_t size);
    void (*free)(void * user_data, void * pointer, size_t size, size_t align);
};

/* The allocator of the process: what was set, or the built-in one. Never NULL. Any thread. */
SOTTO_API const struct sotto_allocator * sotto_default_allocator(void);

/* Set it; NULL restores the built-in one. `allocator` must outlive everything made with it. Set it before
 * other calls: not synchronised. SOTTO_E_PARAM if its size or a function is missing. */
SOTTO_API enum sotto_status sotto_set_default_allocator(const struct sotto_allocator * allocator);

/* Allocate with `allocator` (NULL = default): 16-byte aligned, SOTTO_E_MEMORY recorded on failure, size 0
 * gives NULL without an error. Overflow of count * size is such a failure. `sotto_calloc` zeroes. */
SOTTO_API void * sotto_malloc(const struct sotto_allocator * allocator, size_t count, size_t size);
SOTTO_API void * sotto_calloc(const struct sotto_allocator * allocator, size_t count, size_t size);

/* Grow or shrink `pointer` (from sotto_malloc, old_count items, may be NULL) to `count` items of `size`
 * bytes. NULL and SOTTO_E_MEMORY on failure; `pointer` then stays valid. */
SOTTO_API void * sotto_realloc(const struct sotto_allocator * allocator, void * pointer, size_t old_count, size_t count,
                               size_t size);

/* Free what the three above returned; NULL is allowed. `count` and `size` as at allocation. */
SOTTO_API void sotto_mfree(const struct sotto_allocator * allocator, void * pointer, size_t count, size_t size);

#ifdef __cplusplus
}
#endif
#endif
