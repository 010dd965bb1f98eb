/* SPDX-License-Identifier: MIT */
/* Looking into model files: what is in them, as it is stored there, and whether it is sound.
 *
 *     struct sotto_model_file * file;
 *     if (sotto_model_file_open("base.gguf", NULL, &file) == SOTTO_OK)
 *         for (size_t i = 0; i < sotto_model_file_n_tensors(file); i++)
 *             puts(sotto_model_file_tensor(file, i)->name);
 *     sotto_model_file_free(file);
 *
 * Every container that sotto_convert reads, and GGUF files of any kind. Opening a container of another kind checks the
 * whole model in it, as sotto_convert would; values are looked at only when they are read. Getters accept NULL and answer
 * 0 or NULL. Several threads may read one file. */
#ifndef SOTTO_MODEL_FILE_H
#define SOTTO_MODEL_FILE_H

#include "sotto/gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sotto_model_file;

/* *file is NULL on failure: what sotto_convert returns for its input, and GGUF_* of sotto_gguf_open as they are; the
 * message names the place in the file. allocator NULL: the default. */
SOTTO_API enum sotto_status sotto_model_file_open(const char * path, const struct sotto_allocator * allocator,
                                                  struct sotto_model_file ** file);
SOTTO_API void sotto_model_file_free(struct sotto_model_file * file); /* NULL is allowed */

/* "GGUF", ".bin", "CTranslate2", "safetensors". */
SOTTO_API const char * sotto_model_file_container(const struct sotto_model_file * file);
/* Of the container: GGUF's, CTranslate2's; 0 where there is none. */
SOTTO_API uint32_t sotto_model_file_version(const struct sotto_model_file * file);
/* The container itself, NULL if it is not GGUF. It belongs to the file. */
SOTTO_API const struct sotto_gguf_context * sotto_model_file_gguf(const struct sotto_model_file * file);

/* The model's sizes, if it is a Whisper model that is not in GGUF, where they are pairs: "vocab_size" and so on. NULL
 * past the last. */
SOTTO_API const char * sotto_model_file_size(const struct sotto_model_file * file, size_t i, int64_t * value);

struct sotto_file_tensor {
    uint32_t size;        /* how much of this struct the library fills */
    const char * name;    /* as the container spells it, in any bytes */
    enum sotto_type type; /* I8 and I16 of CTranslate2 are integers with a scale in a tensor of their own */
    int rank;             /* axes that are written down */
    int64_t shape[4];     /* slowest axis first, as PyTorch has it */
    uint64_t n_elements;
    uint64_t n_bytes;
    uint64_t offset; /* of its first byte in the file, or in that part of several that it is in */
};
SOTTO_API size_t sotto_model_file_n_tensors(const struct sotto_model_file * file);
SOTTO_API const struct sotto_file_tensor * sotto_model_file_tensor(const struct sotto_model_file * file, size_t i);

/* Copy n bytes of tensor i, from its byte `offset` on, to dst; both whole blocks of its type. NULLARG, PARAM, BOUNDS, and
 * what reading gives: IO, MODEL_TRUNCATED. */
SOTTO_API enum sotto_status sotto_model_file_read(const struct sotto_model_file * file, size_t i, uint64_t offset,
                                                  void * dst, size_t n);

#ifdef __cplusplus
}
#endif
#endif
