/* SPDX-License-Identifier: MIT */
/* The set of a graph's tensors: by address, linear probing, a prime number of slots, nothing ever removed singly. */
#include "core/graph_impl.h"

/* The smallest prime above each power of two. */
static const size_t primes[] = {
    2,       3,       5,       11,      17,       37,       67,       131,       257,       521,
    1031,    2053,    4099,    8209,    16411,    32771,    65537,    131101,    262147,    524309,
    1048583, 2097169, 4194319, 8388617, 16777259, 33554467, 67108879, 134217757, 268435459, 536870923,
};

size_t sotto_i_hash_size(size_t capacity) {
    size_t least = capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity;
    for (size_t i = 0; i < sizeof(primes) / sizeof(primes[0]); i++) {
        if (primes[i] >= least) {
            return primes[i];
        }
    }
    return least | 1;
}

/* Slot of the tensor, or the free one where it belongs; SIZE_MAX if there is neither. */
static size_t slot_of(const struct sotto_i_hash_set * set, const struct sotto_tensor * tensor) {
    if (set->size == 0) {
        return SIZE_MAX;
    }
    size_t first = ((uintptr_t)tensor >> 4) % set->size;
    size_t slot = first;
    while (set->keys[slot] && set->keys[slot] != tensor) {
        slot = slot + 1 == set->size ? 0 : slot + 1;
        if (slot == first) {
            return SIZE_MAX;
        }
    }
    return slot;
}

size_t sotto_i_hash_find(const struct sotto_i_hash_set * set, const struct sotto_tensor * tensor) {
    size_t slot = slot_of(set, tensor);
    return slot != SIZE_MAX && set->keys[slot] ? slot : SIZE_MAX;
}

size_t sotto_i_hash_insert(struct sotto_i_hash_set * set, struct sotto_tensor * tensor, bool * found) {
    size_t slot = slot_of(set, tensor);
    *found = slot != SIZE_MAX && set->keys[slot];
    if (slot != SIZE_MAX) {
        set->keys[slot] = tensor;
    }
    return slot;
}
