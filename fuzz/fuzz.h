/* SPDX-License-Identifier: MIT */
/* What all fuzz targets share. Each is a file fuzz_<subject>.c with its property on top; its seeds lie in
 * fuzz/corpus/<subject>. With clang and -DSOTTO_FUZZ=ON it becomes a libFuzzer program, always a test that replays the
 * seeds, each as it is, cut off everywhere and with each of its first bytes changed. */
#ifndef SOTTO_FUZZ_H
#define SOTTO_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define fuzz_holds(condition) fuzz_check(condition, #condition, __FILE__, __LINE__)

static inline void fuzz_check(int holds, const char * text, const char * file, int line) {
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t * bytes, size_t n);

#endif
