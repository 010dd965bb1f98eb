/* SPDX-License-Identifier: MIT */
/* Forms that a transcript is written in: one row each, in the order of --format's words. */
#ifndef SOTTO_CLI_WRITERS_H
#define SOTTO_CLI_WRITERS_H

#include "sotto/speech.h"

#include "cli/cli.h"

struct transcript {
    const struct sotto_state * state;
    const struct options * options;
    const char * name;  /* of the recording */
    const char * model; /* path */
    double seconds;     /* of sound */
};

struct writer {
    const char * name; /* and extension, "json-full" excepted */
    const char * extension;
    bool joins; /* several transcripts may follow one another in a file */
    /* false: memory is short. Failures to write stay with the FILE. */
    bool (*write)(FILE * to, const struct transcript * transcript);
};
extern const struct writer WRITERS[];
extern const int N_WRITERS;

/* Text without the blanks it begins with. */
const char * trimmed(const char * text, size_t * size);

bool write_json(FILE * to, const struct transcript * transcript);
bool write_json_full(FILE * to, const struct transcript * transcript);
bool write_jsonl(FILE * to, const struct transcript * transcript);

#endif
