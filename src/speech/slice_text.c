/* SPDX-License-Identifier: MIT */
#include "slice_text.h"

#include <string.h>

enum { MOST_DUE = 3 }; /* bytes of a character after its first */

enum sotto_status sotto_i_text_of(const struct sotto_i_tokenizer * tokenizer, int32_t eot, const int32_t * tokens,
                                  int n, struct sotto_i_bytes * text, const struct sotto_allocator * allocator) {
    text->size = 0;
    enum sotto_status status = sotto_i_bytes_append(text, allocator, "", 0);
    for (int i = 0; i < n && status == SOTTO_OK; i++) {
        if (tokens[i] >= eot)
            continue;
        size_t size;
        const char * bytes = sotto_i_tokenizer_bytes(tokenizer, tokens[i], &size);
        status = sotto_i_bytes_append(text, allocator, bytes, size);
    }
    return status;
}

static bool goes_on(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

/* How many bytes the last character of a text lacks. */
static size_t due(const char * text, size_t size) {
    for (size_t n = 1; n <= MOST_DUE && n <= size; n++) {
        unsigned char byte = (unsigned char)text[size - n];
        if (goes_on(text[size - n]))
            continue;
        size_t length = byte < 0xC2 || byte > 0xF4 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        return length > n ? length - n : 0;
    }
    return 0;
}

/* The first bytes of a slice's text, at most `want`; how many. */
static size_t head_of(const struct sotto_i_slices * s, const struct sotto_i_slice * slice, char * head, size_t want) {
    size_t n = 0;
    for (int i = slice->first; i < slice->end && n < want; i++) {
        size_t size = 0;
        const char * bytes = s->tokens[i] < s->eot ? sotto_i_tokenizer_bytes(s->tokenizer, s->tokens[i], &size) : NULL;
        for (size_t k = 0; k < size && n < want; k++)
            head[n++] = bytes[k];
    }
    return n;
}

/* What slice i takes from the next one to complete `text`, its own; how many bytes. A slice without length is not
 * shown and takes nothing. */
static size_t take(const struct sotto_i_slices * s, int i, const struct sotto_i_bytes * text, char * taken) {
    const struct sotto_i_slice * slice = &s->cut->slices[i];
    size_t want = i + 1 < s->cut->n && slice->t0 != slice->t1 ? due(text->data, text->size) : 0;
    if (want == 0 || head_of(s, slice + 1, taken, want) < want)
        return 0;
    for (size_t k = 0; k < want; k++)
        if (!goes_on(taken[k]))
            return 0;
    return want;
}

static enum sotto_status own_text(const struct sotto_i_slices * s, int i, struct sotto_i_bytes * text,
                                  const struct sotto_allocator * allocator) {
    const struct sotto_i_slice * slice = &s->cut->slices[i];
    return sotto_i_text_of(s->tokenizer, s->eot, s->tokens + slice->first, slice->end - slice->first, text, allocator);
}

enum sotto_status sotto_i_slice_text(const struct sotto_i_slices * slices, int i, struct sotto_i_bytes * text,
                                     const struct sotto_allocator * allocator) {
    char taken[MOST_DUE];
    size_t gone = 0;
    enum sotto_status status = i > 0 ? own_text(slices, i - 1, text, allocator) : SOTTO_OK;
    if (status == SOTTO_OK && i > 0)
        gone = take(slices, i - 1, text, taken);
    if (status == SOTTO_OK)
        status = own_text(slices, i, text, allocator);
    if (status != SOTTO_OK)
        return status;
    size_t n = take(slices, i, text, taken);
    memmove(text->data, text->data + gone, text->size - gone);
    text->size -= gone;
    return sotto_i_bytes_append(text, allocator, taken, n);
}
