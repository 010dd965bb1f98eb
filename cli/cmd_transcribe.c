/* SPDX-License-Identifier: MIT */
/* sotto transcribe FILE...
 *
 * One model, one state, then file after file: a bad one is reported and passed over. Lines come out as segments are
 * found; JSON when a file is done. */
#include <string.h>
#include <unistd.h>

#include "sotto/alloc.h"
#include "sotto/media.h"
#include "sotto/speech.h"

#include "cli/cli.h"

enum format { LINES, TXT, JSONL };

struct job {
    const struct options * options;
    enum format format;
    struct sotto_model * model;
    struct sotto_state * state;
    struct sotto_audio_params audio;
    struct sotto_raw_format raw;
    struct out_file out;
    int n_done, n_unread; /* files; of those that failed, the ones whose sound could not be had */
    enum exit_code worst; /* EXIT_DONE, or a failure that ends the run */
};

/* ---- writing ---- */

static const char * trim(const char * text, size_t * size) {
    while (*size > 0 && (text[0] == ' ' || text[0] == '\t')) {
        text++;
        (*size)--;
    }
    return text;
}

static void put_segment(const struct job * job, const struct sotto_segment * segment) {
    FILE * to = job->out.file;
    size_t size = segment->text_size;
    const char * text = trim(segment->text, &size);
    if (job->format == LINES) {
        putc('[', to);
        put_stamp(to, segment->t0);
        fputs(" --> ", to);
        put_stamp(to, segment->t1);
        fputs("]  ", to);
    }
    put_utf8(to, text, size);
    putc('\n', to);
}

static void new_segments(struct sotto_state * state, int n_new, void * user_data) {
    const struct job * job = user_data;
    int n = sotto_n_segments(state);
    for (int i = n - n_new; i < n; i++)
        put_segment(job, sotto_get_segment(state, i));
    fflush(job->out.file);
}

static void put_seconds(FILE * to, int64_t cs) { fprintf(to, "%lld.%02d", (long long)(cs / 100), (int)(cs % 100)); }

/* All segments' text in one piece, without the outer blanks; one character may lie in two segments. */
static bool put_text(FILE * to, const struct sotto_state * state) {
    size_t total = 0;
    for (int i = 0; i < sotto_n_segments(state); i++)
        total += sotto_get_segment(state, i)->text_size;
    char * all = sotto_malloc(NULL, total + 1, 1);
    if (all == NULL)
        return false;
    size_t at = 0;
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(state, i);
        memcpy(all + at, segment->text, segment->text_size);
        at += segment->text_size;
    }
    size_t size = total;
    const char * text = trim(all, &size);
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    put_json_string(to, text, size);
    sotto_mfree(NULL, all, total + 1, 1);
    return true;
}

static bool put_object(const struct job * job, const char * name, const struct sotto_audio * audio) {
    FILE * to = job->out.file;
    const struct sotto_state * state = job->state;
    const char * language = sotto_language_code(sotto_get_language(state));
    fputs("{\"file\":", to);
    put_json_string(to, name, strlen(name));
    fputs(",\"language\":", to);
    if (language != NULL)
        put_json_string(to, language, strlen(language));
    else
        fputs("null", to);
    fprintf(to, ",\"duration\":%.3f,\"text\":", (double)audio->n_samples / audio->rate);
    bool whole = put_text(to, state);
    fputs(",\"segments\":[", to);
    for (int i = 0; i < sotto_n_segments(state); i++) {
        const struct sotto_segment * segment = sotto_get_segment(state, i);
        fputs(i > 0 ? ",{\"start\":" : "{\"start\":", to);
        put_seconds(to, segment->t0);
        fputs(",\"end\":", to);
        put_seconds(to, segment->t1);
        fputs(",\"text\":", to);
        put_json_string(to, segment->text, segment->text_size);
        putc('}', to);
    }
    fputs("]}\n", to);
    fflush(to);
    return whole;
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

static bool stop_asked(void * data) {
    (void)data;
    return signals_seen() != 0;
}

static enum sotto_status recognise(struct job * job, const char * name, const struct sotto_audio * audio) {
    struct sotto_transcribe_params params = sotto_transcribe_default_params();
    params.language = job->options->language;
    params.abort = stop_asked;
    if (job->format != JSONL) {
        params.new_segment = new_segments;
        params.new_segment_user_data = job;
    }
    enum sotto_status status = sotto_transcribe(job->state, audio->samples, audio->n_samples, &params);
    if (status == SOTTO_OK && job->format == JSONL && !put_object(job, name, audio))
        status = SOTTO_E_MEMORY;
    return status;
}

/* What a failure means for the run: only some end it. */
static enum exit_code verdict(enum sotto_status status) {
    if (status == SOTTO_E_ABORTED && signals_seen() != 0)
        return (enum exit_code)(EXIT_SIGNAL + signals_seen());
    if (status == SOTTO_E_LANGUAGE)
        return EXIT_USAGE;
    return exit_code_of(status, EXIT_DONE);
}

static void transcribe_file(struct job * job, const char * name) {
    struct sotto_audio * audio = NULL;
    enum sotto_status status = load(job, name, &audio);
    bool unread = status != SOTTO_OK;
    if (!unread)
        status = recognise(job, name, audio);
    sotto_audio_free(audio);
    if (status == SOTTO_OK) {
        job->n_done++;
        return;
    }
    job->n_unread += unread;
    job->worst = verdict(status);
    if (status != SOTTO_E_ABORTED)
        fprintf(stderr, "sotto: %s: %s\n", name, sotto_last_error_text());
}

/* ---- the run ---- */

static enum exit_code transcribe_files(struct job * job) {
    int n = job->options->n_args;
    for (int i = 0; i < n && job->worst == EXIT_DONE && ferror(job->out.file) == 0; i++)
        transcribe_file(job, job->options->args[i]);
    if (job->worst != EXIT_DONE)
        return job->worst;
    if (job->n_done == n || ferror(job->out.file) != 0)
        return EXIT_DONE;
    return job->n_done == 0 && job->n_unread == n ? EXIT_AUDIO : EXIT_SOME;
}

static enum exit_code open_model(struct job * job) {
    char * path;
    size_t size;
    const char * name = job->options->model != NULL ? job->options->model : "base";
    if (!model_path(name, &path, &size))
        return EXIT_MODEL;
    struct sotto_state_params params = sotto_state_default_params();
    params.n_threads = job->options->threads;
    enum sotto_status status = sotto_model_open(path, NULL, &job->model);
    if (status == SOTTO_OK)
        status = sotto_state_new(job->model, &params, &job->state);
    if (status != SOTTO_OK)
        print_last_error();
    if (job->options->model == NULL && access(path, F_OK) != 0)
        fprintf(stderr, "sotto: the default model is not there yet; `make demo` in sotto's source fetches it\n");
    sotto_mfree(NULL, path, size, 1);
    return status == SOTTO_OK ? EXIT_DONE : exit_code_of(status, EXIT_MODEL);
}

static enum exit_code run(struct job * job) {
    enum exit_code code = open_model(job);
    if (code != EXIT_DONE)
        return code;
    if (!out_open(&job->out, job->options->output))
        return EXIT_OUTPUT;
    code = transcribe_files(job);
    bool keep = code == EXIT_DONE || code == EXIT_SOME;
    return out_close(&job->out, keep) ? code : EXIT_OUTPUT;
}

/* How sound is to be loaded; false if --raw makes no sense. */
static bool set_audio(struct job * job) {
    job->audio = sotto_audio_default_params();
    job->audio.rate = SOTTO_SAMPLE_RATE;
    if (job->options->raw == NULL)
        return true;
    job->audio.raw = &job->raw;
    return sotto_raw_format_parse(job->options->raw, &job->raw) == SOTTO_OK;
}

static bool is_language(const char * language) {
    return language == NULL || language[0] == 0 || strcmp(language, "auto") == 0 || sotto_language_id(language) >= 0;
}

enum exit_code command_transcribe(const struct options * options) {
    signals_watch();
    struct job job = { .options = options };
    if (options->format != NULL)
        job.format = strcmp(options->format, "jsonl") == 0 ? JSONL : TXT;
    if (!is_language(options->language)) {
        fprintf(stderr, "sotto transcribe: '%s' is no language; give a code such as en, or auto\n", options->language);
        return EXIT_USAGE;
    }
    if (!set_audio(&job)) {
        fprintf(stderr, "sotto transcribe: %s\n", sotto_last_error_text());
        return EXIT_USAGE;
    }
    enum exit_code code = run(&job);
    sotto_state_free(job.state);
    sotto_model_free(job.model);
    return code;
}
