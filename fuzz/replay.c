/* SPDX-License-Identifier: MIT */
/* Replays the seeds of a fuzz target without a fuzzing engine: replay FOLDER. Each seed as it is, cut off at every
 * length, and with each of its first bytes set to other values. */
#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"

enum { MOST = 1 << 16, MUTATED = 64 };

/* From memory of exactly that size, so that a sanitizer sees a byte too many. */
static void run(const uint8_t * bytes, size_t n) {
    uint8_t * exact = malloc(n > 0 ? n : 1);
    if (exact == NULL)
        exit(1);
    memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static size_t replay(const char * path) {
    static uint8_t bytes[MOST];
    FILE * file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t n = fread(bytes, 1, MOST, file);
    fclose(file);
    for (size_t cut = 0; cut <= n; cut++)
        run(bytes, cut);
    for (size_t i = 0; i < n && i < MUTATED; i++) {
        static const uint8_t values[] = { 0, 1, 0x7F, 0x80, 0xFF };
        uint8_t kept = bytes[i];
        for (size_t v = 0; v < sizeof(values); v++) {
            bytes[i] = values[v];
            run(bytes, n);
        }
        bytes[i] = kept;
    }
    return n + 1 + (n < MUTATED ? n : MUTATED) * 5;
}

int main(int argc, char ** argv) {
    DIR * folder = argc == 2 ? opendir(argv[1]) : NULL;
    size_t seeds = 0;
    size_t inputs = 0;
    if (folder == NULL) {
        fprintf(stderr, "usage: replay FOLDER, one that can be read\n");
        return 2;
    }
    for (struct dirent * entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        inputs += replay(path);
        seeds++;
    }
    closedir(folder);
    printf("%zu seeds, %zu inputs: the property holds\n", seeds, inputs);
    return seeds > 0 ? 0 : 1;
}
