/* SPDX-License-Identifier: MIT */
/* The command line, taken apart as options.def says. */
#ifndef SOTTO_CLI_OPTIONS_H
#define SOTTO_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define FOR(command) (1u << COMMAND_##command)
#define ALL_COMMANDS ((1u << COMMAND_COUNT) - 1)

enum command {
#define COMMAND(NAME, name, arguments, least, most, text) COMMAND_##NAME,
#include "cli/options.def"
    COMMAND_COUNT
};

struct real {
    bool given;
    double value;
};

enum { MOST_WORDS = 64 };

struct list {
    const char * words[MOST_WORDS];
    int n;
};

struct options {
    bool as_whisper_cli; /* short options have several letters, files are named as whisper.cpp does */
    const char * model;
    const char * compute;
    const char * language;
    int threads; /* 0 = not given, as in all numbers below whose default is 0 */
    int language_detection_segments;
    struct real language_detection_threshold;
    bool multilingual;
    bool translate;
    const char * raw;
    unsigned formats; /* bit i: the i-th word of --format */
    const char * output;
    const char * output_dir;
    int offset_n;
    bool no_progress;
    int offset_ms, duration_ms;
    const char * clip;
    bool no_timestamps, single_segment;
    int max_tokens;
    const char * prompt;
    bool carry_prompt;
    const char * hotwords;
    const char * prefix;
    const char * prompt_tokens;
    int max_context; /* -1 = not given */
    bool keep_late_history;
    bool suppress_nst, no_suppress_nst, no_suppress_blank;
    const char * suppress_tokens;
    const char * suppress_regex;
    struct real max_initial_ts;
    bool no_early_end;
    int no_repeat_ngram;
    const char * pad_mode;
    int beam_size, best_of;
    struct real patience, length_penalty, temperature, temperature_inc;
    bool no_fallback;
    int seed;
    struct real compression_ratio_thold, entropy_thold, logprob_thold, no_speech_thold;
    const char * type;
    const char * imatrix;
    struct list keep;
    bool keep_embedding;
    const char * encoder_type;
    const char * report;
    bool tensors, verify;
    const char * audio_root;
    bool strip_accents;
    bool json;
    const char * against;
    bool man;
    bool help;
    char ** args; /* what is no option, in order */
    int n_args;
};

/* The command of that name, COMMAND_COUNT if there is none. */
enum command options_command(const char * name);

/* Take argv apart; arguments are moved to its front. false, with the reason on stderr, if it makes no sense. */
bool options_parse(enum command command, bool as_whisper_cli, int argc, char ** argv, struct options * options);

/* What options.def is turned into (options_help.c). */
void options_help(enum command command, FILE * to);
void options_overview(FILE * to); /* all commands */
void options_man(FILE * to);
bool options_completion(const char * shell, FILE * to); /* false if there is none for that shell */

/* ---- the rows (options.c) ---- */

enum kind { FLAG, TEXT, LIST, CHOICE, SET, INT, REAL };

struct command_row {
    const char * name;
    const char * arguments;
    int least, most; /* most 0 = any number */
    const char * text;
};
struct option_row {
    unsigned commands;
    char letter;
    const char * name;
    enum kind kind;
    size_t field;
    const char * value;
    int low, high;
    const char * text;
};
extern const struct command_row COMMANDS[COMMAND_COUNT];
extern const struct option_row OPTIONS[];
extern const size_t N_OPTIONS;

#endif
