/* SPDX-License-Identifier: MIT */
/* Heap sort of numbers of things: what is sorted comes from files, so no method with a bad worst case. */
#include "models/models_impl.h"

static void swap(size_t * ids, size_t a, size_t b) {
    size_t t = ids[a];
    ids[a] = ids[b];
    ids[b] = t;
}

static void sift(size_t * ids, size_t root, size_t n, models_order order, const void * things) {
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && order(things, ids[child], ids[child + 1]) < 0)
            child++;
        if (order(things, ids[root], ids[child]) >= 0)
            return;
        swap(ids, root, child);
    }
}

enum sotto_status sotto_i_models_sort(const struct sotto_allocator * allocator, size_t n, models_order order,
                                      const void * things, size_t ** ids) {
    *ids = NULL;
    if (n == 0)
        return SOTTO_OK;
    *ids = sotto_malloc(allocator, n, sizeof(**ids));
    if (*ids == NULL)
        return SOTTO_E_MEMORY;
    for (size_t i = 0; i < n; i++)
        (*ids)[i] = i;
    for (size_t i = n / 2; i > 0; i--)
        sift(*ids, i - 1, n, order, things);
    for (size_t i = n - 1; i > 0; i--) {
        swap(*ids, 0, i);
        sift(*ids, 0, i, order, things);
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_models_grow(const struct sotto_allocator * allocator, void ** array, size_t n, size_t * cap,
                                      size_t size) {
    if (n < *cap)
        return SOTTO_OK;
    size_t larger = *cap + *cap / 2 + 16;
    void * p = sotto_realloc(allocator, *array, *cap, larger, size);
    if (p == NULL)
        return SOTTO_E_MEMORY;
    *array = p;
    *cap = larger;
    return SOTTO_OK;
}
