/* SPDX-License-Identifier: MIT */
/* Output of the commands: standard output, or a file that appears whole. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"

static bool failed(const char * path) {
    fprintf(stderr, "sotto: %s: %s\n", path, strerror(errno));
    return false;
}

static bool written(FILE * file) { return fflush(file) == 0 && ferror(file) == 0; }

bool out_open(struct out_file * out, const char * path) {
    *out = (struct out_file){ .path = path, .file = stdout };
    if (path == NULL || strcmp(path, "-") == 0) {
        out->path = "standard output";
        return true;
    }
    if (sotto_file_create(path, NULL, &out->whole) == SOTTO_OK && (out->file = sotto_file_stream(out->whole)) != NULL)
        return true;
    print_last_error();
    sotto_file_finish(out->whole, SOTTO_E_ABORTED);
    return false;
}

bool out_close(struct out_file * out, bool keep) {
    if (out->whole == NULL || !keep) {
        bool good = written(out->file) || failed(out->path);
        sotto_file_finish(out->whole, SOTTO_E_ABORTED);
        return good;
    }
    if (sotto_file_finish(out->whole, SOTTO_OK) == SOTTO_OK)
        return true;
    print_last_error();
    return false;
}
