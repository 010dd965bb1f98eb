/* SPDX-License-Identifier: MIT */
/* Best fit over an ordered array of free blocks; the last one is the endless one. */
#include "plan/freelist.h"

#include <stdbool.h>
#include <string.h>

enum sotto_status sotto_i_freelist_init(struct sotto_i_freelist * list, size_t alignment, size_t max_live,
                                        const struct sotto_allocator * allocator) {
    *list = (struct sotto_i_freelist){ .allocator = allocator, .alignment = alignment, .capacity = max_live + 1 };
    list->blocks = sotto_malloc(allocator, list->capacity, sizeof(*list->blocks));
    if (list->blocks == NULL)
        return SOTTO_E_MEMORY;
    list->blocks[0] = (struct sotto_i_free_block){ .offset = 0, .size = SIZE_MAX - SIZE_MAX % alignment };
    list->n = 1;
    return SOTTO_OK;
}

void sotto_i_freelist_free(struct sotto_i_freelist * list) {
    sotto_mfree(list->allocator, list->blocks, list->capacity, sizeof(*list->blocks));
    list->blocks = NULL;
}

/* SIZE_MAX if it does not fit a size_t. */
static size_t round_up(size_t size, size_t alignment) {
    const size_t rest = size % alignment;
    if (rest == 0)
        return size;
    return size > SIZE_MAX - (alignment - rest) ? SIZE_MAX : size + (alignment - rest);
}

static size_t best_block(const struct sotto_i_freelist * list, size_t size) {
    size_t best = list->n - 1;
    for (size_t i = 0; i + 1 < list->n; i++)
        if (list->blocks[i].size >= size && list->blocks[i].size < list->blocks[best].size)
            best = i;
    return best;
}

static void remove_block(struct sotto_i_freelist * list, size_t i) {
    list->n--;
    memmove(&list->blocks[i], &list->blocks[i + 1], (list->n - i) * sizeof(*list->blocks));
}

size_t sotto_i_freelist_take(struct sotto_i_freelist * list, size_t size) {
    size = round_up(size, list->alignment);
    const size_t i = best_block(list, size);
    struct sotto_i_free_block * block = &list->blocks[i];
    if (size >= block->size) /* the endless block never ends exactly */
        if (size > block->size || i + 1 == list->n)
            return SIZE_MAX;
    const size_t offset = block->offset;
    block->offset += size;
    block->size -= size;
    if (block->size == 0)
        remove_block(list, i);
    if (list->top < offset + size)
        list->top = offset + size;
    return offset;
}

void sotto_i_freelist_give(struct sotto_i_freelist * list, size_t offset, size_t size) {
    size = round_up(size, list->alignment);
    if (size == 0)
        return;
    size_t i = 0;
    while (list->blocks[i].offset < offset)
        i++; /* ends at the endless block at the latest */
    struct sotto_i_free_block * next = &list->blocks[i];
    struct sotto_i_free_block * before = i > 0 ? next - 1 : NULL;
    const bool joins_next = offset + size == next->offset;
    if (before != NULL && before->offset + before->size == offset) {
        before->size += size;
        if (joins_next) {
            before->size += next->size;
            remove_block(list, i);
        }
    } else if (joins_next) {
        next->offset = offset;
        next->size += size;
    } else {
        memmove(next + 1, next, (list->n - i) * sizeof(*list->blocks));
        *next = (struct sotto_i_free_block){ .offset = offset, .size = size };
        list->n++;
    }
}
