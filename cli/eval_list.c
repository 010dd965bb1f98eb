/* SPDX-License-Identifier: MIT */
/* The list of clips: one buffer, whose tabs and line ends become the ends of strings. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "sotto/alloc.h"
#include "sotto/speech.h"

#include "cli/eval_set.h"

enum { MOST_COLUMNS = 64 };

struct columns {
    int audio, text, language, accents; /* -1 = there is none */
};

static bool grow(struct eval_set * set, size_t * capacity) {
    size_t size = *capacity > 0 ? *capacity * 2 : 1 << 16;
    char * file = sotto_realloc(NULL, set->file, *capacity, size, 1);
    if (file == NULL)
        return false;
    set->file = file;
    *capacity = set->file_size = size;
    return true;
}

/* The whole file with a 0 behind it; its length in *n. */
static bool read_file(struct eval_set * set, const char * path, size_t * n) {
    FILE * from = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (from == NULL) {
        fprintf(stderr, "sotto: %s: %s\n", path, strerror(errno));
        return false;
    }
    size_t capacity = 0;
    size_t got = 1;
    bool room = true;
    for (*n = 0; got > 0 && room; *n += got) {
        room = *n + 1 < capacity || grow(set, &capacity);
        got = room ? fread(set->file + *n, 1, capacity - 1 - *n, from) : 0;
    }
    bool failed = ferror(from) != 0;
    if (!room)
        print_last_error();
    else if (failed)
        fprintf(stderr, "sotto: %s: %s\n", path, strerror(errno));
    else
        set->file[*n] = 0;
    if (from != stdin)
        fclose(from);
    return room && !failed;
}

/* Cut a line in place; how many columns it has. */
static int cut(char * line, char * columns[MOST_COLUMNS]) {
    int n = 0;
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = 0;
    while (n < MOST_COLUMNS) {
        columns[n++] = line;
        line = strchr(line, '\t');
        if (line == NULL)
            break;
        *line++ = 0;
    }
    return n;
}

static bool read_header(char * line, const char * path, struct columns * columns) {
    char * names[MOST_COLUMNS];
    int n = cut(line, names);
    *columns = (struct columns){ -1, -1, -1, -1 };
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], "audio") == 0)
            columns->audio = i;
        else if (strcmp(names[i], "text") == 0)
            columns->text = i;
        else if (strcmp(names[i], "lang") == 0)
            columns->language = i;
        else if (strcmp(names[i], "accents") == 0)
            columns->accents = i;
    }
    if (columns->audio >= 0 && columns->text >= 0)
        return true;
    fprintf(stderr, "sotto: %s: the first line has to name the columns, among them audio and text, with tabs between\n",
            path);
    return false;
}

static bool read_row(char * line, struct columns columns, struct eval_clip * clip) {
    char * cells[MOST_COLUMNS];
    int n = cut(line, cells);
    if (columns.audio >= n || columns.text >= n || columns.language >= n || columns.accents >= n ||
        cells[columns.audio][0] == 0)
        return false;
    *clip = (struct eval_clip){ .audio = cells[columns.audio], .text = cells[columns.text], .found = -1 };
    clip->language = columns.language >= 0 ? cells[columns.language] : "";
    clip->strip_accents = columns.accents >= 0 && strcmp(cells[columns.accents], "strip") == 0;
    return true;
}

static char * next_line(char ** at) {
    char * line = *at;
    char * end = strchr(line, '\n');
    *at = end != NULL ? end + 1 : line + strlen(line);
    if (end != NULL)
        *end = 0;
    return line;
}

static bool read_rows(struct eval_set * set, const char * path, char * at, struct columns columns) {
    for (size_t number = 2; *at != 0; number++) {
        char * line = next_line(&at);
        if (line[strspn(line, "\r")] == 0)
            continue;
        struct eval_clip * clip = &set->clips[set->n_clips];
        if (!read_row(line, columns, clip)) {
            fprintf(stderr, "sotto: %s: line %zu has not all the columns of the first line\n", path, number);
            return false;
        }
        if (clip->language[0] != 0 && sotto_language_id(clip->language) < 0) {
            fprintf(stderr, "sotto: %s: line %zu: '%s' is no language\n", path, number, clip->language);
            return false;
        }
        set->n_clips++;
    }
    if (set->n_clips == 0)
        fprintf(stderr, "sotto: %s: no clip in it\n", path);
    return set->n_clips > 0;
}

static size_t count_lines(const char * at) {
    size_t n = 1;
    for (; (at = strchr(at, '\n')) != NULL; at++)
        n++;
    return n;
}

bool eval_read(struct eval_set * set, const char * path) {
    size_t n;
    if (!read_file(set, path, &n))
        return false;
    if (strlen(set->file) != n) {
        fprintf(stderr, "sotto: %s: this is no text\n", path);
        return false;
    }
    char * at = set->file + (strncmp(set->file, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);
    set->n_room = count_lines(at);
    set->clips = sotto_calloc(NULL, set->n_room, sizeof(struct eval_clip));
    if (set->clips == NULL) {
        print_last_error();
        return false;
    }
    struct columns columns;
    return read_header(next_line(&at), path, &columns) && read_rows(set, path, at, columns);
}

void eval_free(struct eval_set * set) {
    for (size_t i = 0; i < set->n_clips; i++) {
        if (set->clips[i].heard != NULL)
            sotto_mfree(NULL, set->clips[i].heard, set->clips[i].heard_size + 1, 1);
    }
    json_decref(set->other);
    sotto_mfree(NULL, set->clips, set->n_room, sizeof(struct eval_clip));
    sotto_mfree(NULL, set->file, set->file_size, 1);
}
