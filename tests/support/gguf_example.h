/* SPDX-License-Identifier: MIT */
/* For tests of GGUF: the example file of the specification, as bytes and as made through the API; files and bytes. */
#ifndef SOTTO_TESTS_GGUF_EXAMPLE_H
#define SOTTO_TESTS_GGUF_EXAMPLE_H

#include <stdint.h>

#include "sotto/gguf.h"

#define GGUF_EXAMPLE_SIZE 448
#define GGUF_EXAMPLE_HASH "7e451fb289589849b7b1caacce7f2e8194844374f9b08563dfda5b0a4de48561"

/* The example built with setters; data of `w` and `q` is static. The caller frees it. */
struct sotto_gguf_context * gguf_example(void);

/* The same without checking what the setters say, with memory from `allocator`: NULL if a setter failed. */
struct sotto_gguf_context * gguf_example_from(const struct sotto_allocator * allocator);

/* What a context writes, in malloc'd memory; fails the test if it cannot be written. */
uint8_t * gguf_written(const struct sotto_gguf_context * ctx, size_t * size);

/* A path in the folder of temporary files, different for each name and process; static memory, a few live at once. */
const char * temp_path(const char * name);
void write_bytes(const char * path, const void * bytes, size_t size);
uint8_t * read_bytes(const char * path, size_t * size); /* malloc'd; NULL if there is no such file */

#endif
