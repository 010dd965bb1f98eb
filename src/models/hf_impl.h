/* SPDX-License-Identifier: MIT */
/* A Hugging Face folder, between its files: settings (hf_config.c), vocabulary (hf_vocab.c), weights (from_hf.c). */
#ifndef SOTTO_MODELS_HF_IMPL_H
#define SOTTO_MODELS_HF_IMPL_H

#include "models/models_json.h"

/* config.json: MODEL_ARCH, _HPARAMS, _CONFIG. */
enum sotto_status sotto_i_hf_sizes(struct whisper_source * source, const char * folder);
/* Lists of all settings, and what has to agree with the sizes: MODEL_CONFIG. */
enum sotto_status sotto_i_hf_settings(struct whisper_source * source, const char * folder);
/* tokenizer.json, else vocab.json with added_tokens.json: MODEL_VOCAB. */
enum sotto_status sotto_i_hf_vocabulary(struct whisper_source * source, const char * folder);

#endif
