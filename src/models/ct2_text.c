/* SPDX-License-Identifier: MIT */
/* The text beside model.bin: vocabulary.txt or vocabulary.json, and config.json. */
#include <string.h>

#include "models/models_json.h"

#define MAX_VOCABULARY ((size_t)64 << 20)

/* ---- vocabulary ---- */

static enum sotto_status bad_vocabulary(const char * folder, const char * what, uint64_t number) {
    return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: the vocabulary of %s: %s (%llu)", folder, what,
                      (unsigned long long)number);
}

/* A carriage return before every line feed is part of the line's end. */
static bool all_crlf(const char * text, size_t len) {
    bool any = false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r'))
            return false;
        any = any || text[i] == '\n';
    }
    return any && len > 0 && text[len - 1] == '\n';
}

static enum sotto_status split_lines(struct whisper_source * source, const char * folder) {
    char * text = source->text;
    size_t len = source->text_size - 1;
    size_t n = 0;
    if (memchr(text, 0, len) != NULL)
        return bad_vocabulary(folder, "a byte is 0", 0);
    bool crlf = all_crlf(text, len);
    for (size_t at = 0; at < len; n++) {
        char * end = memchr(text + at, '\n', len - at);
        size_t next = end != NULL ? (size_t)(end - text) : len;
        if (n == (size_t)source->sizes.n_vocab)
            return bad_vocabulary(folder, "more lines than the model has tokens", n);
        source->tokens[n] = text + at;
        text[next] = 0;
        if (crlf && end != NULL)
            text[next - 1] = 0;
        at = next + 1;
    }
    if (n != (size_t)source->sizes.n_vocab)
        return bad_vocabulary(folder, "fewer lines than the model has tokens", n);
    return SOTTO_OK;
}

/* Copy the strings of a JSON array into the source. */
static enum sotto_status take_strings(struct whisper_source * source, const char * folder, const json_t * array) {
    size_t n = json_array_size(array);
    if (!json_is_array(array) || n != (size_t)source->sizes.n_vocab)
        return bad_vocabulary(folder, "no array of as many strings as the model has tokens", n);
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t * item = json_array_get(array, i);
        if (!json_is_string(item) || strlen(json_string_value(item)) != json_string_length(item))
            return bad_vocabulary(folder, "an entry is no string, or holds a 0", i);
        total += json_string_length(item) + 1;
    }
    source->text = sotto_malloc(source->allocator, total, 1);
    if (source->text == NULL)
        return SOTTO_E_MEMORY;
    source->text_size = total;
    char * at = source->text;
    for (size_t i = 0; i < n; i++) {
        const json_t * item = json_array_get(array, i);
        source->tokens[i] = at;
        memcpy(at, json_string_value(item), json_string_length(item) + 1);
        at += json_string_length(item) + 1;
    }
    return SOTTO_OK;
}

enum sotto_status sotto_i_ct2_vocabulary(struct whisper_source * source, const char * folder) {
    bool json = false;
    enum sotto_status status = sotto_i_models_exists(source->allocator, folder, "vocabulary.json", &json);
    if (status != SOTTO_OK)
        return status;
    if (!json) {
        status = sotto_i_models_read_text(source->allocator, folder, "vocabulary.txt", MAX_VOCABULARY, &source->text,
                                          &source->text_size);
        return status == SOTTO_OK ? split_lines(source, folder) : status;
    }
    json_t * root;
    status = sotto_i_json_load(source->allocator, folder, "vocabulary.json", SOTTO_E_MODEL_VOCAB, &root);
    if (status == SOTTO_OK)
        status = take_strings(source, folder, root);
    json_decref(root);
    return status;
}

/* ---- config.json ---- */

/* The languages follow from the number of tokens; a list that says otherwise is a fault. */
static enum sotto_status check_languages(const struct json_config * config) {
    struct whisper_list list = { 0 };
    enum sotto_status status = sotto_i_json_tokens(config, "lang_ids", &list);
    sotto_mfree(config->source->allocator, list.ids, list.n, sizeof(*list.ids));
    return status;
}

enum sotto_status sotto_i_ct2_config(struct whisper_source * source, const char * folder) {
    json_t * root;
    enum sotto_status status = sotto_i_json_load(source->allocator, folder, "config.json", SOTTO_E_MODEL_CONFIG, &root);
    const struct json_config config = { source, folder, "config.json", root };
    if (status == SOTTO_OK)
        status = sotto_i_json_config(&config);
    if (status == SOTTO_OK)
        status = sotto_i_json_heads(&config, "alignment_heads", &source->alignment_heads);
    if (status == SOTTO_OK)
        status = sotto_i_json_tokens(&config, "suppress_ids", &source->suppress);
    if (status == SOTTO_OK)
        status = sotto_i_json_tokens(&config, "suppress_ids_begin", &source->suppress_begin);
    if (status == SOTTO_OK)
        status = check_languages(&config);
    json_decref(root);
    return status;
}
