/* SPDX-License-Identifier: MIT */
/* The settings of a Hugging Face folder: config.json says what the model is, generation_config.json (it may be missing,
 * and has the last word) how it is used, preprocessor_config.json what it hears. */
#include <string.h>

#include "models/hf_impl.h"

#define MOST ((json_int_t)1 << 24) /* of any size; the layout checks closer */

static enum sotto_status bad(const struct json_config * c, const char * key, const char * what) {
    return sotto_i_json_bad(c, key, what);
}

/* An optional file: *there is false if it is missing. */
static enum sotto_status load(struct json_config * c, json_t ** root, bool optional) {
    const struct sotto_allocator * allocator = c->source->allocator;
    bool there = true;
    *root = NULL;
    enum sotto_status status = SOTTO_OK;
    if (optional)
        status = sotto_i_models_exists(allocator, c->folder, c->name, &there);
    if (status != SOTTO_OK || !there)
        return status;
    status = sotto_i_json_load(allocator, c->folder, c->name, SOTTO_E_MODEL_CONFIG, root);
    c->root = *root;
    return status == SOTTO_OK ? sotto_i_json_config(c) : status;
}

/* ---- what the model is ---- */

static enum sotto_status take_size(const struct json_config * c, const char * key, int64_t * out) {
    const json_t * value = sotto_i_json_get(c, key);
    if (value == NULL)
        return bad(c, key, "it is missing");
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > MOST)
        return bad(c, key, "no size");
    *out = json_integer_value(value);
    return SOTTO_OK;
}

static enum sotto_status take_sizes(const struct json_config * c, struct whisper_sizes * s) {
    const char * text_ctx = sotto_i_json_get(c, "max_target_positions") != NULL ? "max_target_positions" : "max_length";
    int64_t audio_ffn, text_ffn;
    const struct {
        const char * key;
        int64_t * out;
    } rows[] = {
        { "vocab_size", &s->n_vocab },
        { "num_mel_bins", &s->n_mels },
        { "d_model", &s->width },
        { "max_source_positions", &s->audio_ctx },
        { "encoder_layers", &s->audio_layers },
        { "encoder_attention_heads", &s->audio_heads },
        { "encoder_ffn_dim", &audio_ffn },
        { text_ctx, &s->text_ctx },
        { "decoder_layers", &s->text_layers },
        { "decoder_attention_heads", &s->text_heads },
        { "decoder_ffn_dim", &text_ffn },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum sotto_status status = take_size(c, rows[i].key, rows[i].out);
        if (status != SOTTO_OK)
            return status;
    }
    if (audio_ffn == 4 * s->width && text_ffn == 4 * s->width)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_HPARAMS,
                      "sotto_convert: %s/%s: encoder_ffn_dim %lld, decoder_ffn_dim %lld; Whisper has 4 * %lld",
                      c->folder, c->name, (long long)audio_ffn, (long long)text_ffn, (long long)s->width);
}

/* Other architectures, and variants of this one that Whisper is not. */
static enum sotto_status check_kind(const struct json_config * c) {
    const json_t * type = sotto_i_json_get(c, "model_type");
    const json_t * gelu = sotto_i_json_get(c, "activation_function");
    const json_t * scale = sotto_i_json_get(c, "scale_embedding");
    if (!json_is_string(type))
        return bad(c, "model_type", type == NULL ? "it is missing" : "no string");
    if (strcmp(json_string_value(type), "whisper") != 0)
        return sotto_fail(SOTTO_E_MODEL_ARCH, "sotto_convert: %s/%s describes a model of type '%s', not whisper",
                          c->folder, c->name,
                          sotto_i_models_show(json_string_value(type), json_string_length(type)).text);
    if (gelu != NULL && !json_is_string(gelu))
        return bad(c, "activation_function", "no string");
    if ((gelu != NULL && strcmp(json_string_value(gelu), "gelu") != 0) || json_is_true(scale))
        return sotto_fail(SOTTO_E_MODEL_HPARAMS,
                          "sotto_convert: %s/%s: Whisper has activation_function gelu and scale_embedding false",
                          c->folder, c->name);
    return SOTTO_OK;
}

enum sotto_status sotto_i_hf_sizes(struct whisper_source * source, const char * folder) {
    struct json_config c = { .source = source, .folder = folder, .name = "config.json" };
    json_t * root;
    enum sotto_status status = load(&c, &root, false);
    if (status == SOTTO_OK)
        status = check_kind(&c);
    if (status == SOTTO_OK)
        status = take_sizes(&c, &source->sizes);
    json_decref(root);
    return status;
}

/* ---- how it is used ---- */

/* A setting that follows from the number of tokens may be there, and then has to say the same. */
static enum sotto_status check_integer(const struct json_config * c, const char * key, int64_t wanted) {
    const json_t * value = sotto_i_json_get(c, key);
    if (value == NULL || (json_is_integer(value) && json_integer_value(value) == wanted))
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_CONFIG, "sotto_convert: %s/%s: %s has to be %lld for this model", c->folder,
                      c->name, key, (long long)wanted);
}

/* { "<|en|>": 50259, ... } */
static enum sotto_status check_languages(const struct json_config * c) {
    const json_t * map = sotto_i_json_get(c, "lang_to_id");
    const char * name;
    json_t * id;
    if (map != NULL && !json_is_object(map))
        return bad(c, "lang_to_id", "no object");
    json_object_foreach((json_t *)map, name, id) {
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= c->source->sizes.n_vocab)
            return bad(c, "lang_to_id", "an id is out of range");
    }
    return SOTTO_OK;
}

/* The lists that a file holds, unless another had them. */
static enum sotto_status take_lists(const struct json_config * c, struct whisper_source * source) {
    const struct {
        const char * key;
        struct whisper_list * list;
    } rows[] = { { "suppress_tokens", &source->suppress }, { "begin_suppress_tokens", &source->suppress_begin } };
    enum sotto_status status = SOTTO_OK;
    if (!source->alignment_heads.given)
        status = sotto_i_json_heads(c, "alignment_heads", &source->alignment_heads);
    for (int i = 0; i < 2 && status == SOTTO_OK; i++) {
        if (!rows[i].list->given)
            status = sotto_i_json_tokens(c, rows[i].key, rows[i].list);
    }
    return status;
}

static enum sotto_status check_generation(const struct json_config * c) {
    const struct whisper_sizes * s = &c->source->sizes;
    bool multilingual = s->n_vocab > WHISPER_MIN_VOCAB;
    const json_t * value = sotto_i_json_get(c, "is_multilingual");
    if (value != NULL && (!json_is_boolean(value) || json_is_true(value) != multilingual))
        return bad(c, "is_multilingual", "it contradicts the number of tokens");
    enum sotto_status status = check_integer(c, "no_timestamps_token_id", s->n_vocab - 1502);
    return status == SOTTO_OK ? check_languages(c) : status;
}

enum sotto_status sotto_i_hf_settings(struct whisper_source * source, const char * folder) {
    static const char * const names[] = { "generation_config.json", "config.json", "preprocessor_config.json" };
    enum sotto_status status = SOTTO_OK;
    for (int i = 0; i < 3 && status == SOTTO_OK; i++) {
        struct json_config c = { .source = source, .folder = folder, .name = names[i] };
        json_t * root;
        status = load(&c, &root, i != 1);
        if (status == SOTTO_OK && i == 0)
            status = check_generation(&c);
        if (status == SOTTO_OK && i < 2)
            status = take_lists(&c, source);
        if (status == SOTTO_OK && i == 2)
            status = check_integer(&c, "feature_size", source->sizes.n_mels);
        json_decref(root);
    }
    return status;
}
