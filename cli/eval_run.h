/* SPDX-License-Identifier: MIT */
/* Recognising the clips of a list, for whoever wants to know something about a model. */
#ifndef SOTTO_CLI_EVAL_RUN_H
#define SOTTO_CLI_EVAL_RUN_H

#include "cli/eval_set.h"
#include "cli/recogniser.h"

struct eval_run {
    struct eval_set set;
    const struct options * options;
    const char * list; /* path of the set's list */
    struct sotto_transcribe_params params;
    struct recogniser recogniser;
};

/* The options' parameters of recognition. false, with a message, if they make no sense. */
bool eval_run_init(struct eval_run * run, const char * command, const struct options * options);
/* As recogniser_open; a model that is open is closed before. */
enum exit_code eval_run_open(struct eval_run * run, const char * model, struct sotto_state_params params);
/* Read the list of clips. false, with a message. */
bool eval_run_read(struct eval_run * run, const char * list);
/* Recognise every clip and score it; what was there of another model goes. A clip that fails is told and passed over:
 * SOME, AUDIO if all failed. */
enum exit_code eval_run_clips(struct eval_run * run);
void eval_run_free(struct eval_run * run);

/* One file, as it is, without a list and without a score. */
enum sotto_status eval_run_file(struct eval_run * run, const char * path);

#endif
