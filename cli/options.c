/* SPDX-License-Identifier: MIT */
/* Parser, from the rows of options.def.
 *
 * Short options take their value attached or as the next word, long ones after = or as the next word; -- ends options;
 * a lone - is an argument. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sotto/speech.h"

#include "cli/options.h"

const struct command_row COMMANDS[COMMAND_COUNT] = {
#define COMMAND(NAME, name, arguments, least, most, text) { name, arguments, least, most, text },
#include "cli/options.def"
};

const struct option_row OPTIONS[] = {
#define OPTION(commands, letter, name, KIND, field, value, low, high, text) \
    { commands, letter, name, KIND, offsetof(struct options, field), value, low, high, text },
#include "cli/options.def"
};
const size_t N_OPTIONS = sizeof(OPTIONS) / sizeof(OPTIONS[0]);

static const struct alias {
    const char *letters, *name, *option, *value;
} ALIASES[] = {
#define ALIAS(letters, name, option, value) { letters, name, option, value },
#include "cli/options.def"
};

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

/* Which of the words in "a|b|c" the n bytes of `word` are; -1 if none. */
static int choice(const char * words, const char * word, size_t n) {
    int i = 0;
    for (const char * at = words; n > 0 && at != NULL; at = strchr(at, '|'), i++) {
        at += *at == '|';
        if (strcspn(at, "|") == n && strncmp(at, word, n) == 0)
            return i;
    }
    return -1;
}

static bool set_choices(const struct option_row * row, const char * value, unsigned * field) {
    unsigned chosen = 0;
    for (;;) {
        size_t n = strcspn(value, ",");
        int i = choice(row->value, value, n);
        if (i < 0)
            return false;
        chosen |= 1u << i;
        if (value[n] == 0)
            break;
        value += n + 1;
    }
    *field |= chosen;
    return true;
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

static bool set_real(const struct option_row * row, const char * value, struct real * field) {
    char * end;
    double number = strtod(value, &end);
    if (end == value || *end != 0 || !(number >= row->low && number <= row->high))
        return false;
    *field = (struct real){ .given = true, .value = number };
    return true;
}

static bool add(struct list * list, const struct option_row * row, const char * value) {
    if (list->n == MOST_WORDS) {
        fprintf(stderr, "sotto: --%s is given more than %d times\n", row->name, MOST_WORDS);
        return false;
    }
    list->words[list->n++] = value;
    return true;
}

static bool set(enum command command, const struct option_row * row, const char * value, struct options * options) {
    void * field = (char *)options + row->field;
    const char * name = COMMANDS[command].name;
    switch (row->kind) {
    case FLAG: *(bool *)field = true; return true;
    case TEXT: *(const char **)field = value; return true;
    case LIST: return add(field, row, value);
    case INT:
    case REAL:
        if (row->kind == INT ? set_int(row, value, field) : set_real(row, value, field))
            return true;
        fprintf(stderr, "sotto %s: --%s takes a number from %d to %d, not '%s'\n", name, row->name, row->low, row->high,
                value);
        return false;
    case CHOICE:
    case SET: break;
    }
    if (row->kind == CHOICE && choice(row->value, value, strlen(value)) >= 0) {
        *(const char **)field = value;
        return true;
    }
    if (row->kind == SET && set_choices(row, value, field))
        return true;
    fprintf(stderr, "sotto %s: --%s takes %s of %s, not '%s'\n", name, row->name, row->kind == SET ? "some" : "one",
            row->value, value);
    return false;
}

/* The option of that long name, n bytes. */
static const struct option_row * find_long(enum command command, const char * name, size_t n) {
    for (size_t i = 0; i < N_OPTIONS; i++)
        if ((OPTIONS[i].commands & (1u << command)) != 0 && strlen(OPTIONS[i].name) == n &&
            strncmp(OPTIONS[i].name, name, n) == 0)
            return &OPTIONS[i];
    return NULL;
}

static const struct option_row * find_letter(enum command command, char letter) {
    for (size_t i = 0; i < N_OPTIONS; i++)
        if ((OPTIONS[i].commands & (1u << command)) != 0 && OPTIONS[i].letter == letter)
            return &OPTIONS[i];
    return NULL;
}

/* The option that whisper.cpp calls so; `*value` is what the name implies, or stays. */
static const struct option_row * find_alias(const char * name, size_t n, bool letters, const char ** value) {
    for (size_t i = 0; i < sizeof(ALIASES) / sizeof(ALIASES[0]); i++) {
        const char * own = letters ? ALIASES[i].letters : ALIASES[i].name;
        if (own == NULL || strlen(own) != n || strncmp(own, name, n) != 0)
            continue;
        if (ALIASES[i].value != NULL)
            *value = ALIASES[i].value;
        return find_long(COMMAND_TRANSCRIBE, ALIASES[i].option, strlen(ALIASES[i].option));
    }
    return NULL;
}

/* The option that a word names; `*value` is attached to it or implied, or NULL. */
static const struct option_row * find(enum command command, bool as_whisper_cli, const char * word, const char ** value,
                                      bool * implied) {
    const struct option_row * row = NULL;
    *value = NULL;
    *implied = false;
    if (strncmp(word, "--", 2) == 0) {
        size_t n = strcspn(word, "=");
        row = find_long(command, word + 2, n - 2);
        if (row == NULL && command == COMMAND_TRANSCRIBE) {
            row = find_alias(word + 2, n - 2, false, value);
            *implied = *value != NULL;
        }
        if (word[n] == '=') {
            row = *implied ? NULL : row;
            *value = word + n + 1;
        }
        return row;
    }
    if (as_whisper_cli) {
        row = find_alias(word + 1, strlen(word + 1), true, value);
        *implied = row != NULL && *value != NULL;
    }
    if (row != NULL || (as_whisper_cli && word[2] != 0))
        return row;
    *value = word[2] != 0 ? word + 2 : NULL;
    return find_letter(command, word[1]);
}

static bool parse_option(enum command command, int argc, char ** argv, int * i, struct options * options) {
    const char * value;
    bool implied;
    const char * word = argv[*i];
    const struct option_row * row = find(command, options->as_whisper_cli, word, &value, &implied);
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

/* whisper.cpp names an input with -f or --file as well. */
static bool is_file_option(const struct options * options, const char * word) {
    return options->as_whisper_cli && (strcmp(word, "-f") == 0 || strcmp(word, "--file") == 0);
}

bool options_parse(enum command command, bool as_whisper_cli, int argc, char ** argv, struct options * options) {
    *options = (struct options){ .as_whisper_cli = as_whisper_cli, .max_context = -1, .args = argv };
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0)
            only_arguments = true;
        else if (only_arguments || argv[i][0] != '-' || argv[i][1] == 0)
            argv[options->n_args++] = argv[i];
        else if (is_file_option(options, argv[i]) && i + 1 < argc)
            argv[options->n_args++] = argv[++i];
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
