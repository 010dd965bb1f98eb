/* SPDX-License-Identifier: MIT */
/* Spelled-out English numbers become digits. */
#ifndef SOTTO_SPEECH_EVAL_NUMBERS_H
#define SOTTO_SPEECH_EVAL_NUMBERS_H

#include "speech/eval_text.h"

/* One pass over words in lower case: "two million and five dollars" becomes "$2000005"; words are set apart by one
 * space. Halves, units and cents are the caller's. */
void sotto_i_numbers(const struct sotto_i_points * in, struct sotto_i_points * out);

/* Is it a digit or a ten in letters, or a multiplier such as "hundred"? */
bool sotto_i_takes_half(const uint32_t * word, size_t n);

#endif
