/* SPDX-License-Identifier: MIT */
/* What all parts of a container are made of, checked against what is left of the file: numbers, lengths, blocks of bytes
 * and text. Blocks grow as their bytes arrive, so that a false length costs nothing. */
#include "gguf/gguf_parser.h"

#define FIRST_BLOCK ((size_t)1 << 18)

enum sotto_status sotto_i_gguf_field(struct gguf_parser * p, void * dst, size_t width, const char * what) {
    struct gguf_source * source = p->source;
    uint64_t left = sotto_i_gguf_left(source);
    if (width > left)
        return sotto_i_gguf_fail(source->pos, SOTTO_E_GGUF_TRUNCATED, "gguf: %s: %s needs %zu bytes, %llu are left",
                                 source->name, what, width, (unsigned long long)left);
    if (source->pos + width > p->params->max_meta_bytes)
        return sotto_i_gguf_fail(source->pos, SOTTO_E_LIMIT,
                                 "gguf: %s: more than %llu bytes before the tensors; raise max_meta_bytes",
                                 source->name, (unsigned long long)p->params->max_meta_bytes);
    return sotto_i_gguf_read(source, dst, width);
}

/* One number of `width` bytes. */
static enum sotto_status number(struct gguf_parser * p, void * value, size_t width, const char * what) {
    enum sotto_status status = sotto_i_gguf_field(p, value, width, what);
    if (status == SOTTO_OK && p->ctx->swapped)
        sotto_i_gguf_swap(value, width, 1);
    return status;
}

enum sotto_status sotto_i_gguf_u32(struct gguf_parser * p, uint32_t * value, const char * what) {
    return number(p, value, sizeof(*value), what);
}

enum sotto_status sotto_i_gguf_u64(struct gguf_parser * p, uint64_t * value, const char * what) {
    return number(p, value, sizeof(*value), what);
}

enum sotto_status sotto_i_gguf_length(struct gguf_parser * p, uint64_t * len, const char * what) {
    enum sotto_status status = sotto_i_gguf_u64(p, len, what);
    if (status != SOTTO_OK)
        return status;
    uint64_t left = sotto_i_gguf_left(p->source);
    if (*len <= left && *len <= p->params->max_string && *len < SIZE_MAX)
        return SOTTO_OK;
    return sotto_i_gguf_fail(p->source->pos - 8, SOTTO_E_GGUF_STRING_LENGTH,
                             "gguf: %s: %s has length %llu; %llu bytes are left, the limit is %llu", p->source->name,
                             what, (unsigned long long)*len, (unsigned long long)left,
                             (unsigned long long)p->params->max_string);
}

enum sotto_status sotto_i_gguf_block(struct gguf_parser * p, uint8_t ** block, size_t * size, size_t used, size_t n) {
    while (n > 0) {
        size_t piece = n < FIRST_BLOCK ? n : FIRST_BLOCK;
        if (*size > FIRST_BLOCK && n > piece)
            piece = n < *size ? n : *size;
        if (piece > *size - used) {
            size_t grown = *size <= SIZE_MAX / 2 ? *size * 2 : SIZE_MAX;
            if (grown < used + piece || grown > used + n)
                grown = used + piece;
            uint8_t * larger = sotto_realloc(p->ctx->allocator, *block, *size, grown, 1);
            if (larger == NULL)
                return SOTTO_E_MEMORY;
            *block = larger;
            *size = grown;
        }
        enum sotto_status status = sotto_i_gguf_field(p, *block + used, piece, "data");
        if (status != SOTTO_OK)
            return status;
        used += piece;
        n -= piece;
    }
    return SOTTO_OK;
}

/* Length of the well-formed UTF-8 character at s, 0 if there is none. */
static size_t utf8_length(const uint8_t * s, size_t left) {
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n > left)
        return 0;
    uint8_t low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    }
    return n;
}

bool sotto_i_gguf_is_utf8(const uint8_t * s, size_t len) {
    while (len > 0) {
        size_t n = utf8_length(s, len);
        if (n == 0)
            return false;
        s += n;
        len -= n;
    }
    return true;
}
