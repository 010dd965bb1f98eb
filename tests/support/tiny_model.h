/* SPDX-License-Identifier: MIT */
/* A generated Whisper for tests: width 64, one layer each side, the full multilingual vocabulary, seeded weights. It
 * recognises nothing, but every part of the recogniser runs on it in little time. */
#ifndef SOTTO_TESTS_TINY_MODEL_H
#define SOTTO_TESTS_TINY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "sotto/types.h"

/* Write it as GGUF to `path`; matrices get `type` (f32 or f16). False and a message on stderr on failure. */
bool tiny_model_write(const char * path, enum sotto_type type, uint32_t seed);

/* Path of a tiny model in the build folder, written at the first call of each process; NULL on failure. */
const char * tiny_model(void);

/* For tests that run the network hundreds of times to look at something else: where plain C was asked for, take the best
 * level instead. Its second a window would make minutes; what it computes is compared in test_same_bits. */
void tiny_model_not_plain_c(void);

#endif
