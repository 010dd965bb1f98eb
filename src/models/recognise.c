/* SPDX-License-Identifier: MIT */
/* Which container is it? By content, never by name. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "models/models_impl.h"

/* ---- folders ---- */

/* Does the folder hold one of two files? */
static enum sotto_status has_either(const struct sotto_allocator * allocator, const char * in, const char * a,
                                    const char * b, bool * has) {
    enum sotto_status status = sotto_i_models_exists(allocator, in, a, has);
    return status == SOTTO_OK && !*has ? sotto_i_models_exists(allocator, in, b, has) : status;
}

static enum sotto_status unknown_folder(const struct sotto_allocator * allocator, const char * in, bool ct2,
                                        bool safetensors) {
    bool pickled;
    enum sotto_status status = has_either(allocator, in, "pytorch_model.bin", "pytorch_model.bin.index.json", &pickled);
    if (status != SOTTO_OK)
        return status;
    if (pickled)
        return sotto_fail(SOTTO_E_MODEL_PICKLE,
                          "sotto_convert: the weights of %s are pickled by PyTorch; use the safetensors form", in);
    return sotto_fail(SOTTO_E_MODEL_FORMAT,
                      "sotto_convert: %s is no folder of a model: CTranslate2's %s, Hugging Face's %s", in,
                      ct2 ? "has no vocabulary.txt or vocabulary.json" : "has no model.bin",
                      safetensors ? "has no config.json" : "has no model.safetensors");
}

/* CTranslate2: model.bin, or its parts, and a vocabulary. Hugging Face: config.json and safetensors. */
static enum sotto_status recognise_folder(const struct sotto_allocator * allocator, const char * in,
                                          whisper_reader * reader) {
    bool ct2, vocabulary, safetensors, config;
    enum sotto_status status = has_either(allocator, in, "model.bin", "model.bin.part1", &ct2);
    if (status == SOTTO_OK)
        status = has_either(allocator, in, "vocabulary.txt", "vocabulary.json", &vocabulary);
    if (status == SOTTO_OK)
        status = has_either(allocator, in, "model.safetensors", "model.safetensors.index.json", &safetensors);
    if (status == SOTTO_OK)
        status = sotto_i_models_exists(allocator, in, "config.json", &config);
    if (status != SOTTO_OK)
        return status;
    *reader = ct2 && vocabulary ? sotto_i_from_ct2 : safetensors && config ? sotto_i_from_hf : NULL;
    return *reader != NULL ? SOTTO_OK : unknown_folder(allocator, in, ct2, safetensors);
}

/* ---- files ---- */

static enum sotto_status read_head(const char * in, uint8_t head[9]) {
    FILE * file = fopen(in, "rb");
    if (file == NULL)
        return sotto_fail(SOTTO_E_IO, "sotto_convert: %s: %s", in, strerror(errno));
    memset(head, 0, 9);
    size_t n = fread(head, 1, 9, file);
    bool bad = n < 9 && ferror(file) != 0;
    fclose(file);
    return bad ? sotto_fail(SOTTO_E_IO, "sotto_convert: %s cannot be read", in) : SOTTO_OK;
}

/* The length of a header of JSON, and where it begins. */
static bool is_safetensors(const uint8_t head[9], uint64_t size) {
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | head[i];
    return head[8] == '{' && size > 8 && length <= size - 8;
}

/* Archives of torch.save, and what it wrote before it made them. */
static bool is_pickle(const uint8_t head[9]) {
    return memcmp(head, "PK\3\4", 4) == 0 || (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5);
}

/* Forms of other programs that .bin comes from, which were given up. */
static const char * old_form(const uint8_t head[9]) {
    static const char * const magics[][2] = { { "algg", "ggla" }, { "fmgg", "ggmf" }, { "tjgg", "ggjt" } };
    for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
        if (memcmp(head, magics[i][0], 4) == 0)
            return magics[i][1];
    }
    return NULL;
}

static enum sotto_status check_config(const struct sotto_allocator * allocator, const char * in) {
    const char * slash = strrchr(in, '/');
    size_t n = slash != NULL ? (size_t)(slash - in) : 1;
    char * folder = sotto_malloc(allocator, n + 1, 1);
    if (folder == NULL)
        return SOTTO_E_MEMORY;
    memcpy(folder, slash != NULL ? in : ".", n);
    folder[n] = 0;
    bool config = false;
    enum sotto_status status = sotto_i_models_exists(allocator, folder, "config.json", &config);
    sotto_mfree(allocator, folder, n + 1, 1);
    if (status == SOTTO_OK && !config)
        status = sotto_fail(SOTTO_E_MODEL_FORMAT,
                            "sotto_convert: %s has no config.json beside it to say what its weights are for", in);
    return status;
}

static enum sotto_status recognise_file(const struct sotto_allocator * allocator, const char * in, uint64_t size,
                                        whisper_reader * reader) {
    uint8_t head[9];
    enum sotto_status status = read_head(in, head);
    if (status != SOTTO_OK)
        return status;
    *reader = NULL;
    if (memcmp(head, "GGUF", 4) == 0)
        *reader = sotto_i_from_gguf;
    else if (memcmp(head, "lmgg", 4) == 0)
        *reader = sotto_i_from_bin;
    else if (is_safetensors(head, size))
        *reader = sotto_i_from_safetensors;
    if (*reader == sotto_i_from_safetensors)
        return check_config(allocator, in);
    if (*reader != NULL)
        return SOTTO_OK;
    if (is_pickle(head))
        return sotto_fail(SOTTO_E_MODEL_PICKLE, "sotto_convert: %s is pickled by PyTorch; use the safetensors form",
                          in);
    if (old_form(head) != NULL)
        return sotto_fail(SOTTO_E_MODEL_FORMAT,
                          "sotto_convert: %s has the form '%s', which no model of speech was ever in; convert it anew",
                          in, old_form(head));
    return sotto_fail(SOTTO_E_MODEL_FORMAT,
                      "sotto_convert: %s is neither GGUF, whisper.cpp's .bin nor safetensors, nor a folder of one", in);
}

enum sotto_status sotto_i_recognise(const struct sotto_allocator * allocator, const char * in,
                                    whisper_reader * reader) {
    struct stat st;
    if (stat(in, &st) != 0)
        return sotto_fail(SOTTO_E_IO, "sotto_convert: %s: %s", in, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return recognise_folder(allocator, in, reader);
    return recognise_file(allocator, in, (uint64_t)st.st_size, reader);
}
