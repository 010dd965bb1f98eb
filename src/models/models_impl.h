/* SPDX-License-Identifier: MIT */
/* A Whisper model as any container can give it, between the readers and the GGUF writer.
 *
 *   container reader ─ struct whisper_source ─ whisper_gguf.c ─ file
 *
 * The reader checks its container and describes the model in sotto's terms: sizes, vocabulary, lists, and one row per
 * tensor of the GGUF form, in the order of the file to be written. Weights stay in the container until asked for. */
#ifndef SOTTO_MODELS_IMPL_H
#define SOTTO_MODELS_IMPL_H

#include "sotto/gguf.h"
#include "sotto/models.h"
#include "sotto/speech.h"

#define WHISPER_MAX_LAYERS 1024
#define WHISPER_MAX_MELS   512
#define WHISPER_MIN_VOCAB  51864
#define WHISPER_MAX_VOCAB  (1 << 20)

struct whisper_sizes {
    int64_t n_vocab, n_mels, width;
    int64_t audio_ctx, audio_layers, audio_heads;
    int64_t text_ctx, text_layers, text_heads;
};

/* A tensor to be written: a run of elements of one of the container's variables. Shape slowest axis first. */
struct whisper_tensor {
    char name[SOTTO_MAX_NAME];
    int rank;
    int64_t shape[3];
    bool weight;                 /* takes the type asked for; others are f32 */
    enum sotto_type source_type; /* F32, F16 or BF16 */
    size_t variable;
    uint64_t first; /* element of the variable at which it begins */
};

struct whisper_list {
    bool given;
    size_t n;
    int32_t * ids;
};

struct whisper_source {
    const struct sotto_allocator * allocator;
    struct whisper_sizes sizes;
    char * text; /* spellings of all tokens, each with a 0 */
    size_t text_size;
    const char ** tokens;                /* sizes.n_vocab pointers into it */
    struct whisper_list alignment_heads; /* layer, head, layer, head, ... */
    struct whisper_list suppress, suppress_begin;
    struct whisper_tensor * tensors;
    size_t n_tensors, cap_tensors;
    /* n elements from `first` of tensor `id`, in its source type */
    enum sotto_status (*read)(void * self, const struct whisper_tensor * tensor, uint64_t first, size_t n, void * dst);
    void * self;
};
void sotto_i_whisper_source_free(struct whisper_source * source);

/* Text from a file made fit to print: cut to 60 bytes, odd ones as '?'. */
struct models_shown {
    char text[64];
};
struct models_shown sotto_i_models_show(const char * text, size_t len);

/* ---- files (models_stream.c) ---- */

/* One file, or numbered parts read as one. */
struct models_stream {
    const struct sotto_allocator * allocator;
    char * path; /* without ".part<n>" */
    size_t path_size;
    struct models_part {
        int fd;
        uint64_t start, size;
    } * parts;
    size_t n_parts, cap_parts;
    bool in_parts;
    uint64_t size;
};
/* "<folder>/<name>", or its parts if that does not exist. IO. */
enum sotto_status sotto_i_models_stream_open(struct models_stream * stream, const struct sotto_allocator * allocator,
                                             const char * folder, const char * name);
/* n bytes at `at`; MODEL_TRUNCATED if they are not there. `what` is for the message. */
enum sotto_status sotto_i_models_stream_read(const struct models_stream * stream, uint64_t at, void * dst, size_t n,
                                             const char * what);
enum sotto_status sotto_i_models_truncated(const struct models_stream * stream, uint64_t at, uint64_t need,
                                           const char * what);
void sotto_i_models_stream_close(struct models_stream * stream);

/* Does "<folder>/<name>" exist? MEMORY. */
enum sotto_status sotto_i_models_exists(const struct sotto_allocator * allocator, const char * folder,
                                        const char * name, bool * exists);
/* A whole small file and a 0 after it; IO, LIMIT. */
enum sotto_status sotto_i_models_read_text(const struct sotto_allocator * allocator, const char * folder,
                                           const char * name, char ** text, size_t * size);

/* ---- vocabulary and lists (ct2_text.c) ---- */

enum sotto_status sotto_i_ct2_vocabulary(struct whisper_source * source, const char * folder);
enum sotto_status sotto_i_ct2_config(struct whisper_source * source, const char * folder);

/* ---- CTranslate2 (ct2_model.c, ct2_whisper.c) ---- */

enum ct2_type { CT2_F32 = 0, CT2_I8 = 1, CT2_I16 = 2, CT2_I32 = 3, CT2_F16 = 4, CT2_BF16 = 5, CT2_TYPE_COUNT };

struct ct2_variable {
    char * name;
    size_t name_size;
    int rank;
    uint64_t dims[4]; /* slowest first */
    uint64_t items;
    enum ct2_type type;
    uint64_t at; /* of the payload in the stream */
    bool used;
};

struct ct2_alias {
    char * name;
    size_t name_size;
    size_t variable;
};

struct ct2_model {
    const struct sotto_allocator * allocator;
    struct models_stream stream;
    struct ct2_variable * variables;
    size_t n_variables, cap_variables;
    struct ct2_alias * aliases;
    size_t n_aliases, cap_aliases;
    size_t * sorted; /* variables in the order of their names */
};

enum sotto_status sotto_i_ct2_open(struct ct2_model * model, const struct sotto_allocator * allocator,
                                   const char * folder);
/* By name or alias; NULL if absent. */
struct ct2_variable * sotto_i_ct2_find(struct ct2_model * model, const char * name);
size_t sotto_i_ct2_width(enum ct2_type type); /* bytes of an item */
void sotto_i_ct2_close(struct ct2_model * model);

/* Describe the model in `source`, which reads from `model` until either is closed. */
enum sotto_status sotto_i_ct2_describe(struct ct2_model * model, struct whisper_source * source);

/* ---- writing (whisper_gguf.c, bpe_merges.c) ---- */

enum sotto_status sotto_i_whisper_write(struct whisper_source * source, const char * out,
                                        const struct sotto_convert_params * params);

struct bpe_merges {
    char * text; /* "a b", each with a 0 */
    size_t text_size;
    const char ** merges;
    size_t n, cap;
};
/* The pairs that make tokens 256..n-1 out of lower ones, in the order of ids; empty tokens are left out. MODEL_VOCAB if
 * a token is no text in the byte alphabet, stands twice, or is not two lower ones. */
enum sotto_status sotto_i_bpe_merges(const struct sotto_allocator * allocator, const char * const * tokens, size_t n,
                                     struct bpe_merges * out);
void sotto_i_bpe_merges_free(const struct sotto_allocator * allocator, struct bpe_merges * merges);

#endif
