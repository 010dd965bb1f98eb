/* SPDX-License-Identifier: MIT */
/* What the commands share. */
#ifndef SOTTO_CLI_H
#define SOTTO_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "sotto/file.h"

#include "cli/options.h"

/* When several apply, the earlier row of: usage, model, output, then some inputs failed, audio. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_SOME = 1, /* some inputs failed, the others are done */
    EXIT_USAGE = 2,
    EXIT_MODEL = 3,
    EXIT_AUDIO = 4,  /* no input could be read */
    EXIT_MEMORY = 5, /* or over a limit */
    EXIT_OUTPUT = 8,
    EXIT_REGEX = 9,
    EXIT_SIGNAL = 128 /* + number of the signal: interrupted 130, terminated 143 */
};

enum exit_code command_transcribe(const struct options * options);
enum exit_code command_eval(const struct options * options);
enum exit_code command_convert(const struct options * options);
enum exit_code command_quantize(const struct options * options);
enum exit_code command_inspect(const struct options * options);
enum exit_code command_imatrix(const struct options * options);
enum exit_code command_models(const struct options * options);

/* The code for a failure that has no better place: memory and limits, else `other`. */
enum exit_code exit_code_of(enum sotto_status status, enum exit_code other);

/* "sotto: " and the text of this thread's last error, on stderr. */
void print_last_error(void);

/* ---- signals (signals.c) ---- */

/* From now on the first interrupt or termination is only noted, and the second ends the program at once; broken pipes
 * are write errors. */
void signals_watch(void);
int signals_seen(void); /* its number, 0 if none */
/* There is nothing to tidy up, or again there is: the first one ends the program at once. */
void signals_end_at_once(bool yes);
/* What else the program removes when it ends at once: a file, then its folder. NULL = nothing. */
void signals_remove(const char * file, const char * folder);

/* ---- models (model_path.c) ---- */

/* Path of the model of that name, or of the file itself. false, with a message, if there is no home for models.
 * `path` belongs to the caller (free it with sotto_mfree, *size bytes). */
bool model_path(const char * model, char ** path, size_t * size);
/* Where NAME.gguf belongs, whether it exists or not. */
bool model_home(const char * name, char ** path, size_t * size);

/* ---- output (out_file.c) ---- */

/* A file that appears under its name when it is closed whole; standard output for "-" or NULL. */
struct out_file {
    FILE * file;
    const char * path;
    struct sotto_file * whole; /* NULL for standard output */
};
bool out_open(struct out_file * out, const char * path);
/* `keep` false: what was written is thrown away. false, with a message, if it could not be written. */
bool out_close(struct out_file * out, bool keep);

/* ---- arguments (arguments.c) ---- */

/* Words with those of each @FILE in its place, up to --. false, with a message, if a file cannot be read. */
struct arguments {
    int n, room;
    char ** words;
    struct text_file * files; /* where their bytes are */
};
bool arguments_expand(int argc, char ** argv, struct arguments * arguments);
void arguments_free(struct arguments * arguments);

/* ---- text (text_out.c) ---- */

void put_utf8(FILE * to, const char * text, size_t size);        /* ill-formed sequences become U+FFFD */
void put_json_string(FILE * to, const char * text, size_t size); /* likewise, quoted and escaped */
void put_csv_string(FILE * to, const char * text, size_t size);  /* likewise, for CSV */
void put_line(FILE * to, const char * text, size_t size);        /* UTF-8, line ends become spaces */
void put_cell(FILE * to, const char * text, size_t size);        /* tabs too */
void put_cue(FILE * to, const char * text, size_t size);         /* as a line; --> becomes -> */
void put_stamp(FILE * to, long long cs, char point);             /* hh:mm:ss, the point, mmm */
/* Bytes of text less a character that it ends in the middle of. */
size_t whole_characters(const char * text, size_t size);

#endif
