/* SPDX-License-Identifier: MIT */
/* A text as code points, which grows. After an allocation has failed, more is ignored and `failed` says so. */
#ifndef SOTTO_SPEECH_EVAL_TEXT_H
#define SOTTO_SPEECH_EVAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/alloc.h"

struct sotto_i_points {
    const struct sotto_allocator * allocator;
    uint32_t * points;
    size_t n, capacity;
    bool failed;
};

void sotto_i_points_free(struct sotto_i_points * text);
void sotto_i_points_push(struct sotto_i_points * text, uint32_t point);
void sotto_i_points_put(struct sotto_i_points * text, const char * ascii);
void sotto_i_points_append(struct sotto_i_points * text, const uint32_t * points, size_t n);

/* Bytes that are not UTF-8 become U+FFFD. */
void sotto_i_points_read(struct sotto_i_points * text, const char * bytes, size_t size);
/* As UTF-8 with a 0 behind, *size + 1 bytes; NULL and MEMORY on failure. */
char * sotto_i_points_utf8(const struct sotto_i_points * text, size_t * size);

/* Do n points spell this ASCII word? */
bool sotto_i_spells(const uint32_t * points, size_t n, const char * ascii);

#endif
