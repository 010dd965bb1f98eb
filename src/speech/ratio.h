/* SPDX-License-Identifier: MIT */
/* How well text can be compressed: high for text that repeats itself. */
#ifndef SOTTO_SPEECH_RATIO_H
#define SOTTO_SPEECH_RATIO_H

#include "sotto/speech.h"

struct sotto_i_ratio; /* a compressor, made once and used for every window */

/* NULL and MEMORY on failure. */
struct sotto_i_ratio * sotto_i_ratio_new(const struct sotto_allocator * allocator);
void sotto_i_ratio_free(struct sotto_i_ratio * ratio);

/* Bytes of the text without outer white space / bytes of its zlib stream at level 6; 0 for nothing. */
float sotto_i_ratio_of(struct sotto_i_ratio * ratio, const char * text, size_t size);

/* Leave out white space (ASCII) at both ends: the first byte, and how many. */
const char * sotto_i_trim(const char * text, size_t * size);

#endif
