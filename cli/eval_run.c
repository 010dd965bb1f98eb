/* SPDX-License-Identifier: MIT */
/* Recognising the clips of a list. A clip that cannot be read is reported, passed over and left out of all sums. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sotto/alloc.h"
#include "sotto/media.h"

#include "cli/eval_run.h"
#include "cli/transcribe_params.h"

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
static char * path_of(const struct eval_run * run, const char * audio, size_t * size) {
    const char * list = run->list;
    const char * root = run->options->audio_root;
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

static enum sotto_status load(const char * path, struct sotto_audio ** audio) {
    struct sotto_audio_params params = sotto_audio_default_params();
    params.rate = SOTTO_SAMPLE_RATE;
    params.abort = stop_asked;
    return sotto_audio_load(path, &params, audio);
}

static enum sotto_status load_clip(const struct eval_run * run, const struct eval_clip * clip,
                                   struct sotto_audio ** audio) {
    size_t size;
    char * path = path_of(run, clip->audio, &size);
    if (path == NULL)
        return SOTTO_E_MEMORY;
    enum sotto_status status = load(path, audio);
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

static enum sotto_status recognise(struct eval_run * run, struct eval_clip * clip, const struct sotto_audio * audio) {
    struct sotto_transcribe_params params = run->params;
    if (params.language == NULL)
        params.language = clip->language;
    params.abort = stop_asked;
    double start = now();
    enum sotto_status status = sotto_transcribe(run->recogniser.state, audio->samples, audio->n_samples, &params);
    clip->compute = now() - start;
    clip->seconds = (double)audio->n_samples / SOTTO_SAMPLE_RATE;
    clip->detected = is_auto(params.language);
    clip->found = clip->detected ? sotto_get_language(run->recogniser.state) : sotto_language_id(params.language);
    return status == SOTTO_OK ? keep_text(run->recogniser.state, clip) : status;
}

static enum sotto_status evaluate(struct eval_run * run, struct eval_clip * clip) {
    struct sotto_audio * audio = NULL;
    enum sotto_status status = load_clip(run, clip, &audio);
    if (status == SOTTO_OK)
        status = recognise(run, clip, audio);
    sotto_audio_free(audio);
    if (status != SOTTO_OK)
        return status;
    struct sotto_eval_params params = eval_params(&run->set, clip);
    status = sotto_eval_score(clip->text, strlen(clip->text), clip->heard, clip->heard_size, &params, &clip->score);
    clip->done = status == SOTTO_OK;
    return status;
}

/* ---- the run ---- */

static void forget(struct eval_clip * clip) {
    if (clip->heard != NULL)
        sotto_mfree(NULL, clip->heard, clip->heard_size + 1, 1);
    clip->heard = NULL;
    clip->heard_size = 0;
    clip->done = false;
    clip->score = (struct sotto_eval_score){ 0 };
}

enum exit_code eval_run_clips(struct eval_run * run) {
    size_t n_failed = 0;
    bool terminal = isatty(STDERR_FILENO);
    for (size_t i = 0; i < run->set.n_clips; i++) {
        struct eval_clip * clip = &run->set.clips[i];
        forget(clip);
        enum sotto_status status = evaluate(run, clip);
        if (signals_seen() != 0)
            return (enum exit_code)(EXIT_SIGNAL + signals_seen());
        if (terminal)
            fprintf(stderr, "\r%zu of %zu clips%s", i + 1, run->set.n_clips, i + 1 < run->set.n_clips ? "" : "\n");
        if (status == SOTTO_OK)
            continue;
        fprintf(stderr, "%ssotto: %s: %s\n", terminal ? "\n" : "", clip->audio, sotto_last_error_text());
        if (verdict(status) != EXIT_DONE)
            return verdict(status);
        n_failed++;
    }
    if (n_failed == run->set.n_clips)
        return EXIT_AUDIO;
    return n_failed > 0 ? EXIT_SOME : EXIT_DONE;
}

enum sotto_status eval_run_file(struct eval_run * run, const char * path) {
    struct sotto_audio * audio = NULL;
    struct sotto_transcribe_params params = run->params;
    params.abort = stop_asked;
    enum sotto_status status = load(path, &audio);
    if (status == SOTTO_OK)
        status = sotto_transcribe(run->recogniser.state, audio->samples, audio->n_samples, &params);
    sotto_audio_free(audio);
    return status;
}

enum exit_code eval_run_open(struct eval_run * run, const char * model, struct sotto_state_params params) {
    recogniser_close(&run->recogniser);
    return recogniser_open(&run->recogniser, model, params, run->options);
}

bool eval_run_init(struct eval_run * run, const char * command, const struct options * options) {
    *run = (struct eval_run){ .set = { .options = options }, .options = options };
    if (is_auto(options->language) || sotto_language_id(options->language) >= 0)
        return transcribe_params_make(options, &run->params);
    fprintf(stderr, "sotto %s: '%s' is no language; give a code such as en, or auto\n", command, options->language);
    return false;
}

bool eval_run_read(struct eval_run * run, const char * list) {
    run->list = list;
    return eval_read(&run->set, list);
}

void eval_run_free(struct eval_run * run) {
    transcribe_params_free(run->options, &run->params);
    eval_free(&run->set);
    recogniser_close(&run->recogniser);
}
