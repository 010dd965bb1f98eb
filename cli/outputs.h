/* SPDX-License-Identifier: MIT */
/* Where transcripts go: one stream for all recordings, or files of their own for each. */
#ifndef SOTTO_CLI_OUTPUTS_H
#define SOTTO_CLI_OUTPUTS_H

#include "cli/writers.h"

struct outputs {
    const struct options * options;
    unsigned formats;       /* as --format, with what is implied */
    bool own;               /* each recording has its own files, one a format */
    bool lines;             /* segments are printed as they are found */
    struct out_file stream; /* for lines, and for transcripts that have no files */
    struct {
        struct out_file out;
        char * path;
        size_t size;
    } files[16]; /* of the recording at hand, by format; those that are open have a path */
};

/* false, with a message, if the options contradict one another. */
bool outputs_plan(struct outputs * outputs, const struct options * options);

/* All return false, with a message, if something cannot be written. */
bool outputs_begin(struct outputs * outputs);
bool outputs_open(struct outputs * outputs, const char * name); /* for a recording */
bool outputs_write(struct outputs * outputs, const struct transcript * transcript);
void outputs_discard(struct outputs * outputs); /* instead of outputs_write */
bool outputs_end(struct outputs * outputs, bool keep);

#endif
