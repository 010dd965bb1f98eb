/* SPDX-License-Identifier: MIT */
/* Polyphase windowed sinc.
 *
 * With from/to = M/L in lowest terms, output m lies at input position m M/L = i + p/L. It is the sum of the inputs
 * around it, each weighted by the filter at its distance d:
 *
 *     y[m] = sum over n of x[n] h(i + p/L - n)          n = i-K .. i+K; x is 0 before its begin and behind its end
 *     h(d) = g C sinc(C u) kaiser(u / 32)               u = d in periods of the lower rate, g = min(1, L/M), C = 0.95
 *
 * There are only L different rows of weights, one a phase p; they are computed once. Where they would fill too much
 * memory (rates with hardly a common divisor), each is made when needed, from a fine table of h. Sums are taken in
 * double in eight interleaved parts: the same bits on every processor. No delay: output 0 lies at input 0. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "media/resample.h"

#define HALF     32   /* periods of the lower rate on either side */
#define CUTOFF   0.95 /* of half the lower rate */
#define BETA     9.0
#define LANES    8
#define MAX_ROWS (1u << 18) /* weights of all phases together that are kept */
#define FINE     2048       /* steps of the fine table in a period; linear between them is off by 3e-7 at most */
#define N_FINE   ((size_t)HALF * FINE + 2) /* one behind the end, to go towards */

static const double PI = 3.14159265358979323846;

struct resampler {
    const struct sotto_allocator * allocator;
    size_t up, down;      /* L, M */
    size_t half;          /* K */
    size_t taps;          /* 2 K + 1, rounded up to whole lanes */
    double * rows;        /* up x taps, or NULL: then */
    double * fine;        /* h at multiples of 1 / FINE, and */
    double * row;         /* the row in use */
    float * buffer;       /* inputs that are still needed, 0 before the first */
    size_t n;             /* inputs in it */
    size_t at, phase;     /* of the next output: its first input, p */
    uint64_t n_in, n_out; /* so far */
    bool ended;
};

/* ---- the filter ---- */

/* Modified Bessel function of order 0. */
static double bessel(double x) {
    double sum = 1;
    double term = 1;
    for (int k = 1; term > 1e-18 * sum; k++) {
        term *= x / (2 * k) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

/* The filter at u periods of the lower rate from its middle, with g = 1. */
static double filter(double u) {
    double inside = fmax(1 - u / HALF * (u / HALF), 0);
    double x = PI * CUTOFF * u;
    double sinc = x == 0 ? 1 : sin(x) / x;
    return CUTOFF * sinc * bessel(BETA * sqrt(inside)) / bessel(BETA);
}

static double fine_filter(const double * fine, double u) {
    double x = u * FINE;
    size_t i = (size_t)x;
    return fine[i] + (x - (double)i) * (fine[i + 1] - fine[i]);
}

/* The weights of one phase; those that fill up the last lanes lie outside and are 0. */
static void make_row(const struct resampler * r, size_t phase, double * row) {
    size_t period = r->up > r->down ? r->up : r->down; /* of the lower rate; distances are counted in 1 / period */
    size_t middle = phase + r->up * r->half;
    double g = (double)r->up / (double)period;
    for (size_t j = 0; j < r->taps; j++) {
        size_t d = middle > r->up * j ? middle - r->up * j : r->up * j - middle;
        double u = (double)d / (double)period;
        row[j] = d > HALF * period ? 0 : g * (r->fine != NULL ? fine_filter(r->fine, u) : filter(u));
    }
}

static bool make_rows(struct resampler * r) {
    if (r->taps <= MAX_ROWS / r->up) {
        r->rows = sotto_malloc(r->allocator, r->up * r->taps, sizeof(*r->rows));
        for (size_t p = 0; r->rows != NULL && p < r->up; p++)
            make_row(r, p, r->rows + p * r->taps);
        return r->rows != NULL;
    }
    r->row = sotto_malloc(r->allocator, r->taps, sizeof(*r->row));
    r->fine = sotto_malloc(r->allocator, N_FINE, sizeof(*r->fine));
    for (size_t i = 0; r->fine != NULL && i < N_FINE; i++)
        r->fine[i] = filter((double)i / FINE);
    return r->row != NULL && r->fine != NULL;
}

static const double * row_of(const struct resampler * r, size_t phase) {
    if (r->rows != NULL)
        return r->rows + phase * r->taps;
    make_row(r, phase, r->row);
    return r->row;
}

static size_t gcd(size_t a, size_t b) {
    while (b != 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static size_t buffer_size(const struct resampler * r) { return 2 * r->taps + RESAMPLE_BLOCK; }

enum sotto_status sotto_i_resampler_new(const struct sotto_allocator * allocator, int from, int to,
                                        struct resampler ** resampler) {
    *resampler = NULL;
    struct resampler * r = sotto_calloc(allocator, 1, sizeof(*r));
    if (r == NULL)
        return SOTTO_E_MEMORY;
    size_t common = gcd((size_t)from, (size_t)to);
    r->allocator = allocator;
    r->down = (size_t)from / common;
    r->up = (size_t)to / common;
    r->half = r->down > r->up ? (HALF * r->down + r->up - 1) / r->up : HALF;
    r->taps = (2 * r->half + LANES) / LANES * LANES;
    r->buffer = sotto_calloc(allocator, buffer_size(r), sizeof(*r->buffer));
    r->n = r->half;
    if (r->buffer == NULL || !make_rows(r)) {
        sotto_i_resampler_free(r);
        return SOTTO_E_MEMORY;
    }
    *resampler = r;
    return SOTTO_OK;
}

void sotto_i_resampler_free(struct resampler * r) {
    if (r == NULL)
        return;
    sotto_mfree(r->allocator, r->rows, r->up * r->taps, sizeof(*r->rows));
    sotto_mfree(r->allocator, r->fine, N_FINE, sizeof(*r->fine));
    sotto_mfree(r->allocator, r->row, r->taps, sizeof(*r->row));
    sotto_mfree(r->allocator, r->buffer, buffer_size(r), sizeof(*r->buffer));
    sotto_mfree(r->allocator, r, 1, sizeof(*r));
}

/* ---- running it ---- */

size_t sotto_i_resampler_room(const struct resampler * r, size_t n) { return (r->taps + n) * r->up / r->down + 2; }

void sotto_i_resampler_push(struct resampler * r, const float * in, size_t n) {
    memcpy(r->buffer + r->n, in, n * sizeof(*in));
    r->n += n;
    r->n_in += n;
}

void sotto_i_resampler_end(struct resampler * r) {
    memset(r->buffer + r->n, 0, r->taps * sizeof(*r->buffer));
    r->n += r->taps;
    r->ended = true;
}

static float dot(const double * h, const float * x, size_t n) {
    double part[LANES] = { 0 };
    for (size_t k = 0; k < n; k += LANES) {
        for (size_t j = 0; j < LANES; j++)
            part[j] += h[k + j] * (double)x[k + j];
    }
    return (float)(((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7])));
}

size_t sotto_i_resampler_pull(struct resampler * r, float * out) {
    uint64_t last = r->ended ? (2 * r->n_in * r->up + r->down) / (2 * r->down) : UINT64_MAX;
    size_t n = 0;
    for (; r->at + r->taps <= r->n && r->n_out < last; r->n_out++) {
        out[n++] = dot(row_of(r, r->phase), r->buffer + r->at, r->taps);
        r->phase += r->down;
        r->at += r->phase / r->up;
        r->phase %= r->up;
    }
    size_t done = r->at < r->n ? r->at : r->n;
    memmove(r->buffer, r->buffer + done, (r->n - done) * sizeof(*r->buffer));
    r->n -= done;
    r->at -= done;
    return n;
}
