/* SPDX-License-Identifier: MIT */
/* What the normalisers of text know about Unicode, in the ways of Python, in which the reference is written. */
#ifndef SOTTO_SPEECH_EVAL_UNICODE_H
#define SOTTO_SPEECH_EVAL_UNICODE_H

#include <stdbool.h>

#include "speech/eval_text.h"

enum sotto_i_drop {
    SOTTO_I_DROP_KEEP = 0,
    SOTTO_I_DROP_NONSPACING = 1, /* category Mn */
    SOTTO_I_DROP_SYMBOL = 2      /* the other M*, S*, P* */
};
enum sotto_i_drop sotto_i_drop_class(uint32_t point);

bool sotto_i_is_space(uint32_t point);   /* as \s */
bool sotto_i_is_word(uint32_t point);    /* as \w */
int sotto_i_digit_value(uint32_t point); /* 0..9, -1 for what is no decimal digit */

/* Lower case of a whole text, as str.lower; sigma at the end of a word has its own. */
void sotto_i_lower(const struct sotto_i_points * in, struct sotto_i_points * out);

/* Normal form KD: compatibility decomposition, marks in canonical order. */
void sotto_i_nfkd(const struct sotto_i_points * in, struct sotto_i_points * out);
/* From there to normal form KC. */
void sotto_i_compose(const struct sotto_i_points * in, struct sotto_i_points * out);

/* Does a grapheme cluster go on from `a` to `b`? Marks and symbols are thought to be gone. */
bool sotto_i_joins(uint32_t a, uint32_t b);

#endif
