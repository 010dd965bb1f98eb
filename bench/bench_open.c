/* SPDX-License-Identifier: MIT */
/* Opening a model, timed from the start of a process: the program runs itself once for each opening.
 *
 *     bench_open [--reps N] [FILE.gguf...]
 *
 * Prints, for each file, the least and the median time from before the process was started to the open model, the peak of
 * memory that the process held, and how far that is above the file's size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sotto/speech.h"

enum { MAX_REPS = 1000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct opening {
    double end; /* by the clock that all processes share */
    long peak;  /* KiB */
};

/* The started process: open, tell when that was done and what it took. */
static int open_once(const char * path) {
    struct sotto_model * model = NULL;
    struct rusage usage;
    if (sotto_model_open(path, NULL, &model) != SOTTO_OK) {
        fprintf(stderr, "bench_open: %s\n", sotto_last_error_text());
        return 1;
    }
    struct opening opening = { now(), 0 };
    getrusage(RUSAGE_SELF, &usage);
    opening.peak = usage.ru_maxrss;
    const bool told = write(STDOUT_FILENO, &opening, sizeof(opening)) == (ssize_t)sizeof(opening);
    sotto_model_free(model);
    return told ? 0 : 1;
}

/* Seconds from here to the open model, negative if it could not be opened. */
static double start_once(const char * program, const char * path, long * peak) {
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    const double begin = now();
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, "--once", path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    struct opening opening = { 0, 0 };
    const bool told = child > 0 && read(ends[0], &opening, sizeof(opening)) == (ssize_t)sizeof(opening);
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    *peak = opening.peak > *peak ? opening.peak : *peak;
    return told ? opening.end - begin : -1;
}

static int compare(const void * a, const void * b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(const char * program, const char * path, int reps) {
    static double times[MAX_REPS];
    long peak = 0;
    struct stat st;
    if (stat(path, &st) != 0 || start_once(program, path, &peak) < 0) /* the first one fills the cache */
        return 1;
    peak = 0;
    for (int i = 0; i < reps; i++)
        times[i] = start_once(program, path, &peak);
    qsort(times, (size_t)reps, sizeof(times[0]), compare);
    const double mb = 1e-6 * 1024 * (double)peak;
    printf("%s: %.1f ms at best, %.1f ms median of %d; peak %.1f MB, file %.1f MB, %+.1f MB\n", path, 1e3 * times[0],
           1e3 * times[reps / 2], reps, mb, 1e-6 * (double)st.st_size, mb - 1e-6 * (double)st.st_size);
    return 0;
}

static const char * default_model(void) {
    static char path[1024];
    const char * models = getenv("SOTTO_MODELS");
    const char * home = getenv("HOME");
    if (models != NULL && models[0] != 0)
        snprintf(path, sizeof(path), "%s/base.gguf", models);
    else
        snprintf(path, sizeof(path), "%s/.cache/sotto/models/base.gguf", home != NULL ? home : ".");
    return path;
}

int main(int argc, char ** argv) {
    if (argc == 3 && strcmp(argv[1], "--once") == 0)
        return open_once(argv[2]);
    int reps = 20, first = 1, failed = 0;
    if (argc > 2 && strcmp(argv[1], "--reps") == 0) {
        reps = atoi(argv[2]);
        first = 3;
    }
    if (reps < 1 || reps > MAX_REPS) {
        fprintf(stderr, "usage: bench_open [--reps N] [FILE.gguf...]\n");
        return 2;
    }
    if (first == argc)
        return measure(argv[0], default_model(), reps);
    for (int i = first; i < argc; i++)
        failed |= measure(argv[0], argv[i], reps);
    return failed;
}
