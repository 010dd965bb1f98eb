/* SPDX-License-Identifier: MIT */
/* A Whisper model as whisper.cpp's .bin, so that its programs run the same weights. The form is laid out in from_bin.c.
 * The convolutions' biases are written as [d, 1]. */
#include <string.h>

#include "models/models_impl.h"
#include "sotto/file.h"
#include "sotto/quant.h"

#define MAGIC         0x67676d6c
#define N_BINS        201
#define QUANT_VERSION 2

struct writer {
    struct whisper_source * source;
    const struct sotto_convert_params * params;
    struct sotto_file * out;
    uint64_t done, total; /* bytes of tensors */
    enum sotto_status status;
};

static void put(struct writer * w, const void * data, size_t n) {
    if (w->status == SOTTO_OK)
        w->status = sotto_file_write(w->out, data, n);
}

static void put_i32(struct writer * w, int64_t value) {
    const uint32_t x = (uint32_t)value;
    put(w, (const uint8_t[]){ (uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24) }, 4);
}

static void put_header(struct writer * w) {
    const struct whisper_sizes * s = &w->source->sizes;
    int ftype = sotto_i_whisper_ftype(w->source);
    if (sotto_is_quantized(sotto_ftype_to_sotto_type(ftype)))
        ftype += 1000 * QUANT_VERSION;
    const int64_t fields[] = { MAGIC,       s->n_vocab, s->audio_ctx,  s->width,       s->audio_heads, s->audio_layers,
                               s->text_ctx, s->width,   s->text_heads, s->text_layers, s->n_mels,      ftype };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        put_i32(w, fields[i]);
}

static void put_filters(struct writer * w) {
    size_t n = (size_t)w->source->sizes.n_mels * N_BINS;
    float * filters = sotto_malloc(w->source->allocator, n, sizeof(*filters));
    if (filters == NULL) {
        w->status = SOTTO_E_MEMORY;
        return;
    }
    w->status = sotto_mel_filters((int)w->source->sizes.n_mels, filters);
    put_i32(w, w->source->sizes.n_mels);
    put_i32(w, N_BINS);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &filters[i], sizeof(bits));
        put_i32(w, bits);
    }
    sotto_mfree(w->source->allocator, filters, n, sizeof(*filters));
}

/* Specials are left out: readers name them by number. */
static void put_vocabulary(struct writer * w) {
    int32_t n = whisper_eot(&w->source->sizes);
    put_i32(w, n);
    for (int32_t id = 0; id < n && w->status == SOTTO_OK; id++) {
        uint8_t bytes[2 * WHISPER_MAX_TOKEN];
        const char * spelling = w->source->tokens[id];
        int64_t len = strlen(spelling) <= sizeof(bytes) ? sotto_i_alphabet_decode(spelling, bytes) : -1;
        if (len < 0 || len > WHISPER_MAX_TOKEN) {
            w->status = sotto_fail(SOTTO_E_MODEL_VOCAB,
                                   "sotto_convert: token %ld, '%s', is too long or no text in the byte alphabet",
                                   (long)id, sotto_i_models_show(spelling, strlen(spelling)).text);
            return;
        }
        put_i32(w, len);
        put(w, bytes, (size_t)len);
    }
}

static void put_record(struct writer * w, const struct whisper_tensor * t) {
    struct whisper_name name = sotto_i_whisper_name(t, WHISPER_BIN);
    bool column = t->rank == 1 && strncmp(name.text, "encoder.conv", 12) == 0;
    put_i32(w, t->rank + column);
    put_i32(w, (int64_t)strlen(name.text));
    put_i32(w, t->stored);
    if (column)
        put_i32(w, 1);
    for (int i = t->rank; i > 0; i--)
        put_i32(w, t->shape[i - 1]);
    put(w, name.text, strlen(name.text));
}

static void put_tensor(struct writer * w, const struct whisper_tensor * t, uint8_t * piece) {
    put_record(w, t);
    for (uint64_t first = 0, all = sotto_i_whisper_items(t); first < all && w->status == SOTTO_OK;) {
        size_t n = all - first < sotto_i_whisper_piece(t) ? (size_t)(all - first) : sotto_i_whisper_piece(t);
        size_t bytes = (size_t)whisper_bytes(t->stored, n);
        w->status = sotto_i_whisper_values(w->source, t, first, n, piece);
        put(w, piece, bytes);
        first += n;
        w->done += bytes;
        if (w->status == SOTTO_OK)
            w->status = sotto_i_convert_report(w->params, w->done, w->total);
    }
}

static void put_tensors(struct writer * w) {
    size_t size = 0;
    for (size_t i = 0; i < w->source->n_tensors; i++) {
        const struct whisper_tensor * t = &w->source->tensors[i];
        size_t bytes = (size_t)whisper_bytes(t->stored, sotto_i_whisper_piece(t));
        size = bytes > size ? bytes : size;
        w->total += whisper_bytes(t->stored, sotto_i_whisper_items(t));
    }
    uint8_t * piece = sotto_malloc(w->source->allocator, size, 1);
    if (piece == NULL)
        w->status = SOTTO_E_MEMORY;
    for (size_t i = 0; i < w->source->n_tensors && w->status == SOTTO_OK; i++)
        put_tensor(w, &w->source->tensors[i], piece);
    sotto_mfree(w->source->allocator, piece, size, 1);
}

enum sotto_status sotto_i_to_bin(struct whisper_source * source, const char * out,
                                 const struct sotto_convert_params * params) {
    struct writer w = { .source = source, .params = params };
    const struct sotto_file_params file = { .size = sizeof(file), .allocator = source->allocator };
    w.status = sotto_file_create(out, &file, &w.out);
    if (w.status != SOTTO_OK)
        return w.status;
    put_header(&w);
    if (w.status == SOTTO_OK)
        put_filters(&w);
    if (w.status == SOTTO_OK)
        put_vocabulary(&w);
    if (w.status == SOTTO_OK)
        put_tensors(&w);
    return sotto_file_finish(w.out, w.status);
}
