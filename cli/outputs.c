/* SPDX-License-Identifier: MIT */
/* One format goes to one file or to standard output, for as many recordings as that can hold; everything else goes to
 * files that have the recordings' names. */
#include <string.h>

#include "sotto/alloc.h"

#include "cli/outputs.h"

/* ---- names ---- */

static bool is_stdin(const char * name) { return strcmp(name, "-") == 0; }

/* The part of a recording's name that its files begin with. */
static const char * stem(const char * name, size_t * size) {
    if (is_stdin(name))
        name = "stdin";
    const char * slash = strrchr(name, '/');
    const char * base = slash != NULL ? slash + 1 : name;
    const char * dot = strrchr(base, '.');
    *size = dot != NULL && dot > base ? (size_t)(dot - base) : strlen(base);
    return base;
}

/* Name of the file of one format; NULL, with a message, if memory is short. */
static char * file_name(const struct options * options, const char * name, const char * extension, size_t * size) {
    size_t n;
    const char * base = stem(name, &n);
    const char * folder = options->output_dir != NULL ? options->output_dir : ".";
    if (options->output != NULL || options->as_whisper_cli) {
        base = options->output != NULL ? options->output : is_stdin(name) ? "stdin" : name;
        n = strlen(base);
        folder = options->output_dir;
    }
    *size = n + strlen(extension) + (folder != NULL ? strlen(folder) : 0) + 3;
    char * path = sotto_malloc(NULL, *size, 1);
    if (path == NULL)
        print_last_error();
    else
        snprintf(path, *size, "%s%s%.*s.%s", folder != NULL ? folder : "", folder != NULL ? "/" : "", (int)n, base,
                 extension);
    return path;
}

/* ---- the plan ---- */

static bool complain(const char * what) {
    fprintf(stderr, "sotto transcribe: %s\ntry: sotto help transcribe\n", what);
    return false;
}

static int count(unsigned formats) {
    int n = 0;
    for (; formats != 0; formats &= formats - 1)
        n++;
    return n;
}

static bool all_join(unsigned formats) {
    for (int i = 0; i < N_WRITERS; i++)
        if ((formats >> i & 1) != 0 && !WRITERS[i].joins)
            return false;
    return true;
}

static bool names_differ(const struct options * options) {
    for (int i = 0; i < options->n_args; i++) {
        size_t n, m;
        const char * first = stem(options->args[i], &n);
        for (int k = i + 1; k < options->n_args; k++) {
            const char * second = stem(options->args[k], &m);
            if (n != m || memcmp(first, second, n) != 0)
                continue;
            fprintf(stderr, "sotto transcribe: %s and %s would be written to the same file\n", options->args[i],
                    options->args[k]);
            return false;
        }
    }
    return true;
}

static bool same_extension(unsigned formats) {
    for (int i = 0; i < N_WRITERS; i++)
        for (int k = i + 1; k < N_WRITERS; k++)
            if ((formats >> i & 1) != 0 && (formats >> k & 1) != 0 &&
                strcmp(WRITERS[i].extension, WRITERS[k].extension) == 0)
                return true;
    return false;
}

bool outputs_plan(struct outputs * outputs, const struct options * options) {
    *outputs = (struct outputs){ .options = options, .formats = options->formats };
    if (outputs->formats == 0 && options->output_dir != NULL)
        outputs->formats = 1;
    bool several = options->n_args > 1;
    bool named = options->output != NULL && !is_stdin(options->output);
    unsigned formats = outputs->formats;
    outputs->lines = formats == 0 || options->as_whisper_cli;
    outputs->own = formats != 0 && (options->as_whisper_cli || options->output_dir != NULL || count(formats) > 1 ||
                                    (several && !all_join(formats)));
    if (!outputs->own)
        return true;
    if (options->output != NULL && options->output_dir != NULL)
        return complain("--output and --output-dir contradict one another");
    if (options->output != NULL && !named)
        return complain("standard output holds one format, and most of them for one file only");
    if (named && several)
        return complain("--output is one file; for several give --output-dir");
    if (same_extension(formats))
        return complain("json and json-full would be written to the same file");
    return options->as_whisper_cli || names_differ(options);
}

/* ---- writing ---- */

bool outputs_begin(struct outputs * outputs) {
    return out_open(&outputs->stream, outputs->own ? NULL : outputs->options->output);
}

static void forget(struct outputs * outputs, int i) {
    sotto_mfree(NULL, outputs->files[i].path, outputs->files[i].size, 1);
    outputs->files[i].path = NULL;
}

void outputs_discard(struct outputs * outputs) {
    for (int i = 0; i < N_WRITERS; i++) {
        if (outputs->files[i].path == NULL)
            continue;
        out_close(&outputs->files[i].out, false);
        forget(outputs, i);
    }
}

bool outputs_open(struct outputs * outputs, const char * name) {
    for (int i = 0; outputs->own && i < N_WRITERS; i++) {
        if ((outputs->formats >> i & 1) == 0)
            continue;
        char * path = file_name(outputs->options, name, WRITERS[i].extension, &outputs->files[i].size);
        outputs->files[i].path = path;
        if (path != NULL && out_open(&outputs->files[i].out, path))
            continue;
        forget(outputs, i);
        outputs_discard(outputs);
        return false;
    }
    return true;
}

bool outputs_write(struct outputs * outputs, const struct transcript * transcript) {
    bool well = true;
    for (int i = 0; i < N_WRITERS; i++) {
        if ((outputs->formats >> i & 1) == 0)
            continue;
        FILE * to = outputs->own ? outputs->files[i].out.file : outputs->stream.file;
        bool whole = WRITERS[i].write(to, transcript);
        if (!whole)
            print_last_error();
        well = well && whole;
        if (!outputs->own)
            continue;
        well = out_close(&outputs->files[i].out, whole) && well;
        forget(outputs, i);
    }
    return well && fflush(outputs->stream.file) == 0;
}

bool outputs_end(struct outputs * outputs, bool keep) { return out_close(&outputs->stream, keep); }
