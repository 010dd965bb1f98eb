/* SPDX-License-Identifier: MIT */
/* A space of bytes that starts at 0 and has no end, and which parts of it are free.
 *
 *     | used | free | used | free ......... without end
 *
 * Free blocks are kept in ascending order and never touch one another. A request takes the smallest block that is
 * large enough, the endless one last; so the highest byte ever used is the size a buffer must have. */
#ifndef SOTTO_PLAN_FREELIST_H
#define SOTTO_PLAN_FREELIST_H

#include "sotto/alloc.h"

struct sotto_i_free_block {
    size_t offset, size;
};

struct sotto_i_freelist {
    const struct sotto_allocator * allocator;
    struct sotto_i_free_block * blocks;
    size_t n, capacity;
    size_t alignment; /* offsets and sizes are multiples of it */
    size_t top;       /* end of the highest block ever taken */
};

/* For at most `max_live` blocks at once. MEMORY. Free it in either case. */
enum sotto_status sotto_i_freelist_init(struct sotto_i_freelist * list, size_t alignment, size_t max_live,
                                        const struct sotto_allocator * allocator);
void sotto_i_freelist_free(struct sotto_i_freelist * list);

/* Take `size` bytes, rounded up to the alignment: the offset, or SIZE_MAX if sizes overflow. */
size_t sotto_i_freelist_take(struct sotto_i_freelist * list, size_t size);

/* Give back what take returned for the same size. */
void sotto_i_freelist_give(struct sotto_i_freelist * list, size_t offset, size_t size);

#endif
