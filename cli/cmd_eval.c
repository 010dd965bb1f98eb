/* SPDX-License-Identifier: MIT */
/* sotto eval TSV
 *
 * Recognise every clip of a list and count what was heard wrong. A clip that cannot be read is reported, passed over and
 * left out of all sums. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sotto/alloc.h"
#include "sotto/media.h"
#include "sotto/speech.h"

#include "cli/eval_set.h"
#include "cli/transcribe_params.h"

struct job {
    struct eval_set set;
    const struct options * options;
    struct sotto_transcribe_params params;
    struct sotto_model * model;
    struct sotto_state * state;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool stop_asked(void * data) {
    (void)data;
    return signals_seen() != 0;
}

static bool is_auto(const char * language) {
    return language == NULL || language[0] == 0 || strcmp(language, "auto") == 0;
}

/* ---- one clip ---- */

/* Where a clip lies: its path if that is absolute, else below the root, which by default is the list's folder. */
static char * path_of(const struct job * job, const char * audio, size_t * size) {
    const char * list = job->options->args[0];
    const char * root = job->options->audio_root;
    const char * slash = strrchr(list, '/');
    size_t n = root != NULL ? strlen(root) : slash != NULL ? (size_t)(slash - list) : 0;
    if (root == NULL && slash == list)
        n = 1; /* the root of all */
    bool below = audio[0] != '/' && n > 0;
    *size = (below ? n + 1 : 0) + strlen(audio) + 1;
    char * path = sotto_malloc(NULL, *size, 1);
    if (path == NULL)
        return NULL;
    if (below)
        snprintf(path, *size, "%.*s/%s", (int)n, root != NULL ? root : list, audio);
    else
        memcpy(path, audio, *size);
    return path;
}

static enum sotto_status load(const struct job * job, const struct eval_clip * clip, struct sotto_audio ** audio) {
    struct sotto_audio_params params = sotto_audio_default_params();
    params.rate = SOTTO_SAMPLE_RATE;
    size_t size;
    char * path = path_of(job, clip->audio, &size);
    if (path == NULL)
        return SOTTO_E_MEMORY;
    enum sotto_status status = sotto_audio_load(path, &params, audio);
    sotto_mfree(NULL, path, size, 1);
    return status;
}

static enum sotto_status keep_text(const struct sotto_state * state, struct eval_clip * clip) {
    size_t size = 0;
    for (int i = 0; i < sotto_n_segments(state); i++)
        size += sotto_get_segment(state, i)->text_size;
    clip->heard = sotto_malloc(NULL, size + 1, 1);
    if (clip->heard == NULL)
        return SOTTO_E_MEMORY;
    clip->heard_size = size;
    char * to = clip->heard;
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(state, i);
        memcpy(to, segment->text, segment->text_size);
        to += segment->text_size;
    }
    *to = 0;
    return SOTTO_OK;
}

static enum sotto_status recognise(struct job * job, struct eval_clip * clip, const struct sotto_audio * audio) {
    struct sotto_transcribe_params params = job->params;
    if (params.language == NULL)
        params.language = clip->language;
    params.abort = stop_asked;
    double start = now();
    enum sotto_status status = sotto_transcribe(job->state, audio->samples, audio->n_samples, &params);
    clip->compute = now() - start;
    clip->seconds = (double)audio->n_samples / SOTTO_SAMPLE_RATE;
    clip->detected = is_auto(params.language);
    clip->found = clip->detected ? sotto_get_language(job->state) : sotto_language_id(params.language);
    return status == SOTTO_OK ? keep_text(job->state, clip) : status;
}

static enum sotto_status evaluate(struct job * job, struct eval_clip * clip) {
    struct sotto_audio * audio = NULL;
    enum sotto_status status = load(job, clip, &audio);
    if (status == SOTTO_OK)
        status = recognise(job, clip, audio);
    sotto_audio_free(audio);
    if (status != SOTTO_OK)
        return status;
    struct sotto_eval_params params = eval_params(&job->set, clip);
    status = sotto_eval_score(clip->text, strlen(clip->text), clip->heard, clip->heard_size, &params, &clip->score);
    clip->done = status == SOTTO_OK;
    return status;
}

/* ---- the run ---- */

static enum exit_code evaluate_all(struct job * job) {
    size_t n_failed = 0;
    bool terminal = isatty(STDERR_FILENO);
    for (size_t i = 0; i < job->set.n_clips; i++) {
        struct eval_clip * clip = &job->set.clips[i];
        enum sotto_status status = evaluate(job, clip);
        if (signals_seen() != 0)
            return (enum exit_code)(EXIT_SIGNAL + signals_seen());
        if (terminal)
            fprintf(stderr, "\r%zu of %zu clips%s", i + 1, job->set.n_clips, i + 1 < job->set.n_clips ? "" : "\n");
        if (status == SOTTO_OK)
            continue;
        fprintf(stderr, "%ssotto: %s: %s\n", terminal ? "\n" : "", clip->audio, sotto_last_error_text());
        if (exit_code_of(status, EXIT_DONE) != EXIT_DONE)
            return exit_code_of(status, EXIT_DONE);
        n_failed++;
    }
    if (n_failed == job->set.n_clips)
        return EXIT_AUDIO;
    return n_failed > 0 ? EXIT_SOME : EXIT_DONE;
}

static enum exit_code open_model(struct job * job) {
    char * path;
    size_t size;
    if (!model_path(job->options->model != NULL ? job->options->model : "base", &path, &size))
        return EXIT_MODEL;
    struct sotto_state_params params = sotto_state_default_params();
    params.n_threads = job->options->threads;
    enum sotto_status status = sotto_model_open(path, NULL, &job->model);
    if (status == SOTTO_OK)
        status = sotto_state_new(job->model, &params, &job->state);
    if (status != SOTTO_OK)
        print_last_error();
    sotto_mfree(NULL, path, size, 1);
    return status == SOTTO_OK ? EXIT_DONE : exit_code_of(status, EXIT_MODEL);
}

static enum exit_code run(struct job * job) {
    const struct options * options = job->options;
    enum exit_code code = open_model(job);
    if (code != EXIT_DONE)
        return code;
    struct out_file out;
    if (!out_open(&out, options->output))
        return EXIT_OUTPUT;
    bool listed = eval_read(&job->set, options->args[0]) &&
                  (options->against == NULL || eval_read_other(&job->set, options->against));
    code = listed ? evaluate_all(job) : EXIT_AUDIO;
    bool keep = code == EXIT_DONE || code == EXIT_SOME;
    bool told = !keep || (eval_score_other(&job->set) &&
                          (options->json ? eval_report_json(&job->set, out.file) : eval_report(&job->set, out.file)));
    if (!told)
        code = EXIT_MEMORY;
    keep = keep && told;
    return out_close(&out, keep) ? code : EXIT_OUTPUT;
}

enum exit_code command_eval(const struct options * options) {
    signals_watch();
    struct job job = { .set = { .options = options }, .options = options };
    if (!is_auto(options->language) && sotto_language_id(options->language) < 0) {
        fprintf(stderr, "sotto eval: '%s' is no language; give a code such as en, or auto\n", options->language);
        return EXIT_USAGE;
    }
    enum exit_code code = transcribe_params_make(options, &job.params) ? run(&job) : EXIT_USAGE;
    transcribe_params_free(options, &job.params);
    eval_free(&job.set);
    sotto_state_free(job.state);
    sotto_model_free(job.model);
    return code;
}
