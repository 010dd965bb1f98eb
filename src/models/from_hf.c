/* SPDX-License-Identifier: MIT */
/* A Hugging Face folder as a source: weights in model.safetensors, or in the files that model.safetensors.index.json names;
 * or a safetensors file of any name with its config.json beside it.
 *
 *   { "metadata": { .. }, "weight_map": { "model.encoder.conv1.weight": "model-00001-of-00002.safetensors", .. } } */
#include <stdio.h>
#include <string.h>

#include "models/hf_impl.h"
#include "models/safetensors.h"

#define MAX_FILES  1024
#define FILE_SHIFT 48 /* a tensor's `at`: number of its file, place in it */
#define INDEX      "model.safetensors.index.json"

struct hf_model {
    const struct sotto_allocator * allocator;
    char * folder;
    size_t folder_size;
    struct safetensors * files;
    size_t n_files, cap_files;
};

/* ---- files ---- */

static enum sotto_status open_file(struct hf_model * m, const char * name) {
    void * array = m->files;
    enum sotto_status status = sotto_i_models_grow(m->allocator, &array, m->n_files, &m->cap_files, sizeof(*m->files));
    if (status != SOTTO_OK)
        return status;
    m->files = array;
    return sotto_i_safetensors_open(&m->files[m->n_files++], m->allocator, m->folder, name);
}

static enum sotto_status bad_index(const struct hf_model * m, const char * what, const char * text) {
    return sotto_fail(SOTTO_E_MODEL_CONFIG, "sotto_convert: %s/" INDEX ": %s: '%s'", m->folder, what,
                      sotto_i_models_show(text, strlen(text)).text);
}

/* Files of the folder itself, nothing else. */
static bool is_plain_name(const char * name) {
    return name[0] != 0 && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 256;
}

/* The opened file of that name, NULL if it is not open. The stream's path is "<folder>/<name>". */
static struct safetensors * opened(const struct hf_model * m, const char * name) {
    for (size_t i = 0; i < m->n_files; i++) {
        if (strcmp(m->files[i].stream.path + strlen(m->folder) + 1, name) == 0)
            return &m->files[i];
    }
    return NULL;
}

static enum sotto_status open_entry(struct hf_model * m, const char * tensor, const json_t * value) {
    const char * name = json_string_value(value);
    if (name == NULL || strlen(name) != json_string_length(value) || !is_plain_name(name))
        return bad_index(m, "no name of a file for", tensor);
    if (opened(m, name) == NULL && m->n_files == MAX_FILES)
        return bad_index(m, "more than 1024 files, the last of them", name);
    enum sotto_status status = opened(m, name) == NULL ? open_file(m, name) : SOTTO_OK;
    if (status == SOTTO_OK && sotto_i_safetensors_find(opened(m, name), tensor) == NULL)
        status = sotto_fail(SOTTO_E_MODEL_TENSOR_MISSING, "sotto_convert: %s has no '%s', which " INDEX " promises",
                            opened(m, name)->stream.path, sotto_i_models_show(tensor, strlen(tensor)).text);
    return status;
}

static enum sotto_status open_indexed(struct hf_model * m) {
    json_t * root;
    enum sotto_status status = sotto_i_json_load(m->allocator, m->folder, INDEX, SOTTO_E_MODEL_CONFIG, &root);
    json_t * map = json_object_get(root, "weight_map");
    if (status == SOTTO_OK && !json_is_object(map))
        status = bad_index(m, "there is no object", "weight_map");
    for (void * at = json_object_iter(map); at != NULL && status == SOTTO_OK; at = json_object_iter_next(map, at))
        status = open_entry(m, json_object_iter_key(at), json_object_iter_value(at));
    json_decref(root);
    return status;
}

static enum sotto_status open_folder(struct hf_model * m) {
    bool whole;
    enum sotto_status status = sotto_i_models_exists(m->allocator, m->folder, "model.safetensors", &whole);
    if (status != SOTTO_OK)
        return status;
    return whole ? open_file(m, "model.safetensors") : open_indexed(m);
}

/* ---- tensors ---- */

/* Models without the head that makes text have no "model." before their names. */
static struct whisper_tensor * find(const struct whisper_source * source, const char * name) {
    char full[160];
    if (strncmp(name, "model.", 6) == 0)
        return sotto_i_whisper_find(source, WHISPER_HF, name);
    snprintf(full, sizeof(full), "model.%.140s", name);
    return sotto_i_whisper_find(source, WHISPER_HF, full);
}

static bool fits(const struct safetensor * found, const struct whisper_tensor * t) {
    bool same = found->rank == t->rank;
    for (int i = 0; i < found->rank && same; i++)
        same = found->dims[i] == (uint64_t)t->shape[i];
    return same;
}

static enum sotto_status bind(struct whisper_source * source, size_t file, const struct safetensor * found) {
    const struct hf_model * m = source->self;
    const char * path = m->files[file].stream.path;
    const char * name = sotto_i_safetensors_name(&m->files[file], found);
    struct models_shown shown = sotto_i_models_show(name, strlen(name));
    bool tied = strcmp(name, "proj_out.weight") == 0;
    struct whisper_tensor * t = find(source, tied ? "model.decoder.embed_tokens.weight" : name);
    if (t == NULL)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_UNKNOWN,
                          "sotto_convert: %s: '%s' at byte %llu does not belong to a Whisper model", path, shown.text,
                          (unsigned long long)found->begin);
    if (!fits(found, t))
        return sotto_i_whisper_bad_shape(source, shown.text, found->rank, found->dims, t, 1);
    if (tied)
        return SOTTO_OK;
    if (t->found)
        return sotto_fail(SOTTO_E_MODEL_TENSOR_DUPLICATE, "sotto_convert: %s: '%s' at byte %llu occurs twice", path,
                          shown.text, (unsigned long long)found->begin);
    if (found->end >> FILE_SHIFT != 0)
        return sotto_fail(SOTTO_E_LIMIT, "sotto_convert: %s is too large", path);
    t->source_type = found->type;
    t->kept = found->type;
    t->at = (uint64_t)file << FILE_SHIFT | found->begin;
    t->found = true;
    return SOTTO_OK;
}

static enum sotto_status bind_all(struct whisper_source * source) {
    const struct hf_model * m = source->self;
    enum sotto_status status = SOTTO_OK;
    for (size_t f = 0; f < m->n_files; f++) {
        for (size_t i = 0; i < m->files[f].n_tensors && status == SOTTO_OK; i++)
            status = bind(source, f, &m->files[f].tensors[i]);
    }
    return status == SOTTO_OK ? sotto_i_whisper_complete(source, WHISPER_HF) : status;
}

/* ---- the source ---- */

static enum sotto_status read_values(const struct whisper_source * source, const struct whisper_tensor * tensor,
                                     uint64_t first, size_t n, void * dst) {
    const struct hf_model * m = source->self;
    const struct safetensors * file = &m->files[tensor->at >> FILE_SHIFT];
    uint64_t at = tensor->at & (((uint64_t)1 << FILE_SHIFT) - 1);
    return sotto_i_models_stream_read(&file->stream, at + whisper_bytes(tensor->source_type, first), dst,
                                      (size_t)whisper_bytes(tensor->source_type, n),
                                      sotto_i_whisper_name(tensor, WHISPER_HF).text);
}

static void close_model(struct whisper_source * source) {
    struct hf_model * m = source->self;
    for (size_t i = 0; i < m->n_files; i++)
        sotto_i_safetensors_close(&m->files[i]);
    sotto_mfree(m->allocator, m->files, m->cap_files, sizeof(*m->files));
    sotto_mfree(m->allocator, m->folder, m->folder_size, 1);
    sotto_mfree(source->allocator, m, 1, sizeof(*m));
}

/* The rest, when the weights' files are open. */
static enum sotto_status describe(struct whisper_source * source) {
    const struct hf_model * m = source->self;
    enum sotto_status status = sotto_i_hf_sizes(source, m->folder);
    if (status == SOTTO_OK)
        status = sotto_i_whisper_layout(source);
    if (status == SOTTO_OK)
        status = bind_all(source);
    if (status == SOTTO_OK)
        status = sotto_i_hf_vocabulary(source, m->folder);
    return status == SOTTO_OK ? sotto_i_hf_settings(source, m->folder) : status;
}

/* The first n bytes of a path as the model's folder. */
static enum sotto_status start(struct whisper_source * source, const char * path, size_t n) {
    struct hf_model * m = sotto_calloc(source->allocator, 1, sizeof(*m));
    if (m == NULL)
        return SOTTO_E_MEMORY;
    m->allocator = source->allocator;
    source->path = path;
    source->self = m;
    source->read = read_values;
    source->close = close_model;
    m->folder_size = n + 1;
    m->folder = sotto_malloc(m->allocator, m->folder_size, 1);
    if (m->folder == NULL)
        return SOTTO_E_MEMORY;
    memcpy(m->folder, path, n);
    m->folder[n] = 0;
    return SOTTO_OK;
}

enum sotto_status sotto_i_from_hf(struct whisper_source * source, const char * path) {
    enum sotto_status status = start(source, path, strlen(path));
    if (status == SOTTO_OK)
        status = open_folder(source->self);
    return status == SOTTO_OK ? describe(source) : status;
}

enum sotto_status sotto_i_from_safetensors(struct whisper_source * source, const char * path) {
    const char * slash = strrchr(path, '/');
    enum sotto_status status = slash != NULL ? start(source, path, (size_t)(slash - path)) : start(source, ".", 1);
    source->path = path;
    if (status == SOTTO_OK)
        status = open_file(source->self, slash != NULL ? slash + 1 : path);
    return status == SOTTO_OK ? describe(source) : status;
}
