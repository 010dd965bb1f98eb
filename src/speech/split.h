/* SPDX-License-Identifier: MIT */
/* The word split before byte pair encoding: cuts UTF-8 text into pieces that no token crosses. */
#ifndef SOTTO_SPEECH_SPLIT_H
#define SOTTO_SPEECH_SPLIT_H

#include <stddef.h>

/* Length in bytes of the piece that `text` begins with; n > 0 bytes are there, and 1..n is returned. Any bytes are
 * accepted: those that are no UTF-8 count one by one as neither letter, number nor space. */
size_t sotto_i_split_next(const char * text, size_t n);

#endif
