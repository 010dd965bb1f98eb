/* SPDX-License-Identifier: MIT */
/* A file that appears whole or not at all. */
#ifndef SOTTO_GGUF_FILE_H
#define SOTTO_GGUF_FILE_H

#include "sotto/gguf.h"

struct gguf_file {
    const struct sotto_allocator * allocator;
    struct sotto_gguf_write_params params;
    char * target; /* what `path` names, links followed */
    char * temp;   /* being written; equal to target if written directly */
    size_t target_size, temp_size;
    uint8_t * buffer;
    size_t fill;
    int fd;
};

/* Begin a temporary file beside the target, or open what cannot be replaced. */
enum sotto_status sotto_i_gguf_file_open(struct gguf_file * out, const struct sotto_allocator * allocator,
                                         const char * path, const struct sotto_gguf_write_params * params);
enum sotto_status sotto_i_gguf_file_put(struct gguf_file * out, const void * data, size_t n);
/* Close and rename, or, if `status` tells of a failure, remove. Returns the first failure. */
enum sotto_status sotto_i_gguf_file_finish(struct gguf_file * out, enum sotto_status status);

#endif
