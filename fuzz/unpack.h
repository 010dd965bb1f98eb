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

/* Most bytes of a file; what comes after them is left out. JSON takes many times its size when it is parsed. */
#define FUZZ_MOST_WEIGHTS ((size_t)16 << 20)
#define FUZZ_MOST_TEXT    ((size_t)3 << 19)

/* Write the next file of the input to `fd`, in place of what it holds; how many bytes, `most` at most. */
size_t fuzz_unpack(struct fuzz_input * in, int fd, size_t most);

/* A folder in memory that is removed at exit, and the path of a file in it: static memory, the last four are kept. */
const char * fuzz_folder(void);
const char * fuzz_path(const char * name);
/* fuzz_unpack to a file in the folder. */
size_t fuzz_unpack_to(struct fuzz_input * in, const char * name, size_t most);

/* Token `id` of that vocabulary in the byte alphabet, with a 0; 5 bytes at most. */
void fuzz_spell_token(unsigned id, char * out);

#endif
