/* SPDX-License-Identifier: MIT */
/* For tests: the same bytes opened in every way there is, with what came of it. */
#ifndef SOTTO_TESTS_GGUF_WAYS_H
#define SOTTO_TESTS_GGUF_WAYS_H

#include "sotto/gguf.h"

struct bytes {
    uint8_t * data; /* malloc'd */
    size_t size;
};

void bytes_set_size(struct bytes * b, size_t size);
struct bytes bytes_from_hex(const char * hex);
/* A read callback; user_data is a struct bytes. */
size_t bytes_deliver(void * user_data, void * output, uint64_t offset, size_t len);

/* The example of the specification. */
struct bytes gguf_example_bytes(void);

enum gguf_way {
    GGUF_BUFFER,
    GGUF_PATH,
    GGUF_MAPPED,
    GGUF_INIT, /* sotto_gguf_init_from_file */
    GGUF_STREAM,
    GGUF_CALLBACK_1, /* bytes a call */
    GGUF_CALLBACK_3,
    GGUF_CALLBACK_4096,
    GGUF_N_WAYS
};

struct gguf_outcome {
    bool accepted;
    enum sotto_status status;
    uint64_t pos;    /* of the fault */
    uint64_t digest; /* of all that was read, 0 if refused */
};

/* Open and close again. Nothing may stay, neither memory nor descriptors, and little may have been held: sixteen times
 * the bytes of the file and 64 KiB. Ways that take no flags ignore them. */
struct gguf_outcome gguf_try_open(enum gguf_way way, struct bytes * b, bool data, uint32_t flags);

/* All ways lead to the same outcome: the expected status and place, and the same content. */
void gguf_same_everywhere(struct bytes * b, bool data, struct gguf_outcome expected);

#endif
