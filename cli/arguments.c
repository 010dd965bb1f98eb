/* SPDX-License-Identifier: MIT */
/* @FILE on the command line: its lines are words. */
#include <errno.h>
#include <string.h>

#include "sotto/alloc.h"

#include "cli/cli.h"

struct text_file {
    struct text_file * next;
    size_t size; /* of this struct with its text */
    char text[];
};

static bool failed(const char * path) {
    fprintf(stderr, "sotto: @%s: %s\n", path, strerror(errno));
    return false;
}

static bool no_memory(void) {
    print_last_error();
    return false;
}

static bool add(struct arguments * arguments, char * word) {
    if (arguments->n + 1 >= arguments->room) {
        int room = arguments->room < 64 ? 64 : 2 * arguments->room;
        char ** words = sotto_realloc(NULL, arguments->words, (size_t)arguments->room, (size_t)room, sizeof(char *));
        if (words == NULL)
            return no_memory();
        arguments->words = words;
        arguments->room = room;
    }
    arguments->words[arguments->n++] = word;
    arguments->words[arguments->n] = NULL;
    return true;
}

static struct text_file * read_text(const char * path, FILE * file) {
    struct text_file * text = NULL;
    size_t size = 0, used = 0, room, got;
    do {
        size_t larger = 2 * size + 1024;
        struct text_file * moved = sotto_realloc(NULL, text, size, larger, 1);
        if (moved == NULL) {
            no_memory();
            sotto_mfree(NULL, text, size, 1);
            return NULL;
        }
        text = moved;
        text->size = size = larger;
        room = size - sizeof(*text) - 1 - used;
        got = fread(text->text + used, 1, room, file);
        used += got;
    } while (got == room);
    text->text[used] = 0;
    if (!ferror(file))
        return text;
    failed(path);
    sotto_mfree(NULL, text, size, 1);
    return NULL;
}

static bool add_lines(struct arguments * arguments, const char * path) {
    FILE * file = fopen(path, "r");
    if (file == NULL)
        return failed(path);
    struct text_file * text = read_text(path, file);
    fclose(file);
    if (text == NULL)
        return false;
    text->next = arguments->files;
    arguments->files = text;
    for (char * line = text->text; *line != 0;) {
        size_t n = strcspn(line, "\n");
        char * next = line + n + (line[n] == '\n');
        if (n > 0 && line[n - 1] == '\r')
            n--;
        line[n] = 0;
        if (n > 0 && !add(arguments, line))
            return false;
        line = next;
    }
    return true;
}

bool arguments_expand(int argc, char ** argv, struct arguments * arguments) {
    *arguments = (struct arguments){ 0 };
    bool literal = false;
    for (int i = 0; i < argc; i++) {
        literal = literal || strcmp(argv[i], "--") == 0;
        if (!(i > 0 && !literal && argv[i][0] == '@' ? add_lines(arguments, argv[i] + 1) : add(arguments, argv[i])))
            return false;
    }
    return true;
}

void arguments_free(struct arguments * arguments) {
    for (struct text_file *text = arguments->files, *next; text != NULL; text = next) {
        next = text->next;
        sotto_mfree(NULL, text, text->size, 1);
    }
    sotto_mfree(NULL, arguments->words, (size_t)arguments->room, sizeof(char *));
}
