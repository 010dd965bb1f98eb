/* SPDX-License-Identifier: MIT */
/* Small JSON files beside a model's weights: its configuration and vocabulary. Parsed by jansson, which bounds their
 * depth; what they hold is checked here. */
#ifndef SOTTO_MODELS_JSON_H
#define SOTTO_MODELS_JSON_H

#include <jansson.h>

#include "models/models_impl.h"

/* The whole of "<folder>/<name>", 16 MiB at most, in jansson's memory. `code` if it is no JSON; IO, LIMIT, MEMORY. */
enum sotto_status sotto_i_json_load(const struct sotto_allocator * allocator, const char * folder, const char * name,
                                    enum sotto_status code, json_t ** root);

/* An object of settings and where it stands, for messages. root NULL: an empty one. */
struct json_config {
    const struct whisper_source * source;
    const char * folder;
    const char * name;
    const json_t * root;
};
/* MODEL_CONFIG if it is no object. */
enum sotto_status sotto_i_json_config(const struct json_config * config);
enum sotto_status sotto_i_json_bad(const struct json_config * config, const char * key, const char * what);
/* A key that is there and not null. */
const json_t * sotto_i_json_get(const struct json_config * config, const char * key);

/* Lists; nothing happens if the key is missing or null. MODEL_CONFIG, MEMORY. */
enum sotto_status sotto_i_json_tokens(const struct json_config * config, const char * key, struct whisper_list * list);
enum sotto_status sotto_i_json_heads(const struct json_config * config, const char * key, struct whisper_list * list);

#endif
