/* SPDX-License-Identifier: MIT */
/* Replays the seeds of a fuzz target without a fuzzing engine: replay [--as-they-are] FOLDER... Each seed as it is;
 * without the option also cut off, at every length if the target's time allows that many, else at lengths spread evenly,
 * and with single bytes set to other values, all of them or likewise spread. */
#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"

enum { MOST = 1 << 16 };

/* From memory of exactly that size, so that a sanitizer sees a byte too many. */
static void run(const uint8_t * bytes, size_t n) {
    uint8_t * exact = malloc(n > 0 ? n : 1);
    if (exact == NULL)
        exit(1);
    memcpy(exact, bytes, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static size_t cut_off(const uint8_t * bytes, size_t n) {
    const size_t runs = n < fuzz_replays / 2 ? n : fuzz_replays / 2;
    for (size_t i = 0; i < runs; i++)
        run(bytes, i * n / runs);
    return runs;
}

static size_t change(uint8_t * bytes, size_t n) {
    static const uint8_t values[] = { 0, 1, 0x7F, 0x80, 0xFF };
    const size_t runs = n * sizeof(values) < fuzz_replays / 2 ? n * sizeof(values) : fuzz_replays / 2;
    for (size_t i = 0; i < runs; i++) {
        const size_t at = i * n / runs;
        const uint8_t kept = bytes[at];
        bytes[at] = values[i % sizeof(values)];
        run(bytes, n);
        bytes[at] = kept;
    }
    return runs;
}

static size_t replay(const char * path, bool as_it_is) {
    static uint8_t bytes[MOST];
    FILE * file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t n = fread(bytes, 1, MOST, file);
    fclose(file);
    run(bytes, n);
    return as_it_is ? 1 : 1 + cut_off(bytes, n) + change(bytes, n);
}

struct tally {
    size_t seeds, inputs;
};

static void replay_folder(const char * name, bool as_they_are, struct tally * tally) {
    DIR * folder = opendir(name);
    if (folder == NULL) {
        perror(name);
        exit(1);
    }
    for (struct dirent * entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
        tally->inputs += replay(path, as_they_are);
        tally->seeds++;
    }
    closedir(folder);
}

int main(int argc, char ** argv) {
    struct tally tally = { 0 };
    const bool as_they_are = argc > 1 && strcmp(argv[1], "--as-they-are") == 0;
    if (argc < 2 + as_they_are) {
        fprintf(stderr, "usage: replay [--as-they-are] FOLDER...\n");
        return 2;
    }
    for (int i = 1 + as_they_are; i < argc; i++)
        replay_folder(argv[i], as_they_are, &tally);
    printf("%zu seeds, %zu inputs: the property holds\n", tally.seeds, tally.inputs);
    return tally.seeds > 0 ? 0 : 1;
}
