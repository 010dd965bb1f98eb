/* SPDX-License-Identifier: MIT */
/* Sotto's own form as a source: keys, vocabulary and lists out of the file's pairs, tensors by their names. */
#include <stdio.h>
#include <string.h>

#include "models/models_impl.h"

static enum sotto_status open_file(struct whisper_source * source) {
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_TAIL_PAD | SOTTO_GGUF_OPEN_CHECK_EXTENT;
    params.allocator = source->allocator;
    source->self = sotto_gguf_open(source->path, &params);
    source->pairs = source->self;
    if (source->self != NULL)
        return SOTTO_OK;
    char text[512];
    snprintf(text, sizeof(text), "%s", sotto_last_error_text());
    return sotto_fail(sotto_gguf_model_status(sotto_last_error()), "sotto_convert: %s: %s", source->path, text);
}

/* ---- keys ---- */

static enum sotto_status check_architecture(const struct whisper_source * source) {
    const char * arch = "nothing";
    if (sotto_gguf_get_str(source->self, "general.architecture", &arch) && strcmp(arch, "whisper") == 0)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_MODEL_ARCH, "sotto_convert: %s holds '%s', not a whisper model", source->path,
                      sotto_i_models_show(arch, strlen(arch)).text);
}

static enum sotto_status bad_key(const struct whisper_source * source, const char * key, int64_t want) {
    return sotto_fail(SOTTO_E_MODEL_HPARAMS, "sotto_convert: %s: key %s must be %lld", source->path, key,
                      (long long)want);
}

/* Keys that say again what others said; they may be missing. */
static enum sotto_status check_widths(const struct whisper_source * source) {
    const struct {
        const char * key;
        int64_t want;
    } rows[] = {
        { "whisper.decoder.embedding_length", source->sizes.width },
        { "whisper.encoder.feed_forward_length", 4 * source->sizes.width },
        { "whisper.decoder.feed_forward_length", 4 * source->sizes.width },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t value = (uint64_t)rows[i].want;
        if (sotto_gguf_find_key(source->self, rows[i].key) >= 0 &&
            (!sotto_gguf_get_uint(source->self, rows[i].key, &value) || value != (uint64_t)rows[i].want))
            return bad_key(source, rows[i].key, rows[i].want);
    }
    return SOTTO_OK;
}

static enum sotto_status find_sizes(struct whisper_source * source) {
    struct whisper_sizes * s = &source->sizes;
    const struct {
        const char * key;
        int64_t * out;
    } rows[] = {
        { "whisper.vocab_size", &s->n_vocab },
        { "whisper.mel_bands", &s->n_mels },
        { "whisper.encoder.context_length", &s->audio_ctx },
        { "whisper.encoder.embedding_length", &s->width },
        { "whisper.encoder.block_count", &s->audio_layers },
        { "whisper.encoder.attention.head_count", &s->audio_heads },
        { "whisper.decoder.context_length", &s->text_ctx },
        { "whisper.decoder.block_count", &s->text_layers },
        { "whisper.decoder.attention.head_count", &s->text_heads },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t value;
        if (!sotto_gguf_get_uint(source->self, rows[i].key, &value) || value > WHISPER_MAX_VOCAB)
            return sotto_fail(SOTTO_E_MODEL_HPARAMS, "sotto_convert: %s: key %s is missing or no size", source->path,
                              rows[i].key);
        *rows[i].out = (int64_t)value;
    }
    return check_widths(source);
}

/* ---- vocabulary and lists ---- */

static bool is_array(const struct whisper_source * source, int64_t key, enum sotto_gguf_type type) {
    return key >= 0 && sotto_gguf_get_kv_type(source->self, key) == SOTTO_GGUF_TYPE_ARRAY &&
           sotto_gguf_get_arr_type(source->self, key) == type;
}

/* The strings stay where the container keeps them. */
static enum sotto_status take_tokens(struct whisper_source * source) {
    static const char name[] = "tokenizer.ggml.tokens";
    int64_t key = sotto_gguf_find_key(source->self, name);
    size_t n = (size_t)source->sizes.n_vocab;
    if (!is_array(source, key, SOTTO_GGUF_TYPE_STRING) || sotto_gguf_get_arr_n(source->self, key) != n)
        return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: %s: key %s must be an array of %zu strings",
                          source->path, name, n);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        source->tokens[i] = sotto_gguf_get_arr_str_n(source->self, key, i, &len);
        if (len > 2 * WHISPER_MAX_TOKEN || strlen(source->tokens[i]) != len)
            return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: %s: token %zu is too long or holds a 0",
                              source->path, i);
    }
    return SOTTO_OK;
}

/* Entries have to lie below limits[i % 2]. */
static enum sotto_status take_list(struct whisper_source * source, const char * name, struct whisper_list * list,
                                   int64_t even, int64_t odd) {
    int64_t key = sotto_gguf_find_key(source->self, name);
    if (key < 0)
        return SOTTO_OK;
    if (!is_array(source, key, SOTTO_GGUF_TYPE_INT32))
        return sotto_fail(SOTTO_E_MODEL_CONFIG, "sotto_convert: %s: key %s must be an array of i32", source->path,
                          name);
    const int32_t * ids = sotto_gguf_get_arr_data(source->self, key);
    size_t n = sotto_gguf_get_arr_n(source->self, key);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= (i % 2 == 0 ? even : odd))
            return sotto_fail(SOTTO_E_MODEL_CONFIG, "sotto_convert: %s: key %s: %ld is out of range", source->path,
                              name, (long)ids[i]);
    }
    list->given = true;
    if (n == 0)
        return SOTTO_OK;
    list->ids = sotto_malloc(source->allocator, n, sizeof(*ids));
    if (list->ids == NULL)
        return SOTTO_E_MEMORY;
    list->n = n;
    memcpy(list->ids, ids, n * sizeof(*ids));
    return SOTTO_OK;
}

static enum sotto_status take_lists(struct whisper_source * source) {
    const struct whisper_sizes * s = &source->sizes;
    enum sotto_status status =
        take_list(source, "whisper.alignment_heads", &source->alignment_heads, s->text_layers, s->text_heads);
    if (status == SOTTO_OK && source->alignment_heads.n % 2 != 0)
        status = sotto_fail(SOTTO_E_MODEL_CONFIG, "sotto_convert: %s: key whisper.alignment_heads holds no pairs",
                            source->path);
    if (status == SOTTO_OK)
        status = take_list(source, "whisper.suppress_tokens", &source->suppress, s->n_vocab, s->n_vocab);
    if (status == SOTTO_OK)
        status = take_list(source, "whisper.suppress_tokens_begin", &source->suppress_begin, s->n_vocab, s->n_vocab);
    return status;
}

/* ---- tensors ---- */

/* Work types are none of files. */
static bool holds_weights(enum sotto_type type) {
    if (type == SOTTO_TYPE_F32 || type == SOTTO_TYPE_F16 || type == SOTTO_TYPE_BF16)
        return true;
    return sotto_is_quantized(type) && type != SOTTO_TYPE_Q8_1 && type != SOTTO_TYPE_Q8_K;
}

static enum sotto_status bind(struct whisper_source * source, int64_t id) {
    const char * name = sotto_gguf_get_tensor_name(source->self, id);
    struct whisper_tensor * t = sotto_i_whisper_find(source, WHISPER_GGUF, name);
    struct models_shown shown = sotto_i_models_show(name, strlen(name));
    if (t == NULL)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_UNKNOWN, "sotto_convert: %s: '%s' does not belong to a Whisper model",
                          source->path, shown.text);
    const int64_t * ne = sotto_gguf_get_tensor_ne(source->self, id);
    bool fits = true;
    for (int i = 0; i < SOTTO_MAX_DIMS; i++)
        fits = fits && ne[i] == (i < t->rank ? t->shape[t->rank - 1 - i] : 1);
    if (!fits) {
        const uint64_t found[] = { (uint64_t)ne[3], (uint64_t)ne[2], (uint64_t)ne[1], (uint64_t)ne[0] };
        return sotto_i_whisper_bad_shape(source, shown.text, SOTTO_MAX_DIMS, found, t, 1);
    }
    t->source_type = sotto_gguf_get_tensor_type(source->self, id);
    t->kept = t->source_type;
    if (!holds_weights(t->source_type))
        return sotto_fail(SOTTO_E_MODEL_TENSOR_TYPE, "sotto_convert: %s: '%s' is %s, which is no type of weights",
                          source->path, shown.text, sotto_type_name(t->source_type));
    t->at = (uint64_t)id;
    t->found = true;
    return SOTTO_OK;
}

static enum sotto_status bind_all(struct whisper_source * source) {
    enum sotto_status status = SOTTO_OK;
    for (int64_t id = 0; id < sotto_gguf_get_n_tensors(source->self) && status == SOTTO_OK; id++)
        status = bind(source, id);
    return status == SOTTO_OK ? sotto_i_whisper_complete(source, WHISPER_GGUF) : status;
}

static enum sotto_status read_values(const struct whisper_source * source, const struct whisper_tensor * tensor,
                                     uint64_t first, size_t n, void * dst) {
    enum sotto_type type = tensor->source_type;
    enum sotto_status status = sotto_gguf_read_tensor(
        source->self, (int64_t)tensor->at, dst, (size_t)whisper_bytes(type, first), (size_t)whisper_bytes(type, n));
    if (status == SOTTO_OK)
        return status;
    char text[512];
    snprintf(text, sizeof(text), "%s", sotto_last_error_text());
    return sotto_fail(sotto_gguf_model_status(status), "sotto_convert: %s: %s", source->path, text);
}

static void close_file(struct whisper_source * source) { sotto_gguf_free(source->self); }

enum sotto_status sotto_i_from_gguf(struct whisper_source * source, const char * path) {
    source->path = path;
    source->read = read_values;
    source->close = close_file;
    enum sotto_status status = open_file(source);
    if (status == SOTTO_OK)
        status = check_architecture(source);
    if (status == SOTTO_OK)
        status = find_sizes(source);
    if (status == SOTTO_OK)
        status = sotto_i_whisper_layout(source);
    if (status == SOTTO_OK)
        status = bind_all(source);
    if (status == SOTTO_OK)
        status = take_tokens(source);
    return status == SOTTO_OK ? take_lists(source) : status;
}
