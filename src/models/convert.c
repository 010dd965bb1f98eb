/* SPDX-License-Identifier: MIT */
/* sotto_convert: which container is it, then reader and writer. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "models/models_impl.h"

struct sotto_convert_params sotto_convert_default_params(void) {
    struct sotto_convert_params params = { .size = sizeof(params), .type = SOTTO_TYPE_F16 };
    return params;
}

static enum sotto_status take_params(struct sotto_convert_params * out, const struct sotto_convert_params * in) {
    *out = sotto_convert_default_params();
    if (in == NULL)
        return SOTTO_OK;
    if (in->size < sizeof(*in))
        return sotto_fail(SOTTO_E_PARAM, "sotto_convert: params->size is %lu, expected %zu", (unsigned long)in->size,
                          sizeof(*in));
    *out = *in;
    if (out->type != SOTTO_TYPE_F16 && out->type != SOTTO_TYPE_F32)
        return sotto_fail(SOTTO_E_PARAM, "sotto_convert: type %s; give f16 or f32", sotto_type_name(out->type));
    return SOTTO_OK;
}

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

static enum sotto_status check_form(const struct sotto_allocator * allocator, const char * in) {
    struct stat st;
    if (stat(in, &st) != 0)
        return sotto_fail(SOTTO_E_IO, "sotto_convert: %s: %s", in, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return check_folder(allocator, in);
    return sotto_fail(SOTTO_E_MODEL_FORMAT, "sotto_convert: %s is a file; give the folder of a CTranslate2 model", in);
}

static enum sotto_status convert_ct2(const char * in, const char * out, const struct sotto_convert_params * params) {
    struct ct2_model model;
    struct whisper_source source = { .allocator = params->allocator };
    enum sotto_status status = sotto_i_ct2_open(&model, params->allocator, in);
    if (status == SOTTO_OK)
        status = sotto_i_ct2_describe(&model, &source);
    if (status == SOTTO_OK)
        status = sotto_i_ct2_vocabulary(&source, in);
    if (status == SOTTO_OK)
        status = sotto_i_ct2_config(&source, in);
    if (status == SOTTO_OK)
        status = sotto_i_whisper_write(&source, out, params);
    sotto_i_whisper_source_free(&source);
    sotto_i_ct2_close(&model);
    return status;
}

enum sotto_status sotto_convert(const char * in, const char * out, const struct sotto_convert_params * given) {
    if (in == NULL || out == NULL)
        return sotto_fail(SOTTO_E_NULLARG, "sotto_convert: %s is NULL", in == NULL ? "in" : "out");
    struct sotto_convert_params params;
    enum sotto_status status = take_params(&params, given);
    if (status != SOTTO_OK)
        return status;
    if (params.allocator == NULL)
        params.allocator = sotto_default_allocator();
    status = check_form(params.allocator, in);
    return status == SOTTO_OK ? convert_ct2(in, out, &params) : status;
}
