/* SPDX-License-Identifier: MIT */
/* sotto imatrix MODEL AUDIO|LIST.tsv... -o FILE
 *
 * Run the model over recordings with a callback around its nodes that sums up what each weight is multiplied with. */
#include <string.h>

#include "sotto/imatrix.h"

#include "cli/eval_run.h"

struct job {
    struct eval_run run;
    struct sotto_imatrix * imatrix;
    size_t n_failed, n_done;
};

static bool is_list(const char * path) {
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".tsv") == 0;
}

static enum exit_code hear_list(struct job * job, const char * list) {
    eval_free(&job->run.set);
    job->run.set = (struct eval_set){ .options = job->run.options };
    if (!eval_run_read(&job->run, list)) {
        job->n_failed++;
        return EXIT_DONE;
    }
    enum exit_code code = eval_run_clips(&job->run);
    job->n_done += code == EXIT_DONE || code == EXIT_SOME;
    job->n_failed += code == EXIT_SOME || code == EXIT_AUDIO;
    return code == EXIT_SOME || code == EXIT_AUDIO ? EXIT_DONE : code;
}

static enum exit_code hear_file(struct job * job, const char * path) {
    enum sotto_status status = eval_run_file(&job->run, path);
    if (signals_seen() != 0)
        return (enum exit_code)(EXIT_SIGNAL + signals_seen());
    *(status == SOTTO_OK ? &job->n_done : &job->n_failed) += 1;
    if (status == SOTTO_OK)
        return EXIT_DONE;
    fprintf(stderr, "sotto: %s: %s\n", path, sotto_last_error_text());
    return exit_code_of(status, EXIT_DONE);
}

static enum exit_code hear_all(struct job * job, char ** paths, int n) {
    enum exit_code code = EXIT_DONE;
    for (int i = 0; i < n && code == EXIT_DONE; i++)
        code = is_list(paths[i]) ? hear_list(job, paths[i]) : hear_file(job, paths[i]);
    if (code != EXIT_DONE || job->n_failed == 0)
        return code;
    return job->n_done > 0 ? EXIT_SOME : EXIT_AUDIO;
}

static enum exit_code write_file(const struct job * job, const char * path, char ** names, int n) {
    enum sotto_status status = sotto_imatrix_write(job->imatrix, path, (const char * const *)names, (size_t)n);
    if (status == SOTTO_OK)
        return EXIT_DONE;
    print_last_error();
    return status == SOTTO_E_STATE ? EXIT_AUDIO : exit_code_of(status, EXIT_OUTPUT);
}

static enum exit_code gather(struct job * job) {
    const struct options * options = job->run.options;
    job->imatrix = sotto_imatrix_new(NULL);
    if (job->imatrix == NULL) {
        print_last_error();
        return EXIT_MEMORY;
    }
    struct sotto_state_params params = sotto_state_default_params();
    params.eval_callback = sotto_imatrix_collect;
    params.eval_user_data = job->imatrix;
    enum exit_code code = eval_run_open(&job->run, options->args[0], params);
    if (code == EXIT_DONE)
        code = hear_all(job, options->args + 1, options->n_args - 1);
    if (code != EXIT_DONE && code != EXIT_SOME)
        return code;
    const char * output = options->output != NULL ? options->output : "imatrix.gguf";
    enum exit_code written = write_file(job, output, options->args + 1, options->n_args - 1);
    return written != EXIT_DONE ? written : code;
}

enum exit_code command_imatrix(const struct options * options) {
    signals_watch();
    struct job job = { .imatrix = NULL };
    enum exit_code code = eval_run_init(&job.run, "imatrix", options) ? gather(&job) : EXIT_USAGE;
    eval_run_free(&job.run);
    sotto_imatrix_free(job.imatrix);
    return code;
}
