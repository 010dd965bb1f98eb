/* SPDX-License-Identifier: MIT */
/* What all fuzz targets share. Each is a file fuzz_<subject>.c with its property on top; its seeds lie in
 * fuzz/corpus/<subject>. With clang and -DSOTTO_FUZZ=ON it becomes a libFuzzer program (tools/fuzz builds and runs
 * them), always a test that replays the seeds, each as it is, cut off, and with single bytes changed. */
#ifndef SOTTO_FUZZ_H
#define SOTTO_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/counting_allocator.h"

#define fuzz_holds(condition) fuzz_check(condition, #condition, __FILE__, __LINE__)

static inline void fuzz_check(int holds, const char * text, const char * file, int line) {
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n);

/* How many inputs the replay makes out of one seed, besides the seed itself: each target says what its time allows. */
extern const size_t fuzz_replays;

/* ---- memory: no input may make the library hold more than this at once, and nothing may stay ---- */

#define FUZZ_MOST_MEMORY ((long long)64 << 20)

static inline void fuzz_memory_done(struct counting_allocator * memory) {
    fuzz_holds(atomic_load(&memory->held) == 0);
    fuzz_holds(atomic_load(&memory->peak) <= FUZZ_MOST_MEMORY);
}

/* ---- an input as a row of numbers; after its end they are 0 ---- */

struct fuzz_input {
    const uint8_t * at;
    size_t left;
};

static inline uint64_t fuzz_take(struct fuzz_input * in, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width && in->left > 0; i++, in->left--)
        value |= (uint64_t)*in->at++ << (8 * i);
    return value;
}

/* The next n bytes, or as many as there are. */
static inline const uint8_t * fuzz_take_bytes(struct fuzz_input * in, size_t * n) {
    const uint8_t * bytes = in->at;
    *n = *n < in->left ? *n : in->left;
    in->at += *n;
    in->left -= *n;
    return bytes;
}

/* ---- a file in memory, for readers that want a path ---- */

struct fuzz_file {
    int fd;
    char path[64];
};

struct fuzz_file fuzz_file_new(void);
/* It holds these bytes and nothing else. */
void fuzz_file_set(const struct fuzz_file * file, const void * bytes, size_t n);

#endif
