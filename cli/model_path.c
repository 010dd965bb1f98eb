/* SPDX-License-Identifier: MIT */
/* From the name of a model to its file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sotto/alloc.h"

#include "cli/cli.h"

static bool join(const char * a, const char * b, const char * c, const char * d, char ** path, size_t * size) {
    *size = strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1;
    *path = sotto_malloc(NULL, *size, 1);
    if (*path == NULL) {
        print_last_error();
        return false;
    }
    snprintf(*path, *size, "%s%s%s%s", a, b, c, d);
    return true;
}

bool model_home(const char * name, char ** path, size_t * size) {
    const char * folder = getenv("SOTTO_MODELS");
    if (folder != NULL && folder[0] != 0)
        return join(folder, "/", name, ".gguf", path, size);
    const char * home = getenv("HOME");
    if (home != NULL && home[0] != 0)
        return join(home, "/.cache/sotto/models/", name, ".gguf", path, size);
    fprintf(stderr, "sotto: neither SOTTO_MODELS nor HOME is set, so there is no folder of models\n");
    return false;
}

static bool is_path(const char * model) {
    size_t n = strlen(model);
    return strchr(model, '/') != NULL || (n > 5 && strcmp(model + n - 5, ".gguf") == 0);
}

bool model_path(const char * model, char ** path, size_t * size) {
    if (is_path(model))
        return join(model, "", "", "", path, size);
    if (!model_home(model, path, size))
        return false;
    if (access(*path, F_OK) == 0 || access(model, F_OK) != 0)
        return true;
    sotto_mfree(NULL, *path, *size, 1);
    return join(model, "", "", "", path, size);
}
