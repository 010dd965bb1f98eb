/* SPDX-License-Identifier: MIT */
/* What a recording gave: windows, segments, tokens and text, in arrays that grow. A segment's tokens are a part of its
 * window's. */
#ifndef SOTTO_SPEECH_RESULT_H
#define SOTTO_SPEECH_RESULT_H

#include "choose.h"

struct sotto_i_bytes { /* bytes that grow */
    char * data;
    size_t size, capacity;
};

struct sotto_i_found_segment {
    struct sotto_segment shown;
    size_t text_at;  /* in text */
    size_t token_at; /* in tokens */
};

struct sotto_i_found_window {
    struct sotto_window shown;
    size_t token_at;
};

struct sotto_i_result {
    const struct sotto_allocator * allocator;
    struct sotto_i_bytes text;
    struct sotto_token_data * tokens;
    struct sotto_i_found_segment * segments;
    struct sotto_i_found_window * windows;
    size_t n_tokens, n_segments, n_windows;
    size_t max_tokens, max_segments, max_windows;
};

void sotto_i_result_clear(struct sotto_i_result * result); /* empty; memory stays */
void sotto_i_result_free(struct sotto_i_result * result);

/* Append; on MEMORY the result is as before. `_add_segment` takes n tokens of the newest window from `first` on, and
 * puts text and tokens into a copy of `segment`. */
enum sotto_status sotto_i_result_add_window(struct sotto_i_result * result, const struct sotto_window * window,
                                            const struct sotto_i_choice * tokens);
enum sotto_status sotto_i_result_add_segment(struct sotto_i_result * result, const struct sotto_segment * segment,
                                             const char * text, size_t size, int first, int n);

/* Append bytes, a 0 is kept behind them. */
enum sotto_status sotto_i_bytes_append(struct sotto_i_bytes * text, const struct sotto_allocator * allocator,
                                       const char * data, size_t size);

#endif
