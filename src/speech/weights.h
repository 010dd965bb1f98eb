/* SPDX-License-Identifier: MIT */
/* From a GGUF file to the tensors of a model. */
#ifndef SOTTO_SPEECH_WEIGHTS_H
#define SOTTO_SPEECH_WEIGHTS_H

#include "sotto/gguf.h"

#include "model.h"

/* Make the tensors of spec 1.6 from the sizes in model->hp and fill them from the file: `path` names it, `gguf` is its
 * directory. On failure what was made stays in the model, for sotto_model_free. */
enum sotto_status sotto_i_weights_load(struct sotto_model * model, const char * path, struct sotto_gguf_context * gguf,
                                       bool check);

#endif
