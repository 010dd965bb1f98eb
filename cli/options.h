/* SPDX-License-Identifier: MIT */
/* The command line, taken apart as options.def says. */
#ifndef SOTTO_CLI_OPTIONS_H
#define SOTTO_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#define FOR(command) (1u << COMMAND_##command)

enum command {
#define COMMAND(NAME, name, arguments, least, most, text) COMMAND_##NAME,
#include "cli/options.def"
    COMMAND_COUNT
};

struct options {
    const char * model;
    const char * language;
    int threads; /* 0 = not given */
    const char * raw;
    const char * format;
    const char * output;
    const char * type;
    const char * audio_root;
    bool strip_accents;
    bool json;
    const char * against;
    bool help;
    char ** args; /* what is no option, in order */
    int n_args;
};

/* The command of that name, COMMAND_COUNT if there is none. */
enum command options_command(const char * name);

/* Take argv apart; arguments are moved to its front. false, with the reason on stderr, if it makes no sense. */
bool options_parse(enum command command, int argc, char ** argv, struct options * options);

void options_help(enum command command, FILE * to);
void options_overview(FILE * to); /* all commands */

#endif
