/* SPDX-License-Identifier: MIT */
/* Whisper models from one container into another, and into other types of weights.
 *
 *     struct sotto_convert_params params = sotto_convert_default_params();
 *     params.type = SOTTO_TYPE_Q5_0;
 *     if (sotto_convert("base-ct2", "base-q5_0.gguf", &params) != SOTTO_OK)
 *         fprintf(stderr, "%s\n", sotto_last_error_text());
 *
 * Read, and recognised by content:
 *   GGUF         sotto's own form
 *   .bin         whisper.cpp's form
 *   CTranslate2  a folder with model.bin, or its numbered parts; config.json; vocabulary.txt or vocabulary.json.
 *                Weights in i8 and i16 with their scales too
 *   Hugging Face a folder with config.json and model.safetensors, or its shards and their index; tokenizer.json, or
 *                vocab.json and added_tokens.json; generation_config.json and preprocessor_config.json if there are
 *                any. Or the path of a safetensors file in such a folder
 * Written: GGUF; .bin if the output's name ends so; a folder of Hugging Face's if it ends in '/', with all that
 * programs of that family look for (model.safetensors last, so that a folder which was not finished is no model).
 * CTranslate2's form is not written: its own converter makes it of a Hugging Face folder. No number in a file is
 * trusted before it is checked. */
#ifndef SOTTO_MODELS_H
#define SOTTO_MODELS_H

#include <stdbool.h>

#include "sotto/imatrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called as the output grows, in bytes of tensors; false stops with ABORTED. */
typedef bool (*sotto_convert_progress)(uint64_t done, uint64_t total, void * user_data);

/* What became of a tensor. */
struct sotto_tensor_loss {
    uint32_t size;        /* how much of this struct the library fills */
    const char * name;    /* as GGUF spells it */
    enum sotto_type type; /* as it is written */
    uint64_t n_elements, n_bytes;
    double sum2;   /* of the squares of its values in the input ... */
    double error2; /* ... and of the differences to what is written; both 0 for values that are copied */
};
typedef void (*sotto_convert_tensor)(const struct sotto_tensor_loss * loss, void * user_data);

/* Another type for the weights whose name fits. */
struct sotto_type_rule {
    const char * pattern; /* *, ? and [...] as in a shell, for names as GGUF or as .bin spells them */
    enum sotto_type type;
};

struct sotto_convert_params {
    uint32_t size;                            /* sizeof(struct sotto_convert_params) */
    enum sotto_type type;                     /* of the weights, see below; COUNT (default): as they are in the input */
    const struct sotto_allocator * allocator; /* NULL = default; JSON is parsed in jansson's own memory */
    sotto_convert_progress progress;          /* may be NULL */
    void * progress_user_data;
    const struct sotto_type_rule * rules; /* the first that fits a weight decides; NULL if there are none */
    size_t n_rules;
    const struct sotto_imatrix * imatrix; /* NULL = none; for types that can use one */
    int n_threads;                        /* 1..SOTTO_MAX_N_THREADS; 0 = the processors there are, at most 4 */
    sotto_convert_tensor tensor;          /* called after each tensor if not NULL; then errors are measured */
    void * tensor_user_data;
};
SOTTO_API struct sotto_convert_params sotto_convert_default_params(void);

/* Read the model at `in` and write it to `out`, which appears when it is whole and is otherwise left as it was. The
 * output depends on the input and the params alone, not on threads. One piece of a tensor at a time is in memory. What
 * a form has no place for is left out: .bin holds no lists (heads for alignment, suppressed tokens) and no specials'
 * spellings.
 *
 * Types. Norms, biases and tables of positions are F32 in any case. Matrices, the token embedding among them, get
 * `type`: F32, F16, BF16 or any quantised type of files; in .bin the ones that it has (F32, F16, BF16, Q4_0 to Q8_0,
 * Q2_K to Q6_K), in safetensors the first three. Convolutions, whose rows are short, become F16, or F32 if that is
 * asked for. A matrix whose rows are no whole blocks of a type becomes Q8_0, else F16, and a warning says so. COUNT:
 * quantised weights keep their types; without any, F16 if all weights are, else F32; CTranslate2's i8 counts as Q8_0,
 * its i16 as F16. Values whose type stays are copied, bit for bit.
 *
 *   NULLARG                     a path; no imatrix, or none of a weight, for IQ2_XXS, IQ2_XS and IQ1_S
 *   PARAM                       a type, or one that the output's form lacks; the number of threads; a rule that fits no
 *                               weight; an imatrix of another model; `in` and `out` are one file
 *   ABORTED, MEMORY
 *   IO, LIMIT                   a file is missing or unreadable; a file of JSON is larger than 16 MiB
 *   MODEL_FORMAT, _PICKLE       no container that sotto knows; one that it does not read
 *   MODEL_VERSION, _QUANT_VERSION, _ARCH       a newer or much older container; another kind of model
 *   MODEL_TRUNCATED, _CORRUPT   it ends too early; it contradicts itself
 *   MODEL_HPARAMS, _CONFIG, _VOCAB, _FILTERS   impossible sizes; the lists; the vocabulary; the mel filters
 *   MODEL_TENSOR_MISSING, _UNKNOWN, _DUPLICATE, _SHAPE, _SIZE, _TYPE   the message names the tensor
 *   MODEL_NAN                   a weight is not finite, or does not fit into the type
 *   GGUF_IO_...                 the output cannot be written */
SOTTO_API enum sotto_status sotto_convert(const char * in, const char * out,
                                          const struct sotto_convert_params * params);

/* A model that comes from somewhere else than a file, in order: nothing is asked for twice. */
struct sotto_model_stream {
    uint32_t size; /* sizeof(struct sotto_model_stream) */
    /* The next n bytes; fewer at the end and after a failure, and then `eof` tells which it is. */
    size_t (*read)(void * user_data, void * dst, size_t n);
    bool (*eof)(void * user_data);
    void (*close)(void * user_data); /* once, whatever happens; may be NULL */
    void * user_data;
};

/* sotto_convert of a single file (GGUF or .bin) that a stream gives. It is kept in a temporary file beside `out` until it
 * is converted; `params->progress` hears of the conversion. Besides what sotto_convert says:
 *   NULLARG, PARAM   in, read or eof; its size
 *   IO               reading failed
 *   GGUF_IO_...      the temporary file */
SOTTO_API enum sotto_status sotto_convert_stream(const struct sotto_model_stream * in, const char * out,
                                                 const struct sotto_convert_params * params);

#ifdef __cplusplus
}
#endif
#endif
