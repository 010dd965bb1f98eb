/* SPDX-License-Identifier: MIT */
/* Whisper models from one container into another.
 *
 *     if (sotto_convert("base-ct2", "base.gguf", NULL) != SOTTO_OK)
 *         fprintf(stderr, "%s\n", sotto_last_error_text());
 *
 * Read, and recognised by content:
 *   GGUF         sotto's own form
 *   .bin         whisper.cpp's form
 *   CTranslate2  a folder with model.bin, or its numbered parts; config.json; vocabulary.txt or vocabulary.json
 * with weights in f32, f16 or bf16. Written: GGUF, or .bin if the output's name ends so. No number in a file is trusted
 * before it is checked. */
#ifndef SOTTO_MODELS_H
#define SOTTO_MODELS_H

#include <stdbool.h>

#include "sotto/alloc.h"
#include "sotto/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called as the output grows, in bytes of tensors; false stops with ABORTED. */
typedef bool (*sotto_convert_progress)(uint64_t done, uint64_t total, void * user_data);

struct sotto_convert_params {
    uint32_t size;                            /* sizeof(struct sotto_convert_params) */
    enum sotto_type type;                     /* of matrices and convolutions: F16, F32, or COUNT (default): F16 if
                                                 they all are in the input, else F32. All other tensors are F32 */
    const struct sotto_allocator * allocator; /* NULL = default; JSON is parsed in jansson's own memory */
    sotto_convert_progress progress;          /* may be NULL */
    void * progress_user_data;
};
SOTTO_API struct sotto_convert_params sotto_convert_default_params(void);

/* Read the model at `in` and write it to `out`, which appears when it is whole and is otherwise left as it was. The
 * output depends only on the input. One tensor's piece at a time is in memory. params NULL: the defaults. What a form
 * has no place for is left out: .bin holds no lists (heads for alignment, suppressed tokens) and no specials' spellings.
 *   NULLARG, PARAM (type), UNSUPPORTED (a container or weights not read yet), ABORTED, MEMORY
 *   IO                          a file is missing or unreadable
 *   MODEL_FORMAT, _PICKLE       no container that sotto knows; one that it does not read
 *   MODEL_VERSION, _QUANT_VERSION, _ARCH       a newer or much older container; another kind of model
 *   MODEL_TRUNCATED, _CORRUPT   it ends too early; it contradicts itself
 *   MODEL_HPARAMS, _CONFIG, _VOCAB, _FILTERS   impossible sizes; the lists; the vocabulary; the mel filters
 *   MODEL_TENSOR_MISSING, _UNKNOWN, _DUPLICATE, _SHAPE, _SIZE, _TYPE   the message names the tensor
 *   MODEL_NAN                   a weight does not fit into f16
 *   GGUF_IO_...                 the output cannot be written */
SOTTO_API enum sotto_status sotto_convert(const char * in, const char * out,
                                          const struct sotto_convert_params * params);

#ifdef __cplusplus
}
#endif
#endif
