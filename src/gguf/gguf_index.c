/* SPDX-License-Identifier: MIT */
/* Names to ids: open addressing with linear probing, at most half full.
 *
 * The hash is SipHash-1-3 with a seed per context, so that no file can be built whose names all collide. A slot keeps
 * 32 bits of hash beside the id: growing needs no names, and looking up compares text only when the hashes agree. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "gguf/gguf_impl.h"

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static uint32_t hash(const uint64_t seed[2], const char * text, size_t len) {
    uint64_t v[4] = { seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du, seed[0] ^ 0x6c7967656e657261u,
                      seed[1] ^ 0x7465646279746573u };
    size_t whole = len / 8 * 8;
    for (size_t i = 0; i <= whole; i += 8) {
        uint64_t word = 0;
        if (i < whole) {
            memcpy(&word, text + i, 8);
        } else {
            memcpy(&word, text + i, len - whole);
            word |= (uint64_t)len << 56;
        }
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    uint64_t h = v[0] ^ v[1] ^ v[2] ^ v[3];
    return (uint32_t)(h ^ h >> 32);
}

void sotto_i_gguf_index_seed(struct gguf_index * index) {
    static atomic_uint_fast64_t counter;
    struct timespec now = { 0, 0 };
    timespec_get(&now, TIME_UTC);
    uint64_t count = atomic_fetch_add(&counter, 1);
    index->seed[0] = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) + count * 0x9e3779b97f4a7c15u;
    index->seed[1] = (uint64_t)(uintptr_t)index ^ rotate((uint64_t)(uintptr_t)&now, 32) ^ (uint64_t)clock() << 48;
}

static void place(uint64_t * slots, size_t n_slots, uint64_t slot) {
    size_t i = (size_t)(slot >> 32) & (n_slots - 1);
    while (slots[i] != 0)
        i = (i + 1) & (n_slots - 1);
    slots[i] = slot;
}

enum sotto_status sotto_i_gguf_index_reserve(struct gguf_index * index, const struct sotto_allocator * allocator,
                                             size_t count) {
    if (count > INT32_MAX)
        return sotto_i_gguf_fail(0, SOTTO_E_LIMIT, "gguf: more than %d names", INT32_MAX);
    if (count <= index->n_slots / 2)
        return SOTTO_OK;
    size_t n = index->n_slots > 0 ? index->n_slots : 32;
    while (count > n / 2)
        n *= 2;
    uint64_t * slots = sotto_calloc(allocator, n, sizeof(*slots));
    if (slots == NULL)
        return SOTTO_E_MEMORY;
    for (size_t i = 0; i < index->n_slots; i++) {
        if (index->slots[i] != 0)
            place(slots, n, index->slots[i]);
    }
    sotto_mfree(allocator, index->slots, index->n_slots, sizeof(*slots));
    index->slots = slots;
    index->n_slots = n;
    return SOTTO_OK;
}

int64_t sotto_i_gguf_index_find(const struct gguf_index * index, const void * records, size_t stride, const char * text,
                                size_t len) {
    if (index->n_slots == 0)
        return -1;
    uint32_t h = hash(index->seed, text, len);
    for (size_t i = h & (index->n_slots - 1); index->slots[i] != 0; i = (i + 1) & (index->n_slots - 1)) {
        if (index->slots[i] >> 32 != h)
            continue;
        size_t id = (size_t)(index->slots[i] & UINT32_MAX) - 1;
        const struct gguf_name * name = (const struct gguf_name *)((const char *)records + id * stride);
        if (name->len == len && memcmp(name->text, text, len) == 0)
            return (int64_t)id;
    }
    return -1;
}

void sotto_i_gguf_index_add(struct gguf_index * index, const struct gguf_name * name, size_t id) {
    place(index->slots, index->n_slots, (uint64_t)hash(index->seed, name->text, name->len) << 32 | (id + 1));
}

void sotto_i_gguf_index_rebuild(struct gguf_index * index, const void * records, size_t stride, size_t n) {
    if (index->n_slots > 0)
        memset(index->slots, 0, index->n_slots * sizeof(*index->slots));
    for (size_t id = 0; id < n; id++)
        sotto_i_gguf_index_add(index, (const struct gguf_name *)((const char *)records + id * stride), id);
}

void sotto_i_gguf_index_free(struct gguf_index * index, const struct sotto_allocator * allocator) {
    sotto_mfree(allocator, index->slots, index->n_slots, sizeof(*index->slots));
    index->slots = NULL;
    index->n_slots = 0;
}
