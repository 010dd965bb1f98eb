/* SPDX-License-Identifier: MIT */
/* The vocabulary of a Hugging Face folder.
 *
 *   tokenizer.json     { "model": { "type": "BPE", "vocab": { "!": 0, ... } }, "added_tokens": [ { "id": .., "content": .. } ] }
 *   vocab.json         { "!": 0, ... }, and added_tokens.json { "<|en|>": 50259, ... } if it is there
 *
 * Merges are not read: they follow from the vocabulary, and published lists of them have gaps. */
#include <string.h>

#include "models/hf_impl.h"

#define EMPTY_WORD 50256 /* of multilingual vocabularies */

struct vocab {
    struct whisper_source * source;
    const char * folder;
    const char * file;
    bool store;
    size_t total; /* bytes of all spellings, each with a 0 */
};

static enum sotto_status bad(const struct vocab * v, const char * what, int64_t id) {
    return sotto_fail(SOTTO_E_MODEL_VOCAB, "sotto_convert: %s/%s: %s (%lld)", v->folder, v->file, what, (long long)id);
}

/* One entry: its size is counted, or, once all are, its spelling is kept. */
static enum sotto_status take(struct vocab * v, const char * spelling, size_t len, const json_t * number) {
    int64_t id = json_is_integer(number) ? json_integer_value(number) : -1;
    if (id < 0 || id >= v->source->sizes.n_vocab)
        return bad(v, "an id is no number below that of tokens", id);
    if (strlen(spelling) != len || len > 2 * WHISPER_MAX_TOKEN)
        return bad(v, "a token is too long or holds a 0", id);
    const char ** token = &v->source->tokens[id];
    if (v->store && (*token)[0] != 0 && strcmp(*token, spelling) != 0)
        return bad(v, "an id stands for two tokens", id);
    if (v->store) {
        char * to = v->source->text + v->total;
        memcpy(to, spelling, len + 1);
        *token = to;
    }
    v->total += len + 1;
    return SOTTO_OK;
}

static enum sotto_status take_object(struct vocab * v, const json_t * object) {
    enum sotto_status status = SOTTO_OK;
    json_t * map = (json_t *)object; /* the iterators of jansson want it so */
    if (!json_is_object(object))
        return bad(v, "there is no object of tokens", 0);
    for (void * at = json_object_iter(map); at != NULL && status == SOTTO_OK; at = json_object_iter_next(map, at)) {
        const char * spelling = json_object_iter_key(at);
        status = take(v, spelling, strlen(spelling), json_object_iter_value(at));
    }
    return status;
}

static enum sotto_status take_added(struct vocab * v, const json_t * array) {
    enum sotto_status status = SOTTO_OK;
    if (array != NULL && !json_is_array(array))
        return bad(v, "added_tokens is no array", 0);
    for (size_t i = 0; i < json_array_size(array) && status == SOTTO_OK; i++) {
        const json_t * entry = json_array_get(array, i);
        const json_t * content = json_object_get(entry, "content");
        if (!json_is_string(content))
            return bad(v, "an added token has no content", (int64_t)i);
        status = take(v, json_string_value(content), json_string_length(content), json_object_get(entry, "id"));
    }
    return status;
}

/* Both forms: an object of tokens, then those that were added, as an array or an object. */
static enum sotto_status walk(struct vocab * v, const json_t * words, const json_t * added, bool store) {
    v->store = store;
    v->total = 0;
    enum sotto_status status = take_object(v, words);
    if (status != SOTTO_OK)
        return status;
    return json_is_object(added) ? take_object(v, added) : take_added(v, added);
}

static enum sotto_status check_words(const struct vocab * v) {
    int64_t n = whisper_eot(&v->source->sizes);
    for (int64_t id = 0; id < n; id++) {
        if (v->source->tokens[id][0] == 0 && id != EMPTY_WORD)
            return bad(v, "a token is missing", id);
    }
    return SOTTO_OK;
}

static enum sotto_status keep(struct vocab * v, const json_t * words, const json_t * added) {
    struct whisper_source * source = v->source;
    enum sotto_status status = walk(v, words, added, false);
    if (status != SOTTO_OK)
        return status;
    source->text_size = v->total + 1;
    source->text = sotto_malloc(source->allocator, source->text_size, 1);
    if (source->text == NULL)
        return SOTTO_E_MEMORY;
    status = walk(v, words, added, true);
    return status == SOTTO_OK ? check_words(v) : status;
}

static enum sotto_status from_tokenizer(struct vocab * v) {
    json_t * root;
    v->file = "tokenizer.json";
    enum sotto_status status = sotto_i_json_load(v->source->allocator, v->folder, v->file, SOTTO_E_MODEL_VOCAB, &root);
    const json_t * model = json_object_get(root, "model");
    const json_t * type = json_object_get(model, "type");
    if (status == SOTTO_OK && (!json_is_string(type) || strcmp(json_string_value(type), "BPE") != 0))
        status = bad(v, "model.type is not BPE", 0);
    if (status == SOTTO_OK)
        status = keep(v, json_object_get(model, "vocab"), json_object_get(root, "added_tokens"));
    json_decref(root);
    return status;
}

static enum sotto_status from_vocab(struct vocab * v) {
    const struct sotto_allocator * allocator = v->source->allocator;
    json_t * words;
    json_t * added = NULL;
    bool more = false;
    enum sotto_status status = sotto_i_models_exists(allocator, v->folder, "added_tokens.json", &more);
    v->file = "vocab.json";
    words = NULL;
    if (status == SOTTO_OK)
        status = sotto_i_json_load(allocator, v->folder, v->file, SOTTO_E_MODEL_VOCAB, &words);
    if (status == SOTTO_OK && more)
        status = sotto_i_json_load(allocator, v->folder, "added_tokens.json", SOTTO_E_MODEL_VOCAB, &added);
    if (status == SOTTO_OK)
        status = keep(v, words, added);
    json_decref(words);
    json_decref(added);
    return status;
}

enum sotto_status sotto_i_hf_vocabulary(struct whisper_source * source, const char * folder) {
    struct vocab v = { .source = source, .folder = folder };
    bool fast = false;
    enum sotto_status status = sotto_i_models_exists(source->allocator, folder, "tokenizer.json", &fast);
    if (status != SOTTO_OK)
        return status;
    return fast ? from_tokenizer(&v) : from_vocab(&v);
}
