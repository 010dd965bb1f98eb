/* SPDX-License-Identifier: MIT */
/* One safetensors file: names, types, shapes, and where the values are.
 *
 *   u64 L   length of the header, 100 MB at most
 *   L bytes JSON: { "name": { "dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12] }, ..., "__metadata__": { } }
 *   data    offsets count from here; the tensors fill it without gaps
 *
 * The header is read through a small window by a scanner (json_scan.c) that needs no memory but for what it is asked to
 * keep; so memory is bounded by a small multiple of the header, whatever it holds. */
#ifndef SOTTO_MODELS_SAFETENSORS_H
#define SOTTO_MODELS_SAFETENSORS_H

#include "models/models_impl.h"

#define SAFETENSORS_MAX_RANK   8
#define SAFETENSORS_MAX_HEADER ((uint64_t)100000000)

/* ---- JSON, from front to back ---- */

/* Bytes that grow. */
struct json_text {
    const struct sotto_allocator * allocator;
    char * bytes;
    size_t n, cap;
};

struct json_scan {
    struct models_cursor in;
    uint64_t end;      /* of the text in the stream */
    const char * what; /* "the header", for messages */
};

/* All fail with MODEL_CORRUPT and the place, or as reading does. White space before what they look for is skipped. */
/* The next byte, which stays; 0 at the end. */
enum sotto_status sotto_i_json_peek(struct json_scan * s, char * c);
/* This byte has to be next. */
enum sotto_status sotto_i_json_expect(struct json_scan * s, char c);
/* After an element of an array or object that ends with `close`: *more if a comma follows, else its end is passed. */
enum sotto_status sotto_i_json_more(struct json_scan * s, char close, bool * more);
/* A string; its bytes as UTF-8 and a 0 are added to `text`. None of them may be 0. MEMORY. */
enum sotto_status sotto_i_json_string(struct json_scan * s, struct json_text * text);
/* An integer in 0..2^63-1. */
enum sotto_status sotto_i_json_count(struct json_scan * s, uint64_t * value);
/* Any value; 64 levels at most. `scratch` is used and left as it was. */
enum sotto_status sotto_i_json_skip(struct json_scan * s, struct json_text * scratch);
enum sotto_status sotto_i_json_corrupt(const struct json_scan * s, const char * problem);

/* ---- the file ---- */

struct safetensor {
    size_t name; /* in `text` */
    enum sotto_type type;
    int rank;
    uint64_t dims[SAFETENSORS_MAX_RANK]; /* slowest first */
    uint64_t begin, end;                 /* in the file */
};

struct safetensors {
    const struct sotto_allocator * allocator;
    struct models_stream stream;
    struct json_text text; /* names, each with a 0 */
    struct safetensor * tensors;
    size_t n_tensors, cap_tensors;
    size_t * sorted; /* by name */
};

/* IO; MODEL_TRUNCATED, _CORRUPT, _TENSOR_TYPE, _SIZE, _DUPLICATE; MEMORY. Close it in any case. */
enum sotto_status sotto_i_safetensors_open(struct safetensors * file, const struct sotto_allocator * allocator,
                                           const char * folder, const char * name);
void sotto_i_safetensors_close(struct safetensors * file);
const char * sotto_i_safetensors_name(const struct safetensors * file, const struct safetensor * tensor);
/* NULL if there is none of that name. */
const struct safetensor * sotto_i_safetensors_find(const struct safetensors * file, const char * name);

#endif
