/* SPDX-License-Identifier: MIT */
/* For targets of model containers: what a reader found, looked at and converted. */
#ifndef SOTTO_FUZZ_READ_MODEL_H
#define SOTTO_FUZZ_READ_MODEL_H

#include "fuzz/fuzz.h"
#include "models/models_impl.h"

/* Read the model at `path`, which holds `size` bytes of weights. If it is accepted: every tensor has values, which
 * become those of the type number `wanted` of a few, or are refused because they are not finite; converted twice they are
 * the same. Nothing stays. */
void fuzz_read_model(whisper_reader reader, const char * path, size_t size, unsigned wanted);

#endif
