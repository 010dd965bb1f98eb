/* SPDX-License-Identifier: MIT */
/* The fit of a scale and a minimum: least squares for a series of roundings, the best of which is kept. */
#include "quant/lanes.h"

struct groups {
    struct lanes x[FIT_MAX], w[FIT_MAX];
    struct lanes sum_w, sum_x; /* sums of w and w x */
    struct lanes largest;
    struct lanes scale, min, error; /* the best so far */
    struct lanes s, s_min;          /* the inverse scale and the minimum its codes were made with */
};

struct trial {
    struct lanes code[FIT_MAX];
    struct lanes s, scale, min;
    struct lanes a, b, c; /* sums of w l, w l l, w l x over the codes l */
    struct lanes error;
};

static void begin(struct groups * g, int n) {
    struct lanes lo = all_lanes(INFINITY), hi = all_lanes(-INFINITY);
    struct lanes sum_w = all_lanes(0.0f), sum_x = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) {
            const float x = g->x[i].at[l], w = g->w[i].at[l];
            lo.at[l] = x < lo.at[l] ? x : lo.at[l];
            hi.at[l] = x > hi.at[l] ? x : hi.at[l];
            sum_w.at[l] += w;
            sum_x.at[l] += w * x;
        }
    }
    EACH_LANE(l) { lo.at[l] = lo.at[l] > 0.0f ? 0.0f : lo.at[l]; }
    g->min = lo;
    g->largest = hi;
    g->sum_w = sum_w;
    g->sum_x = sum_x;
}

/* The error of the trial's codes under its scale and minimum. */
static inline void measure(const struct groups * g, int n, bool absolute, struct trial * t) {
    struct lanes sum = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) {
            const float d = t->scale.at[l] * t->code[i].at[l] + t->min.at[l] - g->x[i].at[l];
            sum.at[l] += g->w[i].at[l] * (absolute ? fabsf(d) : d * d);
        }
    }
    t->error = sum;
}

/* Codes for the trial's inverse scale and the minimum that is best now, and their sums. */
static inline void round_codes(const struct groups * g, int n, float top, struct trial * t) {
    struct lanes a = all_lanes(0.0f), b = all_lanes(0.0f), c = all_lanes(0.0f);
    for (int i = 0; i < n; i++) {
        EACH_LANE(l) {
            const float x = g->x[i].at[l];
            const float code = q_even(t->s.at[l] * (x - g->min.at[l]), 0.0f, top), wl = g->w[i].at[l] * code;
            t->code[i].at[l] = code;
            a.at[l] += wl;
            b.at[l] += wl * code;
            c.at[l] += wl * x;
        }
    }
    t->a = a;
    t->b = b;
    t->c = c;
}

/* The scale and minimum that fit the codes best. Codes that do not determine them give some of infinite error. */
static void solve(const struct groups * g, struct trial * t) {
    EACH_LANE(l) {
        const float w = g->sum_w.at[l], x = g->sum_x.at[l], a = t->a.at[l], b = t->b.at[l], c = t->c.at[l];
        const float determinant = w * b - a * a;
        const float scale = (w * c - x * a) / determinant, min = (b * x - a * c) / determinant;
        t->scale.at[l] = min > 0.0f ? c / b : scale;
        t->min.at[l] = min > 0.0f ? 0.0f : min;
        t->min.at[l] = determinant > 0.0f ? t->min.at[l] : -INFINITY;
    }
}

static void keep_better(struct groups * g, const struct trial * t) {
    EACH_LANE(l) {
        const bool better = t->error.at[l] < g->error.at[l];
        g->s_min.at[l] = better ? g->min.at[l] : g->s_min.at[l];
        g->s.at[l] = better ? t->s.at[l] : g->s.at[l];
        g->error.at[l] = better ? t->error.at[l] : g->error.at[l];
        g->scale.at[l] = better ? t->scale.at[l] : g->scale.at[l];
        g->min.at[l] = better ? t->min.at[l] : g->min.at[l];
    }
}

/* Spread the values from the minimum to the largest over `spread` codes. */
static void spread_over(const struct groups * g, float spread, struct trial * t) {
    EACH_LANE(l) { t->s.at[l] = spread / (g->largest.at[l] - g->min.at[l]); }
}

static inline void search(struct groups * g, int n, const struct sotto_i_offset_search * how, bool absolute) {
    const float top = (float)how->top;
    struct trial t;
    spread_over(g, top, &t);
    EACH_LANE(l) { t.scale.at[l] = 1.0f / t.s.at[l]; }
    t.min = g->min;
    round_codes(g, n, top, &t);
    measure(g, n, absolute, &t);
    g->s = t.s;
    g->s_min = g->min;
    g->scale = t.scale;
    g->error = t.error;
    for (int k = 0; k <= how->trials; k++) {
        spread_over(g, how->first + how->step * (float)k + top, &t);
        round_codes(g, n, top, &t);
        solve(g, &t);
        measure(g, n, absolute, &t);
        keep_better(g, &t);
    }
}

/* Codes of lane l, all 0 if there is no scale. */
static void put_codes(const struct groups * g, int l, int n, float top, bool flat, uint8_t * codes) {
    for (int i = 0; i < n; i++) {
        codes[i] = flat ? 0 : (uint8_t)q_even(g->s.at[l] * (g->x[i].at[l] - g->s_min.at[l]), 0.0f, top);
    }
}

void sotto_i_fit_offset(const struct sotto_i_offset_search * how, const float * x, const float * w, int groups, int n,
                        float * scales, float * minima, uint8_t * codes) {
    for (int first = 0; first < groups; first += LANES) {
        const int used = groups - first < LANES ? groups - first : LANES;
        struct groups g;
        gather_lanes(x + first * n, used, n, g.x);
        gather_lanes(w + first * n, used, n, g.w);
        begin(&g, n);
        const struct lanes smallest = g.min;
        if (how->absolute) {
            search(&g, n, how, true);
        } else {
            search(&g, n, how, false);
        }
        for (int l = 0; l < used; l++) {
            const bool flat = !(g.largest.at[l] > smallest.at[l]); /* equal values, none below 0 */
            scales[first + l] = flat ? 0.0f : g.scale.at[l];
            minima[first + l] = flat ? -smallest.at[l] : -g.min.at[l];
            put_codes(&g, l, n, (float)how->top, flat, codes + (first + l) * n);
        }
    }
}
