/* SPDX-License-Identifier: MIT */
/* Counting checks of a program that compares with stored numbers: names each failure, keeps the largest deviation of
 * each kind of number, ends with "N passed, N failed, N skipped".
 *
 *     tally_begin(&tally, "clips.%s.mel", clip);
 *     tally_near(&tally, "mel", got, expected, 1e-4, "frame %d", t);      any number of these and of tally_that
 *     tally_end(&tally);                                                    counts one check */
#ifndef SOTTO_TESTS_TALLY_H
#define SOTTO_TESTS_TALLY_H

#include <stdbool.h>

enum { TALLY_KINDS = 32, TALLY_SKIPS = 32, TALLY_NAME = 96 };

struct tally_kind {
    const char * name;
    double largest;
    double limit; /* of the comparison that deviated most */
    char where[2 * TALLY_NAME];
};

struct tally_skip {
    char name[TALLY_NAME];
    long n;
};

/* Starts zeroed. */
struct tally {
    long passed, failed, skipped;
    char check[TALLY_NAME]; /* the one that is open */
    long n, n_bad;          /* comparisons in it, and those that failed */
    struct tally_kind kinds[TALLY_KINDS];
    int n_kinds;
    struct tally_skip skips[TALLY_SKIPS];
    int n_skips;
};

void tally_begin(struct tally * tally, const char * name, ...) __attribute__((format(printf, 2, 3)));
void tally_end(struct tally * tally); /* a check that compared nothing has failed */

/* Compare two numbers; `kind` is a constant that names what they are. The rest says where in the check. */
bool tally_near(struct tally * tally, const char * kind, double got, double expected, double limit, const char * where,
                ...) __attribute__((format(printf, 6, 7)));
/* Anything else; `what` is printed when it does not hold. */
bool tally_that(struct tally * tally, bool holds, const char * what, ...) __attribute__((format(printf, 3, 4)));

/* Something that is not compared, counted by `name`. */
void tally_skip(struct tally * tally, const char * name);

/* Print skips, deviations and the closing line; 1 if a check failed, else 0. */
int tally_report(const struct tally * tally);

#endif
