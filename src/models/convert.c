/* SPDX-License-Identifier: MIT */
/* sotto_convert: a reader, the types of weights, a writer. */
#define _FILE_OFFSET_BITS 64
#include <string.h>
#include <sys/stat.h>

#include "models/models_impl.h"

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

static enum whisper_form form_of(const char * out) {
    size_t n = strlen(out);
    if (n >= 1 && out[n - 1] == '/')
        return WHISPER_HF;
    return n >= 4 && strcmp(out + n - 4, ".bin") == 0 ? WHISPER_BIN : WHISPER_GGUF;
}

static enum sotto_status write_model(struct whisper_source * source, const char * out,
                                     const struct sotto_convert_params * params) {
    enum whisper_form form = form_of(out);
    source->params = params;
    enum sotto_status status = sotto_i_choose_types(source, params, form);
    if (status == SOTTO_OK)
        status = sotto_i_models_workers_new(source, params->n_threads);
    if (status != SOTTO_OK)
        return status;
    switch (form) {
    case WHISPER_BIN: return sotto_i_to_bin(source, out, params);
    case WHISPER_HF: return sotto_i_to_hf(source, out, params);
    default: return sotto_i_to_gguf(source, out, params);
    }
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
    whisper_reader reader;
    status = sotto_i_recognise(params.allocator, in, &reader);
    if (status != SOTTO_OK)
        return status;
    struct whisper_source source = { .allocator = params.allocator };
    status = reader(&source, in);
    if (status == SOTTO_OK)
        status = write_model(&source, out, &params);
    sotto_i_whisper_source_free(&source);
    return status;
}
