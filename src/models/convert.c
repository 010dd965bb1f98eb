/* SPDX-License-Identifier: MIT */
/* sotto_convert: which container is it, then a reader and a writer. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "models/models_impl.h"

typedef enum sotto_status (*reader_fn)(struct whisper_source * source, const char * path);

struct sotto_convert_params sotto_convert_default_params(void) {
    struct sotto_convert_params params = { .size = sizeof(params), .type = SOTTO_TYPE_COUNT };
    return params;
}

static enum sotto_status take_params(struct sotto_convert_params * out, const struct sotto_convert_params * in) {
    *out = sotto_convert_default_params();
    if (in != NULL) {
        if (in->size < sizeof(*in))
            return sotto_fail(SOTTO_E_PARAM, "sotto_convert: params->size is %lu, expected %zu",
                              (unsigned long)in->size, sizeof(*in));
        *out = *in;
    }
    if (out->allocator == NULL)
        out->allocator = sotto_default_allocator();
    return SOTTO_OK;
}

/* ---- which container ---- */

/* Does the folder hold one of two files? */
static enum sotto_status has_either(const struct sotto_allocator * allocator, const char * in, const char * a,
                                    const char * b, bool * has) {
    enum sotto_status status = sotto_i_models_exists(allocator, in, a, has);
    return status == SOTTO_OK && !*has ? sotto_i_models_exists(allocator, in, b, has) : status;
}

/* A folder is CTranslate2's if it holds model.bin, or its parts, and a vocabulary. */
static enum sotto_status check_folder(const struct sotto_allocator * allocator, const char * in) {
    bool weights = false;
    bool vocabulary = false;
    enum sotto_status status = has_either(allocator, in, "model.bin", "model.bin.part1", &weights);
    if (status == SOTTO_OK)
        status = has_either(allocator, in, "vocabulary.txt", "vocabulary.json", &vocabulary);
    if (status != SOTTO_OK || (weights && vocabulary))
        return status;
    return sotto_fail(SOTTO_E_MODEL_FORMAT, "sotto_convert: %s is no model folder of CTranslate2: it has no %s", in,
                      weights ? "vocabulary.txt or vocabulary.json" : "model.bin");
}

static enum sotto_status read_magic(const char * in, char magic[4]) {
    FILE * file = fopen(in, "rb");
    if (file == NULL)
        return sotto_fail(SOTTO_E_IO, "sotto_convert: %s: %s", in, strerror(errno));
    memset(magic, 0, 4);
    size_t n = fread(magic, 1, 4, file);
    bool bad = n < 4 && ferror(file) != 0;
    fclose(file);
    return bad ? sotto_fail(SOTTO_E_IO, "sotto_convert: %s cannot be read", in) : SOTTO_OK;
}

static enum sotto_status recognise_file(const char * in, reader_fn * reader) {
    char magic[4];
    enum sotto_status status = read_magic(in, magic);
    if (status != SOTTO_OK)
        return status;
    if (memcmp(magic, "GGUF", 4) == 0)
        *reader = sotto_i_from_gguf;
    else if (memcmp(magic, "lmgg", 4) == 0)
        *reader = sotto_i_from_bin;
    else if (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "\x80\2", 2) == 0)
        return sotto_fail(SOTTO_E_MODEL_PICKLE, "sotto_convert: %s is pickled by PyTorch; use the safetensors form",
                          in);
    else
        return sotto_fail(SOTTO_E_MODEL_FORMAT,
                          "sotto_convert: %s is neither GGUF nor whisper.cpp's .bin, nor a CTranslate2 folder", in);
    return SOTTO_OK;
}

static enum sotto_status recognise(const struct sotto_allocator * allocator, const char * in, reader_fn * reader) {
    struct stat st;
    if (stat(in, &st) != 0)
        return sotto_fail(SOTTO_E_IO, "sotto_convert: %s: %s", in, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return recognise_file(in, reader);
    *reader = sotto_i_from_ct2;
    return check_folder(allocator, in);
}

/* ---- conversion ---- */

static bool named_bin(const char * out) {
    size_t n = strlen(out);
    return n >= 4 && strcmp(out + n - 4, ".bin") == 0;
}

static enum sotto_status write_model(struct whisper_source * source, const char * out,
                                     const struct sotto_convert_params * params) {
    bool to_bin = named_bin(out);
    source->params = params;
    enum sotto_status status = sotto_i_choose_types(source, params, to_bin);
    if (status == SOTTO_OK)
        status = sotto_i_models_workers_new(source, params->n_threads);
    if (status != SOTTO_OK)
        return status;
    return to_bin ? sotto_i_to_bin(source, out, params) : sotto_i_to_gguf(source, out, params);
}

/* A model that is read while it is replaced would be gone if the new one is not what was wanted. */
static enum sotto_status check_apart(const char * in, const char * out) {
    struct stat from, to;
    if (stat(in, &from) != 0 || stat(out, &to) != 0 || from.st_dev != to.st_dev || from.st_ino != to.st_ino)
        return SOTTO_OK;
    return sotto_fail(SOTTO_E_PARAM, "sotto_convert: %s and %s are the same file; give another name for the output", in,
                      out);
}

enum sotto_status sotto_convert(const char * in, const char * out, const struct sotto_convert_params * given) {
    if (in == NULL || out == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_convert: %s is NULL", in == NULL ? "in" : "out");
    struct sotto_convert_params params;
    enum sotto_status status = take_params(&params, given);
    if (status != SOTTO_OK)
        return status;
    status = check_apart(in, out);
    if (status != SOTTO_OK)
        return status;
    reader_fn reader;
    status = recognise(params.allocator, in, &reader);
    if (status != SOTTO_OK)
        return status;
    struct whisper_source source = { .allocator = params.allocator };
    status = reader(&source, in);
    if (status == SOTTO_OK)
        status = write_model(&source, out, &params);
    sotto_i_whisper_source_free(&source);
    return status;
}
