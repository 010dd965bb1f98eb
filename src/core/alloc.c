/* SPDX-License-Identifier: MIT */
/* The built-in allocator, and typed helpers on top of any. */
#include "sotto/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "core/checked.h"

enum { SMALL_ALIGN = 16 };

static void * std_alloc(void * user_data, size_t size, size_t align) {
    (void)user_data;
    if (align <= SMALL_ALIGN && align <= _Alignof(max_align_t)) {
        return malloc(size);
    }
    return sotto_i_align_up(size, align, &size) ? aligned_alloc(align, size) : NULL;
}

static void * std_realloc(void * user_data, void * pointer, size_t old_size, size_t size) {
    (void)user_data;
    if (SMALL_ALIGN <= _Alignof(max_align_t)) {
        return realloc(pointer, size);
    }
    void * fresh = std_alloc(NULL, size, SMALL_ALIGN);
    if (fresh && pointer) {
        memcpy(fresh, pointer, old_size < size ? old_size : size);
        free(pointer);
    }
    return fresh;
}

static void std_free(void * user_data, void * pointer, size_t size, size_t align) {
    (void)user_data;
    (void)size;
    (void)align;
    free(pointer);
}

static const struct sotto_allocator std_allocator = {
    .size = sizeof(struct sotto_allocator),
    .alloc = std_alloc,
    .realloc = std_realloc,
    .free = std_free,
};

static const struct sotto_allocator * default_allocator = &std_allocator;

const struct sotto_allocator * sotto_default_allocator(void) { return default_allocator; }

enum sotto_status sotto_set_default_allocator(const struct sotto_allocator * allocator) {
    if (!allocator) {
        default_allocator = &std_allocator;
        return SOTTO_OK;
    }
    if (allocator->size < sizeof(struct sotto_allocator) || !allocator->alloc || !allocator->realloc ||
        !allocator->free) {
        return sotto_fail(SOTTO_E_PARAM, "sotto_set_default_allocator: size or a function is missing; set `size` to "
                                         "sizeof(struct sotto_allocator) and all three functions");
    }
    default_allocator = allocator;
    return SOTTO_OK;
}

static const struct sotto_allocator * chosen(const struct sotto_allocator * allocator) {
    return allocator ? allocator : default_allocator;
}

static void * out_of_memory(size_t count, size_t size) {
    sotto_fail(SOTTO_E_MEMORY, "no memory for %zu items of %zu bytes", count, size);
    return NULL;
}

void * sotto_malloc(const struct sotto_allocator * allocator, size_t count, size_t size) {
    size_t bytes;
    if (!sotto_i_mul(count, size, &bytes)) {
        return out_of_memory(count, size);
    }
    if (bytes == 0) {
        return NULL;
    }
    allocator = chosen(allocator);
    void * pointer = allocator->alloc(allocator->user_data, bytes, SMALL_ALIGN);
    return pointer ? pointer : out_of_memory(count, size);
}

void * sotto_calloc(const struct sotto_allocator * allocator, size_t count, size_t size) {
    void * pointer = sotto_malloc(allocator, count, size);
    if (pointer) {
        memset(pointer, 0, count * size);
    }
    return pointer;
}

void * sotto_realloc(const struct sotto_allocator * allocator, void * pointer, size_t old_count, size_t count,
                     size_t size) {
    if (!pointer) {
        return sotto_malloc(allocator, count, size);
    }
    size_t bytes;
    if (!sotto_i_mul(count, size, &bytes)) {
        return out_of_memory(count, size);
    }
    if (bytes == 0) {
        sotto_mfree(allocator, pointer, old_count, size);
        return NULL;
    }
    allocator = chosen(allocator);
    void * moved = allocator->realloc(allocator->user_data, pointer, old_count * size, bytes);
    return moved ? moved : out_of_memory(count, size);
}

void sotto_mfree(const struct sotto_allocator * allocator, void * pointer, size_t count, size_t size) {
    if (pointer) {
        allocator = chosen(allocator);
        allocator->free(allocator->user_data, pointer, count * size, SMALL_ALIGN);
    }
}
