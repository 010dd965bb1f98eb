/* SPDX-License-Identifier: MIT */
/* Classes of characters by binary search in the generated table; a strict reader of UTF-8. */
#include "unicode.h"

struct range {
    uint32_t first;
    uint32_t last;
    enum sotto_i_char name;
};

static const struct range ranges[] = {
#define RANGE(first, last, name) { first, last, SOTTO_I_CHAR_##name },
#include "unicode.def"
#undef RANGE
};

enum sotto_i_char sotto_i_char_class(uint32_t point) {
    size_t low = 0;
    size_t high = sizeof(ranges) / sizeof(ranges[0]);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (point > ranges[middle].last)
            low = middle + 1;
        else if (point < ranges[middle].first)
            high = middle;
        else
            return ranges[middle].name;
    }
    return SOTTO_I_CHAR_OTHER;
}

/* Bytes that a lead byte asks for, 0 if it is none. */
static size_t length_of(unsigned char lead) {
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2)
        return 0;
    if (lead < 0xE0)
        return 2;
    if (lead < 0xF0)
        return 3;
    return lead < 0xF5 ? 4 : 0;
}

size_t sotto_i_utf8_next(const char * text, size_t n, uint32_t * point) {
    static const uint32_t smallest[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char * bytes = (const unsigned char *)text;
    size_t length = length_of(bytes[0]);
    *point = UINT32_MAX;
    if (length == 0 || length > n)
        return 1;
    uint32_t value = length == 1 ? bytes[0] : bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 1;
        value = value << 6 | (bytes[i] & 0x3F);
    }
    if (value < smallest[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 1;
    *point = value;
    return length;
}
