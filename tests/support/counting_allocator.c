/* SPDX-License-Identifier: MIT */
#include "support/counting_allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Behind every block, so that a write past its end is noticed when the block is given back. */
static const unsigned char fence[16] = { 0xF0, 0xE1, 0xD2, 0xC3, 0xB4, 0xA5, 0x96, 0x87,
                                         0x78, 0x69, 0x5A, 0x4B, 0x3C, 0x2D, 0x1E, 0x0F };

static void set_fence(void * block, size_t size) { memcpy((char *)block + size, fence, sizeof(fence)); }

static void check_fence(const void * block, size_t size) {
    if (block != NULL && memcmp((const char *)block + size, fence, sizeof(fence)) != 0) {
        fprintf(stderr, "something was written past the end of %zu bytes\n", size);
        abort();
    }
}

static bool refused(struct counting_allocator * a) {
    const long n = atomic_fetch_add(&a->requests, 1) + 1;
    if (n != atomic_load(&a->refuse)) {
        return false;
    }
    atomic_fetch_add(&a->refused, 1);
    return true;
}

static void hold(struct counting_allocator * a, long long bytes) {
    const long long held = atomic_fetch_add(&a->held, bytes) + bytes;
    long long peak = atomic_load(&a->peak);
    while (held > peak && !atomic_compare_exchange_weak(&a->peak, &peak, held)) {}
}

static void * allocate(void * user_data, size_t size, size_t align) {
    struct counting_allocator * a = user_data;
    void * p = NULL;
    if (size > SIZE_MAX - sizeof(fence) || refused(a) ||
        posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size + sizeof(fence)) != 0) {
        return NULL;
    }
    set_fence(p, size);
    hold(a, (long long)size);
    return p;
}

static void * reallocate(void * user_data, void * pointer, size_t old_size, size_t size) {
    struct counting_allocator * a = user_data;
    check_fence(pointer, old_size);
    void * p = size > SIZE_MAX - sizeof(fence) || refused(a) ? NULL : realloc(pointer, size + sizeof(fence));
    if (p != NULL) {
        set_fence(p, size);
        hold(a, (long long)size - (long long)old_size);
    }
    return p;
}

static void release(void * user_data, void * pointer, size_t size, size_t align) {
    (void)align;
    check_fence(pointer, size);
    free(pointer);
    hold(user_data, -(long long)size);
}

void counting_allocator_init(struct counting_allocator * allocator) {
    memset(allocator, 0, sizeof(*allocator));
    allocator->base = (struct sotto_allocator){
        .size = sizeof(allocator->base),
        .user_data = allocator,
        .alloc = allocate,
        .realloc = reallocate,
        .free = release,
    };
}

static struct counting_allocator of_the_process;

int counting_allocator_begin(void ** state) {
    (void)state;
    counting_allocator_init(&of_the_process);
    return sotto_set_default_allocator(&of_the_process.base) == SOTTO_OK ? 0 : -1;
}

int counting_allocator_end(void ** state) {
    (void)state;
    sotto_set_default_allocator(NULL);
    return atomic_load(&of_the_process.held) == 0 ? 0 : -1;
}
