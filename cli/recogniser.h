/* SPDX-License-Identifier: MIT */
/* The model and the state that a command works with. */
#ifndef SOTTO_CLI_RECOGNISER_H
#define SOTTO_CLI_RECOGNISER_H

#include "sotto/speech.h"

#include "cli/cli.h"

struct recogniser {
    char * path; /* of the model */
    size_t path_size;
    struct sotto_model * model;
    struct sotto_state * state;
};

/* Open the model at that path or of that name, NULL = the default one; the number of threads is that of the options.
 * Failures are told, and nothing is left open. An interrupt meanwhile ends the program. */
enum exit_code recogniser_open(struct recogniser * recogniser, const char * model, struct sotto_state_params params,
                               const struct options * options);
/* What the failure of one recording means for the run: EXIT_DONE = it goes on. */
enum exit_code verdict(enum sotto_status status);
void recogniser_close(struct recogniser * recogniser);

#endif
