/* SPDX-License-Identifier: MIT */
/* Parser and help, both from the rows of options.def.
 *
 * Short options take their value attached or as the next word, long ones after = or as the next word; -- ends options;
 * a lone - is an argument. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/cpu.h"

#include "cli/options.h"

enum kind { FLAG, TEXT, CHOICE, INT };

static const struct command_row {
    const char * name;
    const char * arguments;
    int least, most; /* most 0 = any number */
    const char * text;
} COMMANDS[] = {
#define COMMAND(NAME, name, arguments, least, most, text) { name, arguments, least, most, text },
#include "cli/options.def"
};

static const struct option_row {
    unsigned commands;
    char letter;
    const char * name;
    enum kind kind;
    size_t field;
    const char * value;
    int low, high;
    const char * text;
} OPTIONS[] = {
#define OPTION(commands, letter, name, KIND, field, value, low, high, text) \
    { commands, letter, name, KIND, offsetof(struct options, field), value, low, high, text },
#include "cli/options.def"
};
#define N_OPTIONS (sizeof(OPTIONS) / sizeof(OPTIONS[0]))

enum command options_command(const char * name) {
    int i = 0;
    while (i < COMMAND_COUNT && strcmp(COMMANDS[i].name, name) != 0)
        i++;
    return (enum command)i;
}

/* ---- parsing ---- */

static bool complain(enum command command, const char * what, const char * word) {
    fprintf(stderr, "sotto %s: %s: %s\ntry: sotto help %s\n", COMMANDS[command].name, word, what,
            COMMANDS[command].name);
    return false;
}

/* Is `word` one of the words in "a|b|c"? */
static bool is_choice(const char * words, const char * word) {
    size_t n = strlen(word);
    if (strchr(word, '|') != NULL)
        return false;
    for (const char * at = words; n > 0 && at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, n) == 0 && (at[n] == 0 || at[n] == '|'))
            return true;
    }
    return false;
}

static bool set_int(const struct option_row * row, const char * value, int * field) {
    char * end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno != 0 || end == value || *end != 0 || number < row->low || number > row->high)
        return false;
    *field = (int)number;
    return true;
}

static bool set(enum command command, const struct option_row * row, const char * value, struct options * options) {
    void * field = (char *)options + row->field;
    switch (row->kind) {
    case FLAG: *(bool *)field = true; return true;
    case INT:
        if (set_int(row, value, field))
            return true;
        fprintf(stderr, "sotto %s: --%s takes a number from %d to %d, not '%s'\n", COMMANDS[command].name, row->name,
                row->low, row->high, value);
        return false;
    case CHOICE:
        if (!is_choice(row->value, value)) {
            fprintf(stderr, "sotto %s: --%s takes one of %s, not '%s'\n", COMMANDS[command].name, row->name, row->value,
                    value);
            return false;
        }
        break;
    case TEXT: break;
    }
    *(const char **)field = value;
    return true;
}

/* The option that a word names, and the value attached to it, if any. */
static const struct option_row * find(enum command command, const char * word, const char ** attached) {
    size_t n = strcspn(word, "=");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option_row * row = &OPTIONS[i];
        if ((row->commands & (1u << command)) == 0)
            continue;
        if (strncmp(word, "--", 2) == 0) {
            *attached = word[n] == '=' ? word + n + 1 : NULL;
            if (n > 2 && strlen(row->name) == n - 2 && strncmp(word + 2, row->name, n - 2) == 0)
                return row;
        } else {
            *attached = word[2] != 0 ? word + 2 : NULL;
            if (row->letter != 0 && word[1] == row->letter)
                return row;
        }
    }
    return NULL;
}

static bool parse_option(enum command command, int argc, char ** argv, int * i, struct options * options) {
    const char * value = NULL;
    const char * word = argv[*i];
    const struct option_row * row = find(command, word, &value);
    if (row == NULL)
        return complain(command, "no such option", word);
    if (row->kind == FLAG && value != NULL)
        return complain(command, "takes no value", word);
    if (row->kind != FLAG && value == NULL) {
        if (*i + 1 == argc)
            return complain(command, "its value is missing", word);
        value = argv[++*i];
    }
    return set(command, row, value, options);
}

bool options_parse(enum command command, int argc, char ** argv, struct options * options) {
    *options = (struct options){ .args = argv };
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0)
            only_arguments = true;
        else if (only_arguments || argv[i][0] != '-' || argv[i][1] == 0)
            argv[options->n_args++] = argv[i];
        else if (!parse_option(command, argc, argv, &i, options))
            return false;
    }
    const struct command_row * row = &COMMANDS[command];
    if (options->help)
        return true;
    if (options->n_args < row->least)
        return complain(command, "arguments are missing", row->arguments);
    if (row->most > 0 && options->n_args > row->most)
        return complain(command, "one argument too many", argv[row->most]);
    return true;
}

/* ---- help ---- */

void options_help(enum command command, FILE * to) {
    const struct command_row * row = &COMMANDS[command];
    fprintf(to, "sotto %s [options] %s\n\n    %s\n\n", row->name, row->arguments, row->text);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option_row * option = &OPTIONS[i];
        if ((option->commands & (1u << command)) == 0)
            continue;
        fprintf(to, "    ");
        if (option->letter != 0)
            fprintf(to, "-%c, ", option->letter);
        fprintf(to, "--%s%s%s\n        %s\n", option->name, option->value != NULL ? " " : "",
                option->value != NULL ? option->value : "", option->text);
    }
}

void options_overview(FILE * to) {
    fprintf(to, "sotto: speech to text on your own machine\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "    sotto %s [options] %s\n        %s\n", COMMANDS[i].name, COMMANDS[i].arguments,
                COMMANDS[i].text);
}
