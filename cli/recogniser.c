/* SPDX-License-Identifier: MIT */
#include "cli/recogniser.h"

#include <string.h>
#include <unistd.h>

#include "sotto/alloc.h"

static enum sotto_status open_model(struct recogniser * r, const struct sotto_state_params * params) {
    enum sotto_status status = sotto_model_open(r->path, NULL, &r->model);
    return status == SOTTO_OK ? sotto_state_new(r->model, params, &r->state) : status;
}

enum exit_code recogniser_open(struct recogniser * recogniser, const char * model, struct sotto_state_params params,
                               const struct options * options) {
    struct recogniser * r = recogniser;
    *r = (struct recogniser){ .path = NULL };
    if (!model_path(model != NULL ? model : "base", &r->path, &r->path_size))
        return EXIT_MODEL;
    params.n_threads = options->threads;
    if (options->compute != NULL && strcmp(options->compute, "f32") == 0)
        params.compute = SOTTO_COMPUTE_F32;
    signals_end_at_once(true);
    enum sotto_status status = open_model(r, &params);
    signals_end_at_once(false);
    if (status == SOTTO_OK)
        return EXIT_DONE;
    print_last_error();
    if (model == NULL && access(r->path, F_OK) != 0)
        fprintf(stderr, "sotto: the default model is not there yet; `make demo` in sotto's source fetches it\n");
    recogniser_close(r);
    return exit_code_of(status, EXIT_MODEL);
}

enum exit_code verdict(enum sotto_status status) {
    switch (status) {
    case SOTTO_E_PARAM:
    case SOTTO_E_LANGUAGE: return EXIT_USAGE;
    case SOTTO_E_REGEX: return EXIT_REGEX;
    default: return exit_code_of(status, EXIT_DONE);
    }
}

void recogniser_close(struct recogniser * recogniser) {
    sotto_state_free(recogniser->state);
    sotto_model_free(recogniser->model);
    sotto_mfree(NULL, recogniser->path, recogniser->path_size, 1);
    *recogniser = (struct recogniser){ .path = NULL };
}
