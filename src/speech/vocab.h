/* SPDX-License-Identifier: MIT */
/* The tokens of a model: id to byte string, and back for the ordinary ones.
 *
 *     bytes   all strings one after another, a 0 after each; string i begins at offsets[i] and ends before the 0 that
 *             precedes offsets[i + 1]
 *     table   open addressing over ids, -1 where free, its size a power of two at least twice the number of strings
 *
 * Made in three steps: init, one add for each id in ascending order, index. */
#ifndef SOTTO_SPEECH_VOCAB_H
#define SOTTO_SPEECH_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "sotto/alloc.h"

#define SOTTO_I_MAX_TOKEN 1024 /* bytes of a spelling */

struct sotto_i_vocab {
    const struct sotto_allocator * allocator;
    int32_t n;          /* strings added */
    int32_t room;       /* strings that fit */
    uint32_t * offsets; /* room + 1 */
    char * bytes;
    size_t n_bytes;
    size_t bytes_room;
    int32_t * table;
    size_t table_size;
    size_t longest; /* bytes of the longest indexed string */
};

/* Prepare for `room` strings. MEMORY. On failure of this or a later step the caller frees. */
enum sotto_status sotto_i_vocab_init(struct sotto_i_vocab * vocab, int32_t room,
                                     const struct sotto_allocator * allocator);

/* Add the next string: as it is, or spelled in the alphabet of text files (a byte that prints is the character of that
 * number, the others are moved past U+0100). MODEL_VOCAB when it is longer than SOTTO_I_MAX_TOKEN, does not fit or is
 * not in the alphabet; MEMORY. */
enum sotto_status sotto_i_vocab_add(struct sotto_i_vocab * vocab, const char * bytes, size_t size);
enum sotto_status sotto_i_vocab_add_spelled(struct sotto_i_vocab * vocab, const char * text, size_t size);

/* Make the first n strings findable, the lowest id among equals; the empty string never is. MODEL_VOCAB when one of
 * the 256 single bytes is missing; MEMORY. */
enum sotto_status sotto_i_vocab_index(struct sotto_i_vocab * vocab, int32_t n);

void sotto_i_vocab_free(struct sotto_i_vocab * vocab);

/* Bytes of a token, 0 <= id < n, with a 0 after them. */
const char * sotto_i_vocab_bytes(const struct sotto_i_vocab * vocab, int32_t id, size_t * size);

/* The id of a byte string, -1 if it is no indexed token. */
int32_t sotto_i_vocab_find(const struct sotto_i_vocab * vocab, const char * bytes, size_t size);

#endif
