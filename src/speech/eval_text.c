/* SPDX-License-Identifier: MIT */
/* Growing texts of code points, from UTF-8 and back. */
#include "speech/eval_text.h"

#include "speech/unicode.h"

void sotto_i_points_free(struct sotto_i_points * text) {
    sotto_mfree(text->allocator, text->points, text->capacity, sizeof(uint32_t));
    *text = (struct sotto_i_points){ .allocator = text->allocator };
}

static bool room(struct sotto_i_points * text) {
    if (text->failed || text->n < text->capacity)
        return !text->failed;
    size_t capacity = text->capacity > 0 ? text->capacity * 2 : 64;
    uint32_t * points = sotto_realloc(text->allocator, text->points, text->capacity, capacity, sizeof(uint32_t));
    text->failed = points == NULL;
    if (text->failed)
        return false;
    text->points = points;
    text->capacity = capacity;
    return true;
}

void sotto_i_points_push(struct sotto_i_points * text, uint32_t point) {
    if (room(text))
        text->points[text->n++] = point;
}

void sotto_i_points_put(struct sotto_i_points * text, const char * ascii) {
    for (; *ascii != 0; ascii++)
        sotto_i_points_push(text, (unsigned char)*ascii);
}

void sotto_i_points_append(struct sotto_i_points * text, const uint32_t * points, size_t n) {
    for (size_t i = 0; i < n; i++)
        sotto_i_points_push(text, points[i]);
}

void sotto_i_points_read(struct sotto_i_points * text, const char * bytes, size_t size) {
    size_t length;
    for (size_t at = 0; at < size; at += length) {
        uint32_t point;
        length = sotto_i_utf8_next(bytes + at, size - at, &point);
        sotto_i_points_push(text, point == UINT32_MAX ? 0xFFFD : point);
    }
}

static size_t length_of(uint32_t point) {
    if (point < 0x80)
        return 1;
    if (point < 0x800)
        return 2;
    return point < 0x10000 ? 3 : 4;
}

static void write_point(char * to, uint32_t point, size_t length) {
    static const unsigned char lead[5] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (size_t i = length; i-- > 1; point >>= 6)
        to[i] = (char)(0x80 | (point & 0x3F));
    to[0] = (char)(lead[length] | point);
}

char * sotto_i_points_utf8(const struct sotto_i_points * text, size_t * size) {
    *size = 0;
    if (text->failed)
        return NULL;
    for (size_t i = 0; i < text->n; i++)
        *size += length_of(text->points[i]);
    char * bytes = sotto_malloc(text->allocator, *size + 1, 1);
    if (bytes == NULL)
        return NULL;
    char * to = bytes;
    for (size_t i = 0; i < text->n; i++) {
        size_t length = length_of(text->points[i]);
        write_point(to, text->points[i], length);
        to += length;
    }
    *to = 0;
    return bytes;
}

bool sotto_i_spells(const uint32_t * points, size_t n, const char * ascii) {
    for (size_t i = 0; i < n; i++) {
        if (points[i] != (unsigned char)ascii[i] || ascii[i] == 0)
            return false;
    }
    return ascii[n] == 0;
}
