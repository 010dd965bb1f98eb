/* SPDX-License-Identifier: MIT */
/* sotto inspect: what was found, and the two ways to tell it. */
#ifndef SOTTO_CLI_INSPECT_H
#define SOTTO_CLI_INSPECT_H

#include "sotto/model_file.h"

#include "cli/cli.h"

/* What reading a tensor's values found. */
struct verified {
    bool bad;
    char hash[65];
};

struct inspection {
    const struct options * options;
    const char * path;
    uint64_t size; /* of the file, 0 if it is a folder */
    struct sotto_model_file * file;
    struct verified * verified; /* of each tensor; NULL if they were not read */
    size_t n_tensors, n_bad;
    struct {
        uint64_t n, elements, bytes;
    } types[SOTTO_TYPE_COUNT], all;
};

void inspect_text(const struct inspection * found, FILE * to);
void inspect_json(const struct inspection * found, FILE * to);

/* ---- values of GGUF's pairs (inspect_value.c) ---- */

enum { SHOWN_ELEMENTS = 8, SHOWN_BYTES = 256 }; /* of an array, of a string */

/* A single value as JSON; of an array element i. NaN and infinities are null. */
void put_gguf_value(const struct sotto_gguf_context * gguf, int64_t id, size_t i, FILE * to);
bool is_gguf_array(const struct sotto_gguf_context * gguf, int64_t id);

#endif
