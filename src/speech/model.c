/* SPDX-License-Identifier: MIT */
/* Opening a model: the directory of the GGUF file is read and checked, sizes first, then the vocabulary, then the
 * weights (weights.c). Whatever the container's reader objects to is reported as a fault of a model. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "languages.h"
#include "model.h"
#include "weights.h"

struct sotto_model_params sotto_model_default_params(void) {
    struct sotto_model_params params = { 0 };
    params.size = sizeof(params);
    return params;
}

/* ---- keys ---- */

struct reader {
    const char * path;
    struct sotto_gguf_context * gguf;
};

static enum sotto_status bad_hparam(const struct reader * r, const char * key, const char * want) {
    return sotto_fail(SOTTO_E_MODEL_HPARAMS, "sotto_model_open: %s: key %s must be %s; convert the model again",
                      r->path, key, want);
}

static enum sotto_status read_int(const struct reader * r, const char * key, int max, int * out) {
    uint64_t value;
    if (!sotto_gguf_get_uint(r->gguf, key, &value) || value < 1 || value > (uint64_t)max)
        return bad_hparam(r, key, "there, positive and within reason");
    *out = (int)value;
    return SOTTO_OK;
}

/* A key that may be missing but has only one value that the code is made for. */
static enum sotto_status expect_int(const struct reader * r, const char * key, uint64_t want) {
    uint64_t value;
    if (sotto_gguf_find_key(r->gguf, key) < 0)
        return SOTTO_OK;
    if (!sotto_gguf_get_uint(r->gguf, key, &value) || value != want) {
        char text[32];
        snprintf(text, sizeof(text), "%llu", (unsigned long long)want);
        return bad_hparam(r, key, text);
    }
    return SOTTO_OK;
}

struct int_key {
    const char * key;
    int max;
    int * out;
};

static enum sotto_status read_stack(const struct reader * r, const struct int_key * keys, int n) {
    for (int i = 0; i < n; i++) {
        enum sotto_status status = read_int(r, keys[i].key, keys[i].max, keys[i].out);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

#define MAX_WIDTH (1 << 16)
#define MAX_CTX   (1 << 16)

static enum sotto_status read_sizes(const struct reader * r, struct sotto_i_hparams * hp) {
    int audio_width, text_width;
    const struct int_key keys[] = {
        { "whisper.vocab_size", 1 << 20, &hp->n_vocab },
        { "whisper.mel_bands", 512, &hp->n_mels },
        { "whisper.encoder.context_length", MAX_CTX, &hp->n_audio_ctx },
        { "whisper.encoder.embedding_length", MAX_WIDTH, &audio_width },
        { "whisper.encoder.feed_forward_length", 4 * MAX_WIDTH, &hp->audio_ff },
        { "whisper.encoder.block_count", SOTTO_I_MAX_LAYERS, &hp->n_audio_layers },
        { "whisper.encoder.attention.head_count", MAX_WIDTH, &hp->n_audio_heads },
        { "whisper.decoder.context_length", MAX_CTX, &hp->n_text_ctx },
        { "whisper.decoder.embedding_length", MAX_WIDTH, &text_width },
        { "whisper.decoder.feed_forward_length", 4 * MAX_WIDTH, &hp->text_ff },
        { "whisper.decoder.block_count", SOTTO_I_MAX_LAYERS, &hp->n_text_layers },
        { "whisper.decoder.attention.head_count", MAX_WIDTH, &hp->n_text_heads },
    };
    enum sotto_status status = read_stack(r, keys, (int)(sizeof(keys) / sizeof(keys[0])));
    if (status != SOTTO_OK)
        return status;
    if (audio_width != text_width)
        return bad_hparam(r, "whisper.decoder.embedding_length", "the encoder's width");
    hp->width = audio_width;
    return SOTTO_OK;
}

static enum sotto_status check_sizes(const struct reader * r, const struct sotto_i_hparams * hp) {
    if (hp->width % hp->n_audio_heads != 0 || hp->width % hp->n_text_heads != 0)
        return bad_hparam(r, "whisper.encoder.attention.head_count", "a divisor of the width");
    if (hp->n_audio_ctx != 1500)
        return bad_hparam(r, "whisper.encoder.context_length", "1500");
    if (hp->n_text_ctx < 8)
        return bad_hparam(r, "whisper.decoder.context_length", "8 or more");
    const struct {
        const char * key;
        uint64_t want;
    } fixed[] = {
        { "whisper.audio.sample_rate", 16000 },
        { "whisper.audio.n_fft", 400 },
        { "whisper.audio.hop_length", 160 },
        { "whisper.audio.chunk_seconds", 30 },
    };
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        enum sotto_status status = expect_int(r, fixed[i].key, fixed[i].want);
        if (status != SOTTO_OK)
            return status;
    }
    return SOTTO_OK;
}

static enum sotto_status read_hparams(const struct reader * r, struct sotto_i_hparams * hp) {
    enum sotto_status status = read_sizes(r, hp);
    if (status == SOTTO_OK)
        status = check_sizes(r, hp);
    if (status != SOTTO_OK)
        return status;
    double eps;
    hp->eps = 1e-5f;
    if (sotto_gguf_get_float(r->gguf, "whisper.attention.layer_norm_epsilon", &eps)) {
        if (!(eps >= 0 && eps < 1))
            return bad_hparam(r, "whisper.attention.layer_norm_epsilon", "in 0..1");
        hp->eps = (float)eps;
    }
    if (!sotto_gguf_get_bool(r->gguf, "whisper.timestamps", &hp->timestamps))
        hp->timestamps = hp->n_text_layers != 2 || hp->n_vocab == 51866;
    return SOTTO_OK;
}

static enum sotto_status check_special_ids(const struct reader * r, const struct sotto_i_specials * s) {
    const struct {
        const char * key;
        int32_t want;
    } ids[] = {
        { "tokenizer.ggml.bos_token_id", s->sot },
        { "tokenizer.ggml.eos_token_id", s->eot },
        { "tokenizer.whisper.translate_token_id", s->translate },
        { "tokenizer.whisper.transcribe_token_id", s->transcribe },
        { "tokenizer.whisper.startoflm_token_id", s->solm },
        { "tokenizer.whisper.startofprev_token_id", s->prev },
        { "tokenizer.whisper.nospeech_token_id", s->nosp },
        { "tokenizer.whisper.notimestamps_token_id", s->no_timestamps },
        { "tokenizer.whisper.timestamp_begin_token_id", s->beg },
        { "whisper.language_count", s->n_languages },
    };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        enum sotto_status status = expect_int(r, ids[i].key, (uint64_t)ids[i].want);
        if (status != SOTTO_OK)
            return status;
    }
    bool multilingual;
    if (sotto_gguf_get_bool(r->gguf, "whisper.multilingual", &multilingual) && multilingual != s->multilingual)
        return bad_hparam(r, "whisper.multilingual", s->multilingual ? "true" : "false");
    return SOTTO_OK;
}

/* ---- vocabulary ---- */

struct spellings {
    struct sotto_gguf_context * gguf;
    int64_t key;
};

static const char * spelling(void * user_data, int id, size_t * size) {
    const struct spellings * s = user_data;
    return sotto_gguf_get_arr_str_n(s->gguf, s->key, (size_t)id, size);
}

static enum sotto_status read_vocabulary(const struct reader * r, struct sotto_model * model) {
    struct spellings s = { r->gguf, sotto_gguf_find_key(r->gguf, "tokenizer.ggml.tokens") };
    if (s.key < 0 || sotto_gguf_get_kv_type(r->gguf, s.key) != SOTTO_GGUF_TYPE_ARRAY ||
        sotto_gguf_get_arr_type(r->gguf, s.key) != SOTTO_GGUF_TYPE_STRING)
        return sotto_fail(SOTTO_E_MODEL_VOCAB,
                          "sotto_model_open: %s: key tokenizer.ggml.tokens must be an array of strings; convert the "
                          "model again",
                          r->path);
    size_t n = sotto_gguf_get_arr_n(r->gguf, s.key);
    if (n != (size_t)model->hp.n_vocab)
        return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_model_open: %s: %zu tokens are spelled, the vocabulary has %d",
                          r->path, n, model->hp.n_vocab);
    return sotto_i_tokenizer_new(model->hp.n_vocab, SOTTO_I_ALPHABET_GPT2, spelling, &s, model->allocator,
                                 &model->tokenizer);
}

/* ---- opening ---- */

static bool begins_with_magic(const char * path) {
    char magic[4];
    FILE * file = fopen(path, "rb");
    if (!file)
        return false;
    bool same = fread(magic, 1, sizeof(magic), file) == sizeof(magic) && memcmp(magic, "GGUF", sizeof(magic)) == 0;
    fclose(file);
    return same;
}

static enum sotto_status open_container(struct reader * r, const struct sotto_allocator * allocator) {
    struct sotto_gguf_open_params params = { 0 };
    params.size = sizeof(params);
    params.flags = SOTTO_GGUF_OPEN_TAIL_PAD | SOTTO_GGUF_OPEN_CHECK_EXTENT;
    params.allocator = allocator;
    r->gguf = sotto_gguf_open(r->path, &params);
    if (r->gguf)
        return SOTTO_OK;
    char text[512];
    snprintf(text, sizeof(text), "%s", sotto_last_error_text());
    enum sotto_status status = sotto_gguf_model_status(sotto_last_error());
    if (status == SOTTO_E_MODEL_TRUNCATED && !begins_with_magic(r->path))
        status = SOTTO_E_MODEL_FORMAT;
    return sotto_fail(status, "sotto_model_open: %s: %s", r->path, text);
}

static enum sotto_status check_architecture(const struct reader * r) {
    const char * arch;
    if (!sotto_gguf_get_str(r->gguf, "general.architecture", &arch))
        arch = "none";
    if (strcmp(arch, "whisper") == 0)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_ARCH, "sotto_model_open: %s: architecture is \"%.64s\", \"whisper\" is needed",
                      r->path, arch);
}

static void name_model(struct sotto_model * model) {
    static const struct {
        int layers;
        const char * name;
    } names[] = { { 4, "tiny" }, { 6, "base" }, { 12, "small" }, { 24, "medium" }, { 32, "large" } };
    const struct sotto_i_hparams * hp = &model->hp;
    const char * name = "unknown";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].layers == hp->n_audio_layers)
            name = names[i].name;
    snprintf(model->name, sizeof(model->name), "%s%s%s", name, hp->n_vocab == 51866 ? " v3" : "",
             hp->n_audio_layers == 32 && hp->n_text_layers == 4 ? "-turbo" : "");
}

static enum sotto_status read_model(const struct reader * r, struct sotto_model * model, bool check) {
    struct sotto_i_specials specials;
    enum sotto_status status = check_architecture(r);
    if (status == SOTTO_OK)
        status = read_hparams(r, &model->hp);
    if (status == SOTTO_OK)
        status = sotto_i_specials_init(model->hp.n_vocab, &specials);
    if (status == SOTTO_OK)
        status = check_special_ids(r, &specials);
    if (status == SOTTO_OK)
        status = read_vocabulary(r, model);
    if (status == SOTTO_OK)
        status = sotto_i_weights_load(model, r->path, r->gguf, check);
    name_model(model);
    return status;
}

static enum sotto_status check_params(const struct sotto_model_params * params) {
    if (params->size < sizeof(*params))
        return sotto_fail(SOTTO_E_PARAM,
                          "sotto_model_open: params.size is %u, want %zu; begin with sotto_model_default_params()",
                          params->size, sizeof(*params));
    if (params->gelu != SOTTO_GELU_FORM_ERF && params->gelu != SOTTO_GELU_FORM_TANH)
        return sotto_fail(SOTTO_E_PARAM, "sotto_model_open: params.gelu is %d, want 0 or 1", (int)params->gelu);
    return SOTTO_OK;
}

enum sotto_status sotto_model_open(const char * path, const struct sotto_model_params * params,
                                   struct sotto_model ** model) {
    if (!path || !model)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_model_open: path and model must not be NULL");
    *model = NULL;
    struct sotto_model_params defaults = sotto_model_default_params();
    if (!params)
        params = &defaults;
    enum sotto_status status = check_params(params);
    if (status != SOTTO_OK)
        return status;
    struct reader r = { path, NULL };
    status = open_container(&r, params->allocator);
    if (status != SOTTO_OK)
        return status;
    struct sotto_model * m = sotto_calloc(params->allocator, 1, sizeof(*m));
    if (m) {
        m->allocator = params->allocator;
        m->gelu = params->gelu;
        status = read_model(&r, m, params->check_weights);
    } else {
        status = SOTTO_E_MEMORY;
    }
    sotto_gguf_free(r.gguf);
    if (status != SOTTO_OK) {
        sotto_model_free(m);
        return status;
    }
    *model = m;
    return SOTTO_OK;
}

void sotto_model_free(struct sotto_model * model) {
    if (!model)
        return;
    const struct sotto_allocator * allocator = model->allocator;
    sotto_i_tokenizer_free(model->tokenizer);
    sotto_backend_buffer_free(model->packed);
    sotto_backend_buffer_free(model->plain);
    sotto_free(model->matrices);
    sotto_free(model->vectors);
    sotto_mfree(allocator, model->layers, (size_t)model->hp.n_audio_layers + (size_t)model->hp.n_text_layers,
                sizeof(*model->layers));
    sotto_mfree(allocator, model, 1, sizeof(*model));
}

/* ---- getters ---- */

const struct sotto_i_layer * sotto_i_audio_layer(const struct sotto_model * model, int i) { return &model->layers[i]; }

const struct sotto_i_layer * sotto_i_text_layer(const struct sotto_model * model, int i) {
    return &model->layers[model->hp.n_audio_layers + i];
}

const struct sotto_i_specials * sotto_i_model_specials(const struct sotto_model * model) {
    return sotto_i_tokenizer_specials(model->tokenizer);
}

const char * sotto_model_name(const struct sotto_model * model) { return model ? model->name : NULL; }
int sotto_model_n_vocab(const struct sotto_model * model) { return model ? model->hp.n_vocab : 0; }
int sotto_model_n_mels(const struct sotto_model * model) { return model ? model->hp.n_mels : 0; }
int sotto_model_width(const struct sotto_model * model) { return model ? model->hp.width : 0; }
int sotto_model_n_audio_ctx(const struct sotto_model * model) { return model ? model->hp.n_audio_ctx : 0; }
int sotto_model_n_text_ctx(const struct sotto_model * model) { return model ? model->hp.n_text_ctx : 0; }
int sotto_model_n_audio_layers(const struct sotto_model * model) { return model ? model->hp.n_audio_layers : 0; }
int sotto_model_n_text_layers(const struct sotto_model * model) { return model ? model->hp.n_text_layers : 0; }

bool sotto_model_is_multilingual(const struct sotto_model * model) {
    return model && sotto_i_model_specials(model)->multilingual;
}

int sotto_model_n_languages(const struct sotto_model * model) {
    return model ? sotto_i_model_specials(model)->n_languages : 0;
}

enum sotto_type sotto_model_weight_type(const struct sotto_model * model) {
    return model ? model->weight_type : SOTTO_TYPE_COUNT;
}

size_t sotto_model_memory(const struct sotto_model * model) {
    return model ? sotto_backend_buffer_get_size(model->packed) + sotto_backend_buffer_get_size(model->plain) : 0;
}

/* ---- tokens ---- */

int32_t sotto_token_special(const struct sotto_model * model, enum sotto_special_token which) {
    if (!model)
        return -1;
    const struct sotto_i_specials * s = sotto_i_model_specials(model);
    switch (which) {
    case SOTTO_TOKEN_EOT: return s->eot;
    case SOTTO_TOKEN_SOT: return s->sot;
    case SOTTO_TOKEN_TRANSLATE: return s->translate;
    case SOTTO_TOKEN_TRANSCRIBE: return s->transcribe;
    case SOTTO_TOKEN_SOLM: return s->solm;
    case SOTTO_TOKEN_PREV: return s->prev;
    case SOTTO_TOKEN_NOSP: return s->nosp;
    case SOTTO_TOKEN_NO_TIMESTAMPS: return s->no_timestamps;
    case SOTTO_TOKEN_BEG: return s->beg;
    }
    return -1;
}

int32_t sotto_token_language(const struct sotto_model * model, int language) {
    if (language < 0 || language >= sotto_model_n_languages(model))
        return -1;
    return sotto_i_model_specials(model)->language0 + language;
}

const char * sotto_token_text(const struct sotto_model * model, int32_t token, size_t * size) {
    size_t unused;
    if (!size)
        size = &unused;
    *size = 0;
    return model ? sotto_i_tokenizer_bytes(model->tokenizer, token, size) : NULL;
}

enum sotto_status sotto_tokenize(const struct sotto_model * model, const char * text, size_t size, int32_t * tokens,
                                 size_t capacity, size_t * count) {
    if (!model || !count || (!text && size > 0) || (!tokens && capacity > 0))
        return sotto_fail(SOTTO_E_NULLARG, "sotto_tokenize: model, text, tokens and count must not be NULL");
    return sotto_i_tokenizer_encode(model->tokenizer, text, size, tokens, capacity, count);
}
