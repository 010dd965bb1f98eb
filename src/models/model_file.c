/* SPDX-License-Identifier: MIT */
/* Looking into model files. GGUF is described by its own infos; the others by what their reader found, which is every
 * tensor of the file, but CTranslate2's variables, several tensors of which are one, and scales and switches among them. */
#include <string.h>

#include "models/models_impl.h"
#include "sotto/model_file.h"

struct sotto_model_file {
    const struct sotto_allocator * allocator;
    whisper_reader reader; /* NULL while nothing is open */
    struct sotto_gguf_context * gguf;
    struct whisper_source source;
    struct listed {
        struct sotto_file_tensor shown;
        struct whisper_name name; /* what shown.name points to, unless the container keeps it */
        size_t at;                /* index in the container */
    } * tensors;
    size_t n, room;
};

/* ---- lists of tensors ---- */

static void finish_entry(struct listed * entry) {
    struct sotto_file_tensor * t = &entry->shown;
    t->size = sizeof(*t);
    t->n_elements = 1;
    for (int i = 0; i < t->rank; i++)
        t->n_elements *= (uint64_t)t->shape[i];
    t->n_bytes = whisper_bytes(t->type, t->n_elements);
}

static enum sotto_status make_room(struct sotto_model_file * file, size_t n) {
    file->room = n;
    file->tensors = sotto_calloc(file->allocator, n, sizeof(*file->tensors));
    return file->tensors != NULL || n == 0 ? SOTTO_OK : SOTTO_E_MEMORY;
}

static void list_info(struct sotto_model_file * file, int64_t id) {
    struct listed * entry = &file->tensors[file->n++];
    struct sotto_file_tensor * t = &entry->shown;
    const int64_t * ne = sotto_gguf_get_tensor_ne(file->gguf, id);
    entry->at = (size_t)id;
    t->name = sotto_gguf_get_tensor_name(file->gguf, id);
    t->type = sotto_gguf_get_tensor_type(file->gguf, id);
    t->rank = SOTTO_MAX_DIMS;
    while (t->rank > 1 && ne[t->rank - 1] == 1)
        t->rank--;
    for (int i = 0; i < t->rank; i++)
        t->shape[i] = ne[t->rank - 1 - i];
    t->offset = sotto_gguf_get_data_offset(file->gguf) + sotto_gguf_get_tensor_offset(file->gguf, id);
    finish_entry(entry);
}

static void list_variable(struct sotto_model_file * file, const struct ct2_model * model, size_t i) {
    static const enum sotto_type types[CT2_TYPE_COUNT] = {
        [CT2_F32] = SOTTO_TYPE_F32, [CT2_I8] = SOTTO_TYPE_I8,   [CT2_I16] = SOTTO_TYPE_I16,
        [CT2_I32] = SOTTO_TYPE_I32, [CT2_F16] = SOTTO_TYPE_F16, [CT2_BF16] = SOTTO_TYPE_BF16,
    };
    const struct ct2_variable * v = &model->variables[i];
    struct listed * entry = &file->tensors[file->n++];
    entry->at = i;
    entry->shown.name = v->name;
    entry->shown.type = types[v->type];
    entry->shown.rank = v->rank;
    for (int k = 0; k < v->rank; k++)
        entry->shown.shape[k] = (int64_t)v->dims[k];
    entry->shown.offset = v->at;
    finish_entry(entry);
}

static void list_tensor(struct sotto_model_file * file, size_t i) {
    const struct whisper_tensor * from = &file->source.tensors[i];
    if (!from->found)
        return;
    struct listed * entry = &file->tensors[file->n++];
    entry->at = i;
    entry->name = sotto_i_whisper_name(from, file->reader == sotto_i_from_bin ? WHISPER_BIN : WHISPER_HF);
    entry->shown.name = entry->name.text;
    entry->shown.type = from->source_type;
    entry->shown.rank = from->rank;
    memcpy(entry->shown.shape, from->shape, sizeof(from->shape));
    entry->shown.offset = from->at;
    finish_entry(entry);
}

static enum sotto_status list_all(struct sotto_model_file * file) {
    const struct ct2_model * model = file->source.self;
    size_t n = file->gguf != NULL                 ? (size_t)sotto_gguf_get_n_tensors(file->gguf)
               : file->reader == sotto_i_from_ct2 ? model->n_variables
                                                  : file->source.n_tensors;
    enum sotto_status status = make_room(file, n);
    for (size_t i = 0; i < n && status == SOTTO_OK; i++) {
        if (file->gguf != NULL)
            list_info(file, (int64_t)i);
        else if (file->reader == sotto_i_from_ct2)
            list_variable(file, model, i);
        else
            list_tensor(file, i);
    }
    return status;
}

/* ---- opening ---- */

static enum sotto_status open_gguf(struct sotto_model_file * file, const char * path) {
    struct sotto_gguf_open_params params = sotto_gguf_open_params_default();
    params.flags = SOTTO_GGUF_OPEN_TAIL_PAD | SOTTO_GGUF_OPEN_CHECK_EXTENT | SOTTO_GGUF_OPEN_SWAP;
    params.allocator = file->allocator;
    file->gguf = sotto_gguf_open(path, &params);
    return file->gguf != NULL ? SOTTO_OK : sotto_last_error();
}

static enum sotto_status open_any(struct sotto_model_file * file, const char * path) {
    enum sotto_status status = sotto_i_recognise(file->allocator, path, &file->reader);
    if (status != SOTTO_OK)
        return status;
    file->source.allocator = file->allocator;
    status = file->reader == sotto_i_from_gguf ? open_gguf(file, path) : file->reader(&file->source, path);
    return status == SOTTO_OK ? list_all(file) : status;
}

enum sotto_status sotto_model_file_open(const char * path, const struct sotto_allocator * allocator,
                                        struct sotto_model_file ** file) {
    if (path == NULL || file == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_model_file_open: %s is NULL", path == NULL ? "path" : "file");
    *file = NULL;
    struct sotto_model_file * f = sotto_calloc(allocator, 1, sizeof(*f));
    if (f == NULL)
        return SOTTO_E_MEMORY;
    f->allocator = allocator != NULL ? allocator : sotto_default_allocator();
    enum sotto_status status = open_any(f, path);
    if (status == SOTTO_OK)
        *file = f;
    else
        sotto_model_file_free(f);
    return status;
}

void sotto_model_file_free(struct sotto_model_file * file) {
    if (file == NULL)
        return;
    sotto_gguf_free(file->gguf);
    if (file->source.allocator != NULL)
        sotto_i_whisper_source_free(&file->source);
    sotto_mfree(file->allocator, file->tensors, file->room, sizeof(*file->tensors));
    sotto_mfree(file->allocator, file, 1, sizeof(*file));
}

/* ---- looking ---- */

const char * sotto_model_file_container(const struct sotto_model_file * file) {
    if (file == NULL)
        return NULL;
    return file->gguf != NULL                 ? "GGUF"
           : file->reader == sotto_i_from_bin ? ".bin"
           : file->reader == sotto_i_from_ct2 ? "CTranslate2"
                                              : "safetensors";
}

uint32_t sotto_model_file_version(const struct sotto_model_file * file) {
    if (file == NULL || (file->gguf == NULL && file->reader != sotto_i_from_ct2))
        return 0;
    return file->gguf != NULL ? sotto_gguf_get_version(file->gguf) : ((struct ct2_model *)file->source.self)->version;
}

const struct sotto_gguf_context * sotto_model_file_gguf(const struct sotto_model_file * file) {
    return file != NULL ? file->gguf : NULL;
}

const char * sotto_model_file_size(const struct sotto_model_file * file, size_t i, int64_t * value) {
    if (file == NULL || file->gguf != NULL)
        return NULL;
    const struct whisper_sizes * s = &file->source.sizes;
    const struct {
        const char * name;
        int64_t value;
    } rows[] = {
        { "vocab_size", s->n_vocab },
        { "mel_bands", s->n_mels },
        { "embedding_length", s->width },
        { "encoder.context_length", s->audio_ctx },
        { "encoder.block_count", s->audio_layers },
        { "encoder.attention.head_count", s->audio_heads },
        { "decoder.context_length", s->text_ctx },
        { "decoder.block_count", s->text_layers },
        { "decoder.attention.head_count", s->text_heads },
    };
    if (i >= sizeof(rows) / sizeof(rows[0]))
        return NULL;
    if (value != NULL)
        *value = rows[i].value;
    return rows[i].name;
}

size_t sotto_model_file_n_tensors(const struct sotto_model_file * file) { return file != NULL ? file->n : 0; }

const struct sotto_file_tensor * sotto_model_file_tensor(const struct sotto_model_file * file, size_t i) {
    return i < sotto_model_file_n_tensors(file) ? &file->tensors[i].shown : NULL;
}

/* ---- reading ---- */

static enum sotto_status read_listed(const struct sotto_model_file * file, const struct listed * entry, uint64_t offset,
                                     void * dst, size_t n) {
    const struct sotto_file_tensor * t = &entry->shown;
    if (file->gguf != NULL)
        return sotto_gguf_read_tensor(file->gguf, (int64_t)entry->at, dst, (size_t)offset, n);
    if (file->reader == sotto_i_from_ct2)
        return sotto_i_models_stream_read(&((struct ct2_model *)file->source.self)->stream, t->offset + offset, dst, n,
                                          t->name);
    uint64_t block = (uint64_t)sotto_blck_size(t->type), unit = sotto_type_size(t->type);
    return file->source.read(&file->source, &file->source.tensors[entry->at], offset / unit * block,
                             (size_t)(n / unit * block), dst);
}

enum sotto_status sotto_model_file_read(const struct sotto_model_file * file, size_t i, uint64_t offset, void * dst,
                                        size_t n) {
    if (file == NULL || (dst == NULL && n > 0))
        return sotto_fail(SOTTO_E_NULLARG, "sotto_model_file_read: %s is NULL", file == NULL ? "file" : "dst");
    const struct sotto_file_tensor * t = sotto_model_file_tensor(file, i);
    if (t == NULL)
        return sotto_fail(SOTTO_E_PARAM, "sotto_model_file_read: there is no tensor %zu, the file has %zu", i, file->n);
    if (offset > t->n_bytes || n > t->n_bytes - offset)
        return sotto_fail(SOTTO_E_BOUNDS, "sotto_model_file_read: %zu bytes at %llu do not lie in '%.64s' of %llu", n,
                          (unsigned long long)offset, t->name, (unsigned long long)t->n_bytes);
    size_t unit = sotto_type_size(t->type);
    if (offset % unit != 0 || n % unit != 0)
        return sotto_fail(SOTTO_E_PARAM, "sotto_model_file_read: %zu bytes at %llu are no whole blocks of %s", n,
                          (unsigned long long)offset, sotto_type_name(t->type));
    return n > 0 ? read_listed(file, &file->tensors[i], offset, dst, n) : SOTTO_OK;
}
