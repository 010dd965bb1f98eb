/* SPDX-License-Identifier: MIT */
/* The ordinary tokens of a model: id to byte string and back.
 *
 *     bytes   all strings one after another; string i lies between offsets[i] and offsets[i + 1]
 *     table   open addressing over ids, -1 where free, its size a power of two at least twice the number of strings
 *
 * Files spell a byte as one character of an alphabet (bytes that print stand for themselves, the others are moved past
 * U+0100); vocab_init undoes that. */
#ifndef SOTTO_SPEECH_VOCAB_H
#define SOTTO_SPEECH_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "sotto/alloc.h"

struct vocab {
    const struct sotto_allocator * allocator;
    int32_t n; /* number of strings */
    char * bytes;
    size_t bytes_size;
    uint32_t * offsets; /* n + 1 */
    int32_t * table;
    size_t table_size;
    size_t longest; /* bytes of the longest string */
};

/* Make it of n spelled strings, which are copied. MODEL_VOCAB when a string is NULL or not in the alphabet, or when one
 * of the 256 single bytes is missing; MEMORY. Of equal strings the lowest id is found; the empty string never is. */
enum sotto_status sotto_i_vocab_init(struct vocab * vocab, const char * const * spelled, int32_t n,
                                     const struct sotto_allocator * allocator);
void sotto_i_vocab_free(struct vocab * vocab); /* a zeroed one is allowed */

/* Bytes of a token, not terminated; id is 0..n-1. */
const char * sotto_i_vocab_bytes(const struct vocab * vocab, int32_t id, size_t * length);

/* The id of a byte string, -1 if it is no token. */
int32_t sotto_i_vocab_find(const struct vocab * vocab, const char * bytes, size_t length);

#endif
