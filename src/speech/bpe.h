/* SPDX-License-Identifier: MIT */
/* Byte pair encoding of one piece of text. */
#ifndef SOTTO_SPEECH_BPE_H
#define SOTTO_SPEECH_BPE_H

#include "vocab.h"

/* Work area, kept from piece to piece; starts zeroed except for `allocator`. */
struct sotto_i_bpe {
    const struct sotto_allocator * allocator;
    size_t room; /* longest piece that fits */
    int32_t * next;
    int32_t * previous;
    struct sotto_i_bpe_pair * heap;
    size_t n_heap;
};

/* Encode n bytes and append to the list of ids: ids[*count] and on are written as far as they lie below `capacity`, and
 * *count grows by the number of tokens (at most n). Time is n log n. LIMIT for a piece over a gigabyte; MEMORY. */
enum sotto_status sotto_i_bpe_encode(struct sotto_i_bpe * bpe, const struct sotto_i_vocab * vocab, const char * piece,
                                     size_t n, int32_t * ids, size_t capacity, size_t * count);
void sotto_i_bpe_free(struct sotto_i_bpe * bpe);

#endif
