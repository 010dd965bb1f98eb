/* SPDX-License-Identifier: MIT */
/* Interrupts: the first asks the work to stop, which then ends tidily; the second ends the program at once. */
#include <signal.h>
#include <string.h>

#include "cli/cli.h"

static volatile sig_atomic_t seen;

static void note(int number) { seen = number; }

void signals_watch(void) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = note;
    action.sa_flags = (int)SA_RESETHAND; /* no SA_RESTART: reading from a pipe ends as well */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    action.sa_flags = 0;
    sigaction(SIGPIPE, &action, NULL);
}

int signals_seen(void) { return (int)seen; }
