/* SPDX-License-Identifier: MIT */
/* Interrupts: the first asks the work to stop, which then ends tidily; the second ends the program at once, and so does
 * the first while there is nothing to tidy up. Neither leaves a temporary file. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static volatile sig_atomic_t seen, at_once;
static const char * volatile own_file, * volatile own_folder;

static void note(int number) {
    if (seen != 0 || at_once != 0) {
        sotto_file_remove_temporaries();
        if (own_file != NULL)
            unlink(own_file);
        if (own_folder != NULL)
            rmdir(own_folder);
        _exit(EXIT_SIGNAL + number);
    }
    seen = number;
}

void signals_watch(void) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    action.sa_handler = note; /* no SA_RESTART: reading from a pipe ends as well */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

int signals_seen(void) { return (int)seen; }

void signals_end_at_once(bool yes) { at_once = yes; }

void signals_remove(const char * file, const char * folder) {
    own_folder = folder;
    own_file = file;
}
