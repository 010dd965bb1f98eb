/* SPDX-License-Identifier: MIT */
/* Variables of a WhisperSpec as tensors of the layout: sizes from shapes, and which rows of fused matrices.
 *
 *   self-attention   linear_0 = [query; key; value]   linear_1 = output
 *   cross-attention  linear_0 = query                 linear_1 = [key; value]   linear_2 = output
 *
 * Whisper's key projections have no bias, so that part of a fused bias has to be zero and is left out. */
#include <stdio.h>
#include <string.h>

#include "models/models_impl.h"

/* ---- sizes ---- */

static const char * file(const struct ct2_model * m) { return m->stream.path; }

static enum sotto_status missing(const struct ct2_model * m, const char * name) {
    return sotto_fail(SOTTO_E_MODEL_TENSOR_MISSING, "sotto_convert: %s has no '%s'", file(m), name);
}

/* A variable whose axes tell a size. */
static enum sotto_status axis_of(struct ct2_model * m, const char * name, int rank, int axis, int64_t * out) {
    const struct ct2_variable * v = sotto_i_ct2_find(m, name);
    if (v == NULL)
        return missing(m, name);
    if (v->rank != rank)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_SHAPE, "sotto_convert: %s: '%s' has %d axes, expected %d", file(m), name,
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
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: '%s' is no single integer", file(m), name);
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
            return sotto_fail(SOTTO_E_MODEL_HPARAMS, "sotto_convert: %s: '%s' is %lld, Whisper has %lld", file(m),
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
    return status == SOTTO_OK ? check_variant(m) : status;
}

/* ---- tensors ---- */

static bool fits(const struct ct2_variable * v, const struct whisper_tensor * t, int parts) {
    if (v->rank != t->rank)
        return false;
    for (int i = 0; i < v->rank; i++) {
        if (v->dims[i] != (uint64_t)t->shape[i] * (uint64_t)(i == 0 ? parts : 1))
            return false;
    }
    return true;
}

static enum sotto_status bind(struct ct2_model * m, struct whisper_source * source, struct whisper_tensor * t) {
    struct whisper_name name = sotto_i_whisper_name(t, WHISPER_CT2);
    struct ct2_variable * v = sotto_i_ct2_find(m, name.text);
    int part, parts;
    if (v == NULL)
        return SOTTO_OK;
    sotto_i_whisper_part(t, &part, &parts);
    if (!fits(v, t, parts))
        return sotto_i_whisper_bad_shape(source, name.text, v->rank, v->dims, t, parts);
    t->at = v->items / (uint64_t)parts * (uint64_t)part;
    t->found = true;
    v->used = true;
    return sotto_i_ct2_set_type(m, v, t);
}

static enum sotto_status bind_all(struct ct2_model * m, struct whisper_source * source) {
    enum sotto_status status = SOTTO_OK;
    for (size_t i = 0; i < source->n_tensors && status == SOTTO_OK; i++)
        status = bind(m, source, &source->tensors[i]);
    return status == SOTTO_OK ? sotto_i_whisper_complete(source, WHISPER_CT2) : status;
}

/* ---- what is left out ---- */

/* Rows first..first+n of a fused bias must hold nothing but zeros of either sign. */
static enum sotto_status check_key_bias(struct ct2_model * m, const char * name, uint64_t first, uint64_t n) {
    const struct ct2_variable * v = sotto_i_ct2_find(m, name);
    size_t width = sotto_i_ct2_width(v->type);
    bool is_float = v->type == CT2_F32 || v->type == CT2_F16 || v->type == CT2_BF16;
    uint8_t bytes[1024];
    uint64_t size = n * width;
    for (uint64_t at = 0; at < size; at += sizeof(bytes)) {
        size_t piece = size - at < sizeof(bytes) ? (size_t)(size - at) : sizeof(bytes);
        enum sotto_status status =
            sotto_i_models_stream_read(&m->stream, v->at + first * width + at, bytes, piece, name);
        if (status != SOTTO_OK)
            return status;
        for (size_t i = 0; i < piece; i++) {
            bool sign_byte = is_float && i % width == width - 1;
            if ((bytes[i] & (sign_byte ? 0x7F : 0xFF)) != 0)
                return sotto_fail(SOTTO_E_MODEL_CORRUPT,
                                  "sotto_convert: %s: the key part of '%s' is not zero; Whisper has no key bias",
                                  file(m), name);
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
                              "sotto_convert: %s: '%s' does not belong to a Whisper model", file(m),
                              sotto_i_models_show(v->name, v->name_size - 1).text);
    }
    return SOTTO_OK;
}

static enum sotto_status read_values(const struct whisper_source * source, const struct whisper_tensor * tensor,
                                     uint64_t first, size_t n, void * dst) {
    struct whisper_name name = sotto_i_whisper_name(tensor, WHISPER_CT2);
    return sotto_i_ct2_read(source->self, sotto_i_ct2_find(source->self, name.text), tensor->at + first, n, dst);
}

static void close_model(struct whisper_source * source) {
    sotto_i_ct2_close(source->self);
    sotto_mfree(source->allocator, source->self, 1, sizeof(struct ct2_model));
}

static enum sotto_status describe(struct ct2_model * m, struct whisper_source * source) {
    source->path = m->stream.path;
    enum sotto_status status = find_sizes(m, &source->sizes);
    if (status == SOTTO_OK)
        status = sotto_i_whisper_layout(source);
    if (status == SOTTO_OK)
        status = bind_all(m, source);
    if (status == SOTTO_OK)
        status = check_unused(m);
    return status == SOTTO_OK ? check_key_biases(m, &source->sizes) : status;
}

enum sotto_status sotto_i_from_ct2(struct whisper_source * source, const char * path) {
    struct ct2_model * m = sotto_calloc(source->allocator, 1, sizeof(*m));
    if (m == NULL)
        return SOTTO_E_MEMORY;
    source->self = m;
    source->read = read_values;
    source->close = close_model;
    enum sotto_status status = sotto_i_ct2_open(m, source->allocator, path);
    if (status == SOTTO_OK)
        status = describe(m, source);
    if (status == SOTTO_OK)
        status = sotto_i_ct2_vocabulary(source, path);
    return status == SOTTO_OK ? sotto_i_ct2_config(source, path) : status;
}
