/* SPDX-License-Identifier: MIT */
/* What convert and quantize share: from options to a written model. */
#ifndef SOTTO_CLI_CONVERT_RUN_H
#define SOTTO_CLI_CONVERT_RUN_H

#include "sotto/models.h"

#include "cli/cli.h"
#include "cli/progress.h"

/* The type of that name, in any case, or of whisper.cpp's number. false, with a message that lists them. */
bool type_of_name(const char * command, const char * word, enum sotto_type * type);

struct conversion {
    struct sotto_convert_params params;
    struct sotto_type_rule rules[MOST_WORDS + 2];
    char patterns[MOST_WORDS][128];
    struct sotto_imatrix * imatrix;
    struct progress progress;
};

/* Rules, imatrix and threads from the options; the type stays open. After failure, which is told, too: free. */
enum exit_code conversion_init(struct conversion * conversion, const char * command, const struct options * options);
void conversion_free(struct conversion * conversion);

/* Convert, with a bar. Failures are told. */
enum exit_code conversion_run(struct conversion * conversion, const char * in, const char * out);

#endif
