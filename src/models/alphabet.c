/* SPDX-License-Identifier: MIT */
/* The alphabet in which files that store tokens as text spell bytes: one character a byte, so that every token is
 * printable UTF-8. Bytes that print stand for themselves; the other 68, in ascending order, are U+0100 and on. */
#include <stdbool.h>

#include "models/models_impl.h"

static bool prints(uint32_t c) { return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255); }

/* Byte of a code point, -1 if it is not in the alphabet. */
static int byte_of(uint32_t c) {
    if (prints(c))
        return (int)c;
    if (c >= 256 && c <= 288)
        return (int)c - 256;
    if (c >= 289 && c <= 322)
        return (int)c - 289 + 127;
    return c == 323 ? 173 : -1;
}

static uint32_t point_of(uint8_t byte) {
    if (prints(byte))
        return byte;
    return byte <= 32 ? 256u + byte : byte <= 160 ? 289u + byte - 127 : 323;
}

/* All characters of the alphabet have one or two bytes of UTF-8. */
int64_t sotto_i_alphabet_decode(const char * spelling, uint8_t * out) {
    const uint8_t * s = (const uint8_t *)spelling;
    int64_t n = 0;
    while (*s != 0) {
        uint32_t c = *s++;
        if (c >= 0xC2 && c <= 0xDF && (*s & 0xC0) == 0x80)
            c = (c & 0x1F) << 6 | (*s++ & 0x3F);
        else if (c >= 0x80)
            return -1;
        int byte = byte_of(c);
        if (byte < 0)
            return -1;
        out[n++] = (uint8_t)byte;
    }
    return n;
}

size_t sotto_i_alphabet_encode(const uint8_t * bytes, size_t n, char * out) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = point_of(bytes[i]);
        if (c >= 0x80)
            out[used++] = (char)(0xC0 | c >> 6);
        out[used++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3F));
    }
    out[used] = 0;
    return used;
}
