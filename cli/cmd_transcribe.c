/* SPDX-License-Identifier: MIT */
/* sotto transcribe FILE...
 *
 * One model, one state, then file after file: a bad one is reported and passed over. Lines come out as segments are
 * found, all other forms when a file is done, or interrupted. */
#include <string.h>

#include "sotto/media.h"

#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/recogniser.h"
#include "cli/transcribe_params.h"

struct job {
    const struct options * options;
    struct recogniser recogniser;
    struct sotto_audio_params audio;
    struct sotto_raw_format raw;
    struct sotto_transcribe_params params;
    struct outputs outputs;
    struct progress progress;
    int n_done, n_unread; /* files; of those that failed, the ones whose sound could not be had */
    enum exit_code worst; /* EXIT_DONE, or a failure that ends the run */
};

/* ---- while a file is heard ---- */

static void put_segment(FILE * to, const struct sotto_segment * segment) {
    size_t size = segment->text_size;
    const char * text = trimmed(segment->text, &size);
    putc('[', to);
    put_stamp(to, segment->t0, '.');
    fputs(" --> ", to);
    put_stamp(to, segment->t1, '.');
    fputs("]  ", to);
    put_line(to, text, size);
    putc('\n', to);
}

static void new_segments(struct sotto_state * state, int n_new, void * user_data) {
    struct job * job = user_data;
    progress_clear(&job->progress);
    int n = sotto_n_segments(state);
    for (int i = n - n_new; i < n; i++)
        put_segment(job->outputs.stream.file, sotto_get_segment(state, i));
    fflush(job->outputs.stream.file);
}

static void show_progress(struct sotto_state * state, int percent, void * user_data) {
    struct job * job = user_data;
    (void)state;
    progress_show(&job->progress, percent);
}

static bool stop_asked(void * data) {
    (void)data;
    return signals_seen() != 0;
}

/* ---- one file ---- */

static size_t read_stdin(void * user_data, void * dst, size_t n) {
    (void)user_data;
    size_t got = fread(dst, 1, n, stdin);
    return got == 0 && ferror(stdin) ? SIZE_MAX : got;
}

static enum sotto_status load(const struct job * job, const char * name, struct sotto_audio ** audio) {
    if (strcmp(name, "-") == 0)
        return sotto_audio_load_callback(read_stdin, NULL, "standard input", &job->audio, audio);
    return sotto_audio_load(name, &job->audio, audio);
}

static double seconds_to_hear(const struct job * job, double seconds) {
    seconds -= (double)job->params.offset / 100;
    double most = (double)job->params.duration / 100;
    return most > 0 && most < seconds ? most : seconds;
}

static enum sotto_status recognise(struct job * job, const char * name, const struct sotto_audio * audio) {
    double seconds = (double)audio->n_samples / audio->rate;
    progress_begin(&job->progress, seconds_to_hear(job, seconds));
    enum sotto_status status = sotto_transcribe(job->recogniser.state, audio->samples, audio->n_samples, &job->params);
    progress_clear(&job->progress);
    if (status != SOTTO_OK && status != SOTTO_E_ABORTED)
        return status;
    struct transcript transcript = { .state = job->recogniser.state,
                                     .options = job->options,
                                     .name = name,
                                     .model = job->recogniser.path,
                                     .seconds = seconds };
    if (!outputs_write(&job->outputs, &transcript))
        job->worst = EXIT_OUTPUT;
    return status;
}

static void failed(struct job * job, const char * name, enum sotto_status status, bool unread) {
    if (signals_seen() != 0) {
        job->worst = (enum exit_code)(EXIT_SIGNAL + signals_seen());
        return;
    }
    job->n_unread += unread;
    job->worst = verdict(status);
    fprintf(stderr, "sotto: %s: %s\n", name, sotto_last_error_text());
}

static void transcribe_file(struct job * job, const char * name) {
    if (!outputs_open(&job->outputs, name)) {
        job->worst = EXIT_OUTPUT;
        return;
    }
    struct sotto_audio * audio = NULL;
    enum sotto_status status = load(job, name, &audio);
    bool unread = status != SOTTO_OK;
    if (!unread)
        status = recognise(job, name, audio);
    sotto_audio_free(audio);
    outputs_discard(&job->outputs);
    if (job->worst == EXIT_DONE && status == SOTTO_OK)
        job->n_done++;
    else if (job->worst == EXIT_DONE)
        failed(job, name, status, unread);
}

/* ---- the run ---- */

static enum exit_code transcribe_files(struct job * job) {
    int n = job->options->n_args;
    FILE * stream = job->outputs.stream.file;
    for (int i = 0; i < n && job->worst == EXIT_DONE && ferror(stream) == 0; i++)
        transcribe_file(job, job->options->args[i]);
    if (job->worst != EXIT_DONE)
        return job->worst;
    if (job->n_done == n || ferror(stream) != 0)
        return EXIT_DONE;
    return job->n_done == 0 && job->n_unread == n ? EXIT_AUDIO : EXIT_SOME;
}

static enum exit_code run(struct job * job) {
    enum exit_code code =
        recogniser_open(&job->recogniser, job->options->model, sotto_state_default_params(), job->options);
    if (code != EXIT_DONE)
        return code;
    if (!outputs_begin(&job->outputs))
        return EXIT_OUTPUT;
    code = transcribe_files(job);
    bool keep = code == EXIT_DONE || code == EXIT_SOME || code > EXIT_SIGNAL;
    return outputs_end(&job->outputs, keep) || code > EXIT_SIGNAL ? code : EXIT_OUTPUT;
}

/* How sound is to be loaded; false if --raw makes no sense. */
static bool set_audio(struct job * job) {
    job->audio = sotto_audio_default_params();
    job->audio.rate = SOTTO_SAMPLE_RATE;
    job->audio.abort = stop_asked;
    if (job->options->raw == NULL)
        return true;
    job->audio.raw = &job->raw;
    if (sotto_raw_format_parse(job->options->raw, &job->raw) == SOTTO_OK)
        return true;
    fprintf(stderr, "sotto transcribe: %s\n", sotto_last_error_text());
    return false;
}

static bool set_language(const char * language) {
    if (language == NULL || language[0] == 0 || strcmp(language, "auto") == 0 || sotto_language_id(language) >= 0)
        return true;
    fprintf(stderr, "sotto transcribe: '%s' is no language; give a code such as en, or auto\n", language);
    return false;
}

static void set_callbacks(struct job * job) {
    progress_init(&job->progress, !job->options->no_progress);
    job->params.abort = stop_asked;
    job->params.progress = show_progress;
    job->params.progress_user_data = job;
    if (job->outputs.lines) {
        job->params.new_segment = new_segments;
        job->params.new_segment_user_data = job;
    }
}

enum exit_code command_transcribe(const struct options * options) {
    signals_watch();
    struct job job = { .options = options };
    enum exit_code code = EXIT_USAGE;
    if (set_language(options->language) && set_audio(&job) && outputs_plan(&job.outputs, options) &&
        transcribe_params_make(options, &job.params)) {
        set_callbacks(&job);
        code = run(&job);
    }
    transcribe_params_free(options, &job.params);
    recogniser_close(&job.recogniser);
    return code;
}
