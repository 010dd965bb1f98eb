/* SPDX-License-Identifier: MIT */
/* From the command line's options to the recogniser's parameters. */
#ifndef SOTTO_CLI_TRANSCRIBE_PARAMS_H
#define SOTTO_CLI_TRANSCRIBE_PARAMS_H

#include "sotto/speech.h"

#include "cli/cli.h"

/* false, with a message, if an option makes no sense. Freed in either case. */
bool transcribe_params_make(const struct options * options, struct sotto_transcribe_params * params);
void transcribe_params_free(const struct options * options, struct sotto_transcribe_params * params);

#endif
