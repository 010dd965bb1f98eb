/* SPDX-License-Identifier: MIT */
/* A bar that shows how far the work is. */
#ifndef SOTTO_CLI_PROGRESS_H
#define SOTTO_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

struct progress {
    bool on, colour, shown;
    double seconds; /* of sound to hear; 0 = it is something else */
    double start;
};
void progress_init(struct progress * progress, bool wanted);
void progress_begin(struct progress * progress, double seconds);
void progress_show(struct progress * progress, int percent);
void progress_clear(struct progress * progress); /* before anything else is printed */

#endif
