/* SPDX-License-Identifier: MIT */
/* Inputs that stand for large files: Whisper's vocabulary alone has 51,864 entries, which no seed should spell out.
 *
 *   EC EC        the byte EC
 *   EC 00 u32    that many bytes of 0
 *   EC 01 u32    that many empty lines
 *   EC 02 u32    that many times  ,""
 *   EC 03        the end of this file; the next one begins
 *   EC 04 u32    entries 0.. of a JSON object of tokens: every byte, then pairs of bytes, then one that is empty
 *
 * All other bytes stand for themselves. */
#ifndef SOTTO_FUZZ_UNPACK_H
#define SOTTO_FUZZ_UNPACK_H

#include "fuzz/fuzz.h"

#define FUZZ_MOST_UNPACKED ((size_t)16 << 20) /* what comes after it is left out */

/* Write the next file of the input to `fd`, in place of what it holds; how many bytes. */
size_t fuzz_unpack(struct fuzz_input * in, int fd);

/* A folder in memory that is removed at exit, and the path of a file in it: static memory, the last four are kept. */
const char * fuzz_folder(void);
const char * fuzz_path(const char * name);
/* fuzz_unpack to a file in the folder. */
size_t fuzz_unpack_to(struct fuzz_input * in, const char * name);

/* Token `id` of that vocabulary in the byte alphabet, with a 0; 5 bytes at most. */
void fuzz_spell_token(unsigned id, char * out);

#endif
