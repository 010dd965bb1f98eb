/* SPDX-License-Identifier: MIT */
/* A Whisper that is as small as one can be: width 32, one layer each side, 3 mel bands, 16 positions of text. */
#ifndef SOTTO_FUZZ_SMALL_MODEL_H
#define SOTTO_FUZZ_SMALL_MODEL_H

#include "fuzz/fuzz.h"
#include "sotto/types.h"

/* Write it as GGUF to `path`; matrices get `type`, whose blocks have 32 elements at most. */
void fuzz_small_model(const char * path, enum sotto_type type);

#endif
