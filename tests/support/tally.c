/* SPDX-License-Identifier: MIT */
/* See tally.h. Of a check's failures the first few are printed, of the others the number. */
#include "tally.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 5 };

void tally_begin(struct tally * tally, const char * name, ...) {
    va_list args;
    va_start(args, name);
    vsnprintf(tally->check, sizeof(tally->check), name, args);
    va_end(args);
    tally->n = 0;
    tally->n_bad = 0;
}

void tally_end(struct tally * tally) {
    if (tally->n_bad > SHOWN)
        printf("FAIL %s: %ld of %ld comparisons failed\n", tally->check, tally->n_bad, tally->n);
    if (tally->n == 0)
        printf("FAIL %s: nothing was compared\n", tally->check);
    if (tally->n == 0 || tally->n_bad > 0)
        tally->failed++;
    else
        tally->passed++;
}

static struct tally_kind * find_kind(struct tally * tally, const char * name) {
    int i = 0;
    while (i < tally->n_kinds && strcmp(tally->kinds[i].name, name) != 0)
        i++;
    if (i == tally->n_kinds && i + 1 < TALLY_KINDS)
        tally->kinds[tally->n_kinds++] = (struct tally_kind){ .name = name, .largest = -1.0 };
    return &tally->kinds[i];
}

static bool count(struct tally * tally, bool holds) {
    tally->n++;
    if (!holds)
        tally->n_bad++;
    return !holds && tally->n_bad <= SHOWN;
}

bool tally_near(struct tally * tally, const char * kind, double got, double expected, double limit, const char * where,
                ...) {
    char text[TALLY_NAME];
    va_list args;
    va_start(args, where);
    vsnprintf(text, sizeof(text), where, args);
    va_end(args);
    double deviation = fabs(got - expected);
    bool holds = deviation <= limit;
    struct tally_kind * k = find_kind(tally, kind);
    if (!(deviation <= k->largest)) {
        k->largest = isnan(deviation) ? INFINITY : deviation;
        k->limit = limit;
        snprintf(k->where, sizeof(k->where), "%s %s", tally->check, text);
    }
    if (count(tally, holds))
        printf("FAIL %s: %s: %s is %.9g, expected %.9g +- %g\n", tally->check, text, kind, got, expected, limit);
    return holds;
}

bool tally_that(struct tally * tally, bool holds, const char * what, ...) {
    if (count(tally, holds)) {
        va_list args;
        va_start(args, what);
        printf("FAIL %s: ", tally->check);
        vprintf(what, args);
        printf("\n");
        va_end(args);
    }
    return holds;
}

void tally_skip(struct tally * tally, const char * name) {
    int i = 0;
    while (i < tally->n_skips && strcmp(tally->skips[i].name, name) != 0)
        i++;
    if (i == TALLY_SKIPS)
        i--;
    if (i == tally->n_skips) {
        tally->n_skips++;
        snprintf(tally->skips[i].name, sizeof(tally->skips[i].name), "%s", name);
    }
    tally->skips[i].n++;
    tally->skipped++;
}

int tally_report(const struct tally * tally) {
    for (int i = 0; i < tally->n_kinds; i++)
        printf("largest deviation of %-20s %-10.3g limit %-8g %s\n", tally->kinds[i].name, tally->kinds[i].largest,
               tally->kinds[i].limit, tally->kinds[i].where);
    for (int i = 0; i < tally->n_skips; i++)
        printf("skipped: %ld x %s\n", tally->skips[i].n, tally->skips[i].name);
    printf("%ld passed, %ld failed, %ld skipped\n", tally->passed, tally->failed, tally->skipped);
    return tally->failed > 0 ? 1 : 0;
}
