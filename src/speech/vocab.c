/* SPDX-License-Identifier: MIT */
/* The byte strings of tokens and the hash table over them. */
#include "vocab.h"

#include <stdbool.h>
#include <string.h>

#include "unicode.h"

/* ---- strings ---- */

enum sotto_status sotto_i_vocab_init(struct sotto_i_vocab * vocab, int32_t room,
                                     const struct sotto_allocator * allocator) {
    *vocab = (struct sotto_i_vocab){ .allocator = allocator, .room = room };
    vocab->offsets = sotto_calloc(allocator, (size_t)room + 1, sizeof(*vocab->offsets));
    return vocab->offsets ? SOTTO_OK : SOTTO_E_MEMORY;
}

void sotto_i_vocab_free(struct sotto_i_vocab * vocab) {
    sotto_mfree(vocab->allocator, vocab->offsets, (size_t)vocab->room + 1, sizeof(*vocab->offsets));
    sotto_mfree(vocab->allocator, vocab->bytes, vocab->bytes_room, 1);
    sotto_mfree(vocab->allocator, vocab->table, vocab->table_size, sizeof(*vocab->table));
    *vocab = (struct sotto_i_vocab){ .allocator = vocab->allocator };
}

const char * sotto_i_vocab_bytes(const struct sotto_i_vocab * vocab, int32_t id, size_t * size) {
    *size = vocab->offsets[id + 1] - vocab->offsets[id] - 1;
    return vocab->bytes + vocab->offsets[id];
}

/* Make room for one more string of `size` bytes and its 0. */
static enum sotto_status grow(struct sotto_i_vocab * vocab, size_t size) {
    if (vocab->n >= vocab->room || size > SOTTO_I_MAX_TOKEN || vocab->n_bytes > UINT32_MAX - size - 1)
        return sotto_fail(SOTTO_E_MODEL_VOCAB,
                          "vocab: token %d of %zu bytes does not fit; a token has at most %d bytes", (int)vocab->n,
                          size, SOTTO_I_MAX_TOKEN);
    if (vocab->bytes_room - vocab->n_bytes > size)
        return SOTTO_OK;
    if (vocab->bytes_room > SIZE_MAX / 2 - SOTTO_I_MAX_TOKEN)
        return sotto_fail(SOTTO_E_MEMORY, "vocab: the text of all tokens is too long");
    size_t room = 2 * vocab->bytes_room + 2 * SOTTO_I_MAX_TOKEN;
    char * bytes = sotto_realloc(vocab->allocator, vocab->bytes, vocab->bytes_room, room, 1);
    if (!bytes)
        return SOTTO_E_MEMORY;
    vocab->bytes = bytes;
    vocab->bytes_room = room;
    return SOTTO_OK;
}

/* The `size` bytes now at bytes + n_bytes are the next string. */
static void finish(struct sotto_i_vocab * vocab, size_t size) {
    vocab->bytes[vocab->n_bytes + size] = 0;
    vocab->n_bytes += size + 1;
    vocab->offsets[++vocab->n] = (uint32_t)vocab->n_bytes;
}

enum sotto_status sotto_i_vocab_add(struct sotto_i_vocab * vocab, const char * bytes, size_t size) {
    enum sotto_status status = grow(vocab, size);
    if (status != SOTTO_OK)
        return status;
    if (size > 0)
        memcpy(vocab->bytes + vocab->n_bytes, bytes, size);
    finish(vocab, size);
    return SOTTO_OK;
}

/* ---- the alphabet ---- */

/* The byte that a character of the alphabet stands for, -1 if it is none of them. Bytes 0..32, 127..160 and 173 do not
 * print and are the code points from 256 on, in this order. */
static int byte_of(uint32_t point) {
    if (point >= 256 && point < 256 + 33)
        return (int)point - 256;
    if (point >= 289 && point < 289 + 34)
        return (int)point - 289 + 127;
    if (point == 323)
        return 173;
    bool prints = (point >= 33 && point <= 126) || (point >= 161 && point <= 172) || (point >= 174 && point <= 255);
    return prints ? (int)point : -1;
}

enum sotto_status sotto_i_vocab_add_spelled(struct sotto_i_vocab * vocab, const char * text, size_t size) {
    enum sotto_status status = grow(vocab, size);
    if (status != SOTTO_OK)
        return status;
    size_t n = 0;
    for (size_t at = 0; at < size;) {
        uint32_t point;
        at += sotto_i_utf8_next(text + at, size - at, &point);
        int byte = byte_of(point);
        if (byte < 0)
            return sotto_fail(SOTTO_E_MODEL_VOCAB, "vocab: token %d holds a character that spells no byte",
                              (int)vocab->n);
        vocab->bytes[vocab->n_bytes + n++] = (char)byte;
    }
    finish(vocab, n);
    return SOTTO_OK;
}

/* ---- table ---- */

static uint32_t hash(const char * bytes, size_t size) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)bytes[i]) * 16777619u;
    return h ^ h >> 15;
}

/* The slot that holds the string, or the free one where it belongs. */
static size_t slot_of(const struct sotto_i_vocab * vocab, const char * bytes, size_t size) {
    size_t mask = vocab->table_size - 1;
    size_t slot = hash(bytes, size) & mask;
    for (; vocab->table[slot] >= 0; slot = (slot + 1) & mask) {
        size_t other_size;
        const char * other = sotto_i_vocab_bytes(vocab, vocab->table[slot], &other_size);
        if (other_size == size && memcmp(other, bytes, size) == 0)
            break;
    }
    return slot;
}

static void fill_table(struct sotto_i_vocab * vocab, int32_t n) {
    for (size_t slot = 0; slot < vocab->table_size; slot++)
        vocab->table[slot] = -1;
    for (int32_t id = 0; id < n; id++) {
        size_t size;
        const char * bytes = sotto_i_vocab_bytes(vocab, id, &size);
        if (size == 0)
            continue;
        size_t slot = slot_of(vocab, bytes, size);
        if (vocab->table[slot] < 0)
            vocab->table[slot] = id;
        if (size > vocab->longest)
            vocab->longest = size;
    }
}

enum sotto_status sotto_i_vocab_index(struct sotto_i_vocab * vocab, int32_t n) {
    vocab->table_size = 512;
    while (vocab->table_size / 2 < (size_t)n)
        vocab->table_size *= 2;
    vocab->table = sotto_malloc(vocab->allocator, vocab->table_size, sizeof(*vocab->table));
    if (!vocab->table)
        return SOTTO_E_MEMORY;
    fill_table(vocab, n);
    for (unsigned value = 0; value < 256; value++) {
        char byte = (char)value;
        if (sotto_i_vocab_find(vocab, &byte, 1) < 0)
            return sotto_fail(SOTTO_E_MODEL_VOCAB, "vocab: no token stands for byte %u alone", value);
    }
    return SOTTO_OK;
}

int32_t sotto_i_vocab_find(const struct sotto_i_vocab * vocab, const char * bytes, size_t size) {
    if (size == 0 || size > vocab->longest)
        return -1;
    return vocab->table[slot_of(vocab, bytes, size)];
}
