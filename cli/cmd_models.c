/* SPDX-License-Identifier: MIT */
/* sotto models path NAME */
#include <string.h>

#include "sotto/alloc.h"

#include "cli/cli.h"

enum exit_code command_models(const struct options * options) {
    const char * name = options->args[1];
    if (strcmp(options->args[0], "path") != 0) {
        fprintf(stderr, "sotto models: %s: no such word; there is: path NAME\n", options->args[0]);
        return EXIT_USAGE;
    }
    if (name[0] == 0 || name[0] == '.' || strchr(name, '/') != NULL) {
        fprintf(stderr, "sotto models: '%s' is no name of a model\n", name);
        return EXIT_USAGE;
    }
    char * path;
    size_t size;
    if (!model_home(name, &path, &size))
        return EXIT_MODEL;
    puts(path);
    sotto_mfree(NULL, path, size, 1);
    return EXIT_DONE;
}
