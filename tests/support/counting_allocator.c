/* SPDX-License-Identifier: MIT */
#include "support/counting_allocator.h"

#include <stdlib.h>
#include <string.h>

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
    if (refused(a) || posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) {
        return NULL;
    }
    hold(a, (long long)size);
    return p;
}

static void * reallocate(void * user_data, void * pointer, size_t old_size, size_t size) {
    struct counting_allocator * a = user_data;
    void * p = refused(a) ? NULL : realloc(pointer, size);
    if (p != NULL) {
        hold(a, (long long)size - (long long)old_size);
    }
    return p;
}

static void release(void * user_data, void * pointer, size_t size, size_t align) {
    (void)align;
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
