/* SPDX-License-Identifier: MIT */
/* Variables of a WhisperSpec as tensors of the GGUF form: names, shapes, and which rows of fused matrices.
 *
 *   self-attention   linear_0 = [query; key; value]   linear_1 = output
 *   cross-attention  linear_0 = query                 linear_1 = [key; value]   linear_2 = output
 *
 * Whisper's key projections have no bias, so that part of a fused bias has to be zero and is left out. */
#include <stdio.h>
#include <string.h>

#include "models/models_impl.h"

/* Axes, as letters of the tables below. */
enum axis { NONE, D, D4, MELS, THREE, VOCAB, AUDIO, TEXT };

struct row {
    const char * gguf;
    const char * ct2;
    int part, parts; /* rows part/parts of the variable */
    enum axis shape[3];
    bool optional;
};

#define WHOLE 0, 1

static const struct row ENCODER_HEAD[] = {
    { "enc.conv1.weight", "encoder/conv1/weight", WHOLE, { D, MELS, THREE }, false },
    { "enc.conv1.bias", "encoder/conv1/bias", WHOLE, { D }, false },
    { "enc.conv2.weight", "encoder/conv2/weight", WHOLE, { D, D, THREE }, false },
    { "enc.conv2.bias", "encoder/conv2/bias", WHOLE, { D }, false },
    { "enc.pos_embd.weight", "encoder/position_encodings/encodings", WHOLE, { AUDIO, D }, true },
};
static const struct row SELF_ATTENTION[] = {
    { "attn_norm.weight", "self_attention/layer_norm/gamma", WHOLE, { D }, false },
    { "attn_norm.bias", "self_attention/layer_norm/beta", WHOLE, { D }, false },
    { "attn_q.weight", "self_attention/linear_0/weight", 0, 3, { D, D }, false },
    { "attn_q.bias", "self_attention/linear_0/bias", 0, 3, { D }, false },
    { "attn_k.weight", "self_attention/linear_0/weight", 1, 3, { D, D }, false },
    { "attn_v.weight", "self_attention/linear_0/weight", 2, 3, { D, D }, false },
    { "attn_v.bias", "self_attention/linear_0/bias", 2, 3, { D }, false },
    { "attn_output.weight", "self_attention/linear_1/weight", WHOLE, { D, D }, false },
    { "attn_output.bias", "self_attention/linear_1/bias", WHOLE, { D }, false },
};
static const struct row CROSS_ATTENTION[] = {
    { "cross_attn_norm.weight", "attention/layer_norm/gamma", WHOLE, { D }, false },
    { "cross_attn_norm.bias", "attention/layer_norm/beta", WHOLE, { D }, false },
    { "cross_attn_q.weight", "attention/linear_0/weight", WHOLE, { D, D }, false },
    { "cross_attn_q.bias", "attention/linear_0/bias", WHOLE, { D }, false },
    { "cross_attn_k.weight", "attention/linear_1/weight", 0, 2, { D, D }, false },
    { "cross_attn_v.weight", "attention/linear_1/weight", 1, 2, { D, D }, false },
    { "cross_attn_v.bias", "attention/linear_1/bias", 1, 2, { D }, false },
    { "cross_attn_output.weight", "attention/linear_2/weight", WHOLE, { D, D }, false },
    { "cross_attn_output.bias", "attention/linear_2/bias", WHOLE, { D }, false },
};
static const struct row FEED_FORWARD[] = {
    { "ffn_norm.weight", "ffn/layer_norm/gamma", WHOLE, { D }, false },
    { "ffn_norm.bias", "ffn/layer_norm/beta", WHOLE, { D }, false },
    { "ffn_up.weight", "ffn/linear_0/weight", WHOLE, { D4, D }, false },
    { "ffn_up.bias", "ffn/linear_0/bias", WHOLE, { D4 }, false },
    { "ffn_down.weight", "ffn/linear_1/weight", WHOLE, { D, D4 }, false },
    { "ffn_down.bias", "ffn/linear_1/bias", WHOLE, { D }, false },
};
static const struct row ENCODER_TAIL[] = {
    { "enc.output_norm.weight", "encoder/layer_norm/gamma", WHOLE, { D }, false },
    { "enc.output_norm.bias", "encoder/layer_norm/beta", WHOLE, { D }, false },
};
static const struct row DECODER_HEAD[] = {
    { "dec.token_embd.weight", "decoder/embeddings/weight", WHOLE, { VOCAB, D }, false },
    { "dec.pos_embd.weight", "decoder/position_encodings/encodings", WHOLE, { TEXT, D }, false },
};
static const struct row DECODER_TAIL[] = {
    { "dec.output_norm.weight", "decoder/layer_norm/gamma", WHOLE, { D }, false },
    { "dec.output_norm.bias", "decoder/layer_norm/beta", WHOLE, { D }, false },
};
#define ROWS(table) table, (int)(sizeof(table) / sizeof((table)[0]))

/* ---- sizes ---- */

static const char * path(const struct ct2_model * m) { return m->stream.path; }

static enum sotto_status missing(const struct ct2_model * m, const char * name) {
    return sotto_fail(SOTTO_E_MODEL_TENSOR_MISSING, "sotto_convert: %s has no '%s'", path(m), name);
}

/* A variable whose axes tell a size. */
static enum sotto_status axis_of(struct ct2_model * m, const char * name, int rank, int axis, int64_t * out) {
    const struct ct2_variable * v = sotto_i_ct2_find(m, name);
    if (v == NULL)
        return missing(m, name);
    if (v->rank != rank)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE, "sotto_convert: %s: '%s' has %d axes, expected %d", path(m), name,
                          v->rank, rank);
    *out = (int64_t)v->dims[axis];
    return SOTTO_OK;
}

/* A single integer; `standard` if it is not there. */
static enum sotto_status scalar(struct ct2_model * m, const char * name, int64_t standard, int64_t * out) {
    *out = standard;
    const struct ct2_variable * v = sotto_i_ct2_find(m, name);
    if (v == NULL)
        return SOTTO_OK;
    if (v->items != 1 || (v->type != CT2_I8 && v->type != CT2_I16 && v->type != CT2_I32))
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: '%s' is no single integer", path(m), name);
    uint8_t bytes[4] = { 0 };
    size_t width = sotto_i_ct2_width(v->type);
    enum sotto_status status = sotto_i_models_stream_read(&m->stream, v->at, bytes, width, name);
    uint32_t value = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    *out = width == 1 ? (int8_t)value : width == 2 ? (int16_t)value : (int32_t)value;
    return status;
}

/* Variants of the architecture that Whisper is not. */
static enum sotto_status check_variant(struct ct2_model * m) {
    static const struct {
        const char * name;
        int64_t wanted;
    } switches[] = {
        { "decoder/activation", 3 },
        { "encoder/activation", 3 },
        { "decoder/pre_norm", 1 },
        { "encoder/pre_norm", 1 },
        { "decoder/alibi", 0 },
        { "decoder/scale_embeddings", 0 },
        { "decoder/start_from_zero_embedding", 0 },
    };
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        int64_t value;
        enum sotto_status status = scalar(m, switches[i].name, switches[i].wanted, &value);
        if (status != SOTTO_OK)
            return status;
        if (value != switches[i].wanted)
            return sotto_fail(SOTTO_E_MODEL_HPARAMS, "sotto_convert: %s: '%s' is %lld, Whisper has %lld", path(m),
                              switches[i].name, (long long)value, (long long)switches[i].wanted);
    }
    return SOTTO_OK;
}

/* Number of a name "<prefix><number>/...", -1 if it is none. */
static int64_t layer_number(const char * name, const char * prefix) {
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || name[n] < '0' || name[n] > '9')
        return -1;
    int64_t value = 0;
    for (const char * c = name + n; *c >= '0' && *c <= '9' && value <= WHISPER_MAX_LAYERS; c++)
        value = value * 10 + (*c - '0');
    return value;
}

static int64_t count_layers(const struct ct2_model * m, const char * prefix) {
    int64_t count = 0;
    for (size_t i = 0; i < m->n_variables; i++) {
        int64_t number = layer_number(m->variables[i].name, prefix);
        if (number >= count)
            count = number + 1;
    }
    return count;
}

static enum sotto_status check_sizes(const struct ct2_model * m, const struct whisper_sizes * s) {
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
                      path(m), wrong, (long long)s->n_vocab, (long long)s->n_mels, (long long)s->width,
                      (long long)s->audio_layers, (long long)s->text_layers, (long long)s->audio_heads,
                      (long long)s->text_heads, (long long)s->audio_ctx, (long long)s->text_ctx);
}

static enum sotto_status find_sizes(struct ct2_model * m, struct whisper_sizes * s) {
    s->audio_ctx = 1500;
    s->audio_layers = count_layers(m, "encoder/layer_");
    s->text_layers = count_layers(m, "decoder/layer_");
    enum sotto_status status = axis_of(m, "decoder/embeddings/weight", 2, 0, &s->n_vocab);
    if (status == SOTTO_OK)
        status = axis_of(m, "decoder/embeddings/weight", 2, 1, &s->width);
    if (status == SOTTO_OK)
        status = axis_of(m, "encoder/conv1/weight", 3, 1, &s->n_mels);
    if (status == SOTTO_OK)
        status = axis_of(m, "decoder/position_encodings/encodings", 2, 0, &s->text_ctx);
    if (status == SOTTO_OK && sotto_i_ct2_find(m, "encoder/position_encodings/encodings") != NULL)
        status = axis_of(m, "encoder/position_encodings/encodings", 2, 0, &s->audio_ctx);
    if (status == SOTTO_OK)
        status = scalar(m, "encoder/num_heads", 8, &s->audio_heads);
    if (status == SOTTO_OK)
        status = scalar(m, "decoder/num_heads", 8, &s->text_heads);
    if (status == SOTTO_OK)
        status = check_variant(m);
    return status == SOTTO_OK ? check_sizes(m, s) : status;
}

/* ---- tensors ---- */

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

static int rank_of(const struct row * row) {
    int rank = 0;
    while (rank < 3 && row->shape[rank] != NONE)
        rank++;
    return rank;
}

static enum sotto_status check_shape(const struct ct2_model * m, const struct ct2_variable * v, const struct row * row,
                                     const struct whisper_sizes * s) {
    bool fits = v->rank == rank_of(row);
    for (int i = 0; i < v->rank && fits; i++)
        fits = v->dims[i] == (uint64_t)extent(s, row->shape[i]) * (uint64_t)(i == 0 ? row->parts : 1);
    if (fits)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE,
                      "sotto_convert: %s: '%s' is [%llu, %llu, %llu] with %d axes, expected [%lld, %lld, %lld]",
                      path(m), v->name, (unsigned long long)v->dims[0], (unsigned long long)v->dims[1],
                      (unsigned long long)v->dims[2], v->rank, (long long)extent(s, row->shape[0]) * row->parts,
                      (long long)extent(s, row->shape[1]), (long long)extent(s, row->shape[2]));
}

/* Quantised weights need their scale, and are then valid but not read yet. */
static enum sotto_status check_type(struct ct2_model * m, const struct ct2_variable * v, enum sotto_type * type) {
    if (v->type == CT2_F32 || v->type == CT2_F16 || v->type == CT2_BF16) {
        *type = v->type == CT2_F32 ? SOTTO_TYPE_F32 : v->type == CT2_F16 ? SOTTO_TYPE_F16 : SOTTO_TYPE_BF16;
        return SOTTO_OK;
    }
    if (v->type == CT2_I32)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: weights '%s' are i32", path(m), v->name);
    char scale_name[256];
    snprintf(scale_name, sizeof(scale_name), "%.240s_scale", v->name);
    const struct ct2_variable * scale = sotto_i_ct2_find(m, scale_name);
    if (scale == NULL && v->type == CT2_I8)
        return missing(m, scale_name);
    if (scale != NULL && scale->items != (v->type == CT2_I8 ? v->dims[0] : 1))
        return sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE, "sotto_convert: %s: '%s' has %llu items for %llu rows", path(m),
                          scale_name, (unsigned long long)scale->items, (unsigned long long)v->dims[0]);
    return sotto_fail(SOTTO_E_UNSUPPORTED,
                      "sotto_convert: %s: weights '%s' are %s; export the model as float16 or float32", path(m),
                      v->name, v->type == CT2_I8 ? "i8" : "i16");
}

static enum sotto_status reserve(struct whisper_source * source) {
    if (source->n_tensors < source->cap_tensors)
        return SOTTO_OK;
    size_t cap = source->cap_tensors + source->cap_tensors / 2 + 64;
    struct whisper_tensor * tensors =
        sotto_realloc(source->allocator, source->tensors, source->cap_tensors, cap, sizeof(*tensors));
    if (tensors == NULL)
        return SOTTO_E_MEMORY;
    source->tensors = tensors;
    source->cap_tensors = cap;
    return SOTTO_OK;
}

static enum sotto_status add_row(struct ct2_model * m, struct whisper_source * source, const struct row * row,
                                 const char * gguf, const char * ct2) {
    struct ct2_variable * v = sotto_i_ct2_find(m, ct2);
    if (v == NULL)
        return row->optional ? SOTTO_OK : missing(m, ct2);
    struct whisper_tensor t = { .rank = rank_of(row), .variable = (size_t)(v - m->variables) };
    enum sotto_status status = check_shape(m, v, row, &source->sizes);
    if (status == SOTTO_OK)
        status = check_type(m, v, &t.source_type);
    if (status == SOTTO_OK)
        status = reserve(source);
    if (status != SOTTO_OK)
        return status;
    snprintf(t.name, sizeof(t.name), "%s", gguf);
    for (int i = 0; i < t.rank; i++)
        t.shape[i] = extent(&source->sizes, row->shape[i]);
    t.weight = t.rank > 1 && strstr(gguf, "pos_embd") == NULL;
    t.first = v->items / (uint64_t)row->parts * (uint64_t)row->part;
    source->tensors[source->n_tensors++] = t;
    v->used = true;
    return SOTTO_OK;
}

static enum sotto_status add_rows(struct ct2_model * m, struct whisper_source * source, const struct row * rows,
                                  int n) {
    for (int i = 0; i < n; i++) {
        enum sotto_status status = add_row(m, source, &rows[i], rows[i].gguf, rows[i].ct2);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

static enum sotto_status add_layer(struct ct2_model * m, struct whisper_source * source, bool encoder, int layer,
                                   const struct row * rows, int n) {
    for (int i = 0; i < n; i++) {
        char gguf[SOTTO_MAX_NAME];
        char ct2[128];
        snprintf(gguf, sizeof(gguf), "%s.blk.%d.%s", encoder ? "enc" : "dec", layer, rows[i].gguf);
        snprintf(ct2, sizeof(ct2), "%s/layer_%d/%s", encoder ? "encoder" : "decoder", layer, rows[i].ct2);
        enum sotto_status status = add_row(m, source, &rows[i], gguf, ct2);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

static enum sotto_status add_all(struct ct2_model * m, struct whisper_source * source) {
    enum sotto_status status = add_rows(m, source, ROWS(ENCODER_HEAD));
    for (int i = 0; i < source->sizes.audio_layers && status == SOTTO_OK; i++) {
        status = add_layer(m, source, true, i, ROWS(SELF_ATTENTION));
        if (status == SOTTO_OK)
            status = add_layer(m, source, true, i, ROWS(FEED_FORWARD));
    }
    if (status == SOTTO_OK)
        status = add_rows(m, source, ROWS(ENCODER_TAIL));
    if (status == SOTTO_OK)
        status = add_rows(m, source, ROWS(DECODER_HEAD));
    for (int i = 0; i < source->sizes.text_layers && status == SOTTO_OK; i++) {
        status = add_layer(m, source, false, i, ROWS(SELF_ATTENTION));
        if (status == SOTTO_OK)
            status = add_layer(m, source, false, i, ROWS(CROSS_ATTENTION));
        if (status == SOTTO_OK)
            status = add_layer(m, source, false, i, ROWS(FEED_FORWARD));
    }
    return status == SOTTO_OK ? add_rows(m, source, ROWS(DECODER_TAIL)) : status;
}

/* ---- what is left out ---- */

/* Rows first..first+n of a fused bias must hold nothing but zeros of either sign. */
static enum sotto_status check_key_bias(struct ct2_model * m, const char * name, uint64_t first, uint64_t n) {
    const struct ct2_variable * v = sotto_i_ct2_find(m, name);
    size_t width = sotto_i_ct2_width(v->type);
    uint8_t bytes[1024];
    uint64_t size = n * width;
    for (uint64_t at = 0; at < size; at += sizeof(bytes)) {
        size_t piece = size - at < sizeof(bytes) ? (size_t)(size - at) : sizeof(bytes);
        enum sotto_status status =
            sotto_i_models_stream_read(&m->stream, v->at + first * width + at, bytes, piece, name);
        if (status != SOTTO_OK)
            return status;
        for (size_t i = 0; i < piece; i++) {
            bool sign_byte = i % width == width - 1;
            if ((bytes[i] & (sign_byte ? 0x7F : 0xFF)) != 0)
                return sotto_fail(SOTTO_E_MODEL_CORRUPT,
                                  "sotto_convert: %s: the key part of '%s' is not zero; Whisper has no key bias",
                                  path(m), name);
        }
    }
    return SOTTO_OK;
}

static enum sotto_status check_key_biases(struct ct2_model * m, const struct whisper_sizes * s) {
    enum sotto_status status = SOTTO_OK;
    char name[128];
    uint64_t d = (uint64_t)s->width;
    for (int i = 0; i < s->audio_layers && status == SOTTO_OK; i++) {
        snprintf(name, sizeof(name), "encoder/layer_%d/self_attention/linear_0/bias", i);
        status = check_key_bias(m, name, d, d);
    }
    for (int i = 0; i < s->text_layers && status == SOTTO_OK; i++) {
        snprintf(name, sizeof(name), "decoder/layer_%d/self_attention/linear_0/bias", i);
        status = check_key_bias(m, name, d, d);
        snprintf(name, sizeof(name), "decoder/layer_%d/attention/linear_1/bias", i);
        if (status == SOTTO_OK)
            status = check_key_bias(m, name, 0, d);
    }
    return status;
}

/* Scalars are switches that may come and go with versions; an array that found no place is a fault. */
static enum sotto_status check_unused(const struct ct2_model * m) {
    for (size_t i = 0; i < m->n_variables; i++) {
        const struct ct2_variable * v = &m->variables[i];
        if (!v->used && v->rank > 0 && strcmp(v->name, "decoder/alignment_heads") != 0)
            return sotto_fail(SOTTO_E_MODEL_TENSOR_UNKNOWN,
                              "sotto_convert: %s: '%s' does not belong to a Whisper model", path(m),
                              sotto_i_models_show(v->name, v->name_size - 1).text);
    }
    return SOTTO_OK;
}

static enum sotto_status read_elements(void * self, const struct whisper_tensor * tensor, uint64_t first, size_t n,
                                       void * dst) {
    const struct ct2_model * m = self;
    const struct ct2_variable * v = &m->variables[tensor->variable];
    size_t width = sotto_i_ct2_width(v->type);
    return sotto_i_models_stream_read(&m->stream, v->at + (tensor->first + first) * width, dst, n * width,
                                      tensor->name);
}

enum sotto_status sotto_i_ct2_describe(struct ct2_model * model, struct whisper_source * source) {
    source->self = model;
    source->read = read_elements;
    enum sotto_status status = find_sizes(model, &source->sizes);
    if (status == SOTTO_OK)
        status = add_all(model, source);
    if (status == SOTTO_OK)
        status = check_unused(model);
    return status == SOTTO_OK ? check_key_biases(model, &source->sizes) : status;
}
