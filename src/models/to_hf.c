/* SPDX-License-Identifier: MIT */
/* A Whisper model as a folder of Hugging Face's. The weights come last, whole, in model.safetensors, which is laid out in
 * safetensors.h: so a folder that was not finished is no model. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "models/models_impl.h"
#include "sotto/file.h"

#define MAX_ENTRY 256 /* of a tensor in the header */

struct writer {
    struct whisper_source * source;
    const struct sotto_convert_params * params;
    struct sotto_file * out;
    uint64_t done, total; /* bytes of tensors */
};

static const char * dtype_of(enum sotto_type type) {
    return type == SOTTO_TYPE_F32 ? "F32" : type == SOTTO_TYPE_F16 ? "F16" : "BF16";
}

/* "name":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]} */
static size_t print_entry(const struct whisper_tensor * t, uint64_t at, char * out) {
    struct whisper_name name = sotto_i_whisper_name(t, WHISPER_HF);
    unsigned long long end = (unsigned long long)(at + whisper_bytes(t->stored, sotto_i_whisper_items(t)));
    int n = snprintf(out, MAX_ENTRY, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", name.text, dtype_of(t->stored));
    for (int i = 0; i < t->rank; i++)
        n += snprintf(out + n, MAX_ENTRY - (size_t)n, "%s%lld", i > 0 ? "," : "", (long long)t->shape[i]);
    n += snprintf(out + n, MAX_ENTRY - (size_t)n, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, end);
    return (size_t)n;
}

/* The header with its length before it, padded with spaces to a multiple of 8. */
static size_t print_header(struct writer * w, char * text) {
    size_t n = 8 + (size_t)sprintf(text + 8, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < w->source->n_tensors; i++) {
        const struct whisper_tensor * t = &w->source->tensors[i];
        text[n++] = ',';
        n += print_entry(t, w->total, text + n);
        w->total += whisper_bytes(t->stored, sotto_i_whisper_items(t));
    }
    text[n++] = '}';
    while (n % 8 != 0)
        text[n++] = ' ';
    for (int i = 0; i < 8; i++)
        text[i] = (char)((uint64_t)(n - 8) >> (8 * i));
    return n;
}

static enum sotto_status put_header(struct writer * w) {
    size_t size = (w->source->n_tensors + 1) * MAX_ENTRY;
    char * text = sotto_malloc(w->source->allocator, size, 1);
    if (text == NULL)
        return SOTTO_E_MEMORY;
    size_t n = print_header(w, text);
    enum sotto_status status = sotto_file_write(w->out, text, n);
    sotto_mfree(w->source->allocator, text, size, 1);
    return status;
}

static enum sotto_status put_tensor(struct writer * w, const struct whisper_tensor * t) {
    size_t most = sotto_i_whisper_piece(t);
    size_t size = (size_t)whisper_bytes(t->stored, most);
    uint8_t * piece = sotto_malloc(w->source->allocator, size, 1);
    enum sotto_status status = piece != NULL ? SOTTO_OK : SOTTO_E_MEMORY;
    uint64_t all = sotto_i_whisper_items(t);
    for (uint64_t first = 0; first < all && status == SOTTO_OK; first += most) {
        size_t n = all - first < most ? (size_t)(all - first) : most;
        size_t bytes = (size_t)whisper_bytes(t->stored, n);
        status = sotto_i_whisper_values(w->source, t, first, n, piece);
        if (status == SOTTO_OK)
            status = sotto_file_write(w->out, piece, bytes);
        w->done += bytes;
        if (status == SOTTO_OK)
            status = sotto_i_convert_report(w->params, w->done, w->total);
    }
    sotto_mfree(w->source->allocator, piece, size, 1);
    return status;
}

static enum sotto_status put_weights(struct writer * w, const char * path) {
    const struct sotto_file_params file = { .size = sizeof(file), .allocator = w->source->allocator };
    enum sotto_status status = sotto_file_create(path, &file, &w->out);
    if (status != SOTTO_OK)
        return status;
    status = put_header(w);
    for (size_t i = 0; i < w->source->n_tensors && status == SOTTO_OK; i++)
        status = put_tensor(w, &w->source->tensors[i]);
    return sotto_file_finish(w->out, status);
}

enum sotto_status sotto_i_to_hf(struct whisper_source * source, const char * out,
                                const struct sotto_convert_params * params) {
    struct writer w = { .source = source, .params = params };
    if (mkdir(out, 0777) != 0 && errno != EEXIST)
        return sotto_fail(SOTTO_E_GGUF_IO_OPEN, "sotto_convert: %s: %s", out, strerror(errno));
    enum sotto_status status = sotto_i_to_hf_texts(source, out);
    if (status != SOTTO_OK)
        return status;
    size_t size = strlen(out) + sizeof("/model.safetensors");
    char * path = sotto_malloc(source->allocator, size, 1);
    if (path == NULL)
        return SOTTO_E_MEMORY;
    snprintf(path, size, "%smodel.safetensors", out);
    status = put_weights(&w, path);
    sotto_mfree(source->allocator, path, size, 1);
    return status;
}
