/* SPDX-License-Identifier: MIT */
/* A generated Whisper for tests: width 64 (or one block of a type whose blocks are larger), one layer each side, the full multilingual vocabulary, seeded weights. It
 * recognises nothing, but every part of the recogniser runs on it in little time. Of a quantised one, rows repeat
 * themselves after some hundreds, since making them takes long. */
#ifndef SOTTO_TESTS_TINY_MODEL_H
#define SOTTO_TESTS_TINY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "sotto/types.h"

/* Write it as GGUF to `path`; matrices get `type`: f32, f16, bf16 or any that can be quantised to, kernels of convolutions
 * f16 then. False and a message on stderr on failure. */
bool tiny_model_write(const char * path, enum sotto_type type, uint32_t seed);

/* Its width. */
int64_t tiny_model_width(enum sotto_type type);

/* Path of a tiny model in the build folder, written at the first call of each process; NULL on failure. */
const char * tiny_model(void);

/* For tests that run the network hundreds of times to look at something else: where plain C was asked for, take the best
 * level instead. Its second a window would make minutes; what it computes is compared in test_same_bits. */
void tiny_model_not_plain_c(void);

#endif
