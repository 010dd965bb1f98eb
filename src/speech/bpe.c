/* SPDX-License-Identifier: MIT */
/* Merging by rank: among all neighbours whose joined bytes are a token, the pair with the lowest id is joined first,
 * the leftmost among equals, until none is left.
 *
 * The parts of a piece are a doubly linked list over the positions of their first bytes: part i covers bytes
 * i .. next[i] - 1, and next[i] is 0 once it was joined to the part before it. Candidate pairs wait in a binary heap.
 * They are not taken out when one of their parts changes: a pair that no longer is one is dropped when it comes up. */
#include "bpe.h"

#include <stdbool.h>

struct sotto_i_bpe_pair {
    int32_t id;    /* of the joined bytes */
    int32_t begin; /* of the left part */
    int32_t end;   /* of the right part */
};

static bool before(const struct sotto_i_bpe_pair * a, const struct sotto_i_bpe_pair * b) {
    return a->id != b->id ? a->id < b->id : a->begin < b->begin;
}

static void heap_push(struct sotto_i_bpe * bpe, struct sotto_i_bpe_pair pair) {
    size_t at = bpe->n_heap++;
    while (at > 0 && before(&pair, &bpe->heap[(at - 1) / 2])) {
        bpe->heap[at] = bpe->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    bpe->heap[at] = pair;
}

static struct sotto_i_bpe_pair heap_pop(struct sotto_i_bpe * bpe) {
    struct sotto_i_bpe_pair top = bpe->heap[0];
    struct sotto_i_bpe_pair last = bpe->heap[--bpe->n_heap];
    size_t at = 0;
    for (size_t child = 1; child < bpe->n_heap; child = 2 * at + 1) {
        if (child + 1 < bpe->n_heap && before(&bpe->heap[child + 1], &bpe->heap[child]))
            child++;
        if (!before(&bpe->heap[child], &last))
            break;
        bpe->heap[at] = bpe->heap[child];
        at = child;
    }
    bpe->heap[at] = last;
    return top;
}

/* Remember the pair whose left part is at `begin`, if it has a right one and together they are a token. */
static void propose(struct sotto_i_bpe * bpe, const struct sotto_i_vocab * vocab, const char * piece, int32_t n,
                    int32_t begin) {
    int32_t middle = bpe->next[begin];
    if (middle == n)
        return;
    int32_t end = bpe->next[middle];
    int32_t id = sotto_i_vocab_find(vocab, piece + begin, (size_t)(end - begin));
    if (id >= 0)
        heap_push(bpe, (struct sotto_i_bpe_pair){ .id = id, .begin = begin, .end = end });
}

static bool still_a_pair(const struct sotto_i_bpe * bpe, int32_t n, const struct sotto_i_bpe_pair * pair) {
    int32_t middle = bpe->next[pair->begin];
    return middle != 0 && middle != n && bpe->next[middle] == pair->end;
}

static void join(struct sotto_i_bpe * bpe, int32_t n, const struct sotto_i_bpe_pair * pair) {
    bpe->next[bpe->next[pair->begin]] = 0;
    bpe->next[pair->begin] = pair->end;
    if (pair->end < n)
        bpe->previous[pair->end] = pair->begin;
}

static void merge(struct sotto_i_bpe * bpe, const struct sotto_i_vocab * vocab, const char * piece, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        bpe->next[i] = i + 1;
        bpe->previous[i] = i - 1;
    }
    bpe->n_heap = 0;
    for (int32_t i = 0; i < n; i++)
        propose(bpe, vocab, piece, n, i);
    while (bpe->n_heap > 0) {
        struct sotto_i_bpe_pair pair = heap_pop(bpe);
        if (!still_a_pair(bpe, n, &pair))
            continue;
        join(bpe, n, &pair);
        if (bpe->previous[pair.begin] >= 0)
            propose(bpe, vocab, piece, n, bpe->previous[pair.begin]);
        propose(bpe, vocab, piece, n, pair.begin);
    }
}

/* Room for a piece of n bytes. Of pairs there are n - 1 at first, and each of at most n - 1 joins takes one out and
 * adds two, so that 2n always fit. */
static enum sotto_status reserve(struct sotto_i_bpe * bpe, size_t n) {
    if (n <= bpe->room)
        return SOTTO_OK;
    if (n > INT32_MAX / 2)
        return sotto_fail(SOTTO_E_LIMIT, "tokenize: a piece of %zu bytes without a break is too long", n);
    size_t room = n < 128 ? 128 : n;
    sotto_i_bpe_free(bpe);
    bpe->next = sotto_malloc(bpe->allocator, room, sizeof(*bpe->next));
    bpe->previous = sotto_malloc(bpe->allocator, room, sizeof(*bpe->previous));
    bpe->heap = sotto_malloc(bpe->allocator, 2 * room, sizeof(*bpe->heap));
    bpe->room = room;
    if (bpe->next && bpe->previous && bpe->heap)
        return SOTTO_OK;
    sotto_i_bpe_free(bpe);
    return SOTTO_E_MEMORY;
}

enum sotto_status sotto_i_bpe_encode(struct sotto_i_bpe * bpe, const struct sotto_i_vocab * vocab, const char * piece,
                                     size_t n, int32_t * ids, size_t capacity, size_t * count) {
    enum sotto_status status = reserve(bpe, n);
    if (status != SOTTO_OK)
        return status;
    merge(bpe, vocab, piece, (int32_t)n);
    for (int32_t at = 0; at < (int32_t)n; at = bpe->next[at]) {
        if (*count < capacity)
            ids[*count] = sotto_i_vocab_find(vocab, piece + at, (size_t)(bpe->next[at] - at));
        ++*count;
    }
    return SOTTO_OK;
}

void sotto_i_bpe_free(struct sotto_i_bpe * bpe) {
    sotto_mfree(bpe->allocator, bpe->next, bpe->room, sizeof(*bpe->next));
    sotto_mfree(bpe->allocator, bpe->previous, bpe->room, sizeof(*bpe->previous));
    sotto_mfree(bpe->allocator, bpe->heap, 2 * bpe->room, sizeof(*bpe->heap));
    *bpe = (struct sotto_i_bpe){ .allocator = bpe->allocator };
}
