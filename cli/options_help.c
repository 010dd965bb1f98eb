/* SPDX-License-Identifier: MIT */
/* Help, the manual page and completions for shells, from the rows of options.def. */
#include <string.h>

#include "cli/options.h"

static bool takes(int command, const struct option_row * row) { return (row->commands & (1u << command)) != 0; }

/* ---- help ---- */

void options_help(enum command command, FILE * to) {
    const struct command_row * row = &COMMANDS[command];
    fprintf(to, "sotto %s [options] %s\n\n    %s\n\n", row->name, row->arguments, row->text);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option_row * option = &OPTIONS[i];
        if (!takes((int)command, option))
            continue;
        fprintf(to, "    ");
        if (option->letter != 0)
            fprintf(to, "-%c, ", option->letter);
        fprintf(to, "--%s%s%s\n        %s\n", option->name, option->value != NULL ? " " : "",
                option->value != NULL ? option->value : "", option->text);
    }
    fprintf(to, "\n    @FILE among the words stands for the lines of FILE, each a word.\n");
}

void options_overview(FILE * to) {
    fprintf(to, "sotto: speech to text on your own machine\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "    sotto %s [options] %s\n        %s\n", COMMANDS[i].name, COMMANDS[i].arguments,
                COMMANDS[i].text);
}

/* ---- manual page ---- */

/* Text that troff takes as it is. */
static void put_roff(FILE * to, const char * text) {
    if (text[0] == '.' || text[0] == '\'')
        fputs("\\&", to);
    for (; *text != 0; text++) {
        if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\\')
            fputs("\\e", to);
        else
            putc(*text, to);
    }
}

static void put_roff_option(FILE * to, const struct option_row * row) {
    fputs(".TP\n", to);
    if (row->letter != 0)
        fprintf(to, "\\fB\\-%c\\fR, ", row->letter);
    fputs("\\fB\\-\\-", to);
    put_roff(to, row->name);
    fputs("\\fR", to);
    if (row->value != NULL) {
        fputs(" \\fI", to);
        put_roff(to, row->value);
        fputs("\\fR", to);
    }
    putc('\n', to);
    put_roff(to, row->text);
    putc('\n', to);
}

static void put_roff_command(FILE * to, int command) {
    const struct command_row * row = &COMMANDS[command];
    fprintf(to, ".SS sotto %s [options] ", row->name);
    put_roff(to, row->arguments);
    putc('\n', to);
    put_roff(to, row->text);
    putc('\n', to);
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (takes(command, &OPTIONS[i]))
            put_roff_option(to, &OPTIONS[i]);
}

void options_man(FILE * to) {
    static const char * const codes[][2] = {
        { "0", "all inputs are done" },
        { "1", "some inputs failed, the others are done" },
        { "2", "an unknown option, a value that makes no sense or is missing" },
        { "3", "the model could not be used" },
        { "4", "no input could be read" },
        { "5", "out of memory, or over a limit" },
        { "8", "output could not be written" },
        { "9", "a regular expression makes no sense" },
        { "130, 143", "interrupted, terminated; the segments found so far are written" },
    };
    fputs(".TH SOTTO 1\n.SH NAME\nsotto \\- speech to text on your own machine\n.SH SYNOPSIS\n"
          ".B sotto\n.I command\n[options] [arguments]\n.SH COMMANDS\n"
          "A word @FILE stands for the lines of FILE, each a word; a lone \\- is standard input or output.\n"
          "Called as whisper\\-cli, sotto transcribes and takes the short options of whisper.cpp.\n",
          to);
    for (int i = 0; i < COMMAND_COUNT; i++)
        put_roff_command(to, i);
    fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        fprintf(to, ".TP\n%s\n%s\n", codes[i][0], codes[i][1]);
    fputs(".SH ENVIRONMENT\n.TP\nSOTTO_MODELS\nthe folder of models\n.TP\nNO_COLOR\nno colours, if set and not empty\n",
          to);
}

/* ---- completion ---- */

static bool has_words(const struct option_row * row) { return row->kind == CHOICE || row->kind == SET; }

static void put_words(FILE * to, const char * words) {
    for (; *words != 0; words++)
        putc(*words == '|' ? ' ' : *words, to);
}

static void put_bash(FILE * to) {
    fputs("# bash completion of sotto\n_sotto() {\n    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
          "    case ${COMP_WORDS[COMP_CWORD - 1]} in\n",
          to);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (!has_words(&OPTIONS[i]))
            continue;
        fprintf(to, "    --%s) words='", OPTIONS[i].name);
        put_words(to, OPTIONS[i].value);
        fputs("' ;;\n", to);
    }
    fputs("    esac\n    if [ -z \"$words\" ] && [ \"$COMP_CWORD\" = 1 ]; then\n        words='", to);
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "%s%s", i > 0 ? " " : "", COMMANDS[i].name);
    fputs("'\n    elif [ -z \"$words\" ] && [[ $word == -* ]]; then\n        case ${COMP_WORDS[1]} in\n", to);
    for (int command = 0; command < COMMAND_COUNT; command++) {
        fprintf(to, "        %s) words='", COMMANDS[command].name);
        for (size_t i = 0; i < N_OPTIONS; i++)
            if (takes(command, &OPTIONS[i]))
                fprintf(to, "--%s ", OPTIONS[i].name);
        fputs("' ;;\n", to);
    }
    fputs("        esac\n    fi\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\n"
          "complete -o default -F _sotto sotto\n",
          to);
}

/* What zsh shows of an option: no quotes, brackets or colons. */
static void put_zsh_text(FILE * to, const char * text) {
    for (; *text != 0; text++)
        putc(strchr("'[]:\\", *text) != NULL ? ' ' : *text, to);
}

static void put_zsh_option(FILE * to, const struct option_row * row) {
    fprintf(to, " '--%s%s[", row->name, row->kind == FLAG ? "" : "=");
    put_zsh_text(to, row->text);
    putc(']', to);
    if (has_words(row)) {
        fputs(":word:(", to);
        put_words(to, row->value);
        putc(')', to);
    } else if (row->kind != FLAG) {
        fprintf(to, ":%s:_files", row->value);
    }
    putc('\'', to);
}

static void put_zsh(FILE * to) {
    fputs("#compdef sotto\n_sotto() {\n    if (( CURRENT == 2 )); then\n        compadd --", to);
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, " %s", COMMANDS[i].name);
    fputs("\n        return\n    fi\n    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
          "    case $command in\n",
          to);
    for (int command = 0; command < COMMAND_COUNT; command++) {
        fprintf(to, "    %s) _arguments", COMMANDS[command].name);
        for (size_t i = 0; i < N_OPTIONS; i++)
            if (takes(command, &OPTIONS[i]))
                put_zsh_option(to, &OPTIONS[i]);
        fputs(" '*:file:_files' ;;\n", to);
    }
    fputs(
        "    esac\n}\nif [ \"$funcstack[1]\" = _sotto ]; then\n    _sotto \"$@\"\nelse\n    compdef _sotto sotto\nfi\n",
        to);
}

bool options_completion(const char * shell, FILE * to) {
    if (strcmp(shell, "bash") == 0)
        put_bash(to);
    else if (strcmp(shell, "zsh") == 0)
        put_zsh(to);
    else
        return false;
    return true;
}
