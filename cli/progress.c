/* SPDX-License-Identifier: MIT */
/* The bar on a terminal's stderr: percent, how many times faster than the sound if there is one, time left. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool is_set(const char * name) {
    const char * value = getenv(name);
    return value != NULL && value[0] != 0;
}

void progress_init(struct progress * progress, bool wanted) {
    const char * terminal = getenv("TERM");
    *progress = (struct progress){ .on = wanted && isatty(STDERR_FILENO) };
    progress->colour = !is_set("NO_COLOR") && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

void progress_begin(struct progress * progress, double seconds) {
    progress->seconds = seconds;
    progress->start = now();
}

void progress_show(struct progress * progress, int percent) {
    if (!progress->on)
        return;
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < percent * WIDTH / 100 ? '#' : '-';
    bar[WIDTH] = 0;
    double taken = now() - progress->start;
    progress_clear(progress);
    fprintf(stderr, "%s[%s]%s %3d %%", progress->colour ? "\033[32m" : "", bar, progress->colour ? "\033[0m" : "",
            percent);
    if (percent > 0 && taken > 0) {
        int left = (int)(taken * (100 - percent) / percent + 0.5);
        if (progress->seconds > 0)
            fprintf(stderr, "  %.1fx real time", progress->seconds * percent / 100 / taken);
        fprintf(stderr, "  %d:%02d left", left / 60, left % 60);
    }
    fflush(stderr);
    progress->shown = true;
}

void progress_clear(struct progress * progress) {
    if (progress->shown)
        fprintf(stderr, "\r%79s\r", "");
    progress->shown = false;
}
