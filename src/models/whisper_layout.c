/* SPDX-License-Identifier: MIT */
/* The tensors of a Whisper model: shapes, and their names in each container.
 *
 * A name is made of the stack's, the layer's and a row's part:
 *   GGUF           enc.           blk.3.     attn_q.weight
 *   .bin           encoder.       blocks.3.  attn.query.weight
 *   Hugging Face   model.encoder. layers.3.  self_attn.q_proj.weight
 *   CTranslate2    encoder/       layer_3/   self_attention/linear_0/weight
 *
 * CTranslate2 keeps query, key and value in one matrix, so a row says which part of the variable it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/models_impl.h"

/* Axes, as letters of the tables below. */
enum axis { NONE, D, D4, MELS, THREE, VOCAB, AUDIO, TEXT };

struct whisper_row {
    const char *gguf, *bin, *hf, *ct2;
    int part, parts;
    enum axis shape[3];
};

#define WHOLE 0, 1

/* clang-format off */
#define NORM(gguf, bin, hf, ct2) \
    { gguf ".weight", bin ".weight", hf ".weight", ct2 "/gamma", WHOLE, { D } }, \
    { gguf ".bias", bin ".bias", hf ".bias", ct2 "/beta", WHOLE, { D } }
#define WEIGHT(gguf, bin, hf, ct2, part, parts, ...) \
    { gguf ".weight", bin ".weight", hf ".weight", ct2 "/weight", part, parts, { __VA_ARGS__ } }
#define BIAS(gguf, bin, hf, ct2, part, parts, out) \
    { gguf ".bias", bin ".bias", hf ".bias", ct2 "/bias", part, parts, { out } }
#define LINEAR(gguf, bin, hf, ct2, part, parts, out, in) \
    WEIGHT(gguf, bin, hf, ct2, part, parts, out, in), BIAS(gguf, bin, hf, ct2, part, parts, out)

static const struct whisper_row ENCODER_HEAD[] = {
    WEIGHT("conv1", "conv1", "conv1", "conv1", 0, 1, D, MELS, THREE),
    BIAS("conv1", "conv1", "conv1", "conv1", 0, 1, D),
    WEIGHT("conv2", "conv2", "conv2", "conv2", 0, 1, D, D, THREE),
    BIAS("conv2", "conv2", "conv2", "conv2", 0, 1, D),
    { "pos_embd.weight", "positional_embedding", "embed_positions.weight", "position_encodings/encodings",
      WHOLE, { AUDIO, D } },
};
static const struct whisper_row SELF_ATTENTION[] = {
    NORM("attn_norm", "attn_ln", "self_attn_layer_norm", "self_attention/layer_norm"),
    LINEAR("attn_q", "attn.query", "self_attn.q_proj", "self_attention/linear_0", 0, 3, D, D),
    WEIGHT("attn_k", "attn.key", "self_attn.k_proj", "self_attention/linear_0", 1, 3, D, D),
    LINEAR("attn_v", "attn.value", "self_attn.v_proj", "self_attention/linear_0", 2, 3, D, D),
    LINEAR("attn_output", "attn.out", "self_attn.out_proj", "self_attention/linear_1", 0, 1, D, D),
};
static const struct whisper_row CROSS_ATTENTION[] = {
    NORM("cross_attn_norm", "cross_attn_ln", "encoder_attn_layer_norm", "attention/layer_norm"),
    LINEAR("cross_attn_q", "cross_attn.query", "encoder_attn.q_proj", "attention/linear_0", 0, 1, D, D),
    WEIGHT("cross_attn_k", "cross_attn.key", "encoder_attn.k_proj", "attention/linear_1", 0, 2, D, D),
    LINEAR("cross_attn_v", "cross_attn.value", "encoder_attn.v_proj", "attention/linear_1", 1, 2, D, D),
    LINEAR("cross_attn_output", "cross_attn.out", "encoder_attn.out_proj", "attention/linear_2", 0, 1, D, D),
};
static const struct whisper_row FEED_FORWARD[] = {
    NORM("ffn_norm", "mlp_ln", "final_layer_norm", "ffn/layer_norm"),
    LINEAR("ffn_up", "mlp.0", "fc1", "ffn/linear_0", 0, 1, D4, D),
    LINEAR("ffn_down", "mlp.2", "fc2", "ffn/linear_1", 0, 1, D, D4),
};
static const struct whisper_row ENCODER_TAIL[] = {
    NORM("output_norm", "ln_post", "layer_norm", "layer_norm"),
};
static const struct whisper_row DECODER_HEAD[] = {
    WEIGHT("token_embd", "token_embedding", "embed_tokens", "embeddings", 0, 1, VOCAB, D),
    { "pos_embd.weight", "positional_embedding", "embed_positions.weight", "position_encodings/encodings",
      WHOLE, { TEXT, D } },
};
static const struct whisper_row DECODER_TAIL[] = {
    NORM("output_norm", "ln", "layer_norm", "layer_norm"),
};
/* clang-format on */

#define ROWS(table) table, sizeof(table) / sizeof((table)[0])
#define N_BLOCKS    9

/* The model in order. A block of layers stands for its rows in every layer; blocks of one stack's layers are neighbours
 * and are laid out layer by layer. */
static const struct block {
    bool encoder, layered;
    const struct whisper_row * rows;
    size_t n;
} BLOCKS[N_BLOCKS] = {
    { true, false, ROWS(ENCODER_HEAD) },    { true, true, ROWS(SELF_ATTENTION) }, { true, true, ROWS(FEED_FORWARD) },
    { true, false, ROWS(ENCODER_TAIL) },    { false, false, ROWS(DECODER_HEAD) }, { false, true, ROWS(SELF_ATTENTION) },
    { false, true, ROWS(CROSS_ATTENTION) }, { false, true, ROWS(FEED_FORWARD) },  { false, false, ROWS(DECODER_TAIL) },
};

/* ---- sizes ---- */

static enum sotto_status check_sizes(const char * path, const struct whisper_sizes * s) {
    const char * wrong = NULL;
    if (s->n_vocab < WHISPER_MIN_VOCAB || s->n_vocab > WHISPER_MAX_VOCAB)
        wrong = "the number of tokens";
    else if (s->n_mels < 1 || s->n_mels > WHISPER_MAX_MELS)
        wrong = "the number of mel bands";
    else if (s->audio_layers < 1 || s->text_layers < 1 || s->audio_layers > WHISPER_MAX_LAYERS ||
             s->text_layers > WHISPER_MAX_LAYERS)
        wrong = "the number of layers";
    else if (s->audio_heads < 1 || s->text_heads < 1 || s->width < 1 || s->width > (1 << 16) ||
             s->width % s->audio_heads != 0 || s->width % s->text_heads != 0)
        wrong = "the width, or the number of heads, which has to divide it";
    else if (s->audio_ctx < 1 || s->audio_ctx > (1 << 16) || s->text_ctx < 1 || s->text_ctx > (1 << 16))
        wrong = "the length of a context";
    if (wrong == NULL)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_HPARAMS,
                      "sotto_convert: %s: %s cannot be: tokens %lld, bands %lld, width %lld, layers %lld and %lld, "
                      "heads %lld and %lld, contexts %lld and %lld",
                      path, wrong, (long long)s->n_vocab, (long long)s->n_mels, (long long)s->width,
                      (long long)s->audio_layers, (long long)s->text_layers, (long long)s->audio_heads,
                      (long long)s->text_heads, (long long)s->audio_ctx, (long long)s->text_ctx);
}

static int64_t extent(const struct whisper_sizes * s, enum axis axis) {
    switch (axis) {
    case D: return s->width;
    case D4: return 4 * s->width;
    case MELS: return s->n_mels;
    case THREE: return 3;
    case VOCAB: return s->n_vocab;
    case AUDIO: return s->audio_ctx;
    case TEXT: return s->text_ctx;
    case NONE: break;
    }
    return 0;
}

/* ---- the list ---- */

static size_t layers_of(const struct whisper_sizes * s, const struct block * block) {
    if (!block->layered)
        return 1;
    return (size_t)(block->encoder ? s->audio_layers : s->text_layers);
}

/* Blocks b..end-1 belong to the same stack's layers, or b stands alone. */
static size_t group_end(size_t b) {
    size_t end = b + 1;
    while (BLOCKS[b].layered && end < N_BLOCKS && BLOCKS[end].layered && BLOCKS[end].encoder == BLOCKS[b].encoder)
        end++;
    return end;
}

static size_t group_rows(size_t b, size_t end) {
    size_t n = 0;
    for (; b < end; b++)
        n += BLOCKS[b].n;
    return n;
}

static void add_rows(struct whisper_source * source, const struct block * block, int layer) {
    for (size_t i = 0; i < block->n; i++) {
        const struct whisper_row * row = &block->rows[i];
        struct whisper_tensor t = { .row = row, .encoder = block->encoder, .layer = layer };
        for (; t.rank < 3 && row->shape[t.rank] != NONE; t.rank++)
            t.shape[t.rank] = extent(&source->sizes, row->shape[t.rank]);
        t.weight = t.rank > 1 && row->shape[0] != AUDIO && row->shape[0] != TEXT;
        source->tensors[source->n_tensors++] = t;
    }
}

enum sotto_status sotto_i_whisper_layout(struct whisper_source * source) {
    enum sotto_status status = check_sizes(source->path, &source->sizes);
    if (status != SOTTO_OK)
        return status;
    size_t n = 0;
    for (size_t b = 0; b < N_BLOCKS; b++)
        n += BLOCKS[b].n * layers_of(&source->sizes, &BLOCKS[b]);
    source->cap_tensors = n;
    source->tensors = sotto_malloc(source->allocator, n, sizeof(*source->tensors));
    source->tokens = sotto_malloc(source->allocator, (size_t)source->sizes.n_vocab, sizeof(*source->tokens));
    if (source->tensors == NULL || source->tokens == NULL)
        return SOTTO_E_MEMORY;
    for (int64_t i = 0; i < source->sizes.n_vocab; i++)
        source->tokens[i] = "";
    for (size_t b = 0, end; b < N_BLOCKS; b = end) {
        end = group_end(b);
        for (size_t layer = 0; layer < layers_of(&source->sizes, &BLOCKS[b]); layer++) {
            for (size_t k = b; k < end; k++)
                add_rows(source, &BLOCKS[k], BLOCKS[k].layered ? (int)layer : -1);
        }
    }
    return SOTTO_OK;
}

/* ---- names ---- */

static const char * const STACKS[4][2] = {
    { "dec.", "enc." }, { "decoder.", "encoder." }, { "model.decoder.", "model.encoder." }, { "decoder/", "encoder/" }
};
static const char * const LAYERS[4][2] = { { "blk.", "." }, { "blocks.", "." }, { "layers.", "." }, { "layer_", "/" } };

static const char * row_name(const struct whisper_row * row, enum whisper_form form) {
    switch (form) {
    case WHISPER_GGUF: return row->gguf;
    case WHISPER_BIN: return row->bin;
    case WHISPER_HF: return row->hf;
    case WHISPER_CT2: break;
    }
    return row->ct2;
}

struct whisper_name sotto_i_whisper_name(const struct whisper_tensor * t, enum whisper_form form) {
    struct whisper_name name;
    char layer[32] = "";
    if (t->layer >= 0)
        snprintf(layer, sizeof(layer), "%s%d%s", LAYERS[form][0], t->layer, LAYERS[form][1]);
    snprintf(name.text, sizeof(name.text), "%s%s%s", STACKS[form][t->encoder], layer, row_name(t->row, form));
    return name;
}

/* What follows `prefix`, NULL if that is not how the text begins. */
static const char * after(const char * text, const char * prefix) {
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* Split a name into stack, layer (-1 = none) and row. */
static const char * split(enum whisper_form form, const char * name, bool * encoder, long * layer) {
    const char * rest = after(name, STACKS[form][1]);
    *encoder = rest != NULL;
    if (rest == NULL)
        rest = after(name, STACKS[form][0]);
    *layer = -1;
    const char * number = rest != NULL ? after(rest, LAYERS[form][0]) : NULL;
    if (number == NULL || *number < '0' || *number > '9')
        return rest;
    char * end;
    *layer = strtol(number, &end, 10);
    return after(end, LAYERS[form][1]);
}

struct whisper_tensor * sotto_i_whisper_find(const struct whisper_source * source, enum whisper_form form,
                                             const char * name) {
    bool encoder;
    long layer;
    const char * rest = split(form, name, &encoder, &layer);
    size_t begin = 0; /* of the group in the list */
    for (size_t b = 0, end; b < N_BLOCKS && rest != NULL; b = end) {
        end = group_end(b);
        size_t rows = group_rows(b, end);
        size_t n = layers_of(&source->sizes, &BLOCKS[b]);
        bool here = BLOCKS[b].encoder == encoder && BLOCKS[b].layered == (layer >= 0);
        size_t first = begin + rows * (here && layer > 0 ? (size_t)layer : 0);
        for (size_t i = first; here && layer < (long)n && i < first + rows; i++) {
            struct whisper_tensor * t = &source->tensors[i];
            if (strcmp(row_name(t->row, form), rest) == 0 && strcmp(sotto_i_whisper_name(t, form).text, name) == 0)
                return t;
        }
        begin += rows * n;
    }
    return NULL;
}

void sotto_i_whisper_part(const struct whisper_tensor * tensor, int * part, int * parts) {
    *part = tensor->row->part;
    *parts = tensor->row->parts;
}

/* ---- faults ---- */

static void show_shape(char * out, size_t size, int rank, const uint64_t * shape) {
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%llu", i > 0 ? ", " : "", (unsigned long long)shape[i]);
}

enum sotto_status sotto_i_whisper_bad_shape(const struct whisper_source * source, const char * name, int rank,
                                            const uint64_t * shape, const struct whisper_tensor * tensor, int parts) {
    uint64_t wanted[3];
    char found[96];
    char expected[96];
    for (int i = 0; i < tensor->rank; i++)
        wanted[i] = (uint64_t)tensor->shape[i] * (uint64_t)(i == 0 ? parts : 1);
    show_shape(found, sizeof(found), rank, shape);
    show_shape(expected, sizeof(expected), tensor->rank, wanted);
    return sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE, "sotto_convert: %s: '%s' is [%s], expected [%s]", source->path, name,
                      found, expected);
}

enum sotto_status sotto_i_whisper_complete(const struct whisper_source * source, enum whisper_form form) {
    char names[400] = "";
    size_t missing = 0;
    size_t used = 0;
    for (size_t i = 0; i < source->n_tensors; i++) {
        const struct whisper_tensor * t = &source->tensors[i];
        if (t->found || (t->row->shape[0] == AUDIO && form != WHISPER_BIN))
            continue;
        missing++;
        struct whisper_name name = sotto_i_whisper_name(t, form);
        if (missing <= 4 && strstr(names, name.text) == NULL)
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s'%s'", used > 0 ? ", " : "", name.text);
    }
    if (missing == 0)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_TENSOR_MISSING, "sotto_convert: %s has no %s%s (%zu of %zu tensors are missing)",
                      source->path, names, missing > 4 ? " ..." : "", missing, source->n_tensors);
}
