/* SPDX-License-Identifier: MIT */
/* sotto quantize --report */
#ifndef SOTTO_CLI_QUANTIZE_REPORT_H
#define SOTTO_CLI_QUANTIZE_REPORT_H

#include "cli/convert_run.h"

/* Convert the model to each type in turn, measure it on the list of options->report, print a table or JSON. */
enum exit_code quantize_report(struct conversion * conversion, const struct options * options);

#endif
