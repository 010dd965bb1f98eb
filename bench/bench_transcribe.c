/* SPDX-License-Identifier: MIT */
/* Whole transcriptions, timed: jfk and the five LibriVox clips joined (36 s), or any 16 kHz files.
 *
 *     bench_transcribe [--model FILE.gguf] [--threads N] [--reps N] [--json] [FILE.wav...]
 *
 * Prints medians: opening the model, one encoder window, one decoder step, the whole; and the peak of memory that the
 * process held. One model per process, so that the peak is that model's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "sotto/media.h"
#include "sotto/speech.h"

enum { MAX_REPS = 100, MAX_FILES = 64, N_STEPS = 64 };

#define CLIPS "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-"

struct options {
    const char * model;
    int threads, reps;
    bool json;
    const char * files[MAX_FILES];
    int n_files;
};

struct sound {
    float * samples;
    size_t n;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int compare(const void * a, const void * b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double * values, int n) {
    qsort(values, (size_t)n, sizeof(*values), compare);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

static void print_cpu(void) {
    char line[256] = "unknown CPU";
    FILE * file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL && strncmp(line, "model name", 10) != 0) {}
    if (file != NULL)
        fclose(file);
    const char * name = strchr(line, ':');
    printf("CPU%s", name != NULL ? name : ": unknown\n");
}

/* A path below a folder named by an environment variable, or below ~/.cache/sotto. */
static const char * cached(const char * variable, const char * folder, const char * name) {
    static char paths[4][1024];
    static int next;
    char * path = paths[next++ % 4];
    const char * base = getenv(variable);
    if (base != NULL && base[0] != '\0')
        snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
    else
        snprintf(path, sizeof(paths[0]), "%s/.cache/sotto/%s/%s", getenv("HOME") ? getenv("HOME") : ".", folder, name);
    return path;
}

static bool append(struct sound * sound, const char * path) {
    struct sotto_audio * audio = NULL;
    if (sotto_audio_load(path, NULL, &audio) != SOTTO_OK) {
        fprintf(stderr, "%s\n", sotto_last_error_text());
        return false;
    }
    bool ok = audio->rate == SOTTO_SAMPLE_RATE;
    float * grown = ok ? realloc(sound->samples, (sound->n + audio->n_samples) * sizeof(float)) : NULL;
    if (grown != NULL) {
        memcpy(grown + sound->n, audio->samples, audio->n_samples * sizeof(float));
        sound->samples = grown;
        sound->n += audio->n_samples;
    } else {
        fprintf(stderr, "%s: %s\n", path, ok ? "out of memory" : "not at 16 kHz");
    }
    sotto_audio_free(audio);
    return grown != NULL;
}

static bool load_sound(const struct options * o, struct sound * sound) {
    static const char * clips[] = { CLIPS "0870.wav", CLIPS "0880.wav", CLIPS "0890.wav", CLIPS "0920.wav",
                                    CLIPS "0930.wav" };
    if (o->n_files > 0) {
        for (int i = 0; i < o->n_files; i++)
            if (!append(sound, o->files[i]))
                return false;
        return true;
    }
    bool ok = append(sound, cached("SOTTO_AUDIO", "audio", "jfk.wav"));
    for (size_t i = 0; ok && i < sizeof(clips) / sizeof(*clips); i++)
        ok = append(sound, clips[i]);
    return ok;
}

static bool parse(int argc, char ** argv, struct options * o) {
    *o = (struct options){ .model = cached("SOTTO_MODELS", "models", "base.gguf"), .threads = 2, .reps = 5 };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (strcmp(argv[i], "--model") == 0 && i + 1 < argc)
            o->model = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o->threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--reps") == 0 && i + 1 < argc)
            o->reps = atoi(argv[++i]);
        else if (argv[i][0] != '-' && o->n_files < MAX_FILES)
            o->files[o->n_files++] = argv[i];
        else
            return false;
    }
    return o->threads > 0 && o->reps > 0 && o->reps <= MAX_REPS;
}

struct times {
    double open, encode[MAX_REPS], step[MAX_REPS], whole[MAX_REPS];
    double cpu[MAX_REPS]; /* processor seconds of the whole, all threads */
};

static bool measure(struct sotto_state * state, const struct options * o, const struct sound * sound,
                    struct times * times) {
    const int32_t token = sotto_token_special(sotto_state_model(state), SOTTO_TOKEN_SOT);
    struct sotto_transcribe_params params = sotto_transcribe_default_params();
    params.language = "en";
    params.temperature_inc = 0;
    bool ok = sotto_pcm_to_mel(state, sound->samples, sound->n, 0, SOTTO_PAD_ZERO) == SOTTO_OK;
    for (int i = 0; ok && i < o->reps; i++) {
        double t = now();
        ok = sotto_encode(state) == SOTTO_OK;
        times->encode[i] = now() - t;
        t = now();
        for (int k = 0; ok && k < N_STEPS; k++)
            ok = sotto_decode(state, &token, 1, k) == SOTTO_OK;
        times->step[i] = (now() - t) / N_STEPS;
        t = now();
        const double cpu = cpu_seconds();
        ok = ok && sotto_transcribe(state, sound->samples, sound->n, &params) == SOTTO_OK;
        times->cpu[i] = cpu_seconds() - cpu;
        times->whole[i] = now() - t;
        ok = ok && sotto_pcm_to_mel(state, sound->samples, sound->n, 0, SOTTO_PAD_ZERO) == SOTTO_OK;
    }
    return ok;
}

static void print_json_text(const struct sotto_state * state) {
    putchar('"');
    for (int i = 0; i < sotto_n_segments(state); i++)
        for (const char * p = sotto_get_segment(state, i)->text; *p != '\0'; p++) {
            if (*p == '"' || *p == '\\')
                putchar('\\');
            putchar((unsigned char)*p < ' ' ? ' ' : *p);
        }
    putchar('"');
}

static void report(const struct options * o, const struct sotto_state * state, const struct sound * sound,
                   struct times * t) {
    const double seconds = (double)sound->n / SOTTO_SAMPLE_RATE, whole = median(t->whole, o->reps);
    const double encode = median(t->encode, o->reps), step = median(t->step, o->reps);
    int tokens = 0;
    for (int i = 0; i < sotto_n_windows(state); i++)
        tokens += sotto_get_window(state, i)->n_tokens;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double peak = (double)usage.ru_maxrss / 1024.0;
    const char * type = sotto_type_name(sotto_model_weight_type(sotto_state_model(state)));
    const char * level = sotto_cpu_level_name(sotto_cpu_get_level());
    if (o->json) {
        printf("{\"weights\":\"%s\",\"level\":\"%s\",\"threads\":%d,\"reps\":%d,\"audio_s\":%.2f,\"windows\":%d,"
               "\"tokens\":%d,\"open_s\":%.4f,\"encode_s\":%.4f,\"step_s\":%.6f,\"transcribe_s\":%.4f,"
               "\"cpu_s\":%.4f,\"peak_mib\":%.1f,\"text\":",
               type, level, o->threads, o->reps, seconds, sotto_n_windows(state), tokens, t->open, encode, step, whole,
               median(t->cpu, o->reps), peak);
        print_json_text(state);
        puts("}");
        return;
    }
    print_cpu();
    printf("%s weights, level %s, %d threads, median of %d\n", type, level, o->threads, o->reps);
    printf("  open the model     %8.1f ms\n", 1e3 * t->open);
    printf("  encode a window    %8.1f ms\n", 1e3 * encode);
    printf("  decode a token     %8.2f ms\n", 1e3 * step);
    printf("  transcribe %5.1f s %8.1f ms  (%.1f times real time; %d windows, %d tokens)\n", seconds, 1e3 * whole,
           seconds / whole, sotto_n_windows(state), tokens);
    printf("  peak memory        %8.1f MiB\n", peak);
}

int main(int argc, char ** argv) {
    struct options o;
    struct sound sound = { NULL, 0 };
    static struct times times;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: bench_transcribe [--model FILE.gguf] [--threads N] [--reps 1..%d] [--json] "
                "[FILE.wav...]\n",
                MAX_REPS);
        return 2;
    }
    if (!load_sound(&o, &sound))
        return 1;
    struct sotto_model * model = NULL;
    struct sotto_state * state = NULL;
    struct sotto_state_params params = sotto_state_default_params();
    params.n_threads = o.threads;
    const double start = now();
    bool ok = sotto_model_open(o.model, NULL, &model) == SOTTO_OK;
    times.open = now() - start;
    ok = ok && sotto_state_new(model, &params, &state) == SOTTO_OK && measure(state, &o, &sound, &times);
    if (ok)
        report(&o, state, &sound, &times);
    else
        fprintf(stderr, "%s\n", sotto_last_error_text());
    sotto_state_free(state);
    sotto_model_free(model);
    free(sound.samples);
    return ok ? 0 : 1;
}
