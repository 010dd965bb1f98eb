/* SPDX-License-Identifier: MIT */
/* A Whisper model as any container can give it, between the readers and the writers.
 *
 *   ct2_*.c, from_bin.c, from_gguf.c, from_hf.c ─ struct whisper_source ─ to_gguf.c, to_bin.c, to_hf.c
 *
 * A reader checks its container and describes the model in sotto's terms: sizes, vocabulary, lists, and where the values
 * of each tensor of the layout (whisper_layout.c) are. Weights stay in the container until a writer asks for them. */
#ifndef SOTTO_MODELS_IMPL_H
#define SOTTO_MODELS_IMPL_H

#include "sotto/gguf.h"
#include "sotto/models.h"
#include "sotto/speech.h"

#define WHISPER_MAX_LAYERS 1024
#define WHISPER_MAX_MELS   512
#define WHISPER_MIN_VOCAB  51864
#define WHISPER_MAX_VOCAB  (1 << 20)
#define WHISPER_MAX_TOKEN  1024 /* bytes of one */

struct whisper_sizes {
    int64_t n_vocab, n_mels, width;
    int64_t audio_ctx, audio_layers, audio_heads;
    int64_t text_ctx, text_layers, text_heads;
};

/* Where a model's own spellings end: the id of the end of text. */
static inline int32_t whisper_eot(const struct whisper_sizes * sizes) {
    return sizes->n_vocab > WHISPER_MIN_VOCAB ? 50257 : 50256;
}

/* A tensor of the model. Shape slowest axis first. */
struct whisper_tensor {
    const struct whisper_row * row; /* of the layout's tables */
    bool encoder;
    int layer; /* -1 outside the layers */
    int rank;
    int64_t shape[3];
    bool weight;                 /* takes the type asked for; others are f32 */
    bool found;                  /* the reader has set the four below */
    enum sotto_type source_type; /* as the reader gives its values: F32, F16, BF16 or a quantised type of files */
    enum sotto_type kept; /* the type that loses least: source_type, Q8_0 for CTranslate2's i8, F16 for its i16 */
    uint64_t at;          /* where its values are, in the reader's terms */

    enum sotto_type stored;   /* by the writer, see type_rules.c */
    const float * importance; /* of its columns, or NULL */
};

struct whisper_list {
    bool given;
    size_t n;
    int32_t * ids;
};

/* Sums of squares: of values, and of what they lost. */
struct models_loss {
    double sum2, error2;
};

struct whisper_source {
    const struct sotto_allocator * allocator;
    const char * path; /* for messages */
    struct whisper_sizes sizes;
    char * text; /* spellings of tokens in the byte alphabet, each with a 0 */
    size_t text_size;
    const char ** tokens;                /* sizes.n_vocab pointers into it, or into what the reader holds */
    struct whisper_list alignment_heads; /* layer, head, layer, head, ... */
    struct whisper_list suppress, suppress_begin;
    struct whisper_tensor * tensors;
    size_t n_tensors, cap_tensors;
    struct models_workers * workers;            /* what converts values */
    const struct sotto_convert_params * params; /* while writing */
    struct models_loss loss;                    /* of the tensor in hand */
    const struct sotto_gguf_context * pairs;    /* of a GGUF input, else NULL */

    void * self; /* the reader's own */
    /* Elements first..first+n in source_type; both are whole blocks of it. */
    enum sotto_status (*read)(const struct whisper_source * source, const struct whisper_tensor * tensor,
                              uint64_t first, size_t n, void * dst);
    void (*close)(struct whisper_source * source);
};

enum whisper_form { WHISPER_GGUF, WHISPER_BIN, WHISPER_HF, WHISPER_CT2 };

/* ---- readers: open `path` and fill in the source; sotto_i_whisper_source_free afterwards in any case ---- */

enum sotto_status sotto_i_from_ct2(struct whisper_source * source, const char * path);
enum sotto_status sotto_i_from_bin(struct whisper_source * source, const char * path);
enum sotto_status sotto_i_from_gguf(struct whisper_source * source, const char * path);
/* A folder of Hugging Face's, and one file of weights in it. */
enum sotto_status sotto_i_from_hf(struct whisper_source * source, const char * path);
enum sotto_status sotto_i_from_safetensors(struct whisper_source * source, const char * path);
void sotto_i_whisper_source_free(struct whisper_source * source);
typedef enum sotto_status (*whisper_reader)(struct whisper_source * source, const char * path);
/* Which of them reads `in` (recognise.c). IO, MODEL_FORMAT, MODEL_PICKLE, MEMORY. */
enum sotto_status sotto_i_recognise(const struct sotto_allocator * allocator, const char * in, whisper_reader * reader);

/* ---- writers: each tensor in its `stored` type ---- */

enum sotto_status sotto_i_to_gguf(struct whisper_source * source, const char * out,
                                  const struct sotto_convert_params * params);
enum sotto_status sotto_i_to_bin(struct whisper_source * source, const char * out,
                                 const struct sotto_convert_params * params);

/* A folder of Hugging Face's, made if it is missing. */
enum sotto_status sotto_i_to_hf(struct whisper_source * source, const char * out,
                                const struct sotto_convert_params * params);
/* The files of text beside the weights (to_hf_text.c). */
enum sotto_status sotto_i_to_hf_texts(struct whisper_source * source, const char * folder);
/* Elements of a tensor that writers take at once: whole rows. */
size_t sotto_i_whisper_piece(const struct whisper_tensor * tensor);

/* ---- which type for which tensor (type_rules.c) ---- */

/* Set `stored` and `importance` of all tensors for a form. As sotto_convert says: NULLARG, PARAM. */
enum sotto_status sotto_i_choose_types(struct whisper_source * source, const struct sotto_convert_params * params,
                                       enum whisper_form form);
/* The type's number in a model file as a whole: that of most bytes of weights; -1 if it has none. */
int sotto_i_whisper_ftype(const struct whisper_source * source);

/* ---- what a Whisper model consists of (whisper_layout.c) ---- */

struct whisper_name {
    char text[128];
};
/* HPARAMS if sizes are impossible; else all tensors of a model of source->sizes, none found yet, and empty tokens. */
enum sotto_status sotto_i_whisper_layout(struct whisper_source * source);
struct whisper_name sotto_i_whisper_name(const struct whisper_tensor * tensor, enum whisper_form form);
/* The tensor of that name; NULL if there is none. */
struct whisper_tensor * sotto_i_whisper_find(const struct whisper_source * source, enum whisper_form form,
                                             const char * name);
/* Of a CTranslate2 variable that holds `parts` tensors one after another, this is number `part`. */
void sotto_i_whisper_part(const struct whisper_tensor * tensor, int * part, int * parts);
enum sotto_status sotto_i_whisper_bad_shape(const struct whisper_source * source, const char * name, int rank,
                                            const uint64_t * shape, const struct whisper_tensor * tensor, int parts);
/* Were all found? TENSOR_MISSING names those that were not. Outside .bin the encoder's positions may be missing: then
 * they are computed when asked for. */
enum sotto_status sotto_i_whisper_complete(const struct whisper_source * source, enum whisper_form form);

/* ---- ids that follow from the number of tokens (whisper_specials.c) ---- */

#define WHISPER_SPECIAL_SIZE 32

struct whisper_specials {
    int32_t eot, sot, n_languages, translate, transcribe, solm, prev, nosp, no_timestamps, beg;
    bool multilingual;
};
struct whisper_specials sotto_i_whisper_specials(const struct whisper_sizes * sizes);
/* The spelling of a token from eot on; "" if it has none. */
void sotto_i_whisper_spell(const struct whisper_specials * specials, int32_t id, char out[WHISPER_SPECIAL_SIZE]);

/* ---- values (whisper_values.c, encode_rows.c) ---- */

uint64_t sotto_i_whisper_items(const struct whisper_tensor * tensor);
/* Elements first..first+n as they are stored, whole rows. MODEL_NAN if one is not finite or too large for the
 * type. At the last ones the caller of sotto_convert is told of the tensor. */
enum sotto_status sotto_i_whisper_values(struct whisper_source * source, const struct whisper_tensor * tensor,
                                         uint64_t first, size_t n, void * dst);
/* Threads and memory for that, when types are chosen. MEMORY. */
enum sotto_status sotto_i_models_workers_new(struct whisper_source * source, int n_threads);
void sotto_i_models_workers_free(const struct sotto_allocator * allocator, struct models_workers * workers);
/* Most elements that are read at once, but one row at least. */
#define MODELS_BATCH ((size_t)1 << 18)
/* Where to read n elements of `type` to; NULL and MEMORY. */
void * sotto_i_models_stage(struct models_workers * workers, enum sotto_type type, size_t n);
/* n elements from `raw`, of the tensor's source_type, to its stored type. loss NULL, or what errors are added to. */
enum sotto_status sotto_i_models_encode(struct models_workers * workers, const struct whisper_tensor * tensor,
                                        const void * raw, size_t n, void * dst, struct models_loss * loss);
enum sotto_status sotto_i_convert_report(const struct sotto_convert_params * params, uint64_t done, uint64_t total);

/* ---- the byte alphabet in which tokens are spelled (alphabet.c) ---- */

/* Raw bytes of a spelling, at most strlen of it; how many, -1 if it is none. */
int64_t sotto_i_alphabet_decode(const char * spelling, uint8_t * out);
/* The spelling of n bytes, with a 0: up to 2 n + 1 bytes. How many without the 0. */
size_t sotto_i_alphabet_encode(const uint8_t * bytes, size_t n, char * out);

/* Bytes of n elements, whole blocks of a type of files. */
static inline uint64_t whisper_bytes(enum sotto_type type, uint64_t n) {
    const struct sotto_type_traits * traits = sotto_get_type_traits(type);
    return n / (uint64_t)traits->blck_size * traits->type_size;
}

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
/* "<folder>/<name>", or its parts if that does not exist; folder NULL: the file `name`. IO. */
enum sotto_status sotto_i_models_stream_open(struct models_stream * stream, const struct sotto_allocator * allocator,
                                             const char * folder, const char * name);
/* n bytes at `at`; MODEL_TRUNCATED if they are not there. `what` is for the message. */
enum sotto_status sotto_i_models_stream_read(const struct models_stream * stream, uint64_t at, void * dst, size_t n,
                                             const char * what);
enum sotto_status sotto_i_models_truncated(const struct models_stream * stream, uint64_t at, uint64_t need,
                                           const char * what);
void sotto_i_models_stream_close(struct models_stream * stream);

/* Reading a stream from front to back, small pieces through a window. `at` may be moved at will. */
struct models_cursor {
    const struct models_stream * stream;
    uint64_t at;
    uint64_t window_at;
    size_t window_len;
    uint8_t window[4096];
};
uint64_t sotto_i_models_left(const struct models_cursor * c);
/* The next n bytes, 4096 at most; MODEL_TRUNCATED. */
enum sotto_status sotto_i_models_next(struct models_cursor * c, void * dst, size_t n, const char * what);
/* A little-endian number of `width` bytes, 8 at most. */
enum sotto_status sotto_i_models_number(struct models_cursor * c, uint64_t * value, size_t width, const char * what);

/* < 0 if thing a comes before b. */
typedef int (*models_order)(const void * things, size_t a, size_t b);
/* The numbers 0..n-1 in order, n of them in *ids; NULL if n is 0 (models_sort.c). MEMORY. */
enum sotto_status sotto_i_models_sort(const struct sotto_allocator * allocator, size_t n, models_order order,
                                      const void * things, size_t ** ids);
/* Room for one more element of a growing array. MEMORY. */
enum sotto_status sotto_i_models_grow(const struct sotto_allocator * allocator, void ** array, size_t n, size_t * cap,
                                      size_t size);

/* Does "<folder>/<name>" exist? MEMORY. */
enum sotto_status sotto_i_models_exists(const struct sotto_allocator * allocator, const char * folder,
                                        const char * name, bool * exists);
/* A whole small file, `most` bytes at most, and a 0 after it; IO, LIMIT. */
enum sotto_status sotto_i_models_read_text(const struct sotto_allocator * allocator, const char * folder,
                                           const char * name, size_t most, char ** text, size_t * size);

/* ---- vocabulary and lists (ct2_text.c) ---- */

enum sotto_status sotto_i_ct2_vocabulary(struct whisper_source * source, const char * folder);
enum sotto_status sotto_i_ct2_config(struct whisper_source * source, const char * folder);

/* ---- CTranslate2 (ct2_model.c, ct2_whisper.c, ct2_values.c) ---- */

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
    uint32_t version;
    struct models_stream stream;
    struct ct2_variable * variables;
    size_t n_variables, cap_variables;
    struct ct2_alias * aliases;
    size_t n_aliases, cap_aliases;
    size_t *sorted, *sorted_aliases; /* in the order of their names */
};

enum sotto_status sotto_i_ct2_open(struct ct2_model * model, const struct sotto_allocator * allocator,
                                   const char * folder);
/* By name or alias; NULL if absent. */
struct ct2_variable * sotto_i_ct2_find(struct ct2_model * model, const char * name);
size_t sotto_i_ct2_width(enum ct2_type type); /* bytes of an item */
void sotto_i_ct2_close(struct ct2_model * model);
/* How a variable's values become those of a tensor (ct2_values.c): _TYPE, and if a scale is wrong _MISSING, _SHAPE. */
enum sotto_status sotto_i_ct2_set_type(struct ct2_model * model, const struct ct2_variable * variable,
                                       struct whisper_tensor * tensor);
/* Items first..first+n in the tensor's source_type; MODEL_CORRUPT if a scale is no positive number. */
enum sotto_status sotto_i_ct2_read(struct ct2_model * model, const struct ct2_variable * variable, uint64_t first,
                                   size_t n, void * dst);

/* ---- merges (bpe_merges.c) ---- */

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
