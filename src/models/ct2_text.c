/* SPDX-License-Identifier: MIT */
/* The text beside model.bin: vocabulary.txt or vocabulary.json, and config.json. */
#include <string.h>

#include <jansson.h>

#include "models/models_impl.h"

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

static enum sotto_status load_json(const struct sotto_allocator * allocator, const char * folder, const char * name,
                                   enum sotto_status code, json_t ** root) {
    char * text;
    size_t size;
    enum sotto_status status = sotto_i_models_read_text(allocator, folder, name, &text, &size);
    if (status != SOTTO_OK)
        return status;
    json_error_t error;
    *root = json_loadb(text, size - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (*root == NULL && json_error_code(&error) == json_error_out_of_memory)
        status = sotto_fail(SOTTO_E_MEMORY, "sotto_convert: %s/%s: %zu bytes of JSON", folder, name, size);
    else if (*root == NULL)
        status = sotto_fail(code, "sotto_convert: %s/%s is no JSON: line %d: %s", folder, name, error.line,
                            sotto_i_models_show(error.text, strlen(error.text)).text);
    sotto_mfree(allocator, text, size, 1);
    return status;
}

enum sotto_status sotto_i_ct2_vocabulary(struct whisper_source * source, const char * folder) {
    bool json = false;
    enum sotto_status status = sotto_i_models_exists(source->allocator, folder, "vocabulary.json", &json);
    if (status != SOTTO_OK)
        return status;
    if (!json) {
        status =
            sotto_i_models_read_text(source->allocator, folder, "vocabulary.txt", &source->text, &source->text_size);
        return status == SOTTO_OK ? split_lines(source, folder) : status;
    }
    json_t * root = NULL;
    status = load_json(source->allocator, folder, "vocabulary.json", SOTTO_E_MODEL_VOCAB, &root);
    if (status == SOTTO_OK)
        status = take_strings(source, folder, root);
    json_decref(root);
    return status;
}

/* ---- config.json ---- */

static enum sotto_status bad_config(const char * folder, const char * key, const char * what) {
    return sotto_fail(SOTTO_E_MODEL_CONFIG, "sotto_convert: %s/config.json: %s: %s", folder, key, what);
}

/* A list that is there: n integers, each below `limit`. */
static enum sotto_status take_ints(const char * folder, const char * key, const json_t * array, int64_t limit,
                                   int32_t * out) {
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t * item = json_array_get(array, i);
        if (!json_is_integer(item))
            return bad_config(folder, key, "an entry is no integer");
        if (json_integer_value(item) < 0 || json_integer_value(item) >= limit)
            return bad_config(folder, key, "an id is out of range");
        out[i] = (int32_t)json_integer_value(item);
    }
    return SOTTO_OK;
}

/* The array of a key; *out is NULL if it is missing or null. */
static enum sotto_status find_array(const json_t * root, const char * folder, const char * key, const json_t ** out) {
    *out = json_object_get(root, key);
    if (json_is_null(*out))
        *out = NULL;
    if (*out != NULL && !json_is_array(*out))
        return bad_config(folder, key, "no array");
    return SOTTO_OK;
}

static enum sotto_status new_list(const struct whisper_source * source, struct whisper_list * list, size_t n) {
    list->given = true;
    list->n = n;
    if (n == 0)
        return SOTTO_OK;
    list->ids = sotto_calloc(source->allocator, n, sizeof(*list->ids));
    return list->ids != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
}

static enum sotto_status take_tokens(const struct whisper_source * source, const json_t * root, const char * folder,
                                     const char * key, struct whisper_list * list) {
    const json_t * array;
    enum sotto_status status = find_array(root, folder, key, &array);
    if (status != SOTTO_OK || array == NULL)
        return status;
    status = new_list(source, list, json_array_size(array));
    if (status == SOTTO_OK)
        status = take_ints(folder, key, array, source->sizes.n_vocab, list->ids);
    return status;
}

static enum sotto_status take_heads(const struct whisper_source * source, const json_t * root, const char * folder,
                                    struct whisper_list * list) {
    static const char key[] = "alignment_heads";
    const json_t * array;
    enum sotto_status status = find_array(root, folder, key, &array);
    if (status != SOTTO_OK || array == NULL)
        return status;
    size_t n = json_array_size(array);
    if (n > (size_t)(source->sizes.text_layers * source->sizes.text_heads))
        return bad_config(folder, key, "more heads than the model has");
    status = new_list(source, list, 2 * n);
    for (size_t i = 0; i < n && status == SOTTO_OK; i++) {
        const json_t * pair = json_array_get(array, i);
        int32_t * head = list->ids + 2 * i;
        if (!json_is_array(pair) || json_array_size(pair) != 2)
            return bad_config(folder, key, "an entry is no pair of layer and head");
        status = take_ints(folder, key, pair, WHISPER_MAX_VOCAB, head);
        if (status == SOTTO_OK && (head[0] >= source->sizes.text_layers || head[1] >= source->sizes.text_heads))
            status = bad_config(folder, key, "a layer or head is out of range");
    }
    return status;
}

/* The languages follow from the number of tokens; a list that says otherwise is a fault. */
static enum sotto_status check_languages(const struct whisper_source * source, const json_t * root,
                                         const char * folder) {
    struct whisper_list list = { 0 };
    enum sotto_status status = take_tokens(source, root, folder, "lang_ids", &list);
    sotto_mfree(source->allocator, list.ids, list.n, sizeof(*list.ids));
    return status;
}

enum sotto_status sotto_i_ct2_config(struct whisper_source * source, const char * folder) {
    json_t * root = NULL;
    enum sotto_status status = load_json(source->allocator, folder, "config.json", SOTTO_E_MODEL_CONFIG, &root);
    if (status == SOTTO_OK && !json_is_object(root))
        status = bad_config(folder, "the file", "no object");
    if (status == SOTTO_OK)
        status = take_heads(source, root, folder, &source->alignment_heads);
    if (status == SOTTO_OK)
        status = take_tokens(source, root, folder, "suppress_ids", &source->suppress);
    if (status == SOTTO_OK)
        status = take_tokens(source, root, folder, "suppress_ids_begin", &source->suppress_begin);
    if (status == SOTTO_OK)
        status = check_languages(source, root, folder);
    json_decref(root);
    return status;
}
