/* SPDX-License-Identifier: MIT */
/* zlib's memory comes from our allocator; it frees without telling sizes, so each block carries its own in front. */
#include <string.h>

#include <zlib.h>

#include "ratio.h"

struct sotto_i_ratio {
    const struct sotto_allocator * allocator;
    z_stream stream;
};

#define HEAD 16 /* keeps 16-byte alignment behind the size */

static voidpf take(voidpf user_data, uInt items, uInt size) {
    struct sotto_i_ratio * ratio = user_data;
    size_t bytes = (size_t)items * size;
    uint8_t * block = sotto_malloc(ratio->allocator, bytes + HEAD, 1);
    if (!block)
        return Z_NULL;
    memcpy(block, &bytes, sizeof(bytes));
    return block + HEAD;
}

static void give_back(voidpf user_data, voidpf pointer) {
    struct sotto_i_ratio * ratio = user_data;
    if (!pointer)
        return;
    uint8_t * block = (uint8_t *)pointer - HEAD;
    size_t bytes;
    memcpy(&bytes, block, sizeof(bytes));
    sotto_mfree(ratio->allocator, block, bytes + HEAD, 1);
}

struct sotto_i_ratio * sotto_i_ratio_new(const struct sotto_allocator * allocator) {
    struct sotto_i_ratio * ratio = sotto_calloc(allocator, 1, sizeof(*ratio));
    if (!ratio)
        return NULL;
    ratio->allocator = allocator;
    ratio->stream.zalloc = take;
    ratio->stream.zfree = give_back;
    ratio->stream.opaque = ratio;
    if (deflateInit(&ratio->stream, 6) == Z_OK)
        return ratio;
    sotto_mfree(allocator, ratio, 1, sizeof(*ratio));
    sotto_fail(SOTTO_E_MEMORY, "sotto_state_new: zlib could not be started");
    return NULL;
}

void sotto_i_ratio_free(struct sotto_i_ratio * ratio) {
    if (!ratio)
        return;
    deflateEnd(&ratio->stream);
    sotto_mfree(ratio->allocator, ratio, 1, sizeof(*ratio));
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

const char * sotto_i_trim(const char * text, size_t * size) {
    while (*size > 0 && is_space(text[*size - 1]))
        --*size;
    while (*size > 0 && is_space(*text)) {
        text++;
        --*size;
    }
    return text;
}

float sotto_i_ratio_of(struct sotto_i_ratio * ratio, const char * text, size_t size) {
    text = sotto_i_trim(text, &size);
    if (size == 0)
        return 0;
    Bytef out[1024];
    z_stream * z = &ratio->stream;
    deflateReset(z);
    z->next_in = (Bytef *)(uintptr_t)text;
    z->avail_in = (uInt)size;
    int rc;
    do {
        z->next_out = out;
        z->avail_out = sizeof(out);
        rc = deflate(z, Z_FINISH);
    } while (rc == Z_OK);
    return (float)((double)size / (double)z->total_out);
}
