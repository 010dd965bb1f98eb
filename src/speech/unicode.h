/* SPDX-License-Identifier: MIT */
/* What the recogniser has to know about Unicode: reading UTF-8, and three classes of characters. */
#ifndef SOTTO_SPEECH_UNICODE_H
#define SOTTO_SPEECH_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum sotto_i_char {
    SOTTO_I_CHAR_OTHER = 0,  /* marks, punctuation, symbols, controls, unassigned */
    SOTTO_I_CHAR_LETTER = 1, /* categories L* */
    SOTTO_I_CHAR_NUMBER = 2, /* categories N* */
    SOTTO_I_CHAR_SPACE = 3   /* property White_Space */
};

enum sotto_i_char sotto_i_char_class(uint32_t point);

/* Length in bytes (1..4) of the character at `text`, n > 0 bytes of which are there, and its code point. A byte that
 * begins no well-formed sequence (overlong forms, surrogates and points past U+10FFFF are ill-formed too) counts alone:
 * 1, and UINT32_MAX in `point`. */
size_t sotto_i_utf8_next(const char * text, size_t n, uint32_t * point);

#endif
