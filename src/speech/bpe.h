/* SPDX-License-Identifier: MIT */
/* Byte pair encoding of one piece of text. */
#ifndef SOTTO_SPEECH_BPE_H
#define SOTTO_SPEECH_BPE_H

#include "vocab.h"

/* Work area, kept from piece to piece; starts zeroed except for `allocator`. */
struct bpe {
    const struct sotto_allocator * allocator;
    size_t room; /* longest piece that fits */
    int32_t * next;
    int32_t * previous;
    struct bpe_pair * heap;
    size_t n_heap;
};

/* Encode n bytes; ids has room for n, n_ids receives how many were written. Time is n log n. LIMIT for a piece of
 * more than a gigabyte; MEMORY. */
enum sotto_status sotto_i_bpe_encode(struct bpe * bpe, const struct vocab * vocab, const char * piece, size_t n,
                                     int32_t * ids, size_t * n_ids);
void sotto_i_bpe_free(struct bpe * bpe);

#endif
