/* SPDX-License-Identifier: MIT */
/* Reading JSON files, and the lists of ids that configurations of all forms hold. */
#include <string.h>

#include "models/models_json.h"

#define MAX_JSON ((size_t)16 << 20)

static enum sotto_status parse(const char * text, size_t n, const char * folder, const char * name,
                               enum sotto_status code, json_t ** root) {
    json_error_t error;
    *root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (*root != NULL)
        return SOTTO_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return sotto_fail(SOTTO_E_MEMORY, "sotto_convert: %s/%s: %zu bytes of JSON", folder, name, n);
    return sotto_fail(code, "sotto_convert: %s/%s is no JSON: line %d, byte %d: %s", folder, name, error.line,
                      error.position, sotto_i_models_show(error.text, strlen(error.text)).text);
}

enum sotto_status sotto_i_json_load(const struct sotto_allocator * allocator, const char * folder, const char * name,
                                    enum sotto_status code, json_t ** root) {
    char * text;
    size_t size;
    *root = NULL;
    enum sotto_status status = sotto_i_models_read_text(allocator, folder, name, MAX_JSON, &text, &size);
    if (status != SOTTO_OK)
        return status;
    status = parse(text, size - 1, folder, name, code, root);
    sotto_mfree(allocator, text, size, 1);
    return status;
}

/* ---- settings ---- */

enum sotto_status sotto_i_json_bad(const struct json_config * config, const char * key, const char * what) {
    return sotto_fail(SOTTO_E_MODEL_CONFIG, "sotto_convert: %s/%s: %s: %s", config->folder, config->name, key, what);
}

enum sotto_status sotto_i_json_config(const struct json_config * config) {
    return json_is_object(config->root) ? SOTTO_OK : sotto_i_json_bad(config, "the file", "no object");
}

const json_t * sotto_i_json_get(const struct json_config * config, const char * key) {
    const json_t * value = json_object_get(config->root, key);
    return json_is_null(value) ? NULL : value;
}

/* A list that is there: integers, each below `limit`. */
static enum sotto_status take_ints(const struct json_config * config, const char * key, const json_t * array,
                                   int64_t limit, int32_t * out) {
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t * item = json_array_get(array, i);
        if (!json_is_integer(item))
            return sotto_i_json_bad(config, key, "an entry is no integer");
        if (json_integer_value(item) < 0 || json_integer_value(item) >= limit)
            return sotto_i_json_bad(config, key, "an id is out of range");
        out[i] = (int32_t)json_integer_value(item);
    }
    return SOTTO_OK;
}

static enum sotto_status find_array(const struct json_config * config, const char * key, const json_t ** out) {
    *out = sotto_i_json_get(config, key);
    if (*out != NULL && !json_is_array(*out))
        return sotto_i_json_bad(config, key, "no array");
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

enum sotto_status sotto_i_json_tokens(const struct json_config * config, const char * key, struct whisper_list * list) {
    const json_t * array;
    enum sotto_status status = find_array(config, key, &array);
    if (status != SOTTO_OK || array == NULL)
        return status;
    status = new_list(config->source, list, json_array_size(array));
    if (status == SOTTO_OK)
        status = take_ints(config, key, array, config->source->sizes.n_vocab, list->ids);
    return status;
}

enum sotto_status sotto_i_json_heads(const struct json_config * config, const char * key, struct whisper_list * list) {
    const struct whisper_sizes * sizes = &config->source->sizes;
    const json_t * array;
    enum sotto_status status = find_array(config, key, &array);
    if (status != SOTTO_OK || array == NULL)
        return status;
    size_t n = json_array_size(array);
    if (n > (size_t)(sizes->text_layers * sizes->text_heads))
        return sotto_i_json_bad(config, key, "more heads than the model has");
    status = new_list(config->source, list, 2 * n);
    for (size_t i = 0; i < n && status == SOTTO_OK; i++) {
        const json_t * pair = json_array_get(array, i);
        int32_t * head = list->ids + 2 * i;
        if (!json_is_array(pair) || json_array_size(pair) != 2)
            return sotto_i_json_bad(config, key, "an entry is no pair of layer and head");
        status = take_ints(config, key, pair, WHISPER_MAX_VOCAB, head);
        if (status == SOTTO_OK && (head[0] >= sizes->text_layers || head[1] >= sizes->text_heads))
            status = sotto_i_json_bad(config, key, "a layer or head is out of range");
    }
    return status;
}
