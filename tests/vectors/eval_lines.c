/* SPDX-License-Identifier: MIT */
/* eval_lines: the evaluation's functions for a test in another language. Lines come in, a line goes out for each:
 *
 *     eval_lines normalise LANGUAGE [strip]     text -> normalised text
 *     eval_lines words|characters               reference TAB hypothesis -> hits substitutions deletions insertions */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/eval.h"

static bool put_normalised(const char * line, size_t size, const struct sotto_eval_params * params) {
    char * text;
    size_t text_size;
    if (sotto_eval_normalise(line, size, params, &text, &text_size) != SOTTO_OK)
        return false;
    fwrite(text, 1, text_size, stdout);
    putchar('\n');
    sotto_mfree(NULL, text, text_size + 1, 1);
    return true;
}

static bool put_counts(const char * line, size_t size, enum sotto_eval_unit unit) {
    const char * tab = memchr(line, '\t', size);
    struct sotto_eval_counts counts;
    if (tab == NULL)
        return false;
    size_t first = (size_t)(tab - line);
    if (sotto_eval_count(line, first, tab + 1, size - first - 1, unit, NULL, &counts) != SOTTO_OK)
        return false;
    printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", counts.hits, counts.substitutions, counts.deletions,
           counts.insertions);
    return true;
}

int main(int argc, char ** argv) {
    if (argc < 2)
        return 2;
    struct sotto_eval_params params = sotto_eval_default_params();
    params.language = argc > 2 ? argv[2] : NULL;
    params.strip_accents = argc > 3;
    bool normalise = strcmp(argv[1], "normalise") == 0;
    enum sotto_eval_unit unit = strcmp(argv[1], "words") == 0 ? SOTTO_EVAL_WORDS : SOTTO_EVAL_CHARACTERS;
    char * line = NULL;
    size_t capacity = 0;
    ssize_t got;
    bool well = true;
    while (well && (got = getline(&line, &capacity, stdin)) > 0) {
        size_t size = (size_t)got - (line[got - 1] == '\n');
        well = normalise ? put_normalised(line, size, &params) : put_counts(line, size, unit);
    }
    free(line);
    return well && fflush(stdout) == 0 ? 0 : 1;
}
