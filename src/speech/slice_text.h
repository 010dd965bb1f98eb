/* SPDX-License-Identifier: MIT */
/* Texts of a window's segments. One character may lie in two tokens, and these in two segments: it then belongs to the
 * first one. */
#ifndef SOTTO_SPEECH_SLICE_TEXT_H
#define SOTTO_SPEECH_SLICE_TEXT_H

#include "result.h"
#include "segment.h"

struct sotto_i_slices {
    const struct sotto_i_tokenizer * tokenizer;
    int32_t eot;
    const int32_t * tokens; /* of the window */
    const struct sotto_i_cut * cut;
};

/* Text of slice i into `text`, replacing what is there. MEMORY. */
enum sotto_status sotto_i_slice_text(const struct sotto_i_slices * slices, int i, struct sotto_i_bytes * text,
                                     const struct sotto_allocator * allocator);

/* Bytes of the text of n tokens, those of special ones left out. */
enum sotto_status sotto_i_text_of(const struct sotto_i_tokenizer * tokenizer, int32_t eot, const int32_t * tokens,
                                  int n, struct sotto_i_bytes * text, const struct sotto_allocator * allocator);

#endif
